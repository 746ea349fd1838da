//! Makes connections: first ones, reconnects, and failures to connect.

use std::io;

use model::measure::Transport;

use super::{EventLoop, Loop};
use crate::{
    Error,
    engine::{
        conn::Phase,
        failed::Failed,
        pace::Due,
        places::REST_NS,
        protocol::{Protocol, Record},
    },
    net::{
        now_ns,
        tls::{conn::receive, fault::Fault},
    },
};

impl<P: Protocol> EventLoop<'_, P> {
    pub(super) fn connect(&self, all: &mut Loop<'_, P>, key: usize) -> Result<(), Error> {
        let way = &self.protocol.connecting().way;
        let (socket, begun) = match way.connect()? {
            Ok(connecting) => connecting,
            // The queue of a Unix socket is full: not a failure, only a wait.
            Err(libc::EAGAIN) if way.transport == Transport::Unix => {
                return self.queue_full(all, key);
            }
            Err(errno) => return self.unconnected(all, key, Failed::Connecting(errno)),
        };
        let Some(conn) = all.conns.get_mut(key) else { return Ok(()) };
        conn.take(socket, begun);
        self.protocol.reset(&mut conn.state);
        // epoll also reports a socket that is established already.
        all.epoll.add_once(conn.link.fd(), key).map_err(|e| Error::io("epoll", &e))
    }

    /// Retries shortly, until the timeout. The kernel does not report when the queue has room.
    #[cold]
    fn queue_full(&self, all: &mut Loop<'_, P>, key: usize) -> Result<(), Error> {
        let now = now_ns();
        let Some(conn) = all.conns.get_mut(key) else { return Ok(()) };
        let since = *conn.full_ns.get_or_insert(now);
        if now.saturating_sub(since) >= self.protocol.connecting().timeout_ns {
            conn.full_ns = None;
            return self.unconnected(all, key, Failed::NoConnection);
        }
        all.resting.add(now + REST_NS / 10, key);
        Ok(())
    }

    /// Whether an event on a new connection at `now` counts: always, but only within the window if
    /// each request uses a new connection.
    fn counts(&self, now: u64) -> bool {
        !self.protocol.connecting().one_each || self.task.window.holds(now)
    }

    /// Handles an established connection: TLS follows, a greeting, or requests.
    pub(super) fn connected(
        &self,
        all: &mut Loop<'_, P>,
        key: usize,
        ended: bool,
    ) -> Result<(), Error> {
        let now = now_ns();
        let Some(conn) = all.conns.get_mut(key) else { return Ok(()) };
        if !P::GREETS && self.counts(now) {
            let took = now.saturating_sub(conn.begun_ns);
            all.recorder.requests_mut().connect.record(took);
        }
        let Some(tls) = &self.protocol.connecting().tls else { return self.begin(all, key, now) };
        conn.shaking_ns = now;
        if let Some((ask, _)) = self.protocol.ask_for_tls() {
            conn.phase = Phase::Asking;
            // A new socket has room for a few bytes.
            return match conn.link.send(ask) {
                Ok(_) => Ok(()),
                Err(e) => self.unconnected(all, key, Failed::from(&e)),
            };
        }
        match conn.shake(tls) {
            Ok(()) => self.shake(all, key, ended),
            Err(e) => self.unconnected(all, key, Failed::from(&e)),
        }
    }

    /// Handles the server's answer to the request for TLS. Only its one byte is read, since an
    /// attacker in between could append others.
    #[cold]
    pub(super) fn granted(
        &self,
        all: &mut Loop<'_, P>,
        key: usize,
        ended: bool,
    ) -> Result<(), Error> {
        let (Some(conn), Some(tls)) = (all.conns.get_mut(key), &self.protocol.connecting().tls)
        else {
            return Ok(());
        };
        let mut answer = [0];
        let begun = match receive(conn.link.fd(), &mut answer) {
            Ok(0) => Err(Fault::Io(io::ErrorKind::UnexpectedEof.into())),
            Ok(_) if self.protocol.ask_for_tls().is_some_and(|(_, yes)| answer == [yes]) => {
                conn.shake(tls)
            }
            Ok(_) => {
                return self.unconnected(all, key, Failed::Bad("the server no longer accepts TLS"));
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(e) => Err(Fault::Io(e)),
        };
        match begun {
            Ok(()) => self.shake(all, key, ended),
            Err(e) => self.unconnected(all, key, Failed::from(&e)),
        }
    }

    /// Continues the TLS handshake of a connection.
    pub(super) fn shake(
        &self,
        all: &mut Loop<'_, P>,
        key: usize,
        ended: bool,
    ) -> Result<(), Error> {
        let Some(conn) = all.conns.get_mut(key) else { return Ok(()) };
        match conn.link.shaken(&mut all.rooms) {
            Ok(None) if ended => self.unconnected(all, key, Failed::ClosedBefore),
            Ok(None) => Ok(()),
            Ok(Some(agreed)) => {
                let now = now_ns();
                let took = now.saturating_sub(conn.shaking_ns);
                if self.counts(now) {
                    all.recorder.requests_mut().handshakes.record(took, agreed);
                }
                self.begin(all, key, now)?;
                // epoll does not report again what came with the handshake.
                self.hear(all, key, ended, None)
            }
            Err(e) => self.unconnected(all, key, Failed::from(&e)),
        }
    }

    /// Starts the protocol on a connection.
    fn begin(&self, all: &mut Loop<'_, P>, key: usize, now: u64) -> Result<(), Error> {
        let Some(conn) = all.conns.get_mut(key) else { return Ok(()) };
        if P::GREETS {
            conn.phase = Phase::Greeting;
            self.protocol.greet(conn);
            return self.push(all, key).map(|_| ());
        }
        self.opened(all, key, now);
        self.push(all, key).map(|_| ())
    }

    /// Handles a connection that can take requests.
    pub(super) fn opened(&self, all: &mut Loop<'_, P>, key: usize, now: u64) {
        let places = all.conns.len();
        let Some(conn) = all.conns.get_mut(key) else { return };
        conn.phase = Phase::Open;
        let (recorder, window) = (all.recorder.requests_mut(), self.task.window);
        if let Some(since) = conn.away_since_ns.take() {
            recorder.connections.disconnected_ns += window.share_ns(since, now);
            recorder.reopened += u64::from(window.holds(now));
        }
        if P::GREETS && self.counts(now) {
            recorder.connect.record(now.saturating_sub(conn.begun_ns));
        }
        // Only the first connections count: later ones are made while others work.
        if all.opened < places {
            recorder.connecting_ns = now.saturating_sub(self.task.begun_ns);
        }
        all.opened += 1;
        self.protocol.opened(&mut conn.state, now);
        if !self.protocol.waits(&conn.state) {
            all.idle.add(key);
        }
    }

    /// Handles a failure to connect: the request that waited for the connection fails, or the one
    /// that would have begun.
    #[cold]
    pub(super) fn unconnected(
        &self,
        all: &mut Loop<'_, P>,
        key: usize,
        why: Failed,
    ) -> Result<(), Error> {
        let now = now_ns();
        let due = self.due(all, now);
        all.recorder.requests_mut().connections.refuse(why.clone());
        self.close(all, key);
        let Some(conn) = all.conns.get_mut(key) else { return Ok(()) };
        let mut counting = self.counting(all.recorder);
        let failed = match (self.protocol.fail(&mut conn.state, &why, now, &mut counting), due) {
            (true, _) => true,
            (false, Due::At(due_ns)) if due_ns <= now => {
                all.next += 1;
                all.recorder.requests_mut().fail(self.task.window, due_ns, now, why);
                true
            }
            _ => false,
        };
        all.settled += u64::from(failed);
        all.resting.add(now + REST_NS, key);
        Ok(())
    }
}
