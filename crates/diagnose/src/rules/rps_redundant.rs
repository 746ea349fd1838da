//! 10: packet steering where every CPU has a hardware queue.

use std::collections::BTreeSet;

use model::{Confidence, Severity, nic::Nic};

use crate::{
    Case, Rule,
    knob::change,
    queues,
    rule::{Draft, Gain, Judgement, Missing, clear},
    rules::rps_missing::rps_sets,
    text,
};

pub static RULE: Rule = Rule {
    id: "rps_redundant",
    number: 10,
    title: "receive packet steering although every CPU has a hardware queue",
    needs: &["rps_cpus of the receive queues", "online CPUs"],
    explained_by: &[],
    judge,
};

fn judge(case: &Case<'_>) -> Vec<Judgement> {
    queues::each_physical(case, |nic| one(case, nic))
}

fn one(case: &Case<'_>, nic: &Nic) -> Result<Judgement, Missing> {
    let name = &nic.name;
    let sets = rps_sets(nic)?;
    let cpus = case.online().len();
    if cpus == 0 {
        return Err(Missing("CPUs: none was read".into()));
    }
    let set: Vec<_> = sets.iter().filter(|(_, s)| !s.is_empty()).collect();
    // RSS may use fewer queues than there are.
    let rss = nic.rss.known().filter(|r| !r.table.is_empty());
    let fed = rss.map_or(sets.len(), |r| r.table.iter().collect::<BTreeSet<_>>().len());
    if set.is_empty() {
        return clear(format!("{name}: RPS off"), [&rps_sets(nic)]);
    }
    if fed < cpus || cpus == 1 {
        let text =
            format!("{name}: {} for {}", text::plural(fed, "queue"), text::plural(cpus, "CPU"));
        return clear(text, [&rps_sets(nic), &case.housekeeping_read()]);
    }
    if flow_steering(case, nic) {
        let text = format!("{name}: flow steering (RFS) is on, which moves packets on purpose");
        return clear(text, [&rps_sets(nic)]);
    }
    let steered: u64 = case
        .samples()
        .map_or(0, |s| s.cpus.iter().filter_map(|c| c.softnet.known()?.received_rps.get()).sum());
    let sure = if steered > 0 { Confidence::Medium } else { Confidence::Low };
    let mut draft = Draft::new(
        name,
        format!("{name}: RPS is on although {fed} hardware queues serve {cpus} CPUs"),
    )
    .weigh(Severity::Info, sure)
    .explain(
        "With a queue for every CPU the hardware spreads packets already; steering them once \
             more costs an interrupt between CPUs and a colder cache for each batch.",
    )
    .gain(Gain::Tidies, "a little less CPU per packet")
    .show(
        format!("receive queues of {name}{}", if rss.is_some() { " that RSS feeds" } else { "" }),
        fed.to_string(),
        format!("ethtool -x {name}, /sys/class/net/{name}/queues"),
    )
    .show("online CPUs", cpus.to_string(), "/sys/devices/system/cpu/online")
    .show(
        format!("queues with rps_cpus set, such as rx-{}", set.first().map_or(0, |s| s.0)),
        format!("{} ({})", set.len(), set.first().map_or(String::new(), |s| s.1.to_hex_mask())),
        format!("/sys/class/net/{name}/queues/rx-*/rps_cpus"),
    );
    if steered > 0 {
        draft = draft.show(
            format!("wake-ups by RPS {}", case.over()),
            text::count(steered),
            "/proc/net/softnet_stat, column 10",
        );
    }
    let changes = set.iter().map(|(index, cpus)| {
        change(
            format!("nic.{name}.queue.rx-{index}.rps_cpus"),
            cpus.to_hex_mask(),
            "0",
            "none known",
        )
    });
    Ok(draft.changes(changes).on_nic(name).found())
}

/// Whether receive flow steering is active on this NIC: both tables are set.
fn flow_steering(case: &Case<'_>, nic: &Nic) -> bool {
    case.sysctl_number("net.core.rps_sock_flow_entries").is_ok_and(|n| n > 0)
        && nic.queues.iter().any(|q| q.rfs_flows.get().is_some_and(|n| n > 0))
}
