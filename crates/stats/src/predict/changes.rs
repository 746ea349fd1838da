//! What changes would give: no network, more CPUs.

use model::explain::{Bound, WhatIf};

use super::{CLIENT, Model, SERVER};
use crate::queueing::{Network, NoNetwork, Station};

impl Model {
    /// What is left of one client's cycle without any network: the service, and its own time.
    pub(super) fn bare_ns(&self) -> f64 {
        self.known.service.value.max(0.0) + self.known.own_ns.max(0.0)
    }

    /// No network, and twice the CPUs at either end; with `cores` so many servers. Where nobody tells
    /// what the server takes of its CPUs nothing is said of those, and only bounds of the rest.
    ///
    /// # Errors
    /// More clients than can be solved.
    pub fn what_if(&self, clients: u32, cores: Option<u32>) -> Result<Vec<WhatIf>, NoNetwork> {
        let now = self.curve.per_s(clients.into());
        let mut all: Vec<WhatIf> = self.no_network(clients)?.into_iter().collect();
        if !self.is_server_reported() {
            return Ok(all);
        }
        let model = self.network(clients)?;
        let before = model.solve(clients)?.per_s;
        let mut add = |change: String, per_s: f64| {
            all.push(what_if(change, clients, per_s, now, None));
        };
        for (name, place) in [("server CPUs doubled", SERVER), ("client CPUs doubled", CLIENT)] {
            let more = model.with_servers(place, 2)?;
            add(name.into(), now * more.solve(clients)?.per_s / before);
        }
        if let Some(n) = cores {
            let stations = model.stations().iter().cloned().map(|s| match s.name == SERVER {
                true => Station::servers(SERVER, n, s.demand_ns),
                false => s,
            });
            let other = Network::new(stations.collect())?;
            add(format!("{n} server CPUs"), now * other.solve(clients)?.per_s / before);
        }
        Ok(all)
    }

    /// Without any network a client's cycle is the service and its own time, and waiting for others:
    /// with one client it can give no more than one transaction in those two. A service that is not
    /// told from zero bounds it from below alone.
    fn no_network(&self, clients: u32) -> Result<Option<WhatIf>, NoNetwork> {
        let now = self.curve.per_s(clients.into());
        let known = &self.known;
        let is_reported = known.service.low > 0.0;
        let service = if is_reported { known.service.value } else { known.service.high };
        let cycle = service + known.own_ns.max(0.0);
        if service <= 0.0 || !cycle.is_finite() {
            return Ok(None);
        }
        let nobody_waits = f64::from(clients) * 1e9 / cycle;
        let (per_s, bound) = match (clients, is_reported, self.is_server_reported()) {
            (1, true, _) => (nobody_waits, Some(Bound::AtMost)),
            (1, false, _) => (nobody_waits, Some(Bound::AtLeast)),
            (_, true, false) => (nobody_waits, Some(Bound::AtMost)),
            (_, false, false) => return Ok(None),
            (_, is_reported, true) => {
                let bare = Network::new(vec![
                    Station::servers(SERVER, self.servers(), service),
                    Station::servers(CLIENT, known.client_threads, known.own_ns.max(0.0)),
                ])?;
                (bare.solve(clients)?.per_s, (!is_reported).then_some(Bound::AtLeast))
            }
        };
        // Without the network's own CPU time the server may be no slower than with it.
        Ok(Some(what_if("no network".into(), clients, per_s.max(now), now, bound)))
    }
}

pub(super) fn what_if(
    change: String,
    clients: u32,
    per_s: f64,
    now: f64,
    bound: Option<Bound>,
) -> WhatIf {
    let factor = per_s / now;
    WhatIf { change, clients, predicted_per_s: per_s, factor, bound, inconclusive: false }
}

#[cfg(test)]
mod tests {
    use model::explain::Level;

    use super::*;
    use crate::{paired::Centre, predict::Known};

    fn level(clients: u32, per_s: f64, client: f64, server: Option<f64>) -> Level {
        Level {
            clients,
            per_s,
            low_per_s: per_s,
            high_per_s: per_s,
            client_cpu_ns: Some(client),
            server_cpu_ns: server,
            host_cpu_ns: None,
            ..Level::default()
        }
    }

    fn model(levels: Vec<Level>, service: (f64, f64, f64)) -> Model {
        let (low, value, high) = service;
        Model::new(Known {
            levels,
            network_ns: 38_000.0,
            service: Centre { value, low, high },
            own_ns: 3_000.0,
            client_threads: 1,
            server_threads: None,
            cpus: Some(2),
        })
        .unwrap()
    }

    fn named<'a>(all: &'a [WhatIf], change: &str) -> Option<&'a WhatIf> {
        all.iter().find(|w| w.change == change)
    }

    /// The service of a busy host's rounds came out below nothing: no network was then 13 times as
    /// fast as what was measured.
    #[test]
    fn a_service_time_that_could_be_zero_promises_nothing() {
        let one = vec![level(1, 23_000.0, 6_000.0, Some(9_000.0))];
        let all = model(one.clone(), (-70_000.0, -61_000.0, 5_000.0)).what_if(1, None).unwrap();
        let none = named(&all, "no network").unwrap();
        assert_eq!(none.bound, Some(Bound::AtLeast));
        assert!((none.predicted_per_s - 1e9 / 8_000.0).abs() < 1.0, "{none:?}");
        let all = model(one.clone(), (-70_000.0, -61_000.0, -50_000.0)).what_if(1, None).unwrap();
        assert_eq!(named(&all, "no network"), None, "less than nothing is no service");
        // Told, it is the service and the client's own time, and not a transaction more.
        let all = model(one, (1_500.0, 2_000.0, 2_500.0)).what_if(1, Some(8)).unwrap();
        let most = 1e9 / 5_000.0;
        for w in &all {
            assert!(w.predicted_per_s <= most * 1.000_001, "{w:?}");
        }
        let none = named(&all, "no network").unwrap();
        assert!((none.predicted_per_s / most - 1.0).abs() < 1e-9, "{none:?}");
        assert_eq!(none.bound, Some(Bound::AtMost));
    }

    /// What is measured is possible by the demands that are said of it.
    #[test]
    fn no_place_is_busier_than_it_can_be() {
        let levels = vec![
            level(1, 20_000.0, 6_000.0, Some(9_000.0)),
            level(8, 90_000.0, 5_500.0, Some(21e3)),
        ];
        // 90,000 a second of 21 µs each keep 1.9 CPUs busy, whatever the service time is.
        let model = model(levels, (1_000.0, 2_000.0, 3_000.0));
        for d in model.demands(8) {
            let busy = 90_000.0 * d.ns / 1e9;
            assert!(d.servers.is_none_or(|n| busy <= f64::from(n) + 0.05), "{busy} {d:?}");
        }
        let all = model.what_if(8, None).unwrap();
        let doubled = named(&all, "server CPUs doubled").unwrap();
        assert!(doubled.factor >= 1.0 && doubled.factor < 2.01, "{doubled:?}");
    }

    #[test]
    fn of_a_server_that_nobody_tells_of_only_bounds_are_said() {
        let levels = vec![level(1, 2_000.0, 6_000.0, None), level(8, 9_000.0, 6_000.0, None)];
        let model = model(levels, (390_000.0, 400_000.0, 410_000.0));
        assert!(!model.is_server_reported());
        let all = model.what_if(8, Some(4)).unwrap();
        assert_eq!(all.len(), 1, "{all:?}");
        assert_eq!((all[0].change.as_str(), all[0].bound), ("no network", Some(Bound::AtMost)));
        assert!((all[0].predicted_per_s - 8e9 / 403_000.0).abs() < 1.0, "{all:?}");
        assert_eq!(model.limiting(), None);
        let places: Vec<String> = model.demands(8).into_iter().map(|d| d.place).collect();
        assert_eq!(places, [CLIENT, super::super::BEYOND]);
        // A faster path: between what it is and what it were if nobody waited for that.
        let added = super::super::Added { ns: -20_000.0, ..Default::default() };
        let p = model.predict("x", added, 8).unwrap();
        assert!(p.low_per_s <= 9_000.0 && p.high_per_s > 9_000.0, "{p:?}");
        assert!(p.high_per_s <= 8e9 / 403_000.0 && p.limiting.is_none(), "{p:?}");
    }
}
