//! A manual client of `netwright serve`, and the server's resources meanwhile.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    io::{ErrorKind, Read, Write},
    net::TcpStream,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{NETWRIGHT, run, serve::Serve};

/// The resources of the server: memory, threads, descriptors.
#[derive(Debug, Clone, Copy)]
pub struct HeldConnections {
    pub threads: u64,
    pub descriptors: u64,
    pub rss_kib: u64,
    /// CPU time of all its threads, in ticks of 10 ms.
    pub cpu_ticks: u64,
}

fn cpu_ticks(folder: &str) -> u64 {
    let stat = std::fs::read_to_string(format!("{folder}/stat")).expect("the server is gone");
    let after = stat.rsplit_once(')').unwrap().1;
    after.split_ascii_whitespace().skip(11).take(2).map(|n| n.parse::<u64>().unwrap()).sum()
}

/// Reads the present resources.
pub fn held(serve: &Serve) -> HeldConnections {
    let folder = format!("/proc/{}", serve.pid());
    let status = std::fs::read_to_string(format!("{folder}/status")).expect("the server is gone");
    let field = |name: &str| -> u64 {
        let line = status.lines().find_map(|l| l.strip_prefix(name)).unwrap();
        line.split_ascii_whitespace().next().unwrap().parse().unwrap()
    };
    HeldConnections {
        threads: field("Threads:"),
        rss_kib: field("VmRSS:"),
        cpu_ticks: cpu_ticks(&folder),
        descriptors: std::fs::read_dir(format!("{folder}/fd")).unwrap().count() as u64,
    }
}

/// A measurement by a correct client.
pub fn serves(serve: &Serve) {
    let args = ["measure", "rtt", serve.target(), "--duration", "400ms", "--json"];
    let document: Value = serde_json::from_str(&run(NETWRIGHT, &args)).unwrap();
    assert!(document["runs"][0]["transactions"].as_u64().unwrap() > 0, "{document}");
}

/// The threads of an idle server: one for clients, one for the log.
pub const IDLE_THREADS: u64 = 2;

/// A server after one measurement, so that its memory is warm; with its resources.
pub fn server(args: &[&str]) -> (Serve, HeldConnections) {
    let serve = Serve::start(args);
    serves(&serve);
    let before = settled(&serve, IDLE_THREADS);
    (serve, before)
}

/// Waits until a test runs at a server, which had this many threads before.
pub fn at_work(serve: &Serve, threads: u64) {
    let begun = Instant::now();
    while held(serve).threads <= threads {
        assert!(begun.elapsed() < Duration::from_secs(20), "no test began");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Its resources once it is back to this many threads.
pub fn settled(serve: &Serve, threads: u64) -> HeldConnections {
    let begun = Instant::now();
    loop {
        let now = held(serve);
        if now.threads <= threads {
            return now;
        }
        assert!(begun.elapsed() < Duration::from_secs(40), "threads remain: {now:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Waits until it holds no more than before, except for memory that the allocator keeps.
pub fn forgets(serve: &Serve, before: HeldConnections) {
    const KEPT_KIB: u64 = 16 << 10;
    let begun = Instant::now();
    loop {
        let now = held(serve);
        if now.threads <= before.threads
            && now.descriptors <= before.descriptors
            && now.rss_kib <= before.rss_kib + KEPT_KIB
        {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(40), "{before:?} became {now:?}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// A new control connection, with nothing sent.
pub fn dial(serve: &Serve) -> TcpStream {
    let stream = TcpStream::connect(serve.target()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream
}

/// A frame of our own protocol.
pub fn frame(message: &Value) -> Vec<u8> {
    let text = message.to_string();
    let mut all = b"NWT1".to_vec();
    all.extend(u32::try_from(text.len()).unwrap().to_be_bytes());
    all.extend(text.as_bytes());
    all
}

/// The next frame; `None` at the end.
pub fn receive(control: &mut TcpStream) -> Option<Value> {
    let mut head = [0u8; 8];
    control.read_exact(&mut head).ok()?;
    assert_eq!(&head[..4], b"NWT1");
    let mut text = vec![0; u32::from_be_bytes(head[4..].try_into().unwrap()) as usize];
    control.read_exact(&mut text).ok()?;
    Some(serde_json::from_slice(&text).unwrap())
}

pub fn greeted(serve: &Serve) -> TcpStream {
    let mut control = dial(serve);
    assert!(receive(&mut control).unwrap().get("hello").is_some());
    let hello = json!({ "protocol": 1, "program": "by hand", "nonce": "00", "proof": null,
        "boot_id": "" });
    control.write_all(&frame(&json!({ "hello": hello }))).unwrap();
    assert!(receive(&mut control).unwrap().get("welcome").is_some());
    control
}

/// A small test, with these parts of it changed.
pub fn test(changes: &Value) -> Value {
    let mut test = json!({
        "kind": { "rtt": { "request_bytes": 1, "response_bytes": 1, "queue_depth": 1 } },
        "transport": "tcp", "flows": 1, "threads": 1, "wait": "block", "pin": "no",
        "local_cpus": "", "socket": {}, "max_time_ns": 1_000_000_000u64,
    });
    for (key, value) in changes.as_object().unwrap() {
        test[key] = value.clone();
    }
    json!({ "test": test })
}

/// Whether the server closes a connection within a time; its output until then is discarded.
pub fn is_closed(stream: &mut TcpStream, within: Duration) -> bool {
    let until = Instant::now() + within;
    let mut room = [0u8; 4096];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return false;
        }
        stream.set_read_timeout(Some(left)).unwrap();
        match stream.read(&mut room) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => return true,
        }
    }
}
