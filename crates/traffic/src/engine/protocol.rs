//! The interface of a protocol to the event loop: its requests, and the meaning of the answers.

use super::{
    conn::Conn, dial::DialPath, failed::Failed, recorder::Recorder, window::Window,
    worker_pool::RequestCounts,
};
use crate::{
    Error,
    net::tls::{Tls, fault::Fault},
};

/// How connections are made.
#[derive(Debug)]
pub struct Connecting {
    pub way: DialPath,
    pub tls: Option<Tls>,
    /// Whether each request uses a new connection.
    pub one_each: bool,
    /// Timeout of a connection and of an answer.
    pub timeout_ns: u64,
}

/// A thread's record: the common part, and the protocol's own.
pub trait Record {
    fn requests(&self) -> &Recorder;
    fn requests_mut(&mut self) -> &mut Recorder;
    /// Adds another record, without its batches.
    fn add(&mut self, other: &Self);
}

/// The record in which received data is counted.
pub struct Counting<'a, R> {
    pub window: &'a Window,
    pub asked: &'a RequestCounts,
    pub recorder: &'a mut R,
}

/// Meaning of received bytes.
#[derive(Debug)]
pub enum Taken {
    /// Incomplete: more bytes are needed.
    Nothing,
    /// The current request may continue.
    Progress,
    /// This many requests are answered.
    Answers(u64),
    /// The server accepts requests from now on.
    Greeted,
    /// The server refuses this connection for now.
    Refused(Failed),
    /// Not this protocol; the number of requests answered before.
    Bad(&'static str, u64),
}

/// How a connection continues.
#[derive(Debug)]
pub enum Advance<O> {
    /// When the server answers.
    Waits,
    /// At this time, in nanoseconds.
    Sleeps(u64),
    /// Another request may begin.
    Free,
    /// The request ended, with this outcome.
    Over(O),
}

/// A protocol over a byte stream. Each call concerns one connection and does no I/O except `push`;
/// the event loop connects, waits, keeps the schedule and times out.
pub trait Protocol: Sync {
    /// The protocol's state of a connection slot.
    type State;
    type Recorder: Record;
    /// Outcome of a request that ends without an answer.
    type Outcome;

    /// Whether it begins with a greeting that the server answers; the connect time then includes
    /// it.
    const GREETS: bool;
    /// Whether requests begun in one turn of the loop are sent together at its end. Then calls find
    /// their code and data cached, and a sleeping server is woken once.
    const TOGETHER: bool;

    fn connecting(&self) -> &Connecting;

    /// Resets the state for a new connection.
    fn reset(&self, state: &mut Self::State);

    /// The message that requests TLS, and the byte by which the server agrees.
    fn ask_for_tls(&self) -> Option<(&'static [u8], u8)> {
        None
    }

    /// Writes the greeting into the connection's send buffer; nothing by default.
    fn greet(&self, _conn: &mut Conn<Self::State>) {}

    /// Called before we close the connection.
    fn close(&self, _conn: &mut Conn<Self::State>) {}

    /// Whether a request is under way, or waits for its connection.
    fn waits(&self, state: &Self::State) -> bool;

    /// Whether another request may begin before that one ends.
    fn has_room(&self, state: &Self::State) -> bool;

    /// Begins the request with this number, due at `due_ns`.
    fn begin(&self, state: &mut Self::State, due_ns: u64, now: u64, number: u64);

    /// Called when requests are sent at `now`, if [`Protocol::TOGETHER`] delays them.
    fn handed_over(&self, _state: &mut Self::State, _now: u64, _closed_loop: bool) {}

    /// Called when requests that waited for the connection are sent, at `now`.
    fn opened(&self, _state: &mut Self::State, _now: u64) {}

    /// Continues the current request.
    ///
    /// # Errors
    /// The measurement cannot go on.
    fn advance(
        &self,
        conn: &mut Conn<Self::State>,
        now: u64,
    ) -> Result<Advance<Self::Outcome>, Error>;

    /// Records a request that [`Protocol::advance`] ended.
    fn over(
        &self,
        _conn: &mut Conn<Self::State>,
        _outcome: Self::Outcome,
        _now: u64,
        _counting: &mut Counting<'_, Self::Recorder>,
    ) {
    }

    /// Whether bytes may be left to send.
    fn is_unsent(&self, conn: &mut Conn<Self::State>) -> bool;

    /// Sends pending bytes, as far as the kernel takes them.
    ///
    /// # Errors
    /// Errors of the kernel or of TLS.
    fn push(&self, conn: &mut Conn<Self::State>) -> Result<(), Fault>;

    /// Takes bytes received at `now`.
    ///
    /// # Errors
    /// The measurement cannot go on.
    fn take(
        &self,
        conn: &mut Conn<Self::State>,
        bytes: &[u8],
        now: u64,
        counting: &mut Counting<'_, Self::Recorder>,
    ) -> Result<Taken, Error>;

    /// Handles the end of the server's data; `clean` if nothing is cut off. Returns the answers
    /// that it completes, and its meaning for a request without one.
    fn ended(
        &self,
        _conn: &mut Conn<Self::State>,
        _clean: bool,
        _now: u64,
        _counting: &mut Counting<'_, Self::Recorder>,
    ) -> (u64, Failed) {
        (0, Failed::ClosedBefore)
    }

    /// Time since when the server owes an answer.
    fn asked_since(&self, state: &Self::State) -> Option<u64>;

    /// Why the connection was lost, if the server gave a reason before.
    fn because(&self, _state: &mut Self::State, _recorder: &mut Self::Recorder) -> Option<Failed> {
        None
    }

    /// Fails the current request; `false` if there is none.
    fn fail(
        &self,
        state: &mut Self::State,
        why: &Failed,
        now: u64,
        counting: &mut Counting<'_, Self::Recorder>,
    ) -> bool;

    /// Message if every connection ended this way and none was ever served.
    fn is_another(&self, _why: &Failed) -> Option<(&'static str, &'static str)> {
        None
    }

    /// Number of requests under way that belong to the window.
    fn under_way(&self, state: &Self::State, window: &Window) -> u64;

    /// Called when the thread ends, to complete its record.
    fn end(&self, _conns: &mut [Conn<Self::State>], _recorder: &mut Self::Recorder) {}
}
