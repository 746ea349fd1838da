//! `netwright doctor`: reads the host, samples it, judges, and prints the findings.

use std::sync::atomic::AtomicBool;

use diagnose::{Case, diagnose};
use model::{Facts, Goal, Nanos, Reading, Samples, finding::Diagnosis};
use probe::{
    Root,
    error::reading,
    facts::{Request, collect},
    samples::{self, Options},
    watch::OverWindow,
};
use report::{DoctorDocument, doctor::document::Source};

use crate::{
    answered,
    failure::{CommandEnd, Failure},
    interrupt::Window,
    output::{Progress, note, row, rows_wanted},
    request::Doctor,
};

/// Reads the host's facts, samples its counters, judges both, and prints the findings.
pub fn run(request: &Doctor) -> Result<CommandEnd, Failure> {
    let mut progress = Progress::new(request.quiet, "reading this host's settings");
    progress.show(0.0);
    let facts = request.source.facts()?;
    drop(progress);
    let (samples, interrupted) = match &request.since {
        Some(first) => (between(request, first)?, false),
        None => {
            first_look(request, &facts);
            watch(request, &facts)
        }
    };
    let document = judged(request, &facts, &samples, interrupted);
    answered::facts(&facts);
    answered::document(&document);
    if request.json {
        request.sink.json(&document)?;
    } else {
        let look = request.sink.look(request.verbose);
        request.sink.text(&report::doctor::text(&document, look))?;
    }
    Ok(answer(request, &document))
}

/// On a terminal, what the settings alone say: a line for whoever waits for the window.
fn first_look(request: &Doctor, facts: &Facts) {
    if request.source.root.is_live() && rows_wanted(request.quiet) {
        let samples = Reading::absent("not watched yet");
        let document = judged(request, facts, &samples, false);
        row(&report::doctor::first_look(&document));
    }
}

/// Judges the facts and the samples.
pub fn judged(
    request: &Doctor,
    facts: &Facts,
    samples: &Reading<Samples>,
    interrupted: bool,
) -> DoctorDocument {
    let case = Case { facts, samples, goal: request.goal };
    let diagnosis = with_sources(diagnose(&case), &request.source.root);
    DoctorDocument::new(facts, samples, interrupted, request.goal, source(request), diagnosis)
}

/// The document of this host, for another one that asks: samples first, so that both ends' windows
/// begin at once.
pub fn for_peer(window: Nanos, goal: Goal) -> DoctorDocument {
    let (root, stop) = (Root::live(), AtomicBool::new(false));
    let mut programs = OverWindow::begin(&root, true);
    let taken = programs.take(&root, &Options::over(window), &stop, &mut |_| ());
    let (samples, mut facts) = (reading(taken), collect(&root, &Request::default()));
    facts.applied = tune::applied::settings(&tune::Host::live(), &tune::Store::of(None), &facts);
    let diagnosis = diagnose(&Case { facts: &facts, samples: &samples, goal });
    let source = Source::live(tune::Host::live().id());
    DoctorDocument::new(&facts, &samples, false, goal, source, diagnosis)
}

/// The diagnosis with the sources that the evidence really has: of a support archive what tools printed.
fn with_sources(mut diagnosis: Diagnosis, root: &Root) -> Diagnosis {
    for evidence in diagnosis.findings.iter_mut().flat_map(|f| &mut f.evidence) {
        evidence.source = root.source(&evidence.source);
    }
    diagnosis
}

/// The counters' growth between two archives.
fn between(request: &Doctor, first: &Root) -> Result<Reading<Samples>, Failure> {
    let samples = samples::since_boot::between(first, &request.source.root);
    samples.map(Reading::Known).map_err(|why| Failure::Environment(format!("--since: {why}")))
}

/// Samples the counters over the window; Ctrl-C ends it early.
pub fn watch(request: &Doctor, facts: &Facts) -> (Reading<Samples>, bool) {
    let options = Options {
        pids: facts.processes.iter().map(|p| p.pid).collect(),
        ..Options::over(request.window)
    };
    let mut progress =
        Progress::new(request.quiet, format!("watching for {}, Ctrl-C ends it", request.window));
    let window = Window::open();
    // Seen while the eBPF programs are loaded.
    progress.show(0.0);
    let mut programs = OverWindow::begin(&request.source.root, request.bpf);
    let root = &request.source.root;
    let taken = programs.take(root, &options, window.stop(), &mut |share| progress.show(share));
    let interrupted = window.was_interrupted();
    drop((window, progress));
    if interrupted && !request.quiet {
        note("the window was interrupted; judging what was seen until then");
    }
    (reading(taken), interrupted)
}

fn source(request: &Doctor) -> Source {
    if request.source.root.is_live() {
        Source::live(tune::Host::live().id())
    } else {
        Source::path(&request.source.name, request.source.root.manifest())
    }
}

/// `No` where a finding is at least as severe as `--fail-on`.
pub fn answer(request: &Doctor, document: &DoctorDocument) -> CommandEnd {
    let bad = |least| document.findings.iter().any(|f| f.severity >= least);
    if request.fail_on.is_some_and(bad) { CommandEnd::No } else { CommandEnd::Yes }
}
