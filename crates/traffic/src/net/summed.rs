//! Datagrams whose UDP checksum the kernel computes, not the device: they arrive also where the
//! device's checksum offload is broken.
//!
//! A datagram of several calls (`MSG_MORE`) is summed while the kernel copies it
//! (`__ip_append_data` leaves the checksum to a device only without that flag).

use std::{io, os::fd::RawFd};

use socket2::{SockAddr, Socket};

use super::sys;

/// Sends one datagram of a connected socket; bytes sent.
///
/// # Errors
/// As the kernel says.
pub fn send(fd: RawFd, bytes: &[u8]) -> io::Result<usize> {
    let (head, rest) = bytes.split_at(bytes.len() / 2);
    Ok(sys::send(fd, head, libc::MSG_MORE)? + sys::send(fd, rest, 0)?)
}

/// Sends one datagram to an address; bytes sent.
///
/// # Errors
/// As the kernel says.
pub fn send_to(socket: &Socket, bytes: &[u8], to: &SockAddr) -> io::Result<usize> {
    let (head, rest) = bytes.split_at(bytes.len() / 2);
    Ok(socket.send_to_with_flags(head, to, libc::MSG_MORE)? + socket.send_to(rest, to)?)
}
