//! Tests of `--responder ssh://…`: both hosts of a pair, changed from one of them over a real sshd.
//! Ends that lie, vanish or are killed: what is on trial is reverted.

mod lost;
mod refusals;

use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::fs::PermissionsExt,
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

use crate::support::{
    NETWRIGHT, needs_root,
    serve::Serve,
    watchdogs::{has_lock, watchdogs_of},
};
use lab::{pair::PairSpec, testing::TestLab};
use serde_json::Value;

const SMALL: &str = "4096 4096 4096";

/// A pair of hosts; the right one has an sshd and a measurement server.
pub(super) struct Pair {
    // Dropped first, as they run on a host of the lab.
    serve: Serve,
    sshd: Child,
    pub(super) lab: TestLab,
    state: tempfile::TempDir,
}

impl Drop for Pair {
    fn drop(&mut self) {
        signal(&self.sshd, libc::SIGTERM);
        let _ = self.sshd.wait();
    }
}

impl Pair {
    pub(super) fn new() -> Self {
        needs_root();
        let spec = PairSpec { program: Some(NETWRIGHT.into()), queues: 1, ..PairSpec::default() };
        let lab = TestLab::pair(&spec).unwrap();
        let state = tempfile::tempdir().unwrap();
        fs::set_permissions(state.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let sshd = Self::sshd(&lab, state.path());
        let serve = ["serve", "--json", "--port", "0", "--bind", "10.99.0.2", "--open"];
        let mut serve = lab.command("right", &[&[NETWRIGHT][..], &serve].concat()).unwrap();
        serve.stderr(Stdio::null());
        Self { serve: Serve::of(serve), sshd, lab, state }
    }

    /// Its SSH keys, and the journal of its changes.
    fn sshd(lab: &TestLab, state: &std::path::Path) -> Child {
        let path = |name: &str| state.join(name).display().to_string();
        for key in ["host", "key"] {
            let args = ["-q", "-t", "ed25519", "-N", "", "-f", &path(key)];
            crate::support::run("ssh-keygen", &args);
        }
        let write = |name: &str, text: String| fs::write(state.join(name), text).unwrap();
        write(
            "sshd_config",
            format!(
                "Port 2222\nListenAddress 10.99.0.2\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\n\
             UsePAM yes\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n\
             PermitRootLogin yes\nPidFile none\nSetEnv NETWRIGHT_STATE={}\n",
                path("host"),
                path("key.pub"),
                path("right")
            ),
        );
        write(
            "ssh_config",
            format!(
                "IdentityFile {}\nIdentitiesOnly yes\nStrictHostKeyChecking no\nLogLevel ERROR\n\
             UserKnownHostsFile /dev/null\n",
                path("key")
            ),
        );
        fs::create_dir_all("/run/sshd").unwrap();
        let line = ["/usr/sbin/sshd", "-D", "-e", "-f", &path("sshd_config")];
        let mut sshd = lab.command("right", &line).unwrap().stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(sshd.stderr.take().unwrap()).lines();
        let up = said.find(|l| l.as_ref().is_ok_and(|l| l.contains("Server listening")));
        assert!(up.is_some(), "sshd does not start");
        std::thread::spawn(move || said.for_each(drop));
        sshd
    }

    fn ssh(&self) -> String {
        format!("ssh -F {}", self.state.path().join("ssh_config").display())
    }

    pub(super) fn responder(&self) -> String {
        format!("ssh://root@10.99.0.2:2222{NETWRIGHT}")
    }

    /// The process that answers on the right host.
    fn remote(&self) -> i32 {
        let mut all = vec![self.sshd.id() as i32];
        while let Some(pid) = all.pop() {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            if name.trim() == "netwright" && line.windows(7).any(|w| w == b"--stdio") {
                return pid;
            }
            all.extend(children(pid));
        }
        panic!("nobody answers there")
    }

    /// `netwright ARGS` on the left host.
    pub(super) fn left(&self, args: &[&str]) -> Command {
        let mut command = self.lab.command("left", &[&[NETWRIGHT], args].concat()).unwrap();
        command.env("NETWRIGHT_STATE", self.state.path().join("left"));
        command.env("NETWRIGHT_SSH", self.ssh());
        command.env_remove("SSH_CONNECTION").env_remove("NETWRIGHT_SECRET");
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// The same on the right host.
    fn asks(&self, args: &[&str], responder: &str) -> Command {
        self.left(&[args, &["--responder", responder]].concat())
    }

    fn fix(&self, args: &[&str], responder: &str) -> Command {
        self.asks(&[&["fix", "--window", "200ms", "--yes", "--json"], args].concat(), responder)
    }

    fn plant(&self, host: &str, name: &str, value: &str) {
        let done = self.lab.output(host, &["sysctl", "-qw", &format!("{name}={value}")]).unwrap();
        assert_eq!(done.code, 0, "{name}");
    }

    fn read(&self, host: &str, path: &str) -> String {
        let out = self.lab.output(host, &["cat", path]).unwrap();
        String::from_utf8_lossy(&out.stdout).trim().replace('\t', " ")
    }

    fn rmem(&self) -> String {
        self.read("right", "/proc/sys/net/ipv4/tcp_rmem")
    }

    /// Every setting of a host's network.
    fn print(&self, host: &str) -> String {
        let line = "cd /proc/sys/net; find core ipv4 ipv6 -type f | sort | xargs grep -H . 2>/dev/null \
            | grep -v -e nf_conntrack_count; grep -H . /sys/class/net/eth0/queues/*/rps_cpus \
            /sys/class/net/eth0/mtu /sys/class/net/eth0/tx_queue_len";
        let out = self.lab.output(host, &["sh", "-c", line]).unwrap();
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        assert!(text.lines().count() > 200, "{text}");
        text
    }

    /// A workload that prints the server's receive buffer, without traffic.
    fn workload(&self, sleep: &str) -> Vec<String> {
        let line = format!(
            "set -- $(ip netns exec nw-{}-right cat /proc/sys/net/ipv4/tcp_rmem); t=1000; \
             test $3 -lt 1000000 && t=600; sleep {sleep}; echo tps = $t",
            self.lab.state.name
        );
        ["--command", &line, "--metric", "tps=/tps = ([0-9]+)/:higher"].map(str::to_owned).into()
    }

    /// Starts a `fix` that tries the server's buffer, and stops at a moment when it is set.
    fn in_the_middle(&self, responder: &str) -> Child {
        self.plant("right", "net.ipv4.tcp_rmem", SMALL);
        let workload = self.workload("0.3");
        let workload: Vec<&str> = workload.iter().map(String::as_str).collect();
        let fix = self.fix(&workload, responder).spawn().unwrap();
        wait_for("the trial", || {
            signal(&fix, libc::SIGSTOP);
            let set = self.rmem() != SMALL;
            if !set {
                signal(&fix, libc::SIGCONT);
            }
            set
        });
        fix
    }
}

fn wait_for(what: &str, mut there: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(90);
    while !there() {
        assert!(Instant::now() < until, "{what} did not come");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn complaint(out: &Output) -> String {
    String::from_utf8_lossy(&out.stderr).into_owned()
}

fn document(out: &Output) -> Value {
    serde_json::from_slice(&out.stdout).unwrap_or_else(|e| panic!("{e}: {}", complaint(out)))
}

fn candidate<'d>(d: &'d Value, knob: &str) -> &'d Value {
    let all = d["candidates"].as_array().unwrap();
    let is = |c: &&Value| c["changes"].as_array().unwrap().iter().any(|c| c["knob"] == knob);
    all.iter().find(is).unwrap_or_else(|| panic!("{knob} is no candidate: {d:#}"))
}

/// The living child processes of a process.
fn children(pid: i32) -> Vec<i32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let lists = tasks.map(|t| fs::read_to_string(t.unwrap().path().join("children")).unwrap());
    lists
        .flat_map(|l| l.split_whitespace().map(|p| p.parse().unwrap()).collect::<Vec<_>>())
        .collect()
}

fn send(pid: i32, signal: i32) {
    // SAFETY: a process that our own child started and that waits for its end.
    assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
}

fn signal(child: &Child, signal: i32) {
    // SAFETY: our own child, not waited for yet.
    assert_eq!(unsafe { libc::kill(child.id() as i32, signal) }, 0);
}

const PEER_RMEM: &str = "peer:sysctl.net.ipv4.tcp_rmem";

#[test]
fn a_fault_of_the_other_host_is_found_and_remedied_from_this_one() {
    let pair = Pair::new();
    pair.plant("right", "net.ipv4.tcp_rmem", SMALL);
    let before = ["left", "right"].map(|h| pair.print(h));
    let target = pair.responder();
    let url = format!("stream://{} --duration 60ms --warmup 10ms", pair.serve.target());
    let out = pair.fix(&["--workload", &url, "--runs", "60"], &target).output().unwrap();
    let d = document(&out);
    assert_eq!(out.status.code(), Some(0), "{} {d:#}", complaint(&out));
    let there = candidate(&d, PEER_RMEM);
    assert_eq!(
        (&there["status"], &there["changes"][0]["host"]),
        (&"kept".into(), &"10.99.0.2".into())
    );
    assert_eq!(d["responder"], target.as_str());
    assert_ne!(pair.rmem(), SMALL);
    let id = d["kept_peer"].as_u64().unwrap().to_string();
    // Its report of the server's journal is correct.
    let status = pair.asks(&["tune", "status", "--json"], &target).output().unwrap();
    assert_eq!(status.status.code(), Some(0), "{}", complaint(&status));
    assert_eq!(document(&status)["sets"][0]["id"].as_u64().unwrap().to_string(), id);
    let back = pair.asks(&["tune", "rollback", &id], &target).output().unwrap();
    assert_eq!(back.status.code(), Some(0), "{}", complaint(&back));
    // A repetition does no harm, and claims nothing.
    let back = pair.asks(&["tune", "rollback", &id], &target).output().unwrap();
    assert_eq!(back.status.code(), Some(0), "{}", complaint(&back));
    let said = String::from_utf8_lossy(&back.stdout).into_owned();
    assert!(said.contains("before, or is gone") && said.contains("nothing was written"), "{said}");
    let back = pair.asks(&["tune", "rollback", "999"], &target).output().unwrap();
    assert_eq!(back.status.code(), Some(2), "{}", complaint(&back));
    assert!(complaint(&back).contains("there is no change 999"), "{}", complaint(&back));
    if let Some(local) = d["kept"].as_u64() {
        let back = pair.left(&["tune", "rollback", &local.to_string()]).output().unwrap();
        assert_eq!(back.status.code(), Some(0), "{}", complaint(&back));
    }
    for (host, before) in ["left", "right"].into_iter().zip(before) {
        assert_eq!(before, pair.print(host), "{host}");
    }
}

#[test]
fn an_experiment_varies_a_knob_of_the_other_host_and_puts_it_back() {
    let pair = Pair::new();
    pair.plant("right", "net.ipv4.tcp_rmem", SMALL);
    let before = ["left", "right"].map(|h| pair.print(h));
    let target = pair.responder();
    let record = pair.state.path().join("r.jsonl").display().to_string();
    let peer = format!("{PEER_RMEM}=4096 131072 33554432");
    // A knob of each host in one change.
    let changes = ["--change", &peer, "--change", "sysctl.net.ipv4.tcp_slow_start_after_idle=0"];
    let prove = |sleep: &str, also: &[&str]| {
        let workload = pair.workload(sleep);
        let workload: Vec<&str> = workload.iter().map(String::as_str).collect();
        [&["prove", "--record", &record, "--json"][..], &changes, &workload, also]
            .concat()
            .join("\n")
    };
    let args = prove("0.02", &["--runs", "40"]);
    let args: Vec<&str> = args.split('\n').collect();
    let alone = pair.left(&args).output().unwrap();
    assert_eq!(alone.status.code(), Some(2), "{}", complaint(&alone));
    assert!(complaint(&alone).contains("knob of the server: --responder"), "{}", complaint(&alone));
    let out = pair.asks(&args, &target).output().unwrap();
    let d = document(&out);
    assert_eq!(out.status.code(), Some(0), "{} {d:#}", complaint(&out));
    assert_eq!(d["verdict"]["outcome"], "better");
    let shares = d["verdict"]["effect"].as_f64().unwrap();
    assert!((shares - 2.0 / 3.0).abs() < 0.01, "600 against 1000: {shares}");
    for (host, before) in ["left", "right"].into_iter().zip(&before) {
        assert_eq!(*before, pair.print(host), "{host}");
    }
    // Killed in the middle: the server restores its values by itself.
    let args = prove("0.3", &["--budget", "60s"]);
    let args: Vec<&str> = args.split('\n').collect();
    let mut killed = pair.asks(&args, &target).spawn().unwrap();
    wait_for("the trial", || pair.rmem() != SMALL);
    signal(&killed, libc::SIGKILL);
    killed.wait().unwrap();
    wait_for("the server's undoing", || pair.rmem() == SMALL);
}

/// A process that holds the lock when a server is killed does not prevent the restore.
#[test]
fn a_lock_that_somebody_holds_does_not_stop_what_puts_back() {
    let pair = Pair::new();
    let fix = pair.in_the_middle(&pair.responder());
    let lock = pair.state.path().join("right/lock");
    let mut holder =
        Command::new("flock").arg("-F").arg(&lock).args(["sleep", "60"]).spawn().unwrap();
    // The lock passes from the server to its holder. The watchdog, which waits for the same moment,
    // is stopped until then.
    let remote = pair.remote();
    let watchdog = watchdogs_of(remote.unsigned_abs());
    assert_eq!(watchdog.len(), 1, "{watchdog:?}");
    send(watchdog[0], libc::SIGSTOP);
    send(remote, libc::SIGKILL);
    wait_for("the holder's lock", || has_lock(holder.id()));
    send(watchdog[0], libc::SIGCONT);
    std::thread::sleep(Duration::from_secs(2));
    assert!(pair.rmem() != SMALL && holder.try_wait().unwrap().is_none(), "the lock is held");
    wait_for("the old buffer", || pair.rmem() == SMALL);
    signal(&holder, libc::SIGKILL);
    holder.wait().unwrap();
    signal(&fix, libc::SIGKILL);
    fix.wait_with_output().unwrap();
}

#[test]
fn two_at_once_do_not_tune_one_host() {
    let pair = Pair::new();
    let fix = pair.in_the_middle(&pair.responder());
    let out = pair.asks(&["tune", "rollback", "1"], &pair.responder()).output().unwrap();
    assert_eq!(out.status.code(), Some(4), "{}", complaint(&out));
    assert!(complaint(&out).contains("changing this host"), "{}", complaint(&out));
    signal(&fix, libc::SIGKILL);
    fix.wait_with_output().unwrap();
}
