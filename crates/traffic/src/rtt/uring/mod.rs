//! Many streams on one thread with io_uring: one system call sends on all ready flows and waits for
//! data, instead of two calls for each message.
//!
//! The kernel sends and receives for a whole batch of flows before the thread sees the first one.
//! So a round trip includes its batch's time, as with epoll it includes the queue of ready sockets;
//! io_uring completes more of them per second.

mod buffers;
mod flows;
pub mod local;
pub mod peer;
mod ring;

use std::os::fd::RawFd;

use model::{
    Warning,
    measure::{Engine, Wait},
};

pub use flows::UringFlows;

use crate::engine::worker_pool::Worker;

/// Engine name: one call for many messages.
pub const IO_URING: &str = "io_uring";
/// Engine name: one call for each message, on ready sockets.
pub const EPOLL: &str = "epoll";

/// From this many flows on a thread, io_uring has the higher rate.
const FEWEST_FLOWS: usize = 8;
/// Most flows on a thread (the kernel's completion queue is limited to four times as many).
const MOST_FLOWS: usize = 16_384;

/// The engine for all points of a sweep: a change of engine would put a step into the curve that
/// the path does not have. `threads` is the larger of the two ends' thread counts. Of the two
/// engines only epoll is told to poll the NIC's queue (`waits` of both ends).
pub fn of_sweep(engine: Engine, flows: &[u32], threads: u32, waits: [Wait; 2]) -> Engine {
    let of_a_thread = |flows: &u32| (flows / threads.max(1)) as usize;
    let many = |flows: &u32| (FEWEST_FLOWS..MOST_FLOWS).contains(&of_a_thread(flows));
    let several = flows.iter().any(|n| Some(n) != flows.first());
    match engine {
        Engine::Auto if waits.contains(&Wait::BusyPoll) => Engine::Epoll,
        Engine::Auto if several && !flows.iter().all(many) => Engine::Epoll,
        as_asked => as_asked,
    }
}

/// Bytes of receive buffers for a thread's flows, with `several` bytes arriving at once.
pub fn room_bytes(flows: u64, several: u64) -> u64 {
    buffers::room_bytes(usize::try_from(flows).unwrap_or(usize::MAX), several) as u64
}

/// The flows on an io_uring, if that engine was chosen and the kernel permits it.
pub fn flows(
    engine: Engine,
    fds: &[RawFd],
    incoming: u64,
    outgoing: u64,
    queue_depth: u32,
    worker: &Worker,
) -> Option<UringFlows> {
    let few = fds.len() < FEWEST_FLOWS;
    let per_message = [Engine::Epoll, Engine::PerMessage].contains(&engine);
    if per_message || fds.len() > MOST_FLOWS || (few && engine == Engine::Auto) {
        return None;
    }
    match UringFlows::new(fds, incoming, outgoing, queue_depth) {
        Ok(flows) => {
            worker.see(|seen| seen.used(IO_URING));
            Some(flows)
        }
        Err(e) => {
            if engine == Engine::IoUring {
                let why = e.to_string();
                worker.see(|seen| seen.warnings.push(Warning::NoIoUring { why }));
            }
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_has_one_engine() {
        let block = [Wait::Block; 2];
        let auto = |flows: &[u32], threads| of_sweep(Engine::Auto, flows, threads, block);
        assert_eq!(auto(&[1, 8, 64], 1), Engine::Epoll);
        assert_eq!(auto(&[8, 64], 1), Engine::Auto, "io_uring for all");
        assert_eq!(auto(&[8, 64], 2), Engine::Epoll, "a thread of the first has four");
        assert_eq!(auto(&[64], 1), Engine::Auto);
        assert_eq!(auto(&[1, 1], 1), Engine::Auto, "of several sizes");
        assert_eq!(of_sweep(Engine::IoUring, &[1, 8], 1, block), Engine::IoUring, "as asked");
        let polls = [Wait::Block, Wait::BusyPoll];
        assert_eq!(of_sweep(Engine::Auto, &[64], 1, polls), Engine::Epoll, "the NIC's queue");
    }
}
