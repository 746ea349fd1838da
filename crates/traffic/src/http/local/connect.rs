//! Connections made: at first, anew, and those that do not come about.

use model::measure::Transport;

use super::{HttpClient, HttpLoop, answer::talking};
use crate::{
    Error,
    http::{conn::Phase, recorder::Failed},
    net::now_ns,
    served::{pace::Due, places::REST_NS},
};

impl HttpClient<'_> {
    pub(super) fn connect(&self, state: &mut HttpLoop<'_>, key: usize) -> Result<(), Error> {
        let (socket, begun) = match self.shape.way.connect()? {
            Ok(connecting) => connecting,
            // A Unix socket's queue is full: no failure, only a wait.
            Err(libc::EAGAIN) if self.shape.way.transport == Transport::Unix => {
                return self.queue_full(state, key);
            }
            Err(errno) => return self.unconnected(state, key, Failed::Connecting(errno)),
        };
        let Some(conn) = state.conns.get_mut(key) else { return Ok(()) };
        conn.take(socket, begun);
        // One that is established already is told of, too.
        state.epoll.add_once(conn.link.fd(), key).map_err(|e| Error::io("epoll", &e))
    }

    /// Tried again soon, until that has taken too long. The kernel has no way to be told of a place.
    #[cold]
    fn queue_full(&self, state: &mut HttpLoop<'_>, key: usize) -> Result<(), Error> {
        let now = now_ns();
        let Some(conn) = state.conns.get_mut(key) else { return Ok(()) };
        let since = *conn.full_ns.get_or_insert(now);
        if now.saturating_sub(since) >= self.shape.timeout_ns {
            conn.full_ns = None;
            return self.unconnected(state, key, Failed::NoConnection);
        }
        state.resting.add(now + REST_NS / 10, key);
        Ok(())
    }

    /// A connection is established: TLS follows, or requests.
    pub(super) fn connected(
        &self,
        state: &mut HttpLoop<'_>,
        key: usize,
        ended: bool,
    ) -> Result<(), Error> {
        let now = now_ns();
        let Some(conn) = state.conns.get_mut(key) else { return Ok(()) };
        if !self.shape.new_connections || self.duty.window.holds(now) {
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
        state: &mut HttpLoop<'_>,
        key: usize,
        ended: bool,
    ) -> Result<(), Error> {
        let Some(conn) = state.conns.get_mut(key) else { return Ok(()) };
        match conn.link.shaken(&mut state.rooms) {
            Ok(None) if ended => self.unconnected(state, key, Failed::ClosedBefore),
            Ok(None) => Ok(()),
            Ok(Some(agreed)) => {
                let now = now_ns();
                if !self.shape.new_connections || self.duty.window.holds(now) {
                    state.recorder.handshakes.record(now.saturating_sub(conn.shaking_ns), agreed);
                }
                self.open(state, key, now)?;
                // What came with the handshake is told of no more.
                self.hear(state, key, ended, None)
            }
            Err(e) => self.unconnected(state, key, talking(&e)),
        }
    }

    /// Requests may be sent.
    fn open(&self, state: &mut HttpLoop<'_>, key: usize, now: u64) -> Result<(), Error> {
        let Some(conn) = state.conns.get_mut(key) else { return Ok(()) };
        conn.phase = Phase::Open;
        if let Some(since) = conn.away_since_ns.take() {
            state.recorder.fate.disconnected_ns += self.duty.window.share_ns(since, now);
            state.recorder.reopened += u64::from(self.duty.window.holds(now));
        }
        conn.asked.iter_mut().for_each(|a| a.sent_ns = now);
        match conn.asked.is_empty() {
            true => {
                state.idle.add(key);
                Ok(())
            }
            false => self.push(state, key),
        }
    }

    /// No connection came about: the request that waited for it has failed, or the one that would
    /// have been begun.
    #[cold]
    pub(super) fn unconnected(
        &self,
        state: &mut HttpLoop<'_>,
        key: usize,
        why: Failed,
    ) -> Result<(), Error> {
        let now = now_ns();
        let due = self.due(state, now);
        state.recorder.fate.refuse(why);
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
            state.recorder.fail(self.duty.window, due_ns, now, why);
        }
        state.resting.add(now + REST_NS, key);
        Ok(())
    }
}
