//! TCP: as fast as the kernel goes, or by a rate.

use std::{io, os::fd::AsRawFd, sync::atomic::Ordering::Relaxed};

use super::{Flow, Load, READ_MAX, READ_MIN, pace::Pace};

/// Sends blocks until told to stop.
pub fn send(flow: &Flow, load: &Load) {
    let fd = flow.socket.as_raw_fd();
    let file = load.file.as_ref().map(AsRawFd::as_raw_fd);
    let pace = Pace::new(load.rate);
    let burst = u64::from(load.burst.max(1)) * load.payload.len() as u64;
    let (mut bytes, mut unpaced) = (0u64, 0u64);
    block_sigpipe();
    while !flow.stopped() {
        // SAFETY: the payload outlives the call; sendfile reads from the file's beginning.
        let n = unsafe {
            match file {
                None => libc::send(
                    fd,
                    load.payload.as_ptr().cast(),
                    load.payload.len(),
                    libc::MSG_NOSIGNAL,
                ),
                Some(file) => {
                    let mut from = 0;
                    libc::sendfile(fd, file, &raw mut from, load.payload.len())
                }
            }
        };
        if n < 0 {
            let e = io::Error::last_os_error();
            if e.kind() == io::ErrorKind::Interrupted {
                continue;
            }
            return flow.fail(&e);
        }
        bytes += n as u64;
        unpaced += n as u64;
        flow.gauges.bytes.store(bytes, Relaxed);
        if let (Some(pace), true) = (&pace, unpaced >= burst) {
            unpaced = 0;
            if !pace.wait(bytes, flow) {
                return;
            }
        }
    }
}

/// Receives until told to stop or the other end closes.
pub fn receive(flow: &Flow, load: &Load) {
    let fd = flow.socket.as_raw_fd();
    let mut buffer = vec![0u8; load.payload.len().clamp(READ_MIN, READ_MAX)];
    let flags = if load.skip_copy { libc::MSG_TRUNC } else { 0 };
    let mut bytes = 0u64;
    while !flow.stopped() {
        // SAFETY: the buffer outlives the call and its length is given.
        match unsafe { libc::recv(fd, buffer.as_mut_ptr().cast(), buffer.len(), flags) } {
            // The other end says no more; its control connection says why.
            0 => return,
            n if n > 0 => {
                bytes += n as u64;
                flow.gauges.bytes.store(bytes, Relaxed);
            }
            _ => {
                let e = io::Error::last_os_error();
                if e.kind() != io::ErrorKind::Interrupted {
                    return flow.fail(&e);
                }
            }
        }
    }
}

/// `sendfile` has no flag against SIGPIPE.
fn block_sigpipe() {
    // SAFETY: a signal set on the stack; blocking a signal for this thread is always allowed.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGPIPE);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
    }
}
