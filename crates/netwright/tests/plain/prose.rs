//! Tests of every page's sentences: none above 35 words, and half of a page's have at most 16.

use super::docs::{documents, text};

const LONGEST: usize = 35;
const MEDIAN: usize = 16;

/// Paragraphs and list items, without code, tables, headings and HTML.
fn blocks(page: &str) -> Vec<String> {
    let (mut all, mut block, mut code) = (vec![], vec![], false);
    for line in page.lines().map(str::trim).chain([""]) {
        let fence = line.starts_with("```");
        code ^= fence;
        let item = line.trim_start_matches(|c: char| c.is_ascii_digit());
        let number = item.len() < line.len();
        let mark = if number { item.strip_prefix(". ") } else { line.strip_prefix("- ") };
        let breaks = fence || code || line.is_empty() || line.starts_with(['#', '|', '<']);
        if breaks || mark.is_some() {
            all.push(std::mem::take(&mut block).join(" "));
        }
        if !breaks {
            block.push(mark.unwrap_or(line).trim_start_matches("> "));
        }
    }
    all
}

/// A link counts as its text; code in backquotes counts as one word.
fn plain(block: &str) -> String {
    let (mut text, mut rest) = (String::new(), block);
    while let Some(at) = rest.find(['`', ']']) {
        let (before, from) = rest.split_at(at);
        text += before;
        let end = match from.strip_prefix("](") {
            Some(link) => link.find(')').map(|end| end + 2),
            None if from.starts_with('`') => {
                text += "X";
                from[1..].find('`').map(|end| end + 1)
            }
            None => Some(0),
        };
        rest = &from[end.map_or(from.len(), |end| end + 1)..];
    }
    (text + rest).replace(['*', '['], "")
}

/// The sentences of a text. Each ends at a full stop before a capital, a digit or a bracket.
fn sentences(page: &str) -> Vec<String> {
    let mut all = vec![];
    for block in blocks(page) {
        let mut sentence: Vec<&str> = vec![];
        let text = plain(&block);
        let words: Vec<&str> = text.split_whitespace().collect();
        for (i, word) in words.iter().enumerate() {
            sentence.push(word);
            let stops = word.trim_end_matches([')', '"', '”']).ends_with(['.', '!', '?']);
            let next = words.get(i + 1).map(|w| w.trim_start_matches(['(', '"', '“']));
            let begins = next
                .is_none_or(|w| w.starts_with(|c: char| c.is_uppercase() || c.is_ascii_digit()));
            if (stops && begins) || next.is_none() {
                all.push(std::mem::take(&mut sentence).join(" "));
            }
        }
    }
    all
}

fn words(sentence: &str) -> usize {
    sentence.split(' ').filter(|w| w.contains(|c: char| c.is_alphanumeric())).count()
}

#[test]
fn sentences_are_told_apart_as_people_do() {
    let page = "# No. Heading\n\nOne two ([three `a b. C`](x.md#y)) four. Five\nsix e.g. seven.\n\n| No. Table |\n\
        - Eight nine\n2. Ten! `x` Eleven\n```\nNo code. At all\n```\n> \"Twelve.\"";
    let reported = sentences(page);
    let expected = [
        "One two (three X) four.",
        "Five six e.g. seven.",
        "Eight nine",
        "Ten!",
        "X Eleven",
        "\"Twelve.\"",
    ];
    assert_eq!(reported, expected);
    assert_eq!(reported.iter().map(|s| words(s)).collect::<Vec<_>>(), [5, 4, 2, 1, 2, 1]);
}

#[test]
fn every_page_is_in_short_sentences() {
    let (mut wrong, mut seen) = (vec![], 0);
    for page in documents() {
        let all = sentences(&text(&page));
        let mut lengths: Vec<usize> = all.iter().map(|s| words(s)).collect();
        lengths.sort_unstable();
        seen += lengths.len();
        let long = all.iter().filter(|s| words(s) > LONGEST);
        wrong.extend(long.map(|s| format!("{}: {} words: {s}", page.display(), words(s))));
        let median = lengths.get(lengths.len().saturating_sub(1) / 2).copied().unwrap_or(0);
        if median > MEDIAN {
            wrong.push(format!("{}: the median sentence has {median} words", page.display()));
        }
    }
    assert!(seen > 2_000, "only {seen} sentences were seen");
    assert!(wrong.is_empty(), "{wrong:#?}");
}
