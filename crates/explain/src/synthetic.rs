//! A synthetic double of the workload that can run on every path. It has as many messages of the
//! same sizes, and as many threads as the server answers with. Each thread computes as long as the
//! server does. Run on another path, it shows that path's CPU time on this host.
//!
//! On the other path the client is at the remote server, and the server stays here. So our threads
//! here play the server, and the responder the client. Threads that answer one by one wake the
//! path's forwarder (a tunnel's process, a lab's link, a driver) as often as the server does; a
//! single thread would send batches.

use model::{
    Nanos, Warning,
    explain::{Level, OtherPath, PathLoad},
    measure::Pin,
};
use stats::{
    paired::Centre,
    predict::{Evidence, Known, MeasuredPath, Model},
};
use traffic::{Error, Result};

use crate::{
    interleaving::{Interleaving, Pairs},
    request::{Request, Target},
    rtt::Rtt,
    service,
};

/// The most clients of a synthetic workload: each has a thread.
const MOST: u32 = 256;
/// How often its service time is corrected.
const FITS: usize = 2;

/// How a target's server maps clients to threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answers {
    /// A process or thread for each client.
    Each,
    /// This many threads for all clients.
    Threads(u32),
}

/// PostgreSQL has a process for each client, our server the threads of its options. Others are
/// estimated: nginx and the like have workers with an event loop, and only those that work at the
/// same time show.
fn answers(request: &Request, busy: f64) -> Answers {
    match &request.target {
        Target::Pg(_) => Answers::Each,
        Target::Rtt(_) => Answers::Threads(request.threads),
        // Redis runs all commands on one thread.
        Target::Redis(_) => Answers::Threads(1),
        Target::Http(_) => Answers::Threads((busy.round() as u32).max(1)),
    }
}

/// The measurements that a synthetic workload is built from.
pub struct SyntheticWorkload<'a> {
    pub request: &'a Request,
    /// How rounds are run.
    pub interleaving: Interleaving<'a>,
    /// The network alone on this path.
    pub here: &'a Rtt,
    /// Pairs with one client.
    pub ones: &'a Pairs,
    pub levels: &'a [Level],
    /// Whether transactions are of several kinds.
    pub mixed: bool,
}

impl SyntheticWorkload<'_> {
    /// The path's CPU time on this host, for each requested number of clients. Empty for a single
    /// client, for a path no longer than this one, or where interrupted.
    ///
    /// # Errors
    /// Nothing was answered.
    pub fn other_paths(&self, there: &Rtt, added_ns: f64) -> Result<Vec<PathLoad>> {
        let mut asked: Vec<u32> = self.request.flows.iter().map(|n| (*n).min(MOST)).collect();
        asked.retain(|n| *n > 1);
        asked.sort_unstable();
        asked.dedup();
        if asked.is_empty() || added_ns <= 0.0 || self.interleaving.over() {
            return Ok(vec![]);
        }
        let most = asked.last().copied().unwrap_or(1);
        let mut curve: Vec<u32> = (0..).map(|i| 1 << i).take_while(|n| *n < most).collect();
        curve.extend(&asked);
        curve.sort_unstable();
        curve.dedup();
        let Some(fitted) = self.fitted(most)? else { return Ok(vec![]) };
        let here = self.interleaving.levels_of(&fitted, &curve)?;
        let client = if self.request.pin == Pin::No { Pin::No } else { Pin::Auto };
        let mut other_path = self.of(there, client);
        other_path.spec.think_time_ns = fitted.spec.think_time_ns;
        let other_path = self.interleaving.levels_of(&other_path, &asked)?;
        let Some(model) = model(here.clone()) else { return Ok(vec![]) };
        let mut all = vec![];
        for level in here {
            let clients = level.clients;
            let there = other_path.iter().find(|l| l.clients == clients);
            let path = there.map(|l| {
                model.path_cpu_ns(MeasuredPath {
                    clients,
                    added_ns,
                    per_s: l.per_s,
                    // Our threads here play the server.
                    own_cpu_ns: l.client_cpu_ns,
                    host_cpu_ns: l.host_cpu_ns,
                })
            });
            let path = path.transpose().map_err(|e| Error::Environment(e.to_string()))?;
            let path = path.flatten();
            all.push(PathLoad {
                clients,
                this_path_per_s: level.per_s,
                this_path_cpu_ns: level.client_cpu_ns.zip(level.server_cpu_ns).map(|(a, b)| a + b),
                other_path_per_s: there.map(|l| l.per_s),
                cpu_ns: path.map(|p| p.ns),
                fitted_cpu_ns: path.map(|p| p.fitted_ns),
                other_path_spread: there.and_then(|l| l.spread),
                held_out: None,
            });
        }
        hold_out(&mut all, &model, added_ns)?;
        Ok(all)
    }

    /// The synthetic workload on this path, with a service time that makes it as fast as the
    /// workload with so many clients. One client's service time is not that of many. `None` where
    /// interrupted.
    fn fitted(&self, clients: u32) -> Result<Option<Rtt>> {
        let mut synthetic = self.of(self.here, self.here.spec.common.pin.clone());
        let cycle = |per_s: f64| f64::from(clients) * 1e9 / per_s;
        let Some(workload) = self.levels.iter().find(|l| l.clients == clients) else {
            return Ok(Some(synthetic));
        };
        // Where all are busy, each computes while as many others do.
        let at_once = synthetic.spec.common.threads.min(cpus().unwrap_or(1)).min(clients);
        let share = f64::from(at_once) / f64::from(clients) / synthetic.trips;
        for _ in 0..FITS {
            let Some(level) = self.interleaving.levels_of(&synthetic, &[clients])?.pop() else {
                return Ok(None);
            };
            let more = (cycle(workload.per_s) - cycle(level.per_s)) * share;
            let think = synthetic.spec.think_time_ns.map_or(0.0, |ns| ns.0 as f64) + more;
            synthetic.spec.think_time_ns = Some(Nanos(think.max(0.0) as u64));
        }
        Ok(Some(synthetic))
    }

    /// The synthetic workload with its client at this server.
    fn of(&self, peer: &Rtt, client: Pin) -> Rtt {
        let service = service::guess(self.ones, self.mixed);
        let most = self.levels.iter().map(|l| l.per_s).fold(0.0, f64::max);
        let mut synthetic = peer.computing(Nanos(0));
        let each = (service.0 as f64 / synthetic.trips) as u64;
        synthetic.spec.think_time_ns = Some(Nanos(each));
        // Our threads here send what the server sends.
        std::mem::swap(&mut synthetic.spec.request_bytes, &mut synthetic.spec.response_bytes);
        synthetic.spec.peer_threads = Some(self.request.threads);
        let common = &mut synthetic.spec.common;
        common.threads = match answers(self.request, most * service.0 as f64 / 1e9) {
            Answers::Each => MOST,
            Answers::Threads(n) => n.min(MOST),
        };
        common.pin = common.peer_pin.clone();
        common.peer_pin = client;
        synthetic
    }
}

/// Compares each measurement there with the nearest other one: how much a path's CPU time depends
/// on the number of clients.
fn hold_out(all: &mut [PathLoad], model: &Model, added_ns: f64) -> Result<()> {
    let known: Vec<(u32, f64)> = all.iter().filter_map(|l| Some((l.clients, l.cpu_ns?))).collect();
    for load in all.iter_mut() {
        let (Some(per_s), Some(own)) = (load.other_path_per_s, load.cpu_ns) else { continue };
        let others = known.iter().filter(|(n, _)| *n != load.clients);
        let nearest = others.min_by_key(|(n, _)| n.abs_diff(load.clients));
        let cpu_ns = nearest.map_or(own / 2.0, |(_, ns)| *ns);
        let said = model.other_path_per_s(added_ns, cpu_ns, load.clients);
        let said = said.map_err(|e| Error::Environment(e.to_string()))?;
        load.held_out = Some((said / per_s).ln().abs());
    }
    Ok(())
}

/// A model of the synthetic workload; only its curve and its CPU time are used.
fn model(levels: Vec<Level>) -> Option<Model> {
    Model::new(Known {
        levels,
        network_ns: 0.0,
        service: Centre { value: 0.0, low: 0.0, high: 0.0 },
        own_ns: 0.0,
        client_threads: 1,
        server_threads: None,
        cpus: cpus(),
    })
}

/// The CPUs of this host that we may use.
pub fn cpus() -> Option<u32> {
    std::thread::available_parallelism().ok().and_then(|n| u32::try_from(n.get()).ok())
}

/// A path's CPU time with about so many clients, and whether it is only an upper bound.
pub fn cpu_ns(path: &OtherPath, clients: u32) -> (f64, bool) {
    local(path, clients).map_or((path.cpu_ns.unwrap_or(0.0), false), |(l, ns)| (ns, bounded(l)))
}

fn local(path: &OtherPath, clients: u32) -> Option<(&PathLoad, f64)> {
    let known = path.loads.iter().filter_map(|l| Some((l, l.cpu_ns?)));
    known.min_by_key(|(l, _)| l.clients.abs_diff(clients))
}

/// Further uncertainty of a path with about so many clients, for the prediction's interval. A
/// single client does not queue for the path's CPU time.
pub fn evidence(path: &OtherPath, clients: u32) -> Evidence {
    let load = local(path, clients).map(|(l, _)| l);
    Evidence {
        margin_ns: path.margin_ns,
        other_path_spread: load.and_then(|l| l.other_path_spread),
        held_out: load.filter(|_| clients > 1).and_then(|l| l.held_out),
        delayed: path.delayed.clone(),
    }
}

/// Whether the measurement there needs more CPU time than exists.
fn bounded(load: &PathLoad) -> bool {
    load.cpu_ns.zip(load.fitted_cpu_ns).is_some_and(|(ns, fitted)| fitted > ns * 1.001 + 1.0)
}

/// The warning for a path with only an upper bound of its CPU time.
pub fn doubt(path: &OtherPath) -> Option<Warning> {
    let load = path.loads.iter().rev().find(|l| bounded(l))?;
    let (ns, fitted) = (load.cpu_ns?, load.fitted_cpu_ns?);
    Some(Warning::PathSlowerThanExplained {
        path: path.path.clone(),
        clients: load.clients,
        fitted_ns: Nanos(fitted as u64),
        had_ns: Nanos(ns as u64),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_with_an_impossible_cpu_time_is_reported() {
        let load = |clients, fitted| PathLoad {
            clients,
            this_path_per_s: 50_000.0,
            this_path_cpu_ns: Some(20e3),
            other_path_per_s: Some(5_000.0),
            cpu_ns: Some(48e3),
            fitted_cpu_ns: Some(fitted),
            ..PathLoad::default()
        };
        let path = |loads| OtherPath {
            path: "host=db1".into(),
            added_ns: 500e3,
            idle_ns: 0.0,
            reconnecting_ns: Some(0.0),
            cpu_ns: Some(48e3),
            loads,
            ..OtherPath::default()
        };
        let well = path(vec![load(4, 48e3), load(16, 48e3)]);
        assert_eq!((doubt(&well), cpu_ns(&well, 16)), (None, (48e3, false)));
        let not = path(vec![load(4, 48e3), load(16, 391e3)]);
        let said = doubt(&not).unwrap().to_string();
        assert!(said.contains("391 µs") && said.contains("no more than 48 µs"), "{said}");
        assert_eq!((cpu_ns(&not, 4), cpu_ns(&not, 12)), ((48e3, false), (48e3, true)));
    }
}
