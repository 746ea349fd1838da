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

    fn load(command: &str) -> Result<Vec<Duration>, ProveError> {
        ended(command, Duration::ZERO, false)
    }

    fn ended(command: &str, patience: Duration, end: bool) -> Result<Vec<Duration>, ProveError> {
        begun(command).end(patience, &AtomicBool::new(end))
    }

    fn begun(command: &str) -> WorkloadLoop {
        let text = format!(
            "command = \"\"\"{command}\"\"\"\n[[factor]]\nname = \"v\"\nlevels = [\"{{v}}\", 2]\nset = \":\"\nunset = \":\"\n\
             [[metric]]\nname = \"t\"\ntime = true\nbetter = \"lower\"\n"
        );
        let experiment = Experiment::check(spec::parse(&text).unwrap(), "x").unwrap();
        let workload = WorkloadLoop::start(&experiment, Path::new("/none")).unwrap();
        thread::sleep(Duration::from_millis(700));
        workload
    }

    #[test]
    fn one_failure_in_five_is_the_moments_and_more_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let count = folder.path().join("n").display().to_string();
        let counts = |fails: &str| {
            let _ = std::fs::remove_file(&count);
            format!("n=$(cat {count} 2>/dev/null); echo $((n + 1)) > {count}; sleep 0.02; {fails}")
        };
        let every = |fails: &str| load(&counts(fails));
        assert!(every("test $((n % 6)) != 1").unwrap().len() > 2);
        let why = every("test $((n % 5)) -lt 3").unwrap_err().to_string();
        assert!(why.contains("failed with exit code 1"), "{why}");
        assert!(every("test $n").unwrap().len() > 2, "the first run alone");
        assert!(load("false").is_err());
    }

    #[test]
    fn a_slow_run_is_waited_for_and_reported_with_its_duration() {
        let long = Duration::from_secs(30);
        let took = ended("sleep 1.2", long, false).unwrap();
        assert!(took.len() == 1 && took[0] >= Duration::from_millis(1_200), "{took:?}");
        let why = ended("sleep 1; exit 3", long, false).unwrap_err().to_string();
        assert_eq!(why, "the workload failed with exit code 3");
        let once = Duration::from_millis(1_000);
        let why = ended("sleep 1.2; exit 3", once, false).unwrap_err().to_string();
        assert_eq!(why, "the workload failed with exit code 3", "ended before the second run");
        assert!(ended("sleep 0.5; exit 3", long, true).unwrap().is_empty());
        let why = ended("sleep 60", Duration::from_millis(100), false).unwrap_err().to_string();
        assert!(why.starts_with("the workload was run, and no run ended within "), "{why}");
        assert!(ended("sleep 60", long, true).unwrap().is_empty());
    }
}
