//! `netwright explain`: how much of a response time is the network, and what would happen on
//! another path.

pub mod args;
mod disturbed;
mod ends;
mod http;
mod interleaving;
mod passive;
mod paths;
mod pg;
mod redis;
mod responder;
mod round_counts;
mod rtt;
mod server;
mod synthetic;
mod verdict;
mod verify;
mod workload;

use std::sync::{Mutex, atomic::Ordering};

use model::{
    Bytes, Nanos,
    explain::{Exchange, ExplainDocument},
};

use self::{
    args::ExplainArgs,
    ends::Target,
    interleaving::{Interleaving, Lengths, Pairs, at_first},
    round_counts::RoundCounts,
    synthetic::SyntheticWorkload,
    verdict::Measured,
    workload::{Workload, pooled},
};
use crate::{
    exit::{CommandEnd, Failure},
    interrupt::Window,
    output::{Progress, Sink},
};

/// Pairs of rounds at least.
const PAIRS: usize = 6;
const HOUR_NS: u64 = 3_600_000_000_000;
/// Pairs for a first guess of the service time.
const GUESSES: usize = 3;

/// Explains a target and prints what it found.
pub fn run(args: &ExplainArgs) -> Result<CommandEnd, Failure> {
    if args.passive.is_asked_for() {
        return passive::run(args);
    }
    check(args)?;
    let target = Target::parse(&args.target)?;
    let sink = Sink::new(args.output.output.clone());
    sink.check()?;
    traffic::exact_timers();
    let window = Window::open();
    let shown = Mutex::new(Progress::new(args.output.talk.quiet, ""));
    let progress = |what: &str, share: f64| {
        if let Ok(mut line) = shown.lock() {
            line.rename(what);
            line.show(share);
        }
    };
    let explained = explain(args, &target, traffic::Run::new(window.stop(), &progress));
    drop(shown);
    drop(window);
    let (document, broken) = explained?;
    match args.output.json {
        true => sink.json(&document)?,
        false => {
            sink.text(&report::explain::text(&document, sink.look(args.output.talk.verbose)))?
        }
    }
    match (broken, document.sum.conclusive) {
        (Some(why), _) => Err(why),
        (None, true) => Ok(CommandEnd::Yes),
        (None, false) => Ok(CommandEnd::No),
    }
}

fn check(args: &ExplainArgs) -> Result<(), Failure> {
    if args.target.is_empty() {
        return Err(Failure::Usage(
            "what is to be explained? a TARGET (rtt://HOST, http://HOST/), or a server that runs: --port PORT, --pid PID".into(),
        ));
    }
    let most = stats::queueing::MOST_CLIENTS;
    if let Some(n) = args.flows.0.iter().find(|n| **n > most) {
        return Err(Failure::Usage(format!("--flows {n}: at most {most}")));
    }
    if !(20_000_000..=10_000_000_000).contains(&args.round.0) {
        return Err(Failure::Usage("--round: from 20ms to 10s".into()));
    }
    if args.duration.0 > HOUR_NS {
        return Err(Failure::Usage("--duration: at most 1h".into()));
    }
    if args.max_duration.is_some_and(|most| most.0 < args.duration.0 || most.0 > 3 * HOUR_NS) {
        return Err(Failure::Usage(format!(
            "--max-duration: from --duration, {}, to 3h",
            args.duration
        )));
    }
    Ok(())
}

/// The story: find a responder, learn the exchange, measure workload and network interleaved, measure levels, take it
/// apart, predict, verify.
fn explain(
    args: &ExplainArgs,
    target: &Target,
    run: traffic::Run<'_>,
) -> Result<(ExplainDocument, Option<Failure>), Failure> {
    let started_unix_s = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |d| d.as_secs());
    ends::check(args, target)?;
    let mut workload = ends::workload(args, target)?;
    paths::reachable(args, run)?;
    let tally = RoundCounts::default();
    let begins = |clients| at_first(workload.as_ref(), clients, args.round, run, &tally);
    let learned = begins(1).map_err(|why| match run.stop.load(Ordering::Relaxed) {
        true => Failure::Environment("ended before anything was measured".into()),
        false => why,
    })?;
    if let Some(most) = args.flows.0.iter().copied().max().filter(|n| *n > 1) {
        // Whether the server admits so many is known before anything takes its time.
        match begins(most) {
            Err(why) if !run.stop.load(Ordering::Relaxed) => return Err(why),
            _ => {}
        }
    }
    let mut notes = vec![];
    let responder = ends::responder(args, target, &learned, &mut notes)?;
    // Both with their threads in the same places, whoever chose them.
    let pins = !learned.pinned.is_empty();
    if pins {
        workload.pin(&learned.pinned);
    }
    let network = |exchange| {
        let mut alone = ends::network(args, target, &responder, exchange);
        if pins {
            Workload::pin(&mut alone, &learned.pinned);
        }
        alone
    };
    let rough = network(learned.exchange);
    let interleaving = Interleaving {
        workload: workload.as_ref(),
        network: &rough,
        round: args.round,
        run,
        tally: &tally,
    };
    let (first, why) = interleaving.pairs(1, Nanos(0), GUESSES);
    if let Some(why) = why {
        return Err(why);
    }
    let met = || std::iter::once(&learned).chain(&first.workload);
    let exchange = pooled(met());
    let network = network(exchange);
    let interleaving = Interleaving { network: &network, ..interleaving };
    let clients = args.flows.0.first().copied().unwrap_or(1);
    let share = if clients == 1 { 1 } else { 2 };
    let length = Nanos(args.duration.0 / share);
    let lengths = Lengths { first: length, most: Nanos(args.longest().0 / share) };
    // A client that waits longer sleeps deeper, and takes longer to wake up, which is no service:
    // for one client the responder computes about as long as the server does.
    let mixed = verdict::mixed(args, &exchange);
    let matched = network.computing(verdict::guess(&first, mixed));
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
        true => levels(args, &interleaving, &mut broken),
        false => vec![],
    };
    let others = match broken.is_none() {
        true => {
            let (interleaving, levels) = (interleaving, &levels);
            let synthetic = SyntheticWorkload {
                args,
                target,
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
        args,
        started_unix_s,
        target: target.shown(),
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
    if args.verify && broken.is_none() && !interleaving.over() {
        match interleaving.levels(&verdict::asked(&document)) {
            Ok(measured) => verify::verify(&mut document, &measured),
            Err(why) => broken = Some(why),
        }
    }
    tally.tell(&mut document);
    Ok((document, broken))
}

/// Whether the parts add up to the whole.
fn add_up(ones: &Pairs, all: &Pairs) -> bool {
    stats::decompose::decompose(&ones.pairs, &all.pairs).is_some_and(|parts| parts.sum.conclusive)
}

/// What is known before three pairs of rounds are: of the workload alone, and no more than this.
fn too_early<'a>(met: impl Iterator<Item = &'a workload::Observed> + Clone) -> Failure {
    let Exchange { request_bytes, response_bytes, .. } = pooled(met.clone());
    let rounds: Vec<f64> = met.map(|o| o.round.mean_ns).collect();
    Failure::Environment(format!(
        "ended before 3 pairs of rounds were measured, without which nothing is said of the network. One \
         client has waited {} in the mean for each answer, {} there and {} back",
        Nanos(stats::paired::median(&rounds) as u64),
        Bytes(request_bytes),
        Bytes(response_bytes)
    ))
}

/// Powers of 2 up to the most clients that are predicted, for the curve; none where only one is.
fn levels(
    args: &ExplainArgs,
    interleaving: &Interleaving<'_>,
    broken: &mut Option<Failure>,
) -> Vec<model::explain::Level> {
    let most = args.flows.0.iter().copied().max().unwrap_or(1);
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
