//! TCP streams, at full speed or paced.

use std::{io, os::fd::AsRawFd, sync::atomic::Ordering::Relaxed};

use traffic::net::sys;

use super::{Flow, Load, READ_MAX, READ_MIN, pace::Pace};

/// Sends blocks until told to stop.
pub fn send(flow: &Flow, load: &Load) {
    let fd = flow.socket.as_raw_fd();
    let pace = Pace::new(load.rate);
    let burst = u64::from(load.burst.max(1)) * load.payload.len() as u64;
    let (mut bytes, mut unpaced) = (0u64, 0u64);
    block_sigpipe();
    while !flow.stopped() {
        let sent = match &load.file {
            None => sys::send(fd, &load.payload, 0),
            Some(file) => sys::send_file(fd, file, load.payload.len()),
        };
        let n = match sent {
            Ok(n) => n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return flow.fail(&e),
        };
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

/// Receives until told to stop or until the other end closes.
pub fn receive(flow: &Flow, load: &Load) {
    let fd = flow.socket.as_raw_fd();
    let mut buffer = vec![0u8; load.payload.len().clamp(READ_MIN, READ_MAX)];
    let flags = if load.skip_copy { libc::MSG_TRUNC } else { 0 };
    let mut bytes = 0u64;
    while !flow.stopped() {
        match sys::recv(fd, &mut buffer, flags) {
            // The other end has closed; the control connection tells why.
            Ok(0) => return,
            Ok(n) => {
                bytes += n as u64;
                flow.gauges.bytes.store(bytes, Relaxed);
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return flow.fail(&e),
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
