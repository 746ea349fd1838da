//! The trait of workloads that can be explained: it runs some clients for a window.

use std::collections::BTreeMap;

use model::{
    CpuId, Nanos, Warning,
    explain::Exchange,
    measure::{EndCpu, Quantiles},
};
use stats::{decompose::Round, predict::Receiving};
use traffic::Result;

/// A workload. A new kind is one file that implements this.
pub trait Workload {
    /// Runs it for a window with this many clients in closed loop.
    ///
    /// # Errors
    /// Nothing could be measured.
    fn run(&self, clients: u32, window: Nanos, run: traffic::Run<'_>) -> Result<Observed>;

    /// The same by schedule, this many per second over all clients; times count from sending.
    fn paced(&self, per_s: u64) -> Box<dyn Workload>;

    /// The same with each answer delayed; `None` where its client cannot do that.
    fn delayed(&self, _by: Nanos) -> Option<Box<dyn Workload>> {
        None
    }

    /// Adjusts a round of the network alone to the workload's round beside it: to as many round
    /// trips as its transactions made, where these are of several kinds.
    fn beside(&self, mine: Observed, _workload: &Observed) -> Observed {
        mine
    }

    /// From now on with its threads here on these CPUs, one at least.
    fn pin(&mut self, cpus: &[CpuId]);
}

/// What one round saw.
#[derive(Debug, Clone, Default)]
pub struct Observed {
    /// Transactions, window and mean time.
    pub round: Round,
    pub quantiles: Quantiles,
    /// CPU time of our threads per transaction.
    pub client_cpu_ns: Option<f64>,
    /// CPU time of the server per transaction; `None` where nothing reports it.
    pub server_cpu_ns: Option<f64>,
    /// How many CPUs of this host neither the server nor our threads kept busy; `None` where
    /// unknown.
    pub others_cpus: Option<f64>,
    /// All busy CPU time of this host per transaction.
    pub host_cpu_ns: Option<f64>,
    /// The messages and bytes of one transaction.
    pub exchange: Exchange,
    /// Time of encryption here per transaction; `None` without TLS.
    pub tls_ns: Option<f64>,
    /// Interrupt and softirq time of the server's host per transaction, and how many of its CPUs
    /// received packets. `None` where both ends are one host.
    pub receiving: Option<Receiving>,
    /// What the server spun as its service time, by its own clock.
    pub injected_ns: Option<f64>,
    /// The CPUs that our threads were pinned to.
    pub pinned: Vec<CpuId>,
    /// Steal time of this host.
    pub steal_ns: u64,
    /// The server's address for people.
    pub server: String,
    /// HTTP responses by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Failed requests or transactions, by reason.
    pub failures: BTreeMap<String, u64>,
    /// Warnings about this round.
    pub warnings: Vec<Warning>,
}

#[cfg(test)]
impl Observed {
    /// An empty round for tests to fill in.
    pub fn nothing() -> Self {
        Self {
            round: Round {
                clients: 1,
                transactions: 1,
                window_ns: 1e9,
                mean_ns: 1e3,
                disconnected_ns: 0.0,
            },
            ..Self::default()
        }
    }
}

impl Observed {
    /// The same round in units of `by` transactions.
    pub fn times(mut self, by: f64) -> Self {
        let all = |ns: u64| (ns as f64 * by).round() as u64;
        let q = &self.quantiles;
        self.quantiles = Quantiles {
            count: (q.count as f64 / by) as u64,
            min: all(q.min),
            p50: all(q.p50),
            p75: all(q.p75),
            p90: all(q.p90),
            p99: all(q.p99),
            p999: all(q.p999),
            p9999: all(q.p9999),
            max: all(q.max),
            mean: q.mean * by,
            sd: q.sd * by,
        };
        self.round.transactions = ((self.round.transactions as f64 / by).round() as u64).max(1);
        self.round.mean_ns *= by;
        self.round.disconnected_ns *= by;
        self.client_cpu_ns = self.client_cpu_ns.map(|ns| ns * by);
        self.server_cpu_ns = self.server_cpu_ns.map(|ns| ns * by);
        self.host_cpu_ns = self.host_cpu_ns.map(|ns| ns * by);
        self.tls_ns = self.tls_ns.map(|ns| ns * by);
        self.receiving = self.receiving.map(|r| Receiving { ns: r.ns * by, ..r });
        self.injected_ns = self.injected_ns.map(|ns| ns * by);
        self
    }
}

/// The messages and bytes of a transaction, over all transactions of these rounds. A single round's
/// mix of transaction kinds may differ.
pub fn pooled<'a>(rounds: impl Iterator<Item = &'a Observed>) -> Exchange {
    let (mut n, mut sums) = (0.0, [0.0; 6]);
    // All rounds use the same protocols.
    let mut connect_round_trips = None;
    for o in rounds {
        let (e, weight) = (&o.exchange, o.round.transactions as f64);
        let bytes = (e.request_bytes as f64, e.response_bytes as f64);
        let each = [bytes.0, bytes.1, e.round_trips, e.sends, e.receives, e.new_connections];
        sums.iter_mut().zip(each).for_each(|(sum, x)| *sum += x * weight);
        n += weight;
        connect_round_trips = connect_round_trips.or(e.connect_round_trips);
    }
    let [there, back, round_trips, sends, receives, new_connections] =
        sums.map(|x| x / f64::max(n, 1.0));
    Exchange {
        request_bytes: there.round() as u64,
        response_bytes: back.round() as u64,
        messages: (sends + receives).round() as u32,
        round_trips,
        sends,
        receives,
        new_connections,
        connect_round_trips,
    }
}

/// Traffic before a round's window, not measured: long enough for every flow to be busy.
pub const WARMUP: Nanos = Nanos(40_000_000);
/// Traffic after a round's window, not measured.
pub const COOLDOWN: Nanos = Nanos(5_000_000);

/// The hypervisor's part of a host's time.
pub fn steal(cpu: &EndCpu) -> u64 {
    cpu.host_ns.known().and_then(|h| h.get("steal").copied()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(transactions: u64, round_trips: f64, request_bytes: u64) -> Observed {
        let none = Observed::nothing();
        Observed {
            round: Round { transactions, ..none.round },
            quantiles: Quantiles { count: transactions, p50: 900, mean: 1e3, ..Default::default() },
            client_cpu_ns: Some(10.0),
            exchange: Exchange {
                request_bytes,
                round_trips,
                sends: round_trips,
                ..Default::default()
            },
            ..none
        }
    }

    #[test]
    fn rounds_of_several_kinds_count_by_their_transactions() {
        let both = [seen(300, 1.0, 40), seen(100, 7.0, 400)];
        let all = pooled(both.iter());
        assert_eq!((all.round_trips, all.request_bytes, all.messages), (2.5, 130, 3));
        assert_eq!(pooled([].iter()), Exchange::default());
    }

    #[test]
    fn a_transaction_of_more_round_trips_takes_as_much_more() {
        let o = seen(300, 1.0, 40).times(3.0);
        assert_eq!((o.round.transactions, o.round.mean_ns, o.quantiles.p50), (100, 3e3, 2_700));
        assert_eq!((o.client_cpu_ns, o.server_cpu_ns, o.round.window_ns), (Some(30.0), None, 1e9));
    }
}
