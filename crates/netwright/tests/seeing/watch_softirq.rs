//! Tests of the softirq time of `netwright watch` against bpftrace on the same tracepoints, in the
//! same window under the same traffic.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader},
    iter,
    process::{Child, ChildStdout, Command, Stdio},
    sync::Mutex,
    thread::sleep,
    time::{Duration, Instant},
};

use crate::support::{NETWRIGHT, Namespace, needs_root, watching::Watching};
use serde_json::Value;

/// One comparison at a time: each has its own traffic.
static ALONE: Mutex<()> = Mutex::new(());

/// A process that ends with its test.
struct Running(Child);

impl Running {
    fn start(command: &mut Command) -> Self {
        let name = command.get_program().to_string_lossy().into_owned();
        Self(command.spawn().unwrap_or_else(|e| panic!("{name}: {e}; `make test-deps`")))
    }

    fn out(&mut self) -> BufReader<ChildStdout> {
        BufReader::new(self.0.stdout.take().expect("it is piped"))
    }

    fn signal(&self, signal: i32) {
        // SAFETY: our own child, not waited for yet.
        unsafe { libc::kill(i32::try_from(self.0.id()).unwrap(), signal) };
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Two namespaces on a veth pair, which polls packets like a NIC.
struct Pair {
    local: Namespace,
    peer: Namespace,
}

impl Pair {
    fn new() -> Self {
        let (local, peer) = (Namespace::new(), Namespace::new());
        let veth = ["type", "veth", "peer", "name", "nwb", "netns", &peer.name];
        local.run("ip", &[&["link", "add", "nwa"][..], &veth].concat());
        for (ns, dev, address) in [(&local, "nwa", "10.91.0.1/24"), (&peer, "nwb", "10.91.0.2/24")]
        {
            ns.run("ip", &["address", "add", address, "dev", dev]);
            // With segmentation or merging offload, packets bypass polling.
            ns.run("ethtool", &["-K", dev, "gro", "on", "tso", "off"]);
            ns.run("ip", &["link", "set", dev, "up"]);
        }
        Self { local, peer }
    }

    /// Writes a setting of the server's device.
    fn set(&self, file: &str, value: &str) {
        self.peer.run("sh", &["-c", &format!("echo {value} > /sys/class/net/nwb/{file}")]);
    }

    /// iperf3 from the client's namespace to the server's.
    fn traffic(&self, args: &[&str]) -> [Running; 2] {
        iperf3(&self.peer, &self.local, "10.91.0.2", args)
    }
}

fn iperf3(server: &Namespace, client: &Namespace, address: &str, args: &[&str]) -> [Running; 2] {
    let inside = |ns: &Namespace| {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &ns.name, "iperf3", "-p", "5991"]).stdout(Stdio::null());
        command.stderr(Stdio::null());
        command
    };
    let listening = Running::start(inside(server).args(["-s", "-1"]));
    server.await_listener(5991);
    let sending = Running::start(inside(client).args(["-c", address, "-t", "60"]).args(args));
    let until = Instant::now() + Duration::from_secs(20);
    while server.run("ss", &["-Htn", "state", "established", "sport", "=", ":5991"]).is_empty() {
        assert!(Instant::now() < until, "iperf3 has no connection");
        sleep(Duration::from_millis(20));
    }
    sleep(Duration::from_millis(500));
    [listening, sending]
}

/// Softirq time since the start, a line each 50 ms; and at the end by the stacks of one in eight.
/// Each program reads the clock first, so that both include the time of the two programs.
fn script() -> String {
    let cpus = fs::read_to_string("/sys/devices/system/cpu/online").unwrap();
    let last: u32 = cpus.trim().rsplit(['-', ',']).next().unwrap().parse().unwrap();
    let sum: Vec<String> = (0..=last).map(|c| format!("@ns[{c}]")).collect();
    format!(
        "tracepoint:irq:softirq_entry {{ $n = nsecs; @s[cpu] = $n; }}
         tracepoint:irq:softirq_exit {{
           $n = nsecs; $b = @s[cpu];
           if ($b) {{
             @ns[cpu] = @ns[cpu] + $n - $b; @s[cpu] = 0;
             if (rand % 8 == 0) {{ @by[pid, comm, kstack(6)] = sum($n - $b); }}
           }}
         }}
         interval:ms:50 {{ printf(\"T %llu %llu\\n\", nsecs, {}); }}
         END {{ clear(@s); clear(@ns); }}",
        sum.join(" + ")
    )
}

struct Truth {
    /// Nanoseconds since 1970, and softirq time until then.
    totals: Vec<(f64, f64)>,
    /// The share of system calls among softirqs in tasks.
    own: f64,
}

impl Truth {
    /// Softirq time until then, interpolated between two lines.
    fn at(&self, when: f64) -> f64 {
        let after = self.totals.iter().position(|(t, _)| *t >= when).expect("a line after it");
        let ((t0, v0), (t1, v1)) = (self.totals[after - 1], self.totals[after]);
        v0 + (v1 - v0) * (when - t0) / (t1 - t0)
    }

    fn parse(text: &str, offset: f64) -> Self {
        let mut totals = vec![];
        let (mut own, mut interrupts) = (0.0, 0.0);
        let mut stack: Option<String> = None;
        for line in text.lines() {
            if let Some(line) = line.strip_prefix("T ") {
                let (at, total) = line.split_once(' ').unwrap();
                totals.push((at.parse::<f64>().unwrap() + offset, total.parse().unwrap()));
            } else if line.starts_with("@by[") {
                stack = Some(line.to_owned());
            } else if let Some(text) = &mut stack {
                text.push_str(line);
                let Some((_, ns)) = line.split_once("]: ") else { continue };
                let ns: f64 = ns.parse().unwrap();
                match text {
                    t if t.starts_with("@by[0,") || t.contains("ksoftirqd") => {}
                    // At the end of an interrupt, not in `__traceiter_softirq_exit`.
                    t if t.replace("softirq_exit", "").contains("irq_exit") => interrupts += ns,
                    _ => own += ns,
                }
                stack = None;
            }
        }
        Self { totals, own: own / (own + interrupts) }
    }
}

/// The output of `watch`, in nanoseconds.
struct Reported {
    /// Of all CPUs, over the window.
    total: f64,
    own: f64,
    begin: f64,
    end: f64,
    last: Value,
}

/// When an interval of `watch` ended, nanoseconds since 1970.
fn ended(interval: &Value) -> f64 {
    interval["ended_unix_ns"].as_u64().unwrap() as f64
}

fn reported(lines: &[Value]) -> Reported {
    let (first, rest) = lines.split_first().unwrap();
    let mut by: BTreeMap<&str, f64> = BTreeMap::new();
    for context in ["syscall", "interrupting_task", "idle", "ksoftirqd"] {
        let cpus = rest.iter().flat_map(|l| l["cpus"].as_array().unwrap());
        let vectors = cpus.flat_map(|c| c["softirq_ns"][context].as_object().unwrap().values());
        by.insert(context, vectors.map(|n| n.as_f64().unwrap()).sum());
    }
    Reported {
        total: by.values().sum(),
        own: by["syscall"] / (by["syscall"] + by["interrupting_task"]),
        begin: ended(first),
        end: ended(rest.last().unwrap()),
        last: rest.last().unwrap().clone(),
    }
}

/// Runs a script in a mount namespace with tracefs, which not every host has mounted.
const BPFTRACE: &str =
    "[ -d /sys/kernel/tracing/events ] || mount -t tracefs tracefs /sys/kernel/tracing
exec bpftrace -e \"$0\"";

/// Both at once over 3 s, ours first: see [`script`].
fn both() -> (Reported, Truth) {
    let mut watch = Watching::by(Command::new(NETWRIGHT), &["--softirq", "always"]);
    let mut bpftrace = Running::start(
        Command::new("unshare")
            .args(["--mount", "sh", "-c", BPFTRACE, &script()])
            .stdout(Stdio::piped())
            .stderr(Stdio::null()),
    );
    let mut truth = bpftrace.out();
    let mut text = String::new();
    while !text.contains("T ") {
        assert!(truth.read_line(&mut text).unwrap() > 0, "bpftrace: {text}");
    }
    let offset = clock(libc::CLOCK_REALTIME) - clock(libc::CLOCK_MONOTONIC);
    let (_, line) = text.split_once("T ").unwrap();
    let began = line.split(' ').next().unwrap().parse::<f64>().unwrap() + offset;
    // Intervals that ended before its first line, while it was starting, are not compared.
    let mut first: Value = watch.next_as();
    while ended(&first) <= began {
        first = watch.next_as();
    }
    let seen: Vec<Value> = iter::once(first).chain((0..3).map(|_| watch.next_as())).collect();
    sleep(Duration::from_millis(300));
    bpftrace.signal(libc::SIGINT);
    for line in truth.lines() {
        text.push_str(&line.unwrap());
        text.push('\n');
    }
    (reported(&seen), Truth::parse(&text, offset))
}

fn clock(id: libc::clockid_t) -> f64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes to a variable of ours.
    unsafe { libc::clock_gettime(id, &raw mut t) };
    t.tv_sec as f64 * 1e9 + t.tv_nsec as f64
}

/// At most three comparisons, judged by their medians; the first success is enough. `points` is the
/// tolerance of the contexts' split, in percentage points.
fn agree(what: &str, most_points: f64) -> Value {
    let (mut ratios, mut points) = (vec![], vec![]);
    loop {
        let (reported, truth) = both();
        let theirs = truth.at(reported.end) - truth.at(reported.begin);
        ratios.push(reported.total / theirs);
        points.push(100.0 * (reported.own - truth.own));
        println!(
            "{what}: {:.1} ms, bpftrace {:.1} ms, ratio {:.4}; own {:.1}%, by stacks {:.1}%",
            reported.total / 1e6,
            theirs / 1e6,
            reported.total / theirs,
            100.0 * reported.own,
            100.0 * truth.own
        );
        let right = (median(&ratios) - 1.0).abs() <= 0.03 && median(&points).abs() <= most_points;
        if right {
            return reported.last;
        }
        assert!(ratios.len() < 3, "{what}: ratios {ratios:?}, points {points:?}");
    }
}

fn median(of: &[f64]) -> f64 {
    let mut sorted = of.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

fn napi<'a>(interval: &'a Value, nic: &str) -> Vec<&'a Value> {
    interval["napi"].as_array().unwrap().iter().filter(|n| n["nic"] == nic).collect()
}

fn sum(of: &[&Value], key: &str) -> u64 {
    of.iter().flat_map(|n| n["cpus"].as_array().unwrap()).filter_map(|c| c[key].as_u64()).sum()
}

#[test]
fn a_stream_over_loopback() {
    needs_root();
    let _alone = ALONE.lock();
    let ns = Namespace::new();
    let _traffic = iperf3(&ns, &ns, "127.0.0.1", &[]);
    let last = agree("TCP stream", 3.0);
    assert!(sum(&napi(&last, "backlog"), "packets") > 1000, "{}", last["napi"]);
}

#[test]
fn small_packets_over_loopback() {
    needs_root();
    let _alone = ALONE.lock();
    let ns = Namespace::new();
    let _traffic = iperf3(&ns, &ns, "127.0.0.1", &["-u", "-b", "0", "-l", "64"]);
    let last = agree("UDP, 64 bytes", 3.0);
    let interrupted_tasks = last["interrupted_tasks"].as_array().unwrap();
    // Not the backlog's time, which includes other tests' packets.
    let paid = |key: &str| -> u64 {
        let sender = interrupted_tasks.iter().filter(|p| p["name"] == "iperf3");
        sender.map(|p| p[key].as_u64().unwrap()).sum()
    };
    let (own, preempted) = (paid("own_softirq_ns"), paid("preempted_by_softirq_ns"));
    assert!(
        own > 10_000_000 && own > 4 * preempted,
        "the sender pays for its packets: {own}, {preempted}"
    );
}

#[test]
fn packets_handed_to_another_cpu() {
    needs_root();
    let _alone = ALONE.lock();
    let pair = Pair::new();
    pair.set("queues/rx-0/rps_cpus", "2");
    // From CPU 0: a CPU does not steer packets to itself.
    let _traffic = pair.traffic(&["-u", "-b", "200M", "-l", "1000", "-A", "0"]);
    let last = agree("RPS", 3.0);
    let rps = last["cpus"][1]["received_rps"].as_u64();
    assert!(rps.unwrap_or(0) > 0, "CPU 1 was handed packets: {rps:?}");
}

#[test]
fn threads_that_poll() {
    needs_root();
    let _alone = ALONE.lock();
    let pair = Pair::new();
    pair.set("threaded", "1");
    let _traffic = pair.traffic(&[]);
    let last = agree("threaded NAPI", 3.0);
    let peer = napi(&last, "nwb");
    assert_eq!(peer.len(), 1, "{peer:?}");
    assert_eq!(peer[0]["threaded"], true, "{peer:?}");
    let (polls, outside) = (sum(&peer, "polls"), sum(&peer, "polls_outside_softirq"));
    assert!(polls > 100 && polls == outside, "all by its thread: {peer:?}");
    let cpus = last["cpus"].as_array().unwrap();
    let of = |c: &Value| c["softirq_ns"]["threaded"]["net_rx"].as_u64().expect("it is known");
    let threaded: u64 = cpus.iter().map(of).sum();
    assert!(threaded > 0 && threaded == sum(&peer, "ns"), "{threaded} in {peer:?}");
}

/// Two at once: one observes everything, the other a share, which it scales.
#[test]
fn what_is_seen_in_part_is_scaled_to_the_whole() {
    needs_root();
    let _alone = ALONE.lock();
    let ns = Namespace::new();
    let _traffic = iperf3(&ns, &ns, "127.0.0.1", &["-u", "-b", "0", "-l", "64"]);
    let watch = |when: &str| {
        Running::start(
            Command::new(NETWRIGHT)
                .args(["watch", "--json", "--duration", "60s", "--softirq", when])
                .stdout(Stdio::piped()),
        )
    };
    let (mut part, mut all) = (watch("auto"), watch("always"));
    let lines = |watch: &mut Running| {
        let lines = watch.out().lines();
        lines.skip(1).take(7).map(|l| serde_json::from_str(&l.unwrap()).unwrap()).collect()
    };
    let (part, all): (Vec<Value>, Vec<Value>) = (lines(&mut part), lines(&mut all));
    let own = |v: &Value| {
        let cpus = v["cpus"].as_array().unwrap().iter();
        let ns: f64 = cpus.map(|c| c["softirq_ns"]["syscall"]["net_rx"].as_f64().unwrap()).sum();
        ns / v["interval_s"].as_f64().unwrap()
    };
    let mut shares = part.iter().map(|v| v["softirq_observed_share"].as_f64().unwrap());
    let seen: Vec<f64> = shares.by_ref().collect();
    assert!(seen.iter().all(|s| (0.001..0.9).contains(s)), "of so many packets a part: {seen:?}");
    assert!(all.iter().all(|v| v["softirq_observed_share"] == 1.0));
    let polls = |v: &Value| sum(&napi(v, "backlog"), "polls");
    assert!(polls(&part[0]) < polls(&all[0]), "{} {}", polls(&part[0]), polls(&all[0]));
    let each = |of: &[Value]| median(&of.iter().map(own).collect::<Vec<_>>());
    let ratio = each(&part) / each(&all);
    println!("seen {seen:.3?}, {:.3} of what there was", ratio);
    // Medians of the same seconds: scaled twice, or not at all, is outside.
    assert!((0.6..1.6).contains(&ratio), "{ratio}");
}

/// A process that computes on the CPU that receives the steered packets.
#[test]
fn a_bystander_pays_for_packets_that_its_cpu_is_handed() {
    needs_root();
    let _alone = ALONE.lock();
    let pair = Pair::new();
    pair.set("queues/rx-0/rps_cpus", "2");
    let spin = ["-n", "-10", "taskset", "-c", "1", "bash", "-c", "while :; do :; done"];
    let bystander = Running::start(Command::new("nice").args(spin));
    let id = bystander.0.id();
    let id_text = id.to_string();
    let args = ["--softirq", "always", "--pid", &id_text];
    let mut watch = Watching::by(Command::new(NETWRIGHT), &args);
    let quiet = paid(&watch.next_as());
    let _traffic = pair.traffic(&["-u", "-b", "200M", "-l", "1000", "-A", "0,0"]);
    // The first interval began earlier. Of the others the median counts: other processes use that CPU
    // too, and the process that they interrupt changes.
    let (mut shares, mut spent) = (vec![], vec![]);
    let intervals = std::iter::repeat_with(|| watch.next_as::<Value>());
    for one in intervals.skip(2).take(5) {
        // Interrupts come upon it as upon all that runs there: by its share of the CPU.
        let upon = &one["cpus"][1]["softirq_ns"]["interrupting_task"];
        let upon: f64 = upon.as_object().unwrap().values().map(|n| n.as_f64().unwrap()).sum();
        let ran = one["samples"]["threads"].as_array().unwrap().iter();
        let ran = ran.filter(|t| t["pid"] == id).map(|t| t["cpu_ns"].as_f64().unwrap());
        let its = ran.sum::<f64>() / 1e9 / one["interval_s"].as_f64().unwrap();
        shares.push(paid(&one) / (upon * its));
        spent.push(paid(&one));
    }
    let (share, typical) = (median(&shares), median(&spent));
    println!("shares of the softirq time: {shares:.2?}; {spent:?} ns, {quiet} ns without load");
    assert!(typical > 3.0 * quiet && typical > 1e6, "{spent:?} ns, {quiet} ns in quiet");
    assert!((0.7..1.4).contains(&share), "{shares:?}");
}

/// The time that softirqs of interrupts took from the followed process.
fn paid(interval: &Value) -> f64 {
    let interrupted_tasks = interval["interrupted_tasks"].as_array().unwrap();
    interrupted_tasks.iter().map(|p| p["preempted_by_softirq_ns"].as_f64().unwrap()).sum()
}
