//! Tests that the list of rules agrees with the folder and the manual.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

use std::{collections::BTreeSet, fs, path::Path};

use diagnose::rules::ALL;

fn folder(path: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

#[test]
fn the_list_names_every_file_of_the_folder() {
    let files: BTreeSet<String> = fs::read_dir(folder("src/rules"))
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .filter_map(|n| n.strip_suffix(".rs").map(str::to_owned))
        .filter(|n| n != "mod")
        .collect();
    let listed: BTreeSet<String> = ALL.iter().map(|r| r.id.to_owned()).collect();
    assert_eq!(files, listed);
}

#[test]
fn ids_and_numbers_are_unique_and_ascending() {
    assert!(ALL.windows(2).all(|w| w[0].number < w[1].number));
    assert_eq!(ALL.iter().map(|r| r.id).collect::<BTreeSet<_>>().len(), ALL.len());
}

#[test]
fn every_rule_says_what_it_needs() {
    assert!(ALL.iter().all(|r| !r.title.is_empty() && !r.needs.is_empty()));
}

#[test]
fn causes_exist_and_form_no_cycle() {
    let mut open: Vec<_> = ALL.iter().collect();
    for rule in ALL {
        for cause in rule.explained_by {
            assert!(ALL.iter().any(|r| r.id == *cause), "{} names {cause}", rule.id);
        }
    }
    while !open.is_empty() {
        let left: BTreeSet<&str> = open.iter().map(|r| r.id).collect();
        let before = open.len();
        open.retain(|r| r.explained_by.iter().any(|c| left.contains(c)));
        assert!(open.len() < before, "a cycle among {left:?}");
    }
}

/// The index `docs/rules.md` and the pages `docs/rules-*.md` that it leads to.
#[test]
fn the_manual_has_a_row_and_a_section_for_every_rule() {
    let index = fs::read_to_string(folder("../../docs/rules.md")).unwrap();
    let mut sections = vec![];
    for entry in fs::read_dir(folder("../../docs")).unwrap() {
        let page = entry.unwrap().file_name().into_string().unwrap();
        if !page.starts_with("rules-") {
            continue;
        }
        let text = fs::read_to_string(folder("../../docs").join(&page)).unwrap();
        let headings = text.lines().filter(|l| l.starts_with("## ") && l.contains('`'));
        sections.extend(headings.map(|h| (h.to_owned(), page.clone())));
    }
    for rule in ALL {
        let heading = format!("## {}. `{}`", rule.number, rule.id);
        let found: Vec<_> = sections.iter().filter(|(h, _)| *h == heading).collect();
        let [(_, page)] = found[..] else { panic!("docs/rules-*.md: {heading:?} in {found:?}") };
        let (number, id, title) = (rule.number, rule.id, rule.title);
        let row = format!("| {number} | [`{id}`]({page}#{number}-{id}) | {title} |");
        assert!(index.contains(&row), "docs/rules.md lacks {row:?}");
    }
    assert_eq!(sections.len(), ALL.len(), "docs/rules-*.md describe a rule that does not exist");
}
