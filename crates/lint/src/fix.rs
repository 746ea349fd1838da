//! The files as they should be, as a unified diff: without the lines that should go. Pure.

use model::lint::{LineVerdict, LintDocument, LintLine};

use crate::{files::ReadFile, kind::Kind};

/// Lines of context around a change, as diff(1) has.
const CONTEXT: usize = 3;

/// The diff, and a line for each line that has to be taken out by hand.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fix {
    pub diff: String,
    pub by_hand: Vec<String>,
}

/// What `patch -p0` takes; of absolute names with `-d /`.
pub fn diff(document: &LintDocument, files: &[ReadFile]) -> Fix {
    let mut fix = Fix::default();
    let named: Vec<&str> = files.iter().map(|f| f.name.as_str()).collect();
    for line in document.lines.iter().filter(|l| l.verdict.should_go()) {
        if !named.contains(&line.file.as_str()) {
            fix.by_hand.push(format!(
                "{}:{}: of an included profile: override it or copy the profile",
                line.file, line.line
            ));
        }
    }
    for file in files {
        let of_file = |l: &&LintLine| l.file == file.name && l.verdict.should_go();
        let bad: Vec<&LintLine> = document.lines.iter().filter(of_file).collect();
        // A command between `then` and `fi` leaves a place that must not be empty.
        let removable = matches!(file.kind, Kind::Sysctl | Kind::Tuned | Kind::Irqbalance);
        let all_of_line = |l: &LintLine| {
            document
                .lines
                .iter()
                .filter(|o| o.file == l.file && o.line == l.line)
                .all(|o| o.verdict.should_go())
        };
        let mut edits: Vec<(usize, Option<String>)> = Vec::new();
        for line in bad {
            let number = line.line as usize;
            if edits.iter().any(|(n, _)| *n == number) {
                continue;
            }
            let text = file.text.lines().nth(number.saturating_sub(1)).unwrap_or_default();
            if !line.whole || !all_of_line(line) || text.ends_with('\\') {
                fix.by_hand.push(format!("{}:{}: holds more than this setting", file.name, number));
            } else if removable {
                edits.push((number, None));
            } else {
                let indent: String = text.chars().take_while(|c| c.is_whitespace()).collect();
                let shown = text.trim_start();
                // A dotted name alone is no command of a shell: it belongs to a recipe.
                let keep = match shown
                    .split('=')
                    .next()
                    .is_some_and(|k| k.trim().contains('.') && !k.trim().contains(' '))
                {
                    true => None,
                    false => Some(format!("{indent}: # {}: {shown}", reason(line.verdict))),
                };
                edits.push((number, keep));
            }
        }
        if !edits.is_empty() {
            edits.sort();
            fix.diff.push_str(&unified(&file.name, &file.text, &edits));
        }
    }
    fix
}

fn reason(verdict: LineVerdict) -> String {
    format!("netwright lint: {verdict}")
}

/// One file's part of the diff: lines (from 1) that are taken out, or replaced.
fn unified(name: &str, text: &str, edits: &[(usize, Option<String>)]) -> String {
    let lines: Vec<&str> = text.split('\n').collect();
    // The piece after the last line end is no line.
    let ends = text.ends_with('\n');
    let count = if ends { lines.len() - 1 } else { lines.len() };
    // patch(1) takes no absolute name.
    let name = name.trim_start_matches('/');
    let mut out = format!("--- {name}\n+++ {name}\n");
    let mut shift: i64 = 0;
    let mut rest = edits;
    while let Some(((first, _), _)) = rest.split_first() {
        let close = |w: &[(usize, Option<String>)]| matches!(w, [a, b] if b.0 - a.0 <= 2 * CONTEXT);
        let of_hunk = 1 + rest.windows(2).take_while(|w| close(w)).count();
        let (hunk, others) = rest.split_at(of_hunk);
        let last = hunk.last().map_or(*first, |e| e.0);
        let from = first.saturating_sub(CONTEXT).max(1);
        let to = (last + CONTEXT).min(count);
        let mut body = String::new();
        let (mut old, mut new) = (0i64, 0i64);
        for number in from..=to {
            let text = lines.get(number - 1).copied().unwrap_or_default();
            let no_end =
                if number == count && !ends { "\n\\ No newline at end of file" } else { "" };
            match hunk.iter().find(|e| e.0 == number) {
                Some((_, replacement)) => {
                    body.push_str(&format!("-{text}{no_end}\n"));
                    old += 1;
                    if let Some(replacement) = replacement {
                        body.push_str(&format!("+{replacement}{no_end}\n"));
                        new += 1;
                    }
                }
                None => {
                    body.push_str(&format!(" {text}{no_end}\n"));
                    old += 1;
                    new += 1;
                }
            }
        }
        let start = from as i64 + shift;
        // A hunk that leaves nothing is named by the line before it.
        let start = if new == 0 { start - 1 } else { start };
        out.push_str(&format!("@@ -{from},{old} +{start},{new} @@\n{body}"));
        shift += new - old;
        rest = others;
    }
    out
}
