//! Softirq time by context, the tasks that it interrupts, and polls.

use std::collections::BTreeMap;

use model::{
    CpuId, Reading,
    watch::{ByContext, InterruptedTask, NapiWatch, ProgramStatus, VectorNs},
};

use super::comms::Comms;
use super::{
    ObserveWhen,
    duty_cycle::{self, DutyCycle, USUAL_NS, scaled},
    interrupted_task::InterruptedTasks,
    names::Names,
    napi::Napis,
    permission,
};
use crate::{
    Root,
    bpf::{
        object,
        softirq::{CONTEXTS, COUNTED, CpuState, NAME, NAPI_POLL, Softirq, Sum, VECTORS, WANTED},
    },
    samples::{self, clock::monotonic_ns},
};

/// The programs, or why there are none, and their last reading.
pub struct SoftirqPart {
    root: Root,
    softirq: Result<Softirq, Reading<()>>,
    last: BTreeMap<CpuId, Counts>,
    interrupted_tasks: InterruptedTasks,
    names: Names,
    napis: Napis,
    /// Of the programs that are not always attached: the one that sees polls, or those of
    /// softirqs, too.
    duty: DutyCycle,
    spares_all: bool,
    /// Of the last interval, by program, for their status.
    runs: BTreeMap<&'static str, u64>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    sums: [[Sum; VECTORS.len()]; CONTEXTS],
    runs: [u64; COUNTED.len()],
    torn: u64,
}

/// What moved in one interval.
#[derive(Debug)]
pub struct SoftirqReading {
    cpus: Result<BTreeMap<CpuId, ByContextAndVector>, Reading<()>>,
    /// Threads by what packets cost them.
    pub interrupted_tasks: Reading<Vec<InterruptedTask>>,
    /// NAPI instances that were polled.
    pub napi: Reading<Vec<NapiWatch>>,
    /// For how much of the time softirqs were seen; their time and interrupted tasks are scaled to all of it.
    pub observed_share: f64,
}

#[derive(Debug)]
struct ByContextAndVector {
    sums: [[Sum; VECTORS.len()]; CONTEXTS],
    threaded_ns: Reading<u64>,
}

impl SoftirqPart {
    /// Attaches, if it is wanted.
    /// Polls are not seen where softirqs are not.
    pub fn attach(
        asked: &Reading<()>,
        (softirqs, polls): (ObserveWhen, ObserveWhen),
        root: &Root,
        possible: &[CpuId],
    ) -> Self {
        let spares_all = softirqs == ObserveWhen::Auto;
        let softirq = match asked {
            Reading::Known(()) => {
                let threads = samples::ksoftirqd_by_cpu(root);
                Softirq::attach(
                    possible.to_vec(),
                    &threads,
                    polls != ObserveWhen::Never,
                    spares_all,
                )
                .map_err(permission::refused)
            }
            why => Err(why.clone()),
        };
        Self {
            root: root.clone(),
            softirq,
            last: BTreeMap::new(),
            interrupted_tasks: InterruptedTasks::default(),
            names: Names::default(),
            napis: Napis::begin(root),
            duty: DutyCycle::begin(if spares_all { softirqs } else { polls }, monotonic_ns()),
            spares_all,
            runs: BTreeMap::new(),
        }
    }

    /// An interval begins, until `end`: polls are seen again, if they were not amid the last one.
    pub fn resume(&mut self, end: u64) {
        if let Ok(softirq) = &mut self.softirq {
            self.duty.resume(softirq, monotonic_ns(), end);
        }
    }

    /// When to call [`Self::spare`].
    pub fn due(&self) -> Option<u64> {
        self.duty.due().filter(|_| self.softirq.is_ok())
    }

    /// Sees no polls for the rest of the interval if seeing them has cost enough.
    pub fn spare(&mut self) {
        if let Ok(softirq) = &mut self.softirq {
            self.duty.look(softirq, monotonic_ns());
        }
    }

    /// What moved since the last look; without names no process has one.
    pub fn look(&mut self, comms: Option<&Comms>) -> SoftirqReading {
        let softirq = match &mut self.softirq {
            Ok(softirq) => softirq,
            Err(why) => return SoftirqReading::without(why),
        };
        let sums = match softirq.read() {
            Ok(sums) => sums,
            Err(e) => return SoftirqReading::without(&Reading::absent(format!("softirq: {e}"))),
        };
        let observed = self.duty.observed(monotonic_ns());
        let share = if self.spares_all { observed } else { 1.0 };
        let (mut task_times, forgotten) = self.interrupted_tasks.look(&sums);
        softirq.forget_interrupted_tasks(&forgotten);
        task_times.scale(share);
        let (mut polls, forgotten) = self.napis.look(&self.root, &sums, &task_times);
        polls.napi.iter_mut().for_each(|n| n.observed_share = observed);
        softirq.forget_napis(&forgotten);
        let seen = softirq.object.refused(NAPI_POLL);
        let mut grown = grown(&mut self.last, &sums.cpus);
        self.runs = runs(&grown, polls.polls);
        grown.values_mut().for_each(|counts| counts.scale(share));
        let threaded = |cpu: &CpuId| match (&seen, &polls.threaded_ns) {
            (Reading::Known(()), Some(of)) => {
                Reading::Known(of.get(cpu).copied().unwrap_or_default())
            }
            (Reading::Known(()), None) => Reading::Absent(polls.no_threaded_reason.clone()),
            (why, _) => none(why),
        };
        let one = |(cpu, counts): (&CpuId, &Counts)| {
            let all = ByContextAndVector { sums: counts.sums, threaded_ns: threaded(cpu) };
            (*cpu, all)
        };
        let mut interrupted_tasks = task_times.ranked();
        if let Some(comms) = comms {
            self.names.give(comms, &mut interrupted_tasks);
        }
        SoftirqReading {
            cpus: Ok(grown.iter().map(one).collect()),
            interrupted_tasks: Reading::Known(interrupted_tasks),
            napi: match seen {
                Reading::Known(()) => Reading::Known(polls.napi),
                why => none(&why),
            },
            observed_share: share,
        }
    }

    /// Begins a look at the programs' cost.
    pub fn begin_cost(&mut self) {
        if let Ok(softirq) = &mut self.softirq {
            softirq.object.begin_look();
        }
    }

    pub fn end_cost(&mut self) {
        if let Ok(softirq) = &mut self.softirq {
            softirq.object.end_look();
        }
    }

    /// The programs' state over the last interval.
    pub fn status(&self) -> Vec<ProgramStatus> {
        match &self.softirq {
            Ok(softirq) => softirq.object.status(&self.runs),
            Err(why) => object::unloaded(NAME, WANTED, why),
        }
    }
}

impl duty_cycle::Part for Softirq {
    fn runs(&self) -> duty_cycle::Runs {
        Self::runs(self).unwrap_or_default()
    }

    fn ns_per_run(&self) -> Vec<f64> {
        let one = |program: &&str| self.object.ns_per_run(program).unwrap_or(USUAL_NS);
        self.paused().iter().map(one).collect()
    }

    fn pause(&mut self) {
        Self::pause(self);
    }

    fn resume(&mut self) {
        Self::resume(self);
    }
}

/// What each CPU counted since the last look.
fn grown(
    last: &mut BTreeMap<CpuId, Counts>,
    cpus: &[(CpuId, CpuState)],
) -> BTreeMap<CpuId, Counts> {
    let mut grown = BTreeMap::new();
    for (cpu, state) in cpus {
        let now = Counts { sums: state.sums, runs: state.runs, torn: state.torn };
        let before = last.insert(*cpu, now).unwrap_or_default();
        grown.insert(*cpu, now.since(&before));
    }
    grown
}

impl Counts {
    fn since(mut self, before: &Self) -> Self {
        for (now, then) in self.sums.iter_mut().flatten().zip(before.sums.iter().flatten()) {
            now.ns = now.ns.wrapping_sub(then.ns);
            now.count = now.count.wrapping_sub(then.count);
        }
        for (now, then) in self.runs.iter_mut().zip(before.runs) {
            *now = now.wrapping_sub(then);
        }
        self.torn = self.torn.wrapping_sub(before.torn);
        self
    }

    /// From what was seen in this share of the time to all of it.
    fn scale(&mut self, share: f64) {
        for sum in self.sums.iter_mut().flatten() {
            (sum.ns, sum.count) = (scaled(sum.ns, share), scaled(sum.count, share));
        }
    }
}

/// How often each program ran on all CPUs.
fn runs(grown: &BTreeMap<CpuId, Counts>, polls: u64) -> BTreeMap<&'static str, u64> {
    let softirqs = grown.values().map(|c| {
        let ended: u64 = c.sums.iter().flatten().map(|s| s.count).sum();
        ended + c.torn
    });
    let softirqs = softirqs.sum();
    let mut runs = BTreeMap::from([
        ("softirq_entry", softirqs),
        ("softirq_exit", softirqs),
        (NAPI_POLL, polls),
    ]);
    for (i, program) in COUNTED.iter().enumerate() {
        runs.insert(program, grown.values().filter_map(|c| c.runs.get(i)).sum());
    }
    runs
}

impl SoftirqReading {
    fn without(why: &Reading<()>) -> Self {
        Self {
            cpus: Err(why.clone()),
            interrupted_tasks: none(why),
            napi: none(why),
            observed_share: 1.0,
        }
    }

    pub fn all(&self) -> Reading<ByContext> {
        match &self.cpus {
            Err(why) => none(why),
            Ok(cpus) => {
                let mut sum = ByContext::default();
                cpus.values().for_each(|cpu| sum.add(&cpu.by_context()));
                Reading::Known(sum)
            }
        }
    }

    /// One CPU's time by context, and by vector.
    pub fn of(&self, cpu: CpuId) -> (Reading<ByContext>, Reading<BTreeMap<String, u64>>) {
        let all = match &self.cpus {
            Ok(cpus) => cpus.get(&cpu),
            Err(why) => return (none(why), none(why)),
        };
        match all {
            Some(all) => (Reading::Known(all.by_context()), Reading::Known(all.by_vector())),
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

impl ByContextAndVector {
    fn by_context(&self) -> ByContext {
        let [syscall, interrupting_task, idle, ksoftirqd] = self.sums.each_ref().map(vectors);
        let threaded = self.threaded_ns.clone();
        let threaded = threaded.map(|net_rx| VectorNs { net_rx, ..VectorNs::default() });
        ByContext { syscall, interrupting_task, idle, ksoftirqd, threaded }
    }

    fn by_vector(&self) -> BTreeMap<String, u64> {
        let of = |v: usize| self.sums.iter().filter_map(|c| c.get(v)).map(|s| s.ns).sum();
        VECTORS.iter().enumerate().map(|(v, name)| ((*name).to_owned(), of(v))).collect()
    }
}

fn vectors(sums: &[Sum; VECTORS.len()]) -> VectorNs {
    let mut all = VectorNs::default();
    for (name, Sum { ns, .. }) in VECTORS.iter().zip(sums) {
        match *name {
            "NET_RX" => all.net_rx += ns,
            "NET_TX" => all.net_tx += ns,
            "HRTIMER" | "TASKLET" => all.pacing += ns,
            _ => all.other += ns,
        }
    }
    all
}
