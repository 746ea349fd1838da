//! One client, from its cookie to its results.

use std::{
    cell::Cell,
    net::SocketAddr,
    sync::{
        PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::RecvTimeoutError,
    },
    thread,
    time::{Duration, Instant},
};

use socket2::{SockRef, Socket, TcpKeepalive};

use super::{
    Event,
    registry::{Arrival, Registry},
    running::Running,
    session::{End, Session},
    udp,
};
use crate::iperf3::{
    flow::{Flow, FlowThreads, Load},
    params::{Code, Params, Refused},
    results, sock,
    wire::{
        Broken, Control, Cookie, IperfState, PARAMS_LIMIT, UDP_OLD_HELLO, UDP_OLD_REPLY, UDP_REPLY,
        Until,
    },
};

/// Longest wait for new streams before checking the control connection.
const SHORT: Duration = Duration::from_millis(10);
/// Longest wait for another client of the same host to finish opening UDP streams.
const TURN: Duration = Duration::from_secs(60);
/// How much longer than announced a client may test before it counts as lost.
const GRACE: Duration = Duration::from_secs(40);

pub fn run(
    control: Control,
    client: SocketAddr,
    cookie: Cookie,
    registry: &Registry,
    stop: &AtomicBool,
    on_event: &(dyn Fn(Event) + Sync),
) {
    let session = Session {
        control: &control,
        client,
        cookie,
        registry,
        stop,
        on_event,
        begun: Cell::new(false),
    };
    keep_alive(&control, registry.limits.idle);
    let event = match session.serve() {
        Ok(finished) => finished,
        Err(end) => {
            let why = session.goodbye(end);
            match session.begun.get() {
                true => Event::Broken { client, why },
                false => Event::TurnedAway { client, why },
            }
        }
    };
    on_event(event);
}

/// Enables keepalive, so that a vanished client is detected even if nothing is sent to it, or if
/// the last data was never acknowledged (which the kernel would retransmit for 15 minutes).
fn keep_alive(control: &Control, idle: Duration) {
    let every = Duration::from_secs(5).min(idle.max(Duration::from_secs(1)));
    let keep = TcpKeepalive::new().with_time(every).with_interval(every).with_retries(3);
    let socket = SockRef::from(control.socket());
    // Without keepalive, a vanished client is held until the test's time is over.
    let _ = socket.set_tcp_keepalive(&keep);
    let _ = socket.set_tcp_user_timeout(Some(every * 4));
}

impl Session<'_> {
    fn serve(&self) -> Result<Event, End> {
        self.control.say(IperfState::ParamExchange)?;
        let asked = self.control.read_json(PARAMS_LIMIT, "parameters", self.step())?;
        let asked = Params::read(&asked)?;
        if asked.auth {
            return Err(Refused::new(Code::Auth, "it sent credentials: not supported").into());
        }
        let limits = self.registry.limits;
        let many = || {
            let why = "the server has as many streams as it may: try again later";
            Refused::new(Code::CreateStream, why)
        };
        let _streams = self.registry.streams(asked.streams()).ok_or_else(many)?;
        let _memory = self.registry.memory(Load::memory(&asked)).ok_or_else(many)?;
        let sockets = match asked.udp {
            true => self.open_udp(&asked)?,
            false => self.open_tcp(&asked)?,
        };
        let flows = self.flows(&asked, sockets)?;
        let load = Load::new(&asked)
            .map_err(|e| Refused::io(Code::CreateStream, "no memory for the payload", &e))?;
        self.control.say(IperfState::TestStart)?;
        self.begun.set(true);
        (self.on_event)(Event::Started { client: self.client, what: describe(&asked) });
        let longest = match asked.time_s {
            0 => limits.duration,
            s => Duration::from_secs(s.saturating_add(asked.omit_s)).saturating_add(GRACE),
        };
        let longest = longest.min(limits.duration);
        thread::scope(|scope| {
            let cpus: Vec<u32> = asked.server_cpu.into_iter().collect();
            let pool = FlowThreads::start(scope, &flows, &load, &cpus)
                .map_err(|e| Refused::io(Code::CreateStream, "no thread for a stream", &e))?;
            Running { session: self, asked: &asked, flows: &flows, pool: &pool }.run(longest)
        })
    }

    /// Waits for the client's TCP streams, each with the cookie.
    fn open_tcp(&self, asked: &Params) -> Result<Vec<Socket>, End> {
        let busy = || End::Broken(Broken::Garbage("a cookie that is in use".into()));
        let ticket = self.registry.await_cookie(self.cookie).ok_or_else(busy)?;
        self.control.say(IperfState::CreateStreams)?;
        let until = self.step();
        let mut sockets: Vec<(u64, Socket)> = Vec::new();
        while sockets.len() < asked.streams() {
            match ticket.arrivals.recv_timeout(SHORT) {
                Ok(Arrival::Tcp(order, socket)) => sockets.push((order, socket)),
                Ok(Arrival::Udp(..)) | Err(RecvTimeoutError::Disconnected) => {}
                Err(RecvTimeoutError::Timeout) => self.still_there(until)?,
            }
        }
        // The cookies may have arrived in another order than the connections.
        sockets.sort_by_key(|s| s.0);
        Ok(sockets.into_iter().map(|s| s.1).collect())
    }

    /// Opens the UDP streams: the client sends a datagram for each and waits for the answer.
    fn open_udp(&self, asked: &Params) -> Result<Vec<Socket>, End> {
        let turn = Until::after(TURN, self.stop);
        let ticket = loop {
            if let Some(ticket) = self.registry.await_host(self.client.ip()) {
                break ticket;
            }
            self.still_there(turn)?;
            thread::sleep(SHORT);
        };
        self.control.say(IperfState::CreateStreams)?;
        let until = self.step();
        let mut sockets = Vec::new();
        while sockets.len() < asked.streams() {
            match ticket.arrivals.recv_timeout(SHORT) {
                Ok(Arrival::Udp(socket, text)) => {
                    self.prepare(&socket, asked)?;
                    let answer = if text == UDP_OLD_HELLO { UDP_OLD_REPLY } else { UDP_REPLY };
                    socket
                        .send(&answer)
                        .map_err(|e| Refused::io(Code::AcceptStream, "cannot answer", &e))?;
                    sockets.push(socket);
                }
                Ok(Arrival::Tcp(..)) | Err(RecvTimeoutError::Disconnected) => {}
                Err(RecvTimeoutError::Timeout) => self.still_there(until)?,
            }
        }
        let strays = sockets.iter().flat_map(udp::late_strays);
        let all = self.registry.strays.lock();
        all.unwrap_or_else(PoisonError::into_inner).extend(strays);
        Ok(sockets)
    }

    /// Checks, during another wait, whether the client has disconnected or is late.
    fn still_there(&self, until: Until) -> Result<(), End> {
        match self.control.listen(Duration::ZERO)? {
            None => {}
            Some(IperfState::ClientTerminate) => return Err(End::Terminated),
            Some(state) => return Err(Broken::Garbage(format!("{state:?} too early")).into()),
        }
        if self.stop.load(Ordering::Relaxed) {
            return Err(Broken::Stopped.into());
        }
        if Instant::now() >= until.at {
            return Err(End::Terminate("it did not open its streams in time".into()));
        }
        Ok(())
    }

    fn prepare(&self, socket: &Socket, asked: &Params) -> Result<(), Refused> {
        let mut warnings = Vec::new();
        sock::apply(socket, asked, false, &mut warnings)?;
        for what in warnings {
            (self.on_event)(Event::Warned { client: self.client, what: what.to_string() });
        }
        Ok(())
    }

    fn flows(&self, asked: &Params, sockets: Vec<Socket>) -> Result<Vec<Flow>, End> {
        let mut flows = Vec::with_capacity(sockets.len());
        for (n, socket) in sockets.into_iter().enumerate() {
            if !asked.udp {
                self.prepare(&socket, asked)?;
                // Limits how long unacknowledged data is kept.
                let _ = socket.set_tcp_user_timeout(Some(self.registry.limits.idle));
            }
            flows.push(Flow::new(results::stream_id(n), !asked.client_sends(n), socket));
        }
        Ok(flows)
    }
}

/// Description for the log, such as `UDP, reverse, 4 streams, iperf3 3.12`.
fn describe(asked: &Params) -> String {
    let transport = if asked.udp { "UDP" } else { "TCP" };
    let way = match (asked.reverse, asked.bidirectional) {
        (_, true) => "both ways",
        (true, _) => "reverse",
        _ => "forward",
    };
    let streams = if asked.parallel == 1 { "" } else { "s" };
    let version = match asked.client_version.as_str() {
        "" => String::new(),
        v => format!(", iperf3 {v}"),
    };
    format!("{transport}, {way}, {} stream{streams}{version}", asked.parallel)
}
