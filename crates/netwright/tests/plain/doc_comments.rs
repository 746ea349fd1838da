//! Tests of the doc comments: each says something that the name beside it does not.

use super::words::sources;

/// Three words or fewer repeat the name of what they stand at.
const FEWEST: usize = 4;

/// The doc comments of a source, each with the number of its first line, from 1.
fn doc_comments(code: &str) -> Vec<(usize, String)> {
    let (mut all, mut last) = (vec![], None);
    for (n, line) in code.lines().map(str::trim_start).enumerate() {
        let mark = ["///", "//!"].into_iter().find(|m| line.starts_with(m));
        let Some(mark) = mark else {
            last = None;
            continue;
        };
        if last != Some(mark) {
            all.push((n + 1, String::new()));
        }
        last = Some(mark);
        if let Some((_, text)) = all.last_mut() {
            *text += " ";
            *text += line[mark.len()..].trim();
        }
    }
    all
}

#[test]
fn doc_comments_are_distinguished() {
    let code =
        "//! A file.\n//!\n//! More of it.\n\n/// One\n/// item.\nfn a() {} // no\n    /// Two.\n";
    let found = doc_comments(code);
    let words = |t: &String| t.split_whitespace().count();
    let found: Vec<_> = found.iter().map(|(n, t)| (*n, words(t))).collect();
    assert_eq!(found, [(1, 5), (5, 2), (8, 1)]);
}

#[test]
fn every_doc_comment_says_something() {
    let (mut short, mut seen) = (vec![], 0);
    for (path, code) in sources() {
        for (line, text) in doc_comments(&code) {
            seen += 1;
            if text.split_whitespace().count() < FEWEST {
                short.push(format!("{}:{line}:{text}", path.display()));
            }
        }
    }
    assert!(seen > 8_000, "only {seen} doc comments were seen");
    let advice = "say the meaning, shape, unit or source, or take it out";
    assert!(short.is_empty(), "{advice}:\n{}", short.join("\n"));
}
