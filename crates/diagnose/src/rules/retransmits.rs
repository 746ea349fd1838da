//! 34: too many segments retransmitted.

use std::{cmp::Reverse, collections::BTreeMap};

use model::{Confidence, Severity};

use crate::{
    Case, Rule,
    rule::{Draft, Gain, Judgement, Missing, clear, need, settle},
    sockets, text,
};

/// Catalogue number 34. It shows that segments are lost, not where: examine the path before
/// changing settings.
pub static RULE: Rule = Rule {
    id: "retransmits",
    number: 34,
    title: "many segments are retransmitted",
    needs: &["RetransSegs and OutSegs over a window, at least 1,000 segments sent"],
    explained_by: &[
        "cloud_allowance",
        "link_faults",
        "fec_errors",
        "ring_too_small",
        "qdisc_drops",
        "backlog_drops",
        "conntrack_filling",
        "mtu_mismatch",
        "sack_timestamps_off",
    ],
    judge,
};

/// Share of segments retransmitted from which it is a finding.
const MANY: f64 = 0.01;
/// Segments below which a share means nothing.
const LEAST: u64 = 1_000;

fn judge(case: &Case<'_>) -> Vec<Judgement> {
    vec![settle("", one(case))]
}

fn one(case: &Case<'_>) -> Result<Judgement, Missing> {
    let resent = case.protocol("Tcp.RetransSegs")?;
    let sent = case.protocol("Tcp.OutSegs")?;
    if sent < LEAST {
        return Err(Missing(format!(
            "share of segments retransmitted: too few segments, {} sent {} (at least {} needed)",
            text::count(sent),
            case.over(),
            text::count(LEAST)
        )));
    }
    let share = resent as f64 / sent as f64;
    if share <= MANY {
        let text = format!(
            "{} of {} segments retransmitted ({})",
            text::count(resent),
            text::count(sent),
            text::percent(share)
        );
        return clear(text, [&case.protocol("Tcp.RetransSegs"), &case.protocol("Tcp.OutSegs")]);
    }
    let mut draft = Draft::new(
        "TCP",
        format!("{} of TCP segments are retransmitted", text::percent(share)),
    )
    .weigh(
        Severity::Warning,
        if sent >= 10 * LEAST { Confidence::High } else { Confidence::Medium },
    )
    .explain(
        "Segments or their acknowledgements are lost on this host, at the peer or on the path. Find where \
             before changing anything: drops on this host are other findings; else look at the \
             path to the peer.",
    )
    .gain(Gain::Improves, "congestion windows stay open")
    .show(format!("RetransSegs {}", case.over()), text::count(resent), "/proc/net/snmp")
    .show(format!("OutSegs {}", case.over()), text::count(sent), "/proc/net/snmp");
    for name in ["TCPTimeouts", "TCPLostRetransmit"] {
        if let Ok(n) = case.protocol(&format!("TcpExt.{name}")) {
            draft =
                draft.show(format!("{name} {}", case.over()), text::count(n), "/proc/net/netstat");
        }
    }
    Ok(peers(case, draft)?.found())
}

const SHOWN: usize = 4;

/// What was sent to one peer.
#[derive(Default)]
struct Peer {
    resent: u64,
    sent: u64,
    connections: usize,
    owners: Vec<String>,
}

/// Names the peers with the most retransmits.
fn peers(case: &Case<'_>, mut draft: Draft) -> Result<Draft, Missing> {
    let connections = match need("connections", &case.samples()?.connections) {
        Ok(all) => all,
        Err(Missing(why)) => return Ok(draft.add(&format!("Which peers is not known: {why}."))),
    };
    let mut by_peer: BTreeMap<String, Peer> = BTreeMap::new();
    for c in connections {
        let (Some(resent), Some(sent)) = (c.retransmits.get(), c.segments_out.get()) else {
            continue;
        };
        let name = c.remote.rsplit_once(':').map_or(c.remote.as_str(), |(host, _)| host);
        let peer = by_peer.entry(name.to_owned()).or_default();
        peer.resent += resent;
        peer.sent += sent;
        peer.connections += 1;
        let owner = sockets::owners(&c.owners);
        if resent > 0 && !peer.owners.contains(&owner) {
            peer.owners.push(owner);
        }
    }
    let mut losing: Vec<(&String, &Peer)> = by_peer.iter().filter(|p| p.1.resent > 0).collect();
    losing.sort_by_key(|p| Reverse(p.1.resent));
    for (name, p) in losing.iter().take(SHOWN) {
        let owners = p.owners.iter().take(3).cloned().collect::<Vec<_>>().join(", ");
        draft = draft.show(
            format!("retransmitted to {name}, {owners}"),
            format!(
                "{} of {} segments, {}",
                text::count(p.resent),
                text::count(p.sent),
                text::plural(p.connections, "connection")
            ),
            "tcp_info by sock_diag (ss -ti)",
        );
    }
    let all: u64 = losing.iter().map(|p| p.1.resent).sum();
    Ok(match losing.first() {
        None => draft.add(
            "Which peers is not known: none of the connections that are open at the samples sent \
             anything again.",
        ),
        Some((name, p)) if p.resent * 5 >= all * 4 && by_peer.len() > 1 => {
            draft.add(&format!("Nearly all of it goes to {name}: look at the path to it."))
        }
        Some(_) => draft,
    })
}
