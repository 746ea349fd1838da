//! CPU assignment of one end's threads.

use std::net::{IpAddr, SocketAddr};

use model::{CpuId, CpuSet, measure::Pin};

use crate::{
    Result,
    control::message::{Test, TestKind},
    host::{
        pin,
        placement::{self, Choice, LocalPlacement, PlacementRequest, Role},
        route,
    },
};

/// CPU assignment of one end.
#[derive(Debug, Clone, Default)]
pub struct Assignments {
    /// CPUs in thread order; empty if not pinned.
    pub cpus: Vec<CpuId>,
    pub why: String,
    /// All CPUs that this process may use.
    pub allowed: CpuSet,
}

/// CPU assignment of the client; `to` is the server's address, `None` for a Unix socket.
///
/// # Errors
/// A requested CPU does not exist or may not be used.
pub fn local(
    pin: &Pin,
    threads: u32,
    same_host: bool,
    to: Option<SocketAddr>,
) -> Result<Assignments> {
    let interface = to.and_then(route::interface_to);
    let (partner, taken) = (CpuSet::new(), CpuSet::new());
    take(pin, Role::LocalEnd, same_host, threads, interface.as_deref(), &partner, &taken)
}

/// CPU assignment of the client if the server may be on this host and pinning then hurts: for
/// another program's server, whose threads run anywhere, and for streams, which keep several CPUs
/// busy on both ends and in the kernel.
///
/// # Errors
/// As [`local`].
pub fn beside(
    pin: &Pin,
    threads: u32,
    same_host: bool,
    to: Option<SocketAddr>,
) -> Result<Assignments> {
    if *pin != Pin::Auto || !same_host {
        return local(pin, threads, same_host, to);
    }
    unpinned("server")
}

/// Unpinned, because the other end is on this host.
fn unpinned(other: &str) -> Result<Assignments> {
    let why = format!("not pinned: the {other} is on this host, and the scheduler places both");
    Ok(Assignments {
        cpus: vec![],
        why,
        allowed: LocalPlacement::read(&probe::Root::live())?.allowed,
    })
}

/// CPU assignment of the server; `local` is our address that receives the packets, `taken` are CPUs
/// of other sessions.
///
/// # Errors
/// A requested CPU does not exist or may not be used.
pub fn peer(
    test: &Test,
    pin: &Pin,
    same_host: bool,
    local: Option<IpAddr>,
    taken: &[CpuId],
) -> Result<Assignments> {
    if matches!(test.kind, TestKind::Stream { .. }) && same_host && *pin == Pin::Auto {
        return unpinned("client");
    }
    let interface = local.and_then(route::interface_of);
    let none = CpuSet::new();
    let others = if same_host { &test.local_cpus } else { &none };
    let taken = taken.iter().copied().collect();
    take(pin, Role::PeerEnd, same_host, test.threads, interface.as_deref(), others, &taken)
}

fn take(
    pin: &Pin,
    role: Role,
    same_host: bool,
    threads: u32,
    interface: Option<&str>,
    partner: &CpuSet,
    taken: &CpuSet,
) -> Result<Assignments> {
    let root = probe::Root::live();
    let here = LocalPlacement::read(&root)?;
    let nic = interface.and_then(|name| probe::facts::topology::nic(&root, name));
    let request = PlacementRequest { role, same_host, partner, nic: nic.as_ref(), threads, taken };
    let Choice { cpus, why } = placement::decide(pin, &here, &request)?;
    Ok(Assignments { cpus, why, allowed: here.allowed })
}

/// Checks before any test that this process can pin to these CPUs.
///
/// # Errors
/// [`crate::Error::Usage`]: a CPU does not exist or may not be used.
pub fn check(pin: &Pin) -> Result<()> {
    match pin {
        Pin::List(list) => placement::check(list, &LocalPlacement::read(&probe::Root::live())?),
        Pin::Auto | Pin::Apart | Pin::No => Ok(()),
    }
}

/// Pins the calling thread until it ends.
///
/// # Errors
/// As the kernel says.
pub fn pin(cpu: CpuId) -> Result<()> {
    pin::set(&CpuSet::from_iter([cpu]))
}
