//! Injects known work into a thread and compares it with the window's figures.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::{
    net::UdpSocket,
    sync::mpsc::{Receiver, Sender, channel},
    thread::JoinHandle,
    time::Duration,
};

use model::{CpuId, CpuSet, Reading};
use probe::Root;

use super::*;
use crate::{
    host::{clocks::thread_ns, pin},
    net::wake::current_tid,
};

/// A thread observed from outside; the test tells it to work and to end.
struct Worker {
    tid: i32,
    go: Option<Sender<()>>,
    done: Receiver<()>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    fn new(work: impl FnOnce() + Send + 'static) -> Self {
        let (go, gone) = channel();
        let (say, done) = channel();
        let (tell, tid) = channel();
        let thread = std::thread::spawn(move || {
            tell.send(current_tid()).unwrap();
            gone.recv().unwrap();
            work();
            say.send(()).unwrap();
            let _ = gone.recv();
        });
        Self { tid: tid.recv().unwrap(), go: Some(go), done, thread: Some(thread) }
    }

    /// The window around the work.
    fn window(mut self) -> Window {
        let root = Root::live();
        let a = CounterSnapshot::take(&[self.tid], &root);
        self.go.as_ref().unwrap().send(()).unwrap();
        self.done.recv().unwrap();
        let b = CounterSnapshot::take(&[self.tid], &root);
        self.go.take();
        self.thread.take().unwrap().join().unwrap();
        between(&a, &b)
    }
}

fn burn(ns: u64) {
    let own = || thread_ns(current_tid()).get().unwrap();
    let until = own() + ns;
    while own() < until {}
}

#[test]
fn a_thread_that_burns_100_ms_of_cpu_is_reported_so() {
    let w = Worker::new(|| burn(100_000_000)).window();
    let ns = w.cpu.threads_ns.get().unwrap();
    // Measured by the thread's own clock, so a busy machine only adds wake-up cost.
    assert!((100_000_000..110_000_000).contains(&ns), "{ns}");
    assert!(w.cpu.process_ns.get().unwrap() >= ns, "{:?} {ns}", w.cpu.process_ns);
    assert!(w.cpu.window_ns.0 >= ns, "{:?}", w.cpu.window_ns);
    let split = w.cpu.threads_user_ns.get().unwrap() + w.cpu.threads_system_ns.get().unwrap();
    assert!(split.abs_diff(ns) <= 20_000_000, "ticks of 10 ms at worst: {split} {ns}");
    let host = w.cpu.host_ns.known().unwrap();
    let busy: u64 = host
        .iter()
        .filter(|(k, _)| !["idle", "iowait"].contains(&k.as_str()))
        .map(|(_, v)| v)
        .sum();
    assert!(busy + 30_000_000 >= ns, "the host was at least as busy: {busy} {ns}");
    let per = per_unit(w.cpu, 1000);
    assert!((100_000.0..110_000.0).contains(&per.threads_per_unit_ns.get().unwrap()));
    assert!(per.host_busy_per_unit_ns.get().unwrap() >= 70_000.0);
}

#[test]
fn forced_migrations_are_counted() {
    const MOVES: usize = 40;
    let cpus: Vec<CpuId> = pin::allowed().unwrap().iter().collect();
    assert!(cpus.len() >= 2, "needs two CPUs to move between");
    let w = Worker::new(move || {
        for cpu in cpus[..2].iter().cycle().take(MOVES + 1) {
            pin::set(&CpuSet::from_iter([*cpu])).unwrap();
        }
    });
    let w = w.window();
    let n = w.extras.migrations.get().expect("needs /proc/self/task/TID/sched");
    // The thread may migrate once on its way to the first CPU too.
    assert!((MOVES as u64..=MOVES as u64 + 5).contains(&n), "{n}");
    assert_eq!(w.extras.threads.first().unwrap().migrations, Reading::Known(n));
}

#[test]
fn short_sleeps_are_counted_as_switches() {
    let w = Worker::new(|| (0..50).for_each(|_| std::thread::sleep(Duration::from_micros(50))));
    let w = w.window();
    let n = w.cpu.voluntary_switches.get().unwrap();
    // A thread that the hypervisor stops before it sleeps finds the time over.
    assert!((40..=60).contains(&n), "{n}");
    assert!(w.cpu.involuntary_switches.is_known());
    assert_eq!(w.extras.threads.len(), 1);
}

#[test]
fn a_window_without_threads_or_of_ended_ones_says_so() {
    let root = Root::live();
    let w = between(&CounterSnapshot::take(&[], &root), &CounterSnapshot::take(&[], &root));
    assert_eq!(w.cpu.threads_ns, Reading::absent("no measuring thread was named"));
    assert!(w.cpu.host_ns.is_known());

    let ended = std::thread::spawn(current_tid).join().unwrap();
    let w =
        between(&CounterSnapshot::take(&[ended], &root), &CounterSnapshot::take(&[ended], &root));
    for missing in [&w.cpu.threads_ns, &w.cpu.voluntary_switches, &w.extras.migrations] {
        assert!(missing.why_not().unwrap().contains(&ended.to_string()), "{missing:?}");
    }
    let other = between(
        &CounterSnapshot::take(&[current_tid()], &root),
        &CounterSnapshot::take(&[], &root),
    );
    assert!(other.cpu.threads_ns.why_not().is_some());
}

#[test]
fn nothing_moved_per_nothing_is_not_known() {
    let root = Root::live();
    let own = [current_tid()];
    let w = between(&CounterSnapshot::take(&own, &root), &CounterSnapshot::take(&own, &root));
    let per = per_unit(w.cpu, 0);
    assert_eq!(per.threads_per_unit_ns.why_not(), Some("nothing was moved"));
}

#[test]
fn datagrams_for_a_full_buffer_are_the_evidence_that_the_kernel_has() {
    let snmp = || {
        let bytes = std::fs::read("/proc/net/snmp").unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let mut udp = text.lines().filter_map(|l| l.strip_prefix("Udp: "));
        let names: Vec<&str> = udp.next().unwrap().split(' ').collect();
        let at = names.iter().position(|n| *n == "RcvbufErrors").unwrap();
        udp.next().unwrap().split(' ').nth(at).unwrap().parse::<u64>().unwrap()
    };
    let to = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = to.local_addr().unwrap();
    socket2::SockRef::from(&to).set_recv_buffer_size(4096).unwrap();
    let from = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (root, datagram) = (Root::live(), [0u8; 1000]);
    for _ in 0..20 {
        from.send_to(&datagram, address).unwrap();
    }
    let outside = snmp();
    let a = CounterSnapshot::take(&[], &root);
    let inside = snmp();
    for _ in 0..200 {
        from.send_to(&datagram, address).unwrap();
    }
    let inside = snmp() - inside;
    let b = CounterSnapshot::take(&[], &root);
    let outside = snmp() - outside;
    let seen = between(&a, &b).moved.get("Udp.RcvbufErrors").copied().unwrap();
    // Other tasks of this host may lose datagrams too: then the outer figure is larger.
    assert!(inside >= 200 && (inside..=outside).contains(&seen), "{inside} {seen} {outside}");
}

#[test]
fn states_that_a_cpu_does_not_tell_are_left_out_and_busy_is_then_unknown() {
    let cpu = EndCpu {
        window_ns: Nanos(1),
        threads_ns: Reading::Known(10),
        threads_user_ns: Reading::default(),
        threads_system_ns: Reading::default(),
        process_ns: Reading::Known(0),
        host_ns: Reading::Known(BTreeMap::from([("user".into(), 5), ("idle".into(), 9)])),
        host_busy_per_unit_ns: Reading::default(),
        threads_per_unit_ns: Reading::default(),
        voluntary_switches: Reading::default(),
        involuntary_switches: Reading::default(),
    };
    let per = per_unit(cpu, 4);
    assert_eq!(per.threads_per_unit_ns, Reading::Known(2.5));
    assert_eq!(per.host_busy_per_unit_ns.why_not(), Some("/proc/stat: no nice time"));
}

#[test]
fn user_and_system_time_are_distinguished_by_enough_ticks_only() {
    let parts = |threads, user, system| {
        let w = Worker::new(|| ()).window();
        let cpu = EndCpu {
            threads_ns: Reading::Known(threads),
            threads_user_ns: Reading::Known(user),
            threads_system_ns: Reading::Known(system),
            ..w.cpu
        };
        let cpu = per_unit(cpu, 1);
        assert_eq!(cpu.threads_ns, Reading::Known(threads));
        (cpu.threads_user_ns, cpu.threads_system_ns)
    };
    let ms = |n: u64| n * 1_000_000;
    assert_eq!(
        parts(ms(2000), ms(500), ms(1500)),
        (Reading::Known(ms(500)), Reading::Known(ms(1500)))
    );
    // A rate of 100/s leaves one tick, attributed to user by chance.
    let (user, system) = parts(ms(13), ms(10), 0);
    assert!(user.why_not().unwrap().contains("of which there were 1"), "{user:?}");
    assert!(system.why_not().is_some());
    // 64 threads of 9 ms each: each is rounded down to no tick.
    let (user, _) = parts(ms(576), 0, 0);
    assert!(user.why_not().unwrap().contains("which say 0"), "{user:?}");
    assert!(parts(ms(499), ms(250), ms(240)).0.why_not().is_some());
    assert!(parts(ms(500), ms(250), ms(240)).0.get().is_some());
}
