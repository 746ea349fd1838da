//! The threads of a test, and snapshots of their counters.

use std::{
    io,
    sync::{
        Arc, Condvar, Mutex, PoisonError,
        atomic::Ordering::{Relaxed, SeqCst},
    },
    thread::{self, Scope},
};

use model::Reading;
use traffic::{
    host::clocks,
    net::{now_ns, sys, wake},
};

use super::{Flow, Load, own_cpu_ns};
use crate::iperf3::{
    results::Cpu,
    sock::{self, TcpInfo},
};

/// Stack size of a data thread: its buffers are on the heap.
pub const STACK: usize = 64 << 10;

/// One thread for each flow. They wait until [`FlowThreads::go`], and have ended when this is
/// dropped.
pub struct FlowThreads<'a> {
    flows: &'a [Flow],
    gate: Arc<(Mutex<Gate>, Condvar)>,
}

#[derive(Clone, Copy, PartialEq)]
enum Gate {
    Shut,
    Open,
}

impl<'a> FlowThreads<'a> {
    /// Starts the threads, on the given CPUs in rotation; without CPUs the scheduler decides.
    ///
    /// # Errors
    /// The kernel cannot start another thread.
    pub fn start<'s>(
        scope: &'s Scope<'s, 'a>,
        flows: &'a [Flow],
        load: &'a Load,
        cpus: &[u32],
    ) -> io::Result<Self> {
        wake::install();
        let pool = Self { flows, gate: Arc::new((Mutex::new(Gate::Shut), Condvar::new())) };
        for (n, flow) in flows.iter().enumerate() {
            let gate = pool.gate.clone();
            let cpu = cpus.get(n % cpus.len().max(1)).copied();
            thread::Builder::new()
                .name(format!("iperf3-{}", flow.id))
                .stack_size(STACK)
                .spawn_scoped(scope, move || {
                    let _running = flow.sleeper.begin();
                    if let Some(cpu) = cpu {
                        pin(cpu);
                    }
                    pass(&gate, flow);
                    flow.work(load);
                })?;
        }
        Ok(pool)
    }

    /// Thread ids, once all threads are waiting.
    pub fn tids(&self) -> Vec<i32> {
        let id = |f: &Flow| loop {
            match f.sleeper.tid() {
                0 => thread::yield_now(),
                tid => break tid,
            }
        };
        self.flows.iter().map(id).collect()
    }

    pub fn go(&self) {
        *self.gate.0.lock().unwrap_or_else(PoisonError::into_inner) = Gate::Open;
        self.gate.1.notify_all();
    }

    /// Ends the threads of one direction, or of both, and waits for them.
    pub fn stop(&self, which: impl Fn(&Flow) -> bool) {
        let chosen: Vec<&Flow> = self.flows.iter().filter(|f| which(f)).collect();
        chosen.iter().for_each(|f| f.stop.store(true, SeqCst));
        self.gate.1.notify_all();
        wake::end_all(chosen.iter().map(|f| &f.sleeper));
    }

    /// Counters of all flows now, and the CPU time of their threads and the caller.
    pub fn snapshot(&self) -> FlowSnapshot {
        let flows = self.flows.iter().map(FlowCounters::of).collect();
        let (user, system) = own_cpu_ns();
        let threads: u64 = self.flows.iter().map(cpu_ns).sum();
        FlowSnapshot { at_ns: now_ns(), flows, cpu_ns: threads + user + system }
    }

    /// Bytes and datagrams of the receiving flows, read without a system call.
    pub fn received(&self) -> (u64, u64) {
        let receiving = self.flows.iter().filter(|f| !f.sends);
        receiving.fold((0, 0), |(bytes, datagrams), f| {
            let g = &f.gauges;
            (bytes + g.bytes.load(Relaxed), datagrams + g.datagrams.load(Relaxed))
        })
    }

    /// Bytes of all flows, summed.
    pub fn moved(&self) -> u64 {
        self.flows.iter().map(|f| f.gauges.bytes.load(Relaxed)).sum()
    }

    /// CPU use between two snapshots, in percent of the time between them. Threads report their
    /// split into user and kernel mode when they end, so the split covers their whole life.
    pub fn cpu(&self, from: &FlowSnapshot, to: &FlowSnapshot) -> Cpu {
        let (own_user, own_system) = own_cpu_ns();
        let sum =
            |f: fn(&super::Gauges) -> u64| self.flows.iter().map(|x| f(&x.gauges)).sum::<u64>();
        let user = own_user + sum(|g| g.user_ns.load(Relaxed));
        let system = own_system + sum(|g| g.system_ns.load(Relaxed));
        let wall = to.at_ns.saturating_sub(from.at_ns).max(1) as f64;
        let total = 100.0 * to.cpu_ns.saturating_sub(from.cpu_ns) as f64 / wall;
        let share = user as f64 / ((user + system).max(1)) as f64;
        Cpu { total, user: total * share, system: total * (1.0 - share) }
    }
}

impl Drop for FlowThreads<'_> {
    fn drop(&mut self) {
        self.stop(|_| true);
    }
}

fn pass(gate: &(Mutex<Gate>, Condvar), flow: &Flow) {
    let mut state = gate.0.lock().unwrap_or_else(PoisonError::into_inner);
    while *state == Gate::Shut && !flow.stopped() {
        // If the stop comes between the check and the wait, it is noticed within this time.
        let time = std::time::Duration::from_millis(20);
        state = gate.1.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner).0;
    }
}

fn pin(cpu: u32) {
    // If the kernel refuses, the thread stays unpinned.
    let _ = sys::pin_thread(cpu);
}

/// CPU time of a flow's thread: read while it runs, or reported by it at its end.
fn cpu_ns(flow: &Flow) -> u64 {
    let tid = flow.sleeper.tid();
    if tid != 0 && !flow.sleeper.has_ended() {
        // A thread that ends meanwhile is not known any more.
        if let Reading::Known(ns) = clocks::thread_ns(tid) {
            return ns;
        }
    }
    flow.gauges.user_ns.load(Relaxed) + flow.gauges.system_ns.load(Relaxed)
}

/// Counters of all flows at one time; they only grow.
#[derive(Debug, Clone)]
pub struct FlowSnapshot {
    /// When they were read, by [`now_ns`].
    pub at_ns: u64,
    /// In the order of the streams.
    pub flows: Vec<FlowCounters>,
    /// CPU time of the data threads and of the reading thread.
    pub cpu_ns: u64,
}

/// Counters of one flow at one time.
#[derive(Debug, Clone, Copy, Default)]
pub struct FlowCounters {
    pub sends: bool,
    /// Payload sent or received.
    pub bytes: u64,
    /// UDP: datagrams sent, or received without duplicates.
    pub datagrams: u64,
    /// UDP: the highest sequence number received.
    pub highest: u64,
    /// UDP: datagrams that arrived after a later one.
    pub reordered: u64,
    pub duplicates: u64,
    pub jitter_ns: u64,
    pub refused: u64,
    /// TCP: state of a sending socket.
    pub tcp: Option<TcpInfo>,
}

impl FlowCounters {
    fn of(flow: &Flow) -> Self {
        let g = &flow.gauges;
        // Highest before received: a datagram that arrives between the two reads must not look like
        // loss.
        let highest = g.highest.load(Relaxed);
        Self {
            sends: flow.sends,
            bytes: g.bytes.load(Relaxed),
            datagrams: g.datagrams.load(Relaxed),
            highest,
            reordered: g.reordered.load(Relaxed),
            duplicates: g.duplicates.load(Relaxed),
            jitter_ns: g.jitter_ns.load(Relaxed),
            refused: g.refused.load(Relaxed),
            tcp: if flow.sends { sock::tcp_info(&flow.socket) } else { None },
        }
    }

    /// UDP: missing sequence numbers below the highest.
    pub fn missing(&self) -> u64 {
        self.highest.saturating_sub(self.datagrams)
    }
}

impl FlowSnapshot {
    pub fn seconds_since(&self, from: &FlowSnapshot) -> f64 {
        self.at_ns.saturating_sub(from.at_ns) as f64 / 1e9
    }

    /// Bytes and datagrams of the receiving flows.
    pub fn received(&self) -> (u64, u64) {
        let receiving = self.flows.iter().filter(|f| !f.sends);
        receiving.fold((0, 0), |(b, d), f| (b + f.bytes, d + f.datagrams))
    }

    /// Bytes since an earlier snapshot, summed over the flows of one direction.
    pub fn bytes_since(&self, from: &FlowSnapshot, sends: bool) -> u64 {
        let pairs = self.flows.iter().zip(&from.flows).filter(|(s, _)| s.sends == sends);
        pairs.map(|(to, from)| to.bytes.saturating_sub(from.bytes)).sum()
    }
}
