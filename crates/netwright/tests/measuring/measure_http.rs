//! Tests of HTTP requests against known truths of a test server, and against a real nginx with an
//! access log.

use std::{
    collections::BTreeMap,
    io::Write,
    net::TcpStream,
    process::{Command, Stdio},
    time::Duration,
};

use crate::support::{
    NETWRIGHT,
    http::{Nginx, Request, Server, plain},
    output, run,
};
use model::{
    Warning,
    measure::{HttpDocument, HttpRun},
};

fn http(args: &[&str]) -> HttpDocument {
    let all = [&["measure", "http", "--json"], args].concat();
    serde_json::from_str(&run(NETWRIGHT, &all)).unwrap()
}

fn one(args: &[&str]) -> HttpRun {
    http(args).runs.remove(0)
}

/// Checks that apply to every run.
fn sound(run: &HttpRun) {
    // With a schedule the times include requests that ended after the window.
    let late = if run.target_per_s.is_some() { u64::from(run.clients * run.pipeline) } else { 0 };
    let times = run.transactions..=run.transactions + late;
    assert!(times.contains(&run.latency_ns.count), "{run:?}");
    assert_eq!(run.first_byte_ns.count, run.latency_ns.count);
    assert!(run.first_byte_ns.p50 <= run.latency_ns.p50);
    assert_eq!(run.statuses.values().sum::<u64>(), run.transactions);
    assert_eq!(run.failures.values().sum::<u64>(), run.failed);
}

fn reply(to: &mut TcpStream, text: &str) -> bool {
    to.write_all(text.as_bytes()).is_ok()
}

/// The last response on a connection.
fn last(to: &mut TcpStream, text: &str) -> bool {
    reply(to, text);
    false
}

#[test]
fn nginx_logs_as_many_requests_as_were_counted() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("page"), "x".repeat(100_000)).unwrap();
    let mut nginx = Nginx::start(
        folder.path(),
        "keepalive_requests 100; location = /gone { return 404; } location = /hi { return 200 hi; }",
    );
    let (hi, gone, page) = (nginx.url("/hi"), nginx.url("/gone"), nginx.url("/page"));
    let mut counted = BTreeMap::new();
    for args in [
        &[&hi[..], "--requests", "1000", "--flows", "4", "--threads", "2"][..],
        &[&hi, &gone, &page, "--requests", "301", "--flows", "3"],
        &[&hi, "--requests", "500", "--new-connections", "--flows", "5"],
        &[&hi, "--requests", "900", "--pipeline", "8", "--flows", "2"],
        &[&hi, "--requests", "200", "--rate", "1000", "--flows", "2"],
        &[&page, "--requests", "50", "--method", "HEAD"],
    ] {
        let document = http(args);
        assert!(!document.interrupted && document.peer.program.starts_with("nginx/"), "{args:?}");
        let run = &document.runs[0];
        sound(run);
        let asked: u64 =
            args[args.iter().position(|a| *a == "--requests").unwrap() + 1].parse().unwrap();
        assert_eq!((run.transactions, run.failed, run.unfinished), (asked, 0, 0), "{args:?}");
        for (status, n) in &run.statuses {
            *counted.entry(*status).or_default() += n;
        }
        let connects = if run.new_connections { run.transactions } else { run.clients.into() };
        assert!(run.connect_ns.count >= connects, "{args:?}: {:?}", run.connect_ns);
    }
    nginx.stop();
    let mut logged: BTreeMap<u16, u64> = BTreeMap::new();
    for line in nginx.log() {
        *logged.entry(line.split(' ').next().unwrap().parse().unwrap()).or_default() += 1;
    }
    assert_eq!(logged, counted);
    assert_eq!(counted[&404], 100, "the URLs are asked for in turn");
}

#[test]
fn a_server_that_ends_a_connection_every_100_requests_costs_no_request() {
    let folder = tempfile::tempdir().unwrap();
    let nginx =
        Nginx::start(folder.path(), "keepalive_requests 100; location / { return 200 hi; }");
    let run = one(&[&nginx.url("/"), "--requests", "2000", "--flows", "2"]);
    sound(&run);
    assert_eq!((run.transactions, run.failed), (2000, 0));
    assert!((18..=21).contains(&run.reconnects), "{}", run.reconnects);
}

#[test]
fn a_server_that_restarts_in_the_midst_is_connected_to_again_and_its_failures_count() {
    let folder = tempfile::tempdir().unwrap();
    let mut nginx = Nginx::start(folder.path(), "location / { return 200 hi; }");
    let child = Command::new(NETWRIGHT)
        .args(["measure", "http", &nginx.url("/"), "--json", "--duration", "3s", "--flows", "2"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(1200));
    nginx.stop();
    std::thread::sleep(Duration::from_millis(300));
    nginx.run();
    let out = child.wait_with_output().unwrap();
    assert!(out.status.success());
    let document: HttpDocument = serde_json::from_slice(&out.stdout).unwrap();
    let run = &document.runs[0];
    sound(run);
    let refused = run.failures.iter().filter(|(why, _)| why.contains("ECONNREFUSED"));
    assert!(refused.map(|(_, n)| n).sum::<u64>() > 0, "{:?}", run.failures);
    assert!(run.connect_ns.count >= 4, "each flow was connected twice: {:?}", run.connect_ns);
    assert!(run.transactions > 100 && !document.interrupted);
}

fn slow(_: &Request, to: &mut TcpStream) -> bool {
    std::thread::sleep(Duration::from_millis(5));
    reply(to, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab")
        && {
            std::thread::sleep(Duration::from_millis(5));
            true
        }
        && reply(to, "cd")
}

#[test]
fn a_service_time_shows_in_the_first_byte_and_the_rest_in_the_latency() {
    let server = Server::start(slow);
    let run = one(&[&server.url("/"), "--requests", "60", "--flows", "2"]);
    sound(&run);
    // On a busy machine the smallest and the median count: other load only adds.
    let (first, whole) = (&run.first_byte_ns, &run.latency_ns);
    assert!((5_000_000..7_500_000).contains(&first.min), "{first:?}");
    assert!((10_000_000..15_000_000).contains(&whole.min), "{whole:?}");
    assert!(whole.p50 < 40_000_000, "{whole:?}");
    // Two clients of 10 ms each: at most 200 per second, and the window ends with the last.
    assert!((50.0..200.5).contains(&run.transactions_per_s), "{}", run.transactions_per_s);
}

fn stalls_once(r: &Request, to: &mut TcpStream) -> bool {
    if r.number == 200 {
        std::thread::sleep(Duration::from_millis(500));
    }
    plain(r, to)
}

#[test]
fn a_stall_is_seen_by_all_the_requests_that_the_schedule_had_in_it() {
    let server = Server::start(stalls_once);
    let args = ["--rate", "200", "--duration", "3s"];
    let run = one(&[&[server.url("/").as_str()], &args[..]].concat());
    sound(&run);
    // 100 of 600 requests were due while the server hung, and waited 250 ms in the mean. The window
    // ends when its end is noticed, when the last ones may not have begun.
    let due = run.window_ns.0 as f64 * 200.0 / 1e9;
    let reported = run.transactions + run.not_started + run.unfinished;
    assert!((reported as f64 - due).abs() <= 2.0, "every one that was due: {due} {run:?}");
    assert!(run.latency_ns.p90 > 100_000_000, "{:?}", run.latency_ns);
    assert!(run.latency_ns.max >= 490_000_000, "{:?}", run.latency_ns);
    let sent = run.latency_from_send_ns.as_ref().unwrap();
    assert!(sent.p90 < run.latency_ns.p90 / 2, "from sending a single one shows it: {sent:?}");
    assert!(run.send_lag_ns.unwrap().max >= 400_000_000);
    assert_eq!(run.failed, 0);
}

/// Answers the first requests of four connections, and no others.
fn four_at_most(r: &Request, to: &mut TcpStream) -> bool {
    if r.on_connection == 0 && r.number >= 4 {
        std::thread::sleep(Duration::from_secs(5));
        return false;
    }
    std::thread::sleep(Duration::from_millis(50));
    plain(r, to)
}

#[test]
fn connections_that_get_no_answer_are_counted_and_so_are_answers_that_say_no() {
    let server = Server::start(four_at_most);
    let run = one(&[&server.url("/"), "--flows", "6", "--duration", "800ms"]);
    let said = run.warnings.iter().map(Warning::to_string).collect::<Vec<_>>().join("; ");
    assert!(run.transactions > 0 && said.contains("of 6 connections had no answer"), "{said}");
    let server = Server::start(|_, to| reply(to, "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n"));
    let run = one(&[&server.url("/"), "--requests", "50"]);
    let said = run.warnings.iter().map(Warning::to_string).collect::<Vec<_>>().join("; ");
    assert!(said.contains("every response") && said.contains("50 × 404"), "{said}");
    let out = output(NETWRIGHT, &["measure", "http", &server.url("/"), "--congestion", "nosuch"]);
    assert_eq!(out.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&out.stderr).contains("this kernel has"), "{out:?}");
}

fn takes_10_ms(r: &Request, to: &mut TcpStream) -> bool {
    std::thread::sleep(Duration::from_millis(10));
    plain(r, to)
}

#[test]
fn by_schedule_a_server_is_as_fast_as_it_is_however_much_is_asked() {
    let server = Server::start(takes_10_ms);
    let url = server.url("/");
    crate::support::beyond::open_loop_keeps_to_its_capacity(200.0, 2.0, &|args| {
        let all = [&["measure", "http", "--json", &url, "--flows", "2"], args].concat();
        serde_json::from_str(&run(NETWRIGHT, &all)).unwrap()
    });
}

fn chunked(r: &Request, to: &mut TcpStream) -> bool {
    match r.number % 3 {
        0 => {
            reply(to, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel")
                && reply(to, "lo\r\n0\r\n\r\n")
        }
        1 => {
            reply(to, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Made\r\nContent-Length: 0\r\n\r\n")
        }
        // Until the connection closes.
        _ => {
            reply(to, "HTTP/1.0 503 Busy\r\n\r\nlater");
            false
        }
    }
}

#[test]
fn every_way_to_end_a_response_is_understood() {
    let server = Server::start(chunked);
    let run = one(&[&server.url("/"), "--requests", "300"]);
    sound(&run);
    assert_eq!(run.statuses, BTreeMap::from([(200, 100), (201, 100), (503, 100)]));
    assert_eq!((run.failed, server.requests()), (0, 300));
    assert!((99..=100).contains(&run.reconnects), "{}", run.reconnects);
    assert!(run.warnings.iter().any(|w| w.to_string().contains("33.3%")), "{:?}", run.warnings);
}

fn without_length(_: &Request, to: &mut TcpStream) -> bool {
    reply(to, "HTTP/1.0 200 OK\r\n\r\nall of it");
    false
}

#[test]
fn who_is_answered_by_the_end_of_its_connections_is_served() {
    let run = one(&[&Server::start(without_length).url("/"), "--duration", "300ms"]);
    assert!(run.transactions > 0 && run.failed == 0, "{run:?}");
    let unserved = |w: &&Warning| matches!(w, Warning::NotAllServed { silent: 1.., .. });
    assert_eq!(run.warnings.iter().find(unserved), None);
}

#[test]
fn a_port_that_speaks_no_http_ends_soon_with_one_line() {
    let garbage = Server::start(|_, to| last(to, "220 mail.example ESMTP\r\n"));
    let closes = Server::start(|_, _| false);
    for (server, says) in [
        (garbage, "the answer is no HTTP/1 response, 20 times; is it the right port?"),
        (closes, "the server closes every connection without a response, 20 times; does it"),
    ] {
        let url = server.url("/");
        let begun = std::time::Instant::now();
        let out = output(NETWRIGHT, &["measure", "http", &url, "--duration", "20s"]);
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
        let text = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(4), "{text}");
        assert!(text.contains(says.split(", 20").next().unwrap()), "{text}");
        assert!(text.contains(says.rsplit("times; ").next().unwrap()), "{text}");
        assert_eq!(text.lines().count(), 1, "{text}");
        assert_eq!(String::from_utf8_lossy(&out.stdout), "");
    }
}

fn unkind(r: &Request, to: &mut TcpStream) -> bool {
    match r.number % 4 {
        0 => plain(r, to),
        1 => last(to, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"),
        2 => false,
        _ => last(to, "SSH-2.0-OpenSSH_9.2\r\n"),
    }
}

#[test]
fn answers_that_are_half_missing_or_garbage_fail_and_are_named() {
    let server = Server::start(unkind);
    let run = one(&[&server.url("/"), "--requests", "100"]);
    sound(&run);
    assert_eq!((run.transactions, run.failed), (25, 75), "{:?}", run.failures);
    for (why, n) in [
        ("closed by the server within its response", 25),
        ("closed by the server before its response", 25),
        ("the answer is no HTTP/1 response", 25),
    ] {
        assert_eq!(run.failures.get(why), Some(&n), "{:?}", run.failures);
    }
}

fn silent(r: &Request, to: &mut TcpStream) -> bool {
    match r.on_connection {
        0 => plain(r, to),
        _ => {
            std::thread::sleep(Duration::from_secs(2));
            false
        }
    }
}

#[test]
fn a_server_that_never_answers_fails_by_the_time_limit() {
    let server = Server::start(silent);
    let run = one(&[&server.url("/"), "--requests", "6", "--timeout", "100ms"]);
    assert_eq!((run.transactions, run.failed), (3, 3), "{:?}", run.failures);
    assert_eq!(run.failures.keys().next().unwrap(), "no whole response in 100 ms");
}

fn judge(r: &Request, to: &mut TcpStream) -> bool {
    let right = r.head.starts_with("PUT /x?y=1 HTTP/1.1\r\n")
        && r.head.contains("\r\nHost: elsewhere\r\n")
        && r.head.contains("\r\nX-Own: a b\r\n")
        && r.head.matches("Host:").count() == 1
        && r.body == b"{\"a\": 1}";
    let status = if right { "204 Right" } else { "400 Wrong" };
    reply(to, &format!("HTTP/1.1 {status}\r\n\r\n"))
}

#[test]
fn method_headers_and_body_are_sent_as_asked() {
    let server = Server::start(judge);
    let args = ["--method", "PUT", "--header", "X-Own: a b", "--header", "Host: elsewhere"];
    let url = server.url("/x?y=1#part");
    let more = ["--body", "{\"a\": 1}", "--requests", "20"];
    let run = one(&[&[url.as_str()], &args[..], &more].concat());
    assert_eq!(run.statuses, BTreeMap::from([(204, 20)]));
}

#[test]
fn connections_are_as_many_as_asked() {
    let server = Server::start(plain);
    let run = one(&[&server.url("/"), "--requests", "40", "--flows", "4"]);
    assert_eq!((server.connections(), server.requests()), (4, 40));
    assert_eq!(run.connect_ns.count, 4);
    let run = one(&[&server.url("/"), "--requests", "40", "--flows", "4", "--new-connections"]);
    assert_eq!((server.connections(), server.requests()), (44, 80));
    assert_eq!(run.connect_ns.count, 40);
}

#[test]
fn ctrl_c_prints_what_was_measured() {
    let server = Server::start(plain);
    let child = Command::new(NETWRIGHT)
        .args(["measure", "http", &server.url("/"), "--json", "--duration", "60s"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    // SAFETY: our own child, not waited for yet.
    unsafe { libc::kill(i32::try_from(child.id()).unwrap(), libc::SIGINT) };
    let out = child.wait_with_output().unwrap();
    let document: HttpDocument = serde_json::from_slice(&out.stdout).unwrap();
    assert!(document.interrupted && document.runs[0].transactions > 0);
    assert!(document.runs[0].window_ns.0 < 30_000_000_000);
}

#[test]
fn a_result_is_run_again_and_reads_well() {
    let server = Server::start(plain);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("result.json");
    let file = file.to_str().unwrap();
    let args = ["--requests", "200", "--flows", "1,2", "--json", "--output", file];
    run(NETWRIGHT, &[&["measure", "http", &server.url("/")], &args[..]].concat());
    let text = run(NETWRIGHT, &["measure", "--rerun", file]);
    assert_eq!(server.requests(), 800);
    for part in ["GET requests over TCP to http://", "LATENCY P50", "CPU PER REQUEST", "FLOWS"] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
}

#[test]
fn what_cannot_be_is_refused_in_a_line() {
    let server = Server::start(|_, to| last(to, "220 mail.example ESMTP\r\n"));
    let url = server.url("/");
    // A closed port: one that was just free.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let nobody = format!("http://{free}/");
    for (args, code, says) in [
        (&["localhost/x"][..], 2, "write http://localhost/x"),
        (&["http://a/", "http://b/"], 2, "two servers"),
        (&["http://a/", "https://a/"], 2, "two servers"),
        (&[&url, "--header", "nonsense"], 2, "Name: value"),
        (&[&url, "--header", "Content-Length: 3"], 2, "--body"),
        (&[&url, "--method", "A B"], 2, "no method"),
        (&[&url, "--flows", "1", "--threads", "2"], 2, "cannot keep 2 threads busy"),
        (&[&url, "--body-file", "/no/such"], 4, "/no/such"),
        (&[&nobody], 4, "connection refused"),
        (&["http://no-such-host.invalid/"], 4, "does not resolve"),
        (&[&url, "--requests", "5"], 4, "all 5 requests failed: the answer is no HTTP/1 response"),
    ] {
        let out = output(NETWRIGHT, &[&["measure", "http"], args].concat());
        let text = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(code), "{args:?}: {text}");
        assert!(text.contains(says), "{args:?}: {text}");
        assert_eq!(text.lines().count(), 1, "{args:?}: {text}");
    }
}
