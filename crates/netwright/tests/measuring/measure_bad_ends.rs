//! Tests of servers that do not exist, are another program, refuse, or die during the measurement:
//! one line, the exit code, and the results so far.

use std::{
    io::Write,
    net::TcpListener,
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

use crate::support::{
    NETWRIGHT,
    hostile::{IDLE_THREADS, at_work, settled},
    output,
    serve::Serve,
};
use serde_json::Value;

/// Runs a measurement that must fail; returns its line.
fn fails(target: &str, more: &[&str], code: i32) -> String {
    let begun = Instant::now();
    let args = ["measure", "rtt", target, "--duration", "100ms", "--json"];
    let out = output(NETWRIGHT, &[&args[..], more].concat());
    line(&out, code, target);
    assert!(begun.elapsed() < Duration::from_secs(20), "{target}: it took too long");
    assert!(out.stdout.is_empty(), "{target}: nothing was measured");
    String::from_utf8(out.stderr).unwrap()
}

fn line(out: &Output, code: i32, what: &str) {
    let reported = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(code), "{what}: {reported}");
    assert_eq!(reported.lines().count(), 1, "{what}: {reported}");
    assert!(reported.starts_with("netwright: "), "{what}: {reported}");
}

/// A listener that sends this text on each connection, and then nothing.
fn says(words: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        let mut open = vec![];
        for mut stream in listener.incoming().flatten() {
            let _ = stream.write_all(words);
            open.push(stream);
        }
    });
    address
}

#[test]
fn nobody_there_no_such_name_no_such_family() {
    let free = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    let reported = fails(&free.to_string(), &[], 4);
    assert!(reported.contains("refused") && reported.contains("netwright serve"), "{reported}");
    let reported = fails(&format!("[::1]:{}", free.port()), &[], 4);
    assert!(reported.contains("refused"), "{reported}");
    let reported = fails("no-such-host.invalid", &[], 4);
    assert!(reported.contains("does not resolve"), "{reported}");
    assert!(fails("127.0.0.1", &["-6"], 4).contains("no IPv6 address"));
    assert!(fails("::1", &["-4"], 4).contains("no IPv4 address"));
    let reported = fails("unix:/run/no-such-socket", &[], 4);
    assert!(reported.contains("netwright serve --unix"), "{reported}");
    fails("127.0.0.1:99999", &[], 2);
}

#[test]
fn another_protocol_is_distinguished_from_silence() {
    let reported = fails(&says(b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n"), &[], 4);
    assert!(
        reported.contains("something other than netwright") && reported.contains("SSH-2.0"),
        "{reported}"
    );
    let reported = fails(&says(b""), &[], 4);
    assert!(reported.contains("silent"), "{reported}");
    let reported = fails(&says(b"NWT1\xff\xff\xff\xff"), &[], 4);
    assert!(reported.contains("too long"), "{reported}");
    let reported = fails(&says(b"NWT1\x00\x00\x00\x02{}"), &[], 4);
    assert!(reported.contains("makes no sense"), "{reported}");
    let mut http = Command::new("python3")
        .args(["-u", "-m", "http.server", "0", "--bind", "127.0.0.1"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut first = String::new();
    let mut said = std::io::BufReader::new(http.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut said, &mut first).unwrap();
    let port = first.split(" port ").nth(1).unwrap().split(' ').next().unwrap().to_owned();
    let reported = fails(&format!("127.0.0.1:{port}"), &[], 4);
    http.kill().unwrap();
    http.wait().unwrap();
    assert!(reported.contains("silent") && reported.contains("netwright serve"), "{reported}");
}

#[test]
fn a_wrong_secret_is_not_permitted() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (right, wrong) = (file("right", "correct horse\n"), file("wrong", "battery staple\n"));
    let serve = Serve::start(&["--secret-file", &right]);
    assert!(fails(serve.target(), &["--secret-file", &wrong], 3).contains("not the one"));
    assert!(fails(serve.target(), &[], 3).contains("--secret-file"));
    let args = ["measure", "rtt", serve.target(), "--duration", "500ms", "--secret-file", &right];
    assert!(output(NETWRIGHT, &args).status.success());
}

#[test]
fn what_only_the_server_can_refuse_is_wrong_usage_all_the_same() {
    let serve = Serve::start(&["--max-flows", "3", "--max-duration", "1m"]);
    for (more, why) in [
        (&["--request", "0"][..], "at least 1 byte"),
        (&["--response", "8,0"], "at least 1 byte"),
        (&["--udp", "--request", "100k"], "65507 are possible"),
        (&["--request", "17M"], "16777216 are possible"),
        (&["--flows", "4"], "--max-flows"),
        (&["--warmup", "2m"], "--max-duration"),
        (&["--peer-cpu", "9999"], "CPU 9999 is offline or not there"),
        (&["--cpu", "9999"], "CPU 9999 is offline or not there"),
    ] {
        let reported = fails(serve.target(), more, 2);
        assert!(reported.contains(why), "{more:?}: {reported}");
    }
    let port = serve.target().rsplit(':').next().unwrap();
    assert!(fails(&format!("::1:{port}"), &[], 2).contains(&format!("[::1]:{port}")));
    let out = output(NETWRIGHT, &["serve", "--port", "0", "--cpu", "9999"]);
    line(&out, 2, "serve --cpu");
}

/// The document of a run that measured nothing.
fn nothing(kind: &str, out: &Output, why: &str) {
    line(out, 4, kind);
    let reported = String::from_utf8_lossy(&out.stderr);
    assert!(reported.contains(why), "{kind}: {reported}");
    let document: Value = serde_json::from_slice(&out.stdout).unwrap();
    let run = &document["runs"][0];
    let warned = run["warnings"].as_array().unwrap();
    assert!(
        warned.iter().any(|w| w["message"].as_str().unwrap().contains(why)),
        "{kind}: {warned:?}"
    );
    let counts = ["transactions", "connections", "bytes"].map(|c| run[c].as_u64());
    assert!(counts.iter().flatten().eq([&0]), "{kind}: {counts:?}");
}

#[test]
fn a_run_that_measured_nothing_says_so_and_fails() {
    let serve = Serve::start(&[]);
    for (kind, due) in [("rtt", "a request due"), ("connect", "a connection due")] {
        let args = ["measure", kind, serve.target(), "--json", "--rate", "1", "--warmup", "100ms"];
        let out = output(NETWRIGHT, &[&args[..], &["--duration", "50ms"]].concat());
        nothing(kind, &out, due);
    }
    let args = ["measure", "rtt", serve.target(), "--rate", "1", "--duration", "50ms"];
    let out = output(NETWRIGHT, &args);
    line(&out, 4, "a page of dashes is no answer");
    assert!(String::from_utf8_lossy(&out.stderr).contains("nothing was measured"));
    assert_eq!(String::from_utf8_lossy(&out.stdout), "");
}

#[test]
fn ended_while_it_warms_up_nothing_was_measured_by_either_signal() {
    let serve = Serve::start(&[]);
    for (kind, signal) in [
        ("rtt", libc::SIGINT),
        ("stream", libc::SIGINT),
        ("connect", libc::SIGTERM),
        ("stream", libc::SIGTERM),
    ] {
        let child = Command::new(NETWRIGHT)
            .args(["measure", kind, serve.target(), "--json", "--warmup", "1h"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        at_work(&serve, IDLE_THREADS);
        // SAFETY: our own child.
        unsafe { libc::kill(child.id() as i32, signal) };
        let out = child.wait_with_output().unwrap();
        nothing(kind, &out, "the run ended before the first");
        settled(&serve, IDLE_THREADS);
    }
}

#[test]
fn a_script_s_background_job_ignores_sigint_and_ends_by_sigterm() {
    let serve = Serve::start(&[]);
    // As sh does for every background job.
    let script = format!("trap '' INT; exec {NETWRIGHT} measure rtt {} --json", serve.target());
    let child = Command::new("sh")
        .args(["-c", &format!("{script} --duration 1h")])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It begins late beside other load, and must have measured for a second.
    std::thread::sleep(Duration::from_millis(2500));
    // SAFETY: our own child.
    let kill = |signal| unsafe { libc::kill(child.id() as i32, signal) };
    kill(libc::SIGINT);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(kill(0), 0, "SIGINT was ignored before we came");
    kill(libc::SIGTERM);
    let out = child.wait_with_output().unwrap();
    assert_eq!(out.status.code(), Some(0), "{out:?}");
    let document: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert!(
        document["interrupted"] == true && document["runs"][0]["transactions"].as_u64() > Some(0)
    );
    assert!(document["runs"][0]["window_ns"].as_u64() > Some(1_000_000_000));
}

#[test]
fn both_ends_addresses_are_in_the_result() {
    let serve = Serve::start(&[]);
    for target in &serve.targets {
        let host: std::net::SocketAddr = target.parse().unwrap();
        for kind in ["rtt", "stream", "connect"] {
            let args = ["measure", kind, target, "--json", "--duration", "50ms"];
            let out = output(NETWRIGHT, &args);
            let document: Value = serde_json::from_slice(&out.stdout).unwrap();
            for end in ["local", "peer"] {
                assert_eq!(document[end]["address"], host.ip().to_string(), "{kind} {end}");
            }
        }
    }
}

/// Begins a long measurement and waits until it is well under way.
fn under_way(serve: &Serve, kind: &str, more: &[&str]) -> Child {
    let child = Command::new(NETWRIGHT)
        .args(["measure", kind, serve.target(), "--json", "--duration", "1h"])
        .args(more)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    child
}

#[test]
fn a_server_that_is_killed_leaves_what_was_measured() {
    for (kind, more, count) in [
        ("rtt", &[][..], "transactions"),
        ("rtt", &["--flows", "6", "--threads", "2"], "transactions"),
        ("rtt", &["--udp"], "transactions"),
        ("connect", &["--flows", "4"], "connections"),
        ("connect", &["--close", "reset", "--rate", "200"], "connections"),
    ] {
        let serve = Serve::start(&[]);
        let child = under_way(&serve, kind, more);
        serve.signal(libc::SIGKILL);
        let begun = Instant::now();
        let out = child.wait_with_output().unwrap();
        assert!(begun.elapsed() < Duration::from_secs(30), "{kind} {more:?}");
        line(&out, 4, &format!("{kind} {more:?}"));
        let document: Value = serde_json::from_slice(&out.stdout).unwrap();
        assert_eq!(document["interrupted"], true, "{kind} {more:?}");
        assert!(document["runs"][0][count].as_u64().unwrap() > 0, "{kind} {more:?}");
    }
}
