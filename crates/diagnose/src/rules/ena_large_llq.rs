//! 54: the size of an ENA NIC's low-latency queue entries (LLQ) does not suit what it sends.

use model::{
    Confidence, Severity,
    kernel_log::{NicLogEvent, NicLogKind},
    nic::Nic,
};

use crate::{
    Case, Rule,
    driver_counters::{self, Meaning},
    knob::advice,
    queues,
    rule::{Draft, Gain, Judgement, Missing, clear, need},
    rules::nic_resets,
    text,
};

/// Catalogue number 54. Large entries take headers of 224 bytes instead of 96, for half the ring. Both
/// sizes can be wrong: a ring that is always full, or packets that the device drops for their headers.
///
/// **Source**: the ENA driver's README ("Large Low-Latency Queue"); AWS's guide, "Sub-optimal
/// configuration notifications" (`troubleshooting-ena`), for codes 1 and 3.
pub static RULE: Rule = Rule {
    id: "ena_large_llq",
    number: 54,
    title: "an ENA NIC's LLQ entries are too large or too small for what it sends",
    needs: &[
        "the length of LLQ entries (TX push buff len of ethtool -g, Linux 6.4), or the transmit ring's limit",
        "ethtool -S of the ena NIC over a window",
        "the kernel's log, for the device's own notifications",
    ],
    explained_by: &["cloud_allowance"],
    judge,
};

const DRIVER: &str = "ena";
/// Header bytes of a regular and of a large entry.
const REGULAR: u32 = 96;
const LARGE: u32 = 224;
/// The limit of a transmit ring of large entries on the instances that have no room for more.
const HALVED: u32 = 512;
/// ENA Express by bits: 1 for TCP, 2 for UDP, which counts with the first only.
const EXPRESS: &str = "ena_srd_mode";
/// Stops a second of a transmit queue that are a finding, and those that warn, as in rule 43.
const STOPS: f64 = 100.0;
const MANY_STOPS: f64 = 1_000.0;

fn judge(case: &Case<'_>) -> Vec<Judgement> {
    queues::each_physical(case, |nic| one(case, nic))
}

fn one(case: &Case<'_>, nic: &Nic) -> Result<Judgement, Missing> {
    let name = &nic.name;
    let driver = need(&format!("driver of {name}"), &nic.driver)?;
    if driver != DRIVER {
        return clear(format!("{name}: driver {driver} has no LLQ"), [&nic.driver]);
    }
    let log = events(case, nic);
    let logged = |kind| log.iter().flatten().copied().find(|e| e.kind == kind);
    let rings = need(&format!("ethtool -g {name}"), &nic.rings);
    let entry = rings.clone().ok().and_then(|r| r.tx_push_buffer_bytes.get());
    // A size that was changed since then answers the device.
    if let Some(event) = logged(NicLogKind::EnaHeaderTooLong).filter(|_| entry != Some(LARGE)) {
        return Ok(too_small(case, nic, event, entry));
    }
    let limit = rings?.max_tx;
    if !entry.map_or(limit <= HALVED, |bytes| bytes > REGULAR) {
        let what = match entry {
            Some(bytes) => format!("LLQ entries take headers of {bytes} bytes"),
            None => format!("the transmit ring may have {} entries", text::count(limit.into())),
        };
        return clear(format!("{name}: {what}"), [&nic.rings, &log]);
    }
    let event = log.clone().map(|_| logged(NicLogKind::EnaLargeEntries));
    too_large(case, nic, entry, limit, &event)
}

/// The log's events of the NIC. Lines by address may be its own where its address is not known.
fn events<'c>(case: &Case<'c>, nic: &Nic) -> Result<Vec<&'c NicLogEvent>, Missing> {
    let own = nic_resets::events(case, nic)?;
    let ours = |e: &NicLogEvent| {
        matches!(e.kind, NicLogKind::EnaLargeEntries | NicLogKind::EnaHeaderTooLong)
    };
    let all = need("the kernel's log", &case.facts.kernel_log)?;
    if own.is_empty() && all.iter().any(ours) {
        need(&format!("PCI address of {}", nic.name), &nic.bus_address)?;
    }
    Ok(own)
}

/// The device says that it dropped packets.
fn too_small(case: &Case<'_>, nic: &Nic, event: &NicLogEvent, entry: Option<u32>) -> Judgement {
    let name = &nic.name;
    let (severity, confidence) = match nic_resets::age_s(case, event) {
        Some(age) if age <= nic_resets::RECENT_S => match entry {
            Some(_) => (Severity::Warning, Confidence::High),
            None => (Severity::Warning, Confidence::Medium),
        },
        Some(_) => (Severity::Info, Confidence::Low),
        // It may have been at any time since boot.
        None => (Severity::Warning, Confidence::Low),
    };
    let mut draft = Draft::new(name, format!("{name} drops packets with headers above 96 bytes"))
        .weigh(severity, confidence)
        .explain(
            "A regular LLQ entry takes 96 bytes of headers, and the device drops a packet with more, as \
             tunnels and IPv6 extension headers make. No counter of the driver shows these drops.",
        )
        .gain(Gain::Unblocks, "packets with long headers arrive");
    if let Some(bytes) = entry {
        draft =
            draft.show("TX push buff len", format!("{bytes} bytes"), format!("ethtool -g {name}"));
    }
    nic_resets::show(draft, event)
        .change(advice(
            "LLQ entries for 96 bytes of headers",
            "large LLQ entries, for 224 bytes",
            &format!("ethtool -G {name} tx-push-buf-len 224; AWS's own driver also: force_large_llq_header=1"),
            "the NIC is reset, and its transmit ring may have half the entries afterwards",
        ))
        // Dropped headers stop no queue, and the cloud's limits drop no headers.
        .alone()
        .on_nic(name)
        .found()
}

/// Large entries: a finding only where the ring is full, or ENA Express is on.
fn too_large(
    case: &Case<'_>,
    nic: &Nic,
    entry: Option<u32>,
    limit: u32,
    logged: &Result<Option<&NicLogEvent>, Missing>,
) -> Result<Judgement, Missing> {
    let name = &nic.name;
    let event = logged.as_ref().ok().copied().flatten();
    let source = format!("ethtool -S {name}");
    let stats = need(&source, &nic.driver_stats);
    let mode = stats.clone().map(|s| s.get(EXPRESS));
    // The device's word may be as old as the boot: the counter, where there is one, is of now.
    let (is_express, event) = match &mode {
        Ok(Some(mode)) => (**mode & 1 == 1, event.filter(|_| **mode & 1 == 1)),
        _ => (event.is_some(), event),
    };
    let stops = driver_counters::grown(case, nic, Meaning::QueueStopped).and_then(|all| {
        let most = all.iter().map(|g| g.count).max();
        let most = most.ok_or_else(|| Missing(format!("{source}: has no *_tx_queue_stop")))?;
        Ok(most as f64 / case.window_s()?)
    });
    // A ring that can grow is rule 43's.
    let full = stops.clone().ok().filter(|rate| *rate >= STOPS && limit <= HALVED);
    if !is_express && full.is_none() {
        let text = match limit <= HALVED {
            true => format!("{name}: large LLQ entries, and its transmit queues seldom stop"),
            false => format!(
                "{name}: large LLQ entries, and its ring may still have {}",
                text::count(limit.into())
            ),
        };
        return clear(text, [&mode, &stops, logged]);
    }
    let severity = match full {
        Some(rate) if rate >= MANY_STOPS => Severity::Warning,
        _ => Severity::Info,
    };
    // Without the entries' length the limit alone says that they are large.
    let is_recent = event
        .and_then(|e| nic_resets::age_s(case, e))
        .is_some_and(|age| age <= nic_resets::RECENT_S);
    let is_sure = match (full, &mode) {
        // Express by the device's word alone.
        (None, Err(_) | Ok(None)) => is_recent,
        _ => entry.is_some() || event.is_some(),
    };
    let confidence = if is_sure { Confidence::Medium } else { Confidence::Low };
    let title = match full {
        Some(_) => format!("{name}'s transmit ring is full, and large LLQ entries halve it"),
        None => format!("{name} has ENA Express and large LLQ entries"),
    };
    let mut draft = Draft::new(name, title)
        .weigh(severity, confidence)
        .explain(
            "A large LLQ entry takes 224 bytes of headers instead of 96, as some tunnels need, and the ring \
             has half as many. Where no packet has such headers, large entries only cost.",
        )
        .gain(Gain::Improves, "twice the entries for bursts")
        .show("largest transmit ring", text::count(limit.into()), format!("ethtool -g {name}"));
    if let Some(bytes) = entry {
        draft =
            draft.show("TX push buff len", format!("{bytes} bytes"), format!("ethtool -g {name}"));
    }
    if is_express {
        draft = draft.add("AWS advises against large entries with ENA Express.");
        if let Ok(Some(mode)) = mode {
            draft = draft.show(EXPRESS, mode.to_string(), &source);
        }
    }
    if let Some(event) = event {
        draft = nic_resets::show(draft, event);
    }
    if let Some(rate) = full {
        draft = draft.show(
            format!("stops of transmit queues {}", case.over()),
            text::per_s(rate),
            source,
        );
    }
    // A ring that is not full is neither the cause nor the effect of stopped queues.
    let draft = if full.is_none() { draft.alone() } else { draft };
    Ok(draft
        .change(advice(
            "large LLQ entries",
            "regular ones, if no packet has headers above 96 bytes",
            &format!("ethtool -G {name} tx-push-buf-len 96; AWS's own driver also: force_large_llq_header=0"),
            "the NIC is reset, and the device then drops packets with headers above 96 bytes (tunnels)",
        ))
        .on_nic(name)
        .found())
}
