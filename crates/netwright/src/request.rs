//! Checked values made of what was typed.

use std::{
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use model::{Facts, Goal, Nanos, Severity};
use probe::{
    Root,
    facts::{ELSEWHERE, NOT_FOUND, Request, Selector},
    snapshot::archive_name,
};

use crate::{
    args::{DoctorArgs, GoalArg, InspectArgs, ProcessArgs, Section, SeverityArg, SnapshotArgs},
    failure::Failure,
    output::Sink,
};

/// The window when none is asked for.
pub const DEFAULT_WINDOW: Nanos = Nanos(5_000_000_000);
const SHORTEST_WINDOW: Nanos = Nanos(100_000_000);
const LONGEST_WINDOW: Nanos = Nanos(600_000_000_000);

/// A checked `inspect`.
pub struct Inspect {
    pub source: Source,
    /// Which parts in full; empty is the overview.
    pub sections: Vec<Section>,
    pub nics: Vec<String>,
    pub picture: Option<Sink>,
    /// One JSON document instead of text.
    pub json: bool,
    pub sink: Sink,
    pub verbose: bool,
}

/// A checked `doctor`.
pub struct Doctor {
    pub source: Source,
    /// An earlier archive of the same host.
    pub since: Option<Root>,
    /// How long to watch; a snapshot has its own.
    pub window: Nanos,
    /// Whether eBPF programs are wanted.
    pub bpf: bool,
    pub goal: Goal,
    /// From where on the answer is no.
    pub fail_on: Option<Severity>,
    /// One JSON document instead of text.
    pub json: bool,
    pub sink: Sink,
    /// Everything that was looked at.
    pub verbose: bool,
    /// No progress, no notes.
    pub quiet: bool,
}

/// A checked `snapshot`.
pub struct Snapshot {
    pub path: PathBuf,
    /// Whether it may be overwritten.
    pub force: bool,
    /// How long to watch.
    pub window: Nanos,
    /// Whether to replace what identifies the host.
    pub redact: bool,
    pub request: Request,
    /// No progress, no notes.
    pub quiet: bool,
}

/// An opened source and what to read of it.
pub struct Source {
    /// The host, a tree or an archive.
    pub root: Root,
    /// How it was named: `live`, or the path given.
    pub name: String,
    pub request: Request,
}

impl Inspect {
    /// A picture alone is an answer; text comes with it only when a part of it is asked for.
    pub fn prints_text(&self) -> bool {
        self.picture.is_none() || !self.sections.is_empty() || !self.nics.is_empty()
    }

    pub fn check(args: InspectArgs) -> Result<Self, Failure> {
        let picture = args.picture.map(|p| Sink::new(Some(p)));
        let sink = Sink::new(args.output.output);
        let prints = args.output.json || !args.sections.is_empty() || !args.nic.is_empty();
        if prints && picture.as_ref() == Some(&sink) {
            return Err(Failure::Usage(
                "the picture and the text would go to the same place; give one of them a file \
                 (--picture FILE.svg, --output FILE)"
                    .into(),
            ));
        }
        for file in picture.iter().chain([&sink]) {
            file.check()?;
        }
        Ok(Self {
            source: Source::open(args.source.root, args.processes)?,
            sections: args.sections,
            nics: args.nic,
            picture,
            json: args.output.json,
            sink,
            verbose: args.output.talk.verbose,
        })
    }
}

impl Doctor {
    pub fn check(args: DoctorArgs) -> Result<Self, Failure> {
        if args.window.is_some() && args.source.root.is_some() {
            return Err(Failure::Usage(
                "--window watches the running host; a snapshot brings the window it was taken \
                 with. Leave out one of --window and --root"
                    .into(),
            ));
        }
        let window = window(args.window)?;
        let sink = Sink::new(args.output.output);
        sink.check()?;
        let since = match args.since {
            Some(path) => Some(Source::open(Some(path), ProcessArgs::default())?.root),
            None => None,
        };
        Ok(Self {
            window,
            since,
            bpf: !args.no_bpf,
            source: Source::open(args.source.root, args.processes)?,
            goal: match args.goal {
                GoalArg::Throughput => Goal::Throughput,
                GoalArg::Latency => Goal::Latency,
            },
            fail_on: args.fail_on.map(|s| match s {
                SeverityArg::Info => Severity::Info,
                SeverityArg::Warning => Severity::Warning,
                SeverityArg::Critical => Severity::Critical,
            }),
            json: args.output.json,
            sink,
            verbose: args.output.talk.verbose,
            quiet: args.output.talk.quiet,
        })
    }
}

impl Snapshot {
    pub fn check(args: SnapshotArgs) -> Result<Self, Failure> {
        let path = args.output.unwrap_or_else(|| archive_name(args.redact));
        if path.as_os_str() == "-" {
            return Err(Failure::Usage(
                "a snapshot is written to a file, not to a pipe; give -o a file name".into(),
            ));
        }
        Sink::File(path.clone()).check()?;
        Ok(Self {
            path,
            force: args.force,
            window: window(args.window)?,
            redact: args.redact,
            request: Request { processes: selectors(args.processes) },
            quiet: args.talk.quiet,
        })
    }
}

impl Snapshot {
    /// Whether `/sys` is this network namespace's own, so that no mixture is archived.
    ///
    /// # Errors
    /// When it is not.
    pub fn interfaces_are_ours(&self) -> Result<(), Failure> {
        probe::facts::elsewhere(&Root::live()).map_or(Ok(()), |why| Err(Failure::Environment(why)))
    }

    /// Whether every process asked for is there, before anybody waits for a window.
    ///
    /// # Errors
    /// When one is not.
    pub fn processes_are_there(&self) -> Result<(), Failure> {
        let (_, missing) = probe::facts::process::read(&Root::live(), &self.request.processes);
        all_found(missing.iter().map(String::as_str))
    }
}

/// Interfaces of a tree that somebody sent: reading each takes some fifty files, so that a bomb of
/// them would take minutes.
const MOST_INTERFACES: usize = 20_000;

impl Source {
    fn open(root: Option<PathBuf>, processes: ProcessArgs) -> Result<Self, Failure> {
        let request = Request { processes: selectors(processes) };
        let Some(path) = root else {
            return Ok(Self { root: Root::live(), name: "live".into(), request });
        };
        let whole = std::fs::canonicalize(&path).map_err(|e| Failure::io(&path, &e))?;
        if whole == Path::new("/") {
            return Err(Failure::Usage(
                "--root / is the running host, read without its netlink answers; leave --root out"
                    .into(),
            ));
        }
        // Said here, for the library's error no longer tells "not permitted" from "damaged".
        let opened = if whole.is_dir() {
            std::fs::read_dir(&whole).map(drop)
        } else {
            // Not waiting for a pipe's writer: reading refuses pipes.
            std::fs::File::options()
                .read(true)
                .custom_flags(libc::O_NONBLOCK)
                .open(&whole)
                .map(drop)
        };
        opened.map_err(|e| Failure::io(&path, &e))?;
        let root = Root::open(&path).map_err(|e| Failure::Environment(e.to_string()))?;
        Ok(Self { root, name: path.display().to_string(), request })
    }

    /// Everything the host is.
    ///
    /// # Errors
    /// When nothing of a host is there, or a process that was asked for is not.
    pub fn facts(&self) -> Result<Facts, Failure> {
        let interfaces = || self.root.entries("/sys/class/net").map_or(0, |names| names.len());
        if !self.root.is_live() && interfaces() > MOST_INTERFACES {
            return Err(Failure::Environment(format!(
                "{}: more than {MOST_INTERFACES} interfaces in sys/class/net, as no host has; take \
                 the tree or snapshot anew",
                self.name
            )));
        }
        let facts = probe::facts::collect(&self.root, &self.request);
        // What was not read for want of descriptors would pass for what the host has not.
        if let Some(e) = self.root.exhausted() {
            return Err(Failure::Environment(format!(
                "cannot read the host: {e}; raise the limit of open files (ulimit -n) or free \
                 memory, and try again"
            )));
        }
        let nothing = facts.cpus.is_empty()
            && facts.nics.is_empty()
            && facts.sysctls.values().all(|s| !s.value.is_known())
            && !facts.host.kernel.is_known()
            && !facts.irqs.is_known();
        if nothing && !self.root.is_live() {
            return Err(Failure::Environment(format!(
                "{}: nothing of a host in it; --root takes a snapshot (`netwright snapshot -o \
                 FILE`) or a folder holding copies of /proc and /sys",
                self.name
            )));
        }
        if let Some(u) = facts.no_access.iter().find(|u| u.what == ELSEWHERE) {
            return Err(Failure::Environment(u.why.clone()));
        }
        all_found(facts.no_access.iter().filter(|u| u.what == NOT_FOUND).map(|u| u.why.as_str()))?;
        Ok(facts)
    }
}

/// Refuses when a process that was asked for is not there.
fn all_found<'a>(missing: impl Iterator<Item = &'a str>) -> Result<(), Failure> {
    let missing: Vec<&str> = missing.collect();
    if missing.is_empty() { Ok(()) } else { Err(Failure::Environment(missing.join("; "))) }
}

fn window(asked: Option<Nanos>) -> Result<Nanos, Failure> {
    let window = asked.unwrap_or(DEFAULT_WINDOW);
    if window < SHORTEST_WINDOW || window > LONGEST_WINDOW {
        return Err(Failure::Usage(format!(
            "--window {window} is out of range: 100ms to 10m (shorter shows no rates; for longer, run it again)"
        )));
    }
    Ok(window)
}

fn selectors(args: ProcessArgs) -> Vec<Selector> {
    let pids = args.pid.into_iter().map(Selector::Pid);
    let names = args.name.into_iter().map(Selector::Name);
    let ports = args.port.into_iter().map(Selector::Port);
    let units = args.unit.into_iter().map(Selector::Unit);
    let containers = args.container.into_iter().map(Selector::Container);
    pids.chain(names).chain(ports).chain(units).chain(containers).collect()
}
