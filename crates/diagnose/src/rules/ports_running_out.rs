//! 22: nearly as many connections as local ports.

use model::{Confidence, Severity};

use crate::{
    Case, Rule, knob,
    rule::{Draft, Gain, Judgement, Missing, Proposal, clear, need, settle},
    text,
};

/// Catalogue number 22. Ports run out per destination address and port, but only their sum over all
/// destinations is known. So the rule can exclude a shortage, and otherwise only suspect one.
pub static RULE: Rule = Rule {
    id: "ports_running_out",
    number: 22,
    title: "local ports running out",
    needs: &["net.ipv4.ip_local_port_range", "TCP inuse and tw of sockstat", "listeners"],
    explained_by: &["below_kernel_default"],
    judge,
};

const RANGE: &str = "net.ipv4.ip_local_port_range";
const SOCKSTAT: &str = "/proc/net/sockstat";
const REUSE: &str = "net.ipv4.tcp_tw_reuse";
/// Share of the range. Our proposal.
const FULL: f64 = 0.80;
/// How long a closed connection keeps its port (`TCP_TIMEWAIT_LEN`, compiled in).
const TIME_WAIT_S: f64 = 60.0;
/// The proposed lower end: above the ports that services usually listen on.
const LOWER: u64 = 10_240;

fn judge(case: &Case<'_>) -> Vec<Judgement> {
    vec![settle("", one(case))]
}

/// Connections that may hold a local port, and how many of them wait in TIME_WAIT. What is `inuse`
/// listens or is a connection; `TCP.orphan` would add those of every other network namespace.
fn in_use(case: &Case<'_>) -> Result<(u64, u64), Missing> {
    let gauges = need(SOCKSTAT, &case.samples()?.sockstat)?;
    let gauge = |name: &str| {
        gauges.get(name).copied().ok_or_else(|| Missing(format!("{SOCKSTAT}: no {name}")))
    };
    let listeners = need("listeners", &case.facts.listeners)?.len() as u64;
    let time_wait = gauge("TCP.tw")?;
    // A host without IPv6 has no line of it.
    let sockets = gauge("TCP.inuse")? + gauges.get("TCP6.inuse").unwrap_or(&0);
    Ok((sockets.saturating_sub(listeners) + time_wait, time_wait))
}

fn one(case: &Case<'_>) -> Result<Judgement, Missing> {
    let values = case.sysctl_numbers(RANGE)?;
    let [low, high] = values[..] else {
        return Err(Missing(format!("{RANGE}: {} values instead of two", values.len())));
    };
    let size = high.saturating_sub(low) + 1;
    let counted = in_use(case);
    let (all, time_wait) = counted.clone()?;
    let share = all as f64 / size as f64;
    if share <= FULL {
        let text = format!(
            "{} connections in all, {} local ports for each destination",
            text::count(all),
            text::count(size)
        );
        return clear(text, [&case.sysctl_numbers(RANGE), &counted]);
    }
    // Connections that this host opens hold a port in TIME_WAIT for a minute.
    let window = case.window_s()?;
    let opened = case.protocol("Tcp.ActiveOpens").map(|n| n as f64 / window);
    let opener = opened.as_ref().is_ok_and(|rate| rate * TIME_WAIT_S > size as f64 * FULL);
    let (severity, confidence) = if opener {
        (Severity::Warning, Confidence::Medium)
    } else {
        (Severity::Info, Confidence::Low)
    };
    let draft = Draft::new(
        RANGE,
        format!("{} connections for {} local ports", text::count(all), text::count(size)),
    )
    .weigh(severity, confidence)
    .explain(
        "Each destination address and port has the whole range to itself, so this is trouble \
             only if most of these connections go to one destination (a proxy's upstream, a \
             database). New connections then fail with EADDRNOTAVAIL.",
    )
    .gain(Gain::Improves, "room for new connections to one destination")
    .show(
        "connections, listeners left out",
        format!("{}, {} of them in TIME_WAIT", text::count(all), text::count(time_wait)),
        "/proc/net/sockstat TCP inuse and tw, sock_diag",
    )
    .show_sysctl(case, RANGE);
    let draft = match opened {
        Ok(rate) => draft
            .show(format!("connections opened by this host {}", case.over()), text::per_s(rate), "/proc/net/snmp Tcp ActiveOpens")
            .add(if opener { "" } else {
                "This host opens too few connections itself to use them up: most were opened by others."
            }),
        Err(Missing(why)) => draft.add(&format!("How many this host opened itself is not known ({why}).")),
    };
    let changes = if opener { remedies(case, low, high) } else { vec![] };
    Ok(draft.changes(changes).on_sysctl(RANGE).found())
}

fn remedies(case: &Case<'_>, low: u64, high: u64) -> Vec<Proposal> {
    let mut changes = vec![];
    let new_low = low.min(LOWER);
    if new_low < low || high < 65_535 {
        changes.push(knob::sysctl(
            case,
            RANGE,
            &format!("{new_low} 65535"),
            &reserved(case, new_low, low),
        ));
    }
    let stamped = case.sysctl_number("net.ipv4.tcp_timestamps").is_ok_and(|n| n != 0);
    if stamped && case.sysctl_number(REUSE).is_ok_and(|n| n != 1) {
        changes.push(knob::sysctl(
            case,
            REUSE,
            "1",
            "low: outgoing connections only, and only where timestamps make it safe",
        ));
    }
    changes
}

/// Services that listen in the extension of the range.
fn reserved(case: &Case<'_>, new_low: u64, low: u64) -> String {
    let listeners = case.facts.listeners.known().into_iter().flatten();
    let mut ports: Vec<u16> = listeners
        .map(|l| l.port)
        .filter(|&p| u64::from(p) >= new_low && u64::from(p) < low)
        .collect();
    ports.sort_unstable();
    ports.dedup();
    let general = "a service that starts later may find its port taken by an outgoing connection";
    if ports.is_empty() {
        return general.into();
    }
    let list: Vec<String> = ports.iter().take(16).map(ToString::to_string).collect();
    format!("{general}; put {} into net.ipv4.ip_local_reserved_ports first", list.join(","))
}
