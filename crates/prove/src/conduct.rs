//! Makes the runs of an experiment in blocks of random order. Each run sets its level, runs the
//! workload, reads the figures and writes them to the record, until the result is clear or the
//! budget is used up.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use model::prove::{Design, Discarded, DuringRun, ProveDocument, Run};
use stats::trial::order;

use crate::{
    Experiment, ProveError,
    child::{self, RunFailure, in_seconds},
    conclude::{self, Ending},
    disturbance::{self, RunDisturbance},
    error::Fault,
    experiment::{Budget, FEWEST_BLOCKS},
    figure,
    host_observer::{HostObserver, HostReading},
    record::{Record, RecordHead},
    settings::{Knobs, Settings},
};

/// How often a disturbed run is repeated at most.
const MOST_REPEATS: usize = 2;

/// At most one run in this many may be a repeat.
const REPEATS_EACH: usize = 5;

/// With fewer failures than this, a workload's failure rate is not judged.
const FEWEST_FAILURES: usize = 4;

/// What an experiment needs from its caller.
pub struct Means<'a> {
    /// Our own program, for measurements.
    pub ours: &'a Path,
    /// Set by the caller to interrupt the experiment.
    pub stop: &'a AtomicBool,
    /// The host's knobs; `None` where the experiment sets none.
    pub knobs: Option<Knobs<'a>>,
    /// Called after each run with the current step and the share done (0 to 1).
    pub progress: &'a dyn Fn(&str, f64),
    /// The total time allowed where the time budget ends before [`FEWEST_BLOCKS`]; zero: no more
    /// than the budget. Only the clock decides this, so it does not bias the result.
    pub disruption: Duration,
    /// Whether the workload is known to have worked before: its first failure at a level may then
    /// be a passing one.
    pub worked: bool,
}

/// The end of an experiment: its document, and the error that broke it off.
pub struct Conducted {
    /// The verdict so far; `None` where no run was made.
    pub document: Option<ProveDocument>,
    /// The error that broke it off; `None` where it ended or was interrupted.
    pub broken: Option<ProveError>,
    /// Whether `--resume` can continue it.
    pub may_go_on: bool,
}

/// Makes or continues an experiment, and restores the host's settings.
pub fn conduct(
    experiment: &Experiment,
    begun: &RecordHead,
    before: Vec<Run>,
    record: &mut Record,
    means: &Means<'_>,
) -> Conducted {
    let mut course = ExperimentRun {
        experiment,
        begun,
        means,
        runs: before,
        settings: Settings::none(experiment.factors.len(), means.knobs),
        observer: HostObserver::live(),
        earlier_s: 0.0,
        began: Instant::now(),
    };
    course.earlier_s = course.runs.iter().map(|r| r.took_s).sum();
    let went = course.all(record);
    let put_back = course.settings.put_back(record);
    let (ending, broken) = match (went, put_back) {
        (Ok(ending), Ok(())) => (ending, None),
        (Ok(ending), Err(e)) => (ending, Some(e)),
        (Err(e), put_back) => (Ending::broken(&e), Some(put_back.err().unwrap_or(e))),
    };
    let said = match ending.may_go_on {
        true => record.stopped(&ending.why),
        false => record.ended(&ending.why),
    };
    let document = (!course.runs.is_empty())
        .then(|| conclude::conclude(experiment, begun, &course.runs, &ending));
    Conducted { document, broken: broken.or(said.err()), may_go_on: ending.may_go_on }
}

struct ExperimentRun<'a> {
    experiment: &'a Experiment,
    begun: &'a RecordHead,
    means: &'a Means<'a>,
    runs: Vec<Run>,
    settings: Settings<'a>,
    observer: HostObserver,
    /// The time of the runs that the record had already, seconds.
    earlier_s: f64,
    began: Instant,
}

impl ExperimentRun<'_> {
    fn all(&mut self, record: &mut Record) -> Result<Ending, ProveError> {
        let mut block = self.runs.iter().map(|r| r.block + 1).max().unwrap_or(0);
        let first = block;
        loop {
            let complete = conclude::complete(self.experiment, &self.runs);
            let used_s = self.used_s();
            let this_block_s = self.began.elapsed().as_secs_f64() / (block - first).max(1) as f64;
            if let Some(ending) = self.ending(complete, used_s, this_block_s)? {
                return Ok(ending);
            }
            let share = self.share(complete, used_s);
            if !self.block(block, share, record)? {
                return Ok(Ending::stopped());
            }
            block += 1;
        }
    }

    /// Seconds used so far, the runs of earlier sittings included.
    fn used_s(&self) -> f64 {
        self.earlier_s + self.began.elapsed().as_secs_f64()
    }

    /// The time limit of the next run. It is the run's timeout, and at most twice the rest of the
    /// time budget (or of `disruption`).
    fn patience(&self) -> Duration {
        let timeout = self.experiment.timeout;
        match self.experiment.budget {
            Budget::Runs(_) => timeout,
            Budget::Time(time) => {
                let time = time.max(self.means.disruption);
                let left = (time.as_secs_f64() - self.used_s()).max(0.0);
                timeout.min(time.saturating_add(Duration::from_secs_f64(left)))
            }
        }
    }

    /// The error for a run that exceeded its time limit.
    fn too_long(&self, time: Duration, at: &str) -> ProveError {
        let within = in_seconds(time);
        match self.experiment.budget {
            Budget::Time(budget) if time < self.experiment.timeout => ProveError::Endless(format!(
                "did not end within {within} {at}, which is longer than the experiment's whole budget of \
                     {}: it hangs, or it takes a longer budget",
                in_seconds(budget)
            )),
            _ => ProveError::Workload(Fault::Failed(format!("did not end within {within} {at}"))),
        }
    }

    /// Why there is no further block; `None` where there is one.
    fn ending(
        &self,
        complete: usize,
        used_s: f64,
        block_s: f64,
    ) -> Result<Option<Ending>, ProveError> {
        let end = match self.experiment.budget {
            Budget::Runs(runs) => complete >= runs / (2 * self.experiment.cells.len()),
            Budget::Time(time) => {
                let few = complete < FEWEST_BLOCKS;
                let time = if few { time.max(self.means.disruption) } else { time };
                let fit = time.as_secs_f64() / block_s.max(1e-9);
                if too_small(fit, complete) {
                    let fewer = match self.experiment.design {
                        Design::Matrix => "fewer placements, ",
                        _ => "",
                    };
                    return Err(ProveError::Budget(format!(
                        "a block of {} runs takes {block_s:.1} s: the budget holds {fit:.1} blocks, \
                         and {FEWEST_BLOCKS} are needed: {fewer}shorter runs (a measurement's --duration), \
                         or a budget (--budget, budget =) of {:.0}s at least",
                        2 * self.experiment.cells.len(),
                        (block_s * 1.2 * FEWEST_BLOCKS as f64).ceil()
                    )));
                }
                complete > 0 && used_s + block_s > time.as_secs_f64()
            }
        };
        if end {
            return Ok(Some(Ending::at_end()));
        }
        let clear = complete >= FEWEST_BLOCKS && conclude::clear(self.experiment, &self.runs);
        Ok(clear.then(Ending::clear))
    }

    fn share(&self, complete: usize, used_s: f64) -> f64 {
        match self.experiment.budget {
            Budget::Runs(n) => (complete * 2 * self.experiment.cells.len()) as f64 / n as f64,
            Budget::Time(t) => used_s / t.as_secs_f64(),
        }
    }

    /// Makes one block; `false` when interrupted.
    fn block(&mut self, block: usize, share: f64, record: &mut Record) -> Result<bool, ProveError> {
        for level in order::of_block(self.experiment.cells.len(), self.begun.seed, block) {
            if self.means.stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
            (self.means.progress)(&self.estimate(), share);
            for repeat in 0..=MOST_REPEATS {
                let began = Instant::now();
                let ran = match self.run(block, level, record) {
                    Err(ProveError::Workload(fault))
                        if repeat == 0 && self.may_be_the_moments(level) =>
                    {
                        let run = failed(block, level, began.elapsed(), fault.clone().into());
                        record.run(&run)?;
                        self.runs.push(run);
                        self.not_too_often(&fault)?;
                        continue;
                    }
                    ran => ran?,
                };
                let Some((mut run, during)) = ran else { return Ok(false) };
                if repeat < MOST_REPEATS && self.may_repeat() {
                    run.discarded = disturbance::discarded(&during, &self.usual(level));
                }
                let again = run.discarded.is_some();
                record.run(&run)?;
                self.runs.push(run);
                if !again {
                    break;
                }
            }
        }
        Ok(true)
    }

    /// The present estimate for the progress line.
    fn estimate(&self) -> String {
        match self.experiment.design {
            Design::Ab => conclude::estimate(self.experiment, &self.runs),
            _ => format!("{} runs", self.runs.len()),
        }
    }

    /// Whether the workload has worked at this level, or is known to work: then a failure may be a
    /// passing one, and the run is tried again.
    fn may_be_the_moments(&self, level: usize) -> bool {
        self.means.worked || self.runs.iter().any(|r| r.level == level && r.discarded.is_none())
    }

    /// A workload that fails in more of its runs than may be repeated is broken, not disturbed; its
    /// remaining runs would be a biased selection.
    fn not_too_often(&self, fault: &Fault) -> Result<(), ProveError> {
        let failed = self.runs.iter().filter(|r| r.failed()).count();
        let runs = self.runs.len();
        match too_often(failed, runs) {
            true => {
                let why = format!("failed in {failed} of {runs} runs; {fault}");
                Err(ProveError::Workload(Fault::Failed(why)))
            }
            false => Ok(()),
        }
    }

    fn may_repeat(&self) -> bool {
        let discarded = self.runs.iter().filter(|r| r.discarded.is_some()).count();
        discarded * REPEATS_EACH <= self.runs.len()
    }

    fn usual(&self, level: usize) -> Vec<RunDisturbance> {
        let same = self.runs.iter().filter(|r| r.level == level && r.discarded.is_none());
        same.map(|r| RunDisturbance {
            others_cpus: r.others_cpus,
            steal_share: r.steal_share,
            host: r.host.clone(),
            ..RunDisturbance::default()
        })
        .collect()
    }

    fn run(
        &mut self,
        block: usize,
        level: usize,
        record: &mut Record,
    ) -> Result<Option<(Run, RunDisturbance)>, ProveError> {
        let experiment = self.experiment;
        let Some(cell) = experiment.cells.get(level) else { return Ok(None) };
        self.settings.apply(level, cell, &experiment.factors, record)?;
        if let Some(line) = &experiment.before {
            child::set(line, self.patience()).map_err(ProveError::Setting)?;
        }
        let workload = cell.fill(&experiment.factors, &experiment.workload);
        let at = || format!("at {}", cell.name(&experiment.factors));
        let before = self.observer.before();
        let ran = child::run(self.means.ours, &workload, self.patience(), self.means.stop);
        let (ended, complaint) = match ran {
            Ok(ran) => ran,
            Err(RunFailure::Stopped) => return Ok(None),
            Err(RunFailure::TooLong(time)) => return Err(self.too_long(time, &at())),
            Err(RunFailure::Failed(why)) => return Err(ProveError::Workload(Fault::Failed(why))),
        };
        let HostReading { during, counters, work } = self.observer.after(before, &workload, &ended);
        self.settings.check_in_force()?;
        // Ctrl-C was pressed twice, or something else ended the workload.
        if self.means.stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let figures = figure::of_run(experiment, &workload, (&ended, &complaint), &at())
            .map_err(ProveError::Workload)?;
        let run = Run {
            block,
            level,
            took_s: ended.took.as_secs_f64(),
            figures,
            others_cpus: during.others_cpus,
            steal_share: during.steal_share,
            host: during.host.clone(),
            counters,
            work,
            discarded: None,
        };
        Ok(Some((run, during)))
    }
}

/// Whether a workload with this many failures is broken rather than disturbed.
pub(crate) fn too_often(failed: usize, runs: usize) -> bool {
    failed >= FEWEST_FAILURES && failed * REPEATS_EACH > runs
}

/// Whether a budget for `fit` blocks, estimated from those so far, is certainly too small for
/// [`FEWEST_BLOCKS`]. One block alone may be slow by chance, so its limit is laxer than that of
/// two.
fn too_small(fit: f64, complete: usize) -> bool {
    match complete {
        1 => fit < FEWEST_BLOCKS as f64 / 2.0,
        2 => fit < FEWEST_BLOCKS as f64 - 1.0,
        _ => false,
    }
}

/// The record's entry for a run without figures.
fn failed(block: usize, level: usize, took: Duration, why: Discarded) -> Run {
    Run {
        block,
        level,
        took_s: took.as_secs_f64(),
        figures: BTreeMap::new(),
        others_cpus: None,
        steal_share: None,
        host: DuringRun::default(),
        counters: BTreeMap::new(),
        work: None,
        discarded: Some(why),
    }
}

#[cfg(test)]
mod tests {
    use model::prove::ProveNote;

    use super::*;
    use crate::spec;

    /// The result of an experiment of this many runs of a command.
    fn conducted(command: &str) -> Conducted {
        within(command, "runs = 200", Duration::ZERO)
    }

    fn lines(document: &ProveDocument) -> Vec<String> {
        document.notes.iter().map(ToString::to_string).collect()
    }

    fn within(command: &str, budget: &str, disruption: Duration) -> Conducted {
        let text = format!(
            "command = \"\"\"{command}\"\"\"\n{budget}\n[[factor]]\nname = \"v\"\nlevels = [1, 2]\n\
             [[metric]]\nname = \"x\"\nregex = \"x = ([0-9]+)\"\nbetter = \"lower\"\n"
        );
        let spec = spec::parse(&text).unwrap();
        let experiment = Experiment::check(spec.clone(), "x").unwrap();
        let begun = RecordHead { started_unix_s: 1, name: "x".into(), spec, seed: 3 };
        let folder = tempfile::tempdir().unwrap();
        let mut record = Record::create(&folder.path().join("x.jsonl"), &begun).unwrap();
        let means = Means {
            ours: Path::new("/none"),
            stop: &AtomicBool::new(false),
            knobs: None,
            progress: &|_, _| {},
            disruption,
            worked: false,
        };
        conduct(&experiment, &begun, vec![], &mut record, &means)
    }

    #[test]
    fn a_workload_that_fails_again_and_again_is_broken_and_its_runs_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        let count = folder.path().join("n").display().to_string();
        let went = conducted(&format!(
            "n=$(cat {count} 2>/dev/null); echo $((n + 1)) > {count}; \
             [ $((n % 3)) = 2 ] && {{ echo gone >&2; exit 7; }}; echo x = {{v}}"
        ));
        let why = went.broken.unwrap().to_string();
        assert!(why.contains("failed in 4 of 1") && why.ends_with("exit code 7: gone"), "{why}");
        let document = went.document.unwrap();
        assert!(document.ended.contains("failed in 4 of 1"), "{}", document.ended);
        let note = document.notes.iter().find(|n| matches!(n, ProveNote::Failed { .. })).unwrap();
        let note = note.to_string();
        assert!(note.starts_with("in 4 of 1") && note.contains(" at 1"), "{note}");
    }

    #[test]
    fn runs_without_their_figure_are_said_to_bias_the_verdict() {
        let folder = tempfile::tempdir().unwrap();
        let count = folder.path().join("n").display().to_string();
        let went = conducted(&format!(
            "n=$(cat {count} 2>/dev/null); echo $((n + 1)) > {count}; \
             [ $((n + 1)) = 6 ] && {{ echo 'x is fast'; exit 0; }}; \
             [ $((n + 1)) = 8 ] && exit 3; echo x = $((4 + {{v}} + n % 2))"
        ));
        let notes = lines(&went.document.unwrap());
        let one = |says: &str| notes.iter().filter(|n| n.contains(says)).count();
        assert_eq!(one("its figure was not found"), 1, "{notes:?}");
        assert_eq!(one("the verdict may be biased"), 1, "{notes:?}");
        assert_eq!(one("the workload failed ("), 1, "{notes:?}");
        assert!(notes.iter().all(|n| !n.starts_with("in 2 of")), "{notes:?}");
    }

    #[test]
    fn what_may_reach_beyond_its_budget_does_so_for_the_fewest_blocks_only() {
        let command = "sleep 0.05; echo x = $((5 + {v}))";
        let refused = within(command, "budget = \"300ms\"", Duration::ZERO).broken.unwrap();
        assert!(matches!(refused, ProveError::Budget(_)), "{refused}");
        assert!(refused.to_string().contains("the budget holds "), "{refused}");
        let went = within(command, "budget = \"300ms\"", Duration::from_secs(120));
        assert!(went.broken.is_none(), "{:?}", went.broken);
        let document = went.document.unwrap();
        assert_eq!(document.verdict.blocks, FEWEST_BLOCKS);
        assert_eq!(document.ended, "the budget is used up");
    }

    #[test]
    fn a_run_that_hangs_ends_with_the_budget_and_is_not_tried_again() {
        let folder = tempfile::tempdir().unwrap();
        let count = folder.path().join("n").display().to_string();
        let began = Instant::now();
        let hangs = format!(
            "n=$(cat {count} 2>/dev/null); echo $((n + 1)) > {count}; \
             [ $((n + 1)) = 3 ] && sleep 60; echo x = {{v}}"
        );
        let went = within(&hangs, "budget = \"2s\"", Duration::ZERO);
        assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
        let why = went.broken.unwrap();
        assert!(matches!(why, ProveError::Endless(_)), "{why}");
        let why = why.to_string();
        assert!(
            why.starts_with("the workload did not end within ") && why.contains("of 2 s"),
            "{why}"
        );
        assert_eq!(went.document.unwrap().runs.len(), 2);
    }

    #[test]
    fn a_budget_that_cannot_hold_the_fewest_blocks_is_not_used_up_for_nothing() {
        assert!(too_small(2.9, 1) && !too_small(3.1, 1), "the first block may have been slow");
        assert!(too_small(4.9, 2) && !too_small(5.1, 2));
        assert!(!too_small(4.9, 3), "then it is nearly over");
    }

    #[test]
    fn a_figure_that_never_moves_is_named() {
        let went = conducted("echo x = 5; : {v}");
        let notes = lines(&went.document.unwrap());
        assert!(notes.iter().any(|n| n.starts_with("x is 5 in every run")), "{notes:?}");
        assert!(!notes.iter().any(|n| n.contains("wandered")), "{notes:?}");
    }
}
