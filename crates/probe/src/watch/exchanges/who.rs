//! Selects the connections to observe.

use std::collections::BTreeSet;

use parse::{inet_diag::LISTEN, proc_net_tcp};

use crate::{Root, ask::sock_diag};

/// Services that were asked for, and are there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Services {
    pub ports: Vec<u16>,
    /// Only those of these processes and their descendants; empty: anybody's.
    pub pids: Vec<u32>,
    /// Ports on which they begin to listen, and Unix sockets, too.
    pub any_port: bool,
}

/// The services on these ports, limited to these processes if there are any. Without ports: all
/// ports with a listener in the processes' namespaces.
///
/// # Errors
/// A process does not exist, or a port has no listener in any network namespace of this host.
pub fn find(root: &Root, ports: &[u16], pids: &[u32]) -> Result<Services, String> {
    if let Some(pid) = pids.iter().find(|pid| !root.exists(&format!("/proc/{pid}"))) {
        return Err(format!("no process {pid} here"));
    }
    let mut services =
        Services { ports: ports.to_vec(), pids: pids.to_vec(), any_port: ports.is_empty() };
    if ports.is_empty() {
        let all: BTreeSet<u16> = pids.iter().flat_map(|pid| listened(root, *pid)).collect();
        services.ports = all.into_iter().collect();
        return Ok(services);
    }
    let mut missing: BTreeSet<u16> = ports.iter().copied().collect();
    if let Ok(here) = sock_diag::listeners(root) {
        missing.retain(|port| here.entries.iter().all(|l| l.address.port() != *port));
    }
    if !missing.is_empty() {
        elsewhere(root, &mut missing);
    }
    match missing.first() {
        None => Ok(services),
        Some(port) => {
            Err(format!("no process listens on TCP port {port}, in any namespace of this host"))
        }
    }
}

/// The ports on which anybody listens in this process's network namespace.
fn listened(root: &Root, pid: u32) -> Vec<u16> {
    let files = ["tcp", "tcp6"].map(|name| format!("/proc/{pid}/net/{name}"));
    let texts = files.iter().filter_map(|path| root.read(path).ok());
    let sockets = texts.flat_map(|text| proc_net_tcp::parse(&text).sockets);
    sockets.filter(|s| s.state == LISTEN).map(|s| s.local.port()).collect()
}

/// Removes ports with a listener in another namespace, such as a container's.
fn elsewhere(root: &Root, missing: &mut BTreeSet<u16>) {
    let mut seen = BTreeSet::new();
    let names = root.entries("/proc").unwrap_or_default();
    for pid in names.iter().filter_map(|name| name.parse::<u32>().ok()) {
        let namespace = root.link(&format!("/proc/{pid}/ns/net"));
        if namespace.is_ok_and(|name| seen.insert(name)) {
            let here = listened(root, pid);
            missing.retain(|port| !here.contains(port));
        }
        if missing.is_empty() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_port_that_is_listened_on_is_found_by_itself_and_by_its_process() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let root = Root::live();
        let own = std::process::id();
        let services = find(&root, &[port], &[own]).unwrap();
        assert_eq!(services, Services { ports: vec![port], pids: vec![own], any_port: false });
        let services = find(&root, &[], &[own]).unwrap();
        assert!(services.ports.contains(&port) && services.any_port);
        drop(listener);
        let why = find(&root, &[port], &[]).unwrap_err();
        assert!(why.contains(&port.to_string()), "{why}");
        let why = find(&root, &[], &[u32::MAX]).unwrap_err();
        assert!(why.contains("no process 4294967295"), "{why}");
    }
}
