//! Redis for the event loop.

use std::collections::VecDeque;

use bytes::{Buf, BytesMut};
use stats::random::SplitMix64;
use traffic::{
    Error,
    engine::{
        conn::{Conn, Phase},
        failed::Failed,
        protocol::{Advance, Connecting, Counting, Protocol, Record, Taken},
        recorder::Recorder,
        window::{Inclusion, Window},
    },
    net::tls::fault::Fault,
};

use super::reply::{Fed, Replies};

/// Send time of a command that is not sent yet; compares as later than any time.
const UNSENT: u64 = u64::MAX;
/// Number of digits of `{key}`, as in redis-benchmark's `__rand_int__`.
const DIGITS: usize = 12;

/// Commands to send, and how.
#[derive(Debug)]
pub struct RedisShape {
    pub connecting: Connecting,
    pub commands: Vec<CommandBytes>,
    pub keys: u64,
    pub pipeline: u32,
    /// First bytes of a connection, and the number of replies to them.
    pub greeting: Vec<u8>,
    pub greetings: u32,
    /// The server's name for messages.
    pub name: String,
}

/// An encoded command with placeholders for keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandBytes {
    bytes: Vec<u8>,
    /// Offsets of the keys' digits.
    keys: Vec<usize>,
}

impl CommandBytes {
    /// Encodes words; `{key}` is drawn for each command, `{data}` is `data_bytes` bytes.
    pub fn of(words: &[String], data_bytes: usize) -> Self {
        let mut this = Self { bytes: format!("*{}\r\n", words.len()).into_bytes(), keys: vec![] };
        for word in words {
            let word = word.replace("{data}", &"x".repeat(data_bytes));
            let parts: Vec<&str> = word.split("{key}").collect();
            let length =
                word.len() - (parts.len() - 1) * ("{key}".len()) + (parts.len() - 1) * DIGITS;
            this.bytes.extend_from_slice(format!("${length}\r\n").as_bytes());
            for (n, part) in parts.iter().enumerate() {
                if n > 0 {
                    this.keys.push(this.bytes.len());
                    this.bytes.extend_from_slice(&[b'0'; DIGITS]);
                }
                this.bytes.extend_from_slice(part.as_bytes());
            }
            this.bytes.extend_from_slice(b"\r\n");
        }
        this
    }

    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Appends the command with this key.
    #[inline]
    fn write(&self, key: u64, out: &mut BytesMut) {
        let start = out.len();
        out.extend_from_slice(&self.bytes);
        for at in &self.keys {
            let digits = out.get_mut(start + at..start + at + DIGITS).unwrap_or_default();
            let mut left = key;
            for digit in digits.iter_mut().rev() {
                *digit = b'0' + (left % 10) as u8;
                left /= 10;
            }
        }
    }
}

/// A command without a reply.
#[derive(Debug, Clone, Copy)]
struct PendingCommand {
    due_ns: u64,
    sent_ns: u64,
    which: usize,
    key: u64,
}

/// Outstanding commands of a connection.
#[derive(Debug)]
pub struct Commands {
    out: BytesMut,
    /// Commands without a reply, the oldest first.
    asked: VecDeque<PendingCommand>,
    replies: Replies,
    /// Bytes received of the current reply.
    bytes: u64,
    /// Replies to the greeting still to come.
    greetings: u32,
    rng: SplitMix64,
}

impl Commands {
    /// State of a connection that draws its keys from this seed.
    pub fn new(seed: u64) -> Self {
        Self {
            out: BytesMut::with_capacity(4096),
            asked: VecDeque::new(),
            replies: Replies::default(),
            bytes: 0,
            greetings: 0,
            rng: SplitMix64::new(seed),
        }
    }
}

#[derive(Debug)]
pub struct RedisRecorder {
    pub requests: Recorder,
    /// Bytes of answered commands, and of their replies.
    pub request_bytes: u64,
    pub response_bytes: u64,
    /// Receive calls within the window that returned data.
    pub receives: u64,
}

impl RedisRecorder {
    /// The record of one thread; `batch_ns` is the initial batch length.
    pub fn new(open_loop: bool, batch_ns: u64) -> Self {
        let requests = Recorder::new(open_loop, batch_ns);
        Self { requests, request_bytes: 0, response_bytes: 0, receives: 0 }
    }
}

impl Record for RedisRecorder {
    fn requests(&self) -> &Recorder {
        &self.requests
    }

    fn requests_mut(&mut self) -> &mut Recorder {
        &mut self.requests
    }

    fn add(&mut self, other: &Self) {
        self.requests.add(&other.requests);
        self.request_bytes += other.request_bytes;
        self.response_bytes += other.response_bytes;
        self.receives += other.receives;
    }
}

type Place = Conn<Commands>;

/// Splits an error into its code, such as `WRONGTYPE`, and its text.
fn code_of(error: &str) -> (&str, &str) {
    error.split_once(' ').unwrap_or((error, ""))
}

/// Error for a refused greeting, with advice for known cases.
pub fn refused(name: &str, error: &str) -> Error {
    let what = match code_of(error).0 {
        "NOAUTH" => "; the password comes from REDISCLI_AUTH, or redis://USER:PASSWORD@…",
        "WRONGPASS" => "; are REDISCLI_AUTH and the user in the URL right?",
        "NOPERM" => "; the user's ACL must allow it",
        _ => "",
    };
    Error::Environment(format!("{name}: {error}{what}"))
}

impl RedisShape {
    fn greeted(
        &self,
        error: Option<&str>,
        recorder: &mut RedisRecorder,
    ) -> Result<Option<Taken>, Error> {
        let Some(error) = error else { return Ok(None) };
        let (code, text) = code_of(error);
        // Temporary: the server is loading its data, or others will disconnect.
        match code == "LOADING" || text.starts_with("max number of clients") {
            true => Ok(Some(Taken::Refused(recorder.requests.named(code, text)))),
            false => Err(refused(&self.name, error)),
        }
    }

    fn count(
        &self,
        asked: PendingCommand,
        bytes: u64,
        error: Option<&str>,
        now: u64,
        counting: &mut Counting<'_, RedisRecorder>,
    ) {
        let Counting { window, asked: counts, recorder } = counting;
        if let Some(error) = error {
            counts.failed();
            let (code, text) = code_of(error);
            let why = recorder.requests.named(code, text);
            recorder.requests.fail(window, asked.due_ns, now, why);
            return;
        }
        counts.answered(now.saturating_sub(asked.due_ns));
        if recorder.requests.record(window, asked.due_ns, asked.sent_ns, now) == Inclusion::Full {
            let sent = self.commands.get(asked.which).map_or(0, CommandBytes::len);
            recorder.request_bytes += sent as u64;
            recorder.response_bytes += bytes;
        }
    }
}

impl Protocol for RedisShape {
    type State = Commands;
    type Recorder = RedisRecorder;
    type Outcome = std::convert::Infallible;

    const GREETS: bool = true;
    const TOGETHER: bool = true;

    fn connecting(&self) -> &Connecting {
        &self.connecting
    }

    fn reset(&self, state: &mut Commands) {
        state.out.clear();
        state.replies = Replies::default();
        state.bytes = 0;
    }

    fn greet(&self, conn: &mut Place) {
        conn.state.greetings = self.greetings;
        conn.state.out.extend_from_slice(&self.greeting);
    }

    #[inline]
    fn waits(&self, state: &Commands) -> bool {
        !state.asked.is_empty()
    }

    #[inline]
    fn has_room(&self, state: &Commands) -> bool {
        state.asked.len() < self.pipeline as usize
    }

    #[inline]
    fn begin(&self, state: &mut Commands, due_ns: u64, now: u64, number: u64) {
        let which = (number % self.commands.len().max(1) as u64) as usize;
        let key = state.rng.bits() % self.keys.max(1);
        let sent_ns = if self.connecting.one_each { now } else { UNSENT };
        state.asked.push_back(PendingCommand { due_ns, sent_ns, which, key });
    }

    #[inline]
    fn handed_over(&self, state: &mut Commands, now: u64, closed_loop: bool) {
        let Commands { out, asked, .. } = state;
        let unsent = asked.iter().rev().take_while(|a| a.sent_ns == UNSENT).count();
        for asked in asked.range_mut(asked.len() - unsent..) {
            asked.sent_ns = now;
            if closed_loop {
                asked.due_ns = now;
            }
            if let Some(command) = self.commands.get(asked.which) {
                command.write(asked.key, out);
            }
        }
    }

    /// Sends commands again that the previous connection did not answer.
    fn opened(&self, state: &mut Commands, now: u64) {
        let Commands { out, asked, .. } = state;
        for asked in asked {
            asked.sent_ns = now;
            if let Some(command) = self.commands.get(asked.which) {
                command.write(asked.key, out);
            }
        }
    }

    #[inline]
    fn advance(&self, _conn: &mut Place, _now: u64) -> Result<Advance<Self::Outcome>, Error> {
        Ok(Advance::Free)
    }

    #[inline]
    fn is_unsent(&self, conn: &mut Place) -> bool {
        !conn.state.out.is_empty() || conn.link.is_unsent()
    }

    #[inline]
    fn push(&self, conn: &mut Place) -> Result<(), Fault> {
        let n = conn.link.send(&conn.state.out)?;
        match n == conn.state.out.len() {
            true => conn.state.out.clear(),
            false => conn.state.out.advance(n),
        }
        Ok(())
    }

    #[inline]
    fn take(
        &self,
        conn: &mut Place,
        bytes: &[u8],
        now: u64,
        counting: &mut Counting<'_, RedisRecorder>,
    ) -> Result<Taken, Error> {
        let greeting = conn.phase == Phase::Greeting;
        let state = &mut conn.state;
        let counts = counting.window.holds(now) && !bytes.is_empty();
        counting.recorder.receives += u64::from(counts);
        let (mut at, mut answers) = (0, 0);
        while let Some(rest) = bytes.get(at..).filter(|r| !r.is_empty()) {
            let (n, fed) = state.replies.feed(rest);
            at += n;
            state.bytes += n as u64;
            let error = match fed {
                Fed::More => break,
                Fed::Bad(why) => return Ok(Taken::Bad(why, answers)),
                Fed::Whole(error) => error,
            };
            let bytes = std::mem::take(&mut state.bytes);
            if state.greetings > 0 {
                state.greetings -= 1;
                if let Some(refused) = self.greeted(error.as_deref(), counting.recorder)? {
                    return Ok(refused);
                }
                continue;
            }
            let Some(asked) = state.asked.pop_front() else {
                return Ok(Taken::Bad("it sent more than was asked for", answers));
            };
            answers += 1;
            self.count(asked, bytes, error.as_deref(), now, counting);
        }
        Ok(match answers {
            0 if greeting && state.greetings == 0 => Taken::Greeted,
            0 => Taken::Nothing,
            n => Taken::Answers(n),
        })
    }

    fn ended(
        &self,
        conn: &mut Place,
        _clean: bool,
        _now: u64,
        _counting: &mut Counting<'_, RedisRecorder>,
    ) -> (u64, Failed) {
        (0, if conn.state.bytes > 0 { Failed::ClosedWithin } else { Failed::ClosedBefore })
    }

    fn asked_since(&self, state: &Commands) -> Option<u64> {
        state.asked.front().map(|a| a.sent_ns)
    }

    fn fail(
        &self,
        state: &mut Commands,
        why: &Failed,
        now: u64,
        counting: &mut Counting<'_, RedisRecorder>,
    ) -> bool {
        let Some(asked) = state.asked.pop_front() else { return false };
        counting.recorder.requests.fail(counting.window, asked.due_ns, now, why.clone());
        true
    }

    fn is_another(&self, why: &Failed) -> Option<(&'static str, &'static str)> {
        match why {
            Failed::Bad(why) => Some((why, "is it the right port?")),
            _ => None,
        }
    }

    fn under_way(&self, state: &Commands, window: &Window) -> u64 {
        state.asked.iter().filter(|a| window.holds(a.due_ns)).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_have_their_keys_and_data() {
        let words = ["SET", "a:{key}:b", "{data}"].map(str::to_owned);
        let command = CommandBytes::of(&words, 3);
        let mut out = BytesMut::new();
        command.write(1234, &mut out);
        assert_eq!(&out[..], b"*3\r\n$3\r\nSET\r\n$16\r\na:000000001234:b\r\n$3\r\nxxx\r\n");
        assert_eq!(out.len(), command.len());
    }
}
