//! 49: a link that runs slower than the NIC can.

use model::{
    BitsPerSec, Confidence, Severity,
    link::{self, LinkModes},
    nic::Nic,
};

use crate::{
    Case, Rule,
    knob::advice,
    queues, rate,
    rule::{Draft, Gain, Judgement, Missing, clear, need},
    text,
};

/// Catalogue number 49. A speed that both ends offer and do not reach is a fault of the cable or of
/// a transceiver; else an end was told so, or can do no more.
pub static RULE: Rule = Rule {
    id: "link_below_capability",
    number: 49,
    title: "the link runs slower than the NIC can",
    needs: &["link modes of both ends (Linux 5.6)", "the link's speed"],
    explained_by: &[],
    judge,
};

/// Share of the link's speed from which traffic is limited by it. Our proposal, as of rule 27.
const NEAR_LIMIT: f64 = 0.80;

/// Why the link is not faster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// Both ends offer this speed.
    BothOffer(BitsPerSec),
    /// This end does not offer what it can; the other end's offer.
    NotOffered(Option<BitsPerSec>),
    /// The speed is fixed here.
    Fixed,
    /// The other end offers no more.
    OtherEnd,
    /// The driver does not say what the other end offers.
    Unknown,
}

impl Cause {
    fn of(modes: &LinkModes, speed: BitsPerSec) -> Self {
        let common = modes.highest_common().filter(|best| *best > speed);
        if modes.autoneg.get() == Some(false) {
            return Self::Fixed;
        }
        if let Some(best) = common {
            return Self::BothOffer(best);
        }
        if link::highest(&modes.advertised).is_none_or(|best| best <= speed) {
            let possible = |peer: &Vec<String>| {
                let both = modes.supported.iter().filter(|mode| peer.contains(mode));
                both.filter_map(|mode| link::mode_speed(mode)).max().filter(|best| *best > speed)
            };
            return Self::NotOffered(modes.peer.known().and_then(possible));
        }
        if modes.peer.is_known() { Self::OtherEnd } else { Self::Unknown }
    }

    fn text(self) -> &'static str {
        match self {
            Self::BothOffer(_) => {
                "Both ends offer the higher speed and did not reach it. A cable with a broken pair, one \
                 that is too long or too poor, or a bad transceiver makes them fall back."
            }
            Self::NotOffered(Some(_)) => {
                "This host does not offer the higher speed, which the other end does: somebody limited \
                 what it advertises."
            }
            Self::NotOffered(None) => {
                "This host does not offer what the NIC can: somebody limited what it advertises, or the \
                 driver does so for this port or transceiver."
            }
            Self::Fixed => "Negotiation is off: this host was told the speed.",
            Self::OtherEnd => "The other end offers no faster mode that this NIC has.",
            Self::Unknown => {
                "What the other end offers is not known: its port, or a transceiver of a lower speed, may \
                 be why."
            }
        }
    }
}

fn judge(case: &Case<'_>) -> Vec<Judgement> {
    queues::each_physical(case, |nic| one(case, nic))
}

fn one(case: &Case<'_>, nic: &Nic) -> Result<Judgement, Missing> {
    let name = &nic.name;
    if let Some(clear) = queues::emulated(nic) {
        return clear;
    }
    if !nic.link_modes.is_known() && in_guest(case) {
        let text = format!("{name}: a NIC of a guest, whose link is its host's");
        return clear(text, [&case.facts.host.hypervisor]);
    }
    let modes = need(&format!("link modes of {name}"), &nic.link_modes)?;
    let speed = *need(&format!("/sys/class/net/{name}/speed"), &nic.speed_bps)?;
    let most = link::highest(&modes.supported)
        .ok_or_else(|| Missing(format!("link modes of {name}: none with a speed")))?;
    if most <= speed {
        return clear(
            format!("{name}: {speed}, the highest speed that it supports"),
            [&nic.speed_bps],
        );
    }
    let cause = Cause::of(modes, speed);
    let traffic = rate::busier_way(case, name);
    let near_limit = traffic.is_some_and(|rate| rate > speed.0 as f64 * NEAR_LIMIT);
    let (severity, confidence) = match (cause, near_limit) {
        (Cause::BothOffer(_), true) => (Severity::Critical, Confidence::High),
        (_, true) => (Severity::Warning, Confidence::High),
        (Cause::BothOffer(_) | Cause::NotOffered(Some(_)), _) => {
            (Severity::Warning, Confidence::Medium)
        }
        (Cause::NotOffered(None) | Cause::Fixed | Cause::OtherEnd, _) => {
            (Severity::Info, Confidence::Medium)
        }
        (Cause::Unknown, _) => (Severity::Info, Confidence::Low),
    };
    let mut draft = Draft::new(name, title(name, speed, most, cause))
        .weigh(severity, confidence)
        .explain(cause.text())
        .gain(Gain::Unblocks, "the higher speed, where the traffic asks for it");
    draft = evidence(draft, nic, modes, speed, most);
    if let Some(rate) = traffic {
        draft = draft.show(
            format!("traffic in its busier direction {}", case.over()),
            format!(
                "{} ({} of the link)",
                BitsPerSec(rate as u64),
                text::percent(rate / speed.0.max(1) as f64)
            ),
            format!("/sys/class/net/{name}/statistics/{{rx,tx}}_bytes"),
        );
    }
    Ok(draft.change(remedy(name, speed, most, cause)).on_nic(name).found())
}

/// Whether a hypervisor gives this host its NICs.
fn in_guest(case: &Case<'_>) -> bool {
    case.facts.host.hypervisor.known().is_some_and(|h| h != "none")
}

fn title(name: &str, speed: BitsPerSec, most: BitsPerSec, cause: Cause) -> String {
    match cause {
        Cause::BothOffer(best) => {
            format!("{name}'s link runs at {speed} although both ends offer {best}")
        }
        Cause::NotOffered(Some(best)) => {
            format!("{name} offers no more than {speed}, its other end {best}")
        }
        _ => format!("{name}'s link runs at {speed}, the NIC supports {most}"),
    }
}

fn evidence(
    draft: Draft,
    nic: &Nic,
    modes: &LinkModes,
    speed: BitsPerSec,
    most: BitsPerSec,
) -> Draft {
    let name = &nic.name;
    let source = format!("ethtool {name}");
    let up_to = |list: &[String]| {
        link::highest(list)
            .map_or("no mode with a speed".to_owned(), |best| format!("up to {best}"))
    };
    let peer = match modes.peer.known() {
        Some(list) => up_to(list),
        None => "not known".to_owned(),
    };
    let negotiated = match modes.autoneg.get() {
        Some(true) => "negotiated",
        Some(false) => "fixed",
        None => "not known whether negotiated",
    };
    draft
        .show(
            format!("speed of {name}"),
            format!("{speed}, {negotiated}"),
            format!("/sys/class/net/{name}/speed"),
        )
        .show(format!("modes that {name} supports"), format!("up to {most}"), &source)
        .show(format!("modes that {name} offers"), up_to(&modes.advertised), &source)
        .show("modes that the other end offers", peer, &source)
}

fn remedy(name: &str, speed: BitsPerSec, most: BitsPerSec, cause: Cause) -> crate::rule::Proposal {
    let (old, most) = (speed.to_string(), most.to_string());
    match cause {
        Cause::BothOffer(best) => advice(
            &old,
            &format!("{best} over another cable or transceiver"),
            &format!("ethtool {name}; ethtool --cable-test {name}; dmesg | grep {name}"),
            "the link goes down while the cable is tested or replaced",
        ),
        Cause::NotOffered(_) | Cause::Fixed => advice(
            &old,
            &format!("{most}, if the other end has it"),
            &format!("ethtool -s {name} autoneg on"),
            "the link goes down and comes up again; it stays down if the other end's speed is fixed",
        ),
        Cause::OtherEnd | Cause::Unknown => advice(
            &old,
            &format!("{most} at a port and with a transceiver of that speed"),
            &format!("ethtool {name}; ethtool -m {name}"),
            "the link goes down while it is moved",
        ),
    }
}
