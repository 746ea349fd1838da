//! `fix` as text: what was kept and its gain, what was reverted and why.

use model::fix::{Candidate, CandidateStatus, FixDocument};

use crate::{
    prove::{effect, says, still},
    text::{Ink, Line, Page, TextStyle},
    words::many,
};

pub fn text(d: &FixDocument, look: TextStyle) -> String {
    let mut page = Page::new(look);
    page.line(head(d), 2);
    if !d.dry_run {
        page.line(Line::plain(format!("{} in {:.0} s; {}.", tried(d), d.took_s, d.ended)), 2);
    }
    page.line(Line::plain(format!("Workload: {}; goal: {}", d.workload, d.goal)), 2);
    still(d.frozen_host.as_ref(), &mut page);
    for (status, title) in [
        (CandidateStatus::Kept, "KEPT"),
        (CandidateStatus::Undone, "UNDONE"),
        (CandidateStatus::NotTried, if d.dry_run { "WOULD BE TRIED" } else { "NOT TRIED" }),
        (CandidateStatus::Declined, "DECLINED"),
        (CandidateStatus::Refused, "REFUSED"),
    ] {
        let all: Vec<&Candidate> = d.candidates.iter().filter(|c| c.status == status).collect();
        if !all.is_empty() {
            page.heading(title);
        }
        all.into_iter().for_each(|c| candidate(c, &mut page));
    }
    if let (Some(id), Some(peer)) = (d.kept_peer, &d.responder) {
        page.gap();
        page.line(
            Line::plain(format!(
                "Change {id} is in force on the responder's host until its next boot; `netwright tune \
                 rollback {id} --responder {peer}` undoes it from this host."
            )),
            2,
        );
    }
    if let Some(id) = d.kept {
        page.gap();
        page.line(
            Line::plain(format!(
                "Change {id} is in force until the next boot; `netwright tune rollback {id}` undoes \
                 it."
            )),
            2,
        );
    }
    page.caveats(d.notes.iter().map(Line::plain));
    page.finish()
}

/// How many were tried: `2 remedies tried`.
fn tried(d: &FixDocument) -> String {
    let was_tried =
        |c: &&Candidate| matches!(c.status, CandidateStatus::Kept | CandidateStatus::Undone);
    let tried = d.candidates.iter().filter(was_tried).count();
    format!("{} tried", remedies(tried))
}

fn remedies(n: usize) -> String {
    many(n, "remedy").replace("remedys", "remedies")
}

/// The answer: how much is kept and what it gained.
pub(crate) fn head(d: &FixDocument) -> Line {
    if d.dry_run {
        let would = d.candidates.iter().filter(|c| c.status == CandidateStatus::NotTried).count();
        let would = remedies(would);
        return Line::new()
            .ink(Ink::Strong, "Dry run")
            .text(format!(": {would} would be tried; nothing was changed."));
    }
    if d.kept.is_none() && d.kept_peer.is_none() {
        let line = Line::new().ink(Ink::Warn, "Nothing helped");
        return line.text(": no change kept, every value restored.");
    }
    let kept = many(d.changes.len(), "change");
    let line = Line::new().ink(Ink::Good, format!("{kept} kept"));
    let together = if d.changes.len() > 1 { " together" } else { "" };
    match &d.total {
        Some(v) => line.text(format!("{together}: {}, {} {}", says(v), d.goal, effect(v))),
        None => line,
    }
}

fn candidate(c: &Candidate, page: &mut Page) {
    let name = |k: &str, new: &str| format!("{k}={new}");
    let made = matches!(c.status, CandidateStatus::Kept | CandidateStatus::Undone);
    for (i, ch) in c.changes.iter().enumerate() {
        let mut line = Line::plain("  ").ink(Ink::Strong, name(&ch.knob, &ch.new)).text(
            match ch.old.as_str() {
                "" => String::new(),
                old => format!("  ({} {old})", if made { "was" } else { "is" }),
            },
        );
        if !ch.host.is_empty() {
            line = line.text(format!("  on {}", ch.host));
        }
        if i == 0 && !c.asked_by.is_empty() {
            line = line.ink(Ink::Faint, format!("  {}", c.asked_by));
        }
        page.line(line, 6);
    }
    if c.changes.is_empty() {
        page.line(Line::plain("  ").ink(Ink::Faint, &c.asked_by), 6);
    }
    let why = match &c.verdict {
        Some(v) if v.effect.is_some() => {
            format!("      {}, {}, {}", c.why, effect(v), many(c.runs, "run"))
        }
        _ => format!("      {}", c.why),
    };
    page.line(Line::plain(why), 6);
}

#[cfg(test)]
mod tests {
    use model::{
        fix::{FixChange, FixNote},
        prove::{Outcome, Verdict},
    };

    use super::*;
    use crate::testing::golden;

    fn verdict(outcome: Outcome, effect: f64) -> Verdict {
        Verdict {
            outcome,
            effect: Some(effect),
            low: Some(effect - 0.01),
            high: Some(effect + 0.01),
            difference: false,
            method: String::new(),
            blocks: 6,
            p: Some(0.03),
        }
    }

    fn a_candidate(
        knob: &str,
        status: CandidateStatus,
        verdict: Option<Verdict>,
        why: &str,
    ) -> Candidate {
        Candidate {
            asked_by: "finding x".into(),
            title: String::new(),
            changes: vec![FixChange {
                knob: knob.into(),
                host: String::new(),
                old: "1".into(),
                new: "2".into(),
                unit: String::new(),
                impact: None,
            }],
            status,
            why: why.into(),
            verdict,
            runs: 24,
        }
    }

    fn a_document(candidates: Vec<Candidate>) -> FixDocument {
        FixDocument {
            frozen_host: None,
            schema_version: 1,
            started_unix_s: 0,
            took_s: 12.0,
            workload: "w".into(),
            goal: "tps".into(),
            candidates,
            kept: Some(7),
            responder: None,
            kept_peer: None,
            changes: vec![],
            total: Some(verdict(Outcome::Better, 0.5)),
            dry_run: false,
            ended: "no further remedy helps".into(),
            notes: vec![],
        }
    }

    #[test]
    fn what_was_kept_and_what_was_undone_stand_apart() {
        let d = a_document(vec![
            a_candidate("a", CandidateStatus::Kept, Some(verdict(Outcome::Better, 0.5)), "better"),
            a_candidate("b", CandidateStatus::Undone, Some(verdict(Outcome::Worse, -0.1)), "worse"),
            a_candidate("c", CandidateStatus::Refused, None, "c: does harm"),
        ]);
        let look = TextStyle { colour: false, width: 100, verbose: false };
        let text = text(&d, look);
        let kept = text.find("KEPT").unwrap();
        let (undone, refused) = (text.find("UNDONE").unwrap(), text.find("REFUSED").unwrap());
        assert!(kept < text.find("a=2").unwrap() && text.find("a=2").unwrap() < undone, "{text}");
        assert!(
            undone < text.find("b=2").unwrap() && refused < text.find("c=2").unwrap(),
            "{text}"
        );
        assert!(text.contains("+50.0% (95% CI +49.0% to +51.0%)"), "{text}");
        assert!(text.contains("netwright tune rollback 7"), "{text}");
    }

    #[test]
    fn the_verdict_stands_in_the_first_line_at_both_widths() {
        let mut d = a_document(vec![
            a_candidate("a", CandidateStatus::Kept, Some(verdict(Outcome::Better, 0.5)), "better"),
            a_candidate("b", CandidateStatus::Undone, Some(verdict(Outcome::Worse, -0.1)), "worse"),
            a_candidate("c", CandidateStatus::Refused, None, "c: does harm"),
        ]);
        d.changes = d.candidates[0].changes.clone();
        d.notes = vec![FixNote::Other { code: "busy".into(), message: "the host was busy".into() }];
        golden!("fix", "1 change kept: better, tps +50.0% (95% CI", |style| text(&d, style));
    }

    #[test]
    fn what_is_changed_at_the_server_names_its_host() {
        let better = verdict(Outcome::Better, 0.5);
        let mut there =
            a_candidate("peer:a", CandidateStatus::Kept, Some(better.clone()), "better");
        there.changes[0].host = "db1".into();
        let mut d = a_document(vec![there]);
        (d.kept, d.kept_peer, d.responder) = (None, Some(3), Some("db1".into()));
        let text = text(&d, TextStyle { colour: false, width: 200, verbose: false });
        assert!(text.contains("peer:a=2  (was 1)  on db1"), "{text}");
        assert!(text.contains("netwright tune rollback 3 --responder db1"), "{text}");
        assert!(!text.contains("Nothing helped"), "{text}");
    }
}
