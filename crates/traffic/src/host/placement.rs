//! On which CPUs the threads of one end run. Pure: facts in, CPUs and the reason out.
//!
//! # The policy
//! A measurement that the scheduler moves about is several measurements in one, so both ends
//! are pinned unless told otherwise; but never where that costs: an end that has fewer cores than
//! threads is not pinned, for threads that are held on one core wait for each other while the
//! rest of the host idles. The choice, from the most to the least important:
//!
//! 1. Only CPUs that this process may use (cpuset, `taskset`), and as long as there are others
//!    none that another session of this server uses.
//! 2. A physical core for each thread, whole: two hardware threads of one core slow each other
//!    down.
//! 3. When both ends are on one host: different cores for the two, each end at most half of
//!    them, in the same L3, else on the same node. What the two then measure is the stack and
//!    not a way between caches. With one core only they take its hardware threads, with one CPU
//!    only that one.
//! 4. Near the NIC: the node that it is attached to; of it the L3 whose CPUs take its
//!    interrupts, but not those CPUs themselves: a thread that spins there would keep the
//!    softirq waiting, and the softirq would interrupt the thread.
//! 5. Without a NIC and on one host: the L3 with the most cores to choose from.
//! 6. Not the core of CPU 0, which does housekeeping for the host (timers, unbound work).
//! 7. The lowest numbers.
//!
//! Thread n runs on the n-th CPU of the choice, of a list that was asked for round and round.

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

/// Which end of the measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The one that asks.
    LocalEnd,
    /// The one that answers.
    PeerEnd,
}

/// The CPUs of this end.
#[derive(Debug, Clone)]
pub struct LocalPlacement {
    /// CPUs that this process may use.
    pub allowed: CpuSet,
    pub online: CpuSet,
    /// Where each allowed one stands, ascending.
    pub places: Vec<CpuLocation>,
}

impl LocalPlacement {
    /// Reads them. To be called by a thread that is not pinned, for what it may use is taken
    /// for what the process may use.
    ///
    /// **Cost**: see [`topology`]; once for a session.
    ///
    /// # Errors
    /// When the kernel does not say what this thread may use.
    pub fn read(root: &Root) -> Result<Self> {
        let allowed = pin::allowed()?;
        let online = topology::online(root).unwrap_or_else(|| allowed.clone());
        Ok(Self { places: topology::read(root, &allowed), online, allowed })
    }
}

/// What the choice is made for.
#[derive(Debug, Clone)]
pub struct ChangeRequest<'a> {
    /// Which end this is.
    pub role: Role,
    /// Whether both ends are on this host.
    pub same_host: bool,
    /// The CPUs that the other end has chosen, where it is on this host and they are known.
    /// Unknown, both ends come to choices that fit as long as they may use the same CPUs.
    pub partner: &'a CpuSet,
    /// The hardware that carries the packets, if any does.
    pub nic: Option<&'a NicPlace>,
    /// Threads of this end.
    pub threads: u32,
    /// CPUs that other sessions of this process use.
    pub taken: &'a CpuSet,
}

/// The CPUs of one end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// A CPU for each thread, in thread order; empty when they are not to be pinned.
    pub cpus: Vec<CpuId>,
    /// Why these, in words.
    pub why: String,
}

/// More threads than this are not pinned one by one in the result.
const MAX_THREADS: u32 = 65_536;

/// What `pin` says for this end, checked, or the policy's choice.
///
/// # Errors
/// [`Error::Usage`] when a CPU that was asked for is offline or not for this process.
pub fn decide(
    pin: &Pin,
    here: &LocalPlacement,
    change_request: &ChangeRequest<'_>,
) -> Result<Choice> {
    match pin {
        Pin::No => Ok(Choice { cpus: vec![], why: "not pinned: the scheduler decides".into() }),
        Pin::Auto | Pin::Apart => Ok(choose(here, change_request)),
        Pin::List(list) => {
            check(list, here)?;
            let cpus: Vec<CpuId> = list.iter().collect();
            Ok(Choice { cpus: round(&cpus, change_request.threads), why: "asked for".into() })
        }
    }
}

/// Whether CPUs that are asked for by number are this process's to use.
///
/// # Errors
/// [`Error::Usage`] when one of them is not.
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

/// One CPU for each thread, round and round.
fn round(cpus: &[CpuId], threads: u32) -> Vec<CpuId> {
    cpus.iter().copied().cycle().take(threads.min(MAX_THREADS) as usize).collect()
}

/// The choice of the policy, see [the module](self).
pub fn choose(here: &LocalPlacement, change_request: &ChangeRequest<'_>) -> Choice {
    let free = here.allowed.difference(change_request.taken);
    let usable = if free.is_empty() { &here.allowed } else { &free };
    let cores = cores::ranked(here, change_request, usable);
    let own = if change_request.same_host { share(cores, change_request) } else { cores };
    if (change_request.threads as usize) > own.len() {
        let why = format!(
            "not pinned: {} threads, and {} for them; the scheduler places them",
            change_request.threads,
            match own.len() {
                1 => "1 core".to_owned(),
                n => format!("{n} cores"),
            }
        );
        return Choice { cpus: vec![], why };
    }
    let first = |core: &Core| core.cpus.first().copied();
    let cpus: Vec<CpuId> =
        own.iter().take(change_request.threads as usize).filter_map(first).collect();
    let why = why::words(here, change_request, &cpus, usable);
    Choice { cpus, why }
}

/// The cores of one end of two on this host, best first; never none where there was one.
fn share(mut cores: Vec<Core>, change_request: &ChangeRequest<'_>) -> Vec<Core> {
    let threads = change_request.threads.max(1) as usize;
    if !change_request.partner.is_empty() {
        let apart = |c: &Core| c.core.intersection(change_request.partner).is_empty();
        if cores.iter().any(apart) {
            cores.retain(apart);
        } else if cores.iter().flat_map(|c| &c.cpus).any(|&c| !change_request.partner.contains(c)) {
            for core in &mut cores {
                core.cpus.retain(|&c| !change_request.partner.contains(c));
            }
            cores.retain(|c| !c.cpus.is_empty());
        }
        return cores;
    }
    if let [only] = cores.as_mut_slice() {
        let half = only.cpus.len() / 2;
        if half > 0 {
            let peer = only.cpus.split_off(half);
            if change_request.role == Role::PeerEnd {
                only.cpus = peer;
            }
        }
        return cores;
    }
    let each = threads.min(cores.len() / 2);
    let peer = cores.split_off(each);
    if change_request.role == Role::LocalEnd {
        cores
    } else {
        peer.into_iter().take(each).collect()
    }
}

/// The place of a CPU.
fn place(here: &LocalPlacement, cpu: CpuId) -> Option<&CpuLocation> {
    here.places.binary_search_by_key(&cpu, |p| p.cpu).ok().and_then(|at| here.places.get(at))
}

/// The node of a CPU.
fn node(here: &LocalPlacement, cpu: CpuId) -> Option<NumaNode> {
    place(here, cpu)?.node
}

#[cfg(test)]
mod tests;
