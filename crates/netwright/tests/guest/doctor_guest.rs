//! Faults planted in a guest: NICs with several queues, nodes, hardware threads, host settings, and
//! a real irqbalance. `doctor` names each, its remedy is applied, and the finding disappears.
//! Look-alikes stay silent. All tests share one guest, as booting is slow.

mod doctor_run;
mod flood;
mod host;
mod placement;

use std::{
    fs::File,
    net::UdpSocket,
    os::fd::AsRawFd,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use lab::{
    server::{NicModel, ServerSpec},
    testing::TestLab,
};

use serde_json::Value;

use crate::support::{NETWRIGHT, needs_root};
use doctor_run::DoctorRun;

/// Datagrams from the lab's client, until dropped.
struct Traffic {
    stop: Arc<AtomicBool>,
    sender: Option<JoinHandle<()>>,
}

impl Traffic {
    /// Sends to port 9000 of a NIC of the guest: this many flows in turn, this many datagrams at
    /// once, again after each pause.
    fn start(lab: &TestLab, nic: u8, flows: usize, at_once: usize, pause: Duration) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (ended, space) =
            (Arc::clone(&stop), format!("/run/netns/{}", lab.namespace("client").unwrap()));
        let sender = thread::spawn(move || {
            let space = File::open(space).unwrap();
            // SAFETY: an open descriptor; only this thread changes its namespace.
            assert_eq!(unsafe { libc::setns(space.as_raw_fd(), libc::CLONE_NEWNET) }, 0);
            let from = format!("10.97.{nic}.1:0");
            let flows: Vec<UdpSocket> =
                (0..flows).map(|_| UdpSocket::bind(&from).unwrap()).collect();
            let mut turn = flows.iter().cycle();
            while !ended.load(Ordering::Relaxed) {
                for flow in turn.by_ref().take(at_once) {
                    // Refused where no socket listens.
                    let _ = flow.send_to(&[0; 100], format!("10.97.{nic}.2:9000"));
                }
                thread::sleep(pause);
            }
        });
        Self { stop, sender: Some(sender) }
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.sender.take().map(JoinHandle::join);
    }
}

/// Runs a script in the guest after the functions of `guest/doctor.sh`.
fn guest(lab: &TestLab, script: &str) -> String {
    let functions = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/guest/doctor.sh");
    let script = format!(
        "cd /run; export NETWRIGHT={NETWRIGHT} NETWRIGHT_STATE=/run/state; . {functions}\n{script}"
    );
    let out = lab.output_within("server", &["bash", "-c", &script], Duration::from_secs(180));
    let out = out.unwrap();
    let (said, reported) =
        (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert_eq!(out.code, 0, "{script}\n{said}{reported}");
    said.trim().to_owned()
}

/// Applies the changes of these rules' findings that `tune` can make; without rules, of all
/// findings.
fn apply(lab: &TestLab, look: &DoctorRun, rules: &[&str]) {
    let of = |f: &&Value| rules.is_empty() || rules.contains(&f["rule"].as_str().unwrap());
    let findings = look.d["findings"].as_array().unwrap().iter().filter(of);
    let mut knobs: Vec<String> = findings.flat_map(doctor_run::asks).collect();
    knobs.sort();
    knobs.dedup();
    let knobs: String = knobs.iter().map(|knob| format!("'{knob}' ")).collect();
    guest(lab, &format!("\"$NETWRIGHT\" tune apply -q --no-confirm {knobs}"));
}

/// The interrupts of a NIC's receiving queues.
fn irqs(lab: &TestLab, nic: &str) -> Vec<u32> {
    let reported = guest(lab, &format!("queue_irqs {nic}"));
    reported.split_whitespace().map(|n| n.parse().unwrap()).collect()
}

#[test]
fn faults_that_no_namespace_has_are_found_remedied_and_gone() {
    needs_root();
    let models = vec![NicModel::Virtio, NicModel::Vmxnet3, NicModel::E1000e];
    let shape = ServerSpec::new(NETWRIGHT);
    let spec = ServerSpec { cpus: 8, threads: 2, queues: 8, nics: 3, models, ..shape };
    let lab = TestLab::server(&spec).unwrap();
    let started = guest(
        &lab,
        // The time that the emulation takes for other CPUs counts as a poll's.
        "sysctl -qw net.core.netdev_budget_usecs=1000000
        start 6 -e \"$listens\"; start 7 -e \"$holds\"; start 2 -e \"$flows\"; connections 100
        balance",
    );
    let [application, holder, flows, balancer] = started.lines().collect::<Vec<_>>()[..] else {
        panic!("{started}")
    };
    what_looks_like_them_is_silent(&lab, application);
    host::wrong_settings(&lab, flows);
    host::a_full_neighbour_table(&lab);
    host::a_slow_clock(&lab);
    host::a_full_transmit_ring(&lab);
    host::a_fixed_speed(&lab);
    placement::wrong_places(&lab, balancer, holder);
    flood::a_full_cpu(&lab);
}

/// Look-alikes: each has one property of the fault, and lacks another.
fn what_looks_like_them_is_silent(lab: &TestLab, application: &str) {
    // The look-alikes:
    // - two channels of eight, no CPU full;
    // - interrupts on one CPU, traffic in one queue;
    // - interrupts on another node than the NIC, idle;
    // - steering for flows;
    // - queues placed by hand, out of order;
    // - delayed interrupts, with the goal throughput;
    // - GRO off and a busy thread on a sibling, few packets;
    // - an application away from the node with the softirqs, which are the timers';
    // - memory that is never read, but enough of it;
    // - bursts that the backlog absorbs;
    // - a table of connections with room.
    let _one_flow = Traffic::start(lab, 0, 1, 1, Duration::from_millis(8));
    let _bursts = Traffic::start(lab, 1, 4, 30, Duration::from_millis(150));
    let spin = guest(
        lab,
        "ethtool -L eth0 combined 2; ethtool -K eth0 gro off; ethtool -C eth2 rx-usecs 50
        place eth0 4; place eth0-tx 4; place eth1 4 6 5 7; place eth2 0
        sysctl -qw net.core.rps_sock_flow_entries=32768; echo 8 > /sys/class/net/lo/queues/rx-0/rps_cpus
        steer 'rx-*/rps_cpus' f0; steer 'rx-*/rps_flow_cnt' 4096; steer 'tx-*/xps_cpus' 0
        start 5 -e \"$spins\"",
    );
    let look = DoctorRun::new(lab, &format!("--pid {application} --pid {spin}"));
    look.silent(&placement::RULES);
    look.silent(&["app_off_softirq_node"]);
    look.silent(&host::RULES);
    look.silent(&["conflicting_tuner", "coalescing_goal", "tcp_memory_pressure"]);
    look.silent(&["few_channels", "offloads_off", "smt_sibling_shared", "link_faults"]);
    look.silent(&["driver_starvation", "pause_storm", "slow_clocksource", "memory_pressure"]);
    guest(lab, &format!("kill {spin}"));
}
