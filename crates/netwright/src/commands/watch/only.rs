//! Checks that the filter's NICs, CPUs and processes exist.

use model::{CpuSet, Reading, watch::WatchFilter};
use probe::{Root, facts::Selector, watch::recording::Recording};

use super::args::OnlyArgs;
use crate::failure::Failure;

/// The filter of the flags.
pub fn filter(args: &OnlyArgs) -> WatchFilter {
    WatchFilter { nics: args.nic.clone(), cpus: args.cpu.clone(), pids: args.pid.clone() }
}

/// Refuses a NIC, CPU or process that this host does not have.
///
/// # Errors
/// Exit code 4, with what there is instead.
pub fn on_this_host(args: &OnlyArgs) -> Result<(), Failure> {
    let root = Root::live();
    nics(args, &probe::facts::nic::names(&root), "here")?;
    if let Reading::Known(online) = root.list("/sys/devices/system/cpu/online") {
        cpus(args, &online, "here")?;
    }
    let selectors: Vec<Selector> = args.pid.iter().copied().map(Selector::Pid).collect();
    let (_, missing) = probe::facts::process::read(&root, &selectors);
    if missing.is_empty() { Ok(()) } else { Err(Failure::Environment(missing.join("; "))) }
}

/// Refuses a NIC that is not in this list.
///
/// # Errors
/// Exit code 4, with a name that is alike or all there are.
pub fn nics(args: &OnlyArgs, there: &[String], place: &str) -> Result<(), Failure> {
    match args.nic.iter().find(|name| !there.contains(name)) {
        None => Ok(()),
        Some(name) => Err(Failure::Environment(format!(
            "no NIC {name:?} {place}; {}",
            tune::suggestion::hint(name, there.iter().map(String::as_str))
        ))),
    }
}

/// Refuses a CPU that is not in this set.
///
/// # Errors
/// Exit code 4, with the CPUs that there are.
pub fn cpus(args: &OnlyArgs, there: &CpuSet, place: &str) -> Result<(), Failure> {
    let asked = args.cpu.as_ref();
    match asked.map(|asked| asked.difference(there)).filter(|none| !none.is_empty()) {
        None => Ok(()),
        Some(none) => Err(Failure::Environment(format!(
            "no CPU {none} is online {place}; there are: {there}"
        ))),
    }
}

/// Refuses a process that is in no interval of a recording.
///
/// # Errors
/// Exit code 4; also where the recording is damaged before such an interval.
pub fn pids_of(args: &OnlyArgs, recording: &mut Recording) -> Result<(), Failure> {
    let mut missing = args.pid.clone();
    for number in 0..recording.len() {
        if missing.is_empty() {
            return Ok(());
        }
        let interval = recording.get(number).map_err(Failure::Environment)?.interval;
        missing.retain(|pid| !interval.tells_of(*pid));
    }
    match missing.first() {
        None => Ok(()),
        Some(pid) => Err(Failure::Environment(format!(
            "no process {pid} in this recording: in none of its {} intervals did it pay for \
             packets, wait for them, move or send, nor was it followed",
            recording.len()
        ))),
    }
}
