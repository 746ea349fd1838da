//! What a response time is made of, from rounds of the workload and of the network alone in
//! turns.
//!
//! | part | found as |
//! |---|---|
//! | network | the median over rounds of the network's mean at the same number of clients |
//! | service | the median over pairs of workload less network, with one client: nobody waits |
//! | server queueing | the same with all clients, less the service |
//! | reconnecting | time without a connection, because the server had ended it; where it is worth a line |
//! | client | clients by throughput (Little 1961) less the response time and that: what the client itself takes until it asks again |
//!
//! The sum is held against the mean over *all* time and transactions, disturbed rounds included:
//! medians of rounds that do not add up to it say that what disturbed them is a part of the
//! result, and the decomposition is inconclusive. So it is where rounds far slower than the median
//! took much of the time, and other rounds were as much faster: both are part of the mean.

use model::explain::{Component, Disturbance, RoundSide, Sum};

use crate::paired::{Centre, centre, median};

/// By how much the sum may be off.
pub const ALLOWED: f64 = 0.02;
/// A server that ends a connection now and then costs less of the time than this: no part of its own.
const NOW_AND_THEN: f64 = 0.01;

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Round {
    /// Clients that sent at the same time.
    pub clients: u32,
    /// Transactions that ended within the window.
    pub transactions: u64,
    pub window_ns: f64,
    /// The mean response time.
    pub mean_ns: f64,
    /// Time without a connection until it was made anew, by transaction; none of the response time
    /// has it.
    pub disconnected_ns: f64,
}

impl Round {
    /// Time between two transactions of one client.
    pub fn cycle_ns(&self) -> f64 {
        self.window_ns * f64::from(self.clients) / self.transactions.max(1) as f64
    }

    /// Transactions per second of all clients.
    pub fn per_s(&self) -> f64 {
        self.transactions as f64 * 1e9 / self.window_ns
    }

    /// What the client takes itself.
    fn own_ns(&self) -> f64 {
        (self.cycle_ns() - self.mean_ns - self.disconnected_ns).max(0.0)
    }
}

/// Two rounds side by side.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pair {
    pub workload: Round,
    /// Of the network alone.
    pub network: Round,
}

/// The parts, and whether they add up.
#[derive(Debug, Clone, PartialEq)]
pub struct Decomposition {
    /// See the table above.
    pub components: Vec<Component>,
    /// Held against the whole.
    pub sum: Sum,
    pub service: Centre,
    /// The network's round trip with one client.
    pub network_one: Centre,
    /// The network's round trip with all clients.
    pub network_all: Centre,
    /// What the client takes itself.
    pub client: Centre,
    /// Of the service, what was split off for TLS here.
    pub tls_ns: f64,
}

impl Decomposition {
    /// Takes what the cipher takes at this end out of the service, which has it else: a part of
    /// its own, and the sum as before. No more than there is of it.
    pub fn split_tls(&mut self, tls: Centre) {
        let ns = tls.value.min(self.service.value).max(0.0);
        let Some(at) = self.components.iter().position(|c| c.name == "service") else { return };
        let Some(service) = self.components.get_mut(at) else { return };
        service.ns -= ns;
        service.low_ns -= ns;
        service.high_ns -= ns;
        service.reported = service.low_ns > 0.0;
        let Centre { low, high, .. } = tls;
        self.components.insert(
            at,
            Component {
                name: "tls".into(),
                about: "encrypting and decrypting at this end; the server's is in its service"
                    .into(),
                ns,
                low_ns: low.min(ns),
                high_ns: high.max(ns),
                share: None,
                reported: true,
            },
        );
        shares(&mut self.components);
        self.service.value -= ns;
        self.service.low -= ns;
        self.service.high -= ns;
        self.tls_ns = ns;
    }
}

fn of(pairs: &[Pair], what: impl Fn(&Pair) -> f64) -> Option<Centre> {
    centre(&pairs.iter().map(what).collect::<Vec<f64>>())
}

/// Decomposes. `ones` are pairs with one client; `all` those with all clients, and the same as
/// `ones` where one client is explained.
///
/// `None` with fewer than 3 pairs of either.
pub fn decompose(ones: &[Pair], all: &[Pair]) -> Option<Decomposition> {
    let difference = |p: &Pair| p.workload.mean_ns - p.network.mean_ns;
    let service = of(ones, difference)?;
    let (network_one, network_all) =
        (of(ones, |p| p.network.mean_ns)?, of(all, |p| p.network.mean_ns)?);
    let away = of(all, |p| p.workload.disconnected_ns)?;
    let cycle = of(all, |p| p.workload.cycle_ns())?.value;
    let reconnects = away.value >= NOW_AND_THEN * cycle;
    let client = of(all, |p| match reconnects {
        true => p.workload.own_ns(),
        false => p.workload.own_ns() + p.workload.disconnected_ns,
    })?;
    let clients = all.first()?.workload.clients;
    let mut parts = vec![
        ("network", "link, stack and wake-ups, there and back", network_all),
        ("service", "in the server, without queueing", service),
    ];
    if clients > 1 {
        let whole = of(all, difference)?;
        // Two independent intervals: their widths add up as variances do.
        let half = |c: &Centre| (c.high - c.low) / 2.0;
        let half = half(&whole).hypot(half(&service));
        let value = whole.value - service.value;
        let waiting = Centre { value, low: value - half, high: value + half };
        parts.push(("server queueing", "waiting for other requests in the server", waiting));
    }
    if reconnects {
        parts.push((RECONNECTING, "reconnecting after the server closed the connection", away));
    }
    parts.push(("client", "the client's own time until its next request", client));
    let sum_ns: f64 = parts.iter().map(|p| p.2.value).sum();
    let components = parts.iter().map(|(name, about, c)| Component {
        name: (*name).into(),
        about: (*about).into(),
        ns: c.value,
        low_ns: c.low,
        high_ns: c.high,
        share: None,
        // Differences alone can come out as nothing or less.
        reported: !DIFFERENCES.contains(name) || c.low > 0.0,
    });
    let mut components: Vec<Component> = components.collect();
    shares(&mut components);
    let mut sum = sum(all, sum_ns);
    impossible(&components, &mut sum);
    Some(Decomposition { components, sum, service, network_one, network_all, client, tls_ns: 0.0 })
}

/// The part that is none of anybody's work: the server did not keep the connection.
pub const RECONNECTING: &str = "reconnecting";

/// Shares are of what is told, which alone adds up to a whole.
fn shares(components: &mut [Component]) {
    let whole: f64 = components.iter().filter(|c| c.reported).map(|c| c.ns).sum();
    for c in components {
        c.share = (c.reported && whole > 0.0).then(|| c.ns / whole);
    }
}

/// Parts that are found as the difference of two measurements.
const DIFFERENCES: [&str; 2] = ["service", "server queueing"];

/// A part that is surely less than nothing, by more than the sum may be off, is no part: what it was
/// taken from was not what it stands for.
fn impossible(components: &[Component], sum: &mut Sum) {
    for c in components.iter().filter(|c| DIFFERENCES.contains(&c.name.as_str())) {
        if c.high_ns < 0.0 && c.ns < -ALLOWED * sum.measured_ns {
            sum.conclusive = false;
            sum.disturbed.push(match c.name.as_str() {
                "service" => Disturbance::ServiceBelowNothing,
                _ => Disturbance::QueueingBelowNothing,
            });
        }
    }
}

fn sum(all: &[Pair], sum_ns: f64) -> Sum {
    let rounds = || all.iter().map(|p| p.workload);
    let time: f64 = rounds().map(|r| r.window_ns * f64::from(r.clients)).sum();
    let measured_ns = time / rounds().map(|r| r.transactions).sum::<u64>().max(1) as f64;
    let error = if measured_ns > 0.0 { sum_ns / measured_ns - 1.0 } else { f64::INFINITY };
    let cycles: Vec<f64> = rounds().map(|r| r.cycle_ns()).collect();
    let conclusive = error.abs() <= ALLOWED && lost(rounds(), median(&cycles)) <= LOST * time;
    let mut disturbed = vec![];
    if !conclusive {
        disturbed.extend(apart(&cycles));
        disturbed.extend(drift(&cycles));
    }
    Sum { measured_ns, sum_ns, error, allowed: ALLOWED, conclusive, disturbed }
}

/// Rounds this many times slower than the median may lose `LOST` of the time.
const FAR_SLOWER: f64 = 2.0;
const LOST: f64 = 0.05;

/// The time of far slower rounds beyond what their transactions take in the median round.
fn lost(rounds: impl Iterator<Item = Round>, typical: f64) -> f64 {
    rounds
        .filter(|r| r.cycle_ns() > FAR_SLOWER * typical)
        .map(|r| r.window_ns * f64::from(r.clients) - r.transactions as f64 * typical)
        .sum()
}

/// From here on a round stands out from the median, in parts of it.
pub const STANDS_OUT: f64 = 0.1;

/// The slowest and the fastest round, where they stand out: both move a mean away from the median.
fn apart(cycles: &[f64]) -> Vec<Disturbance> {
    let typical = median(cycles);
    let count_outliers =
        |by: fn(f64) -> f64| cycles.iter().filter(|c| by(**c / typical) > STANDS_OUT).count();
    let slower = (
        count_outliers(|part| part - 1.0),
        RoundSide::Slower,
        cycles.iter().copied().fold(typical, f64::max),
    );
    let faster = (
        count_outliers(|part| 1.0 - part),
        RoundSide::Faster,
        cycles.iter().copied().fold(typical, f64::min),
    );
    let reported = |(count, side, farthest): (usize, RoundSide, f64)| {
        (count > 0).then(|| Disturbance::RoundsApart {
            side,
            count,
            rounds: cycles.len(),
            over: STANDS_OUT,
            most: (farthest / typical - 1.0).abs(),
        })
    };
    [slower, faster].into_iter().filter_map(reported).collect()
}

/// The second half against the first.
fn drift(cycles: &[f64]) -> Option<Disturbance> {
    let (before, after) = cycles.split_at(cycles.len() / 2);
    let change = median(after) / median(before) - 1.0;
    (change.abs() > 0.03).then_some(Disturbance::Drifted { change })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SplitMix64;

    fn round(clients: u32, mean_ns: f64, own_ns: f64) -> Round {
        let cycle = mean_ns + own_ns;
        let transactions = (2e8 * f64::from(clients) / cycle) as u64;
        let window_ns = transactions as f64 * cycle / f64::from(clients);
        Round { clients, transactions, window_ns, mean_ns, disconnected_ns: 0.0 }
    }

    /// Rounds of a drifting machine: network, service and waiting are the truth.
    fn pairs(n: u32, clients: u32, network: f64, served: f64) -> Vec<Pair> {
        let mut random = SplitMix64::new(11);
        (0..n)
            .map(|i| {
                let mut noise = || 1.0 + 0.01 * random.normal();
                let drift = 1.0 + 0.001 * f64::from(i);
                let net = network * drift;
                Pair {
                    workload: round(clients, (net + served) * noise(), 800.0),
                    network: round(clients, net * noise(), 600.0),
                }
            })
            .collect()
    }

    fn part<'a>(d: &'a Decomposition, name: &str) -> &'a Component {
        d.components.iter().find(|c| c.name == name).unwrap()
    }

    #[test]
    fn with_one_client_the_parts_are_network_service_and_client() {
        let all = pairs(24, 1, 25_000.0, 100_000.0);
        let d = decompose(&all, &all).unwrap();
        let service = part(&d, "service");
        assert!(service.low_ns < 100_000.0 && 100_000.0 < service.high_ns, "{service:?}");
        assert!((service.ns - 100_000.0).abs() < 2_000.0, "{service:?}");
        assert!((part(&d, "network").ns / 25_300.0 - 1.0).abs() < 0.02);
        assert!((part(&d, "client").ns - 800.0).abs() < 10.0);
        assert_eq!(d.components.len(), 3);
        assert!(d.sum.conclusive && d.sum.error.abs() < 0.01, "{:?}", d.sum);
        let shares: f64 = d.components.iter().filter_map(|c| c.share).sum();
        assert!((shares - 1.0).abs() < 1e-9);
    }

    /// A server that ends each connection: of 200 µs 60 are needed to connect anew.
    #[test]
    fn the_time_without_a_connection_is_not_the_clients() {
        let with = |disconnected_ns: f64| {
            let mut all = pairs(24, 1, 25_000.0, 100_000.0);
            for p in &mut all {
                p.workload = Round {
                    disconnected_ns,
                    ..round(1, p.workload.mean_ns, 800.0 + disconnected_ns)
                };
            }
            decompose(&all, &all).unwrap()
        };
        let d = with(60_000.0);
        assert!((part(&d, RECONNECTING).ns - 60_000.0).abs() < 1.0, "{d:?}");
        assert!((part(&d, "client").ns - 800.0).abs() < 10.0, "{d:?}");
        assert!(d.sum.conclusive, "{:?}", d.sum);
        // One in a hundred requests: no line of its own, and the sum as before.
        let d = with(600.0);
        assert!(d.components.iter().all(|c| c.name != RECONNECTING), "{d:?}");
        assert!((part(&d, "client").ns - 1_400.0).abs() < 10.0 && d.sum.conclusive, "{d:?}");
    }

    #[test]
    fn with_several_clients_what_is_more_than_the_service_is_waiting() {
        let d = decompose(&pairs(24, 1, 25_000.0, 100_000.0), &pairs(24, 8, 40_000.0, 780_000.0))
            .unwrap();
        let waiting = part(&d, "server queueing");
        assert!((waiting.ns / 680_000.0 - 1.0).abs() < 0.03, "{waiting:?}");
        assert!(waiting.low_ns < 680_000.0 && 680_000.0 < waiting.high_ns, "{waiting:?}");
        assert!(d.sum.conclusive, "{:?}", d.sum);
    }

    #[test]
    fn a_disturbance_that_is_part_of_the_mean_is_inconclusive_and_named() {
        let mut all = pairs(12, 1, 25_000.0, 100_000.0);
        for p in &mut all[..4] {
            p.workload = round(1, 400_000.0, 800.0);
        }
        let d = decompose(&all, &all).unwrap();
        assert!(!d.sum.conclusive && d.sum.error < -0.02, "{:?}", d.sum);
        let named = d.sum.disturbed[0].to_string();
        assert!(named.starts_with("4 of 12 rounds"), "{:?}", d.sum.disturbed);
    }

    /// Five of twelve at a third of the time: the mean is far below the median, and no round is slow.
    #[test]
    fn faster_rounds_disturb_the_mean_as_well_and_are_named() {
        let mut all = pairs(12, 1, 25_000.0, 100_000.0);
        for p in &mut all[..5] {
            p.workload = round(1, 40_000.0, 800.0);
        }
        let d = decompose(&all, &all).unwrap();
        assert!(!d.sum.conclusive && d.sum.error > 0.02, "{:?}", d.sum);
        let named = d.sum.disturbed[0].to_string();
        assert!(named.starts_with("5 of 12 rounds were over 10% faster"), "{:?}", d.sum.disturbed);
        assert!(named.contains("the fastest 6") || named.contains("the fastest 7"), "{named}");
        let slower =
            |d: &Disturbance| matches!(d, Disturbance::RoundsApart { side: RoundSide::Slower, .. });
        assert!(!d.sum.disturbed.iter().any(slower), "{:?}", d.sum);
    }

    /// Three of twelve rounds are ten times slower, and five so much faster that the mean is the median.
    #[test]
    fn slow_rounds_that_fast_ones_make_up_for_are_named() {
        let mut all = pairs(12, 1, 25_000.0, 100_000.0);
        for p in &mut all[..3] {
            p.workload = round(1, 1_250_000.0, 800.0);
        }
        for p in &mut all[7..] {
            p.workload = round(1, 80_500.0, 800.0);
        }
        let d = decompose(&all, &all).unwrap();
        assert!(d.sum.error.abs() < ALLOWED && !d.sum.conclusive, "{:?}", d.sum);
        let named = d.sum.disturbed[0].to_string();
        assert!(named.starts_with("3 of 12 rounds were over 10% slower"), "{:?}", d.sum.disturbed);
        let named = d.sum.disturbed[1].to_string();
        assert!(named.starts_with("5 of 12 rounds were over 10% faster"), "{:?}", d.sum.disturbed);
    }

    #[test]
    fn what_tls_takes_here_is_no_service() {
        let all = pairs(12, 1, 25_000.0, 50_000.0);
        let mut d = decompose(&all, &all).unwrap();
        let before = d.clone();
        d.split_tls(Centre { value: 4_000.0, low: 3_900.0, high: 4_200.0 });
        let of = |d: &Decomposition, name: &str| {
            d.components.iter().find(|c| c.name == name).map(|c| (c.ns, c.share)).unwrap()
        };
        assert_eq!(of(&d, "tls").0, 4_000.0);
        assert!((of(&d, "service").0 + 4_000.0 - of(&before, "service").0).abs() < 1e-6);
        assert!((d.components.iter().filter_map(|c| c.share).sum::<f64>() - 1.0).abs() < 1e-9);
        assert!((d.service.value - (before.service.value - 4_000.0)).abs() < 1e-6);
        // There is no more of it than there is service.
        d.split_tls(Centre { value: 1e9, low: 1e9, high: 1e9 });
        assert!(d.components.iter().all(|c| c.ns > -1e-6), "{:?}", d.components);
    }

    /// Workload and network alike but for their spread, and one that is faster than its network.
    #[test]
    fn an_impossible_component_is_not_reported() {
        let all = pairs(24, 1, 25_000.0, 0.0);
        let d = decompose(&all, &all).unwrap();
        assert!(
            !part(&d, "service").reported && part(&d, "network").reported,
            "{:?}",
            d.components
        );
        // Its share is none, and the others' are of what is told.
        assert_eq!(part(&d, "service").share, None);
        let shares: f64 = d.components.iter().filter_map(|c| c.share).sum();
        assert!((shares - 1.0).abs() < 1e-9, "{:?}", d.components);
        assert!(d.sum.conclusive, "nothing within its interval is no contradiction: {:?}", d.sum);
        let all = pairs(24, 1, 45_000.0, -30_000.0);
        let d = decompose(&all, &all).unwrap();
        assert!(!part(&d, "service").reported && !d.sum.conclusive, "{d:?}");
        assert!(d.sum.disturbed.contains(&Disturbance::ServiceBelowNothing), "{:?}", d.sum);
        let all = pairs(24, 1, 25_000.0, 5_000.0);
        assert!(part(&decompose(&all, &all).unwrap(), "service").reported);
    }

    #[test]
    fn too_few_rounds_are_no_answer() {
        let all = pairs(2, 1, 25_000.0, 1_000.0);
        assert_eq!(decompose(&all, &all), None);
    }
}
