//! `netwright history prune`: removes old runs.

use std::{
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

use history::Store;
use model::{SCHEMA_VERSION, history::HistoryList};

use super::args::PruneArgs;
use crate::{
    failure::{CommandEnd, Failure},
    output::Sink,
};

/// Removes what the options name, and says how much; `--dry-run` lists it.
pub fn run(args: &PruneArgs, store: Option<Store>, path: &Path) -> Result<CommandEnd, Failure> {
    let Some(mut store) = store else { return said(0, args.dry_run) };
    let chosen = store.list(&args.filter.filter())?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| t.as_millis() as u64);
    let oldest = args.older_than.map(|age| now.saturating_sub(age));
    let beyond = chosen.into_iter().skip(args.keep.unwrap_or(0));
    let old = beyond.filter(|run| oldest.is_none_or(|oldest| run.ended_unix_ms < oldest));
    let runs: Vec<_> = old.collect();
    let number = runs.len();
    if args.dry_run {
        let document = HistoryList {
            schema_version: SCHEMA_VERSION,
            kind: "history_list".into(),
            store: path.display().to_string(),
            runs,
        };
        if number > 0 {
            Sink::Stdout.text(&report::history::list(&document, Sink::Stdout.look(false)))?;
        }
        return said(number, true);
    }
    let ids: Vec<u64> = runs.iter().map(|r| r.id).collect();
    if !ids.is_empty() {
        store.remove(&ids)?;
    }
    said(number, false)
}

fn said(number: usize, dry: bool) -> Result<CommandEnd, Failure> {
    let runs = if number == 1 { "run" } else { "runs" };
    let done = if dry { "would be removed" } else { "removed" };
    Sink::Stdout.text(&format!("{number} {runs} {done}\n"))?;
    Ok(CommandEnd::Yes)
}
