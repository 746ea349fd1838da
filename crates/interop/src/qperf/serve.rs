//! The server for unmodified qperf clients, many at once.
//!
//! One thread handles every connection without a request; each costs a descriptor and a few hundred
//! bytes until its timeout. A complete request within the limits gets its own thread (`session`).

use std::{
    fmt,
    io::{self, Read},
    net::{SocketAddr, TcpListener, TcpStream},
    os::fd::AsRawFd,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
    time::Duration,
};

use model::Nanos;
use probe::samples::clock::monotonic_ns;
use socket2::{Domain, Socket, Type};
use traffic::{Error, ErrorContext, Result, net::sys};

use super::{
    limits::Limits,
    peer,
    session::{Session, TestResult},
    talk::{Control, LOOK_NS},
    wire::{self, REQUEST, Request, Test, VERSION},
};

/// An event for the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    Began {
        client: SocketAddr,
        /// Name of the test, such as `tcp_lat`.
        test: &'static str,
        /// Message size in bytes.
        message_bytes: u32,
        /// Duration in seconds; 0 until the client closes.
        seconds: u32,
    },
    Ended {
        client: SocketAddr,
        /// Name of the test, such as `tcp_lat`.
        test: &'static str,
        received: u64,
        sent: u64,
        ns: Nanos,
        /// Reason of its end, such as `its time was over`.
        why: String,
    },
    /// The test failed or was refused, for this reason.
    Failed { client: SocketAddr, why: String },
    /// Connections since the last such event that sent no valid request.
    Ignored { connections: u64 },
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Began { client, test, message_bytes, seconds } => {
                write!(f, "{client}: {test}, messages of {message_bytes} bytes, {seconds} s")
            }
            Self::Ended { client, test, received, sent, ns, why } => {
                write!(
                    f,
                    "{client}: {test} ended after {ns} ({why}): {received} messages received"
                )?;
                if *sent > 0 { write!(f, ", {sent} sent") } else { Ok(()) }
            }
            Self::Failed { client, why } => write!(f, "{client}: {why}"),
            Self::Ignored { connections } => {
                write!(f, "{connections} connections that did not speak qperf")
            }
        }
    }
}

/// Listens for clients. `[::]` also accepts IPv4, as in qperf's own server, unless `0.0.0.0` is
/// listed too.
///
/// # Errors
/// The first address that cannot be bound.
pub fn listen(at: &[SocketAddr]) -> Result<Vec<TcpListener>> {
    let any_v4 = at.iter().any(|a| a.is_ipv4() && a.ip().is_unspecified());
    at.iter().map(|a| listen_one(*a, !any_v4 && a.ip().is_unspecified())).collect()
}

fn listen_one(at: SocketAddr, both: bool) -> Result<TcpListener> {
    let doing = || format!("cannot listen for qperf clients at {at}");
    let socket = Socket::new(Domain::for_address(at), Type::STREAM, None).doing(doing)?;
    socket.set_reuse_address(true).doing(doing)?;
    if at.is_ipv6() {
        socket.set_only_v6(!both).doing(doing)?;
    }
    socket.bind(&at.into()).doing(doing)?;
    socket.listen(1024).doing(doing)?;
    Ok(socket.into())
}

/// A connection without a thread.
struct Waiting {
    stream: TcpStream,
    client: SocketAddr,
    bytes: [u8; REQUEST],
    have: usize,
    until_ns: u64,
    /// Whether it was answered and only has to close.
    answered: bool,
}

/// State of a connection after a read.
enum ReadStep {
    /// The request is incomplete.
    Wait,
    /// The connection ended, or is not qperf.
    Close,
    Whole,
}

impl Waiting {
    fn read(&mut self) -> ReadStep {
        if self.answered {
            let mut sink = [0; 256];
            return match self.stream.read(&mut sink) {
                Ok(0) => ReadStep::Close,
                Err(e) if e.kind() != io::ErrorKind::WouldBlock => ReadStep::Close,
                _ => ReadStep::Wait,
            };
        }
        while let Some(rest) = self.bytes.get_mut(self.have..).filter(|r| !r.is_empty()) {
            match self.stream.read(rest) {
                Ok(0) => return ReadStep::Close,
                Ok(n) => self.have += n,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return ReadStep::Close,
            }
            // Invalid data is detected as early as possible.
            let major = self.bytes.first_chunk::<2>().map(|b| u16::from_le_bytes(*b));
            if self.have >= 2 && major != Some(0) {
                return ReadStep::Close;
            }
        }
        if self.have == REQUEST { ReadStep::Whole } else { ReadStep::Wait }
    }
}

/// Checks a request against the limits; the error is the reason for refusing it.
fn refuse(r: &Request, limits: &Limits) -> std::result::Result<Test, String> {
    let [major, minor, inc] = r.version;
    let [our_major, our_minor, our_inc] = VERSION;
    if (major, minor) != (our_major, our_minor) {
        return Err(format!(
            "this server speaks qperf {our_major}.{our_minor}.{our_inc}, not {major}.{minor}.{inc}"
        ));
    }
    let only = "conf, tcp_bw, tcp_lat, udp_bw and udp_lat";
    let test = match Test::of(r.index) {
        Some(Test::Quit) => return Err("this server is not ended by its clients".into()),
        Some(test) => test,
        None => return Err(format!("test {} is not served here, only {only}", r.index)),
    };
    if test == Test::Conf {
        return Ok(test);
    }
    if r.msg_size == 0 && !test.is_udp() {
        return Err("messages of 0 bytes are nothing over TCP".into());
    }
    if (1..1024).contains(&r.port) {
        return Err(format!("port {} is not used for data, only 1024 and above", r.port));
    }
    if u64::from(r.time) > limits.longest.as_secs() {
        let most = limits.longest.as_secs();
        return Err(format!("tests are served for {most} s at most, not {} s", r.time));
    }
    Ok(test)
}

struct House<'scope, 'env> {
    scope: &'scope thread::Scope<'scope, 'env>,
    limits: &'env Limits,
    stop: &'env AtomicBool,
    running: &'env AtomicUsize,
    on_event: &'env (dyn Fn(Event) + Sync),
    waiting: Vec<Waiting>,
    ignored: u64,
    reported_ns: u64,
}

/// Serves until `stop` is set; running tests then end with their current counters.
///
/// # Errors
/// [`Error::Environment`]: there is no listening socket, or waiting failed.
pub fn serve(
    listeners: &[TcpListener],
    limits: &Limits,
    stop: &AtomicBool,
    on_event: &(dyn Fn(Event) + Sync),
) -> Result<()> {
    if listeners.is_empty() {
        return Err(Error::Environment("no address to listen on for qperf".into()));
    }
    for l in listeners {
        l.set_nonblocking(true).doing(|| "cannot listen for qperf")?;
    }
    let running = AtomicUsize::new(0);
    thread::scope(|scope| {
        let (waiting, reported_ns) = (Vec::new(), monotonic_ns());
        let running = &running;
        let mut house =
            House { scope, limits, stop, running, on_event, waiting, ignored: 0, reported_ns };
        while !stop.load(Ordering::Relaxed) {
            house.round(listeners)?;
        }
        Ok(())
    })
}

/// Shortest interval between [`Event::Ignored`] events.
const TELL_NS: u64 = 10_000_000_000;
/// Most connections accepted in one round, so that a flood does not delay existing ones.
const AT_ONCE: usize = 64;
/// Stack size of a test's thread.
const STACK: usize = 256 << 10;
/// Time for a client to read an answer before closing.
const ANSWER_NS: u64 = 1_000_000_000;

impl<'scope, 'env> House<'scope, 'env> {
    /// Waits for events and handles them.
    fn round(&mut self, listeners: &[TcpListener]) -> Result<()> {
        let fds = listeners.iter().map(AsRawFd::as_raw_fd);
        let fds = fds.chain(self.waiting.iter().map(|w| w.stream.as_raw_fd()));
        let mut polled: Vec<libc::pollfd> =
            fds.map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 }).collect();
        if let Err(e) = sys::poll(&mut polled, (LOOK_NS / 1_000_000) as i32) {
            return match e.kind() {
                io::ErrorKind::Interrupted => Ok(()),
                _ => Err(Error::io("cannot wait for qperf clients", &e)),
            };
        }
        let (doors, guests) = polled.split_at(listeners.len().min(polled.len()));
        let spoke: Vec<bool> = guests.iter().map(|p| p.revents != 0).collect();
        self.hear(&spoke);
        for (listener, _) in listeners.iter().zip(doors).filter(|(_, p)| p.revents != 0) {
            self.take(listener);
        }
        self.tell();
        Ok(())
    }

    /// Reads from ready connections, and closes those past their timeout.
    fn hear(&mut self, spoke: &[bool]) {
        let now = monotonic_ns();
        let mut whole = Vec::new();
        let ignored = &mut self.ignored;
        let mut keep = Vec::with_capacity(self.waiting.len());
        for (n, mut w) in self.waiting.drain(..).enumerate() {
            let spoke = spoke.get(n).copied().unwrap_or_default();
            match if spoke { w.read() } else { ReadStep::Wait } {
                ReadStep::Whole => whole.push(w),
                ReadStep::Wait if now < w.until_ns => keep.push(w),
                ReadStep::Wait | ReadStep::Close => *ignored += u64::from(!w.answered),
            }
        }
        self.waiting = keep;
        whole.into_iter().for_each(|w| self.admit(w));
    }

    fn take(&mut self, listener: &TcpListener) {
        for _ in 0..AT_ONCE {
            match listener.accept() {
                Ok((stream, client)) => {
                    if stream.set_nonblocking(true).is_err() {
                        continue;
                    }
                    if self.waiting.len() >= self.limits.waiting.max(1) {
                        self.waiting.remove(0);
                        self.ignored += 1;
                    }
                    let patience = u64::try_from(self.limits.patience.as_nanos());
                    let until_ns = monotonic_ns().saturating_add(patience.unwrap_or(u64::MAX));
                    let (bytes, have, answered) = ([0; REQUEST], 0, false);
                    self.waiting.push(Waiting { stream, client, bytes, have, until_ns, answered });
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
                Err(e) => {
                    // No descriptor is left: closes idle connections.
                    if matches!(e.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)) {
                        let gone = self.waiting.len().div_ceil(4);
                        self.waiting.drain(..gone);
                        self.ignored += gone as u64;
                        thread::sleep(Duration::from_millis(10));
                    }
                    return;
                }
            }
        }
    }

    fn tell(&mut self) {
        let now = monotonic_ns();
        if self.ignored > 0 && now - self.reported_ns >= TELL_NS {
            (self.on_event)(Event::Ignored { connections: self.ignored });
            (self.ignored, self.reported_ns) = (0, now);
        }
    }

    /// Answers a complete request, directly or in a new thread.
    fn admit(&mut self, w: Waiting) {
        let request = Request::decode(&w.bytes);
        let test = match refuse(&request, self.limits) {
            Ok(Test::Conf) => return self.configuration(w),
            Ok(test) => test,
            Err(why) => return self.turn_away(w, why),
        };
        let busy = self.running.load(Ordering::Relaxed);
        if busy >= self.limits.sessions {
            return self.turn_away(w, format!("busy with {busy} tests; try again later"));
        }
        let Some(memory) = self.limits.memory.take(STACK + peer::buffer_bytes(request.msg_size))
        else {
            return self.turn_away(w, "no memory left for one more test; try again later".into());
        };
        let Waiting { stream, client, .. } = w;
        let Ok(control) = Control::new(stream, "the client".into()) else { return };
        let (limits, stop, running, on_event) =
            (self.limits, self.stop, self.running, self.on_event);
        running.fetch_add(1, Ordering::Relaxed);
        let (message_bytes, seconds) = (request.msg_size, request.time);
        let name = test.name();
        let spawned =
            thread::Builder::new().stack_size(STACK).spawn_scoped(self.scope, move || {
                on_event(Event::Began { client, test: name, message_bytes, seconds });
                let done = Session { control, request, test, limits, stop }.run();
                drop(memory);
                running.fetch_sub(1, Ordering::Relaxed);
                on_event(match done {
                    Ok(TestResult { counts, ns, over }) => Event::Ended {
                        client,
                        test: name,
                        received: counts.received.messages,
                        sent: counts.sent.messages,
                        ns: Nanos(ns),
                        why: over.to_string(),
                    },
                    Err(e) => Event::Failed { client, why: format!("{name}: {e}") },
                });
            });
        if let Err(e) = spawned {
            running.fetch_sub(1, Ordering::Relaxed);
            on_event(Event::Failed { client, why: Error::io("no thread", &e).to_string() });
        }
    }

    /// Sends a refusal in qperf's format; closes when the client has read it.
    fn turn_away(&mut self, mut w: Waiting, why: String) {
        let Ok(copy) = w.stream.try_clone() else { return };
        if let Ok(control) = Control::new(copy, String::new()) {
            control.send_error(&why);
        }
        (self.on_event)(Event::Failed { client: w.client, why: format!("refused: {why}") });
        (w.answered, w.until_ns) = (true, monotonic_ns() + ANSWER_NS);
        self.waiting.push(w);
    }

    fn configuration(&mut self, mut w: Waiting) {
        let (node, cpu, os) = host();
        if let Ok(copy) = w.stream.try_clone()
            && let Ok(mut control) = Control::new(copy, String::new())
        {
            let _ = control.send(&wire::configuration(&node, &cpu, &os), "configuration", 0);
        }
        (w.answered, w.until_ns) = (true, monotonic_ns() + ANSWER_NS);
        self.waiting.push(w);
    }
}

/// Host name, CPUs and system, in the format of qperf's `conf`.
fn host() -> (String, String, String) {
    let uts = rustix::system::uname();
    let text = |field: &std::ffi::CStr| field.to_string_lossy().into_owned();
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    let cpu = format!("{cpus} Cores: {}", text(uts.machine()));
    let os = format!("{} {}", text(uts.sysname()), text(uts.release()));
    (text(uts.nodename()), cpu, os)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(test: Test) -> Request {
        Request { msg_size: 1, time: 2, timeout: 5, ..Request::new(test) }
    }

    #[test]
    fn what_is_refused_and_why() {
        let limits = Limits { longest: Duration::from_secs(60), ..Limits::default() };
        let why = |r: &Request| refuse(r, &limits).unwrap_err();
        assert_eq!(refuse(&ask(Test::TcpLat), &limits), Ok(Test::TcpLat));
        let empty = |test| Request { msg_size: 0, ..ask(test) };
        assert_eq!(refuse(&empty(Test::UdpLat), &limits), Ok(Test::UdpLat));
        assert_eq!(why(&empty(Test::TcpBw)), "messages of 0 bytes are nothing over TCP");
        let old = Request { version: [0, 3, 9], ..ask(Test::TcpLat) };
        assert_eq!(why(&old), "this server speaks qperf 0.4.11, not 0.3.9");
        let rdma = Request { index: 12, ..ask(Test::TcpLat) };
        assert!(why(&rdma).starts_with("test 12 is not served here, only conf, tcp_bw"));
        assert_eq!(why(&ask(Test::Quit)), "this server is not ended by its clients");
        let long = Request { time: 61, ..ask(Test::UdpBw) };
        assert_eq!(why(&long), "tests are served for 60 s at most, not 61 s");
        let low = Request { port: 22, ..ask(Test::UdpBw) };
        assert_eq!(why(&low), "port 22 is not used for data, only 1024 and above");
    }
}
