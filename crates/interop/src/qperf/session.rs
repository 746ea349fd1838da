//! One test at the server: port, synchronization, data, counters.

use std::{
    io,
    net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket},
    os::fd::AsRawFd,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use probe::samples::clock::monotonic_ns;
use socket2::{Domain, SockRef, Socket, Type};
use traffic::{Error, ErrorContext, Result, net::sys};

use super::{
    clock::{self, TICKS_PER_S},
    data::{Over, Watch},
    limits::Limits,
    peer::{EndCounts, LoopParameters},
    talk::{Control, LOOK_NS, ready},
    wire::{AFTER, BEFORE, Request, Stat, Test},
};

const SECOND: u64 = 1_000_000_000;
/// Bounds on the timeout that a client requests for the control connection.
const PATIENCE_S: (u32, u32) = (1, 60);
/// Longest wait for a client's last message once this end stops.
const LAST_WORD_NS: u64 = 200_000_000;

/// Result of a test.
#[derive(Debug, Clone, Copy)]
pub struct TestResult {
    pub counts: EndCounts,
    /// Duration of the test in nanoseconds.
    pub ns: u64,
    pub over: Over,
}

/// A test in progress.
#[derive(Debug)]
pub struct Session<'a> {
    pub control: Control,
    /// What the client requested: test, sizes, duration.
    pub request: Request,
    /// The test by its index in [`Test::ALL`].
    pub test: Test,
    /// Resource limits of the test.
    pub limits: &'a Limits,
    pub stop: &'a AtomicBool,
}

enum Data {
    Stream(TcpStream),
    Datagrams(UdpSocket),
}

impl Session<'_> {
    /// Runs the test to its end; an error is also sent to the client.
    ///
    /// # Errors
    /// One line with the reason.
    pub fn run(mut self) -> Result<TestResult> {
        let result = self.test();
        if let Err(e) = &result
            && !self.control.gone()
        {
            self.control.send_error(&e.to_string());
            self.control.linger();
        }
        result
    }

    fn patience_ns(&self) -> u64 {
        u64::from(self.request.timeout.clamp(PATIENCE_S.0, PATIENCE_S.1)) * SECOND
    }

    fn test(&mut self) -> Result<TestResult> {
        pin(self.request.affinity)?;
        let local = self.control.local().doing(|| "cannot name the control connection")?;
        let from = self.control.peer().doing(|| "cannot name the client")?.ip();
        let data = match self.test.is_udp() {
            true => Data::Datagrams(self.udp(local)?),
            false => Data::Stream(self.tcp(local, from)?),
        };
        let until = monotonic_ns() + self.patience_ns();
        let mut said = [0; BEFORE.len()];
        self.control.send(BEFORE, "synchronization before the test", until)?;
        self.control.receive(&mut said, "synchronization before the test", until, self.stop)?;
        if said != BEFORE {
            return Err(Error::Environment(
                "the synchronization before the test is garbled".into(),
            ));
        }
        let begun = monotonic_ns();
        let (cpus, start) = clock::times(begun);
        let deadline = begun.saturating_add(self.max_time_ns());
        let (counts, over) = self.data(&data, from, deadline);
        // Data after the deadline is not counted, so the time is not either.
        let ended = monotonic_ns().min(deadline);
        let (_, end) = clock::times(ended);
        let ticks_per_s = TICKS_PER_S;
        let (sent, received) = (counts.sent, counts.received);
        let stat = Stat { cpus, ticks_per_s, start, end, sent, received };
        self.results(&stat, over)?;
        Ok(TestResult { counts, ns: ended - begun, over })
    }

    fn max_time_ns(&self) -> u64 {
        let most = u64::try_from(self.limits.longest.as_nanos()).unwrap_or(u64::MAX);
        match self.request.time {
            0 => most,
            s => (u64::from(s) * SECOND).min(most),
        }
    }

    fn data(&self, data: &Data, from: IpAddr, deadline: u64) -> (EndCounts, Over) {
        let idle = u64::try_from(self.limits.idle.as_nanos()).unwrap_or(u64::MAX);
        let work = LoopParameters {
            message: self.request.msg_size as usize,
            look: self.request.access_recv != 0,
            service_ns: self.limits.service_ns.0,
        };
        let watch = |fd: &dyn AsRawFd| {
            Watch::new(&fd.as_raw_fd(), &self.control, self.stop, deadline, idle)
        };
        match data {
            Data::Stream(s) => work.stream(s, self.test == Test::TcpLat, &mut watch(s)),
            Data::Datagrams(s) => work.datagrams(s, from, self.test == Test::UdpLat, &mut watch(s)),
        }
    }

    /// Sends the counters and waits for the client's confirmation: only then may the data socket
    /// close.
    fn results(&mut self, stat: &Stat, over: Over) -> Result<()> {
        if over == Over::Gone {
            return Err(Error::Environment("the client vanished during the test".into()));
        }
        let now = monotonic_ns();
        self.control.send(&stat.encode(), "results", now + self.patience_ns())?;
        let stopping = || self.stop.load(Ordering::Relaxed);
        let patience = if stopping() { LAST_WORD_NS } else { self.patience_ns() };
        let (mut said, go) = ([0; AFTER.len()], AtomicBool::new(false));
        let stop = if stopping() { &go } else { self.stop };
        let what = "synchronization after the test";
        match self.control.receive(&mut said, what, now + patience, stop) {
            // After an early end the client still waits for its own clock.
            Err(_) if stopping() || over == Over::Idle => Ok(()),
            other => other,
        }
    }

    /// Listens, sends the port, and accepts the client's connection.
    fn tcp(&mut self, local: SocketAddr, from: IpAddr) -> Result<TcpStream> {
        let socket = self.bind(local, Type::STREAM)?;
        let doing = || "cannot listen for data";
        socket.listen(4).doing(doing)?;
        socket.set_nonblocking(true).doing(doing)?;
        let listener = TcpListener::from(socket);
        self.say_port(&listener.local_addr().doing(doing)?)?;
        let until = monotonic_ns() + self.patience_ns();
        loop {
            match listener.accept() {
                Ok((stream, peer)) if peer.ip() == from => {
                    stream.set_nonblocking(false).doing(doing)?;
                    stream.set_nodelay(true).doing(doing)?;
                    self.buffers(&SockRef::from(&stream))?;
                    return Ok(stream);
                }
                Ok(_) => {} // somebody else; closed
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    let now = monotonic_ns();
                    if now >= until {
                        return Err(Error::Environment("no data connection came".into()));
                    }
                    if self.stop.load(Ordering::Relaxed) || self.control.gone() {
                        return Err(Error::Environment("ended before the data connection".into()));
                    }
                    ready(&listener, libc::POLLIN, LOOK_NS.min(until - now)).doing(doing)?;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(Error::io("cannot take the data connection", &e)),
            }
        }
    }

    fn udp(&mut self, local: SocketAddr) -> Result<UdpSocket> {
        let socket = self.bind(local, Type::DGRAM)?;
        self.buffers(&SockRef::from(&socket))?;
        let socket = UdpSocket::from(socket);
        self.say_port(&socket.local_addr().doing(|| "cannot name the data socket")?)?;
        Ok(socket)
    }

    fn say_port(&mut self, at: &SocketAddr) -> Result<()> {
        let until = monotonic_ns() + self.patience_ns();
        self.control.send(&u32::from(at.port()).to_le_bytes(), "port", until)
    }

    fn buffers(&self, socket: &Socket) -> Result<()> {
        let bytes = self.request.sock_buf_size.min(i32::MAX as u32 / 2) as usize;
        if bytes > 0 {
            let doing = || format!("cannot set the socket buffers to {bytes} bytes");
            socket.set_send_buffer_size(bytes).doing(doing)?;
            socket.set_recv_buffer_size(bytes).doing(doing)?;
        }
        Ok(())
    }

    /// Binds a data socket to the address that the client used. Waits for a port in use, slightly
    /// shorter than the client waits for the answer.
    fn bind(&self, local: SocketAddr, kind: Type) -> Result<Socket> {
        let port = u16::try_from(self.request.port)
            .map_err(|_| Error::Environment(format!("{} is no port", self.request.port)))?;
        let ports = match (port, &self.limits.data_ports) {
            (0, Some(range)) => range.clone(),
            (port, _) => port..=port,
        };
        let doing = || match (ports.start(), ports.end()) {
            (0, _) => format!("cannot use {} for data", local.ip()),
            (a, b) if a == b => format!("cannot use port {a} for data"),
            (a, b) => format!("cannot use any port of {a}-{b} for data"),
        };
        let socket = Socket::new(Domain::for_address(local), kind, None).doing(doing)?;
        // Over TCP this ignores old connections; over UDP it would let two sockets share the port.
        socket.set_reuse_address(kind == Type::STREAM).doing(doing)?;
        let until = monotonic_ns() + self.patience_ns() / 5 * 4;
        loop {
            let mut last = io::Error::from_raw_os_error(libc::EADDRINUSE);
            for port in ports.clone() {
                let mut at = local; // with its scope
                at.set_port(port);
                match socket.bind(&at.into()) {
                    Ok(()) => return Ok(socket),
                    Err(e) => last = e,
                }
            }
            let stopping = self.stop.load(Ordering::Relaxed) || self.control.gone();
            let wait = last.kind() == io::ErrorKind::AddrInUse && monotonic_ns() < until;
            if stopping || !wait {
                return Err(Error::io(doing(), &last));
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Pins the calling thread as requested: 0 is any CPU, 1 the first. (The real client sends the
/// number as typed, so that its `-rca 1` means CPU 0; the real server behaves the same.)
fn pin(affinity: u32) -> Result<()> {
    let Some(cpu) = affinity.checked_sub(1) else { return Ok(()) };
    let refused =
        |e: &io::Error| Error::io(format!("cannot set processor affinity (cpu {cpu})"), e);
    if cpu >= libc::CPU_SETSIZE as u32 {
        return Err(refused(&io::Error::from_raw_os_error(libc::EINVAL)));
    }
    sys::pin_thread(cpu).map_err(|e| refused(&e))
}
