//! Tests of `watch` while watched objects disappear: a process, a NIC, ten thousand processes.

use std::{
    io::Write,
    process::{Command, Stdio},
};

use crate::support::{
    NETWRIGHT, Namespace, run,
    watching::{Watching, known},
};
use model::{Reading, watch::WatchInterval};

/// What the programs that see every message and every softirq are asked for.
const ALWAYS: [&str; 4] = ["--messages", "always", "--softirq", "always"];

/// The most memory that it had, KiB.
fn peak_kib(watching: &Watching) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", watching.pid())).unwrap();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Waits for a line; the exec into bash, and its migrations, are over by then.
const GONER: &str = "read -r
for ((i = 0; i < 6; i++)); do taskset -cp $((i % 2)) $$ > /dev/null; done
exec 3<> /dev/tcp/127.0.0.1/$0
for ((i = 0; i < 200; i++)); do echo $i >&3; read -r -u 3; done";

#[test]
fn a_process_that_ended_has_its_figures_and_its_name() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut watching = Watching::start(&ALWAYS);
    let answers = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        std::io::copy(&mut &stream, &mut &stream).unwrap();
    });
    let mut goner = Command::new("bash");
    goner.args(["-c", GONER, &port.to_string()]).stdin(Stdio::piped());
    let mut goner = goner.spawn().unwrap();
    watching.rest();
    goner.stdin.take().unwrap().write_all(b"\n").unwrap();
    assert!(goner.wait().unwrap().success());
    answers.join().unwrap();
    let intervals = watching.rest();
    let pid = goner.id();
    let messages = || intervals.iter().flat_map(|i| known(&i.messages)).filter(|m| m.pid == pid);
    // The last answer may be read by several calls; no request is sent by two.
    assert_eq!(messages().map(|m| m.sends).sum::<u64>(), 200);
    assert!(messages().all(|m| m.name == "bash" && m.port == Reading::Known(port)));
    let migrated_threads =
        || intervals.iter().flat_map(|i| known(&i.migrated_threads)).filter(|m| m.tid == pid);
    assert!(migrated_threads().map(|m| m.migrations).sum::<u64>() >= 5);
    assert!(migrated_threads().all(|m| m.name == "bash" && m.pid == Reading::Known(pid)));
    let interrupted_tasks =
        || intervals.iter().flat_map(|i| known(&i.interrupted_tasks)).filter(|p| p.tid == pid);
    assert!(interrupted_tasks().map(|p| p.own_softirq_ns).sum::<u64>() > 0);
    assert!(interrupted_tasks().all(|p| p.name == "bash" && p.pid == pid));
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
    let args = [&ALWAYS[..], &["--interval", "250ms"]].concat();
    let mut watching = Watching::by(command, &args);
    let names = |one: &WatchInterval| -> Vec<String> {
        known(&one.samples).nics.iter().map(|n| n.name.clone()).collect()
    };
    assert_eq!(names(&watching.next()), ["lo", "v0", "v1"]);
    run("ip", &["-n", &space.name, "link", "del", "v0"]);
    watching.rest();
    let one = watching.next();
    assert_eq!(names(&one), ["lo"]);
    for nic in &known(&one.samples).nics {
        // No traffic: a count that went backwards would be huge.
        assert!(known(&nic.statistics).values().all(|d| *known(d) < 1_000), "{nic:?}");
    }
}

/// Sleeping processes, killed when this value or the thread that made it ends.
struct Sleepers(Vec<libc::pid_t>);

impl Sleepers {
    fn new(count: usize) -> Self {
        let mut all = Self(Vec::with_capacity(count));
        let parent = std::process::id();
        for n in 0..count {
            // SAFETY: the child only makes system calls, and never returns.
            match unsafe { libc::fork() } {
                // SAFETY: as above.
                0 => unsafe {
                    libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                    while u32::try_from(libc::getppid()) == Ok(parent) {
                        libc::pause();
                    }
                    libc::_exit(0)
                },
                -1 => panic!("process {n} of {count}: {}", std::io::Error::last_os_error()),
                pid => all.0.push(pid),
            }
        }
        all
    }
}

impl Drop for Sleepers {
    fn drop(&mut self) {
        for pid in &self.0 {
            // SAFETY: our own child, not waited for yet.
            unsafe { libc::kill(*pid, libc::SIGKILL) };
        }
        for pid in &self.0 {
            // SAFETY: as above.
            unsafe { libc::waitpid(*pid, std::ptr::null_mut(), 0) };
        }
    }
}

#[test]
fn ten_thousand_processes_come_and_go_while_intervals_are_delivered() {
    const COUNT: usize = 10_000;
    let mut watching = Watching::start(&ALWAYS);
    let cost = |of: &[WatchInterval]| {
        let mut spent: Vec<u64> = of.iter().map(|i| known(&i.observer.process_ns).0).collect();
        spent.sort_unstable();
        spent[spent.len() / 2]
    };
    let before: Vec<WatchInterval> = (0..5).map(|_| watching.next()).collect();
    let resident = peak_kib(&watching);
    let sleepers = Sleepers::new(COUNT);
    let coming = watching.rest();
    let during: Vec<WatchInterval> = (0..5).map(|_| watching.next()).collect();
    drop(sleepers);
    let going = watching.rest();
    for one in coming.iter().chain(&during).chain(&going) {
        known(&one.samples);
        known(&one.interrupted_tasks);
        assert!(
            known(&one.migrated_threads).len() <= 1_001,
            "{} migrated_threads",
            known(&one.migrated_threads).len()
        );
    }
    // No sleeping process is read in each interval: 1 us each would be 10 ms.
    let (alone, among) = (cost(&before), cost(&during));
    println!("{alone} ns an interval, {among} ns among {COUNT}");
    assert!(among < 3 * alone + 10_000_000, "{among} ns an interval, {alone} ns before");
    // Less than one CPU on average: short-lived processes must not overload the host.
    let all = || coming.iter().chain(&during).chain(&going);
    let spent: u64 = all().map(|i| known(&i.observer.process_ns).0).sum();
    let lasted: f64 = all().map(|i| i.interval_s).sum();
    assert!((spent as f64) < lasted * 1e9, "{spent} ns of {lasted} s");
    let grown = peak_kib(&watching).saturating_sub(resident);
    println!("{resident} KiB at most before, {grown} KiB more after; {spent} ns of {lasted} s");
    assert!(grown < 32 * 1024, "{grown} KiB more than {resident} KiB");
}
