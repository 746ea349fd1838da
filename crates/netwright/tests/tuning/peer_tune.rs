//! `netwright fix --responder`: both hosts of a pair, tuned from one of them, and clients of
//! `serve --allow-tune` that lie, vanish or are killed: what was on trial is put back.

use std::{
    fs,
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    process::{Child, Command, Output, Stdio},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use crate::support::{NETWRIGHT, needs_root, serve::Serve};
use lab::{pair::PairSpec, testing::TestLab};
use serde_json::Value;

const SECRET: &str = "0123456789abcdef-of-both\n";
const SMALL: &str = "4096 4096 4096";

/// A pair of hosts; the right one lets itself be tuned.
struct Pair {
    // Dropped first: it runs on a host of the lab.
    serve: Serve,
    lab: TestLab,
    state: tempfile::TempDir,
}

impl Pair {
    fn new() -> Self {
        needs_root();
        let spec = PairSpec { program: Some(NETWRIGHT.into()), queues: 1, ..PairSpec::default() };
        let lab = TestLab::pair(&spec).unwrap();
        let state = tempfile::tempdir().unwrap();
        fs::write(state.path().join("secret"), SECRET).unwrap();
        fs::write(state.path().join("wrong"), "another-secret-of-some-length").unwrap();
        let serve = Self::serve(&lab, &state);
        Self { serve, lab, state }
    }

    fn serve(lab: &TestLab, state: &tempfile::TempDir) -> Serve {
        let path = |name: &str| state.path().join(name).display().to_string();
        let (secret, right) = (path("secret"), path("right"));
        let allow = ["--allow-tune", "--secret-file", &secret, "--state-dir", &right];
        let args =
            [&[NETWRIGHT, "serve", "--json", "--port", "0", "--bind", "10.99.0.2"], &allow[..]];
        let mut command = lab.command("right", &args.concat()).unwrap();
        command.stderr(Stdio::null());
        Serve::of(command)
    }

    fn secret(&self) -> String {
        self.state.path().join("secret").display().to_string()
    }

    /// `netwright ARGS` on the left host.
    fn left(&self, args: &[&str]) -> Command {
        let mut command = self.lab.command("left", &[&[NETWRIGHT], args].concat()).unwrap();
        command.env("NETWRIGHT_STATE", self.state.path().join("left"));
        command.env_remove("SSH_CONNECTION").env_remove("NETWRIGHT_SECRET");
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// The same about the server, reached there.
    fn asks(&self, args: &[&str], responder: &str) -> Command {
        let peer = ["--responder", responder, "--secret-file", &self.secret()];
        self.left(&[args, &peer[..]].concat())
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

    /// A workload that tells what the server's receive buffer is, and costs nothing.
    fn workload(&self, sleep: &str) -> Vec<String> {
        let line = format!(
            "set -- $(ip netns exec nw-{}-right cat /proc/sys/net/ipv4/tcp_rmem); t=1000; \
             test $3 -lt 1000000 && t=600; sleep {sleep}; echo tps = $t",
            self.lab.state.name
        );
        ["--command", &line, "--metric", "tps=/tps = ([0-9]+)/:higher"].map(str::to_owned).into()
    }

    /// A `fix` that tries the server's buffer, stopped at a moment when it is set.
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

/// The processes that a process started and that are still there.
fn children(pid: i32) -> Vec<i32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let lists = tasks.map(|t| fs::read_to_string(t.unwrap().path().join("children")).unwrap());
    lists
        .flat_map(|l| l.split_whitespace().map(|p| p.parse().unwrap()).collect::<Vec<_>>())
        .collect()
}

/// Whether it has a lock by flock(2), and does not wait for one.
fn has_lock(child: &Child) -> bool {
    let pid = child.id().to_string();
    let all = fs::read_to_string("/proc/locks").unwrap();
    all.lines().any(|l| l.contains("FLOCK") && !l.contains("->") && l.split(' ').any(|w| w == pid))
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
fn a_fault_of_the_far_host_is_found_and_remedied_from_here() {
    let pair = Pair::new();
    pair.plant("right", "net.ipv4.tcp_rmem", SMALL);
    let before = ["left", "right"].map(|h| pair.print(h));
    let target = pair.serve.target().to_owned();
    let url = format!("stream://{target} --duration 60ms --warmup 10ms");
    let out = pair.fix(&["--workload", &url, "--runs", "60"], &target).output().unwrap();
    let d = document(&out);
    assert_eq!(out.status.code(), Some(0), "{} {d:#}", complaint(&out));
    let there = candidate(&d, PEER_RMEM);
    assert_eq!(
        (&there["status"], &there["changes"][0]["host"]),
        (&"kept".into(), &target.clone().into())
    );
    assert_eq!(d["responder"], target.as_str());
    assert_ne!(pair.rmem(), SMALL);
    let id = d["kept_peer"].as_u64().unwrap().to_string();
    // What it says of the server's journal is so.
    let status = pair.asks(&["tune", "status", "--json"], &target).output().unwrap();
    assert_eq!(status.status.code(), Some(0), "{}", complaint(&status));
    assert_eq!(document(&status)["sets"][0]["id"].as_u64().unwrap().to_string(), id);
    let back = pair.asks(&["tune", "rollback", &id], &target).output().unwrap();
    assert_eq!(back.status.code(), Some(0), "{}", complaint(&back));
    // Twice is no harm, and no claim.
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
fn an_experiment_varies_a_knob_of_the_far_host_and_puts_it_back() {
    let pair = Pair::new();
    pair.plant("right", "net.ipv4.tcp_rmem", SMALL);
    let before = ["left", "right"].map(|h| pair.print(h));
    let target = pair.serve.target().to_owned();
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
    // Killed in the middle: the server puts back what it had been lent by itself.
    let args = prove("0.3", &["--budget", "60s"]);
    let args: Vec<&str> = args.split('\n').collect();
    let mut killed = pair.asks(&args, &target).spawn().unwrap();
    wait_for("the trial", || pair.rmem() != SMALL);
    signal(&killed, libc::SIGKILL);
    killed.wait().unwrap();
    wait_for("the server's undoing", || pair.rmem() == SMALL);
}

#[test]
fn what_may_not_be_asked_from_afar_is_refused() {
    let pair = Pair::new();
    let before = pair.print("right");
    let harmful = "peer:sysctl.net.ipv4.tcp_timestamps=0";
    let workload = pair.workload("0");
    let fix = |knob: &str| {
        let mut args: Vec<&str> = workload.iter().map(String::as_str).collect();
        args.extend(["--try", knob]);
        pair.fix(&args, pair.serve.target()).output().unwrap()
    };
    let d = document(&fix(harmful));
    let c = candidate(&d, harmful.split_once('=').unwrap().0);
    assert_eq!(c["status"], "refused", "{c:#}");
    assert!(c["why"].as_str().unwrap().contains("protection"), "{c:#}");
    // What is the machine's, nobody's, or no value is said before the first measurement.
    for (what, code, why) in [
        ("peer:sysctl.vm.swappiness=10", 3, "whole host's"),
        ("peer:cpu.0.governor=performance", 3, "whole host's"),
        ("peer:nothing.at.all=1", 2, "nothing.at.all"),
        ("peer:sysctl.net.core.somaxconn=many", 2, "the server: "),
        ("peer:nic.eth7.mtu=1400", 4, "the server: there is no such interface"),
    ] {
        let out = fix(what);
        let said = complaint(&out);
        assert!(out.status.code() == Some(code) && said.contains(why), "{what}: {out:?}");
        assert!(said.lines().count() == 1 && out.stdout.is_empty(), "{what}: {out:?}");
    }
    assert_eq!(before, pair.print("right"));
    // A knob of a server that nobody named.
    let out = pair
        .left(&[
            "fix",
            "--command",
            "echo x = 1",
            "--metric",
            "x=/x = (.)/:higher",
            "--window",
            "200ms",
            "--try",
            harmful,
            "--yes",
        ])
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(2), "{}", complaint(&out));
}

#[test]
fn it_is_not_lent_without_a_secret() {
    needs_root();
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let (short, right) = (file("short", "12345678"), file("right", SECRET));
    for args in [
        &["--allow-tune"][..],
        &["--allow-tune", "--bind", "127.0.0.1"],
        &["--allow-tune", "--secret-file", &short],
        &["--allow-tune", "--open"],
        &["--state-dir", "/tmp"],
    ] {
        let mut command = Command::new(NETWRIGHT);
        let out = command.arg("serve").args(args).env_remove("NETWRIGHT_SECRET").output().unwrap();
        assert_eq!(out.status.code(), Some(2), "{args:?}: {}", complaint(&out));
    }
    // One who serves without consent is not tuned.
    let serve = Serve::start(&["--secret-file", &right]);
    let ask = |secret: &[&str]| {
        let mut command = Command::new(NETWRIGHT);
        command.env_remove("NETWRIGHT_SECRET");
        let args = [&["tune", "status", "--responder", serve.target()], secret].concat();
        command.args(args).output().unwrap()
    };
    let out = ask(&["--secret-file", &right]);
    assert_eq!(out.status.code(), Some(3));
    assert!(complaint(&out).contains("--allow-tune"), "{}", complaint(&out));
    assert_eq!(ask(&[]).status.code(), Some(2));
}

#[test]
fn wrong_secrets_are_counted() {
    let pair = Pair::new();
    let wrong = pair.state.path().join("wrong").display().to_string();
    let ask = |secret: &str| {
        let args = ["tune", "status", "--responder", pair.serve.target(), "--secret-file", secret];
        pair.left(&args).output().unwrap()
    };
    assert_eq!(ask(&pair.secret()).status.code(), Some(0));
    for n in 0..10 {
        let out = ask(&wrong);
        assert_eq!(out.status.code(), Some(3), "{n}");
        assert!(complaint(&out).contains("not the one"), "{n}: {}", complaint(&out));
    }
    for secret in [wrong, pair.secret()] {
        let out = ask(&secret);
        assert_eq!(out.status.code(), Some(3));
        assert!(complaint(&out).contains("too many"), "{}", complaint(&out));
    }
}

/// What a relay does to the client's messages on their way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Deed {
    Nothing,
    /// Changes a letter of the first request.
    Change,
    /// Says the first request twice.
    Twice,
    /// Says something of its own instead.
    Instead(&'static [u8]),
    /// Instead of the first request, more than is allowed.
    Endless,
}

/// Relays one connection at a time; what the client said is kept. On the left host's side it is
/// reached by a path, for the test itself is on neither host.
struct Relay {
    address: SocketAddr,
    said: Arc<Mutex<Vec<Vec<u8>>>>,
}

fn frame(from: &mut TcpStream) -> Option<Vec<u8>> {
    let mut all = vec![0u8; 8];
    from.read_exact(&mut all).ok()?;
    let length = u32::from_be_bytes(all[4..8].try_into().unwrap()) as usize;
    let mut text = vec![0; length];
    from.read_exact(&mut text).ok()?;
    all.extend(text);
    Some(all)
}

impl Relay {
    /// On this test's own host: `serve` and client are there as well.
    fn start(to: String, deed: Deed) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let said = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&said);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let Ok(mut client) = client else { return };
                let Ok(mut server) = TcpStream::connect(&to) else { return };
                let (mut back, mut from) =
                    (client.try_clone().unwrap(), server.try_clone().unwrap());
                std::thread::spawn(move || {
                    let _ = std::io::copy(&mut from, &mut back);
                    let _ = back.shutdown(std::net::Shutdown::Both);
                });
                let mut requests = 0;
                while let Some(mut words) = frame(&mut client) {
                    kept.lock().unwrap().push(words.clone());
                    let request = words.windows(8).any(|w| w == b"{\"tune\":");
                    requests += u32::from(request);
                    let mut times = 1;
                    if request && requests == 1 {
                        match deed {
                            Deed::Nothing => {}
                            Deed::Change => {
                                let at = words.windows(6).position(|w| w == b"status").unwrap();
                                words[at] = b'S';
                            }
                            Deed::Twice => times = 2,
                            Deed::Instead(other) => words = other.to_vec(),
                            Deed::Endless => {
                                words = b"NWT1\x00\x40\x00\x01".to_vec();
                                words.resize((5 << 20) + 8, b' ');
                            }
                        }
                    }
                    if (0..times).any(|_| server.write_all(&words).is_err()) {
                        break;
                    }
                }
                let _ = server.shutdown(std::net::Shutdown::Both);
            }
        });
        Self { address, said }
    }
}

#[test]
fn a_relay_cannot_change_repeat_or_add_a_word() {
    needs_root();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    fs::write(path("secret"), SECRET).unwrap();
    let args = ["--allow-tune", "--secret-file", &path("secret"), "--state-dir", &path("state")];
    let serve = Serve::start(&args);
    let ask = |to: &str| {
        let args =
            ["tune", "status", "--json", "--responder", to, "--secret-file", &path("secret")];
        Command::new(NETWRIGHT).args(args).env_remove("NETWRIGHT_SECRET").output().unwrap()
    };
    let honest = Relay::start(serve.target().to_owned(), Deed::Nothing);
    let out = ask(&honest.address.to_string());
    assert_eq!(out.status.code(), Some(0), "{}", complaint(&out));
    for deed in [
        Deed::Change,
        Deed::Twice,
        Deed::Instead(b"NWT1\x00\x00\x00\x21{\"tune\":{\"body\":\"1\",\"seal\":\"00\"}}"),
        Deed::Instead(b"NWT1\x00\x00\x00\x20{\"tune\":{\"body\":{},\"seal\":\"00\"}}"),
        Deed::Instead(b"NWT1\xff\xff\xff\xff"),
        Deed::Instead(b"GET / HTTP/1.1\r\n\r\n"),
        Deed::Endless,
    ] {
        let relay = Relay::start(serve.target().to_owned(), deed);
        let out = ask(&relay.address.to_string());
        // Said twice, the first one was answered.
        let code = if deed == Deed::Twice { 0 } else { 4 };
        assert_eq!(out.status.code(), Some(code), "{deed:?}: {}", complaint(&out));
        assert_eq!(ask(serve.target()).status.code(), Some(0), "after {deed:?}");
    }
    // All that an honest client said, said again on a connection of its own.
    let said = honest.said.lock().unwrap().clone();
    assert!(said.len() >= 2, "{said:?}");
    let mut again = TcpStream::connect(serve.target()).unwrap();
    again.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    assert!(frame(&mut again).is_some(), "a greeting");
    said.iter().for_each(|words| drop(again.write_all(words)));
    let answer = String::from_utf8_lossy(&frame(&mut again).unwrap_or_default()).into_owned();
    assert!(answer.contains("denied"), "{answer}");
    // The secret was never on the wire, in either of its spellings.
    let all: Vec<u8> = said.concat();
    let secret = SECRET.trim();
    let hex: String = secret.bytes().map(|b| format!("{b:02x}")).collect();
    for spelled in [secret, &hex] {
        assert!(!all.windows(spelled.len()).any(|w| w == spelled.as_bytes()));
    }
    assert!(!folder.path().join("state").exists(), "something was changed");
}

#[test]
fn a_client_that_is_killed_in_the_middle_leaves_nothing() {
    let pair = Pair::new();
    let mut fix = pair.in_the_middle(pair.serve.target());
    signal(&fix, libc::SIGKILL);
    fix.wait().unwrap();
    wait_for("the old buffer", || pair.rmem() == SMALL);
    // The server goes on serving, and lends itself again.
    let status = pair.asks(&["tune", "status", "--json"], pair.serve.target()).output().unwrap();
    assert_eq!(document(&status)["sets"].as_array().unwrap().len(), 0, "{}", complaint(&status));
}

#[test]
fn a_server_that_is_killed_leaves_nothing_and_its_client_says_so() {
    let pair = Pair::new();
    let fix = pair.in_the_middle(pair.serve.target());
    pair.serve.signal(libc::SIGKILL);
    wait_for("the old buffer", || pair.rmem() == SMALL);
    signal(&fix, libc::SIGCONT);
    let out = fix.wait_with_output().unwrap();
    assert_eq!(out.status.code(), Some(4), "{}", complaint(&out));
    // All is closed in the server's journal: the next one begins as if nothing had been.
    let again = Pair::serve(&pair.lab, &pair.state);
    let status = pair.asks(&["tune", "status", "--json"], again.target()).output().unwrap();
    assert_eq!(document(&status)["sets"].as_array().unwrap().len(), 0, "{}", complaint(&status));
}

/// Whoever holds the lock when a server is killed does not keep its host from what it was.
#[test]
fn a_lock_that_somebody_holds_does_not_stop_what_puts_back() {
    let pair = Pair::new();
    let fix = pair.in_the_middle(pair.serve.target());
    let lock = pair.state.path().join("right/lock");
    let mut holder =
        Command::new("flock").arg("-F").arg(&lock).args(["sleep", "60"]).spawn().unwrap();
    // The lock goes from the server to the holder: the watchdog, which waits for the same moment,
    // stands still until that is done.
    let watchdog = children(pair.serve.pid());
    assert_eq!(watchdog.len(), 1, "{watchdog:?}");
    send(watchdog[0], libc::SIGSTOP);
    pair.serve.signal(libc::SIGKILL);
    wait_for("the holder's lock", || has_lock(&holder));
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
fn a_wire_that_goes_dead_leaves_nothing() {
    let pair = Pair::new();
    let fix = pair.in_the_middle(pair.serve.target());
    // It stays stopped, like a host that hangs: nothing is closed, nothing is said.
    wait_for("the old buffer", || pair.rmem() == SMALL);
    signal(&fix, libc::SIGKILL);
    fix.wait_with_output().unwrap();
}

#[test]
fn two_at_once_do_not_tune_one_host() {
    let pair = Pair::new();
    let fix = pair.in_the_middle(pair.serve.target());
    let out = pair.asks(&["tune", "rollback", "1"], pair.serve.target()).output().unwrap();
    assert_eq!(out.status.code(), Some(4), "{}", complaint(&out));
    assert!(complaint(&out).contains("changing this host"), "{}", complaint(&out));
    signal(&fix, libc::SIGKILL);
    fix.wait_with_output().unwrap();
}
