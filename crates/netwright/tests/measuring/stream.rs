//! Tests of streams between two namespaces on a link with known rate, losses and retransmits.

use std::{
    process::{Child, Command, Stdio},
    time::Duration,
};

use crate::support::{NETWRIGHT, Namespace, planted::nstat, run};
use serde_json::Value;

/// Two namespaces on a veth; the server serves in the second.
struct Wire {
    left: Namespace,
    right: Namespace,
    serve: Child,
}

impl Wire {
    fn new() -> Self {
        let (left, right) = (Namespace::new(), Namespace::new());
        run(
            "ip",
            &[
                "-n",
                &left.name,
                "link",
                "add",
                "w0",
                "type",
                "veth",
                "peer",
                "name",
                "w0",
                "netns",
                &right.name,
            ],
        );
        for (side, address) in [(&left, "10.98.7.1/24"), (&right, "10.98.7.2/24")] {
            side.run("ip", &["address", "add", address, "dev", "w0"]);
            side.run("ip", &["link", "set", "w0", "up"]);
            // veth takes a frame in on the CPU that sends it: the sender's or that of the qdisc's
            // timer. Where the hypervisor has one of them, frames overtake each other.
            side.run("sh", &["-c", "echo 1 > /sys/class/net/w0/queues/rx-0/rps_cpus"]);
        }
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &right.name, NETWRIGHT, "serve", "--quiet"]);
        command.args(["--bind", "10.98.7.2", "--open"]);
        let serve = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let this = Self { left, right, serve };
        this.right.await_listener(7471);
        this
    }

    /// Holds what the left side sends to a rate.
    fn rate(&self, rate: &str, limit: &str) {
        let words = format!("qdisc replace dev w0 root tbf rate {rate} burst 16k limit {limit}");
        self.left.run("tc", &words.split(' ').collect::<Vec<_>>());
    }

    fn stream(&self, more: &str) -> Value {
        let words = format!("measure stream 10.98.7.2 --json --no-pin {more}");
        let document = self.left.netwright_json(&words.split(' ').collect::<Vec<_>>());
        document["runs"][0].clone()
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        let _ = self.serve.kill();
        let _ = self.serve.wait();
    }
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no number: {value}"))
}

/// The payload's share of a rate that the link applies to frames.
fn local(measured: f64, wire: f64, payload: f64, frame: f64) {
    let expected = wire * payload / frame;
    let off = measured / expected - 1.0;
    // A bucket that filled while the machine was busy adds its bytes to the window, up to 7% here.
    assert!(off.abs() < 0.10, "{measured} bit/s, {expected} were let through");
}

#[test]
fn tcp_runs_at_the_rate_of_the_wire_both_when_slow_and_when_faster() {
    let wire = Wire::new();
    // An Ethernet frame of 1514 bytes carries 1448 of payload (IPv4, timestamps).
    for (rate, bits) in [("4mbit", 4e6), ("200mbit", 200e6)] {
        wire.rate(rate, "200k");
        // Reno, whatever the host's default: BBR drains the queue now and then.
        let r = wire.stream("--duration 3s --warmup 1s --interval 500ms --congestion reno");
        local(number(&r["bits_per_s"]), bits, 1448.0, 1514.0);
        assert_eq!(r["mss_bytes"], 1448);
        assert!((5..=6).contains(&r["intervals"].as_array().unwrap().len()));
    }
}

#[test]
fn retransmits_are_those_that_the_kernel_counts() {
    let wire = Wire::new();
    // A queue of a few frames, which the sender overruns again and again.
    wire.rate("50mbit", "20k");
    let retransmits = || nstat(&wire.left, "TcpRetransSegs");
    let before = retransmits();
    let r = wire.stream("--duration 2s --warmup 0ms --cooldown 0ms");
    let (measured, counted) = (r["retransmits"].as_u64().unwrap(), retransmits() - before);
    assert!(measured > 0 && measured <= counted, "{measured} of {counted}");
    // Handshakes and the last moment add some outside of the window.
    assert!(counted - measured <= 20 + counted / 10, "{measured} of {counted}");
    let parts: u64 =
        r["intervals"].as_array().unwrap().iter().map(|i| i["retransmits"].as_u64().unwrap()).sum();
    assert_eq!(parts, measured);
    let moved = r["evidence"]["local"].to_string();
    assert!(moved.contains("Retrans"), "{moved}");
}

#[test]
fn datagrams_that_the_wire_drops_are_the_lost_ones() {
    let wire = Wire::new();
    wire.rate("10mbit", "30k");
    // 1400 bytes of payload make a frame of 1442; twice the link's rate.
    let r = wire.stream("--udp --rate 20Mbit --message 1400 --duration 2s --interval 500ms");
    local(number(&r["bits_per_s"]), 10e6, 1400.0, 1442.0);
    let d = &r["datagrams"];
    let (sent, lost) = (number(&d["sent"]), number(&d["lost"]));
    assert_eq!(sent, lost + number(&d["received"]), "each is received or lost: {d}");
    assert_eq!((number(&d["reordered"]), number(&d["duplicates"])), (0.0, 0.0), "{d}");
    let share = 1.0 - 10e6 * 1400.0 / 1442.0 / 20e6;
    assert!((lost / sent - share).abs() < 0.03, "{} lost, {share} too many", lost / sent);
    // Every datagram of the whole run that did not arrive was dropped by the qdisc.
    let dropped: u64 = {
        let text = wire.left.run("tc", &["-s", "-j", "qdisc", "show", "dev", "w0"]);
        let json: Value = serde_json::from_str(&text).unwrap();
        json[0]["drops"].as_u64().unwrap()
    };
    assert!(lost <= dropped as f64, "{lost} of {dropped}");
    // The window is 2 s of the 2.25 s of sending.
    assert!(lost >= dropped as f64 * 0.75, "{lost} of {dropped}");
}

#[test]
fn a_stream_whose_server_dies_leaves_what_was_measured() {
    let mut wire = Wire::new();
    let words = "measure stream 10.98.7.2 --json --no-pin --duration 20s --interval 200ms";
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &wire.left.name, NETWRIGHT]).args(words.split(' '));
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(2500));
    let _ = wire.serve.kill();
    let out = child.wait_with_output().unwrap();
    let error = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(4), "{error}");
    assert_eq!(error.trim().lines().count(), 1, "{error}");
    let document: Value = serde_json::from_slice(&out.stdout).expect("the document so far");
    assert_eq!(document["interrupted"], true);
    let run = &document["runs"][0];
    assert!(number(&run["bytes"]) > 0.0 && !run["intervals"].as_array().unwrap().is_empty());
}
