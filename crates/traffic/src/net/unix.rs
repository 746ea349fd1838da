//! Connecting to a server's Unix socket.

use std::{io, time::Duration};

use socket2::{SockAddr, Socket};

/// Connects a Unix socket; waits for room in the server's queue, but not without limit.
///
/// # Errors
/// The kernel's error; `TimedOut` where the queue stays full.
pub fn connect_within(socket: &Socket, to: &SockAddr, patience: Duration) -> io::Result<()> {
    socket.set_write_timeout(Some(patience))?;
    let connected = socket.connect(to).map_err(|e| match e.kind() {
        io::ErrorKind::WouldBlock => io::ErrorKind::TimedOut.into(),
        _ => e,
    });
    socket.set_write_timeout(None)?;
    connected
}
