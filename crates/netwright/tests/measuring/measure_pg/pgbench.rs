//! Tests of the real pgbench, as the driver and beside our own.

use std::{
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use super::{Database, command, document, measure, path, script, sound};
use model::{
    Warning,
    measure::{PgDocument, PgRun},
};

/// Checks that apply to every pgbench run: the log has as many transactions as the report, else
/// there is a warning.
fn by_pgbench(document: &PgDocument) -> &PgRun {
    let run = &document.runs[0];
    sound(run);
    // Only its latencies exclude connecting.
    let said: Vec<String> =
        run.warnings.iter().map(Warning::to_string).filter(|w| w.contains("pgbench")).collect();
    assert!(said.iter().all(|w| w.contains("leave out the connection")), "{said:?}");
    assert_eq!(said.len(), usize::from(run.connect_each), "{said:?}");
    assert!(!document.interrupted, "{run:?}");
    let driver = document.driver.as_deref().unwrap();
    assert!(driver.starts_with("pgbench (PostgreSQL) "), "{driver}");
    // A value that it does not report is not 0.
    assert!(run.moved.why_not().is_some() && run.statements.why_not().is_some(), "{run:?}");
    assert!(run.cpu.local.threads_per_unit_ns.known().is_some_and(|ns| *ns > 0.0), "{:?}", run.cpu);
    run
}

#[test]
fn the_real_pgbench_makes_the_same_result() {
    let own = Database::with_tables();
    let rows = |table: &str| own.sql(&format!("select count(*) from {table}"));
    let pgbench =
        |args: &[&str]| own.measure(&[&["--driver", "pgbench", "--flows", "4"], args].concat());
    let mut counted = 0;
    for (args, each) in [
        (&["--protocol", "simple"][..], false),
        (&["--protocol", "prepared", "--threads", "2"], false),
        (&["--protocol", "extended", "--connect-each"], true),
        (&["--rate", "400", "--seed", "7", "--max-tries", "3"], false),
    ] {
        let all = ["--script", "tpcb-like", "--transactions", "100"];
        let document = pgbench(&[&all, args].concat());
        let run = by_pgbench(&document);
        assert_eq!((run.transactions, run.failed, run.connect_each), (100, 0, each), "{args:?}");
        counted += run.transactions;
        // The server counted them too.
        assert_eq!(rows("pgbench_history"), counted.to_string(), "{args:?}");
        assert!(run.latency_ns.min > 0 && run.latency_ns.p50 <= run.latency_ns.max);
        assert_eq!(run.send_lag_ns.is_some(), args.contains(&"--rate"));
    }
    // Weighted scripts, variables, a script of ours, and a duration.
    let files = [script("insert into a values (:v);\n"), script("insert into b values (:v);\n")];
    own.sql("create table a (n int); create table b (n int)");
    let (a, b) = (format!("{}@3", path(&files[0])), format!("{}@1", path(&files[1])));
    let args = ["--script", &a, "--script", &b, "--script", "select1@1", "--define", "v=5"];
    let began = std::time::Instant::now();
    let document = pgbench(&[&args[..], &["--duration", "1s"]].concat());
    let took_s = began.elapsed().as_secs_f64();
    let run = by_pgbench(&document);
    let of: Vec<u64> = run.scripts.iter().map(|s| s.transactions).collect();
    assert_eq!(own.sql("select count(*) from a where n = 5"), of[0].to_string());
    assert_eq!(rows("b"), of[1].to_string());
    assert!(of[0] > of[1] && of[2] > 0, "{of:?}");
    // The rate is pgbench's own, over the second that was asked for, and not longer than all of it
    // took.
    let s = run.window_ns.0 as f64 / 1e9;
    assert!((run.transactions as f64 / s / run.transactions_per_s - 1.0).abs() < 1e-6);
    assert!(s > 0.9 && s < took_s, "{s} of {took_s}");
    assert!(run.latency_p50_interval_ns.is_some() || run.transactions < 1000, "{run:?}");
}

#[test]
fn what_pgbench_reports_by_itself_is_what_the_result_says_of_it() {
    let own = Database::new("");
    let sleeps = script("select pg_sleep(0.005);\n");
    let document = own.measure(&[
        "--driver",
        "pgbench",
        "--flows",
        "2",
        "--script",
        path(&sleeps),
        "--transactions",
        "60",
    ]);
    let run = by_pgbench(&document);
    // The same by hand: both know the mean of a sleep.
    let mut tool = own.server.tool("pgbench");
    let file = format!("--file={}", path(&sleeps));
    let out = tool.args(["-n", "-c", "2", "-t", "30", &file, &own.name]).output().unwrap();
    let report = String::from_utf8_lossy(&out.stdout).into_owned();
    let of = |name: &str| -> f64 {
        let line = report.lines().find_map(|l| l.strip_prefix(name)).expect(&report);
        line.split(' ').find_map(|w| w.parse().ok()).expect(&report)
    };
    let theirs_ns = of("latency average =") * 1e6;
    assert!(run.latency_ns.min >= 5_000_000 && theirs_ns >= 5e6, "{report}");
    let ours_per_s = 2e9 / run.latency_ns.mean;
    // The law of the closed loop connects its two figures, and ours.
    assert!((run.transactions_per_s / ours_per_s - 1.0).abs() < 0.2, "{run:?}");
    assert!((of("tps =") / (2e9 / theirs_ns) - 1.0).abs() < 0.2, "{report}");
    // More than two sleepers can do: it reports its lag, and not the rest.
    let all = ["--driver", "pgbench", "--flows", "2", "--script", path(&sleeps)];
    let document = own.measure(&[&all[..], &["--rate", "1000", "--duration", "1s"]].concat());
    let run = &document.runs[0];
    assert!(run.not_started.known().is_none() && run.schedule_lag_ns.is_none(), "{run:?}");
    let said = run.warnings.iter().map(Warning::to_string);
    let said = said.into_iter().find(|w| w.contains("--rate 1000 was not reached"));
    let said = said.unwrap_or_else(|| panic!("{:?}", run.warnings));
    assert!(said.contains("send lag by pgbench: mean "), "{said}");
    let document = own.measure(&[&all[..], &["--rate", "20", "--duration", "1s"]].concat());
    let said = &document.runs[0].warnings;
    assert!(said.iter().all(|w| !w.to_string().contains("was not reached")), "{said:?}");
}

#[test]
fn pgbench_fails_and_is_ended_as_it_should() {
    let own = Database::new("create table once (n int primary key)");
    let (twice, missing) =
        (script("insert into once values (1);\n"), script("select * from nowhere;\n"));
    let pgbench = |args: &[&str]| {
        let all = ["--driver", "pgbench", &own.url, "--quiet"];
        measure(&[&all[..], args].concat())
    };
    // Its error, with the results so far.
    let out = pgbench(&["--script", path(&twice), "--transactions", "20"]);
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.code() == Some(4) && said.contains("duplicate key"), "{said}");
    let kept: PgDocument = serde_json::from_slice(&out.stdout).unwrap();
    assert!(kept.interrupted && kept.runs[0].transactions == 1, "{kept:?}");
    for (args, code, says) in [
        (&["--script", path(&missing)][..], 4, "nowhere"),
        (&["--pipeline", "--protocol", "prepared", "--per-statement"], 2, "--per-statement"),
        (&["--warmup", "1s"], 2, "--warmup"),
        (&["--duration", "1500ms"], 2, "whole seconds"),
        (&["--flows", "3", "--transactions", "10"], 2, "cannot be shared by 3"),
        (&["--precision", "2%"], 2, "--precision"),
    ] {
        let out = pgbench(&[&["--script", "select1"], args].concat());
        let said = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(code), "{args:?}: {said}");
        assert!(said.contains(says) && said.trim().lines().count() == 1, "{args:?}: {said}");
    }
    // Ctrl-C ends the pgbench that was started, and prints what it had logged.
    let args = [&own.url, "--json", "--quiet", "--driver", "pgbench", "--script", "select1"];
    let child = command(&[&args[..], &["--duration", "60s"]].concat())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = i32::try_from(child.id()).unwrap();
    let begun = std::time::Instant::now();
    let theirs = loop {
        let of = Command::new("ps").args(["-o", "pid=", "--ppid", &pid.to_string()]).output();
        let of = String::from_utf8(of.unwrap().stdout).unwrap().trim().to_owned();
        if !of.is_empty() || begun.elapsed() > Duration::from_secs(30) {
            break of;
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    std::thread::sleep(Duration::from_millis(2000));
    // SAFETY: our own child, not waited for yet.
    unsafe { libc::kill(pid, libc::SIGINT) };
    let document = document(&child.wait_with_output().unwrap());
    assert!(document.interrupted && document.runs[0].transactions > 0, "{document:?}");
    assert!(document.runs[0].warnings.iter().any(|w| w.to_string().contains("was ended")));
    assert!(!theirs.is_empty() && !Path::new(&format!("/proc/{theirs}")).exists(), "{theirs}");
}

#[test]
fn a_lone_semicolon_is_a_statement_as_it_is_to_pgbench() {
    let own = Database::new("");
    let file = script("select 1;\n;\nselect 2;;\n");
    let mut tool = own.server.tool("pgbench");
    let named = format!("--file={}", path(&file));
    let out = tool.args(["-n", "-t", "5", "-r", &named, &own.name]).output().unwrap();
    let report = String::from_utf8_lossy(&out.stdout).into_owned();
    // Each of its statements has a line, below a heading.
    let theirs = report.lines().skip_while(|l| !l.starts_with("statement latencies")).skip(1);
    let theirs = theirs.filter(|l| !l.trim().is_empty()).count();
    assert!(out.status.success() && theirs >= 2, "{report}");
    for protocol in ["simple", "extended", "prepared"] {
        let args = ["--script", path(&file), "--transactions", "10", "--per-statement"];
        let run = own.one(&[&args[..], &["--protocol", protocol]].concat());
        assert_eq!((run.transactions, run.failed), (10, 0), "{protocol}");
        assert_eq!(run.scripts[0].statements.len(), theirs, "{protocol}: {report}");
        assert_eq!(run.statements.get(), Some(10 * theirs as u64), "{protocol}");
    }
}
