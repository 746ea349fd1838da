//! Observes the exchanges of servers over a time.

mod reported;
mod spread;
pub mod who;

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

use model::{CpuId, Nanos, Reading, passive::PassiveDocument};

use self::{spread::Spread, who::Services};
use super::{
    ObserveWhen,
    duty_cycle::{self, DutyCycle, Part, USUAL_NS},
    permission, possible,
};
use crate::{
    Root,
    bpf::{
        exchanges::{Class, Exchanges, PROGRAMS},
        run_stats,
    },
    samples::clock::{monotonic_ns, wait_until},
};

/// What the programs may take of each CPU's time.
pub const BUDGET: f64 = 0.01;

/// The length of the intervals that the budget applies to.
const INTERVAL_NS: u64 = 1_000_000_000;

/// Of each interval's beginning, for how long the kernel counts what the programs take.
const LOOK_NS: u64 = 20_000_000;

#[derive(Debug)]
pub struct Observer {
    services: Services,
    exchanges: Exchanges,
    duty: DutyCycle,
    when: ObserveWhen,
    started_unix_s: u64,
    begun_ns: u64,
    /// Exchanges by class, each interval's by the share of it that was observed.
    spread: Spread<Class>,
    /// Until when `spread` knows.
    settled_ns: u64,
    /// Runs before the window, by CPU.
    before: duty_cycle::Runs,
}

impl Observer {
    /// Attaches to look at these services; counting begins.
    ///
    /// # Errors
    /// Why the programs cannot be attached: not permitted, or this kernel has no such tracepoints.
    pub fn start(services: Services, when: ObserveWhen) -> Result<Self, Reading<()>> {
        let root = Root::live();
        let permitted = permission::asked(&root, true);
        if !permitted.is_known() {
            return Err(permitted);
        }
        let Services { ports, pids, any_port } = &services;
        let mut exchanges = Exchanges::attach(possible(&root), ports, pids, *any_port)
            .map_err(permission::refused)?;
        if *any_port {
            // Those on which they began to listen while the programs were being attached.
            let since = who::find(&root, &[], pids).unwrap_or_default();
            let marked = exchanges.mark(&since.ports);
            marked.map_err(|e| Reading::absent(format!("eBPF: {e}")))?;
        }
        let begun_ns = monotonic_ns();
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        Ok(Self {
            services,
            before: exchanges.runs(),
            exchanges,
            duty: DutyCycle::begin(when, begun_ns).within(BUDGET),
            when,
            started_unix_s: now.map_or(0, |d| d.as_secs()),
            begun_ns,
            spread: Spread::default(),
            settled_ns: begun_ns,
        })
    }

    /// Observes for this long, or until `stop` is set. `passed` gets the share of the time that has
    /// passed.
    pub fn watch(&mut self, length: Nanos, stop: &AtomicBool, passed: &dyn Fn(f64)) {
        let over = self.begun_ns.saturating_add(length.0);
        let begun = self.begun_ns;
        let mut heard = |now: u64| {
            passed(now.saturating_sub(begun) as f64 / length.0.max(1) as f64);
        };
        while monotonic_ns() < over && !stop.load(Ordering::Relaxed) {
            let end = monotonic_ns().saturating_add(INTERVAL_NS).min(over);
            self.duty.resume(&mut self.exchanges, monotonic_ns(), end);
            self.look_at_cost(end, stop);
            while let Some(due) = self.duty.due() {
                wait_until(due, stop, &mut heard);
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                self.duty.look(&mut self.exchanges, monotonic_ns());
            }
            wait_until(end, stop, &mut heard);
            self.settle(monotonic_ns());
        }
    }

    /// An interval ends. Where the sums cannot be read the next one stands for this, too.
    fn settle(&mut self, now: u64) {
        let Ok(classes) = self.exchanges.classes() else { return };
        let share = self.duty.observed(now);
        let counts = reported::together(classes).into_iter().map(|(class, s)| (class, s.exchanges));
        let length = now.saturating_sub(std::mem::replace(&mut self.settled_ns, now));
        self.spread.add(counts, length, share);
    }

    /// Has the kernel count for a moment what the programs take, where it can.
    fn look_at_cost(&mut self, end: u64, stop: &AtomicBool) {
        let Ok(_counting) = run_stats::on() else { return };
        self.exchanges.object.begin_look();
        wait_until(monotonic_ns().saturating_add(LOOK_NS).min(end), stop, &mut |_| {});
        self.exchanges.object.end_look();
    }

    /// Detaches, and returns the results. Classes without an exchange are left out.
    ///
    /// # Errors
    /// The kernel does not return the sums.
    pub fn end(mut self, interrupted: bool) -> Result<PassiveDocument, String> {
        let now = monotonic_ns();
        // What is counted from now on is not of the window.
        Part::pause(&mut self.exchanges);
        self.settle(now);
        self.document(now.saturating_sub(self.begun_ns), interrupted)
            .map_err(|e| format!("the eBPF programs' sums cannot be read: {e}"))
    }
}

impl duty_cycle::Part for Exchanges {
    fn runs(&self) -> duty_cycle::Runs {
        let cpus = self.cpus().unwrap_or_default();
        cpus.into_iter().map(|(cpu, state): (CpuId, _)| (cpu, state.runs.to_vec())).collect()
    }

    fn ns_per_run(&self) -> Vec<f64> {
        PROGRAMS.iter().map(|p| self.object.ns_per_run(p.program).unwrap_or(USUAL_NS)).collect()
    }

    fn pause(&mut self) {
        Exchanges::pause(self);
    }

    fn resume(&mut self) {
        Exchanges::resume(self);
    }
}
