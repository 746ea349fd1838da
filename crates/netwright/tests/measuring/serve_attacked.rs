//! Tests of attacks that once blocked `netwright serve`: each client gets an error or a timeout,
//! and the others are served.

use std::{
    io::Write,
    net::TcpStream,
    time::{Duration, Instant},
};

use crate::support::{
    NETWRIGHT,
    hostile::{IDLE_THREADS, frame, greeted, held, receive, server, serves, settled, test},
    output,
    serve::Serve,
};
use serde_json::{Value, json};

/// A started test: its control connection, and one data connection for each flow.
fn begun(serve: &Serve, changes: &Value) -> (TcpStream, Vec<TcpStream>) {
    let mut control = greeted(serve);
    control.write_all(&frame(&test(changes))).unwrap();
    let said = receive(&mut control).unwrap();
    let ready = &said["ready"];
    let port = ready["ports"][0].as_u64().unwrap_or_else(|| panic!("{said}"));
    let text = ready["token"].as_str().unwrap();
    let byte = |i: usize| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap();
    let token: Vec<u8> = (0..16).map(byte).collect();
    let flow = |n: u64| {
        let mut data = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
        data.write_all(&[&b"NWD1"[..], &token, &(n as u32).to_be_bytes()].concat()).unwrap();
        data
    };
    let flows = (0..changes["flows"].as_u64().unwrap_or(1)).map(flow).collect();
    let said = receive(&mut control).unwrap();
    assert!(said.get("connected").is_some(), "{said}");
    (control, flows)
}

/// Work for 1.8 hours in one request.
fn long_work(engine: &str) -> Value {
    json!({
        "kind": { "rtt": { "request_bytes": 1, "response_bytes": 1, "queue_depth": 65_536 } },
        "flows": 2, "service_ns": 100_000_000u64, "engine": engine,
        "max_time_ns": 3_600_000_000_000u64,
    })
}

#[test]
fn a_client_that_has_left_keeps_no_cpu_busy() {
    for engine in ["epoll", "io_uring"] {
        let (serve, _) = server(&["--max-tests", "2"]);
        let all: Vec<_> = (0..2).map(|_| begun(&serve, &long_work(engine))).collect();
        for (_, flows) in &all {
            flows.iter().for_each(|mut f| f.write_all(&[0; 65_536]).unwrap());
        }
        std::thread::sleep(Duration::from_millis(500));
        assert!(held(&serve).threads > IDLE_THREADS, "they are at work");
        drop(all);
        let left = Instant::now();
        settled(&serve, IDLE_THREADS);
        assert!(left.elapsed() < Duration::from_secs(3), "{engine}: {:?}", left.elapsed());
        let before = held(&serve).cpu_ticks;
        std::thread::sleep(Duration::from_secs(1));
        let used = held(&serve).cpu_ticks - before;
        assert!(used < 20, "{engine}: {used} ticks of CPU time a second for nobody");
        serves(&serve);
    }
}

#[test]
fn the_first_signal_ends_the_server_at_work() {
    let (mut serve, _) = server(&[]);
    let all = begun(&serve, &long_work("epoll"));
    all.1.iter().for_each(|mut f| f.write_all(&[0; 65_536]).unwrap());
    std::thread::sleep(Duration::from_millis(300));
    let reported = Instant::now();
    serve.signal(libc::SIGINT);
    assert!(serve.wait().success());
    assert!(reported.elapsed() < Duration::from_secs(3), "{:?}", reported.elapsed());
}

#[test]
fn all_tests_together_have_one_memory() {
    let (serve, before) = server(&["--max-memory", "64M"]);
    let large = json!({
        "kind": { "rtt": { "request_bytes": 8 << 20, "response_bytes": 8 << 20,
            "queue_depth": 1 } },
        "max_time_ns": 20_000_000_000u64,
    });
    let mut held_now = vec![];
    for n in 0..8 {
        let mut control = greeted(&serve);
        control.write_all(&frame(&test(&large))).unwrap();
        let said = receive(&mut control).unwrap();
        match n {
            0..3 => {
                assert!(said.get("ready").is_some(), "{n}: {said}");
                held_now.push(control);
            }
            _ => {
                let why = said["refused"]["why"].as_str().unwrap_or_else(|| panic!("{said}"));
                assert!(why.contains("try again when others have ended"), "{why}");
                assert_eq!(said["refused"]["kind"], "environment");
            }
        }
    }
    // What one client is refused leaves room for others.
    serves(&serve);
    let all = json!({ "kind": large["kind"], "threads": 8, "flows": 8 });
    let mut control = greeted(&serve);
    control.write_all(&frame(&test(&all))).unwrap();
    let said = receive(&mut control).unwrap();
    assert!(said["refused"]["why"].as_str().unwrap().contains("--max-memory"), "{said}");
    assert_eq!(said["refused"]["kind"], "usage");
    drop((held_now, control));
    let after = settled(&serve, IDLE_THREADS);
    assert!(after.rss_kib < before.rss_kib + (16 << 10), "{before:?} {after:?}");
    serves(&serve);
}

#[test]
fn a_secret_is_not_dropped_because_the_server_asks_for_none() {
    let serve = Serve::start(&[]);
    let mut secret = tempfile::NamedTempFile::new().unwrap();
    writeln!(secret, "a long enough secret").unwrap();
    let path = secret.path().to_str().unwrap();
    let args = ["measure", "rtt", serve.target(), "--duration", "200ms", "--secret-file", path];
    let out = output(NETWRIGHT, &args);
    let said = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.status.code(), Some(3), "{said}");
    assert!(said.contains("demands no secret") && said.lines().count() == 1, "{said}");
}

#[test]
fn a_peer_chooses_only_what_is_loaded() {
    let serve = Serve::start(&[]);
    let mut control = greeted(&serve);
    let ask = |name: &str| frame(&test(&json!({ "socket": { "congestion": name } })));
    control.write_all(&ask("nosuchthing")).unwrap();
    let said = receive(&mut control).unwrap();
    assert!(said["refused"]["why"].as_str().unwrap().contains("is not loaded"), "{said}");
    let all = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    let first = all.unwrap().split_ascii_whitespace().next().unwrap().to_owned();
    control.write_all(&ask(&first)).unwrap();
    assert!(receive(&mut control).unwrap().get("ready").is_some());
}
