//! Checked values made of what was typed.

use std::path::{Path, PathBuf};

use model::Facts;
use probe::{
    Root,
    facts::{NOT_FOUND, Request, Selector},
};

use crate::{
    args::{InspectArgs, ProcessArgs, Section},
    exit::Failure,
    output::Sink,
};

/// A checked `inspect`.
pub struct Inspect {
    /// Where from.
    pub source: Source,
    /// Which parts in full; empty is the overview.
    pub sections: Vec<Section>,
    /// Only these NICs.
    pub nics: Vec<String>,
    /// Where to draw.
    pub picture: Option<Sink>,
    /// One JSON document instead of text.
    pub json: bool,
    /// Where to.
    pub sink: Sink,
    /// Every queue.
    pub verbose: bool,
    /// No notes.
    pub quiet: bool,
}

/// An opened source and what to read of it.
pub struct Source {
    /// The host, a tree or an archive.
    pub root: Root,
    /// How it was named: `live`, or the path given.
    pub name: String,
    /// Which processes.
    pub request: Request,
}

impl Inspect {
    /// Checks and opens.
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
        Ok(Self {
            source: Source::open(args.source.root, args.processes)?,
            sections: args.sections,
            nics: args.nic,
            picture,
            json: args.output.json,
            sink,
            verbose: args.output.talk.verbose,
            quiet: args.output.talk.quiet,
        })
    }
}

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
            std::fs::File::open(&whole).map(drop)
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
        let facts = probe::facts::collect(&self.root, &self.request);
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
        if let Some(missing) = facts.unread.iter().find(|u| u.what == NOT_FOUND) {
            return Err(Failure::Environment(missing.why.clone()));
        }
        Ok(facts)
    }
}

fn selectors(args: ProcessArgs) -> Vec<Selector> {
    let pids = args.pid.into_iter().map(Selector::Pid);
    let names = args.name.into_iter().map(Selector::Name);
    let ports = args.port.into_iter().map(Selector::Port);
    let units = args.unit.into_iter().map(Selector::Unit);
    let containers = args.container.into_iter().map(Selector::Container);
    pids.chain(names).chain(ports).chain(units).chain(containers).collect()
}
