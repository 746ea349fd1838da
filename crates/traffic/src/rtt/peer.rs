//! A server thread with many flows.

use std::{
    collections::HashMap,
    io,
    net::SocketAddr,
    os::fd::{AsRawFd, RawFd},
};

use model::measure::Engine;
use socket2::{SockAddr, Socket};

use super::{
    exchange::{echo_number, stamp_cpu, stamp_overrun},
    single::{self, RttShape},
    uring,
};
use crate::{
    engine::{
        ran_on::{RanOn, current_cpu},
        rx_cpu_samples::RxCpuSamples,
        service_time::serve_for,
        worker_pool::{Worker, WorkerPool},
    },
    net::{data_flow::DataFlow, epoll::Epoll, options, sys},
};

const LOOK_EVERY: u64 = 1024;

/// Buffer size for as many messages as can arrive at once, within bounds.
pub fn several(bytes: u64, queue_depth: u32) -> u64 {
    bytes.saturating_mul(queue_depth.into()).min(256 << 10).max(bytes).max(64)
}

/// Answers on this thread's flows until the pool ends. `greeting` is the start of this session's
/// UDP greetings.
pub fn run(
    flows: &[DataFlow],
    shape: &RttShape,
    queue_depth: u32,
    engine: Engine,
    greeting: &[u8],
    pool: &WorkerPool,
    worker: &Worker,
) {
    let uses = |name| worker.see(|seen| seen.used(name));
    for flow in flows {
        if let Some(why) = options::prepare(&flow.socket, shape.wait) {
            worker.see(|seen| seen.warnings.push(why));
        }
    }
    match flows {
        [] => {}
        [one] if !one.peers.is_empty() => {
            uses(uring::EPOLL);
            datagrams(one, shape, greeting, pool, worker);
        }
        // A datagram is one message, however many are in transit.
        [one] if !shape.stream() || queue_depth == 1 && engine != Engine::Epoll => {
            uses(single::PLAIN);
            single::peer(one.socket.as_raw_fd(), shape, greeting, pool, worker);
        }
        many => {
            let fds: Vec<RawFd> = many.iter().map(|f| f.socket.as_raw_fd()).collect();
            let (incoming, outgoing) = (shape.request_bytes, shape.response_bytes);
            match uring::flows(engine, &fds, incoming, outgoing, queue_depth, worker) {
                Some(flows) => uring::peer::run(flows, &fds, shape, pool, worker),
                None => {
                    uses(uring::EPOLL);
                    streams(&fds, shape, queue_depth, pool, worker);
                }
            }
        }
    }
}

/// State of a request stream.
#[derive(Debug, Clone, Copy)]
struct Asking {
    fd: RawFd,
    got: u64,
    unsent: u64,
    full: bool,
    open: bool,
}

struct Streams<'a> {
    shape: &'a RttShape,
    epoll: Epoll,
    flows: Vec<Asking>,
    room: Vec<u8>,
    responses: Vec<u8>,
    ran_on: RanOn,
    done: u64,
}

fn streams(fds: &[RawFd], shape: &RttShape, queue_depth: u32, pool: &WorkerPool, worker: &Worker) {
    let Ok(epoll) = Epoll::new() else { return };
    worker.see(|seen| seen.warnings.extend(epoll.busy_poll(shape.wait)));
    for (key, fd) in fds.iter().enumerate() {
        if epoll.add(*fd, key).is_err() {
            return;
        }
    }
    let several = |bytes| several(bytes, queue_depth);
    // Responses are sent together only if requests arrived together.
    let batch = (several(shape.response_bytes) / shape.response_bytes).max(1);
    let mut all = Streams {
        shape,
        epoll,
        flows: fds
            .iter()
            .map(|fd| Asking { fd: *fd, got: 0, unsent: 0, full: false, open: true })
            .collect(),
        room: vec![0; several(shape.request_bytes) as usize],
        responses: vec![0; (batch * shape.response_bytes) as usize],
        ran_on: RanOn::default(),
        done: 0,
    };
    let mut rx_cpus = RxCpuSamples::new(fds.first().copied().unwrap_or(-1));
    let mut looked = 0;
    while !pool.stopping() {
        all.epoll.wait(shape.wait, u64::MAX);
        let mut n = 0;
        while let Some(ready) = all.epoll.nth(n) {
            n += 1;
            if ready.writable {
                all.push(ready.key);
            }
            if ready.readable {
                all.hear(ready.key, pool);
            }
        }
        worker.handled(all.done);
        if all.done - looked >= LOOK_EVERY {
            looked = all.done;
            rx_cpus.sample();
        }
    }
    worker.see(|seen| {
        rx_cpus.add_to(seen);
        all.ran_on.tell(seen);
    });
}

impl Streams<'_> {
    fn hear(&mut self, key: usize, pool: &WorkerPool) {
        let Some(flow) = self.flows.get_mut(key).filter(|f| f.open) else { return };
        let n = match sys::recv(flow.fd, &mut self.room, libc::MSG_DONTWAIT) {
            Ok(n @ 1..) => n,
            Err(e)
                if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) =>
            {
                return;
            }
            _ => {
                flow.open = false;
                let fd = flow.fd;
                let _ = self.epoll.remove(fd);
                return;
            }
        };
        flow.got += n as u64;
        let whole = flow.got / self.shape.request_bytes;
        if whole == 0 {
            return;
        }
        flow.got %= self.shape.request_bytes;
        flow.unsent += whole * self.shape.response_bytes;
        let overrun = serve_for(self.shape.service_ns.saturating_mul(whole), pool) / whole;
        self.done += whole;
        let cpu = current_cpu();
        (0..whole).for_each(|_| self.ran_on.on(cpu));
        for response in self.responses.chunks_mut(self.shape.response_bytes as usize) {
            stamp_cpu(self.shape.transport, response, cpu);
            stamp_overrun(response, overrun);
        }
        self.push(key);
    }

    /// Sends a flow's pending bytes while the socket has room.
    fn push(&mut self, key: usize) {
        let Some(flow) = self.flows.get_mut(key).filter(|f| f.open) else { return };
        while flow.unsent > 0 {
            // Continues within a response if the last send ended there.
            let into = (self.shape.response_bytes - flow.unsent % self.shape.response_bytes)
                % self.shape.response_bytes;
            let most = self.responses.len() as u64 - into;
            let length = flow.unsent.min(most) as usize;
            let bytes = self.responses.get(into as usize..).and_then(|b| b.get(..length));
            let bytes = bytes.unwrap_or_default();
            match sys::send(flow.fd, bytes, libc::MSG_DONTWAIT).map_err(|e| e.kind()) {
                Ok(n) => flow.unsent -= n as u64,
                Err(io::ErrorKind::Interrupted) => {}
                Err(io::ErrorKind::WouldBlock) => break,
                Err(_) => {
                    flow.open = false;
                    let fd = flow.fd;
                    let _ = self.epoll.remove(fd);
                    return;
                }
            }
        }
        let full = flow.unsent > 0;
        if full != flow.full {
            flow.full = full;
            let _ = self.epoll.want(flow.fd, key, full);
        }
    }
}

/// Serves UDP flows that share one socket: answers only clients that greeted.
fn datagrams(
    flow: &DataFlow,
    shape: &RttShape,
    greeting: &[u8],
    pool: &WorkerPool,
    worker: &Worker,
) {
    let socket = &flow.socket;
    let Ok(mut epoll) = Epoll::new() else { return };
    worker.see(|seen| seen.warnings.extend(epoll.busy_poll(shape.wait)));
    if epoll.add(socket.as_raw_fd(), 0).is_err() {
        return;
    }
    let known: HashMap<SocketAddr, SockAddr> =
        flow.peers.keys().map(|a| (*a, SockAddr::from(*a))).collect();
    let mut room = vec![0u8; 65_536];
    let mut response = vec![0u8; shape.response_bytes as usize];
    let (mut done, mut ran_on, mut rx_cpus) =
        (0u64, RanOn::default(), RxCpuSamples::new(socket.as_raw_fd()));
    while !pool.stopping() {
        epoll.wait(shape.wait, u64::MAX);
        // Reads all available datagrams, up to a bound so that the end is noticed.
        for _ in 0..256 {
            let Some((n, from)) = receive_from(socket, &mut room) else { break };
            let Some(to) = from.and_then(|a| known.get(&a)) else { continue };
            let datagram = room.get(..n).unwrap_or_default();
            if datagram.starts_with(greeting) {
                let _ = socket.send_to(datagram, to);
                continue;
            }
            echo_number(datagram, &mut response);
            serve_for(shape.service_ns, pool);
            let cpu = current_cpu();
            stamp_cpu(shape.transport, &mut response, cpu);
            let _ = socket.send_to(&response, to);
            done += 1;
            ran_on.on(cpu);
            if done.is_multiple_of(LOOK_EVERY) {
                rx_cpus.sample();
            }
        }
        worker.handled(done);
    }
    worker.see(|seen| {
        rx_cpus.add_to(seen);
        ran_on.tell(seen);
    });
}

fn receive_from(socket: &Socket, room: &mut [u8]) -> Option<(usize, Option<SocketAddr>)> {
    // SAFETY: initialised bytes are valid as possibly uninitialised ones, and the kernel only
    // writes initialised ones.
    let room = unsafe { std::slice::from_raw_parts_mut(room.as_mut_ptr().cast(), room.len()) };
    let (n, from) = socket.recv_from_with_flags(room, libc::MSG_DONTWAIT).ok()?;
    Some((n, from.as_socket()))
}
