//! A first guess of the service time, by which the responder and the synthetic workload compute.

use model::{
    Nanos,
    explain::{Exchange, Typical},
};
use stats::paired::{centre, median};

use crate::{interleaving::Pairs, request::Request, workload::Observed};

/// The longest that a responder is told to compute.
const MOST: f64 = 50e6;

/// Whether transactions are of several kinds: more than one script, or one that makes now more
/// round trips and now fewer.
pub fn mixed(request: &Request, exchange: &Exchange) -> bool {
    let trips = exchange.round_trips.max(1.0);
    request.scripts.len() > 1 || (trips - trips.round()).abs() > 0.05
}

/// A first guess of the service time; 0 where it would be lost in a round trip's own spread: below
/// 2% of it, and not above nothing in all pairs. Of transactions of several kinds the median is of
/// no kind: then of means.
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

/// The same as the decomposition's, of medians.
pub fn typical(ones: &Pairs) -> Option<Typical> {
    held(ones, |o| o.quantiles.p50 as f64)
}

/// One figure of the workload's rounds against that of the network's.
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
