//! `watch` in a guest with NUMA nodes and a NIC of four queues: the situations of the field case
//! (where do softirqs run, who pays), and forced squeezes and drops against the kernel's count.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use std::{thread, time::Duration};

use lab::{preset::Preset, server::ServerSpec, testing::TestLab};
use model::watch::{ByContext, CpuWatch, WatchInterval};
use support::{NETWRIGHT, needs_root};

struct Guest(TestLab);

impl Guest {
    fn sh(&self, host: &str, script: &str) -> String {
        let out = self.0.output(host, &["sh", "-c", script]).unwrap();
        let said = String::from_utf8_lossy(&out.stdout).into_owned();
        assert_eq!(out.code, 0, "{script}: {said}{}", String::from_utf8_lossy(&out.stderr));
        said
    }

    /// Every interrupt of the NIC to these CPUs.
    fn irqs_to(&self, cpus: &str) {
        self.sh(
            "server",
            &format!(
                "for i in /proc/irq/*; do ls $i | grep -qE 'input|output' && \
                 echo {cpus} > $i/smp_affinity_list; done; true"
            ),
        );
    }

    /// One interval in the guest while the client sends to a reader on this CPU.
    fn watch_a_reader_on(&self, cpu: u32) -> WatchInterval {
        self.sh("server", &format!("taskset -c {cpu} iperf3 -s -1 -D; sleep 1"));
        thread::scope(|scope| {
            let client = scope.spawn(|| self.sh("client", "iperf3 -c 10.97.0.2 -t 20 >/dev/null"));
            thread::sleep(Duration::from_secs(2));
            let seen =
                self.sh("server", &format!("{NETWRIGHT} watch --json --duration 3s --interval 3s"));
            client.join().unwrap();
            serde_json::from_str(seen.lines().last().unwrap()).unwrap()
        })
    }
}

fn net_rx(cpu: &CpuWatch) -> u64 {
    let c: &ByContext = cpu.softirq_ns.known().unwrap();
    [c.syscall, c.irq_on_task, c.idle, c.ksoftirqd].iter().map(|v| v.net_rx).sum()
}

/// Share of receiving on these CPUs.
fn share_on(seen: &WatchInterval, cpus: &[u32]) -> f64 {
    let all: u64 = seen.cpus.iter().map(net_rx).sum();
    let here = seen.cpus.iter().filter(|c| cpus.contains(&c.id.0)).map(net_rx);
    here.sum::<u64>() as f64 / all as f64
}

/// Milliseconds that others' packets took from the reader, of each second.
fn stolen_from_reader(seen: &WatchInterval) -> f64 {
    let payers = seen.payers.known().unwrap();
    let stolen = payers.iter().filter(|p| p.name == "iperf3").map(|p| p.stolen_softirq_ns);
    stolen.sum::<u64>() as f64 / 1e6 / seen.interval_s
}

/// The guest's softnet counters, one column summed over CPUs.
fn softnet(text: &str, column: usize) -> u64 {
    let of = |line: &str| u64::from_str_radix(line.split_whitespace().nth(column).unwrap(), 16);
    text.lines().map(|l| of(l).unwrap()).sum()
}

/// One guest serves all of these, for a boot is dear.
#[test]
fn who_pays_on_which_node_and_every_squeeze_and_drop() {
    needs_root();
    let lab = TestLab::server_with(&ServerSpec::new(NETWRIGHT), Preset::Queues).unwrap();
    let guest = Guest(lab);
    guest.sh("server", "ethtool -L eth0 combined 4 || true");

    // Softirqs on one node, the reader on the other: it pays nothing.
    guest.irqs_to("2-3");
    let apart = guest.watch_a_reader_on(0);
    // Both on one CPU: the reader pays for what it reads.
    guest.irqs_to("0");
    let together = guest.watch_a_reader_on(0);

    assert!(share_on(&apart, &[2, 3]) > 0.9, "{:?}", apart.cpus);
    assert!(share_on(&together, &[0]) > 0.9, "{:?}", together.cpus);
    let (none, much) = (stolen_from_reader(&apart), stolen_from_reader(&together));
    assert!(much > 20.0 && much > none * 5.0, "{none} ms and {much} ms a second");
    let upon = |seen: &WatchInterval| {
        let cpu0 = seen.cpus.iter().find(|c| c.id.0 == 0).unwrap();
        cpu0.softirq_ns.known().unwrap().irq_on_task.net_rx
    };
    assert!(upon(&together) > upon(&apart) * 5, "{} and {}", upon(&apart), upon(&together));
    // The queues' table names the CPUs that the interrupts were sent to.
    let polled: Vec<u32> = apart
        .napi
        .known()
        .unwrap()
        .iter()
        .filter(|n| n.nic.known().is_some_and(|n| n == "eth0"))
        .flat_map(|n| &n.cpus)
        .filter(|c| c.packets > 100)
        .map(|c| c.cpu.0)
        .collect();
    assert!(!polled.is_empty() && polled.iter().all(|c| [2, 3].contains(c)), "{polled:?}");

    // Squeezes: a budget of one packet. Drops: a backlog of one, filled by RPS.
    guest.sh(
        "server",
        "sysctl -qw net.core.netdev_budget=1 net.core.netdev_max_backlog=1; \
        for q in /sys/class/net/eth0/queues/rx-*; do echo c > $q/rps_cpus; done",
    );
    let script = format!(
        "iperf3 -s -1 -D; sleep 1; cp /proc/net/softnet_stat /tmp/before; \
         {NETWRIGHT} watch --json --duration 15s --interval 15s > /tmp/seen; \
         cat /proc/net/softnet_stat > /tmp/after; cat /tmp/before; echo; cat /tmp/after; echo; cat /tmp/seen"
    );
    let said = thread::scope(|scope| {
        let watch = scope.spawn(|| guest.sh("server", &script));
        // Attaching takes seconds in a guest on a busy machine.
        thread::sleep(Duration::from_secs(8));
        guest.sh("client", "iperf3 -c 10.97.0.2 -u -b 20M -t 2 >/dev/null; true");
        watch.join().unwrap()
    });
    let [before, after, seen] = said.splitn(3, "\n\n").collect::<Vec<_>>()[..] else {
        panic!("{said}");
    };
    let seen: WatchInterval = serde_json::from_str(seen.trim()).unwrap();
    for (what, column, of) in [
        ("time_squeeze", 2, (|c| c.time_squeeze.get()) as fn(&CpuWatch) -> Option<u64>),
        ("backlog_drops", 1, |c| c.backlog_drops.get()),
    ] {
        let watched: u64 = seen.cpus.iter().map(|c| of(c).unwrap()).sum();
        let kernel = softnet(after, column) - softnet(before, column);
        // Between the files and the window a stray packet of the lab's own may come.
        assert!(
            watched > 10 && watched <= kernel && kernel - watched <= kernel / 50 + 3,
            "{what}: watch saw {watched}, the kernel counted {kernel}"
        );
    }
}
