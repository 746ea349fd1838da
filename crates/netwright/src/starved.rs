//! Failures to get memory, or room in a file: one error line and exit code 4.
//!
//! By default Rust aborts without a reason when memory is refused. The kernel ends a process that
//! writes beyond `ulimit -f` by a signal, without a message.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    ffi::c_int,
};

/// The system's allocator; a refused allocation ends the process with a line.
pub struct Memory;

/// The line printed before the process ends.
const NO_MEMORY: &[u8] =
    b"netwright: no memory left; see `ulimit -v` and the cgroup's memory.max\n";

/// The exit code for a refusal by the system.
const ENVIRONMENT: c_int = 4;

#[cold]
fn give_up() -> *mut u8 {
    // SAFETY: both are async-signal-safe and allocate nothing; the bytes are constant. The watchdog
    // restores a changed host, as after SIGKILL.
    unsafe {
        libc::write(libc::STDERR_FILENO, NO_MEMORY.as_ptr().cast(), NO_MEMORY.len());
        libc::_exit(ENVIRONMENT)
    }
}

#[inline]
fn given(memory: *mut u8) -> *mut u8 {
    if memory.is_null() { give_up() } else { memory }
}

// SAFETY: every call goes unchanged to the system's allocator; a refused one does not return.
unsafe impl GlobalAlloc for Memory {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's guarantees are passed on.
        given(unsafe { System.alloc(layout) })
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        given(unsafe { System.alloc_zeroed(layout) })
    }

    #[inline]
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above.
        given(unsafe { System.realloc(memory, layout, size) })
    }

    #[inline]
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }
}

extern "C" fn nothing(_: c_int) {}

/// Makes a write beyond `ulimit -f` fail with EFBIG. A handler, as `SIG_IGN` would be inherited by
/// the programs that we start.
pub fn hear_of_full_files() {
    // SAFETY: a zeroed action is valid; the handler does nothing.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as extern "C" fn(c_int) as libc::sighandler_t;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(libc::SIGXFSZ, &raw const action, std::ptr::null_mut());
    }
}
