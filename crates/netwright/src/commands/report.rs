//! `netwright report`: results as one page for people.

use std::{
    fs::OpenOptions,
    io::{self, Write},
    path::{Path, PathBuf},
};

use clap::{Args, ValueEnum};
use page::{Document, Format};
use probe::given;

use crate::{
    failure::{CommandEnd, Failure},
    output::Sink,
};

/// The largest document that is read.
const MOST_BYTES: u64 = 64 << 20;

#[derive(Debug, Args)]
#[command(after_help = examples!(
    "  netwright doctor --json > doctor.json
  netwright measure stream db1 --json > before.json
  netwright fix --yes --workload 'measure stream db1' --json > fix.json
  netwright report doctor.json before.json fix.json -o page.html
  # for a ticket
  netwright report fix.json --format markdown
  netwright explain http://web1/ --json | netwright report - -o web1.html

A run is a file that --json printed: doctor, measure, explain, prove, fix,
compare, inspect. The page loads nothing and has no script."
))]
pub struct ReportArgs {
    /// The results: files with one JSON document each; `-` is standard input.
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<PathBuf>,
    /// Write the page to this file; `-` is standard output [default: standard output].
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The form of the page [default: by the file's name; html].
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<FormatArg>,
    /// The title of the page [default: of the results].
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// Replace a file that exists.
    #[arg(long)]
    force: bool,
}

/// The form of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FormatArg {
    /// One file with charts, for a browser.
    Html,
    /// Text with tables, for a ticket or a pull request.
    Markdown,
}

/// Reads the results, makes the page and writes it.
pub fn run(args: &ReportArgs) -> Result<CommandEnd, Failure> {
    let sink = Sink::new(args.output.clone());
    if let (Sink::File(path), false) = (&sink, args.force)
        && path.symlink_metadata().is_ok()
    {
        return Err(exists(path));
    }
    if let Sink::File(path) = &sink
        && args.runs.iter().any(|run| same_file(run, path))
    {
        let why = format!("{}: is one of the results; name another file with -o", path.display());
        return Err(Failure::Usage(why));
    }
    let documents = args.runs.iter().map(|run| document(run)).collect::<Result<Vec<_>, _>>()?;
    let page = page::page(&documents, args.title.as_deref(), format(args));
    match &sink {
        Sink::File(path) => write(path, &page, args.force)?,
        Sink::Stdout => sink.text(&page)?,
    }
    Ok(CommandEnd::Yes)
}

/// Whether both names are of one file that exists.
fn same_file(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

/// The document of a run.
fn document(run: &Path) -> Result<Document, Failure> {
    let (name, text) = text(run)?;
    page::read(&name, &text).map_err(|why| Failure::Usage(format!("{name}: {why}")))
}

/// The name and the text of a run: a file, or standard input. Runs that are kept elsewhere would be
/// found by their id in this place.
fn text(run: &Path) -> Result<(String, String), Failure> {
    if run.as_os_str() == "-" {
        let name = "standard input";
        let text = given::stdin(MOST_BYTES).map_err(|e| Failure::io(Path::new(name), &e))?;
        return Ok((name.into(), text));
    }
    let text = given::text(run, MOST_BYTES).map_err(|e| Failure::io(run, &e))?;
    Ok((run.display().to_string(), text))
}

/// The requested form, or the one that the file's name has.
fn format(args: &ReportArgs) -> Format {
    let ending = args.output.as_deref().and_then(Path::extension);
    let markdown = ending.is_some_and(|e| e == "md" || e == "markdown");
    match args.format {
        Some(FormatArg::Markdown) => Format::Markdown,
        None if markdown => Format::Markdown,
        Some(FormatArg::Html) | None => Format::Html,
    }
}

/// Writes a new file; one that exists only with `force`.
fn write(path: &Path, page: &str, force: bool) -> Result<(), Failure> {
    let mut options = OpenOptions::new();
    options.write(true);
    match force {
        true => options.create(true).truncate(true),
        false => options.create_new(true),
    };
    let written = options.open(path).and_then(|mut file| file.write_all(page.as_bytes()));
    written.map_err(|e| match e.kind() {
        io::ErrorKind::AlreadyExists => exists(path),
        _ => Failure::io(path, &e),
    })
}

fn exists(path: &Path) -> Failure {
    Failure::Environment(format!("{}: is there already; --force replaces it", path.display()))
}
