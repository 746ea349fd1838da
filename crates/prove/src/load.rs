//! The workload again and again, for as long as somebody watches the host under it.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use crate::{
    Experiment, ProveError,
    child::{self, NotRun, last_line},
};

/// Runs until [`Load::end`].
pub struct Load {
    stop: Arc<AtomicBool>,
    worker: JoinHandle<Result<Vec<Duration>, ProveError>>,
}

impl Load {
    /// Starts it as it is at the experiment's first level, without setting anything. `ours` is
    /// our own program.
    pub fn start(experiment: &Experiment, ours: &Path) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (seen, ours) = (Arc::clone(&stop), PathBuf::from(ours));
        let first = experiment.cells.first();
        let workload = first.map_or(experiment.workload.clone(), |c| {
            c.fill(&experiment.factors, &experiment.workload)
        });
        let timeout = experiment.timeout;
        let worker = thread::spawn(move || {
            let (mut took, mut failed_last) = (Vec::new(), false);
            while !seen.load(Ordering::Relaxed) {
                let why = match child::run(&ours, &workload, timeout, &seen) {
                    Ok((ended, _)) if ended.exit_code == 0 => {
                        took.push(ended.took);
                        failed_last = false;
                        continue;
                    }
                    Ok((ended, complaint)) => {
                        let why = last_line(&complaint);
                        format!("failed with exit code {}{why}", ended.exit_code)
                    }
                    Err(NotRun::Stopped) => break,
                    Err(why) => why.to_string(),
                };
                // Where it has worked, once may be the moment's, as within an experiment.
                if took.is_empty() || failed_last {
                    return Err(ProveError::Workload(why));
                }
                failed_last = true;
            }
            Ok(took)
        });
        Self { stop, worker }
    }

    /// Ends it; how long each whole run took.
    ///
    /// **Errors**: the workload failed.
    pub fn end(self) -> Result<Vec<Duration>, ProveError> {
        self.stop.store(true, Ordering::Relaxed);
        let died = |_| Err(ProveError::Workload("was not waited for".into()));
        self.worker.join().unwrap_or_else(died)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec;

    fn load(command: &str) -> Result<Vec<Duration>, ProveError> {
        let text = format!(
            "command = \"\"\"{command}\"\"\"\n[[factor]]\nname = \"v\"\nlevels = [\"{{v}}\", 2]\nset = \":\"\nunset = \":\"\n\
             [[metric]]\nname = \"t\"\ntime = true\nbetter = \"lower\"\n"
        );
        let experiment = Experiment::check(spec::parse(&text).unwrap(), "x").unwrap();
        let load = Load::start(&experiment, Path::new("/none"));
        thread::sleep(Duration::from_millis(700));
        load.end()
    }

    #[test]
    fn one_failure_among_runs_that_work_is_the_moments_and_two_in_a_row_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let count = folder.path().join("n").display().to_string();
        let every = |fails: &str| {
            let _ = std::fs::remove_file(&count);
            load(&format!(
                "n=$(cat {count} 2>/dev/null); echo $((n + 1)) > {count}; sleep 0.02; {fails}"
            ))
        };
        assert!(every("test $((n % 3)) != 1").unwrap().len() > 2);
        let why = every("test $((n % 5)) -lt 3").unwrap_err().to_string();
        assert!(why.contains("failed with exit code 1"), "{why}");
        assert!(every("test $((n % 5)) != 0").is_err(), "the first run");
    }
}
