//! Migrations of threads, sends and receives, retransmits, drops, IPC.

pub(super) mod drops;
mod function_names;
mod held;
mod messages;
mod migrated_threads;
mod online_cpus;
mod retransmits;

use model::{
    CpuId, Reading,
    watch::{Messages, MigratedThread, PacketDrops, ProgramStatus, Retransmits},
};

use super::{ObserveWhen, comms::Comms};
use crate::{Root, samples::raw::Raw};

/// The most entries of a list; the rest is one entry. A list of ten thousand helps no reader and
/// costs time.
const MOST: usize = 1_000;

#[derive(Debug)]
pub struct Movement {
    migrated_threads: migrated_threads::MigrationsPart,
    /// What is sent and received.
    pub messages: messages::MessagesPart,
    retransmits: retransmits::RetransmitsPart,
    /// The programs that count dropped packets, and their last reading.
    pub drops: drops::DropsPart,
}

/// What moved in one interval.
#[derive(Debug)]
pub struct MovementReading {
    pub migrated_threads: Reading<Vec<MigratedThread>>,
    pub messages: Reading<Vec<Messages>>,
    pub retransmits: Reading<Vec<Retransmits>>,
    pub drops: Reading<Vec<PacketDrops>>,
}

impl Movement {
    /// Attaches, if it is wanted.
    pub fn attach(
        asked: &Reading<()>,
        (messages, drops): (ObserveWhen, ObserveWhen),
        root: &Root,
        possible: &[CpuId],
    ) -> Self {
        Self {
            migrated_threads: migrated_threads::MigrationsPart::attach(asked, root, possible),
            messages: messages::MessagesPart::attach(asked, messages, root, possible),
            retransmits: retransmits::RetransmitsPart::attach(asked, possible),
            drops: drops::DropsPart::attach(asked, drops, possible),
        }
    }

    /// What moved since the last look; `now` are the counters of this one.
    pub fn look(&mut self, root: &Root, comms: &Comms, now: &Raw) -> MovementReading {
        MovementReading {
            migrated_threads: self.migrated_threads.look(root, comms),
            messages: self.messages.look(comms, now),
            retransmits: self.retransmits.look(),
            drops: self.drops.look(root),
        }
    }

    /// Begins a look at the programs' cost.
    pub fn begin_cost(&mut self) {
        self.migrated_threads.programs.begin_cost();
        self.messages.programs.begin_cost();
        self.retransmits.programs.begin_cost();
        self.drops.programs.begin_cost();
    }

    pub fn end_cost(&mut self) {
        self.migrated_threads.programs.end_cost();
        self.messages.programs.end_cost();
        self.retransmits.programs.end_cost();
        self.drops.programs.end_cost();
    }

    /// The programs' state over the last interval.
    pub fn status(&self) -> Vec<ProgramStatus> {
        [
            self.migrated_threads.programs.status(),
            self.messages.programs.status(),
            self.retransmits.programs.status(),
            self.drops.programs.status(),
        ]
        .concat()
    }
}

/// A short name as the kernel keeps it, ended by a zero byte.
fn text(name: &[u8]) -> String {
    let name = name.split(|b| *b == 0).next().unwrap_or_default();
    String::from_utf8_lossy(name).into_owned()
}
