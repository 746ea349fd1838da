//! The control connection of either end: fixed-size messages with deadlines, and the other end's
//! errors, which arrive out of band.

use std::{
    io::{self, Read, Write},
    net::{Shutdown, SocketAddr, TcpStream},
    os::fd::AsRawFd,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use probe::samples::clock::monotonic_ns;
use socket2::{SockRef, TcpKeepalive};
use traffic::{Error, Result, net::sys};

use super::wire::{URGENT_DONE, URGENT_ERROR};

/// Interval of checking the stop flag during a wait.
pub const LOOK_NS: u64 = 100_000_000;
/// Most bytes read of an error text.
const ERROR_TEXT: usize = 256;
/// Timeout for receiving or sending an error text.
const ERROR_PATIENCE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub struct Control {
    stream: TcpStream,
    /// The other end's name, for messages.
    pub who: String,
}

/// Waits up to `wait_ns` for one of `events`; returns whether there is one.
///
/// # Errors
/// As the kernel says; an interrupted wait counts as no event.
pub fn ready(fd: &impl AsRawFd, events: i16, wait_ns: u64) -> io::Result<i16> {
    let mut one = [libc::pollfd { fd: fd.as_raw_fd(), events, revents: 0 }];
    let ms = i32::try_from(wait_ns.div_ceil(1_000_000)).unwrap_or(i32::MAX);
    match sys::poll(&mut one, ms) {
        Ok(_) => Ok(one[0].revents),
        Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(0),
        Err(e) => Err(e),
    }
}

impl Control {
    /// A control connection on a connected socket; a silent peer is detected within half a minute.
    ///
    /// # Errors
    /// The kernel's error of an option.
    pub fn new(stream: TcpStream, who: String) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        let alive = TcpKeepalive::new()
            .with_time(Duration::from_secs(10))
            .with_interval(Duration::from_secs(5))
            .with_retries(3);
        SockRef::from(&stream).set_tcp_keepalive(&alive)?;
        Ok(Self { stream, who })
    }

    /// Address of this end.
    ///
    /// # Errors
    /// The kernel's error; the socket may have been reset.
    pub fn local(&self) -> io::Result<SocketAddr> {
        self.stream.local_addr()
    }

    /// Address of the other end.
    ///
    /// # Errors
    /// The kernel's error; the socket may have been reset.
    pub fn peer(&self) -> io::Result<SocketAddr> {
        self.stream.peer_addr()
    }

    /// The socket, for waiting on it together with others.
    pub fn socket(&self) -> &TcpStream {
        &self.stream
    }

    fn broke(&self, what: &str, e: &io::Error) -> Error {
        match e.kind() {
            io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => Error::Environment(
                format!("{} ended the connection (reset) before the {what}", self.who),
            ),
            _ => Error::io(format!("{}: {what}", self.who), e),
        }
    }

    /// Reads all of `into` by `deadline_ns`.
    ///
    /// # Errors
    /// In one line: an error sent by the other end, a close or reset, a timeout, or a stop.
    pub fn receive(
        &mut self,
        into: &mut [u8],
        what: &str,
        deadline_ns: u64,
        stop: &AtomicBool,
    ) -> Result<()> {
        let begun = monotonic_ns();
        let mut have = 0;
        loop {
            // Otherwise an error text would be taken for the message.
            self.urgent(into.get(..have).unwrap_or_default())?;
            let Some(rest) = into.get_mut(have..).filter(|r| !r.is_empty()) else { return Ok(()) };
            match self.stream.read(rest) {
                Ok(0) => {
                    let who = &self.who;
                    return Err(Error::Environment(format!(
                        "{who} closed the connection before the {what}"
                    )));
                }
                Ok(n) => have += n,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    let now = monotonic_ns();
                    if stop.load(Ordering::Relaxed) {
                        return Err(Error::Environment(format!("stopped before the {what}")));
                    }
                    if now >= deadline_ns {
                        let s = (now - begun) as f64 / 1e9;
                        let who = &self.who;
                        return Err(Error::Silent(format!(
                            "{who} sent nothing for {s:.1} s where the {what} was expected"
                        )));
                    }
                    let wait = (deadline_ns - now).min(LOOK_NS);
                    let asked = libc::POLLIN | libc::POLLPRI;
                    ready(&self.stream, asked, wait).map_err(|e| self.broke(what, &e))?;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(self.broke(what, &e)),
            }
        }
    }

    /// Sends all of `bytes`, a few hundred at most, by `deadline_ns`.
    ///
    /// # Errors
    /// As [`Self::receive`].
    pub fn send(&mut self, bytes: &[u8], what: &str, deadline_ns: u64) -> Result<()> {
        let mut left = bytes;
        while !left.is_empty() {
            match self.stream.write(left) {
                Ok(n) => left = left.get(n..).unwrap_or_default(),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    let now = monotonic_ns();
                    if now >= deadline_ns {
                        let who = &self.who;
                        return Err(Error::Environment(format!("{who} does not take the {what}")));
                    }
                    let wait = (deadline_ns - now).min(LOOK_NS);
                    ready(&self.stream, libc::POLLOUT, wait).map_err(|e| self.broke(what, &e))?;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(self.broke(what, &e)),
            }
        }
        Ok(())
    }

    /// Handles an urgent byte: an error text follows it, part of which may be in `read` already.
    fn urgent(&mut self, read: &[u8]) -> Result<()> {
        let mut byte = [0];
        let n = sys::recv(self.stream.as_raw_fd(), &mut byte, libc::MSG_OOB);
        if !matches!(n, Ok(1)) || byte != [URGENT_ERROR] {
            return Ok(());
        }
        let mut text = read.to_vec();
        let end = monotonic_ns() + ERROR_PATIENCE.as_nanos() as u64;
        let mut piece = [0; ERROR_TEXT];
        while text.len() < ERROR_TEXT && monotonic_ns() < end {
            match self.stream.read(&mut piece) {
                Ok(0) => break,
                Ok(n) => text.extend_from_slice(piece.get(..n).unwrap_or_default()),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    let _ = ready(&self.stream, libc::POLLIN, LOOK_NS);
                }
                Err(_) => break,
            }
        }
        text.truncate(ERROR_TEXT);
        Err(Error::Environment(format!("{} says: {}", self.who, printable(&text))))
    }

    /// Whether the other end has gone or has sent an error; costs one system call.
    pub fn gone(&self) -> bool {
        let asked = libc::POLLIN | libc::POLLPRI | libc::POLLRDHUP;
        let over = libc::POLLPRI | libc::POLLRDHUP | libc::POLLHUP | libc::POLLERR;
        ready(&self.stream, asked, 0).is_ok_and(|got| got & over != 0)
    }

    /// Whether the other end signals, out of band, that its test has ended.
    pub fn says_done(&self) -> bool {
        let mut byte = [0];
        let n = sys::recv(self.stream.as_raw_fd(), &mut byte, libc::MSG_OOB | libc::MSG_PEEK);
        matches!(n, Ok(1)) && byte == [URGENT_DONE]
    }

    /// Sends an error text in qperf's format: the other end prints it and ends.
    pub fn send_error(&self, text: &str) {
        let _ = sys::send(self.stream.as_raw_fd(), &[URGENT_ERROR], libc::MSG_OOB);
        let _ = (&self.stream).write_all(text.as_bytes());
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// Waits briefly for the other end to close, because closing first could discard data that it
    /// has not read.
    pub fn linger(&self) {
        let end = monotonic_ns() + ERROR_PATIENCE.as_nanos() as u64;
        let mut sink = [0; 256];
        while monotonic_ns() < end {
            match (&self.stream).read(&mut sink) {
                Ok(0) => return,
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    let _ = ready(&self.stream, libc::POLLIN, LOOK_NS);
                }
                Err(_) => return,
            }
        }
    }
}

/// A peer's text without control characters, for our messages.
pub fn printable(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    text.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn pair() -> (Control, Control) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let local = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (peer, _) = listener.accept().unwrap();
        (Control::new(local, "near".into()).unwrap(), Control::new(peer, "far".into()).unwrap())
    }

    fn soon() -> u64 {
        monotonic_ns() + 2_000_000_000
    }

    static GO: AtomicBool = AtomicBool::new(false);

    #[test]
    fn an_error_arrives_as_its_text() {
        let (a, mut b) = pair();
        a.send_error("no such\x1b test");
        let e = b.receive(&mut [0; 4], "port", soon(), &GO).unwrap_err();
        assert_eq!(e.to_string(), "far says: no such  test");
    }

    #[test]
    fn silence_an_end_and_a_stop_are_distinguished() {
        let (a, mut b) = pair();
        let now = monotonic_ns();
        let e = b.receive(&mut [0; 4], "port", now + 1_000_000, &GO).unwrap_err();
        assert!(e.to_string().starts_with("far sent nothing for 0.0 s"), "{e}");
        let e = b.receive(&mut [0; 4], "port", soon(), &AtomicBool::new(true)).unwrap_err();
        assert_eq!(e.to_string(), "stopped before the port");
        assert!(!b.gone());
        drop(a);
        let e = b.receive(&mut [0; 4], "port", soon(), &GO).unwrap_err();
        assert_eq!(e.to_string(), "far closed the connection before the port");
        assert!(b.gone());
    }

    #[test]
    fn messages_come_whole() {
        let (mut a, mut b) = pair();
        a.send(b"abc", "text", soon()).unwrap();
        a.send(b"def", "text", soon()).unwrap();
        let mut into = [0; 6];
        b.receive(&mut into, "text", soon(), &GO).unwrap();
        assert_eq!(&into, b"abcdef");
    }
}
