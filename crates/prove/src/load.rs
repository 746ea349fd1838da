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
            let mut took = Vec::new();
            while !seen.load(Ordering::Relaxed) {
                match child::run(&ours, &workload, timeout, &seen) {
                    Ok((ended, _)) if ended.exit_code == 0 => took.push(ended.took),
                    Ok((ended, complaint)) => {
                        let why = last_line(&complaint);
                        let why = format!("failed with exit code {}{why}", ended.exit_code);
                        return Err(ProveError::Workload(why));
                    }
                    Err(NotRun::Stopped) => break,
                    Err(NotRun::Failed(why)) => return Err(ProveError::Workload(why)),
                }
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
