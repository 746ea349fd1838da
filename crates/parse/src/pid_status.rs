//! `/proc/PID/status` and `/proc/PID/task/TID/status`. **Source**: `fs/proc/array.c`
//! (`proc_pid_status`), `proc_pid_status(5)`.

use model::{Bytes, CpuSet};

use crate::{ParseError, text};

/// What of the file is used; `None` where this kernel or kind of task has no such line
/// (kernel threads have no memory).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PidStatus {
    /// Short name, with line ends and backslashes escaped by the kernel.
    pub name: String,
    /// Process that the thread belongs to.
    pub tgid: Option<u32>,
    /// Real user id.
    pub real_uid: Option<u32>,
    /// Effective user id.
    pub effective_uid: Option<u32>,
    /// Resident memory (`VmRSS`).
    pub rss_bytes: Option<Bytes>,
    /// Threads of the process.
    pub threads: Option<u32>,
    /// Effective capabilities as a bit mask.
    pub effective_capabilities: Option<u64>,
    /// CPUs it may run on.
    pub cpus_allowed: Option<CpuSet>,
    /// Nodes it may take memory from, as a set of node ids.
    pub mems_allowed: Option<CpuSet>,
    /// Times it gave up the CPU by itself.
    pub voluntary_switches: Option<u64>,
    /// Times it was taken off the CPU.
    pub involuntary_switches: Option<u64>,
}

/// Reads the file; a line that makes no sense is as if it were missing.
///
/// # Errors
/// When there is no `Name` line.
pub fn parse(bytes: &[u8]) -> Result<PidStatus, ParseError> {
    let mut status = PidStatus::default();
    let mut named = false;
    for (_, line) in text::lines(bytes) {
        let Some((key, value)) = line.split_once(':') else { continue };
        let value = value.trim();
        let number = |s: &str| s.parse().ok();
        match key {
            "Name" => {
                value.clone_into(&mut status.name);
                named = true;
            }
            "Tgid" => status.tgid = value.parse().ok(),
            "Uid" => {
                let mut ids = value.split_ascii_whitespace().map(|id| id.parse().ok());
                status.real_uid = ids.next().flatten();
                status.effective_uid = ids.next().flatten();
            }
            "VmRSS" => status.rss_bytes = kib(value),
            "Threads" => status.threads = value.parse().ok(),
            "CapEff" => status.effective_capabilities = u64::from_str_radix(value, 16).ok(),
            "Cpus_allowed_list" => status.cpus_allowed = crate::list::parse(value.as_bytes()).ok(),
            "Mems_allowed_list" => status.mems_allowed = crate::list::parse(value.as_bytes()).ok(),
            "voluntary_ctxt_switches" => status.voluntary_switches = number(value),
            "nonvoluntary_ctxt_switches" => status.involuntary_switches = number(value),
            _ => {}
        }
    }
    if named { Ok(status) } else { Err(ParseError::new(1, "Name: …", bytes)) }
}

fn kib(value: &str) -> Option<Bytes> {
    let n: u64 = value.strip_suffix("kB")?.trim().parse().ok()?;
    n.checked_mul(1024).map(Bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_lines() {
        let s = parse(
            b"Name:\tpostgres: a b\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t41\nPid:\t43\n\
              Uid:\t1000\t0\t0\t0\nVmRSS:\t   13824 kB\nThreads:\t3\n\
              CapEff:\t000001ffffffffff\nCpus_allowed:\tffffffff,ffff0000\n\
              Cpus_allowed_list:\t16-63\nMems_allowed_list:\t0-1\n\
              voluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t545\n",
        )
        .unwrap();
        assert_eq!(s.name, "postgres: a b");
        assert_eq!((s.tgid, s.real_uid, s.effective_uid), (Some(41), Some(1000), Some(0)));
        assert_eq!(s.rss_bytes, Some(Bytes(13824 * 1024)));
        assert_eq!(s.effective_capabilities, Some(0x1ff_ffff_ffff));
        assert_eq!(s.cpus_allowed.unwrap().to_string(), "16-63");
        assert_eq!(s.mems_allowed.unwrap().to_string(), "0-1");
        assert_eq!((s.voluntary_switches, s.involuntary_switches), (Some(150), Some(545)));
    }

    #[test]
    fn what_is_missing_or_strange_is_not_zero() {
        let s = parse(b"Name:\tkthreadd\nVmRSS:\t99999999999999999999 kB\nThreads:\tx\n").unwrap();
        assert_eq!(s, PidStatus { name: "kthreadd".into(), ..Default::default() });
        assert!(parse(b"Pid:\t1\n").is_err());
    }
}
