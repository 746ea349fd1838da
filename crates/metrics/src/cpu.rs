//! Families by CPU: softirqs, the backlog, and waits.

use model::{Reading, Samples, samples::SoftnetSample};

use crate::{
    Family, Kind,
    family::{Value, seconds},
    totals::{CONTEXTS, Totals},
    waits::STAGES,
};

/// Softirqs that packets raise, as the kernel names them, and the label.
const VECTORS: [(&str, &str); 2] = [("NET_RX", "net_rx"), ("NET_TX", "net_tx")];

/// Softirq time by CPU and context.
pub fn softirq_time(totals: &Totals) -> Family {
    let mut family = Family::counter(
        "netwright_softirq_seconds",
        "Softirq time by CPU and context, measured by eBPF since the exporter started; scaled from \
         the observed share of each interval.",
    );
    for (cpu, sums) in &totals.cpus {
        let cpu = cpu.to_string();
        for (context, ns) in CONTEXTS.into_iter().zip(sums.contexts) {
            family.number(&[("cpu", &cpu), ("context", context)], ns.map(seconds));
        }
    }
    family
}

/// Time for which eBPF observed each part.
pub fn observed(totals: &Totals) -> Family {
    let mut family = Family::counter(
        "netwright_observed_seconds",
        "Time for which a part was observed since the exporter started; the part `all` is the whole \
         time. Drops and waits are counts of the observed time alone.",
    );
    let all = &totals.observed;
    let parts = [
        ("all", Some(all.watched)),
        ("softirq", all.softirqs),
        ("waits", all.waits),
        ("drops", all.drops),
    ];
    for (part, s) in parts {
        family.number(&[("part", part)], s);
    }
    family
}

/// Counts of softirqs and of the backlog, since boot.
pub fn counts(samples: &Samples) -> Vec<Family> {
    let mut raised = Family::counter(
        "netwright_softirqs",
        "Softirqs of the network since boot (/proc/softirqs).",
    );
    for cpu in &samples.cpus {
        let id = cpu.id.to_string();
        for (name, label) in VECTORS {
            let count = cpu.softirqs.known().and_then(|v| v.get(name)).and_then(Reading::get);
            raised.count(&[("cpu", &id), ("vector", label)], count);
        }
    }
    let mut all = vec![raised];
    type Counter = fn(&SoftnetSample) -> &Reading<u64>;
    let columns: [(&'static str, &'static str, Counter); 5] = [
        (
            "netwright_softnet_processed_packets",
            "Packets that a CPU's softirq processed since boot (/proc/net/softnet_stat).",
            |s| &s.processed,
        ),
        (
            "netwright_softnet_squeezes",
            "Receive softirqs that ended with work left since boot (time_squeeze of softnet_stat).",
            |s| &s.time_squeeze,
        ),
        (
            "netwright_softnet_dropped_packets",
            "Packets dropped because the CPU's backlog was full, since boot (softnet_stat).",
            |s| &s.dropped,
        ),
        (
            "netwright_softnet_flow_limit_dropped_packets",
            "Packets dropped by the flow limit since boot (softnet_stat).",
            |s| &s.flow_limit_count,
        ),
        (
            "netwright_softnet_rps_wakeups",
            "Interrupts by which another CPU handed packets over (RPS), since boot (softnet_stat).",
            |s| &s.received_rps,
        ),
    ];
    for (name, help, of) in columns {
        let mut family = Family::counter(name, help);
        for cpu in &samples.cpus {
            let count = cpu.softnet.known().and_then(|s| of(s).get());
            family.count(&[("cpu", &cpu.id.to_string())], count);
        }
        all.push(family);
    }
    all
}

/// Waits of packets by process and stage.
pub fn waits(totals: &Totals) -> Family {
    let mut family = Family::new(
        Kind::Histogram,
        "netwright_wait_seconds",
        "Where packets waited on their way to a reader, by process and stage, observed by eBPF since \
         the exporter started.",
    );
    for (process, waits) in &totals.waits {
        for (n, stage) in STAGES.into_iter().enumerate() {
            if let Some(histogram) = waits.histogram(n) {
                let labels = [("process", process.as_str()), ("stage", stage)];
                family.add(&labels, Value::Histogram(histogram));
            }
        }
    }
    family
}
