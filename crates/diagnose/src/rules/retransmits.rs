//! 34: too many segments sent again.

use model::{Confidence, Severity};

use crate::{
    Case, Rule,
    rule::{Draft, Gain, Judgement, Missing, settle},
    text,
};

/// Catalogue number 34. Says that segments are lost, not where: the path is to be looked at
/// before any setting.
pub static RULE: Rule = Rule {
    id: "retransmits",
    number: 34,
    title: "many segments are sent again",
    needs: &["RetransSegs and OutSegs over a window, at least 1,000 segments sent"],
    explained_by: &[
        "cloud_allowance",
        "ring_too_small",
        "qdisc_drops",
        "backlog_drops",
        "conntrack_filling",
        "mtu_mismatch",
        "sack_timestamps_off",
    ],
    judge,
};

/// Share of segments.
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
            "share of segments sent again: too few segments, {} sent {} (at least {} needed)",
            text::count(sent),
            case.over(),
            text::count(LEAST)
        )));
    }
    let share = resent as f64 / sent as f64;
    if share <= MANY {
        return Ok(Judgement::Clear(format!(
            "{} of {} segments sent again ({})",
            text::count(resent),
            text::count(sent),
            text::percent(share)
        )));
    }
    let mut draft = Draft::new(
        "TCP",
        format!("{} of TCP segments are sent again", text::percent(share)),
    )
    .weigh(
        Severity::Warning,
        if sent >= 10 * LEAST { Confidence::High } else { Confidence::Medium },
    )
    .explain(
        "Segments or their acknowledgements are lost, here, at the peer or between. Find where \
             before changing anything: drops on this host are other findings; else look at the \
             path and the peer (ss -ti shows which connections).",
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
    Ok(draft.found())
}
