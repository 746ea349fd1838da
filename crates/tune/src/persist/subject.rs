//! Identifies the object of a value by names that a reboot does not change.

use model::{Facts, knob::is_nic_name, nic::Nic};

use super::{
    destination::Destination,
    owner,
    record::{Interface, Record, Subject},
    section::section,
    starter,
};
use crate::{Host, journal::JournaledSet, knob::irq_of, netns};

/// Files of `/proc/irq/N`; every other entry is an action's directory.
const IRQ_FILES: &[&str] = &[
    "affinity_hint",
    "effective_affinity",
    "effective_affinity_list",
    "node",
    "smp_affinity",
    "smp_affinity_list",
    "spurious",
];

/// The catch-all `.link` files, by distribution.
const DEFAULT_LINK: &[&str] =
    &["/usr/lib/systemd/network/99-default.link", "/lib/systemd/network/99-default.link"];

/// The object of a change set's knob.
///
/// # Errors
/// The reason it cannot be identified, or not be kept.
pub fn of(
    host: &Host,
    destination: &Destination,
    facts: &Facts,
    set: &JournaledSet,
    knob: &str,
    value: &str,
    known: &Record,
) -> Result<Subject, String> {
    if is_elsewhere(host, set, knob) {
        return Err(
            "set in another network namespace; the program that creates it must set it up".into()
        );
    }
    if let Some(rest) = knob.strip_prefix("nic.") {
        return interface(host, destination, facts, rest, known).map(Subject::Nic);
    }
    if let Some(number) = irq_of(knob) {
        return action(host, number).map(|action| Subject::Irq { action });
    }
    if let Some(rest) = knob.strip_prefix("process.") {
        let pid = rest.split('.').next().unwrap_or_default();
        if rest.ends_with(".cpu_max") {
            let unit = unit(host, pid, value).unwrap_or_else(|_| "UNIT".into());
            return Err(format!(
                "a quota is the group's own: `systemctl set-property {unit} CPUQuota=N%` keeps it"
            ));
        }
        return unit(host, pid, value).map(|name| Subject::Unit { name });
    }
    Ok(Subject::Host)
}

/// Whether it was set in another network namespace.
pub fn is_elsewhere(host: &Host, set: &JournaledSet, knob: &str) -> bool {
    let there = set.host.net_namespace.known();
    netns::is_of_namespace(knob) && there.is_some() && there != host.id().net_namespace.known()
}

/// An interface already kept, under its current name.
///
/// # Errors
/// The name cannot be written to a file.
pub fn renamed(before: &Interface, was: &str, now: &str) -> Result<Subject, String> {
    let rest = was.strip_prefix("nic.").and_then(|k| k.strip_prefix(before.name.as_str()));
    let name = now.strip_prefix("nic.").and_then(|k| k.strip_suffix(rest?));
    match name.filter(|n| is_nic_name(n)) {
        Some(name) => Ok(Subject::Nic(Interface { name: name.to_owned(), ..before.clone() })),
        None => Err("its name cannot be written to a file".into()),
    }
}

/// Names hold dots: the longest match with an interface counts.
pub(super) fn interface(
    host: &Host,
    destination: &Destination,
    facts: &Facts,
    rest: &str,
    known: &Record,
) -> Result<Interface, String> {
    let fits = |name: &str| rest.strip_prefix(name).is_some_and(|r| r.starts_with('.'));
    let nic = facts.nics.iter().filter(|n| fits(&n.name)).max_by_key(|n| n.name.len());
    let Some(nic) = nic.filter(|n| is_nic_name(&n.name)) else {
        return Err("the interface is gone".into());
    };
    if nic.kind == "loopback" || nic.name == "lo" {
        return Err("udev and systemd leave loopback alone".into());
    }
    // udev's records here come from this host's files.
    let number = nic.ifindex.known().filter(|_| !destination.is_another_system());
    let mtu_owner = number.and_then(|i| match owner::mtu(host, *i) {
        owner::Mtu::Of(owner) => Some(owner),
        owner::Mtu::Nobody | owner::Mtu::Overridden(_) => None,
    });
    // Once our own file applies, udev no longer shows the file that it replaced.
    for kept in &known.kept {
        if let Subject::Nic(i) = &kept.subject
            && i.name == nic.name
            && !is_anothers(facts, nic, i)
        {
            return Ok(Interface { mtu_owner, ..i.clone() });
        }
    }
    let physical = nic.kind == "physical";
    let files = destination.system(host);
    let link_file = number.and_then(|i| udev_property(host, *i, "ID_NET_LINK_FILE"));
    let link_file = link_file.or_else(|| {
        let there = |f: &&&str| files.root().exists(f);
        DEFAULT_LINK.iter().find(there).map(|f| (*f).to_owned())
    });
    let text = link_file.as_ref().and_then(|f| files.text(f).ok()).unwrap_or_default();
    Ok(Interface {
        name: nic.name.clone(),
        mac: nic.mac.get().filter(|_| physical),
        driver: nic.driver.get().filter(|_| physical),
        link_lines: section(&text, "Link"),
        link_file,
        mtu_owner,
    })
}

/// Whether the kept interface is another one: two interfaces swapped names.
fn is_anothers(facts: &Facts, nic: &Nic, kept: &Interface) -> bool {
    let has_it = |n: &Nic| n.kind == "physical" && n.mac.get() == kept.mac;
    kept.mac.is_some() && !has_it(nic) && facts.nics.iter().any(has_it)
}

/// A udev property of an interface. **Source**: `/run/udev/data/nIFINDEX`.
pub fn udev_property(host: &Host, ifindex: u32, name: &str) -> Option<String> {
    let text = host.text(&format!("/run/udev/data/n{ifindex}")).ok()?;
    text.lines()
        .find_map(|l| l.strip_prefix("E:")?.strip_prefix(name)?.strip_prefix('='))
        .map(str::to_owned)
}

/// The single action of an interrupt; the kernel creates a directory with its name.
fn action(host: &Host, number: &str) -> Result<String, String> {
    let root = host.root();
    let actions = |number: &str| -> Vec<String> {
        let all = root.entries(&format!("/proc/irq/{number}")).unwrap_or_default();
        all.into_iter().filter(|e| !IRQ_FILES.contains(&e.as_str())).collect()
    };
    let [action] = actions(number).try_into().map_err(|all: Vec<String>| {
        format!("the interrupt has {} names, and its number changes", all.len())
    })?;
    let same = root.entries("/proc/irq").unwrap_or_default();
    let same = same.iter().filter(|n| actions(n).contains(&action)).count();
    if same > 1 {
        return Err(format!("{same} interrupts are called {action:?}, and numbers change"));
    }
    Ok(action)
}

/// The system service of a process. **Source**: `/proc/PID/cgroup`.
fn unit(host: &Host, pid: &str, value: &str) -> Result<String, String> {
    let text = host.text(&format!("/proc/{pid}/cgroup")).map_err(|_| "the process is gone")?;
    let path = text
        .lines()
        .filter(|l| l.starts_with("0::") || l.contains(":name=systemd:"))
        .find_map(|l| l.splitn(3, ':').nth(2))
        .unwrap_or_default();
    let service = path.rsplit('/').find(|c| c.ends_with(".service"));
    match service.filter(|_| path.contains("system.slice")) {
        Some(name)
            if name.bytes().all(|b| b.is_ascii_alphanumeric() || b":-_.\\@".contains(&b)) =>
        {
            Ok(name.to_owned())
        }
        _ => Err(format!(
            "the process is of no system service (cgroup {path:?}): {}",
            starter::keeps_it(path, value)
        )),
    }
}
