//! The workload of an experiment: a measurement of ours, or a command.

use std::time::Duration;

use model::Nanos;

use crate::{command_line, spec::Spec};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Workload {
    /// A measurement of ours, as arguments of `netwright`.
    Ours(Vec<String>),
    /// A command for `sh -c`.
    Shell(String),
}

/// The workload of a specification.
///
/// # Errors
/// A contradiction, with its key.
pub(crate) fn of(spec: &Spec) -> Result<Workload, String> {
    match (&spec.workload, &spec.command) {
        (Some(_), Some(_)) => Err("workload and command: only one of the two".into()),
        (None, None) => Err("workload (a measurement of ours) or command is missing".into()),
        (None, Some(line)) if line.trim().is_empty() => Err("command: is empty".into()),
        (None, Some(line)) => Ok(Workload::Shell(line.clone())),
        (Some(line), None) => {
            let mut words = command_line::split(line).map_err(|e| format!("workload: {e}"))?;
            if words.first().is_some_and(|w| w == "netwright") {
                words.remove(0);
            }
            command_line::expand_url(&mut words);
            if words.first().map(String::as_str) != Some("measure") || words.len() < 3 {
                return Err(format!(
                    "workload: `{line}` is no `measure rtt|stream|connect|http|pg|redis TARGET` and \
                     no rtt://HOST, stream://, connect://, http://, pg:// or redis://; another program is a `command`"
                ));
            }
            if !words.iter().any(|w| w == "--json") {
                words.push("--json".into());
            }
            Ok(Workload::Ours(words))
        }
    }
}

/// The `--duration` of a measurement of ours; `None` for a command.
pub(crate) fn run_takes(spec: &Spec) -> Option<Duration> {
    /// The default duration of `measure`.
    const DEFAULT: Nanos = Nanos(5_000_000_000);
    let Ok(Workload::Ours(words)) = of(spec) else { return None };
    let at = |(i, word): (usize, &String)| match word.strip_prefix("--duration") {
        Some("") => words.get(i + 1).cloned(),
        Some(rest) => rest.strip_prefix('=').map(str::to_owned),
        None => None,
    };
    let said = words.iter().enumerate().find_map(at);
    let takes = said.map_or(Some(DEFAULT), |text| model::seconds(&text).ok())?;
    Some(Duration::from_nanos(takes.0))
}
