//! 44: pause frames hold a sender back.

use model::{Confidence, Severity, nic::Nic};

use crate::{
    Case, Rule,
    driver_counters::{self, Grown, Meaning},
    knob::advice,
    queues, rate,
    rule::{Draft, Gain, Judgement, Missing, clear, need},
    text,
};

/// Catalogue number 44. Whoever sends pause frames cannot take what comes in.
pub static RULE: Rule = Rule {
    id: "pause_storm",
    number: 44,
    title: "pause frames hold a sender back",
    needs: &[
        "the driver's counters of pause frames or pause time over a window",
        "the link's speed",
    ],
    explained_by: &[],
    judge,
};

/// Longest time for which one frame holds the sender, in bits of the link: 65,535 quanta of 512 bits (IEEE
/// 802.3, annex 31B). Drivers ask for that much (`intel/ixgbe/ixgbe_type.h`, `IXGBE_DEFAULT_FCPAUSE`).
const MOST_BITS: f64 = 65_535.0 * 512.0;
/// Share of the window that warns, and that is information. Our proposal.
const WARNS: f64 = 0.10;
const NOTED: f64 = 0.01;
/// Share that frames alone must make up if each held for the longest time: most are ended sooner by
/// another frame. Our proposal.
const BY_FRAMES: f64 = 0.50;
/// Drivers of virtual NICs, which have no pause frames.
const VIRTUAL: [&str; 8] =
    ["virtio_net", "vmxnet3", "ena", "gve", "gvnic", "hv_netvsc", "vif", "xen_netfront"];

/// One direction of pause frames.
struct Direction {
    time: Meaning,
    frames: Meaning,
    received: bool,
}

const DIRECTIONS: [Direction; 2] = [
    Direction { time: Meaning::PauseReceivedTime, frames: Meaning::PauseReceived, received: true },
    Direction { time: Meaning::PauseSentTime, frames: Meaning::PauseSent, received: false },
];

fn judge(case: &Case<'_>) -> Vec<Judgement> {
    queues::each_physical(case, |nic| one(case, nic))
}

fn one(case: &Case<'_>, nic: &Nic) -> Result<Judgement, Missing> {
    let name = &nic.name;
    let driver = need(&format!("driver of {name}"), &nic.driver)?.as_str();
    if VIRTUAL.contains(&driver) {
        return clear(format!("{name}: driver {driver} has no pause frames"), [&nic.driver]);
    }
    let (mut looked, mut least, mut worst) = (0, Ok(()), None);
    for direction in &DIRECTIONS {
        let times = driver_counters::grown(case, nic, direction.time)?;
        let frames = driver_counters::grown(case, nic, direction.frames)?;
        looked += times.len() + frames.len();
        match held(case, nic, &times, &frames) {
            Ok(Some(found))
                if worst.as_ref().is_none_or(|w: &(Held, _)| found.share > w.0.share) =>
            {
                worst = Some((found, (direction, times, frames)));
            }
            Ok(_) => {}
            Err(missing) => least = Err(missing),
        }
    }
    if looked == 0 {
        return Err(Missing(format!(
            "counters of {name}: driver {driver} has none that is known to mean pause frames"
        )));
    }
    match worst {
        Some((held, (direction, times, frames))) => {
            Ok(found(case, nic, &held, direction, times.iter().chain(&frames)))
        }
        None => {
            let text = format!("{name}: no sender held back by pause frames {}", case.over());
            clear(text, [&least])
        }
    }
}

/// For how much of the window pause frames held a sender.
struct Held {
    share: f64,
    /// The driver measured it; else it is the longest that so many frames can make.
    measured: bool,
    /// It is of one priority (PFC), not of the whole link.
    priority: bool,
    confidence: Confidence,
}

/// `None`: not long enough to matter.
fn held(
    case: &Case<'_>,
    nic: &Nic,
    times: &[Grown],
    frames: &[Grown],
) -> Result<Option<Held>, Missing> {
    let window = case.window_s()?;
    if let Some(longest) = times.first() {
        let share = (longest.count as f64 / 1e6 / window).min(1.0);
        let priority = longest.name.contains("prio");
        let held = Held { share, measured: true, priority, confidence: Confidence::High };
        return Ok((share >= NOTED).then_some(held));
    }
    let Some(sure) = frames.first().and_then(|g| rate::sustained(g.count, window)) else {
        return Ok(None);
    };
    let speed = need(&format!("speed of {}", nic.name), &nic.speed_bps)?.0;
    let count = frames.first().map_or(0, |g| g.count);
    let share = (count as f64 * MOST_BITS / speed.max(1) as f64 / window).min(1.0);
    let confidence = sure.min(Confidence::Medium);
    let held = Held { share, measured: false, priority: false, confidence };
    Ok((share >= BY_FRAMES).then_some(held))
}

fn found<'a>(
    case: &Case<'_>,
    nic: &Nic,
    held: &Held,
    direction: &Direction,
    counters: impl Iterator<Item = &'a Grown>,
) -> Judgement {
    let name = &nic.name;
    let share = text::percent(held.share);
    let at_most = if held.measured { "" } else { "up to " };
    // By frames alone the share is an upper bound.
    let warns = held.measured && held.share >= WARNS;
    let severity = if warns { Severity::Warning } else { Severity::Info };
    let of = if held.priority { "one priority of " } else { "" };
    let (title, why) = match direction.received {
        true => (
            format!("pause frames kept {of}{name} from sending {at_most}{share} of the time"),
            if held.priority {
                "The other end of the link, mostly a switch, could not take what this host sends in one \
                 priority (PFC), and asked it to wait. Traffic of other priorities does not wait."
            } else {
                "The other end of the link, mostly a switch, could not take what this host sends, and \
                 asked it to wait. Everything on this link waits, whichever flow is too fast."
            },
        ),
        false => (
            format!("{of}{name} held the other end of its link back {at_most}{share} of the time"),
            "This host could not take what comes in fast enough, and asked the switch to wait. That slows \
             down other hosts of the switch too. Full CPUs, few queues, small rings and a slow PCIe link \
             are causes.",
        ),
    };
    let mut draft = Draft::new(name, title)
        .weigh(severity, held.confidence)
        .explain(why)
        .gain(Gain::Unblocks, "the link carries what its speed allows");
    if !held.measured {
        draft = draft.add(
            "This driver counts frames and no time: so many frames hold the sender at most that long, and a \
             frame may be ended sooner by the next.",
        );
    }
    for g in counters.filter(|g| g.count > 0) {
        let unit = if g.name.ends_with("_duration") { " µs" } else { "" };
        draft = draft.show(
            format!("{} {}", g.name, case.over()),
            format!("{}{unit}", text::count(g.count)),
            &g.source,
        );
    }
    if let Some(speed) = nic.speed_bps.known().filter(|_| !held.measured) {
        draft = draft.show(
            format!("speed of {name}"),
            speed.to_string(),
            format!("/sys/class/net/{name}/speed"),
        );
    }
    if let Some(pause) = nic.pause.known() {
        let word = |on: bool| if on { "on" } else { "off" };
        draft = draft.show(
            format!("pause frames of {name}"),
            format!("received {}, sent {}", word(pause.rx), word(pause.tx)),
            format!("ethtool -a {name}"),
        );
    }
    let side = if direction.received { "rx" } else { "tx" };
    draft = draft.change(advice(
        "as it is",
        if direction.received {
            "what the switch port cannot drain: its speed, its other senders"
        } else {
            "a host that keeps up; else no pause frames sent, and drops instead"
        },
        &match held.priority {
            true => format!("ethtool -S {name} | grep -i pause; dcb pfc show dev {name}"),
            false => {
                format!("ethtool -S {name} | grep -i -e pause -e xo; ethtool -A {name} {side} off")
            }
        },
        "without pause frames the side that cannot keep up drops packets; the link may reset",
    ));
    // A held sender fills its queues; an overrun receiver is itself a symptom.
    let causes = direction.received && warns && !held.priority;
    if causes { draft.on_nic(name) } else { draft.alone() }.found()
}
