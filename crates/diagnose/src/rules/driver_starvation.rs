//! 43: a driver has no buffer for received packets, or its transmit queues stop all the time.

use model::{Confidence, Severity, drivers::Act, nic::Nic};

use crate::{
    Case, Rule,
    driver_counters::{self, Grown, Meaning},
    knob::{self, change, sysctl},
    pressure, queues, rate,
    rule::{Draft, Gain, Judgement, Missing, clear, need},
    rules::memory_pressure::RESERVE,
    text,
};

/// Catalogue number 43. The two halves have different causes: memory, and a full ring.
pub static RULE: Rule = Rule {
    id: "driver_starvation",
    number: 43,
    title: "a driver has no buffer for received packets, or its transmit queues stop all the time",
    needs: &[
        "the driver's counters of failed allocations or of stopped queues over a window",
        "the link's speed and the bytes sent, to tell a full ring from a full link",
    ],
    explained_by: &["memory_pressure", "pause_storm", "cloud_allowance", "ena_large_llq"],
    judge,
};

/// Stops a second of a NIC that are a finding, and those that warn. Our proposal: with an interrupt after
/// 50 µs a thousand stops are a twentieth of the time.
const STOPS: f64 = 100.0;
const MANY_STOPS: f64 = 1_000.0;
/// Share of the link's speed from which a full ring is the link's, as in rule 27.
const FULL_LINK: f64 = 0.8;
/// The reserve is raised to one part in so many of memory at most. Our proposal.
const MOST_RESERVE: u64 = 20;

fn judge(case: &Case<'_>) -> Vec<Judgement> {
    let mut out = queues::each_physical(case, |nic| receiving(case, nic));
    if !queues::running_physical(case).is_empty() {
        out.extend(queues::each_physical(case, |nic| sending(case, nic)));
    }
    out
}

/// The counters of one half; an error where the driver has none of either. A driver that counts one half
/// is judged by that.
fn counters(
    case: &Case<'_>,
    nic: &Nic,
    wanted: Meaning,
    other: Meaning,
) -> Result<Vec<Grown>, Missing> {
    let driver = need(&format!("driver of {}", nic.name), &nic.driver)?;
    let all = driver_counters::grown(case, nic, wanted)?;
    if all.is_empty() && driver_counters::grown(case, nic, other)?.is_empty() {
        return Err(Missing(format!(
            "counters of {}: driver {driver} has none that is known to mean a failed allocation or a stopped \
             queue",
            nic.name
        )));
    }
    Ok(all)
}

/// Judges the receive allocations that failed over the window.
fn receiving(case: &Case<'_>, nic: &Nic) -> Result<Judgement, Missing> {
    let name = &nic.name;
    let all = counters(case, nic, Meaning::NoBuffer, Meaning::QueueStopped)?;
    if all.is_empty() {
        return Err(Missing(format!(
            "{name}: no counter of its driver is known for failed allocations"
        )));
    }
    let most = all.first().map_or(0, |g| g.count);
    let Some(sure) = rate::sustained(most, case.window_s()?) else {
        let text = format!("{name}: {} failed allocations {}", text::count(most), case.over());
        return clear(text, [&nic.driver]);
    };
    let severity = if sure == Confidence::Low { Severity::Info } else { Severity::Warning };
    let mut draft = Draft::new(
        name,
        format!(
            "{name}'s driver could not allocate a receive buffer {} {}",
            text::times(most),
            case.over()
        ),
    )
    .weigh(severity, sure)
    .explain(
        "The driver asks for memory in a softirq, where the kernel cannot free any first. Without a buffer \
         it drops the packet or leaves a hole in the ring. The kernel's reserve for this is small, or \
         memory is short or fragmented.",
    )
    .gain(Gain::Unblocks, "no packets lost for want of memory");
    for g in all.iter().filter(|g| g.count > 0) {
        draft = draft.show(format!("{} {}", g.name, case.over()), text::count(g.count), &g.source);
    }
    if let Ok(memory) = pressure::host(case, "memory") {
        draft = draft.show_pressure(case, memory);
    }
    draft = draft.show_sysctl(case, RESERVE).on_sysctl(RESERVE);
    Ok(match reserve(case) {
        Ok(Some(new)) => draft.change(sysctl(
            case,
            RESERVE,
            &new.to_string(),
            "this memory is no longer there for programs and the page cache",
        )),
        Ok(None) => draft.add("The reserve is large already: find out what uses up the memory."),
        Err(Missing(why)) => draft.add(&format!("No larger reserve is proposed ({why}).")),
    }
    .found())
}

/// Twice the reserve, KiB, up to a twentieth of memory; `None` where it is that large.
fn reserve(case: &Case<'_>) -> Result<Option<u64>, Missing> {
    let now = case.sysctl_number(RESERVE)?;
    let memory = need("memory size", &case.facts.memory_bytes)?.0 / 1024;
    let new = now.saturating_mul(2).min(memory / MOST_RESERVE);
    Ok((new > now).then_some(new))
}

/// Transmit queues that stopped.
fn sending(case: &Case<'_>, nic: &Nic) -> Result<Judgement, Missing> {
    let name = &nic.name;
    let all = counters(case, nic, Meaning::QueueStopped, Meaning::NoBuffer)?;
    if all.is_empty() {
        return Err(Missing(format!(
            "{name}: no counter of its driver is known for stopped queues"
        )));
    }
    let most = all.first().map_or(0, |g| g.count);
    let window = case.window_s()?;
    let rate = most as f64 / window;
    let full = link_share(case, nic);
    if rate < STOPS {
        let text = format!("{name}: transmit queues stopped {}", text::per_s(rate));
        return clear(text, [&nic.driver]);
    }
    if full.clone().is_ok_and(|share| share >= FULL_LINK) {
        let text = format!("{name}: its transmit queues stop because the link is full");
        return clear(text, [&full]);
    }
    let (severity, confidence) = match (&full, rate >= MANY_STOPS) {
        (Ok(_), true) => (Severity::Warning, Confidence::Medium),
        (Ok(_), false) => (Severity::Info, Confidence::Medium),
        (Err(_), _) => (Severity::Info, Confidence::Low),
    };
    let mut draft =
        Draft::new(name, format!("{name}'s transmit queues stopped {}", text::per_s(rate)))
            .weigh(severity, confidence)
            .explain(
                "A queue stops when its ring has no free descriptor, and starts again once the NIC has sent \
                 some and the driver has cleaned up after it. Until then packets wait in the qdisc.",
            )
            .gain(Gain::Improves, "bursts are sent without a pause");
    for g in all.iter().filter(|g| g.count > 0) {
        draft = draft.show(format!("{} {}", g.name, case.over()), text::count(g.count), &g.source);
    }
    if let Ok(sent) = case.nic_statistic(name, "tx_packets") {
        draft = draft.show(
            format!("packets sent {}", case.over()),
            text::count(sent),
            format!("/sys/class/net/{name}/statistics/tx_packets"),
        );
    }
    draft = match full {
        Ok(share) => draft.show(
            "share of the link's speed that is sent",
            text::percent(share),
            format!("/sys/class/net/{name}/speed, statistics/tx_bytes"),
        ),
        Err(Missing(why)) => draft.add(&format!(
            "Whether the link was full is not known ({why}); then a full ring is no fault."
        )),
    };
    Ok(larger_ring(nic, draft).on_nic(name).found())
}

/// The share of the link's speed that was sent, Ethernet's own bytes left out.
fn link_share(case: &Case<'_>, nic: &Nic) -> Result<f64, Missing> {
    let speed = need(&format!("speed of {}", nic.name), &nic.speed_bps)?.0;
    let sent = case.nic_statistic(&nic.name, "tx_bytes")?;
    Ok(sent as f64 * 8.0 / case.window_s()? / speed.max(1) as f64)
}

fn larger_ring(nic: &Nic, draft: Draft) -> Draft {
    let source = format!("ethtool -g {}", nic.name);
    match need(&source, &nic.rings) {
        Err(Missing(why)) => draft.add(&format!("The ring's size is not known ({why}).")),
        Ok(r) if r.tx >= r.max_tx => draft
            .show("transmit ring", format!("{} descriptors, the most it takes", r.tx), source)
            .add(
                "The ring is as large as it can be: a shorter delay of transmit interrupts (tx-usecs) \
                 frees descriptors sooner.",
            ),
        Ok(r) => {
            let new = r.tx.saturating_mul(2).min(r.max_tx);
            draft
                .show("transmit ring", format!("{} of {} descriptors", r.tx, r.max_tx), source)
                .change(change(
                    format!("nic.{}.rings.tx", nic.name),
                    r.tx.to_string(),
                    new.to_string(),
                    format!(
                        "{}; without byte queue limits a longer ring is a longer delay for what is behind it",
                        knob::impact(nic, Act::Rings)
                    ),
                ))
        }
    }
}
