//! Decides how often and how long the host is observed, and which findings are new. A fault may be
//! absent for seconds on a busy host, so one observation without news ends nothing.

use std::collections::BTreeSet;

use model::{
    Finding, Nanos,
    fix::{Candidate, CandidateStatus, FixNote},
};
use tune::change_request::ChangeRequest;

use crate::{
    attempt::{self, Attempt},
    candidates,
};

/// The observations since something was last kept: windows, and parts per window. Each part is
/// judged by itself, as a CPU at its limit for half a second of four averages to less. The last one
/// is long and judged as a whole, for rare events.
const LOOKS: [(u64, u64); 4] = [(1, 1), (2, 6), (2, 6), (4, 1)];

/// The shortest part, unless the window is shorter: longer parts have smaller errors.
const SHORTEST_PART: Nanos = Nanos(500_000_000);

/// The longest observation as a whole, unless the window is longer: the server allows no more.
const LONGEST: Nanos = Nanos(60_000_000_000);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Observation {
    /// The length of each part, which is judged by itself,
    pub part: Nanos,
    /// and the number of parts.
    pub parts: u64,
}

impl Observation {
    /// The length of the whole observation.
    pub fn long(self) -> Nanos {
        Nanos(self.part.0.saturating_mul(self.parts))
    }
}

/// The search for candidates over several observations.
pub struct CandidateSearch {
    window: Nanos,
    /// Observations since something was last kept.
    looks: usize,
    before: usize,
    watched: Nanos,
    /// Whether the last observation showed a new candidate.
    showed: bool,
    seen: BTreeSet<String>,
}

impl CandidateSearch {
    /// Starts a search with observations of this window.
    pub fn new(window: Nanos) -> Self {
        let seen = BTreeSet::new();
        Self { window, looks: 0, before: 0, watched: Nanos(0), showed: false, seen }
    }

    /// The next observation; `None` after the last.
    pub fn next(&self) -> Option<Observation> {
        LOOKS.get(self.looks).map(|look| self.observation(*look))
    }

    /// The total length of all observations that follow when something is kept.
    pub fn all(&self) -> Nanos {
        Nanos(LOOKS.iter().map(|look| self.observation(*look).long().0).sum())
    }

    fn observation(&self, (windows, share): (u64, u64)) -> Observation {
        let long = Nanos(self.window.0.saturating_mul(windows));
        if share == 1 {
            return Observation { part: long.min(LONGEST.max(self.window)), parts: 1 };
        }
        let part = Nanos(self.window.0 / share).max(SHORTEST_PART.min(self.window));
        Observation { part, parts: long.0 / part.0.max(1) }
    }

    /// Whether the next observation repeats one that led to nothing.
    pub fn again(&self) -> bool {
        self.looks > 0
    }

    /// Whether the host was not observed yet.
    pub fn is_first(&self) -> bool {
        self.before + self.looks == 0
    }

    /// Something was kept: other findings may show from now on.
    pub fn anew(&mut self) {
        (self.before, self.looks) = (self.before + self.looks, 0);
    }

    /// The candidates of this observation that are new, to be tried or to be reported as not tried.
    /// A candidate that no longer waits for another finding's remedy is new.
    pub fn fresh(
        &mut self,
        look: Observation,
        findings: &[Finding],
        also: &[ChangeRequest],
    ) -> Vec<Attempt> {
        self.looks += 1;
        self.watched.0 = self.watched.0.saturating_add(look.long().0);
        let mut fresh = Vec::new();
        for (candidate, change_requests) in candidates::candidates(findings, also) {
            let attempt = Attempt { candidate, change_requests, plan: None };
            // A candidate is tried once, whichever finding asks for it; each finding reports why it
            // is not tried.
            let key = match attempt.change_requests.is_empty() {
                true => format!("not tried {}", attempt.key()),
                false => format!("tried {}", attempt.name()),
            };
            if self.seen.insert(key) {
                fresh.push(attempt);
            }
        }
        self.showed = fresh.iter().any(|a| !a.change_requests.is_empty());
        fresh
    }

    /// Why the host is observed again, and for how long.
    pub fn why_again(&self, next: Observation) -> String {
        let why = match self.showed {
            true => "no remedy of the last diagnosis was kept",
            false => "no new remedy found",
        };
        format!("{why}; diagnosing the host again for {}", next.long())
    }

    /// Which observation it was, where it found something that earlier ones did not.
    pub fn late(&self, fresh: &[Attempt]) -> Option<FixNote> {
        let found = fresh.iter().find(|a| !a.change_requests.is_empty())?;
        let asked_by = found.candidate.asked_by.clone();
        (self.looks > 1).then_some(FixNote::FoundLate { asked_by, diagnosis: self.looks })
    }

    /// How often and how long the host was observed in all, and the result of the last observation.
    pub fn in_vain(&self) -> FixNote {
        FixNote::NothingMoreFound {
            diagnoses: self.before + self.looks,
            since_kept: (self.before > 0).then_some(self.looks),
            watched_ns: self.watched,
            found: self.showed,
            budget_used_up: self.next().is_some(),
        }
    }
}

/// Removes candidates that waited and are tried now.
pub fn no_longer_waits(all: &mut Vec<Candidate>, fresh: &[Attempt]) {
    let now = |c: &Candidate| {
        let same = |a: &Attempt| !a.change_requests.is_empty() && a.key() == attempt::key(c);
        fresh.iter().any(same)
    };
    all.retain(|c| c.status != CandidateStatus::NotTried || c.verdict.is_some() || !now(c));
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn few_channels(caused_by: &[&str]) -> Finding {
        serde_json::from_value(serde_json::json!({
            "rule": "few_channels", "number": 1, "title": "", "severity": "critical",
            "confidence": "high", "rank": 1, "subject": "eth0", "explanation": "",
            "expected_benefit": "", "evidence": [], "caused_by": caused_by,
            "changes": [{
                "knob": "nic.eth0.channels", "old": "combined 1", "new": "combined 4",
                "command": "", "risk": ""
            }],
        }))
        .unwrap()
    }

    #[test]
    fn what_only_a_later_look_shows_is_found_and_reported_as_such() {
        let mut candidate_search = CandidateSearch::new(Nanos(3 * S));
        let showed = [vec![], vec![], vec![few_channels(&[])]];
        let mut found = vec![];
        for findings in &showed {
            assert_eq!(candidate_search.late(&found), None);
            found = candidate_search.fresh(candidate_search.next().unwrap(), findings, &[]);
        }
        assert_eq!(found[0].name(), "nic.eth0.channels=combined 4");
        let said = candidate_search.late(&found).unwrap();
        assert_eq!(
            said.to_string(),
            "finding few_channels: found by diagnosis 3, not by the 2 before"
        );
        // Seen again it is not new; the first observation needs no note.
        let whole = Observation { part: Nanos(3 * S), parts: 1 };
        assert!(candidate_search.fresh(whole, &showed[2], &[]).is_empty());
        candidate_search.anew();
        assert!(
            !candidate_search.again()
                && !candidate_search.is_first()
                && candidate_search.next() == Some(whole)
        );
        let mut other = few_channels(&[]);
        other.changes[0].new = "combined 8".into();
        let found = candidate_search.fresh(whole, &[other], &[]);
        assert!(found.len() == 1 && candidate_search.late(&found).is_none());
    }

    #[test]
    fn looking_in_vain_ends_with_a_long_look_and_says_how_long_it_took() {
        let mut candidate_search = CandidateSearch::new(Nanos(3 * S));
        let mut looks = vec![];
        while let Some(look) = candidate_search.next() {
            candidate_search.fresh(look, &[], &[]);
            looks.push((look.part.0, look.parts));
        }
        assert_eq!(looks, [(3 * S, 1), (S / 2, 12), (S / 2, 12), (12 * S, 1)]);
        assert!(
            candidate_search.in_vain().to_string().contains("diagnosed 4 times, 27 s in all;"),
            "{}",
            candidate_search.in_vain()
        );
        assert_eq!(candidate_search.all(), Nanos(27 * S));
        let look = |looks, window| {
            CandidateSearch { looks, ..CandidateSearch::new(window) }.next().unwrap()
        };
        assert_eq!(look(3, Nanos(20 * S)).part, LONGEST);
        assert_eq!(look(3, Nanos(90 * S)).part, Nanos(90 * S));
        assert_eq!(look(1, Nanos(S / 5)), Observation { part: Nanos(S / 5), parts: 2 });
    }

    #[test]
    fn all_looks_are_reported_and_what_was_tried_in_vain_was_seen() {
        let mut candidate_search = CandidateSearch::new(Nanos(3 * S));
        candidate_search.fresh(candidate_search.next().unwrap(), &[few_channels(&[])], &[]);
        candidate_search.anew();
        assert_eq!(
            candidate_search.in_vain().to_string(),
            "the host was diagnosed once, for 3 s, but not since the last change was kept: the time \
             budget allows no further diagnosis"
        );
        let mut other = few_channels(&[]);
        other.changes[0].new = "combined 8".into();
        candidate_search.fresh(candidate_search.next().unwrap(), &[other.clone()], &[]);
        let said = candidate_search.why_again(candidate_search.next().unwrap());
        assert!(said.starts_with("no remedy of the last diagnosis was kept; diagnosing"), "{said}");
        assert_eq!(
            candidate_search.in_vain().to_string(),
            "the host was diagnosed 2 times, 6 s in all, 1 of them since the last change was kept; \
             no remedy of the last diagnosis was kept, and the time budget allows no further one"
        );
        candidate_search.fresh(candidate_search.next().unwrap(), &[other], &[]);
        let said = candidate_search.why_again(candidate_search.next().unwrap());
        assert!(said.starts_with("no new remedy found; diagnosing"), "{said}");
        let said = candidate_search.in_vain().to_string();
        assert!(said.contains("3 times, 12 s in all, 2 of them since"), "{said}");
        assert!(said.contains("the last diagnosis found nothing new, and"), "{said}");
    }

    #[test]
    fn what_waited_for_another_remedy_is_tried_after_it() {
        let mut candidate_search = CandidateSearch::new(Nanos(S));
        let whole = candidate_search.next().unwrap();
        let waits = candidate_search.fresh(whole, &[few_channels(&["flow_skew"])], &[]);
        assert!(waits[0].change_requests.is_empty());
        let mut reported: Vec<Candidate> = waits.into_iter().map(|a| a.candidate).collect();
        let tried = candidate_search.fresh(whole, &[few_channels(&[])], &[]);
        assert_eq!(tried[0].change_requests.len(), 1);
        no_longer_waits(&mut reported, &tried);
        assert!(reported.is_empty());
    }
}
