//! A first estimate of the service time, which the responder and the synthetic workload then spin.

use model::{
    Nanos,
    explain::{Exchange, Typical},
};
use stats::paired::{centre, median};

use crate::{interleaving::Pairs, request::Request, workload::Observed};

/// The longest service time of a responder, nanoseconds.
const MOST: f64 = 50e6;

/// Whether transactions are of several kinds: several scripts, or one with a varying number of
/// round trips.
pub fn mixed(request: &Request, exchange: &Exchange) -> bool {
    let trips = exchange.round_trips.max(1.0);
    request.scripts.len() > 1 || (trips - trips.round()).abs() > 0.05
}

/// A first estimate of the service time. It is 0 where the network's spread hides it: below 2% of
/// the round trip, with an interval that includes 0. For transactions of several kinds it uses
/// means, as the median is typical of none.
pub fn guess(pairs: &Pairs, mixed: bool) -> Nanos {
    let known = match mixed {
        false => typical(pairs),
        true => held(pairs, |o| o.round.mean_ns),
    };
    let Some(Typical { network_ns, service_ns, low_ns, .. }) = known else { return Nanos(0) };
    match service_ns >= network_ns * 0.02 || low_ns > 0.0 {
        true => Nanos(service_ns.clamp(0.0, MOST) as u64),
        false => Nanos(0),
    }
}

/// Network and service of the typical transaction, from medians.
pub fn typical(ones: &Pairs) -> Option<Typical> {
    held(ones, |o| o.quantiles.p50 as f64)
}

/// A figure of the workload's rounds less that of the network's rounds.
fn held(ones: &Pairs, figure: impl Fn(&Observed) -> f64) -> Option<Typical> {
    let network: Vec<f64> = ones.network.iter().map(&figure).collect();
    let both = ones.workload.iter().zip(&ones.network);
    let service = centre(&both.map(|(w, n)| figure(w) - figure(n)).collect::<Vec<_>>())?;
    Some(Typical {
        network_ns: median(&network),
        service_ns: service.value,
        low_ns: service.low,
        high_ns: service.high,
    })
}
