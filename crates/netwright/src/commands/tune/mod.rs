//! `netwright tune`: reversible changes.

mod apply;
pub mod args;
mod back;
pub mod hold;
mod persist;
pub mod plan;
mod show;
pub mod trial;

use std::{
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
};

use args::{PlaceArgs, TuneArgs, TuneCommand, WatchdogArgs};
use model::{
    Reading,
    tune::{By, ChangeSet, Drifted, Outcome, RefusedAs},
};
use probe::{
    Root,
    facts::{self, Request, Selector},
};
use tune::{
    Host, Store, TuneError,
    journal::DEFAULT_STATE,
    netns::Namespace,
    status,
    watchdog::{self, deadline::Orders, maker::Place},
};

use crate::{
    exit::{CommandEnd, Failure},
    interrupt::{self, Window},
    output::{Sink, note},
};

pub fn run(args: TuneArgs) -> Result<CommandEnd, Failure> {
    match args.command {
        TuneCommand::Plan(a) => plan::run(a),
        TuneCommand::Apply(a) => apply::run(a),
        TuneCommand::Confirm(a) => back::confirm(a),
        TuneCommand::Rollback(a) => back::rollback(a),
        TuneCommand::Status(a) => show::status(a),
        TuneCommand::Log(a) => show::log(a),
        TuneCommand::Persist(a) => persist::run(&a),
        TuneCommand::Profiles(a) => show::profiles(&a),
        TuneCommand::Watchdog(a) => stand(&a),
    }
}

/// Before every command: whether an earlier change was interrupted, or waits for a confirmation.
/// The commands that deal with it say so themselves.
pub fn announce(command: &crate::args::Command) {
    use crate::args::Command::{Lab, Tune};
    let quiet = |c: &TuneCommand| !matches!(c, TuneCommand::Plan(_));
    match command {
        Tune(t) if quiet(&t.command) => return,
        // It runs within guests and namespaces of its own.
        Lab(_) => return,
        _ => {}
    }
    let place = match command {
        Tune(TuneArgs { command: TuneCommand::Plan(p) }) => {
            PlaceArgs { state_dir: p.place.state_dir.clone(), ..PlaceArgs::default() }
        }
        _ => PlaceArgs::default(),
    };
    let options = options(&place);
    // Those that change a host refuse to do it beside a journal that cannot be read.
    let uses = matches!(command, Tune(_));
    if let Some(text) = status::notice(&Host::live(), &store(place.state_dir), &options, uses) {
        note(&text.to_string());
    }
}

/// The options by which another command finds the same journal and folder, each after a blank.
fn options(args: &PlaceArgs) -> String {
    let mut text = String::new();
    for (name, path) in [("--root", &args.root), ("--state-dir", &args.state_dir)] {
        if let Some(path) = path {
            // The next command may be given elsewhere.
            let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
            text += &format!(" {name} {}", model::quote::shell(&path.to_string_lossy()));
        }
    }
    text
}

fn store(state_dir: Option<PathBuf>) -> Store {
    let asked = state_dir.or_else(|| std::env::var_os("NETWRIGHT_STATE").map(PathBuf::from));
    let path = asked.filter(|p| !p.as_os_str().is_empty());
    let path = path.unwrap_or_else(|| PathBuf::from(DEFAULT_STATE));
    // The watchdog stands in another folder.
    Store::at(std::path::absolute(&path).unwrap_or(path))
}

/// The host and its journals. A folder's journal is inside unless asked otherwise: what was done
/// to it is not done to this host.
struct JournalTarget {
    host: Host,
    store: Store,
    tree: Option<PathBuf>,
    /// See [`options`].
    options: String,
}

impl JournalTarget {
    fn open(args: PlaceArgs) -> Result<Self, Failure> {
        let options = options(&args);
        let Some(root) = args.root.clone() else {
            let host = live(&args)?;
            return Ok(Self { host, store: store(args.state_dir), tree: None, options });
        };
        let tree = std::path::absolute(&root).unwrap_or(root);
        let host = Host::tree(&tree).map_err(failure)?;
        let inside = || Some(tree.join(DEFAULT_STATE.trim_start_matches('/')));
        let store = store(args.state_dir.or_else(inside));
        Ok(Self { host, store, tree: Some(tree), options })
    }

    /// The commands that a change set names, with our options.
    fn with_options(&self, mut set: ChangeSet) -> ChangeSet {
        set.remedies.iter_mut().for_each(|r| r.push_str(&self.options));
        set
    }
}

/// The running host, from the network namespace that was asked for. Called before there is any
/// other thread: it moves this one.
fn live(args: &PlaceArgs) -> Result<Host, Failure> {
    let namespace = match (&args.netns, &args.container) {
        (Some(name), _) => Namespace::named(name),
        (None, Some(name)) => container(name),
        (None, None) => return Ok(Host::live()),
    };
    Host::from(&namespace.map_err(failure)?).map_err(failure)
}

fn container(name: &str) -> Result<Namespace, TuneError> {
    if let Ok(pid) = name.parse::<u32>()
        && Path::new(&format!("/proc/{pid}")).exists()
    {
        return Namespace::of_process(pid, &format!("of process {pid}"));
    }
    let request = Request { processes: vec![Selector::Container(name.to_owned())] };
    let facts = facts::collect(&Root::live(), &request);
    match facts.processes.first() {
        Some(first) => Namespace::of_process(first.pid, &format!("of container {name}")),
        None => Err(TuneError::Absent(format!(
            "there is no container {name:?} (by name or the beginning of its id), nor a process"
        ))),
    }
}

/// The exit code that an error deserves.
pub fn failure(e: TuneError) -> Failure {
    match e {
        TuneError::Usage(_) => Failure::Usage(e.to_string()),
        TuneError::Denied(_) => Failure::Denied(e.to_string()),
        TuneError::Absent(_)
        | TuneError::Environment(_)
        | TuneError::Kernel { .. }
        | TuneError::Unread(_)
        | TuneError::Changed(_) => Failure::Environment(e.to_string()),
    }
}

/// As [`failure`], for what a plan refuses.
fn refusal(kind: RefusedAs, why: String) -> Result<CommandEnd, Failure> {
    match kind {
        RefusedAs::Usage => Err(Failure::Usage(why)),
        RefusedAs::Denied => Err(Failure::Denied(why)),
        RefusedAs::Environment => Err(Failure::Environment(why)),
        RefusedAs::Harmful | RefusedAs::NoEffect | RefusedAs::Postponed => {
            note(&why.to_string());
            Ok(CommandEnd::No)
        }
    }
}

fn by(host: &Host) -> Result<By, Failure> {
    let words = ["SUDO_USER", "SSH_CONNECTION"].map(|v| std::env::var(v).ok());
    let login = words.into_iter().flatten().collect::<Vec<_>>().join(" from ");
    Ok(By {
        pid: std::process::id(),
        start_ticks: tune::Host::live().start_ticks("self").map_err(failure)?,
        uid: rustix::process::getuid().as_raw(),
        login: match login.as_str() {
            "" if host.is_live() => Reading::absent("neither SUDO_USER nor SSH_CONNECTION is set"),
            "" => Reading::absent("a folder"),
            _ => Reading::Known(login),
        },
        version: env!("CARGO_PKG_VERSION").into(),
    })
}

/// What came of it.
#[derive(Default)]
struct Reported {
    lines: Vec<String>,
    /// Whether it was done.
    done: bool,
    /// Whether nothing of ours is left, which is so as well where somebody else's value is.
    ended: bool,
    /// What somebody else had set since.
    drifted: Vec<Drifted>,
}

impl Reported {
    /// What stands in the way, where something does.
    fn fail(&mut self, why: Vec<String>) {
        self.done &= why.is_empty();
        self.lines.extend(why);
    }
}

fn tell(
    output: &crate::args::OutputArgs,
    set: Option<ChangeSet>,
    done: bool,
    lines: Vec<String>,
) -> Result<(), Failure> {
    tell_all(output, set.into_iter().collect(), Reported { lines, done, ..Reported::default() })
}

/// The same of several change sets.
fn tell_all(
    output: &crate::args::OutputArgs,
    sets: Vec<ChangeSet>,
    reported: Reported,
) -> Result<(), Failure> {
    let nothing = || Reading::absent("nothing was to be done");
    let outcome = Outcome {
        schema_version: model::SCHEMA_VERSION,
        set: sets.first().cloned().map_or_else(nothing, Reading::Known),
        sets,
        drifted: reported.drifted,
        done: reported.done,
        lines: reported.lines,
    };
    let sink = Sink::new(output.output.clone());
    let written = if output.json {
        sink.json(&outcome)
    } else {
        sink.text(&report::tune::outcome(&outcome, sink.look(output.talk.verbose)))
    };
    // Done it is all the same, and whoever did it must know.
    written.map_err(|e| match e {
        Failure::Environment(why) => {
            Failure::Environment(format!("{why}; {}", outcome.lines.join(" ")))
        }
        e => e,
    })
}

/// A change set as it stands now.
fn standing(place: &JournalTarget, id: u64) -> Option<ChangeSet> {
    let (sets, _) = status::standing(&place.host, &place.store).ok()?;
    let (set, state) = sets.iter().find(|(s, _)| s.id == id)?;
    Some(place.with_options(status::document(&place.host, set, *state)))
}

/// The watchdog's own life.
fn stand(args: &WatchdogArgs) -> Result<CommandEnd, Failure> {
    match args.id.zip(args.deadline_boot_ms) {
        Some((id, deadline_boot_ms)) => stand_until(args, id, deadline_boot_ms),
        None => stand_by_maker((args.maker_pid, args.maker_start)),
    }
}

/// Waits for the end of whoever has the other end of our standard input.
fn stand_by_maker(maker: (u32, u64)) -> Result<CommandEnd, Failure> {
    for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGPIPE] {
        // Whoever ends a service ends both; the maker then puts back, and we go when it is gone.
        interrupt::ignore(signal);
    }
    ready()?;
    let mut done = Ok(CommandEnd::Yes);
    watchdog::maker::stand(std::io::stdin().lock(), &mut |place| {
        let put_back = match place {
            Place::Trials(state) => trial::undo_lost(state, maker),
            Place::Record(path) => super::prove::undo_lost(path),
        };
        if let Err(e) = put_back {
            done = Err(e);
        }
    });
    done
}

/// Says so, and that no more is to be read.
fn ready() -> Result<(), Failure> {
    let start = Host::live().start_ticks("self").map_err(failure)?;
    Sink::Stdout.text(&format!("ready {} {start}\n", std::process::id()))?;
    close_stdout();
    Ok(())
}

fn stand_until(args: &WatchdogArgs, id: u64, deadline_boot_ms: u64) -> Result<CommandEnd, Failure> {
    let place = JournalTarget::open(PlaceArgs {
        state_dir: args.place.state_dir.clone(),
        root: args.place.root.clone(),
        ..PlaceArgs::default()
    })?;
    let orders = Orders { id, deadline_boot_ms, maker: (args.maker_pid, args.maker_start) };
    interrupt::ignore(libc::SIGHUP);
    // SIGTERM: the host goes down or the session is cleared away; then at once.
    let window = Window::open();
    window.changing();
    ready()?;
    let now: &AtomicBool = window.stop();
    watchdog::deadline::stand(&place.host, &place.store, &orders, now).map_err(failure)?;
    Ok(CommandEnd::Yes)
}

/// Whoever started us reads to the end.
fn close_stdout() {
    if let Ok(null) = std::fs::File::options().write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdout(null);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_told_with_the_options_that_find_the_journal() {
        let args = |state: &str, root: Option<&str>| PlaceArgs {
            state_dir: Some(state.into()),
            root: root.map(Into::into),
            ..PlaceArgs::default()
        };
        assert_eq!(options(&PlaceArgs::default()), "");
        assert_eq!(options(&args("/a b/it's", None)), r" --state-dir '/a b/it'\''s'");
        assert_eq!(options(&args("/s", Some("/r"))), " --root /r --state-dir /s");
        assert!(options(&args("here", None)).starts_with(" --state-dir /"));
    }
}
