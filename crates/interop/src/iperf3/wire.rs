//! The control connection: a cookie, one-byte states, and JSON with a length prefix.

use std::{
    fmt,
    io::{self, Read, Write},
    net::TcpStream,
    os::fd::{AsRawFd, RawFd},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use serde_json::Value;
use traffic::net::sys;

/// A test's id, chosen by the client: 36 characters and a NUL, sent on each of its TCP connections.
pub type Cookie = [u8; COOKIE];
/// Length of a [`Cookie`] in bytes, including its NUL.
pub const COOKIE: usize = 37;
/// Size limit of the parameters in bytes, as in iperf3 itself.
pub const PARAMS_LIMIT: usize = 8 << 10;
/// Size limit of a server's results: 256 streams of 300 bytes, and its text output.
pub const RESULTS_LIMIT: usize = 1 << 20;

/// Size limit in bytes of a client's results for this many streams.
pub const fn client_results_limit(streams: usize) -> usize {
    (8 << 10) + streams * 512
}
/// Interval of checking the stop flag during a wait.
const SLICE: Duration = Duration::from_millis(50);

/// First datagram of a UDP stream, sent by the client.
pub const UDP_HELLO: [u8; 4] = *b"9876";
/// The server's answer to [`UDP_HELLO`].
pub const UDP_REPLY: [u8; 4] = *b"6789";
/// First datagram before iperf3 3.0 settled: 123456789 in the host's byte order.
pub const UDP_OLD_HELLO: [u8; 4] = 123_456_789_u32.to_le_bytes();
/// The server's answer to [`UDP_OLD_HELLO`]: 987654321 in the host's byte order.
pub const UDP_OLD_REPLY: [u8; 4] = 987_654_321_u32.to_le_bytes();

/// Protocol states, each one signed byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i8)]
pub enum IperfState {
    TestStart = 1,
    TestRunning = 2,
    TestEnd = 4,
    ParamExchange = 9,
    CreateStreams = 10,
    ServerTerminate = 11,
    ClientTerminate = 12,
    ExchangeResults = 13,
    DisplayResults = 14,
    Done = 16,
    AccessDenied = -1,
    ServerError = -2,
}

impl IperfState {
    pub fn read(byte: u8) -> Option<Self> {
        use IperfState::*;
        [
            TestStart,
            TestRunning,
            TestEnd,
            ParamExchange,
            CreateStreams,
            ServerTerminate,
            ClientTerminate,
            ExchangeResults,
            DisplayResults,
            Done,
            AccessDenied,
            ServerError,
        ]
        .into_iter()
        .find(|s| *s as i8 == byte as i8)
    }
}

/// Why the control connection cannot be used any more.
#[derive(Debug)]
pub enum Broken {
    /// The other end closed or reset it.
    Closed,
    /// The other end missed a deadline; names the missing message.
    Late(&'static str),
    /// Our stop flag was set.
    Stopped,
    /// The data is not iperf3's protocol.
    Garbage(String),
    /// The kernel's error of a read or a write.
    Io(io::Error),
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("it closed the control connection"),
            Self::Late(what) => write!(f, "it did not send {what} in time"),
            Self::Stopped => f.write_str("stopped"),
            Self::Garbage(what) => write!(f, "it does not speak iperf3's protocol: {what}"),
            Self::Io(e) => match traffic::Error::io("control connection", e) {
                traffic::Error::Usage(t)
                | traffic::Error::Denied(t)
                | traffic::Error::Environment(t)
                | traffic::Error::Silent(t) => f.write_str(&t),
            },
        }
    }
}

impl From<io::Error> for Broken {
    fn from(e: io::Error) -> Self {
        use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
        match e.kind() {
            BrokenPipe | ConnectionReset | UnexpectedEof => Self::Closed,
            _ => Self::Io(e),
        }
    }
}

/// A deadline, and a stop flag that can end the wait early.
#[derive(Clone, Copy)]
pub struct Until<'a> {
    pub at: Instant,
    pub stop: &'a AtomicBool,
}

impl<'a> Until<'a> {
    pub fn after(time: Duration, stop: &'a AtomicBool) -> Self {
        Self { at: Instant::now() + time, stop }
    }

    /// How long to sleep before the next check.
    fn slice(&self, what: &'static str) -> Result<Duration, Broken> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(Broken::Stopped);
        }
        match self.at.checked_duration_since(Instant::now()) {
            None | Some(Duration::ZERO) => Err(Broken::Late(what)),
            Some(left) => Ok(left.min(SLICE)),
        }
    }
}

/// Waits until `fd` has one of `events`, or for `time`. A signal ends the wait early.
///
/// # Errors
/// The kernel's error of `poll`.
pub fn wait(fd: RawFd, events: i16, time: Duration) -> io::Result<bool> {
    let mut one = [libc::pollfd { fd, events, revents: 0 }];
    // Rounded up: a wait of 0 ms in a loop would spin.
    let ms = i32::try_from(time.as_micros().div_ceil(1000)).unwrap_or(i32::MAX);
    match sys::poll(&mut one, ms) {
        Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(false),
        ready => ready.map(|n| n > 0),
    }
}

/// The control connection. Never blocks longer than its caller allows.
#[derive(Debug)]
pub struct Control {
    socket: TcpStream,
}

impl Control {
    /// A control connection on a connected socket, which becomes non-blocking and sends without
    /// delay.
    ///
    /// # Errors
    /// The kernel's error of an option.
    pub fn new(socket: TcpStream) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        socket.set_nodelay(true)?;
        Ok(Self { socket })
    }

    pub fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// Fills `into`; `what` names the message in an error.
    ///
    /// # Errors
    /// [`Broken::Late`] after the deadline, [`Broken::Stopped`] once the flag is set, and the other
    /// end's close or the kernel's error.
    pub fn read_exact(
        &self,
        mut into: &mut [u8],
        what: &'static str,
        until: Until,
    ) -> Result<(), Broken> {
        while !into.is_empty() {
            match (&self.socket).read(into) {
                Ok(0) => return Err(Broken::Closed),
                Ok(n) => into = into.get_mut(n..).unwrap_or_default(),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    wait(self.socket.as_raw_fd(), libc::POLLIN, until.slice(what)?)?;
                }
                Err(e) => return Err(e.into()),
            }
        }
        Ok(())
    }

    /// Writes all bytes by the deadline, even if the other end does not read. Ignores the stop
    /// flag, since this may be the final message.
    ///
    /// # Errors
    /// [`Broken::Late`] if not all is written within 5 s, and the other end's close or the kernel's
    /// error.
    pub fn write_all(&self, mut bytes: &[u8]) -> Result<(), Broken> {
        let never = AtomicBool::new(false);
        let until = Until::after(Duration::from_secs(5), &never);
        while !bytes.is_empty() {
            match (&self.socket).write(bytes) {
                Ok(n) => bytes = bytes.get(n..).unwrap_or_default(),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    let slice = until.slice("room for our answer")?;
                    wait(self.socket.as_raw_fd(), libc::POLLOUT, slice)?;
                }
                Err(e) => return Err(e.into()),
            }
        }
        Ok(())
    }

    /// Sends a state, one byte.
    ///
    /// # Errors
    /// As [`Control::write_all`].
    pub fn say(&self, state: IperfState) -> Result<(), Broken> {
        self.write_all(&[state as i8 as u8])
    }

    /// Waits for the next state.
    ///
    /// # Errors
    /// As [`Control::read_exact`]; [`Broken::Garbage`] for a byte that is no state.
    pub fn hear(&self, until: Until) -> Result<IperfState, Broken> {
        let mut byte = [0];
        self.read_exact(&mut byte, "the next state", until)?;
        let [byte] = byte;
        IperfState::read(byte).ok_or_else(|| Broken::Garbage(format!("state {}", byte as i8)))
    }

    /// The next state, if one arrives within `time`.
    ///
    /// # Errors
    /// As [`Control::hear`]. Silence is no error.
    pub fn listen(&self, time: Duration) -> Result<Option<IperfState>, Broken> {
        if !wait(self.socket.as_raw_fd(), libc::POLLIN, time)? {
            return Ok(None);
        }
        let never = AtomicBool::new(false);
        self.hear(Until::after(Duration::from_secs(1), &never)).map(Some)
    }

    /// Sends a JSON message: its length in four bytes, most significant first, then its text.
    ///
    /// # Errors
    /// As [`Control::write_all`].
    pub fn write_json(&self, value: &Value) -> Result<(), Broken> {
        let text = value.to_string();
        let mut bytes = Vec::with_capacity(text.len() + 4);
        bytes.extend(u32::try_from(text.len()).unwrap_or(u32::MAX).to_be_bytes());
        bytes.extend(text.as_bytes());
        self.write_all(&bytes)
    }

    /// Reads a JSON message. Allocates nothing for a length above `limit`.
    ///
    /// # Errors
    /// As [`Control::read_exact`]; [`Broken::Garbage`] for a length of 0 or above `limit`, and for
    /// text that is no JSON.
    pub fn read_json(
        &self,
        limit: usize,
        what: &'static str,
        until: Until,
    ) -> Result<Value, Broken> {
        let mut length = [0; 4];
        self.read_exact(&mut length, what, until)?;
        let length = u32::from_be_bytes(length) as usize;
        if length == 0 || length > limit {
            return Err(Broken::Garbage(format!("{what} of {length} bytes")));
        }
        let mut text = vec![0; length];
        self.read_exact(&mut text, what, until)?;
        json(&text, what)
    }
}

/// Parses a message's text. Some versions count the final NUL too.
///
/// # Errors
/// [`Broken::Garbage`] for text that is no JSON.
pub fn json(text: &[u8], what: &'static str) -> Result<Value, Broken> {
    serde_json::from_slice(text.strip_suffix(b"\0").unwrap_or(text))
        .map_err(|e| Broken::Garbage(format!("{what} that are no JSON ({e})")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (Control, TcpStream) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let there = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (Control::new(listener.accept().unwrap().0).unwrap(), there)
    }

    static NEVER: AtomicBool = AtomicBool::new(false);

    fn soon() -> Until<'static> {
        Until::after(Duration::from_millis(200), &NEVER)
    }

    #[test]
    fn states_and_json_pass() {
        let (control, there) = pair();
        let there = Control::new(there).unwrap();
        there.say(IperfState::AccessDenied).unwrap();
        there.write_json(&serde_json::json!({"tcp": true})).unwrap();
        assert_eq!(control.hear(soon()).unwrap(), IperfState::AccessDenied);
        let json = control.read_json(100, "parameters", soon()).unwrap();
        assert_eq!(json, serde_json::json!({"tcp": true}));
        assert!(control.listen(Duration::from_millis(1)).unwrap().is_none());
    }

    #[test]
    fn what_is_too_long_late_or_no_json_is_distinguished() {
        let (control, mut there) = pair();
        there.write_all(&u32::MAX.to_be_bytes()).unwrap();
        let e = control.read_json(8192, "parameters", soon()).unwrap_err();
        assert!(matches!(&e, Broken::Garbage(t) if t == "parameters of 4294967295 bytes"), "{e}");
        there.write_all(b"\0\0\0\x03{x}").unwrap();
        let e = control.read_json(8192, "parameters", soon()).unwrap_err();
        assert!(matches!(&e, Broken::Garbage(t) if t.contains("no JSON")), "{e}");
        there.write_all(b"\x63").unwrap();
        assert!(matches!(control.hear(soon()), Err(Broken::Garbage(t)) if t == "state 99"));
        there.write_all(b"\0\0").unwrap();
        let e = control.read_json(8192, "parameters", soon()).unwrap_err();
        assert!(matches!(e, Broken::Late("parameters")), "{e}");
        drop(there);
        assert!(matches!(control.hear(soon()), Err(Broken::Closed)));
    }

    #[test]
    fn a_stop_ends_a_wait() {
        let (control, _there) = pair();
        let stop = AtomicBool::new(true);
        let e = control.hear(Until::after(Duration::from_secs(60), &stop)).unwrap_err();
        assert!(matches!(e, Broken::Stopped));
    }
}
