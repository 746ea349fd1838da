//! Checks `{name}` placeholders in workloads and commands: each must be the name of a factor.

use crate::{
    levels::{Factor, LEVEL},
    spec::{FactorSpec, LevelSpec, Spec},
    workload::Workload,
};

/// Refuses a placeholder that names no factor. A shell command may have any braces in single quotes
/// (`awk '{print}'`); a measurement of ours may not.
pub(crate) fn check_workload(factors: &[Factor], workload: &Workload) -> Result<(), String> {
    let found = match workload {
        Workload::Ours(words) => words.iter().find_map(|w| unknown(factors, w, false)),
        Workload::Shell(line) => unknown(factors, line, true),
    };
    let Some(name) = found else { return Ok(()) };
    let known: Vec<String> = factors.iter().map(|f| format!("{{{}}}", f.name)).collect();
    let quote = match workload {
        Workload::Shell(_) => "; for the shell itself, in single quotes",
        Workload::Ours(_) => "",
    };
    Err(format!(
        "{{{name}}} in the workload: there is no such factor; known: {}{quote}",
        known.join(", ")
    ))
}

/// The first placeholder that names no factor. `quotes` skips text in single quotes.
fn unknown<'t>(factors: &[Factor], text: &'t str, quotes: bool) -> Option<&'t str> {
    let (mut quoted, mut before) = (false, ' ');
    for (at, c) in text.char_indices() {
        quoted ^= c == '\'';
        let brace = c == '{' && before != '$' && !(quotes && quoted);
        before = c;
        let name =
            text.get(at + 1..).filter(|_| brace).and_then(|t| t.split_once('}')).map(|t| t.0);
        let Some(name) = name else { continue };
        let word = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(word);
        if is_name && factors.iter().all(|f| f.name != name) {
            return Some(name);
        }
    }
    None
}

/// Refuses a factor's placeholder where it is not filled in: in `before`, and in a level's `set`,
/// `unset` and `args`, which use `{level}`.
///
/// # Errors
/// The first such placeholder, with what to write instead.
pub(crate) fn check_levels(factors: &[Factor], spec: &Spec) -> Result<(), String> {
    let names = || factors.iter().map(|f| f.name.as_str());
    if let Some(before) = &spec.before
        && let Some(name) = first(names().chain(["level"]), before)
    {
        return Err(format!(
            "{{{name}}} in before: it is the same before each run; what a level needs goes to its set, \
             where {LEVEL} is the level"
        ));
    }
    for (key, text) in spec.factors.iter().flat_map(written) {
        if let Some(name) = first(names().filter(|n| *n != "level"), text) {
            return Err(format!(
                "{{{name}}} in {key}: stands for nothing there; {LEVEL} is the level"
            ));
        }
    }
    Ok(())
}

/// The texts that make a factor's levels, each with its key.
fn written(factor: &FactorSpec) -> impl Iterator<Item = (&'static str, &str)> {
    let own = factor.levels.iter().filter_map(|l| match l {
        LevelSpec::Full(l) => Some([("set", &l.set), ("unset", &l.unset), ("args", &l.args)]),
        LevelSpec::Name(_) | LevelSpec::Number(_) | LevelSpec::Fraction(_) => None,
    });
    let common = [("set", &factor.set), ("unset", &factor.unset), ("args", &factor.args)];
    let all = common.into_iter().chain(own.flatten());
    all.filter_map(|(key, text)| Some((key, text.as_deref()?)))
}

/// The first of the names that the text has as a placeholder; `${name}` is the shell's and does not
/// count.
fn first<'n>(mut names: impl Iterator<Item = &'n str>, text: &str) -> Option<&'n str> {
    names.find(|name| {
        let mark = format!("{{{name}}}");
        text.match_indices(&mark).any(|(at, _)| !text[..at].ends_with('$'))
    })
}
