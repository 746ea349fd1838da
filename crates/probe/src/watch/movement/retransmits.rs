//! Retransmitted segments by connection.

use std::{cmp::Reverse, collections::HashMap};

use model::{CpuId, Reading, watch::Retransmits};

use super::{MOST, held::Programs};
use crate::bpf::retransmits::{self as bpf, Key, NAME, WANTED};

#[derive(Debug)]
pub struct RetransmitsPart {
    pub programs: Programs<bpf::Retransmits>,
}

impl RetransmitsPart {
    /// Attaches, if it is wanted.
    pub fn attach(asked: &Reading<()>, possible: &[CpuId]) -> Self {
        let attach = || bpf::Retransmits::attach(possible.to_vec());
        Self { programs: Programs::new((NAME, &WANTED), asked, attach) }
    }

    /// Which connections retransmitted since the last look.
    pub fn look(&mut self) -> Reading<Vec<Retransmits>> {
        match self.programs.take(bpf::Retransmits::take) {
            Ok((segments, lost)) => Reading::Known(connections(&segments, lost)),
            Err(why) => why,
        }
    }
}

/// Most segments first; those beyond [`MOST`] and those that found no room as one.
fn connections(segments: &HashMap<Key, u64>, lost: u64) -> Vec<Retransmits> {
    let mut all: Vec<(Reverse<u64>, &Key)> =
        segments.iter().filter(|(_, n)| **n > 0).map(|(key, n)| (Reverse(*n), key)).collect();
    all.sort_by_key(|(n, key)| (*n, key.local(), key.remote()));
    let rest = all.iter().skip(MOST).map(|(n, _)| n.0).sum::<u64>() + lost;
    let mut connections: Vec<Retransmits> = all
        .into_iter()
        .take(MOST)
        .map(|(n, key)| Retransmits {
            local: key.local().to_string(),
            remote: key.remote().to_string(),
            segments: n.0,
        })
        .collect();
    if rest > 0 {
        let any = || "*".to_owned();
        connections.push(Retransmits { local: any(), remote: any(), segments: rest });
    }
    connections
}
