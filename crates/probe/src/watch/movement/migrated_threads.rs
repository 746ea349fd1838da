//! Threads that the scheduler moved to another CPU, by thread.

use std::collections::{BTreeMap, HashMap};

use model::{
    CpuId, Reading,
    watch::{MigratedThread, MigrationPath},
};

use super::super::comms::Comms;
use super::{MOST, held::Programs, online_cpus::OnlineCpus, text};
use crate::{
    Root,
    bpf::migrated_threads::{Key, MigratedThreads, Moves, NAME, WANTED},
};

/// The most threads with a name lookup; the others have their name at the last migration.
const ASKED: usize = 100;

/// The program, and the topology of the CPUs.
#[derive(Debug)]
pub struct MigrationsPart {
    pub programs: Programs<MigratedThreads>,
    cpus: OnlineCpus,
}

impl MigrationsPart {
    /// Attaches, if it is wanted.
    pub fn attach(asked: &Reading<()>, root: &Root, possible: &[CpuId]) -> Self {
        let attach = || MigratedThreads::attach(possible.to_vec());
        Self {
            programs: Programs::new((NAME, &WANTED), asked, attach),
            cpus: OnlineCpus::read(root),
        }
    }

    /// The threads that migrated since the last reading.
    pub fn look(&mut self, root: &Root, comms: &Comms) -> Reading<Vec<MigratedThread>> {
        let (moves, lost) = match self.programs.take(MigratedThreads::take) {
            Ok(turn) => turn,
            Err(why) => return why,
        };
        let cpus = moves.keys().flat_map(|k| [k.from, k.to]).map(|c| CpuId(u32::from(c)));
        self.cpus.learn(root, cpus);
        let mut migrated_threads = migrated_threads(&moves, lost, &self.cpus);
        for migrated_thread in migrated_threads.iter_mut().filter(|m| m.tid != 0).take(ASKED) {
            if let Some(name) = comms.of(migrated_thread.tid) {
                migrated_thread.name = name;
            }
        }
        Reading::Known(migrated_threads)
    }
}

/// By thread, most moves first; those beyond [`MOST`] and those that found no room as one.
fn migrated_threads(
    moves: &HashMap<Key, Moves>,
    lost: u64,
    cpus: &OnlineCpus,
) -> Vec<MigratedThread> {
    let mut by_thread: BTreeMap<u32, Vec<(&Key, &Moves)>> = BTreeMap::new();
    for (key, moves) in moves.iter().filter(|(_, m)| m.count > 0) {
        by_thread.entry(key.tid).or_default().push((key, moves));
    }
    let mut threads: Vec<(u64, u32, Vec<_>)> = by_thread
        .into_iter()
        .map(|(tid, transitions)| {
            (transitions.iter().map(|(_, m)| m.count).sum(), tid, transitions)
        })
        .collect();
    threads.sort_by_key(|(count, tid, _)| (std::cmp::Reverse(*count), *tid));
    let rest: u64 = threads.iter().skip(MOST).map(|t| t.0).sum::<u64>() + lost;
    let mut migrated_threads: Vec<MigratedThread> = threads
        .into_iter()
        .take(MOST)
        .map(|(_, tid, transitions)| migrated_thread(tid, &transitions, cpus))
        .collect();
    if rest > 0 {
        migrated_threads.push(others(rest));
    }
    migrated_threads
}

fn migrated_thread(tid: u32, moves: &[(&Key, &Moves)], cpus: &OnlineCpus) -> MigratedThread {
    let mut transitions: Vec<MigrationPath> = moves
        .iter()
        .map(|(key, moves)| MigrationPath {
            from: CpuId(u32::from(key.from)),
            to: CpuId(u32::from(key.to)),
            count: moves.count,
        })
        .collect();
    transitions.sort_by_key(|w| (std::cmp::Reverse(w.count), w.from, w.to));
    let any = moves.first().map(|(_, m)| **m).unwrap_or_default();
    MigratedThread {
        pid: Reading::Known(any.pid),
        tid,
        name: text(&any.name),
        migrations: transitions.iter().map(|w| w.count).sum(),
        across_l3: cpus.across_l3(&transitions),
        across_node: cpus.across_node(&transitions),
        across_package: cpus.across_package(&transitions),
        transitions,
    }
}

fn others(migrations: u64) -> MigratedThread {
    let why = || "threads that are reported as one sum";
    MigratedThread {
        pid: Reading::absent(why()),
        tid: 0,
        name: "others".into(),
        migrations,
        across_l3: Reading::absent(why()),
        across_node: Reading::absent(why()),
        across_package: Reading::absent(why()),
        transitions: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(tid: u32, from: u16, to: u16, count: u64) -> (Key, Moves) {
        let mut moves = Moves::default();
        (moves.count, moves.pid) = (count, tid / 10);
        moves.name[..2].copy_from_slice(b"db");
        (Key { tid, from, to }, moves)
    }

    #[test]
    fn by_thread_and_way_most_first() {
        let moves = HashMap::from([
            moved(71, 0, 3, 4),
            moved(71, 3, 0, 5),
            moved(80, 0, 1, 2),
            moved(81, 0, 1, 0),
        ]);
        let all = migrated_threads(&moves, 0, &OnlineCpus::default());
        assert_eq!(all.len(), 2, "{all:?}");
        assert_eq!((all[0].tid, all[0].pid.get(), all[0].migrations), (71, Some(7), 9));
        assert_eq!(all[0].name, "db");
        let transitions: Vec<_> =
            all[0].transitions.iter().map(|w| (w.from.0, w.to.0, w.count)).collect();
        assert_eq!(transitions, [(3, 0, 5), (0, 3, 4)]);
        assert!(!all[0].across_l3.is_known());
    }

    #[test]
    fn what_has_no_place_of_its_own_is_counted_all_the_same() {
        let moves: HashMap<_, _> = (1..=1500).map(|tid| moved(tid, 0, 1, 2)).collect();
        let all = migrated_threads(&moves, 7, &OnlineCpus::default());
        assert_eq!(all.len(), MOST + 1);
        assert_eq!((all[MOST].tid, all[MOST].migrations), (0, 500 * 2 + 7));
        assert_eq!(all.iter().map(|m| m.migrations).sum::<u64>(), 3007);
    }
}
