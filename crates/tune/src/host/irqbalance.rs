//! The running irqbalance: its socket, and pausing it by signal.

use std::{
    io::ErrorKind,
    time::{Duration, Instant},
};

use model::{CpuSet, IrqId};
use parse::{
    hexmask,
    irqbalance_setup::{self, Setup},
};
use probe::irqbalance as socket;

use super::Host;
use rustix::process::{Pid, Signal, kill_process};

use crate::TuneError;

/// After a change irqbalance sleeps for its interval before it listens again; 10 s by default.
const PATIENCE: Duration = Duration::from_secs(15);
/// irqbalance reads at most 500 bytes.
const LONGEST_LIST: usize = 480;
/// Seconds. An irqbalance with a longer interval is not waited for.
const LONGEST_INTERVAL: u64 = 60;

/// A running irqbalance process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Irqbalance {
    pub pid: u32,
    /// Its start time, in ticks since boot.
    pub start: u64,
}

impl Host {
    /// The running irqbalance.
    ///
    /// # Errors
    /// Absent when none runs.
    pub fn irqbalance(&self) -> Result<Irqbalance, TuneError> {
        let all = self.root().entries("/proc").map_err(|e| TuneError::read(&e))?;
        for pid in all.iter().filter_map(|n| n.parse::<u32>().ok()) {
            match self.text(&format!("/proc/{pid}/comm")) {
                Ok(comm) if comm.trim() == "irqbalance" => {}
                // The process may still be irqbalance.
                Err(no_answer @ TuneError::Unread(_)) => return Err(no_answer),
                _ => continue,
            }
            if self.state_of(pid).is_ok_and(|s| s != 'Z') {
                return Ok(Irqbalance { pid, start: self.start_ticks(&pid.to_string())? });
            }
        }
        Err(TuneError::Absent("irqbalance does not run here".into()))
    }

    /// Sends a command to irqbalance's socket and returns its answer.
    fn ask_irqbalance(&self, it: Irqbalance, text: &str) -> Result<String, TuneError> {
        let path = socket::path(it.pid);
        if !self.is_live() {
            return Err(TuneError::Environment(format!("{path}: a folder has no sockets")));
        }
        if self.is_paused(it)? {
            return Err(TuneError::Environment(format!("{path}: irqbalance is stopped")));
        }
        socket::ask(it.pid, text, PATIENCE).map_err(|e| match e.kind() {
            ErrorKind::WouldBlock => TuneError::Environment(format!(
                "{path}: no answer for {PATIENCE:?}; irqbalance sometimes sleeps for its whole \
                 interval"
            )),
            _ => TuneError::io(&path, &e),
        })
    }

    fn setup(&self, it: Irqbalance) -> Result<Setup, TuneError> {
        let answer = self.ask_irqbalance(it, "setup")?;
        irqbalance_setup::parse(answer.as_bytes())
            .map_err(|e| TuneError::Environment(format!("irqbalance's answer to setup: {e}")))
    }

    /// CPUs that irqbalance keeps free, as of its last scan.
    ///
    /// # Errors
    /// Its socket gives no answer.
    pub fn banned_cpus(&self, it: Irqbalance) -> Result<CpuSet, TuneError> {
        Ok(self.setup(it)?.banned_cpus)
    }

    /// CPUs that irqbalance keeps free by default: those of its environment, else the isolated and
    /// the `nohz_full` CPUs.
    ///
    /// # Errors
    /// Its environment cannot be read.
    pub fn irqbalance_own_cpus(&self, it: Irqbalance) -> Result<CpuSet, TuneError> {
        let path = format!("/proc/{}/environ", it.pid);
        let bytes = self.root().read(&path).map_err(|e| TuneError::read(&e))?;
        let value = |name: &str| {
            let entry = bytes.split(|b| *b == 0).find_map(|e| e.strip_prefix(name.as_bytes()));
            entry.filter(|v| !v.is_empty()).map(|v| String::from_utf8_lossy(v).into_owned())
        };
        let odd = |text: &str| TuneError::Environment(format!("{path}: {text:?} names no CPUs"));
        if let Some(mask) = value("IRQBALANCE_BANNED_CPUS=") {
            return hexmask::parse(mask.as_bytes()).map_err(|_| odd(&mask));
        }
        if let Some(list) = value("IRQBALANCE_BANNED_CPULIST=") {
            return list.parse().map_err(|_| odd(&list));
        }
        let cpus = |file: &str| {
            let list = self.root().list(&format!("/sys/devices/system/cpu/{file}"));
            list.into_known().unwrap_or_default()
        };
        Ok(cpus("isolated").union(&cpus("nohz_full")))
    }

    /// Sets the CPUs to keep free, `None` for irqbalance's own default, and waits until they apply.
    /// irqbalance applies them at its next scan and sleeps for its interval in it.
    ///
    /// # Errors
    /// Its socket gives no answer, or the CPUs do not apply within two intervals.
    pub fn ban_cpus(&self, it: Irqbalance, cpus: Option<&CpuSet>) -> Result<(), TuneError> {
        let list = cpus.map_or_else(|| "NULL".into(), ToString::to_string);
        // An empty list would crash irqbalance: it reads the first word of the list.
        if list.is_empty() || list.len() > LONGEST_LIST {
            return Err(TuneError::Environment(format!(
                "irqbalance's socket takes no list of {} bytes",
                list.len()
            )));
        }
        let wanted = cpus.map_or_else(|| self.irqbalance_own_cpus(it), |c| Ok(c.clone()))?;
        let interval = self.setup(it)?.interval_s.unwrap_or(10).min(LONGEST_INTERVAL);
        self.ask_irqbalance(it, &format!("settings cpus {list}"))?;
        let deadline = Instant::now() + Duration::from_secs(2 * interval + 5);
        loop {
            let now = self.banned_cpus(it);
            if now.as_ref().is_ok_and(|n| *n == wanted) {
                return Ok(());
            }
            if Instant::now() >= deadline {
                let now = now.map_or_else(|e| e.to_string(), |n| format!("it bans {n} now"));
                return Err(TuneError::Environment(format!(
                    "irqbalance did not take the CPUs within two of its scans; {now}"
                )));
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// Interrupts banned on irqbalance's command line or since its start, without those that a
    /// policy script bans.
    ///
    /// # Errors
    /// Its socket gives no answer.
    pub fn banned_irqs(&self, it: Irqbalance) -> Result<Vec<IrqId>, TuneError> {
        Ok(self.setup(it)?.banned_irqs)
    }

    /// Replaces the whole list of banned interrupts.
    ///
    /// # Errors
    /// Its socket gives no answer.
    pub fn ban_irqs(&self, it: Irqbalance, irqs: &[IrqId]) -> Result<(), TuneError> {
        let list: Vec<String> = irqs.iter().map(ToString::to_string).collect();
        let list = if list.is_empty() { "NONE".into() } else { list.join(" ") };
        self.ask_irqbalance(it, &format!("settings ban irqs {list}")).map(|_| ())
    }

    /// Whether irqbalance is stopped by a signal.
    ///
    /// # Errors
    /// Absent when it has ended.
    pub fn is_paused(&self, it: Irqbalance) -> Result<bool, TuneError> {
        Ok(matches!(self.state_of(it.pid)?, 'T' | 't'))
    }

    fn state_of(&self, pid: u32) -> Result<char, TuneError> {
        let path = format!("/proc/{pid}/stat");
        let text = self.text(&path)?;
        let state = text.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
        state.ok_or_else(|| TuneError::Environment(format!("{path}: makes no sense")))
    }

    /// Stops irqbalance (`on`) or continues it.
    ///
    /// # Errors
    /// It has ended, or does not change state within a second.
    pub fn pause(&self, it: Irqbalance, on: bool) -> Result<(), TuneError> {
        let what = format!("signal to irqbalance ({})", it.pid);
        if !self.is_live() {
            return Err(TuneError::Environment(format!("{what}: a folder has no processes")));
        }
        let pid = i32::try_from(it.pid).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| TuneError::written(&what, libc::ESRCH))?;
        let signal = if on { Signal::STOP } else { Signal::CONT };
        kill_process(pid, signal).map_err(|e| TuneError::written(&what, e.raw_os_error()))?;
        for _ in 0..100 {
            if self.is_paused(it)? == on {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Err(TuneError::Environment(format!("{what}: it does not follow")))
    }
}
