//! What a network is made of.

use std::fmt;

/// More clients than this are refused: the solution's effort grows with their square.
pub const MOST_CLIENTS: u32 = 4_096;

/// How a station serves.
#[derive(Debug, Clone, PartialEq)]
pub enum StationKind {
    /// Everybody at once, nobody waits: a wire, a think time.
    Delay,
    /// So many servers with one queue in order of arrival: the CPUs of a host, a thread (1).
    Servers(u32),
    /// With `k` there it works `rates[k - 1]` times as fast as with one (load-dependent); with
    /// more than are listed as with the last.
    Rates(Vec<f64>),
}

/// One place where a transaction spends time.
#[derive(Debug, Clone, PartialEq)]
pub struct Station {
    /// What it stands for: `client CPU`, `path`.
    pub name: String,
    pub kind: StationKind,
    /// Service demand: what one transaction takes there in all, without waiting.
    pub demand_ns: f64,
}

impl Station {
    pub fn delay(name: impl Into<String>, demand_ns: f64) -> Self {
        Self { name: name.into(), kind: StationKind::Delay, demand_ns }
    }

    /// A queue before so many servers.
    pub fn servers(name: impl Into<String>, servers: u32, demand_ns: f64) -> Self {
        Self { name: name.into(), kind: StationKind::Servers(servers), demand_ns }
    }

    /// How much faster than one server it works at most; `None` for a delay, which has no most.
    pub fn capacity(&self) -> Option<f64> {
        match &self.kind {
            StationKind::Delay => None,
            StationKind::Servers(n) => Some(f64::from(*n)),
            StationKind::Rates(rates) => rates.last().copied(),
        }
    }

    /// The time between two transactions when it has nothing else to do: demand by capacity.
    pub fn least_gap_ns(&self) -> f64 {
        self.capacity().map_or(0.0, |c| self.demand_ns / c)
    }
}

/// Why a network cannot be.
#[derive(Debug, Clone, PartialEq)]
pub enum NoNetwork {
    /// A demand that is negative or no number.
    Demand(String),
    /// No servers, or rates that are not above 0.
    Servers(String),
    /// No station takes any time.
    Empty,
    /// More clients than [`MOST_CLIENTS`].
    TooMany(u32),
}

impl fmt::Display for NoNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Demand(name) => write!(f, "{name}: a demand must be 0 or more"),
            Self::Servers(name) => write!(f, "{name}: servers and rates must be above 0"),
            Self::Empty => f.write_str("no station takes any time"),
            Self::TooMany(n) => write!(f, "{n} clients; at most {MOST_CLIENTS} are possible"),
        }
    }
}

impl std::error::Error for NoNetwork {}

/// Stations that every transaction visits.
#[derive(Debug, Clone, PartialEq)]
pub struct Network {
    stations: Vec<Station>,
}

impl Network {
    /// Of these stations; their order does not matter.
    ///
    /// # Errors
    /// A station that cannot be, or none that takes time.
    pub fn new(stations: Vec<Station>) -> Result<Self, NoNetwork> {
        for s in &stations {
            if !(s.demand_ns.is_finite() && s.demand_ns >= 0.0) {
                return Err(NoNetwork::Demand(s.name.clone()));
            }
            let good = match &s.kind {
                StationKind::Delay => true,
                StationKind::Servers(n) => *n > 0,
                StationKind::Rates(r) => {
                    !r.is_empty() && r.iter().all(|x| x.is_finite() && *x > 0.0)
                }
            };
            if !good {
                return Err(NoNetwork::Servers(s.name.clone()));
            }
        }
        if stations.iter().all(|s| s.demand_ns <= 0.0) {
            return Err(NoNetwork::Empty);
        }
        Ok(Self { stations })
    }

    pub fn stations(&self) -> &[Station] {
        &self.stations
    }

    /// The demand at all delays together.
    pub fn delay_ns(&self) -> f64 {
        self.sum(|s| s.capacity().is_none())
    }

    /// The demand at all queues together.
    pub fn queued_ns(&self) -> f64 {
        self.sum(|s| s.capacity().is_some())
    }

    fn sum(&self, of: impl Fn(&Station) -> bool) -> f64 {
        self.stations.iter().filter(|s| of(s)).map(|s| s.demand_ns).sum()
    }

    /// The station that limits throughput with many clients: the largest demand by capacity.
    /// `None` where all are delays.
    pub fn limiting(&self) -> Option<&Station> {
        let queues = self.stations.iter().filter(|s| s.least_gap_ns() > 0.0);
        queues.max_by(|a, b| a.least_gap_ns().total_cmp(&b.least_gap_ns()))
    }

    /// The same where the stations called `name` take no time.
    ///
    /// # Errors
    /// Nothing else takes any.
    pub fn without(&self, name: &str) -> Result<Self, NoNetwork> {
        self.changed(name, |s| s.demand_ns = 0.0)
    }

    /// The same where the servers called `name` are `by` times as many. A capacity that was
    /// measured ([`StationKind::Rates`]) stays as it is: what more servers would do was not seen.
    ///
    /// # Errors
    /// None would be left.
    pub fn with_servers(&self, name: &str, by: u32) -> Result<Self, NoNetwork> {
        self.changed(name, |s| {
            if let StationKind::Servers(n) = &mut s.kind {
                *n = n.saturating_mul(by);
            }
        })
    }

    /// The same where the stations called `name` take `demand_ns`.
    ///
    /// # Errors
    /// As [`Network::new`].
    pub fn with_demand(&self, name: &str, demand_ns: f64) -> Result<Self, NoNetwork> {
        self.changed(name, |s| s.demand_ns = demand_ns)
    }

    fn changed(&self, name: &str, change: impl Fn(&mut Station)) -> Result<Self, NoNetwork> {
        let mut stations = self.stations.clone();
        stations.iter_mut().filter(|s| s.name == name).for_each(change);
        Self::new(stations)
    }
}
