//! Tests of Redis commands with a real redis-server: its counts, injected delays and drops, and its
//! errors.

use std::time::Duration;

use crate::support::{NETWRIGHT, output, redis::Redis, run, tls::Authority};
use model::measure::{RedisDocument, RedisRun, Transport};

fn redis(args: &[&str]) -> RedisDocument {
    let all = [&["measure", "redis", "--json", "--quiet"], args].concat();
    serde_json::from_str(&run(NETWRIGHT, &all)).unwrap()
}

fn one(args: &[&str]) -> RedisRun {
    redis(args).runs.remove(0)
}

/// The line and the exit code of a failing command.
fn refused(args: &[&str]) -> (i32, String) {
    let out = output(NETWRIGHT, &[&["measure", "redis", "--quiet"], args].concat());
    let text = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(text.lines().count(), 1, "{args:?}: {text}");
    (out.status.code().unwrap(), text)
}

#[test]
fn the_server_counts_as_many_commands_as_the_result_has() {
    let server = Redis::start(&[]);
    let (url, socket) = (server.url(), format!("unix:{}", server.socket().display()));
    let mut calls = 0;
    for args in [
        &[&url[..], "--flows", "1"][..],
        &[&url, "--flows", "8", "--threads", "2"],
        &[&url, "--flows", "3", "--pipeline", "16"],
        &[&url, "--flows", "4", "--new-connections"],
        &[&url, "--flows", "2", "--rate", "2000"],
        &[&socket, "--flows", "2"],
    ] {
        let document = redis(&[args, &["--requests", "900"]].concat());
        let run = &document.runs[0];
        assert_eq!((run.transactions, run.failed, run.unfinished), (900, 0, 0), "{args:?}");
        assert_eq!(run.latency_ns.count, 900);
        // `GET key:000000012345` and `$-1`.
        assert_eq!((run.request_bytes, run.response_bytes), (900 * 36, 900 * 5), "{args:?}");
        assert!(document.peer.program.starts_with("Redis "), "{:?}", document.peer);
        let unix = args[0] == socket;
        assert_eq!(run.transport, if unix { Transport::Unix } else { Transport::Tcp });
        calls += 900;
        assert_eq!(server.calls("get"), calls, "{args:?}");
    }
}

#[test]
fn keys_and_data_are_as_asked_for_and_stay_within_their_database() {
    let server = Redis::start(&[]);
    let set = ["--command", "SET k:{key} {data}", "--data", "100", "--keys", "50"];
    let url = format!("{}/3", server.url());
    let run = one(&[&[&url[..], "--requests", "2000", "--pipeline", "8"], &set[..]].concat());
    assert_eq!((run.transactions, run.failed), (2000, 0));
    // Of 50 keys 2,000 draws miss one with a probability below 1e-15.
    assert_eq!(
        (server.ask(&["-n", "3", "DBSIZE"]), server.ask(&["DBSIZE"])),
        ("50".into(), "0".into())
    );
    assert_eq!(server.ask(&["-n", "3", "STRLEN", "k:000000000049"]), "100");
    // A value of 100 bytes comes back whole: `$100`, it, and two ends of a line.
    let run = one(&[&url, "--requests", "500", "--command", "GET k:{key}", "--keys", "50"]);
    assert_eq!(run.response_bytes, 500 * (6 + 102));
    // Two in turn.
    let two = ["--command", "INCR n", "--command", "DECR n"];
    let run = one(&[&[&url[..], "--requests", "100"], &two[..]].concat());
    assert_eq!((run.transactions, server.calls("incr"), server.calls("decr")), (100, 50, 50));
    assert_eq!(server.ask(&["-n", "3", "GET", "n"]), "0");
}

#[test]
fn a_service_time_is_in_the_latency_and_queueing_behind_it_too() {
    let server = Redis::start(&["--enable-debug-command", "yes"]);
    let sleep = ["--command", "DEBUG SLEEP 0.01", "--requests", "40"];
    // The server runs one command at a time: each of n clients waits for all.
    for flows in [1u32, 4] {
        let flows_text = flows.to_string();
        let run = one(&[&[&server.url()[..], "--flows", &flows_text], &sleep[..]].concat());
        let due = 10e6 * f64::from(flows);
        let ratio = run.latency_ns.p50 as f64 / due;
        assert!((0.99..1.25).contains(&ratio), "{flows} flows: {ratio}");
    }
    // With a schedule of twice its capacity: latency from the schedule grows, latency from sending
    // does not.
    let run = one(&[&[&server.url()[..], "--rate", "200"], &sleep[..]].concat());
    let (all, service) = (run.latency_ns.max, run.latency_from_send_ns.unwrap().p50);
    assert!((10e6..13e6).contains(&(service as f64)), "{service}");
    // The 40th is due after 195 ms and completes after 400.
    assert!((190e6..300e6).contains(&(all as f64)), "{all}");
}

#[test]
fn errors_are_failures_under_their_own_names() {
    let server = Redis::start(&[]);
    server.ask(&["LPUSH", "l", "1"]);
    let two = ["--command", "GET l", "--command", "GET k"];
    let run = one(&[&[&server.url()[..], "--requests", "100"], &two[..]].concat());
    assert_eq!((run.transactions, run.failed), (50, 50));
    let (why, n) = run.failures.first_key_value().unwrap();
    assert!(why.starts_with("WRONGTYPE: Operation against a key"), "{why}");
    assert_eq!(*n, 50);
    let (code, text) = refused(&[&server.url(), "--duration", "100ms", "--command", "NOSUCH x"]);
    assert!(code == 4 && text.contains("unknown command"), "{text}");
}

#[test]
fn who_one_is_comes_from_the_url_or_the_environment_and_stands_in_no_result() {
    let server =
        Redis::start(&["--user", "app", "on", ">s3cret", "~*", "+@all", "--requirepass", "oth3r"]);
    let url = server.url();
    let (code, text) = refused(&[&url, "--duration", "100ms"]);
    assert!(code == 4 && text.contains("NOAUTH") && text.contains("REDISCLI_AUTH"), "{text}");
    let with = |who: &str| url.replace("redis://", &format!("redis://{who}@"));
    let (code, text) = refused(&[&with("app:wrong"), "--duration", "100ms"]);
    assert!(code == 4 && text.contains("WRONGPASS") && !text.contains("wrong@"), "{text}");
    for who in ["app:s3cret", ":oth3r"] {
        let document = redis(&[&with(who), "--requests", "100", "--new-connections"]);
        assert_eq!((document.runs[0].transactions, document.runs[0].failed), (100, 0));
        let text = serde_json::to_string(&document).unwrap();
        assert!(!text.contains("s3cret") && !text.contains("oth3r"), "{text}");
    }
    let mut command = std::process::Command::new(NETWRIGHT);
    command.args(["measure", "redis", &with("app"), "--requests", "10", "--json", "--quiet"]);
    let out = command.env("REDISCLI_AUTH", "s3cret").output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
}

#[test]
fn under_tls_the_certificate_is_checked() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new(folder.path());
    authority.signs("s", "DNS:localhost,IP:127.0.0.1", 30);
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let _server = Redis::start(&[
        "--tls-port",
        &port.to_string(),
        "--tls-cert-file",
        &file("s.crt"),
        "--tls-key-file",
        &file("s.key"),
        "--tls-ca-cert-file",
        &file("ca.crt"),
        "--tls-auth-clients",
        "no",
    ]);
    let url = format!("rediss://localhost:{port}");
    let run = one(&[&url, "--ca", &file("ca.crt"), "--requests", "500", "--pipeline", "4"]);
    let tls = run.tls.unwrap();
    assert_eq!((run.transactions, tls.version.as_str(), tls.verified), (500, "TLS 1.3", true));
    assert!(run.tls_handshake_ns.unwrap().count >= 1);
    let (code, text) = refused(&[&url, "--duration", "100ms"]);
    assert!(code == 4 && text.contains("--ca"), "{text}");
    let plain = format!("redis://localhost:{port}");
    let (code, _) = refused(&[&plain, "--duration", "100ms"]);
    assert_eq!(code, 4);
}

#[test]
fn a_server_that_ends_in_the_middle_leaves_what_was_measured() {
    let mut server = Redis::start(&[]);
    let url = server.url();
    let measuring = std::thread::spawn(move || {
        one(&[&url, "--flows", "4", "--duration", "2s", "--warmup", "0s"])
    });
    std::thread::sleep(Duration::from_millis(700));
    server.stop();
    std::thread::sleep(Duration::from_millis(300));
    server.run();
    let run = measuring.join().unwrap();
    assert!(run.transactions > 1000 && run.failed > 0, "{run:?}");
    assert_eq!(run.failures.values().sum::<u64>(), run.failed);
    assert!(run.reopened >= 4, "{run:?}");
    // Four connections were down for 300 ms, and until the server was back.
    let away = run.disconnected_ns.unwrap().0 as f64 / 4.0;
    assert!((300e6..900e6).contains(&away), "{away}");
}

#[test]
fn more_connections_than_it_admits_and_what_is_no_redis_are_said() {
    let server = Redis::start(&["--maxclients", "8"]);
    let run = one(&[&server.url(), "--flows", "20", "--duration", "500ms"]);
    let text = format!("{:?}", run.warnings);
    assert!(text.contains("maxclients") && text.contains("max number of clients"), "{text}");
    let http = crate::support::http::Server::start(crate::support::http::plain);
    let (code, text) = refused(&[&http.url("").replace("http:", "redis:"), "--duration", "100ms"]);
    assert_eq!(code, 4, "{text}");
    for (args, says) in [
        (&["redis://h", "--command", "MONITOR"][..], "one reply"),
        (&["h:6379"], "redis:// is missing"),
        (&["redis://h", "--command", "GET 'a"], "a quote is open"),
    ] {
        let (code, text) = refused(args);
        assert!(code == 2 && text.contains(says), "{text}");
    }
}
