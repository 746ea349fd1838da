//! 11: receive flow steering with only one of its two tables set.

use model::{Confidence, Severity, ids::Direction, nic::Nic};

use crate::{
    Case, Rule,
    knob::{self, change},
    queues,
    rule::{Draft, Gain, Judgement, Missing, clear, need, settle},
    text,
};

pub static RULE: Rule = Rule {
    id: "rfs_half_set",
    number: 11,
    title: "receive flow steering set up by half",
    needs: &["net.core.rps_sock_flow_entries", "rps_flow_cnt of the receive queues"],
    explained_by: &[],
    judge,
};

const ENTRIES: &str = "net.core.rps_sock_flow_entries";
/// The value that the kernel's scaling guide recommends for a moderately loaded server.
const SUGGESTED: u64 = 32_768;

fn judge(case: &Case<'_>) -> Vec<Judgement> {
    vec![settle("", whole(case))]
}

fn whole(case: &Case<'_>) -> Result<Judgement, Missing> {
    let entries = case.sysctl_number(ENTRIES)?;
    let nics = queues::running_physical(case);
    if nics.is_empty() {
        return clear("no physical NIC is up", [&case.nics_read(), &queues::all_states(case)]);
    }
    let mut flows = vec![];
    for nic in &nics {
        flows.push((*nic, queue_flows(nic)?));
    }
    // Virtual interfaces can steer too; the proposal covers only physical ones.
    let others = case.facts.nics.iter().filter(|n| !nics.iter().any(|own| own.name == n.name));
    let elsewhere = others.flat_map(|n| &n.queues).filter_map(|q| q.rfs_flows.get());
    let physical = flows.iter().flat_map(|(_, f)| f).map(|f| f.1);
    let total: u64 = physical.chain(elsewhere).map(u64::from).sum();
    let rests_on = queues::all_states(case);
    match (entries, total) {
        (0, 0) => clear("neither table is set", [&case.sysctl_number(ENTRIES), &rests_on]),
        (0, _) => Ok(global_missing(case, total)),
        (_, 0) => Ok(queues_missing(case, entries, &flows)),
        _ => clear(
            format!("{ENTRIES} is {entries} and the queues have {total}"),
            [&case.sysctl_number(ENTRIES), &rests_on],
        ),
    }
}

fn queue_flows(nic: &Nic) -> Result<Vec<(u32, u32)>, Missing> {
    let rx = nic.queues.iter().filter(|q| q.id.direction == Direction::Rx);
    rx.map(|q| {
        let path = format!("/sys/class/net/{}/queues/{}/rps_flow_cnt", nic.name, q.id);
        Ok((q.id.index, *need(&path, &q.rfs_flows)?))
    })
    .collect()
}

fn half(title: &str) -> Draft {
    Draft::new(ENTRIES, title)
        .weigh(Severity::Info, Confidence::Low)
        .explain(
            "RFS needs the host's table and the table of each queue; with one of them 0 it does \
             nothing.",
        )
        .gain(
            Gain::Improves,
            "packets reach the CPU on which the application reads, or an unused setting goes",
        )
        .alone()
}

fn global_missing(case: &Case<'_>, total: u64) -> Judgement {
    let new = total.max(SUGGESTED).checked_next_power_of_two().unwrap_or(SUGGESTED);
    half("RFS is half set: queues have entries, the host's table has none")
        .show_sysctl(case, ENTRIES)
        .show(
            "rps_flow_cnt, sum of all queues",
            text::count(total),
            "/sys/class/net/*/queues/rx-*/rps_flow_cnt",
        )
        .change(knob::sysctl(case, ENTRIES, &new.to_string(), "low; some memory for the table"))
        .found()
}

fn queues_missing(case: &Case<'_>, entries: u64, flows: &[(&Nic, Vec<(u32, u32)>)]) -> Judgement {
    let mut draft = half("RFS is half set: the host's table has entries, no queue has")
        .show_sysctl(case, ENTRIES)
        .show("rps_flow_cnt, sum of all queues", "0", "/sys/class/net/*/queues/rx-*/rps_flow_cnt");
    for (nic, queues) in flows {
        let share = entries / (queues.len().max(1) as u64);
        for (index, _) in queues {
            draft = draft.change(change(
                format!("nic.{}.queue.rx-{index}.rfs_flows", nic.name),
                "0",
                share.to_string(),
                "low; some memory for the table",
            ));
        }
    }
    draft.found()
}
