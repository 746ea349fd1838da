//! Faults planted in network namespaces, and how far `doctor` sees them.

use std::{
    net::{SocketAddr, TcpListener, TcpStream},
    os::fd::AsRawFd,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use serde_json::Value;

use super::{NETWRIGHT, Namespace};

/// A thread within a namespace, stopped when dropped.
pub struct Inside {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Inside {
    /// Runs `work` there; it must end soon after its flag is set.
    pub fn run(ns: &Namespace, work: impl FnOnce(&AtomicBool) + Send + 'static) -> Self {
        let (stop, path) = (Arc::new(AtomicBool::new(false)), format!("/run/netns/{}", ns.name));
        let ended = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let space = std::fs::File::open(path).unwrap();
            // SAFETY: an open descriptor; only this thread changes its namespace.
            assert_eq!(unsafe { libc::setns(space.as_raw_fd(), libc::CLONE_NEWNET) }, 0);
            work(&ended);
        });
        Self { stop, thread: Some(thread) }
    }

    /// Waits until its work is done.
    pub fn join(mut self) {
        let _ = self.thread.take().map(JoinHandle::join);
    }

    /// Calls `step` there once every `pause`.
    pub fn every(ns: &Namespace, pause: Duration, mut step: impl FnMut() + Send + 'static) -> Self {
        Self::run(ns, move |stop| {
            while !stop.load(Ordering::Relaxed) {
                step();
                thread::sleep(pause);
            }
        })
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Two namespaces with a veth pair: `va` 10.88.0.1 in one, `vb` 10.88.0.2 in the other.
pub fn pair() -> (Namespace, Namespace) {
    let (here, there) = (Namespace::new(), Namespace::new());
    let peer = ["peer", "name", "vb", "netns", &there.name];
    here.run("ip", &[&["link", "add", "va", "type", "veth"][..], &peer].concat());
    for (ns, name, address) in [(&here, "va", "10.88.0.1/24"), (&there, "vb", "10.88.0.2/24")] {
        ns.run("ip", &["address", "add", address, "dev", name]);
        ns.run("ip", &["link", "set", name, "up"]);
    }
    (here, there)
}

/// A listener with an application that accepts only this often (`None`: never).
pub fn listener(ns: &Namespace, address: &'static str, pause: Option<Duration>) -> Inside {
    let inside = Inside::run(ns, move |stop| {
        let listener = TcpListener::bind(address).unwrap();
        listener.set_nonblocking(true).unwrap();
        let mut last = Instant::now();
        while !stop.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(10));
            if pause.is_some_and(|p| last.elapsed() >= p) {
                while listener.accept().is_ok() {}
                last = Instant::now();
            }
        }
    });
    thread::sleep(Duration::from_millis(100));
    inside
}

/// One attempt to connect, given up at once.
pub fn knock(address: &str) {
    let address: SocketAddr = address.parse().unwrap();
    let _ = TcpStream::connect_timeout(&address, Duration::from_millis(3));
}

/// The finding of a rule.
pub fn finding<'a>(d: &'a Value, rule: &str) -> Option<&'a Value> {
    d["findings"].as_array().unwrap().iter().find(|f| f["rule"] == rule)
}

/// The finding of a rule, which must be there and about `subject`.
pub fn found<'a>(d: &'a Value, rule: &str, subject: &str) -> &'a Value {
    let all = d["findings"].as_array().unwrap();
    let found = all.iter().find(|f| f["rule"] == rule && f["subject"] == subject);
    found.unwrap_or_else(|| panic!("no {rule} of {subject}: {d:#}"))
}

/// Checks that the rule was judged and found nothing.
pub fn silent(d: &Value, rule: &str) {
    assert!(finding(d, rule).is_none(), "{rule}: {d:#}");
    let clear = d["passed"].as_array().unwrap().iter().any(|c| c["rule"] == rule);
    assert!(clear, "{rule} was skipped: {d:#}");
}

/// The output of `doctor` within a namespace, over 1.5 s.
pub fn doctor(ns: &Namespace) -> Value {
    doctor_with(ns, &[])
}

const DOCTOR: [&str; 4] = ["--window", "1500ms", "--no-bpf", "--json"];

/// The same with more arguments.
pub fn doctor_with(ns: &Namespace, more: &[&str]) -> Value {
    ns.netwright_json(&[&["doctor"], &DOCTOR[..], more].concat())
}

/// The number at the beginning of the evidence about `what`.
pub fn figure(f: &Value, what: &str) -> u64 {
    let all = f["evidence"].as_array().unwrap();
    let shown = all.iter().find(|e| e["what"].as_str().unwrap().starts_with(what));
    let shown = shown.unwrap_or_else(|| panic!("no evidence {what}: {f:#}"));
    let value = shown["value"].as_str().unwrap().replace(',', "");
    let digits: String = value.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or_else(|_| panic!("{what}: {value}"))
}

/// A counter's growth by the classic tool, over a run of `doctor` and a little around it.
pub struct Bracket(Vec<(Instant, u64)>);

/// Reads a counter by the classic tool repeatedly, while `doctor` runs.
pub fn beside(ns: &Namespace, counter: impl Fn() -> u64) -> (Value, Bracket) {
    beside_with(ns, &DOCTOR, counter)
}

/// The same with these arguments of `doctor`.
pub fn beside_with(ns: &Namespace, args: &[&str], counter: impl Fn() -> u64) -> (Value, Bracket) {
    beside_of(|| ns.netwright_json(&[&["doctor"], args].concat()), counter)
}

/// The same beside a run of `doctor` elsewhere.
pub fn beside_of(
    doctor: impl FnOnce() -> Value + Send,
    counter: impl Fn() -> u64,
) -> (Value, Bracket) {
    let read = || {
        let before = Instant::now();
        let count = counter();
        // The middle of the reading; its error is small compared with a window's edges.
        (before + before.elapsed() / 2, count)
    };
    thread::scope(|scope| {
        let doctor = scope.spawn(doctor);
        let mut seen = vec![read()];
        while !doctor.is_finished() {
            thread::sleep(Duration::from_millis(10));
            seen.push(read());
        }
        seen.push(read());
        (doctor.join().unwrap(), Bracket(seen))
    })
}

impl Bracket {
    /// By how much the counter grew.
    pub fn grew(&self) -> u64 {
        self.0[self.0.len() - 1].1 - self.0[0].1
    }

    /// Checks that `figure` is the counter's growth within a window as long as `doctor`'s,
    /// somewhere within the bracket. At a steady rate an error by a factor of two fails.
    pub fn holds(&self, d: &Value, figure: u64) {
        let window = Duration::from_nanos(d["window_ns"].as_u64().unwrap());
        let (mut least, mut most) = (u64::MAX, 0);
        for (i, pair) in self.0.windows(2).enumerate() {
            let [(from, first), (to, second)] = [pair[0], pair[1]];
            let after = |at: Instant| self.0[i..].iter().position(|s| s.0 >= at).map(|k| i + k);
            let Some(end) = after(from + window) else { break };
            least = least.min(self.0[end - 1].1.saturating_sub(second));
            let end = after(to + window).unwrap_or(self.0.len() - 1);
            most = most.max(self.0[end].1 - first);
        }
        let fits = (least..=most).contains(&figure);
        assert!(fits, "{figure}, of {} in all; {least} to {most} in {window:?}", self.grew());
    }
}

/// A protocol counter as `nstat` prints it.
pub fn nstat(ns: &Namespace, name: &str) -> u64 {
    let out = ns.run("nstat", &["-asz", name]);
    let line = out.lines().find(|l| l.starts_with(name)).unwrap_or_else(|| panic!("{out}"));
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// All changes that `doctor` proposes by a knob, as arguments of `tune`.
pub fn proposed(d: &Value) -> Vec<String> {
    let findings = d["findings"].as_array().unwrap();
    let changes = findings.iter().flat_map(|f| f["changes"].as_array().unwrap());
    let text = |c: &Value, key: &str| c[key].as_str().unwrap().to_owned();
    let known = changes.filter(|c| c["knob"] != "");
    let mut all: Vec<_> =
        known.map(|c| format!("{}={}", text(c, "knob"), text(c, "new"))).collect();
    all.sort();
    all.dedup();
    all
}

/// `tune apply` of all proposed changes; `expected` must be one of them.
pub fn apply(ns: &Namespace, d: &Value, expected: &[&str]) {
    let changes = proposed(d);
    for e in expected {
        assert!(changes.iter().any(|c| c == e), "{e} is not among {changes:?}");
    }
    let state = tempfile::tempdir().unwrap();
    let mut command = std::process::Command::new(NETWRIGHT);
    command.args(["tune", "apply", "--netns", &ns.name, "--no-confirm"]).args(&changes);
    command.env("NETWRIGHT_STATE", state.path()).env_remove("SSH_CONNECTION");
    let out = command.output().unwrap();
    let (said, err) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success(), "{changes:?}: {said}{err}");
}
