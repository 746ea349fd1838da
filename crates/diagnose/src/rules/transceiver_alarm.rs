//! 52: a transceiver that gives an alarm.

use model::{Confidence, Reading, Severity, link::Module, nic::Nic};

use crate::{
    Case, Rule,
    knob::advice,
    queues,
    rule::{Draft, Gain, Judgement, Missing, clear, need},
};

/// Catalogue number 52. The thresholds are the transceiver's own, by its maker.
pub static RULE: Rule = Rule {
    id: "transceiver_alarm",
    number: 52,
    title: "a transceiver gives an alarm",
    needs: &["the transceiver's own alarms (root, Linux 5.13), or ethtool -m"],
    explained_by: &[],
    judge,
};

fn judge(case: &Case<'_>) -> Vec<Judgement> {
    queues::each_physical(case, |nic| one(case, nic))
}

fn one(case: &Case<'_>, nic: &Nic) -> Result<Judgement, Missing> {
    let name = &nic.name;
    if let Some(clear) = queues::emulated(nic) {
        return clear;
    }
    if !nic.module.is_known() {
        let host = &case.facts.host.hypervisor;
        if host.known().is_some_and(|h| h != "none") {
            return clear(format!("{name}: a NIC of a guest, whose link is its host's"), [host]);
        }
    }
    if matches!(nic.module, Reading::Absent(_)) && is_twisted_pair(nic) {
        let text = format!("{name}: a port for twisted pair, which has no transceiver");
        return clear(text, [&nic.link_modes]);
    }
    let module = need(&format!("transceiver of {name}"), &nic.module)?;
    if module.alarms.is_empty() && module.warnings.is_empty() {
        let degrees =
            module.temperature_millicelsius.known().map(|n| format!(" at {}", celsius(*n)));
        let degrees = degrees.unwrap_or_default();
        let text = format!("{name}: a transceiver without alarm or warning{degrees}");
        return clear(text, [&nic.module]);
    }
    Ok(found(nic, module))
}

/// Whether the port has modes for twisted pair and no other.
fn is_twisted_pair(nic: &Nic) -> bool {
    let modes = nic.link_modes.known().map(|m| m.supported.as_slice()).unwrap_or_default();
    !modes.is_empty() && modes.iter().all(|mode| mode.contains("baseT/"))
}

fn celsius(milli: i32) -> String {
    format!("{:.1} °C", f64::from(milli) / 1000.0)
}

fn found(nic: &Nic, module: &Module) -> Judgement {
    let name = &nic.name;
    let source = format!("ethtool -m {name}");
    let alarm = !module.alarms.is_empty();
    let (list, kind, severity) = match alarm {
        true => (&module.alarms, "an alarm", Severity::Warning),
        false => (&module.warnings, "a warning", Severity::Info),
    };
    let what = list.join(", ");
    let is = |part: &str| module.alarms.iter().chain(&module.warnings).any(|a| a.contains(part));
    let mut draft = Draft::new(name, format!("{name}'s transceiver gives {kind}: {what}"))
        .weigh(severity, Confidence::Medium)
        .gain(Gain::Unblocks, "no damaged frames, no link that goes away");
    if is("rx power low") {
        draft = draft.add(
            "Too little light arrives: a dirty or bent fibre, a loose connector, or a weak transceiver \
             at the other end.",
        );
    }
    if is("rx power high") {
        draft =
            draft.add("Too much light arrives: a transceiver for longer fibres on a short one.");
    }
    if is("temperature high") {
        draft = draft.add("It is too hot: the air flow, or the power that it takes, is wrong.");
    }
    if is("bias current high") || is("output power low") {
        draft = draft.add("Its laser wears out.");
    }
    for (what, list) in [("alarms", &module.alarms), ("warnings", &module.warnings)] {
        if !list.is_empty() {
            draft = draft.show(format!("{what} of {name}'s transceiver"), list.join(", "), &source);
        }
    }
    if let Some(now) = module.temperature_millicelsius.known() {
        let most = module.high_alarm_millicelsius.known();
        let most = most.map(|n| format!(", alarm from {}", celsius(*n))).unwrap_or_default();
        draft = draft.show("its temperature", format!("{}{most}", celsius(*now)), &source);
    }
    draft
        .change(advice(
            "as it is",
            "clean connectors, another fibre or transceiver, cooler air",
            &format!("ethtool -m {name}"),
            "the link goes down while it is replaced",
        ))
        .on_nic(name)
        .found()
}
