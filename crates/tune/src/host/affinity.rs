//! CPU affinity of threads.

use std::io;

use model::CpuSet;

use super::Host;
use crate::TuneError;

/// CPUs 0 to 8191, as many as the kernel can be built for.
const WORDS: usize = 128;

impl Host {
    /// `sched_setaffinity`.
    ///
    /// # Errors
    /// `ESRCH` (absent) when the thread is gone, `EINVAL` when it may run on none of `cpus`.
    pub fn set_affinity(&self, tid: u32, cpus: &CpuSet) -> Result<(), TuneError> {
        let what = format!("affinity of thread {tid}");
        if !self.is_live() {
            return Err(TuneError::Environment(format!("{what}: a folder has no threads")));
        }
        let mut mask = [0u64; WORDS];
        if cpus.words().len() > WORDS {
            return Err(TuneError::Usage(format!("{what}: no kernel has CPUs beyond 8191")));
        }
        for (to, from) in mask.iter_mut().zip(cpus.words()) {
            *to = *from;
        }
        let pid = i32::try_from(tid).map_err(|_| TuneError::written(&what, libc::ESRCH))?;
        // SAFETY: the mask outlives the call and its size is given; a CPU set is an array of
        // `long`s with CPU 0 as the lowest bit of the first, on both 64-bit architectures.
        let done =
            unsafe { libc::sched_setaffinity(pid, size_of_val(&mask), mask.as_ptr().cast()) };
        if done == 0 {
            return Ok(());
        }
        let e = io::Error::last_os_error();
        Err(match e.raw_os_error() {
            Some(libc::EACCES | libc::EPERM) => {
                TuneError::not_permitted(&what, "CAP_SYS_NICE (or root)")
            }
            _ => TuneError::io(&what, &e),
        })
    }
}
