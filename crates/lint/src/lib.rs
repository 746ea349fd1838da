//! What the lines of inherited tuning are worth on a host.
//!
//! [`files`] reads the named files and takes them apart by the parsers of `parse` → `order` finds
//! the line that wins → [`judge`] gives each line its verdict, by the table of settings and the
//! knobs of `tune` → [`fix`] shows the files without the lines that should go.

mod boot;
pub mod error;
pub mod files;
pub mod fix;
pub mod judge;
mod kind;
mod order;
mod shown;
mod tuned;

#[cfg(test)]
mod tests;

use model::{
    Facts, SCHEMA_VERSION,
    lint::{LinePlace, LintDocument, LintHost, LintLine},
};

pub use error::LintError;

use crate::{files::ReadFile, judge::Context};

/// Judges every line of the files for the host of these facts. Pure.
pub fn lint(facts: &Facts, host: LintHost, files: &[ReadFile]) -> LintDocument {
    let context = Context::new(facts, &host);
    let sets = order::by_boot(files);
    let mut lines: Vec<LintLine> =
        sets.iter().map(|s| judge::line(&context, s.file, s.set, &sets)).collect();
    let refused = |set: &model::lint::SetLine| judge::sysctl::is_refused(&context, set, &sets);
    for (line, winner) in lines.iter_mut().zip(order::winners(&sets, &refused)) {
        if let Some((place, what)) = winner {
            overridden(line, place, &what);
        }
    }
    lines.sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
    let mut notes: Vec<String> = files.iter().flat_map(|f| f.notes.iter().cloned()).collect();
    notes.extend(order::notes(&sets));
    notes.extend(beyond_the_table(&context));
    let mut names: Vec<String> = Vec::new();
    for set in &sets {
        if !names.iter().any(|n| n == set.file) {
            names.push(set.file.to_owned());
        }
    }
    let silent = files.iter().map(|f| f.name.clone()).filter(|n| !names.contains(n));
    names.extend(silent.collect::<Vec<_>>());
    let not_followed = files.iter().flat_map(|f| f.not_followed.iter().cloned()).collect();
    LintDocument { schema_version: SCHEMA_VERSION, host, files: names, lines, not_followed, notes }
}

/// What is not known of a kernel that the table of sysctls does not have.
fn beyond_the_table(context: &Context<'_>) -> Option<String> {
    let (oldest, newest) = model::sysctl_versions::versions();
    let kernel = context.kernel.filter(|k| !(oldest..=newest).contains(k))?;
    Some(format!(
        "the table of sysctls has Linux {}.{} to {}.{}: for Linux {}.{} no line is compared with a \
         default, and what this version does not have may be missing",
        oldest.0, oldest.1, newest.0, newest.1, kernel.0, kernel.1
    ))
}

/// A line that a later one of the boot overrides changes nothing; what it would be by itself stays in the reason.
fn overridden(line: &mut LintLine, by: LinePlace, what: &str) {
    use model::lint::{
        LineVerdict::{Good, NoEffect, Unknown},
        Place,
    };
    // Between two commands of a script work is done, and of two branches one runs.
    if !matches!(line.place, Place::SysctlFile | Place::TunedProfile | Place::IrqbalanceFile) {
        line.why = format!("{}; {by} {what}, if both run", line.why);
        line.overridden_by = Some(by);
        return;
    }
    let mut why = format!("{by} {what}");
    if !matches!(line.verdict, Good | Unknown) && !line.why.is_empty() {
        why = format!("{why}; by itself {}: {}", line.verdict, line.why);
    }
    line.why = why;
    line.verdict = NoEffect;
    line.find_out = String::new();
    line.overridden_by = Some(by);
}
