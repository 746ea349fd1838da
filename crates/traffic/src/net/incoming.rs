//! Which CPU and which NAPI instance received a socket's last packets.

use std::{collections::BTreeMap, os::fd::RawFd};

use model::CpuId;

use crate::team::Seen;

/// Since 3.19.
const SO_INCOMING_CPU: i32 = 49;
/// Since 4.12; 0 is none (loopback).
const SO_INCOMING_NAPI_ID: i32 = 56;

fn option(fd: RawFd, name: i32) -> Option<u32> {
    let (mut value, mut length) = (0u32, size_of::<u32>() as libc::socklen_t);
    // SAFETY: the value and its length outlive the call.
    let done = unsafe {
        libc::getsockopt(fd, libc::SOL_SOCKET, name, (&raw mut value).cast(), &raw mut length)
    };
    (done == 0).then_some(value)
}

/// Looks taken now and then, counted.
#[derive(Debug)]
pub struct Looks {
    fd: RawFd,
    cpus: BTreeMap<u32, u64>,
    napi_ids: BTreeMap<u32, u64>,
}

impl Looks {
    /// At one socket.
    pub fn new(fd: RawFd) -> Self {
        Self { fd, cpus: BTreeMap::new(), napi_ids: BTreeMap::new() }
    }

    /// At another socket from now on.
    pub fn turn_to(&mut self, fd: RawFd) {
        self.fd = fd;
    }

    /// Takes a look: two system calls.
    pub fn look(&mut self) {
        // A socket that received nothing yet says -1.
        if let Some(cpu) = option(self.fd, SO_INCOMING_CPU).filter(|c| *c < 1 << 16) {
            *self.cpus.entry(cpu).or_default() += 1;
        }
        if let Some(id) = option(self.fd, SO_INCOMING_NAPI_ID) {
            *self.napi_ids.entry(id).or_default() += 1;
        }
    }

    /// Hands the counts over.
    pub fn tell(&self, seen: &mut Seen) {
        for (cpu, n) in &self.cpus {
            *seen.received_on.entry(CpuId(*cpu)).or_default() += n;
        }
        for (id, n) in &self.napi_ids {
            *seen.napi_ids.entry(*id).or_default() += n;
        }
    }
}
