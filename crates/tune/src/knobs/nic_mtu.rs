//! `nic.NIC.mtu`: the largest packet in bytes, without the link-layer header.

use model::{
    knob::{NicSetting, Target},
    nic::{KindDetails, Nic},
    tune::Impact,
};

use crate::{
    Host, TuneError,
    drivers::Act,
    knob::{Kind, Knob, PlanContext, Refusal, cannot, harmful, nic_file, number},
    knobs::nic_napi,
    need::Need,
    phase::Phase,
    stacked::{self, LowerNic},
};

/// **Source**: `/sys/class/net/X/mtu`, in bytes.
pub const KIND: Kind = Kind {
    name: "nic_mtu",
    spelling: "nic.NIC.mtu=BYTES",
    parse: |target| match target {
        Target::Nic(nic, NicSetting::Plain("mtu")) => Some(Box::new(NicMtu { nic })),
        _ => None,
    },
};

struct NicMtu<'k> {
    nic: &'k str,
}

/// Below this MTU the kernel removes IPv6 and its addresses from an interface (RFC 8200, section
/// 5).
const IPV6_LEAST: u64 = 1280;

impl Knob for NicMtu<'_> {
    fn target(&self) -> Target<'_> {
        Target::Nic(self.nic, NicSetting::Plain("mtu"))
    }

    fn phase(&self) -> Phase {
        Phase::Mtu
    }

    fn read(&self, host: &Host) -> Result<String, TuneError> {
        host.text(&nic_file(self.nic, "mtu"))
    }

    fn validate(
        &self,
        context: &PlanContext<'_>,
        old: &str,
        wanted: &str,
    ) -> Result<String, Refusal> {
        let Some(nic) = context.nic(self.nic) else { return cannot("no such interface") };
        let mtu = number(wanted, 68, largest(nic), "bytes")?;
        let least = nic.min_mtu.get().map_or(68, u64::from);
        if mtu < least {
            return cannot(format!("the driver takes no MTU below {least}"));
        }
        if let Some(most) = nic.max_mtu.get().map(u64::from).filter(|&most| mtu > most) {
            return cannot(format!("the driver takes no MTU above {most}"));
        }
        if let Some(loses) = loses_ipv6(context, nic, mtu) {
            return harmful(format!(
                "below {IPV6_LEAST} the kernel takes IPv6 off {loses}, and its addresses do not come \
                 back with the MTU"
            ));
        }
        let grows = old.trim().parse::<u64>().is_ok_and(|old| mtu > old);
        if let Some(why) = too_large(context, nic, mtu, grows) {
            return cannot(why);
        }
        Ok(mtu.to_string())
    }

    fn needs(&self, _: &Host) -> Vec<Need> {
        vec![Need::File(nic_file(self.nic, "mtu")), Need::Net]
    }

    fn write(&self, host: &Host, value: &str) -> Result<(), TuneError> {
        host.write(&nic_file(self.nic, "mtu"), value)
    }

    fn undo_text(&self) -> String {
        "the old value is written back, to the interfaces on top of it too".into()
    }

    fn impact(&self, context: &PlanContext<'_>, _: &str, _: &str) -> Impact {
        context.act_impact(self.nic, Act::Mtu)
    }

    fn unit(&self) -> &'static str {
        "bytes"
    }

    fn sets(&self) -> &'static str {
        "mtu"
    }

    /// The kernel lowers VLANs with their device, bridges follow their ports, and IPv6's own MTU follows
    /// every change.
    fn coupled_settings(&self, host: &Host) -> Vec<String> {
        let nic = self.nic;
        let others = moved_along(host, nic);
        let ipv6 = |n: &str| format!("sysctl.net.ipv6.conf.{}.mtu", n.replace('.', "/"));
        let mut all: Vec<String> = others.iter().map(|n| format!("nic.{n}.mtu")).collect();
        all.push(ipv6(nic));
        all.extend(others.iter().map(|n| ipv6(n)));
        all.extend(nic_napi::of_nic(host, nic, None));
        all
    }
}

/// The largest valid value. A kernel that reports a minimum but no maximum accepts any positive
/// `int`.
///
/// **Source**: `dev_validate_mtu` in `net/core/dev.c`.
fn largest(nic: &Nic) -> u64 {
    let unlimited = nic.min_mtu.is_known() && !nic.max_mtu.is_known();
    if unlimited { u64::from(i32::MAX.unsigned_abs()) } else { 65535 }
}

/// A veth's peer, if it is in the same network namespace: each names the other.
fn other_end<'f>(context: &PlanContext<'f>, nic: &Nic) -> Option<&'f Nic> {
    let peer_of = |n: &Nic| match &n.details {
        KindDetails::Veth { peer_ifindex, .. } => peer_ifindex.get(),
        _ => None,
    };
    let number = peer_of(nic)?;
    let mutual = |n: &&Nic| n.ifindex.get() == Some(number) && peer_of(n) == nic.ifindex.get();
    context.facts.nics.iter().find(mutual)
}

/// The interface that would lose IPv6: this one, or one lowered with it.
fn loses_ipv6<'c>(context: &'c PlanContext<'_>, nic: &'c Nic, mtu: u64) -> Option<&'c str> {
    let has = |n: &&Nic| n.addresses.known().is_some_and(|a| a.iter().any(|a| a.contains(':')));
    let on_top = || stacked::followers(context.facts, &nic.name).into_iter();
    let all = || std::iter::once(nic).chain(on_top());
    (mtu < IPV6_LEAST).then(|| all().find(has)).flatten().map(|n| n.name.as_str())
}

/// Why an MTU is too large: a neighboring interface has a smaller one, or the plan gives it
/// another.
fn too_large(context: &PlanContext<'_>, nic: &Nic, mtu: u64, grows: bool) -> Option<String> {
    if let Some(LowerNic { nic: master, carries, planned }) =
        stacked::other_of_master(context, nic, mtu)
    {
        let its = if planned { "and the same plan sets" } else { "which is" };
        return Some(format!(
            "{master} hands its MTU on to its members, {its} {carries}: ask for nic.{master}.mtu={mtu} instead"
        ));
    }
    let on_the_way = stacked::members(context, nic).into_iter().find_map(|member| {
        let why = too_little_beyond(context, member, mtu).filter(|_| grows)?;
        Some(format!("of its member {}, {why}", member.name))
    });
    if on_the_way.is_some() {
        return on_the_way;
    }
    if let Some(below) = stacked::smallest_mtu_below(context, nic) {
        let less = mtu > below.carries && (grows || below.planned);
        return less.then(|| too_little_below(nic, below, mtu));
    }
    too_little_beyond(context, nic, mtu).filter(|_| grows)
}

fn too_little_below(nic: &Nic, below: LowerNic<'_>, mtu: u64) -> String {
    let LowerNic { nic: lower, carries, planned } = below;
    let its = match nic.kind.as_str() {
        "bridge" => format!("its port {lower}"),
        _ => format!("{lower} below it"),
    };
    match planned {
        true => format!("{its} carries {carries} bytes by the same plan"),
        false => {
            format!("{its} carries {carries} bytes; ask for nic.{lower}.mtu={mtu} in the same plan")
        }
    }
}

/// Why the peer of a veth cannot receive packets this large.
fn too_little_beyond(context: &PlanContext<'_>, nic: &Nic, mtu: u64) -> Option<String> {
    let KindDetails::Veth { peer_mtu, peer, .. } = &nic.details else { return None };
    let other = other_end(context, nic);
    let planned = other.and_then(|o| context.mtus.get(&o.name)).copied();
    let carries = planned.or(peer_mtu.get().map(u64::from)).filter(|&carries| mtu > carries)?;
    Some(match (other, peer.known()) {
        (Some(other), _) => format!(
            "{0} at the other end carries {carries} bytes; ask for nic.{0}.mtu={mtu} in the same plan",
            other.name
        ),
        (None, peer) => format!(
            "{0} at the other end, in another network namespace, carries {carries} bytes; raise that \
             first, there: ip link set {0} mtu {mtu}",
            peer.map_or("the interface", String::as_str)
        ),
    })
}

/// Every interface stacked on this one, directly or not, the nearest first. A bond or team sets its
/// members' MTU: members come first.
///
/// **Source**: the links `upper_*` and, of a bond, `lower_*` of its folder in sysfs.
fn moved_along(host: &Host, nic: &str) -> Vec<String> {
    let linked = |nic: &str, to: &str| -> Vec<String> {
        let names = host.root().entries(&nic_file(nic, "")).unwrap_or_default();
        names.iter().filter_map(|n| n.strip_prefix(to).map(str::to_owned)).collect()
    };
    let is_bond = host.root().exists(&nic_file(nic, "bonding"));
    let members = if is_bond { linked(nic, "lower_") } else { vec![] };
    let (mut all, mut next) = (vec![nic.to_owned()], 0);
    all.extend(members);
    while let Some(name) = all.get(next) {
        let uppers = linked(name, "upper_");
        let new: Vec<String> = uppers.into_iter().filter(|u| !all.contains(u)).collect();
        all.extend(new);
        next += 1;
    }
    all.split_off(1)
}
