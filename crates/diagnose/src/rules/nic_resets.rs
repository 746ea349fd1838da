//! 53: a driver resets its NIC, a transmit queue hangs, or PCIe reports errors, by the kernel's log.

use model::{
    Confidence, Severity,
    kernel_log::{NicLogEvent, NicLogKind},
    nic::Nic,
};

use crate::{
    Case, Rule,
    knob::advice,
    queues,
    rule::{Draft, Gain, Judgement, Missing, clear, need},
    text,
};

/// Catalogue number 53. Advice only: no setting repairs a NIC, a slot or a driver.
pub static RULE: Rule = Rule {
    id: "nic_resets",
    number: 53,
    title: "a driver resets its NIC, a transmit queue hangs, or PCIe reports errors",
    needs: &["lines of the kernel's log about the NIC (CAP_SYSLOG, or an archive's dmesg)"],
    explained_by: &[],
    judge,
};

/// Repaired PCIe errors of one device that are more than now and then. Our proposal.
const MANY_CORRECTED: u64 = 100;
/// Lines of the last hour tell of now. Our proposal.
pub(crate) const RECENT_S: f64 = 3_600.0;

fn judge(case: &Case<'_>) -> Vec<Judgement> {
    queues::each_physical(case, |nic| one(case, nic))
}

/// The log's events of one NIC, by its name or its PCI address.
pub(crate) fn events<'c>(case: &Case<'c>, nic: &Nic) -> Result<Vec<&'c NicLogEvent>, Missing> {
    let all = need("the kernel's log", &case.facts.kernel_log)?;
    let address = nic.bus_address.get();
    let own = |e: &&NicLogEvent| e.subject == nic.name || Some(&e.subject) == address.as_ref();
    Ok(all.iter().filter(own).collect())
}

/// Quotes one kind of line.
pub(crate) fn show(draft: Draft, event: &NicLogEvent) -> Draft {
    let when = match (event.first.as_str(), event.last.as_str()) {
        ("", "") => String::new(),
        (first, last) if first == last => format!(", at {last}"),
        (first, last) => format!(", from {first} to {last}"),
    };
    draft.show(
        format!("log lines: {}", words(event.kind)),
        format!("{}{when}: {}", text::count(event.count), event.line),
        &event.source,
    )
}

fn words(kind: NicLogKind) -> &'static str {
    match kind {
        NicLogKind::LinkDown => "link down",
        NicLogKind::TransmitTimeout => "a transmit queue hung",
        NicLogKind::Reset => "the driver reset the NIC",
        NicLogKind::PcieCorrected => "PCIe errors that were repaired",
        NicLogKind::PcieUncorrected => "PCIe errors that were not repaired",
        NicLogKind::EnaLargeEntries => "ENA Express with large LLQ entries",
        NicLogKind::EnaHeaderTooLong => "a header too long for an LLQ entry",
    }
}

/// Seconds since the event's last line; `None` where the log has no seconds since boot.
pub(crate) fn age_s(case: &Case<'_>, event: &NicLogEvent) -> Option<f64> {
    let at: f64 = event.last.parse().ok()?;
    Some(case.facts.host.uptime_s.get()? as f64 - at)
}

fn one(case: &Case<'_>, nic: &Nic) -> Result<Judgement, Missing> {
    let name = &nic.name;
    // Rule 54 judges an ENA device's notifications.
    let is_ours = |e: &NicLogEvent| {
        !matches!(e.kind, NicLogKind::EnaLargeEntries | NicLogKind::EnaHeaderTooLong)
    };
    let mut all = events(case, nic)?;
    all.retain(|e| is_ours(e));
    let counts = |e: &&&NicLogEvent| match e.kind {
        NicLogKind::LinkDown => false,
        NicLogKind::PcieCorrected => e.count >= MANY_CORRECTED,
        _ => true,
    };
    let bad: Vec<&&NicLogEvent> = all.iter().filter(counts).collect();
    let Some(worst) = bad.iter().max_by_key(|e| (e.kind != NicLogKind::PcieCorrected, e.count))
    else {
        // Lines by address may be this NIC's, where its address is not known.
        let named = |e: &NicLogEvent| case.facts.nics.iter().any(|n| n.name == e.subject);
        let log = need("the kernel's log", &case.facts.kernel_log)?;
        if log.iter().any(|e| is_ours(e) && !named(e)) {
            need(&format!("PCI address of {name}"), &nic.bus_address)?;
        }
        let text =
            format!("{name}: no reset, hung queue or lasting PCIe error in the kernel's log");
        return clear(text, [&case.facts.kernel_log]);
    };
    let ages: Vec<Option<f64>> = bad.iter().map(|e| age_s(case, e)).collect();
    let (severity, confidence) = match () {
        () if worst.kind == NicLogKind::PcieCorrected => (Severity::Info, Confidence::Low),
        () if ages.iter().flatten().any(|age| *age <= RECENT_S) => {
            (Severity::Warning, Confidence::High)
        }
        // Without an age it may have been at any time since boot.
        () if ages.iter().all(Option::is_none) => (Severity::Warning, Confidence::Low),
        () => (Severity::Info, Confidence::Low),
    };
    let title = match worst.kind {
        NicLogKind::PcieCorrected | NicLogKind::PcieUncorrected => {
            format!("PCIe reported errors of {name} {}", text::times(worst.count))
        }
        NicLogKind::Reset => format!("the driver reset {name} {}", text::times(worst.count)),
        _ => format!("a transmit queue of {name} hung {}", text::times(worst.count)),
    };
    let mut draft = Draft::new(name, title)
        .weigh(severity, confidence)
        .explain(
            "A reset stops the NIC for up to some seconds: packets in its rings are lost, the link may go \
             down, and settings that the driver does not restore have its defaults afterwards.",
        )
        .gain(Gain::Unblocks, "no pauses and no lost packets while the NIC starts again");
    if bad.iter().any(|e| matches!(e.kind, NicLogKind::PcieCorrected | NicLogKind::PcieUncorrected))
    {
        draft = draft.add("PCIe errors point at the slot, the riser or the card.");
    }
    for event in &all {
        draft = show(draft, event);
    }
    Ok(draft
        .change(advice(
            "as it is",
            "the driver's and the firmware's current versions; then another slot or card",
            &format!("dmesg -T | grep -e {name} -e AER; ethtool -i {name}; netwright tune status"),
            "the NIC is away while it is updated or replaced",
        ))
        .on_nic(name)
        .found())
}
