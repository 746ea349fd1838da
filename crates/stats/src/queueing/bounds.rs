//! What can be said without solving: how many transactions a second at most and at least, and
//! from how many clients on the limiting station is busy.

use super::station::{Network, StationKind};

/// Bounds of throughput with a number of clients.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// No more a second than this, whatever the variability: the limiting station's most, or
    /// nobody ever waiting (Denning and Buzen, ACM Computing Surveys 10, 1978).
    pub most_per_s: f64,
    /// No fewer: everybody always waits for all others.
    pub least_per_s: f64,
    /// Tighter ones for product form, where all queues have one server: as if all were equally
    /// loaded (balanced job bounds, Zahorjan, Sevcik, Eager and Galler, CACM 25, 1982, with the
    /// delay as in Lazowska et al., Quantitative System Performance, 1984, table 5.4). Least and
    /// most.
    pub balanced_per_s: Option<(f64, f64)>,
}

impl Network {
    /// The bounds with so many clients.
    pub fn bounds(&self, clients: u32) -> Bounds {
        let n = f64::from(clients);
        let (demand, delay) = (self.queued_ns(), self.delay_ns());
        let gap = self.limiting().map_or(0.0, |s| s.least_gap_ns());
        let cap = |per_ns: f64| if gap > 0.0 { per_ns.min(1.0 / gap) } else { per_ns };
        let balanced = self.mean_of_single_servers().filter(|_| clients > 0).map(|mean| {
            let least = n / (demand + delay + (n - 1.0) * gap / (1.0 + delay / (n * demand)));
            let most = cap(n / (demand + delay + (n - 1.0) * mean / (1.0 + delay / demand)));
            (least * 1e9, most * 1e9)
        });
        Bounds {
            most_per_s: cap(n / (demand + delay)) * 1e9,
            least_per_s: n / (n * demand + delay) * 1e9,
            balanced_per_s: balanced,
        }
    }

    /// The clients at which the limiting station would be busy all the time if nobody ever
    /// waited (the asymptotes' crossing): beyond them more clients only wait. `None` where all
    /// are delays.
    pub fn knee(&self) -> Option<f64> {
        self.limiting().map(|s| (self.queued_ns() + self.delay_ns()) / s.least_gap_ns())
    }

    fn mean_of_single_servers(&self) -> Option<f64> {
        let queues: Vec<_> = self.stations().iter().filter(|s| s.least_gap_ns() > 0.0).collect();
        let single = !queues.is_empty() && queues.iter().all(|s| s.kind == StationKind::Servers(1));
        single.then(|| self.queued_ns() / queues.len() as f64)
    }
}
