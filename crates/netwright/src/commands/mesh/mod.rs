//! `netwright mesh`: measures this host's targets among many peers.

pub mod args;
mod peers;
mod round;
mod shown;

use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use model::{
    Reading,
    mesh::{MeshDocument, MeshTarget, QuotaUse},
};
use traffic::Secret;
use tune::operator::Operator;

use self::{
    args::MeshArgs,
    peers::{Peers, Place},
    shown::Shown,
};
use super::export::{
    probe::{check_period, period, waited},
    server::{Server, Wanted},
};
use crate::{
    commands::measure::{flags::SecretArgs, secret},
    failure::{CommandEnd, Failure},
    interrupt::Window,
    output::{Answer, note},
    session::Session,
};

/// The port where `--listen` names none.
const PORT: u16 = 7474;

/// Measures until Ctrl-C and serves the results; with `--once` prints one round.
pub fn run(args: &MeshArgs) -> Result<CommandEnd, Failure> {
    check_period(args.every)?;
    let secret = secret(&SecretArgs { secret_file: args.secret_file.clone() })?;
    let peers = Peers::of(args)?;
    traffic::exact_timers();
    if args.once {
        return once(args, &peers, secret.as_ref());
    }
    // A wrong list ends the program now; later it is a note.
    let unread = match peers.place() {
        Err(Failure::Environment(why)) => {
            note(&format!("{why}; the list is read again each period"));
            Some(why)
        }
        place => {
            place?;
            None
        }
    };
    let window = Window::open();
    let server = Server::listen(Wanted {
        listen: args.listen,
        port: PORT,
        secret_file: args.secret_file.clone(),
        quiet: args.output.talk.quiet,
    })?;
    let shown = Shown::new();
    let served = shown.clone();
    let serving = server.serve(move |format| served.page(format))?;
    Mesh { args, peers, secret, shown, last: None, unread, throttled: false }.run(&window);
    drop(serving);
    Ok(CommandEnd::Yes)
}

/// A mesh that goes on.
struct Mesh<'a> {
    args: &'a MeshArgs,
    peers: Peers,
    secret: Option<Secret>,
    shown: Shown,
    /// The place of the last period whose list could be read.
    last: Option<Place>,
    /// Why the list could not be read, as the last note says.
    unread: Option<String>,
    /// Whether the last period was throttled.
    throttled: bool,
}

impl Mesh<'_> {
    fn run(mut self, window: &Window) {
        let every = Duration::from_nanos(self.args.every.0);
        let mut begin = Instant::now();
        let mut silent: Vec<String> = vec![];
        while waited(begin, window.stop()) {
            self.renew();
            let targets = self.last.as_ref().map(|p| p.targets.clone()).unwrap_or_default();
            silent.retain(|t| targets.contains(t));
            let before = round::quota();
            let shown = &self.shown;
            period(begin, (every, true), targets.len(), window.stop(), |n| {
                let Some(target) = targets.get(n) else { return };
                let result = round::spec(target).map_err(|e| e.to_string());
                let result =
                    result.and_then(|s| round::measure(&s, self.secret.as_ref(), window.stop()));
                if window.was_interrupted() {
                    return;
                }
                shown.probed(target, result.as_ref().ok());
                let was_silent = silent.contains(target);
                match result {
                    Ok(_) => silent.retain(|t| t != target),
                    Err(why) if !was_silent => {
                        note(&format!("{target} has no answer: {why}"));
                        silent.push(target.clone());
                    }
                    Err(_) => {}
                }
            });
            self.note_throttled(&round::between(&before, round::quota()));
            // A round that took longer than its period makes the next one later, not denser.
            begin = (begin + every).max(Instant::now());
        }
    }

    /// Reads the list again. A list that cannot be read leaves the targets as they are.
    fn renew(&mut self) {
        match self.peers.place() {
            Ok(place) => {
                self.unread = None;
                self.shown.place(&place);
                if self.last.as_ref().is_none_or(|l| l.targets != place.targets)
                    && !self.args.output.talk.quiet
                {
                    note(&place.to_string());
                }
                self.last = Some(place);
            }
            Err(why) => {
                let why = why.to_string();
                self.shown.no_list();
                if self.unread.as_ref() != Some(&why) {
                    note(&why);
                }
                self.unread = Some(why);
            }
        }
    }

    /// Notes that the CPU was throttled, once until a period was not.
    fn note_throttled(&mut self, quota: &Reading<Option<QuotaUse>>) {
        let throttled = quota.known().copied().flatten().filter(|q| q.throttled_periods > 0);
        if let Some(quota) = throttled
            && !self.throttled
        {
            note(&format!("{quota}; the round trips of this period are too long"));
        }
        self.throttled = throttled.is_some();
    }
}

/// One round of all targets.
fn once(args: &MeshArgs, peers: &Peers, secret: Option<&Secret>) -> Result<CommandEnd, Failure> {
    let answer = Answer::to(&args.output)?;
    let place = peers.place()?;
    if place.targets.is_empty() {
        let why = format!("{}: the list has no peer but {}", args.peers, place.source);
        return Err(Failure::Environment(why));
    }
    let session = Session::open(&args.output.talk);
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let before = round::quota();
    let mut targets = vec![];
    for (n, target) in place.targets.iter().enumerate() {
        session.progress(target, n as f64 / place.targets.len() as f64);
        let result = round::measure(&round::spec(target)?, secret, session.stop());
        if session.stop().load(Ordering::Relaxed) {
            break;
        }
        let result = result.map_or_else(Reading::absent, Reading::Known);
        targets.push(MeshTarget { target: target.clone(), result });
    }
    let document = MeshDocument {
        schema_version: model::SCHEMA_VERSION,
        kind: "mesh".into(),
        started_unix_s: since.as_secs(),
        source: place.source,
        peers: place.peers,
        seed: args.seed,
        interrupted: targets.len() < place.targets.len(),
        targets,
        quota: round::between(&before, round::quota()),
    };
    drop(session);
    answer.tell(&document, report::mesh::text)?;
    match document.targets.iter().all(MeshTarget::answered) {
        true => Ok(CommandEnd::Yes),
        false => Ok(CommandEnd::No),
    }
}
