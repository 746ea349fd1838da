//! The whole page: the story of all documents first, then a chapter for each.

use crate::{
    block::{Chapter, Page, Text},
    chapter::{self, Part, Written},
    document::Document,
};

/// The parts of the story, their questions, and what would answer them where no document does.
const PARTS: [(Part, &str, &str); 4] = [
    (Part::Limits, "What limits", "`netwright doctor --json` or `explain TARGET --json`"),
    (Part::Measured, "What was measured", "`netwright measure … --json`"),
    (Part::Changed, "What was changed", "`netwright fix --json` or `prove … --json`"),
    (
        Part::Gained,
        "What it gave",
        "`netwright fix --json`, `prove … --json` or `compare … --json`",
    ),
];

/// The page of these documents, in the order of its chapters.
pub fn page(documents: &[Document], title: Option<&str>) -> Page {
    let mut sorted: Vec<&Document> = documents.iter().collect();
    sorted.sort_by_key(|d| chapter::order(&d.kind));
    let mut written: Vec<Written> =
        sorted.iter().enumerate().map(|(n, d)| chapter::write(d, n + 1)).collect();
    tell_apart(&sorted, &mut written);
    let title = match (title, written.as_slice()) {
        (Some(title), _) => title.to_owned(),
        (None, [one]) => one.chapter.title.clone(),
        (None, _) => "Network report".to_owned(),
    };
    let mut chapters = vec![story(&written)];
    chapters.extend(written.into_iter().map(|w| w.chapter));
    Page { title, about: about(&sorted), chapters }
}

/// Adds the name of the file where several chapters have one title.
fn tell_apart(documents: &[&Document], written: &mut [Written]) {
    let titles: Vec<String> = written.iter().map(|w| w.chapter.title.clone()).collect();
    for (n, w) in written.iter_mut().enumerate() {
        let same = titles.iter().filter(|t| titles.get(n) == Some(t)).count() > 1;
        if let Some(d) = documents.get(n).filter(|_| same) {
            w.chapter.title += &format!(" ({})", d.name);
            let parts = w.story.iter_mut();
            parts.for_each(|(_, text)| *text = text.clone().and(format!(" ({})", d.name)));
        }
    }
}

/// Which documents the page was made of, and when they were measured.
fn about(documents: &[&Document]) -> String {
    let mut times: Vec<u64> =
        documents.iter().filter_map(|d| d.at("/started_unix_s")?.as_u64()).collect();
    times.sort_unstable();
    let made = format!("Made by netwright from {}", chapter_count(documents.len()));
    match (times.first(), times.last()) {
        (Some(first), Some(last)) if date(*first) == date(*last) => {
            format!("{made}, measured on {} (UTC).", date(*first))
        }
        (Some(first), Some(last)) => {
            format!("{made}, measured from {} to {} (UTC).", date(*first), date(*last))
        }
        _ if documents.len() == 1 => format!("{made}, which does not say when it was made."),
        _ => format!("{made}, none of which says when it was made."),
    }
}

fn chapter_count(n: usize) -> String {
    if n == 1 { "one result".into() } else { format!("{n} results") }
}

fn story(written: &[Written]) -> Chapter {
    let mut chapter = Chapter::new("story", "In short");
    let mut missing = vec![];
    for (part, title, source) in PARTS {
        let told = |w: &'_ Written| {
            let mine = w.story.iter().filter(|s| s.0 == part);
            let link = |s: &(Part, Text)| s.1.clone().and(" ").link(&w.chapter.id, "details");
            mine.map(link).collect::<Vec<Text>>()
        };
        let said: Vec<Text> = written.iter().flat_map(told).collect();
        if said.is_empty() {
            missing.push(format!("{}: {source}", title.to_lowercase()));
            continue;
        }
        chapter.heading(title);
        chapter.list(said);
    }
    if !missing.is_empty() {
        chapter.say(Text::with_code(&format!(
            "Not in these results, with what would say it: {}.",
            missing.join("; ")
        )));
    }
    chapter
}

/// Days since 1970 as a date of the Gregorian calendar: `2026-11-26`.
///
/// **Source**: Howard Hinnant, "chrono-compatible low-level date algorithms", `civil_from_days`.
fn date(unix_s: u64) -> String {
    let z = unix_s / 86_400 + 719_468;
    let era = z / 146_097;
    let doe = z % 146_097;
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let day = doy - (153 * mp + 2) / 5 + 1;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    let year = yoe + era * 400 + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    #[test]
    fn days_become_dates() {
        let dates = [0, 951_782_400, 951_868_800, 1_795_708_827].map(super::date);
        assert_eq!(dates, ["1970-01-01", "2000-02-29", "2000-03-01", "2026-11-26"]);
    }
}
