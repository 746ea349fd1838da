//! Which CPUs one end's threads run on, and who this end is.

use std::net::IpAddr;

use model::{
    CpuId, CpuSet,
    measure::{End, Pin},
};

use crate::{Error, Result};

/// Where one end's threads run.
#[derive(Debug, Clone, Default)]
pub struct Seats {
    /// In thread order; none when not pinned.
    pub cpus: Vec<CpuId>,
    /// Why these.
    pub why: String,
    /// All that this process may use.
    pub allowed: CpuSet,
}

/// The near end's seats.
///
/// # Errors
/// A CPU that was asked for is not there or not ours to use.
pub fn near(pin: &Pin, threads: u32, same_host: bool, to: Option<IpAddr>) -> Result<Seats> {
    let _ = (same_host, to);
    take(pin, threads, &[])
}

/// The far end's seats; `near` are the other end's CPUs on the same host.
///
/// # Errors
/// A CPU that was asked for is not there or not ours to use.
pub fn far(pin: &Pin, threads: u32, near: &CpuSet, taken: &[CpuId]) -> Result<Seats> {
    let busy: Vec<CpuId> = near.iter().chain(taken.iter().copied()).collect();
    take(pin, threads, &busy)
}

fn take(pin: &Pin, threads: u32, busy: &[CpuId]) -> Result<Seats> {
    let allowed = allowed();
    let (list, why) = match pin {
        Pin::No => return Ok(Seats { cpus: vec![], why: "not pinned".into(), allowed }),
        Pin::List(list) => (list.iter().collect::<Vec<_>>(), "asked for"),
        Pin::Auto => {
            let free: Vec<CpuId> = allowed.iter().filter(|c| !busy.contains(c)).collect();
            match free.is_empty() {
                true => (allowed.iter().collect(), "no CPU is free of other threads of this test"),
                false => (free, "the first CPUs free of other threads of this test"),
            }
        }
    };
    if let Some(cpu) = list.iter().find(|c| !allowed.contains(**c)) {
        return Err(Error::Usage(format!(
            "CPU {cpu} is not one that this process may use ({allowed})"
        )));
    }
    let cpus = list.iter().copied().cycle().take(threads as usize).collect();
    Ok(Seats { cpus, why: why.into(), allowed })
}

fn allowed() -> CpuSet {
    // SAFETY: a zeroed set is valid; the kernel fills it.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set);
        (0..libc::CPU_SETSIZE as u32)
            .filter(|c| libc::CPU_ISSET(*c as usize, &set))
            .map(CpuId)
            .collect()
    }
}

/// Pins the calling thread.
///
/// # Errors
/// As the kernel says.
pub fn pin(cpu: CpuId) -> Result<()> {
    // SAFETY: a zeroed set is valid; the kernel reads it.
    let done = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu.0 as usize, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set)
    };
    match done {
        0 => Ok(()),
        _ => Err(Error::io(format!("cannot pin to CPU {cpu}"), &std::io::Error::last_os_error())),
    }
}

/// Who this end is, and which boot of which host it runs in.
#[derive(Debug, Clone, Default)]
pub struct Identity {
    /// Program, kernel, machine.
    pub end: End,
    /// Equal for two processes of one running kernel.
    pub boot_id: String,
}

/// See [`Identity`].
pub fn identity() -> Identity {
    let root = probe::Root::live();
    let text = |path: &str| {
        let bytes = root.read(path).unwrap_or_default();
        String::from_utf8_lossy(&bytes).trim().to_owned()
    };
    Identity {
        end: End {
            program: crate::PROGRAM.into(),
            kernel: text("/proc/sys/kernel/osrelease"),
            arch: std::env::consts::ARCH.into(),
            cpus: std::thread::available_parallelism().map_or(0, |n| n.get() as u32),
            address: String::new(),
        },
        boot_id: text("/proc/sys/kernel/random/boot_id"),
    }
}
