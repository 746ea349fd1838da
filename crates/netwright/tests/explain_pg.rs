//! `explain pg://` against a real PostgreSQL: what a transaction moves against a capture of
//! headers, its service time against a query that spins by the server's own clock.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use std::{
    process::{Command, Output},
    sync::{LazyLock, Mutex, MutexGuard, PoisonError},
};

use model::{explain::ExplainDocument, measure::PgDocument};
use support::{NETWRIGHT, capture::Capture, needs_root, postgres::Postgres, serve::Serve};

/// One server for all, with pgbench's tables.
static SERVER: LazyLock<Postgres> = LazyLock::new(|| {
    let server = Postgres::start();
    let made = server.tool("pgbench").args(["-i", "-q", "-s", "1"]).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    server.sql(
        "create function spin(ms float) returns void language plpgsql as $$ declare t timestamptz \
         := clock_timestamp() + make_interval(secs => ms / 1000.0); begin while \
         clock_timestamp() < t loop end loop; end $$",
    );
    server
});

/// Rounds that take turns with another test's say little.
static ALONE: Mutex<()> = Mutex::new(());

/// Looks until one is good enough.
const LOOKS: u32 = 5;

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Without what this process's environment says of servers.
fn netwright(args: &[&str]) -> Output {
    let mut command = Command::new(NETWRIGHT);
    for (key, _) in std::env::vars_os() {
        if key.to_string_lossy().starts_with("PG") {
            command.env_remove(key);
        }
    }
    command.env("HOME", "/nonexistent").args(args).output().unwrap()
}

/// Short rounds, JSON. Exit code 1 is an answer too: inconclusive. Where others have all CPUs a
/// round may come to nothing, in spite of being tried again.
fn explain(args: &[&str]) -> ExplainDocument {
    let url = SERVER.url("postgres");
    let all = ["explain", &url, "--json", "--duration", "1s", "--round", "60ms"];
    let looks = (0..LOOKS).find_map(|_| {
        let out = netwright(&[&all[..], args].concat());
        let said = String::from_utf8_lossy(&out.stderr);
        if out.status.code() == Some(4) && said.contains("answered") {
            return None;
        }
        let read = serde_json::from_slice(&out.stdout);
        let document: ExplainDocument = read.unwrap_or_else(|e| panic!("{e}: {said}"));
        assert_eq!(out.status.code(), Some(i32::from(!document.sum.conclusive)), "{said}");
        Some(document)
    });
    looks.expect("nothing was ever answered")
}

/// A script file of the test's own.
fn script(text: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    file
}

/// What so many transactions moved as counted here, and as captured: sends, receives, bytes sent
/// and received.
fn moved(args: &[&str], transactions: u32) -> ([u64; 4], [u64; 4]) {
    let capture = Capture::of_loopback(SERVER.port);
    let (url, n) = (SERVER.url("postgres"), transactions.to_string());
    let all = ["measure", "pg", &url, "--json", "--seed", "5", "--transactions", &n];
    let out = netwright(&[&all[..], args].concat());
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let seen = capture.end();
    let run = serde_json::from_slice::<PgDocument>(&out.stdout).unwrap().runs.remove(0);
    assert_eq!(run.transactions, u64::from(transactions));
    let m = run.moved;
    let ours = [m.sends, m.receives, m.sent_bytes, m.received_bytes];
    (ours, [seen.to.segments, seen.from.segments, seen.to.bytes, seen.from.bytes])
}

/// Both of more transactions and of fewer: the sessions' beginnings are the same in both.
#[test]
fn what_a_transaction_moves_is_what_a_capture_of_headers_sees() {
    needs_root();
    let _alone = alone();
    for args in [
        &["--script", "select1", "--protocol", "prepared"][..],
        &["--script", "tpcb-like"],
        &["--script", "tpcb-like", "--protocol", "extended", "--pipeline"],
    ] {
        let mut seen = vec![];
        let good = (0..LOOKS).any(|_| {
            let ((few, few_seen), (many, many_seen)) = (moved(args, 20), moved(args, 220));
            let less = |a: [u64; 4], b: [u64; 4]| -> Vec<u64> {
                a.iter().zip(b).map(|(a, b)| a.saturating_sub(b)).collect()
            };
            let (counted, captured) = (less(many, few), less(many_seen, few_seen));
            seen.push((counted.clone(), captured.clone()));
            // Bytes to the last one. Where a CPU is busy two segments may come as one, and what a
            // capture has no room for is lost.
            counted[2..] == captured[2..] && counted[..2].iter().zip(&captured).all(|(a, b)| a <= b)
        });
        assert!(good, "{args:?}: counted, captured: {seen:?}");
    }
}

#[test]
fn the_exchange_is_learned_from_the_wire() {
    let _alone = alone();
    for (name, trips, network) in [("select1", 1.0, 1.0), ("tpcb-like", 7.0, 7.0)] {
        let d = explain(&["--script", name, "--protocol", "prepared"]);
        assert!((d.exchange.round_trips - trips).abs() < 0.02, "{name}: {:?}", d.exchange);
        assert!((d.exchange.sends - trips).abs() < 0.02, "{name}: {:?}", d.exchange);
        assert!((d.exchange.receives / trips - 1.0).abs() < 0.05, "{name}: {:?}", d.exchange);
        assert_eq!(d.exchange.messages, 2 * trips as u32, "{name}");
        // A round trip on loopback takes microseconds; all of a transaction's are in its network.
        assert!(d.typical.network_ns > 2_000.0 * network, "{name}: {:?}", d.typical);
        assert!(d.target.starts_with("postgres://") && d.responder.starts_with("127.0.0.1:"));
    }
}

#[test]
fn the_service_time_of_all_round_trips_is_recovered() {
    let _alone = alone();
    let twice = script("select spin(0.5);\nselect spin(1);\n");
    let name = twice.path().to_str().unwrap();
    let mut seen = vec![];
    // With a given responder, too, which the network alone is then measured with.
    let serve = Serve::start(&[]);
    let good = (0..LOOKS).any(|n| {
        let given = ["--responder", serve.target()];
        let given = if n % 2 == 1 { &given[..] } else { &[] };
        let d = explain(&[&["--script", name], given].concat());
        assert!((d.exchange.round_trips - 2.0).abs() < 0.02, "{:?}", d.exchange);
        assert!(n % 2 == 0 || d.responder == serve.target(), "{}", d.responder);
        seen.push(d.typical);
        // The spinning, and what it takes to get to it twice. So short that most transactions are
        // through before a busy machine gives the CPU to somebody else.
        (1.45e6..2.1e6).contains(&d.typical.service_ns)
    });
    assert!(good, "{seen:?}");
}

/// A path adds its round trip as often as a transaction makes one; one to the same host adds next
/// to nothing.
#[test]
fn another_path_is_added_once_for_each_round_trip() {
    let _alone = alone();
    let serve = Serve::start(&[]);
    let host = format!("host={}", serve.target());
    let twice = script("select 1;\nselect 2;\n");
    let name = twice.path().to_str().unwrap();
    let d = explain(&["--script", name, "--path", "rtt=20ms", "--path", &host]);
    let [slow, same] = &d.elsewhere[..] else { panic!("{:?}", d.elsewhere) };
    let network = d.components.iter().find(|c| c.name == "network").unwrap().ns;
    assert!((slow.added_ns + network - 40e6).abs() < 0.5e6, "{slow:?}, network {network}");
    assert_eq!((slow.path.as_str(), same.path.as_str()), ("rtt=20 ms", host.as_str()));
    assert!(same.added_ns.abs() < 20e6, "{same:?}");
    let there = |path: &str| d.predictions.iter().find(|p| p.path == path).unwrap();
    let one = there("rtt=20 ms");
    let cycle = 1e9 / there("this").predicted_per_s + slow.added_ns + slow.idle_ns;
    assert!((one.predicted_per_s * cycle / 1e9 - 1.0).abs() < 0.01, "{one:?} {slow:?}");
    assert!(there(&host).predicted_per_s > one.predicted_per_s, "{:?}", d.predictions);
}

#[test]
fn what_cannot_be_explained_is_said_in_a_line() {
    let url = SERVER.url("postgres:geheim");
    let socket =
        format!("pg://postgres@/postgres?host={}&port={}", SERVER.folder().display(), SERVER.port);
    let nobody = "pg://postgres@127.0.0.1:1/postgres";
    for (args, code, says) in [
        (&[socket.as_str()][..], 2, "Unix socket"),
        (&[nobody], 4, "127.0.0.1"),
        (&[&url, "--script", "/nonexistent"], 4, "/nonexistent"),
        (&[&url, "--script", "select-only@x"], 2, "select-only@x"),
        (&["pg://db1/x?speed=fast"], 2, "speed"),
    ] {
        let out = netwright(&[&["explain", "--quiet"], args].concat());
        let said = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(code), "{args:?}: {said}");
        assert!(said.contains(says) && said.trim().lines().count() == 1, "{args:?}: {said}");
        assert!(out.stdout.is_empty() && !said.contains("geheim"), "{said}");
    }
    let _alone = alone();
    let all = ["explain", &url, "--script", "select1", "--duration", "1s", "--round", "60ms"];
    // Others may have all CPUs for a round.
    let text = (0..LOOKS).map(|_| String::from_utf8(netwright(&all).stdout).unwrap());
    let text = text.into_iter().find(|t| !t.is_empty()).unwrap();
    assert!(text.contains("postgres@127.0.0.1") && !text.contains("geheim"), "{text}");
}
