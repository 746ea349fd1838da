//! Which offload falsifies packets: checksummed pieces through each of them, steered by options of
//! the sockets alone. No setting of a host is changed.
//!
//! `pieces` says what is sent, `datagram`, `stream` and `damaged` send and receive it, `peer` does so
//! at the server, `measure` at the client; `judge` names the offload.

mod damaged;
mod datagram;
mod judge;
pub mod measure;
mod nic;
pub mod peer;
pub mod pieces;
mod stream;

use std::{io, os::fd::RawFd, time::Duration};

use model::measure::OffloadProbe;

use crate::{
    control::message::{DATA_MAGIC, PREAMBLE},
    net::sys,
};

/// Bytes that a large piece can have.
pub const LARGE: std::ops::RangeInclusive<u64> = 400..=8960;

/// Whether the socket has something to read within this time; an interrupted wait says no.
fn readable(fd: RawFd, most: Duration) -> bool {
    let mut one = [libc::pollfd { fd, events: libc::POLLIN, revents: 0 }];
    let ms = i32::try_from(most.as_millis()).unwrap_or(i32::MAX).max(1);
    sys::poll(&mut one, ms).is_ok_and(|n| n > 0)
}

/// Whether a datagram is the greeting of a data connection.
fn is_greeting(bytes: &[u8]) -> bool {
    bytes.len() == PREAMBLE && bytes.starts_with(&DATA_MAGIC)
}

/// Why a probe cannot run.
fn why_not(probe: OffloadProbe, e: &io::Error) -> String {
    match (probe, e.raw_os_error()) {
        (OffloadProbe::UdpBadSum, Some(libc::EPERM | libc::EACCES)) => {
            "the sender lacks CAP_NET_RAW".into()
        }
        (_, Some(libc::ENOPROTOOPT | libc::EINVAL | libc::EIO)) => {
            format!("the kernel has no such way of sending or receiving ({e})")
        }
        _ => format!("cannot send or receive: {e}"),
    }
}
