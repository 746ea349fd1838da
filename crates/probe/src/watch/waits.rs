//! Where packets wait, by process.

mod grown;
mod share;

use std::{collections::BTreeMap, sync::atomic::AtomicBool};

use model::{
    CpuId, Reading,
    watch::{ProcessWaits, ProgramStatus},
};

use self::{grown::Grown, share::Share};
use super::{Waits as When, permission};
use crate::{
    Root,
    bpf::{
        Wanted, object,
        waits::{
            CpuState, ENTRY, Key, NAME, PROGRAMS, ProcessState, READY, RECV, SWITCH, WAKING, Waits,
        },
    },
    samples::clock::{monotonic_ns, wait_until},
};

/// The programs asked for first.
const WANTED: [Wanted; 5] = [ENTRY, READY, WAKING, SWITCH, RECV];

/// Places for processes beyond which those that did nothing are forgotten.
const CROWDED: usize = 1024;

type Runs = [u64; PROGRAMS.len()];

/// The programs, or why there are none, and what they said last.
#[derive(Debug)]
pub struct Part {
    waits: Result<Waits, Reading<()>>,
    /// In how much of an interval they are attached; none: all of it, whatever it costs.
    share: Option<Share>,
    /// Since when they are, and for how long they were in this interval, nanoseconds.
    attached_at: Option<u64>,
    attached_ns: u64,
    looked_at: u64,
    last: BTreeMap<Key, ProcessState>,
    /// Since they were loaded, and in the last interval.
    runs: [Runs; 2],
}

impl Part {
    /// Attaches, if it is wanted.
    pub fn attach(asked: &Reading<()>, when: When, possible: &[CpuId]) -> Self {
        let waits = match (asked, when) {
            (Reading::Known(()), When::Never) => Err(Reading::absent("waits were not asked for")),
            (Reading::Known(()), _) => {
                Waits::attach(possible.to_vec(), &WANTED).map_err(permission::refused)
            }
            (why, _) => Err(why.clone()),
        };
        let now = monotonic_ns();
        Self {
            waits,
            share: (when == When::Auto).then(Share::default),
            attached_at: Some(now),
            attached_ns: 0,
            looked_at: now,
            last: BTreeMap::new(),
            runs: Default::default(),
        }
    }

    /// Attaches the programs again, if they were detached amid the last interval.
    pub fn resume(&mut self) {
        let Ok(waits) = &mut self.waits else { return };
        if self.attached_at.is_none() {
            waits.resume();
            self.attached_at = Some(monotonic_ns());
        }
        if let Some(share) = &mut self.share {
            share.begin(waits.cpus().unwrap_or_default());
        }
    }

    /// Watches for as much of the interval, from `begun` to `end`, as may be, and detaches the
    /// programs for the rest of it.
    pub fn watch(&mut self, begun: u64, end: u64, stop: &AtomicBool) {
        let (Ok(waits), Some(share)) = (&mut self.waits, &self.share) else { return };
        let first = share::first(begun, end);
        if first >= end {
            return;
        }
        wait_until(first, stop, &mut |_| {});
        let elapsed = monotonic_ns().saturating_sub(begun);
        let now = waits.cpus().unwrap_or_default();
        let ns = |program: &Wanted| waits.object.ns_per_run(program.program);
        let part = share.affordable(&now, elapsed, &ns);
        if part >= 1.0 {
            return;
        }
        let until = begun + (end.saturating_sub(begun) as f64 * part) as u64;
        wait_until(until, stop, &mut |_| {});
        waits.pause();
        self.attached_ns += monotonic_ns().saturating_sub(self.attached_at.take().unwrap_or(begun));
    }

    /// What was waited for since the last look: most reads first.
    pub fn look(&mut self, root: &Root) -> Reading<Vec<ProcessWaits>> {
        let waits = match &mut self.waits {
            Ok(waits) => waits,
            Err(why) => return why.clone().map(|()| Vec::new()),
        };
        let (now, cpus) = match waits.processes().and_then(|p| Ok((p, waits.cpus()?))) {
            Ok(both) => both,
            Err(e) => return Reading::absent(format!("{NAME}: {e}")),
        };
        let mut grown: BTreeMap<u32, Grown> = BTreeMap::new();
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
        let observed = self.observed();
        Reading::Known(self.told(root, grown, observed))
    }

    fn count_runs(&mut self, cpus: &[(CpuId, CpuState)]) {
        let [total, grown] = &mut self.runs;
        for (i, (total, grown)) in total.iter_mut().zip(grown).enumerate() {
            let now: u64 = cpus.iter().filter_map(|(_, s)| s.runs.get(i)).sum();
            *grown = now.wrapping_sub(*total);
            *total = now;
        }
    }

    /// The share of the time since the last look in which the programs were attached.
    fn observed(&mut self) -> f64 {
        let now = monotonic_ns();
        let whole = now.saturating_sub(self.looked_at);
        let since = self.attached_at.as_mut().map_or(0, |at| now - std::mem::replace(at, now));
        let attached = std::mem::take(&mut self.attached_ns) + since;
        self.looked_at = now;
        if whole == 0 { 1.0 } else { (attached as f64 / whole as f64).min(1.0) }
    }

    fn told(
        &self,
        root: &Root,
        grown: BTreeMap<u32, Grown>,
        observed_share: f64,
    ) -> Vec<ProcessWaits> {
        let mut all: Vec<_> = grown.into_iter().filter(|(_, g)| g.reads > 0).collect();
        all.sort_by_key(|(pid, g)| (std::cmp::Reverse(g.reads), *pid));
        let name = |pid: u32, g: &Grown| match pid {
            0 => "(all others)".to_owned(),
            _ => root.word(&format!("/proc/{pid}/comm")).get().unwrap_or_else(|| g.name()),
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

    /// Ends it.
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
