//! How far a prediction can be off: the widths that make its interval, each as a share (a
//! difference of logarithms), added as independent ones are.
//!
//! | width | from |
//! |---|---|
//! | rounds | how far single rounds lie apart, here or on the other path: what is measured next is one more draw |
//! | others | CPUs that other tasks kept busy: taken as anything from none to twice as much |
//! | delay | the 95% interval of what the path adds |
//! | held out | a synthetic workload there, predicted with what another number of clients told |
//! | delayed | half of what the workload itself, with delayed answers, was off the curve's prediction |
//! | model | what predictions for other paths were off by where nothing disturbed |

use model::explain::Level;

use super::Model;
use crate::{queueing::NoNetwork, student::two_sided_t};

/// 95% of a normal distribution.
const NORMAL: f64 = 1.96;
/// The 95% error of a prediction for another path that no run can see: the root mean square of
/// 24 cells in a guest where nothing disturbs (docs/explain-accuracy-guest.md) is 4.2%.
const MODEL: f64 = NORMAL * 0.042;
/// Anything from none to twice as much, evenly: its standard deviation in parts of the middle.
const EVENLY: f64 = 0.577;
/// An interval whose ends lie further apart than this factor says too little to rely on.
const WIDEST: f64 = 2.0;

/// What was seen of another path beside what it adds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Evidence {
    /// Half of the 95% interval of what it adds, nanoseconds.
    pub margin_ns: f64,
    /// Standard deviation of a round there, as a share.
    pub other_path_spread: Option<f64>,
    /// A share of the rate; see `model::explain::PathLoad`.
    pub held_out: Option<f64>,
    /// The workload here with delayed answers, by number of clients.
    pub delayed: Vec<Level>,
}

/// A prediction's factor and the half width of its interval, both of logarithms.
#[derive(Debug, Clone, Copy)]
pub(super) struct Off {
    /// The prediction times this is what the workload with delayed answers says.
    pub factor: f64,
    /// Half of the interval.
    pub half: f64,
}

/// The pooled standard deviation of rounds and its degrees of freedom.
fn pooled(levels: &[Level]) -> Option<(f64, u32)> {
    let known = levels.iter().filter_map(|l| Some((l.spread?, l.rounds.saturating_sub(1))));
    let (sum, degrees) = known.fold((0.0, 0), |(sum, all), (spread, degrees)| {
        (sum + spread * spread * f64::from(degrees), all + degrees)
    });
    (degrees > 0).then(|| ((sum / f64::from(degrees)).sqrt(), degrees))
}

/// Half of the interval of one more draw.
fn one_more((spread, degrees): (f64, u32), rounds: u32) -> f64 {
    two_sided_t(0.95, degrees) * spread * (1.0 + 1.0 / f64::from(rounds.max(1))).sqrt()
}

/// Whether an interval is too wide to rely on.
pub(super) fn is_too_wide(low: f64, high: f64) -> bool {
    high > low * WIDEST
}

impl Model {
    /// How far a prediction of `per_s` with so many clients is off, where the path adds `added_ns`.
    pub(super) fn off(
        &self,
        (clients, per_s): (u32, f64),
        added_ns: f64,
        evidence: &Evidence,
    ) -> Result<Off, NoNetwork> {
        let cycle = f64::from(clients) * 1e9 / per_s;
        // Of the cycle elsewhere, what is still as it is here.
        let local = ((cycle - added_ns.max(0.0)) / cycle).clamp(0.0, 1.0);
        let factor = self.delayed(clients, evidence)?.unwrap_or(1.0);
        let delay = evidence.margin_ns / cycle;
        let elsewhere = if added_ns == 0.0 { 0.0 } else { MODEL };
        let widths = [
            self.rounds(clients, local, evidence),
            self.others(clients) * local,
            delay,
            evidence.held_out.unwrap_or(0.0),
            factor.ln() / 2.0,
            elsewhere,
        ];
        let half = widths.iter().map(|w| w * w).sum::<f64>().sqrt();
        Ok(Off { factor, half })
    }

    /// How far rounds lie apart here, in so much of the cycle, and there in all of it: the wider.
    fn rounds(&self, clients: u32, local: f64, evidence: &Evidence) -> f64 {
        let level = self.level(clients);
        let here = match pooled(&self.known.levels) {
            Some(here) => one_more(here, level.map_or(1, |l| l.rounds)),
            None => self.spread(clients),
        };
        let delayed = pooled(&evidence.delayed).map(|there| one_more(there, 3));
        let there = evidence.other_path_spread.map(|s| s * NORMAL);
        [delayed, there].into_iter().flatten().fold(here * local, f64::max)
    }

    /// What other tasks' share of the CPUs may move.
    fn others(&self, clients: u32) -> f64 {
        let busy = self.level(clients).and_then(|l| l.others_cpus).unwrap_or(0.0);
        let cpus = self.known.cpus.map_or(1.0, f64::from).max(1.0);
        NORMAL * EVENLY * (busy / cpus).min(1.0)
    }

    /// What the workload with delayed answers did, in parts of what the curve says of as much delay:
    /// locks that are held over round trips, and servers that lose their caches. The delay is that of
    /// one client, its timer's lateness included. None where it was not measured, and of one client.
    fn delayed(&self, clients: u32, evidence: &Evidence) -> Result<Option<f64>, NoNetwork> {
        let at = |n: u32| evidence.delayed.iter().find(|l| l.clients == n).map(|l| l.per_s);
        let (Some(one), Some(all)) = (at(1), at(clients).filter(|_| clients > 1)) else {
            return Ok(None);
        };
        let delay = 1e9 / one - 1e9 / self.curve.per_s(1.0);
        if delay <= 0.0 {
            return Ok(None);
        }
        let (low, high) = super::span(&self.curve, clients, delay)?;
        Ok(Some(all * 2.0 / (low + high)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        paired::{Centre, centre, median, spread},
        predict::{Added, Known},
        queueing::{Network, Station},
        random::SplitMix64,
    };

    const CPUS: u32 = 2;
    const CPU_NS: f64 = 25_000.0;
    const REST_NS: f64 = 20_000.0;
    const ADDED_NS: f64 = 250_000.0;

    /// A host whose other tasks come and go: their share of its CPUs wanders.
    struct Busy {
        random: SplitMix64,
        others: f64,
    }

    impl Busy {
        fn new(seed: u64) -> Self {
            let mut random = SplitMix64::new(seed);
            let others = random.unit();
            Self { random, others }
        }

        /// A round: what the others take moves on, and with it what a transaction takes.
        fn round(&mut self, clients: u32, added_ns: f64) -> f64 {
            self.others =
                (self.others * 0.8 + self.random.unit() * 0.2 + 0.1 * self.random.normal())
                    .clamp(0.0, 1.2);
            let left = 1.0 - self.others / f64::from(CPUS);
            let stations = vec![
                Station::servers("CPUs", CPUS, CPU_NS / left),
                Station::delay("rest", REST_NS + added_ns),
            ];
            let per_s = Network::new(stations).unwrap().solve(clients).unwrap().per_s;
            per_s * (0.03 * self.random.normal()).exp()
        }

        /// Levels, three rounds each, all of them several times over as `explain` does it.
        fn levels(&mut self, all: &[u32], added_ns: f64) -> Vec<Level> {
            let mut seen: Vec<Vec<(f64, f64)>> = vec![vec![]; all.len()];
            for _ in 0..3 {
                for (n, rounds) in all.iter().zip(&mut seen) {
                    let rate = self.round(*n, added_ns);
                    rounds.push((rate, self.others));
                }
            }
            all.iter().zip(seen).map(|(n, rounds)| level(*n, &rounds)).collect()
        }
    }

    fn level(clients: u32, rounds: &[(f64, f64)]) -> Level {
        let rates: Vec<f64> = rounds.iter().map(|r| r.0).collect();
        let c = centre(&rates).unwrap();
        Level {
            clients,
            per_s: c.value,
            low_per_s: c.low,
            high_per_s: c.high,
            client_cpu_ns: Some(CPU_NS * 0.3),
            server_cpu_ns: Some(CPU_NS * 0.7),
            rounds: 3,
            spread: spread(&rates),
            others_cpus: Some(median(&rounds.iter().map(|r| r.1).collect::<Vec<_>>())),
            ..Level::default()
        }
    }

    fn model(levels: Vec<Level>) -> Model {
        Model::new(Known {
            levels,
            network_ns: 30_000.0,
            service: Centre { value: 15_000.0, low: 14_000.0, high: 16_000.0 },
            own_ns: 2_000.0,
            client_threads: 1,
            server_threads: None,
            cpus: Some(CPUS),
        })
        .unwrap()
    }

    /// How many of 200 intervals hold what is measured later, on the busy host.
    fn held(clients: u32, added_ns: f64, knows: bool) -> usize {
        let one = |seed: u64| {
            let mut host = Busy::new(seed * 7_919 + u64::from(clients));
            let mut levels = host.levels(&[1, 2, 4, 8, 16], 0.0);
            let mut evidence = Evidence::default();
            if knows && added_ns > 0.0 {
                evidence.delayed = host.levels(&[1, clients], added_ns);
            }
            if !knows {
                // The least and the most of three rounds, as it was told before.
                let forget = |l: &mut Level| (l.rounds, l.spread, l.others_cpus) = (0, None, None);
                levels.iter_mut().for_each(forget);
            }
            let added = Added { ns: added_ns, ..Added::default() };
            let p = model(levels).predict_by("x", added, clients, &evidence).unwrap();
            for _ in 0..30 {
                host.round(clients, added_ns);
            }
            let later: Vec<f64> = (0..3).map(|_| host.round(clients, added_ns)).collect();
            let later = median(&later);
            (p.low_per_s..=p.high_per_s).contains(&later)
        };
        (0..200).filter(|seed| one(*seed)).count()
    }

    #[test]
    fn on_a_host_whose_other_tasks_come_and_go_nineteen_of_twenty_intervals_hold() {
        for clients in [1, 4, 16] {
            for added_ns in [0.0, ADDED_NS] {
                let holds = held(clients, added_ns, true);
                assert!(holds >= 180, "{clients} clients, {added_ns} ns: {holds} of 200");
            }
        }
        let before = held(16, 0.0, false);
        assert!(before < 150, "what three rounds say of themselves is no interval: {before}");
    }

    /// Rows that are locked from one round trip to the next: what the curve says is far too much.
    #[test]
    fn a_workload_that_waits_for_itself_elsewhere_is_predicted_by_its_delayed_self() {
        let level = |clients: u32, cycle_ns: f64| Level {
            clients,
            per_s: f64::from(clients) * 1e9 / cycle_ns,
            rounds: 3,
            spread: Some(0.01),
            ..Level::default()
        };
        let here = [1, 2, 4, 8].map(|n| level(n, 100_000.0)).to_vec();
        let added = Added { ns: 2e6, ..Added::default() };
        let model = model(here);
        let blind = model.predict("x", added, 8).unwrap();
        // One client takes as much longer as the path is slower, eight take twice that.
        let delayed = vec![level(1, 2.1e6), level(8, 4.2e6)];
        let evidence = Evidence { delayed, ..Evidence::default() };
        let seeing = model.predict_by("x", added, 8, &evidence).unwrap();
        let truth = 8.0 * 1e9 / 4.2e6;
        assert!(blind.predicted_per_s > truth * 1.9 && blind.low_per_s > truth, "{blind:?}");
        assert!((seeing.predicted_per_s / truth - 1.0).abs() < 0.02, "{seeing:?}");
        assert!(seeing.low_per_s < truth && truth < seeing.high_per_s, "{seeing:?}");
        // One client waits for nobody.
        let one = model.predict_by("x", added, 1, &evidence).unwrap();
        assert!((one.predicted_per_s - 1e9 / 2.1e6).abs() < 1.0, "{one:?}");
    }

    #[test]
    fn an_interval_that_says_too_little_is_inconclusive() {
        assert!(is_too_wide(99.0, 200.0) && !is_too_wide(101.0, 200.0));
    }
}
