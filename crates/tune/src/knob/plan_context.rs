//! The inputs of a plan, and the questions that knobs ask of them.

use std::collections::BTreeMap;

use model::{
    CpuSet, Facts, NumaNode, Reading,
    cpu::Cpu,
    nic::Nic,
    tune::{AtStake, Disruption, Impact},
};

use super::{
    refusal::{Refusal, cannot, usage},
    value::cpus_of,
};
use crate::session::Session;

/// The inputs of a plan, besides the values themselves.
pub struct PlanContext<'a> {
    pub facts: &'a Facts,
    /// The operator's own connection.
    pub session: &'a Session,
    /// The MTU that the same plan gives each interface, by interface name.
    pub mtus: BTreeMap<String, u64>,
    /// Whether values that lower something or have no effect are intended: the operator confirmed
    /// them, or a measurement tests them.
    pub meant: bool,
}

impl<'a> PlanContext<'a> {
    /// For a plan without changes so far.
    pub fn new(facts: &'a Facts, session: &'a Session) -> Self {
        Self { facts, session, mtus: BTreeMap::new(), meant: false }
    }
}

impl PlanContext<'_> {
    pub fn nic(&self, name: &str) -> Option<&Nic> {
        self.facts.nics.iter().find(|n| n.name == name)
    }

    /// Impact on one interface, with the users of that interface.
    pub fn nic_impact(&self, nic: &str, disruption: Disruption, why: &str) -> Impact {
        if disruption == Disruption::None {
            return Impact::none();
        }
        let mut impact = Impact::of(disruption, why);
        impact.own_connection = self.session.passes(nic);
        let master = self.nic(nic).and_then(|n| n.master.known());
        if let Some(master) = master.filter(|m| !m.is_empty() && *m != "none") {
            let (nic, master) = (nic.to_owned(), master.clone());
            impact.also.push(AtStake::Member { nic, master });
        }
        if self.session.default_route.iter().any(|d| d == nic) {
            impact.also.push(AtStake::DefaultRoute { nic: nic.to_owned() });
        }
        impact
    }

    /// A CPU set as for [`cpus_of`], or `node:1` for a node's CPUs, or `local:eth0` for the CPUs of
    /// a NIC's node. The last two hold online, non-isolated CPUs only.
    ///
    /// # Errors
    /// The text is none of these, or names an unknown node or CPU.
    pub fn cpus(&self, wanted: &str) -> Result<CpuSet, Refusal> {
        let nodes = &self.facts.numa_nodes;
        let node = match wanted.split_once(':') {
            Some(("node", number)) => match number.parse() {
                Ok(number) => NumaNode(number),
                Err(_) => return usage(format!("{wanted:?} is not node:NUMBER")),
            },
            Some(("local", name)) => {
                let Some(nic) = self.nic(name) else {
                    return cannot(format!("no such interface: {name}"));
                };
                match (nic.numa_node.get(), nodes.as_slice()) {
                    (Some(node), _) => node,
                    (None, [only]) => only.id,
                    (None, _) => return cannot(format!("the node of {name} is not known")),
                }
            }
            _ => return cpus_of(wanted),
        };
        let Some(node) = nodes.iter().find(|n| n.id == node) else {
            return cannot(format!("there is no node {node}"));
        };
        let takes = |c: &&Cpu| {
            let on = node.cpus.contains(c.id) && c.online.get() != Some(false);
            on && c.isolated.get() != Some(true) && c.nohz_full.get() != Some(true)
        };
        let cpus: CpuSet = self.facts.cpus.iter().filter(takes).map(|c| c.id).collect();
        match cpus.is_empty() {
            true => cannot(format!("node {} has no CPU that is online and not isolated", node.id)),
            false => Ok(cpus),
        }
    }

    /// Refuses CPUs that are not online.
    ///
    /// # Errors
    /// The CPUs that are offline.
    pub fn online(&self, cpus: &CpuSet) -> Result<(), Refusal> {
        let Reading::Known(online) = &self.facts.host.cpus_online else {
            return cannot("which CPUs are online is not known");
        };
        if cpus.is_subset(online) {
            return Ok(());
        }
        cannot(format!("CPU {} is not online (online: {online})", cpus.difference(online)))
    }
}
