//! Network namespaces for tests. The test makes, uses and removes them, also after a panic or the
//! crash of an earlier run.

#![allow(dead_code, reason = "each suite uses the part it needs")]

use std::{
    os::unix::process::CommandExt,
    process::{Command, Output},
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

/// The freshly built binary.
pub const NETWRIGHT: &str = env!("CARGO_BIN_EXE_netwright");

pub mod beyond;
pub mod capture;
pub mod chromium;
pub mod cpu_cgroup;
pub mod dice;
pub mod exporter;
pub mod fleet;
pub mod hostile;
pub mod http;
pub mod looks;
pub mod parsers;
pub mod planted;
pub mod postgres;
pub mod redis;
pub mod schema;
pub mod serve;
pub mod through;
pub mod tls;
pub mod traced;
pub mod tuned;
pub mod watchdogs;
pub mod watching;

static NEXT: AtomicU32 = AtomicU32::new(0);

/// Fails the suite, with the reason, where it cannot run.
pub fn needs_root() {
    let euid = rustix::process::geteuid().as_raw();
    assert_eq!(euid, 0, "this suite makes network namespaces and must run as root");
}

/// Runs a command to its end; panics with its output if it fails.
pub fn run(program: &str, args: &[&str]) -> String {
    let out = output(program, args);
    assert!(
        out.status.success(),
        "{program} {args:?}: {}\n{}",
        out.status,
        String::from_utf8_lossy(&out.stderr)
    );
    String::from_utf8_lossy(&out.stdout).into_owned()
}

/// Runs a command to its end, with any exit code. The output of `--json` must match its schema.
pub fn output(program: &str, args: &[&str]) -> Output {
    schema::ended(Command::new(program).args(args))
}

/// A command with default signal actions: the test's parent may ignore signals (`nohup`, a script's
/// background), which children inherit.
pub fn heeding(mut command: Command, signal: i32) -> Command {
    // SAFETY: between fork and exec; signal(2) may be called there.
    unsafe {
        command.pre_exec(move || {
            libc::signal(signal, libc::SIG_DFL);
            Ok(())
        });
    }
    command
}

/// A network namespace `nwtest-PID-N`, removed on drop.
pub struct Namespace {
    /// Its name under `/run/netns`.
    pub name: String,
}

impl Namespace {
    /// Makes one, with loopback up; removes those of test processes that have ended.
    pub fn new() -> Self {
        needs_root();
        sweep();
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("nwtest-{}-{n}", std::process::id());
        run("ip", &["netns", "add", &name]);
        let ns = Self { name };
        ns.run("ip", &["link", "set", "lo", "up"]);
        ns
    }

    /// Runs a command inside; panics if it fails.
    pub fn run(&self, program: &str, args: &[&str]) -> String {
        let mut all = vec!["netns", "exec", &self.name, program];
        all.extend(args);
        run("ip", &all)
    }

    /// Runs a command inside; returns any exit code.
    pub fn output(&self, program: &str, args: &[&str]) -> Output {
        let mut all = vec!["netns", "exec", &self.name, program];
        all.extend(args);
        output("ip", &all)
    }

    /// Waits until somebody listens on this TCP port.
    pub fn await_listener(&self, port: u16) {
        await_listener(port, |args| self.run("ss", args));
    }

    /// `netwright ARGS` inside, as JSON.
    pub fn netwright_json(&self, args: &[&str]) -> serde_json::Value {
        serde_json::from_str(&self.run(NETWRIGHT, args)).expect("netwright printed no JSON")
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.name]).output();
    }
}

/// Waits until somebody listens on this TCP port, where this runs `ss` with these arguments.
pub fn await_listener(port: u16, ss: impl Fn(&[&str]) -> String) {
    let until = Instant::now() + Duration::from_secs(20);
    while ss(&["-Hltn", "sport", "=", &format!(":{port}")]).is_empty() {
        assert!(Instant::now() < until, "nobody listens on {port}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Removes namespaces of test processes that have ended.
fn sweep() {
    let Ok(entries) = std::fs::read_dir("/run/netns") else { return };
    for name in entries.filter_map(|e| e.ok()?.file_name().into_string().ok()) {
        let Some(pid) = name.strip_prefix("nwtest-").and_then(|r| r.split('-').next()) else {
            continue;
        };
        if !std::path::Path::new("/proc").join(pid).exists() {
            let _ = Command::new("ip").args(["netns", "del", &name]).output();
        }
    }
}
