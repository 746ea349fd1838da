//! `compare` with files that the real programs wrote (the parsers' seeds): how groups are told
//! apart, what is refused, and the exit codes.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use crate::support::NETWRIGHT;

fn compare(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(NETWRIGHT);
    command.arg("compare").args(args).current_dir(folder).env("COLUMNS", "120");
    command.output().expect("netwright starts")
}

/// The exit code, and what was printed on both streams.
fn said(folder: &Path, args: &[&str]) -> (i32, String) {
    let out = compare(folder, args);
    let text = [out.stdout, out.stderr].map(|b| String::from_utf8(b).expect("text")).concat();
    (out.status.code().expect("a code"), text)
}

fn seed(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../parse/tests/seeds").join(name)
}

/// Two folders with seven results of wrk each; those after have this share of the rate before.
fn folders(share: f64) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let text = fs::read_to_string(seed("wrk_text/latency")).expect("a seed");
    for (name, share) in [("before", 1.0), ("after", share)] {
        fs::create_dir(folder.path().join(name)).expect("a folder");
        for n in 0..7 {
            let rate = 828.96 * share * (1.0 + f64::from(n * 3 % 7) / 1_000.0);
            let text = text.replace("Requests/sec:    828.96", &format!("Requests/sec: {rate:.2}"));
            fs::write(folder.path().join(name).join(format!("run-{n}.txt")), text).expect("a run");
        }
    }
    folder
}

#[test]
fn every_way_to_name_the_groups_says_the_same() {
    let folder = folders(0.9);
    let list = |name: &str| (0..7).map(|n| format!("{name}/run-{n}.txt")).collect::<Vec<_>>();
    let (before, after) = (list("before"), list("after"));
    let words = |parts: &[&[String]]| parts.concat();
    let dashes = ["--".to_owned()];
    for args in [
        vec!["before".to_owned(), "after".to_owned()],
        words(&[&before, &after]),
        words(&[&before, &dashes, &after]),
    ] {
        let args: Vec<&str> = ["--metric", "requests_per_s"]
            .into_iter()
            .chain(args.iter().map(String::as_str))
            .collect();
        let (code, text) = said(folder.path(), &args);
        assert!(text.starts_with("compare: worse · requests_per_s -10.0% (95% CI -10."), "{text}");
        assert!(text.contains("Before: before, 7 runs in 7 files, wrk.\n"), "{text}");
        assert!(text.contains("do not say when each run was made"), "{text}");
        assert_eq!(code, 1);
    }
    // One file with all runs of a group.
    for name in ["before", "after"] {
        let all: String = list(name)
            .iter()
            .map(|f| fs::read_to_string(folder.path().join(f)).expect("a run"))
            .collect();
        fs::write(folder.path().join(format!("{name}.txt")), all).expect("a file");
    }
    let (code, text) =
        said(folder.path(), &["before.txt", "after.txt", "--metric", "requests_per_s"]);
    assert!(code == 1 && text.contains("Before: before.txt, 7 runs, wrk.\n"), "{text}");
}

#[test]
fn exit_codes_are_those_of_the_verdict_and_of_the_limit() {
    let code = |share: f64, more: &[&str]| {
        let args = [&["before", "after", "--metric", "requests_per_s"][..], more].concat();
        said(folders(share).path(), &args).0
    };
    assert_eq!(code(1.1, &[]), 0, "better");
    assert_eq!(code(0.9, &[]), 1, "worse");
    assert_eq!(code(1.0, &[]), 0, "no difference");
    assert_eq!(code(0.9, &["--limit", "15%"]), 0, "worse by less than the limit");
    assert_eq!(code(0.9, &["--limit", "5%"]), 1, "worse by more");
    assert_eq!(code(1.0, &["--limit", "0.01%"]), 1, "not shown to be within the limit");
}

#[test]
fn a_table_has_its_groups_in_a_column() {
    let folder = tempfile::tempdir().expect("a folder");
    let rows: String = (0..8).map(|n| format!("old,{n}.5,x\nnew,{n}.25,x\nother,1,x\n")).collect();
    fs::write(folder.path().join("t.csv"), format!("build,p99_ms,who\n{rows}")).expect("a table");
    let of = |more: &[&str]| said(folder.path(), &[&["t.csv", "--group"][..], more].concat());
    let both = ["build", "--before", "old", "--after", "new"];
    let (code, text) = of(&[&both[..], &["--metric", "p99_ms:lower"]].concat());
    assert!(code == 0 && text.contains("Before: old, 8 runs, table."), "{text}");
    let (code, text) = of(&both);
    assert!(
        code == 2 && text.contains("--metric p99_ms:higher or --metric p99_ms:lower"),
        "{text}"
    );
    let (code, text) = of(&["build"]);
    assert!(code == 2 && text.contains("build has 3 values"), "{text}");
    let (code, text) = of(&["nothing"]);
    assert!(
        code == 2 && text.contains("has no column nothing; it has build, p99_ms, who"),
        "{text}"
    );
    // The commands of one hyperfine export.
    let two = seed("hyperfine_json/two").display().to_string();
    let (code, text) = said(folder.path(), &[&two, "--group", "case"]);
    assert!(code == 1 && text.starts_with("compare: worse · time_ns +"), "{text}");
    assert!(text.contains("Before: sleep 0.01, 10 runs, hyperfine."), "{text}");
}

#[test]
fn what_cannot_be_used_has_one_line() {
    let folder = folders(1.0);
    fs::write(folder.path().join("note\x1b[31m"), "hello world\n").expect("a file");
    let refused = seed("iperf3_json/refused").display().to_string();
    for (args, code, line) in [
        (&["before", "absent"][..], 4, "absent: no such file or folder"),
        (&["before", "note\x1b[31m"], 2, "is no result of a known program"),
        (&["before", &refused], 2, "a run of iperf3 that failed: unable to connect to server"),
        (&["before"], 2, "which runs are before and which after?"),
        (&["before", "after", "--metric", "x"], 2, "--metric x: not in both groups"),
        (&["before", "after", "--limit", "5"], 2, "a share from 0% to 1000%"),
    ] {
        let (was, text) = said(folder.path(), args);
        assert!(
            was == code && text.contains(line) && !text.contains('\x1b'),
            "{args:?}: {was} {text}"
        );
        assert!(text.lines().next().is_some_and(|l| l.starts_with("netwright: ")), "{text}");
    }
}

#[test]
fn every_program_is_known_and_a_pull_request_gets_a_table() {
    let folder = tempfile::tempdir().expect("a folder");
    for of in [
        "wrk_text/latency",
        "sockperf_text/udp",
        "pgbench_text/select",
        "pgbench_log/select",
        "iperf3_json/tcp",
        "fio_json/mixed",
        "hyperfine_json/two",
        "netwright_json/rtt",
        "netwright_json/explain",
        "prove_json/document",
        "prove_json/record",
    ] {
        let file = seed(of).display().to_string();
        let (code, text) = said(folder.path(), &[&file, &file, "--markdown"]);
        assert!(
            (0..=1).contains(&code) && text.contains("| metric | before | after |"),
            "{of}: {text}"
        );
    }
}

#[test]
fn a_noise_floor_needs_no_groups() {
    let folder = folders(1.0);
    let (code, text) = said(folder.path(), &["--noise-floor", "before"]);
    assert!(
        code == 0 && text.contains("Noise floor: ") && text.contains("requests_per_s"),
        "{text}"
    );
    let (code, text) = said(folder.path(), &["before", "after", "--noise-floor", "before"]);
    assert!(code == 0 && text.contains("FLOOR"), "{text}");
}
