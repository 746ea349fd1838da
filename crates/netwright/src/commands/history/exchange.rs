//! `netwright history export` and `import`.

use std::{
    io::{BufWriter, Write},
    path::Path,
};

use history::{
    Record, Store,
    exchange::{self, Writer},
};
use parse::benchmark;
use probe::given;

use super::args::{ExportArgs, ImportArgs};
use crate::{
    failure::{CommandEnd, Failure},
    output::Sink,
};

/// The largest export that is read, packed, bytes.
const MOST_BYTES: u64 = 1 << 30;

/// The columns of `export --figures`.
const COLUMNS: &str = "run,ended_unix_ms,host,kernel,kind,tag,program,case,metric,unit,value";

/// Writes runs, the oldest first.
pub fn export(args: &ExportArgs, store: Option<&Store>) -> Result<CommandEnd, Failure> {
    let sink = Sink::new(args.output.clone());
    sink.check()?;
    if !args.figures && sink.is_terminal() {
        return Err(Failure::Usage("compressed runs are for a file: -o runs.ndjson.gz".into()));
    }
    let mut ids = Vec::new();
    if let Some(store) = store {
        ids.extend(store.list(&args.filter.filter())?.iter().map(|run| run.id));
    }
    ids.reverse();
    let mut trouble = Ok(());
    sink.bytes(|to| {
        let mut buffer = BufWriter::new(to);
        let mut lines = (!args.figures).then(|| Writer::new(Vec::new()));
        if args.figures {
            writeln!(buffer, "{COLUMNS}")?;
        }
        for id in ids {
            // One record at a time in memory.
            let record = match store.map_or(Ok(None), |s| s.get(id)) {
                Ok(Some(record)) => record,
                Ok(None) => continue,
                Err(e) => {
                    trouble = Err(e);
                    break;
                }
            };
            match &mut lines {
                Some(lines) => lines.add(id, &record)?,
                None => buffer.write_all(figures(id, &record).as_bytes())?,
            }
        }
        if let Some(lines) = lines {
            buffer.write_all(&lines.end()?)?;
        }
        buffer.flush()
    })?;
    trouble?;
    Ok(CommandEnd::Yes)
}

/// The figures of a run, a line each; none of a document without figures.
fn figures(id: u64, record: &Record) -> String {
    let mut lines = String::new();
    for run in benchmark::parse(record.document.as_bytes()).unwrap_or_default() {
        for figure in run.figures {
            let cells = [
                id.to_string(),
                record.ended_unix_ms.to_string(),
                quoted(&record.host),
                quoted(&record.kernel),
                quoted(&record.kind),
                quoted(&record.tag),
                quoted(&run.program),
                quoted(&run.case),
                quoted(&figure.name),
                quoted(figure.unit),
                figure.value.to_string(),
            ];
            lines += &cells.join(",");
            lines.push('\n');
        }
    }
    lines
}

/// A cell as RFC 4180 has it.
fn quoted(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

/// Takes the runs of each file, all of a file or none.
pub fn import(args: &ImportArgs, path: &Path) -> Result<CommandEnd, Failure> {
    let (mut new, mut all) = (0, 0);
    let mut store = Store::open(path)?;
    for file in &args.files {
        let bytes = given::read(file, MOST_BYTES).map_err(|e| Failure::io(file, &e))?;
        let records = exchange::records(&bytes)
            .map_err(|e| Failure::Environment(format!("{}: {e}", file.display())))?;
        all += records.len();
        new += store.add_all(&records)?;
    }
    Sink::Stdout.text(&format!("{new} new of {all} runs\n"))?;
    Ok(CommandEnd::Yes)
}
