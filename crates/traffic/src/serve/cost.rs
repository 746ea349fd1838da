//! Memory that a test needs, computed from its request before anything is allocated. Kernel buffers
//! are not counted: the kernel limits them itself.

use model::measure::{Transport, ZeroCopy};

use crate::{
    connect,
    control::message::{Test, TestKind},
    rtt::{peer, uring},
    stream::receive,
};

/// The session's thread, its messages and its report, in bytes.
const SESSION: u64 = 512 << 10;
/// A thread's touched stack and its counters, in bytes.
const THREAD: u64 = 64 << 10;
/// A data connection, in bytes: its socket, counters, and place in an io_uring.
const FLOW: u64 = 1 << 10;
/// A connection open in a `connect` test, in bytes.
const OPEN: u64 = 256;
const DATAGRAM: u64 = 64 << 10;

/// Bytes that a test allocates. Saturates, so any numbers are accepted.
pub fn memory_bytes(test: &Test) -> u64 {
    let threads = u64::from(test.threads);
    let flows = u64::from(test.flows);
    // A thread without a flow has no buffers.
    let busy = threads.min(flows);
    let each = match &test.kind {
        TestKind::Look => 0,
        // The pieces of a probe, a batch of them, and a receive buffer.
        TestKind::Offload(_) => 1 << 20,
        TestKind::Rtt { request_bytes, response_bytes, .. } if test.transport == Transport::Udp => {
            DATAGRAM.max(*request_bytes).saturating_add(*response_bytes)
        }
        TestKind::Rtt { request_bytes, response_bytes, queue_depth } => {
            let several = |bytes: u64| peer::several(bytes, *queue_depth);
            let ring = match flows > busy {
                true => uring::room_bytes(flows.div_ceil(busy.max(1)), several(*request_bytes)),
                false => 0,
            };
            several(*request_bytes).saturating_add(several(*response_bytes)).saturating_add(ring)
        }
        // A buffer to send from, a datagram, a file copy if one is sent, and a receive buffer.
        TestKind::Stream { message_bytes, zerocopy, .. } => {
            let copies = if *zerocopy == Some(ZeroCopy::Sendfile) { 3 } else { 2 };
            message_bytes.saturating_mul(copies).saturating_add(receive::ROOM as u64)
        }
        TestKind::Connect { response_bytes, .. } => {
            let open = connect::peer::most_open(test) as u64;
            connect::peer::ROOM as u64
                + (*response_bytes).min(connect::peer::ROOM as u64)
                + open.saturating_mul(OPEN)
        }
    };
    SESSION
        .saturating_add(threads.saturating_mul(THREAD))
        .saturating_add(flows.saturating_mul(2 * FLOW))
        .saturating_add(busy.saturating_mul(each))
}
