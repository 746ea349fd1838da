//! `explain --pid`, `--port`: a server that runs is watched; nothing is sent.

use clap::Args;
use model::{Nanos, Reading, passive::PassiveDocument};
use probe::{
    Root,
    watch::{
        ObserveWhen,
        exchanges::{Observer, who},
    },
};

use super::args::ExplainArgs;
use crate::{
    exit::{CommandEnd, Failure},
    interrupt::Window,
    output::{Progress, Sink},
};

const SHORTEST: Nanos = Nanos(100_000_000);
const LONGEST: Nanos = Nanos(3_600_000_000_000);

/// A live server instead of a workload.
#[derive(Debug, Args)]
#[command(next_help_heading = "A live server: nothing is sent")]
pub struct PassiveArgs {
    /// Whoever serves on this TCP port of this host, in any of its network namespaces; again for
    /// more.
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..), conflicts_with_all = ACTIVE)]
    pub port: Vec<u16>,
    /// This process and those that descend from it, with --port only there; again for more.
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..), conflicts_with_all = ACTIVE)]
    pub pid: Vec<u32>,
    /// Observe every call, whatever that costs [default: as much as costs no CPU more than 1%].
    #[arg(long, conflicts_with_all = ACTIVE)]
    pub always: bool,
}

/// What only means something where we send ourselves.
const ACTIVE: [&str; 21] = [
    "target",
    "responder",
    "secret_file",
    "request",
    "response",
    "header",
    "script",
    "protocol",
    "scale",
    "define",
    "flows",
    "threads",
    "path",
    "cores",
    "channels",
    "verify",
    "round",
    "wait",
    "cpu",
    "peer_cpu",
    "no_pin",
];

impl PassiveArgs {
    /// Whether a live server is meant.
    pub fn is_asked_for(&self) -> bool {
        !self.port.is_empty() || !self.pid.is_empty()
    }
}

/// Watches and prints what it saw.
pub fn run(args: &ExplainArgs) -> Result<CommandEnd, Failure> {
    check(args)?;
    let sink = Sink::new(args.output.output.clone());
    sink.check()?;
    let document = watch(args)?;
    if document.classes.is_empty() {
        return Err(nobody(&document));
    }
    match args.output.json {
        true => sink.json(&document)?,
        false => {
            let look = sink.look(args.output.talk.verbose);
            sink.text(&report::explain::passive::text(&document, look))?;
        }
    }
    Ok(CommandEnd::Yes)
}

fn check(args: &ExplainArgs) -> Result<(), Failure> {
    match (SHORTEST..=LONGEST).contains(&args.duration) {
        true => Ok(()),
        false => Err(Failure::Usage(format!("--duration: from {SHORTEST} to {LONGEST}"))),
    }
}

fn watch(args: &ExplainArgs) -> Result<PassiveDocument, Failure> {
    let PassiveArgs { port, pid, always } = &args.passive;
    let services = who::find(&Root::live(), port, pid).map_err(Failure::Environment)?;
    let when = if *always { ObserveWhen::Always } else { ObserveWhen::Auto };
    let window = Window::open();
    let progress = std::cell::RefCell::new(Progress::new(args.output.talk.quiet, "watching"));
    let mut observer = Observer::start(services, when).map_err(refused)?;
    observer.watch(args.duration, window.stop(), &|share| progress.borrow_mut().show(share));
    observer.end(window.was_interrupted()).map_err(Failure::Environment)
}

fn refused(why: Reading<()>) -> Failure {
    match why {
        Reading::Denied(why) => Failure::Denied(why),
        Reading::Absent(why) => {
            Failure::Environment(format!("{why}; a live server is explained since Linux 6.3"))
        }
        Reading::Known(()) => Failure::Bug("nothing was refused".into()),
    }
}

/// There is nothing to be told.
fn nobody(document: &PassiveDocument) -> Failure {
    let no_access = "requests that nobody read or answered";
    Failure::Environment(format!(
        "no request was read and answered in {}: nobody spoke, or there were {no_access}, UDP, or a \
         connection that the server itself opened, which are not looked at",
        document.window_ns
    ))
}
