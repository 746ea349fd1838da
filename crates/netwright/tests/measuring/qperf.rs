//! Tests of the command line with Debian's stock qperf at the other end, in both roles.
//! `crates/interop/tests/loopback/qperf.rs` tests the protocol in detail.

use std::{
    io::BufRead,
    net::{TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use crate::support::{NETWRIGHT, output, run, serve::Serve};
use model::measure::{PeerProgram, RttDocument, StreamDocument};
use serde_json::Value;

/// A stock server on a free port, ended when dropped.
struct Stock {
    child: Child,
    target: String,
}

impl Stock {
    fn start() -> Self {
        let port = TcpListener::bind("[::]:0").unwrap().local_addr().unwrap().port();
        let child = Command::new("qperf")
            .args(["-lp", &port.to_string()])
            .stdout(Stdio::null())
            .spawn()
            .expect("qperf does not start; `make test-deps` installs it");
        let deadline = Instant::now() + Duration::from_secs(20);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < deadline, "qperf does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        Self { child, target: format!("127.0.0.1:{port}") }
    }
}

impl Drop for Stock {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn event(serve: &mut Serve) -> Value {
    let mut line = String::new();
    serve.events.read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap_or_else(|e| panic!("{line:?}: {e}"))
}

#[test]
fn stock_clients_are_served_beside_ours() {
    let mut serve = Serve::start(&["--qperf", "0"]);
    let said = event(&mut serve);
    assert_eq!((&said["event"], &said["protocol"]), (&"listening".into(), &"qperf".into()));
    let at = said["addresses"][0].as_str().unwrap();
    let (host, port) = at.rsplit_once(':').unwrap();
    let printed = run("qperf", &["-lp", port, "-t", "1", "-vvs", "-uu", host, "tcp_lat"]);
    assert!(printed.contains("rem_recv_msgs"), "{printed}");
    let (began, ended) = (event(&mut serve), event(&mut serve));
    assert_eq!((&began["event"], &began["test"]), (&"started".into(), &"tcp_lat".into()));
    assert_eq!(ended["event"], "finished");
    // The client prints our counts.
    let line = printed.lines().find(|l| l.contains("rem_recv_msgs")).unwrap();
    let digits: String = line.chars().filter(char::is_ascii_digit).collect();
    assert_eq!(digits, ended["received_messages"].to_string());
    // Our own clients are served at the same time.
    let ours = ["measure", "rtt", serve.target(), "--json", "--duration", "200ms"];
    let d: RttDocument = serde_json::from_str(&run(NETWRIGHT, &ours)).unwrap();
    assert_eq!(d.request.common.peer, PeerProgram::Netwright);
}

#[test]
fn strangers_are_served_only_with_open() {
    let o = output(NETWRIGHT, &["serve", "--port", "0", "--qperf", "0", "--bind", "0.0.0.0"]);
    assert_eq!(o.status.code(), Some(2));
    let line = String::from_utf8(o.stderr).unwrap();
    assert!(line.contains("--qperf beyond loopback needs --open"), "{line}");
}

#[test]
fn round_trips_and_streams_against_a_stock_server() {
    let stock = Stock::start();
    let args = ["measure", "rtt", &stock.target, "--peer", "qperf", "--json"];
    let more = ["--duration", "300ms", "--request", "1,1000"];
    let json = run(NETWRIGHT, &[&args[..], &more].concat());
    let d: RttDocument = serde_json::from_str(&json).unwrap();
    assert_eq!((d.request.common.peer, d.runs.len()), (PeerProgram::Qperf, 2));
    assert_eq!(d.peer.program, "qperf 0.4.11");
    assert!(d.runs.iter().all(|r| r.transactions > 10 && r.rtt_ns.p99 >= r.rtt_ns.p50));
    // The result names the peer program, so `--rerun` uses it again.
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &json).unwrap();
    let again = ["measure", "--json", "--rerun", file.path().to_str().unwrap()];
    let d: RttDocument = serde_json::from_str(&run(NETWRIGHT, &again)).unwrap();
    assert_eq!((d.peer.program.as_str(), d.runs.len()), ("qperf 0.4.11", 2));
    // The text warns that qperf's latency is half of this.
    let text = run(NETWRIGHT, &[&args[..5], &["--duration", "200ms"]].concat());
    assert!(text.contains("half of the mean round trip"), "{text}");
    for transport in ["tcp", "udp"] {
        let args = ["measure", "stream", &stock.target, "--peer", "qperf", "--json"];
        let more = ["--duration", "400ms", "--transport", transport, "--rate", "50Mbit"];
        let json = run(NETWRIGHT, &[&args[..], &more].concat());
        let d: StreamDocument = serde_json::from_str(&json).unwrap();
        assert!(d.runs[0].bytes > 10_000, "{json}");
    }
}

#[test]
fn nobody_there_and_what_cannot_be() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let target = format!("127.0.0.1:{port}");
    let o = output(NETWRIGHT, &["measure", "rtt", &target, "--peer", "qperf"]);
    assert_eq!(o.status.code(), Some(4));
    let line = String::from_utf8(o.stderr).unwrap();
    assert!(line.trim().lines().count() == 1 && line.contains("connection refused"), "{line}");
    for wrong in [&["--flows", "4"][..], &["--rate", "100"], &["--response", "7"]] {
        let args = ["measure", "rtt", &target, "--peer", "qperf"];
        let o = output(NETWRIGHT, &[&args[..], wrong].concat());
        assert_eq!(o.status.code(), Some(2), "{wrong:?}");
    }
}
