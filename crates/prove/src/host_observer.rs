//! Counters and disturbances of the host, read before and after each run.

use std::collections::BTreeMap;

use model::{IrqId, Samples};
use probe::{
    Root,
    perf::ChildMoves,
    samples::{self, Options, delta, raw::Raw},
};

use crate::{
    child::EndedRun,
    disturbance::{self, RunDisturbance},
    evidence::{self, Counters},
    workload::Workload,
};

/// Reads this host around runs.
pub(crate) struct HostObserver {
    root: Root,
    irqs: BTreeMap<IrqId, String>,
}

/// The host before a run.
pub(crate) struct BeforeRun {
    counters: Raw,
    disturbance: disturbance::Baseline,
    /// `None` where the kernel denies perf events.
    moves: Option<ChildMoves>,
}

/// What happened on the host during one run, and its counters' growth.
pub(crate) struct HostReading {
    pub(crate) during: RunDisturbance,
    pub(crate) counters: Counters,
    pub(crate) work: Option<f64>,
}

impl HostObserver {
    pub(crate) fn live() -> Self {
        let root = Root::live();
        Self { irqs: samples::irq_names(&root), root }
    }

    /// Must be called on the thread that starts the run: perf events count that thread's children.
    pub(crate) fn before(&self) -> BeforeRun {
        // The short reading comes last, closest to the run.
        BeforeRun {
            counters: samples::one(&self.root, 0, &Options::default()),
            moves: ChildMoves::open().ok(),
            disturbance: disturbance::baseline(&self.root),
        }
    }

    pub(crate) fn after(
        &self,
        before: BeforeRun,
        workload: &Workload,
        ended: &EndedRun,
    ) -> HostReading {
        let during = before.disturbance.during(&self.root, ended.usage.cpu_s());
        let moves = before.moves.and_then(|m| m.read().ok());
        let after = samples::one(&self.root, 1, &Options::default());
        let samples = delta::samples(&[before.counters, after]);
        let during = during.with_links(samples.as_ref());
        let (counters, work) = match workload {
            Workload::Ours(_) => self.of_ours(workload, ended, samples.as_ref()),
            Workload::Shell(_) => (self.of_command(ended, moves, samples.as_ref()), None),
        };
        HostReading { during, counters, work }
    }

    fn of_ours(
        &self,
        workload: &Workload,
        ended: &EndedRun,
        samples: Option<&Samples>,
    ) -> (Counters, Option<f64>) {
        let (mut found, work) = evidence::of_ours(&ended.said, evidence::per(workload));
        if let (Some(samples), false) = (samples, found.is_empty()) {
            evidence::interrupts(samples, &self.irqs, "local.", &mut found);
        }
        (found, work)
    }

    fn of_command(
        &self,
        ended: &EndedRun,
        moves: Option<u64>,
        samples: Option<&Samples>,
    ) -> Counters {
        let mut found = samples.map(evidence::of_host).unwrap_or_default();
        if let Some(samples) = samples {
            evidence::interrupts(samples, &self.irqs, "", &mut found);
        }
        evidence::of_command(&ended.usage, moves, &mut found);
        found
    }
}
