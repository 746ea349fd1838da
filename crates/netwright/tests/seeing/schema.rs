//! The committed JSON schemas are the code's, and real output keeps to them.

use std::{fs, path::PathBuf};

use crate::support::{NETWRIGHT, run};
use serde_json::{Map, Value};

fn committed(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../../docs/schema/{name}.json"))
}

fn schema(name: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(committed(name)).expect("no committed schema"))
        .expect("the committed schema is no JSON")
}

#[test]
fn the_committed_schemas_are_what_the_code_says() {
    for name in [
        "inspect",
        "doctor",
        "explain",
        "explain-passive",
        "measure-rtt",
        "measure-connect",
        "measure-stream",
        "measure-http",
        "measure-pg",
        "measure-pg-init",
        "fix",
        "prove",
        "watch",
        "tune-plan",
        "tune-apply",
        "tune-status",
        "tune-log",
        "tune-persist",
        "tune-profiles",
        "tune-journal",
    ] {
        let ours = run(NETWRIGHT, &["schema", name]);
        let path = committed(name);
        if std::env::var_os("UPDATE").is_some() {
            fs::create_dir_all(path.parent().expect("it has a folder")).expect("docs/schema");
            fs::write(&path, &ours).expect("docs/schema is not writable");
        }
        let theirs = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            ours == theirs,
            "docs/schema/{name}.json differs from the code; if the change only adds keys, run \
             `UPDATE=1 cargo test -p netwright --test seeing schema::` and commit it"
        );
    }
}

#[test]
fn real_output_of_inspect_keeps_to_its_schema() {
    let pid = std::process::id().to_string();
    let facts = run(NETWRIGHT, &["inspect", "--json", "--pid", &pid]);
    keeps_to("inspect", &facts);
    // The contract's keys, named one by one: a schema generated from a renamed field would
    // agree with itself.
    let facts: Value = serde_json::from_str(&facts).expect("JSON");
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
    assert!(facts["sysctls"].is_object() && facts["rivals"].is_array());
    assert_eq!(facts["processes"][0]["pid"].to_string(), pid);
}

#[test]
fn real_output_of_doctor_keeps_to_its_schema() {
    let out = run(NETWRIGHT, &["doctor", "--json", "--window", "200ms"]);
    keeps_to("doctor", &out);
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
}

#[test]
fn real_output_of_measure_connect_keeps_to_its_schema() {
    let serve = crate::support::serve::Serve::start(&[]);
    let args = ["--duration", "100ms", "--request", "8", "--rate", "200", "--json"];
    let out = run(NETWRIGHT, &[&["measure", "connect", serve.target()], &args[..]].concat());
    keeps_to("measure-connect", &out);
    let document: Value = serde_json::from_str(&out).expect("JSON");
    for key in ["connections", "connections_per_s", "connect_ns", "first_byte_ns", "failed"] {
        assert!(document["runs"][0].get(key).is_some(), "runs[].{key} is missing");
    }
}

#[test]
fn real_output_of_measure_http_keeps_to_its_schema() {
    let server = crate::support::http::Server::start(crate::support::http::plain);
    let args = ["--duration", "500ms", "--rate", "200", "--json"];
    let out = run(NETWRIGHT, &[&["measure", "http", &server.url("/")], &args[..]].concat());
    keeps_to("measure-http", &out);
    let document: Value = serde_json::from_str(&out).expect("JSON");
    for key in
        ["clients", "transactions", "transactions_per_s", "latency_ns", "connect_ns", "failed"]
    {
        assert!(document["runs"][0].get(key).is_some(), "runs[].{key} is missing");
    }
}

#[test]
fn real_output_of_measure_pg_keeps_to_its_schema() {
    let server = crate::support::postgres::Postgres::start();
    let args = ["--script", "select1", "--duration", "1s", "--rate", "200", "--json"];
    let out = run(NETWRIGHT, &[&["measure", "pg", &server.url("postgres")], &args[..]].concat());
    keeps_to("measure-pg", &out);
    let document: Value = serde_json::from_str(&out).expect("JSON");
    for key in
        ["clients", "transactions", "transactions_per_s", "latency_ns", "connect_ns", "failed"]
    {
        assert!(document["runs"][0].get(key).is_some(), "runs[].{key} is missing");
    }
}

#[test]
fn real_output_of_explain_keeps_to_its_schema() {
    let serve = crate::support::serve::Serve::start(&["--service-time", "50us"]);
    let target = format!("rtt://{}", serve.target());
    let args = ["--json", "--round", "30ms", "--duration", "500ms", "--path", "rtt=1ms"];
    // Exit code 1 is an answer too.
    let out = crate::support::output(NETWRIGHT, &[&["explain", &target], &args[..]].concat());
    let text = String::from_utf8(out.stdout).expect("UTF-8");
    keeps_to("explain", &text);
    let document: Value = serde_json::from_str(&text).expect("JSON");
    for key in ["name", "ns", "low_ns", "high_ns", "share"] {
        assert!(document["components"][0].get(key).is_some(), "components[].{key} is missing");
    }
    for key in
        ["path", "clients", "predicted_per_s", "low_per_s", "high_per_s", "measured_per_s", "error"]
    {
        assert!(document["predictions"][0].get(key).is_some(), "predictions[].{key} is missing");
    }
}

#[test]
fn real_output_of_passive_explain_keeps_to_its_schema() {
    let serve = crate::support::serve::Serve::start(&[]);
    let mut client = std::process::Command::new(NETWRIGHT);
    client.args(["measure", "rtt", serve.target(), "--duration", "1m"]);
    client.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    let mut client = client.spawn().expect("it starts");
    let pid = serve.pid().to_string();
    let args = ["explain", "--pid", &pid, "--json", "--duration", "500ms"];
    // A client on a busy machine takes its time to begin.
    let mut looks = (0..20).map(|_| crate::support::output(NETWRIGHT, &args));
    let out = looks.find(|out| out.status.success());
    client.kill().and_then(|()| client.wait()).expect("it ends");
    let out = out.expect("nobody spoke");
    let text = String::from_utf8(out.stdout).expect("UTF-8");
    keeps_to("explain-passive", &text);
    let document: Value = serde_json::from_str(&text).expect("JSON");
    for key in ["port", "exchanges", "exchanges_per_s", "queueing_ns", "service_ns", "path_rtt_ns"]
    {
        assert!(document["classes"][0].get(key).is_some(), "classes[].{key} is missing");
    }
    assert!(document["observed_share"].is_number());
}

#[test]
fn real_output_of_watch_keeps_to_its_schema() {
    for more in [&[][..], &["--no-bpf"]] {
        let args = ["watch", "--json", "--interval", "200ms", "--duration", "400ms"];
        let text = run(NETWRIGHT, &[&args[..], more].concat());
        assert_eq!(text.lines().count(), 2, "an object an interval");
        for line in text.lines() {
            keeps_to("watch", &format!("{line}\n"));
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
    for key in ["syscall", "irq_on_task", "idle", "ksoftirqd", "threaded"] {
        let at = format!("/$defs/ByContext/properties/{key}");
        assert!(schema.pointer(&at).is_some(), "softirq_ns.{key} is missing");
    }
    for key in ["net_rx", "net_tx", "other"] {
        let at = format!("/$defs/VectorNs/properties/{key}");
        assert!(schema.pointer(&at).is_some(), "softirq_ns.*.{key} is missing");
    }
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

fn keeps_to(name: &str, document: &str) {
    assert_eq!(document.matches('\n').count(), 1, "one document on one line");
    let value: Value = serde_json::from_str(document).expect("JSON");
    let schema = schema(name);
    if let Err(why) = validate(&schema, &schema, &value, "") {
        panic!("{name} --json breaks its schema: {why}");
    }
}

/// JSON Schema 2020-12, as much of it as our schemas use. A keyword it does not know is an
/// error, so that nothing in a schema is silently not checked. (The `jsonschema` crate does
/// more and costs 59 further crates in every test build.)
fn validate(schema: &Value, root: &Value, value: &Value, at: &str) -> Result<(), String> {
    let rules = match schema {
        Value::Bool(true) => return Ok(()),
        Value::Object(rules) => rules,
        _ => return Err(format!("{at}: the schema allows nothing here")),
    };
    for (keyword, rule) in rules {
        check(keyword, rule, rules, root, value, at)
            .map_err(|why| if why.starts_with('/') { why } else { format!("{at}: {why}") })?;
    }
    Ok(())
}

fn check(
    keyword: &str,
    rule: &Value,
    rules: &Map<String, Value>,
    root: &Value,
    value: &Value,
    at: &str,
) -> Result<(), String> {
    let fits = |s: &Value| validate(s, root, value, at).is_ok();
    let alternatives = || rule.as_array().expect("a list").iter();
    let ok = match keyword {
        "$schema" | "$defs" | "title" | "description" | "format" | "default" => true,
        "$ref" => {
            let pointer = rule.as_str().expect("a text").trim_start_matches('#');
            let target = root.pointer(pointer).ok_or(format!("{pointer} is not defined"))?;
            return validate(target, root, value, at);
        }
        "type" => match rule {
            Value::Array(kinds) => kinds.iter().any(|k| is(value, k)),
            kind => is(value, kind),
        },
        "const" => rule == value,
        "anyOf" => alternatives().any(fits),
        "oneOf" => alternatives().filter(|s| fits(s)).count() == 1,
        "minimum" => value.as_f64().is_none_or(|v| v >= rule.as_f64().expect("a number")),
        "maximum" => value.as_f64().is_none_or(|v| v <= rule.as_f64().expect("a number")),
        // The one pattern in use is that of a cpulist.
        "pattern" => {
            assert_eq!(rule, "^([0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*)?$", "a new pattern");
            value.as_str().is_none_or(|s| s.parse::<model::CpuSet>().is_ok())
        }
        "required" => value
            .as_object()
            .is_none_or(|o| alternatives().all(|k| o.contains_key(k.as_str().expect("a text")))),
        "properties" => {
            for (key, inner) in value.as_object().into_iter().flatten() {
                if let Some(schema) = rule.get(key) {
                    validate(schema, root, inner, &format!("{at}/{key}"))?;
                }
            }
            true
        }
        "additionalProperties" => {
            let named = |key| rules.get("properties").is_some_and(|p| p.get(key).is_some());
            let numbered = |key| rules.contains_key("patternProperties") && is_number(key);
            for (key, inner) in value.as_object().into_iter().flatten() {
                if !named(key) && !numbered(key) {
                    validate(rule, root, inner, &format!("{at}/{key}"))?;
                }
            }
            true
        }
        "patternProperties" => {
            // Maps by number (memory by node) have this one pattern for their keys.
            let numbers = rule.get("^\\d+$").expect("a new pattern of keys");
            for (key, inner) in value.as_object().into_iter().flatten() {
                if is_number(key) {
                    validate(numbers, root, inner, &format!("{at}/{key}"))?;
                }
            }
            true
        }
        "items" => {
            for (i, inner) in value.as_array().into_iter().flatten().enumerate() {
                validate(rule, root, inner, &format!("{at}/{i}"))?;
            }
            true
        }
        other => return Err(format!("the validator does not know the keyword {other}")),
    };
    let shown: String = value.to_string().chars().take(80).collect();
    if ok { Ok(()) } else { Err(format!("{shown} breaks {keyword} {rule}")) }
}

fn is_number(key: &str) -> bool {
    !key.is_empty() && key.bytes().all(|b| b.is_ascii_digit())
}

fn is(value: &Value, kind: &Value) -> bool {
    match kind.as_str().expect("a text") {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("a new type {other}"),
    }
}

#[test]
fn real_output_of_measure_rtt_keeps_to_its_schema() {
    let serve = crate::support::serve::Serve::start(&[]);
    let args = ["measure", "rtt", serve.target(), "--json", "--duration", "100ms"];
    let text = run(NETWRIGHT, &args);
    keeps_to("measure-rtt", &text);
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
    for key in ["min", "p50", "p90", "p99", "p999", "max", "mean"] {
        assert!(document["runs"][0]["rtt_ns"].get(key).is_some(), "{key} is missing");
    }
    for key in ["local", "peer"] {
        assert!(document["runs"][0]["cpu"].get(key).is_some(), "{key} is missing");
    }
}

#[test]
fn real_output_of_measure_stream_keeps_to_its_schema() {
    let serve = crate::support::serve::Serve::start(&[]);
    for more in [&["--direction", "both"][..], &["--udp", "--rate", "10Mbit"]] {
        let mut args = vec!["measure", "stream", serve.target(), "--json", "--duration", "100ms"];
        args.extend(more);
        let text = run(NETWRIGHT, &args);
        keeps_to("measure-stream", &text);
        let document: Value = serde_json::from_str(&text).expect("JSON");
        for key in ["transport", "flows", "bits_per_s", "bytes", "retransmits", "intervals", "cpu"]
        {
            assert!(document["runs"][0].get(key).is_some(), "{key} is missing");
        }
        for key in ["start_s", "end_s", "bits_per_s", "retransmits", "cwnd_bytes", "migrations"] {
            assert!(document["runs"][0]["intervals"][0].get(key).is_some(), "{key} is missing");
        }
    }
}
