//! The number of series of a whole scrape against its formula.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    CpuId, Facts, Finding, IrqId, Nanos, QueueId, Reading, Samples,
    measure::Quantiles,
    mesh::QuotaUse,
    samples::{IrqDelta, IrqSample, QueueSample},
    watch::{PacketDrops, WaitNs, test_data},
};

use crate::{
    Family, MeshScrape, Process, Scrape, families,
    family::Value,
    limits::{FINDINGS, REASONS},
    probes::ProbeTotals,
    totals::Totals,
};

const FACTS: &str = include_str!("../../diagnose/tests/golden/_base/facts.json");
const SAMPLES: &str = include_str!("../../diagnose/tests/golden/_base/samples.json");

/// A host with this many CPUs. `eth0` has as many queues, and each CPU handled interrupts of each.
fn host(cpus: u32) -> (Facts, Samples) {
    let mut facts: Facts = serde_json::from_str(FACTS).unwrap();
    let mut samples: Samples = serde_json::from_str(SAMPLES).unwrap();
    let one = samples.cpus[0].clone();
    samples.cpus =
        (0..cpus).map(|id| model::samples::CpuSample { id: CpuId(id), ..one.clone() }).collect();
    let queue = |id| QueueSample {
        id,
        counters: ["rx-packets", "tx-packets"].map(|c| (c.to_owned(), Reading::Known(7))).into(),
    };
    let both = (0..cpus).flat_map(|n| [queue(QueueId::rx(n)), queue(QueueId::tx(n))]);
    samples.nics[0].queues = Reading::Known(both.collect());
    let mut irqs = facts.irqs.known().unwrap().clone();
    let first = irqs[0].clone();
    irqs = (0..cpus)
        .map(|n| model::irq::Irq {
            irq: IrqId(100 + n),
            queue: Reading::Known(format!("rx-{n}+tx-{n}")),
            ..first.clone()
        })
        .collect();
    let deltas: Vec<IrqDelta> =
        (0..cpus).map(|cpu| IrqDelta { cpu: CpuId(cpu), count: Reading::Known(3) }).collect();
    let counts = irqs.iter().map(|i| IrqSample { irq: i.irq, cpus: deltas.clone() });
    samples.irqs = Reading::Known(counts.collect());
    facts.irqs = Reading::Known(irqs);
    (facts, samples)
}

fn finding(n: usize) -> Finding {
    serde_json::from_value(serde_json::json!({
        "rule": "few_channels", "number": 1, "title": "t", "severity": "warning",
        "confidence": "high", "rank": n, "subject": format!("eth{n}"), "explanation": "e",
        "expected_benefit": "b", "evidence": [], "caused_by": [],
        "changes": [{"knob": "nic.eth0.channels", "old": "1", "new": "4", "command": "c", "risk": "r"}],
    }))
    .unwrap()
}

/// Sums over ten intervals in which ever new processes wait, and ever new reasons drop.
fn totals(cpus: u32, processes: usize) -> Totals {
    let mut totals = Totals::new(processes);
    for turn in 0..10 {
        let mut interval = test_data::interval(cpus, turn);
        if let Reading::Known(waits) = &mut interval.waits {
            for (n, process) in waits.iter_mut().enumerate() {
                process.name = format!("p{}", turn * 10 + n as u64);
                let wait = WaitNs { count: 1, mean: 9.0, by_power: vec![1], ..WaitNs::default() };
                for stage in [&mut process.stack, &mut process.wakeup, &mut process.runqueue] {
                    *stage = Reading::Known(wait.clone());
                }
                process.idle_exit = Reading::Known(wait.clone());
                process.copy = Reading::Known(wait);
            }
        }
        if let Reading::Known(drops) = &mut interval.drops {
            let row = drops[0].clone();
            let reason = |n| Reading::Known(format!("R{}", turn * 10 + n));
            *drops = (0..10).map(|n| PacketDrops { reason: reason(n), ..row.clone() }).collect();
        }
        interval.ended_unix_ns = Nanos(1);
        totals.add(&interval);
    }
    totals
}

/// The series of a family, with the lines of a histogram each.
fn lines(family: &Family) -> usize {
    let of = |value: &Value| match value {
        Value::Histogram(h) => h.buckets.len() + 3,
        Value::Summary(s) => s.quantiles.len() + 2,
        Value::Count(_) | Value::Number(_) => 1,
    };
    family.series.iter().map(|s| of(&s.value)).sum()
}

fn scraped(cpus: u32, processes: usize, findings: usize, probes: usize) -> Vec<Family> {
    let (facts, samples) = host(cpus);
    let findings: Vec<Finding> = (0..findings).map(finding).collect();
    let mut probe = ProbeTotals::new("rtt://db1".into());
    probe.add(Some(Quantiles { count: 1, ..Quantiles::default() }));
    let scrape = Scrape {
        samples: Reading::Known(&samples),
        totals: &totals(cpus, processes),
        facts: Reading::Known(&facts),
        findings: Reading::Known(&findings),
        changes: Reading::absent("none"),
        probes: &vec![probe; probes],
        process: Process { cpu_s: Some(1.0), resident_bytes: Some(1), start_unix_s: 1.0 },
        version: "1",
    };
    families(&scrape)
}

fn count(cpus: u32, processes: usize, findings: usize, probes: usize) -> usize {
    let all = scraped(cpus, processes, findings, probes);
    let names: BTreeMap<_, _> = all.iter().map(|f| (f.name, ())).collect();
    assert_eq!(names.len(), all.len(), "a family stands there once");
    if probes < 2 {
        for family in &all {
            let distinct: BTreeMap<_, _> = family.series.iter().map(|s| (&s.labels, ())).collect();
            assert_eq!(distinct.len(), family.series.len(), "{}: series differ", family.name);
        }
    }
    all.iter().map(lines).sum()
}

/// The formula of docs/export.md, for one NIC of as many queues as CPUs.
#[test]
fn series_are_those_of_the_documented_formula() {
    let base = count(1, 0, 0, 0);
    let (per_cpu, per_queue_pair, per_nic_and_cpu) = (12, 3, 1);
    let each = per_cpu + per_queue_pair + per_nic_and_cpu;
    assert_eq!(count(64, 0, 0, 0) - base, 63 * each);
    assert_eq!(count(64, 7, 0, 0) - count(64, 0, 0, 0), 7 * 5 * 24);
    assert_eq!(count(64, 0, 30, 0) - count(64, 0, 0, 0), 30 * 2);
    assert_eq!(count(64, 0, FINDINGS + 50, 0), count(64, 0, FINDINGS, 0), "findings are bounded");
    assert_eq!(count(64, 0, 0, 1) - count(64, 0, 0, 0), 10);
    // What a host of any size has, the reasons that came first and all others, all processes as one.
    let fixed = base - each - (REASONS + 1) - 5 * 24;
    assert!(
        (25..=20 + 2 * 11).contains(&fixed),
        "{fixed}: two interfaces, one without a driver's counters"
    );
}

/// The families of a mesh with one pair and a quota.
fn meshed() -> Vec<Family> {
    let mut pair = ProbeTotals::of_pair("a".into(), "b".into());
    pair.add(Some(Quantiles { count: 1, ..Quantiles::default() }));
    let quota = Reading::Known(Some(QuotaUse::default()));
    let process = Process { cpu_s: Some(1.0), resident_bytes: Some(1), start_unix_s: 1.0 };
    crate::mesh(&MeshScrape { peers: Some(2), quota, probes: &[pair], process, version: "1" })
}

/// Dashboards and alerts name the metrics and their labels. More may be added; `UPDATE=1` writes what is
/// new into the list and takes nothing out of it.
#[expect(clippy::disallowed_methods, reason = "a test that writes its list when asked")]
#[test]
fn no_metric_and_no_label_is_gone_or_renamed() {
    let frozen: BTreeSet<String> =
        include_str!("../frozen.txt").lines().map(str::to_owned).collect();
    let mut now = BTreeSet::new();
    for family in scraped(2, 3, 1, 1).into_iter().chain(meshed()) {
        now.insert(format!("{} {:?}", family.name, family.kind).to_lowercase());
        let labels = family.series.iter().flat_map(|s| &s.labels);
        now.extend(labels.map(|(label, _)| format!("{} {{{label}}}", family.name)));
    }
    let gone: Vec<_> = frozen.difference(&now).collect();
    assert!(gone.is_empty(), "dashboards rely on what is gone or renamed: {gone:#?}");
    if std::env::var_os("UPDATE").is_some() {
        let all: Vec<&str> = frozen.union(&now).map(String::as_str).collect();
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/frozen.txt");
        std::fs::write(path, all.join("\n") + "\n").unwrap();
    }
    assert!(frozen.len() > 60, "only {} lines are in the list", frozen.len());
}
