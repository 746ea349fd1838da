//! Tests of round trips against known truths: a service time, a link's delay and loss, a stall,
//! migrations; and the output around them.

use std::{
    process::{Command, Stdio},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use crate::support::{NETWRIGHT, needs_root, output, planted, run, serve::Serve};
use lab::{pair::PairSpec, testing::TestLab};
use model::{
    Nanos,
    measure::{Quantiles, RttDocument},
};

/// For tests with a link: each uses much of the machine.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn rtt(target: &str, args: &[&str]) -> RttDocument {
    let all = [&["measure", "rtt", target, "--json"], args].concat();
    serde_json::from_str(&run(NETWRIGHT, &all)).unwrap()
}

/// A client that spins is not woken late, and other load only lengthens a round trip: the shortest
/// of thousands is exact. The typical one is held as a median of pairs, each of one moment; a factor
/// of two is outside of its bound.
#[test]
fn a_service_time_shows_as_itself() {
    const SERVICE_NS: u64 = 300_000;
    let (plain, slow) = (Serve::start(&[]), Serve::start(&["--service-time", "300us"]));
    let args = ["--duration", "700ms", "--wait", "spin"];
    let quantiles = |serve: &Serve| rtt(serve.target(), &args).runs[0].rtt_ns.clone();
    // Interleaved, so that other load affects both.
    let looks: Vec<_> = (0..3).map(|_| (quantiles(&plain), quantiles(&slow))).collect();
    let shortest = |of: fn(&(Quantiles, Quantiles)) -> u64| looks.iter().map(of).min().unwrap();
    let (without, with) = (shortest(|l| l.0.min), shortest(|l| l.1.min));
    assert!(with >= SERVICE_NS, "the server never answers sooner: {looks:?}");
    let added = with - without;
    assert!((SERVICE_NS * 97 / 100..=SERVICE_NS * 105 / 100).contains(&added), "{looks:?}");
    let mut typical: Vec<u64> = looks.iter().map(|l| l.1.p50.saturating_sub(l.0.p50)).collect();
    typical.sort_unstable();
    assert!((SERVICE_NS * 9 / 10..=SERVICE_NS * 16 / 10).contains(&typical[1]), "{looks:?}");
}

/// A service time of 1 ms allows at most 1,000 round trips a second.
#[test]
fn a_terminal_has_a_line_each_second() {
    let server = Serve::start(&["--service-time", "1ms"]);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("result.json");
    let command = format!(
        "{NETWRIGHT} measure rtt {} --duration 2500ms --json -o {}",
        server.target(),
        file.display()
    );
    let on_terminal = Command::new("script").args(["-qec", &command, "/dev/null"]).output();
    let shown = String::from_utf8(on_terminal.unwrap().stdout).unwrap();
    let document: RttDocument = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let result = document.runs[0].transactions_per_s;
    let lines: Vec<&str> = shown.split(['\r', '\n']).filter(|l| l.contains("progress: ")).collect();
    assert_eq!(lines.len(), 2, "{shown:?}");
    for (line, due_s) in lines.iter().zip([1.0, 2.0]) {
        let line = line.trim_start_matches("\x1b[K");
        let words: Vec<&str> = line.split(' ').collect();
        let ["progress:", end_s, "s,", rate, "round", "trips/s"] = words[..] else {
            panic!("{line}")
        };
        let (end_s, rate): (f64, f64) = (end_s.parse().unwrap(), rate.parse().unwrap());
        assert!((end_s - due_s).abs() < 0.3, "{line}");
        assert!(rate <= 1_001.0 && (rate / result - 1.0).abs() < 0.25, "{line}, {result} in all");
    }
}

#[test]
fn a_delay_and_loss_on_the_wire_show_as_themselves() {
    needs_root();
    let _alone = alone();
    let spec = PairSpec {
        queues: 1,
        delay: Some(Nanos(2_000_000)),
        loss: 0.05,
        program: Some(NETWRIGHT.into()),
        ..PairSpec::default()
    };
    let lab = TestLab::pair(&spec).unwrap();
    let peer = [NETWRIGHT, "serve", "--json", "--port", "0", "--bind", "10.99.0.2", "--open"];
    let serve = Serve::of(lab.command("right", &peer).unwrap());
    let target = serve.target();
    let local = |args: &[&str]| -> RttDocument {
        let all =
            [&[NETWRIGHT, "measure", "rtt", target, "--json", "--duration", "4s"], args].concat();
        let out = lab.output("left", &all).unwrap();
        assert_eq!(out.code, 0, "{}", String::from_utf8_lossy(&out.stderr));
        serde_json::from_slice(&out.stdout).unwrap()
    };
    let udp = local(&["--udp", "--flows", "20", "--timeout", "100ms"]);
    let run = &udp.runs[0];
    assert!(run.rtt_ns.min >= 3_980_000, "{:?}", run.rtt_ns);
    assert!((4_000_000..7_000_000).contains(&run.rtt_ns.p50), "{:?}", run.rtt_ns);
    // Lost either way: 1 − 0.95² = 9.75%. Losers wait 25 times as long, so of 20 flows there
    // are some thousand requests; five standard deviations are 5 points.
    let asked = run.lost + run.transactions;
    let share = run.lost as f64 / asked as f64;
    assert!(asked > 800, "{run:?}");
    assert!((0.05..0.15).contains(&share), "{} of {asked} lost", run.lost);
    // TCP retransmits: nothing is lost, but p99 shows the retransmission timer.
    let tcp = local(&["--flows", "20"]);
    let run = &tcp.runs[0];
    assert_eq!(run.lost, 0);
    assert!(run.rtt_ns.p99 >= 20_000_000, "{:?}", run.rtt_ns);
    let again = run.evidence.local.get("Tcp.RetransSegs").copied().unwrap_or_default()
        + run.evidence.peer.get("Tcp.RetransSegs").copied().unwrap_or_default();
    assert!(again > 0, "{:?}", run.evidence);
}

#[test]
fn by_schedule_a_wire_carries_what_it_can_however_much_is_asked() {
    needs_root();
    let _alone = alone();
    let spec = PairSpec {
        queues: 1,
        delay: Some(Nanos(5_000_000)),
        program: Some(NETWRIGHT.into()),
        ..PairSpec::default()
    };
    let lab = TestLab::pair(&spec).unwrap();
    let peer = [NETWRIGHT, "serve", "--json", "--port", "0", "--bind", "10.99.0.2", "--open"];
    let serve = Serve::of(lab.command("right", &peer).unwrap());
    // Two requests at once, 10 ms there and back.
    let local = [NETWRIGHT, "measure", "rtt", serve.target(), "--json", "--flows", "2"];
    crate::support::beyond::open_loop_keeps_to_its_capacity(200.0, 2.0, &|args| {
        let out = lab.output("left", &[&local, args].concat()).unwrap();
        assert_eq!(out.code, 0, "{}", String::from_utf8_lossy(&out.stderr));
        serde_json::from_slice(&out.stdout).unwrap()
    });
}

#[test]
fn a_stall_shows_in_open_loop_as_often_as_it_hit() {
    const STALL: Duration = Duration::from_millis(150);
    let serve = Serve::start(&[]);
    let measure = |args: &[&str]| -> RttDocument {
        let child = Command::new(NETWRIGHT)
            .args(["measure", "rtt", serve.target(), "--json", "--duration", "2s", "--no-pin"])
            .args(args)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(1200));
        serve.signal(libc::SIGSTOP);
        std::thread::sleep(STALL);
        serve.signal(libc::SIGCONT);
        let out = child.wait_with_output().unwrap();
        assert!(out.status.success());
        serde_json::from_slice(&out.stdout).unwrap()
    };
    // 1,000 a second for 2 s: 150 of 2,000 are due in the stall, 7.5%, and wait for its end, half
    // of it on average.
    let open = measure(&["--rate", "1000", "--flows", "4", "--queue-depth", "256"]);
    let q = &open.runs[0].rtt_ns;
    assert!((1_950..=2_050).contains(&q.count), "{q:?}");
    assert!(q.max >= 145_000_000, "{q:?}");
    assert!(q.p99 >= 110_000_000, "7.5% were in the stall, so 1% waited 130 ms: {q:?}");
    assert!(q.p50 < 20_000_000, "{q:?}");
    // With one outstanding request the rest wait in the generator, and count from their scheduled
    // time.
    let few = measure(&["--rate", "1000", "--flows", "1"]);
    assert!(few.runs[0].rtt_ns.p99 >= 110_000_000, "{:?}", few.runs[0]);
    let lag = few.runs[0].send_lag_ns.as_ref().unwrap();
    assert!(lag.p99 >= 100_000_000, "the lag is shown apart: {lag:?}");
    // The closed loop sends one request meanwhile, and so sees the stall once.
    let closed = measure(&[]);
    let q = &closed.runs[0].rtt_ns;
    assert!(q.max >= 145_000_000 && q.p99 < 100_000_000, "{q:?}");
}

/// Threads of a process with names that begin like this.
fn threads(pid: u32, name: &str) -> Vec<i32> {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return vec![] };
    tasks
        .filter_map(|t| t.ok()?.file_name().to_str()?.parse().ok())
        .filter(|tid: &i32| {
            let comm = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/comm"));
            comm.is_ok_and(|c| c.starts_with(name))
        })
        .collect()
}

#[test]
fn forced_migrations_are_counted() {
    let online = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap();
    assert_ne!(online.trim(), "0", "this test needs two CPUs");
    let serve = Serve::start(&[]);
    let child = Command::new(NETWRIGHT)
        .args(["measure", "rtt", serve.target(), "--json", "--duration", "2s"])
        .args(["--warmup", "1s", "--cpu", "0", "--peer-cpu", "1"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    let tid = loop {
        match threads(child.id(), "nw-client").first() {
            Some(tid) => break *tid,
            None => assert!(begun.elapsed() < Duration::from_secs(5), "no measuring thread"),
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    // Well within the window, which begins a second after the threads.
    std::thread::sleep(Duration::from_millis(1500));
    const MOVES: u64 = 20;
    for n in 0..MOVES {
        let cpu = if n % 2 == 0 { "1" } else { "0" };
        run("taskset", &["-cp", cpu, &tid.to_string()]);
        std::thread::sleep(Duration::from_millis(20));
    }
    let out = child.wait_with_output().unwrap();
    let document: RttDocument = serde_json::from_slice(&out.stdout).unwrap();
    let place = &document.runs[0].placement.local;
    assert_eq!(place.pinned.len(), 1);
    let counted = place.migrations.get().unwrap();
    assert!((MOVES..=MOVES + 2).contains(&counted), "{place:?}");
    assert_eq!(place.ran_on.len(), 2, "{place:?}");
}

#[test]
fn softirq_time_is_in_the_evidence_of_the_end_that_was_asked() {
    needs_root();
    let peer = Serve::start(&[]);
    let moved = |args: &[&str]| {
        let args = [&["--duration", "500ms", "--wait", "block"], args].concat();
        let document = rtt(peer.target(), &args);
        let window = document.runs[0].window_ns.0;
        (document.runs[0].evidence.clone(), window)
    };
    let softirq = |all: &model::measure::Moved| -> u64 {
        let contexts = ["syscall", "interrupting_task", "idle", "ksoftirqd"];
        contexts.iter().filter_map(|c| all.get(&format!("softirq_ns.{c}"))).sum()
    };
    let (with, window) = moved(&["--softirq"]);
    // Over loopback each message is received in a softirq of its sender's system call.
    let syscall = with.local["softirq_ns.syscall"];
    let all = softirq(&with.local);
    assert!(syscall * 2 > all, "{with:?}");
    let cpus = std::thread::available_parallelism().unwrap().get() as u64;
    assert!(all < window * cpus, "{all} ns in a window of {window}");
    let each = syscall as f64 / with.local["softirq.NET_RX"] as f64;
    assert!((500.0..100_000.0).contains(&each), "{each} ns a NET_RX softirq");
    assert_eq!(softirq(&with.peer), 0);
    assert_eq!(softirq(&moved(&[]).0.local), 0);
}

#[test]
fn it_runs_again_from_its_own_result() {
    let serve = Serve::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("first.json");
    let path = file.to_str().unwrap();
    let args = ["--request", "16..64*2", "--response", "1", "--duration", "50ms", "-o", path];
    let all = [&["measure", "rtt", serve.target(), "--json"], &args[..]].concat();
    assert_eq!(run(NETWRIGHT, &all), "");
    let read = |text: &str| -> RttDocument { serde_json::from_str(text).unwrap() };
    let first = read(&std::fs::read_to_string(&file).unwrap());
    let second = read(&run(NETWRIGHT, &["measure", "--rerun", path, "--json"]));
    assert_eq!(first.request, second.request);
    let sizes = |d: &RttDocument| -> Vec<_> {
        d.runs.iter().map(|r| (r.request_bytes, r.response_bytes)).collect()
    };
    assert_eq!(sizes(&second), [(16, 1), (32, 1), (64, 1)]);
    assert_eq!(sizes(&first), sizes(&second));
    std::fs::write(&file, "{\"kind\":\"poem\"}").unwrap();
    let out = output(NETWRIGHT, &["measure", "--rerun", path]);
    assert_eq!(out.status.code(), Some(4));
    assert!(String::from_utf8_lossy(&out.stderr).contains("no result of"), "{out:?}");
}

#[test]
fn ctrl_c_ends_it_early_and_it_still_reports() {
    let serve = Serve::start(&[]);
    let child = Command::new(NETWRIGHT)
        .args(["measure", "rtt", serve.target(), "--json", "--duration", "1h"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(1200));
    // SAFETY: our own child.
    unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
    let out = child.wait_with_output().unwrap();
    assert_eq!(out.status.code(), Some(0));
    let document: RttDocument = serde_json::from_slice(&out.stdout).unwrap();
    assert!(document.interrupted);
    assert!(document.runs[0].transactions > 100);
    assert!(document.runs[0].window_ns.0 < 3_000_000_000);
}

#[test]
fn a_server_beyond_loopback_makes_up_a_secret_that_is_needed() {
    let ns = crate::support::Namespace::new();
    ns.run("ip", &["link", "add", "d0", "type", "veth", "peer", "name", "d1"]);
    ns.run("ip", &["addr", "add", "10.45.0.1/24", "dev", "d0"]);
    ns.run("ip", &["link", "set", "d0", "up"]);
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &ns.name, NETWRIGHT, "serve", "--json", "--port", "0"]);
    command.args(["--bind", "10.45.0.1"]);
    let serve = Serve::of(command);
    let secret = serve.secret.clone().expect("it makes one up");
    let local = |secret: &str| {
        let env = format!("NETWRIGHT_SECRET={secret}");
        let args =
            [&env, NETWRIGHT, "measure", "rtt", serve.target(), "--duration", "50ms", "--json"];
        ns.output("env", &args)
    };
    for (given, code) in [(secret.as_str(), 0), ("not the secret", 3), ("", 3)] {
        let out = local(given);
        assert_eq!(out.status.code(), Some(code), "{out:?}");
        assert_eq!(String::from_utf8_lossy(&out.stderr).lines().count(), usize::from(code > 0));
    }
}

/// The kernel's own counters say how the client waited: packets that it polled for itself, and
/// sleeps for every round trip or for none. Needs Linux 6.9.
#[test]
fn each_way_of_waiting_is_what_it_says() {
    let (here, there) = planted::pair();
    // A veth polls its peer's TCP packets by NAPI only with GRO, and where the peer has no TSO.
    for (ns, nic) in [(&here, "va"), (&there, "vb")] {
        ns.run("ethtool", &["-K", nic, "gro", "on", "tso", "off"]);
    }
    // With deferral the kernel leaves the NAPI to an application that prefers to poll.
    let defer =
        "cd /sys/class/net/va; echo 200000 > gro_flush_timeout; echo 100 > napi_defer_hard_irqs";
    here.run("sh", &["-c", defer]);
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &there.name, NETWRIGHT, "serve", "--json", "--port", "0"]);
    let serve = Serve::of({
        command.args(["--bind", "10.88.0.2"]);
        command
    });
    let env = format!("NETWRIGHT_SECRET={}", serve.secret.as_deref().expect("it makes one up"));
    let look = |wait: &str| {
        let before = planted::nstat(&here, "TcpExtBusyPollRxPackets");
        let measure = [&env, NETWRIGHT, "measure", "rtt", serve.target(), "--json"];
        let ways = ["--flows", "8", "--duration", "700ms", "--peer-wait", "block", "--wait", wait];
        let engine = ["--engine", if wait == "block" { "epoll" } else { "auto" }];
        let out = here.run("env", &[&measure[..], &ways, &engine].concat());
        let polled = planted::nstat(&here, "TcpExtBusyPollRxPackets") - before;
        let document: RttDocument = serde_json::from_str(&out).unwrap();
        let run = document.runs.into_iter().next().unwrap();
        assert!(run.transactions > 500 && !out.contains("no_busy_poll"), "{wait}: {out}");
        let sleeps = run.cpu.local.voluntary_switches.get().unwrap();
        (polled, sleeps as f64 / run.transactions as f64)
    };
    let (polled, sleeps) = look("block");
    assert_eq!(polled, 0, "nobody polls while it blocks");
    assert!(sleeps > 0.02, "it sleeps until the first of eight answers: {sleeps}");
    let (polled, sleeps) = look("spin");
    assert_eq!(polled, 0, "it asks the socket, not the interface");
    assert!(sleeps < 0.001, "it never sleeps: {sleeps}");
    let (polled, _) = look("busy-poll");
    assert!(polled > 10, "the epoll polls the interface: {polled}");
}
