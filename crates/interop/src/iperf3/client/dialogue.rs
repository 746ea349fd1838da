//! The control dialogue with the server, before and after the data.

use std::{
    io::{self, Write},
    net::{SocketAddr, TcpStream},
    os::fd::AsRawFd,
    sync::atomic::AtomicBool,
    time::{Duration, Instant},
};

use model::measure::StreamSpec;
use socket2::{Domain, Socket, Type};
use traffic::{Error, ErrorContext, Result, net::target::local_address};

use crate::iperf3::{
    params::{Params, Refused, tame},
    results::Results,
    sock,
    wire::{
        Broken, COOKIE, Control, Cookie, IperfState, RESULTS_LIMIT, UDP_HELLO, UDP_OLD_REPLY,
        UDP_REPLY, Until, wait,
    },
};

/// Timeout for opening a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// Timeout for each step of the server.
const STEP: Duration = Duration::from_secs(10);
/// iperf3's error numbers, with our texts for the relevant ones.
const WORDS: [(i32, &str); 14] = [
    (6, "too many streams"),
    (7, "the blocks are too large"),
    (20, "the datagrams are too small or too large"),
    (27, "the rate is above the server's limit (--server-bitrate-limit)"),
    (37, "the test is longer than the server allows"),
    (114, "it does not understand the parameters"),
    (123, "it cannot set the MSS"),
    (124, "it cannot set the socket buffers"),
    (130, "it cannot set the socket buffers"),
    (132, "it cannot run on that CPU"),
    (134, "it cannot use that congestion control"),
    (141, "its kernel gives smaller socket buffers"),
    (142, "it demands credentials, which are not supported"),
    (205, "a stream broke"),
];

/// Whether a retry may succeed shortly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Again {
    Maybe,
    No,
}

/// A server that has accepted a test.
#[derive(Debug)]
pub struct Dialogue {
    pub control: Control,
    pub local: SocketAddr,
    pub remote: SocketAddr,
    cookie: Cookie,
}

impl Dialogue {
    /// Connects and sends the parameters.
    ///
    /// # Errors
    /// In one line for the user, with whether a retry may help: the server cannot be reached, is
    /// busy with another test, refuses the parameters, or does not speak iperf3's protocol.
    pub fn begin(
        to: SocketAddr,
        spec: &StreamSpec,
        asked: &Params,
        stop: &AtomicBool,
    ) -> Result<Self, (Error, Again)> {
        let no = |e| (e, Again::No);
        let socket = dial(to, spec, None)?;
        let control: TcpStream = socket.into();
        let local = control.local_addr().doing(|| "control connection").map_err(no)?;
        let control = Control::new(control).doing(|| "control connection").map_err(no)?;
        let dialogue = Self { control, local, remote: to, cookie: cookie().map_err(no)? };
        dialogue.hand_over(asked, stop)?;
        Ok(dialogue)
    }

    fn hand_over(&self, asked: &Params, stop: &AtomicBool) -> Result<(), (Error, Again)> {
        let until = Until::after(STEP, stop);
        let broken = |b| match b {
            // The server is still closing its last test.
            Broken::Closed => (self.error(Broken::Closed), Again::Maybe),
            b => (self.error(b), Again::No),
        };
        self.control.write_all(&self.cookie).map_err(broken)?;
        match self.control.hear(until).map_err(broken)? {
            IperfState::ParamExchange => {}
            IperfState::AccessDenied => {
                let why = "is busy with another test (an iperf3 server does one at a time); \
                           try again later";
                return Err((Error::Environment(format!("{} {why}", self.remote)), Again::Maybe));
            }
            other => return Err((self.odd(other, until), Again::No)),
        }
        self.control.write_json(&asked.write()).map_err(broken)?;
        match self.control.hear(until).map_err(broken)? {
            IperfState::CreateStreams => Ok(()),
            other => Err((self.odd(other, until), Again::No)),
        }
    }

    /// Error for a failed control connection, in one line.
    pub fn error(&self, b: Broken) -> Error {
        Error::Environment(match b {
            Broken::Stopped => format!("{}: stopped before the test began", self.remote),
            b => format!("{}: {b}", self.remote),
        })
    }

    /// Error for an unexpected state.
    pub fn odd(&self, state: IperfState, until: Until) -> Error {
        let line = |what: &str| Error::Environment(format!("{}: {what}", self.remote));
        match state {
            IperfState::ServerTerminate => line("the server ended the test"),
            IperfState::AccessDenied => line("the server refused the test"),
            IperfState::ServerError => {
                let (mut code, mut errno) = ([0; 4], [0; 4]);
                if let Err(b) = self.control.read_exact(&mut code, "its error", until) {
                    return self.error(b);
                }
                // 3.12 omits it for errors about credentials.
                let _ = self.control.read_exact(&mut errno, "its error", until);
                let [code, errno] = [code, errno].map(i32::from_be_bytes);
                refusal(self.remote, code, errno)
            }
            other => line(&format!("the server says {other:?} out of turn")),
        }
    }

    /// Opens the data connections, in iperf3's order.
    ///
    /// # Errors
    /// A connection fails, an option is refused by this kernel, the local address is of the other
    /// family, or the first datagram of UDP gets no answer.
    pub fn streams(&self, spec: &StreamSpec, asked: &Params) -> Result<Vec<Socket>> {
        (0..asked.streams())
            .map(|_| match asked.udp {
                false => self.tcp(spec, asked),
                true => self.udp(spec, asked),
            })
            .collect()
    }

    fn tcp(&self, spec: &StreamSpec, asked: &Params) -> Result<Socket> {
        let mut socket = dial(self.remote, spec, Some(asked)).map_err(|e| e.0)?;
        socket.write_all(&self.cookie).doing(|| format!("{}: a stream", self.remote))?;
        Ok(socket)
    }

    fn udp(&self, spec: &StreamSpec, asked: &Params) -> Result<Socket> {
        let what = || format!("{}: a UDP stream", self.remote);
        let socket =
            Socket::new(Domain::for_address(self.remote), Type::DGRAM, None).doing(what)?;
        prepare(&socket, self.remote, spec, Some(asked))?;
        socket.connect(&self.remote.into()).doing(what)?;
        socket.send(&UDP_HELLO).doing(what)?;
        let until = Instant::now() + CONNECT;
        while Instant::now() < until {
            if !wait(socket.as_raw_fd(), libc::POLLIN, Duration::from_millis(100)).doing(what)? {
                continue;
            }
            let mut answer = [0u8; 4];
            let n = io::Read::read(&mut &socket, &mut answer).doing(what)?;
            if n == 4 && (answer == UDP_REPLY || answer == UDP_OLD_REPLY) {
                return Ok(socket);
            }
        }
        let why = "no answer to the first datagram; does a firewall let UDP pass?";
        Err(Error::Environment(format!("{}: {why}", self.remote)))
    }

    /// Waits until the server says that the test runs.
    ///
    /// # Errors
    /// The server ended or refused the test, sent another state, or none within its time; `stop`
    /// was set.
    pub fn await_running(&self, stop: &AtomicBool) -> Result<()> {
        for awaited in [IperfState::TestStart, IperfState::TestRunning] {
            let until = Until::after(STEP, stop);
            match self.control.hear(until).map_err(|b| self.error(b))? {
                state if state == awaited => {}
                other => return Err(self.odd(other, until)),
            }
        }
        Ok(())
    }

    /// Ends the test and exchanges results.
    ///
    /// # Errors
    /// The server ended the test, sent no results in time, or some that are not iperf3's. What
    /// follows the results is ignored.
    pub fn exchange(&self, ours: impl FnOnce() -> Results) -> Result<Results> {
        let never = AtomicBool::new(false);
        let until = || Until::after(STEP, &never);
        let broken = |b| self.error(b);
        self.control.say(IperfState::TestEnd).map_err(broken)?;
        match self.control.hear(until()).map_err(broken)? {
            IperfState::ExchangeResults => {}
            other => return Err(self.odd(other, until())),
        }
        self.control.write_json(&ours().write()).map_err(broken)?;
        let theirs = self.control.read_json(RESULTS_LIMIT, "results", until()).map_err(broken)?;
        let theirs = Results::read(&theirs).map_err(broken)?;
        // An error after this point does not affect the results.
        let _ = self.control.hear(until());
        let _ = self.control.say(IperfState::Done);
        Ok(theirs)
    }

    /// Whether the server runs on this host, judged by addresses only.
    pub fn same_host(&self) -> bool {
        self.local.ip() == self.remote.ip() || self.remote.ip().is_loopback()
    }
}

/// Error for the server's SERVER_ERROR.
fn refusal(from: SocketAddr, code: i32, errno: i32) -> Error {
    let why = WORDS.iter().find(|w| w.0 == code).map(|w| w.1);
    let why = why.map_or_else(|| format!("iperf3's error {code}"), str::to_owned);
    let cause = match errno {
        0 => String::new(),
        n => {
            let text = io::Error::from_raw_os_error(n).to_string();
            format!(" ({})", tame(text.split(" (os error").next().unwrap_or_default()))
        }
    };
    let line = format!("{from}: the server refuses: {why}{cause}");
    if code == 142 { Error::Denied(line) } else { Error::Environment(line) }
}

/// Sets options and the local address; `asked` is for a data connection.
fn prepare(
    socket: &Socket,
    to: SocketAddr,
    spec: &StreamSpec,
    asked: Option<&Params>,
) -> Result<()> {
    if let Some(asked) = asked {
        sock::apply(socket, asked, true, &mut Vec::new())
            .map_err(|Refused { why, .. }| Error::Environment(why))?;
    }
    if let Some(local) = &spec.common.bind {
        let local = local_address(local)?;
        if local.is_ipv4() != to.is_ipv4() {
            return Err(Error::Usage(format!("{local} and {to} are of different families")));
        }
        let from = SocketAddr::new(local, 0);
        socket.bind(&from.into()).doing(|| format!("cannot send from {local}"))?;
    }
    Ok(())
}

fn dial(
    to: SocketAddr,
    spec: &StreamSpec,
    asked: Option<&Params>,
) -> Result<Socket, (Error, Again)> {
    let what = || format!("cannot connect to {to}");
    let no = |e| (e, Again::No);
    let socket =
        Socket::new(Domain::for_address(to), Type::STREAM, None).doing(what).map_err(no)?;
    prepare(&socket, to, spec, asked).map_err(no)?;
    socket.connect_timeout(&to.into(), CONNECT).map_err(|e| match e.kind() {
        io::ErrorKind::ConnectionRefused => {
            let why = "connection refused; start `iperf3 -s` there (or --port)";
            (Error::Environment(format!("{to}: {why}")), Again::Maybe)
        }
        io::ErrorKind::TimedOut => {
            let why = "no answer in 5 s; is a firewall between?";
            (Error::Environment(format!("{to}: {why}")), Again::No)
        }
        _ => (Error::io(what(), &e), Again::No),
    })?;
    Ok(socket)
}

/// A cookie: 36 random characters and a NUL.
fn cookie() -> Result<Cookie> {
    let mut cookie = [0u8; COOKIE];
    let most = COOKIE - 1;
    rustix::rand::getrandom(&mut cookie[..most], rustix::rand::GetRandomFlags::empty())
        .map_err(|e| Error::io("no randomness", &e.into()))?;
    for byte in cookie.iter_mut().take(most) {
        *byte = match *byte % 32 {
            letter @ 0..26 => b'a' + letter,
            digit => b'2' + digit - 26,
        };
    }
    Ok(cookie)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_of_iperf3s_characters_and_no_two_are_equal() {
        let (one, two) = (cookie().unwrap(), cookie().unwrap());
        assert_ne!(one, two);
        assert_eq!(one.last(), Some(&0));
        let fits = |b: &u8| b.is_ascii_lowercase() || (b'2'..=b'7').contains(b);
        assert!(one.iter().take(36).all(fits), "{one:?}");
    }

    #[test]
    fn refusals_are_put_into_words() {
        let from = "10.0.0.1:5201".parse().unwrap();
        let e = refusal(from, 134, libc::ENOENT).to_string();
        assert_eq!(
            e,
            "10.0.0.1:5201: the server refuses: it cannot use that congestion control \
             (No such file or directory)"
        );
        assert_eq!(
            refusal(from, 999, 0).to_string(),
            "10.0.0.1:5201: the server refuses: iperf3's error 999"
        );
        assert!(matches!(refusal(from, 142, 0), Error::Denied(_)));
    }
}
