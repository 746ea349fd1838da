//! Tests of `netwright serve` with clients that flood, stall, lie or vanish: the server stays
//! small, serves the others meanwhile, and frees their resources.

use std::{
    io::Write,
    net::{SocketAddr, TcpStream, UdpSocket},
    process::{Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use crate::support::{
    NETWRIGHT,
    hostile::{
        at_work, dial, forgets, frame, greeted, held, is_closed, receive, server, serves, test,
    },
    run,
    serve::Serve,
};
use serde_json::json;

#[test]
fn a_flood_of_garbage_hinders_nobody() {
    let (serve, before) = server(&[]);
    let over = AtomicBool::new(false);
    let floods = std::thread::scope(|threads| {
        let flood = |seed: u8| {
            let mut count = 0u64;
            let garbage: Vec<u8> = (0..2000u32).map(|n| (n as u8).wrapping_mul(seed)).collect();
            let until = Instant::now() + Duration::from_secs(60);
            while !over.load(Ordering::Relaxed) && Instant::now() < until {
                if let Ok(mut stream) = TcpStream::connect(serve.target()) {
                    let _ = stream.write_all(&garbage);
                    count += 1;
                }
            }
            count
        };
        let floods: Vec<_> = [7, 31].map(|seed| threads.spawn(move || flood(seed))).into();
        (0..3).for_each(|_| serves(&serve));
        over.store(true, Ordering::Relaxed);
        floods.into_iter().map(|f| f.join().unwrap()).sum::<u64>()
    });
    assert!(floods > 100, "{floods}");
    serves(&serve);
    forgets(&serve, before);
}

#[test]
fn lying_frames_are_turned_away_at_once() {
    let (serve, before) = server(&[]);
    let nested = format!("{}{}", "[".repeat(2000), "]".repeat(2000));
    let mut deep = b"NWT1".to_vec();
    deep.extend(u32::try_from(nested.len()).unwrap().to_be_bytes());
    deep.extend(nested.as_bytes());
    let lies: [&[u8]; 6] = [
        b"NWT1\xff\xff\xff\xff",
        b"NWT1\x00\x40\x00\x00",
        b"NWT1\x00\x00\x00\x00",
        b"NWT1\x00\x00\x00\x04{]{]",
        b"GET / HTTP/1.1\r\n\r\n",
        &deep,
    ];
    for lie in lies {
        let mut stream = dial(&serve);
        stream.write_all(lie).unwrap();
        assert!(is_closed(&mut stream, Duration::from_secs(5)), "{lie:?}");
    }
    // After the greeting, too.
    for lie in [&b"NWT1\xff\xff\xff\xff"[..], &deep] {
        let mut control = greeted(&serve);
        control.write_all(lie).unwrap();
        assert!(is_closed(&mut control, Duration::from_secs(5)), "{lie:?}");
    }
    serves(&serve);
    forgets(&serve, before);
}

#[test]
fn slow_and_half_open_clients_lose_their_place_after_a_while() {
    let (serve, before) = server(&[]);
    let hello = json!({ "hello": { "protocol": 1, "program": "slow", "nonce": "00",
        "proof": null, "boot_id": "" } });
    let bytes = frame(&hello);
    let mut slow: Vec<TcpStream> = (0..50).map(|_| dial(&serve)).collect();
    let mut silent: Vec<TcpStream> = (0..50).map(|_| dial(&serve)).collect();
    let begun = Instant::now();
    for (second, byte) in bytes.iter().enumerate().take(13) {
        for stream in &mut slow {
            let _ = stream.write_all(&[*byte]);
        }
        if second % 4 == 0 {
            serves(&serve);
        }
        let next = begun + Duration::from_secs(second as u64 + 1);
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    for stream in slow.iter_mut().chain(&mut silent) {
        assert!(is_closed(stream, Duration::from_secs(10)), "it is not forgotten");
    }
    forgets(&serve, before);
}

#[test]
fn greeting_and_falling_silent_takes_no_tests_place() {
    let (serve, before) = server(&["--max-tests", "2", "--idle", "3s"]);
    let mut all: Vec<TcpStream> = (0..100).map(|_| greeted(&serve)).collect();
    assert!(held(&serve).threads <= before.threads + 1, "silence takes no thread");
    serves(&serve);
    for control in &mut all {
        let said = receive(control).expect("it is told why");
        assert!(said["failed"]["why"].as_str().unwrap().contains("too long"), "{said}");
        assert!(receive(control).is_none());
    }
    // More tests than allowed: a line, and the running ones are not disturbed.
    let ask = test(&json!({ "max_time_ns": 20_000_000_000u64 }));
    let mut running: Vec<TcpStream> = (0..3).map(|_| greeted(&serve)).collect();
    for control in &mut running {
        control.write_all(&frame(&ask)).unwrap();
        std::thread::sleep(Duration::from_millis(300));
    }
    let last = receive(&mut running[2]).unwrap();
    assert!(last["failed"]["why"].as_str().unwrap().contains("2 tests run"), "{last}");
    let first = receive(&mut running[0]).unwrap();
    assert!(first.get("ready").is_some(), "{first}");
    drop(running);
    forgets(&serve, before);
}

#[test]
fn absurd_tests_are_refused_in_a_line_each() {
    let (serve, before) = server(&[]);
    let rtt = |request: u64, response: u64, queue_depth: u64| {
        json!({ "rtt": { "request_bytes": request, "response_bytes": response,
            "queue_depth": queue_depth } })
    };
    let from: Vec<String> = (0..1000).map(|n| format!("10.0.{}.{}", n / 250, n % 250)).collect();
    let connect = json!({ "connect": { "request_bytes": 0, "response_bytes": 0,
        "close": "peer", "from": from } });
    let absurd = [
        json!({ "kind": rtt(0, 1, 1) }),
        json!({ "kind": rtt(1 << 40, 1, 1) }),
        json!({ "kind": rtt(1, u64::MAX, 1) }),
        json!({ "kind": rtt(1, 1, 0) }),
        json!({ "kind": rtt(1, 1, 1_000_000) }),
        json!({ "kind": rtt(1, 66_000, 1), "transport": "udp" }),
        json!({ "kind": rtt(16 << 20, 16 << 20, 1), "threads": 256, "flows": 256 }),
        json!({ "kind": connect.clone() }),
        json!({ "kind": connect, "transport": "udp" }),
        json!({ "flows": 0 }),
        json!({ "flows": 4_000_000_000u32 }),
        json!({ "threads": 0 }),
        json!({ "threads": 1_000_000 }),
        json!({ "threads": 256, "flows": 256, "wait": "spin" }),
        json!({ "max_time_ns": u64::MAX }),
        json!({ "pin": { "list": "60000" } }),
        json!({ "transport": "unix" }),
        json!({ "socket": { "congestion": "no such thing" } }),
        json!({ "socket": { "mss_bytes": u32::MAX } }),
        json!({ "socket": { "congestion": "x".repeat(1000) } }),
        json!({ "kind": "look", "threads": u32::MAX, "flows": 0 }),
        json!({ "kind": "look", "threads": 0, "flows": u32::MAX }),
        json!({ "service_ns": u64::MAX }),
    ];
    let mut control = greeted(&serve);
    for changes in &absurd {
        control.write_all(&frame(&test(changes))).unwrap();
        let said = receive(&mut control).unwrap_or_else(|| panic!("no answer to {changes}"));
        let why = said["refused"]["why"].as_str().unwrap_or_else(|| panic!("{changes}: {said}"));
        assert!(!why.is_empty() && !why.contains('\n') && why.len() < 200, "{why}");
    }
    // A refused client may make another request.
    control.write_all(&frame(&test(&json!({})))).unwrap();
    assert!(receive(&mut control).unwrap().get("ready").is_some());
    drop(control);
    // Large messages within the limits do not crash it.
    let args = ["measure", "rtt", serve.target(), "--duration", "2s", "--request", "1M"];
    run(NETWRIGHT, &[&args[..], &["--flows", "2", "--queue-depth", "2"]].concat());
    serves(&serve);
    forgets(&serve, before);
}

#[test]
fn a_client_that_is_killed_in_the_middle_is_forgotten() {
    let (serve, before) = server(&[]);
    for args in [
        &["rtt", "--flows", "8", "--threads", "2"][..],
        &["rtt", "--udp"],
        &["rtt", "--udp", "--flows", "5", "--rate", "100"],
        &["connect", "--flows", "8", "--request", "10", "--close", "local"],
    ] {
        let (kind, rest) = args.split_first().unwrap();
        let mut child = Command::new(NETWRIGHT)
            .args(["measure", kind, serve.target(), "--duration", "1h"])
            .args(rest)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        at_work(&serve, before.threads + 1);
        std::thread::sleep(Duration::from_millis(300));
        child.kill().unwrap();
        child.wait().unwrap();
        forgets(&serve, before);
    }
    serves(&serve);
}

/// Raises this process's limit of descriptors to the maximum.
fn raise_limit() -> u64 {
    // SAFETY: a zeroed limit is valid; the calls read and write it.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        assert_eq!(libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit), 0);
        limit.rlim_cur = limit.rlim_max;
        assert_eq!(libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit), 0);
        limit.rlim_cur
    }
}

#[test]
fn ten_thousand_idle_connections_cost_little() {
    const IDLE: u64 = 10_000;
    let limit = raise_limit();
    assert!(limit >= IDLE * 4 / 3 + 200, "this test needs `ulimit -Hn` of 14000, not {limit}");
    let (serve, before) = server(&[]);
    let all: Vec<TcpStream> = (0..IDLE).map(|_| dial(&serve)).collect();
    let begun = Instant::now();
    while held(&serve).descriptors < before.descriptors + IDLE {
        assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", held(&serve));
        std::thread::sleep(Duration::from_millis(20));
    }
    let full = held(&serve);
    let each = (full.rss_kib - before.rss_kib.min(full.rss_kib)) * 1024 / IDLE;
    eprintln!("{IDLE} idle connections: {} KiB before, {} KiB then", before.rss_kib, full.rss_kib);
    assert!(each < 1500, "{each} bytes of memory for each: {before:?} {full:?}");
    assert!(full.threads <= before.threads, "{full:?}");
    serves(&serve);
    drop(all);
    forgets(&serve, before);
}

#[test]
fn datagrams_of_strangers_get_no_answer() {
    let serve = Serve::start(&[]);
    let mut control = greeted(&serve);
    let kind = json!({ "rtt": { "request_bytes": 1, "response_bytes": 60_000,
        "queue_depth": 1 } });
    // Two flows on one socket: it stays open to everybody while it serves.
    let changes = json!({ "kind": kind, "transport": "udp", "flows": 2,
        "max_time_ns": 20_000_000_000u64 });
    control.write_all(&frame(&test(&changes))).unwrap();
    let ready = receive(&mut control).unwrap()["ready"].clone();
    let port = u16::try_from(ready["ports"][0].as_u64().unwrap()).unwrap();
    let to = SocketAddr::from(([127, 0, 0, 1], port));
    let token: Vec<u8> = (0..16)
        .map(|i| u8::from_str_radix(&ready["token"].as_str().unwrap()[2 * i..2 * i + 2], 16))
        .collect::<Result<_, _>>()
        .unwrap();
    let greeting = |flow: u32| [&b"NWD1"[..], &token, &flow.to_be_bytes()].concat();
    let socket = |from: &str| {
        let socket = UdpSocket::bind((from, 0)).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        socket
    };
    let answer = |socket: &UdpSocket, what: &[u8]| -> Option<usize> {
        socket.send_to(what, to).unwrap();
        socket.recv_from(&mut [0u8; 65_536]).ok().map(|(n, _)| n)
    };
    let stranger = socket("127.0.0.1");
    assert_eq!(answer(&stranger, b"hello?"), None);
    assert_eq!(answer(&stranger, &[0; 24]), None);
    // With the token, but from another address: nobody can redirect answers.
    assert_eq!(answer(&socket("127.0.0.2"), &greeting(0)), None);
    let flows = [socket("127.0.0.1"), socket("127.0.0.1")];
    for (n, flow) in flows.iter().enumerate() {
        // An answer that must come may be late.
        flow.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let said = greeting(n as u32);
        assert_eq!(answer(flow, &said), Some(said.len()), "never more than was said");
    }
    assert!(receive(&mut control).unwrap().get("connected").is_some());
    assert_eq!(answer(&flows[0], b"x"), Some(60_000));
    assert_eq!(answer(&stranger, b"x"), None, "while it serves, too");
}
