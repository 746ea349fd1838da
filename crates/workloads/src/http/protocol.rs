//! HTTP/1.1 for the event loop.

use super::{
    pipeline::{PendingRequest, Pipeline},
    recorder::HttpRecorder,
    response::Answer,
};
use traffic::{
    Error,
    engine::{
        conn::Conn,
        failed::Failed,
        protocol::{Advance, Connecting, Counting, Protocol, Taken},
        window::Window,
    },
    net::tls::fault::Fault,
};

/// Send time of a request that is not sent yet; compares as later than any time.
const UNSENT: u64 = u64::MAX;

/// Requests to send, and how.
#[derive(Debug)]
pub struct HttpShape {
    pub connecting: Connecting,
    pub requests: Vec<Vec<u8>>,
    pub is_head: bool,
    pub pipeline: u32,
}

type State = Conn<Pipeline>;

impl Protocol for HttpShape {
    type State = Pipeline;
    type Recorder = HttpRecorder;
    type Outcome = std::convert::Infallible;

    const GREETS: bool = false;
    const TOGETHER: bool = true;

    fn connecting(&self) -> &Connecting {
        &self.connecting
    }

    fn reset(&self, state: &mut Pipeline) {
        state.reset();
    }

    #[inline]
    fn waits(&self, state: &Pipeline) -> bool {
        !state.asked.is_empty()
    }

    #[inline]
    fn has_room(&self, state: &Pipeline) -> bool {
        state.asked.len() < self.pipeline as usize
    }

    #[inline]
    fn begin(&self, state: &mut Pipeline, due_ns: u64, now: u64, number: u64) {
        let sent_ns = if self.connecting.one_each { now } else { UNSENT };
        let which = (number % self.requests.len().max(1) as u64) as usize;
        state.asked.push_back(PendingRequest { due_ns, sent_ns, first_ns: 0, which });
    }

    #[inline]
    fn handed_over(&self, state: &mut Pipeline, now: u64, closed_loop: bool) {
        for asked in state.asked.iter_mut().rev().take_while(|a| a.sent_ns == UNSENT) {
            asked.sent_ns = now;
            if closed_loop {
                asked.due_ns = now;
            }
        }
    }

    fn opened(&self, state: &mut Pipeline, now: u64) {
        state.asked.iter_mut().for_each(|a| a.sent_ns = now);
    }

    #[inline]
    fn advance(&self, _conn: &mut State, _now: u64) -> Result<Advance<Self::Outcome>, Error> {
        Ok(Advance::Free)
    }

    #[inline]
    fn is_unsent(&self, conn: &mut State) -> bool {
        conn.state.is_unsent() || conn.link.is_unsent()
    }

    #[inline]
    fn push(&self, conn: &mut State) -> Result<(), Fault> {
        conn.state.push(&mut conn.link, &self.requests)
    }

    #[inline]
    fn take(
        &self,
        conn: &mut State,
        bytes: &[u8],
        now: u64,
        counting: &mut Counting<'_, HttpRecorder>,
    ) -> Result<Taken, Error> {
        let counts = counting.window.holds(now) && !bytes.is_empty();
        counting.recorder.receives += u64::from(counts);
        let mut answers = 0;
        let whole = |asked: &PendingRequest, answer: Answer, bytes: u64| {
            answers += 1;
            count(counting, asked, now, &answer, bytes);
        };
        let took = conn.state.took(bytes, now, &mut conn.closing, whole);
        Ok(match took {
            Ok(()) if answers == 0 => Taken::Nothing,
            Ok(()) => Taken::Answers(answers),
            Err(why) => Taken::Bad(why, answers),
        })
    }

    fn ended(
        &self,
        conn: &mut State,
        clean: bool,
        now: u64,
        counting: &mut Counting<'_, HttpRecorder>,
    ) -> (u64, Failed) {
        let mut answers = 0;
        if clean {
            // The end of the connection may complete the response.
            conn.closing |= conn.state.ended(|asked, answer, bytes| {
                answers += 1;
                count(counting, asked, now, &answer, bytes);
            });
        }
        let within = conn.state.is_within();
        (answers, if within { Failed::ClosedWithin } else { Failed::ClosedBefore })
    }

    fn asked_since(&self, state: &Pipeline) -> Option<u64> {
        state.asked.front().map(|a| a.sent_ns)
    }

    fn fail(
        &self,
        state: &mut Pipeline,
        why: &Failed,
        now: u64,
        counting: &mut Counting<'_, HttpRecorder>,
    ) -> bool {
        let Some(asked) = state.asked.pop_front() else { return false };
        counting.recorder.requests.fail(counting.window, asked.due_ns, now, why.clone());
        true
    }

    fn is_another(&self, why: &Failed) -> Option<(&'static str, &'static str)> {
        match why {
            Failed::Bad(why) => Some((why, "is it the right port?")),
            Failed::ClosedBefore | Failed::Talking(libc::ECONNRESET)
                if self.connecting.tls.is_none() =>
            {
                Some((
                    "the server closes every connection without a response",
                    "does it speak HTTP, or TLS, for https://?",
                ))
            }
            _ => None,
        }
    }

    fn under_way(&self, state: &Pipeline, window: &Window) -> u64 {
        state.asked.iter().filter(|a| window.holds(a.due_ns)).count() as u64
    }

    fn end(&self, conns: &mut [State], recorder: &mut HttpRecorder) {
        recorder.server = conns.iter_mut().find_map(|c| c.state.parser.server.take());
    }
}

#[inline]
fn count(
    counting: &mut Counting<'_, HttpRecorder>,
    asked: &PendingRequest,
    now: u64,
    answer: &Answer,
    bytes: u64,
) {
    counting.asked.answered(now.saturating_sub(asked.due_ns));
    counting.recorder.record(counting.window, asked, now, answer.status, bytes);
}
