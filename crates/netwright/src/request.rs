//! Checked requests, made from the flags.

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
use tune::{Host, Store};

use crate::{
    args::{DoctorArgs, GoalArg, InspectArgs, ProcessArgs, Section, SnapshotArgs},
    failure::Failure,
    output::Sink,
};

/// The sampling window without `--window`.
pub const DEFAULT_WINDOW: Nanos = Nanos(5_000_000_000);
const SHORTEST_WINDOW: Nanos = Nanos(100_000_000);
const LONGEST_WINDOW: Nanos = Nanos(600_000_000_000);

/// The request of `netwright inspect`: its source, and what to print of it.
pub struct Inspect {
    pub source: Source,
    /// The sections to print in full; empty: the overview.
    pub sections: Vec<Section>,
    pub nics: Vec<String>,
    pub picture: Option<Sink>,
    /// Whether to print one JSON document instead of text.
    pub json: bool,
    pub sink: Sink,
    pub verbose: bool,
}

/// The request of `netwright doctor`: its source, its window, and how to answer.
pub struct Doctor {
    pub source: Source,
    /// An earlier archive of the same host, `--since`.
    pub since: Option<Root>,
    /// Another host to judge as well, `--peer`.
    pub peer: Option<OtherEnd>,
    /// How long to sample; a snapshot has its own window.
    pub window: Nanos,
    /// Whether to attach eBPF programs.
    pub bpf: bool,
    pub goal: Goal,
    /// The severity from which the exit code is 1; `None`: never.
    pub fail_on: Option<Severity>,
    /// Whether to print one JSON document instead of text.
    pub json: bool,
    pub sink: Sink,
    /// Whether to print every rule, also those that passed.
    pub verbose: bool,
    /// Whether to suppress progress and notes.
    pub quiet: bool,
}

/// The other end of `doctor --peer`.
pub struct OtherEnd {
    /// The other end, as typed: `ssh://[USER@]HOST[:PORT][/PATH/OF/netwright]`.
    pub target: String,
    /// Whether streams load the path meanwhile.
    pub load: bool,
}

/// The request of `netwright snapshot`: the archive, and what it contains.
pub struct Snapshot {
    pub path: PathBuf,
    /// Whether an existing archive may be overwritten.
    pub force: bool,
    /// How long to sample.
    pub window: Nanos,
    /// Whether to replace names, addresses and other identifying values.
    pub redact: bool,
    pub request: Request,
    /// Whether to suppress progress and notes.
    pub quiet: bool,
}

/// An opened source, and what to read from it.
pub struct Source {
    /// The running host, a tree or an archive.
    pub root: Root,
    /// Its name in the output: `live`, or the path given.
    pub name: String,
    pub request: Request,
}

impl Inspect {
    /// Whether to print text. With `--picture` only where sections or NICs are asked for.
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
        if args.window.window.is_some() && args.source.root.is_some() {
            return Err(Failure::Usage(
                "--window watches the running host; a snapshot brings the window it was taken \
                 with. Leave out one of --window and --root"
                    .into(),
            ));
        }
        let window = window(args.window.window)?;
        let sink = Sink::new(args.output.output);
        sink.check()?;
        let since = match args.since {
            Some(path) => Some(Source::open(Some(path), ProcessArgs::default())?.root),
            None => None,
        };
        Ok(Self {
            window,
            peer: args.peer.map(|target| OtherEnd { target, load: !args.no_load }),
            since,
            bpf: !args.no_bpf,
            source: Source::open(args.source.root, args.processes)?,
            goal: match args.goal {
                GoalArg::Throughput => Goal::Throughput,
                GoalArg::Latency => Goal::Latency,
            },
            fail_on: args.fail_on.map(Severity::from),
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
            window: window(args.window.window)?,
            redact: args.redact,
            request: Request { processes: selectors(args.processes) },
            quiet: args.talk.quiet,
        })
    }
}

impl Snapshot {
    /// Checks that `/sys` shows this network namespace, so that an archive is no mixture.
    ///
    /// # Errors
    /// It shows another one.
    pub fn interfaces_are_ours(&self) -> Result<(), Failure> {
        probe::facts::elsewhere(&Root::live()).map_or(Ok(()), |why| Err(Failure::Environment(why)))
    }

    /// Checks that every process asked for exists, before the window begins.
    ///
    /// # Errors
    /// One does not.
    pub fn processes_are_there(&self) -> Result<(), Failure> {
        let (_, missing) = probe::facts::process::read(&Root::live(), &self.request.processes);
        all_found(missing.iter().map(String::as_str))
    }
}

/// The most interfaces of a foreign tree. Reading each takes some fifty files, so a malicious tree
/// could take minutes.
const MOST_INTERFACES: usize = 20_000;

impl Source {
    /// The host that is running, or that of `--root`: a folder, a snapshot or a support archive.
    ///
    /// # Errors
    /// `--root /` (exit code 2); what it names cannot be read (3 or 4) or holds no host (4).
    pub fn open(root: Option<PathBuf>, processes: ProcessArgs) -> Result<Self, Failure> {
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
        // Checked here, as the library's error no longer distinguishes "not permitted" from
        // "damaged".
        let opened = if whole.is_dir() {
            std::fs::read_dir(&whole).map(drop)
        } else {
            // Non-blocking: opening a pipe would wait for its writer. Reading refuses pipes.
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

    /// The facts of the host.
    ///
    /// # Errors
    /// The source has nothing of a host, or a process that was asked for is missing.
    pub fn facts(&self) -> Result<Facts, Failure> {
        let interfaces = || self.root.entries("/sys/class/net").map_or(0, |names| names.len());
        if !self.root.is_live() && interfaces() > MOST_INTERFACES {
            return Err(Failure::Environment(format!(
                "{}: more than {MOST_INTERFACES} interfaces in sys/class/net, as no host has; take \
                 the tree or snapshot anew",
                self.name
            )));
        }
        let mut facts = probe::facts::collect(&self.root, &self.request);
        if self.root.is_live() {
            facts.applied = tune::applied::settings(&Host::live(), &Store::of(None), &facts);
        }
        // A file that was not read for lack of descriptors would look like one that the host lacks.
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

/// Refuses a process that was asked for and is missing.
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
