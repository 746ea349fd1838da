//! One client's tests, in sequence, on its own thread.

use std::{
    io,
    os::fd::AsRawFd,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use model::{CpuId, Nanos};
use socket2::{SockRef, Socket};

use super::{
    Options,
    endpoint::{DataAddress, Endpoint},
    peer::{self, Client, PeerTest},
    watch::{LOOK, OUT_OF_TURN, Watch, poll},
};
use crate::{
    Error, Result,
    control::{
        frame::{self, ASKED, Inbox},
        message::{Ready, RefusalKind, Test, ToClient, ToServer},
    },
    engine::assignments::Assignments,
};

/// The control connection of an authenticated client.
#[derive(Debug)]
pub struct Session<'a> {
    pub socket: Socket,
    pub local: DataAddress,
    /// Whether the client runs on this host.
    pub same_host: bool,
    pub inbox: Inbox,
    pub options: &'a Options,
    pub stop: &'a AtomicBool,
    /// CPUs that tests of all sessions are pinned to now.
    pub taken: &'a Mutex<Vec<CpuId>>,
}

impl Session<'_> {
    fn client(&self) -> Client<'_> {
        Client {
            local: &self.local,
            same_host: self.same_host,
            options: self.options,
            watch: Watch { control: self.socket.as_raw_fd(), stop: self.stop },
        }
    }

    fn send(&self, message: &ToClient) -> Result<()> {
        frame::send(&mut &self.socket, message)
    }

    fn refuse(&self, e: &Error) -> Result<()> {
        self.send(&ToClient::Refused { why: e.to_string(), kind: RefusalKind::of(e) })
    }

    /// The next message; `None` if none arrives in time.
    fn next(&mut self, most: Duration) -> Result<Option<ToServer>> {
        let until = Instant::now() + most;
        let mut chunk = [0u8; 4096];
        loop {
            if let Some(message) = self.inbox.next(ASKED)? {
                return Ok(Some(message));
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            if self.stop.load(Ordering::Relaxed) {
                return Err(Error::Environment("the server is being stopped".into()));
            }
            if !poll(&[self.socket.as_raw_fd()], left.min(LOOK)).first().copied().unwrap_or(false) {
                continue;
            }
            match io::Read::read(&mut &self.socket, &mut chunk) {
                Ok(0) => return Err(Error::Environment("the client went away".into())),
                Ok(n) => self.inbox.push(chunk.get(..n).unwrap_or_default()),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(Error::io("control connection", &e)),
            }
        }
    }

    /// Serves until the client disconnects or is idle for too long, or the server stops.
    ///
    /// # Errors
    /// Why the session ended, for the log; a client that disconnects is no error.
    pub fn run(mut self) -> Result<u32> {
        // A client on a vanished host is detected within half a minute.
        let control = SockRef::from(&self.socket);
        let _ = control.set_nonblocking(false);
        let _ = control.set_write_timeout(Some(Duration::from_secs(10)));
        if matches!(self.local, DataAddress::Ip(..)) {
            let alive = socket2::TcpKeepalive::new()
                .with_time(Duration::from_secs(10))
                .with_interval(Duration::from_secs(5))
                .with_retries(4);
            let _ = control.set_tcp_keepalive(&alive);
            let _ = control.set_tcp_nodelay(true);
        }
        let mut tests = 0;
        loop {
            match self.next(self.options.limits.idle) {
                Ok(Some(ToServer::Test(test))) => {
                    // Held until the test ends: its share of the memory budget.
                    match self.options.limits.admit(&test) {
                        Err(e) => self.refuse(&e)?,
                        Ok(_memory) => match self.one(&test) {
                            Ok(()) => tests += 1,
                            Err(e) => {
                                let _ = self.send(&ToClient::Failed { why: e.to_string() });
                                return Err(e);
                            }
                        },
                    }
                }
                Ok(Some(_)) => {
                    let why = OUT_OF_TURN.to_owned();
                    let _ = self.send(&ToClient::Failed { why: why.clone() });
                    return Err(Error::Environment(why));
                }
                Ok(None) => {
                    let why = "nothing was asked for too long".to_owned();
                    let _ = self.send(&ToClient::Failed { why: why.clone() });
                    return Err(Error::Environment(why));
                }
                Err(_) if tests > 0 => return Ok(tests),
                Err(e) => return Err(e),
            }
        }
    }

    /// Runs one test, from its request to its report.
    fn one(&mut self, test: &Test) -> Result<()> {
        let mut endpoint = match Endpoint::open(&self.local, test, self.options.data_ports.as_ref())
        {
            Ok(endpoint) => endpoint,
            Err(e) => return self.refuse(&e),
        };
        let assignment = match Assignment::take(self, test) {
            Ok(assignment) => assignment,
            Err(e) => return self.refuse(&e),
        };
        self.send(&ToClient::Ready(Ready {
            token: endpoint.token.clone(),
            ports: endpoint.ports.clone(),
            path: endpoint.path.as_ref().map(|p| p.display().to_string()),
            pinned: assignment.assignments.cpus.clone(),
            why: assignment.assignments.why.clone(),
            allowed: assignment.assignments.allowed.clone(),
            service_ns: self.client().service_ns(test),
        }))?;
        let peer =
            PeerTest::prepare(&mut endpoint, test, &self.client(), &assignment.assignments.cpus)?;
        let result = std::thread::scope(|threads| {
            peer.start(threads);
            let result = match peer.broken() {
                None => self.conduct(&peer, test),
                Some(e) => Err(e),
            };
            peer.end();
            result
        });
        result?;
        self.send(&ToClient::Report(Box::new(peer.report())))
    }

    /// Answers marks until the client ends the test.
    fn conduct(&mut self, peer: &PeerTest<'_>, test: &Test) -> Result<()> {
        self.send(&ToClient::Connected { warnings: peer.warnings() })?;
        // Setup and end take time too.
        let until = Instant::now() + Duration::from_nanos(test.max_time_ns.0) + peer::SLACK;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.next(left)? {
                Some(ToServer::Mark) => self.send(&ToClient::Marked(Box::new(peer.mark())))?,
                Some(ToServer::Quiet) => self.send(&ToClient::Marked(Box::new(peer.quiet())))?,
                Some(ToServer::Finish) => return Ok(()),
                Some(_) => return Err(Error::Environment(OUT_OF_TURN.into())),
                None => {
                    return Err(Error::Environment(format!(
                        "the test took longer than it had asked for ({})",
                        Nanos(test.max_time_ns.0)
                    )));
                }
            }
        }
    }
}

/// The CPUs of a test's threads, released when dropped.
struct Assignment<'a> {
    assignments: Assignments,
    taken: &'a Mutex<Vec<CpuId>>,
}

impl<'a> Assignment<'a> {
    fn take(session: &Session<'a>, test: &Test) -> Result<Self> {
        let mut taken = session.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let assignments = peer::choose_cpus(test, &session.client(), &taken)?;
        taken.extend(&assignments.cpus);
        Ok(Self { assignments, taken: session.taken })
    }
}

impl Drop for Assignment<'_> {
    fn drop(&mut self) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        for cpu in &self.assignments.cpus {
            if let Some(at) = taken.iter().position(|t| t == cpu) {
                taken.swap_remove(at);
            }
        }
    }
}
