//! The solution for a number of clients.

use super::{
    convolution::{constants, factors},
    station::{MOST_CLIENTS, Network, NoNetwork, Station, StationKind},
};

/// A network with so many clients.
#[derive(Debug, Clone, PartialEq)]
pub struct Solved {
    pub clients: u32,
    /// Throughput of all clients, transactions per second.
    pub per_s: f64,
    /// The time of a whole cycle, delays included: clients by throughput (Little 1961).
    pub cycle_ns: f64,
    /// By station, in the network's order.
    pub stations: Vec<SolvedStation>,
}

/// One station of it.
#[derive(Debug, Clone, PartialEq)]
pub struct SolvedStation {
    pub name: String,
    /// Clients there in the mean, those in service included.
    pub queue: f64,
    /// Time that a transaction spends there, waiting included.
    pub residence_ns: f64,
    pub waiting_ns: f64,
    /// The share of its servers that work, 0 to 1; `None` for a delay.
    pub utilization: Option<f64>,
}

impl Solved {
    /// The station of this name.
    pub fn station(&self, name: &str) -> Option<&SolvedStation> {
        self.stations.iter().find(|s| s.name == name)
    }
}

impl Network {
    /// Throughput, waiting and use with so many clients; nothing moves with none.
    ///
    /// # Errors
    /// More than [`MOST_CLIENTS`].
    pub fn solve(&self, clients: u32) -> Result<Solved, NoNetwork> {
        if clients > MOST_CLIENTS {
            return Err(NoNetwork::TooMany(clients));
        }
        let n = clients as usize;
        let g = constants(self.stations().iter(), n, self.unit_ns());
        let by_ns = throughput(&g, n) / self.unit_ns();
        let queues: Vec<f64> = (0..self.stations().len()).map(|i| self.queue(i, &g, n)).collect();
        let stations = self.stations().iter().zip(queues);
        Ok(Solved {
            clients,
            per_s: by_ns * 1e9,
            cycle_ns: if clients == 0 { 0.0 } else { f64::from(clients) / by_ns },
            stations: stations.map(|(s, queue)| of_station(s, queue, by_ns)).collect(),
        })
    }

    /// Transactions a second with 0 to `most` clients.
    ///
    /// # Errors
    /// More than [`MOST_CLIENTS`].
    pub fn per_s(&self, most: u32) -> Result<Vec<f64>, NoNetwork> {
        if most > MOST_CLIENTS {
            return Err(NoNetwork::TooMany(most));
        }
        let unit = self.unit_ns();
        let g = constants(self.stations().iter(), most as usize, unit);
        Ok((0..g.len()).map(|n| throughput(&g, n) * 1e9 / unit).collect())
    }

    /// What times are counted in: the limiting station's gap, or all there is.
    fn unit_ns(&self) -> f64 {
        self.limiting().map_or_else(|| self.delay_ns(), Station::least_gap_ns)
    }

    /// Clients at a station in the mean: over how many may be there, times how likely.
    fn queue(&self, station: usize, g: &[f64], n: usize) -> f64 {
        let Some(this) = self.stations().get(station).filter(|s| s.demand_ns > 0.0) else {
            return 0.0;
        };
        if this.kind == StationKind::Delay {
            return throughput(g, n) * this.demand_ns / self.unit_ns();
        }
        let others = self.stations().iter().enumerate().filter(|(i, _)| *i != station);
        let rest = constants(others.map(|(_, s)| s), n, self.unit_ns());
        let whole = g.last().copied().unwrap_or(0.0);
        let likely = factors(this, n, self.unit_ns()).into_iter().zip(rest.iter().rev());
        likely.enumerate().map(|(k, (f, g))| k as f64 * (f + g - whole).exp()).sum()
    }
}

/// `G(n - 1) / G(n)`, by unit of time.
fn throughput(g: &[f64], n: usize) -> f64 {
    match (n.checked_sub(1).and_then(|b| g.get(b)), g.get(n)) {
        (Some(before), Some(all)) => (before - all).exp(),
        _ => 0.0,
    }
}

fn of_station(s: &Station, queue: f64, by_ns: f64) -> SolvedStation {
    let residence_ns = if by_ns > 0.0 { queue / by_ns } else { 0.0 };
    SolvedStation {
        name: s.name.clone(),
        queue,
        residence_ns,
        waiting_ns: match s.kind {
            StationKind::Servers(_) => (residence_ns - s.demand_ns).max(0.0),
            StationKind::Delay | StationKind::Rates(_) => 0.0,
        },
        utilization: s.capacity().map(|c| by_ns * s.demand_ns / c),
    }
}
