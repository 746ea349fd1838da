//! `netwright history`: runs that were made before.

pub mod args;
pub mod chosen;
mod date;
mod diff;
mod exchange;
pub mod place;
mod prune;

use history::{Filter, HistoryError, Store};
use model::{SCHEMA_VERSION, history::HistoryList};

use self::args::{HistoryArgs, HistoryCommand, ListArgs, ShowArgs};
use crate::{
    failure::{CommandEnd, Failure},
    output::{Answer, Sink},
};

/// The most runs of a list for people.
const SCREEN: u64 = 50;

/// Finds the store, and does what was asked.
pub fn run(args: &HistoryArgs) -> Result<CommandEnd, Failure> {
    let path = place::of(args.store.store.as_deref()).ok_or_else(|| {
        Failure::Usage("NETWRIGHT_STORE=off: nothing is kept; name a file with --store".into())
    })?;
    // Nothing was recorded yet: that is an answer.
    let store = match Store::existing(&path) {
        Err(HistoryError::Absent { .. }) => None,
        opened => Some(opened?),
    };
    match &args.command {
        HistoryCommand::List(a) => list(a, store.as_ref(), &path),
        HistoryCommand::Show(a) => show(a, store.as_ref(), &path),
        HistoryCommand::Diff(a) => diff::run(a, store.as_ref(), &path),
        HistoryCommand::Prune(a) => prune::run(a, store, &path),
        HistoryCommand::Export(a) => exchange::export(a, store.as_ref()),
        HistoryCommand::Import(a) => exchange::import(a, &path),
    }
}

fn list(
    args: &ListArgs,
    store: Option<&Store>,
    path: &std::path::Path,
) -> Result<CommandEnd, Failure> {
    let answer = Answer::to(&args.output)?;
    let newest = args.last.or((!args.output.json).then_some(SCREEN));
    let filter = Filter { newest, ..args.filter.filter() };
    let document = HistoryList {
        schema_version: SCHEMA_VERSION,
        kind: "history_list".into(),
        store: path.display().to_string(),
        runs: store.map_or(Ok(vec![]), |s| s.list(&filter))?,
    };
    answer.tell(&document, report::history::list)?;
    Ok(CommandEnd::Yes)
}

/// The stored document byte by byte, or its page.
fn show(
    args: &ShowArgs,
    store: Option<&Store>,
    path: &std::path::Path,
) -> Result<CommandEnd, Failure> {
    let sink = Sink::new(args.output.output.clone());
    sink.check()?;
    let record = store.map_or(Ok(None), |s| s.get(args.id))?;
    let Some(record) = record else {
        return Err(Failure::Usage(format!("{}: there is no run {}", path.display(), args.id)));
    };
    if args.output.json {
        sink.text(&format!("{}\n", record.document))?;
        return Ok(CommandEnd::Yes);
    }
    let look = sink.look(args.output.talk.verbose);
    let page = report::history::page(&record.kind, &record.document, look);
    let page = page.unwrap_or_else(|| format!("{}\n", record.document));
    let run = record.listed(args.id);
    sink.text(&(report::history::head(&run, look) + &page))?;
    Ok(CommandEnd::Yes)
}
