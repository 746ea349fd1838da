//! Connections made: at first, anew, and those that do not come about.

use std::{io, net::SocketAddr};

use model::measure::{SocketOptions, Transport, Wait};
use socket2::{Domain, Protocol, Socket, Type};

use super::{Near, State, answer::talking, begin::Due};
use crate::{
    Error,
    http::{conn::Phase, recorder::Failed},
    net::{now_ns, options},
};

/// How long a connection rests after it failed without a response: whoever refuses shall not be
/// flooded.
pub(super) const REST_NS: u64 = 10_000_000;

impl Near<'_> {
    pub(super) fn connect(&self, state: &mut State<'_>, key: usize) -> Result<(), Error> {
        let socket = match self.socket()? {
            Ok(socket) => socket,
            Err(errno) => return self.unconnected(state, key, Failed::Connecting(errno)),
        };
        let begun = now_ns();
        let errno = match socket.connect(&self.shape.to.into()) {
            Ok(()) => None,
            Err(e) => Some(e.raw_os_error().unwrap_or(0)),
        };
        let Some(conn) = state.conns.get_mut(key) else { return Ok(()) };
        match errno {
            None | Some(libc::EINPROGRESS) => {
                conn.take(socket, begun);
                // One that is established already is told of, too.
                state.epoll.add_once(conn.fd(), key).map_err(|e| Error::io("epoll", &e))
            }
            Some(errno) => self.unconnected(state, key, Failed::Connecting(errno)),
        }
    }

    /// A connection is established: TLS follows, or requests.
    pub(super) fn connected(
        &self,
        state: &mut State<'_>,
        key: usize,
        ended: bool,
    ) -> Result<(), Error> {
        let now = now_ns();
        let Some(conn) = state.conns.get_mut(key) else { return Ok(()) };
        if !self.shape.new_connections || self.window.holds(now) {
            state.recorder.connect.record(now.saturating_sub(conn.begun_ns));
        }
        let Some(tls) = &self.shape.tls else { return self.open(state, key, now) };
        match conn.shake(tls, now) {
            Ok(()) => self.shake(state, key, ended),
            Err(e) => self.unconnected(state, key, talking(&e)),
        }
    }

    /// Goes on with the handshake.
    pub(super) fn shake(
        &self,
        state: &mut State<'_>,
        key: usize,
        ended: bool,
    ) -> Result<(), Error> {
        let Some(conn) = state.conns.get_mut(key) else { return Ok(()) };
        match conn.shaken(&mut state.rooms) {
            Ok(None) if ended => self.unconnected(state, key, Failed::ClosedBefore),
            Ok(None) => Ok(()),
            Ok(Some(agreed)) => {
                let now = now_ns();
                if !self.shape.new_connections || self.window.holds(now) {
                    state.recorder.shaken(now.saturating_sub(conn.shaking_ns), agreed);
                }
                self.open(state, key, now)?;
                // What came with the handshake is told of no more.
                self.hear(state, key, ended, None)
            }
            Err(e) => self.unconnected(state, key, talking(&e)),
        }
    }

    /// Requests may be sent.
    fn open(&self, state: &mut State<'_>, key: usize, now: u64) -> Result<(), Error> {
        let Some(conn) = state.conns.get_mut(key) else { return Ok(()) };
        conn.phase = Phase::Open;
        conn.asked.iter_mut().for_each(|a| a.sent_ns = now);
        match conn.asked.is_empty() {
            true => {
                self.queue(state, key);
                Ok(())
            }
            false => self.push(state, key),
        }
    }

    /// A socket ready for `connect`, or the errno of what it lacks: descriptors, memory.
    ///
    /// # Errors
    /// An option or address that was asked for is refused: that will not get better.
    fn socket(&self) -> Result<Result<Socket, i32>, Error> {
        let shape = self.shape;
        let domain = Domain::for_address(shape.to);
        let socket = match Socket::new(domain, Type::STREAM.nonblocking(), Some(Protocol::TCP)) {
            Ok(socket) => socket,
            Err(e) => return Ok(Err(e.raw_os_error().unwrap_or(0))),
        };
        // A connection for one request needs no option that was not asked for: each is a call.
        if !shape.new_connections || shape.socket != SocketOptions::default() {
            options::apply(&socket, Transport::Tcp, &shape.socket, true)?;
        }
        if shape.wait == Wait::BusyPoll {
            let _ = options::prepare(&socket, shape.wait);
        }
        if let Some(from) = shape.from {
            let six = from.is_ipv6();
            let level = if six { libc::IPPROTO_IPV6 } else { libc::IPPROTO_IP };
            let _ = options::set(&socket, level, libc::IP_BIND_ADDRESS_NO_PORT, 1);
            socket
                .bind(&SocketAddr::new(from, 0).into())
                .map_err(|e: io::Error| Error::io(format!("cannot send from {from}"), &e))?;
        }
        Ok(Ok(socket))
    }

    /// No connection came about: the request that waited for it has failed, or the one that would
    /// have been begun.
    #[cold]
    pub(super) fn unconnected(
        &self,
        state: &mut State<'_>,
        key: usize,
        why: Failed,
    ) -> Result<(), Error> {
        let now = now_ns();
        let due = self.due(state, now);
        let Some(conn) = state.conns.get_mut(key) else { return Ok(()) };
        conn.close();
        let due_ns = match (conn.asked.pop_front(), due) {
            (Some(asked), _) => Some(asked.due_ns),
            (None, Due::At(due_ns)) if due_ns <= now => {
                state.next += 1;
                Some(due_ns)
            }
            _ => None,
        };
        if let Some(due_ns) = due_ns {
            state.settled += 1;
            state.recorder.fail(self.window, due_ns, now, why);
        }
        state.resting.insert((now + REST_NS, key));
        Ok(())
    }
}
