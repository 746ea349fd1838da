//! `irq.affinity=POLICY[:NIC]`: places a NIC's queue interrupts by a policy.

use std::collections::BTreeMap;

use model::{
    CpuId, CpuSet, Facts, Reading,
    cpu::Cpu,
    irq::Irq,
    nic::Nic,
    spread::{self, ordered},
};

use crate::knob::{Refusal, cannot, cpus_of, usage};

/// How the policies are spelled.
pub const SPELLING: &str = "irq.affinity=local|l3|spread|single|CPUS[:NIC]";

/// Which CPUs to use, and in which order.
enum Policy {
    /// The cores of the NIC's node, alternating between L3 caches, SMT siblings last.
    Local,
    /// As `Local`, but only the L3 cache of the node with the most cores.
    L3,
    /// All cores, those of the NIC's node first.
    Spread,
    /// The first CPU of `Local`.
    Single,
    List(CpuSet),
}

/// One change request for each queue interrupt. Receive and transmit queues of one number share a
/// CPU; interrupts without a queue are not moved.
///
/// # Errors
/// The policy is unknown, or no interrupt or CPU matches.
pub fn expand(value: &str, facts: &Facts) -> Result<Vec<(String, String)>, Refusal> {
    // `mask:f0` holds a colon itself.
    let value = value.strip_prefix("mask:").map_or(value.into(), |m| format!("0x{m}"));
    let (policy, nic) = match value.split_once(':') {
        Some((policy, nic)) => (policy, Some(nic)),
        None => (value.as_str(), None),
    };
    let policy = policy_of(policy)?;
    let Reading::Known(irqs) = &facts.irqs else {
        return cannot("the interrupts of this host cannot be read");
    };
    let nics: Vec<&Nic> = match nic {
        Some(name) => facts.nics.iter().filter(|n| n.name == name).collect(),
        None => facts.nics.iter().filter(|n| n.kind == "physical").collect(),
    };
    if let (Some(name), true) = (nic, nics.is_empty()) {
        return cannot(format!("no such interface: {name}"));
    }
    let mut taken = BTreeMap::new();
    let mut change_requests = Vec::new();
    let mut managed = 0;
    for nic in nics {
        let places = places(&policy, nic, facts)?;
        let mut queues: BTreeMap<u32, Vec<&Irq>> = BTreeMap::new();
        for irq in irqs.iter().filter(|i| i.nic.known() == Some(&nic.name)) {
            match irq.queues.first() {
                Some(_) if irq.managed.get() == Some(true) => managed += 1,
                Some(queue) => queues.entry(queue.index).or_default().push(irq),
                None => {}
            }
        }
        let assignments = spread::assignments(queues.keys().copied(), &places, &mut taken);
        if assignments.is_empty() && !queues.is_empty() {
            return cannot("no CPU is left: all are offline, isolated or banned to irqbalance");
        }
        for (number, cpu) in assignments {
            let irqs = queues.get(&number).map(Vec::as_slice).unwrap_or_default();
            let one = |i: &&Irq| (format!("irq.{}.affinity", i.irq), cpu.to_string());
            change_requests.extend(irqs.iter().map(one));
        }
    }
    match (change_requests.is_empty(), managed) {
        (false, _) => Ok(change_requests),
        (true, 0) => cannot("no interrupt is known to be a queue's of such a NIC"),
        (true, _) => {
            cannot("the kernel manages these interrupts, and their affinity cannot be set")
        }
    }
}

fn policy_of(text: &str) -> Result<Policy, Refusal> {
    Ok(match text {
        "local" => Policy::Local,
        "l3" => Policy::L3,
        "spread" => Policy::Spread,
        "single" => Policy::Single,
        _ => match cpus_of(text) {
            Ok(cpus) if !cpus.is_empty() => Policy::List(cpus),
            _ => return usage(format!("{text:?} is no policy: {SPELLING}")),
        },
    })
}

/// CPUs for a NIC's queues, best first.
fn places(policy: &Policy, nic: &Nic, facts: &Facts) -> Result<Vec<CpuId>, Refusal> {
    if let Policy::List(cpus) = policy {
        return Ok(cpus.iter().collect()); // the knob itself refuses those that are offline
    }
    let free = free(facts);
    let node = nic.numa_node.get();
    let on_node = |c: &&Cpu| node.is_none() || c.numa_node.get() == node;
    let local: Vec<&Cpu> = free.iter().copied().filter(on_node).collect();
    // A memory-only node, or a node with all CPUs isolated.
    let local = if local.is_empty() { free.clone() } else { local };
    Ok(match policy {
        Policy::Spread => ordered(&free, node),
        Policy::Single => ordered(&local, node).into_iter().take(1).collect(),
        Policy::L3 => ordered(&largest_l3(&local), node),
        Policy::Local | Policy::List(_) => ordered(&local, node),
    })
}

/// CPUs that take interrupts: online, not isolated, and not banned by irqbalance's settings.
fn free(facts: &Facts) -> Vec<&Cpu> {
    let banned: Vec<&CpuSet> = facts.tuners.iter().filter_map(|r| r.banned_cpus.known()).collect();
    let takes = |c: &&Cpu| {
        c.online.get() != Some(false)
            && c.isolated.get() != Some(true)
            && c.nohz_full.get() != Some(true)
            && !banned.iter().any(|b| b.contains(c.id))
    };
    facts.cpus.iter().filter(takes).collect()
}

/// The CPUs of the L3 cache with the most cores, the lowest on a tie; all CPUs if caches are
/// unknown.
fn largest_l3<'c>(cpus: &[&'c Cpu]) -> Vec<&'c Cpu> {
    let mut sizes: BTreeMap<CpuId, usize> = BTreeMap::new();
    for l3 in cpus.iter().filter_map(|c| c.l3_id.get()) {
        *sizes.entry(l3).or_default() += 1;
    }
    let best = sizes.iter().max_by_key(|(l3, n)| (**n, std::cmp::Reverse(**l3))).map(|(l3, _)| *l3);
    cpus.iter().copied().filter(|c| best.is_none() || c.l3_id.get() == best).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use model::NumaNode;
    use probe::{Root, facts};

    use super::*;

    /// Two nodes of two L3 caches of two cores of two threads: 16 CPUs, numbered threads last;
    /// a NIC of six queues on node 1; CPU 12 (node 1) is isolated.
    fn host(tree: &Path, isolated: &str) -> Facts {
        let put = |path: String, text: &str| {
            let file = tree.join(path);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        };
        let cpu = "sys/devices/system/cpu";
        for file in ["online", "present", "possible"] {
            put(format!("{cpu}/{file}"), "0-15\n");
        }
        put(format!("{cpu}/isolated"), &format!("{isolated}\n"));
        for id in 0..16u32 {
            let core = id % 8;
            let l3 = core / 2;
            let (a, b) = (l3 * 2, l3 * 2 + 1);
            put(format!("{cpu}/cpu{id}/online"), "1\n");
            put(format!("{cpu}/cpu{id}/topology/core_id"), &format!("{core}\n"));
            put(format!("{cpu}/cpu{id}/topology/physical_package_id"), "0\n");
            put(
                format!("{cpu}/cpu{id}/topology/thread_siblings_list"),
                &format!("{core},{}\n", core + 8),
            );
            for (file, text) in [
                ("level", "3".to_owned()),
                ("type", "Unified".into()),
                ("shared_cpu_list", format!("{a}-{b},{}-{}", a + 8, b + 8)),
            ] {
                put(format!("{cpu}/cpu{id}/cache/index3/{file}"), &format!("{text}\n"));
            }
        }
        put("sys/devices/system/node/online".into(), "0-1\n");
        put("sys/devices/system/node/node0/cpulist".into(), "0-3,8-11\n");
        put("sys/devices/system/node/node1/cpulist".into(), "4-7,12-15\n");
        let pci = "sys/devices/pci0000:80/0000:81:00.0";
        put(format!("{pci}/vendor"), "0x8086\n");
        put(format!("{pci}/numa_node"), "1\n");
        put(format!("{pci}/net/eth0/ifindex"), "2\n");
        put(format!("{pci}/net/eth0/type"), "1\n");
        let link = |from: &str, to: &str| {
            let from = tree.join(from);
            std::fs::create_dir_all(from.parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(to, from).unwrap();
        };
        link("sys/class/net/eth0", "../../devices/pci0000:80/0000:81:00.0/net/eth0");
        link(&format!("{pci}/net/eth0/device"), "../../../0000:81:00.0");
        link("sys/bus/pci/devices/0000:81:00.0", "../../../devices/pci0000:80/0000:81:00.0");
        let mut interrupts = String::from("           CPU0\n");
        for queue in 0..6 {
            let irq = 40 + queue;
            put(format!("{pci}/msi_irqs/{irq}"), "msix\n");
            put(format!("{pci}/net/eth0/queues/rx-{queue}/rps_cpus"), "0\n");
            put(format!("{pci}/net/eth0/queues/tx-{queue}/xps_cpus"), "0\n");
            put(format!("proc/irq/{irq}/smp_affinity_list"), "0-15\n");
            interrupts += &format!(" {irq}:  1  PCI-MSI {irq}-edge  i40e-eth0-TxRx-{queue}\n");
        }
        interrupts += " 50:  1  PCI-MSI 50-edge  i40e-0000:81:00.0:misc\n";
        put("proc/interrupts".into(), &interrupts);
        facts::collect(&Root::open(tree).unwrap(), &facts::Request { processes: vec![] })
    }

    fn cpus(facts: &Facts, policy: &str) -> Vec<u32> {
        let all = expand(policy, facts).unwrap();
        let names: Vec<&str> = all.iter().map(|(knob, _)| knob.as_str()).collect();
        let expected: Vec<String> = (40..46).map(|i| format!("irq.{i}.affinity")).collect();
        assert_eq!(names, expected, "the queues' and no other");
        all.iter().map(|(_, cpu)| cpu.parse().unwrap()).collect()
    }

    #[test]
    fn a_policy_is_a_cpu_for_each_queue() {
        let tree = tempfile::tempdir().unwrap();
        let facts = host(tree.path(), "");
        assert_eq!(facts.nics[0].numa_node.get(), Some(NumaNode(1)));
        // Cores 4-7, alternating between the caches (4,5) and (6,7), then their siblings.
        assert_eq!(cpus(&facts, "local"), [4, 6, 5, 7, 12, 14]);
        assert_eq!(cpus(&facts, "local:eth0"), [4, 6, 5, 7, 12, 14]);
        assert_eq!(cpus(&facts, "l3"), [4, 5, 12, 13, 4, 5]);
        assert_eq!(cpus(&facts, "spread"), [4, 6, 5, 7, 0, 2]);
        assert_eq!(cpus(&facts, "single"), [4; 6]);
        assert_eq!(cpus(&facts, "1-3:eth0"), [1, 2, 3, 1, 2, 3]);
        assert_eq!(cpus(&facts, "mask:f0:eth0"), [4, 5, 6, 7, 4, 5]);
        assert_eq!(cpus(&facts, "f0:eth0"), [4, 5, 6, 7, 4, 5]);
        for bad in ["", "close", "local:eth9", "f0g"] {
            assert!(expand(bad, &facts).is_err(), "{bad:?} was taken");
        }
    }

    #[test]
    fn a_node_by_number_or_of_a_nic_is_its_free_cpus() {
        let tree = tempfile::tempdir().unwrap();
        let facts = host(tree.path(), "12");
        let session = crate::session::Session::default();
        let context = crate::knob::PlanContext::new(&facts, &session);
        let of = |text: &str| context.cpus(text).map(|c| c.to_string()).map_err(|r| r.why);
        assert_eq!(of("node:0").unwrap(), "0-3,8-11");
        assert_eq!(of("node:1").unwrap(), "4-7,13-15");
        assert_eq!(of("local:eth0").unwrap(), "4-7,13-15");
        assert_eq!(of("f0").unwrap(), "4-7");
        for (bad, why) in [
            ("node:7", "there is no node 7"),
            ("node:x", "is not node:NUMBER"),
            ("local:eth9", "no such interface: eth9"),
        ] {
            assert!(of(bad).unwrap_err().contains(why), "{bad}: {:?}", of(bad));
        }
    }

    #[test]
    fn isolated_cpus_are_left_alone() {
        let tree = tempfile::tempdir().unwrap();
        let facts = host(tree.path(), "4-6,12-15");
        assert_eq!(cpus(&facts, "local"), [7; 6]);
        let tree = tempfile::tempdir().unwrap();
        let facts = host(tree.path(), "4-7,12-15");
        assert_eq!(cpus(&facts, "local"), [0, 2, 1, 3, 8, 10], "the node has none left");
    }
}
