//! One flow on one thread, one request outstanding: a plain `send` and `recv` at each end, with no
//! other cost. Sockets are blocking; spinning uses `MSG_DONTWAIT`.

use std::{io, os::fd::RawFd};

use model::measure::{Transport, Wait};

use super::exchange::{
    NUMBER, answers, echo_number, read_cpu, read_overrun, stamp_cpu, stamp_number, stamp_overrun,
};
use crate::{
    Error,
    engine::{
        ran_on::{RanOn, UNKNOWN_CPU, current_cpu},
        rtt_recorder::RttRecorder,
        rx_cpu_samples::RxCpuSamples,
        service_time::serve_for,
        wait::{Nothing, receive, send_all, server_gone},
        window::Window,
        worker_pool::{Worker, WorkerPool},
    },
    net::now_ns,
};

/// I/O engine: one call for each message on the thread's only socket.
pub const PLAIN: &str = "send/recv";

#[derive(Debug, Clone, Copy)]
pub struct RttShape {
    pub transport: Transport,
    pub request_bytes: u64,
    pub response_bytes: u64,
    pub wait: Wait,
    /// UDP: timeout after which a request counts as lost.
    pub timeout_ns: u64,
    /// Time this end spins for each message: the service time at the server, the think time between
    /// a response and the next request at the client.
    pub service_ns: u64,
    /// Whether round trips exclude by how much the server's service time took longer than requested,
    /// as its responses say (client; not for UDP).
    pub without_overrun: bool,
    /// Whether the server is another program that echoes each request.
    pub echo: bool,
}

impl RttShape {
    pub fn stream(&self) -> bool {
        self.transport != Transport::Udp
    }

    /// The server's CPU from a response.
    #[inline]
    fn peer_cpu(&self, response: &[u8]) -> u16 {
        if self.echo {
            UNKNOWN_CPU
        } else {
            read_cpu(self.transport, self.response_bytes, response)
        }
    }

    /// What a response of a stream says that its round trip is to exclude, nanoseconds.
    #[inline]
    pub fn overrun(&self, head: &[u8]) -> u64 {
        if self.without_overrun { read_overrun(head) } else { 0 }
    }

    /// Whether a datagram answers the last request, by its number.
    #[inline]
    fn answers(&self, response: &[u8], request: &[u8], number: u32) -> bool {
        if self.echo {
            response.iter().zip(request).take(NUMBER).all(|(a, b)| a == b)
        } else {
            answers(response, self.request_bytes, number)
        }
    }
}

/// Reads the receiving CPU once per this many round trips.
const LOOK_EVERY: u64 = 1024;

/// Sends requests and waits for each answer.
pub fn local(
    fd: RawFd,
    shape: &RttShape,
    window: &Window,
    pool: &WorkerPool,
    worker: &Worker,
    recorder: &mut RttRecorder,
) {
    let mut rx_cpus = RxCpuSamples::new(fd);
    let result = match shape.stream() {
        true => local_stream(fd, shape, window, pool, worker, recorder, &mut rx_cpus),
        false => local_datagrams(fd, shape, window, pool, worker, recorder, &mut rx_cpus),
    };
    worker.see(|seen| rx_cpus.add_to(seen));
    if let Err(why) = result {
        pool.break_off(why);
    }
}

fn local_stream(
    fd: RawFd,
    shape: &RttShape,
    window: &Window,
    pool: &WorkerPool,
    worker: &Worker,
    recorder: &mut RttRecorder,
    rx_cpus: &mut RxCpuSamples,
) -> Result<(), Error> {
    let request = vec![0u8; shape.request_bytes as usize];
    let mut room = vec![0u8; shape.response_bytes as usize];
    let (mut done, mut sent_at) = (0u64, now_ns());
    while !pool.stopping() {
        if let Err(e) = send_all(fd, &request, pool) {
            return if pool.stopping() { Ok(()) } else { Err(server_gone(Some(&e))) };
        }
        let mut got = 0;
        while got < room.len() {
            let rest = room.get_mut(got..).unwrap_or_default();
            match receive(fd, rest, shape.wait, true, pool) {
                Ok(n) => got += n,
                Err(Nothing::Look) => {}
                Err(Nothing::Stop) => return Ok(()),
                Err(Nothing::End) => return Err(server_gone(None)),
                Err(Nothing::Broken(e)) => return Err(server_gone(Some(&e))),
            }
        }
        let now = now_ns();
        let peer = shape.peer_cpu(&room);
        let rtt = (now - sent_at).saturating_sub(shape.overrun(&room));
        recorder.record(window, None, now, rtt, peer);
        done += 1;
        worker.handled(done);
        let looked = done.is_multiple_of(LOOK_EVERY);
        if looked {
            rx_cpus.sample();
        }
        serve_for(shape.service_ns, pool);
        sent_at = if looked || shape.service_ns > 0 { now_ns() } else { now };
    }
    Ok(())
}

fn local_datagrams(
    fd: RawFd,
    shape: &RttShape,
    window: &Window,
    pool: &WorkerPool,
    worker: &Worker,
    recorder: &mut RttRecorder,
    rx_cpus: &mut RxCpuSamples,
) -> Result<(), Error> {
    let mut request = vec![0u8; shape.request_bytes as usize];
    // One byte more, to detect a longer datagram.
    let mut room = vec![0u8; shape.response_bytes as usize + 1];
    let (mut done, mut number) = (0u64, 0u32);
    while !pool.stopping() {
        number = number.wrapping_add(1);
        stamp_number(&mut request, number);
        let sent_at = now_ns();
        match send_all(fd, &request, pool) {
            Ok(()) => {}
            Err(_) if pool.stopping() => return Ok(()),
            // An ICMP error says that nothing listens: count a loss at once, and limit the rate.
            Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => {
                return Err(server_gone(Some(&e)));
            }
            // No room in the queue: equivalent to a loss, but at a limited rate.
            Err(_) => std::thread::sleep(std::time::Duration::from_millis(1)),
        }
        loop {
            match receive(fd, &mut room, shape.wait, false, pool) {
                Ok(n) => {
                    let now = now_ns();
                    let response = room.get(..n).unwrap_or_default();
                    let whole = n as u64 == shape.response_bytes;
                    if !whole || !shape.answers(response, &request, number) {
                        recorder.late += u64::from(window.holds(now));
                        continue;
                    }
                    let peer = shape.peer_cpu(response);
                    recorder.record(window, None, now, now - sent_at, peer);
                    done += 1;
                    worker.handled(done);
                    if done.is_multiple_of(LOOK_EVERY) {
                        rx_cpus.sample();
                    }
                    serve_for(shape.service_ns, pool);
                    break;
                }
                Err(Nothing::Look | Nothing::End) => {
                    let now = now_ns();
                    if now - sent_at >= shape.timeout_ns {
                        recorder.lost += u64::from(window.holds(now));
                        break;
                    }
                }
                Err(Nothing::Stop) => return Ok(()),
                Err(Nothing::Broken(e)) => return Err(server_gone(Some(&e))),
            }
        }
    }
    Ok(())
}

/// Answers requests. `greeting` is the UDP greeting, which is echoed if it arrives late.
pub fn peer(fd: RawFd, shape: &RttShape, greeting: &[u8], pool: &WorkerPool, worker: &Worker) {
    let mut rx_cpus = RxCpuSamples::new(fd);
    let mut ran_on = RanOn::default();
    let mut response = vec![0u8; shape.response_bytes as usize];
    let length = if shape.stream() { shape.request_bytes } else { 65_536 };
    let mut room = vec![0u8; length as usize];
    let mut done = 0u64;
    'requests: while !pool.stopping() {
        let mut got = 0;
        while got < shape.request_bytes as usize {
            let rest = room.get_mut(got..).unwrap_or_default();
            match receive(fd, rest, shape.wait, shape.stream(), pool) {
                Ok(n) if shape.stream() => got += n,
                Ok(n) => {
                    let datagram = room.get(..n).unwrap_or_default();
                    if !greeting.is_empty() && datagram.starts_with(greeting) {
                        let _ = send_all(fd, datagram, pool);
                        continue;
                    }
                    echo_number(datagram, &mut response);
                    got = shape.request_bytes as usize;
                }
                Err(Nothing::Look) => {}
                // The client closed its port: it has ended.
                Err(Nothing::Broken(_)) if !shape.stream() => {}
                Err(_) => break 'requests,
            }
            if pool.stopping() {
                break 'requests;
            }
        }
        let overrun = serve_for(shape.service_ns, pool);
        let cpu = current_cpu();
        stamp_cpu(shape.transport, &mut response, cpu);
        if shape.stream() {
            stamp_overrun(&mut response, overrun);
        }
        if send_all(fd, &response, pool).is_err() && shape.stream() {
            break;
        }
        done += 1;
        ran_on.on(cpu);
        worker.handled(done);
        if done.is_multiple_of(LOOK_EVERY) {
            rx_cpus.sample();
        }
    }
    worker.see(|seen| {
        rx_cpus.add_to(seen);
        ran_on.tell(seen);
    });
}
