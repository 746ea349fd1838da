//! Tests of what `make site` gives to mdBook: every page of `docs` is a chapter, and no link leads out of the book.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::Command,
};

use super::docs::{inside, links, repository, text};

/// Every Markdown file below a folder.
fn pages(folder: &Path) -> BTreeSet<PathBuf> {
    let (mut found, mut open) = (BTreeSet::new(), vec![folder.to_owned()]);
    while let Some(at) = open.pop() {
        for entry in std::fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|e| e == "md") {
                found.insert(path);
            }
        }
    }
    found
}

/// The file that a link of a page leads to; `None` for the web.
fn target(page: &Path, link: &str, root: &Path) -> Option<PathBuf> {
    if link.contains("://") || link.starts_with('#') {
        return None;
    }
    let path = page.parent().unwrap().join(link.split('#').next().unwrap());
    Some(inside(&path, root).unwrap_or_else(|| panic!("{}: {link} leaves it", page.display())))
}

#[test]
fn every_page_is_a_chapter_and_every_link_stays_in_the_book() {
    let folder = tempfile::tempdir().unwrap();
    let out = Command::new(repository().join("scripts/site"))
        .arg("--prepare")
        .arg(folder.path())
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let source = folder.path().join("src");
    let summary = source.join("SUMMARY.md");
    let listed: Vec<PathBuf> =
        links(&text(&summary)).iter().filter_map(|l| target(&summary, l, &source)).collect();
    let chapters: BTreeSet<PathBuf> = listed.iter().cloned().collect();
    assert_eq!(chapters.len(), listed.len(), "a chapter stands there twice");
    let mut written = pages(&source);
    written.remove(&summary);
    assert_eq!(chapters, written, "chapters, against the pages that were written");
    // mdBook calls the first page of a folder `index`.
    let renamed =
        |p: PathBuf| if p.ends_with("README.md") { p.with_file_name("index.md") } else { p };
    let (ours, docs) = (repository(), repository().join("docs"));
    let ours =
        pages(&docs).into_iter().map(|p| renamed(source.join(p.strip_prefix(&ours).unwrap())));
    let lost: Vec<PathBuf> = ours.filter(|p| !chapters.contains(p)).collect();
    assert!(lost.is_empty() && chapters.len() > 100, "no chapters: {lost:?}");
    let mut followed = 0;
    for page in &chapters {
        for link in links(&text(page)) {
            let Some(to) = target(page, &link, &source) else { continue };
            assert!(to.is_file(), "{}: ({link}) is no file of the book", page.display());
            followed += 1;
        }
    }
    assert!(followed > 300, "only {followed} links");
}
