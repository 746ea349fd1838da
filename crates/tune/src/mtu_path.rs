//! Checks that the path carries the larger packets of a raised MTU. An MTU above what a neighbor
//! accepts loses packets silently.

use std::{collections::BTreeSet, net::Ipv4Addr, time::Duration};

use model::tune::{PlanNote, Planned};
use probe::ask::echo::{self, SMALL};

use crate::{Host, TuneError, knob::mtu_of};

/// Peers of the path check, and its strictness.
#[derive(Clone, Copy)]
pub struct PathCheck<'a> {
    /// Hosts that must be reachable with the new size; if empty, the neighbors that answer.
    pub peers: &'a [Ipv4Addr],
    /// Whether a failed check undoes the changes.
    pub strict: bool,
    /// Called with each check that could not be made.
    pub tell: &'a dyn Fn(&str),
}

impl Default for PathCheck<'_> {
    fn default() -> Self {
        Self { peers: &[], strict: true, tell: &|_| {} }
    }
}

/// Largest number of neighbors to ask.
const MOST: usize = 4;
/// Timeout of the first answers.
const FIRST: Duration = Duration::from_secs(1);
/// Timeout of the answers of the new size; each request is sent several times.
const LARGE: Duration = Duration::from_secs(2);

/// A change that raises an MTU: its step, the interface and the new value.
fn raised(changes: &[Planned]) -> impl Iterator<Item = (usize, &str, usize)> {
    changes.iter().enumerate().filter_map(|(n, c)| {
        let nic = mtu_of(&c.knob)?;
        let (old, new) = (c.old.parse::<usize>().ok()?, c.new.parse().ok()?);
        (new > old).then_some((n, nic, new))
    })
}

/// Up to four neighbors of an interface whose address the kernel knows.
///
/// **Source**: `/proc/net/arp`; IPv6 neighbours are not asked.
pub fn neighbours(host: &Host, nic: &str) -> BTreeSet<Ipv4Addr> {
    const COMPLETE: u32 = 2;
    let text = host.text("/proc/net/arp").unwrap_or_default();
    let one = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let flags = words.get(2)?.strip_prefix("0x")?;
        let is_there = u32::from_str_radix(flags, 16).ok()? & COMPLETE != 0;
        (is_there && words.last() == Some(&nic)).then(|| words.first()?.parse().ok()).flatten()
    };
    text.lines().skip(1).filter_map(one).take(MOST).collect()
}

/// Notes of a plan on the path check.
pub fn notes(host: &Host, changes: &[Planned]) -> Vec<PlanNote> {
    let one = |(_, nic, new): (usize, &str, usize)| {
        let (neighbours, nic, mtu) = (neighbours(host, nic), nic.to_owned(), new);
        match neighbours.is_empty() {
            true => PlanNote::PathNotChecked { nic, mtu },
            false => PlanNote::PathIsChecked { nic, mtu, neighbours },
        }
    };
    raised(changes).map(one).collect()
}

fn listed(hosts: &BTreeSet<Ipv4Addr>) -> Option<String> {
    let all: Vec<String> = hosts.iter().map(ToString::to_string).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

/// Peers that answered before the first write, by step.
pub struct Before<'p> {
    check: PathCheck<'p>,
    paths: Vec<Path>,
}

struct Path {
    step: usize,
    nic: String,
    mtu: usize,
    answered: BTreeSet<Ipv4Addr>,
}

/// Asks the peers of the raised MTUs before the changes.
///
/// # Errors
/// A peer named by the user does not answer.
pub fn before<'p>(
    host: &Host,
    changes: &[Planned],
    check: PathCheck<'p>,
) -> Result<Before<'p>, TuneError> {
    let mut before = Before { check, paths: vec![] };
    if !host.is_live() {
        return Ok(before);
    }
    let given: BTreeSet<Ipv4Addr> = check.peers.iter().copied().collect();
    for (step, nic, mtu) in raised(changes) {
        let asked = if given.is_empty() { neighbours(host, nic) } else { given.clone() };
        let answered = match echo::answers(nic, &asked, SMALL, asked.len(), FIRST) {
            Ok(answered) => answered,
            Err(e) if given.is_empty() => {
                (check.tell)(&format!("whether the path takes {mtu} bytes is not checked: {e}"));
                continue;
            }
            Err(e) => return Err(TuneError::read(&e)),
        };
        before.paths.push(Path { step, nic: nic.to_owned(), mtu, answered });
    }
    let reached: BTreeSet<Ipv4Addr> =
        before.paths.iter().flat_map(|p| p.answered.clone()).collect();
    let silent: BTreeSet<Ipv4Addr> = given.difference(&reached).copied().collect();
    match listed(&silent).filter(|_| raised(changes).next().is_some()) {
        Some(silent) => Err(TuneError::Environment(format!(
            "--peer {silent} does not answer an echo request, so the path to it cannot be checked; \
             nothing was written"
        ))),
        None => Ok(before),
    }
}

impl Before<'_> {
    /// Asks again with the new size, once one of them answers at all.
    ///
    /// # Errors
    /// The step, and the peer that does not get packets of the new size.
    pub fn after(&self, link_wait: Duration) -> Result<(), (usize, TuneError)> {
        for path in &self.paths {
            let Path { step, nic, mtu, answered } = path;
            if answered.is_empty() {
                (self.check.tell)(&format!(
                    "whether the path takes {mtu} bytes was not checked: no neighbour of {nic} answers \
                     an echo request; --peer HOST names one that does"
                ));
                continue;
            }
            let failed = |e| (*step, TuneError::read(&e));
            let small = echo::answers(nic, answered, SMALL, 1, link_wait).map_err(failed)?;
            let large = match small.is_empty() {
                true => small,
                false => {
                    echo::answers(nic, answered, *mtu, answered.len(), LARGE).map_err(failed)?
                }
            };
            let lost: BTreeSet<Ipv4Addr> = answered.difference(&large).copied().collect();
            let Some(lost) = listed(&lost) else { continue };
            let why = format!(
                "packets of {mtu} bytes do not get to {lost} and back through {nic}, small ones did: raise \
                 the MTU there and on what is between, or give --i-understand"
            );
            if self.check.strict {
                return Err((*step, TuneError::Environment(why)));
            }
            (self.check.tell)(&why);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_those_of_the_interface_with_an_address() {
        let tree = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(tree.path().join("proc/net")).unwrap();
        let arp = "IP address       HW type     Flags       HW address            Mask     Device\n\
                   192.0.2.1        0x1         0x2         02:fc:00:00:00:05     *        eth0\n\
                   192.0.2.2        0x1         0x0         00:00:00:00:00:00     *        eth0\n\
                   192.0.2.3        0x1         0x6         02:fc:00:00:00:06     *        eth0\n\
                   192.0.2.4        0x1         0x2         02:fc:00:00:00:07     *        eth01\n";
        std::fs::write(tree.path().join("proc/net/arp"), arp).unwrap();
        let host = Host::tree(tree.path()).unwrap();
        assert_eq!(listed(&neighbours(&host, "eth0")).unwrap(), "192.0.2.1, 192.0.2.3");
        assert_eq!(listed(&neighbours(&host, "eth1")), None);
    }
}
