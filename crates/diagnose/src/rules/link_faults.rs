//! 41: a link that damages frames, loses its carrier, or runs in half duplex.

use model::{Confidence, Severity, kernel_log::NicLogKind, nic::Nic};

use crate::{
    Case, Rule,
    case::delta,
    knob::advice,
    queues,
    rate::sustained,
    rule::{Draft, Gain, Judgement, Missing, clear, need, settle},
    rules::nic_resets,
    text,
};

/// Catalogue number 41. A healthy link has none of these; no setting repairs the first two.
pub static RULE: Rule = Rule {
    id: "link_faults",
    number: 41,
    title: "the link damages frames, loses its carrier, or runs in half duplex",
    needs: &[
        "error counters and carrier changes of the NIC over a window",
        "duplex",
        "the kernel's log, where there is one",
    ],
    explained_by: &[],
    judge,
};

/// What the NIC counts of frames that the link damaged (`struct rtnl_link_stats64`).
const DAMAGE: [(&str, &str); 3] = [
    ("rx_crc_errors", "frames with a wrong checksum"),
    ("rx_frame_errors", "frames that end within a byte"),
    ("tx_carrier_errors", "frames sent while the carrier was lost"),
];
/// Share of damaged frames that is critical: the alert NodeNetworkReceiveErrs of node_exporter.
const MANY: f64 = 0.01;
/// Carrier changes since boot that are more than a host's start and its cabling make. Our proposal.
const CHANGES_SINCE_BOOT: u64 = 10;

fn judge(case: &Case<'_>) -> Vec<Judgement> {
    let mut all = queues::each_physical(case, |nic| one(case, nic));
    // A link that is down at the end of the window, and was not all the time.
    let down =
        case.facts.nics.iter().filter(|n| n.kind == "physical" && n.carrier.get() == Some(false));
    for nic in down {
        if changes(case, nic).is_ok_and(|n| n > 0) && !case.since_boot() {
            all.push(settle(&nic.name, one(case, nic)));
        }
    }
    all
}

/// Carrier changes: a flap is two.
fn changes(case: &Case<'_>, nic: &Nic) -> Result<u64, Missing> {
    let sample = case.nic_sample(&nic.name)?;
    delta(&format!("/sys/class/net/{}/carrier_changes", nic.name), Some(&sample.carrier_changes))
}

fn one(case: &Case<'_>, nic: &Nic) -> Result<Judgement, Missing> {
    let name = &nic.name;
    let counted = DAMAGE.map(|(counter, _)| case.nic_statistic(name, counter));
    let damaged: u64 = counted.iter().flatten().sum();
    // Without the number of packets there is no share.
    let packets = |counter| case.nic_statistic(name, counter);
    let frames =
        packets("rx_packets").and_then(|rx| Ok(damaged + rx + packets("tx_packets")?)).ok();
    let many = frames.is_some_and(|all| damaged as f64 / all.max(1) as f64 >= MANY);
    let damage = sustained(damaged, case.window_s()?);
    let changes = changes(case, nic);
    let least = if case.since_boot() { CHANGES_SINCE_BOOT } else { 1 };
    let flaps = changes.clone().ok().filter(|n| *n >= least);
    let logged = nic_resets::events(case, nic).unwrap_or_default();
    let logged = logged.into_iter().find(|e| e.kind == NicLogKind::LinkDown);
    // An archive may have the log and no counter: each loss is two changes.
    let from_log = logged.filter(|e| changes.is_err() && e.count * 2 >= CHANGES_SINCE_BOOT);
    let flaps = flaps.or(from_log.map(|e| e.count * 2));
    let half = nic.duplex.get().is_some_and(|d| d == "half");
    if damage.is_none() && flaps.is_none() && !half {
        let text = format!(
            "{name}: {} damaged and {} {}",
            text::plural(number(damaged), "frame"),
            text::plural(number(changes.clone().unwrap_or(0)), "carrier change"),
            case.over()
        );
        let [crc, frame, carrier] = &counted;
        // The NICs of a guest, also those passed through in part, mostly have no duplex.
        let in_guest = case.facts.host.hypervisor.known().is_some_and(|h| h != "none");
        let duplex = match in_guest {
            true => Ok(()),
            false => need(&format!("duplex of {name}"), &nic.duplex).map(drop),
        };
        return clear(text, [crc, frame, carrier, &changes, &duplex]);
    }

    let title = match (flaps, damage) {
        (Some(n), _) => {
            format!("{name}'s link changed its carrier {} {}", text::times(n), case.over())
        }
        (_, Some(_)) => {
            let of = frames.map(|all| format!(" of {}", text::count(all))).unwrap_or_default();
            format!("{name}'s link damaged {}{of} frames", text::count(damaged))
        }
        _ => format!("{name} runs in half duplex"),
    };
    let (severity, confidence) = match (damage, flaps) {
        (Some(sure), _) if sure != Confidence::Low && many => (Severity::Critical, sure),
        (_, Some(_)) if case.since_boot() => (Severity::Info, Confidence::Low),
        (_, Some(_)) => (Severity::Warning, Confidence::High),
        (Some(Confidence::Low), _) if !half => (Severity::Info, Confidence::Low),
        (Some(sure), _) if !half => (Severity::Warning, sure),
        _ => (Severity::Warning, Confidence::High),
    };
    let mut draft = Draft::new(name, title)
        .weigh(severity, confidence)
        .gain(Gain::Unblocks, "no frames lost on the link, no pauses while it comes up again");
    if let Some(n) = flaps {
        draft = draft
            .add("While the carrier is away nothing is sent or received, for seconds at a time.");
        if from_log.is_none() {
            draft = draft.show(
                format!("carrier changes of {name} {}", case.over()),
                text::count(n),
                format!("/sys/class/net/{name}/carrier_changes"),
            );
        }
    }
    if let Some(event) = logged {
        draft = nic_resets::show(draft, event);
    }
    if damaged > 0 {
        draft = draft.add("Damaged frames are dropped, and TCP takes each for congestion.");
    }
    for ((counter, what), count) in DAMAGE.iter().zip(&counted) {
        if let Ok(count @ 1..) = count {
            draft = draft.show(
                format!("{what} {}", case.over()),
                text::count(*count),
                format!("/sys/class/net/{name}/statistics/{counter}"),
            );
        }
    }
    if half {
        let speed = need("speed", &nic.speed_bps).map_or("unknown speed".into(), |s| s.to_string());
        draft = draft
            .add("In half duplex either side may send at a time; the other's frames collide.")
            .show(
                format!("duplex of {name}"),
                format!("half, {speed}"),
                format!("/sys/class/net/{name}/duplex"),
            );
        if let Ok(count) = case.nic_statistic(name, "collisions") {
            draft = draft.show(
                format!("collisions {}", case.over()),
                text::count(count),
                format!("/sys/class/net/{name}/statistics/collisions"),
            );
        }
    }
    let remedy = match half {
        true => advice(
            "half duplex",
            "negotiated full duplex at both ends",
            &format!("ethtool -s {name} autoneg on"),
            "the link goes down and comes up again",
        ),
        false => advice(
            "as it is",
            "another cable or transceiver; then the port at the other end",
            &format!(
                "dmesg | grep {name}; ethtool -m {name}; ethtool -S {name} | grep -i -e crc -e err"
            ),
            "the link goes down while it is replaced",
        ),
    };
    Ok(draft.change(remedy).on_nic(name).found())
}

fn number(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}
