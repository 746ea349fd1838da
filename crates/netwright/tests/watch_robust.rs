//! `watch` while what it watches goes away: a process, a NIC, two thousand processes.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use std::{
    io::{BufRead, BufReader},
    process::{Child, ChildStdout, Command, Stdio},
    time::{SystemTime, UNIX_EPOCH},
};

use model::{Reading, watch::WatchInterval};
use support::{NETWRIGHT, Namespace, needs_root, run};

/// A `netwright watch --json` at work.
struct Watching {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Watching {
    /// Begins by this command, and waits for the first interval: from then on everything is seen.
    fn by(mut command: Command) -> Self {
        command.args(["watch", "--json", "--interval", "250ms", "--duration", "120s"]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        let mut this = Self { child, lines };
        this.next();
        this
    }

    fn start() -> Self {
        needs_root();
        Self::by(Command::new(NETWRIGHT))
    }

    fn next(&mut self) -> WatchInterval {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line:.200}"))
    }

    /// All intervals from the first until the one that began after now.
    fn rest(&mut self) -> Vec<WatchInterval> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as f64;
        let mut all = vec![];
        loop {
            let one = self.next();
            let after = one.ended_unix_ns.0 as f64 - one.interval_s * 1e9 > now;
            all.push(one);
            if after {
                return all;
            }
        }
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn known<T>(reading: &Reading<T>) -> &T {
    reading.known().unwrap_or_else(|| panic!("{:?}", reading.why_not()))
}

const GONER: &str = "for ((i = 0; i < 6; i++)); do taskset -cp $((i % 2)) $$ > /dev/null; done
exec 3<> /dev/tcp/127.0.0.1/$0
for ((i = 0; i < 200; i++)); do echo $i >&3; read -r -u 3; done";

#[test]
fn a_process_that_ended_has_its_figures_and_its_name() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut watching = Watching::start();
    let answers = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        std::io::copy(&mut &stream, &mut &stream).unwrap();
    });
    let mut goner = Command::new("bash").args(["-c", GONER, &port.to_string()]).spawn().unwrap();
    assert!(goner.wait().unwrap().success());
    answers.join().unwrap();
    let intervals = watching.rest();
    let pid = goner.id();
    let messages = || intervals.iter().flat_map(|i| known(&i.messages)).filter(|m| m.pid == pid);
    // The last answer may be read by more than one call, never a request sent by two.
    assert_eq!(messages().map(|m| m.sends).sum::<u64>(), 200);
    assert!(messages().all(|m| m.name == "bash" && m.port == Reading::Known(port)));
    let movers = || intervals.iter().flat_map(|i| known(&i.movers)).filter(|m| m.tid == pid);
    assert!(movers().map(|m| m.migrations).sum::<u64>() >= 5);
    assert!(movers().all(|m| m.name == "bash" && m.pid == Reading::Known(pid)));
    let payers = || intervals.iter().flat_map(|i| known(&i.payers)).filter(|p| p.tid == pid);
    assert!(payers().map(|p| p.own_softirq_ns).sum::<u64>() > 0);
    assert!(payers().all(|p| p.name == "bash" && p.pid == pid));
}

#[test]
fn a_nic_that_is_removed_is_gone_and_the_others_figures_are_sane() {
    let space = Namespace::new();
    space.run("ip", &["link", "add", "v0", "type", "veth", "peer", "name", "v1"]);
    for nic in ["v0", "v1"] {
        space.run("ip", &["link", "set", nic, "up"]);
    }
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &space.name, NETWRIGHT]);
    let mut watching = Watching::by(command);
    let names = |one: &WatchInterval| -> Vec<String> {
        known(&one.samples).nics.iter().map(|n| n.name.clone()).collect()
    };
    assert_eq!(names(&watching.next()), ["lo", "v0", "v1"]);
    run("ip", &["-n", &space.name, "link", "del", "v0"]);
    watching.rest();
    let one = watching.next();
    assert_eq!(names(&one), ["lo"]);
    for nic in &known(&one.samples).nics {
        // Nothing speaks there: a count that ran backwards would be huge.
        assert!(known(&nic.statistics).values().all(|d| *known(d) < 1_000), "{nic:?}");
    }
}

/// Ends them, whatever becomes of the test.
struct Sleepers(Vec<Child>);

impl Drop for Sleepers {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
        }
        for child in &mut self.0 {
            let _ = child.wait();
        }
    }
}

#[test]
fn two_thousand_processes_come_and_go_while_intervals_are_delivered() {
    let mut watching = Watching::start();
    let sleep = |_| Command::new("sleep").arg("120").spawn().unwrap();
    let sleepers = Sleepers((0..2_000).map(sleep).collect());
    let mut intervals = watching.rest();
    drop(sleepers);
    intervals.extend(watching.rest());
    for one in &intervals {
        known(&one.samples);
        known(&one.movers);
    }
    // Less than one CPU, over all: reading about them all must not fill the host.
    let spent: u64 = intervals.iter().map(|i| known(&i.observer.process_ns).0).sum();
    let lasted: f64 = intervals.iter().map(|i| i.interval_s).sum();
    assert!((spent as f64) < lasted * 1e9, "{spent} ns of {lasted} s");
}
