//! Channels: the CPUs that a NIC's packets come in on, as a place of their own.
//!
//! While as many CPUs receive as are needed, what the server's interrupts and softirqs take of a
//! transaction is part of the path. With fewer it queues for them: a station of so many servers
//! (Lazowska et al., Quantitative System Performance, 1984, chapters 6 and 11).

use model::explain::WhatIf;

use super::{Model, PATH, changes::what_if};
use crate::queueing::{Network, NoNetwork, Station};

const RECEIVING: &str = "receiving";

/// What receiving takes at the server.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Receiving {
    /// CPU time of its interrupts and softirqs by transaction.
    pub ns: f64,
    /// CPUs that packets came in on.
    pub cpus: u32,
}

impl Model {
    /// Throughput with so many channels at the server, each on a CPU of its own, where packets
    /// came in on `receiving.cpus` of them while this was measured.
    ///
    /// # Errors
    /// More clients than can be solved.
    pub fn channels(
        &self,
        clients: u32,
        receiving: Receiving,
        asked: &[u32],
    ) -> Result<Vec<WhatIf>, NoNetwork> {
        let now = self.curve.per_s(clients.into());
        let before = self.with_channels(clients, receiving.ns, receiving.cpus)?;
        let one = |n: u32| {
            let per_s = now * self.with_channels(clients, receiving.ns, n)? / before;
            let change = format!("{n} {}", if n == 1 { "channel" } else { "channels" });
            Ok(what_if(change, clients, per_s, now, None))
        };
        asked.iter().map(|n| one(*n)).collect()
    }

    fn with_channels(&self, clients: u32, ns: f64, n: u32) -> Result<f64, NoNetwork> {
        let network = self.network(clients)?;
        let path = network.delay_ns();
        // Of one client's cycle it cannot be more than the path.
        let ns = ns.clamp(0.0, path);
        let rest = network.with_demand(PATH, path - ns)?;
        let mut stations = rest.stations().to_vec();
        stations.push(Station::servers(RECEIVING, n.max(1), ns));
        Ok(Network::new(stations)?.solve(clients)?.per_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        paired::Centre,
        predict::{CLIENT, Known, SERVER},
    };
    use model::explain::Level;

    /// A host whose one channel takes 20 us of a transaction, or so many of them.
    fn truth(channels: u32) -> Network {
        Network::new(vec![
            Station::servers(CLIENT, 1, 2_000.0),
            Station::servers(SERVER, 8, 40_000.0),
            Station::servers(RECEIVING, channels, 20_000.0),
            Station::delay(PATH, 30_000.0),
        ])
        .unwrap()
    }

    fn measured_with(channels: u32) -> Model {
        let rates = truth(channels).per_s(64).unwrap();
        let level = |n: u32| Level {
            clients: n,
            per_s: rates[n as usize],
            low_per_s: rates[n as usize],
            high_per_s: rates[n as usize],
            client_cpu_ns: Some(2_000.0),
            server_cpu_ns: Some(40_000.0),
            host_cpu_ns: None,
            ..Level::default()
        };
        Model::new(Known {
            levels: [1, 2, 4, 8, 16, 32, 64].map(level).to_vec(),
            network_ns: 50_000.0,
            service: Centre { value: 40_000.0, low: 40_000.0, high: 40_000.0 },
            own_ns: 2_000.0,
            client_threads: 1,
            server_threads: Some(8),
            cpus: None,
        })
        .unwrap()
    }

    #[test]
    fn more_and_fewer_channels_are_predicted_from_either() {
        for (cpus, asked) in [(1, [1, 2, 4, 8]), (4, [1, 2, 4, 8])] {
            let model = measured_with(cpus);
            for clients in [1, 8, 64] {
                let said = model.channels(clients, Receiving { ns: 20_000.0, cpus }, &asked);
                for (said, n) in said.unwrap().iter().zip(asked) {
                    let real = truth(n).solve(clients).unwrap().per_s;
                    let off = said.predicted_per_s / real - 1.0;
                    assert!(off.abs() < 0.01, "{cpus} -> {n}, {clients} clients: {off}");
                }
            }
        }
    }

    #[test]
    fn one_channel_limits_to_what_it_can_receive() {
        let one = truth(1).solve(64).unwrap().per_s;
        assert!((one / 50_000.0 - 1.0).abs() < 0.01, "the utilization law: 1 / 20 us, {one}");
        let all = measured_with(1).channels(64, Receiving { ns: 20_000.0, cpus: 1 }, &[1, 4]);
        let all = all.unwrap();
        assert_eq!((all[0].change.as_str(), all[1].change.as_str()), ("1 channel", "4 channels"));
        assert!((all[0].factor - 1.0).abs() < 1e-9);
        assert!(all[1].factor > 3.0, "{all:?}");
    }
}
