//! What the slower rounds have that the others have not: why a decomposition does not add up.

use stats::paired::median;

use super::{turns::Pairs, workload::Observed};

/// From here on a round is one of the slower, in parts of the median.
const SLOWER: f64 = 1.1;
/// CPUs that were busy more than in the other rounds, before something else is said to have run.
const BUSIER: f64 = 0.2;
/// The least share of a CPU taken by the hypervisor that is told.
const STEAL: f64 = 0.005;

/// What is known of it, in lines for people; nothing where no round stands out and the hypervisor
/// took nothing.
pub fn by(all: &Pairs) -> Vec<String> {
    let cycles: Vec<f64> = all.pairs.iter().map(|p| p.workload.cycle_ns()).collect();
    let bound = median(&cycles) * SLOWER;
    let both = all.workload.iter().zip(&all.network).zip(&cycles);
    let (slow, rest): (Vec<_>, Vec<_>) = both.partition(|(_, cycle)| **cycle > bound);
    let of = |rounds: &[((&Observed, &Observed), &f64)], what: fn(&Observed, &Observed) -> f64| {
        let known: Vec<f64> = rounds.iter().map(|((w, n), _)| what(w, n)).collect();
        known.into_iter().filter(|x| x.is_finite()).collect::<Vec<f64>>()
    };
    // Each against the rounds that were not slower, where there are both.
    let sides = |what| {
        let (a, b) = (of(&slow, what), of(&rest, what));
        (!a.is_empty() && !b.is_empty()).then(|| (median(&a), median(&b)))
    };
    steal(all).into_iter().chain(who(sides)).collect()
}

fn steal(all: &Pairs) -> Option<String> {
    let rounds = || all.workload.iter().chain(&all.network);
    let steal: u64 = rounds().map(|o| o.steal_ns).sum();
    let share = steal as f64 / rounds().map(|o| o.round.window_ns).sum::<f64>();
    (share >= STEAL).then(|| format!("the hypervisor took {:.1}% of a CPU", share * 100.0))
}

/// CPUs of this host that were busy.
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

type What = fn(&Observed, &Observed) -> f64;

fn who(sides: impl Fn(What) -> Option<(f64, f64)>) -> Option<String> {
    // Without a slower round nobody slowed any.
    let more = |what| sides(what).map(|(slow, rest)| slow - rest);
    if let Some((slow, rest)) = sides(busy).filter(|(slow, rest)| *slow > rest + BUSIER) {
        return Some(format!(
            "in the slower rounds {slow:.1} CPUs of this host were busy, in the others {rest:.1}: \
             something else ran"
        ));
    }
    // Of what the slower ones take longer, so much is in the network alone beside them.
    let part = more(beside)? / more(whole)?.max(1.0);
    let told = match part {
        ..0.25 => {
            "the network alone in the turns beside the slower rounds was hardly slower, which \
             points to the server"
        }
        0.75.. => {
            "the network alone in the turns beside the slower rounds was as much slower, which \
             does not point to the server"
        }
        _ => "the network alone in the turns beside the slower rounds was slower, too",
    };
    Some(told.to_owned())
}

#[cfg(test)]
mod tests {
    use stats::decompose::{Pair, Round};

    use super::*;

    /// A round with a mean response time, and how many CPUs of this host it kept busy.
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

    fn told(slow: (Observed, Observed)) -> String {
        let still = || (round(50e3, 1.0, 0), round(20e3, 1.0, 0));
        by(&pairs(&[still(), still(), slow, still(), still()])).join("; ")
    }

    #[test]
    fn the_slower_rounds_are_held_against_the_others() {
        let server = told((round(90e3, 0.6, 0), round(20e3, 1.0, 0)));
        assert!(server.ends_with("which points to the server"), "{server}");
        let path = told((round(90e3, 1.0, 0), round(60e3, 1.0, 0)));
        assert!(path.contains("as much slower"), "{path}");
        let both = told((round(90e3, 1.0, 0), round(40e3, 1.0, 0)));
        assert!(both.ends_with("was slower, too"), "{both}");
        let hog = told((round(90e3, 1.9, 0), round(40e3, 2.0, 0)));
        assert!(hog.contains("1.9 CPUs") && hog.contains("the others 1.0"), "{hog}");
        let taken = told((round(90e3, 1.0, 100_000_000), round(40e3, 1.0, 0)));
        assert!(taken.starts_with("the hypervisor took 1.0% of a CPU"), "{taken}");
    }

    #[test]
    fn where_no_round_stands_out_nobody_is_named() {
        let none = told((round(50e3, 2.0, 0), round(60e3, 1.0, 0)));
        assert_eq!(none, "");
        assert_eq!(by(&Pairs::default()), Vec::<String>::new());
    }
}
