//! The components of a response time, and predictions for other paths and loads.
//!
//! A [`request`] → `interleaving` (workload and network alone, alternating) → [`stats::decompose`]
//! (components) → `verdict` (document) → `verify`. A kind of workload is a file that implements
//! `workload`; [`passive`] observes a running server and sends nothing.

mod disturbed;
mod ends;
mod http;
mod interleaving;
pub mod passive;
mod paths;
mod pg;
mod redis;
pub mod request;
mod responder;
mod round_counts;
mod rtt;
mod served;
mod server;
mod service;
mod synthetic;
mod verdict;
mod verify;
mod workload;

use std::sync::atomic::Ordering;

use model::{
    Bytes, Nanos,
    explain::{Exchange, ExplainDocument},
};
use traffic::{Error, Result};

use crate::{
    interleaving::{Interleaving, Lengths, Pairs, at_first},
    request::Request,
    round_counts::RoundCounts,
    synthetic::SyntheticWorkload,
    verdict::Measured,
    workload::{Workload, pooled},
};

/// The fewest pairs of rounds.
const PAIRS: usize = 6;
/// Pairs for a first estimate of the service time.
const GUESSES: usize = 3;

/// The result of an explanation, complete or not.
#[derive(Debug)]
pub struct Explained {
    pub document: ExplainDocument,
    /// The error that ended it early; `None` where it completed.
    pub broken: Option<Error>,
}

/// The whole sequence: learn the exchange, find a responder, estimate the service time, measure
/// workload and network interleaved, measure levels and other paths, decompose, predict, verify.
///
/// # Errors
/// Nothing could be measured.
pub fn explain(request: &Request, run: traffic::Run<'_>) -> Result<Explained> {
    let started_unix_s = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |d| d.as_secs());
    ends::check(request)?;
    let mut workload = ends::workload(request)?;
    paths::reachable(request, run)?;
    let counts = RoundCounts::default();
    let begins = |clients| at_first(workload.as_ref(), clients, request.round, run, &counts);
    let learned = begins(1).map_err(|why| match run.stop.load(Ordering::Relaxed) {
        true => Error::Environment("ended before anything was measured".into()),
        false => why,
    })?;
    if let Some(most) = request.flows.iter().copied().max().filter(|n| *n > 1) {
        // Checked before the long part: does the server admit this many clients?
        match begins(most) {
            Err(why) if !run.stop.load(Ordering::Relaxed) => return Err(why),
            _ => {}
        }
    }
    let mut notes = vec![];
    let responder = ends::responder(request, &learned, &mut notes)?;
    // Both workloads have their threads on the same CPUs, whoever chose them.
    let pins = !learned.pinned.is_empty();
    if pins {
        workload.pin(&learned.pinned);
    }
    let network = |exchange| {
        let mut alone = ends::network(request, &responder, exchange);
        if pins {
            Workload::pin(&mut alone, &learned.pinned);
        }
        alone
    };
    let rough = network(learned.exchange);
    let interleaving = Interleaving {
        workload: workload.as_ref(),
        network: &rough,
        round: request.round,
        run,
        counts: &counts,
    };
    let (first, why) = interleaving.pairs(1, Nanos(0), GUESSES);
    if let Some(why) = why {
        return Err(why);
    }
    let met = || std::iter::once(&learned).chain(&first.workload);
    let exchange = pooled(met());
    let network = network(exchange);
    let interleaving = Interleaving { network: &network, ..interleaving };
    let clients = request.flows.first().copied().unwrap_or(1);
    let share = if clients == 1 { 1 } else { 2 };
    let length = Nanos(request.duration.0 / share);
    let lengths = Lengths { first: length, most: Nanos(request.longest.0 / share) };
    // A client that waits longer sleeps deeper and wakes up later, which is not service time. So
    // the responder computes about as long as the server.
    let mixed = service::mixed(request, &exchange);
    let matched = network.computing(service::guess(&first, mixed));
    let alone = Interleaving { network: &matched, ..interleaving };
    let (ones, mut broken) = match clients {
        1 => alone.pairs_until(1, lengths, PAIRS, |ones| add_up(ones, ones)),
        _ => alone.pairs(1, length, PAIRS),
    };
    let mut all = None;
    if clients > 1 && broken.is_none() {
        let (pairs, why) =
            interleaving.pairs_until(clients, lengths, PAIRS, |all| add_up(&ones, all));
        (all, broken) = (Some(pairs), why);
    }
    let levels = match broken.is_none() {
        true => levels(request, &interleaving, &mut broken),
        false => vec![],
    };
    let others = match broken.is_none() {
        true => {
            let (interleaving, levels) = (interleaving, &levels);
            let synthetic = SyntheticWorkload {
                request,
                interleaving,
                here: &matched,
                ones: &ones,
                levels,
                mixed,
            };
            paths::others(&synthetic, &mut broken)?
        }
        false => vec![],
    };
    let found = Measured {
        others,
        request,
        started_unix_s,
        responder: &responder.target,
        exchange: pooled(met().chain(&ones.workload)),
        mixed,
        ones: &ones,
        all: all.as_ref().filter(|p: &&Pairs| p.pairs.len() > 2),
        levels,
        notes,
        interrupted: interleaving.over() || broken.is_some(),
    };
    let mut document = match (found.document(), broken) {
        (Some(document), why) => {
            broken = why;
            document
        }
        (None, Some(why)) => return Err(why),
        (None, None) => return Err(too_early(met())),
    };
    if request.verify && broken.is_none() && !interleaving.over() {
        match interleaving.levels(&verdict::asked(&document)) {
            Ok(measured) => verify::verify(&mut document, &measured),
            Err(why) => broken = Some(why),
        }
    }
    counts.tell(&mut document);
    Ok(Explained { document, broken })
}

/// Whether the components add up to the whole.
fn add_up(ones: &Pairs, all: &Pairs) -> bool {
    stats::decompose::decompose(&ones.pairs, &all.pairs).is_some_and(|parts| parts.sum.conclusive)
}

/// The document before there are three pairs of rounds: the workload alone.
fn too_early<'a>(met: impl Iterator<Item = &'a workload::Observed> + Clone) -> Error {
    let Exchange { request_bytes, response_bytes, .. } = pooled(met.clone());
    let rounds: Vec<f64> = met.map(|o| o.round.mean_ns).collect();
    Error::Environment(format!(
        "ended before 3 pairs of rounds were measured, without which nothing is said of the network. One \
         client has waited {} in the mean for each answer, {} there and {} back",
        Nanos(stats::paired::median(&rounds) as u64),
        Bytes(request_bytes),
        Bytes(response_bytes)
    ))
}

/// Powers of 2 up to the largest number of clients, for the curve; empty for a single client.
fn levels(
    request: &Request,
    interleaving: &Interleaving<'_>,
    broken: &mut Option<Error>,
) -> Vec<model::explain::Level> {
    let most = request.flows.iter().copied().max().unwrap_or(1);
    let mut all: Vec<u32> = (0..).map(|i| 1 << i).take_while(|n| *n < most).collect();
    all.push(most);
    if most == 1 || interleaving.over() {
        return vec![];
    }
    interleaving.levels(&all).unwrap_or_else(|why| {
        *broken = Some(why);
        vec![]
    })
}
