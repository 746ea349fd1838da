//! Tests of the waits of packets against known truths: a number of exchanges, a reader kept from
//! its CPU for a known time, a sleeping reader, a spinning reader, and one that wants more than a
//! packet.

use std::{
    io::{BufRead, BufReader, Read},
    process::{Child, Command, Stdio},
    thread::JoinHandle,
};

use crate::support::{NETWRIGHT, looks::hold_in_most_looks, needs_root, serve::Serve};
use model::{
    Reading,
    watch::{ProcessWaits, WaitNs, WatchInterval},
};

/// A process whose output is read line by line; ended when dropped.
struct Peer {
    child: Child,
    lines: Lines,
}

type Lines = BufReader<Box<dyn Read + Send>>;

impl Peer {
    fn of(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|e| panic!("{command:?}: {e}"));
        let out: Box<dyn Read + Send> = Box::new(child.stdout.take().unwrap());
        let lines = BufReader::new(out);
        Self { child, lines }
    }

    fn python(program: &str, args: &[&str]) -> Self {
        Self::of(Command::new("python3").args(["-c", program]).args(args))
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `netwright watch` beside a test. Its output is read meanwhile, as a pipe holds little.
struct Watching {
    peer: Peer,
    lines: JoinHandle<Vec<String>>,
}

impl Watching {
    /// Returns once the programs are attached.
    fn begin() -> Self {
        needs_root();
        let args = ["watch", "--json", "--interval", "500ms", "--waits", "always"];
        let mut peer = Peer::of(Command::new(NETWRIGHT).args(args));
        let first: WatchInterval = serde_json::from_str(&peer.line()).unwrap();
        assert!(first.waits.known().is_some(), "{:?}", first.waits);
        let rest: Lines =
            std::mem::replace(&mut peer.lines, BufReader::new(Box::new(std::io::empty())));
        let lines = std::thread::spawn(move || rest.lines().map(Result::unwrap).collect());
        Self { peer, lines }
    }

    /// The waits of this process since the start.
    fn end(self, pid: u32) -> Waited {
        // Two intervals and a slow reading: the last events are then in a complete interval.
        std::thread::sleep(std::time::Duration::from_millis(1_500));
        let id = i32::try_from(self.peer.pid()).unwrap();
        // SAFETY: our own child, not waited for yet.
        assert_eq!(unsafe { libc::kill(id, libc::SIGINT) }, 0);
        let mut waited = Waited::default();
        for line in self.lines.join().unwrap() {
            let interval: WatchInterval = serde_json::from_str(&line).unwrap();
            let all = interval.waits.known().cloned().unwrap();
            all.iter().filter(|p| p.pid == pid).for_each(|p| waited.add(p));
        }
        waited
    }
}

/// A stage over several intervals: counts, sums, and each interval's median with its count.
#[derive(Debug, Default)]
struct Stage {
    count: u64,
    sum_ns: f64,
    medians: Vec<(u64, u64)>,
}

impl Stage {
    fn add(&mut self, wait: &Reading<WaitNs>) {
        let wait = match wait {
            Reading::Known(wait) => wait,
            // "No events" has no distribution; any other reason is an unobserved stage.
            none => {
                return assert!(none.why_not().unwrap().contains("none was observed"), "{none:?}");
            }
        };
        self.count += wait.count;
        self.sum_ns += wait.mean * wait.count as f64;
        self.medians.push((wait.p50, wait.count));
    }

    fn mean(&self) -> f64 {
        self.sum_ns / self.count.max(1) as f64
    }

    /// The median of the intervals' medians, weighted by their counts.
    fn median(&self) -> u64 {
        let mut medians = self.medians.clone();
        medians.sort_unstable();
        let mut seen = 0;
        let half = |&(_, n): &(u64, u64)| {
            seen += n;
            seen * 2 >= self.count
        };
        medians.iter().copied().find(half).map_or(0, |(ns, _)| ns)
    }
}

#[derive(Debug, Default)]
struct Waited {
    stack: Stage,
    wakeup: Stage,
    runqueue: Stage,
    idle_exit: Stage,
    copy: Stage,
    excluded: u64,
    late: u64,
}

impl Waited {
    fn add(&mut self, process: &ProcessWaits) {
        self.stack.add(&process.stack);
        self.wakeup.add(&process.wakeup);
        self.runqueue.add(&process.runqueue);
        self.idle_exit.add(&process.idle_exit);
        self.copy.add(&process.copy);
        self.excluded += process.excluded_reads.known().unwrap();
        self.late += process.late_reads.known().unwrap();
        assert!((process.observed_share - 1.0).abs() < 1e-9, "{process:?}");
    }

    fn waits(&self) -> u64 {
        self.runqueue.count
    }

    fn mean_sum(&self) -> f64 {
        let ends = self.stack.mean() + self.wakeup.mean();
        ends + self.runqueue.mean() + self.copy.mean()
    }
}

fn hold(so: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if so { Ok(()) } else { Err(what()) }
}

/// Listens, prints the port, accepts, acts `n` times as the mode says, and waits to be killed.
/// Arguments: mode, CPU, n.
const READER: &str = r#"
import os, signal, socket, sys, time
signal.alarm(60)
mode, cpu, n = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
os.sched_setaffinity(0, {cpu})
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
c, _ = listener.accept()
c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
# Before all that is ordinary, so that what else the machine does delays neither end; after the
# sender that holds a CPU.
if mode in ("fifo", "echo", "lowat"):
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
if mode == "lowat":
    c.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1000)
if mode == "spin":
    c.setblocking(False)
for _ in range(n):
    if mode == "sleep":
        time.sleep(0.005)
    while True:
        try:
            got = c.recv(1200 if mode == "lowat" else 1)
            break
        except BlockingIOError:
            pass
    if not got:
        break
    if mode in ("echo", "spin"):
        c.send(got)
print("done", flush=True)
sys.stdin.read()
"#;

/// Connects, sends `n` times as the mode says, then ends. Arguments: mode, CPU, n, port.
const SENDER: &str = r#"
import os, signal, socket, sys, time
signal.alarm(60)
mode, cpu, n, port = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
os.sched_setaffinity(0, {cpu})
c = socket.create_connection(("127.0.0.1", port))
c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
time.sleep(0.1)
if mode in ("fifo", "echo", "lowat"):
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(20))
for _ in range(n):
    if mode in ("echo", "spin"):
        c.send(b"x")
        c.recv(1)
    elif mode == "fifo":
        c.send(b"x")
        until = time.monotonic() + 0.003
        while time.monotonic() < until:
            pass
        time.sleep(0.002)
    elif mode == "sleep":
        c.send(b"x")
        time.sleep(0.004)
    elif mode == "lowat":
        c.send(b"x" * 600)
        time.sleep(0.002)
        c.send(b"x" * 600)
        time.sleep(0.002)
c.shutdown(socket.SHUT_WR)
print("done", flush=True)
sys.stdin.read()
"#;

/// The reader's waits over `n` turns between two processes.
fn turns(mode: &str, reader_cpu: &str, sender_cpu: &str, n: u64) -> Waited {
    let n = n.to_string();
    let mut reader = Peer::python(READER, &[mode, reader_cpu, &n]);
    let port = reader.line();
    let watching = Watching::begin();
    let mut sender = Peer::python(SENDER, &[mode, sender_cpu, &n, &port]);
    assert_eq!((sender.line(), reader.line()), ("done".into(), "done".into()));
    watching.end(reader.pid())
}

#[test]
fn every_turn_of_a_ping_pong_is_a_wait() {
    const TURNS: u64 = 3_000;
    hold_in_most_looks(|| {
        let waited = turns("echo", "1", "0", TURNS);
        let reads = waited.waits() + waited.excluded;
        // Even on a busy machine no read is lost or counted twice.
        assert_eq!(reads, TURNS, "{waited:?}");
        assert_eq!(waited.late, 0, "{waited:?}");
        assert_eq!(waited.stack.count, waited.waits());
        assert_eq!(waited.copy.count, waited.waits());
        hold(waited.waits() >= TURNS * 98 / 100, || format!("{waited:?}"))
    });
}

#[test]
fn a_reader_that_spins_waits_for_nobody() {
    const TURNS: u64 = 2_000;
    let waited = turns("spin", "1", "0", TURNS);
    assert!(waited.excluded >= TURNS * 98 / 100, "{waited:?}");
    assert_eq!(waited.waits() + waited.excluded, TURNS, "{waited:?}");
}

#[test]
fn a_reader_that_sleeps_for_another_reason_is_not_said_to_have_waited() {
    const TURNS: u64 = 200;
    let waited = turns("sleep", "1", "0", TURNS);
    assert_eq!(waited.waits() + waited.excluded, TURNS, "{waited:?}");
    // Sends every 4 ms, reads every 5 ms: the data is there when it is read.
    assert!(waited.excluded >= TURNS * 95 / 100, "{waited:?}");
}

#[test]
fn a_reader_that_wants_two_packets_reads_late() {
    const TURNS: u64 = 100;
    let waited = turns("lowat", "1", "0", TURNS);
    let reads = waited.waits() + waited.excluded;
    // A sender kept from its CPU may have two pairs in one read.
    assert!(reads <= TURNS && waited.late >= TURNS * 8 / 10, "{waited:?}");
}

#[test]
fn a_reader_kept_from_its_cpu_waits_in_the_run_queue_for_that_long() {
    const HELD_NS: u64 = 3_000_000;
    hold_in_most_looks(|| {
        // The sender holds the CPU, for 3 ms after each byte.
        let waited = turns("fifo", "1", "1", 150);
        let median = waited.runqueue.median();
        // The width of a bucket is at most a fourth of its start.
        let so = (HELD_NS * 95 / 100..=HELD_NS * 3 / 2).contains(&median);
        hold(so && waited.waits() >= 120, || format!("{waited:?}"))?;
        hold(waited.idle_exit.count <= 15, || format!("not idle: {waited:?}"))?;
        hold(waited.copy.median() < HELD_NS / 3, || format!("{waited:?}"))
    });
}

#[test]
fn the_stages_of_both_ends_make_up_the_round_trip() {
    hold_in_most_looks(|| {
        let serve = Serve::start(&["--cpu", "1"]);
        let watching = Watching::begin();
        let args = ["measure", "rtt", serve.target(), "--json", "--wait", "block"];
        let more = ["--request", "1", "--cpu", "0", "--peer-cpu", "1", "--duration", "2s"];
        let said = crate::support::run(NETWRIGHT, &[&args[..], &more].concat());
        let document: model::measure::RttDocument = serde_json::from_str(&said).unwrap();
        let run = &document.runs[0];
        let waited = watching.end(u32::try_from(serve.pid()).unwrap());
        let rtt = run.rtt_ns.mean;
        let share = waited.mean_sum() * 2.0 / rtt;
        let reads = waited.waits() as f64 / run.transactions as f64;
        // Warm-up has round trips too.
        hold(reads > 0.9 && reads < 2.0, || format!("{reads} of the round trips: {waited:?}"))?;
        hold((0.4..1.0).contains(&share), || format!("{share} of {rtt} ns: {waited:?}"))
    });
}
