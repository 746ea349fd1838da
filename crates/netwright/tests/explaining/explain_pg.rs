//! Tests of `explain pg://` against a real PostgreSQL. A transaction's messages are compared with a
//! capture of headers, its service time with a query that spins by the server's clock.

use std::{
    io::Write,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::{LazyLock, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use crate::support::{
    NETWRIGHT,
    capture::Capture,
    looks::in_most_looks,
    needs_root,
    postgres::{Postgres, Setup},
    serve::Serve,
};
use lab::{pair::PairSpec, testing::TestLab};
use model::{
    Nanos,
    explain::ExplainDocument,
    measure::{PgDocument, RttDocument},
};

/// One server for all tests, with pgbench's tables.
static SERVER: LazyLock<Postgres> = LazyLock::new(|| {
    let server = Postgres::with(&Setup {
        hba: "host all locked 127.0.0.1/32 scram-sha-256\nhost all few 127.0.0.1/32 trust",
        ..Setup::default()
    });
    server.sql("create role locked login password 'right'");
    server.sql("create role few login connection limit 3");
    let made = server.tool("pgbench").args(["-i", "-q", "-s", "1"]).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    server.sql(
        "create function spin(ms float) returns void language plpgsql as $$ declare t timestamptz \
         := clock_timestamp() + make_interval(secs => ms / 1000.0); begin while \
         clock_timestamp() < t loop end loop; end $$",
    );
    server
});

/// Rounds that compete with another test say little.
static ALONE: Mutex<()> = Mutex::new(());

/// How many times a measurement is tried until its rounds have results.
const LOOKS: u32 = 5;

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The server admits three of eight clients; this is reported before the measurement.
#[test]
fn more_clients_than_the_server_admits_are_not_explained() {
    let _alone = alone();
    refuses_five_of_eight(&SERVER);
}

/// The refusals of a slow login come after a whole round, so no window has one.
#[test]
fn clients_that_are_refused_after_a_round_are_not_explained() {
    let server = Postgres::with(&Setup { conf: "pre_auth_delay = 1s", ..Setup::default() });
    server.sql("create role few login connection limit 3");
    refuses_five_of_eight(&server);
}

fn refuses_five_of_eight(server: &Postgres) {
    let url = format!("pg://few@127.0.0.1:{}/postgres", server.port);
    let out =
        netwright(&["explain", &url, "--script", "select1", "--flows", "8", "--duration", "1h"]);
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(4), "{said}");
    assert!(said.contains("3 of 8 clients got in, the others heard: 53300: "), "{said}");
    assert!(out.stdout.is_empty() && said.lines().count() == 1, "{said}");
}

fn netwright(args: &[&str]) -> Output {
    command(args).output().unwrap()
}

/// The command without this process's PG… environment.
fn command(args: &[&str]) -> Command {
    let mut command = Command::new(NETWRIGHT);
    for (key, _) in std::env::vars_os() {
        if key.to_string_lossy().starts_with("PG") {
            command.env_remove(key);
        }
    }
    command.env("HOME", "/nonexistent").args(args);
    command
}

/// A measurement with short rounds, as JSON. Exit code 1 (inconclusive) is accepted. On a busy
/// machine a round may be empty, although it is tried again.
fn explain(args: &[&str]) -> ExplainDocument {
    explain_at(&SERVER.url("postgres"), args)
}

/// The server's Unix socket.
fn socket() -> String {
    format!("pg://postgres@/postgres?host={}&port={}", SERVER.folder().display(), SERVER.port)
}

fn explain_at(url: &str, args: &[&str]) -> ExplainDocument {
    // Another suite measures on until the components add up.
    let time = ["--duration", "1s", "--max-duration", "1s", "--round", "60ms"];
    let all = [&["explain", url, "--json"][..], &time].concat();
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

/// The messages of this many transactions, as counted here and as captured: sends, receives, bytes
/// sent and received.
fn moved(args: &[&str], transactions: u32) -> ([u64; 4], [u64; 4]) {
    let capture = Capture::of_loopback(SERVER.port);
    let (url, n) = (SERVER.url("postgres"), transactions.to_string());
    let all = ["measure", "pg", &url, "--json", "--seed", "5", "--transactions", &n];
    let out = netwright(&[&all[..], args].concat());
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let seen = capture.end();
    let run = serde_json::from_slice::<PgDocument>(&out.stdout).unwrap().runs.remove(0);
    assert_eq!(run.transactions, u64::from(transactions));
    let m = run.moved.known().unwrap();
    let ours = [m.sends, m.receives, m.sent_bytes, m.received_bytes];
    (ours, [seen.to.segments, seen.from.segments, seen.to.bytes, seen.from.bytes])
}

/// The difference between a larger and a smaller number: the sessions' beginnings cancel out.
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
        let good = in_most_looks(|| {
            let ((few, few_seen), (many, many_seen)) = (moved(args, 20), moved(args, 220));
            let less = |a: [u64; 4], b: [u64; 4]| -> Vec<u64> {
                a.iter().zip(b).map(|(a, b)| a.saturating_sub(b)).collect()
            };
            let (counted, captured) = (less(many, few), less(many_seen, few_seen));
            seen.push((counted.clone(), captured.clone()));
            // Bytes match exactly. On a busy CPU two segments may be merged, and a full capture
            // buffer loses some.
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
        // A round trip on loopback takes microseconds; the network component has all of a
        // transaction's.
        assert!(d.typical.unwrap().network_ns > 2_000.0 * network, "{name}: {:?}", d.typical);
        assert!(d.target.starts_with("postgres://") && d.responder.starts_with("127.0.0.1:"));
    }
}

#[test]
fn the_service_time_of_all_round_trips_is_recovered() {
    let _alone = alone();
    let twice = script("select spin(0.5);\nselect spin(1);\n");
    let name = twice.path().to_str().unwrap();
    let mut seen = vec![];
    // The same with a given responder, which then measures the network alone.
    let serve = Serve::start(&[]);
    let mut n = 0;
    let good = in_most_looks(|| {
        n += 1;
        let given = ["--responder", serve.target()];
        let given = if n % 2 == 1 { &given[..] } else { &[] };
        let d = explain(&[&["--script", name], given].concat());
        assert!((d.exchange.round_trips - 2.0).abs() < 0.02, "{:?}", d.exchange);
        assert!(n % 2 == 0 || d.responder == serve.target(), "{}", d.responder);
        seen.push(d.typical);
        // The time to spin, and to reach the spin twice. It is short enough for most transactions
        // to finish before the scheduler takes the CPU.
        (1.45e6..2.1e6).contains(&d.typical.unwrap().service_ns)
    });
    assert!(good, "{seen:?}");
}

/// Two scripts with one and seven round trips: figures are of the mix, as drawn, and no transaction
/// is typical.
#[test]
fn of_several_scripts_the_means_over_all_rounds_are_said() {
    let _alone = alone();
    let seven = script(&"select 1;\n".repeat(7));
    let name = format!("{}@1", seven.path().to_str().unwrap());
    let d = explain(&["--script", "select1@2", "--script", &name, "--flows", "1"]);
    // Two thirds of 1 and one third of 7, over some thousand transactions.
    assert!((d.exchange.round_trips - 3.0).abs() < 0.3, "{:?}", d.exchange);
    assert!((d.exchange.sends - d.exchange.round_trips).abs() < 0.05, "{:?}", d.exchange);
    assert_eq!(d.typical, None);
    let text = netwright(&[
        "explain",
        &SERVER.url("postgres"),
        "--script",
        "select1@2",
        "--script",
        &name,
        "--duration",
        "1s",
    ]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains("several kinds") && !text.contains("P50 with one client"), "{text}");
}

/// A path adds its round trip as often as a transaction makes one, for a path with a given round
/// trip and for one to another host. The server's Unix socket is shared by a lab's hosts, so only
/// the path differs.
#[test]
fn another_path_is_added_once_for_each_round_trip() {
    needs_root();
    let _alone = alone();
    let spec = PairSpec {
        queues: 1,
        delay: Some(Nanos(4_000_000)),
        spin: Nanos(0),
        program: Some(NETWRIGHT.into()),
        ..PairSpec::default()
    };
    let lab = TestLab::pair(&spec).unwrap();
    let all = [NETWRIGHT, "serve", "--json", "--port", "0", "--bind", "10.99.0.2", "--open"];
    let peer = Serve::of(lab.command("right", &all).unwrap());
    let path = format!("host={}", peer.target());
    let twice = script("select 1;\nselect 2;\n");
    let name = twice.path().to_str().unwrap();
    let url = socket();
    let left = |args: &[&str]| {
        let out = lab.output("left", &[&[NETWRIGHT], args].concat()).unwrap();
        assert!(matches!(out.code, 0 | 1), "{}", String::from_utf8_lossy(&out.stderr));
        out.stdout
    };
    let mut seen = vec![];
    let good = in_most_looks(|| {
        let all = ["explain", &url, "--json", "--duration", "1s", "--round", "60ms"];
        let paths = ["--script", name, "--path", "rtt=20ms", "--path", &path];
        let d: ExplainDocument =
            serde_json::from_slice(&left(&[&all[..], &paths].concat())).unwrap();
        let [reported, held] = &d.other_paths[..] else { panic!("{:?}", d.other_paths) };
        let network = d.components.iter().find(|c| c.name == "network").unwrap().ns;
        assert!(
            (reported.added_ns + network - 40e6).abs() < 0.5e6,
            "{reported:?}, network {network}"
        );
        assert_eq!((reported.path.as_str(), &held.path), ("rtt=20 ms", &path));
        let there = |path: &str| d.predictions.iter().find(|p| p.path == path).unwrap();
        let cycle = 1e9 / there("this").predicted_per_s;
        for path in [reported, held] {
            let p = there(&path.path);
            let whole = cycle + path.added_ns + path.idle_ns;
            assert!((p.predicted_per_s * whole / 1e9 - 1.0).abs() < 0.01, "{p:?} {path:?}");
        }
        let alone = ["measure", "rtt", peer.target(), "--json", "--duration", "500ms"];
        let alone: RttDocument = serde_json::from_slice(&left(&alone)).unwrap();
        let truth = 2.0 * alone.runs[0].rtt_ns.mean - network;
        seen.push((network, held.added_ns, truth));
        assert!(truth > 8e6, "the wire holds back for less than it was told: {seen:?}");
        (held.added_ns / truth - 1.0).abs() < 0.15
    });
    assert!(good, "network, added by the other host, truth: {seen:?}");
}

/// One row is locked from its update to the end of the transaction, three round trips later. On a
/// path of 2 ms that limits all clients together to 167 per second. The delay alone would allow
/// eight clients 800.
#[test]
fn locks_held_over_round_trips_are_in_a_prediction() {
    let _alone = alone();
    SERVER.sql("create table if not exists one (n int); insert into one values (0)");
    let locks = "begin;\nupdate one set n = n + 1;\nselect 1;\nselect 2;\nend;\n";
    let locks = script(locks);
    let name = locks.path().to_str().unwrap();
    let d = explain(&["--script", name, "--flows", "8", "--path", "rtt=2ms"]);
    let p = d.predictions.iter().find(|p| p.path != "this").unwrap();
    let late = &d.other_paths[0].delayed;
    assert_eq!(late.iter().map(|l| l.clients).collect::<Vec<_>>(), [1, 8], "{late:?}");
    assert!(p.predicted_per_s < 300.0, "{p:?} {late:?}");
    assert!(p.low_per_s < 167.0, "{p:?} {late:?}");
}

#[test]
fn over_a_unix_socket_the_network_alone_is_one_too() {
    let _alone = alone();
    let d = explain_at(&socket(), &["--script", "select1"]);
    assert!(d.responder.starts_with("unix:/"), "{}", d.responder);
    assert!(!Path::new(d.responder.trim_start_matches("unix:")).exists(), "it leaves its socket");
    assert!(d.typical.unwrap().network_ns > 1_000.0, "{:?}", d.typical);
    assert!((d.exchange.round_trips - 1.0).abs() < 0.02, "{:?}", d.exchange);
}

#[test]
fn what_a_killed_command_left_the_next_one_removes_and_nothing_that_is_in_use() {
    let _alone = alone();
    let (place, server) = (tempfile::tempdir().unwrap(), socket());
    let left = || std::fs::read_dir(place.path()).unwrap().flatten().map(|e| e.path());
    let left = || left().collect::<std::collections::BTreeSet<_>>();
    let begin = |args: &[&str]| {
        let mut command = command(args);
        command.env("TMPDIR", place.path()).stdout(Stdio::null()).stderr(Stdio::null());
        let (before, begun) = (left(), Instant::now());
        let child = command.spawn().unwrap();
        // A folder of its own, with a socket or a log in it.
        let is_made =
            |p: &PathBuf| !before.contains(p) && p.read_dir().is_ok_and(|mut d| d.next().is_some());
        let folder = loop {
            let made = left().into_iter().find(is_made);
            if made.is_some() || begun.elapsed() > Duration::from_secs(60) {
                break made;
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        (child, folder.expect("it makes a folder"))
    };
    let kill = |mut child: Child| {
        child.kill().unwrap();
        child.wait().unwrap();
    };
    for args in [
        &["explain", &server, "--script", "select1", "--duration", "60s"][..],
        &[
            "measure",
            "pg",
            &server,
            "--driver",
            "pgbench",
            "--script",
            "select1",
            "--duration",
            "60s",
        ],
    ] {
        let (killed, its) = begin(args);
        kill(killed);
        assert!(its.exists(), "SIGKILL leaves no time to remove it");
        let (one, of_one) = begin(args);
        assert!(!its.exists() && of_one.exists(), "{args:?}: {:?}", left());
        let (other, of_other) = begin(args);
        assert!(of_one.exists() && of_other.exists(), "{args:?}: {:?}", left());
        kill(one);
        kill(other);
    }
}

#[test]
fn what_cannot_be_explained_is_said_in_a_line() {
    let _alone = alone();
    let url = SERVER.url("postgres:geheim");
    let nobody = "pg://postgres@127.0.0.1:1/postgres";
    for (args, code, says) in [
        (&[nobody][..], 4, "127.0.0.1"),
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
    // The server refuses the statement only after the session has begun.
    let (missing, wrong) =
        (script("select * from nosuch;\n"), script("select 1;\nselect 2 from;\n"));
    let (half, of) = (script("select 1;\n\\set x 1 +\n"), |f: &tempfile::NamedTempFile| {
        f.path().to_str().unwrap().to_owned()
    });
    let (missing, wrong, half) = (of(&missing), of(&wrong), of(&half));
    let silent = script("\\set x 1\n\\sleep 1 ms\n");
    let silent = of(&silent);
    let (refused, other) = (SERVER.url("locked:geheim"), strangers(b"NWT9\0\0\0\x02{}"));
    for (args, code, says) in [
        (&[url.as_str(), "--script", &missing][..], 4, format!("{missing}:1:15: ")),
        (&[&url, "--script", &missing], 4, "\"nosuch\" does not exist".into()),
        (&[&url, "--script", &wrong], 4, format!("{wrong}:2:14: ")),
        (&[&url, "--script", &silent], 2, "no transaction sent the server a statement".into()),
        (&[&url, "--script", &half], 2, format!("{half}:2:11: ")),
        (&[&refused], 3, "password authentication failed for user \"locked\"".into()),
        (&[&url, "--script", "select1", "--responder", &other], 4, "another version".into()),
    ] {
        let out = netwright(&[&["explain", "--quiet", "--round", "60ms"], args].concat());
        let said = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(code), "{args:?}: {said}");
        assert!(said.contains(&says) && said.trim().lines().count() == 1, "{args:?}: {said}");
        assert!(out.stdout.is_empty() && !said.contains("geheim"), "{said}");
    }
    let all = ["explain", &url, "--script", "select1", "--duration", "1s", "--round", "60ms"];
    // On a busy machine a round may be empty.
    let text = (0..LOOKS).map(|_| String::from_utf8(netwright(&all).stdout).unwrap());
    let text = text.into_iter().find(|t| !t.is_empty()).unwrap();
    assert!(text.contains("postgres@127.0.0.1") && !text.contains("geheim"), "{text}");
}

/// The first message that each connection gets.
fn strangers(words: &'static [u8]) -> String {
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

/// A server that is down for a while: rounds before and after it remain. Where it stays down longer
/// than is retried, the results so far are kept.
#[test]
fn a_server_that_restarts_in_the_middle_leaves_what_was_measured() {
    let _alone = alone();
    let mut server = Postgres::start();
    let url = server.url("postgres");
    let child = Command::new(NETWRIGHT)
        .args(["explain", &url, "--json", "--quiet", "--script", "select1", "--round", "60ms"])
        .args(["--duration", "30s"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_secs(8));
    server.stop();
    server.run();
    std::thread::sleep(Duration::from_secs(4));
    // SAFETY: our own child, not waited for yet.
    unsafe { libc::kill(i32::try_from(child.id()).unwrap(), libc::SIGINT) };
    let out = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    let read = serde_json::from_slice(&out.stdout);
    let d: ExplainDocument = read.unwrap_or_else(|e| panic!("{e}: {said}"));
    assert!(d.rounds >= 3 && d.interrupted, "{d:?}");
    match out.status.code() {
        Some(4) => {
            assert!(said.contains("127.0.0.1") && said.trim().lines().count() == 1, "{said}")
        }
        code => assert_eq!(code, Some(i32::from(!d.sum.conclusive)), "{said}"),
    }
}

#[test]
fn one_cpu_for_all_is_enough() {
    let _alone = alone();
    let looks = (0..LOOKS).map(|_| {
        let all = [NETWRIGHT, "explain", &SERVER.url("postgres"), "--json", "--quiet"];
        let more = ["--script", "select1", "--duration", "1s", "--flows", "1,2"];
        let mut command = Command::new("taskset");
        command.args(["-c", "0"]).args(all).args(more).output().unwrap()
    });
    // On a busy CPU a round may be empty.
    let out = looks.into_iter().find(|out| out.status.code() != Some(4)).unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    let read = serde_json::from_slice(&out.stdout);
    let d: ExplainDocument = read.unwrap_or_else(|e| panic!("{e}: {said}"));
    assert_eq!(out.status.code(), Some(i32::from(!d.sum.conclusive)), "{said}");
    let levels: Vec<u32> = d.levels.iter().map(|l| l.clients).collect();
    assert_eq!(levels, [1, 2]);
}
