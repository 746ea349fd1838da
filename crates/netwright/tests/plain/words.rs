//! Tests of the language: no word that docs/glossary-given-up.md replaces appears in text for people or in a
//! public name.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use super::docs::TOP;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The words in backquotes of the first column of a section's table.
fn given_up(heading: &str) -> Vec<String> {
    let glossary = fs::read_to_string(repository().join("docs/glossary-given-up.md")).unwrap();
    let start = format!("\n## {heading}\n");
    let section = glossary.split(&start).nth(1).unwrap_or_else(|| panic!("no section {heading}"));
    let rows = section.split("\n## ").next().unwrap().lines().filter(|l| l.starts_with("| "));
    let firsts = rows.filter_map(|l| l.split('|').nth(1));
    let words: Vec<String> =
        firsts.flat_map(|f| f.split('`').skip(1).step_by(2)).map(str::to_lowercase).collect();
    assert!(words.len() >= 15, "{heading}: only {words:?}");
    words
}

/// Whether a text has a word, whole and in any case.
fn has(text: &str, word: &str) -> bool {
    let text = text.to_lowercase();
    let part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric());
    text.match_indices(word).any(|(at, _)| {
        !part(text[..at].chars().next_back()) && !part(text[at + word.len()..].chars().next())
    })
}

/// Every file below a folder whose path a test accepts.
fn files(folder: &str, wanted: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    let (mut found, mut folders) = (vec![], vec![repository().join(folder)]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if wanted(&path) {
                found.push(path);
            }
        }
    }
    found
}

fn ends(path: &Path, with: &str) -> bool {
    path.extension().is_some_and(|e| e == with)
}

/// The sources that ship, without their tests.
pub fn sources() -> Vec<(PathBuf, String)> {
    let ships = |p: &Path| {
        let text = p.to_string_lossy();
        ends(p, "rs")
            && text.contains("/src/")
            && !["tests", "testing", "fuzzed"].iter().any(|t| text.contains(&format!("/{t}")))
    };
    let read = |p: PathBuf| {
        let text = fs::read_to_string(&p).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default().to_owned();
        (p, code)
    };
    let all: Vec<_> = files("crates", ships).into_iter().map(read).collect();
    assert!(all.len() > 400, "only {} sources", all.len());
    all
}

/// The string literals of a Rust source; comments and characters are skipped.
fn literals(code: &str) -> Vec<String> {
    let (mut found, mut rest) = (vec![], code);
    while let Some(at) = rest.find(['"', '/', '\'']) {
        let (before, from) = rest.split_at(at);
        if let Some(comment) = from.strip_prefix("//") {
            rest = comment.split_once('\n').map_or("", |(_, r)| r);
        } else if let Some(text) = from.strip_prefix('"') {
            let raw = before.trim_end_matches('#');
            let hashes = &before[raw.len()..];
            let end = if raw.ends_with('r') {
                text.find(&format!("\"{hashes}"))
            } else {
                let mut escaped = false;
                text.find(|c| {
                    let ends = c == '"' && !escaped;
                    escaped = c == '\\' && !escaped;
                    ends
                })
            };
            let end = end.unwrap_or(text.len());
            found.push(text[..end].split_whitespace().collect::<Vec<_>>().join(" "));
            rest = text.get(end + 1..).unwrap_or("");
        } else if let Some(after) = from.strip_prefix("'\"'") {
            rest = after;
        } else {
            rest = &from[1..];
        }
    }
    found
}

/// The help of a command and of those below it.
fn helps(command: &[String], all: &mut Vec<(String, String)>) {
    let run = Command::new(env!("CARGO_BIN_EXE_netwright")).args(command).arg("--help").output();
    let text = String::from_utf8(run.unwrap().stdout).unwrap();
    let listed = text.split("\nCommands:\n").nth(1).unwrap_or("").split("\n\n").next().unwrap();
    let below = listed.lines().filter_map(|l| l.strip_prefix("  ")?.split(' ').next());
    for name in below.filter(|n| !n.is_empty() && *n != "help") {
        helps(&[command, &[name.to_owned()]].concat(), all);
    }
    all.push((format!("netwright {} --help", command.join(" ")), text));
}

#[test]
fn what_a_person_reads_has_no_given_up_word() {
    let words = given_up("Given up");
    let mut texts: Vec<(String, String)> = vec![];
    helps(&[], &mut texts);
    assert!(texts.len() > 25, "only {} helps", texts.len());
    let read = |p: PathBuf| (p.display().to_string(), fs::read_to_string(p).unwrap());
    let page = |p: &Path| ends(p, "md") && !p.ends_with("docs/glossary-given-up.md");
    texts.extend(files("docs", |p| page(p) || ends(p, "json")).into_iter().map(read));
    texts.extend(files("crates/report/src", |p| ends(p, "txt")).into_iter().map(read));
    texts.extend(
        files("crates/diagnose/tests/golden", |p| p.ends_with("expect.json")).into_iter().map(read),
    );
    texts.extend(TOP.map(|f| read(repository().join(f))));
    for (path, code) in sources() {
        texts.extend(literals(&code).into_iter().map(|l| (path.display().to_string(), l)));
    }
    let mut wrong = vec![];
    for (place, text) in &texts {
        for word in words.iter().filter(|w| has(text, w)) {
            let line = text.lines().find(|l| has(l, word)).unwrap_or("");
            wrong.push(format!("{place}: {word}: {line}"));
        }
    }
    assert!(
        wrong.is_empty(),
        "docs/glossary-given-up.md says what to write instead:\n{}",
        wrong.join("\n")
    );
}

/// The public names of a source: `pub` items, fields and modules.
fn public_names(code: &str) -> Vec<String> {
    let kinds = ["struct", "enum", "trait", "type", "mod", "fn", "const", "static", "union"];
    let name = |l: &str| {
        let l = l.trim_start().strip_prefix("pub")?;
        let l = if l.starts_with('(') { l.split_once(')')?.1 } else { l };
        let l = l.strip_prefix(' ')?;
        let mut parts =
            l.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|p| !p.is_empty());
        let first = parts.find(|p| !["unsafe", "async", "extern"].contains(p))?;
        let named =
            if kinds.contains(&first) { parts.find(|p| *p != "fn" && *p != "mut")? } else { first };
        Some(named.to_owned())
    };
    code.lines().filter_map(name).collect()
}

/// Splits names: `FarProgram` and `FAR_PROGRAM` become `far_program`.
fn snake(name: &str) -> String {
    let shouted = name.chars().all(|c| !c.is_lowercase());
    let mut text = String::from("_");
    for c in name.chars() {
        if c.is_uppercase() && !shouted {
            text.push('_');
        }
        text.extend(c.to_lowercase());
    }
    text + "_"
}

#[test]
fn no_public_name_and_no_file_has_a_given_up_word() {
    let words = given_up("Given up in names");
    let mut names: Vec<(String, String)> = vec![];
    for (path, code) in sources() {
        let place = path.display().to_string();
        let below = path.strip_prefix(repository().join("crates")).unwrap().with_extension("");
        names.extend(
            below
                .components()
                .map(|c| (place.clone(), c.as_os_str().to_string_lossy().into_owned())),
        );
        names.extend(public_names(&code).into_iter().map(|n| (place.clone(), n)));
    }
    assert!(names.len() > 5000, "only {} names", names.len());
    let bad = |name: &str, word: &str| snake(name).contains(&format!("_{word}_"));
    let wrong: Vec<String> = names
        .iter()
        .filter_map(|(place, name)| {
            let word = words.iter().find(|w| bad(name, w))?;
            Some(format!("{place}: {name}: {word}"))
        })
        .collect();
    assert!(
        wrong.is_empty(),
        "docs/glossary-given-up.md says what to write instead:\n{}",
        wrong.join("\n")
    );
}

/// The names of the tests of a source.
fn test_names(code: &str) -> Vec<String> {
    let after = code.split("#[test]\n").skip(1);
    let name = |t: &str| Some(t.split_once("fn ")?.1.split_once('(')?.0.to_owned());
    after.filter_map(name).collect()
}

/// The words of a name that a sentence needs for something else: `as_far_as`, `near_the_truth`.
fn with_plain_words(name: &str) -> String {
    let plain = ["so_far", "as_far_as", "however_far", "near_the"];
    plain.iter().fold(name.to_owned(), |name, phrase| name.replace(phrase, "x"))
}

#[test]
fn no_test_has_a_given_up_word_in_its_name() {
    let words = given_up("Given up in names");
    let (mut wrong, mut seen) = (vec![], 0);
    for file in files("crates", |p| ends(p, "rs")) {
        for name in test_names(&fs::read_to_string(&file).unwrap()) {
            seen += 1;
            let read = format!("_{}_", with_plain_words(&name));
            let word = words.iter().find(|w| read.contains(&format!("_{w}_")));
            wrong.extend(word.map(|w| format!("{}: {name}: {w}", file.display())));
        }
    }
    assert!(seen > 1500, "only {seen} tests");
    assert!(
        wrong.is_empty(),
        "docs/glossary-given-up.md says what to write instead:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn a_word_that_was_given_up_is_seen() {
    assert_eq!(
        test_names("#[test]\nfn a_far_end() {}\n#[test]\n#[ignore]\nfn told() {}"),
        ["a_far_end", "told"]
    );
    assert_eq!(with_plain_words("a_far_end_so_far"), "a_far_end_x");
    assert!(has("Ask the Far end.", "far end") && !has("afar ends", "far end"));
    let code = "// \"far end\" in a comment\nlet a = '\"'; let b = \"the far \\\n   end \\\" of it\"; let c = r#\"a \"b\"#;";
    assert_eq!(literals(code), ["the far \\ end \\\" of it", "a \"b"]);
    assert_eq!(
        public_names("    pub kept_far: u64,\npub(crate) enum Radius {\npub const fn told() {"),
        ["kept_far", "Radius", "told"]
    );
    assert!(snake("FarProgram").contains("_far_") && snake("FAR_NODE").contains("_far_"));
    assert!(!snake("farther").contains("_far_"));
}
