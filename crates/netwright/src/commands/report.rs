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
    commands::history::chosen::{self, Numbered},
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
  # what was kept: one run, all runs of a tag
  netwright report history:12 tag:release -o page.html

A run is a file that --json printed: doctor, measure, explain, prove, fix,
compare, inspect. The page loads nothing and has no script."
))]
pub struct ReportArgs {
    /// The results: files with one JSON document each, `-` for standard input, `history:ID` or
    /// `tag:WORD` for runs of the history.
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
    if args.runs.iter().filter(|run| run.as_os_str() == "-").count() > 1 {
        return Err(Failure::Usage("standard input is named twice; it has one document".into()));
    }
    let documents = args.runs.iter().map(|run| of(run)).collect::<Result<Vec<_>, _>>()?.concat();
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

/// The documents of a RUN: a file has one, a tag of the history one for each of its runs.
fn of(run: &Path) -> Result<Vec<Document>, Failure> {
    let Some(wanted) = chosen::named(run)? else {
        let (name, text) = text(run)?;
        return Ok(vec![document(&name, &text)?]);
    };
    let runs = chosen::of_usual_store(&wanted)?;
    let kept = |(id, record): &Numbered| {
        let made = document(&format!("history:{id}"), &record.document)?;
        let program = ["netwright".to_owned()];
        Ok(made.made_by(&[&program, record.command.as_slice()].concat()))
    };
    runs.iter().rev().map(kept).collect()
}

fn document(name: &str, text: &str) -> Result<Document, Failure> {
    page::read(name, text).map_err(|why| Failure::Usage(format!("{name}: {why}")))
}

/// The name and the text of a file, or of standard input.
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
