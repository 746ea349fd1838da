//! Runs the workload repeatedly while the host is observed.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use crate::{
    Experiment, ProveError,
    child::{self, RunFailure, in_seconds},
    conduct::too_often,
    error::Fault,
    figure,
};

/// How often the end of the first run is looked for.
const LOOK: Duration = Duration::from_millis(2);

/// A thread that repeats the workload until [`WorkloadLoop::end`].
pub struct WorkloadLoop {
    began: Instant,
    stop: Arc<AtomicBool>,
    /// Set once a run is complete.
    whole: Arc<AtomicBool>,
    worker: JoinHandle<Result<Vec<Duration>, ProveError>>,
}

impl WorkloadLoop {
    /// Starts the workload at the experiment's first level; sets nothing. `ours` is our own
    /// program.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(experiment: &Experiment, ours: &Path) -> Result<Self, ProveError> {
        let stop = Arc::new(AtomicBool::new(false));
        let whole = Arc::new(AtomicBool::new(false));
        let (seen, reported, ours) = (Arc::clone(&stop), Arc::clone(&whole), PathBuf::from(ours));
        let experiment = experiment.clone();
        let work = move || again_and_again(&experiment, &ours, (&seen, &reported));
        let worker = thread::Builder::new().spawn(work).map_err(ProveError::Thread)?;
        Ok(Self { began: Instant::now(), stop, whole, worker })
    }

    /// Whether a run is complete, or the thread ended.
    pub fn reported(&self) -> bool {
        self.whole.load(Ordering::Relaxed) || self.worker.is_finished()
    }

    /// Whether the thread ended by itself, which means that the workload failed.
    pub fn failed(&self) -> bool {
        self.worker.is_finished()
    }

    /// Ends the load; returns the duration of each complete run. If no run is complete, it waits up
    /// to `patience` for one. The result is empty only if `end` is set.
    ///
    /// # Errors
    /// The workload failed or gave no figure; no run ended.
    pub fn end(self, patience: Duration, end: &AtomicBool) -> Result<Vec<Duration>, ProveError> {
        let until = Instant::now() + patience;
        let wanted = || end.load(Ordering::Relaxed);
        while !self.reported() && !wanted() && Instant::now() < until {
            thread::sleep(LOOK);
        }
        let (stopped, waited) = (wanted(), self.began.elapsed());
        self.stop.store(true, Ordering::Relaxed);
        let died = |_| Err(ProveError::Workload(Fault::Failed("was not waited for".into())));
        match self.worker.join().unwrap_or_else(died) {
            Ok(took) if took.is_empty() && !stopped => Err(ProveError::Endless(format!(
                "was run, and no run ended within {}",
                in_seconds(waited)
            ))),
            // The operator interrupted: an earlier failure no longer matters.
            Err(_) if stopped => Ok(vec![]),
            took => took,
        }
    }
}

/// Repeats the workload at the first level until `stop`; returns the duration of each complete run.
fn again_and_again(
    experiment: &Experiment,
    ours: &Path,
    (stop, whole): (&AtomicBool, &AtomicBool),
) -> Result<Vec<Duration>, ProveError> {
    let first = experiment.cells.first();
    let workload = first
        .map_or(experiment.workload.clone(), |c| c.fill(&experiment.factors, &experiment.workload));
    let (mut took, mut failed, mut last) = (Vec::new(), 0, None);
    while !stop.load(Ordering::Relaxed) {
        let ran = match child::run(ours, &workload, experiment.timeout, stop) {
            Err(RunFailure::Stopped) => break,
            Err(why) => Err(Fault::Failed(why.to_string())),
            Ok((ended, complaint)) => {
                figure::of_run(experiment, &workload, (&ended, &complaint), "").map(|_| ended.took)
            }
        };
        match ran {
            Ok(time) => {
                took.push(time);
                whole.store(true, Ordering::Relaxed);
            }
            // A single failure may be a passing one: up to one in five is tolerated, as within an
            // experiment.
            Err(why) => {
                failed += 1;
                let all = took.len() + failed;
                if too_often(failed, all) || took.is_empty() && failed > 1 {
                    return Err(ProveError::Workload(why));
                }
                last = Some(why);
            }
        }
    }
    // A failure of the workload takes precedence over "no run ended".
    match last.filter(|_| took.is_empty()) {
        Some(why) => Err(ProveError::Workload(why)),
        None => Ok(took),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec;

    /// Ends a load once it began `runs` runs or failed by itself. `command` runs with `n`, the
    /// number of runs before it.
    fn ended(
        (command, runs): (&str, u32),
        patience: Duration,
        interrupted: bool,
    ) -> Result<Vec<Duration>, ProveError> {
        let folder = tempfile::tempdir().unwrap();
        let count = folder.path().join("n");
        let n = count.display();
        let text = format!(
            "command = \"\"\"n=$(cat {n} 2>/dev/null || echo 0); echo $((n + 1)) > {n}; {command}\"\"\"\n\
             [[factor]]\nname = \"v\"\nlevels = [\"{{v}}\", 2]\nset = \":\"\nunset = \":\"\n\
             [[metric]]\nname = \"t\"\ntime = true\nbetter = \"lower\"\n"
        );
        let experiment = Experiment::check(spec::parse(&text).unwrap(), "x").unwrap();
        let workload = WorkloadLoop::start(&experiment, Path::new("/none")).unwrap();
        let begun = || std::fs::read_to_string(&count).ok()?.trim().parse::<u32>().ok();
        while !workload.failed() && begun() < Some(runs) {
            thread::sleep(LOOK);
        }
        workload.end(patience, &AtomicBool::new(interrupted))
    }

    #[test]
    fn one_failure_in_five_is_the_moments_and_more_are_not() {
        let of_fifteen = |command| ended((command, 15), Duration::ZERO, false);
        assert!(of_fifteen("test $((n % 6)) != 1").unwrap().len() > 10);
        let why = of_fifteen("test $((n % 5)) -lt 3").unwrap_err().to_string();
        assert!(why.contains("failed with exit code 1"), "{why}");
        assert!(of_fifteen("test $n != 0").unwrap().len() > 10, "the first run alone");
        assert!(of_fifteen("false").is_err());
    }

    #[test]
    fn a_slow_run_is_waited_for_and_reported_with_its_duration() {
        let (short, long) = (Duration::from_millis(100), Duration::from_secs(30));
        let took = ended(("sleep 0.5", 1), long, false).unwrap();
        assert!(took.len() == 1 && took[0] >= Duration::from_millis(500), "{took:?}");
        let why = ended(("sleep 0.5; exit 3", 1), long, false).unwrap_err().to_string();
        assert_eq!(why, "the workload failed with exit code 3");
        let second = ("test $n = 0 && exit 3; exec sleep 60", 2);
        let why = ended(second, short, false).unwrap_err().to_string();
        assert_eq!(why, "the workload failed with exit code 3", "ended before the second run");
        let why = ended(("exec sleep 60", 1), short, false).unwrap_err().to_string();
        assert!(why.starts_with("the workload was run, and no run ended within "), "{why}");
        assert!(ended(second, long, true).unwrap().is_empty());
        assert!(ended(("exec sleep 60", 1), long, true).unwrap().is_empty());
    }
}
