//! 13: one receive queue takes far more than its share.

use std::collections::BTreeMap;

use model::{Confidence, QueueId, Severity, ids::Direction, nic::Nic};

use crate::{
    Case, Rule,
    knob::change,
    load::{self, Load},
    queues,
    rule::{Draft, Gain, Judgement, Missing, clear},
    text,
};

pub static RULE: Rule = Rule {
    id: "flow_skew",
    number: 13,
    title: "one receive queue takes most packets",
    needs: &["packets by receive queue over a window"],
    explained_by: &[],
    judge,
};

/// Times the mean. Our proposal.
const SKEW: f64 = 3.0;
/// Packets per second below which skew only means few flows.
const LEAST_PER_S: f64 = 10_000.0;

fn judge(case: &Case<'_>) -> Vec<Judgement> {
    queues::each_physical(case, |nic| one(case, nic))
}

/// Packets by receive queue: the kernel's own queue statistics, else the driver's names
/// `rx_queue_3_packets`, `rx-3.packets`, `rx3_packets`, `queue_3_rx_cnt`.
fn per_queue(case: &Case<'_>, nic: &Nic) -> Result<(BTreeMap<u32, u64>, String), Missing> {
    let sample = case.nic_sample(&nic.name)?;
    let rx =
        sample.queues.known().into_iter().flatten().filter(|q| q.id.direction == Direction::Rx);
    let reported: BTreeMap<u32, u64> =
        rx.filter_map(|q| Some((q.id.index, q.counters.get("rx-packets")?.get()?))).collect();
    // A mean without a queue's count would be wrong.
    let complete =
        |reported: &BTreeMap<u32, u64>| reported.len() >= queues::count(nic, Direction::Rx);
    if !reported.is_empty() && complete(&reported) {
        return Ok((reported, "netdev netlink qstats-get".into()));
    }
    let stats = sample.driver_stats.known().into_iter().flatten();
    let reported: BTreeMap<u32, u64> =
        stats.filter_map(|(name, d)| Some((queue_of(name)?, d.get()?))).collect();
    if !reported.is_empty() && complete(&reported) {
        return Ok((reported, format!("ethtool -S {}", nic.name)));
    }
    let why = sample.queues.why_not().or(sample.driver_stats.why_not());
    Err(Missing(format!(
        "packets by queue of {}: {}",
        nic.name,
        why.unwrap_or("not counted for every queue")
    )))
}

fn queue_of(name: &str) -> Option<u32> {
    let shapes =
        [("rx_queue_", "_packets"), ("rx-", ".packets"), ("rx", "_packets"), ("queue_", "_rx_cnt")];
    shapes.iter().find_map(|(a, b)| name.strip_prefix(a)?.strip_suffix(b)?.parse().ok())
}

fn one(case: &Case<'_>, nic: &Nic) -> Result<Judgement, Missing> {
    let name = &nic.name;
    if queues::count(nic, Direction::Rx) == 1 {
        return clear(
            format!("{name} has one receive queue"),
            [&queues::some_queue(nic, Direction::Rx)],
        );
    }
    let counted = per_queue(case, nic);
    let (packets, source) = counted.clone()?;
    let total: u64 = packets.values().sum();
    let rate = total as f64 / case.window_s()?;
    let mean = total as f64 / packets.len() as f64;
    let Some((&queue, &most)) = packets.iter().max_by_key(|(q, n)| (**n, std::cmp::Reverse(**q)))
    else {
        return Err(Missing(format!("packets by queue of {name}: none")));
    };
    if rate < LEAST_PER_S || most as f64 <= mean * SKEW {
        let text = format!(
            "{name}: {} over {}, the busiest takes {}",
            text::per_s(rate),
            text::plural(packets.len(), "queue"),
            if mean > 0.0 {
                format!("{:.1} times the mean", most as f64 / mean)
            } else {
                "none".into()
            }
        );
        return clear(text, [&counted]);
    }
    let id = QueueId::rx(queue);
    let served = cpu_load(case, nic, id);
    let hot = served.is_some_and(|(_, l)| l.hot());
    let mut draft = Draft::new(
        name,
        format!(
            "rx-{queue} of {name} takes {} of its packets",
            text::percent(most as f64 / total as f64)
        ),
    )
    .weigh(
        if hot { Severity::Warning } else { Severity::Info },
        if hot { Confidence::High } else { Confidence::Medium },
    )
    .explain(format!(
        "{:.1} times the mean of {} queues: a few flows, or flows that hash alike. More queues \
             do not split a single flow.",
        most as f64 / mean,
        packets.len()
    ))
    .gain(Gain::Improves, "the queue's CPU is relieved, if the load is more than one flow")
    .show(format!("packets of rx-{queue} {}", case.over()), text::count(most), &source)
    .show(format!("packets of all {} queues", packets.len()), text::count(total), source)
    .on_nic(name);
    if let Some((cpu, load)) = served {
        draft = draft.show_load(case, cpu, load).on_cpus(&[cpu].into_iter().collect());
    }
    Ok(with_hash(case, nic, draft).found())
}

fn cpu_load(case: &Case<'_>, nic: &Nic, id: QueueId) -> Option<(model::CpuId, Load)> {
    let irqs = queues::queue_irqs(case, nic).ok()?;
    let irq = irqs.iter().find(|i| i.queues.contains(&id))?;
    let cpus = queues::irq_cpus(case, irq.irq).ok()?;
    let loads = cpus.iter().filter_map(|c| Some((c, load::load(case, c).ok()?)));
    loads.max_by(|a, b| a.1.network.total_cmp(&b.1.network))
}

/// The hash of UDP lacks ports, and UDP is what arrives.
fn with_hash(case: &Case<'_>, nic: &Nic, draft: Draft) -> Draft {
    let fields = nic.rss.known().and_then(|r| r.hash_fields.known()?.get("udp4"));
    let udp = case.protocol("Udp.InDatagrams").unwrap_or(0);
    let tcp = case.protocol("Tcp.InSegs").unwrap_or(u64::MAX);
    match fields {
        Some(fields) if !fields.contains("port") && udp > tcp => draft
            .show(
                "hash fields of udp4",
                fields,
                format!("ethtool -n {} rx-flow-hash udp4", nic.name),
            )
            .show(
                format!("UDP datagrams received {}", case.over()),
                text::count(udp),
                "/proc/net/snmp",
            )
            .change(change(
                format!("nic.{}.rss.hash_fields.udp4", nic.name),
                fields,
                "src_ip dst_ip src_port dst_port",
                "fragments of one datagram may arrive on different queues and be reordered",
            )),
        _ => draft,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_the_drivers_names() {
        assert_eq!(queue_of("rx_queue_3_packets"), Some(3));
        assert_eq!(queue_of("rx-12.packets"), Some(12));
        assert_eq!(queue_of("rx0_packets"), Some(0));
        assert_eq!(queue_of("queue_7_rx_cnt"), Some(7));
        assert_eq!(queue_of("rx_packets"), None);
        assert_eq!(queue_of("rx_queue_3_bytes"), None);
    }
}
