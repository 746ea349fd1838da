//! Tests of connections against known truths: a delay of the link, a service time, exhausted ports;
//! both ends' counts; and the output around them.

use std::process::{Command, Output};

use crate::support::{NETWRIGHT, Namespace, needs_root, output, run, serve::Serve};
use lab::{pair::PairSpec, testing::TestLab};
use model::{
    Nanos, Warning,
    measure::{ConnectDocument, ConnectRun},
};

fn connect(target: &str, args: &[&str]) -> ConnectDocument {
    let all = [&["measure", "connect", target, "--json"], args].concat();
    serde_json::from_str(&run(NETWRIGHT, &all)).unwrap()
}

fn agree(run: &ConnectRun) {
    assert_eq!(run.peer_accepted_in_all.get(), Some(run.established_in_all), "{run:?}");
    assert!(run.connections > 0 && run.established_in_all >= run.connections, "{run:?}");
    assert_eq!(run.connect_ns.count, run.connections);
}

#[test]
fn both_ends_count_the_same_connections_over_both_families() {
    let serve = Serve::start(&[]);
    for target in &serve.targets {
        for close in ["peer", "reset", "local"] {
            let args = ["--duration", "300ms", "--close", close, "--request", "100"];
            let args = [&args[..], &["--flows", "1,6", "--threads", "1"]].concat();
            for run in &connect(target, &args).runs {
                agree(run);
                let first = run.first_byte_ns.as_ref().unwrap();
                assert!(first.count == run.connections && first.min > run.connect_ns.min);
                assert!(run.failed.is_empty(), "{run:?}");
            }
        }
    }
}

#[test]
fn a_service_time_shows_in_the_first_byte_and_not_in_connect() {
    const SERVICE_NS: u64 = 2_000_000;
    let serve = Serve::start(&["--service-time", "2ms"]);
    let args = ["--duration", "600ms", "--request", "1"];
    let document = connect(serve.target(), &args);
    let run = &document.runs[0];
    agree(run);
    let first = run.first_byte_ns.as_ref().unwrap();
    // The smallest: other load only adds to it.
    assert!((SERVICE_NS..SERVICE_NS * 3 / 2).contains(&first.min), "{first:?}");
    assert!(run.connect_ns.min < SERVICE_NS / 2, "{:?}", run.connect_ns);
}

#[test]
fn a_delay_on_the_wire_shows_once_in_connect_and_twice_in_the_first_byte() {
    needs_root();
    const DELAY_NS: u64 = 4_000_000;
    let spec = PairSpec {
        queues: 1,
        delay: Some(Nanos(DELAY_NS)),
        program: Some(NETWRIGHT.into()),
        ..PairSpec::default()
    };
    let lab = TestLab::pair(&spec).unwrap();
    let peer = [NETWRIGHT, "serve", "--json", "--port", "0", "--bind", "10.99.0.2", "--open"];
    let serve = Serve::of(lab.command("right", &peer).unwrap());
    let args = [NETWRIGHT, "measure", "connect", serve.target(), "--json", "--duration", "1500ms"];
    let args = [&args[..], &["--flows", "4", "--request", "64", "--warmup", "500ms"]].concat();
    let out = lab.output("left", &args).unwrap();
    assert_eq!(out.code, 0, "{}", String::from_utf8_lossy(&out.stderr));
    let document: ConnectDocument = serde_json::from_slice(&out.stdout).unwrap();
    let run = &document.runs[0];
    agree(run);
    let rtt = 2 * DELAY_NS;
    let (connect, first) = (&run.connect_ns, run.first_byte_ns.as_ref().unwrap());
    assert!((rtt * 99 / 100..rtt * 3 / 2).contains(&connect.min), "{connect:?}");
    assert!((2 * rtt * 99 / 100..3 * rtt).contains(&first.min), "{first:?}");
}

fn local(ns: &Namespace, serve: &Serve, args: &[&str]) -> (Output, ConnectDocument) {
    let all = [&["measure", "connect", serve.target(), "--json"], args].concat();
    let out = ns.output(NETWRIGHT, &all);
    let document: ConnectDocument = serde_json::from_slice(&out.stdout).unwrap();
    // The warm-up took every port, so nothing was measured within the window.
    let code = if document.runs[0].connections == 0 { 4 } else { 0 };
    assert_eq!(out.status.code(), Some(code), "{out:?}");
    (out, document)
}

#[test]
fn ports_that_run_out_are_foretold_and_explained_and_cost_no_hot_loop() {
    let ns = Namespace::new();
    // The server's ports are outside this range: all 60 are the client's.
    for setting in ["net.ipv4.ip_local_port_range=40000 40069", "net.ipv4.tcp_tw_reuse=0"] {
        ns.run("sysctl", &["-w", setting]);
    }
    ns.run("sysctl", &["-w", "net.ipv4.ip_local_reserved_ports=40010-40019"]);
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &ns.name, NETWRIGHT, "serve", "--json", "--port", "7471"]);
    command.args(["--bind", "127.0.0.1", "--data-ports", "7480-7489"]);
    let serve = Serve::of(command);
    // The control connection has a port too, and keeps it in TIME_WAIT: fewer than 60.
    let (out, document) = local(&ns, &serve, &["--close", "local", "--duration", "1s"]);
    let reported = String::from_utf8_lossy(&out.stderr);
    assert!(reported.contains("after 60 connections there is none"), "{reported}");
    let run = &document.runs[0];
    let budget = run.ports.known().unwrap();
    assert_eq!((budget.ports, budget.kept_ns), (60, Nanos(60_000_000_000)));
    assert!((0.99..1.01).contains(&budget.sustained_per_s), "{budget:?}");
    assert!(budget.time_wait_after >= 40, "{budget:?}");
    // Without the limit of ports there would be thousands.
    assert!((50..=150).contains(&run.established_in_all), "{run:?}");
    assert_eq!(run.peer_accepted_in_all.get(), Some(run.established_in_all));
    let failed = run.failed.get("cannot assign requested address (EADDRNOTAVAIL)").unwrap();
    assert!((1..=15).contains(failed), "about ten looks for a port in a second: {failed}");
    let why =
        run.warnings.iter().map(Warning::to_string).find(|w| w.contains("TIME_WAIT")).unwrap();
    for part in ["all 60 local ports towards 127.0.0.1:748", "--close reset", "--bind A,B"] {
        assert!(why.contains(part), "{why}");
    }
    assert!(why.contains("ip_local_port_range (now 40000 to 40069)"), "{why}");

    // The advice helps: after a reset or the server's close the client keeps no port, and other
    // addresses have their own ports.
    for args in [
        &["--close", "reset"][..],
        &["--close", "peer"],
        &["--close", "local", "--bind", "127.0.0.7,127.0.0.8", "--rate", "100"],
    ] {
        let args = [&["--duration", "800ms"], args].concat();
        let (_, document) = local(&ns, &serve, &args);
        let run = &document.runs[0];
        assert!(run.connections > 70, "{args:?}: {run:?}");
        assert!(run.failed.is_empty(), "{args:?}: {run:?}");
        agree(run);
    }
    // A rate is compared with the ports before it begins.
    let (out, document) = local(
        &ns,
        &serve,
        &["--close", "local", "--rate", "200", "--duration", "600ms", "--bind", "127.0.0.9"],
    );
    let reported = String::from_utf8_lossy(&out.stderr);
    assert!(reported.contains("use up the 60 local ports in 0.3 s"), "{reported}");
    assert!(document.runs[0].warnings.iter().any(|w| w.to_string().contains("all 60 local ports")));
}

#[test]
fn it_runs_again_from_its_own_result_and_stops_early_on_ctrl_c() {
    let serve = Serve::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("first.json");
    let path = file.to_str().unwrap();
    let args = ["--flows", "1..4*2", "--duration", "50ms", "--close", "reset", "-o", path];
    run(NETWRIGHT, &[&["measure", "connect", serve.target(), "--json"], &args[..]].concat());
    let first: ConnectDocument =
        serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    let second: ConnectDocument =
        serde_json::from_str(&run(NETWRIGHT, &["measure", "--rerun", path, "--json"])).unwrap();
    assert_eq!(first.request, second.request);
    assert_eq!(second.runs.iter().map(|r| r.flows).collect::<Vec<_>>(), [1, 2, 4]);
    let text = run(NETWRIGHT, &["measure", "--rerun", path]);
    assert!(text.contains("CONNECT P50"), "{text}");

    let mut command = Command::new(NETWRIGHT);
    command.args(["measure", "connect", serve.target(), "--json", "--duration", "1h"]);
    let child = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(1200));
    // SAFETY: our own child.
    unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
    let out = child.wait_with_output().unwrap();
    assert_eq!(out.status.code(), Some(0));
    let document: ConnectDocument = serde_json::from_slice(&out.stdout).unwrap();
    assert!(document.interrupted && document.runs[0].connections > 50);
    agree(&document.runs[0]);
}

#[test]
fn a_unix_socket_is_connected_to_and_udp_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("far");
    let serve = Serve::start(&["--unix", path.to_str().unwrap()]);
    for close in ["peer", "local", "reset"] {
        let document =
            connect(serve.target(), &["--duration", "200ms", "--close", close, "--flows", "3"]);
        agree(&document.runs[0]);
        assert!(document.runs[0].failed.is_empty(), "{:?}", document.runs[0]);
        assert!(document.runs[0].ports.known().is_none());
    }
    let out = output(NETWRIGHT, &["measure", "connect", "127.0.0.1", "--udp"]);
    assert_eq!(out.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&out.stderr).contains("UDP makes no connections"), "{out:?}");
}
