//! Observes a running server; sends nothing.

use std::sync::atomic::{AtomicBool, Ordering};

use model::{Nanos, Reading, passive::PassiveDocument};
use probe::{
    Root,
    watch::{
        ObserveWhen,
        exchanges::{Observer, who},
    },
};
use traffic::{Error, Result};

const SHORTEST: Nanos = Nanos(100_000_000);
const LONGEST: Nanos = Nanos(3_600_000_000_000);

/// Which server to observe, and for how long.
#[derive(Debug)]
pub struct Request {
    /// TCP ports of this host, in any of its network namespaces.
    pub ports: Vec<u16>,
    /// Processes, with their descendants.
    pub pids: Vec<u32>,
    /// Whether to observe every call, at any cost.
    pub always: bool,
    pub duration: Nanos,
}

impl Request {
    /// Checks the request.
    ///
    /// # Errors
    /// The time is too short or too long.
    pub fn check(&self) -> Result<()> {
        match (SHORTEST..=LONGEST).contains(&self.duration) {
            true => Ok(()),
            false => Err(Error::Usage(format!("--duration: from {SHORTEST} to {LONGEST}"))),
        }
    }
}

/// Observes until the time is over or `stop` is set; `progress` gets the share done.
///
/// # Errors
/// No server listens there, programs cannot be attached, or no request was seen.
pub fn watch(
    request: &Request,
    stop: &AtomicBool,
    progress: &dyn Fn(f64),
) -> Result<PassiveDocument> {
    let Request { ports, pids, always, duration } = request;
    let services = who::find(&Root::live(), ports, pids).map_err(Error::Environment)?;
    let when = if *always { ObserveWhen::Always } else { ObserveWhen::Auto };
    let mut observer = Observer::start(services, when).map_err(refused)?;
    observer.watch(*duration, stop, progress);
    let document = observer.end(stop.load(Ordering::Relaxed)).map_err(Error::Environment)?;
    if document.classes.is_empty() { Err(nobody(&document)) } else { Ok(document) }
}

fn refused(why: Reading<()>) -> Error {
    match why {
        Reading::Denied(why) => Error::Denied(why),
        Reading::Absent(why) => {
            Error::Environment(format!("{why}; a live server is explained since Linux 6.3"))
        }
        Reading::Known(()) => Error::Environment("nothing was refused".into()),
    }
}

/// The error for an observation without requests.
fn nobody(document: &PassiveDocument) -> Error {
    let no_access = "requests that were not read or not answered";
    Error::Environment(format!(
        "no request was read and answered in {}: no traffic, or only {no_access}, UDP, or \
         connections that the server itself opened, which are not observed",
        document.window_ns
    ))
}
