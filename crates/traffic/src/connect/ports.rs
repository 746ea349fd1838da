//! The limit of local ports on new connections: forecast before a run, explanation after.

use std::{net::IpAddr, str::FromStr};

use model::{
    Nanos, Reading, Warning,
    measure::{Close, ConnectSpec, PortBudget, Transport},
    warning::UsedPorts,
};
use probe::{
    Root,
    samples::local_ports::{self, LocalPorts},
};

use crate::net::target::{PORT, Target, resolve};

/// If ports become free at this rate (per second), a closed loop does not run out of them.
const FAST_PER_S: f64 = 20_000.0;

/// Local ports available towards one remote address.
#[derive(Debug, Clone)]
pub struct Ports {
    local: Reading<LocalPorts>,
    loopback: bool,
    addresses: u64,
    before: u64,
}

impl Ports {
    /// Reads the current limits.
    pub fn look(root: &Root, to: Option<IpAddr>, addresses: usize) -> Self {
        Self {
            local: match to {
                Some(_) => local_ports::read(root),
                None => Reading::absent("Unix sockets have no ports"),
            },
            loopback: to.is_some_and(|ip| ip.is_loopback()),
            addresses: addresses.max(1) as u64,
            before: local_ports::time_wait(root).into_known().unwrap_or(0),
        }
    }

    fn kept(&self, ports: &LocalPorts) -> Nanos {
        if self.loopback { ports.kept_loopback } else { ports.kept }
    }

    pub fn budget(&self, root: &Root) -> Reading<PortBudget> {
        let after = local_ports::time_wait(root).into_known().unwrap_or(0);
        self.local.as_ref().map(|ports| {
            let kept_ns = self.kept(ports);
            PortBudget {
                ports: ports.usable,
                addresses: self.addresses,
                kept_ns,
                time_wait_before: self.before,
                time_wait_after: after,
                sustained_per_s: per_s(ports.usable * self.addresses, kept_ns),
            }
        })
    }

    /// Warning that the ports will run out at this rate; `None` if they will not.
    pub fn forecast(&self, close: Close, rate: Option<u64>, for_ns: u64) -> Option<String> {
        let ports = self.local.known().filter(|_| close == Close::Local)?;
        let (all, kept) = (ports.usable * self.addresses, self.kept(ports));
        let sustained = per_s(all, kept);
        let advice = "--close peer and --close reset keep no port here";
        match rate {
            // If ports are free again this fast, a closed loop hardly outruns them.
            None if sustained >= FAST_PER_S => None,
            None => Some(format!(
                "--close local keeps each local port for {kept}: after {all} connections there is \
                 none, and {} a second can go on for ever; {advice}",
                sustained.floor()
            )),
            Some(rate) if rate as f64 > sustained => {
                let after = all as f64 / rate as f64;
                let lasts = after * 1e9 >= for_ns as f64;
                (!lasts).then(|| {
                    format!(
                        "{rate} connections a second with --close local use up the {all} local \
                         ports in {after:.1} s, for each is kept for {kept}; {} a second can go \
                         on for ever, and {advice}",
                        sustained.floor()
                    )
                })
            }
            Some(_) => None,
        }
    }

    /// Explains a shortage of local ports after it occurred.
    pub fn explain(&self, root: &Root, to: &str, close: Close) -> Warning {
        let waiting = local_ports::time_wait(root).into_known().unwrap_or(0);
        let local = self.local.known().map(|ports| UsedPorts {
            ports: ports.usable * self.addresses,
            first: ports.first,
            last: ports.last,
            kept_ns: (close == Close::Local).then(|| self.kept(ports)),
        });
        Warning::PortsExhausted { to: to.to_owned(), time_wait: waiting, local }
    }

    /// Warns if a rate exceeds what the ports can sustain.
    pub fn outruns(&self, close: Close, rate: f64) -> Option<Warning> {
        let ports = self.local.known().filter(|_| close == Close::Local)?;
        let (all, kept) = (ports.usable * self.addresses, self.kept(ports));
        let sustained = per_s(all, kept);
        (rate > sustained).then(|| Warning::PortsOutrun {
            rate_per_s: rate,
            sustained_per_s: sustained.floor(),
            ports: all,
            kept_ns: kept,
        })
    }
}

fn per_s(ports: u64, kept: Nanos) -> f64 {
    ports as f64 * 1e9 / kept.0.max(1) as f64
}

/// Local addresses from `--bind A,B`.
///
/// # Errors
/// An entry is not an address.
pub fn addresses(spec: &ConnectSpec) -> crate::Result<Vec<IpAddr>> {
    let Some(text) = &spec.common.bind else { return Ok(vec![]) };
    text.split(',').map(|a| crate::net::target::local_address(a.trim())).collect()
}

/// Warning before a run that it would exhaust the local ports; `None` if it would not, or if the
/// target cannot be reached anyway.
pub fn forecast(spec: &ConnectSpec) -> Option<String> {
    if spec.common.transport != Transport::Tcp {
        return None;
    }
    let Ok(Target::Host(host, port)) = Target::from_str(&spec.common.target) else { return None };
    let all = resolve(&host, port.unwrap_or(PORT), spec.common.family).ok()?;
    let from = addresses(spec).ok()?;
    let ports = Ports::look(&Root::live(), all.first().map(|a| a.ip()), from.len());
    ports.forecast(spec.close, spec.rate_per_s, whole_ns(spec))
}

/// Total time during which connections are made, warm-up included.
pub fn whole_ns(spec: &ConnectSpec) -> u64 {
    let c = &spec.common;
    c.warmup_ns.0.saturating_add(c.duration_ns.0).saturating_add(c.cooldown_ns.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ports(usable: u64, loopback: bool) -> Ports {
        let local = LocalPorts {
            first: 1000,
            last: 60_999,
            usable,
            kept: Nanos(60_000_000_000),
            kept_loopback: Nanos(1_000_000_000),
        };
        Ports { local: Reading::Known(local), loopback, addresses: 1, before: 0 }
    }

    #[test]
    fn a_rate_that_uses_up_the_ports_is_reported_before() {
        let p = ports(28_232, false);
        let ten_s = 10_000_000_000;
        let text = p.forecast(Close::Local, Some(5000), ten_s).unwrap();
        assert!(text.contains("in 5.6 s") && text.contains("470 a second"), "{text}");
        assert!(p.forecast(Close::Local, Some(470), ten_s).is_none(), "for ever");
        assert!(p.forecast(Close::Local, Some(2000), ten_s).is_none(), "too short to matter");
        assert!(p.forecast(Close::Peer, Some(5000), ten_s).is_none());
        assert!(p.forecast(Close::Local, None, ten_s).unwrap().contains("470 a second"));
        assert!(ports(28_232, true).forecast(Close::Local, None, ten_s).is_none());
        assert!(ports(28_232, true).forecast(Close::Local, Some(5000), ten_s).is_none());
        assert!(p.outruns(Close::Local, 5000.0).unwrap().to_string().contains("5.6 s"));
        assert!(p.outruns(Close::Local, 400.0).is_none());
    }

    #[test]
    fn more_addresses_are_more_ports() {
        let mut p = ports(100, false);
        p.addresses = 3;
        let text = p.forecast(Close::Local, Some(10), 60_000_000_000).unwrap();
        assert!(text.contains("300 local ports in 30.0 s"), "{text}");
    }
}
