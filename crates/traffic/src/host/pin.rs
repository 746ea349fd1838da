//! CPU affinity of threads.

use std::{io, marker::PhantomData};

use model::{CpuId, CpuSet, cpuset::MAX_ID};

use crate::{ErrorContext, Result};

/// Initial length of an affinity mask in 64-bit words (1,024 CPUs); it doubles as needed.
const WORDS: usize = 16;
const MAX_WORDS: usize = (MAX_ID as usize + 1) / 64;

/// The online CPUs that the calling thread may use, by its cpuset and affinity. **Source**:
/// `sched_getaffinity`.
///
/// # Errors
/// The kernel refuses.
pub fn allowed() -> Result<CpuSet> {
    let mut words = vec![0u64; WORDS];
    loop {
        // The C library's wrapper would hide how much the kernel wrote. SAFETY: the kernel
        // writes at most the size given; 0 is the calling thread.
        let n = unsafe {
            libc::syscall(libc::SYS_sched_getaffinity, 0, words.len() * 8, words.as_mut_ptr())
        };
        if let Ok(bytes) = usize::try_from(n) {
            words.truncate(bytes.div_ceil(8));
            return Ok(CpuSet::from_words(words));
        }
        // EINVAL: the kernel supports more CPUs than the mask has bits.
        let e = io::Error::last_os_error();
        if e.raw_os_error() != Some(libc::EINVAL) || words.len() >= MAX_WORDS {
            return Err(e).doing(|| "sched_getaffinity");
        }
        words = vec![0u64; words.len() * 2];
    }
}

/// Restricts the calling thread to these CPUs.
///
/// # Errors
/// None of them is online and in the thread's cpuset; names those that are.
pub fn set(cpus: &CpuSet) -> Result<()> {
    let words = cpus.words();
    // SAFETY: the kernel reads the size given; 0 is the calling thread.
    let r =
        unsafe { libc::syscall(libc::SYS_sched_setaffinity, 0, words.len() * 8, words.as_ptr()) };
    if r == 0 {
        return Ok(());
    }
    let e = io::Error::last_os_error();
    Err(e).doing(|| {
        let may = allowed().map_or_else(|_| "not known".to_owned(), |a| a.to_string());
        format!("pinning to CPU {cpus} (this thread may use {may})")
    })
}

/// Pins the calling thread to one CPU until dropped; must stay on that thread.
#[derive(Debug)]
pub struct Pinned {
    before: CpuSet,
    here: PhantomData<*const ()>,
}

impl Pinned {
    /// Moves the calling thread to `cpu`; returns when it runs there.
    ///
    /// # Errors
    /// The CPU is offline or not in the thread's cpuset.
    pub fn to(cpu: CpuId) -> Result<Self> {
        let before = allowed()?;
        set(&CpuSet::from_iter([cpu]))?;
        Ok(Self { before, here: PhantomData })
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // CPUs may have gone offline since; then the thread stays where it is.
        let _ = set(&self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::incoming::current_cpu;

    #[test]
    fn a_pinned_thread_is_there_and_goes_back() {
        let before = allowed().unwrap();
        for cpu in before.iter() {
            let pinned = Pinned::to(cpu).unwrap();
            assert_eq!(current_cpu(), Some(cpu));
            assert_eq!(allowed().unwrap(), CpuSet::from_iter([cpu]));
            drop(pinned);
            assert_eq!(allowed().unwrap(), before);
        }
    }

    #[test]
    fn a_cpu_that_is_not_there_is_refused_with_those_that_are() {
        let line = Pinned::to(CpuId(60_000)).unwrap_err().to_string();
        let may = allowed().unwrap().to_string();
        assert!(line.contains("60000") && line.contains(&may), "{line}");
        assert!(!line.contains('\n'));
        assert!(set(&CpuSet::new()).is_err());
    }
}
