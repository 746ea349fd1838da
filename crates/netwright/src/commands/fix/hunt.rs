//! How often the host is looked at, and what of a look is new: a fault is not to be seen in every
//! few seconds of a busy host, so that nothing new in one look is no answer yet.

use std::collections::BTreeSet;

use model::{
    Finding, Nanos,
    fix::{Candidate, Fate},
};
use tune::wish::Wish;

use super::{Attempt, judge};

/// Looks since something was last kept, each so many windows long and judged in so many parts of a
/// window: a CPU that is at its limit in one half second of four is at three quarters of it in the
/// mean; and a long one as a whole, for what is counted seldom.
const LOOKS: [(u64, u64); 4] = [(1, 1), (2, 6), (2, 6), (4, 1)];

/// A part is no shorter than this, unless the window is: two readings further apart say more.
const SHORTEST_PART: Nanos = Nanos(500_000_000);

/// No look is made longer than this as a whole, but where one window is: the far end bears no longer
/// one.
const LONGEST: Nanos = Nanos(60_000_000_000);

/// A look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gaze {
    /// How long each part of it is that is judged by itself,
    pub part: Nanos,
    /// and how many there are.
    pub parts: u64,
}

impl Gaze {
    /// How long all of it is.
    pub fn long(self) -> Nanos {
        Nanos(self.part.0.saturating_mul(self.parts))
    }
}

/// Looking for something to try.
pub struct Hunt {
    window: Nanos,
    /// Since something was last kept.
    looks: usize,
    /// Before that.
    before: usize,
    watched: Nanos,
    /// Whether the last look showed something to try.
    showed: bool,
    seen: BTreeSet<String>,
}

impl Hunt {
    /// By looks of this window.
    pub fn new(window: Nanos) -> Self {
        let seen = BTreeSet::new();
        Self { window, looks: 0, before: 0, watched: Nanos(0), showed: false, seen }
    }

    /// The next look; `None` after the last.
    pub fn next(&self) -> Option<Gaze> {
        LOOKS.get(self.looks).map(|look| self.gaze(*look))
    }

    /// How long all looks take that follow when something is kept.
    pub fn all(&self) -> Nanos {
        Nanos(LOOKS.iter().map(|look| self.gaze(*look).long().0).sum())
    }

    fn gaze(&self, (windows, share): (u64, u64)) -> Gaze {
        let long = Nanos(self.window.0.saturating_mul(windows));
        if share == 1 {
            return Gaze { part: long.min(LONGEST.max(self.window)), parts: 1 };
        }
        let part = Nanos(self.window.0 / share).max(SHORTEST_PART.min(self.window));
        Gaze { part, parts: long.0 / part.0.max(1) }
    }

    /// Whether the next look repeats one that showed nothing which helped.
    pub fn again(&self) -> bool {
        self.looks > 0
    }

    /// Whether the host was not looked at yet.
    pub fn is_first(&self) -> bool {
        self.before + self.looks == 0
    }

    /// Something was kept: other findings may show from now on.
    pub fn anew(&mut self) {
        (self.before, self.looks) = (self.before + self.looks, 0);
    }

    /// What a look of this length found that is new: to be tried, or to be told why it is not.
    /// What waited for another finding's remedy and no longer does is new.
    pub fn fresh(&mut self, look: Gaze, findings: &[Finding], also: &[Wish]) -> Vec<Attempt> {
        self.looks += 1;
        self.watched.0 = self.watched.0.saturating_add(look.long().0);
        let mut fresh = Vec::new();
        for (candidate, wishes) in judge::candidates(findings, also) {
            let attempt = Attempt { candidate, wishes, plan: None };
            // Whoever asks for it, it is tried once; why it is not is told by each.
            let key = match attempt.wishes.is_empty() {
                true => format!("not tried {}", attempt.key()),
                false => format!("tried {}", attempt.name()),
            };
            if self.seen.insert(key) {
                fresh.push(attempt);
            }
        }
        self.showed = fresh.iter().any(|a| !a.wishes.is_empty());
        fresh
    }

    /// Why the host is looked at again, and for how long.
    pub fn why_again(&self, next: Gaze) -> String {
        let why = match self.showed {
            true => "nothing that the last look showed was kept",
            false => "nothing new to try was seen",
        };
        format!("{why}; looking at the host again, for {}", next.long())
    }

    /// Which look it was, where that says something: one found what those before it did not.
    pub fn late(&self, fresh: &[Attempt]) -> Option<String> {
        let found = fresh.iter().find(|a| !a.wishes.is_empty())?;
        let (by, look) = (&found.candidate.asked_by, self.looks);
        let before = if look == 2 { "one".to_owned() } else { (look - 1).to_string() };
        (look > 1).then(|| format!("{by}: seen in look {look}, not in the {before} before"))
    }

    /// How often and how long the host was looked at in all, and what the last look came to.
    pub fn in_vain(&self) -> String {
        let watched = self.watched;
        let times = match self.before + self.looks {
            1 => format!("once, for {watched}"),
            n => format!("{n} times, {watched} in all"),
        };
        let since = match self.before {
            0 => String::new(),
            _ => format!(", {} of them since the last change was kept", self.looks),
        };
        let last = match self.showed {
            true => "nothing that the last look showed was kept",
            false => "the last look showed nothing new",
        };
        let over = if self.next().is_some() { ", and the budget holds no more looks" } else { "" };
        format!("the host was looked at {times}{since}; {last}{over}")
    }
}

/// Leaves out what waited and is tried now.
pub fn no_longer_waits(all: &mut Vec<Candidate>, fresh: &[Attempt]) {
    let now = |c: &Candidate| {
        let same = |a: &Attempt| !a.wishes.is_empty() && a.key() == super::key(c);
        fresh.iter().any(same)
    };
    all.retain(|c| c.fate != Fate::NotTried || c.verdict.is_some() || !now(c));
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn few_channels(caused_by: &[&str]) -> Finding {
        serde_json::from_value(serde_json::json!({
            "rule": "few_channels", "number": 1, "title": "", "severity": "critical",
            "confidence": "high", "rank": 1, "subject": "eth0", "explanation": "",
            "expected_gain": "", "evidence": [], "caused_by": caused_by,
            "changes": [{
                "knob": "nic.eth0.channels", "old": "combined 1", "new": "combined 4",
                "command": "", "risk": ""
            }],
        }))
        .unwrap()
    }

    #[test]
    fn what_only_a_later_look_shows_is_found_and_told_as_such() {
        let mut hunt = Hunt::new(Nanos(3 * S));
        let showed = [vec![], vec![], vec![few_channels(&[])]];
        let mut found = vec![];
        for findings in &showed {
            assert_eq!(hunt.late(&found), None);
            found = hunt.fresh(hunt.next().unwrap(), findings, &[]);
        }
        assert_eq!(found[0].name(), "nic.eth0.channels=combined 4");
        let said = hunt.late(&found).unwrap();
        assert_eq!(said, "finding few_channels: seen in look 3, not in the 2 before");
        // Seen again it is nothing new, and the first look is told by nobody.
        let whole = Gaze { part: Nanos(3 * S), parts: 1 };
        assert!(hunt.fresh(whole, &showed[2], &[]).is_empty());
        hunt.anew();
        assert!(!hunt.again() && !hunt.is_first() && hunt.next() == Some(whole));
        let mut other = few_channels(&[]);
        other.changes[0].new = "combined 8".into();
        let found = hunt.fresh(whole, &[other], &[]);
        assert!(found.len() == 1 && hunt.late(&found).is_none());
    }

    #[test]
    fn looking_in_vain_ends_with_a_long_look_and_says_how_long_it_took() {
        let mut hunt = Hunt::new(Nanos(3 * S));
        let mut looks = vec![];
        while let Some(look) = hunt.next() {
            hunt.fresh(look, &[], &[]);
            looks.push((look.part.0, look.parts));
        }
        assert_eq!(looks, [(3 * S, 1), (S / 2, 12), (S / 2, 12), (12 * S, 1)]);
        assert!(hunt.in_vain().contains("looked at 4 times, 27 s in all;"), "{}", hunt.in_vain());
        assert_eq!(hunt.all(), Nanos(27 * S));
        let look = |looks, window| Hunt { looks, ..Hunt::new(window) }.next().unwrap();
        assert_eq!(look(3, Nanos(20 * S)).part, LONGEST);
        assert_eq!(look(3, Nanos(90 * S)).part, Nanos(90 * S));
        assert_eq!(look(1, Nanos(S / 5)), Gaze { part: Nanos(S / 5), parts: 2 });
    }

    #[test]
    fn all_looks_are_told_and_what_was_tried_in_vain_was_seen() {
        let mut hunt = Hunt::new(Nanos(3 * S));
        hunt.fresh(hunt.next().unwrap(), &[few_channels(&[])], &[]);
        hunt.anew();
        let mut other = few_channels(&[]);
        other.changes[0].new = "combined 8".into();
        hunt.fresh(hunt.next().unwrap(), &[other.clone()], &[]);
        let said = hunt.why_again(hunt.next().unwrap());
        assert!(said.starts_with("nothing that the last look showed was kept; looking"), "{said}");
        assert_eq!(
            hunt.in_vain(),
            "the host was looked at 2 times, 6 s in all, 1 of them since the last change was kept; \
             nothing that the last look showed was kept, and the budget holds no more looks"
        );
        hunt.fresh(hunt.next().unwrap(), &[other], &[]);
        let said = hunt.why_again(hunt.next().unwrap());
        assert!(said.starts_with("nothing new to try was seen; looking"), "{said}");
        let said = hunt.in_vain();
        assert!(said.contains("3 times, 12 s in all, 2 of them since"), "{said}");
        assert!(said.contains("the last look showed nothing new, and"), "{said}");
    }

    #[test]
    fn what_waited_for_another_remedy_is_tried_after_it() {
        let mut hunt = Hunt::new(Nanos(S));
        let whole = hunt.next().unwrap();
        let waits = hunt.fresh(whole, &[few_channels(&["flow_skew"])], &[]);
        assert!(waits[0].wishes.is_empty());
        let mut told: Vec<Candidate> = waits.into_iter().map(|a| a.candidate).collect();
        let tried = hunt.fresh(whole, &[few_channels(&[])], &[]);
        assert_eq!(tried[0].wishes.len(), 1);
        no_longer_waits(&mut told, &tried);
        assert!(told.is_empty());
    }
}
