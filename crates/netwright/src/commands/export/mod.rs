//! `netwright export`: metrics for a monitoring system.

pub mod args;
mod collected;
mod own;
pub mod probe;
pub mod server;

use std::{thread::JoinHandle, time::Duration};

use ::metrics::text::Format;
use ::probe::watch::{ObserveWhen, Watch, Watcher};
use model::Facts;
use view::sampling::{judged, read_facts};

use self::{
    args::{ExportArgs, FormatArg},
    collected::Collected,
    server::{Server, Wanted},
};
use crate::{
    commands::measure::{flags::SecretArgs, secret},
    failure::{CommandEnd, Failure},
    interrupt::Window,
    output::{Sink, note},
};
pub use own::Own;

/// The port where `--listen` names none.
const PORT: u16 = 7473;
/// Seconds after which the host's facts are read again, in a thread beside the intervals.
const FACTS_S: f64 = 300.0;

/// Watches, and serves what it saw until Ctrl-C; with `--once` prints it after one interval.
pub fn run(args: &ExportArgs) -> Result<CommandEnd, Failure> {
    super::watch::check_interval(args.interval)?;
    let probes = probe::checked(&args.probes)?;
    let secret = secret(&SecretArgs { secret_file: args.secret_file.clone() })?;
    let sink = Sink::new(args.output.clone());
    sink.check()?;
    let window = Window::open();
    let server = (!args.once).then(|| Server::listen(wanted(args))).transpose()?;
    let facts = read_facts(&[])?;
    let mut watcher = Watcher::start(&watch(args));
    let collected = Collected::new(usize::from(args.processes), args.state_dir.clone());
    let mut facts = Refreshed { reading: Some(facts), facts: None, age_s: 0.0, stale: false };
    facts.wait();
    watcher.begin();
    collected.renew(facts.facts.clone());
    let shown = collected.clone();
    let serving = server.map(|s| s.serve(move |format| shown.page(format))).transpose()?;
    let probing = probe::begin(probes, &args.probes, secret, collected.clone(), window.stop())?;
    let mut first = true;
    while !window.was_interrupted() {
        let interval = watcher.next(Duration::from_nanos(args.interval.0), window.stop());
        if first && !args.talk.quiet && !args.no_bpf {
            missing(&interval, collected.no_changes());
        }
        first = false;
        facts.pass(interval.interval_s)?;
        // A change of `tune`, or drift: what the findings rest on is another one.
        facts.stale |= collected.renew(facts.facts.clone());
        collected.add(judged(facts.facts.as_ref(), interval));
        if args.once {
            let format = match args.format {
                FormatArg::Prometheus => Format::Prometheus,
                FormatArg::Openmetrics => Format::OpenMetrics,
            };
            sink.text(&collected.page(format))?;
            break;
        }
    }
    if let Some(probing) = probing {
        let _ = probing.join();
    }
    drop(serving);
    Ok(CommandEnd::Yes)
}

/// Where the metrics are served.
fn wanted(args: &ExportArgs) -> Wanted {
    Wanted {
        listen: args.listen,
        port: PORT,
        secret_file: args.secret_file.clone(),
        quiet: args.talk.quiet,
    }
}

/// The programs that the metrics need.
fn watch(args: &ExportArgs) -> Watch {
    Watch {
        pids: vec![],
        programs: !args.no_bpf,
        softirqs: args.softirq.into(),
        waits: args.waits.into(),
        messages: ObserveWhen::Never,
        drops: args.drops.into(),
        queues: ObserveWhen::Never,
    }
}

/// Notes the parts that this host does not give, each with its reason.
fn missing(interval: &model::watch::WatchInterval, no_changes: Option<String>) {
    let softirqs = interval.cpus.first().and_then(|c| c.softirq_ns.why_not());
    let parts = [
        ("softirq time", softirqs),
        ("waits", interval.waits.why_not()),
        ("drops by reason", interval.drops.why_not()),
        ("drift of changes", no_changes.as_deref()),
    ];
    for (part, why) in parts {
        if let Some(why) = why {
            note(&format!("no {part}: {why}"));
        }
    }
}

/// The host's facts, and a thread that reads them again.
struct Refreshed {
    reading: Option<JoinHandle<Facts>>,
    facts: Option<Facts>,
    age_s: f64,
    /// Whether they are known to be old.
    stale: bool,
}

impl Refreshed {
    /// Waits for the thread.
    fn wait(&mut self) {
        if let Some(read) = self.reading.take().and_then(|r| r.join().ok()) {
            self.facts = Some(read);
            self.age_s = 0.0;
        }
    }

    /// An interval is over: takes what the thread has read, or begins to read where it is time.
    fn pass(&mut self, interval_s: f64) -> Result<(), Failure> {
        self.age_s += interval_s;
        if self.reading.as_ref().is_some_and(JoinHandle::is_finished) {
            self.wait();
        } else if self.reading.is_none() && (self.stale || self.age_s >= FACTS_S) {
            self.stale = false;
            self.reading = Some(read_facts(&[])?);
        }
        Ok(())
    }
}
