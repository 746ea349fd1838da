//! 50: blocks that forward error correction could not repair.

use model::{BitsPerSec, Confidence, Severity, nic::Nic};

use crate::{
    Case, Rule,
    case::delta,
    driver_counters::{self, Meaning},
    knob::advice,
    queues,
    rate::sustained,
    rule::{Draft, Gain, Judgement, Missing, clear, need},
    text,
};

/// Catalogue number 50. A repaired block is ordinary at 25 Gbit/s and more; one that could not be
/// repaired loses all its frames.
pub static RULE: Rule = Rule {
    id: "fec_errors",
    number: 50,
    title: "forward error correction cannot repair the link's errors, or is off",
    needs: &["blocks of forward error correction over a window (Linux 5.13)", "the link's speed"],
    explained_by: &[],
    judge,
};

/// The lowest speed whose standards count on forward error correction for ordinary cables: IEEE
/// 802.3by, clauses 74 and 108.
const NEEDS_FEC: BitsPerSec = BitsPerSec(25_000_000_000);

/// One count of blocks, and where it was read.
struct Blocks {
    count: u64,
    what: String,
    source: String,
}

fn judge(case: &Case<'_>) -> Vec<Judgement> {
    queues::each_physical(case, |nic| one(case, nic))
}

fn one(case: &Case<'_>, nic: &Nic) -> Result<Judgement, Missing> {
    let name = &nic.name;
    if let Some(clear) = queues::emulated(nic) {
        return clear;
    }
    let without = is_off(nic);
    let lost = blocks(case, nic, Meaning::FecLost, "uncorrectable_blocks");
    let damaged = case.nic_statistic(name, "rx_crc_errors");
    let window = case.window_s()?;
    let sure = |count: &Result<u64, Missing>| sustained(*count.as_ref().ok()?, window);
    if let (true, Some(confidence)) = (without, sure(&damaged)) {
        return Ok(off(case, nic, damaged?, confidence));
    }
    match &lost {
        Ok(blocks) => match sustained(blocks.count, window) {
            Some(confidence) => Ok(found(case, nic, blocks, confidence)),
            None => passed(case, nic, blocks, &damaged),
        },
        Err(missing) => {
            if without {
                let text = format!("{name}: no forward error correction, and no damaged frames");
                return clear(text, [&damaged]);
            }
            let slow = nic.speed_bps.known().is_some_and(|speed| *speed < NEEDS_FEC);
            if slow {
                let text =
                    format!("{name}: a link of this speed needs no forward error correction");
                return clear(text, [&nic.speed_bps]);
            }
            let host = &case.facts.host.hypervisor;
            if host.known().is_some_and(|h| h != "none") {
                return clear(
                    format!("{name}: a NIC of a guest, whose link is its host's"),
                    [host],
                );
            }
            Err(missing.clone())
        }
    }
}

/// Few blocks were lost. Where frames were damaged, whether correction is off decides.
fn passed(
    case: &Case<'_>,
    nic: &Nic,
    lost: &Blocks,
    damaged: &Result<u64, Missing>,
) -> Result<Judgement, Missing> {
    let count = usize::try_from(lost.count).unwrap_or(usize::MAX);
    let text = format!(
        "{}: {} that could not be repaired {}",
        nic.name,
        text::plural(count, "block"),
        case.over()
    );
    let is_sound = sustained(*damaged.as_ref().unwrap_or(&u64::MAX), case.window_s()?).is_none();
    let off = match is_sound {
        true => Ok(()),
        false => encoding(nic).and_then(|_| need("speed", &nic.speed_bps).map(drop)),
    };
    clear(text, [&off])
}

/// The encoding in use.
fn encoding(nic: &Nic) -> Result<&str, Missing> {
    let what = format!("forward error correction of {}", nic.name);
    Ok(need(&what, &need(&what, &nic.fec)?.active)?)
}

/// Whether a fast link runs without forward error correction.
fn is_off(nic: &Nic) -> bool {
    let fast = nic.speed_bps.known().is_some_and(|speed| *speed >= NEEDS_FEC);
    fast && encoding(nic).is_ok_and(|name| name == "off")
}

/// Blocks by the kernel's own counter, else by the driver's.
fn blocks(case: &Case<'_>, nic: &Nic, meaning: Meaning, counter: &str) -> Result<Blocks, Missing> {
    let name = &nic.name;
    let source = format!("ethtool -I --show-fec {name}");
    let kernel = || {
        let all = need(&source, &case.nic_sample(name)?.fec)?;
        delta(&format!("{source}: {counter}"), all.get(counter))
    };
    match kernel() {
        Ok(count) => Ok(Blocks { count, what: counter.to_owned(), source }),
        Err(missing) => {
            let own = driver_counters::grown(case, nic, meaning).unwrap_or_default();
            let most = own.into_iter().next().ok_or(missing)?;
            Ok(Blocks { count: most.count, what: most.name, source: most.source })
        }
    }
}

fn found(case: &Case<'_>, nic: &Nic, lost: &Blocks, confidence: Confidence) -> Judgement {
    let name = &nic.name;
    let low = case.since_boot() || confidence == Confidence::Low;
    let (severity, confidence) = match low {
        true => (Severity::Info, Confidence::Low),
        false => (Severity::Warning, confidence),
    };
    let count = text::count(lost.count);
    let mut draft = Draft::new(
        name,
        format!("{name}'s link lost {count} blocks that could not be repaired {}", case.over()),
    )
    .weigh(severity, confidence)
    .explain(
        "Forward error correction repairs the errors of a fast link; these blocks had too many, and all \
         their frames are lost. TCP takes that for congestion.",
    )
    .gain(Gain::Unblocks, "no frames lost on the link")
    .show(format!("{} {}", lost.what, case.over()), count, &lost.source);
    if let Ok(repaired) = blocks(case, nic, Meaning::FecRepaired, "corrected_blocks") {
        draft = draft.show(
            format!("{} {}", repaired.what, case.over()),
            text::count(repaired.count),
            &repaired.source,
        );
    }
    draft = in_use(draft, nic);
    draft
        .change(advice(
            "as it is",
            "clean or other connectors, another cable or transceiver; then the port at the other end",
            &format!("ethtool -I --show-fec {name}; ethtool -m {name}"),
            "the link goes down while it is replaced",
        ))
        .on_nic(name)
        .found()
}

fn off(case: &Case<'_>, nic: &Nic, damaged: u64, confidence: Confidence) -> Judgement {
    let name = &nic.name;
    let severity = if case.since_boot() { Severity::Info } else { Severity::Warning };
    let speed = nic.speed_bps.known().map_or("unknown speed".into(), ToString::to_string);
    let draft = Draft::new(
        name,
        format!("{name} runs at {speed} without forward error correction and damages frames"),
    )
    .weigh(severity, confidence.min(Confidence::Medium))
    .explain(
        "A link of this speed has bit errors that forward error correction is meant to repair; short \
         cables alone do without it.",
    )
    .gain(Gain::Unblocks, "no frames lost on the link")
    .show(
        format!("frames with a wrong checksum {}", case.over()),
        text::count(damaged),
        format!("/sys/class/net/{name}/statistics/rx_crc_errors"),
    );
    in_use(draft, nic)
        .change(advice(
            "off",
            "auto, at both ends",
            &format!("ethtool --set-fec {name} encoding auto"),
            "the link goes down, and stays down if the other end's encoding differs",
        ))
        .on_nic(name)
        .found()
}

/// The encoding in use, as evidence.
fn in_use(draft: Draft, nic: &Nic) -> Draft {
    let Ok(active) = encoding(nic) else { return draft };
    let source = format!("ethtool --show-fec {}", nic.name);
    draft.show(format!("forward error correction of {}", nic.name), active, source)
}
