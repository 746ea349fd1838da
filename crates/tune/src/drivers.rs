//! Impact of an ethtool action: from the table of driver behavior ([`model::drivers`]), bond
//! members, and the interfaces that the operator's connection uses.

pub use model::drivers::Act;
use model::{
    drivers,
    tune::{Basis, Disruption, Impact},
};

use crate::knob::PlanContext;

impl PlanContext<'_> {
    /// Impact of this action on the interface, with the basis of that statement.
    pub fn act_impact(&self, nic: &str, act: Act<'_>) -> Impact {
        let (disruption, why, basis) = self.act(nic, act);
        let mut impact = Impact { basis, ..self.nic_impact(nic, disruption, &why) };
        // A bond or team passes these to its members (bond_change_mtu, team_change_mtu,
        // netdev_sync_lower_features); each member's driver decides the impact.
        let handed_on = matches!(act, Act::Mtu | Act::Feature("rx-lro"));
        for member in self.members(nic).into_iter().filter(|_| handed_on) {
            let of_member = self.act_impact(member, act);
            impact.own_connection |= of_member.own_connection;
            impact.also.extend(of_member.also);
            if of_member.disruption > impact.disruption {
                impact.disruption = of_member.disruption;
                impact.why = format!("its member {member} gets it too: {}", of_member.why);
                impact.basis = of_member.basis;
            }
        }
        impact
    }

    fn act(&self, name: &str, act: Act<'_>) -> (Disruption, String, Basis) {
        let nic = self.nic(name);
        let driver = nic.and_then(|n| n.driver.known()).map(String::as_str);
        drivers::impact(driver, nic.is_none_or(|n| n.kind == "physical"), act)
    }

    /// Members of a bond or team, by name.
    fn members(&self, name: &str) -> Vec<&str> {
        let bundles = self.nic(name).is_some_and(|n| n.kind == "bond" || n.kind == "team");
        let of = |n: &&model::nic::Nic| n.master.known().is_some_and(|m| m == name);
        self.facts.nics.iter().filter(|_| bundles).filter(of).map(|n| n.name.as_str()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Session;
    use Act::{Mtu, Pause, Rings, RssTable};
    use Disruption::{BriefStall, LinkReset};
    use model::{Facts, Reading};
    use probe::{
        Root,
        facts::{self, Request},
    };

    /// A host with one physical interface for each driver, and a bond of the named interfaces.
    fn host(drivers: &[&str], bonded: &[&str]) -> Facts {
        let tree = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = tree.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        for (i, name) in drivers.iter().chain(&["bond0"]).enumerate() {
            put(&format!("sys/class/net/{name}/ifindex"), &format!("{}\n", i + 2));
            put(&format!("sys/class/net/{name}/type"), "1\n");
        }
        let mut facts =
            facts::collect(&Root::open(tree.path()).unwrap(), &Request { processes: vec![] });
        for nic in &mut facts.nics {
            nic.kind = if nic.name == "bond0" { "bond" } else { "physical" }.into();
            if nic.kind == "physical" {
                nic.driver = Reading::Known(nic.name.clone());
            }
            if bonded.contains(&nic.name.as_str()) {
                nic.master = Reading::Known("bond0".into());
            }
        }
        facts
    }

    fn impact(facts: &Facts, nic: &str, act: Act<'_>) -> Impact {
        let remote = Session { remote: Some("192.0.2.1".into()), ..Session::default() };
        let context = PlanContext::new(facts, &remote);
        context.act_impact(nic, act)
    }

    #[test]
    fn what_a_driver_does_is_said_of_it_and_the_rest_is_assumed() {
        let all = ["virtio_net", "vmxnet3", "e1000e", "mlx5_core", "r8169", "foo"];
        let facts = host(&all, &[]);
        for (nic, act, disruption, basis, why) in [
            ("virtio_net", Rings, BriefStall, Basis::Driver, "virtio_net takes it without"),
            ("virtio_net", Mtu, BriefStall, Basis::Driver, "without a reset"),
            ("virtio_net", RssTable, BriefStall, Basis::Driver, "without a reset"),
            ("vmxnet3", Rings, LinkReset, Basis::Driver, "vmxnet3 resets the device"),
            ("vmxnet3", Mtu, LinkReset, Basis::Driver, "vmxnet3 resets the device"),
            ("vmxnet3", Act::Feature("rx-lro"), BriefStall, Basis::Driver, "a command, without"),
            ("e1000e", Act::Feature("rx-hashing"), LinkReset, Basis::Driver, "down and up"),
            ("e1000e", Act::Feature("tx-tcp-segmentation"), BriefStall, Basis::Driver, "without"),
            ("mlx5_core", Rings, LinkReset, Basis::Driver, "without carrier"),
            ("mlx5_core", Act::Coalesce("adaptive_rx"), LinkReset, Basis::Driver, "new ones"),
            ("mlx5_core", Act::Coalesce("rx_usecs"), BriefStall, Basis::Assumed, "not known of"),
            ("mlx5_core", Act::Feature("rx-gro"), LinkReset, Basis::Assumed, "not known of"),
            ("r8169", Mtu, LinkReset, Basis::Driver, "renegotiates the link"),
            ("foo", Rings, LinkReset, Basis::Assumed, "assumed, unknown driver foo: many"),
            ("foo", Mtu, LinkReset, Basis::Assumed, "unknown driver foo"),
            ("foo", RssTable, BriefStall, Basis::General, "flows change"),
            ("bond0", Mtu, BriefStall, Basis::General, "large packets"),
        ] {
            let r = impact(&facts, nic, act);
            assert_eq!((r.disruption, r.basis), (disruption, basis), "{nic} {act:?}: {r:?}");
            assert!(r.why.contains(why), "{nic} {act:?}: {}", r.why);
            assert!(r.own_connection, "the watchdog stands: {r:?}");
        }
    }

    /// Every action with an impact needs the watchdog.
    #[test]
    fn no_row_takes_the_guard_away() {
        let facts = host(&[], &[]);
        for act in [Act::Channels, Rings, Mtu, Pause, Act::Feature("x"), Act::Coalesce("x")] {
            let r = impact(&facts, "gone", act);
            assert!(r.disruption >= BriefStall && r.own_connection, "{r:?}");
        }
    }

    #[test]
    fn a_bonds_mtu_reaches_as_far_as_that_of_its_worst_member() {
        let brief = host(&["virtio_net", "ena"], &["virtio_net", "ena"]);
        assert_eq!(impact(&brief, "bond0", Mtu).disruption, BriefStall);
        let facts = host(&["virtio_net", "igb"], &["virtio_net", "igb"]);
        let r = impact(&facts, "bond0", Mtu);
        assert_eq!((r.disruption, r.basis), (LinkReset, Basis::Driver));
        assert_eq!(r.why, "its member igb gets it too: igb takes the interface down and up");
        assert!(r.also.iter().any(|a| a.to_string() == "igb is a member of bond0"), "{r:?}");
        // Features are not passed to the members.
        assert_eq!(impact(&facts, "bond0", Act::Feature("rx-gro")).disruption, BriefStall);
    }
}
