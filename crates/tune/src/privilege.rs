//! Checks this process's privileges before the first change of a plan. A plan that stops halfway
//! for lack of a capability disturbs the host twice.

use model::tune::{Planned, Saved};
use probe::{
    ReadError, Root,
    ask::{access, netns},
};

use crate::{
    Host, TuneError,
    journal::JournaledSet,
    knobs,
    need::Need,
    undo_forecast::{UndoForecast, forecasts},
};

// Bits of include/uapi/linux/capability.h.
const CAP_KILL: u32 = 5;
const CAP_NET_ADMIN: u32 = 12;
const CAP_SYS_ADMIN: u32 = 21;
const CAP_SYS_NICE: u32 = 23;

/// Credentials of this process.
struct Credentials<'r> {
    root: &'r Root,
    effective: u64,
    /// Effective and real user.
    euid: u32,
    uid: u32,
    /// Whether this is the host's first user namespace.
    first: bool,
    /// Whether the network namespace belongs to this user namespace or to one below it.
    owns_net: bool,
}

/// The missing privileges for these changes, in one line; `None` if none is missing. A directory
/// tree needs only file permissions.
pub fn missing(host: &Host, changes: &[Planned]) -> Option<String> {
    let knobs: Vec<&str> = changes.iter().map(|c| c.knob.as_str()).collect();
    missing_for(host, &knobs)
}

/// The missing privileges for undoing a set; values already restored need none.
pub fn missing_to_undo(host: &Host, set: &JournaledSet) -> Option<String> {
    let is_to_write = |(saved, forecast): (&Saved, UndoForecast)| {
        let UndoForecast::Restorable(name) = forecast else { return None };
        let now = knobs::find(&name)?.read_again(host, &saved.old);
        (now.ok().as_ref() != Some(&saved.old)).then_some(name)
    };
    let names: Vec<String> = forecasts(host, set).into_iter().filter_map(is_to_write).collect();
    missing_for(host, &names.iter().map(String::as_str).collect::<Vec<_>>())
}

fn missing_for<'k>(host: &Host, changes: &[&'k str]) -> Option<String> {
    if !host.is_live() {
        return None;
    }
    let held = Credentials::now(host.root())?;
    let mut lacks: Vec<(String, Vec<&'k str>)> = Vec::new();
    for name in changes {
        let Some(knob) = knobs::find(name) else { continue };
        for why in knob.needs(host).iter().filter_map(|n| held.lacks(n)) {
            match lacks.iter_mut().find(|(w, _)| *w == why) {
                Some((_, knobs)) => knobs.push(name),
                None => lacks.push((why, vec![name])),
            }
        }
    }
    let one = |(why, knobs): &(String, Vec<&str>)| match knobs.as_slice() {
        [first, .., last] => format!("{why} ({first} to {last}, {} changes)", knobs.len()),
        some => format!("{why} ({})", some.join(", ")),
    };
    let all: Vec<String> = lacks.iter().map(one).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

/// Checks before the first write of an undo.
///
/// # Errors
/// The missing privileges.
pub fn check_undo(host: &Host, set: &JournaledSet) -> Result<(), TuneError> {
    refused(missing_to_undo(host, set))
}

/// Checks before the first write of a plan.
///
/// # Errors
/// The missing privileges.
pub fn check(host: &Host, changes: &[Planned]) -> Result<(), TuneError> {
    refused(missing(host, changes))
}

fn refused(missing: Option<String>) -> Result<(), TuneError> {
    match missing {
        None => Ok(()),
        Some(why) => Err(TuneError::Denied(format!("not permitted: {why}; nothing was written"))),
    }
}

impl<'r> Credentials<'r> {
    fn now(root: &'r Root) -> Option<Self> {
        let status = root.read("/proc/self/status").ok()?;
        let effective = parse::proc_status::value(&status, "CapEff")?;
        let [uid, euid, _] = uids(&status)?;
        Some(Self {
            root,
            effective: u64::from_str_radix(effective, 16).ok()?,
            euid,
            uid,
            // PROC_USER_INIT_INO (include/linux/proc_ns.h).
            first: root.link("/proc/self/ns/user").ok().as_deref() == Some("user:[4026531837]"),
            // If the kernel does not tell, the write itself will.
            owns_net: netns::is_own(root).unwrap_or(true),
        })
    }

    fn has(&self, capability: u32) -> bool {
        self.effective >> capability & 1 == 1
    }

    /// Why a capability over the whole host is missing; `None` if it is held.
    fn lacks_of_host(&self, capability: u32, name: &str) -> Option<String> {
        match (self.first, self.has(capability)) {
            (true, true) => None,
            (true, false) => Some(format!("{name} is missing")),
            (false, _) => Some(format!(
                "{name} of the host's first user namespace is missing, and this is another"
            )),
        }
    }

    /// Why one privilege is missing; `None` if it is held.
    fn lacks(&self, need: &Need) -> Option<String> {
        match need {
            Need::File(path) => match access::may_write(self.root, path) {
                Err(ReadError::Denied { .. }) => {
                    Some(format!("{path} may be written by its owner, root, alone"))
                }
                _ => None,
            },
            Need::Net if !self.has(CAP_NET_ADMIN) => Some("CAP_NET_ADMIN is missing".into()),
            Need::Net if !self.owns_net => Some(
                "CAP_NET_ADMIN over this network namespace is missing: it belongs to another user \
                 namespace"
                    .into(),
            ),
            Need::Net => None,
            Need::HostNet => self.lacks_of_host(CAP_NET_ADMIN, "CAP_NET_ADMIN"),
            Need::SysAdmin => self.lacks_of_host(CAP_SYS_ADMIN, "CAP_SYS_ADMIN"),
            // `check_same_owner`, kernel/sched/syscalls.c.
            Need::Place(pid) => {
                let same = self
                    .uids_of(*pid)
                    .is_none_or(|[uid, euid, _]| self.euid == euid || self.euid == uid);
                (!same && !self.has(CAP_SYS_NICE))
                    .then(|| format!("CAP_SYS_NICE is missing: process {pid} is another user's"))
            }
            // `kill_ok_by_cred`, kernel/signal.c.
            Need::Signal(pid) => {
                let same = self.uids_of(*pid).is_none_or(|[uid, _, saved]| {
                    [self.euid, self.uid].iter().any(|own| *own == uid || *own == saved)
                });
                (!same && !self.has(CAP_KILL))
                    .then(|| format!("CAP_KILL is missing: process {pid} is another user's"))
            }
        }
    }

    fn uids_of(&self, pid: u32) -> Option<[u32; 3]> {
        uids(&self.root.read(&format!("/proc/{pid}/status")).ok()?)
    }
}

/// Real, effective and saved user.
fn uids(status: &[u8]) -> Option<[u32; 3]> {
    let text = parse::proc_status::value(status, "Uid")?;
    let mut words = text.split_whitespace().map_while(|w| w.parse().ok());
    Some([words.next()?, words.next()?, words.next()?])
}
