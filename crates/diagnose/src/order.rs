//! Links symptoms to their causes, and orders the findings.

use std::cmp::Reverse;

use model::{Finding, Severity};

use crate::rule::Draft;

/// Links and ranks findings, and withholds the changes of those that another one explains.
///
/// **Order**: a cause before its effects. Among the rest: severity, where a cause counts as the
/// worst finding that it explains; then confidence, expected gain, rule number and subject.
pub(crate) fn order(mut drafts: Vec<Draft>) -> Vec<Finding> {
    let causes = link(&mut drafts);
    let weight = inherited_severity(&drafts, &causes);
    let sequence = sequence(&drafts, &causes, &weight);
    let mut slots: Vec<Option<Draft>> = drafts.into_iter().map(Some).collect();
    let taken = sequence.into_iter().filter_map(|i| slots.get_mut(i).and_then(Option::take));
    taken.zip(1..).map(|(draft, rank)| Finding { rank, ..draft.finding }).collect()
}

/// For each finding, the findings that explain it, by index.
type Causes = Vec<Vec<usize>>;

fn link(drafts: &mut [Draft]) -> Causes {
    let causes: Causes = drafts
        .iter()
        .enumerate()
        .map(|(i, symptom)| {
            let explains = |cause: &Draft| {
                symptom.explained_by.contains(&cause.finding.rule.as_str())
                    && cause.scope.meets(&symptom.scope)
            };
            let others = drafts.iter().enumerate().filter(|&(j, _)| j != i);
            others.filter(|(_, cause)| explains(cause)).map(|(j, _)| j).collect()
        })
        .collect();
    let names: Vec<String> = drafts.iter().map(|d| d.finding.rule.clone()).collect();
    for (draft, causes) in drafts.iter_mut().zip(&causes) {
        let mut rules: Vec<String> = causes.iter().filter_map(|&j| names.get(j).cloned()).collect();
        rules.dedup();
        if rules.is_empty() {
            continue;
        }
        if !draft.finding.changes.is_empty() {
            draft.finding.changes.clear();
            draft.finding.explanation.push_str(&format!(
                " No change is proposed until {} is resolved.",
                rules.join(", ")
            ));
        }
        draft.finding.caused_by = rules;
    }
    causes
}

/// A cause counts as severe as the worst of its direct and indirect effects.
fn inherited_severity(drafts: &[Draft], causes: &Causes) -> Vec<Severity> {
    let mut weight: Vec<Severity> = drafts.iter().map(|d| d.finding.severity).collect();
    // One pass more than the longest chain. The rules have no cycle (tested), so it terminates.
    for _ in 0..drafts.len() {
        let mut changed = false;
        for (i, list) in causes.iter().enumerate() {
            let mine = weight.get(i).copied();
            for &j in list {
                if let (Some(mine), Some(w)) = (mine, weight.get_mut(j))
                    && *w < mine
                {
                    *w = mine;
                    changed = true;
                }
            }
        }
        if !changed {
            break;
        }
    }
    weight
}

fn sequence(drafts: &[Draft], causes: &Causes, weight: &[Severity]) -> Vec<usize> {
    let mut by_weight: Vec<usize> = (0..drafts.len()).collect();
    by_weight.sort_by_key(|&i| {
        drafts.get(i).map(|d| {
            (
                Reverse(weight.get(i).copied()),
                Reverse(d.finding.confidence),
                Reverse(d.gain),
                d.finding.number,
                d.finding.subject.clone(),
            )
        })
    });
    let mut done = vec![];
    while !by_weight.is_empty() {
        let ready =
            |i: &usize| causes.get(*i).is_none_or(|list| list.iter().all(|c| done.contains(c)));
        // There is no cycle (tested on the catalogue); if there were one, no finding may be lost.
        let next = by_weight.iter().position(ready).unwrap_or(0);
        done.push(by_weight.remove(next));
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Change, Confidence};

    use crate::rule::Gain;

    fn draft(
        rule: &str,
        number: u32,
        severity: Severity,
        explained_by: &'static [&'static str],
    ) -> Draft {
        let mut d = Draft::new(rule, rule).weigh(severity, Confidence::Medium);
        d.finding.rule = rule.into();
        d.finding.number = number;
        d.explained_by = explained_by;
        d
    }

    fn names(findings: &[Finding]) -> Vec<&str> {
        findings.iter().map(|f| f.rule.as_str()).collect()
    }

    #[test]
    fn a_cause_comes_before_its_symptom_and_weighs_as_much() {
        let out = order(vec![
            draft("symptom", 1, Severity::Critical, &["cause"]),
            draft("other", 2, Severity::Warning, &[]),
            draft("cause", 3, Severity::Info, &[]),
        ]);
        assert_eq!(names(&out), ["cause", "symptom", "other"]);
        assert_eq!(out[1].caused_by, ["cause"]);
        assert_eq!(out.iter().map(|f| f.rank).collect::<Vec<_>>(), [1, 2, 3]);
    }

    #[test]
    fn then_severity_confidence_gain_number_subject() {
        let mut sure = draft("sure", 9, Severity::Warning, &[]);
        sure.finding.confidence = Confidence::High;
        let mut gain = draft("gain", 8, Severity::Warning, &[]);
        gain.gain = Gain::Unblocks;
        let b = draft("b", 4, Severity::Warning, &[]);
        let mut a = draft("a", 4, Severity::Warning, &[]);
        a.finding.rule = "b".into();
        a.finding.subject = "aa".into();
        let crit = draft("crit", 30, Severity::Critical, &[]);
        let out = order(vec![b, a, gain, sure, crit]);
        let subjects: Vec<&str> = out.iter().map(|f| f.subject.as_str()).collect();
        assert_eq!(subjects, ["crit", "sure", "gain", "aa", "b"]);
    }

    #[test]
    fn a_cause_elsewhere_explains_nothing() {
        let mut cause = draft("cause", 1, Severity::Info, &[]);
        cause.scope.nics = vec!["eth0".into()];
        let mut symptom = draft("symptom", 2, Severity::Warning, &["cause"]);
        symptom.scope.nics = vec!["eth1".into()];
        let out = order(vec![cause, symptom]);
        assert!(out.iter().all(|f| f.caused_by.is_empty()));
    }

    #[test]
    fn a_symptoms_change_is_withheld_and_that_is_said() {
        let mut symptom = draft("symptom", 2, Severity::Warning, &["cause"]);
        symptom.finding.changes.push(Change::advice("x", "y", "", ""));
        let out = order(vec![draft("cause", 1, Severity::Info, &[]), symptom]);
        assert!(out[1].changes.is_empty());
        assert!(out[1].explanation.ends_with("until cause is resolved."));
    }

    #[test]
    fn a_chain_keeps_its_order() {
        let out = order(vec![
            draft("c", 1, Severity::Critical, &["b"]),
            draft("b", 2, Severity::Info, &["a"]),
            draft("a", 3, Severity::Info, &[]),
            draft("warn", 4, Severity::Warning, &[]),
        ]);
        assert_eq!(names(&out), ["a", "b", "c", "warn"]);
    }
}
