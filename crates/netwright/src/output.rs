//! Where answers and notes go: standard output or a file, with which width and colours.

use std::{
    fs::File,
    io::{self, BufWriter, IsTerminal, Write},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use model::json;
use report::TextStyle;
use rustix::fs::Access;
use serde::Serialize;

use crate::{answered, args::OutputArgs, failure::Failure};

/// The destination of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sink {
    /// Standard output; `-` or no `--output`.
    Stdout,
    /// A file, which is overwritten.
    File(PathBuf),
}

/// An open sink: the locked standard output, or a file.
enum Out {
    Stdout(io::StdoutLock<'static>),
    File(File),
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stdout(to) => to.write(bytes),
            Self::File(to) => to.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout(to) => to.flush(),
            Self::File(to) => to.flush(),
        }
    }
}

/// JSON documents or text, flushed after each, so that a reader sees it at once.
pub struct Lines {
    name: PathBuf,
    to: BufWriter<Out>,
}

impl Lines {
    /// Writes one document and a line end, and flushes.
    ///
    /// # Errors
    /// [`Failure::ClosedPipe`] where the reader has gone; else the file and the reason.
    pub fn json(&mut self, document: &impl Serialize) -> Result<(), Failure> {
        let written = serde_json::to_string(document)
            .map_err(io::Error::from)
            .and_then(|line| self.to.write_all((line + "\n").as_bytes()))
            .and_then(|()| self.to.flush());
        written.map_err(|e| Failure::io(&self.name, &e))
    }

    /// Writes text for people, and flushes.
    ///
    /// # Errors
    /// As [`Lines::json`].
    pub fn text(&mut self, text: &str) -> Result<(), Failure> {
        let written = self.to.write_all(text.as_bytes()).and_then(|()| self.to.flush());
        written.map_err(|e| Failure::io(&self.name, &e))
    }
}

impl Sink {
    /// The sink of an `--output`: `-` or nothing is standard output.
    pub fn new(path: Option<PathBuf>) -> Self {
        match path {
            None => Self::Stdout,
            Some(p) if p.as_os_str() == "-" => Self::Stdout,
            Some(p) => Self::File(p),
        }
    }

    /// Checks that the output can be written, before a long measurement.
    ///
    /// # Errors
    /// It is a folder, or neither it nor its folder may be written.
    pub fn check(&self) -> Result<(), Failure> {
        let Self::File(path) = self else { return Ok(()) };
        let parent = path.parent().filter(|p| !p.as_os_str().is_empty());
        let folder = parent.unwrap_or(Path::new("."));
        match std::fs::metadata(path) {
            Ok(m) if m.is_dir() => {
                Err(Failure::Environment(format!("{}: is a folder", path.display())))
            }
            Ok(_) => may_write(path),
            Err(_) => may_write(folder),
        }
    }

    /// Whether this is a terminal.
    pub fn is_terminal(&self) -> bool {
        *self == Self::Stdout && io::stdout().is_terminal()
    }

    /// Writes text for people; replaces a file.
    ///
    /// # Errors
    /// [`Failure::ClosedPipe`] where the reader has gone; else the file and the reason.
    pub fn text(&self, text: &str) -> Result<(), Failure> {
        self.with(|w| w.write_all(text.as_bytes()))
    }

    /// Writes one JSON document and a line end, indented on a terminal.
    ///
    /// # Errors
    /// As [`Sink::text`].
    pub fn json(&self, document: &impl Serialize) -> Result<(), Failure> {
        self.line(|| Ok(serde_json::to_string(document)?))
    }

    /// As [`Sink::json`], of a document that `made` writes as one line without its end.
    ///
    /// # Errors
    /// As [`Sink::text`].
    pub fn line(&self, made: impl FnOnce() -> io::Result<String>) -> Result<(), Failure> {
        let pretty = self.is_terminal();
        self.to(|to| {
            let line = made()? + "\n";
            to.write_all(if pretty { json::indented(&line) } else { line }.as_bytes())?;
            to.flush()
        })
    }

    /// Writes what `write` makes; replaces a file.
    pub fn bytes(
        &self,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Failure> {
        self.to(|to| write(to))
    }

    /// Opens the sink for many documents, one per line.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn lines(&self) -> Result<Lines, Failure> {
        let (name, to) = match self {
            Self::Stdout => (PathBuf::from("standard output"), Out::Stdout(io::stdout().lock())),
            Self::File(path) => {
                let file = File::create(path).map_err(|e| Failure::io(path, &e))?;
                (path.clone(), Out::File(file))
            }
        };
        Ok(Lines { name, to: BufWriter::with_capacity(1 << 16, to) })
    }

    fn with(&self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
        self.to(|to| {
            let mut w = BufWriter::with_capacity(1 << 16, to);
            write(&mut w)?;
            w.flush()
        })
    }

    fn to(&self, write: impl FnOnce(&mut Out) -> io::Result<()>) -> Result<(), Failure> {
        match self {
            Self::Stdout => write(&mut Out::Stdout(io::stdout().lock()))
                .map_err(|e| Failure::io(Path::new("standard output"), &e)),
            Self::File(path) => File::create(path)
                .and_then(|f| write(&mut Out::File(f)))
                .map_err(|e| Failure::io(path, &e)),
        }
    }

    /// How to write for people on this output.
    pub fn look(&self, verbose: bool) -> TextStyle {
        TextStyle { width: self.width(), colour: self.colour(), verbose }
    }

    /// The width in columns: the terminal's, else 80. `COLUMNS` overrides both.
    fn width(&self) -> usize {
        let asked = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok());
        let terminal = || self.is_terminal().then(terminal_columns).flatten();
        asked.or_else(terminal).unwrap_or(80).clamp(40, 200)
    }

    /// Colour only on a terminal, and not with `NO_COLOR` or a dumb one.
    fn colour(&self) -> bool {
        let set = |name| std::env::var_os(name).is_some_and(|v: std::ffi::OsString| !v.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|t| t == "dumb");
        self.is_terminal() && !set("NO_COLOR") && !dumb
    }
}

/// The destination and the form of a command's document.
pub struct Answer<'a> {
    sink: Sink,
    output: &'a OutputArgs,
}

impl<'a> Answer<'a> {
    /// The output of the flags.
    ///
    /// # Errors
    /// The file cannot be written; checked before the work begins.
    pub fn to(output: &'a OutputArgs) -> Result<Self, Failure> {
        let answer = Self::of(output);
        answer.sink.check()?;
        Ok(answer)
    }

    /// The same without the check; writing reports the error.
    pub fn of(output: &'a OutputArgs) -> Self {
        Self { sink: Sink::new(output.output.clone()), output }
    }

    /// Writes a document as JSON, or as text for people.
    ///
    /// # Errors
    /// As [`Sink::text`].
    pub fn tell<D: Serialize>(
        &self,
        document: &D,
        text: impl FnOnce(&D, TextStyle) -> String,
    ) -> Result<(), Failure> {
        answered::document(document);
        match self.output.json {
            true => self.sink.json(document),
            false => self.sink.text(&text(document, self.sink.look(self.output.talk.verbose))),
        }
    }
}

fn may_write(path: &Path) -> Result<(), Failure> {
    rustix::fs::access(path, Access::WRITE_OK).map_err(|e| Failure::io(path, &e.into()))
}

/// Prints an error, a warning or a note on standard error, with the common prefix.
pub fn note(text: &str) {
    row(&format!("netwright: {text}"));
}

/// Whether the terminal's last line is a progress bar.
static BAR_SHOWN: AtomicBool = AtomicBool::new(false);

/// Prints a line on standard error without prefix: a row of progress, a question. A failure is
/// ignored.
pub fn row(line: &str) {
    let erase = if BAR_SHOWN.swap(false, Ordering::Relaxed) { ERASE } else { "" };
    let _ = writeln!(io::stderr(), "{erase}{}", report::clean(line));
}

/// Whether to print rows of progress: on a terminal, unless `--quiet`.
pub fn rows_wanted(quiet: bool) -> bool {
    !quiet && io::stderr().is_terminal()
}

/// Prints a usage error: clap's text, with the common prefix.
pub fn refused(e: &clap::Error) {
    let text = e.render().to_string();
    let mut lines = text.trim_end().lines();
    match lines.next().map(|first| (first, first.strip_prefix("error: "))) {
        Some((_, Some(what))) => note(what),
        Some((first, None)) => row(first),
        None => {}
    }
    lines.for_each(row);
}

fn terminal_columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}

/// Returns to the beginning of the line, and erases it.
const ERASE: &str = "\r\x1b[K";

/// A progress bar on standard error, on a terminal only.
pub struct Progress {
    shown: bool,
    what: String,
    last: String,
}

impl Progress {
    /// A progress bar, which stays silent with `quiet` or without a terminal.
    pub fn new(quiet: bool, what: impl Into<String>) -> Self {
        let shown = !quiet && io::stderr().is_terminal();
        Self { shown, what: what.into(), last: String::new() }
    }

    /// Sets the label of the current step.
    pub fn rename(&mut self, what: &str) {
        if self.what != what {
            what.clone_into(&mut self.what);
        }
    }

    /// Shows the share done, from 0 to 1.
    pub fn show(&mut self, share: f64) {
        if !self.shown {
            return;
        }
        let full = (share.clamp(0.0, 1.0) * 20.0).round() as usize;
        let line = format!("{} [{}{}]", self.what, "#".repeat(full), "-".repeat(20 - full));
        if line != self.last || !BAR_SHOWN.load(Ordering::Relaxed) {
            let _ = write!(io::stderr(), "{ERASE}{line}");
            let _ = io::stderr().flush();
            self.last = line;
            BAR_SHOWN.store(true, Ordering::Relaxed);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if BAR_SHOWN.swap(false, Ordering::Relaxed) {
            let _ = write!(io::stderr(), "{ERASE}");
            let _ = io::stderr().flush();
        }
    }
}
