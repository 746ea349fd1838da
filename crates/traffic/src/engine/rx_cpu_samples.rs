//! Samples which CPU and NAPI instance received a socket's last packets.

use std::{
    collections::BTreeMap,
    os::fd::{BorrowedFd, RawFd},
};

use model::CpuId;

use super::worker_pool::ThreadReport;
use crate::host::incoming;

/// Counts of the samples taken.
#[derive(Debug)]
pub struct RxCpuSamples {
    fd: RawFd,
    cpus: BTreeMap<CpuId, u64>,
    napi_ids: BTreeMap<u32, u64>,
}

impl RxCpuSamples {
    pub fn new(fd: RawFd) -> Self {
        Self { fd, cpus: BTreeMap::new(), napi_ids: BTreeMap::new() }
    }

    /// Samples another socket from now on.
    pub fn turn_to(&mut self, fd: RawFd) {
        self.fd = fd;
    }

    /// Takes a sample: two system calls.
    pub fn sample(&mut self) {
        if self.fd < 0 {
            return;
        }
        // SAFETY: the owner keeps the socket open while it is sampled.
        let socket = unsafe { BorrowedFd::borrow_raw(self.fd) };
        if let Some(cpu) = incoming::cpu(socket) {
            *self.cpus.entry(cpu).or_default() += 1;
        }
        if let Some(id) = incoming::napi_id(socket) {
            *self.napi_ids.entry(id).or_default() += 1;
        }
    }

    /// Adds the counts to the thread's report.
    pub fn add_to(&self, seen: &mut ThreadReport) {
        for (cpu, n) in &self.cpus {
            *seen.received_on.entry(*cpu).or_default() += n;
        }
        for (id, n) in &self.napi_ids {
            *seen.napi_ids.entry(*id).or_default() += n;
        }
    }
}
