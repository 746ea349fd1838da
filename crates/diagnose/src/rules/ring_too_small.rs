//! 8: packets dropped because the receive ring was full.

use model::{
    Confidence, Reading, Severity, drivers::Act, ids::Direction, nic::Nic, samples::Delta,
};

use crate::{
    Case, Rule,
    knob::{self, change},
    queues,
    rule::{Draft, Gain, Judgement, Missing, clear, need},
    text,
};

/// Catalogue number 8. A larger ring helps a CPU that is late now and then; for a saturated CPU it
/// only delays the loss.
pub static RULE: Rule = Rule {
    id: "ring_too_small",
    number: 8,
    title: "packets dropped because the receive ring was full",
    needs: &[
        "interface, driver or queue drop counters over a window",
        "CPU time of the NIC's CPUs",
        "ring sizes",
    ],
    explained_by: &["few_channels", "irqs_piled_up", "rps_missing", "flow_skew", "cloud_allowance"],
    judge,
};

/// `/sys/class/net/X/statistics` that mean "no descriptor free".
const STATISTICS: [&str; 3] = ["rx_missed_errors", "rx_fifo_errors", "rx_over_errors"];
/// Drivers' names of the same event in `ethtool -S`.
const DRIVER: [&str; 10] = [
    "rx_missed_errors",
    "rx_fifo_errors",
    "rx_no_buffer_count",
    "rx_no_dma_resources",
    "rx_out_of_buffer",
    "rx_no_buffer",
    "rx_nobuf",
    "rx_missed",
    "port.rx_discards",
    "pkts rx OOB",
];
/// The kernel's own name per queue, since 6.9.
const QUEUE: &str = "rx-hw-drop-overruns";

fn judge(case: &Case<'_>) -> Vec<Judgement> {
    queues::each_physical(case, |nic| one(case, nic))
}

/// Whether a driver's counter has this meaning. vmxnet3 indents its names and repeats them for each
/// queue, which [`model::samples`] names `NAME#2`.
fn of_driver(name: &str) -> bool {
    let own = name.split_once('#').map_or(name, |(own, _)| own);
    DRIVER.contains(&own.trim())
}

struct Lost {
    name: String,
    count: u64,
    source: String,
}

/// Evidence: the interface's own counters, to which drivers add theirs, and all counters of driver
/// and queues by name.
fn counters_read(case: &Case<'_>, nic: &Nic) -> Result<(), Missing> {
    for name in STATISTICS {
        case.nic_statistic(&nic.name, name)?;
    }
    let sample = case.nic_sample(&nic.name)?;
    if let Reading::Denied(_) = sample.driver_stats {
        need(&format!("ethtool -S {}", nic.name), &sample.driver_stats)?;
    }
    for (name, d) in sample.driver_stats.known().into_iter().flatten() {
        if of_driver(name) {
            need(name, d)?;
        }
    }
    let queues = sample.queues.known().into_iter().flatten();
    for (id, d) in queues.filter_map(|q| Some((q.id, q.counters.get(QUEUE)?))) {
        need(&format!("{id} {QUEUE}"), d)?;
    }
    Ok(())
}

/// Every counter that grew. Several may count the same packets, so they are not added up.
fn lost(case: &Case<'_>, nic: &Nic) -> Result<(Vec<Lost>, usize), Missing> {
    let sample = case.nic_sample(&nic.name)?;
    let (mut found, mut looked, mut broken) = (vec![], 0usize, None);
    let mut look = |name: String, d: &Delta, source: String| match need(&name, d) {
        Ok(&count) => {
            looked += 1;
            if count > 0 {
                found.push(Lost { name, count, source });
            }
        }
        Err(missing) => broken = Some(missing),
    };
    for (name, d) in sample.statistics.known().into_iter().flatten() {
        if STATISTICS.contains(&name.as_str()) {
            look(name.clone(), d, format!("/sys/class/net/{}/statistics/{name}", nic.name));
        }
    }
    for (name, d) in sample.driver_stats.known().into_iter().flatten() {
        if of_driver(name) {
            look(name.trim().to_owned(), d, format!("ethtool -S {}", nic.name));
        }
    }
    for q in sample.queues.known().into_iter().flatten() {
        if let Some(d) = q.counters.get(QUEUE) {
            look(format!("{} {QUEUE}", q.id), d, "netdev netlink qstats-get".into());
        }
    }
    if looked == 0 {
        let why = sample.statistics.why_not().or(sample.driver_stats.why_not());
        return Err(broken.unwrap_or_else(|| {
            Missing(format!(
                "drop counters of {}: {}",
                nic.name,
                why.unwrap_or("this driver counts none that is known to mean a full ring")
            ))
        }));
    }
    Ok((found, looked))
}

fn one(case: &Case<'_>, nic: &Nic) -> Result<Judgement, Missing> {
    let (found, looked) = lost(case, nic)?;
    let name = &nic.name;
    let Some(worst) = found.iter().map(|l| l.count).max() else {
        let text = format!(
            "{name}: none of {} grew {}",
            text::plural(looked, "drop counter"),
            case.over()
        );
        return clear(text, [&counters_read(case, nic)]);
    };
    let received = case.nic_statistic(name, "rx_packets").ok();
    let share = received.map_or(0.0, |n| worst as f64 / (n + worst) as f64);
    let mut draft = Draft::new(
        name,
        format!("{name} dropped {} packets: receive ring full", text::count(worst)),
    )
    .weigh(if share >= 0.01 { Severity::Critical } else { Severity::Warning }, Confidence::Medium)
    .explain("Packets arrived while no descriptor of the receive ring was free.")
    .gain(Gain::Improves, "no packets dropped at the ring, fewer retransmits")
    .on_nic(name);
    for l in found.iter().take(8) {
        draft = draft.show(format!("{} {}", l.name, case.over()), text::count(l.count), &l.source);
    }
    if let Some(received) = received {
        draft = draft.show(
            format!("packets received {}", case.over()),
            format!("{} (dropped: {})", text::count(received), text::percent(share)),
            format!("/sys/class/net/{name}/statistics/rx_packets"),
        );
    }
    Ok(with_remedy(case, nic, draft).found())
}

fn with_remedy(case: &Case<'_>, nic: &Nic, mut draft: Draft) -> Draft {
    if let Ok(cpus) = queues::nic_cpus(case, nic, Direction::Rx) {
        draft = draft.on_cpus(&cpus);
    }
    let (cpu, load) = match queues::not_threaded(nic)
        .and_then(|()| queues::busiest_rx_cpu(case, nic))
    {
        Ok(found) => found,
        Err(Missing(why)) => {
            return draft.add(&format!(
                "Whether the CPU behind it was saturated is not known ({why}), so no larger ring is \
                 proposed."
            ));
        }
    };
    draft = draft.show_load(case, cpu, load);
    if load.saturated() || load.busy >= 0.9 {
        return draft.add(&format!(
            "CPU {cpu}, which empties the ring, is saturated: a larger ring would only delay the \
             loss. Give that CPU less work first."
        ));
    }
    let source = format!("ethtool -g {}", nic.name);
    match need(&source, &nic.rings) {
        Err(Missing(why)) => draft.add(&format!("The ring's size is not known ({why}).")),
        Ok(r) if r.rx >= r.max_rx => draft
            .show("receive ring", format!("{} descriptors, the most it takes", r.rx), source)
            .add("The ring is as large as it can be: look for what keeps that CPU from polling in time."),
        Ok(r) => {
            let new = r.rx.saturating_mul(2).min(r.max_rx);
            draft
                .show("receive ring", format!("{} of {} descriptors", r.rx, r.max_rx), source)
                .add("The CPU that empties the ring has room, so these were bursts: a larger ring carries them.")
                .change(change(
                    format!("nic.{}.rings.rx", nic.name),
                    r.rx.to_string(),
                    new.to_string(),
                    format!(
                        "{}; more descriptors mean more memory, colder caches and more delay when \
                         full",
                        knob::impact(nic, Act::Rings)
                    ),
                ))
        }
    }
}
