//! Waits for bytes on one socket, by blocking or spinning.

use std::{io, os::fd::RawFd};

use model::measure::{SPIN_NS, Wait};

use super::worker_pool::WorkerPool;
use crate::{
    Error,
    net::{now_ns, sys},
};

/// Why no bytes were received.
#[derive(Debug)]
pub enum Nothing {
    Stop,
    /// The wait was interrupted or took a while; check the time and continue.
    Look,
    /// The other end closed.
    End,
    /// The kernel's error of the socket.
    Broken(io::Error),
}

/// Error for a flow that the server ended.
pub fn server_gone(e: Option<&io::Error>) -> Error {
    match e {
        None => Error::Environment("the server closed a data connection".into()),
        Some(e) => Error::io("a data connection broke", e),
    }
}

/// Polls without data between two checks of the time.
const QUESTIONS: u32 = 256;

fn recv(fd: RawFd, room: &mut [u8], flags: i32) -> io::Result<usize> {
    sys::recv(fd, room, flags)
}

/// Receives at least one byte.
///
/// # Errors
/// See [`Nothing`]; an empty datagram is an end only if `stream` is set.
#[inline]
pub fn receive(
    fd: RawFd,
    room: &mut [u8],
    wait: Wait,
    stream: bool,
    pool: &WorkerPool,
) -> Result<usize, Nothing> {
    let got = match wait {
        Wait::Block | Wait::BusyPoll => recv(fd, room, 0),
        Wait::Spin => spin(fd, room, pool, u64::MAX),
        Wait::SpinThenBlock => match spin(fd, room, pool, SPIN_NS.0) {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock && !pool.stopping() => {
                recv(fd, room, 0)
            }
            other => other,
        },
    };
    match got {
        Ok(0) if stream => Err(Nothing::End),
        Ok(n) => Ok(n),
        Err(_) if pool.stopping() => Err(Nothing::Stop),
        Err(e) => match e.kind() {
            io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock => Err(Nothing::Look),
            _ => Err(Nothing::Broken(e)),
        },
    }
}

/// Polls until data arrives; `WouldBlock` after a while, or after `most` nanoseconds.
#[inline]
fn spin(fd: RawFd, room: &mut [u8], pool: &WorkerPool, most: u64) -> io::Result<usize> {
    let begun = if most == u64::MAX { 0 } else { now_ns() };
    for _ in 0..QUESTIONS {
        match recv(fd, room, libc::MSG_DONTWAIT) {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                if pool.stopping() || (begun > 0 && now_ns() - begun > most) {
                    return Err(e);
                }
            }
            other => return other,
        }
    }
    if begun > 0 {
        return spin(fd, room, pool, most.saturating_sub(now_ns() - begun));
    }
    Err(io::ErrorKind::WouldBlock.into())
}

/// Sends all bytes; sleeps while the socket is full.
///
/// # Errors
/// As the kernel says; `Interrupted` when the pool ends.
#[inline]
pub fn send_all(fd: RawFd, bytes: &[u8], pool: &WorkerPool) -> io::Result<()> {
    let mut left = bytes;
    loop {
        match sys::send(fd, left, 0) {
            Ok(n) if n == left.len() => return Ok(()),
            Ok(n) => left = left.get(n..).unwrap_or_default(),
            Err(e) if e.kind() != io::ErrorKind::Interrupted || pool.stopping() => return Err(e),
            Err(_) => {}
        }
    }
}
