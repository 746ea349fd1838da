//! Tests of `netwright prove` on knobs of `tune`: known truths, refusals before anything runs, and
//! a host that is restored however the experiment ends.

use std::{
    fs,
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

use crate::support::{
    heeding,
    serve::Serve,
    tuned::{Practice, on_a_host, same},
    watchdogs::kill_watchdog_of,
};
use serde_json::Value;

const KNOB: &str = "sysctl.net.ipv4.tcp_keepalive_intvl";
const FILE: &str = "/proc/sys/net/ipv4/tcp_keepalive_intvl";

/// A workload that returns the knob itself: without noise or traffic, so that these tests are fast.
const READS: &str = "echo x = $(cat /proc/sys/net/ipv4/tcp_keepalive_intvl)";
const METRIC: &str = "x=/x = ([0-9]+)/:lower";

fn prove(host: &Practice, args: &[&str]) -> Command {
    host.netwright(&[&["prove", "--record", "r.jsonl"][..], args].concat())
}

fn done(host: &Practice, args: &[&str]) -> (Output, Value) {
    let out = prove(host, args).arg("--json").output().unwrap();
    let document =
        serde_json::from_slice(&out.stdout).unwrap_or_else(|e| panic!("{e}: {}", complaint(&out)));
    (out, document)
}

fn complaint(out: &Output) -> String {
    String::from_utf8_lossy(&out.stderr).into_owned()
}

fn knob() -> String {
    fs::read_to_string(FILE).unwrap()
}

#[test]
fn a_buffer_that_throttles_is_found_and_put_back() {
    on_a_host(|host| {
        // One page of room: the window closes after every few segments.
        fs::write("/proc/sys/net/ipv4/tcp_rmem", "4096 4096 4096").unwrap();
        let serve = Serve::start(&[]);
        let before = host.print();
        let url = format!("stream://{} --duration 100ms --warmup 20ms", serve.target());
        let change = "sysctl.net.ipv4.tcp_rmem=4096 131072 6291456";
        // More runs than needed: it ends when the result is clear, and a starved run costs a block.
        let args = ["--workload", &url, "--runs", "80", "--quiet", "--change", change];
        let (out, found) = done(host, &args);
        assert_eq!(out.status.code(), Some(0), "{} {}", found["verdict"], complaint(&out));
        assert_eq!(found["verdict"]["outcome"], "better");
        assert_eq!(found["levels"][0]["level"], "as it is");
        same(&before, &host.print(), "after the experiment");
        // Every change set of the journal was rolled back.
        let (_, log, _) = host.tune(&["log", "--json"]);
        let log: Value = serde_json::from_str(&log).unwrap();
        let sets = log["sets"].as_array().unwrap();
        assert!(sets.len() >= 6, "{} sets", sets.len());
        assert!(sets.iter().all(|s| s["state"] == "rolled_back"), "{log}");
    });
}

fn sweep(levels: &str) -> String {
    format!(
        "command = '''sleep 0.01; {READS}'''\nruns = 96\n[[factor]]\nknob = \"{KNOB}\"\n\
         levels = {levels}\n\
         [[metric]]\nname = \"x\"\nregex = 'x = ([0-9]+)'\nbetter = \"lower\"\n"
    )
}

#[test]
fn a_knob_is_a_factor_and_now_is_a_level() {
    on_a_host(|host| {
        let before = host.print();
        fs::write(host.state.path().join("e.toml"), sweep("[\"now\", 50, 60]")).unwrap();
        let (out, found) = done(host, &["e.toml"]);
        assert_eq!(out.status.code(), Some(0), "{}", complaint(&out));
        assert!(complaint(&out).contains(&format!("puts everything back: {KNOB}")));
        assert_eq!((&found["design"], &found["best"]["level"]), (&"sweep".into(), &"50".into()));
        let levels = found["levels"].as_array().unwrap();
        let medians: Vec<f64> =
            levels.iter().map(|l| l["medians"]["x"].as_f64().unwrap()).collect();
        assert_eq!(medians, [75.0, 50.0, 60.0]);
        same(&before, &host.print(), "after the sweep");
    });
}

#[test]
fn what_tune_refuses_is_refused_before_anything_runs() {
    on_a_host(|host| {
        let before = host.print();
        let ran = host.state.path().join("ran");
        let line = format!("touch '{}'; echo x = 1", ran.display());
        let try_out = |change: &str, more: &[&str]| {
            let args = ["--command", &line, "--metric", METRIC, "--change", change, "--runs", "24"];
            let mut command = prove(host, &[&args[..], more].concat());
            command.env("SSH_CONNECTION", "10.9.0.2 50000 10.9.0.1 22").output().unwrap()
        };
        for (change, code, why) in [
            ("sysctl.net.ipv4.tcp_sack=0", 1, "tcp_sack"),
            ("sysctl.net.ipv4.no_such=1", 4, "no_such"),
            ("nic.v0.none=1", 2, "no such knob"),
            ("sysctl.net.ipv4.tcp_keepalive_intvl=many", 2, "many"),
            ("nic.v0.mtu=1400", 2, "your own connection may be cut"),
            ("sysctl.net.ipv4.tcp_keepalive_intvl=75", 2, "equal the present value"),
        ] {
            let out = try_out(change, &[]);
            let said = complaint(&out);
            assert_eq!(out.status.code(), Some(code), "{change}: {said}");
            assert!(said.contains(why), "{change}: {said}");
            // In the words of `tune plan`, where that refuses it.
            let (planned, _, words) = host.tune(&["plan", change]);
            let reason = words.trim().rsplit_once(": ").map_or("", |(_, r)| r);
            assert!(planned == 0 || said.trim().ends_with(reason), "{said} / {words}");
        }
        assert!(!ran.exists(), "something ran");
        let out = try_out("nic.v0.mtu=1400", &["--allow-disconnect"]);
        assert!(ran.exists(), "{}", complaint(&out));
        same(&before, &host.print(), "after all");
    });
}

#[test]
fn a_record_that_is_not_there_is_said_before_anybody_is_waited_for() {
    on_a_host(|host| {
        let lock = fs::File::create(host.state.path().join("lock")).unwrap();
        lock.lock().unwrap();
        fs::write(host.state.path().join("e.toml"), sweep("[\"now\", 61]")).unwrap();
        let out = prove(host, &["e.toml", "--resume"]).output().unwrap();
        let said = complaint(&out);
        assert!(out.status.code() == Some(4) && said.contains("r.jsonl: no such file"), "{said}");
        assert!(!said.contains("waiting"), "{said}");
    });
}

fn wait_for(what: &str, mut there: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(60);
    while !there() {
        assert!(Instant::now() < until, "{what} did not come");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn signal(child: &Child, signal: i32) {
    // SAFETY: our own child, not waited for yet.
    assert_eq!(unsafe { libc::kill(child.id() as i32, signal) }, 0);
}

/// Starts an experiment, kills its watchdog, and sends it a signal while the knob is changed.
fn interrupted(host: &Practice, args: &[&str], with: i32) -> Output {
    stopped(host, args, with, true)
}

/// The same, with or without its watchdog.
fn stopped(host: &Practice, args: &[&str], with: i32, both: bool) -> Output {
    let mut command = heeding(prove(host, args), with);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let record = host.state.path().join("r.jsonl");
    let runs = || fs::read_to_string(&record).map_or(0, |t| t.matches("\"run\"").count());
    wait_for("a fifth run", || runs() >= 5);
    wait_for("the changed level", || {
        signal(&child, libc::SIGSTOP);
        let set = knob() == "61\n";
        if !set {
            signal(&child, libc::SIGCONT);
        }
        set
    });
    if both {
        kill_watchdog_of(child.id());
    }
    signal(&child, with);
    signal(&child, libc::SIGCONT);
    child.wait_with_output().unwrap()
}

#[test]
fn kill_9_is_put_back_at_once() {
    on_a_host(|host| {
        let before = host.print();
        stopped(host, &long(host), libc::SIGKILL, false);
        wait_for("the old value", || knob() == "75\n");
        wait_for("an end", || host.tune(&["status"]).0 == 0);
        let said = complaint(&host.netwright(&["schema", "prove"]).output().unwrap());
        assert!(!said.contains("interrupted"), "{said}");
        let (_, log, _) = host.tune(&["log"]);
        assert!(log.contains("rolled back"), "{log}");
        same(&before, &host.print(), "after its end");
    });
}

/// A long experiment with a constant figure.
fn long(host: &Practice) -> [&'static str; 1] {
    let text = sweep("[\"now\", 61]").replace("sleep 0.01", "sleep 0.05").replace("60", "2000");
    let text = text.replace("regex = 'x = ([0-9]+)'", "exit_code = true");
    fs::write(host.state.path().join("long.toml"), text).unwrap();
    ["long.toml"]
}

#[test]
fn what_kill_9_left_is_named_and_undone() {
    on_a_host(|host| {
        let before = host.print();
        interrupted(host, &long(host), libc::SIGKILL);
        assert_eq!(knob(), "61\n");
        // Any command reports it,
        let said = complaint(&host.netwright(&["schema", "prove"]).output().unwrap());
        assert!(said.contains("the experiment long was interrupted"), "{said}");
        let (code, status, _) = host.tune(&["status"]);
        assert!(code == 1 && status.contains("unfinished"), "{status}");
        // another change waits for it,
        let (code, _, said) = host.tune(&["apply", "sysctl.net.core.somaxconn=8192"]);
        assert!(code == 4 && said.contains("interrupted"), "{said}");
        // and rollback undoes it.
        let (code, _, said) = host.tune(&["rollback"]);
        assert_eq!(code, 0, "{said}");
        same(&before, &host.print(), "after rollback");
        let said = complaint(&host.netwright(&["schema", "prove"]).output().unwrap());
        assert!(!said.contains("interrupted"), "{said}");
    });
}

#[test]
fn what_was_killed_in_a_namespace_that_is_gone_stops_nobody() {
    let state = tempfile::tempdir().unwrap();
    let journal = state.path().join("journal");
    on_a_host(|host| {
        interrupted(host, &long(host), libc::SIGKILL);
        fs::create_dir(&journal).unwrap();
        for file in fs::read_dir(host.state.path().join("journal")).unwrap() {
            let file = file.unwrap();
            fs::copy(file.path(), journal.join(file.file_name())).unwrap();
        }
    });
    on_a_host(|host| {
        let before = host.print();
        let asked = |args: &[&str]| {
            let mut command = host.netwright(args);
            command.env("NETWRIGHT_STATE", state.path()).output().unwrap()
        };
        let notice = || complaint(&asked(&["schema", "prove"]));
        // Its workload ends first, and the kernel needs time for that.
        wait_for("the end of its namespace", || !notice().contains("still in force"));
        assert!(notice().contains("its network namespace is gone"), "{}", notice());
        fs::write(host.state.path().join("e.toml"), sweep("[\"now\", 61]")).unwrap();
        let out = asked(&["prove", "--record", "r.jsonl", "e.toml"]);
        let said = complaint(&out);
        assert!(said.contains("is closed: its network namespace is gone"), "{said}");
        assert_eq!(out.status.code(), Some(0), "{said}");
        assert!(!notice().contains("interrupted"), "{}", notice());
        same(&before, &host.print(), "after the next one");
    });
}

#[test]
fn what_was_killed_is_undone_by_the_next_and_gone_on_with() {
    on_a_host(|host| {
        let before = host.print();
        fs::write(host.state.path().join("e.toml"), sweep("[\"now\", 61]")).unwrap();
        interrupted(host, &["e.toml", "--quiet"], libc::SIGKILL);
        assert_eq!(knob(), "61\n");
        let (out, found) = done(host, &["e.toml", "--resume"]);
        let said = complaint(&out);
        assert!(said.contains("was interrupted; its change"), "{said}");
        assert_eq!(found["verdict"]["outcome"], "better", "{said}");
        // `now` is the original value, not the one that the killed experiment left.
        assert_eq!(found["levels"][0]["medians"]["x"], 75.0);
        same(&before, &host.print(), "after the resumed one");
    });
}

#[test]
fn ctrl_c_and_its_like_and_a_terminal_that_hangs_up_put_the_host_back() {
    for with in [libc::SIGINT, libc::SIGQUIT, libc::SIGHUP] {
        on_a_host(|host| {
            let before = host.print();
            let out = interrupted(host, &long(host), with);
            assert_eq!(out.status.code(), Some(1), "{}", complaint(&out));
            let text = String::from_utf8_lossy(&out.stdout).into_owned();
            assert!(text.contains("interrupted"), "{text}");
            same(&before, &host.print(), "after the signal");
        });
    }
}

/// A workload that takes a second to end, and Ctrl-C pressed twice.
#[test]
fn a_second_ctrl_c_waits_until_the_host_is_put_back() {
    on_a_host(|host| {
        let before = host.print();
        let slow =
            format!("trap '' INT TERM; {READS}; touch at$(cat {FILE}); sleep 0.4; sleep 0.4");
        let change = format!("{KNOB}=61");
        let args = ["--command", &slow, "--metric", METRIC, "--change", &change, "--runs", "200"];
        let mut command = heeding(prove(host, &args), libc::SIGINT);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // Written by a workload once its trap is set.
        wait_for("the changed level", || host.state.path().join("at61").exists());
        for _ in 0..3 {
            signal(&child, libc::SIGINT);
            std::thread::sleep(Duration::from_millis(50));
        }
        let out = child.wait_with_output().unwrap();
        assert_eq!(out.status.code(), Some(1), "{}", complaint(&out));
        assert!(complaint(&out).contains("the host is put back"), "{}", complaint(&out));
        same(&before, &host.print(), "after three signals");
    });
}

#[test]
fn a_workload_that_turns_the_knob_itself_is_said_at_once() {
    on_a_host(|host| {
        let before = host.print();
        // Only while the knob is changed.
        let line = format!("{READS}; test $(cat {FILE}) = 75 || echo 99 > {FILE}");
        let change = format!("{KNOB}=61");
        let args = ["--command", &line, "--metric", METRIC, "--change", &change];
        let out = prove(host, &[&args[..], &["--runs", "24"]].concat()).output().unwrap();
        let said = complaint(&out);
        assert_eq!(out.status.code(), Some(4), "{said}");
        let reported = "is 99, set by another program over 61 (before: 75)";
        assert!(said.contains("left as it is") && said.contains(reported), "{said}");
        let found = fs::read_to_string(FILE).unwrap();
        assert_eq!(found.trim(), "99", "nobody's value is lost");
        fs::write(FILE, "75").unwrap();
        same(&before, &host.print(), "after it broke off");
    });
}
