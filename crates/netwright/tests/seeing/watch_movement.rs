//! Tests of `watch` against known truths: a thread with a known number of migrations, messages of
//! known size, segments dropped by a narrow link.

use std::{
    io::{Read, Write},
    mem,
    net::{TcpListener, TcpStream},
    os::unix::net::UnixStream,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use crate::support::{
    NETWRIGHT, Namespace,
    planted::nstat,
    run,
    serve::Serve,
    watching::{Watching, known},
};
use model::{
    Reading,
    measure::{RttDocument, Transport},
    watch::{Messages, WatchInterval},
};

fn run_on(cpu: usize) {
    // SAFETY: an all-zero set is valid, and so is the number of a CPU that is online; 0 is the
    // calling thread.
    let done = unsafe {
        let mut set: libc::cpu_set_t = mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, mem::size_of_val(&set), &raw const set)
    };
    assert_eq!(done, 0, "this test needs CPUs 0 and 1: {}", std::io::Error::last_os_error());
}

fn own_tid() -> u32 {
    // SAFETY: takes nothing, gives a number.
    u32::try_from(unsafe { libc::gettid() }).unwrap()
}

/// The kernel's own count; `None` where it was built without it.
fn nr_migrations(tid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/self/task/{tid}/sched")).ok()?;
    let line = text.lines().find(|l| l.starts_with("se.nr_migrations"))?;
    line.split_ascii_whitespace().last()?.parse().ok()
}

#[test]
fn a_thread_that_is_sent_to_and_fro_is_counted_exactly() {
    const MOVES: u64 = 300;
    run_on(0);
    let mut watching = Watching::start(&[]);
    let tid = own_tid();
    let before = nr_migrations(tid);
    for n in 1..=MOVES {
        run_on(usize::from(n % 2 == 1));
    }
    let counted = nr_migrations(tid).zip(before).map(|(now, then)| now - then);
    let intervals = watching.rest();
    let mine =
        || intervals.iter().flat_map(|i| known(&i.migrated_threads)).filter(|m| m.tid == tid);
    assert_eq!(mine().map(|m| m.migrations).sum::<u64>(), MOVES);
    assert!(mine().all(|m| m.pid.get() == Some(std::process::id())));
    let transitions = |from, to| {
        let of = mine().flat_map(|m| &m.transitions).filter(|w| (w.from.0, w.to.0) == (from, to));
        of.map(|w| w.count).sum::<u64>()
    };
    assert_eq!((transitions(0, 1), transitions(1, 0)), (MOVES / 2, MOVES / 2));
    if let Some(counted) = counted {
        assert_eq!(counted, MOVES, "the kernel's own count");
    }
}

/// A process's messages over all intervals: the port with the most calls.
fn busiest(intervals: &[WatchInterval], pid: u32, transport: Transport) -> Messages {
    let all = intervals.iter().flat_map(|i| known(&i.messages));
    let mut sums: Vec<Messages> = vec![];
    for one in all.filter(|m| m.pid == pid && m.transport == transport) {
        match sums.iter_mut().find(|s| s.port == one.port) {
            None => sums.push(one.clone()),
            Some(sum) => {
                sum.sends += one.sends;
                sum.sent_bytes += one.sent_bytes;
                sum.receives += one.receives;
                sum.received_bytes += one.received_bytes;
                sum.exchanges += one.exchanges;
                // An interval with the greeting alone knows no CPU: its socket was not connected.
                let both = [&sum.received_elsewhere, &one.received_elsewhere];
                sum.received_elsewhere = match both.map(Reading::get) {
                    [None, None] => one.received_elsewhere.clone(),
                    [a, b] => Reading::Known(a.unwrap_or(0) + b.unwrap_or(0)),
                };
            }
        }
    }
    sums.into_iter().max_by_key(|s| s.sends + s.receives).expect("no messages of this process")
}

fn mean(bytes: u64, calls: u64) -> f64 {
    bytes as f64 / calls as f64
}

#[test]
fn sizes_and_exchanges_are_those_of_the_traffic() {
    for (transport, args) in [(Transport::Tcp, &[][..]), (Transport::Udp, &["--udp"])] {
        let mut watching = Watching::start(&["--messages", "always"]);
        let serve = Serve::start(&["--open"]);
        let sizes = ["--request", "300", "--response", "1000", "--warmup", "0ms"];
        let place = ["--duration", "1s", "--cpu", "0", "--peer-cpu", "1"];
        let measure = [&["measure", "rtt", serve.target(), "--json"], &sizes[..], &place, args];
        let command = Command::new(NETWRIGHT).args(measure.concat()).stdout(Stdio::piped()).spawn();
        let client = command.unwrap();
        let pid = client.id();
        let out = client.wait_with_output().unwrap();
        let document: RttDocument = serde_json::from_slice(&out.stdout).unwrap();
        let intervals = watching.rest();
        let server = busiest(&intervals, serve.pid().unsigned_abs(), transport);
        let client = busiest(&intervals, pid, transport);
        assert_eq!(server.port, client.port, "{transport:?}: one service, one port");
        assert!(known(&server.port) > &0);
        // A short greeting is among the thousand messages.
        for (bytes, calls, size) in [
            (server.received_bytes, server.receives, 300.0),
            (server.sent_bytes, server.sends, 1000.0),
            (client.sent_bytes, client.sends, 300.0),
            (client.received_bytes, client.receives, 1000.0),
        ] {
            assert!((mean(bytes, calls) / size - 1.0).abs() < 0.01, "{server:?} {client:?}");
        }
        let transactions = document.runs[0].transactions;
        assert!(transactions > 100, "{transactions}");
        // Warm-up and cool-down have exchanges too.
        let more = server.exchanges as f64 / transactions as f64;
        assert!((0.99..1.5).contains(&more), "{transactions}: {server:?}");
        // On loopback the sender's CPU receives the packet: with the ends on two CPUs, always
        // another one.
        let elsewhere = *known(&server.received_elsewhere) as f64 / server.receives as f64;
        assert!(elsewhere > 0.9, "{server:?}");
    }
}

/// `n` exchanges of 300 bytes against 1,000 on two connected sockets of this process.
fn exchange<S: Read + Write + Send>(mut client: S, mut server: S, n: u64) {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..n {
                server.read_exact(&mut [0; 300]).unwrap();
                server.write_all(&[2; 1000]).unwrap();
            }
        });
        for _ in 0..n {
            client.write_all(&[1; 300]).unwrap();
            client.read_exact(&mut [0; 1000]).unwrap();
        }
    });
}

#[test]
fn every_call_is_counted() {
    const N: u64 = 2_000;
    let mut watching = Watching::start(&["--messages", "always"]);
    // A port chosen by the kernel, like the client's.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let client = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let (server, _) = listener.accept().unwrap();
    drop(listener);
    exchange(client, server, N);
    let (a, b) = UnixStream::pair().unwrap();
    exchange(a, b, N);
    let intervals = watching.rest();
    for transport in [Transport::Tcp, Transport::Unix] {
        let all = busiest(&intervals, std::process::id(), transport);
        assert_eq!((all.sends, all.sent_bytes), (2 * N, 1300 * N), "{transport:?}");
        assert_eq!(all.received_bytes, 1300 * N, "{transport:?}");
        assert!(all.receives >= 2 * N, "{all:?}");
        // All of the server's, and the client's from the second on.
        assert_eq!(all.exchanges, 2 * N - 1, "{transport:?}");
        match transport {
            Transport::Tcp => assert_eq!(all.port, Reading::Known(port)),
            _ => assert!(!all.port.is_known() && !all.received_elsewhere.is_known()),
        }
    }
}

/// Two namespaces, and a link with a queue of a few frames.
fn narrow_wire() -> (Namespace, Namespace) {
    let (left, right) = (Namespace::new(), Namespace::new());
    let words = format!("-n {} link add w0 type veth peer name w0 netns {}", left.name, right.name);
    run("ip", &words.split(' ').collect::<Vec<_>>());
    for (side, n) in [(&left, 1), (&right, 2)] {
        side.run("ip", &["address", "add", &format!("10.98.9.{n}/24"), "dev", "w0"]);
        let six = format!("fd98:9::{n}/64");
        side.run("ip", &["address", "add", &six, "dev", "w0", "nodad"]);
        side.run("ip", &["link", "set", "w0", "up"]);
    }
    let words = "qdisc replace dev w0 root tbf rate 50mbit burst 16k limit 20k";
    left.run("tc", &words.split(' ').collect::<Vec<_>>());
    (left, right)
}

#[test]
fn retransmits_are_those_that_the_kernel_counts_with_their_connection() {
    for (address, local, peer) in
        [("10.98.9.2", "10.98.9.1:", "10.98.9.2:"), ("fd98:9::2", "[fd98:9::1]:", "[fd98:9::2]:")]
    {
        let (left, right) = narrow_wire();
        let mut watching = Watching::start(&[]);
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &right.name, NETWRIGHT, "serve", "--json", "--port", "0"]);
        command.args(["--bind", address, "--open"]);
        let serve = Serve::of(command);
        let args = ["measure", "stream", serve.target(), "--json", "--duration", "2s"];
        left.netwright_json(&args);
        drop(serve);
        // The last retransmits may come after the end.
        let retransmitted = || nstat(&left, "TcpRetransSegs");
        let (mut total, until) = (retransmitted(), Instant::now() + Duration::from_secs(20));
        let mut intervals = vec![];
        loop {
            intervals.extend(watching.rest());
            let now = retransmitted();
            if mem::replace(&mut total, now) == now || Instant::now() > until {
                break;
            }
        }
        let all = intervals.iter().flat_map(|i| known(&i.retransmits));
        let (ours, others): (Vec<_>, Vec<_>) = all.partition(|r| r.local.starts_with(local));
        assert!(ours.iter().all(|r| r.remote.starts_with(peer)), "{ours:?}");
        let seen: u64 = ours.iter().map(|r| r.segments).sum();
        assert!(total > 10, "the wire dropped next to nothing: {total}");
        assert_eq!(seen, total, "over {address}: {ours:?}; others: {others:?}");
    }
}

#[test]
fn without_programs_each_part_says_why_it_is_missing() {
    let mut watching = Watching::start(&["--no-bpf"]);
    let one = watching.next();
    for why in [one.migrated_threads.why_not(), one.messages.why_not(), one.retransmits.why_not()] {
        assert_eq!(why, Some("eBPF is switched off (--no-bpf)"));
    }
    assert!(one.samples.is_known());
    // Hardware counters may be missing; then there is a reason.
    for why in one.cpus.iter().filter_map(|c| c.ipc.why_not()) {
        assert!(why.starts_with("performance counters: "), "{why}");
    }
}
