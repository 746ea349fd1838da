//! A bridge with container-like hosts, set up as by a container engine but without one. Each has
//! its own namespace, cgroup, cpuset, veth, and a first process.
//!
//! The bridge has its own namespace (`nw-LAB-bridge`), so the machine's links, forwarding and
//! firewall stay as they are.

use std::os::unix::process::CommandExt;

use crate::{
    LabError, cgroup, host, netns,
    state::{HostState, Lab, NodeAccess},
    tool,
};

/// Parameters of a set of containers.
#[derive(Debug, Clone)]
pub struct ContainersSpec {
    pub count: u32,
    /// CPUs of every cpuset, as a cpulist; `None` for all of the machine.
    pub cpus: Option<String>,
    /// MTU of all links; `None` keeps the default.
    pub mtu: Option<u32>,
}

impl Default for ContainersSpec {
    fn default() -> Self {
        Self { count: 2, cpus: None, mtu: None }
    }
}

/// Creates the bridge and the hosts `c1`, `c2`, ….
///
/// # Errors
/// Errors of the tools and the kernel.
pub fn up(lab: &mut Lab, spec: &ContainersSpec) -> Result<(), LabError> {
    if !(1..=64).contains(&spec.count) {
        return Err(LabError::Usage(format!("--count must be 1 to 64, not {}", spec.count)));
    }
    let bridge = netns::make(lab, "bridge")?;
    tool::ip(&format!("-n {bridge} link add br0 type bridge"))?;
    netns::address(&bridge, "br0", &["10.98.0.1/24"])?;
    for n in 1..=spec.count {
        let name = format!("c{n}");
        let space = netns::make(lab, &name)?;
        tool::ip(&format!("-n {space} link add eth0 type veth peer name veth{n} netns {bridge}"))?;
        if let Some(mtu) = spec.mtu {
            tool::ip(&format!("-n {space} link set eth0 mtu {mtu}"))?;
            tool::ip(&format!("-n {bridge} link set veth{n} mtu {mtu}"))?;
        }
        tool::ip(&format!("-n {bridge} link set veth{n} master br0 up"))?;
        let address = format!("10.98.0.{}", n + 1);
        netns::address(&space, "eth0", &[&format!("{address}/24")])?;
        tool::ip(&format!("-n {space} route add default via 10.98.0.1"))?;
        let id = container_id(&lab.state.name, n);
        let cgroups = cgroup::make(lab, &id, spec.cpus.as_deref())?;
        let host = HostState {
            name,
            reach: NodeAccess::Namespace { namespace: space, cgroups },
            addresses: vec![address],
            about: format!("container-like, id {}", id.get(..12).unwrap_or(&id)),
        };
        start_first_process(lab, &host)?;
        lab.add_host(host);
    }
    Ok(())
}

/// A 64-digit id like those of engines, always the same for a lab and number: FNV-1a (Fowler, Noll
/// and Vo) of the name, extended by SplitMix64 (Steele, Lea and Flood, 2014).
fn container_id(lab: &str, n: u32) -> String {
    let name = format!("{lab}/{n}");
    let mut state = name.bytes().fold(0xcbf2_9ce4_8422_2325u64, |h, b| {
        (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    (0..4)
        .map(|_| {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            format!("{:016x}", z ^ (z >> 31))
        })
        .collect()
}

/// Starts the container's main process, which holds the namespace and the cgroup.
fn start_first_process(lab: &mut Lab, host: &HostState) -> Result<(), LabError> {
    let argv = ["sh", "-c", "read -r _ && exec sleep infinity </dev/null"].map(str::to_owned);
    let mut command = host::command(host, &argv)?;
    command
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .process_group(0);
    let mut child =
        command.spawn().map_err(|e| LabError::failed(format!("starting {}", host.name), e))?;
    lab.release(&mut child, &format!("first process of {}", host.name))
}
