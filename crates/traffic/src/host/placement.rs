//! Chooses the CPUs for one end's threads. Pure: facts in, CPUs and the reason out.
//!
//! # The policy
//! A measurement whose threads migrate mixes several conditions, so both ends are pinned by
//! default. An end with fewer cores than threads is not pinned: threads held on one core would wait
//! for each other while the rest of the host idles. The criteria, most important first:
//!
//! 1. Only CPUs that this process may use (cpuset, `taskset`), without CPUs of other sessions of
//!    this server if others are left.
//! 2. A whole physical core for each thread: two hardware threads of one core slow each other down.
//! 3. Both ends on one host: separate cores, each end at most half of them, in the same L3, else on
//!    the same node. The result then shows the stack and not a transfer between caches. With a
//!    single core, the ends share its hardware threads; with a single CPU, that CPU.
//! 4. Near the NIC: on its node, in the L3 with the CPUs that take its interrupts, but not on those
//!    CPUs. A thread that spins there would delay the softirq, and the softirq would interrupt the
//!    thread.
//! 5. Without a NIC and on one host: the L3 with the most available cores.
//! 6. Not the core of CPU 0, the housekeeping CPU (timers, unbound work).
//! 7. The lowest numbers.
//!
//! Thread n runs on CPU n of the choice; a list given by the user is used in rotation.

use model::{CpuId, CpuSet, NumaNode, measure::Pin};
use probe::{
    Root,
    facts::topology::{self, CpuLocation, NicPlace},
};

use super::pin;
use crate::{Error, Result};

mod cores;
mod why;

use cores::Core;

/// Role of this end in the measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The client, which sends requests.
    LocalEnd,
    /// The server, which answers.
    PeerEnd,
}

/// The CPUs available to this end.
#[derive(Debug, Clone)]
pub struct LocalPlacement {
    /// CPUs that this process may use.
    pub allowed: CpuSet,
    pub online: CpuSet,
    /// Topology of each allowed CPU, ascending.
    pub places: Vec<CpuLocation>,
}

impl LocalPlacement {
    /// Reads them. Must be called on an unpinned thread: its CPUs are taken for those of the
    /// process.
    ///
    /// **Cost**: see [`topology`]; paid once for each session.
    ///
    /// # Errors
    /// The kernel does not report the CPUs of this thread.
    pub fn read(root: &Root) -> Result<Self> {
        let allowed = pin::allowed()?;
        let online = topology::online(root).unwrap_or_else(|| allowed.clone());
        Ok(Self { places: topology::read(root, &allowed), online, allowed })
    }
}

/// Inputs of the choice.
#[derive(Debug, Clone)]
pub struct PlacementRequest<'a> {
    /// Role of this end.
    pub role: Role,
    /// Whether both ends are on this host.
    pub same_host: bool,
    /// CPUs that the other end has chosen, if it is on this host and they are known. If unknown,
    /// both ends arrive at compatible choices when they may use the same CPUs.
    pub partner: &'a CpuSet,
    /// The NIC that carries the packets, if any.
    pub nic: Option<&'a NicPlace>,
    /// Number of threads of this end.
    pub threads: u32,
    /// CPUs that other sessions of this process use.
    pub taken: &'a CpuSet,
}

/// The CPUs chosen for the threads, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// A CPU for each thread, in thread order; empty if not pinned.
    pub cpus: Vec<CpuId>,
    /// The reason, for the result.
    pub why: String,
}

/// Above this number of threads, the result does not list a CPU for each.
const MAX_THREADS: u32 = 65_536;

/// The CPUs that `pin` requests, checked, or the policy's choice.
///
/// # Errors
/// [`Error::Usage`]: a requested CPU is offline or not allowed for this process.
pub fn decide(pin: &Pin, here: &LocalPlacement, request: &PlacementRequest<'_>) -> Result<Choice> {
    match pin {
        Pin::No => Ok(Choice { cpus: vec![], why: "not pinned: the scheduler decides".into() }),
        Pin::Auto | Pin::Apart => Ok(choose(here, request)),
        Pin::List(list) => {
            check(list, here)?;
            let cpus: Vec<CpuId> = list.iter().collect();
            Ok(Choice { cpus: round(&cpus, request.threads), why: "asked for".into() })
        }
    }
}

/// Checks that this process may use these CPUs.
///
/// # Errors
/// [`Error::Usage`]: it may not use one of them.
pub fn check(list: &CpuSet, here: &LocalPlacement) -> Result<()> {
    let Some(bad) = list.difference(&here.allowed).first() else {
        return match list.is_empty() {
            true => Err(Error::Usage("an empty list of CPUs to pin to".into())),
            false => Ok(()),
        };
    };
    let what = if here.online.contains(bad) {
        "is not for this process (cpuset or affinity)"
    } else {
        "is offline or not there"
    };
    Err(Error::Usage(format!("CPU {bad} {what}; it may use {}", here.allowed)))
}

/// Assigns the CPUs to the threads in rotation.
fn round(cpus: &[CpuId], threads: u32) -> Vec<CpuId> {
    cpus.iter().copied().cycle().take(threads.min(MAX_THREADS) as usize).collect()
}

/// The policy's choice, see [the module](self).
pub fn choose(here: &LocalPlacement, request: &PlacementRequest<'_>) -> Choice {
    let free = here.allowed.difference(request.taken);
    let usable = if free.is_empty() { &here.allowed } else { &free };
    let cores = cores::ranked(here, request, usable);
    let own = if request.same_host { share(cores, request) } else { cores };
    if (request.threads as usize) > own.len() {
        let why = format!(
            "not pinned: {} threads, and {} for them; the scheduler places them",
            request.threads,
            match own.len() {
                1 => "1 core".to_owned(),
                n => format!("{n} cores"),
            }
        );
        return Choice { cpus: vec![], why };
    }
    let first = |core: &Core| core.cpus.first().copied();
    let cpus: Vec<CpuId> = own.iter().take(request.threads as usize).filter_map(first).collect();
    let why = why::words(here, request, &cpus, usable);
    Choice { cpus, why }
}

/// One end's share of the cores when both ends are on this host, best first; never empty if there
/// was a core.
fn share(mut cores: Vec<Core>, request: &PlacementRequest<'_>) -> Vec<Core> {
    let threads = request.threads.max(1) as usize;
    if !request.partner.is_empty() {
        let apart = |c: &Core| c.core.intersection(request.partner).is_empty();
        if cores.iter().any(apart) {
            cores.retain(apart);
        } else if cores.iter().flat_map(|c| &c.cpus).any(|&c| !request.partner.contains(c)) {
            for core in &mut cores {
                core.cpus.retain(|&c| !request.partner.contains(c));
            }
            cores.retain(|c| !c.cpus.is_empty());
        }
        return cores;
    }
    if let [only] = cores.as_mut_slice() {
        let half = only.cpus.len() / 2;
        if half > 0 {
            let peer = only.cpus.split_off(half);
            if request.role == Role::PeerEnd {
                only.cpus = peer;
            }
        }
        return cores;
    }
    let each = threads.min(cores.len() / 2);
    let peer = cores.split_off(each);
    if request.role == Role::LocalEnd { cores } else { peer.into_iter().take(each).collect() }
}

/// Topology of a CPU.
fn place(here: &LocalPlacement, cpu: CpuId) -> Option<&CpuLocation> {
    here.places.binary_search_by_key(&cpu, |p| p.cpu).ok().and_then(|at| here.places.get(at))
}

/// NUMA node of a CPU.
fn node(here: &LocalPlacement, cpu: CpuId) -> Option<NumaNode> {
    place(here, cpu)?.node
}

#[cfg(test)]
mod tests;
