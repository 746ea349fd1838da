//! What a protocol is to the event loop: what it asks on a connection, and what the answers mean.

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
    /// Each request has a connection of its own.
    pub one_each: bool,
    /// How long a connection, or an answer, may take.
    pub timeout_ns: u64,
}

/// What a thread keeps: what every protocol does, and what this one adds.
pub trait Record {
    fn requests(&self) -> &Recorder;
    fn requests_mut(&mut self) -> &mut Recorder;
    /// Adds another's, without its batches.
    fn add(&mut self, other: &Self);
}

/// Where what came is counted.
pub struct Counting<'a, R> {
    pub window: &'a Window,
    pub asked: &'a RequestCounts,
    pub recorder: &'a mut R,
}

/// What the bytes that came mean.
#[derive(Debug)]
pub enum Taken {
    /// Nothing yet.
    Nothing,
    /// The request under way may go on.
    Progress,
    /// So many requests are answered.
    Answers(u64),
    /// The server takes requests from now on.
    Greeted,
    /// It does not let us in now.
    Refused(Failed),
    /// It is not this protocol; so many requests were answered before.
    Bad(&'static str, u64),
}

/// How a connection goes on.
#[derive(Debug)]
pub enum Advance<O> {
    /// With the server's answer.
    Waits,
    /// At this time.
    Sleeps(u64),
    /// Another request may begin.
    Free,
    /// The request is over.
    Over(O),
}

/// A protocol over a byte stream. All of it is of one connection and without I/O but for `push`;
/// the event loop connects, waits, keeps the schedule and gives up.
pub trait Protocol: Sync {
    /// What it keeps of a connection, or of the place of one.
    type State;
    type Recorder: Record;
    /// How a request ended that needs no answer to be over.
    type Outcome;

    /// Whether it begins with a greeting that the server answers; the time to connect has it in it.
    const GREETS: bool;
    /// Whether requests that begin in one turn of the loop are handed over together at its end: a
    /// call like the last one finds its code and data at hand, and a server that sleeps is woken
    /// once.
    const TOGETHER: bool;

    fn connecting(&self) -> &Connecting;

    /// A new connection: nothing is known there.
    fn reset(&self, state: &mut Self::State);

    /// What asks for TLS before it begins, and the byte by which the server grants it.
    fn ask_for_tls(&self) -> Option<(&'static [u8], u8)> {
        None
    }

    /// Writes the greeting.
    fn greet(&self, _conn: &mut Conn<Self::State>) {}

    /// The connection is about to be closed by us.
    fn close(&self, _conn: &mut Conn<Self::State>) {}

    /// Whether a request is under way, or waits for its connection.
    fn waits(&self, state: &Self::State) -> bool;

    /// Whether another request may be begun before that.
    fn has_room(&self, state: &Self::State) -> bool;

    /// Begins the request of this number, due then.
    fn begin(&self, state: &mut Self::State, due_ns: u64, now: u64, number: u64);

    /// What has begun is handed over `now`, where [`Protocol::TOGETHER`] has it wait.
    fn handed_over(&self, _state: &mut Self::State, _now: u64, _closed_loop: bool) {}

    /// Requests that waited for the connection are sent from `now` on.
    fn opened(&self, _state: &mut Self::State, _now: u64) {}

    /// Goes on with what is under way.
    ///
    /// # Errors
    /// The measurement cannot go on.
    fn advance(
        &self,
        conn: &mut Conn<Self::State>,
        now: u64,
    ) -> Result<Advance<Self::Outcome>, Error>;

    /// A request is over that [`Protocol::advance`] ended.
    fn over(
        &self,
        _conn: &mut Conn<Self::State>,
        _outcome: Self::Outcome,
        _now: u64,
        _counting: &mut Counting<'_, Self::Recorder>,
    ) {
    }

    /// Whether something may be left to be sent.
    fn is_unsent(&self, conn: &mut Conn<Self::State>) -> bool;

    /// Hands over what is to be sent, as far as the kernel takes it.
    ///
    /// # Errors
    /// As the kernel says, or TLS.
    fn push(&self, conn: &mut Conn<Self::State>) -> Result<(), Fault>;

    /// Takes bytes that came `now`.
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

    /// The server sends no more; `clean` where nothing is cut off. How many answers end with it,
    /// and what it means for a request that has none.
    fn ended(
        &self,
        _conn: &mut Conn<Self::State>,
        _clean: bool,
        _now: u64,
        _counting: &mut Counting<'_, Self::Recorder>,
    ) -> (u64, Failed) {
        (0, Failed::ClosedBefore)
    }

    /// Since when the server owes an answer.
    fn asked_since(&self, state: &Self::State) -> Option<u64>;

    /// Why a connection was lost, where the server said something of it before.
    fn because(&self, _state: &mut Self::State, _recorder: &mut Self::Recorder) -> Option<Failed> {
        None
    }

    /// The request whose turn it is fails; false where there is none.
    fn fail(
        &self,
        state: &mut Self::State,
        why: &Failed,
        now: u64,
        counting: &mut Counting<'_, Self::Recorder>,
    ) -> bool;

    /// What is said where connection after connection ended so and none ever served.
    fn is_another(&self, _why: &Failed) -> Option<(&'static str, &'static str)> {
        None
    }

    /// How many requests under way are of the window.
    fn under_way(&self, state: &Self::State, window: &Window) -> u64;

    /// The thread ends.
    fn end(&self, _conns: &mut [Conn<Self::State>], _recorder: &mut Self::Recorder) {}
}
