//! What other paths add to a transaction. A path named by a host is measured; so is the extra cost
//! of a server that idles longer between two requests.

use std::sync::atomic::Ordering;

use model::{
    Nanos,
    explain::{Exchange, Level, OtherPath},
};
use stats::paired::{Centre, centre, differences, median};
use traffic::{Error, Result};

use crate::{
    ends::{self, transport},
    interleaving::{Interleaving, Pairs},
    request::{Path, Request},
    rtt::Rtt,
    synthetic::SyntheticWorkload,
    workload::{Observed, Workload, pooled},
};

/// Pairs of rounds for each question.
const PAIRS: usize = 5;

/// Checks that the paths' servers answer, before the long part.
///
/// # Errors
/// One does not.
pub fn reachable(request: &Request, run: traffic::Run<'_>) -> Result<()> {
    for path in &request.paths {
        let Path::Host(host) = path else { continue };
        match ends::rtt(request, host).run(1, request.round, run) {
            // Interrupted by Ctrl-C it may have answered nothing.
            Err(why) if !run.stop.load(Ordering::Relaxed) => return Err(within(path, why)),
            _ => {}
        }
    }
    Ok(())
}

/// Names the path in an error.
fn within(path: &Path, why: Error) -> Error {
    let said = |why: String| format!("--path {}: {why}", path.name());
    match why {
        Error::Usage(why) => Error::Usage(said(why)),
        Error::Denied(why) => Error::Denied(said(why)),
        Error::Environment(why) => Error::Environment(said(why)),
        other => other,
    }
}

/// Each requested path, as far as it was measured.
///
/// # Errors
/// None: a path that breaks ends the list, and `broken` has its error. An unmeasured path must not
/// look like one that adds nothing.
pub fn others(
    synthetic: &SyntheticWorkload<'_>,
    broken: &mut Option<Error>,
) -> Result<Vec<OtherPath>> {
    let SyntheticWorkload { request, interleaving, here, ones, .. } = synthetic;
    let mut all = vec![];
    for path in &request.paths {
        let mut there = None;
        let seen = match path {
            Path::Rtt(rtt) => {
                let network: Vec<f64> = ones.network.iter().map(|o| o.round.mean_ns).collect();
                Ok(centre(&network).map(|c| c.less_than(rtt.0 as f64 * here.trips)))
            }
            Path::Host(host) => {
                let mut to = Rtt::clone(here);
                to.spec.common.target.clone_from(host);
                to.spec.common.transport = transport(host);
                to.secret = request.secret.clone();
                longer(interleaving, there.insert(to), *here)
            }
        };
        let seen = seen.and_then(|added_ns| {
            let Some(added) = added_ns else { return Ok(None) };
            let added_ns = added.value;
            let Some(idle) = idle(interleaving, here, ones, added_ns)? else { return Ok(None) };
            let margin_ns = added.half().hypot(idle.half());
            let idle_ns = idle.value;
            let loads = match &there {
                Some(there) => synthetic.other_paths(there, added_ns)?,
                None => vec![],
            };
            let cpu_ns = loads.last().and_then(|l| l.cpu_ns);
            let reconnecting_ns = reconnecting(&ones.workload, added_ns / here.trips);
            let delayed = delayed(synthetic, added_ns + idle_ns)?;
            let path = path.name();
            Ok(Some(OtherPath {
                path,
                added_ns,
                idle_ns,
                reconnecting_ns,
                cpu_ns,
                loads,
                margin_ns,
                delayed,
            }))
        });
        match seen {
            // An unmeasured path must not look like one that adds nothing: it is left out.
            Ok(one) => all.extend(one),
            Err(why) => {
                *broken = Some(why);
                break;
            }
        }
        if interleaving.over() {
            break;
        }
    }
    Ok(all)
}

/// How much longer a transaction of `one` takes than one of `other`, with one client: the median
/// over pairs of rounds. `None` where interrupted too early.
fn longer(
    interleaving: &Interleaving<'_>,
    one: &dyn Workload,
    other: &dyn Workload,
) -> Result<Option<Centre>> {
    let interleaving = Interleaving { workload: one, network: other, ..*interleaving };
    let (pairs, why) = interleaving.pairs(1, Nanos(0), PAIRS);
    let both: Vec<(f64, f64)> =
        pairs.pairs.iter().map(|p| (p.workload.mean_ns, p.network.mean_ns)).collect();
    match why {
        Some(why) => Err(why),
        None => Ok(centre(&differences(&both))),
    }
}

/// The additional time of new connections for a transaction where a round trip takes `longer_ns`
/// more. A faster path saves at most what connecting takes here. `None` where the server closes
/// connections and the round trips of a new one are unknown.
fn reconnecting(rounds: &[Observed], longer_ns: f64) -> Option<f64> {
    let Exchange { new_connections, connect_round_trips, .. } = pooled(rounds.iter());
    let here = median(&rounds.iter().map(|o| o.round.disconnected_ns).collect::<Vec<_>>());
    match connect_round_trips {
        Some(trips) => Some((new_connections * trips * longer_ns).max(-here)),
        None => (new_connections == 0.0).then_some(0.0),
    }
}

/// The additional time of a transaction when each request follows an idle gap: cold caches, and
/// deeper sleep than the responder's. It compares requests by schedule, with the path's gaps, to
/// the closed loop. It then subtracts the same for the network alone, which the path's round trip
/// includes already. `None` where interrupted.
fn idle(
    interleaving: &Interleaving<'_>,
    here: &Rtt,
    ones: &Pairs,
    added_ns: f64,
) -> Result<Option<Centre>> {
    let gap = added_ns / here.trips;
    let mean =
        |all: &[Observed]| median(&all.iter().map(|o| o.round.cycle_ns()).collect::<Vec<_>>());
    // The gap precedes only the first request of a transaction.
    let (whole, trip) = (mean(&ones.workload), mean(&ones.network) / here.trips);
    if gap < trip / 2.0 {
        return Ok(Some(Centre { value: 0.0, low: 0.0, high: 0.0 }));
    }
    let per_s = |cycle: f64| ((1e9 / (cycle + gap)) as u64).max(1);
    let workload = interleaving.workload.paced(per_s(whole));
    let Some(server) = longer(interleaving, workload.as_ref(), interleaving.workload)? else {
        return Ok(None);
    };
    let network = here.paced(per_s(trip));
    let network = longer(interleaving, network.as_ref(), here)?;
    Ok(network.map(|network| {
        let half = (server.half() * here.trips).hypot(network.half());
        let value = (server.value * here.trips - network.value).clamp(0.0, added_ns);
        Centre { value, low: value - half, high: value + half }
    }))
}

/// The workload here with each answer delayed by the path's additional round trip, with one client
/// and with each requested number. It includes locks held over round trips, and the effect on the
/// server of clients that return late.
fn delayed(synthetic: &SyntheticWorkload<'_>, added_ns: f64) -> Result<Vec<Level>> {
    let SyntheticWorkload { request, interleaving, here, .. } = synthetic;
    let mut asked = request.flows.clone();
    asked.push(1);
    asked.sort_unstable();
    asked.dedup();
    let each = Nanos((added_ns / here.trips).max(0.0) as u64);
    match interleaving.workload.delayed(each).filter(|_| each.0 > 0 && asked.len() > 1) {
        Some(later) => interleaving.levels_of(later.as_ref(), &asked),
        None => Ok(vec![]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_round_trip_of_a_new_connection_is_as_much_longer_as_any() {
        let seen = |new_connections: f64, connect_round_trips: Option<f64>| {
            let exchange = Exchange { new_connections, connect_round_trips, ..Exchange::default() };
            let mut all = [Observed { exchange, ..Observed::nothing() }, Observed::nothing()];
            all[1].exchange = exchange;
            all.iter_mut().for_each(|o| o.round.disconnected_ns = 30_000.0);
            all
        };
        let of = |new, trips, longer_ns| reconnecting(&seen(new, trips), longer_ns);
        assert_eq!(of(1.0, Some(1.0), 80_000.0), Some(80_000.0));
        assert_eq!(of(0.25, Some(3.0), 80_000.0), Some(60_000.0), "TLS 1.2, one in four");
        assert_eq!(of(0.0, Some(1.0), 80_000.0), Some(0.0), "they are kept");
        assert_eq!(of(0.0, None, 80_000.0), Some(0.0), "PostgreSQL's, kept");
        assert_eq!(of(1.0, None, 80_000.0), None, "nobody knows");
        assert_eq!(of(1.0, Some(1.0), -20_000.0), Some(-20_000.0));
        assert_eq!(of(1.0, Some(2.0), -20_000.0), Some(-30_000.0), "it takes no less");
    }
}
