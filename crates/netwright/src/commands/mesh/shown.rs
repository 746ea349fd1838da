//! What a scrape gets: the pairs of now.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ::metrics::{
    MeshScrape, mesh,
    probes::ProbeTotals,
    text::{self, Format},
};
use model::mesh::MeshProbe;
use probe::Root;

use super::{peers::Place, round};
use crate::commands::export::Own;

/// The pairs of a host; every clone is the same one.
#[derive(Clone)]
pub struct Shown(Arc<Inside>);

struct Inside {
    pairs: Mutex<Pairs>,
    own: Own,
    root: Root,
}

#[derive(Default)]
struct Pairs {
    peers: Option<usize>,
    /// This host, as the list calls it.
    source: String,
    /// By target; those that are no target any more are gone.
    totals: Vec<(String, ProbeTotals)>,
}

impl Shown {
    /// Without targets, until [`Shown::place`] names them.
    pub fn new() -> Self {
        let pairs = Mutex::new(Pairs::default());
        Self(Arc::new(Inside { pairs, own: Own::begin(), root: Root::live() }))
    }

    /// Takes the targets of now; those that stay keep their sums, unless the list has another name for
    /// this host.
    pub fn place(&self, place: &Place) {
        let mut pairs = self.pairs();
        pairs.peers = Some(place.peers);
        let mut before = std::mem::take(&mut pairs.totals);
        if pairs.source != place.source {
            before.clear();
            pairs.source.clone_from(&place.source);
        }
        for target in &place.targets {
            let kept = before.iter().position(|(t, _)| t == target).map(|n| before.swap_remove(n));
            let new = || ProbeTotals::of_pair(place.source.clone(), target.clone());
            pairs.totals.push(kept.unwrap_or_else(|| (target.clone(), new())));
        }
    }

    /// The list of peers could not be read: their number is not known.
    pub fn no_list(&self) {
        self.pairs().peers = None;
    }

    /// A probe of a target ended; `None`: it could not be asked.
    pub fn probed(&self, target: &str, result: Option<&MeshProbe>) {
        let mut pairs = self.pairs();
        let Some((_, totals)) = pairs.totals.iter_mut().find(|(t, _)| t == target) else { return };
        totals.add(result.and_then(|r| r.rtt_ns.clone()));
        if let Some(result) = result {
            totals.sent(result.answered, result.lost);
        }
    }

    /// The page for one scrape.
    pub fn page(&self, format: Format) -> String {
        let pairs = self.pairs();
        let probes: Vec<ProbeTotals> = pairs.totals.iter().map(|(_, t)| t.clone()).collect();
        let scrape = MeshScrape {
            peers: pairs.peers,
            quota: round::quota(),
            probes: &probes,
            process: self.0.own.process(&self.0.root),
            version: env!("CARGO_PKG_VERSION"),
        };
        text::page(&mesh(&scrape), format)
    }

    /// What a panic of another thread left is complete: each change of it is one statement.
    fn pairs(&self) -> MutexGuard<'_, Pairs> {
        self.0.pairs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
