//! The operator's own connection: its source address and interfaces. A change that may cut it is
//! reported before it is made.

use model::{
    Facts, Reading,
    nic::{KindDetails, Nic},
};
use probe::Root;

/// The operator's own connection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Session {
    /// The remote address; `None` at a local terminal.
    pub remote: Option<String>,
    /// Interfaces that it uses, including those below; empty if unknown.
    pub devices: Vec<String>,
    /// Interfaces with a default route.
    pub default_route: Vec<String>,
}

/// Number of ancestor processes to search for `SSH_CONNECTION`.
const GENERATIONS: usize = 32;

impl Session {
    /// Finds the connection. `ssh_connection` is this process's `SSH_CONNECTION`; if `sudo` or a
    /// multiplexer removed it, an ancestor still has it.
    pub fn find(root: &Root, facts: &Facts, ssh_connection: Option<&str>) -> Self {
        let default_route = default_routes(root);
        let text = ssh_connection.map(str::to_owned).or_else(|| of_ancestors(root));
        let Some((remote, local)) = text.as_deref().and_then(ends) else {
            return Self { default_route, ..Self::default() };
        };
        let here = |n: &&Nic| {
            let has = |a: &String| a.split('/').next() == Some(local);
            n.addresses.known().is_some_and(|a| a.iter().any(has))
        };
        let devices = facts.nics.iter().find(here).map(|n| with_lower(&facts.nics, &n.name));
        Self {
            remote: Some(remote.to_owned()),
            devices: devices.unwrap_or_default(),
            default_route,
        }
    }

    /// Whether the connection uses an interface; `true` if its path is unknown.
    pub fn passes(&self, nic: &str) -> bool {
        self.remote.is_some() && (self.devices.is_empty() || self.devices.iter().any(|d| d == nic))
    }
}

/// The remote and the local address of `REMOTE PORT LOCAL PORT`.
fn ends(text: &str) -> Option<(&str, &str)> {
    let words: Vec<&str> = text.split_whitespace().collect();
    match words.as_slice() {
        [remote, _, local, _] => Some((remote, local.split('%').next().unwrap_or(local))),
        _ => None,
    }
}

/// `SSH_CONNECTION` of the nearest ancestor that has it.
fn of_ancestors(root: &Root) -> Option<String> {
    let mut pid = parent(root, "self")?;
    for _ in 0..GENERATIONS {
        if pid <= 1 {
            return None;
        }
        let environment = root.read(&format!("/proc/{pid}/environ")).unwrap_or_default();
        let found = environment.split(|b| *b == 0).find_map(|v| v.strip_prefix(b"SSH_CONNECTION="));
        if let Some(value) = found.filter(|v| !v.is_empty()) {
            return String::from_utf8(value.to_vec()).ok();
        }
        pid = parent(root, &pid.to_string())?;
    }
    None
}

fn parent(root: &Root, pid: &str) -> Option<u32> {
    let stat = root.read(&format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat).into_owned();
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// An interface and all interfaces below it (bond members, bridge ports, a VLAN's device).
fn with_lower(nics: &[Nic], name: &str) -> Vec<String> {
    let mut all = vec![name.to_owned()];
    let mut next = 0;
    while let Some(upper) = all.get(next).cloned() {
        next += 1;
        for nic in nics {
            let under = nic.master.known() == Some(&upper);
            if under && !all.contains(&nic.name) {
                all.push(nic.name.clone());
            }
        }
        let below = nics.iter().find(|n| n.name == upper).map(|n| &n.details);
        if let Some(
            KindDetails::Vlan { lower: Reading::Known(lower), .. }
            | KindDetails::Macvlan { lower: Reading::Known(lower), .. },
        ) = below
            && !all.contains(lower)
        {
            all.push(lower.clone());
        }
    }
    all
}

/// Interfaces with a default route. **Source**: `/proc/net/route` (destination 0) and
/// `/proc/net/ipv6_route` (`::/0`).
fn default_routes(root: &Root) -> Vec<String> {
    let text = |path| String::from_utf8_lossy(&root.read(path).unwrap_or_default()).into_owned();
    let mut all: Vec<String> = Vec::new();
    for line in text("/proc/net/route").lines().skip(1) {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let [nic, "00000000", ..] = words.as_slice()
            && words.get(7) == Some(&"00000000")
        {
            all.push((*nic).to_owned());
        }
    }
    for line in text("/proc/net/ipv6_route").lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let [to, "00", .., nic] = words.as_slice()
            && to.bytes().all(|b| b == b'0')
            && *nic != "lo"
        {
            all.push((*nic).to_owned());
        }
    }
    all.sort();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_are_read() {
        assert_eq!(ends("10.1.2.3 50000 10.1.2.4 22"), Some(("10.1.2.3", "10.1.2.4")));
        assert_eq!(ends("fe80::1%eth0 50000 fe80::2%eth0 22"), Some(("fe80::1%eth0", "fe80::2")));
        assert_eq!(ends("UNKNOWN"), None);
    }

    #[test]
    fn a_connection_whose_way_is_not_known_may_pass_anywhere() {
        let unknown = Session { remote: Some("10.0.0.1".into()), ..Session::default() };
        assert!(unknown.passes("eth0"));
        let known = Session { devices: vec!["eth1".into()], ..unknown };
        assert!(known.passes("eth1") && !known.passes("eth0"));
        assert!(!Session::default().passes("eth0"), "a local terminal");
    }
}
