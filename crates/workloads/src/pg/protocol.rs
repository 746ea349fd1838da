//! PostgreSQL for the event loop.

use super::{
    client::Next,
    login::{Credentials, Refused},
    plan::Plan,
    recorder::PgRecorder,
    session_state::{Heard, SessionState},
    why,
    wire::{ASK_FOR_TLS, ServerError},
};
use traffic::{
    Error,
    engine::{
        conn::{Conn, Phase},
        failed::Failed,
        protocol::{Advance, Connecting, Counting, Protocol, Taken},
        window::Window,
    },
    net::tls::fault::Fault,
};

/// Transactions to run, and how.
#[derive(Debug)]
pub struct PgShape {
    pub connecting: Connecting,
    /// The server's name for messages.
    pub name: String,
    pub who: Credentials,
    /// Whether its certificate is checked.
    pub verifies: bool,
    pub plan: Plan,
}

type Place = Conn<SessionState>;

impl Protocol for PgShape {
    type State = SessionState;
    type Recorder = PgRecorder;
    type Outcome = Result<(), ServerError>;

    const GREETS: bool = true;
    const TOGETHER: bool = false;

    fn connecting(&self) -> &Connecting {
        &self.connecting
    }

    fn reset(&self, state: &mut SessionState) {
        state.reset();
    }

    fn ask_for_tls(&self) -> Option<(&'static [u8], u8)> {
        Some((&ASK_FOR_TLS, b'S'))
    }

    fn greet(&self, conn: &mut Place) {
        conn.state.greet(&mut conn.link, &self.who);
    }

    /// Sends `Terminate`, if the connection is in a state to take it.
    fn close(&self, conn: &mut Place) {
        if conn.phase == Phase::Open {
            conn.state.out.clear();
            postgres_protocol::message::frontend::terminate(&mut conn.state.out);
            let _ = self.push(conn);
        }
    }

    #[inline]
    fn waits(&self, state: &SessionState) -> bool {
        state.client.running.is_some()
    }

    #[inline]
    fn has_room(&self, state: &SessionState) -> bool {
        state.client.running.is_none()
    }

    #[inline]
    fn begin(&self, state: &mut SessionState, due_ns: u64, now: u64, _number: u64) {
        state.client.begin(&self.plan, due_ns, now);
    }

    #[inline]
    fn advance(&self, conn: &mut Place, now: u64) -> Result<Advance<Self::Outcome>, Error> {
        let SessionState { client, out, .. } = &mut conn.state;
        if client.running.is_none() {
            return Ok(Advance::Waits);
        }
        match client.advance(&self.plan, now, out) {
            Next::Await => Ok(Advance::Waits),
            Next::Sleep(until) => Ok(Advance::Sleeps(until)),
            Next::Over(outcome) => Ok(Advance::Over(outcome)),
            Next::Broken(broken) => Err(why::broken(&broken, &self.plan)),
        }
    }

    #[inline]
    fn over(
        &self,
        conn: &mut Place,
        outcome: Self::Outcome,
        now: u64,
        counting: &mut Counting<'_, PgRecorder>,
    ) {
        let Some(running) = conn.state.client.running.take() else { return };
        let Counting { window, asked, recorder } = counting;
        match outcome {
            Ok(()) => {
                asked.answered(now.saturating_sub(running.due_ns));
                recorder.record(window, &running, now);
            }
            Err(error) => {
                asked.failed();
                let named = recorder.named(&error);
                recorder.fail(window, &running, now, named);
            }
        }
    }

    #[inline]
    fn is_unsent(&self, conn: &mut Place) -> bool {
        !conn.state.out.is_empty() || conn.link.is_unsent()
    }

    #[inline]
    fn push(&self, conn: &mut Place) -> Result<(), Fault> {
        conn.state.push(&mut conn.link)
    }

    #[inline]
    fn take(
        &self,
        conn: &mut Place,
        bytes: &[u8],
        now: u64,
        counting: &mut Counting<'_, PgRecorder>,
    ) -> Result<Taken, Error> {
        let greeting = conn.phase == Phase::Greeting;
        let Counting { window, recorder, .. } = counting;
        let heard = conn.state.took(greeting, bytes, &self.who, &self.plan, |number, sent| {
            recorder.statement(window, number, sent, now);
        });
        match heard {
            Heard::Nothing => Ok(Taken::Nothing),
            Heard::Some => Ok(Taken::Progress),
            Heard::LoggedIn => Ok(Taken::Greeted),
            Heard::Refused(Refused::Server(error)) if why::will_pass(&error) => {
                Ok(Taken::Refused(recorder.named(&error)))
            }
            Heard::Refused(refused) => Err(why::refused(&refused, &self.name, &self.who)),
            Heard::Bad(why) => Ok(Taken::Bad(why, 0)),
        }
    }

    fn asked_since(&self, state: &SessionState) -> Option<u64> {
        state.client.waits_since()
    }

    fn because(&self, state: &mut SessionState, recorder: &mut PgRecorder) -> Option<Failed> {
        state.client.take_error().map(|error| recorder.named(&error))
    }

    fn fail(
        &self,
        state: &mut SessionState,
        why: &Failed,
        now: u64,
        counting: &mut Counting<'_, PgRecorder>,
    ) -> bool {
        let Some(running) = state.client.running.take() else { return false };
        counting.recorder.fail(counting.window, &running, now, why.clone());
        true
    }

    fn under_way(&self, state: &SessionState, window: &Window) -> u64 {
        state.client.running.iter().filter(|r| window.holds(r.due_ns)).count() as u64
    }

    fn end(&self, conns: &mut [Place], _recorder: &mut PgRecorder) {
        conns.iter_mut().for_each(|conn| self.close(conn));
    }
}
