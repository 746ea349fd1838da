//! One test of the client: request, data connection, synchronization, and finally the server's
//! counters.

use std::{
    io::{ErrorKind, Read},
    net::{Shutdown, SocketAddr, TcpStream},
    os::fd::AsRawFd,
    sync::atomic::AtomicBool,
    time::Duration,
};

use model::measure::{Common, End, SocketOptions, Transport};
use probe::samples::clock::monotonic_ns;
use socket2::{Domain, Socket, Type};
use traffic::{
    Error, ErrorContext, Result,
    net::{
        options, sys,
        target::{Target, local_address, resolve},
    },
};

use super::{
    talk::{Control, LOOK_NS, printable, ready},
    wire::{AFTER, BEFORE, CONFIGURATION, PORT, Request, STAT, STRING, Stat, Test, URGENT_DONE},
};

/// How long connecting may take.
const CONNECT: Duration = Duration::from_secs(5);
/// Timeout in seconds for each server message; also sent as the server's timeout for ours.
const PATIENCE_S: u32 = 10;
const PATIENCE_NS: u64 = PATIENCE_S as u64 * SECOND;
/// Timeout for the server after this end was interrupted.
const HURRIED_NS: u64 = 1_500_000_000;
/// Time for datagrams in transit to arrive after the last send.
const ON_THE_WAY: Duration = Duration::from_millis(200);
/// Number of datagrams, and their interval, to wake a server that does not end.
const STRAYS: u32 = 4;
const STRAY_NS: u64 = 150_000_000;
const SECOND: u64 = 1_000_000_000;

/// Parameters of a request.
#[derive(Debug, Clone, Copy)]
pub struct Ask {
    pub test: Test,
    /// Message size in bytes.
    pub message: u32,
    /// Seconds after which the server ends the test by itself.
    pub seconds: u32,
    /// The server's CPU number plus one; 0 for any CPU.
    pub affinity: u32,
}

/// A test that both ends have begun.
#[derive(Debug)]
pub struct Session {
    control: Control,
    /// The data socket, connected and blocking.
    pub data: Socket,
    begun_ns: u64,
    ask: Ask,
}

/// The server, located once for all tests.
#[derive(Debug, Clone)]
pub struct PlacedEnd {
    /// The address that answered.
    pub address: SocketAddr,
    /// Its name for messages.
    pub name: String,
    /// Whether it runs on this host.
    pub same_host: bool,
    /// The server's description of itself.
    pub end: End,
    /// This end, with its address towards the server.
    pub local: End,
}

/// Locates the server and reads its configuration (its test `conf`).
///
/// # Errors
/// In one line: the name does not resolve, nothing listens, or another protocol answers.
pub fn find(common: &Common, stop: &AtomicBool) -> Result<PlacedEnd> {
    let target: Target = common.target.parse()?;
    let Target::Host(host, port) = &target else {
        return Err(Error::Usage(format!("{target}: qperf supports TCP and UDP only")));
    };
    let mut last = Error::Environment(format!("{host} has no address"));
    for address in resolve(host, port.unwrap_or(PORT), common.family)? {
        let name = format!("qperf at {address}");
        let stream = match dial(address, common) {
            Ok(stream) => stream,
            Err(e) => {
                last = e;
                continue;
            }
        };
        let mut control = Control::new(stream, name.clone()).doing(|| name.clone())?;
        let until = monotonic_ns() + PATIENCE_NS;
        let request = Request { timeout: PATIENCE_S, ..Request::new(Test::Conf) };
        control.send(&request.encode(), "request", until)?;
        let mut said = [0; CONFIGURATION];
        control.receive(&mut said, "configuration", until, stop).map_err(busy)?;
        let end = end_of(&said, address).ok_or_else(|| no_qperf(&name, &said))?;
        let local = control.local().doing(|| name.clone())?;
        let same_host = address.ip().is_loopback() || local.ip() == address.ip();
        let local =
            End { address: local.ip().to_string(), ..traffic::host::identity::of_this_host().end };
        return Ok(PlacedEnd { address, name, same_host, end, local });
    }
    Err(last)
}

fn no_qperf(name: &str, said: &[u8]) -> Error {
    let said: String = printable(said).chars().take(40).collect();
    Error::Environment(format!("{name} is no qperf server of version 0.4: it answered {said:?}"))
}

/// Parses a configuration: node name, CPUs, system, version.
fn end_of(said: &[u8; CONFIGURATION], address: SocketAddr) -> Option<End> {
    let mut texts = said.chunks_exact(STRING).map(|field| {
        let length = field.iter().position(|b| *b == 0)?;
        Some(printable(field.get(..length)?))
    });
    let mut next = || texts.next().flatten();
    let (_node, _cpu, system, version) = (next()?, next()?, next()?, next()?);
    let digits = |c: char| c.is_ascii_digit() || c == '.';
    if !version.starts_with("0.4") || !version.chars().all(digits) {
        return None;
    }
    let kernel = system.strip_prefix("Linux ").unwrap_or(&system).to_owned();
    let (program, address) = (format!("qperf {version}"), address.to_string());
    Some(End { program, kernel, arch: String::new(), cpus: 0, address })
}

impl Session {
    /// Begins a test.
    ///
    /// # Errors
    /// In one line: nothing listens, another protocol answers, or qperf refuses, with its text.
    pub fn open(place: &PlacedEnd, common: &Common, ask: Ask, stop: &AtomicBool) -> Result<Self> {
        Self::begin(dial(place.address, common)?, place, common, ask, stop)
    }

    fn begin(
        stream: TcpStream,
        place: &PlacedEnd,
        common: &Common,
        ask: Ask,
        stop: &AtomicBool,
    ) -> Result<Self> {
        let mut control = Control::new(stream, place.name.clone()).doing(|| place.name.clone())?;
        let request = Request {
            affinity: ask.affinity,
            msg_size: ask.message,
            sock_buf_size: buffer(&common.socket),
            time: ask.seconds,
            timeout: PATIENCE_S,
            ..Request::new(ask.test)
        };
        let until = || monotonic_ns() + PATIENCE_NS;
        control.send(&request.encode(), "request", until())?;
        let mut port = [0; 4];
        control.receive(&mut port, "port", until(), stop).map_err(busy)?;
        let port = u32::from_le_bytes(port);
        let Ok(port @ 1..) = u16::try_from(port) else {
            return Err(no_qperf(&place.name, &port.to_le_bytes()));
        };
        let mut at = place.address;
        at.set_port(port);
        let data = connect(at, common, ask.test)?;
        control.send(BEFORE, "synchronization before the test", until())?;
        let mut said = [0; BEFORE.len()];
        control.receive(&mut said, "synchronization before the test", until(), stop)?;
        if said != BEFORE {
            return Err(no_qperf(&place.name, &said));
        }
        Ok(Self { control, data, begun_ns: monotonic_ns(), ask })
    }

    /// Message size in bytes.
    pub fn message(&self) -> u32 {
        self.ask.message
    }

    /// Time on our clock when the server ends the test by itself.
    pub fn ends_ns(&self) -> u64 {
        self.begun_ns + u64::from(self.ask.seconds) * SECOND
    }

    /// Why the server has gone, with its error text if it sent one; `None` while it is there.
    pub fn gone(&mut self) -> Option<Error> {
        if !self.control.gone() {
            return None;
        }
        let go = AtomicBool::new(false);
        let until = monotonic_ns() + SECOND;
        self.control.receive(&mut [0; 1], "end of the test", until, &go).err()
    }

    /// Ends the test and fetches the server's counters. A stream ends with its last byte. A server
    /// that receives datagrams gets an out-of-band message; otherwise it runs until its own clock
    /// ends the test, which is not waited for if `hurried`.
    ///
    /// # Errors
    /// The server is gone or does not answer.
    fn finish(mut self, hurried: bool) -> Result<Stat> {
        let mut until = monotonic_ns().max(self.ends_ns()) + PATIENCE_NS;
        if self.ask.test.is_udp() {
            if self.ask.test == Test::UdpBw {
                // Datagrams in transit or in the server's socket would count as lost.
                std::thread::sleep(ON_THE_WAY);
            }
            self.say_done();
            if hurried {
                until = monotonic_ns() + HURRIED_NS;
            }
        } else {
            let _ = self.data.shutdown(Shutdown::Write);
        }
        self.drain(until);
        let go = AtomicBool::new(false);
        let mut bytes = [0; STAT];
        self.control.receive(&mut bytes, "results", until, &go)?;
        let _ = self.control.send(AFTER, "synchronization after the test", until);
        self.control.linger();
        Ok(Stat::decode(&bytes))
    }

    /// The end of a test that was measured: the server's counters, and why the test broke off.
    pub fn end(mut self, broken: Option<Error>, hurried: bool) -> (Option<Stat>, Option<Error>) {
        if let Some(broken) = broken {
            return (None, Some(self.gone().unwrap_or(broken)));
        }
        match self.finish(hurried) {
            Ok(stat) => (Some(stat), None),
            // Told to stop, it did not wait for the server's clock.
            Err(_) if hurried => (None, None),
            Err(e) => (None, Some(e)),
        }
    }

    /// The out-of-band byte that ends the server's loop, and a datagram now and then while it
    /// does not: the loop may have been about to sleep when the byte came.
    fn say_done(&self) {
        let _ = sys::send(self.control.socket().as_raw_fd(), &[URGENT_DONE], libc::MSG_OOB);
        for _ in 0..STRAYS {
            let asked = libc::POLLIN | libc::POLLPRI;
            if ready(self.control.socket(), asked, STRAY_NS).map_or(true, |r| r != 0) {
                return;
            }
            let _ = self.data.send(&[0]);
        }
    }

    /// Reads remaining data, so that the server does not block in `send`, until it sends something
    /// on the control connection.
    fn drain(&mut self, until: u64) {
        let _ = self.data.set_nonblocking(true);
        let mut sink = vec![0; 1 << 16];
        while monotonic_ns() < until {
            let mut open = true;
            loop {
                match (&self.data).read(&mut sink) {
                    Ok(0) if !self.ask.test.is_udp() => {
                        open = false;
                        break;
                    }
                    Ok(_) => {}
                    Err(e) if e.kind() == ErrorKind::Interrupted => {}
                    Err(_) => break,
                }
            }
            let asked = libc::POLLIN | libc::POLLPRI;
            if !open || ready(self.control.socket(), asked, LOOK_NS / 10).map_or(true, |r| r != 0) {
                return;
            }
        }
    }
}

/// Explains a server that does not answer.
fn busy(e: Error) -> Error {
    match e {
        Error::Silent(why) => {
            Error::Silent(format!("{why}; is it busy? qperf serves one client after the other"))
        }
        e => e,
    }
}

/// The requested buffer size, as one number for both directions.
fn buffer(asked: &SocketOptions) -> u32 {
    asked
        .buffer_bytes
        .map_or(0, |b| u32::try_from(b.0).unwrap_or(u32::MAX).min(i32::MAX as u32 / 2))
}

fn dial(at: SocketAddr, common: &Common) -> Result<TcpStream> {
    let what = || format!("cannot connect to {at}");
    let socket = Socket::new(Domain::for_address(at), Type::STREAM, None).doing(what)?;
    bind(&socket, common)?;
    socket.connect_timeout(&at.into(), CONNECT).map_err(|e| match e.kind() {
        ErrorKind::ConnectionRefused => Error::Environment(format!(
            "{at}: connection refused; start `qperf{}` there (or --port)",
            if at.port() == PORT { String::new() } else { format!(" -lp {}", at.port()) }
        )),
        ErrorKind::TimedOut => Error::Environment(format!(
            "{at}: no answer in {} s; is a firewall between?",
            CONNECT.as_secs()
        )),
        _ => Error::io(what(), &e),
    })?;
    Ok(socket.into())
}

fn bind(socket: &Socket, common: &Common) -> Result<()> {
    let Some(local) = &common.bind else { return Ok(()) };
    let local = local_address(local)?;
    socket.bind(&SocketAddr::new(local, 0).into()).doing(|| format!("cannot send from {local}"))
}

fn connect(at: SocketAddr, common: &Common, test: Test) -> Result<Socket> {
    let (kind, transport) = match test.is_udp() {
        true => (Type::DGRAM, Transport::Udp),
        false => (Type::STREAM, Transport::Tcp),
    };
    let socket = Socket::new(Domain::for_address(at), kind, None).doing(|| "data socket")?;
    options::apply(&socket, transport, &common.socket, test == Test::TcpLat)?;
    bind(&socket, common)?;
    socket.connect_timeout(&at.into(), CONNECT).map_err(|e| {
        Error::io(format!("cannot connect to data port {at}; is a firewall between?"), &e)
    })?;
    Ok(socket)
}
