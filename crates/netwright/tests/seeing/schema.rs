//! Tests that the committed JSON schemas match the code, and that real output matches them: at
//! least one of each document here, and every run with `--json` in every suite (`support::schema`).

mod old;

use std::{
    collections::BTreeSet,
    fs,
    process::{Command, Stdio},
};

use crate::support::{
    self, NETWRIGHT,
    exporter::Prometheus,
    fleet::{Simulated, SimulatedFleet},
    run,
    schema::{ended, folder, keeps_to, schema, validate},
    tuned::{Practice, on_a_host},
};
use schemars::{Schema, schema_for};
use serde_json::Value;

/// Each document with the test that prints one. A schema without a real run fails to compile here,
/// and a missing one fails the test below.
macro_rules! documents {
    ($($test:ident $name:literal $kind:ty;)*) => {
        const DOCUMENTS: &[(&str, fn() -> Schema)] = &[$(($name, || schema_for!($kind))),*];
        const READERS: &[(&str, old::Reader)] = &[$(($name, old::read::<$kind>)),*];
        mod real_output_keeps_to_its_schema_of {
            $(#[test] fn $test() {
                let text = super::$test();
                super::keeps_to($name, &text);
                super::old::keep($name, &text);
            })*
        }
    };
}

documents! {
    compare "compare" model::compare::CompareDocument;
    doctor "doctor" report::DoctorDocument;
    doctor_fleet "doctor-fleet" model::fleet::FleetDocument;
    doctor_peer "doctor-peer" report::doctor::peer::PeerDocument;
    explain "explain" model::explain::ExplainDocument;
    explain_passive "explain-passive" model::passive::PassiveDocument;
    fix "fix" model::fix::FixDocument;
    history_diff "history-diff" model::history::HistoryDiff;
    history_list "history-list" model::history::HistoryList;
    inspect "inspect" model::Facts;
    lint "lint" model::lint::LintDocument;
    measure_connect "measure-connect" model::measure::ConnectDocument;
    measure_http "measure-http" model::measure::HttpDocument;
    measure_offload "measure-offload" model::measure::OffloadDocument;
    measure_pg "measure-pg" model::measure::PgDocument;
    measure_pg_init "measure-pg-init" model::measure::PgInitDocument;
    measure_redis "measure-redis" model::measure::RedisDocument;
    measure_rtt "measure-rtt" model::measure::RttDocument;
    measure_stream "measure-stream" model::measure::StreamDocument;
    mesh "mesh" model::mesh::MeshDocument;
    place "place" model::placement::PlacementDocument;
    prove "prove" model::prove::ProveDocument;
    tune_apply "tune-apply" model::tune::Outcome;
    tune_journal "tune-journal" model::tune::Record;
    tune_log "tune-log" model::tune::Log;
    tune_persist "tune-persist" model::tune::Persisted;
    tune_plan "tune-plan" model::tune::Plan;
    tune_profiles "tune-profiles" model::tune::Profiles;
    tune_status "tune-status" model::tune::Status;
    watch "watch" model::watch::WatchInterval;
}

#[test]
fn the_committed_schemas_are_what_the_code_says() {
    let help = run(NETWRIGHT, &["schema", "--help"]);
    let offered = help.lines().filter_map(|l| l.trim().strip_prefix("- ")?.split(':').next());
    let offered: BTreeSet<&str> = offered.collect();
    assert_eq!(
        offered,
        DOCUMENTS.iter().map(|(name, _)| *name).collect(),
        "documents by `netwright schema --help`"
    );
    for (name, schema) in DOCUMENTS {
        let ours = serde_json::to_string_pretty(&schema()).expect("JSON") + "\n";
        let path = folder().join(format!("{name}.json"));
        if std::env::var_os("UPDATE").is_some() {
            fs::create_dir_all(folder()).expect("docs/schema");
            fs::write(&path, &ours).expect("docs/schema is not writable");
        }
        let theirs = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            ours == theirs,
            "docs/schema/{name}.json differs from the code; if the change only adds keys, run \
             `UPDATE=1 cargo test -p netwright --test seeing schema::` and commit it"
        );
        let printed =
            std::env::var_os("UPDATE").is_none().then(|| run(NETWRIGHT, &["schema", name]));
        assert!(
            printed.is_none_or(|p| p == ours),
            "the program has another schema of {name} built in"
        );
    }
}

fn inspect() -> String {
    let pid = std::process::id().to_string();
    let text = run(NETWRIGHT, &["inspect", "--json", "--pid", &pid]);
    // The contract's keys by name: a schema generated from a renamed field would agree with itself.
    let facts: Value = serde_json::from_str(&text).expect("JSON");
    let has = |pointer: &str| assert!(facts.pointer(pointer).is_some(), "{pointer} is missing");
    for key in ["kernel", "arch", "hypervisor"] {
        has(&format!("/host/{key}"));
    }
    for key in ["id", "online", "core_id", "package_id", "numa_node", "l3_id", "smt_siblings"] {
        has(&format!("/cpus/0/{key}"));
    }
    for key in ["id", "memory_bytes", "distances"] {
        has(&format!("/numa_nodes/0/{key}"));
    }
    assert!(facts["numa_nodes"][0]["cpus"].is_string(), "cpus is a cpulist string");
    for key in [
        "name",
        "driver",
        "bus_address",
        "numa_node",
        "speed_bps",
        "mtu",
        "channels",
        "rings",
        "queues",
        "irqs",
    ] {
        has(&format!("/nics/0/{key}"));
    }
    for key in ["irq", "name", "affinity", "effective_affinity", "numa_node", "nic", "queue"] {
        has(&format!("/irqs/0/{key}"));
    }
    assert!(facts["sysctls"].is_object() && facts["tuners"].is_array());
    assert_eq!(facts["processes"][0]["pid"].to_string(), pid);
    text
}

fn compare() -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, from: u32| {
        let rows: String = (from..from + 8).map(|n| format!("{n}\n")).collect();
        fs::write(folder.path().join(name), rows).expect("a table");
        folder.path().join(name).display().to_string()
    };
    let (before, after) = (file("before", 100), file("after", 90));
    let args = ["compare", &before, &after, "--metric", "value:lower", "--limit", "5%", "--json"];
    let out = run(NETWRIGHT, &[&args[..], &["--noise-floor", &before]].concat());
    let document: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(document["outcome"], "better");
    assert_eq!(document["comparisons"][0]["within_limit"], true);
    out
}

fn doctor() -> String {
    let out = run(NETWRIGHT, &["doctor", "--json", "--window", "200ms"]);
    let document: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(document["source"]["kind"], "live");
    assert!(document["window_ns"].as_u64().expect("a window") >= 150_000_000);
    let schema = schema("doctor");
    for key in ["rule", "title", "severity", "confidence", "rank", "evidence", "changes"] {
        let at = format!("/$defs/Finding/properties/{key}");
        assert!(schema.pointer(&at).is_some(), "findings[].{key} is missing");
    }
    for key in ["what", "value", "source"] {
        let at = format!("/$defs/Evidence/properties/{key}");
        assert!(schema.pointer(&at).is_some(), "evidence[].{key} is missing");
    }
    out
}

fn lint() -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("sysctl.conf");
    fs::write(&file, "net.ipv4.tcp_sack = 1\nnet.core.unheard_of = 1\n").expect("a file");
    run(NETWRIGHT, &["lint", "--json", file.to_str().expect("UTF-8")])
}

/// A store with one run of this host, which is removed with the folder.
fn kept(folder: &std::path::Path) -> String {
    let store = folder.join("history.sqlite").display().to_string();
    run(NETWRIGHT, &["doctor", "--window", "200ms", "--store", &store]);
    store
}

fn history_diff() -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let store = kept(folder.path());
    run(NETWRIGHT, &["history", "diff", "1", "1", "--json", "--store", &store])
}

fn history_list() -> String {
    let folder = tempfile::tempdir().expect("a folder");
    run(NETWRIGHT, &["history", "list", "--json", "--store", &kept(folder.path())])
}

fn place() -> String {
    let out = run(NETWRIGHT, &["place", "--json", "--pid", &std::process::id().to_string()]);
    let document: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(document["services"][0]["pid"], std::process::id());
    out
}

fn mesh() -> String {
    let serve = support::serve::Serve::start(&[]);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("peers");
    fs::write(&file, format!("here\n{}\n", serve.target())).expect("a file");
    let peers = file.to_str().expect("UTF-8");
    let out = run(NETWRIGHT, &["mesh", "--peers", peers, "--self", "here", "--once", "--json"]);
    let document: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(document["targets"][0]["target"], serve.target());
    assert!(document["targets"][0]["result"].to_string().contains("\"answered\""), "{document}");
    out
}

/// The other end is this host as well, asked by a shell in place of ssh.
fn doctor_peer() -> String {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a folder");
    let ssh = folder.path().join("ssh");
    fs::write(&ssh, "#!/bin/sh\nfor last; do :; done\nexec sh -c \"$last\"\n").expect("ssh");
    fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).expect("ssh");
    let target = format!("ssh://here{NETWRIGHT}");
    let mut command = Command::new(NETWRIGHT);
    command.args(["doctor", "--json", "--window", "300ms", "--no-load", "--peer", &target]);
    let out = command.env("NETWRIGHT_SSH", &ssh).output().expect("doctor");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).expect("UTF-8")
}

fn measure_offload() -> String {
    let serve = support::serve::Serve::start(&[]);
    let out = run(NETWRIGHT, &["measure", "offload", serve.target(), "--json"]);
    let document: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(document["rows"].as_array().map(Vec::len), Some(48));
    out
}

fn measure_connect() -> String {
    let serve = support::serve::Serve::start(&[]);
    let args = ["--duration", "500ms", "--request", "8", "--rate", "200", "--json"];
    let out = run(NETWRIGHT, &[&["measure", "connect", serve.target()], &args[..]].concat());
    let document: Value = serde_json::from_str(&out).expect("JSON");
    for key in ["connections", "connections_per_s", "connect_ns", "first_byte_ns", "failed"] {
        assert!(document["runs"][0].get(key).is_some(), "runs[].{key} is missing");
    }
    out
}

fn measure_http() -> String {
    let server = support::http::Server::start(support::http::plain);
    let args = ["--duration", "500ms", "--rate", "200", "--json"];
    let out = run(NETWRIGHT, &[&["measure", "http", &server.url("/")], &args[..]].concat());
    let document: Value = serde_json::from_str(&out).expect("JSON");
    for key in
        ["clients", "transactions", "transactions_per_s", "latency_ns", "connect_ns", "failed"]
    {
        assert!(document["runs"][0].get(key).is_some(), "runs[].{key} is missing");
    }
    out
}

fn measure_redis() -> String {
    let server = support::redis::Redis::start(&[]);
    let args = ["--duration", "500ms", "--rate", "200", "--json"];
    let out = run(NETWRIGHT, &[&["measure", "redis", &server.url()], &args[..]].concat());
    let document: Value = serde_json::from_str(&out).expect("JSON");
    for key in
        ["clients", "transactions", "transactions_per_s", "latency_ns", "connect_ns", "failed"]
    {
        assert!(document["runs"][0].get(key).is_some(), "runs[].{key} is missing");
    }
    out
}

fn measure_pg() -> String {
    let server = support::postgres::Postgres::start();
    let args = ["--script", "select1", "--duration", "1s", "--rate", "200", "--json"];
    let out = run(NETWRIGHT, &[&["measure", "pg", &server.url("postgres")], &args[..]].concat());
    let document: Value = serde_json::from_str(&out).expect("JSON");
    for key in
        ["clients", "transactions", "transactions_per_s", "latency_ns", "connect_ns", "failed"]
    {
        assert!(document["runs"][0].get(key).is_some(), "runs[].{key} is missing");
    }
    out
}

fn explain() -> String {
    let serve = support::serve::Serve::start(&["--service-time", "50us"]);
    let target = format!("rtt://{}", serve.target());
    let args = ["--json", "--round", "30ms", "--duration", "500ms", "--path", "rtt=1ms"];
    // Exit code 1 is an answer too.
    let out = support::output(NETWRIGHT, &[&["explain", &target], &args[..]].concat());
    let text = String::from_utf8(out.stdout).expect("UTF-8");
    let document: Value = serde_json::from_str(&text).expect("JSON");
    for key in ["name", "ns", "low_ns", "high_ns", "share"] {
        assert!(document["components"][0].get(key).is_some(), "components[].{key} is missing");
    }
    for key in
        ["path", "clients", "predicted_per_s", "low_per_s", "high_per_s", "measured_per_s", "error"]
    {
        assert!(document["predictions"][0].get(key).is_some(), "predictions[].{key} is missing");
    }
    text
}

fn explain_passive() -> String {
    let serve = support::serve::Serve::start(&[]);
    let mut client = Command::new(NETWRIGHT);
    client.args(["measure", "rtt", serve.target(), "--duration", "1m"]);
    client.stdout(Stdio::null()).stderr(Stdio::null());
    let mut client = client.spawn().expect("it starts");
    let pid = serve.pid().to_string();
    let args = ["explain", "--pid", &pid, "--json", "--duration", "500ms"];
    // Waits for the client, which on a busy machine starts late. Its figures are not held here.
    let mut looks = (0..20).map(|_| support::output(NETWRIGHT, &args));
    let out = looks.find(|out| out.status.success());
    client.kill().and_then(|()| client.wait()).expect("it ends");
    let out = out.expect("nobody spoke");
    let text = String::from_utf8(out.stdout).expect("UTF-8");
    let document: Value = serde_json::from_str(&text).expect("JSON");
    for key in ["port", "exchanges", "exchanges_per_s", "queueing_ns", "service_ns", "path_rtt_ns"]
    {
        assert!(document["classes"][0].get(key).is_some(), "classes[].{key} is missing");
    }
    assert!(document["observed_share"].is_number());
    text
}

fn watch() -> String {
    let mut last = String::new();
    for more in [&[][..], &["--no-bpf"]] {
        let args = ["watch", "--json", "--interval", "200ms", "--duration", "400ms"];
        let text = run(NETWRIGHT, &[&args[..], more].concat());
        assert_eq!(text.lines().count(), 2, "an object an interval");
        for line in text.lines() {
            last = format!("{line}\n");
            let interval: Value = serde_json::from_str(line).expect("JSON");
            assert!(interval["interval_s"].as_f64().expect("a length") > 0.1);
            let cpu = &interval["cpus"][0];
            for key in ["id", "softirq_ns", "proc_stat", "time_squeeze", "backlog_drops"] {
                assert!(cpu.get(key).is_some(), "cpus[].{key} is missing");
            }
            for key in ["user", "system", "softirq", "irq", "idle", "steal"] {
                assert!(cpu["proc_stat"].get(key).is_some(), "proc_stat.{key} is missing");
            }
        }
    }
    let schema = schema("watch");
    for key in ["syscall", "interrupting_task", "idle", "ksoftirqd", "threaded"] {
        let at = format!("/$defs/ByContext/properties/{key}");
        assert!(schema.pointer(&at).is_some(), "softirq_ns.{key} is missing");
    }
    for key in ["net_rx", "net_tx", "other"] {
        let at = format!("/$defs/VectorNs/properties/{key}");
        assert!(schema.pointer(&at).is_some(), "softirq_ns.*.{key} is missing");
    }
    last
}

#[test]
fn the_validator_refuses_what_breaks_the_schema() {
    let schema = schema("inspect");
    let good: Value = serde_json::from_str(&run(NETWRIGHT, &["inspect", "--json"])).expect("JSON");
    let breaks: [(&str, Value); 6] = [
        ("/schema_version", Value::from("1")),
        ("/schema_version", Value::from(-1)),
        ("/host", Value::Null),
        ("/cpus/0/id", Value::from(1.5)),
        ("/cpus/0/online", serde_json::json!({ "absent": 3 })),
        ("/numa_nodes/0/cpus", Value::from("0-")),
    ];
    for (at, value) in breaks {
        let mut bad = good.clone();
        *bad.pointer_mut(at).unwrap_or_else(|| panic!("no {at}")) = value;
        assert!(validate(&schema, &schema, &bad, "").is_err(), "{at} was taken");
    }
    let mut bad = good;
    bad.as_object_mut().expect("an object").remove("cpus");
    assert!(validate(&schema, &schema, &bad, "").is_err(), "a missing key was taken");
}

fn measure_rtt() -> String {
    let serve = support::serve::Serve::start(&[]);
    let args = ["measure", "rtt", serve.target(), "--json", "--duration", "500ms"];
    let text = run(NETWRIGHT, &args);
    let document: Value = serde_json::from_str(&text).expect("JSON");
    for key in [
        "transport",
        "request_bytes",
        "response_bytes",
        "flows",
        "placement",
        "wait",
        "rtt_ns",
        "transactions",
        "transactions_per_s",
        "cpu",
        "warnings",
    ] {
        assert!(document["runs"][0].get(key).is_some(), "{key} is missing");
    }
    for key in ["min", "p50", "p75", "p90", "p99", "p999", "max", "mean", "sd"] {
        assert!(document["runs"][0]["rtt_ns"].get(key).is_some(), "{key} is missing");
    }
    for key in ["local", "peer"] {
        assert!(document["runs"][0]["cpu"].get(key).is_some(), "{key} is missing");
    }
    text
}

fn measure_stream() -> String {
    let mut last = String::new();
    let serve = support::serve::Serve::start(&[]);
    for more in [&["--direction", "both"][..], &["--udp", "--rate", "10Mbit"]] {
        let mut args = vec!["measure", "stream", serve.target(), "--json", "--duration", "500ms"];
        args.extend(more);
        last = run(NETWRIGHT, &args);

        let document: Value = serde_json::from_str(&last).expect("JSON");
        for key in ["transport", "flows", "bits_per_s", "bytes", "retransmits", "intervals", "cpu"]
        {
            assert!(document["runs"][0].get(key).is_some(), "{key} is missing");
        }
        for key in ["start_s", "end_s", "bits_per_s", "retransmits", "cwnd_bytes", "migrations"] {
            assert!(document["runs"][0]["intervals"][0].get(key).is_some(), "{key} is missing");
        }
    }
    last
}

fn text(out: &std::process::Output) -> String {
    String::from_utf8(out.stdout.clone()).expect("UTF-8")
}

fn measure_pg_init() -> String {
    let server = support::postgres::Postgres::start();
    run(NETWRIGHT, &["measure", "pg", &server.url("postgres"), "--init", "--json"])
}

/// A workload for both that prints the truth, without traffic.
const FIGURE: [&str; 4] = ["--metric", "x=/x = ([0-9]+)/:higher", "--runs", "32"];

fn prove() -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(NETWRIGHT);
    command.current_dir(&folder).args(["prove", "--json", "--quiet", "--record", "r.jsonl"]);
    command.args(["--command", "echo x = $(({level} * 1000 + $(od -An -N1 -tu1 /dev/urandom)))"]);
    text(&ended(command.args(["--level", "1", "--level", "2"]).args(FIGURE)))
}

/// The documents of commands on a host that can be changed.
fn there(work: impl FnOnce(&Practice) -> String + Send) -> String {
    let mut text = String::new();
    on_a_host(|host| text = work(host));
    text
}

/// The documents of `tune` there, after one change.
fn tune(args: &[&str]) -> String {
    there(|host| {
        applied(host);
        said(host, args)
    })
}

fn said(host: &Practice, args: &[&str]) -> String {
    let (code, out, err) = host.tune(args);
    assert_eq!(code, 0, "{out}{err}");
    out
}

fn applied(host: &Practice) -> String {
    said(
        host,
        &["apply", "--no-confirm", "--json", "nic.v0.mtu=1400", "sysctl.net.core.somaxconn=8192"],
    )
}

fn fix() -> String {
    there(|host| {
        let workload =
            "test $(cat /proc/sys/net/core/somaxconn) -gt 5000 && echo x = 2000 || echo x = 1000";
        let args = ["fix", "--json", "--yes", "--window", "200ms", "--command", workload];
        let more = ["--try", "sysctl.net.core.somaxconn=8192"];
        let out = ended(host.netwright(&args).args(more).args(FIGURE));
        let document: Value = serde_json::from_slice(&out.stdout).expect("JSON");
        // A finding of the moment, such as steal time, may come before it.
        let all = document["candidates"].as_array().expect("candidates");
        let tried =
            all.iter().find(|c| c["asked_by"] == "--try 1").expect("the one that was asked for");
        assert_eq!(tried["status"], "kept", "{document}");
        text(&out)
    })
}

fn tune_plan() -> String {
    // One change, one that needs none, one that is refused.
    there(|host| {
        let changes = ["nic.v0.mtu=1400", "nic.v1.mtu=1500", "sysctl.net.core.somaxconn=9999"];
        said(host, &[&["plan", "--json"][..], &changes].concat())
    })
}

fn tune_apply() -> String {
    there(|host| {
        applied(host);
        said(host, &["rollback", "--json"])
    })
}

fn tune_status() -> String {
    tune(&["status", "--json"])
}

fn tune_log() -> String {
    tune(&["log", "--json"])
}

fn tune_persist() -> String {
    tune(&["persist", "--dry-run", "--json"])
}

fn tune_profiles() -> String {
    run(NETWRIGHT, &["tune", "profiles", "--json"])
}

fn tune_journal() -> String {
    there(|host| {
        applied(host);
        said(host, &["rollback"]);
        let path = host.state.path().join("journal/000001.jsonl");
        let lines = fs::read_to_string(path).expect("the journal");
        let kinds: BTreeSet<String> = lines
            .split_inclusive('\n')
            .map(|line| {
                keeps_to("tune-journal", line);
                let record: Value = serde_json::from_str(line).expect("JSON");
                record["event"].to_string()
            })
            .collect();
        assert!(kinds.len() > 4, "of many kinds: {kinds:?}");
        lines.split_inclusive('\n').next().expect("a line").to_owned()
    })
}

fn doctor_fleet() -> String {
    let fleet = SimulatedFleet::start(vec![Simulated::default()]);
    let prometheus = Prometheus::start(&fleet.config("1s"), "");
    prometheus.answered("netwright_findings");
    let url = prometheus.url();
    run(NETWRIGHT, &["doctor", "--fleet", &url, "--json"])
}
