//! The rules: facts ([`model::Facts`]) and samples over a window ([`model::Samples`]) in, a
//! [`Diagnosis`] out. Pure: no I/O, no clock.
//!
//! ```text
//! judge every rule ─► link symptoms to their causes ─► withhold the symptoms' changes ─► order
//! ```
//!
//! Three principles apply everywhere:
//! - *Evidence first*: a finding quotes the values it rests on. A rule without its evidence is
//!   "skipped" with the reason, never "clear".
//! - *Root cause before symptom*: a finding that another one explains proposes no change.
//! - *No alarm from a setting alone*: without a counter that shows harm, a setting is information.

mod assignments;
mod case;
mod driver_counters;
mod drop_reasons;
mod knob;
mod load;
mod missing;
mod order;
pub mod placement;
mod pressure;
mod queues;
mod rate;
mod rule;
pub mod rules;
mod sockets;
mod softnet;
mod spread;
mod text;

pub use case::Case;
use model::{
    Reading,
    finding::{Diagnosis, Passed, SkippedRule},
};
pub use rule::Rule;
use rule::{Draft, Judgement};

/// Judges every rule, and orders the findings, root causes first.
pub fn diagnose(case: &Case<'_>) -> Diagnosis {
    let mut drafts: Vec<Draft> = vec![];
    let mut passed = vec![];
    let mut skipped: Vec<SkippedRule> = vec![];
    for rule in rules::ALL {
        let before = drafts.len();
        let mut because: Vec<String> = vec![];
        for judgement in (rule.judge)(case) {
            match judgement {
                Judgement::Found(draft) => drafts.push(draft.of(rule)),
                Judgement::Passed(passed) => because.push(passed.because()),
                Judgement::SkippedRule { subject, why } => {
                    add_not_judged(&mut skipped, rule, subject, why);
                }
            }
        }
        if drafts.len() == before && !because.is_empty() {
            passed.push(Passed {
                rule: rule.id.into(),
                number: rule.number,
                because: because.join("; "),
            });
        }
    }
    if case.since_boot() {
        doubt_averages(case, &mut drafts);
    }
    Diagnosis { findings: order::order(drafts), passed, skipped }
}

/// An average since boot shows that something happened once, not that it does now. A finding keeps
/// the confidence that it would have without any counter.
fn doubt_averages(case: &Case<'_>, drafts: &mut [Draft]) {
    let none = Reading::absent("the counters are those since boot");
    let bare = Case { facts: case.facts, samples: &none, goal: case.goal };
    let mut by_settings: Vec<Draft> = vec![];
    for rule in rules::ALL {
        for judgement in (rule.judge)(&bare) {
            if let Judgement::Found(draft) = judgement {
                by_settings.push(draft.of(rule));
            }
        }
    }
    for draft in drafts {
        draft.no_surer_than(by_settings.iter().find(|d| d.is_of_same(draft)));
    }
}

/// One line per rule and reason: ten NICs without a counter are one thing to say.
fn add_not_judged(list: &mut Vec<SkippedRule>, rule: &Rule, subject: String, why: String) {
    match list.iter_mut().find(|n| n.rule == rule.id && n.why == why) {
        Some(same) if subject.is_empty() || same.subject.split(", ").any(|s| s == subject) => {}
        Some(same) if same.subject.is_empty() => same.subject = subject,
        Some(same) => same.subject = format!("{}, {subject}", same.subject),
        None => {
            list.push(SkippedRule { rule: rule.id.into(), number: rule.number, subject, why });
        }
    }
}
