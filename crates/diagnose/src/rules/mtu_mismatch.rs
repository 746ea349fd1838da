//! 23: MTUs that conflict, on this host or along a path.

use model::{
    Confidence, Severity,
    drivers::Act,
    nic::{KindDetails, Nic, UNKNOWN_KIND},
};

use crate::{
    Case, Rule,
    knob::{self, change},
    queues,
    rule::{Draft, Gain, Judgement, Missing, clear, need, settle},
    text,
};

pub static RULE: Rule = Rule {
    id: "mtu_mismatch",
    number: 23,
    title: "an MTU black hole or mismatch",
    needs: &[
        "MTUs of bonds, bridges, VLANs, veth pairs and what belongs to them",
        "TCPMTUPFail and FragFails over a window",
    ],
    explained_by: &[],
    judge,
};

const PROBING: &str = "net.ipv4.tcp_mtu_probing";
/// The number of failures below which they are chance.
const FEW: u64 = 10;

fn judge(case: &Case<'_>) -> Vec<Judgement> {
    let joined = |n: &Nic| {
        // A known kind without such details is connected to nothing.
        let kinds = ["bond", "bridge", "vlan", "veth"];
        match n.details {
            KindDetails::Bond { .. }
            | KindDetails::Bridge { .. }
            | KindDetails::Vlan { .. }
            | KindDetails::Veth { .. } => Ok(true),
            // Without rtnetlink `virtual` may be any kind.
            _ if n.kind == UNKNOWN_KIND
                || kinds.contains(&n.kind.as_str())
                || (n.kind == "virtual" && !n.addresses.is_known()) =>
            {
                Err(Missing(format!("what {} is joined with: not reported", n.name)))
            }
            _ => Ok(false),
        }
    };
    let none = "no bond, bridge, VLAN or veth is up";
    let mut out = queues::each_nic(case, joined, none, |nic| one(case, nic));
    out.push(settle("paths", paths(case)));
    out
}

/// An interface with an MTU that must match this NIC's.
struct Partner {
    name: String,
    mtu: u32,
    source: String,
}

fn partner(case: &Case<'_>, name: &str) -> Result<Partner, Missing> {
    let source = format!("/sys/class/net/{name}/mtu");
    let nic = case.nic(name).ok_or_else(|| Missing(format!("{source}: {name} was not read")))?;
    Ok(Partner { name: name.into(), mtu: *need(&source, &nic.mtu)?, source })
}

fn partners(case: &Case<'_>, nic: &Nic) -> Result<Vec<Partner>, Missing> {
    match &nic.details {
        KindDetails::Bond { members, .. } => members.iter().map(|m| partner(case, m)).collect(),
        KindDetails::Bridge { ports, .. } => ports.iter().map(|p| partner(case, p)).collect(),
        KindDetails::Vlan { lower, .. } => {
            let lower = need(&format!("device below {}", nic.name), lower)?;
            Ok(vec![partner(case, lower)?])
        }
        KindDetails::Veth { peer, peer_mtu, .. } => {
            let mtu = *need(&format!("MTU of {}'s peer", nic.name), peer_mtu)?;
            let name = peer.get().unwrap_or_else(|| format!("peer of {}", nic.name));
            Ok(vec![Partner { name, mtu, source: "rtnetlink IFLA_MTU of the peer".into() }])
        }
        _ => Ok(vec![]),
    }
}

fn one(case: &Case<'_>, nic: &Nic) -> Result<Judgement, Missing> {
    let source = format!("/sys/class/net/{}/mtu", nic.name);
    let mtu = *need(&source, &nic.mtu)?;
    let all = partners(case, nic)?;
    let least = all.iter().map(|p| p.mtu).min().unwrap_or(mtu);
    // An upper device's MTU may be smaller than its carrier's. Pairs must agree, and so must a
    // bridge's ports; the bridge's own MTU may be smaller.
    let pair = matches!(nic.details, KindDetails::Veth { .. });
    let bridge = matches!(nic.details, KindDetails::Bridge { .. });
    let smallest = if pair { least.min(mtu) } else { least };
    let wrong: Vec<_> = all.iter().filter(|p| (bridge || pair) && p.mtu > smallest).collect();
    if mtu <= smallest && wrong.is_empty() {
        let text = format!("{}: MTU {mtu} fits {}", nic.name, text::plural(all.len(), "partner"));
        return clear(text, [&nic.mtu, &partners(case, nic)]);
    }
    let upper = if mtu > smallest { Some((nic.name.as_str(), mtu)) } else { None };
    let large: Vec<(&str, u32)> =
        upper.into_iter().chain(wrong.iter().map(|p| (p.name.as_str(), p.mtu))).collect();
    let names: Vec<String> = large.iter().map(|(n, m)| format!("{n} {m}")).collect();
    let mut draft = Draft::new(
        &nic.name,
        format!("MTUs at {} do not fit: {} above {smallest}", nic.name, names.join(", ")),
    )
    .weigh(case.setting_severity(), Confidence::Low)
    .explain(consequence(nic))
    .gain(Gain::Improves, "large packets get through; none vanish without an error")
    .show(format!("MTU of {}", nic.name), mtu.to_string(), &source)
    .on_nic(&nic.name);
    for p in &all {
        draft =
            draft.show(format!("MTU of {}", p.name), p.mtu.to_string(), &p.source).on_nic(&p.name);
    }
    if pair {
        draft = too_large_for_the_pair(case, nic, mtu == smallest, draft);
    }
    // The peer of a veth pair may be in another namespace, where this name means another interface.
    let here = |name: &&(&str, u32)| !pair || name.0 == nic.name;
    let changes = large.iter().filter(here).map(|(name, old)| {
        change(
            format!("nic.{name}.mtu"),
            old.to_string(),
            smallest.to_string(),
            format!(
                "{}to raise the smaller side instead, check the whole path first",
                case.nic(name)
                    .map(|nic| format!("{}; ", knob::impact(nic, Act::Mtu)))
                    .unwrap_or_default()
            ),
        )
    });
    let changes: Vec<_> = changes.collect();
    let note = if changes.is_empty() { "The end to change is in the other namespace." } else { "" };
    Ok(draft.add(note).changes(changes).found())
}

/// Both ends of a veth pair count drops for size, among other drops.
fn too_large_for_the_pair(case: &Case<'_>, nic: &Nic, smaller: bool, draft: Draft) -> Draft {
    let counter = if smaller { "rx_dropped" } else { "tx_dropped" };
    match case.nic_statistic(&nic.name, counter) {
        Ok(n) if n > 0 => draft.weigh(Severity::Warning, Confidence::Medium).show(
            format!("{counter} of {} {}", nic.name, case.over()),
            text::count(n),
            format!("/sys/class/net/{}/statistics/{counter}", nic.name),
        ),
        _ => draft,
    }
}

fn consequence(nic: &Nic) -> &'static str {
    match nic.details {
        KindDetails::Bond { .. } => {
            "A member that carries less than the bond drops what is larger."
        }
        KindDetails::Bridge { .. } => {
            "A bridge does not fragment: a frame larger than the port it leaves by is dropped, \
             without a message to the sender and without a counter."
        }
        KindDetails::Vlan { .. } => "The device below does not carry the VLAN's largest packets.",
        _ => "The receiving end of a veth pair drops what is larger than its own MTU.",
    }
}

/// Counters about paths beyond this host.
fn paths(case: &Case<'_>) -> Result<Judgement, Missing> {
    let probes = case.protocol("TcpExt.TCPMTUPFail")?;
    let v4 = case.protocol("Ip.FragFails")?;
    let v6 = case.protocol6("Ip6.FragFails");
    let fragments = v4 + v6.as_ref().map_or(0, |n| n.unwrap_or(0));
    if probes + fragments == 0 {
        let text = format!("no TCPMTUPFail and no FragFails {}", case.over());
        return clear(text, [&case.protocol("TcpExt.TCPMTUPFail"), &v6]);
    }
    let severity = if fragments >= FEW { Severity::Warning } else { Severity::Info };
    let mut draft = Draft::new("paths", "packets too large for a path")
        .weigh(severity, Confidence::Medium)
        .explain(
            "FragFails counts packets that needed fragmenting and could not be: this host sends \
             or forwards onto a smaller MTU. TCPMTUPFail counts probes that did not arrive: a path \
             carries less than the MTU here.",
        )
        .gain(Gain::Improves, "connections over those paths stop stalling on large packets")
        .show(
            format!("FragFails {} (IPv4 + IPv6)", case.over()),
            text::count(fragments),
            "/proc/net/snmp, /proc/net/snmp6",
        )
        .show(format!("TCPMTUPFail {}", case.over()), text::count(probes), "/proc/net/netstat")
        .show_sysctl(case, PROBING);
    if case.sysctl_number(PROBING).is_ok_and(|n| n == 0) {
        draft = draft.change(knob::sysctl(
            case,
            PROBING,
            "1",
            "low: probes only after a black hole is suspected; finding the wrong MTU is the cure",
        ));
    }
    Ok(draft.found())
}
