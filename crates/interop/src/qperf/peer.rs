//! The server's data loops: count messages, and return them if the test requires it.
//!
//! As in the real server, a message counts if it is complete and arrived in time.

use std::{
    hint, io,
    net::{IpAddr, UdpSocket},
    os::fd::AsRawFd,
};

use probe::samples::clock::monotonic_ns;

use super::{
    data::{self, Got, Over, Watch},
    wire::Counts,
};

/// Streams are transferred in pieces of at most this size: messages may be larger, and their
/// content is irrelevant.
const PIECE: usize = 1 << 20;
/// Size limit of a datagram.
const DATAGRAM: usize = 1 << 16;
/// Consecutive failures that end a test.
const FAILURES: u32 = 1000;

/// Memory in bytes for messages of this size.
pub fn buffer_bytes(message: u32) -> usize {
    (message as usize).clamp(DATAGRAM, PIECE)
}

/// Parameters of the loops.
#[derive(Debug)]
pub struct LoopParameters {
    /// Message size in bytes.
    pub message: usize,
    /// Read every received byte.
    pub look: bool,
    /// Service time before each answer.
    pub service_ns: u64,
}

#[derive(Debug, Default, Clone, Copy)]
pub struct EndCounts {
    pub sent: Counts,
    pub received: Counts,
}

impl LoopParameters {
    fn buffer(&self, most: usize) -> Vec<u8> {
        vec![0; self.message.clamp(1, most)]
    }

    fn look_at(&self, bytes: &[u8]) {
        if self.look {
            hint::black_box(bytes.iter().fold(0, |a, b| a ^ b));
        }
    }

    /// Spins for the service time, unless the test ends before.
    fn serve(&self, watch: &Watch<'_>) {
        if self.service_ns > 0 {
            let end = monotonic_ns().saturating_add(self.service_ns);
            while monotonic_ns() < end && watch.goes_on() {
                hint::spin_loop();
            }
        }
    }

    /// TCP: receives messages, and returns them if `answer`.
    pub fn stream(
        &self,
        fd: &impl AsRawFd,
        answer: bool,
        watch: &mut Watch<'_>,
    ) -> (EndCounts, Over) {
        let (fd, mut buffer, mut counts) =
            (fd.as_raw_fd(), self.buffer(PIECE), EndCounts::default());
        loop {
            if let Err(over) = self.receive_all(fd, &mut buffer, &mut counts, answer, watch) {
                return (counts, over);
            }
            if answer {
                self.serve(watch);
                if let Err(over) = self.send_all(fd, &buffer, watch) {
                    return (counts, over);
                }
                counts.sent.bytes += self.message as u64;
                counts.sent.messages += 1;
            }
        }
    }

    /// Receives one message. In a one-way test every byte counts on arrival; otherwise only whole
    /// messages count.
    fn receive_all(
        &self,
        fd: i32,
        buffer: &mut [u8],
        counts: &mut EndCounts,
        whole: bool,
        watch: &mut Watch<'_>,
    ) -> Result<(), Over> {
        let mut left = self.message;
        while left > 0 {
            let most = left.min(buffer.len());
            let Some(into) = buffer.get_mut(..most) else { return Err(Over::Closed) };
            match data::receive(fd, into, 0) {
                Got::Bytes(0) => return Err(Over::Closed),
                Got::Bytes(n) => {
                    watch.heard()?;
                    self.look_at(into.get(..n).unwrap_or_default());
                    left = left.saturating_sub(n);
                    if !whole {
                        counts.received.bytes += n as u64;
                    }
                }
                Got::Nothing => watch.quiet()?,
                Got::Failed => {
                    counts.received.errors += 1;
                    return Err(Over::Closed);
                }
            }
        }
        if whole {
            counts.received.bytes += self.message as u64;
        }
        counts.received.messages += 1;
        Ok(())
    }

    fn send_all(&self, fd: i32, buffer: &[u8], watch: &mut Watch<'_>) -> Result<(), Over> {
        let mut left = self.message;
        while left > 0 {
            let piece = buffer.get(..left.min(buffer.len())).unwrap_or(buffer);
            match data::send(fd, piece, 0) {
                Got::Bytes(n) => {
                    left = left.saturating_sub(n);
                    // A client that reads a large message slowly must not hold us beyond the end.
                    if left > 0 {
                        watch.heard()?;
                    }
                }
                Got::Nothing => watch.quiet()?,
                Got::Failed => return Err(Over::Closed),
            }
        }
        Ok(())
    }

    /// UDP: receives from one sender at `from`, and returns the datagrams if `answer`.
    pub fn datagrams(
        &self,
        socket: &UdpSocket,
        from: IpAddr,
        answer: bool,
        watch: &mut Watch<'_>,
    ) -> (EndCounts, Over) {
        let (fd, mut buffer, mut counts) =
            (socket.as_raw_fd(), self.buffer(DATAGRAM), EndCounts::default());
        let mut first = match self.first(socket, from, &mut buffer, &mut counts, watch) {
            Ok(n) => Some(n),
            Err(over) => return (counts, over),
        };
        let mut failures = 0;
        loop {
            let got = match first.take() {
                Some(n) => Got::Bytes(n),
                None => data::receive(fd, &mut buffer, 0),
            };
            let over = match got {
                Got::Bytes(n) => {
                    failures = 0;
                    watch.heard().and_then(|()| {
                        counts.received.bytes += n as u64;
                        counts.received.messages += 1;
                        let bytes = buffer.get(..n).unwrap_or_default();
                        self.look_at(bytes);
                        if answer { self.answer(fd, bytes, &mut counts, watch) } else { Ok(()) }
                    })
                }
                Got::Nothing => watch.quiet(),
                // ECONNREFUSED: an answer found no listener. The client may have ended.
                Got::Failed => {
                    counts.received.errors += 1;
                    failures += 1;
                    if failures < FAILURES { watch.quiet() } else { Err(Over::Closed) }
                }
            };
            if let Err(over) = over {
                return (counts, over);
            }
        }
    }

    /// Waits for the client's first datagram, then connects to its sender: this socket must answer
    /// only the client of the test.
    fn first(
        &self,
        socket: &UdpSocket,
        from: IpAddr,
        buffer: &mut [u8],
        counts: &mut EndCounts,
        watch: &mut Watch<'_>,
    ) -> Result<usize, Over> {
        loop {
            match socket.recv_from(buffer) {
                Ok((n, sender)) if sender.ip() == from => {
                    if socket.connect(sender).is_err() {
                        counts.received.errors += 1;
                        return Err(Over::Closed);
                    }
                    return Ok(n);
                }
                Ok(_) => watch.quiet()?,
                Err(e) => {
                    let waiting = [io::ErrorKind::WouldBlock, io::ErrorKind::Interrupted];
                    if !waiting.contains(&e.kind()) {
                        counts.received.errors += 1;
                    }
                    watch.quiet()?;
                }
            }
        }
    }

    fn answer(
        &self,
        fd: i32,
        bytes: &[u8],
        counts: &mut EndCounts,
        watch: &mut Watch<'_>,
    ) -> Result<(), Over> {
        self.serve(watch);
        match data::send(fd, bytes, 0) {
            Got::Bytes(n) => {
                counts.sent.bytes += n as u64;
                counts.sent.messages += 1;
            }
            Got::Nothing => watch.quiet()?,
            Got::Failed => counts.sent.errors += 1,
        }
        Ok(())
    }
}
