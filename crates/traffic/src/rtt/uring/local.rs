//! The client on io_uring.

use std::os::fd::RawFd;

use super::flows::{FlowEvent, UringFlows};
use crate::{
    Error,
    engine::{rtt_recorder::RttRecorder, rx_cpu_samples::RxCpuSamples, wait::server_gone},
    net::now_ns,
    rtt::{
        flow::{Answer, Flow},
        many::RttClient,
    },
};

/// Reads the receiving CPU once per this many answers.
const LOOK_EVERY: u64 = 1024;

/// State of a thread.
struct UringLoop<'r> {
    flows: Vec<Flow>,
    uring: UringFlows,
    recorder: &'r mut RttRecorder,
    rx_cpus: RxCpuSamples,
    done: u64,
}

/// Runs one thread's flows in closed loop until the pool ends.
pub fn run(local: &RttClient<'_>, uring: UringFlows, fds: &[RawFd], recorder: &mut RttRecorder) {
    let mut state = UringLoop {
        flows: fds.iter().map(|fd| Flow::new(*fd, local.queue_depth)).collect(),
        uring,
        recorder,
        rx_cpus: RxCpuSamples::new(fds.first().copied().unwrap_or(-1)),
        done: 0,
    };
    let result = go(local, &mut state);
    local.worker.see(|seen| state.rx_cpus.add_to(seen));
    if let Err(why) = result {
        local.pool.break_off(why);
    }
}

fn go(local: &RttClient<'_>, state: &mut UringLoop<'_>) -> Result<(), Error> {
    let failed = |e| Error::io("io_uring", &e);
    for key in 0..state.flows.len() {
        ask(state, key, local.queue_depth, now_ns());
    }
    while !local.pool.stopping() {
        state.uring.exchange(local.shape.wait).map_err(failed)?;
        while let Some(event) = state.uring.next().map_err(failed)? {
            match event {
                FlowEvent::Bytes { key, buffer, length } => hear(local, state, key, buffer, length),
                FlowEvent::End => return Err(server_gone(None)),
                FlowEvent::Broken { why } => return Err(server_gone(Some(&why))),
            }
        }
        local.worker.handled(state.done);
    }
    Ok(())
}

#[inline]
fn ask(state: &mut UringLoop<'_>, key: usize, requests: u32, now: u64) {
    let Some(flow) = state.flows.get_mut(key) else { return };
    (0..requests).for_each(|_| flow.expect(now, now));
    state.uring.enqueue(key, requests.into());
}

#[inline]
fn hear(local: &RttClient<'_>, state: &mut UringLoop<'_>, key: usize, buffer: u16, length: usize) {
    let Some(flow) = state.flows.get_mut(key) else { return };
    let recorder = &mut *state.recorder;
    let (mut heard, now) = (0u32, now_ns());
    let bytes = state.uring.bytes(buffer, length);
    flow.take(local.shape, bytes, |Answer { asked, peer_cpu, .. }| {
        heard += 1;
        recorder.record(local.window, None, now, now.saturating_sub(asked.due_ns), peer_cpu);
    });
    state.uring.give(buffer);
    if heard == 0 {
        return;
    }
    let fd = flow.fd;
    ask(state, key, heard, now);
    state.done += u64::from(heard);
    if state.done % LOOK_EVERY < u64::from(heard) {
        state.rx_cpus.turn_to(fd);
        state.rx_cpus.sample();
    }
}
