//! Modes named by where the two ends ran.

use std::collections::BTreeMap;

use model::{
    CpuId, Nanos,
    measure::{Mode, ModePlacement, NOTHING_SETS_APART, PLACEMENT_NOT_KNOWN},
};

use super::{InMode, KeyedMode, by_key, keys::SETS_APART};
use crate::Histogram;

/// The CPU of the local thread, and of the far one where it is known.
pub type Placed = (CpuId, Option<CpuId>);

/// A pair of CPUs is preferred to a wider description unless that explains this much more.
const WIDER_BY: f64 = 0.1;

/// What several placements have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Common {
    Pair(CpuId, CpuId),
    Local(CpuId),
    Peer(CpuId),
    OneCpu,
    TwoCpus,
}

impl Common {
    fn text(self) -> String {
        match self {
            Self::Pair(a, b) => format!("local cpu {a}, peer cpu {b}"),
            Self::Local(a) => format!("local cpu {a}"),
            Self::Peer(b) => format!("peer cpu {b}"),
            Self::OneCpu => "both ends on one cpu".into(),
            Self::TwoCpus => "two cpus".into(),
        }
    }

    fn is_pair(self) -> bool {
        matches!(self, Self::Pair(..))
    }

    /// All that a placement has in common with others.
    fn of(placed: Placed, same_host: bool) -> Vec<Self> {
        let (local, peer) = placed;
        let mut all = vec![Self::Local(local)];
        if let Some(peer) = peer {
            all.extend([Self::Pair(local, peer), Self::Peer(peer)]);
            if same_host {
                all.push(if local == peer { Self::OneCpu } else { Self::TwoCpus });
            }
        }
        all
    }
}

/// The modes for a result: empty when there is but one.
///
/// `parts` are the samples of `all` divided by placement; `same_host` says whether equal CPU
/// numbers at both ends are one CPU.
pub fn describe(
    all: &Histogram,
    parts: &[(Placed, Histogram)],
    same_host: bool,
    clock_step: u64,
) -> Vec<Mode> {
    let modes = by_key(all, parts, clock_step);
    if modes.len() < 2 {
        return Vec::new();
    }
    modes.iter().map(|m| mode(m, same_host)).collect()
}

fn mode(mode: &KeyedMode<Placed>, same_host: bool) -> Mode {
    let part = |k: &InMode<Placed>| ModePlacement {
        local_cpu: k.key.0,
        peer_cpu: k.key.1,
        share: k.within,
    };
    Mode {
        share: mode.mode.share,
        low_ns: Nanos(mode.mode.low),
        high_ns: Nanos(mode.mode.high),
        p50_ns: Nanos(mode.mode.median),
        placements: mode.keys.iter().filter(|k| k.samples > 0).map(part).collect(),
        name: name(mode, same_host),
    }
}

/// What sets a mode apart, in words.
fn name(mode: &KeyedMode<Placed>, same_host: bool) -> String {
    if mode.keys.is_empty() {
        return PLACEMENT_NOT_KNOWN.into();
    }
    let mut ahead: BTreeMap<Common, f64> = BTreeMap::new();
    for key in &mode.keys {
        for common in Common::of(key.key, same_host) {
            *ahead.entry(common).or_default() += key.within - key.outside;
        }
    }
    let worth =
        |(common, ahead): &(Common, f64)| ahead + if common.is_pair() { WIDER_BY } else { 0.0 };
    match ahead.into_iter().max_by(|a, b| worth(a).total_cmp(&worth(b))) {
        Some((common, ahead)) if ahead >= SETS_APART => common.text(),
        _ => NOTHING_SETS_APART.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SplitMix64;

    /// Round trips of placements, each with its median: `(local, peer, median, samples)`.
    fn parts(of: &[(u32, Option<u32>, f64, u32)]) -> (Histogram, Vec<(Placed, Histogram)>) {
        let (mut random, mut all) = (SplitMix64::new(4), Histogram::new());
        let mut part = |&(local, peer, median, n): &(u32, Option<u32>, f64, u32)| {
            let mut h = Histogram::new();
            (0..n).for_each(|_| h.record(random.lognormal(median, 0.1) as u64));
            all.add(&h);
            ((CpuId(local), peer.map(CpuId)), h)
        };
        let parts = of.iter().map(&mut part).collect();
        (all, parts)
    }

    fn names(of: &[(u32, Option<u32>, f64, u32)], same_host: bool) -> Vec<String> {
        let (all, parts) = parts(of);
        describe(&all, &parts, same_host, 1).into_iter().map(|m| m.name).collect()
    }

    #[test]
    fn a_mode_is_named_by_its_pair_of_cpus() {
        let of = [
            (0, Some(1), 11_000.0, 3_000),
            (0, Some(2), 53_000.0, 5_000),
            (0, Some(3), 53_000.0, 2_000),
        ];
        assert_eq!(names(&of, true), ["local cpu 0, peer cpu 1", "local cpu 0, peer cpu 2"]);
        let (all, parts) = parts(&of);
        let modes = describe(&all, &parts, true, 1);
        assert!((modes[0].share - 0.3).abs() < 1e-9 && modes[0].placements.len() == 1, "{modes:?}");
        let shares: Vec<f64> = modes[1].placements.iter().map(|p| p.share).collect();
        assert_eq!(shares, [5.0 / 7.0, 2.0 / 7.0]);
    }

    #[test]
    fn a_mode_is_named_by_what_its_placements_have_in_common() {
        let by_local = [
            (0, Some(1), 11_000.0, 1_000),
            (0, Some(2), 11_000.0, 1_000),
            (3, Some(1), 53_000.0, 1_000),
            (3, Some(2), 53_000.0, 1_000),
        ];
        assert_eq!(names(&by_local, false), ["local cpu 0", "local cpu 3"]);
        let one_or_two = [
            (0, Some(0), 11_000.0, 1_000),
            (1, Some(1), 11_000.0, 1_000),
            (0, Some(1), 53_000.0, 1_000),
            (1, Some(0), 53_000.0, 1_000),
        ];
        assert_eq!(names(&one_or_two, true), ["both ends on one cpu", "two cpus"]);
        // On two hosts equal numbers mean nothing.
        assert_ne!(names(&one_or_two, false), ["both ends on one cpu", "two cpus"]);
        assert_eq!(
            names(&[(4, None, 11_000.0, 1_000), (5, None, 53_000.0, 1_000)], true),
            ["local cpu 4", "local cpu 5"]
        );
    }

    #[test]
    fn peaks_that_have_nothing_to_do_with_placement_are_not_blamed_on_it() {
        let both = [
            (0, Some(1), 11_000.0, 2_000),
            (0, Some(1), 53_000.0, 2_000),
            (2, Some(3), 11_000.0, 1_000),
            (2, Some(3), 53_000.0, 1_000),
        ];
        assert_eq!(names(&both, true), ["no placement sets it apart"; 2]);
        let (all, _) = parts(&both);
        assert_eq!(describe(&all, &[], true, 1)[0].name, "placement not known");
    }

    #[test]
    fn one_peak_is_no_mode() {
        assert_eq!(names(&[(0, Some(1), 11_000.0, 5_000)], true), Vec::<String>::new());
    }
}
