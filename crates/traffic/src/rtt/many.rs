//! Client threads with many flows, many requests per flow, or a schedule: one epoll for each
//! thread; one `recv` and one `send` for each answer.

use std::{io, os::fd::RawFd};

use super::{
    flow::{Answer, Flow, Read},
    single::RttShape,
};
use crate::{
    Error,
    engine::{
        rtt_recorder::RttRecorder,
        rx_cpu_samples::RxCpuSamples,
        schedule::Schedule,
        service_time::serve_for,
        wait::server_gone,
        window::Window,
        worker_pool::{Worker, WorkerPool},
    },
    net::{epoll::Epoll, now_ns},
};

/// Reads the receiving CPU once per this many answers.
const LOOK_EVERY: u64 = 1024;

pub struct RttClient<'a> {
    pub shape: &'a RttShape,
    pub window: &'a Window,
    pub pool: &'a WorkerPool,
    pub worker: &'a Worker,
    pub queue_depth: u32,
    pub schedule: Option<Schedule>,
}

/// State of a thread.
struct RttLoop<'r> {
    flows: Vec<Flow>,
    epoll: Epoll,
    request: Vec<u8>,
    room: Vec<u8>,
    recorder: &'r mut RttRecorder,
    rx_cpus: RxCpuSamples,
    done: u64,
    /// Open loop: the schedule's first index that was not due yet; flow n mod flows sends it.
    next: u64,
}

impl RttClient<'_> {
    /// Runs until the pool ends.
    pub fn run(&self, fds: &[RawFd], recorder: &mut RttRecorder) {
        if let Err(why) = self.go(fds, recorder) {
            self.pool.break_off(why);
        }
    }

    fn go(&self, fds: &[RawFd], recorder: &mut RttRecorder) -> Result<(), Error> {
        let epoll = Epoll::new().map_err(|e| Error::io("epoll", &e))?;
        self.worker.see(|seen| seen.warnings.extend(epoll.busy_poll(self.shape.wait)));
        for (key, fd) in fds.iter().enumerate() {
            epoll.add(*fd, key).map_err(|e| Error::io("epoll", &e))?;
        }
        let most = self.shape.response_bytes * u64::from(self.queue_depth);
        let mut state = RttLoop {
            flows: fds.iter().map(|fd| Flow::new(*fd, self.queue_depth)).collect(),
            epoll,
            request: vec![0; self.shape.request_bytes as usize],
            room: vec![0; most.clamp(64, 256 << 10) as usize + 1],
            recorder,
            rx_cpus: RxCpuSamples::new(fds.first().copied().unwrap_or(-1)),
            done: 0,
            next: 0,
        };
        if self.schedule.is_none() {
            self.fill(&mut state)?;
        }
        let udp = self.shape.transport == model::measure::Transport::Udp;
        let patrol = if udp { (self.shape.timeout_ns / 8).max(1_000_000) } else { u64::MAX };
        let mut next_patrol = now_ns().saturating_add(patrol);
        while !self.pool.stopping() {
            let mut until = next_patrol;
            if let Some(schedule) = &self.schedule {
                until = until.min(self.send_due(schedule, &mut state)?);
            }
            state.epoll.wait(self.shape.wait, until);
            let mut n = 0;
            while let Some(ready) = state.epoll.nth(n) {
                n += 1;
                if ready.writable {
                    self.push(&mut state, ready.key)?;
                }
                if ready.readable {
                    self.hear(&mut state, ready.key)?;
                }
            }
            if udp && now_ns() >= next_patrol {
                next_patrol = now_ns() + patrol;
                self.give_up_lost(&mut state)?;
            }
        }
        if let Some(schedule) = &self.schedule {
            self.tell_behind(schedule, &mut state);
        }
        self.worker.see(|seen| state.rx_cpus.add_to(seen));
        Ok(())
    }

    /// Open loop, at the end: records requests that were due and not sent.
    fn tell_behind(&self, schedule: &Schedule, state: &mut RttLoop<'_>) {
        let now = now_ns();
        let within = schedule.number_at(self.window.end_ns().min(now));
        let flows = state.flows.len() as u64;
        for (key, flow) in (0u64..).zip(&state.flows) {
            let next = flow.turns * flows + key;
            let behind = now.saturating_sub(schedule.due(next));
            state.recorder.schedule_lag_ns = state.recorder.schedule_lag_ns.max(behind);
            state.recorder.not_started += within.saturating_sub(next).div_ceil(flows.max(1));
        }
    }

    /// Closed loop: sends every flow its initial requests.
    fn fill(&self, state: &mut RttLoop<'_>) -> Result<(), Error> {
        for key in 0..state.flows.len() {
            for _ in 0..self.queue_depth {
                let now = now_ns();
                self.ask(state, key, now, now)?;
            }
        }
        Ok(())
    }

    #[inline]
    fn ask(&self, state: &mut RttLoop<'_>, key: usize, due: u64, now: u64) -> Result<(), Error> {
        let Some(flow) = state.flows.get_mut(key) else { return Ok(()) };
        flow.ask(self.shape, &mut state.request, due, now).map_err(|e| self.gone(&e))?;
        if flow.unsent > 0 && !flow.full {
            flow.full = true;
            state.epoll.want(flow.fd, key, true).map_err(|e| Error::io("epoll", &e))?;
        }
        Ok(())
    }

    fn push(&self, state: &mut RttLoop<'_>, key: usize) -> Result<(), Error> {
        let Some(flow) = state.flows.get_mut(key) else { return Ok(()) };
        flow.push(&state.request).map_err(|e| self.gone(&e))?;
        if flow.unsent == 0 && flow.full {
            flow.full = false;
            state.epoll.want(flow.fd, key, false).map_err(|e| Error::io("epoll", &e))?;
        }
        Ok(())
    }

    fn gone(&self, e: &io::Error) -> Error {
        server_gone(Some(e))
    }

    /// Open loop: sends due requests on flows with room; returns when the next is due.
    fn send_due(&self, schedule: &Schedule, state: &mut RttLoop<'_>) -> Result<u64, Error> {
        let (now, flows) = (now_ns(), state.flows.len() as u64);
        let due = schedule.number_at(now + 1);
        // If far behind, one pass over the flows is enough: each sends all it owes.
        let asked = due.saturating_sub(state.next).min(flows);
        let mut sent = false;
        for number in due - asked..due {
            let key = (number % flows.max(1)) as usize;
            sent |= self.catch_up(schedule, state, key, now_ns())?;
        }
        state.next = state.next.max(due);
        // With all flows full, nothing can be sent before an answer: waking for the schedule would
        // only take CPU from the server.
        let full = |f: &Flow| f.asked.len() >= self.queue_depth as usize;
        let waits = !sent && state.flows.iter().all(full);
        Ok(if waits { u64::MAX } else { schedule.due(state.next) })
    }

    /// Sends one flow's due requests as far as it has room; returns whether there was one.
    fn catch_up(
        &self,
        schedule: &Schedule,
        state: &mut RttLoop<'_>,
        key: usize,
        now: u64,
    ) -> Result<bool, Error> {
        let flows = state.flows.len() as u64;
        let mut sent = false;
        loop {
            let Some(flow) = state.flows.get_mut(key) else { return Ok(sent) };
            let due = schedule.due(flow.turns * flows + key as u64);
            if due > now || flow.asked.len() >= self.queue_depth as usize {
                return Ok(sent);
            }
            flow.turns += 1;
            sent = true;
            self.ask(state, key, due, now)?;
        }
    }

    fn hear(&self, state: &mut RttLoop<'_>, key: usize) -> Result<(), Error> {
        let Some(flow) = state.flows.get_mut(key) else { return Ok(()) };
        let mut late = 0;
        let mut heard = 0u32;
        let mut now = 0;
        let (recorder, window, open) = (&mut *state.recorder, self.window, self.schedule.is_some());
        let read = flow.read(
            self.shape,
            &mut state.room,
            &mut late,
            |Answer { asked, peer_cpu, overrun_ns }| {
                if now == 0 {
                    now = now_ns();
                }
                heard += 1;
                let (sent, due) = (asked.sent_ns, asked.due_ns);
                let scheduled = open.then_some(due);
                let since = |start: u64| now.saturating_sub(start).saturating_sub(overrun_ns);
                recorder.record(window, scheduled, now, since(due), peer_cpu);
                if open {
                    recorder.record_open(window, due, sent, since(sent), now);
                }
            },
        );
        match read {
            Read::Some | Read::Nothing => {}
            Read::End => return Err(server_gone(None)),
            Read::Broken(e) => return Err(self.gone(&e)),
        }
        if late > 0 && self.window.holds(now_ns()) {
            state.recorder.late += late;
        }
        if heard == 0 {
            return Ok(());
        }
        self.after(state, key, heard, now)
    }

    /// Follow-up after answers on a flow.
    fn after(
        &self,
        state: &mut RttLoop<'_>,
        key: usize,
        heard: u32,
        now: u64,
    ) -> Result<(), Error> {
        state.done += u64::from(heard);
        self.worker.handled(state.done);
        if state.done % LOOK_EVERY < u64::from(heard) {
            if let Some(flow) = state.flows.get(key) {
                state.rx_cpus.turn_to(flow.fd);
            }
            state.rx_cpus.sample();
        }
        match &self.schedule {
            Some(schedule) => self.catch_up(schedule, state, key, now).map(|_| ()),
            None if self.shape.service_ns > 0 => (0..heard).try_for_each(|_| {
                serve_for(self.shape.service_ns, self.pool);
                let now = now_ns();
                self.ask(state, key, now, now)
            }),
            None => (0..heard).try_for_each(|_| self.ask(state, key, now, now)),
        }
    }

    /// UDP: counts requests past their timeout as lost; closed loop sends a new one.
    fn give_up_lost(&self, state: &mut RttLoop<'_>) -> Result<(), Error> {
        let now = now_ns();
        for key in 0..state.flows.len() {
            let Some(flow) = state.flows.get_mut(key) else { continue };
            let before = flow.asked.len();
            flow.asked.retain(|a| now.saturating_sub(a.sent_ns) < self.shape.timeout_ns);
            let lost = before - flow.asked.len();
            if lost == 0 {
                continue;
            }
            if self.window.holds(now) {
                state.recorder.lost += lost as u64;
            }
            match &self.schedule {
                Some(schedule) => {
                    self.catch_up(schedule, state, key, now)?;
                }
                None => (0..lost).try_for_each(|_| self.ask(state, key, now, now))?,
            }
        }
        Ok(())
    }
}
