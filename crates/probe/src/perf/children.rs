//! Counts migrations of the programs that a thread starts.

use std::{
    fs::File,
    io::{self, Read},
    os::fd::FromRawFd,
};

use super::{Attributes, CLOSE_ON_EXEC};

const SOFTWARE: u32 = 1;
/// The event: `PERF_COUNT_SW_CPU_MIGRATIONS` of `linux/perf_event.h`.
const MIGRATIONS: u64 = 4;
/// `disabled`, `inherit` and `enable_on_exec`: each forked child has its own counter. It starts at
/// exec, and is added to this one when the child ends.
const CHILDREN_ONLY: u64 = 1 | 2 | 1 << 12;

/// How often the next program that this thread starts, and its children, were moved to another
/// CPU.
///
/// One for each program: the kernel may hand a parent's counter to a child instead of the copy (it
/// swaps equal contexts at a switch between the two), and whichever begins at an execve(2) makes no
/// copies that do.
#[derive(Debug)]
pub struct ChildMoves(File);

impl ChildMoves {
    /// Counts from now on.
    ///
    /// # Errors
    /// `EACCES`, `EPERM`: not permitted (`CAP_PERFMON`, or `perf_event_paranoid` of 1 or less);
    /// `ENOSYS`: a kernel without perf events.
    pub fn open() -> io::Result<Self> {
        let attributes = Attributes {
            kind: SOFTWARE,
            size: 64,
            config: MIGRATIONS,
            period: 0,
            sample: 0,
            format: 0,
            flags: CHILDREN_ONLY,
            wakeup: 0,
            breakpoint: 0,
            config1: 0,
        };
        // SAFETY: the kernel reads `size` bytes of the attributes, which outlive the call; 0 and
        // -1 are this thread on any CPU.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                &raw const attributes,
                0,
                -1,
                -1,
                CLOSE_ON_EXEC,
            )
        };
        match i32::try_from(fd) {
            // SAFETY: a descriptor that the kernel just created, owned here alone.
            Ok(fd) if fd >= 0 => Ok(Self(unsafe { File::from_raw_fd(fd) })),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Until now.
    ///
    /// # Errors
    /// The kernel gives less than was asked for.
    pub fn read(&self) -> io::Result<u64> {
        let mut bytes = [0; 8];
        (&self.0).read_exact(&mut bytes)?;
        Ok(u64::from_ne_bytes(bytes))
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn moves_of_a_grandchild_are_counted_and_our_own_are_not() {
        let moves = match ChildMoves::open() {
            Ok(moves) => moves,
            Err(e) => {
                // Only a missing permission excuses a failure.
                let may_not = [libc::EACCES, libc::EPERM, libc::ENOSYS];
                assert!(e.raw_os_error().is_some_and(|e| may_not.contains(&e)), "{e}");
                return;
            }
        };
        drop(moves);
        let wander = "for i in 1 2 3 4 5; do taskset -pc 0 $$; taskset -pc 1 $$; done";
        // Oftener than once, for the kernel does not always hand the same counter on.
        for _ in 0..6 {
            let moves = ChildMoves::open().unwrap();
            let mut command = Command::new("sh");
            let done = command.args(["-c", &format!("sh -c '{wander}'; true")]).output();
            assert!(done.unwrap().status.success());
            // Nine moves at least.
            assert!(moves.read().unwrap() >= 9, "{:?}", moves.read());
        }
        let moves = ChildMoves::open().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert_eq!(moves.read().unwrap(), 0);
    }
}
