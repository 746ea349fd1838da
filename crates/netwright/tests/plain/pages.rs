//! Tests of the pages as a whole: each is short enough to read, and the index leads to each.

use std::{collections::BTreeSet, path::PathBuf};

use super::docs::{documents, inside, links, repository, text};

/// The most words of a page below `docs`, as `wc -w` counts: code and tables count.
const WORDS: usize = 1_500;

/// The pages below `docs`.
fn pages() -> Vec<PathBuf> {
    let folder = repository().join("docs");
    let all: Vec<PathBuf> = documents().into_iter().filter(|p| p.starts_with(&folder)).collect();
    assert!(all.len() > 80, "only {} pages", all.len());
    all
}

#[test]
fn no_page_is_too_long_to_read() {
    let count = |p: &PathBuf| text(p).split_whitespace().count();
    let long = pages().into_iter().map(|p| (count(&p), p)).filter(|(words, _)| *words > WORDS);
    let long: Vec<_> = long.collect();
    assert!(long.is_empty(), "split what has more than {WORDS} words, by idea: {long:#?}");
}

#[test]
fn the_index_leads_to_every_page() {
    let index = repository().join("docs/README.md");
    let own = text(&index);
    let links = links(&own).into_iter().filter(|l| !l.contains("://"));
    let reached: BTreeSet<PathBuf> = links
        .map(|l| index.parent().unwrap().join(l.split('#').next().unwrap()))
        .filter_map(|p| inside(&p, &repository()))
        .collect();
    // A folder in the index stands for the pages in it.
    let listed = |p: &PathBuf| reached.contains(p) || reached.contains(p.parent().unwrap());
    let lost: Vec<PathBuf> = pages().into_iter().filter(|p| *p != index && !listed(p)).collect();
    assert!(lost.is_empty(), "docs/README.md has no row for {lost:#?}");
}

/// Each field case is worked from the symptom to the undo, in this order.
#[test]
fn each_guided_tour_has_its_steps() {
    const STEPS: [&str; 6] =
        ["Symptom", "Find the cause", "What it means", "Change it", "Prove it", "Undo it"];
    let page = repository().join("docs/tours.md");
    let index = text(&page);
    let rows = index.lines().filter(|l| l.starts_with("| ") && l.contains("](lab/"));
    let tours: BTreeSet<String> = rows.flat_map(links).collect();
    assert_eq!(tours.len(), 5, "{tours:?}");
    for tour in tours {
        let text = text(&page.with_file_name(&tour));
        let steps: Vec<&str> = text.lines().filter_map(|l| l.strip_prefix("## ")).collect();
        assert_eq!(steps, STEPS, "{tour}");
        // Real commands, and output that is dated.
        assert!(text.matches("```console").count() >= 4 && text.contains("2026-"), "{tour}");
    }
}
