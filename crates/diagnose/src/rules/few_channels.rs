//! 1: a NIC with fewer channels than possible, one of which has saturated its CPU.

use model::{
    Confidence, Severity,
    drivers::Act,
    ids::Direction,
    nic::{Channels, Nic},
};

use crate::{
    Case, Rule,
    knob::{self, change},
    load,
    queues::{self, BUSY_NIC_PER_S},
    rule::{Draft, Gain, Judgement, Missing, Proposal, clear, need},
    spread, text,
};

/// Catalogue number 1. The kernel's scaling guide calls the fewest channels that do not overflow
/// the most efficient; so a low number alone is no finding.
pub static RULE: Rule = Rule {
    id: "few_channels",
    number: 1,
    title: "too few channels: one CPU does the NIC's work while others idle",
    needs: &[
        "channels now and at most",
        "the CPUs that serve the NIC's queues",
        "CPU time over a window",
        "packets received over a window",
    ],
    explained_by: &["cloud_allowance", "flow_skew"],
    judge,
};

/// The factor of the proposed step. Our proposal: an overflowing channel hides the real need, and
/// in the field 4 and 8 channels performed the same.
const STEP: u32 = 4;

fn judge(case: &Case<'_>) -> Vec<Judgement> {
    if let Some(clear) = queues::one_cpu(case, "one CPU is online: nothing to spread") {
        return vec![clear];
    }
    queues::each_physical(case, |nic| one(case, nic))
}

/// The present and the largest number of receive channels.
pub(crate) fn receive_channels(c: &Channels) -> (u32, u32) {
    (c.combined.saturating_add(c.rx), c.max_combined.max(c.max_rx))
}

fn one(case: &Case<'_>, nic: &Nic) -> Result<Judgement, Missing> {
    let source = format!("ethtool -l {}", nic.name);
    let channels = need(&source, &nic.channels)?;
    let (now, most) = receive_channels(channels);
    let housekeeping = case.housekeeping();
    if housekeeping.is_empty() {
        return Err(Missing("CPUs: none was read".into()));
    }
    let cores = spread::cores(case, &housekeeping) as u32;
    let useful = most.min(cores);
    if now >= useful {
        let text = format!(
            "{}: {now} of at most {most} channels for {}",
            nic.name,
            text::plural(cores as usize, "core")
        );
        return clear(text, [&nic.channels, &case.cpus_read()]);
    }
    queues::not_threaded(nic)?;
    let rate = queues::rx_per_s(case, nic)?;
    let busiest = queues::busiest_rx_cpu(case, nic);
    let (cpu, load) = busiest.clone()?;
    if rate < BUSY_NIC_PER_S || !load.saturated() {
        let why = if load.saturated() {
            "other packets than this NIC's fill that CPU"
        } else if load.busy >= 0.9 {
            "that CPU is full, but of other work than packets"
        } else {
            "the fewest channels that do not overflow are the most efficient"
        };
        let text = format!(
            "{}, {now} of {most} channels, busiest CPU {cpu} {}: {why}",
            queues::rx_text(nic, rate),
            load.text()
        );
        return clear(text, [&nic.channels, &busiest, &queues::all_rx_irqs(case, nic)]);
    }
    let serving = queues::nic_cpus(case, nic, Direction::Rx)?;
    let median = load::median_of_others(case, &serving)?;
    if !load::has_room(median) {
        let text = format!(
            "{}: CPU {cpu} is saturated, but so is the host: the median of the other CPUs is {} \
             busy",
            nic.name,
            text::percent(median)
        );
        return clear(text, [&load::all_others(case, &serving)]);
    }
    let target = useful.min(now.saturating_mul(STEP)).max(now + 1);
    Ok(Draft::new(
        &nic.name,
        format!(
            "{} has {now} of {most} channels, and CPU {cpu} that serves one is saturated",
            nic.name
        ),
    )
    .weigh(Severity::Critical, Confidence::High)
    .explain(format!(
        "All packets of a channel are handled by one CPU. CPU {cpu} is saturated while half \
         of the other CPUs are at most {} busy: throughput stops there.",
        text::percent(median)
    ))
    .add(&if target < useful {
        format!(
            "This is a step to {target} channels, not to the maximum: measure again and go \
             on only if a CPU is still saturated."
        )
    } else {
        String::new()
    })
    .gain(
        Gain::Unblocks,
        "the saturated CPU's packets spread over more CPUs, until another limit shows",
    )
    .show(format!("receive channels of {}", nic.name), format!("{now} now, maximum {most}"), source)
    .show_load(case, cpu, load)
    .show("other CPUs, median busy share", text::percent(median), "/proc/stat")
    .show(
        format!("packets received {}", case.over()),
        text::per_s(rate),
        format!("/sys/class/net/{}/statistics/rx_packets", nic.name),
    )
    .change(channel_change(case, nic, channels, target))
    .on_nic(&nic.name)
    .on_cpus(&serving)
    .found())
}

fn channel_change(case: &Case<'_>, nic: &Nic, now: &Channels, target: u32) -> Proposal {
    let mut risk = format!(
        "{}; look at the RSS table (ethtool -x), ntuple rules and AF_XDP sockets first",
        knob::impact(nic, Act::Channels)
    );
    if let Some(rules @ 1..) = nic.ntuple_rules.get() {
        risk.push_str(&format!("; {rules} ntuple rules steer to its queues"));
    }
    if nic.xdp.get() == Some(true) {
        risk.push_str("; an XDP program is attached");
    }
    if case.running_tuner("irqbalance").is_none() {
        risk.push_str(
            "; irqbalance was not found running: check afterwards that the new \
                       interrupts are on different CPUs",
        );
    }
    let (old, new) = if now.max_combined > 0 {
        (format!("combined {}", now.combined), format!("combined {target}"))
    } else {
        let tx = target.min(now.max_tx);
        (format!("rx {} tx {}", now.rx, now.tx), format!("rx {target} tx {tx}"))
    };
    change(format!("nic.{}.channels", nic.name), old, new, risk)
}
