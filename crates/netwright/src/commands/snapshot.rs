//! `netwright snapshot`: writes a host's facts and sources into one file, to be diagnosed
//! elsewhere.

use std::time::Duration;

use model::Bytes;
use probe::{
    samples,
    snapshot::{Options, SnapshotError, Summary, redact::Key, take},
};
use report::snapshot::Written;

use crate::{
    failure::{CommandEnd, Failure},
    interrupt::Window,
    output::{Progress, Sink, note},
    request::Snapshot,
};

/// Reads everything, samples the counters, writes the archive, and prints its contents.
pub fn run(request: &Snapshot) -> Result<CommandEnd, Failure> {
    request.interfaces_are_ours()?;
    request.processes_are_there()?;
    let options = Options {
        request: request.request.clone(),
        window: Some(Duration::from_nanos(request.window.0)),
        readings: samples::readings(request.window),
        redact: redaction(request)?,
        overwrite: request.force,
    };
    let mut progress =
        Progress::new(request.quiet, format!("watching for {}, Ctrl-C ends it", request.window));
    let window = Window::open();
    let taken = take(&options, &request.path, window.stop(), &mut |s| progress.show(s));
    let interrupted = window.was_interrupted();
    drop((window, progress));
    let summary = taken.map_err(failure)?;
    if !request.quiet {
        let written = written(request, &summary, interrupted);
        Sink::Stdout.text(&report::snapshot::text(&written, Sink::Stdout.look(false)))?;
        not_permitted(&summary);
    }
    Ok(CommandEnd::Yes)
}

fn redaction(request: &Snapshot) -> Result<Option<Key>, Failure> {
    if !request.redact {
        return Ok(None);
    }
    let failed = |e| Failure::Environment(format!("--redact needs random numbers: {e}"));
    Key::random().map(Some).map_err(failed)
}

fn failure(e: SnapshotError) -> Failure {
    Failure::Environment(e.to_string())
}

fn written(request: &Snapshot, s: &Summary, interrupted: bool) -> Written {
    Written {
        path: s.path.display().to_string(),
        sources: s.files,
        archive: Bytes(s.archive_bytes),
        unpacked: Bytes(s.bytes),
        readings: s.samples,
        interrupted,
        redacted: request.redact,
    }
}

/// Notes how many sources could not be read for lack of permission; the archive records each.
fn not_permitted(s: &Summary) {
    let denied = |errno: i32| errno == libc::EACCES || errno == libc::EPERM;
    let n = s.errors.iter().filter(|(_, errno)| denied(*errno)).count();
    if n > 0 {
        let sources = if n == 1 { "1 source was" } else { &format!("{n} sources were") };
        note(&format!(
            "{sources} not permitted, and that is recorded; `netwright inspect --root \
             {}` says what would grant it",
            s.path.display()
        ));
    }
}
