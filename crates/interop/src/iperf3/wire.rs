//! What goes over the control connection: a cookie, states of one byte, JSON behind its length.

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

/// What a client calls its test: 36 characters and a NUL, on every TCP connection of the test.
pub type Cookie = [u8; COOKIE];
/// See [`Cookie`].
pub const COOKIE: usize = 37;
/// Parameters are no longer than this, as in iperf3 itself.
pub const PARAMS_LIMIT: usize = 8 << 10;
/// A server's results: 256 streams of 300 bytes, and what it printed.
pub const RESULTS_LIMIT: usize = 1 << 20;

/// A client's results are no longer than this for so many streams.
pub const fn client_results_limit(streams: usize) -> usize {
    (8 << 10) + streams * 512
}
/// How often a wait looks at its stop flag.
const SLICE: Duration = Duration::from_millis(50);

/// The first datagram of a UDP stream, and the answer to it.
pub const UDP_HELLO: [u8; 4] = *b"9876";
/// See [`UDP_HELLO`].
pub const UDP_REPLY: [u8; 4] = *b"6789";
/// The same before iperf3 3.0 settled: 123456789 and 987654321 in the host's order.
pub const UDP_OLD_HELLO: [u8; 4] = 123_456_789_u32.to_le_bytes();
/// See [`UDP_OLD_HELLO`].
pub const UDP_OLD_REPLY: [u8; 4] = 987_654_321_u32.to_le_bytes();

/// The states, each one signed byte.
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

/// Why the control connection is of no more use.
#[derive(Debug)]
pub enum Broken {
    /// The other end closed or reset it.
    Closed,
    /// The other end did not say in time what it must say.
    Late(&'static str),
    /// We were told to end.
    Stopped,
    /// Something that is not iperf3's protocol.
    Garbage(String),
    /// The kernel said no.
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

/// Until when something must have happened, and who may end the wait before.
#[derive(Clone, Copy)]
pub struct Until<'a> {
    pub at: Instant,
    pub stop: &'a AtomicBool,
}

impl<'a> Until<'a> {
    pub fn after(time: Duration, stop: &'a AtomicBool) -> Self {
        Self { at: Instant::now() + time, stop }
    }

    /// How long to sleep before looking again.
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

/// Waits until `fd` has one of `events` or the time is over. A signal ends the wait early.
pub fn wait(fd: RawFd, events: i16, time: Duration) -> io::Result<bool> {
    let mut one = [libc::pollfd { fd, events, revents: 0 }];
    // Rounded up: a wait of 0 ms in a loop would spin.
    let ms = i32::try_from(time.as_micros().div_ceil(1000)).unwrap_or(i32::MAX);
    match sys::poll(&mut one, ms) {
        Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(false),
        ready => ready.map(|n| n > 0),
    }
}

/// The control connection. Never blocks longer than its caller says.
#[derive(Debug)]
pub struct Control {
    socket: TcpStream,
}

impl Control {
    pub fn new(socket: TcpStream) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        socket.set_nodelay(true)?;
        Ok(Self { socket })
    }

    pub fn socket(&self) -> &TcpStream {
        &self.socket
    }

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

    /// The time limit holds against an end that does not read; no stop flag is looked at, for
    /// what is written may be the goodbye.
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

    pub fn say(&self, state: IperfState) -> Result<(), Broken> {
        self.write_all(&[state as i8 as u8])
    }

    pub fn hear(&self, until: Until) -> Result<IperfState, Broken> {
        let mut byte = [0];
        self.read_exact(&mut byte, "the next state", until)?;
        let [byte] = byte;
        IperfState::read(byte).ok_or_else(|| Broken::Garbage(format!("state {}", byte as i8)))
    }

    /// A state, if one is there within `time`.
    pub fn listen(&self, time: Duration) -> Result<Option<IperfState>, Broken> {
        if !wait(self.socket.as_raw_fd(), libc::POLLIN, time)? {
            return Ok(None);
        }
        let never = AtomicBool::new(false);
        self.hear(Until::after(Duration::from_secs(1), &never)).map(Some)
    }

    pub fn write_json(&self, value: &Value) -> Result<(), Broken> {
        let text = value.to_string();
        let mut bytes = Vec::with_capacity(text.len() + 4);
        bytes.extend(u32::try_from(text.len()).unwrap_or(u32::MAX).to_be_bytes());
        bytes.extend(text.as_bytes());
        self.write_all(&bytes)
    }

    /// A JSON message. Nothing is allocated for a length above `limit`.
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

/// A message's text. Some versions count the closing NUL too.
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
    fn what_is_too_long_late_or_no_json_is_told_apart() {
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
