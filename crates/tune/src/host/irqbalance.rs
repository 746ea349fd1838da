//! The running irqbalance: its socket, and stopping it for a while.

use std::{
    io::{Read, Write},
    os::unix::net::UnixStream,
    time::Duration,
};

use model::IrqId;
use parse::irqbalance_setup;

use super::Host;
use crate::TuneError;

/// It answers between two looks at the interrupts.
const PATIENCE: Duration = Duration::from_secs(2);
/// Its answer is a few hundred bytes.
const LONGEST: u64 = 64 << 10;

/// One process of that name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Irqbalance {
    /// Its number.
    pub pid: u32,
    /// Its start, in ticks since boot.
    pub start: u64,
}

impl Host {
    /// The one that runs.
    ///
    /// # Errors
    /// Absent where none does.
    pub fn irqbalance(&self) -> Result<Irqbalance, TuneError> {
        let all = self.root().entries("/proc").map_err(|e| TuneError::read(&e))?;
        let named = |pid: &u32| {
            self.text(&format!("/proc/{pid}/comm")).is_ok_and(|c| c.trim() == "irqbalance")
        };
        let pid = all.iter().filter_map(|n| n.parse::<u32>().ok()).find(named);
        let pid = pid.ok_or_else(|| TuneError::Absent("irqbalance does not run here".into()))?;
        Ok(Irqbalance { pid, start: self.start_ticks(&pid.to_string())? })
    }

    /// What it is told on its socket, and what it says.
    fn ask_irqbalance(&self, it: Irqbalance, text: &str) -> Result<String, TuneError> {
        let path = format!("/run/irqbalance/irqbalance{}.sock", it.pid);
        if !self.is_live() {
            return Err(TuneError::Environment(format!("{path}: a folder has no sockets")));
        }
        let failed = |e: std::io::Error| match e.kind() {
            std::io::ErrorKind::WouldBlock => {
                TuneError::Environment(format!("{path}: no answer within {PATIENCE:?}"))
            }
            _ => TuneError::io(&path, &e),
        };
        let mut stream = UnixStream::connect(&path).map_err(failed)?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
        stream.set_write_timeout(Some(PATIENCE)).map_err(failed)?;
        stream.write_all(text.as_bytes()).map_err(failed)?;
        let mut answer = String::new();
        stream.take(LONGEST).read_to_string(&mut answer).map_err(failed)?;
        Ok(answer)
    }

    /// Interrupts that it was told to leave alone, on its command line or since; not those that a
    /// policy script bans.
    ///
    /// # Errors
    /// When its socket cannot be had.
    pub fn banned_irqs(&self, it: Irqbalance) -> Result<Vec<IrqId>, TuneError> {
        let answer = self.ask_irqbalance(it, "setup")?;
        let setup = irqbalance_setup::parse(answer.as_bytes())
            .map_err(|e| TuneError::Environment(format!("irqbalance's answer to setup: {e}")))?;
        Ok(setup.banned_irqs)
    }

    /// Tells it the whole list.
    ///
    /// # Errors
    /// When its socket cannot be had.
    pub fn ban_irqs(&self, it: Irqbalance, irqs: &[IrqId]) -> Result<(), TuneError> {
        let list: Vec<String> = irqs.iter().map(ToString::to_string).collect();
        let list = if list.is_empty() { "NONE".into() } else { list.join(" ") };
        self.ask_irqbalance(it, &format!("settings ban irqs {list}")).map(|_| ())
    }

    /// Whether it is stopped by a signal.
    ///
    /// # Errors
    /// Absent when it is gone.
    pub fn is_paused(&self, it: Irqbalance) -> Result<bool, TuneError> {
        let path = format!("/proc/{}/stat", it.pid);
        let text = self.text(&path)?;
        let state = text.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
        Ok(matches!(state, Some('T' | 't')))
    }

    /// Stops it, or lets it go on.
    ///
    /// # Errors
    /// When it is gone, or does not follow within a second.
    pub fn pause(&self, it: Irqbalance, on: bool) -> Result<(), TuneError> {
        let what = format!("signal to irqbalance ({})", it.pid);
        if !self.is_live() {
            return Err(TuneError::Environment(format!("{what}: a folder has no processes")));
        }
        let pid = i32::try_from(it.pid).map_err(|_| TuneError::written(&what, libc::ESRCH))?;
        let signal = if on { libc::SIGSTOP } else { libc::SIGCONT };
        // SAFETY: takes numbers only; the number is above 0, so it means this one process.
        if pid <= 0 || unsafe { libc::kill(pid, signal) } != 0 {
            return Err(TuneError::io(&what, &std::io::Error::last_os_error()));
        }
        for _ in 0..100 {
            if self.is_paused(it)? == on {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Err(TuneError::Environment(format!("{what}: it does not follow")))
    }
}
