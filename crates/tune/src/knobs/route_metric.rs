//! `route.DESTINATION.SETTING`: what TCP takes from a route: the first congestion window, the receive
//! window at the start, the least retransmission timeout, the congestion control.

use std::net::IpAddr;

use model::{Nanos, knob::Target, tune::Impact};

use crate::{
    Host, TuneError,
    host::route::{LOCK, Prefix, Route},
    knob::{Kind, Knob, PlanContext, Refusal, Undone, harmful, number, usage},
    need::Need,
    phase::Phase,
};

/// `ip route change DESTINATION … initcwnd N`, in the main table. `default` is IPv4's; a metric after
/// `@` names one of several routes to a destination.
pub const KIND: Kind = Kind {
    name: "route_metric",
    spelling: "route.default|PREFIX[@METRIC].initcwnd|initrwnd|rto_min|congctl=VALUE or none",
    parse: |target| match target {
        Target::Route(to, name) => {
            let setting = SETTINGS.iter().find(|s| s.name == name)?;
            let (prefix, metric) = destination(to)?;
            Some(Box::new(RouteMetric { to, prefix, metric, setting }))
        }
        _ => None,
    },
};

struct RouteMetric<'k> {
    to: &'k str,
    prefix: Prefix,
    metric: Option<u32>,
    setting: &'static Setting,
}

/// One metric of a route.
struct Setting {
    name: &'static str,
    /// Number of the metric within `RTA_METRICS`. **Source**: `RTAX_*`, `include/uapi/linux/rtnetlink.h`.
    id: u16,
    unit: &'static str,
    /// Whether the kernel heeds it only where it is locked (`dst_metric_locked`).
    locked: bool,
}

const SETTINGS: [Setting; 4] = [
    Setting { name: "initcwnd", id: 11, unit: "segments", locked: false },
    Setting { name: "initrwnd", id: 14, unit: "segments", locked: false },
    Setting { name: "rto_min", id: 13, unit: "", locked: true },
    Setting { name: "congctl", id: 16, unit: "", locked: false },
];
const NONE: &str = "none";
/// A first window above this is a burst of more than a megabyte. Our limit; the kernel has none.
const MOST_SEGMENTS: u64 = 1_000;
/// **Source**: `TCP_RTO_MAX_MIN_SEC` to `TCP_RTO_MAX` of `include/net/tcp.h`: at most two minutes.
const MOST_RTO_MS: u64 = 120_000;
/// A peer may hold its acknowledgement back for this long (`TCP_DELACK_MIN`).
const DELAYED_ACK_MS: u64 = 40;

/// Prefix and metric of a destination as typed.
fn destination(to: &str) -> Option<(Prefix, Option<u32>)> {
    let (prefix, metric) = match to.split_once('@') {
        Some((prefix, metric)) => (prefix, Some(metric.parse().ok()?)),
        None => (to, None),
    };
    let prefix = if prefix == "default" { "0.0.0.0/0" } else { prefix };
    let (address, bits) = prefix.split_once('/').map_or((prefix, None), |(a, b)| (a, Some(b)));
    let address: IpAddr = address.parse().ok()?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let bits = bits.map_or(Some(most), |b| b.parse().ok())?;
    (bits <= most).then_some((Prefix { address, bits }, metric))
}

/// The value of an exact text, and the metric of its route: `20 at 100`.
fn parts(exact: &str) -> (&str, Option<u32>) {
    match exact.trim().split_once(" at ") {
        Some((value, metric)) => (value, metric.parse().ok()),
        None => (exact.trim(), None),
    }
}

impl RouteMetric<'_> {
    fn what(&self) -> String {
        format!("ip route change {} {}", self.to, self.setting.name)
    }

    /// The route, of this metric where one is given.
    fn route(&self, host: &Host, metric: Option<u32>) -> Result<Route, TuneError> {
        let wanted = metric.or(self.metric);
        let mut all = host.routes(self.prefix)?;
        let priorities: Vec<String> = all.iter().map(|r| r.priority.to_string()).collect();
        all.retain(|r| wanted.is_none_or(|m| r.priority == m));
        match (all.pop(), all.is_empty()) {
            (Some(route), true) => Ok(route),
            (Some(_), false) if wanted.is_none() => Err(TuneError::Usage(format!(
                "{}: several routes lead there, of the metrics {}; name one: route.{}@{}.{}",
                self.target(),
                priorities.join(", "),
                self.to,
                priorities.first().map_or("", String::as_str),
                self.setting.name
            ))),
            (Some(_), _) => Err(TuneError::Environment(format!(
                "{}: several routes of one metric lead there, and a change would mean the first",
                self.target()
            ))),
            (None, _) => Err(TuneError::Absent(format!(
                "{}: no such route in the main table",
                self.target()
            ))),
        }
    }

    /// The value as `ip route show` prints it.
    fn value(&self, route: &Route) -> Result<String, TuneError> {
        let Setting { name, id, locked, .. } = *self.setting;
        let Some(bytes) = route.metric(id) else { return Ok(NONE.into()) };
        let bad = || TuneError::Environment(format!("{}: {name} makes no sense", self.target()));
        if name == "congctl" {
            let text = std::str::from_utf8(bytes).map_err(|_| bad())?;
            return Ok(text.trim_end_matches('\0').to_owned());
        }
        let number = bytes.try_into().map(u32::from_ne_bytes).map_err(|_| bad())?;
        let lock = if locked && !is_locked(route, id) { " unlocked" } else { "" };
        let unit = if name == "rto_min" { "ms" } else { "" };
        Ok(format!("{number}{unit}{lock}"))
    }

    /// Puts a value of [`Self::value`]'s form into a route.
    fn put(&self, route: &mut Route, value: &str) -> Result<(), TuneError> {
        let Setting { name, id, locked, .. } = *self.setting;
        let (number, lock) = match value.strip_suffix(" unlocked") {
            Some(number) => (number, false),
            None => (value, locked),
        };
        let bytes = match (number, name) {
            (NONE, _) => None,
            (name, "congctl") => Some(format!("{name}\0").into_bytes()),
            _ => {
                let number: u32 = number.trim_end_matches("ms").parse().map_err(|_| {
                    TuneError::Usage(format!("{}: {value:?} is no value", self.target()))
                })?;
                Some(number.to_ne_bytes().to_vec())
            }
        };
        if locked {
            let own = 1 << id;
            let held = if lock && bytes.is_some() { own } else { 0 };
            let locks = locks(route) & !own | held;
            route.set_metric(LOCK, (locks != 0).then(|| locks.to_ne_bytes().to_vec()));
        }
        route.set_metric(id, bytes);
        Ok(())
    }

    /// Puts a value into the route as it is now; all else of the route stays.
    fn change(&self, host: &Host, value: &str, metric: Option<u32>) -> Result<(), TuneError> {
        let mut route = self.route(host, metric)?;
        self.put(&mut route, value)?;
        host.change_route(&self.what(), &route)
    }

    fn exact(&self, route: &Route) -> Result<String, TuneError> {
        Ok(format!("{} at {}", self.value(route)?, route.priority))
    }
}

fn locks(route: &Route) -> u32 {
    route.metric(LOCK).and_then(|b| b.try_into().ok()).map_or(0, u32::from_ne_bytes)
}

fn is_locked(route: &Route, id: u16) -> bool {
    locks(route) & (1 << id) != 0
}

impl Knob for RouteMetric<'_> {
    fn target(&self) -> Target<'_> {
        Target::Route(self.to, self.setting.name)
    }

    fn phase(&self) -> Phase {
        Phase::Route
    }

    /// The prefix in numbers: `default` and `0.0.0.0/0` name one route.
    fn same_as(&self) -> Option<String> {
        let metric = self.metric.map_or(String::new(), |m| format!("@{m}"));
        let Prefix { address, bits } = self.prefix;
        Some(format!("route.{address}/{bits}{metric}.{}", self.setting.name))
    }

    fn read(&self, host: &Host) -> Result<String, TuneError> {
        self.exact(&self.route(host, None)?)
    }

    /// The route that was changed: another one to the same destination may have come since, as that of
    /// a VPN.
    fn read_again(&self, host: &Host, old: &str) -> Result<String, TuneError> {
        self.exact(&self.route(host, parts(old).1)?)
    }

    fn show(&self, exact: &str) -> String {
        parts(exact).0.to_owned()
    }

    fn settable(&self, host: &Host) -> Result<(), TuneError> {
        match self.route(host, None)?.loses() {
            Some(why) => Err(TuneError::Environment(format!("{}: {why}", self.target()))),
            None => Ok(()),
        }
    }

    fn validate(&self, _: &PlanContext<'_>, _: &str, wanted: &str) -> Result<String, Refusal> {
        match self.setting.name {
            _ if wanted == NONE => Ok(NONE.into()),
            "congctl" => {
                let fine = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
                match wanted.len() < 16 && !wanted.is_empty() && wanted.bytes().all(fine) {
                    true => Ok(wanted.to_owned()),
                    false => usage(format!("{wanted:?} is no name of a congestion control")),
                }
            }
            "rto_min" => {
                let ms = match wanted.parse::<Nanos>() {
                    Ok(time) if time.0 % 1_000_000 == 0 => (time.0 / 1_000_000).to_string(),
                    Ok(_) => {
                        return usage(format!("{wanted:?} is no whole number of milliseconds"));
                    }
                    Err(_) => wanted.to_owned(),
                };
                let ms = number(&ms, 1, MOST_RTO_MS, "ms")?;
                if ms <= DELAYED_ACK_MS {
                    return harmful(format!(
                        "a peer may delay its acknowledgement for {DELAYED_ACK_MS} ms, and each would \
                         make a needless retransmission"
                    ));
                }
                Ok(format!("{ms}ms"))
            }
            _ => Ok(number(wanted, 1, MOST_SEGMENTS, "segments")?.to_string()),
        }
    }

    fn needs(&self, _: &Host) -> Vec<Need> {
        vec![Need::Net]
    }

    fn write(&self, host: &Host, value: &str) -> Result<(), TuneError> {
        let (value, metric) = parts(value);
        self.change(host, value, metric).map_err(|e| match e {
            TuneError::Kernel { errno: libc::EINVAL, .. } if self.setting.name == "congctl" => {
                TuneError::Environment(format!(
                    "{}: this kernel has no congestion control {value} (net.ipv4.tcp_available_congestion_control)",
                    self.what()
                ))
            }
            e => e,
        })
    }

    fn undo(&self, host: &Host, old: &str, _: &str) -> Result<Undone, TuneError> {
        let (value, metric) = parts(old);
        let gone = || Undone::Lost(format!("{}: the route is gone", self.to));
        let now = match self.route(host, metric) {
            Ok(route) => self.exact(&route)?,
            Err(TuneError::Absent(_)) => return Ok(gone()),
            Err(e) => return Err(e),
        };
        if now == old {
            return Ok(Undone::Restored(now));
        }
        match self.change(host, value, metric) {
            Err(TuneError::Absent(_)) => return Ok(gone()),
            other => other?,
        }
        let back = self.exact(&self.route(host, metric)?)?;
        if back == old {
            return Ok(Undone::Restored(back));
        }
        Err(TuneError::Environment(format!(
            "{}: was {value}, and after putting it back reads {}",
            self.target(),
            self.show(&back)
        )))
    }

    fn lost(&self, host: &Host, old: &str) -> Option<String> {
        let gone = matches!(self.route(host, parts(old).1), Err(TuneError::Absent(_)));
        gone.then(|| format!("{}: the route is gone", self.to))
    }

    fn undo_text(&self) -> String {
        "the old value is put into the route as it is then; open connections keep theirs".into()
    }

    fn impact(&self, _: &PlanContext<'_>, _: &str, _: &str) -> Impact {
        Impact::none()
    }

    fn unit(&self) -> &'static str {
        self.setting.unit
    }

    fn sets(&self) -> &'static str {
        "routes"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_destination_is_a_prefix_and_perhaps_a_metric() {
        let text = |to: &str| {
            let (p, metric) = destination(to)?;
            Some(format!("{}/{} {metric:?}", p.address, p.bits))
        };
        for (to, is) in [
            ("default", Some("0.0.0.0/0 None")),
            ("default@100", Some("0.0.0.0/0 Some(100)")),
            ("::/0", Some("::/0 None")),
            ("10.0.0.0/8@5", Some("10.0.0.0/8 Some(5)")),
            ("10.0.0.1", Some("10.0.0.1/32 None")),
            ("2001:db8::1", Some("2001:db8::1/128 None")),
            ("10.0.0.0/33", None),
            ("10.0.0.0/8@x", None),
            ("eth0", None),
            ("@5", None),
        ] {
            assert_eq!(text(to).as_deref(), is, "{to}");
        }
    }

    #[test]
    fn an_exact_value_names_the_metric_of_its_route() {
        assert_eq!(parts("20 at 100"), ("20", Some(100)));
        assert_eq!(parts("200ms unlocked at 0"), ("200ms unlocked", Some(0)));
        assert_eq!(parts("none"), ("none", None));
    }
}
