//! The followed processes, and which of them ended.

use model::watch::EndedProcess;

use crate::Root;

/// Those that have not ended.
#[derive(Debug)]
pub struct Followed(Vec<Process>);

#[derive(Debug)]
struct Process {
    pid: u32,
    name: String,
    /// Tells it from one that has its id later.
    start_ticks: u64,
}

impl Followed {
    /// Starts following. A process that does not exist now cannot end.
    pub fn begin(root: &Root, pids: &[u32]) -> Self {
        let mut all: Vec<Process> = pids.iter().filter_map(|pid| live(root, *pid)).collect();
        all.sort_by_key(|p| p.pid);
        all.dedup_by_key(|p| p.pid);
        Self(all)
    }

    /// Those that ended since the last look.
    pub fn ended(&mut self, root: &Root) -> Vec<EndedProcess> {
        let mut ended = vec![];
        self.0.retain_mut(|p| match live(root, p.pid).filter(|l| l.start_ticks == p.start_ticks) {
            Some(now) => {
                *p = now;
                true
            }
            None => {
                ended.push(EndedProcess { pid: p.pid, name: p.name.clone() });
                false
            }
        });
        ended
    }
}

/// The process, unless it has ended or waits only for its parent to ask how.
fn live(root: &Root, pid: u32) -> Option<Process> {
    let stat = root.parsed(&format!("/proc/{pid}/stat"), parse::task_stat::parse).into_known()?;
    let process = Process { pid, name: stat.name, start_ticks: stat.start_ticks };
    (!matches!(stat.state, 'Z' | 'X' | 'x')).then_some(process)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_process_that_ends_is_said_once_also_when_nobody_waits_for_it() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let root = Root::live();
        let mut followed = Followed::begin(&root, &[child.id(), std::process::id()]);
        assert_eq!(followed.ended(&root), []);
        drop(child.stdin.take());
        // A zombie has ended too.
        let ended = (0..500).find_map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            Some(followed.ended(&root)).filter(|e| !e.is_empty())
        });
        assert_eq!(ended.unwrap().iter().map(|e| e.pid).collect::<Vec<_>>(), [child.id()]);
        assert_eq!(followed.ended(&root), []);
        child.wait().unwrap();
    }
}
