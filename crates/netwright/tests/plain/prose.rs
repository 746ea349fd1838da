//! Tests of every page's sentences: none above 35 words, half of a page's have at most 16, and
//! Flesch's reading ease is that of plain English.

use std::path::Path;

use super::docs::{documents, text};

const LONGEST: usize = 35;
const MEDIAN: usize = 16;

/// The least reading ease of README and of the guides: plain English begins at 60, fairly easy at 70.
const GUIDE_EASE: f64 = 70.0;
/// The least reading ease of every other page.
const EASE: f64 = 60.0;
/// Pages of fewer words are lists of links: their score says nothing.
const FEWEST_WORDS: usize = 100;

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
fn sentences_are_distinguished_as_people_do() {
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

/// The syllables of an English word, by its groups of vowels; a silent `e` at its end has none.
fn syllables(word: &str) -> usize {
    let letters = word.to_lowercase().chars().filter(char::is_ascii_alphabetic).collect::<String>();
    let groups = letters.split(|c| !"aeiouy".contains(c)).filter(|g| !g.is_empty()).count();
    let silent = letters.ends_with('e') && !letters.ends_with("le") && groups > 1;
    (groups - usize::from(silent)).max(1)
}

/// Flesch's reading ease (R. Flesch, "A new readability yardstick", 1948): 100 is very easy, 0 very
/// hard. With it the number of words; `None` for a text without any.
fn reading_ease(page: &str) -> Option<(f64, usize)> {
    let all = sentences(page);
    let spoken = |s: &String| {
        let words = s.split(' ').filter(|w| w.contains(|c: char| c.is_alphanumeric()));
        words.map(syllables).collect::<Vec<_>>()
    };
    let all: Vec<Vec<usize>> = all.iter().map(spoken).filter(|s| !s.is_empty()).collect();
    let (words, syllables) =
        (all.iter().map(Vec::len).sum::<usize>(), all.iter().flatten().sum::<usize>());
    let (per_sentence, per_word) =
        (words as f64 / all.len() as f64, syllables as f64 / words as f64);
    (words > 0).then_some((206.835 - 1.015 * per_sentence - 84.6 * per_word, words))
}

#[test]
fn a_dense_text_is_harder_than_a_plain_one() {
    let counted = ["the", "table", "interrupt", "measure", "configuration", "a"].map(syllables);
    assert_eq!(counted, [1, 2, 3, 2, 5, 1]);
    // Six words of one syllable each.
    let (easy, _) = reading_ease("The cat sat on the mat.").unwrap();
    assert!((easy - 116.145).abs() < 1e-9, "{easy}");
    let dense = "Consideration of the interdependencies between heterogeneous configuration \
                 parameters necessitates comprehensive characterisation of operational environments.";
    let (hard, words) = reading_ease(dense).unwrap();
    assert!(hard < 0.0 && words == 14, "{hard} of {words} words");
    // What the style refuses: the first example of a text that was given up.
    let stacked = "No claim is made of what follows a setting that is named itself, of what a step \
                   that was interrupted may have transferred to another interface meanwhile, or of \
                   any subsequent configuration modifications.";
    assert!(reading_ease(stacked).unwrap().0 < EASE);
    assert_eq!(reading_ease("# Heading\n\n| a | b |"), None);
}

/// The guides of docs/README.md, and README itself.
fn guides() -> Vec<String> {
    let index = documents().into_iter().find(|p| p.ends_with("docs/README.md")).unwrap();
    let index = text(&index);
    let section = index.split("\n## Guides").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows = section.lines().filter_map(|l| l.strip_prefix("| [")?.split(']').next());
    let mut all: Vec<String> = rows.map(|page| format!("docs/{page}")).collect();
    assert!(all.len() > 8, "only {all:?}");
    all.push("README.md".into());
    all
}

#[test]
fn readme_and_guides_are_easy_to_read_and_no_page_is_hard() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let (guides, mut wrong, mut seen) = (guides(), vec![], 0);
    for page in documents() {
        // Pages beside the fixtures list files.
        let Ok(path) = page.strip_prefix(&root) else { continue };
        if path.starts_with("crates") {
            continue;
        }
        let guide = guides.iter().any(|g| path == Path::new(g));
        let Some((ease, words)) = reading_ease(&text(&page)) else { continue };
        let least = if guide { GUIDE_EASE } else { EASE };
        if words >= FEWEST_WORDS {
            seen += 1;
            if ease < least {
                wrong.push(format!("{}: reading ease {ease:.1}, at least {least}", path.display()));
            }
        }
    }
    assert!(seen > 40, "only {seen} pages were seen");
    assert!(wrong.is_empty(), "{wrong:#?}");
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
