//! Why a decomposition does not add up: what distinguishes outlier rounds from the others.

use model::explain::{Disturbance, NetworkBeside, RoundSide};
use stats::{decompose::STANDS_OUT, paired::median};

use crate::{interleaving::Pairs, workload::Observed};

/// How many more CPUs must be busy than in the other rounds before another task is blamed.
const BUSIER: f64 = 0.2;
/// The least share of steal time that is reported.
const STEAL: f64 = 0.005;

/// The disturbances found; empty without outlier rounds and without steal time.
pub fn by(all: &Pairs) -> Vec<Disturbance> {
    let cycles: Vec<f64> = all.pairs.iter().map(|p| p.workload.cycle_ns()).collect();
    let typical = median(&cycles);
    let against = |stands_out: &dyn Fn(f64) -> bool, side| {
        let both = all.workload.iter().zip(&all.network).zip(&cycles);
        let (some, rest): (Vec<_>, Vec<_>) = both.partition(|(_, cycle)| stands_out(**cycle));
        let of = |rounds: &[((&Observed, &Observed), &f64)], what: MetricOf| {
            let known: Vec<f64> = rounds.iter().map(|((w, n), _)| what(w, n)).collect();
            known.into_iter().filter(|x| x.is_finite()).collect::<Vec<f64>>()
        };
        // Outliers against the other rounds, where there are both.
        let sides = |what| {
            let (a, b) = (of(&some, what), of(&rest, what));
            (!a.is_empty() && !b.is_empty()).then(|| (median(&a), median(&b)))
        };
        who(sides, side)
    };
    let slower = against(&|cycle| cycle > typical * (1.0 + STANDS_OUT), RoundSide::Slower);
    let faster = against(&|cycle| cycle < typical * (1.0 - STANDS_OUT), RoundSide::Faster);
    steal(all).into_iter().chain(slower).chain(faster).collect()
}

fn steal(all: &Pairs) -> Option<Disturbance> {
    let rounds = || all.workload.iter().chain(&all.network);
    let steal: u64 = rounds().map(|o| o.steal_ns).sum();
    let share = steal as f64 / rounds().map(|o| o.round.window_ns).sum::<f64>();
    (share >= STEAL).then_some(Disturbance::Steal { share })
}

/// How many CPUs of this host were busy.
fn busy(w: &Observed, _: &Observed) -> f64 {
    let all = w.host_cpu_ns.map(|ns| ns * w.round.transactions as f64 / w.round.window_ns);
    all.unwrap_or(f64::NAN)
}

fn beside(_: &Observed, n: &Observed) -> f64 {
    n.round.mean_ns
}

fn whole(w: &Observed, _: &Observed) -> f64 {
    w.round.mean_ns
}

type MetricOf = fn(&Observed, &Observed) -> f64;

fn who(sides: impl Fn(MetricOf) -> Option<(f64, f64)>, side: RoundSide) -> Option<Disturbance> {
    // What is higher or lower in outlier rounds than in the others.
    let sign = match side {
        RoundSide::Slower => 1.0,
        RoundSide::Faster => -1.0,
    };
    // Without an outlier round nothing disturbed the workload.
    let more = |what| sides(what).map(|(some, rest)| (some - rest) * sign);
    if let Some((cpus, others_cpus)) =
        sides(busy).filter(|(some, rest)| (some - rest) * sign > BUSIER)
    {
        return Some(Disturbance::BusyCpus { side, cpus, others_cpus });
    }
    // The part of the difference that the network alone shows in the same rounds.
    let share = more(beside)? / more(whole)?.max(1.0);
    let network = match share {
        ..0.25 => NetworkBeside::Hardly,
        0.75.. => NetworkBeside::AsMuch,
        _ => NetworkBeside::Partly,
    };
    Some(Disturbance::NetworkBeside { side, network, share })
}

#[cfg(test)]
mod tests {
    use stats::decompose::{Pair, Round};

    use super::*;

    /// A round with a mean response time and this many busy CPUs.
    fn round(mean_ns: f64, cpus: f64, steal_ns: u64) -> Observed {
        let transactions = (1e9 / mean_ns) as u64;
        let none = Observed::nothing();
        Observed {
            round: Round { transactions, mean_ns, ..none.round },
            host_cpu_ns: Some(cpus * 1e9 / transactions as f64),
            steal_ns,
            ..none
        }
    }

    fn pairs(rounds: &[(Observed, Observed)]) -> Pairs {
        let pair = |(w, n): &(Observed, Observed)| Pair { workload: w.round, network: n.round };
        Pairs {
            pairs: rounds.iter().map(pair).collect(),
            workload: rounds.iter().map(|r| r.0.clone()).collect(),
            network: rounds.iter().map(|r| r.1.clone()).collect(),
        }
    }

    fn reported(slow: (Observed, Observed)) -> String {
        let still = || (round(50e3, 1.0, 0), round(20e3, 1.0, 0));
        let all = by(&pairs(&[still(), still(), slow, still(), still()]));
        all.iter().map(Disturbance::to_string).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn the_slower_rounds_are_held_against_the_others() {
        let server = reported((round(90e3, 0.6, 0), round(20e3, 1.0, 0)));
        assert!(server.ends_with("which points to the server"), "{server}");
        let path = reported((round(90e3, 1.0, 0), round(60e3, 1.0, 0)));
        assert!(path.contains("as much slower"), "{path}");
        let both = reported((round(90e3, 1.0, 0), round(40e3, 1.0, 0)));
        assert!(both.ends_with("was slower, too"), "{both}");
        let hog = reported((round(90e3, 1.9, 0), round(40e3, 2.0, 0)));
        assert!(hog.contains("1.9 CPUs") && hog.contains("the others 1.0"), "{hog}");
        let taken = reported((round(90e3, 1.0, 100_000_000), round(40e3, 1.0, 0)));
        assert!(taken.starts_with("the hypervisor took 1.0% of a CPU"), "{taken}");
    }

    #[test]
    fn so_are_the_faster_ones() {
        let server = reported((round(20e3, 1.0, 0), round(20e3, 1.0, 0)));
        assert!(server.contains("beside the faster rounds was hardly faster"), "{server}");
        let path = reported((round(35e3, 1.0, 0), round(5e3, 1.0, 0)));
        assert!(path.contains("as much faster, which does not"), "{path}");
        let hog = reported((round(20e3, 0.3, 0), round(20e3, 1.0, 0)));
        assert!(hog.starts_with("in the faster rounds 0.3 CPUs"), "{hog}");
        assert!(hog.ends_with("something else ran in the others"), "{hog}");
    }

    #[test]
    fn where_no_round_stands_out_nobody_is_named() {
        let none = reported((round(50e3, 2.0, 0), round(60e3, 1.0, 0)));
        assert_eq!(none, "");
        assert_eq!(by(&Pairs::default()), []);
    }
}
