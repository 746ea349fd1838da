//! 15: a setting that netwright applied is in force no longer.

use std::collections::BTreeMap;

use model::{
    Confidence, Severity,
    applied::AppliedSetting,
    kernel_log::{NicLogEvent, NicLogKind},
    knob::Target,
};

use crate::{
    Case, Rule,
    knob::{advice, change},
    rule::{Draft, Gain, Judgement, clear, need, settle},
    rules::nic_resets,
    text,
};

/// Catalogue number 15. A reset after the change explains it; a running tuner that sets such settings
/// is named.
pub static RULE: Rule = Rule {
    id: "setting_lost",
    number: 15,
    title: "a setting that netwright applied is lost",
    needs: &["netwright's journal, and its settings read again", "the kernel's log, for the cause"],
    explained_by: &["nic_resets"],
    judge,
};

/// Settings that one finding quotes.
const MOST: usize = 8;

fn judge(case: &Case<'_>) -> Vec<Judgement> {
    let all = match need("what netwright applied", &case.facts.applied) {
        Ok(all) => all,
        Err(missing) => return vec![missing.of("")],
    };
    let mut lost: BTreeMap<String, Vec<Lost<'_>>> = BTreeMap::new();
    for setting in all.iter().filter(|s| !s.in_force) {
        // What is gone with its object is not lost.
        let Some(now) = setting.now.known() else { continue };
        lost.entry(subject(case, &setting.knob)).or_default().push(Lost { setting, now });
    }
    if lost.is_empty() {
        let text = match all.len() {
            0 => "netwright has applied nothing in this boot that is to be in force".into(),
            n => format!(
                "{} that netwright applied: none was changed since",
                text::plural(n, "setting")
            ),
        };
        return vec![settle("", clear(text, [&case.facts.applied]))];
    }
    lost.iter().map(|(subject, settings)| found(case, subject, settings)).collect()
}

struct Lost<'c> {
    setting: &'c AppliedSetting,
    now: &'c str,
}

/// The NIC of a setting, else the setting itself.
fn subject(case: &Case<'_>, knob: &str) -> String {
    let nic = match Target::parse(knob) {
        Some(Target::Irq(number)) => {
            let irq =
                case.facts.irqs.known().and_then(|all| all.iter().find(|i| i.irq.0 == number));
            irq.and_then(|i| i.nic.get())
        }
        target => target.and_then(Target::nic).map(str::to_owned),
    };
    nic.unwrap_or_else(|| knob.to_owned())
}

/// Resets of the NIC in the log since the newest of the changes.
fn resets<'c>(case: &Case<'c>, subject: &str, settings: &[Lost<'_>]) -> Vec<&'c NicLogEvent> {
    let (Some(nic), Some(uptime_s)) = (case.nic(subject), case.facts.host.uptime_s.get()) else {
        return vec![];
    };
    let age_s = settings.iter().map(|l| l.setting.age_s).min().unwrap_or_default();
    let is_reset = |e: &&NicLogEvent| {
        let at_s: Option<f64> = e.last.parse().ok();
        matches!(e.kind, NicLogKind::Reset | NicLogKind::TransmitTimeout)
            && at_s.is_some_and(|at| at >= uptime_s.saturating_sub(age_s) as f64)
    };
    nic_resets::events(case, nic).unwrap_or_default().into_iter().filter(is_reset).collect()
}

fn found(case: &Case<'_>, subject: &str, settings: &[Lost<'_>]) -> Judgement {
    let title = match settings {
        [one] => format!(
            "{} is {}, and netwright set it to {}",
            one.setting.knob, one.now, one.setting.written
        ),
        all => format!(
            "{} of {subject} that netwright applied are lost",
            text::plural(all.len(), "setting")
        ),
    };
    let resets = resets(case, subject, settings);
    let mut tuners: Vec<&str> =
        settings.iter().flat_map(|l| &l.setting.suspects).map(String::as_str).collect();
    tuners.sort_unstable();
    tuners.dedup();
    let back = settings.iter().all(|l| l.now == l.setting.before);
    let who = match () {
        () if !tuners.is_empty() => format!("{} runs and sets such settings.", tuners.join(", ")),
        () if !resets.is_empty() => {
            "The driver has reset the NIC since, and did not restore them.".into()
        }
        () if back => {
            let log = match case.facts.kernel_log.is_known() {
                true => "The log has no reset that says so.",
                false => "The kernel's log, which may say so, could not be read.",
            };
            format!(
                "The value is that of before: a driver that made its queues anew (other channels, rings or \
                 MTU, its module loaded again), or somebody who put it back. {log}"
            )
        }
        () => "It is not the value of before either: another program, or a person, has written it."
            .into(),
    };
    let mut draft = Draft::new(subject, title)
        .weigh(Severity::Warning, Confidence::High)
        .explain(who)
        .gain(Gain::Improves, "what the change was made for");
    for Lost { setting, now } in settings.iter().take(MOST) {
        draft = draft.show(
            &setting.knob,
            format!(
                "now {now}; change {} wrote {} in place of {}, {} s ago",
                setting.set, setting.written, setting.before, setting.age_s
            ),
            "netwright tune status",
        );
    }
    if settings.len() > MOST {
        draft = draft.show(
            "more",
            text::plural(settings.len() - MOST, "setting"),
            "netwright tune status",
        );
    }
    for event in &resets {
        draft = nic_resets::show(draft, event);
    }
    let draft = match tuners.is_empty() {
        true => draft.changes(settings.iter().map(|l| {
            let risk = "it is lost again if its cause stays";
            change(&l.setting.knob, l.now, &l.setting.written, risk)
        })),
        false => draft.change(advice(
            "two set it",
            &format!("one of them: set it in {}, or keep that one from it", tuners.join(", ")),
            "netwright tune status",
            "as long as both set it, the last one counts",
        )),
    };
    // Without a reset since the change no reset explains it.
    match resets.is_empty() {
        true => draft.alone().found(),
        false => draft.on_nic(subject).found(),
    }
}
