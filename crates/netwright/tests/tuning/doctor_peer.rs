//! Tests of `doctor --peer`: two hosts and a real sshd; a fault at one end is that end's, and two
//! healthy ends are called so.

use std::process::{Output, Stdio};

use serde_json::Value;

use super::peer_tune::Pair;

/// A shaper that drops what TCP sends faster.
const SHAPER: &str = "tc qdisc add dev eth0 root tbf rate 50mbit burst 20kb limit 30kb";

fn asked(pair: &Pair, target: &str, args: &[&str]) -> Output {
    let all = [&["doctor", "--json", "--window", "1500ms", "--peer", target], args].concat();
    let out = pair.left(&all).stdin(Stdio::null()).output().unwrap();
    if out.status.success() {
        let text = String::from_utf8_lossy(&out.stdout);
        crate::support::schema::keeps_to("doctor-peer", &text);
    }
    out
}

fn judged(pair: &Pair, args: &[&str]) -> Value {
    let out = asked(pair, &pair.responder(), args);
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(0), "{said}");
    serde_json::from_slice(&out.stdout).unwrap()
}

fn plant(pair: &Pair, host: &str) {
    let done = pair.lab.output(host, &SHAPER.split(' ').collect::<Vec<_>>()).unwrap();
    assert_eq!(done.code, 0);
}

fn has(d: &Value, rules: &str, rule: &str) -> bool {
    d[rules].as_array().unwrap().iter().any(|r| r == rule)
}

/// The streams fill a shaper at one end: its drops are found at that end alone.
#[test]
fn a_shaper_that_drops_is_the_fault_of_its_own_end() {
    for (host, end, other) in [("right", "peer", "local"), ("left", "local", "peer")] {
        let pair = Pair::new();
        plant(&pair, host);
        let d = judged(&pair, &[]);
        let rules = (&d["local_rules"], &d["peer_rules"]);
        assert!(has(&d, &format!("{end}_rules"), "qdisc_drops"), "{rules:?}");
        assert!(!has(&d, &format!("{other}_rules"), "qdisc_drops"), "{rules:?}");
        assert_eq!(d["limits"], end, "{rules:?}");
        // Of the direction that is shaped, no more than the shaper lets through.
        let shaped = if end == "local" { "forward_bits_per_s" } else { "reverse_bits_per_s" };
        let rate = d["load"][shaped].as_f64().unwrap();
        assert!((1e6..60e6).contains(&rate), "{:?}", d["load"]);
    }
}

#[test]
fn two_healthy_ends_without_a_load_limit_nothing() {
    let pair = Pair::new();
    let d = judged(&pair, &["--no-load"]);
    assert_eq!(d["limits"], "neither", "{:?} {:?}", d["local_rules"], d["peer_rules"]);
    assert_eq!((&d["load"], &d["one_kernel"]), (&Value::Null, &Value::Bool(true)));
    let passed = |end: &str| d[end]["passed"].as_array().unwrap().len();
    assert!(passed("local") > 10 && passed("peer") > 10);
    let cookie = |end: &str| d[end]["source"]["id"]["net_namespace"].clone();
    assert_ne!(cookie("local"), cookie("peer"), "each end judges its own host");
}

#[test]
fn an_end_that_cannot_be_asked_is_one_line() {
    let pair = Pair::new();
    let target = pair.responder();
    let nowhere = target.replace(":2222", ":2223");
    let missing = target.replace("10.99.0.2:2222", "10.99.0.2:2222/nowhere");
    for (target, code, says) in [
        (nowhere.as_str(), 4, "ssh failed"),
        (missing.as_str(), 4, "is there"),
        ("db1", 2, "ssh://"),
    ] {
        let out = asked(&pair, target, &["--no-load"]);
        let said = String::from_utf8_lossy(&out.stderr);
        assert_eq!((out.status.code(), said.lines().count()), (Some(code), 1), "{said}");
        assert!(said.contains(says), "{said}");
    }
}
