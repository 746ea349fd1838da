//! From what was measured on one path to other paths, numbers of clients, and changes.
//!
//! Slower paths: the measured curve with a delay added ([`Curve`]). Its two ends, with and
//! without fluctuation, are the interval, and their middle is the prediction. Faster ones, no
//! network and more cores: stations made of the measured demands, taken relative to their own
//! solution for what was measured.

mod changes;
mod channels;
mod doubt;

pub use channels::Receiving;
pub use doubt::Evidence;

use model::explain::{Demand, Level, Prediction};

use crate::{
    paired::Centre,
    queueing::{Apart, Curve, Network, NoNetwork, Station, simple},
};

/// Names of the model's stations.
pub const CLIENT: &str = "client";
/// The station of the server.
pub const SERVER: &str = "server";
/// The station of the network path.
pub const PATH: &str = "path";
/// Both, where nobody tells what the server takes of its CPUs.
pub const BEYOND: &str = "server and path";
/// The path that was measured.
pub const THIS: &str = "this";

/// Where the demand of our own threads comes from.
const OWN: &str = "CPU time of its threads";
/// What measuring adds to a number of busy CPUs, at most.
const ROUNDING: f64 = 0.05;
/// Threads that are busy for more than this share of the time have none left.
const FULL: f64 = 0.9;

/// What is known of the measured path.
#[derive(Debug, Clone, PartialEq)]
pub struct Known {
    /// Measured levels, ascending; that of one client among them.
    pub levels: Vec<Level>,
    /// The network alone with one client, all round trips of a transaction.
    pub network_ns: f64,
    /// The service time, and its 95% interval.
    pub service: Centre,
    /// The client's own time between two transactions.
    pub own_ns: f64,
    /// Threads of the client.
    pub client_threads: u32,
    /// Servers at once, where that is known.
    pub server_threads: Option<u32>,
    /// CPUs of this host, which client and server share where both are here.
    pub cpus: Option<u32>,
}

/// What another path adds to a transaction.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Added {
    /// Time in all; negative for a faster one.
    pub ns: f64,
    /// Of it, what nobody adds by hand: what the server takes because it idles for longer, and connecting
    /// anew.
    pub unseen_ns: f64,
    /// Of the rest, CPU time of this host.
    pub cpu_ns: f64,
}

/// A workload on another path, as it was measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeasuredPath {
    pub clients: u32,
    /// What the path adds to a transaction with one client.
    pub added_ns: f64,
    /// Transactions per second of all clients.
    pub per_s: f64,
    /// CPU time of its own threads on this host by transaction.
    pub own_cpu_ns: Option<f64>,
    /// CPU time of this host by transaction, all that was busy.
    pub host_cpu_ns: Option<f64>,
}

/// CPU time of this host that a path takes for a transaction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PathCpu {
    /// No more than can be.
    pub ns: f64,
    /// As much as would explain what was measured; more than `ns` cannot be.
    pub fitted_ns: f64,
}

/// Ticks by which a kernel counts busy CPUs blur short rounds: so much more than it counted may be.
const BLUR: f64 = 1.25;
/// No transaction takes longer of a CPU.
const LONGEST_NS: f64 = 1e12;

/// The model of one number of clients.
#[derive(Debug, Clone)]
pub struct Model {
    known: Known,
    curve: Curve,
}

impl Model {
    /// From what is known; `None` without a level.
    pub fn new(known: Known) -> Option<Self> {
        let points: Vec<(u32, f64)> = known.levels.iter().map(|l| (l.clients, l.per_s)).collect();
        Some(Self { curve: Curve::new(&points)?, known })
    }

    fn level(&self, clients: u32) -> Option<&Level> {
        let levels = self.known.levels.iter();
        levels.min_by_key(|l| l.clients.abs_diff(clients))
    }

    /// Whether it is known what the server takes of its CPUs, and of how many: it told, or its
    /// processes were seen with every number of clients. A service time is none of both: it may be
    /// waiting.
    pub fn is_server_reported(&self) -> bool {
        self.known.server_threads.is_some()
            || self.known.levels.iter().all(|l| l.server_cpu_ns.is_some())
    }

    /// Servers at once: as told, else as many as were kept busy, which is no more than there are.
    fn servers(&self) -> u32 {
        self.known.server_threads.unwrap_or_else(|| {
            let busy = |l: &Level| l.per_s * l.server_cpu_ns.unwrap_or_default() / 1e9;
            let most = self.known.levels.iter().map(busy).fold(0.0, f64::max);
            (most - ROUNDING).ceil().max(1.0) as u32
        })
    }

    /// What a transaction takes of each place, with about so many clients: batches and spared
    /// wake-ups make it less with more of them.
    pub fn demands(&self, clients: u32) -> Vec<Demand> {
        let level = self.level(clients);
        let cycle = 1e9 / self.curve.per_s(1.0);
        let own = self.known.own_ns;
        let client = level.and_then(|l| l.client_cpu_ns).unwrap_or(own).clamp(0.0, cycle);
        let service = self.known.service.value.max(0.0);
        let measured = level.and_then(|l| l.server_cpu_ns);
        let server = measured.unwrap_or(service).clamp(0.0, cycle);
        let one = self.known.levels.first();
        let of_one = |cpu: Option<f64>, or: f64| cpu.unwrap_or(or);
        let busy = of_one(one.and_then(|l| l.client_cpu_ns), own)
            + of_one(one.and_then(|l| l.server_cpu_ns), service);
        let demand = |place: &str, servers, ns, source: &str| Demand {
            place: place.into(),
            servers,
            ns,
            source: source.into(),
        };
        if !self.is_server_reported() {
            let rest = (cycle - of_one(one.and_then(|l| l.client_cpu_ns), own)).max(0.0);
            return vec![
                demand(CLIENT, Some(self.known.client_threads), client, OWN),
                demand(BEYOND, None, rest, "the rest of one client's cycle; not reported apart"),
            ];
        }
        vec![
            demand(CLIENT, Some(self.known.client_threads), client, OWN),
            demand(
                SERVER,
                Some(self.servers()),
                server,
                if measured.is_some() { "CPU time of the server" } else { "its service time" },
            ),
            demand(PATH, None, (cycle - busy).max(0.0), "the rest of one client's cycle"),
        ]
    }

    fn network(&self, clients: u32) -> Result<Network, NoNetwork> {
        let stations = self.demands(clients).into_iter().map(|d| match d.servers {
            Some(n) => Station::servers(d.place, n, d.ns),
            None => Station::delay(d.place, d.ns),
        });
        Network::new(stations.collect())
    }

    /// From how many clients on the limiting place is busy: one client's cycle by the most
    /// throughput, where that was reached; else from the demands.
    pub fn knee(&self) -> Option<f64> {
        let most = self.known.levels.iter().map(|l| l.clients).max()?;
        let by_demand = match self.is_server_reported() {
            true => Some(self.network(most).ok()?.knee()?),
            false => None,
        };
        let reached = self.known.levels.iter().map(|l| l.per_s).fold(0.0, f64::max);
        let by_curve = reached / self.curve.per_s(1.0);
        // Beyond twice that many clients it is as good as reached.
        if f64::from(most) > by_curve * 2.0 { Some(by_curve) } else { by_demand }
    }

    /// The place that limits with many clients. Where nobody tells of the server that is known only
    /// of our own threads: when they have no time left.
    pub fn limiting(&self) -> Option<String> {
        let most = self.known.levels.iter().map(|l| l.clients).max()?;
        if !self.is_server_reported() {
            let busy = |l: &Level| l.per_s * l.client_cpu_ns.unwrap_or_default() / 1e9;
            let busiest = self.known.levels.iter().map(busy).fold(0.0, f64::max);
            let full = busiest > f64::from(self.known.client_threads) * FULL;
            return full.then(|| CLIENT.into());
        }
        Some(self.network(most).ok()?.limiting()?.name.clone())
    }

    /// What limits with so many clients and a delay added: the path below the knee.
    fn limit(&self, clients: u32, added_ns: f64) -> Option<String> {
        let one = 1e9 / self.curve.per_s(1.0);
        let knee = self.knee().map(|knee| knee * (one + added_ns) / one);
        if clients > 1 && knee.is_none_or(|knee| f64::from(clients) > knee) {
            return self.limiting();
        }
        let service = self.known.service.value;
        Some(if self.known.network_ns + added_ns > service { PATH } else { SERVER }.into())
    }

    /// Throughput on a path that adds so much to a transaction; nothing is the measured one. CPU
    /// time of this host is shared with client and server where theirs is known.
    ///
    /// # Errors
    /// More clients than can be solved.
    pub fn predict(&self, path: &str, added: Added, clients: u32) -> Result<Prediction, NoNetwork> {
        self.predict_by(path, added, clients, &Evidence::default())
    }

    /// The same with what else was seen of that path.
    ///
    /// # Errors
    /// More clients than can be solved.
    pub fn predict_by(
        &self,
        path: &str,
        added: Added,
        clients: u32,
        evidence: &Evidence,
    ) -> Result<Prediction, NoNetwork> {
        let (curve, cpu_ns) = self.shared(added)?;
        let delay = added.ns - cpu_ns;
        let (low, high) = match added.ns >= 0.0 {
            true => span(&curve, clients, delay)?,
            false => self.faster(clients, added.ns)?,
        };
        let off = self.off((clients, (low + high) / 2.0), added.ns, evidence)?;
        let (low, high) = (low * off.factor, high * off.factor);
        let ends = (low * (-off.half).exp(), high * off.half.exp());
        Ok(Prediction {
            path: path.into(),
            clients,
            predicted_per_s: (low + high) / 2.0,
            low_per_s: ends.0,
            high_per_s: ends.1,
            naive_per_s: Some(self.simple(clients, added.ns - added.unseen_ns))
                .filter(|x| x.is_finite() && *x > 0.0),
            limiting: self.limit(clients, added.ns),
            measured_per_s: None,
            error: None,
            inconclusive: doubt::is_too_wide(ends.0, ends.1),
            cpu_bounded: false,
        })
    }

    /// The curve with a path's CPU time in it, and how much that is; as it is where nobody knows
    /// what the rest takes.
    fn shared(&self, added: Added) -> Result<(Curve, f64), NoNetwork> {
        let cpu_ns = added.cpu_ns.min(added.ns);
        match self.apart().filter(|_| cpu_ns > 0.0) {
            Some(apart) => Ok((apart?.burdened(cpu_ns)?, cpu_ns)),
            None => Ok((self.curve.clone(), 0.0)),
        }
    }

    /// The curve in CPU time and the rest, where that is known of all of it.
    fn apart(&self) -> Option<Result<Apart, NoNetwork>> {
        let own = |l: &Level| Some(l.client_cpu_ns? + l.server_cpu_ns?);
        let cpus =
            self.known.cpus.filter(|_| self.known.levels.iter().all(|l| own(l).is_some()))?;
        let of = |n: f64| self.level(n as u32).and_then(own).unwrap_or_default();
        Some(self.curve.apart(cpus, of))
    }

    /// What a path takes of this host's CPUs for a transaction with so many clients, from this
    /// workload measured on both: the CPU time with which the model says of the other path what
    /// was measured there, between none and all that the path adds. Where CPUs are far from full
    /// it is not known well, and matters as little. It is no more than this host's CPUs had there
    /// beside the workload's own threads. `None` where nobody knows what the rest takes.
    ///
    /// The inverse of [`Model::predict`]: a parameter that cannot be measured by itself is set so
    /// that the model of a known workload is right (calibration; Lazowska et al., Quantitative
    /// System Performance, 1984, chapter 12).
    ///
    /// # Errors
    /// More clients than can be solved.
    pub fn path_cpu_ns(&self, there: MeasuredPath) -> Result<Option<PathCpu>, NoNetwork> {
        let (Some(apart), Some(cpus)) = (self.apart(), self.known.cpus) else { return Ok(None) };
        let (apart, clients) = (apart?, there.clients);
        let said = |cpu_ns: f64| -> Result<f64, NoNetwork> {
            // Beyond what the path adds nothing of it is delay.
            let delay = if cpu_ns > there.added_ns { 0.0 } else { there.added_ns - cpu_ns };
            let (low, high) = span(&apart.burdened(cpu_ns)?, clients, delay)?;
            Ok((low + high) / 2.0)
        };
        let (mut low, mut high) = (0.0, there.added_ns.max(1.0));
        if said(low)? <= there.per_s {
            return Ok(Some(PathCpu { ns: 0.0, fitted_ns: 0.0 }));
        }
        while said(high)? > there.per_s && high < LONGEST_NS {
            (low, high) = (high, high * 2.0);
        }
        for _ in 0..20 {
            let middle = (low + high) / 2.0;
            if said(middle)? > there.per_s { low = middle } else { high = middle }
        }
        let fitted_ns = (low + high) / 2.0;
        let most = there.added_ns.max(0.0).min(there.most_cpu_ns(cpus));
        Ok(Some(PathCpu { ns: fitted_ns.min(most), fitted_ns }))
    }

    /// A path that is faster by `-added_ns`. Where nobody tells of the server: from what it is now to
    /// what it were if nobody waited longer for that (Little's law).
    fn faster(&self, clients: u32, added_ns: f64) -> Result<(f64, f64), NoNetwork> {
        if !self.is_server_reported() {
            let now = self.curve.per_s(clients.into());
            let cycle = f64::from(clients) * 1e9 / now;
            let most = f64::from(clients) * 1e9 / (cycle + added_ns).max(self.bare_ns().max(1.0));
            return Ok((now, most.max(now)));
        }
        let now = self.network(clients)?;
        let less = now.with_demand(PATH, (now.delay_ns() + added_ns).max(0.0))?;
        let factor = less.solve(clients)?.per_s / now.solve(clients)?.per_s;
        let x = self.curve.per_s(clients.into()) * factor;
        Ok((x, x))
    }

    /// By hand: what remains without this network, and the other one added.
    fn simple(&self, clients: u32, added_ns: f64) -> f64 {
        let one_way = self.known.network_ns / 2.0;
        let service = simple::service_ns(clients, self.curve.per_s(clients.into()), one_way);
        simple::per_s(clients, service, one_way + added_ns / 2.0)
    }

    /// Transactions a second there with so much CPU time of the path's, as [`Self::path_cpu_ns`] found it
    /// with another number of clients.
    ///
    /// # Errors
    /// More clients than can be solved.
    pub fn other_path_per_s(
        &self,
        added_ns: f64,
        cpu_ns: f64,
        clients: u32,
    ) -> Result<f64, NoNetwork> {
        let (curve, cpu_ns) = self.shared(Added { ns: added_ns, cpu_ns, ..Added::default() })?;
        let (low, high) = span(&curve, clients, added_ns - cpu_ns)?;
        Ok((low + high) / 2.0)
    }

    /// How far the nearest level's rounds lie apart, as a share.
    fn spread(&self, clients: u32) -> f64 {
        self.level(clients).map_or(0.0, |l| (l.high_per_s - l.low_per_s) / 2.0 / l.per_s)
    }
}

impl MeasuredPath {
    /// The most CPU time that the path can take for a transaction, where this host has so many CPUs: what
    /// they were busy with, at most all of them, less the workload's own threads.
    fn most_cpu_ns(&self, cpus: u32) -> f64 {
        let all = f64::from(cpus) * 1e9 / self.per_s;
        let busy = self.host_cpu_ns.map_or(all, |ns| (ns * BLUR).min(all));
        (busy - self.own_cpu_ns.unwrap_or(0.0)).max(0.0)
    }
}

/// With a delay added, from the least to the most that variability may make of it.
fn span(curve: &Curve, clients: u32, delay: f64) -> Result<(f64, f64), NoNetwork> {
    let (a, b) = (curve.fluctuating(clients, delay)?, curve.steady(clients, delay)?);
    // Where more clients spare wake-ups the curve bends the other way.
    Ok((a.min(b), a.max(b)))
}

#[cfg(test)]
mod tests;
