#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;

fn nic(name: &str, ifindex: u32, bus: Option<&str>, mac: Option<&str>) -> NicId {
    let text = |t: Option<&str>| t.map(str::to_owned);
    let kind = bus.is_none().then(|| "veth".to_owned());
    let (address, peer) = (None, None);
    NicId {
        name: name.into(),
        ifindex,
        kind,
        bus_address: text(bus),
        mac: text(mac),
        address,
        peer,
    }
}

fn nics(all: &[NicId]) -> Nics {
    let one = |id: &NicId| PresentNic {
        id: id.clone(),
        irqs: id.bus_address.iter().map(|_| id.ifindex.to_string()).collect(),
        chance_address: false,
        reaches_out: false,
    };
    Nics { all: all.iter().map(one).collect() }
}

fn of(knob: &str, nic: &NicId) -> Saved {
    Saved { knob: knob.into(), old: String::new(), nic: Some(nic.clone()) }
}

#[test]
fn a_value_is_found_by_whose_it_is() {
    let veth = nic("v0", 5, None, None);
    let card = nic("eth0", 2, Some("0000:03:00.0"), Some("02:00:00:00:00:01"));
    let renamed = nic("lan.1", 5, None, None);
    let there = KnobLocation::Renamed;
    let gone = |why: &str| KnobLocation::Gone(why.into());
    for (saved, now, wanted) in [
        (of("nic.v0.mtu", &veth), vec![veth.clone()], KnobLocation::Here),
        (of("nic.v0.mtu", &veth), vec![renamed.clone()], there("nic.lan.1.mtu".into())),
        (
            of("nic.v0.queue.rx-0.rps_cpus", &veth),
            // A new interface with the old name must not match.
            vec![nic("v0", 9, None, None), renamed.clone()],
            there("nic.lan.1.queue.rx-0.rps_cpus".into()),
        ),
        (
            of("sysctl.net.ipv4.conf.v0.rp_filter", &veth),
            vec![renamed.clone()],
            there("sysctl.net.ipv4.conf.lan/1.rp_filter".into()),
        ),
        (
            of("sysctl.net/ipv6/neigh/v0/gc_stale_time", &veth),
            vec![renamed],
            there("sysctl.net.ipv6.neigh.lan/1.gc_stale_time".into()),
        ),
        (
            of("nic.v0.mtu", &veth),
            vec![card.clone()],
            gone("v0 is gone from this network namespace"),
        ),
        (
            of("nic.v0.mtu", &veth),
            vec![nic("v0", 9, None, None)],
            gone("another interface is called v0 now: not touched"),
        ),
        // Its number, requested for another interface.
        (
            of("nic.eth0.mtu", &card),
            vec![nic("eth0", 2, None, None)],
            gone("another interface is called eth0 now: not touched"),
        ),
        (
            of("nic.eth0.mtu", &card),
            vec![nic("eth0", 7, Some("0000:03:00.0"), Some("02:00:00:00:00:01"))],
            gone("eth0 went and came back, and has its driver's values now: not touched"),
        ),
        (
            of("nic.eth0.mtu", &card),
            vec![nic("ens3", 7, Some("0000:03:00.0"), None)],
            gone("eth0 went and came back as ens3, and has its driver's values now: not touched"),
        ),
        // Another card in its slot.
        (
            of("nic.eth0.mtu", &card),
            vec![nic("eth0", 7, Some("0000:03:00.0"), Some("02:00:00:00:00:02"))],
            gone("another interface is called eth0 now: not touched"),
        ),
        (
            of("irq.2.affinity", &card),
            vec![nic("lan", 2, Some("0000:03:00.0"), None)],
            KnobLocation::Here,
        ),
        (
            of("irq.7.affinity", &card),
            vec![card.clone(), nic("eth1", 7, Some("0000:04:00.0"), None)],
            gone("interrupt 7 is no longer one of eth0's"),
        ),
    ] {
        assert_eq!(nics(&now).find(&saved), wanted, "{saved:?} among {now:?}");
    }
}

#[test]
fn hardware_that_went_to_another_namespace_is_not_gone() {
    let tree = tempfile::tempdir().unwrap();
    let lo = tree.path().join("sys/class/net/lo");
    std::fs::create_dir_all(&lo).unwrap();
    std::fs::write(lo.join("ifindex"), "1\n").unwrap();
    let host = Host::tree(tree.path()).unwrap();
    let saved = of("nic.eth0.mtu", &nic("eth0", 2, Some("0000:03:00.0"), None));
    assert!(matches!(Finder::new(&host).find(&saved), Ok(KnobLocation::Gone(_))));
    for folder in ["net", "virtio1/net"] {
        let device = tree.path().join("sys/bus/pci/devices/0000:03:00.0");
        std::fs::create_dir_all(device.join(folder)).unwrap();
        let e = Finder::new(&host).find(&saved).unwrap_err();
        assert!(e.to_string().contains("is in another network namespace"), "{e}");
        std::fs::remove_dir_all(device).unwrap();
    }
}

#[test]
fn an_old_journal_knows_names_alone() {
    let here = nics(&[nic("v0", 5, None, None), nic("v0.1", 6, None, None)]);
    let by_name =
        |knob: &str| here.find(&Saved { knob: knob.into(), old: String::new(), nic: None });
    for knob in ["nic.v0.mtu", "sysctl.net.ipv4.conf.all.rp_filter", "sysctl.net.core.somaxconn"] {
        assert_eq!(by_name(knob), KnobLocation::Here, "{knob}");
    }
    for knob in ["nic.v9.mtu", "sysctl.net.ipv4.conf.v9.rp_filter"] {
        assert!(matches!(by_name(knob), KnobLocation::Gone(_)), "{knob}");
    }
    assert_eq!(here.of("nic.v0.1.mtu").map(|n| n.ifindex), Some(6));
    assert_eq!(here.of("sysctl.net.ipv4.conf.v0/1.rp_filter").map(|n| n.ifindex), Some(6));
    assert_eq!(here.of("sysctl.net.ipv4.conf.all.rp_filter"), None);
}

#[test]
fn two_values_are_one_by_whose_they_are() {
    let (old, new) = (nic("v0", 5, None, None), nic("v0", 9, None, None));
    let renamed = nic("w0", 5, None, None);
    assert_ne!(key(&of("nic.v0.mtu", &old)), key(&of("nic.v0.mtu", &new)));
    assert_eq!(key(&of("nic.v0.mtu", &old)), key(&of("nic.w0.mtu", &renamed)));
    assert_eq!(
        key(&of("sysctl.net.ipv4.conf.v0.rp_filter", &old)),
        key(&of("sysctl.net/ipv4/conf/w0/rp_filter", &renamed))
    );
}

#[test]
fn a_number_that_was_asked_for_again_is_another_interface() {
    let mark = |kind: &str, address: Option<&str>, peer| NicId {
        kind: Some(kind.into()),
        address: address.map(str::to_owned),
        peer,
        ..nic("v0", 5, None, None)
    };
    let here = |id: &NicId, chance_address| {
        let now = PresentNic { id: id.clone(), irqs: vec![], chance_address, reaches_out: false };
        Nics { all: vec![now] }
    };
    let (a, b) = (Some("02:00:00:00:00:0a"), Some("02:00:00:00:00:0b"));
    for (then, now, chance, same) in [
        (mark("veth", a, Some(6)), mark("veth", a, Some(6)), true, true),
        // The address is the one it was created with.
        (mark("veth", a, Some(6)), mark("veth", b, Some(6)), true, false),
        (mark("tun", a, None), mark("tun", b, None), true, false),
        // The address was changed; a bridge takes that of its port.
        (mark("veth", a, Some(6)), mark("veth", b, Some(6)), false, true),
        (mark("bridge", a, None), mark("bridge", b, None), true, true),
        (mark("veth", a, Some(6)), mark("veth", b, Some(8)), false, false),
        // Its peer moved and has another number there.
        (mark("veth", a, Some(6)), mark("veth", a, Some(8)), true, true),
        // From an old journal.
        (mark("veth", None, None), mark("veth", b, Some(8)), true, true),
    ] {
        let found = here(&now, chance).find(&of("nic.v0.mtu", &then));
        assert_eq!(found == KnobLocation::Here, same, "{then:?} {now:?} {chance}");
    }
}
