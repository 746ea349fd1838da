//! `netwright schema`: prints the JSON schema of a `--json` document.

use std::io::Read as _;

use clap::ValueEnum;
use flate2::read::DeflateDecoder;

use crate::{
    args::{Document, SchemaArgs},
    failure::{CommandEnd, Failure},
    output::Sink,
};

/// The files of `docs/schema`, which `build.rs` compresses: name, NUL, text, NUL. To make them of the
/// types at run time took 2 MB of code.
const SCHEMAS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/schemas"));

/// The names of all documents, a line each.
fn list() -> Result<CommandEnd, Failure> {
    let names = Document::value_variants().iter().filter_map(Document::to_possible_value);
    let lines: String = names.map(|name| format!("{}\n", name.get_name())).collect();
    Sink::Stdout.text(&lines)?;
    Ok(CommandEnd::Yes)
}

/// Prints the schema. The copies under `docs/schema` are identical.
pub fn run(args: &SchemaArgs) -> Result<CommandEnd, Failure> {
    let Some(document) = args.document.and_then(|d| d.to_possible_value()) else { return list() };
    let mut all = String::new();
    DeflateDecoder::new(SCHEMAS)
        .read_to_string(&mut all)
        .map_err(|e| Failure::Bug(format!("the schemas cannot be unpacked: {e}")))?;
    let mut parts = all.split('\0');
    let missing = || Failure::Bug(format!("no schema of {} was built in", document.get_name()));
    parts.find(|part| *part == document.get_name()).ok_or_else(missing)?;
    Sink::Stdout.text(parts.next().ok_or_else(missing)?)?;
    Ok(CommandEnd::Yes)
}
