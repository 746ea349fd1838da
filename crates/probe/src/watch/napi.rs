//! NAPI instances and their polls.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    CpuId, IrqId, Reading,
    watch::{NapiOnCpu, NapiWatch},
};

use super::{
    deltas::{Deltas, LastReading, Row},
    interrupted_task::TaskTimes,
    napi_place::{Instance, NamespaceNics, NapiQueue},
    napi_thread::Threads,
};
use crate::{
    Root,
    bpf::softirq::{NapiKey, NapiSums, Sums, text},
};

/// Polls, packets, full polls, polls outside a softirq, time within.
type Polled = Row<5>;

/// All instances as of the last look.
#[derive(Debug)]
pub struct Napis {
    grown: Deltas<NapiKey, 5>,
    threads: Threads,
    places: NamespaceNics,
}

/// What was polled in one interval.
#[derive(Debug, Default)]
pub struct Polls {
    pub napi: Vec<NapiWatch>,
    /// CPU time of polling threads; `None` where it is unknown.
    pub threaded_ns: Option<BTreeMap<CpuId, u64>>,
    /// Why `threaded_ns` is `None`.
    pub no_threaded_reason: String,
    pub polls: u64,
}

/// One instance on one CPU.
struct Cell {
    key: NapiKey,
    polled: Polled,
    sums: NapiSums,
    /// Its share of its thread's time, if it has one.
    thread_ns: Option<u64>,
}

fn row(n: &NapiSums) -> Polled {
    [n.polls, n.packets, n.full, n.outside, n.ns]
}

impl Napis {
    pub fn begin(root: &Root) -> Self {
        Self {
            grown: Deltas::default(),
            threads: Threads::begin(root),
            places: NamespaceNics::default(),
        }
    }

    /// What was polled since the last look, and which instances the kernel's map may forget.
    pub fn look(
        &mut self,
        root: &Root,
        sums: &Sums,
        task_times: &TaskTimes,
    ) -> (Polls, Vec<NapiKey>) {
        let (mut cells, idle) = self.cells(sums);
        let outside = |c: &&Cell| c.polled[3] > 0;
        let pollers: BTreeSet<u32> = cells.iter().filter(outside).map(|c| c.sums.poller).collect();
        let times = self.threads.look(root, &pollers, task_times);
        share(&mut cells, &times);
        let reported = self.threads.reported();
        let threaded_ns = (reported.is_known() || pollers.is_empty()).then(|| by_cpu(&cells));
        let polls = cells.iter().map(|c| c.polled[0]).sum();
        let no_threaded_reason = reported.why_not().unwrap_or_default().to_owned();
        (Polls { napi: self.instances(root, cells), threaded_ns, no_threaded_reason, polls }, idle)
    }

    fn cells(&mut self, sums: &Sums) -> (Vec<Cell>, Vec<NapiKey>) {
        let mut seen: BTreeMap<NapiKey, LastReading<5>> = BTreeMap::new();
        let mut latest: BTreeMap<NapiKey, NapiSums> = BTreeMap::new();
        for (key, n) in &sums.napis {
            seen.insert(
                *key,
                LastReading { born: n.napi, stored: row(n), ..LastReading::default() },
            );
            latest.insert(*key, *n);
        }
        for (cpu, state) in &sums.cpus {
            for n in state.napis.iter().filter(|n| n.napi != 0) {
                let key = NapiKey { napi: n.napi, id: n.id, cpu: cpu.0 };
                seen.entry(key).or_default().add_pending(&row(n));
                latest.insert(key, *n);
            }
        }
        let (grown, idle) = self.grown.look(&seen);
        let cell = |(key, polled): (NapiKey, Polled)| {
            let sums = *latest.get(&key)?;
            Some(Cell { key, polled, sums, thread_ns: None })
        };
        (grown.into_iter().filter_map(cell).collect(), idle)
    }

    /// One line an instance; those without a number, one a NIC, and one for all CPUs' backlogs.
    fn instances(&mut self, root: &Root, cells: Vec<Cell>) -> Vec<NapiWatch> {
        let mut groups: BTreeMap<(u32, u32, String), Vec<Cell>> = BTreeMap::new();
        for cell in cells {
            let group = (cell.sums.netns, cell.key.id, text(&cell.sums.nic));
            groups.entry(group).or_default().push(cell);
        }
        let mut all: Vec<NapiWatch> = groups
            .into_iter()
            .map(|((netns, id, nic), cells)| self.one(root, netns, id, &nic, &cells))
            .collect();
        all.sort_by(|a, b| {
            let key = |n: &NapiWatch| {
                (n.netns.get(), n.nic.known().cloned(), n.queue.get(), n.napi_id.get())
            };
            key(a).cmp(&key(b))
        });
        all
    }

    fn one(&mut self, root: &Root, netns: u32, id: u32, nic: &str, cells: &[Cell]) -> NapiWatch {
        let place = match (netns, id) {
            (0, _) => nowhere("a CPU's backlog has none"),
            (_, 0) => nowhere("NAPI instances without an id cannot be distinguished"),
            _ => {
                let irq = cells.iter().find_map(|c| c.sums.irq.checked_sub(1)).map(IrqId);
                self.places.of(root, Instance { id, nic, netns, irq })
            }
        };
        NapiWatch {
            napi_id: match id {
                0 => Reading::absent("the kernel gives it no number"),
                id => Reading::Known(id),
            },
            nic: Reading::Known(if netns == 0 { BACKLOG.into() } else { nic.to_owned() }),
            netns: match netns {
                0 => Reading::absent("a CPU's backlog serves all network namespaces"),
                n => Reading::Known(u64::from(n)),
            },
            queue: place.queue,
            irq: place.irq,
            threaded: threaded(cells, place.threaded),
            observed_share: 1.0,
            cpus: on_cpus(cells),
        }
    }
}

/// What a CPU's own queue is called.
const BACKLOG: &str = "backlog";

fn nowhere(why: &str) -> NapiQueue {
    NapiQueue {
        queue: Reading::absent(why),
        irq: Reading::absent(why),
        threaded: Reading::absent(why),
    }
}

/// The observed polls take precedence over the kernel's setting, which may have changed since.
fn threaded(cells: &[Cell], reported: Reading<bool>) -> Reading<bool> {
    if cells.iter().any(|c| c.thread_ns.is_some()) {
        return Reading::Known(true);
    }
    match cells.iter().all(|c| c.polled[3] == 0) {
        true => Reading::Known(false),
        false => reported,
    }
}

fn on_cpus(cells: &[Cell]) -> Vec<NapiOnCpu> {
    let mut cpus: BTreeMap<u32, NapiOnCpu> = BTreeMap::new();
    for cell in cells {
        let [polls, packets, full, outside, ns] = cell.polled;
        let ns = ns + cell.thread_ns.unwrap_or(0);
        // A busy-polling task does other work too, and that time is its own.
        let busy = outside > 0 && cell.thread_ns.is_none() && outside == polls;
        let cpu = cpus.entry(cell.key.cpu).or_insert(NapiOnCpu {
            cpu: CpuId(cell.key.cpu),
            polls: 0,
            packets: 0,
            full_polls: 0,
            polls_outside_softirq: 0,
            ns: Reading::Known(0),
        });
        cpu.polls += polls;
        cpu.packets += packets;
        cpu.full_polls += full;
        cpu.polls_outside_softirq += outside;
        cpu.ns = match (busy, cpu.ns.get()) {
            (false, before) => Reading::Known(before.unwrap_or(0) + ns),
            (true, Some(before)) if before > 0 => Reading::Known(before),
            (true, _) => Reading::absent("polled busily, by tasks amidst other work"),
        };
    }
    cpus.into_values().collect()
}

/// Gives each thread's time to where it polled, by its polls there.
fn share(cells: &mut [Cell], times: &BTreeMap<u32, u64>) {
    for (tid, ns) in times {
        let its = |c: &&mut Cell| c.sums.poller == *tid && c.polled[3] > 0;
        let all: u64 = cells.iter_mut().filter(its).map(|c| c.polled[3]).sum();
        for cell in cells.iter_mut().filter(its) {
            let part = u128::from(*ns) * u128::from(cell.polled[3]) / u128::from(all.max(1));
            cell.thread_ns = Some(u64::try_from(part).unwrap_or(u64::MAX));
        }
    }
}

fn by_cpu(cells: &[Cell]) -> BTreeMap<CpuId, u64> {
    let mut cpus = BTreeMap::new();
    for cell in cells {
        *cpus.entry(CpuId(cell.key.cpu)).or_default() += cell.thread_ns.unwrap_or(0);
    }
    cpus
}
