//! The runs that an argument names.

use std::path::Path;

use history::{Filter, Record, Store};

use super::{args::RunsOf, place};
use crate::failure::Failure;

/// A run with its number.
pub type Numbered = (u64, Record);

/// The runs, the newest first; at least one.
///
/// # Errors
/// There is no such run, or the store cannot be read.
pub fn of(wanted: &RunsOf, store: Option<&Store>, path: &Path) -> Result<Vec<Numbered>, Failure> {
    let ids = match wanted {
        RunsOf::Id(id) => vec![*id],
        RunsOf::Tag(tag) => {
            let filter = Filter { tag: Some(tag.clone()), ..Filter::default() };
            let runs = store.map_or(Ok(vec![]), |s| s.list(&filter))?;
            runs.into_iter().map(|r| r.id).collect()
        }
    };
    let mut all = Vec::new();
    for id in ids {
        let record = store.map_or(Ok(None), |s| s.get(id))?;
        all.extend(record.map(|record| (id, record)));
    }
    match (all.is_empty(), wanted) {
        (false, _) => Ok(all),
        (true, RunsOf::Id(id)) => {
            Err(Failure::Usage(format!("{}: there is no run {id}", path.display())))
        }
        (true, RunsOf::Tag(tag)) => {
            Err(Failure::Usage(format!("{}: no run has the tag {tag}", path.display())))
        }
    }
}

/// The runs that stand in place of a file, as `history:ID` or `tag:WORD`; `None` for another name, and
/// where there is a file of that name.
///
/// # Errors
/// The name begins so, and no number or word follows.
pub fn named(file: &Path) -> Result<Option<RunsOf>, Failure> {
    let name = file.to_str().filter(|_| !file.exists()).unwrap_or_default();
    let wanted = match name.strip_prefix("history:") {
        Some(id) => Some(id.parse()),
        None => name.starts_with("tag:").then(|| name.parse()),
    };
    wanted.transpose().map_err(|e: String| Failure::Usage(format!("{name}: {e}")))
}

/// The same of the store that no option names.
///
/// # Errors
/// As of [`of`].
pub fn of_usual_store(wanted: &RunsOf) -> Result<Vec<Numbered>, Failure> {
    let path = place::of(None).ok_or_else(|| {
        Failure::Usage("NETWRIGHT_STORE=off: there is no history; name its file there".into())
    })?;
    of(wanted, Some(&Store::existing(&path)?), &path)
}
