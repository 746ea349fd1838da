//! What the kernel does not give, said in a line and with exit code 4: memory, and room in a file.
//!
//! Rust's own answer to memory that is not there is an abort without a reason; the kernel's to a
//! file beyond `ulimit -f` is a signal that ends the process without a word.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    ffi::c_int,
};

/// The system's allocator, whose refusals end the process with a line.
pub struct Memory;

/// What is said then.
const NO_MEMORY: &[u8] =
    b"netwright: no memory left; see `ulimit -v` and the cgroup's memory.max\n";

/// Exit code of what the environment refuses.
const ENVIRONMENT: c_int = 4;

#[cold]
fn give_up() -> *mut u8 {
    // SAFETY: both may be called at any time, and neither allocates; the bytes are a constant's.
    // What was changed on the host is put back as after SIGKILL: by the watchdog.
    unsafe {
        libc::write(libc::STDERR_FILENO, NO_MEMORY.as_ptr().cast(), NO_MEMORY.len());
        libc::_exit(ENVIRONMENT)
    }
}

#[inline]
fn given(memory: *mut u8) -> *mut u8 {
    if memory.is_null() { give_up() } else { memory }
}

// SAFETY: every call goes to the system's allocator as it came; one that fails does not return.
unsafe impl GlobalAlloc for Memory {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are passed on.
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

/// Has a write beyond `ulimit -f` fail with EFBIG. A handler and not `SIG_IGN`, which the
/// programs that we start would inherit.
pub fn hear_of_full_files() {
    // SAFETY: a zeroed action is valid; the handler does nothing.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as extern "C" fn(c_int) as libc::sighandler_t;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(libc::SIGXFSZ, &raw const action, std::ptr::null_mut());
    }
}
