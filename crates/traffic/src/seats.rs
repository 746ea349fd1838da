//! Which CPUs one end's threads run on.

use std::net::{IpAddr, SocketAddr};

use model::{CpuId, CpuSet, measure::Pin};

use crate::{
    Result,
    control::message::{Kind, Test},
    host::{
        pin,
        placement::{self, Choice, Here, Role, Wish},
        route,
    },
};

/// Where one end's threads run.
#[derive(Debug, Clone, Default)]
pub struct Seats {
    /// In thread order; none when not pinned.
    pub cpus: Vec<CpuId>,
    /// Why these.
    pub why: String,
    /// All that this process may use.
    pub allowed: CpuSet,
}

/// The near end's seats; `to` is where the packets go, `None` for a Unix socket.
///
/// # Errors
/// A CPU that was asked for is not there or not ours to use.
pub fn near(pin: &Pin, threads: u32, same_host: bool, to: Option<SocketAddr>) -> Result<Seats> {
    let interface = to.and_then(route::interface_to);
    let (partner, taken) = (CpuSet::new(), CpuSet::new());
    take(pin, Role::Near, same_host, threads, interface.as_deref(), &partner, &taken)
}

/// The near end's seats where the other end may be on this host and pinning costs then: a server
/// of another program, whose threads go anywhere, and streams, of which both ends and the kernel's
/// work between them keep several CPUs busy.
///
/// # Errors
/// As [`near`].
pub fn beside(pin: &Pin, threads: u32, same_host: bool, to: Option<SocketAddr>) -> Result<Seats> {
    if *pin != Pin::Auto || !same_host {
        return near(pin, threads, same_host, to);
    }
    unpinned("server")
}

/// Not pinned, for the other end is on this host.
fn unpinned(other: &str) -> Result<Seats> {
    let why = format!("not pinned: the {other} is on this host, and the scheduler places both");
    Ok(Seats { cpus: vec![], why, allowed: Here::read(&probe::Root::live())?.allowed })
}

/// The far end's seats: `near` are the other end's CPUs, `local` is the address of ours that the
/// packets come to.
///
/// # Errors
/// A CPU that was asked for is not there or not ours to use.
pub fn far(
    test: &Test,
    pin: &Pin,
    same_host: bool,
    local: Option<IpAddr>,
    taken: &[CpuId],
) -> Result<Seats> {
    if matches!(test.kind, Kind::Stream { .. }) && same_host && *pin == Pin::Auto {
        return unpinned("client");
    }
    let interface = local.and_then(route::interface_of);
    let none = CpuSet::new();
    let near = if same_host { &test.near_cpus } else { &none };
    let taken = taken.iter().copied().collect();
    take(pin, Role::Far, same_host, test.threads, interface.as_deref(), near, &taken)
}

fn take(
    pin: &Pin,
    role: Role,
    same_host: bool,
    threads: u32,
    interface: Option<&str>,
    partner: &CpuSet,
    taken: &CpuSet,
) -> Result<Seats> {
    let root = probe::Root::live();
    let here = Here::read(&root)?;
    let nic = interface.and_then(|name| probe::facts::topology::nic(&root, name));
    let wish = Wish { role, same_host, partner, nic: nic.as_ref(), threads, taken };
    let Choice { cpus, why } = placement::decide(pin, &here, &wish)?;
    Ok(Seats { cpus, why, allowed: here.allowed })
}

/// Whether a list of CPUs can be pinned to by this process, before any test comes.
///
/// # Errors
/// [`crate::Error::Usage`] when a CPU of it is not there or not ours to use.
pub fn check(pin: &Pin) -> Result<()> {
    match pin {
        Pin::List(list) => placement::check(list, &Here::read(&probe::Root::live())?),
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
