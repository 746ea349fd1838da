//! Where packets wait, by process.

mod process_deltas;

use std::collections::BTreeMap;

use model::{
    CpuId, Reading,
    watch::{ProcessWaits, ProgramStatus},
};

use self::process_deltas::ProcessDeltas;
use super::comms::Comms;
use super::{
    ObserveWhen,
    duty_cycle::{self, DutyCycle, USUAL_NS},
    permission,
};
use crate::{
    Root,
    bpf::{
        ProgramSpec, object,
        waits::{
            CpuState, ENTRY, Key, NAME, PROGRAMS, ProcessState, READY, RECV, SWITCH, WAKING, Waits,
        },
    },
    samples::clock::monotonic_ns,
};

/// The programs asked for first.
const WANTED: [ProgramSpec; 5] = [ENTRY, READY, WAKING, SWITCH, RECV];

/// Places for processes beyond which those that did nothing are forgotten.
const CROWDED: usize = 1024;

type Runs = [u64; PROGRAMS.len()];

/// The programs, or why there are none, and their last reading.
#[derive(Debug)]
pub struct WaitsPart {
    waits: Result<Waits, Reading<()>>,
    /// In how much of an interval they are attached.
    duty: DutyCycle,
    last: BTreeMap<Key, ProcessState>,
    /// Since they were loaded, and in the last interval.
    runs: [Runs; 2],
}

impl WaitsPart {
    /// Attaches, if it is wanted.
    pub fn attach(asked: &Reading<()>, when: ObserveWhen, possible: &[CpuId]) -> Self {
        let waits = match (asked, when) {
            (Reading::Known(()), ObserveWhen::Never) => {
                Err(Reading::absent("waits were not asked for"))
            }
            (Reading::Known(()), _) => {
                Waits::attach(possible.to_vec(), &WANTED).map_err(permission::refused)
            }
            (why, _) => Err(why.clone()),
        };
        Self {
            waits,
            duty: DutyCycle::begin(when, monotonic_ns()),
            last: BTreeMap::new(),
            runs: Default::default(),
        }
    }

    /// An interval begins, until `end`: attaches the programs again, if they were detached amid
    /// the last one.
    pub fn resume(&mut self, end: u64) {
        if let Ok(waits) = &mut self.waits {
            self.duty.resume(waits, monotonic_ns(), end);
        }
    }

    /// When to call [`Self::spare`].
    pub fn due(&self) -> Option<u64> {
        self.duty.due().filter(|_| self.waits.is_ok())
    }

    /// Detaches the programs for the rest of the interval if they have cost enough.
    pub fn spare(&mut self) {
        if let Ok(waits) = &mut self.waits {
            self.duty.look(waits, monotonic_ns());
        }
    }

    /// What was waited for since the last look: most reads first.
    pub fn look(&mut self, root: &Root, comms: &Comms) -> Reading<Vec<ProcessWaits>> {
        let waits = match &mut self.waits {
            Ok(waits) => waits,
            Err(why) => return why.clone().map(|()| Vec::new()),
        };
        let (now, cpus) = match waits.processes().and_then(|p| Ok((p, waits.cpus()?))) {
            Ok(both) => both,
            Err(e) => return Reading::absent(format!("{NAME}: {e}")),
        };
        let mut grown: BTreeMap<u32, ProcessDeltas> = BTreeMap::new();
        let mut still = Vec::new();
        for (key, state) in &now {
            if grown.entry(key.tgid).or_default().add(state, self.last.get(key)) == 0 {
                still.push(*key);
            }
        }
        let crowded = now.len() > CROWDED;
        still.retain(|k| k.tgid != 0 && (crowded || !root.exists(&format!("/proc/{}", k.tgid))));
        waits.forget(&still);
        self.last = now.into_iter().filter(|(k, _)| !still.contains(k)).collect();
        self.count_runs(&cpus);
        let observed = self.duty.observed(monotonic_ns());
        Reading::Known(self.reported(comms, grown, observed))
    }

    fn count_runs(&mut self, cpus: &[(CpuId, CpuState)]) {
        let [total, grown] = &mut self.runs;
        for (i, (total, grown)) in total.iter_mut().zip(grown).enumerate() {
            let now: u64 = cpus.iter().filter_map(|(_, s)| s.runs.get(i)).sum();
            *grown = now.wrapping_sub(*total);
            *total = now;
        }
    }

    fn reported(
        &self,
        comms: &Comms,
        grown: BTreeMap<u32, ProcessDeltas>,
        observed_share: f64,
    ) -> Vec<ProcessWaits> {
        let mut all: Vec<_> = grown.into_iter().filter(|(_, g)| g.reads > 0).collect();
        all.sort_by_key(|(pid, g)| (std::cmp::Reverse(g.reads), *pid));
        let name = |pid: u32, g: &ProcessDeltas| match pid {
            0 => "(all others)".to_owned(),
            _ => comms.of(pid).unwrap_or_else(|| g.name()),
        };
        let (entry, ready) = (ENTRY.program, READY.program);
        all.iter()
            .map(|(pid, g)| ProcessWaits {
                pid: *pid,
                name: name(*pid, g),
                stack: self.unless(&[entry, ready], ()).and_then(|()| g.wait(0)),
                wakeup: self.unless(&[ready], ()).and_then(|()| g.wait(1)),
                runqueue: g.wait(2),
                idle_exit: g.wait(3),
                copy: g.wait(4),
                excluded_reads: Reading::Known(g.found + g.late),
                late_reads: self.unless(&[entry, ready], g.late),
                observed_share,
            })
            .collect()
    }

    /// Known where these programs run.
    fn unless<T>(&self, needs: &[&str], value: T) -> Reading<T> {
        let Ok(waits) = &self.waits else { return Reading::absent("not attached") };
        for program in needs.iter().filter(|p| !waits.object.runs(p)) {
            if let Reading::Absent(why) | Reading::Denied(why) = waits.object.refused(program) {
                return Reading::Absent(why);
            }
        }
        Reading::Known(value)
    }

    /// Begins a look at the programs' cost.
    pub fn begin_cost(&mut self) {
        if let Ok(waits) = &mut self.waits {
            waits.object.begin_look();
        }
    }

    pub fn end_cost(&mut self) {
        if let Ok(waits) = &mut self.waits {
            waits.object.end_look();
        }
    }

    /// The programs' state over the last interval.
    pub fn status(&self) -> Vec<ProgramStatus> {
        match &self.waits {
            Ok(waits) => {
                let names = PROGRAMS.iter().map(|p| p.program);
                let [_, grown] = self.runs;
                waits.object.status(&names.zip(grown).collect())
            }
            Err(why) => object::unloaded(NAME, &WANTED, why),
        }
    }
}

impl duty_cycle::Part for Waits {
    fn runs(&self) -> duty_cycle::Runs {
        let cpus = self.cpus().unwrap_or_default();
        cpus.into_iter().map(|(cpu, state)| (cpu, state.runs.to_vec())).collect()
    }

    fn ns_per_run(&self) -> Vec<f64> {
        PROGRAMS.iter().map(|p| self.object.ns_per_run(p.program).unwrap_or(USUAL_NS)).collect()
    }

    fn pause(&mut self) {
        Waits::pause(self);
    }

    fn resume(&mut self) {
        Waits::resume(self);
    }
}
