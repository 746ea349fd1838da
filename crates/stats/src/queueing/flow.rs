//! A measured curve instead of assumed stations: what another path does to it.
//!
//! Norton's theorem for queueing networks (Chandy, Herzog and Woo, IBM J. Res. Dev. 19, 1975):
//! a part of a closed network behaves towards the rest as one station whose rate with `n` there
//! is its throughput with `n` clients when the rest takes no time. That throughput is measured,
//! batching, shared CPUs and spared wake-ups included; the rest is the delay that another path
//! adds. With a delay added fewer are at the station at a time, and how that number fluctuates
//! decides what is lost:
//!
//! - [`Curve::fluctuating`]: as with exponential times. Exact for product form, too low for
//!   steady service.
//! - [`Curve::steady`]: not at all; the mean number is always there. Exact without variability.
//!
//! The truth of real services lies between them.

use super::station::{MOST_CLIENTS, Network, NoNetwork, Station, StationKind};

/// Measured throughput by the number of clients.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// Clients and time of a cycle, ascending.
    points: Vec<(f64, f64)>,
}

impl Curve {
    /// From clients and transactions a second, in any order. `None` without a point, or with one
    /// of nothing.
    pub fn new(measured: &[(u32, f64)]) -> Option<Self> {
        let good = |(n, x): &(u32, f64)| *n > 0 && x.is_finite() && *x > 0.0;
        if measured.is_empty() || !measured.iter().all(good) {
            return None;
        }
        let mut points: Vec<(f64, f64)> =
            measured.iter().map(|(n, x)| (f64::from(*n), f64::from(*n) * 1e9 / x)).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        points.dedup_by(|a, b| a.0 == b.0);
        Some(Self { points })
    }

    /// The curve apart into CPU time and the rest: of so many CPUs, which all of it shares, and each
    /// measured point's own CPU time by transaction. What that leaves of a point's cycle is a
    /// delay, so long that the point comes out as measured.
    ///
    /// # Errors
    /// No CPUs, or CPU times that are none.
    pub fn apart(&self, cpus: u32, cpu_ns: impl Fn(f64) -> f64) -> Result<Apart, NoNetwork> {
        let apart = |&(n, cycle): &(f64, f64)| {
            // No more than there was: all CPUs all the time, and one client's whole cycle.
            let own = cpu_ns(n).min(cycle * f64::from(cpus) / n).min(cycle);
            let (mut low, mut high) = (0.0, cycle);
            for _ in 0..60 {
                let middle = (low + high) / 2.0;
                if cpus_and_rest(cpus, own, middle, n)? < cycle {
                    low = middle
                } else {
                    high = middle
                }
            }
            let rest = (low + high) / 2.0;
            let solved = cpus_and_rest(cpus, own, rest, n)?;
            Ok(Shared { clients: n, cycle, own, rest, solved })
        };
        Ok(Apart { cpus, points: self.points.iter().map(apart).collect::<Result<_, _>>()? })
    }

    /// The time of a cycle with `n` clients, which may be a fraction: a straight line between
    /// measured points, as that of a saturated station is (Denning and Buzen 1978). Below the
    /// first as at the first; beyond the last as if saturated there.
    pub fn cycle_ns(&self, n: f64) -> f64 {
        let above = self.points.iter().position(|p| p.0 >= n);
        match above {
            Some(0) => self.points.first().map_or(0.0, |p| p.1),
            Some(i) => {
                let (Some(a), Some(b)) = (self.points.get(i - 1), self.points.get(i)) else {
                    return 0.0;
                };
                a.1 + (b.1 - a.1) * (n - a.0) / (b.0 - a.0)
            }
            None => self.points.last().map_or(0.0, |p| p.1 * n / p.0),
        }
    }

    /// Transactions a second with `n` clients on the measured path.
    pub fn per_s(&self, n: f64) -> f64 {
        n * 1e9 / self.cycle_ns(n)
    }

    /// The curve as one station.
    fn station(&self, clients: u32) -> Station {
        let one = self.per_s(1.0);
        Station {
            name: "measured".into(),
            kind: StationKind::Rates(
                (1..=clients.max(1)).map(|n| self.per_s(n.into()) / one).collect(),
            ),
            demand_ns: 1e9 / one,
        }
    }

    /// Transactions a second when each cycle takes `added_ns` more outside, with exponential
    /// variability.
    ///
    /// # Errors
    /// More than [`MOST_CLIENTS`], or a negative delay.
    pub fn fluctuating(&self, clients: u32, added_ns: f64) -> Result<f64, NoNetwork> {
        if clients > MOST_CLIENTS {
            return Err(NoNetwork::TooMany(clients));
        }
        let network = Network::new(vec![self.station(clients), Station::delay("path", added_ns)])?;
        let all = network.per_s(clients)?;
        Ok(all.last().copied().unwrap_or(0.0))
    }

    /// The same without variability: as many are at the station as are not on the way.
    ///
    /// # Errors
    /// A negative delay: a faster path puts more clients there than were measured.
    pub fn steady(&self, clients: u32, added_ns: f64) -> Result<f64, NoNetwork> {
        if !(added_ns.is_finite() && added_ns >= 0.0) {
            return Err(NoNetwork::Demand("path".into()));
        }
        let all = f64::from(clients);
        // Those there plus those on the way grow with those there: bisection.
        let taken = |q: f64| q + q * added_ns / self.cycle_ns(q);
        let (mut low, mut high) = (0.0, all);
        for _ in 0..100 {
            let middle = (low + high) / 2.0;
            if taken(middle) < all { low = middle } else { high = middle }
        }
        Ok(self.per_s((low + high) / 2.0))
    }
}

/// The time of a cycle of so many clients through CPUs and a delay.
fn cpus_and_rest(cpus: u32, own: f64, rest: f64, clients: f64) -> Result<f64, NoNetwork> {
    let stations = vec![Station::servers("CPUs", cpus, own), Station::delay("rest", rest)];
    Ok(Network::new(stations)?.solve(clients as u32)?.cycle_ns)
}

/// A measured point, taken apart.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Shared {
    clients: f64,
    cycle: f64,
    own: f64,
    rest: f64,
    /// What both come to by the model.
    solved: f64,
}

/// A curve of which is known what is CPU time: [`Curve::apart`].
#[derive(Debug, Clone, PartialEq)]
pub struct Apart {
    cpus: u32,
    points: Vec<Shared>,
}

impl Apart {
    /// The curve as it would have been measured had each transaction taken `more_ns` of CPU time
    /// besides: the same solved again with it.
    ///
    /// # Errors
    /// A time that is none.
    pub fn burdened(&self, more_ns: f64) -> Result<Curve, NoNetwork> {
        let burdened = |p: &Shared| {
            let more = cpus_and_rest(self.cpus, p.own + more_ns, p.rest, p.clients)?;
            // What the model alone says too much or too little of the point it says of both.
            Ok((p.clients, p.cycle * more / p.solved))
        };
        Ok(Curve { points: self.points.iter().map(burdened).collect::<Result<_, _>>()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64, share: f64) {
        assert!((a / b - 1.0).abs() < share, "{a} against {b}");
    }

    #[test]
    fn a_part_measured_alone_predicts_the_whole_of_product_form_exactly() {
        let part = vec![
            Station::servers("client", 1, 4_000.0),
            Station::servers("server", 3, 20_000.0),
            Station::delay("wake", 9_000.0),
        ];
        let alone = Network::new(part.clone()).unwrap().per_s(40).unwrap();
        let measured: Vec<(u32, f64)> = (1..).zip(alone.into_iter().skip(1)).collect();
        let curve = Curve::new(&measured).unwrap();
        for added in [1_000.0, 80_000.0, 2e6] {
            let whole = [part.clone(), vec![Station::delay("path", added)]].concat();
            let whole = Network::new(whole).unwrap().per_s(40).unwrap();
            for n in [1, 7, 40] {
                close(curve.fluctuating(n, added).unwrap(), whole[n as usize], 1e-9);
                assert!(curve.steady(n, added).unwrap() >= whole[n as usize] * 0.999_999);
            }
        }
    }

    #[test]
    fn a_steady_server_is_predicted_exactly_without_fluctuation() {
        // Service of always 10 µs by one server, 5 µs elsewhere.
        let alone = |n: u32| (n, (f64::from(n) / 15e-6).min(1e5));
        let curve = Curve::new(&[alone(1), alone(2), alone(4), alone(64)]).unwrap();
        for (n, added) in [(1, 80_000.0), (4, 5_000.0), (64, 80_000.0), (64, 2e6)] {
            let truth = (f64::from(n) * 1e9 / (15_000.0 + added)).min(1e5);
            close(curve.steady(n, added).unwrap(), truth, 1e-2);
            assert!(curve.fluctuating(n, added).unwrap() <= truth * 1.000_001);
        }
    }

    #[test]
    fn cpu_time_that_another_path_takes_is_shared_with_the_rest() {
        // Two CPUs, 20 µs of them by transaction, 30 µs elsewhere; 15 µs more of the same CPUs.
        let with = |more: f64| {
            let cpus = Station::servers("CPUs", 2, 20_000.0 + more);
            Network::new(vec![cpus, Station::delay("rest", 30_000.0)]).unwrap()
        };
        let alone = with(0.0).per_s(64).unwrap();
        let measured: Vec<(u32, f64)> = (1..).zip(alone.into_iter().skip(1)).collect();
        let curve = Curve::new(&measured).unwrap();
        let apart = curve.apart(2, |_| 20_000.0).unwrap();
        let more = apart.burdened(15_000.0).unwrap();
        for n in [1, 2, 5, 64] {
            close(more.per_s(n.into()), with(15_000.0).solve(n).unwrap().per_s, 1e-3);
        }
        // A CPU time that others' work is in, too, takes no more than there is.
        let one = curve.apart(2, |_| 1e9).unwrap().burdened(15_000.0).unwrap();
        close(one.per_s(1.0), 1e9 / 65_000.0, 1e-9);
        close(one.per_s(64.0), with(15_000.0).solve(64).unwrap().per_s, 2e-2);
        assert_eq!(apart.burdened(0.0).unwrap().per_s(8.0), curve.per_s(8.0));
        assert!(curve.apart(0, |_| 20_000.0).is_err());
    }

    #[test]
    fn nothing_measured_is_no_curve() {
        assert_eq!(Curve::new(&[]), None);
        assert_eq!(Curve::new(&[(1, 0.0)]), None);
        assert_eq!(Curve::new(&[(0, 1.0)]), None);
        let one = Curve::new(&[(1, 1e4)]).unwrap();
        close(one.per_s(8.0), 1e4, 1e-9);
        assert!(one.fluctuating(1, -1.0).is_err() && one.steady(1, -1.0).is_err());
    }
}
