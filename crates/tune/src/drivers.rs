//! How far it reaches to tell an interface's driver something: the table of what drivers do
//! ([`model::drivers`]), the members of a bond, and whose connection passes.

pub use model::drivers::Act;
use model::{
    drivers,
    tune::{Ground, Radius, Reach},
};

use crate::knob::Case;

impl Case<'_> {
    /// How far it reaches to tell an interface's driver something, and on what ground that is
    /// said.
    pub fn act_radius(&self, nic: &str, act: Act<'_>) -> Radius {
        let (reach, why, ground) = self.act(nic, act);
        let mut radius = Radius { ground, ..self.nic_radius(nic, reach, &why) };
        // A bond or team hands these on to its members (bond_change_mtu, team_change_mtu,
        // netdev_sync_lower_features), which is what the driver of each makes of it.
        let handed_on = matches!(act, Act::Mtu | Act::Feature("rx-lro"));
        for member in self.members(nic).into_iter().filter(|_| handed_on) {
            let of_member = self.act_radius(member, act);
            radius.own_connection |= of_member.own_connection;
            radius.also.extend(of_member.also);
            if of_member.reach > radius.reach {
                radius.reach = of_member.reach;
                radius.why = format!("its member {member} gets it too: {}", of_member.why);
                radius.ground = of_member.ground;
            }
        }
        radius
    }

    fn act(&self, name: &str, act: Act<'_>) -> (Reach, String, Ground) {
        let nic = self.nic(name);
        let driver = nic.and_then(|n| n.driver.known()).map(String::as_str);
        drivers::impact(driver, nic.is_none_or(|n| n.kind == "physical"), act)
    }

    /// The members of a bond or team.
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
    use Reach::{BriefStall, LinkReset};
    use model::{Facts, Reading};
    use probe::{
        Root,
        facts::{self, Request},
    };

    /// A host with one physical interface for each driver, and a bond of those named.
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

    fn radius(facts: &Facts, nic: &str, act: Act<'_>) -> Radius {
        let remote = Session { remote: Some("192.0.2.1".into()), ..Session::default() };
        let case = Case::new(facts, &remote);
        case.act_radius(nic, act)
    }

    #[test]
    fn what_a_driver_does_is_said_of_it_and_the_rest_is_assumed() {
        let all = ["virtio_net", "vmxnet3", "e1000e", "mlx5_core", "r8169", "foo"];
        let facts = host(&all, &[]);
        for (nic, act, reach, ground, why) in [
            ("virtio_net", Rings, BriefStall, Ground::Driver, "virtio_net takes it without"),
            ("virtio_net", Mtu, BriefStall, Ground::Driver, "without a reset"),
            ("virtio_net", RssTable, BriefStall, Ground::Driver, "without a reset"),
            ("vmxnet3", Rings, LinkReset, Ground::Driver, "vmxnet3 resets the device"),
            ("vmxnet3", Mtu, LinkReset, Ground::Driver, "vmxnet3 resets the device"),
            ("vmxnet3", Act::Feature("rx-lro"), BriefStall, Ground::Driver, "by a command"),
            ("e1000e", Act::Feature("rx-hashing"), LinkReset, Ground::Driver, "down and up"),
            ("e1000e", Act::Feature("tx-tcp-segmentation"), BriefStall, Ground::Driver, "without"),
            ("mlx5_core", Rings, LinkReset, Ground::Driver, "without carrier"),
            ("mlx5_core", Act::Coalesce("adaptive_rx"), LinkReset, Ground::Driver, "new ones"),
            ("mlx5_core", Act::Coalesce("rx_usecs"), BriefStall, Ground::Assumed, "not known of"),
            ("mlx5_core", Act::Feature("rx-gro"), LinkReset, Ground::Assumed, "not known of"),
            ("r8169", Mtu, LinkReset, Ground::Driver, "negotiates the link anew"),
            ("foo", Rings, LinkReset, Ground::Assumed, "assumed, unknown driver foo: many"),
            ("foo", Mtu, LinkReset, Ground::Assumed, "unknown driver foo"),
            ("foo", RssTable, BriefStall, Ground::General, "flows change"),
            ("bond0", Mtu, BriefStall, Ground::General, "large packets"),
        ] {
            let r = radius(&facts, nic, act);
            assert_eq!((r.reach, r.ground), (reach, ground), "{nic} {act:?}: {r:?}");
            assert!(r.why.contains(why), "{nic} {act:?}: {}", r.why);
            assert!(r.own_connection, "the guard stands: {r:?}");
        }
    }

    /// The guard stands for whatever reaches further than nothing.
    #[test]
    fn no_row_takes_the_guard_away() {
        let facts = host(&[], &[]);
        for act in [Act::Channels, Rings, Mtu, Pause, Act::Feature("x"), Act::Coalesce("x")] {
            let r = radius(&facts, "gone", act);
            assert!(r.reach >= BriefStall && r.own_connection, "{r:?}");
        }
    }

    #[test]
    fn a_bonds_mtu_reaches_as_far_as_that_of_its_worst_member() {
        let calm = host(&["virtio_net", "ena"], &["virtio_net", "ena"]);
        assert_eq!(radius(&calm, "bond0", Mtu).reach, BriefStall);
        let facts = host(&["virtio_net", "igb"], &["virtio_net", "igb"]);
        let r = radius(&facts, "bond0", Mtu);
        assert_eq!((r.reach, r.ground), (LinkReset, Ground::Driver));
        assert_eq!(r.why, "its member igb gets it too: igb takes the interface down and up");
        assert!(r.also.contains(&"igb is a member of bond0".into()), "{r:?}");
        // A feature is not handed on.
        assert_eq!(radius(&facts, "bond0", Act::Feature("rx-gro")).reach, BriefStall);
    }
}
