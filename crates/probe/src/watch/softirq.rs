//! Softirq time by context.

use std::collections::BTreeMap;

use model::{
    CpuId, Reading,
    watch::{ByContext, ProgramStatus, VectorNs},
};

use crate::{
    Root,
    bpf::{
        object,
        softirq::{CpuState, NAME, Softirq, VECTORS, WANTED},
    },
    samples,
};

/// The programs, or why there are none, and what they said last.
#[derive(Debug)]
pub struct Part {
    softirq: Result<Softirq, Reading<()>>,
    last: BTreeMap<CpuId, CpuState>,
    /// Of the last interval, for the programs' status.
    runs: u64,
}

/// What moved in one interval.
#[derive(Debug)]
pub struct Look(Result<BTreeMap<CpuId, CpuState>, Reading<()>>);

impl Part {
    /// Attaches, if it is wanted.
    pub fn attach(wanted: bool, root: &Root, possible: &[CpuId]) -> Self {
        let softirq = match wanted {
            true => Softirq::attach(possible.to_vec(), &samples::ksoftirqd_by_cpu(root)),
            false => Err(Reading::absent("eBPF programs were not asked for")),
        };
        Self { softirq, last: BTreeMap::new(), runs: 0 }
    }

    /// What moved since the last look.
    pub fn look(&mut self) -> Look {
        let softirq = match &self.softirq {
            Ok(softirq) => softirq,
            Err(why) => return Look(Err(why.clone())),
        };
        let now: BTreeMap<_, _> = match softirq.read() {
            Ok(now) => now.into_iter().collect(),
            Err(e) => return Look(Err(Reading::absent(format!("softirq: {e}")))),
        };
        let moved = |(cpu, state): (&CpuId, &CpuState)| {
            (*cpu, state.since(self.last.get(cpu).unwrap_or(&CpuState::default())))
        };
        let grown: BTreeMap<_, _> = now.iter().map(moved).collect();
        self.runs = grown.values().map(CpuState::softirqs).sum();
        self.last = now;
        Look(Ok(grown))
    }

    /// Begins a look at the programs' cost.
    pub fn begin_cost(&mut self) {
        if let Ok(softirq) = &mut self.softirq {
            softirq.object.begin_look();
        }
    }

    /// Ends it.
    pub fn end_cost(&mut self) {
        if let Ok(softirq) = &mut self.softirq {
            softirq.object.end_look();
        }
    }

    /// The programs' state over the last interval.
    pub fn status(&self) -> Vec<ProgramStatus> {
        match &self.softirq {
            Ok(softirq) => {
                let runs = [("softirq_entry", self.runs), ("softirq_exit", self.runs)];
                softirq.object.status(&runs.into())
            }
            Err(why) => object::unloaded(NAME, &WANTED, why),
        }
    }
}

impl Look {
    /// All CPUs together.
    pub fn all(&self) -> Reading<ByContext> {
        match &self.0 {
            Err(why) => none(why),
            Ok(all) => {
                let mut sum = ByContext::default();
                all.values().for_each(|state| sum.add(&by_context(state)));
                Reading::Known(sum)
            }
        }
    }

    /// One CPU's time by context, and by vector.
    pub fn of(&self, cpu: CpuId) -> (Reading<ByContext>, Reading<BTreeMap<String, u64>>) {
        let state = match &self.0 {
            Ok(all) => all.get(&cpu),
            Err(why) => return (none(why), none(why)),
        };
        match state {
            Some(state) => (Reading::Known(by_context(state)), Reading::Known(by_vector(state))),
            None => {
                let why = Reading::absent("this CPU was not possible when watching began");
                (none(&why), none(&why))
            }
        }
    }
}

fn none<T>(why: &Reading<()>) -> Reading<T> {
    match why {
        Reading::Denied(why) => Reading::Denied(why.clone()),
        Reading::Absent(why) => Reading::Absent(why.clone()),
        Reading::Known(()) => Reading::absent("not read"),
    }
}

fn by_context(state: &CpuState) -> ByContext {
    let [syscall, irq_on_task, idle, ksoftirqd] = state.ns.each_ref().map(vectors);
    let threaded = Reading::absent("not measured");
    ByContext { syscall, irq_on_task, idle, ksoftirqd, threaded }
}

fn vectors(ns: &[u64; VECTORS.len()]) -> VectorNs {
    let mut sum = VectorNs::default();
    for (name, ns) in VECTORS.iter().zip(ns) {
        match *name {
            "NET_RX" => sum.net_rx += ns,
            "NET_TX" => sum.net_tx += ns,
            "HRTIMER" | "TASKLET" => sum.pacing += ns,
            _ => sum.other += ns,
        }
    }
    sum
}

fn by_vector(state: &CpuState) -> BTreeMap<String, u64> {
    let of = |v: usize| state.ns.iter().filter_map(|c| c.get(v)).sum();
    VECTORS.iter().enumerate().map(|(v, name)| ((*name).to_owned(), of(v))).collect()
}
