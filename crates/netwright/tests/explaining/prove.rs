//! Tests of `netwright prove`: verdicts on known truths, settings restored in every case, and
//! records shown and resumed.

use std::{
    fs,
    io::Write,
    net::TcpStream,
    path::Path,
    process::{Child, Command, Output, Stdio},
    sync::{PoisonError, RwLock},
    time::{Duration, Instant},
};

use crate::support::{
    NETWRIGHT,
    http::{Request, Server},
    looks::hold_in_most_looks,
    serve::Serve,
    watchdogs::kill_watchdog_of,
};
use serde_json::Value;

/// Tests with live traffic run alone; the others run side by side.
static ALONE: RwLock<()> = RwLock::new(());

/// A figure near a value, with noise of a fiftieth.
const FIGURE: &str = "echo \"x = $(({level} * 1000 + $(od -An -N1 -tu1 /dev/urandom) / 12))\"";

fn prove(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(NETWRIGHT);
    command.current_dir(folder).args(["prove", "--record", "r.jsonl"]).args(args);
    command
}

fn done(folder: &Path, args: &[&str]) -> (Output, Value) {
    let out = prove(folder, args).arg("--json").output().unwrap();
    let document = serde_json::from_slice(&out.stdout).unwrap_or_else(|e| {
        panic!("{e}: {} {}", String::from_utf8_lossy(&out.stdout), complaint(&out))
    });
    (out, document)
}

fn complaint(out: &Output) -> String {
    String::from_utf8_lossy(&out.stderr).into_owned()
}

fn wait_for(what: &str, mut there: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(30);
    while !there() {
        assert!(Instant::now() < until, "{what} did not come");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn signal(child: &Child, signal: i32) {
    // SAFETY: our own child, not waited for yet.
    assert_eq!(unsafe { libc::kill(child.id() as i32, signal) }, 0);
}

/// As [`done`], with the error message where nothing could be measured.
fn measured(folder: &Path, args: &[&str]) -> Result<(Output, Value), String> {
    let out = prove(folder, args).arg("--json").output().unwrap();
    let nothing = |_| format!("{:?}: {}", out.status.code(), complaint(&out));
    let document = serde_json::from_slice(&out.stdout).map_err(nothing)?;
    match out.status.code() {
        Some(0 | 1) => Ok((out, document)),
        code => Err(format!("{code:?}: {}", complaint(&out))),
    }
}

/// The expected verdict: noise may hide it in one look, but never reverse it.
fn shown(out: &Output, found: &Value, code: i32, outcome: &str) -> Result<(), String> {
    let verdict = &found["verdict"];
    if verdict["outcome"] == "no_difference_shown" {
        return Err(format!("hidden: {verdict}"));
    }
    assert_eq!((out.status.code(), &verdict["outcome"]), (Some(code), &outcome.into()));
    Ok(())
}

/// The correlated counter of this name, or an error.
fn moved<'a>(found: &'a Value, name: &str) -> Result<&'a Value, String> {
    let all = found["evidence"]["moved"].as_array().unwrap();
    let it = all.iter().find(|m| m["counter"] == name);
    it.ok_or_else(|| format!("{name} is not named: {}", found["evidence"]))
}

#[test]
fn a_slower_service_is_worse_and_a_faster_one_better() {
    let _turn = ALONE.write().unwrap_or_else(PoisonError::into_inner);
    let fast = Serve::start(&["--service-time", "300us"]);
    let slow = Serve::start(&["--service-time", "1200us"]);
    let folder = tempfile::tempdir().unwrap();
    let workload = "measure rtt {level} --duration 100ms --warmup 10ms";
    let compared = |first: &Serve, second: &Serve| {
        let levels = ["--level", first.target(), "--level", second.target()];
        let args = [&["--workload", workload, "--runs", "32", "--quiet"][..], &levels[..]].concat();
        // Other load lengthens most round trips of some runs, but not the shortest.
        let metric = ["--metric", "shortest=runs.0.rtt_ns.min:lower"];
        measured(folder.path(), &[&args[..], &metric[..]].concat())
    };
    hold_in_most_looks(|| {
        let (out, found) = compared(&fast, &slow)?;
        shown(&out, &found, 1, "worse")?;
        assert!(found["verdict"]["low"].as_f64().unwrap() > 0.0, "{}", found["verdict"]);
        assert_eq!(found["evidence"]["per"], "transaction");
        // The server's spin changed: it is listed before the kernel's counters.
        let service = moved(&found, "time.service_ns")?;
        assert!(service["low"].as_f64().unwrap() > 0.0, "{service}");
        let first = &found["evidence"]["moved"][0];
        assert!(first["counter"].as_str().unwrap().starts_with("time."), "{first}");
        Ok(())
    });
    hold_in_most_looks(|| {
        let (out, found) = compared(&slow, &fast)?;
        shown(&out, &found, 0, "better")?;
        for key in ["outcome", "effect", "low", "high", "method", "blocks", "p"] {
            assert!(found["verdict"].get(key).is_some(), "verdict.{key} is missing");
        }
        Ok(())
    });
}

/// 3 ms before the first byte, or between the first and the last, depending on the path.
fn late(request: &Request, to: &mut TcpStream) -> bool {
    let wait = || std::thread::sleep(Duration::from_millis(3));
    if request.head.contains("/early") {
        wait();
    }
    let began = to.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no").is_ok();
    if request.head.contains("/late") {
        wait();
    }
    began && to.write_all(b"k").is_ok()
}

#[test]
fn what_moved_of_a_request_is_its_first_byte_or_the_rest_of_the_response() {
    let _turn = ALONE.write().unwrap_or_else(PoisonError::into_inner);
    let server = Server::start(late);
    let folder = tempfile::tempdir().unwrap();
    let workload =
        format!("measure http {}{{level}} --duration 100ms --warmup 10ms", server.url("/"));
    let part = |second: &str, name: &str, other: &str| {
        let levels = ["--level", "now", "--level", second, "--runs", "32", "--quiet"];
        let args = [&["--workload", &workload][..], &levels[..]].concat();
        hold_in_most_looks(|| {
            let (_, found) = measured(folder.path(), &args)?;
            let by = |name: &str| {
                let of = moved(&found, name)?;
                Ok::<f64, String>(of["second"].as_f64().unwrap() - of["first"].as_f64().unwrap())
            };
            // Sleeping for 3 ms takes at least this.
            let (it, other) = (by(name)?, by(other).unwrap_or(0.0));
            match it > 2.9e6 && it > 3.0 * other {
                true => Ok(()),
                false => Err(format!("{name} {it}, {other}")),
            }
        });
    };
    part("early", "time.to_first_byte_ns", "time.rest_of_response_ns");
    part("late", "time.rest_of_response_ns", "time.to_first_byte_ns");
}

#[test]
fn larger_messages_take_longer_on_the_way_and_not_in_the_service() {
    let _turn = ALONE.write().unwrap_or_else(PoisonError::into_inner);
    let serve = Serve::start(&["--service-time", "100us"]);
    let folder = tempfile::tempdir().unwrap();
    let workload = format!(
        "measure rtt {} --request {{level}} --response 64 --duration 100ms --warmup 10ms",
        serve.target()
    );
    let levels = ["--level", "64", "--level", "4M", "--runs", "32", "--quiet"];
    let args = [&["--workload", &workload][..], &levels[..]].concat();
    hold_in_most_looks(|| {
        let (_, found) = measured(folder.path(), &args)?;
        let grew = |name: &str| {
            let of = moved(&found, name)?;
            Ok::<f64, String>(of["second"].as_f64().unwrap() - of["first"].as_f64().unwrap())
        };
        let way = grew("time.network_and_waiting_ns")?;
        let service = grew("time.service_ns").unwrap_or(0.0);
        match way > 4.0 * service.abs() && way > 0.0 {
            true => Ok(()),
            false => Err(format!("the way {way}, the service {service}")),
        }
    });
}

#[test]
fn a_sweep_of_a_command_finds_the_best_level() {
    let _turn = ALONE.read().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sweep.toml");
    let text = format!(
        "command = '''{}'''\nruns = 60\nseed = 3\n[[factor]]\nname = \"level\"\nlevels = [3, 1, 2]\n\
         [[metric]]\nname = \"x\"\nregex = 'x = ([0-9]+)'\nbetter = \"lower\"\n",
        FIGURE
    );
    fs::write(&file, text).unwrap();
    let (out, found) = done(folder.path(), &["sweep.toml"]);
    assert_eq!(out.status.code(), Some(0), "{}", complaint(&out));
    assert_eq!((&found["design"], &found["best"]["level"]), (&"sweep".into(), &"1".into()));
    assert_eq!(found["best"]["within_noise"], serde_json::json!(["1"]));
    let effect = found["verdict"]["effect"].as_f64().unwrap();
    assert!((effect + 2.0 / 3.0).abs() < 0.02, "{effect}");
}

const SETS: &str = "command = 'cat knob; sleep 0.02'\nruns = 400\n\
    [[factor]]\nname = \"knob\"\nset = \"echo {level} > knob\"\nunset = \"echo 7 > knob\"\n\
    levels = [1, 2]\n[[metric]]\nname = \"x\"\nregex = '([0-9]+)'\nbetter = \"lower\"\n";

#[test]
fn levels_are_set_read_and_put_back() {
    let _turn = ALONE.read().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let knob = folder.path().join("knob");
    fs::write(&knob, "7\n").unwrap();
    fs::write(folder.path().join("e.toml"), SETS).unwrap();
    let (out, found) = done(folder.path(), &["e.toml"]);
    assert_eq!(found["verdict"]["outcome"], "worse");
    assert_eq!(found["verdict"]["effect"].as_f64().unwrap(), 1.0);
    assert!(found["verdict"]["blocks"].as_u64().unwrap() < 20, "it did not stop early");
    assert!(complaint(&out).contains("sets 2 levels by commands"), "{}", complaint(&out));
    assert_eq!(fs::read_to_string(&knob).unwrap(), "7\n");
    // An ended experiment is not resumed.
    let again = prove(folder.path(), &["e.toml", "--resume"]).output().unwrap();
    assert_eq!(again.status.code(), Some(2));
    assert!(complaint(&again).contains("has ended"), "{}", complaint(&again));
}

#[test]
fn what_is_killed_is_undone_by_the_next_and_gone_on_with() {
    let _turn = ALONE.read().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let (knob, record) = (folder.path().join("knob"), folder.path().join("r.jsonl"));
    fs::write(&knob, "7\n").unwrap();
    // Equal levels, so that it does not end early.
    let text = SETS.replace("cat knob", "cat knob | tr 12 11").replace("400", "32");
    fs::write(folder.path().join("e.toml"), text).unwrap();
    let start = || {
        let mut command = prove(folder.path(), &["e.toml", "--quiet"]);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let runs = || fs::read_to_string(&record).map_or(0, |t| t.matches("\"run\"").count());
    let in_the_middle = |child: &Child| {
        wait_for("a fifth run", || runs() >= 5);
        // Between two levels nothing is set, so it must run for a moment longer.
        wait_for("a level that is set", || {
            signal(child, libc::SIGSTOP);
            std::thread::sleep(Duration::from_millis(100));
            let set = fs::read_to_string(&knob).is_ok_and(|k| k == "1\n" || k == "2\n");
            if !set {
                signal(child, libc::SIGCONT);
            }
            set
        });
    };
    // Its watchdog undoes it at once.
    let mut child = start();
    in_the_middle(&child);
    signal(&child, libc::SIGKILL);
    child.wait().unwrap();
    wait_for("the old value", || fs::read_to_string(&knob).unwrap() == "7\n");
    fs::remove_file(&record).unwrap();
    // Without a watchdog the next experiment undoes it.
    let mut child = start();
    in_the_middle(&child);
    kill_watchdog_of(child.id());
    signal(&child, libc::SIGKILL);
    child.wait().unwrap();
    let before = runs();
    assert_ne!(fs::read_to_string(&knob).unwrap(), "7\n");
    // Another experiment undoes it first.
    let other = ["prove", "--record", "other.jsonl", "--command", "echo {level} $(cat knob)"];
    let rest = ["--level", "1", "--level", "2", "--metric", "k=/ ([0-9]+)/:lower", "--runs", "24"];
    let out =
        Command::new(NETWRIGHT).current_dir(folder.path()).args(other).args(rest).output().unwrap();
    assert!(complaint(&out).contains("undone: echo 7 > knob"), "{}", complaint(&out));
    assert!(String::from_utf8_lossy(&out.stdout).contains("7.00"), "the other saw another knob");
    // The record alone defines the experiment.
    fs::remove_file(folder.path().join("e.toml")).unwrap();
    let (out, found) = done(folder.path(), &["--resume"]);
    assert_eq!(out.status.code(), Some(1));
    assert_eq!(found["verdict"]["outcome"], "no_difference_shown");
    assert!(runs() >= 32 && found["runs"].as_array().unwrap().len() >= 32, "{before}");
    assert_eq!(fs::read_to_string(&knob).unwrap(), "7\n");
}

#[test]
fn the_workload_ends_with_whoever_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let pids = folder.path().join("pids");
    let args = ["--command", "sleep 300 & echo $$ $! > pids; sleep 300; : {level}", "--level", "1"];
    let rest = ["--level", "2", "--metric", "t=time:lower", "--quiet"];
    let mut child = prove(folder.path(), &[&args[..], &rest].concat()).spawn().unwrap();
    let read = || fs::read_to_string(&pids).unwrap_or_default();
    wait_for("the workload", || read().ends_with('\n'));
    signal(&child, libc::SIGKILL);
    child.wait().unwrap();
    let text = read();
    let lives = |pid: &&str| {
        let status = fs::read_to_string(format!("/proc/{pid}/stat"));
        // Without an init that reaps orphans a dead one remains as a zombie.
        status.is_ok_and(|s| s.contains("(s") && !s.contains(") Z"))
    };
    wait_for("its end", || !text.split_whitespace().any(|pid| lives(&pid)));
}

#[test]
fn ctrl_c_gives_the_verdict_so_far_and_peek_looks_at_it() {
    let _turn = ALONE.read().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let (knob, record) = (folder.path().join("knob"), folder.path().join("r.jsonl"));
    fs::write(&knob, "7\n").unwrap();
    let text = SETS.replace("cat knob", "cat knob | tr 12 11");
    fs::write(folder.path().join("e.toml"), text).unwrap();
    let mut command = prove(folder.path(), &["e.toml", "--json"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let runs = || fs::read_to_string(&record).map_or(0, |t| t.matches("\"run\"").count());
    wait_for("ten runs", || runs() >= 10);
    let (out, found) = done(folder.path(), &["e.toml", "--status"]);
    assert_eq!((out.status.code(), &found["ended"]), (Some(1), &"under way".into()));
    signal(&child, libc::SIGINT);
    let out = child.wait_with_output().unwrap();
    let found: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!((out.status.code(), &found["ended"]), (Some(1), &"interrupted".into()));
    let said = complaint(&out);
    assert!(said.contains("`netwright prove --resume --record r.jsonl` goes on with it"), "{said}");
    assert!(found["runs"].as_array().unwrap().len() >= 10);
    assert_eq!(fs::read_to_string(&knob).unwrap(), "7\n");
    let (_, found) = done(folder.path(), &["e.toml", "--status"]);
    assert_eq!(found["ended"], "interrupted; --resume goes on with it");
    // A different experiment is not resumed, and the message has the difference.
    let text = fs::read_to_string(folder.path().join("e.toml")).unwrap();
    fs::write(folder.path().join("e.toml"), text.replace("tr 12 11", "tr 13 11")).unwrap();
    let out = prove(folder.path(), &["e.toml", "--resume"]).output().unwrap();
    assert_eq!(out.status.code(), Some(2), "{}", complaint(&out));
    let said = complaint(&out);
    assert!(said.contains("command: ") && said.contains("tr 12 11") && said.contains("tr 13 11"));
}

#[test]
fn an_end_before_the_first_run_is_said_to_tell_nothing() {
    let _turn = ALONE.read().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let (knob, record) = (folder.path().join("knob"), folder.path().join("r.jsonl"));
    fs::write(&knob, "7\n").unwrap();
    fs::write(folder.path().join("e.toml"), SETS.replace("cat knob", "sleep 60")).unwrap();
    let mut command = prove(folder.path(), &["e.toml"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for("a level", || fs::read_to_string(&record).is_ok_and(|t| t.contains("\"setting\"")));
    signal(&child, libc::SIGTERM);
    let out = child.wait_with_output().unwrap();
    assert_eq!((out.status.code(), out.stdout.len()), (Some(1), 0));
    assert!(complaint(&out).contains("there is no result"), "{}", complaint(&out));
    assert_eq!(fs::read_to_string(&knob).unwrap(), "7\n");
}

#[test]
fn a_matrix_has_a_cell_for_every_placement() {
    let _turn = ALONE.write().unwrap_or_else(PoisonError::into_inner);
    let serve = Serve::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let text = format!(
        "workload = \"measure rtt {} --duration 100ms --warmup 5ms\"\nruns = 48\n\
         [placement]\ncpus = \"0-1\"\npeer_cpus = \"0-1\"\n",
        serve.target()
    );
    fs::write(folder.path().join("m.toml"), text).unwrap();
    let (_, found) = done(folder.path(), &["m.toml"]);
    assert_eq!(
        (&found["design"], found["levels"].as_array().unwrap().len()),
        (&"matrix".into(), 4)
    );
    // Noise may hide which level is best.
    assert!(found["best"]["level"].as_str().is_none_or(|best| best.starts_with("cpu ")));
    assert_eq!(found["levels"][3]["settings"], serde_json::json!({"cpu": "1", "peer_cpu": "1"}));
}

#[test]
fn bad_input_is_one_line_and_the_host_is_put_back() {
    let _turn = ALONE.read().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let bad = |text: &str, code, why: &str| {
        fs::write(folder.path().join("e.toml"), text).unwrap();
        let out = prove(folder.path(), &["e.toml", "--quiet"]).output().unwrap();
        let said = complaint(&out);
        assert_eq!(out.status.code(), Some(code), "{said}");
        assert!(said.contains(why) && said.lines().count() == 1, "{said}");
    };
    bad("workload = 3", 2, "line 1");
    bad("command = 'x'\nworkload = 'y'", 2, "only one of the two");
    fs::write(folder.path().join("knob"), "7\n").unwrap();
    bad(&SETS.replace("cat knob; sleep 0.02", "echo broken >&2; exit 9"), 4, "exit code 9: broken");
    bad(&SETS.replace("([0-9]+)", "y([0-9]+)"), 4, "printed nothing like");
    bad(
        &SETS.replace("\"echo {level} > knob\"", "\"echo no such knob >&2; exit 1\""),
        4,
        "no such knob",
    );
    assert_eq!(fs::read_to_string(folder.path().join("knob")).unwrap(), "7\n");
    let slow = SETS
        .replace("cat knob; sleep 0.02", "sleep 60")
        .replace("runs =", "timeout = \"300ms\"\nruns =");
    bad(&slow, 4, "did not end within 0.3 s");
    assert_eq!(fs::read_to_string(folder.path().join("knob")).unwrap(), "7\n");
    // Half-way: the results so far are printed, recorded, and can be shown again.
    let half = SETS.replace(
        "cat knob; sleep 0.02",
        "echo 5; echo . >> count; test $(wc -l < count) -lt 30 || { echo gone >&2; exit 5; }",
    );
    fs::write(folder.path().join("e.toml"), half).unwrap();
    let out =
        prove(folder.path(), &["e.toml", "--runs", "4000", "--quiet", "--json"]).output().unwrap();
    assert_eq!(out.status.code(), Some(4), "{}", complaint(&out));
    assert!(complaint(&out).contains("exit code 5: gone"), "{}", complaint(&out));
    assert_eq!(complaint(&out).lines().count(), 1, "{}", complaint(&out));
    let reported: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert!(reported["runs"].as_array().unwrap().len() >= 20);
    // The record alone defines the experiment.
    let look = ["--status", "--responder", "far.example", "--json"];
    let shown = prove(folder.path(), &look).output().unwrap();
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!((&shown["name"], &shown["runs"]), (&reported["name"], &reported["runs"]));
    let (_, seen) = done(folder.path(), &["e.toml", "--status"]);
    assert_eq!(seen["runs"], reported["runs"]);
    let ended = seen["ended"].as_str().unwrap();
    assert!(
        ended.starts_with("broken off: the workload failed") && ended.ends_with("goes on with it")
    );
    assert_eq!(fs::read_to_string(folder.path().join("knob")).unwrap(), "7\n");
    let out = Command::new(NETWRIGHT).arg("prove").output().unwrap();
    assert_eq!(out.status.code(), Some(2), "{}", complaint(&out));
    let out = prove(folder.path(), &["none.toml"]).output().unwrap();
    assert_eq!(out.status.code(), Some(4), "{}", complaint(&out));
}
