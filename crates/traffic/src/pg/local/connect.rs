//! Sessions begun: at first, anew, and those that do not come about.

use model::measure::Transport;

use super::{PgClient, PgLoop, answer::talking};
use crate::{
    Error,
    net::now_ns,
    pg::{conn::Phase, login::Refused, recorder::Failed, why},
    served::{pace::Due, places::REST_NS},
};

impl PgClient<'_> {
    pub(super) fn connect(&self, state: &mut PgLoop<'_>, key: usize) -> Result<(), Error> {
        let (socket, begun) = match self.shape.way.connect()? {
            Ok(connecting) => connecting,
            // A Unix socket's queue is full: no failure, only a wait.
            Err(libc::EAGAIN) if self.shape.way.transport == Transport::Unix => {
                state.resting.add(now_ns() + REST_NS / 10, key);
                return Ok(());
            }
            Err(errno) => return self.unconnected(state, key, Failed::Connecting(errno)),
        };
        let Some(conn) = state.conns.get_mut(key) else { return Ok(()) };
        conn.take(socket, begun);
        // One that is established already is told of, too.
        state.epoll.add_once(conn.link.fd(), key).map_err(|e| Error::io("epoll", &e))
    }

    /// A connection is established: the session begins, or TLS before it.
    pub(super) fn connected(&self, state: &mut PgLoop<'_>, key: usize) -> Result<(), Error> {
        let Some(conn) = state.conns.get_mut(key) else { return Ok(()) };
        if self.shape.tls.is_none() {
            conn.greet(&self.shape.who);
            return Ok(());
        }
        match conn.ask(now_ns()) {
            Ok(()) => Ok(()),
            Err(e) => self.unconnected(state, key, talking(&e)),
        }
    }

    /// What the server said to the request for TLS.
    #[cold]
    pub(super) fn answered(
        &self,
        state: &mut PgLoop<'_>,
        key: usize,
        ended: bool,
    ) -> Result<(), Error> {
        let (Some(conn), Some(tls)) = (state.conns.get_mut(key), &self.shape.tls) else {
            return Ok(());
        };
        let begun = match conn.asked() {
            Ok(None) => return Ok(()),
            Ok(Some(true)) => conn.link.shake(tls),
            Ok(Some(false)) => {
                return self.unconnected(state, key, Failed::Bad("the server speaks no TLS now"));
            }
            Err(e) => Err(e),
        };
        match begun {
            Ok(()) => {
                conn.phase = Phase::Shaking;
                self.shake(state, key, ended)
            }
            Err(e) => self.unconnected(state, key, talking(&e)),
        }
    }

    /// Goes on with the handshake.
    #[cold]
    pub(super) fn shake(
        &self,
        state: &mut PgLoop<'_>,
        key: usize,
        ended: bool,
    ) -> Result<(), Error> {
        let Some(conn) = state.conns.get_mut(key) else { return Ok(()) };
        match conn.link.shaken(&mut state.rooms) {
            Ok(None) if ended => self.unconnected(state, key, Failed::Closed),
            Ok(None) => Ok(()),
            Ok(Some(agreed)) => {
                let now = now_ns();
                if !self.shape.connect_each || self.duty.window.holds(now) {
                    state.recorder.handshakes.record(now.saturating_sub(conn.shaking_ns), agreed);
                }
                conn.greet(&self.shape.who);
                match conn.push() {
                    // What came with the handshake is told of no more.
                    Ok(()) => self.hear(state, key, ended, None),
                    Err(e) => self.unconnected(state, key, talking(&e)),
                }
            }
            Err(e) => self.unconnected(state, key, talking(&e)),
        }
    }

    #[cold]
    pub(super) fn logged_in(&self, state: &mut PgLoop<'_>, key: usize, now: u64) {
        let places = state.conns.len();
        let Some(conn) = state.conns.get_mut(key) else { return };
        if let Some(since) = conn.away_since_ns.take() {
            state.recorder.fate.disconnected_ns += self.duty.window.share_ns(since, now);
        }
        let waits = conn.client.running.is_none();
        if !self.shape.connect_each || self.duty.window.holds(now) {
            state.recorder.connect.record(now.saturating_sub(conn.begun_ns));
        }
        // Of the first connections alone: later ones are made while others work.
        if state.logins < places {
            state.recorder.connecting_ns = now.saturating_sub(self.duty.begun_ns);
        }
        state.logins += 1;
        if waits {
            state.idle.add(key);
        }
    }

    #[cold]
    pub(super) fn refused(
        &self,
        state: &mut PgLoop<'_>,
        key: usize,
        refused: Refused,
    ) -> Result<(), Error> {
        match &refused {
            Refused::Server(error) if why::will_pass(error) => {
                let named = state.recorder.named(error);
                self.unconnected(state, key, named)
            }
            _ => Err(why::refused(&refused, &self.shape.name, &self.shape.who)),
        }
    }

    /// No session came about: the transaction that waited for it has failed, or the one that
    /// would have been begun.
    #[cold]
    pub(super) fn unconnected(
        &self,
        state: &mut PgLoop<'_>,
        key: usize,
        why: Failed,
    ) -> Result<(), Error> {
        let now = now_ns();
        let due = self.due(state, now);
        state.recorder.fate.refuse(why.clone());
        let Some(conn) = state.conns.get_mut(key) else { return Ok(()) };
        conn.close();
        let running = conn.client.running.take();
        let due_ns = match (&running, due) {
            (Some(running), _) => Some(running.due_ns),
            (None, Due::At(due_ns)) if due_ns <= now => {
                state.next += 1;
                Some(due_ns)
            }
            _ => None,
        };
        if let Some(due_ns) = due_ns {
            state.settled += 1;
            state.recorder.fail(self.duty.window, running.as_ref(), due_ns, now, why);
        }
        state.resting.add(now + REST_NS, key);
        Ok(())
    }
}
