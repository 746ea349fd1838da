//! One client flow: a connection from its start to its end.

use std::{
    io,
    os::fd::{AsRawFd, RawFd},
    time::Duration,
};

use model::measure::Close;
use socket2::Socket;

use super::{
    ConnectShape,
    recorder::{Failed, MadeConnection},
};
use crate::net::epoll::Ready;
use crate::net::sys;

/// A flow and the connection it has.
#[derive(Debug, Default)]
pub struct Slot {
    socket: Option<Socket>,
    /// Start of its measured time, as in [`MadeConnection`].
    pub due_ns: u64,
    /// When `connect` was called; 0 before the first attempt.
    pub begun_ns: u64,
    connected_ns: u64,
    first_ns: u64,
    unsent: u64,
    awaited: u64,
    ended: bool,
}

/// State of a connection after an event.
#[derive(Debug, Clone, Copy)]
pub enum ConnectionEnd {
    /// More events must follow.
    Waits,
    Made(MadeConnection),
    Failed(Failed),
}

impl Slot {
    /// Takes a socket after `connect` was called on it.
    pub fn take(&mut self, socket: Socket, shape: &ConnectShape) {
        self.socket = Some(socket);
        (self.connected_ns, self.first_ns, self.ended) = (0, 0, false);
        (self.unsent, self.awaited) = (shape.request_bytes, shape.response_bytes);
    }

    pub fn fd(&self) -> Option<RawFd> {
        self.socket.as_ref().map(AsRawFd::as_raw_fd)
    }

    /// Whether it has a connection, established or not.
    pub fn is_busy(&self) -> bool {
        self.socket.is_some()
    }

    /// Whether it is established.
    pub fn is_connected(&self) -> bool {
        self.connected_ns > 0
    }

    /// Handles an event of the socket; `now` is the time of the event.
    pub fn changed(
        &mut self,
        shape: &ConnectShape,
        ready: Ready,
        now: u64,
        room: &mut [u8],
    ) -> ConnectionEnd {
        let Some(socket) = &self.socket else { return ConnectionEnd::Waits };
        if !self.is_connected() {
            if ready.broken
                && let Ok(Some(e)) = socket.take_error()
            {
                return ConnectionEnd::Failed(Failed::Connecting(e.raw_os_error().unwrap_or(0)));
            }
            self.connected_ns = now;
        }
        self.go_on(shape, ready.readable, now, room)
    }

    /// Handles a connection that `connect` established at once.
    pub fn connected(&mut self, shape: &ConnectShape, now: u64, room: &mut [u8]) -> ConnectionEnd {
        self.connected_ns = now;
        self.go_on(shape, false, now, room)
    }

    /// Sends, reads and closes, as far as possible without blocking.
    fn go_on(
        &mut self,
        shape: &ConnectShape,
        readable: bool,
        now: u64,
        room: &mut [u8],
    ) -> ConnectionEnd {
        if let Err(e) = self.send(room) {
            return ConnectionEnd::Failed(Failed::Talking(e));
        }
        if readable && let Err(e) = self.read(shape, now, room) {
            return ConnectionEnd::Failed(e);
        }
        if self.unsent > 0 || self.awaited > 0 || (shape.close == Close::Peer && !self.ended) {
            return ConnectionEnd::Waits;
        }
        ConnectionEnd::Made(MadeConnection {
            due_ns: self.due_ns,
            begun_ns: self.begun_ns,
            connected_ns: self.connected_ns,
            first_ns: self.first_ns,
            ended_ns: now,
        })
    }

    fn send(&mut self, room: &[u8]) -> Result<(), i32> {
        while self.unsent > 0 {
            let length = usize::try_from(self.unsent).unwrap_or(usize::MAX).min(room.len());
            let Some(fd) = self.fd() else { return Ok(()) };
            match sys::send(fd, room.get(..length).unwrap_or(room), libc::MSG_DONTWAIT) {
                Ok(n) => self.unsent -= (n as u64).min(self.unsent),
                Err(e) => match e.raw_os_error() {
                    Some(libc::EAGAIN) => return Ok(()),
                    Some(libc::EINTR) => {}
                    e => return Err(e.unwrap_or(0)),
                },
            }
        }
        Ok(())
    }

    /// Reads all available bytes: epoll reports them only once.
    fn read(&mut self, shape: &ConnectShape, now: u64, room: &mut [u8]) -> Result<(), Failed> {
        let Some(fd) = self.fd() else { return Ok(()) };
        loop {
            match sys::recv(fd, room, libc::MSG_DONTWAIT).map(|n| n as u64) {
                Ok(0) => {
                    self.ended = true;
                    let whole = self.unsent == 0 && self.awaited == 0;
                    return if whole { Ok(()) } else { Err(Failed::ClosedEarly) };
                }
                Ok(n) => {
                    if self.first_ns == 0 {
                        self.first_ns = now;
                    }
                    self.awaited = self.awaited.saturating_sub(n);
                    // If we close, no further event is needed.
                    if self.awaited == 0 && shape.close != Close::Peer {
                        return Ok(());
                    }
                }
                Err(_) => match io::Error::last_os_error().raw_os_error() {
                    Some(libc::EAGAIN) => return Ok(()),
                    Some(libc::EINTR) => {}
                    e => return Err(Failed::Talking(e.unwrap_or(0))),
                },
            }
        }
    }

    /// Closes the connection, by reset if requested.
    pub fn end(&mut self, close: Close) {
        if let Some(socket) = self.socket.take()
            && close == Close::Reset
        {
            let _ = socket.set_linger(Some(Duration::ZERO));
        }
        self.begun_ns = 0;
    }
}
