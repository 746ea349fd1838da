//! Which CPUs one end's threads run on.

use std::net::{IpAddr, SocketAddr};

use model::{CpuId, CpuSet, measure::Pin};

use crate::{
    Result,
    control::message::{Test, TestKind},
    host::{
        pin,
        placement::{self, ChangeRequest, Choice, LocalPlacement, Role},
        route,
    },
};

/// Where one end's threads run.
#[derive(Debug, Clone, Default)]
pub struct Assignments {
    /// In thread order; none when not pinned.
    pub cpus: Vec<CpuId>,
    pub why: String,
    /// All that this process may use.
    pub allowed: CpuSet,
}

/// The client's assigned CPUs; `to` is where the packets go, `None` for a Unix socket.
///
/// # Errors
/// A CPU that was asked for is not there or not ours to use.
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

/// The client's assigned CPUs where the other end may be on this host and pinning costs then: a server
/// of another program, whose threads go anywhere, and streams, of which both ends and the kernel's
/// work between them keep several CPUs busy.
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

/// Not pinned, for the other end is on this host.
fn unpinned(other: &str) -> Result<Assignments> {
    let why = format!("not pinned: the {other} is on this host, and the scheduler places both");
    Ok(Assignments {
        cpus: vec![],
        why,
        allowed: LocalPlacement::read(&probe::Root::live())?.allowed,
    })
}

/// The server's assigned CPUs: `local` are the other end's CPUs, `local` is the address of ours that the
/// packets come to.
///
/// # Errors
/// A CPU that was asked for is not there or not ours to use.
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
    let change_request =
        ChangeRequest { role, same_host, partner, nic: nic.as_ref(), threads, taken };
    let Choice { cpus, why } = placement::decide(pin, &here, &change_request)?;
    Ok(Assignments { cpus, why, allowed: here.allowed })
}

/// Whether a list of CPUs can be pinned to by this process, before any test comes.
///
/// # Errors
/// [`crate::Error::Usage`] when a CPU of it is not there or not ours to use.
pub fn check(pin: &Pin) -> Result<()> {
    match pin {
        Pin::List(list) => placement::check(list, &LocalPlacement::read(&probe::Root::live())?),
        Pin::Auto | Pin::Apart | Pin::No => Ok(()),
    }
}

/// Pins the calling thread for good.
///
/// # Errors
/// As the kernel says.
pub fn pin(cpu: CpuId) -> Result<()> {
    pin::set(&CpuSet::from_iter([cpu]))
}
