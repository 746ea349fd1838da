//! Which keys (placements, flows, threads) are in which mode, and which sets one apart.

use super::{Mode, modes};
use crate::Histogram;

/// A key's part in a mode.
#[derive(Debug, Clone, PartialEq)]
pub struct InMode<K> {
    pub key: K,
    /// Its samples in the mode.
    pub samples: u64,
    /// Its share of the mode's samples, 0 to 1.
    pub within: f64,
    /// Its share of the samples in all other modes, 0 to 1.
    pub outside: f64,
}

/// A mode and the keys in it.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyedMode<K> {
    pub mode: Mode,
    /// Every key's part in it, most samples first.
    pub keys: Vec<InMode<K>>,
}

/// A key sets a mode apart when its share within is above its share outside by this much.
/// (The difference is Youden's index, Cancer 3, 1950, of guessing the mode from the key.)
pub(super) const SETS_APART: f64 = 0.25;

impl<K> KeyedMode<K> {
    /// The key whose share within exceeds its share outside most, if by a quarter of all.
    pub fn set_apart_by(&self) -> Option<&InMode<K>> {
        let ahead = |k: &InMode<K>| k.within - k.outside;
        let most = self.keys.iter().max_by(|a, b| ahead(a).total_cmp(&ahead(b)))?;
        (ahead(most) >= SETS_APART).then_some(most)
    }
}

/// The modes of all samples together, each with its keys. `parts` are the same samples divided
/// by key; `clock_step` as for [`modes`].
pub fn by_key<K: Clone>(
    all: &Histogram,
    parts: &[(K, Histogram)],
    clock_step: u64,
) -> Vec<KeyedMode<K>> {
    modes(all, clock_step).into_iter().map(|mode| keyed(mode, parts)).collect()
}

fn keyed<K: Clone>(mode: Mode, parts: &[(K, Histogram)]) -> KeyedMode<K> {
    let inside = |h: &Histogram| h.count_below(mode.end) - h.count_below(mode.begin);
    let samples: u64 = parts.iter().map(|(_, h)| inside(h)).sum();
    let others = parts.iter().map(|(_, h)| h.count()).sum::<u64>() - samples;
    let share = |n: u64, of: u64| if of == 0 { 0.0 } else { n as f64 / of as f64 };
    let part = |(key, h): &(K, Histogram)| InMode {
        key: key.clone(),
        samples: inside(h),
        within: share(inside(h), samples),
        outside: share(h.count() - inside(h), others),
    };
    let mut keys: Vec<_> = parts.iter().map(part).collect();
    keys.sort_by_key(|k| std::cmp::Reverse(k.samples));
    KeyedMode { mode, keys }
}
