//! 9: a hot interrupt CPU, no further hardware queue, and no packet steering.

use model::{Confidence, CpuSet, Reading, Severity, ids::Direction, nic::Nic};

use crate::{
    Case, Rule,
    knob::change,
    load,
    queues::{self, BUSY_NIC_PER_S},
    rule::{Draft, Gain, Judgement, Missing, Proposal, clear, need},
    rules::few_channels::receive_channels,
    spread, text,
};

/// Catalogue number 9. Hardware queues come first: the rule is silent where the NIC can have more
/// channels.
pub static RULE: Rule = Rule {
    id: "rps_missing",
    number: 9,
    title: "a hot interrupt CPU and no receive packet steering",
    needs: &[
        "rps_cpus of the receive queues",
        "the CPUs that serve them",
        "CPU time over a window",
    ],
    explained_by: &["irqs_piled_up", "flow_skew", "cloud_allowance"],
    judge,
};

fn judge(case: &Case<'_>) -> Vec<Judgement> {
    if let Some(clear) = queues::one_cpu(case, "one CPU is online: nowhere to steer to") {
        return vec![clear];
    }
    queues::each_physical(case, |nic| one(case, nic))
}

/// `rps_cpus` of every receive queue.
pub(crate) fn rps_sets(nic: &Nic) -> Result<Vec<(u32, &CpuSet)>, Missing> {
    let rx = nic.queues.iter().filter(|q| q.id.direction == Direction::Rx);
    let sets: Result<Vec<_>, Missing> = rx
        .map(|q| {
            let path = format!("/sys/class/net/{}/queues/{}/rps_cpus", nic.name, q.id);
            Ok((q.id.index, need(&path, &q.rps_cpus)?))
        })
        .collect();
    match sets {
        Ok(list) if list.is_empty() => {
            Err(Missing(format!("receive queues of {}: none was read", nic.name)))
        }
        other => other,
    }
}

fn one(case: &Case<'_>, nic: &Nic) -> Result<Judgement, Missing> {
    let name = &nic.name;
    let sets = rps_sets(nic)?;
    let housekeeping = case.housekeeping();
    if housekeeping.is_empty() {
        return Err(Missing("CPUs: none was read".into()));
    }
    let steering = rps_sets(nic);
    if sets.iter().any(|(_, set)| !set.is_empty()) {
        return clear(format!("{name}: RPS is on"), [&steering]);
    }
    if sets.len() >= housekeeping.len() {
        let text = format!(
            "{name} has {} for {}",
            text::plural(sets.len(), "receive queue"),
            text::plural(housekeeping.len(), "CPU")
        );
        return clear(text, [&steering, &case.cpus_read()]);
    }
    // A NIC without channels cannot have more; one that cannot be queried might.
    if let Reading::Denied(_) = nic.channels {
        need(&format!("ethtool -l {name}"), &nic.channels)?;
    }
    if let Some(channels) = nic.channels.known() {
        let (now, most) = receive_channels(channels);
        if now < most.min(spread::cores(case, &housekeeping) as u32) {
            let text = format!("{name} can have more channels, which come before steering");
            return clear(text, [&nic.channels, &spread::cores_read(case)]);
        }
    }
    queues::not_threaded(nic)?;
    let rate = queues::rx_per_s(case, nic)?;
    let busiest = queues::busiest_rx_cpu(case, nic);
    let (cpu, load) = busiest.clone()?;
    if rate < BUSY_NIC_PER_S || !load.hot() {
        let text = format!("{}, busiest CPU {cpu} {}", queues::rx_text(nic, rate), load.text());
        return clear(text, [&busiest, &queues::all_rx_irqs(case, nic)]);
    }
    let serving = queues::nic_cpus(case, nic, Direction::Rx)?;
    let median = load::median_of_others(case, &serving)?;
    // Without a node from the firmware, the interrupts show where the NIC is.
    let node = nic.numa_node.get().or_else(|| case.node_of(cpu));
    if let Some(n) = node
        && case.node_cpus(n).is_empty()
        && case.nodes_with_cpus().is_err()
    {
        return Err(Missing(format!("CPUs of node {n}: none was read")));
    }
    let target = spread::rps_cpus(case, node, &serving);
    if !load::has_room(median) || target.is_empty() {
        let text = format!(
            "{name}: CPU {cpu} is hot, but no other CPU of its node has room (median of the others \
             {} busy)",
            text::percent(median)
        );
        return clear(text, [&load::all_others(case, &serving), &spread::cores_read(case)]);
    }
    let changes = sets.iter().map(|(index, _)| steer(name, *index, &target));
    Ok(Draft::new(name, format!("{name}: CPU {cpu} is hot, no further queue, RPS off"))
        .weigh(Severity::Warning, Confidence::Medium)
        .explain(format!(
            "CPU {cpu} handles a queue's packets from interrupt to socket while other CPUs have \
             room. Receive packet steering hands the protocol work to them by flow; a single flow \
             gains nothing. The proposal takes the node's CPUs without the interrupt CPUs, their \
             siblings, and isolated CPUs."
        ))
        .gain(Gain::Improves, "the protocol part of the receive work leaves the hot CPU")
        .show(
            format!("receive queues of {name}"),
            format!("{}, rps_cpus 0 on all", sets.len()),
            format!("/sys/class/net/{name}/queues/rx-*/rps_cpus"),
        )
        .show_load(case, cpu, load)
        .show("other CPUs, median busy share", text::percent(median), "/proc/stat")
        .show(
            format!("packets received {}", case.over()),
            text::per_s(rate),
            format!("/sys/class/net/{name}/statistics/rx_packets"),
        )
        .changes(changes)
        .on_nic(name)
        .on_cpus(&serving)
        .found())
}

fn steer(nic: &str, queue: u32, cpus: &CpuSet) -> Proposal {
    let mask = cpus.to_hex_mask();
    change(
        format!("nic.{nic}.queue.rx-{queue}.rps_cpus"),
        "0",
        &mask,
        "an interrupt between CPUs for each batch, so a little more CPU in total; netdev_max_backlog \
         matters from then on",
    )
}
