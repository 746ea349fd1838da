//! Kernel counters of a run. Our own measurement reports those of both ends; around a command, this
//! host's counters are read before and after.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    IrqId, Reading, Samples,
    samples::{CpuSample, Delta, ProcStat, SoftnetSample},
};
use serde_json::Value;

use crate::{child::ChildUsage, workload::Workload};

/// Growth of counters by name; `None` where it is not known.
pub(crate) type Counters = BTreeMap<String, Option<u64>>;

/// Softirq vectors of the network.
const SOFTIRQS: [&str; 2] = ["NET_RX", "NET_TX"];

/// Prefix of the response time's components.
pub(crate) const PART: &str = "time.";

/// Prefix of CPU times.
pub(crate) const CPU: &str = "cpu.";

/// Units of work: the key in the document's run, its divisor, and the word for one unit.
const WORK: [(&str, f64, &str); 3] = [
    ("transactions", 1.0, "transaction"),
    ("connections", 1.0, "connection"),
    ("bytes", 1e6, "megabyte"),
];

/// The unit of work that counters are divided by.
pub(crate) fn per(workload: &Workload) -> &'static str {
    let Workload::Ours(words) = workload else { return "run" };
    let key = match words.get(1).map(String::as_str) {
        Some("stream") => "bytes",
        Some("connect") => "connections",
        _ => "transactions",
    };
    WORK.iter().find(|w| w.0 == key).map_or("run", |w| w.2)
}

/// The counters of a measurement's first run: evidence, CPU time, context switches and migrations
/// of both ends; and the work done. Where both ends are one host, counters of the whole host appear
/// once.
pub(crate) fn of_ours(said: &str, per: &str) -> (Counters, Option<f64>) {
    let document: Value = serde_json::from_str(said).unwrap_or_default();
    let Some(run) = document.pointer("/runs/0") else { return (Counters::new(), None) };
    let one_host = run.pointer("/placement/same_host").and_then(Value::as_bool) == Some(true);
    let mut found = Counters::new();
    for end in ["local", "peer"] {
        let here = end == "local";
        if here || !one_host {
            each(run.pointer(&format!("/evidence/{end}")), &format!("{end}."), &mut found);
            let states = run.pointer(&format!("/cpu/{end}/host_ns"));
            // The time of softirqs and interrupts appears as components instead.
            let busy = |name: &str| !matches!(name, "idle" | "iowait" | "softirq" | "irq");
            let Some(states) = states.and_then(Value::as_object) else { continue };
            for (state, ns) in states.iter().filter(|(name, _)| busy(name)) {
                put(format!("{end}.host.{state}_ns"), ns.as_u64(), &mut found);
            }
        }
    }
    for end in ["local", "peer"] {
        for of in ["voluntary_switches", "involuntary_switches"] {
            let value = run.pointer(&format!("/cpu/{end}/{of}")).and_then(Value::as_u64);
            put(format!("{end}.{of}"), value, &mut found);
        }
        let moves = run.pointer(&format!("/placement/{end}/migrations"));
        put(format!("{end}.migrations"), moves.and_then(Value::as_u64), &mut found);
    }
    for of in ["retransmits", "receives", "failed", "retries", "reconnects"] {
        if let Some(count) = run.get(of) {
            put(of.into(), count.as_u64(), &mut found);
        }
    }
    each(run.get("moved").filter(|m| m.get("round_trips").is_some()), "pg.", &mut found);
    parts(run, &mut found);
    cpu_parts(run, one_host, &mut found);
    let work = WORK.iter().find(|w| w.2 == per).and_then(|(key, one, _)| {
        run.get(key).and_then(Value::as_f64).filter(|n| *n > 0.0).map(|n| n / one)
    });
    (found, work)
}

/// The components of the response time of all transactions together, as far as the run reports
/// them:
/// - round trips: the server's own service time and the rest (network, wake-ups and waiting);
/// - requests: the time to the first byte, and the rest of the response;
/// - both, and database transactions: schedule lag, connecting, and encryption at this end.
///
/// Sums, like counters, so that they are divided by the work in the same way.
fn parts(run: &Value, into: &mut Counters) {
    let number = |at: &str| run.pointer(at).and_then(Value::as_f64).filter(|x| *x >= 0.0);
    let mean = number("/rtt_ns/mean").or_else(|| number("/latency_ns/mean"));
    let (Some(n), Some(mean)) = (number("/transactions"), mean) else { return };
    let mut part = |name: &str, ns: f64| {
        put(format!("{PART}{name}_ns"), Some((ns.max(0.0) * n).round() as u64), into);
    };
    part("response", mean);
    if let Some(service) = number("/peer_service_ns") {
        part("service", service);
        part("network_and_waiting", mean - service);
    }
    if let Some(cipher) = number("/tls/cipher_per_unit_ns") {
        part("cipher", cipher);
    }
    let mut before = 0.0;
    if let Some(from_send) = number("/latency_from_send_ns/mean") {
        before += mean - from_send;
        part("before_sending", mean - from_send);
    }
    let is = |key: &str| run.get(key).and_then(Value::as_bool) == Some(true);
    let connect =
        number("/connect_ns/mean").filter(|_| is("new_connections") || is("connect_each"));
    if let Some(connect) = connect {
        // For HTTP the TLS handshake follows connecting; for PostgreSQL it is part of it.
        let handshake = number("/tls_handshake_ns/mean").filter(|_| is("new_connections"));
        part("connecting", connect + handshake.unwrap_or(0.0));
        before += connect + handshake.unwrap_or(0.0);
    }
    if let Some(first) = number("/first_byte_ns/mean") {
        part("to_first_byte", first - before);
        part("rest_of_response", mean - first);
    } else if before > 0.0 {
        part("statements", mean - before);
    }
}

/// CPU time of the client, the server, and softirqs with interrupts, as far as the run reports it.
/// A foreign server reports nothing: on the client's host its time is counted with everything else
/// that ran there, on a responder's host as that host's.
fn cpu_parts(run: &Value, one_host: bool, into: &mut Counters) {
    let number = |at: &str| run.pointer(at).and_then(Value::as_u64);
    // `None` where a state that always exists is not reported.
    let states = |end: &str, names: [&str; 2], also: &str| {
        let of = run.pointer(&format!("/cpu/{end}/host_ns"))?.as_object()?;
        let state = |name: &str| of.get(name).and_then(Value::as_u64);
        let sum = state(names[0])?.saturating_add(state(names[1])?);
        Some(sum.saturating_add(state(also).unwrap_or(0)))
    };
    let mut part = |name: &str, ns: Option<u64>| {
        if ns.is_some() {
            put(format!("{CPU}{name}_ns"), ns, into);
        }
    };
    let client = number("/cpu/local/process_ns");
    let server = number("/cpu/peer/process_ns");
    part("client", client);
    part("server", server);
    part("softirq", states("local", ["softirq", "irq"], ""));
    let outside = |end| states(end, ["user", "system"], "nice");
    if !one_host {
        part("server_softirq", states("peer", ["softirq", "irq"], ""));
    }
    match (server, one_host) {
        (Some(_), _) => {}
        (None, false) => part("server_host", outside("peer")),
        (None, true) => part(
            "server_and_others",
            outside("local").zip(client).map(|(all, client)| all.saturating_sub(client)),
        ),
    }
}

fn each(of: Option<&Value>, prefix: &str, into: &mut Counters) {
    for (name, value) in of.and_then(Value::as_object).into_iter().flatten() {
        put(format!("{prefix}{name}"), value.as_u64(), into);
    }
}

/// Counters that did not grow are left out.
fn put(name: String, value: Option<u64>, into: &mut Counters) {
    if value != Some(0) {
        into.insert(name, value);
    }
}

/// Interrupts by number and name, `irq.24 virtio1-input.0`.
pub(crate) fn interrupts(
    samples: &Samples,
    names: &BTreeMap<IrqId, String>,
    prefix: &str,
    into: &mut Counters,
) {
    for irq in samples.irqs.known().into_iter().flatten() {
        let count =
            irq.cpus.iter().try_fold(0u64, |a, c| Some(a.saturating_add(*c.count.known()?)));
        let name = names.get(&irq.irq).map_or(String::new(), |n| format!(" {n}"));
        put(format!("{prefix}irq.{}{name}", irq.irq), count, into);
    }
}

/// The counters of a command's run: this host's CPU time, softirqs, backlogs, protocols, interfaces
/// and conntrack.
pub(crate) fn of_host(samples: &Samples) -> Counters {
    let mut found = Counters::new();
    type CpuTimeState = fn(&ProcStat) -> &Delta;
    let states: [(&str, CpuTimeState); 4] = [
        ("user", |s| &s.user_ns),
        ("system", |s| &s.system_ns),
        ("softirq", |s| &s.softirq_ns),
        ("irq", |s| &s.irq_ns),
    ];
    for (name, of) in states {
        let each = samples.cpus.iter().map(|c| c.proc_stat.as_ref().and_then(|s| of(s).clone()));
        put(format!("host.{name}_ns"), sum(each), &mut found);
    }
    for vector in SOFTIRQS {
        let of = |c: &CpuSample| {
            c.softirqs
                .as_ref()
                .and_then(|v| v.get(vector).cloned().unwrap_or_else(|| Reading::absent("none")))
        };
        put(format!("softirq.{vector}"), sum(samples.cpus.iter().map(of)), &mut found);
    }
    type Backlog = fn(&SoftnetSample) -> &Delta;
    let backlog: [(&str, Backlog); 5] = [
        ("processed", |s| &s.processed),
        ("dropped", |s| &s.dropped),
        ("time_squeeze", |s| &s.time_squeeze),
        ("received_rps", |s| &s.received_rps),
        ("flow_limit_count", |s| &s.flow_limit_count),
    ];
    for (name, of) in backlog {
        let each = samples.cpus.iter().map(|c| c.softnet.as_ref().and_then(|s| of(s).clone()));
        put(format!("softnet.{name}"), sum(each), &mut found);
    }
    family(&samples.protocols, "", &mut found);
    family(&samples.conntrack, "conntrack.", &mut found);
    for nic in &samples.nics {
        family(&nic.statistics, &format!("{}.", nic.name), &mut found);
        let drops = nic.qdiscs.known().and_then(|all| {
            sum(all.iter().filter(|q| q.parent == "root").map(|q| q.drops.clone()))
        });
        put(format!("{}.qdisc_drops", nic.name), drops, &mut found);
    }
    found
}

/// The sum; `None` where a summand is not known.
fn sum(mut each: impl Iterator<Item = Delta>) -> Option<u64> {
    each.try_fold(0u64, |a, d| Some(a.saturating_add(d.into_known()?)))
}

fn family(of: &Reading<BTreeMap<String, Delta>>, prefix: &str, into: &mut Counters) {
    for (name, delta) in of.known().into_iter().flatten() {
        put(format!("{prefix}{name}"), delta.get(), into);
    }
}

/// The command's own CPU time and context switches (from getrusage), and its migrations.
pub(crate) fn of_command(usage: &ChildUsage, moves: Option<u64>, into: &mut Counters) {
    put("workload.user_ns".into(), Some(usage.user_ns), into);
    put("workload.system_ns".into(), Some(usage.system_ns), into);
    put("workload.voluntary_switches".into(), Some(usage.voluntary), into);
    put("workload.involuntary_switches".into(), Some(usage.involuntary), into);
    if moves.is_some() {
        put("workload.migrations".into(), moves, into);
    }
}

/// The counter names of these runs.
pub(crate) fn names<'a>(runs: impl Iterator<Item = &'a Counters>) -> BTreeSet<&'a String> {
    runs.flat_map(BTreeMap::keys).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_its_first_byte_and_its_connection_and_a_server_its_share_of_the_cpu() {
        let of = |run: &str| of_ours(&format!(r#"{{"runs": [{run}]}}"#), "transaction").0;
        let at = |of: &Counters, name: &str| of.get(name).copied().flatten();
        let http = r#"{"transactions": 10, "latency_ns": {"mean": 50.0}, "receives": 12, "failed": 0,
            "first_byte_ns": {"mean": 40.0}, "new_connections": NEW, "connect_ns": {"mean": 8.0},
            "tls_handshake_ns": {"mean": 2.0}, "latency_from_send_ns": LAG,
            "placement": {"same_host": HERE}, "cpu": {"local": {"process_ns": 300,
            "host_ns": {"user": 500, "system": 200, "softirq": 90, "irq": 10, "nice": 50}},
            "peer": PEER}}"#;
        let absent = r#"{"absent": "no responder"}"#;
        let run = |new: &str, lag: &str, here: &str, peer: &str| {
            let text = http.replace("NEW", new).replace("LAG", lag);
            of(&text.replace("HERE", here).replace("PEER", peer))
        };
        let kept = run("false", "null", "true", absent);
        assert_eq!(at(&kept, "time.to_first_byte_ns"), Some(400));
        assert_eq!(at(&kept, "time.rest_of_response_ns"), Some(100));
        assert!(
            !kept.contains_key("time.connecting_ns") && !kept.contains_key("time.statements_ns")
        );
        assert_eq!(at(&kept, "cpu.client_ns"), Some(300));
        assert_eq!(at(&kept, "cpu.softirq_ns"), Some(100));
        assert_eq!(at(&kept, "cpu.server_and_others_ns"), Some(450));
        assert_eq!((at(&kept, "receives"), at(&kept, "failed")), (Some(12), None));
        assert!(!kept.contains_key("local.host.softirq_ns"), "told twice: {kept:?}");
        let each = run(
            "true",
            r#"{"mean": 45.0}"#,
            "false",
            r#"{"host_ns": {"user": 7, "system": 3,
            "softirq": 2, "irq": 0}}"#,
        );
        assert_eq!(at(&each, "time.before_sending_ns"), Some(50));
        assert_eq!(at(&each, "time.connecting_ns"), Some(100));
        assert_eq!(at(&each, "time.to_first_byte_ns"), Some(250), "the three and the rest are all");
        assert_eq!(at(&each, "cpu.server_host_ns"), Some(10));
        assert_eq!(at(&each, "cpu.server_softirq_ns"), Some(2));
        // An unreported value stays unknown.
        let none = run("false", "null", "false", absent);
        assert!(!none.keys().any(|k| k.starts_with("cpu.server")), "{none:?}");
    }

    #[test]
    fn a_database_s_transaction_has_its_connection_and_its_round_trips() {
        let pg = r#"{"runs": [{"transactions": 10, "latency_ns": {"mean": 50.0}, "connect_each": true,
            "connect_ns": {"mean": 30.0}, "tls_handshake_ns": {"mean": 9.0},
            "moved": {"round_trips": 30, "sends": 30}}]}"#;
        let reported = of_ours(pg, "transaction").0;
        assert_eq!(reported["time.connecting_ns"], Some(300), "the handshake is in it");
        assert_eq!(reported["time.statements_ns"], Some(200));
        assert_eq!(reported["pg.round_trips"], Some(30));
        let driver = pg.replace(r#"{"round_trips": 30, "sends": 30}"#, r#"{"absent": "pgbench"}"#);
        assert!(!of_ours(&driver, "transaction").0.keys().any(|k| k.starts_with("pg.")));
    }

    const RUN: &str = r#"{"runs": [{"transactions": 50, "placement": {"same_host": HOST,
        "local": {"migrations": 3}, "peer": {"migrations": {"absent": "no"}}},
        "evidence": {"local": {"softirq.NET_RX": 7}, "peer": {"softirq.NET_RX": 9}},
        "cpu": {"local": {"process_ns": 100, "voluntary_switches": 0,
            "host_ns": {"user": 5, "idle": 9, "steal": 0}},
            "peer": {"process_ns": 200, "host_ns": {"user": 6}}}}]}"#;

    #[test]
    fn components_of_the_response_time_that_are_reported() {
        let of = |run: &str| of_ours(&format!(r#"{{"runs": [{run}]}}"#), "transaction").0;
        let reported =
            of(r#"{"transactions": 10, "rtt_ns": {"mean": 50.0}, "peer_service_ns": 30.0}"#);
        let time = |of: &Counters, name: &str| of.get(name).copied().flatten();
        assert_eq!(time(&reported, "time.response_ns"), Some(500));
        assert_eq!(time(&reported, "time.service_ns"), Some(300));
        assert_eq!(time(&reported, "time.network_and_waiting_ns"), Some(200));
        let http = r#"{"transactions": 10, "latency_ns": {"mean": 50.0}, "peer_service_ns": null,
            "tls": {"cipher_per_unit_ns": 4}}"#;
        let reported = of(http);
        assert_eq!(reported.keys().filter(|k| k.starts_with(PART)).count(), 2, "{reported:?}");
        assert_eq!(time(&reported, "time.cipher_ns"), Some(40));
        let none = of(r#"{"transactions": 10}"#);
        assert!(!none.keys().any(|k| k.starts_with(PART)), "not reported is not zero");
    }

    #[test]
    fn both_ends_of_a_measurement_and_one_host_once() {
        let (two, work) = of_ours(&RUN.replace("HOST", "false"), "transaction");
        assert_eq!(work, Some(50.0));
        assert_eq!(two["peer.softirq.NET_RX"], Some(9));
        assert_eq!((two["local.host.user_ns"], two["local.migrations"]), (Some(5), Some(3)));
        assert_eq!(two["peer.migrations"], None, "not known is not zero");
        assert!(
            !two.contains_key("local.host.idle_ns") && !two.contains_key("local.host.steal_ns")
        );
        let (one, _) = of_ours(&RUN.replace("HOST", "true"), "transaction");
        assert!(!one.contains_key("peer.softirq.NET_RX") && !one.contains_key("peer.host.user_ns"));
        assert_eq!((one["cpu.client_ns"], one["cpu.server_ns"]), (Some(100), Some(200)));
        assert_eq!(of_ours("no JSON", "transaction"), (Counters::new(), None));
    }
}
