//! Links, namespaces, queueing disciplines and listeners against `ip`, `tc`, `ss` and `stat`, in
//! test namespaces.
//!
//! A kind of link that this kernel lacks is not skipped: the test checks that the kernel refuses
//! it, and prints it.

mod listeners;
mod namespaces;

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use crate::support::{NETWRIGHT, Namespace, run};
use serde_json::{Value, json};

fn facts(ns: &Namespace) -> Value {
    ns.netwright_json(&["inspect", "--json"])
}

fn nic<'a>(facts: &'a Value, name: &str) -> &'a Value {
    let nics = facts["nics"].as_array().unwrap();
    nics.iter().find(|n| n["name"] == name).unwrap_or_else(|| panic!("no {name} in {nics:#?}"))
}

fn ip(ns: &Namespace, args: &[&str]) {
    run("ip", &[&["-n", &ns.name], args].concat());
}

fn ip_json(ns: &Namespace, args: &[&str]) -> Vec<Value> {
    let text = run("ip", &[&["-n", &ns.name, "-j", "-d"], args].concat());
    serde_json::from_str(&text).unwrap()
}

/// `ip -d link`'s `linkinfo` of one interface.
fn linkinfo(ns: &Namespace, name: &str) -> Value {
    ip_json(ns, &["link", "show", name])[0]["linkinfo"].clone()
}

fn inode(ns: &Namespace) -> u64 {
    run("stat", &["-L", "-c", "%i", &format!("/run/netns/{}", ns.name)]).trim().parse().unwrap()
}

/// Makes a link of a kind that the kernel may lack. A refusal must be for that reason; it is
/// printed.
fn made(ns: &Namespace, kind: &str, args: &[&str]) -> bool {
    let all = [&["-n", &ns.name, "link", "add"], args].concat();
    let out = crate::support::output("ip", &all);
    if out.status.success() {
        return true;
    }
    let error = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(
        error.contains("Unknown device type") || error.contains("Operation not supported"),
        "ip {all:?}: {error}"
    );
    println!("this kernel makes no {kind}: {}", error.trim());
    false
}

/// Everything that `ip -d link` and `ip addr` also report, for every interface.
fn agrees_with_ip(ns: &Namespace) {
    let facts = facts(ns);
    let links = ip_json(ns, &["addr"]);
    let names = |all: &[Value], key: &str| -> BTreeSet<String> {
        all.iter().map(|v| v[key].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(facts["nics"].as_array().unwrap(), "name"), names(&links, "ifname"));
    for link in &links {
        let name = link["ifname"].as_str().unwrap();
        let nic = nic(&facts, name);
        assert_eq!(nic["ifindex"], link["ifindex"], "{name}");
        assert_eq!(nic["mtu"], link["mtu"], "{name}");
        assert_eq!(nic["min_mtu"], link["min_mtu"], "{name}");
        match link["max_mtu"].as_u64().unwrap() {
            0 => assert!(nic["max_mtu"]["absent"].is_string(), "{name}: no limit"),
            max => assert_eq!(nic["max_mtu"], max, "{name}"),
        }
        assert_eq!(
            nic["master"],
            link.get("master").cloned().unwrap_or_else(|| json!("")),
            "{name}"
        );
        let flags = link["flags"].as_array().unwrap();
        assert_eq!(nic["up"], flags.contains(&json!("UP")), "{name}");
        assert_eq!(nic["xdp"], link.get("xdp").is_some(), "{name}");
        let kind = link["linkinfo"]["info_kind"].as_str();
        let expected = match (kind, link["link_type"].as_str()) {
            (Some("tun"), _) => link["linkinfo"]["info_data"]["type"].as_str().unwrap(),
            (Some(kind), _) => kind,
            (None, Some("loopback")) => "loopback",
            (None, _) => "physical",
        };
        assert_eq!(nic["kind"], expected, "{name}");
        assert_eq!(
            names_of(&nic["addresses"]),
            link["addr_info"]
                .as_array()
                .unwrap()
                .iter()
                .map(|a| format!("{}/{}", a["local"].as_str().unwrap(), a["prefixlen"]))
                .collect::<BTreeSet<_>>(),
            "{name}"
        );
    }
    // The short list of our namespace's links agrees.
    let own = namespace(&facts, inode(ns));
    assert_eq!(own["own"], true);
    for link in &links {
        let short =
            own["links"].as_array().unwrap().iter().find(|l| l["name"] == link["ifname"]).unwrap();
        for (ours, theirs) in [("ifindex", "ifindex"), ("mtu", "mtu"), ("mac", "address")] {
            match link.get(theirs) {
                Some(value) => assert_eq!(&short[ours], value, "{}", link["ifname"]),
                None => assert!(short[ours]["absent"].is_string(), "{}", link["ifname"]),
            }
        }
    }
}

fn names_of(list: &Value) -> BTreeSet<String> {
    list.as_array().unwrap().iter().map(|v| v.as_str().unwrap().to_owned()).collect()
}

fn namespace(facts: &Value, inode: u64) -> &Value {
    let all = facts["namespaces"].as_array().unwrap();
    all.iter().find(|n| n["inode"] == inode).unwrap_or_else(|| panic!("no {inode} in {all:#?}"))
}

#[test]
fn bridges_and_their_ports() {
    let ns = Namespace::new();
    ip(&ns, &["link", "add", "br0", "type", "bridge", "stp_state", "1"]);
    ip(&ns, &["link", "add", "br1", "type", "bridge", "stp_state", "0"]);
    for i in ["0", "1"] {
        let (port, end) = (format!("port{i}"), format!("end{i}"));
        ip(&ns, &["link", "add", &port, "type", "veth", "peer", "name", &end]);
        ip(&ns, &["link", "set", &port, "master", "br0"]);
    }
    agrees_with_ip(&ns);
    let seen = facts(&ns);
    for (name, ports, stp) in [("br0", json!(["port0", "port1"]), true), ("br1", json!([]), false)]
    {
        let data = &linkinfo(&ns, name)["info_data"];
        let details = &nic(&seen, name)["details"];
        assert_eq!((&details["type"], &details["ports"]), (&json!("bridge"), &ports));
        assert_eq!(details["stp"], stp);
        assert_eq!(details["stp"], data["stp_state"] != 0);
        // Without CONFIG_BRIDGE_VLAN_FILTERING the kernel does not report it.
        match data.get("vlan_filtering").and_then(Value::as_u64) {
            Some(on) => assert_eq!(details["vlan_filtering"], on != 0),
            None => assert!(details["vlan_filtering"]["absent"].is_string(), "{details:#}"),
        }
    }
    assert_eq!(nic(&seen, "port1")["master"], "br0");
}

#[test]
fn bonds_and_their_members() {
    let ns = Namespace::new();
    let bonds: [(&str, &[&str], &str, &str); 2] = [
        ("bond0", &["mode", "active-backup", "miimon", "100"], "active-backup", "layer2"),
        ("bond1", &["mode", "802.3ad", "xmit_hash_policy", "layer3+4"], "802.3ad", "layer3+4"),
    ];
    for (name, options, mode, policy) in bonds {
        if !made(&ns, "bond", &[&[name, "type", "bond"], options].concat()) {
            assert!(facts(&ns)["nics"].as_array().unwrap().iter().all(|n| n["kind"] != "bond"));
            continue;
        }
        let members = [format!("{name}a"), format!("{name}b")];
        for member in &members {
            let other = format!("{member}x");
            ip(&ns, &["link", "add", member, "type", "veth", "peer", "name", &other]);
            ip(&ns, &["link", "set", member, "down"]);
            ip(&ns, &["link", "set", member, "master", name]);
            ip(&ns, &["link", "set", &other, "up"]);
        }
        ip(&ns, &["link", "set", name, "up"]);
        std::thread::sleep(Duration::from_millis(500));
        agrees_with_ip(&ns);
        let seen = facts(&ns);
        let details = &nic(&seen, name)["details"];
        let data = &linkinfo(&ns, name)["info_data"];
        assert_eq!((&details["type"], &details["members"]), (&json!("bond"), &json!(members)));
        assert_eq!((&details["mode"], &data["mode"]), (&json!(mode), &json!(mode)));
        assert_eq!(details["xmit_hash_policy"], policy);
        assert_eq!(details["xmit_hash_policy"], data["xmit_hash_policy"]);
        assert_eq!(details["miimon_ms"], data["miimon"]);
        match data.get("active_slave") {
            Some(active) => assert_eq!(&details["active"], active),
            None => assert!(details["active"]["absent"].is_string(), "{details:#}"),
        }
    }
}

#[test]
fn vlans_macvlans_and_dummies() {
    let (ns, inner) = (Namespace::new(), Namespace::new());
    ip(&ns, &["link", "add", "base", "type", "veth", "peer", "name", "other"]);
    ip(&ns, &["link", "set", "base", "up"]);
    for (name, mode) in [("mv0", "bridge"), ("mv1", "private"), ("mv2", "vepa")] {
        ip(&ns, &["link", "add", name, "link", "base", "type", "macvlan", "mode", mode]);
    }
    // A link with its lower device left behind in another namespace.
    ip(&ns, &["link", "add", "mv3", "link", "base", "type", "macvlan", "mode", "bridge"]);
    ip(&ns, &["link", "set", "mv3", "netns", &inner.name]);
    let vlan =
        made(&ns, "vlan", &["link", "base", "name", "base.100", "type", "vlan", "id", "100"]);
    let ipvlan =
        made(&ns, "ipvlan", &["link", "other", "name", "iv0", "type", "ipvlan", "mode", "l3"]);
    let dummy = made(&ns, "dummy", &["dum0", "type", "dummy"]);
    agrees_with_ip(&ns);
    agrees_with_ip(&inner);
    let seen = facts(&ns);
    for name in ["mv0", "mv1", "mv2"] {
        let details = &nic(&seen, name)["details"];
        assert_eq!((&details["type"], &details["lower"]), (&json!("macvlan"), &json!("base")));
        assert_eq!(details["mode"], linkinfo(&ns, name)["info_data"]["mode"]);
    }
    assert_eq!(nic(&seen, "mv2")["details"]["mode"], "vepa");
    let inside = facts(&inner);
    let lower = nic(&inside, "mv3")["details"]["lower"]["absent"].as_str().unwrap();
    assert_eq!(lower, format!("base of network namespace {}", inode(&ns)));
    if vlan {
        let details = &nic(&seen, "base.100")["details"];
        assert_eq!(details, &json!({"type": "vlan", "id": 100, "lower": "base"}));
    }
    if ipvlan {
        assert_eq!(nic(&seen, "iv0")["details"]["mode"], "l3");
    }
    assert_eq!(seen["nics"].as_array().unwrap().iter().any(|n| n["kind"] == "dummy"), dummy);
}

#[test]
fn tun_and_tap_agree_with_ip_on_kind_and_queues() {
    let ns = Namespace::new();
    ns.run("ip", &["tuntap", "add", "tap0", "mode", "tap", "multi_queue"]);
    ns.run("ip", &["tuntap", "add", "tap1", "mode", "tap"]);
    ns.run("ip", &["tuntap", "add", "tun0", "mode", "tun"]);
    agrees_with_ip(&ns);
    let seen = facts(&ns);
    for (name, kind, multi) in
        [("tap0", "tap", true), ("tap1", "tap", false), ("tun0", "tun", false)]
    {
        let nic = nic(&seen, name);
        assert_eq!(nic["kind"], kind);
        assert_eq!(nic["details"], json!({"type": "tun", "multi_queue": multi}));
        assert_eq!(linkinfo(&ns, name)["info_data"]["multi_queue"], multi);
    }
}

/// `tc -s -j qdisc` in our terms.
fn tc(ns: &Namespace, device: &str) -> Vec<Value> {
    let text = run("tc", &["-n", &ns.name, "-s", "-j", "qdisc", "show", "dev", device]);
    let all: Vec<Value> = serde_json::from_str(&text).unwrap();
    all.iter()
        .map(|q| {
            json!({
                "kind": q["kind"],
                "handle": q["handle"],
                "parent": if q["root"] == true { json!("root") } else { q["parent"].clone() },
                "sent_bytes": q["bytes"],
                "sent_packets": q["packets"],
                "drops": q["drops"],
                "overlimits": q["overlimits"],
                "requeues": q["requeues"],
                "backlog_bytes": q["backlog"],
                "backlog_packets": q["qlen"],
            })
        })
        .collect()
}

#[test]
fn queueing_disciplines_and_their_drops() {
    let (a, b) = (Namespace::new(), Namespace::new());
    ip(
        &a,
        &[
            "link",
            "add",
            "va",
            "numtxqueues",
            "2",
            "type",
            "veth",
            "peer",
            "name",
            "vb",
            "netns",
            &b.name,
        ],
    );
    for (ns, name, address) in [(&a, "va", "10.9.1.1/24"), (&b, "vb", "10.9.1.2/24")] {
        ip(ns, &["addr", "add", address, "dev", name]);
        ip(ns, &["link", "set", name, "up"]);
    }
    let add = |args: &[&str]| {
        crate::support::output(
            "tc",
            &[&["-n", &a.name, "qdisc", "add", "dev", "va"], args].concat(),
        )
    };
    let ok = |args: &[&str]| assert!(add(args).status.success(), "tc {args:?}");
    // A kind that the kernel may lack.
    let fq_codel = add(&["root", "handle", "8:", "fq_codel"]);
    if fq_codel.status.success() {
        same_qdiscs(&a);
        run("tc", &["-n", &a.name, "qdisc", "del", "dev", "va", "root"]);
    } else {
        let error = String::from_utf8_lossy(&fq_codel.stderr);
        assert!(
            error.contains("qdisc kind is unknown") || error.contains("No such file"),
            "{error}"
        );
        println!("this kernel has no fq_codel: {}", error.trim());
    }
    ok(&["root", "handle", "1a:", "tbf", "rate", "200kbit", "burst", "3000", "limit", "9000"]);
    ok(&["parent", "1a:1", "handle", "2b:", "pfifo", "limit", "3"]);
    ok(&["ingress"]);
    // 40 datagrams of 1,000 bytes at once: three may wait, and the burst takes two or three.
    a.run("bash", &["-c", "exec 3<>/dev/udp/10.9.1.2/9; m=$(printf %01000d 0); for i in $(seq 40); do printf %s $m >&3 || true; done 2>/dev/null; true"]);
    let drops = same_qdiscs(&a);
    assert!(drops > 10, "only {drops} drops: the test did not force any");
}

/// Compares once all queues are empty; returns the observed drops.
fn same_qdiscs(ns: &Namespace) -> u64 {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let before = tc(ns, "va");
        let seen = facts(ns);
        let after = tc(ns, "va");
        if before == after && before.iter().all(|q| q["backlog_packets"] == 0) {
            assert_eq!(nic(&seen, "va")["qdiscs"], json!(after));
            return after.iter().filter_map(|q| q["drops"].as_u64()).sum();
        }
        assert!(Instant::now() < deadline, "the queues never settle: {after:#?}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn without_privilege_the_rest_is_named_with_the_capability() {
    let (a, b) = (Namespace::new(), Namespace::new());
    ip(&a, &["link", "add", "va", "type", "veth", "peer", "name", "vb", "netns", &b.name]);
    ip(&a, &["addr", "add", "10.9.2.1/24", "dev", "va"]);
    // A folder where another user may run it.
    let folder = tempfile::tempdir().unwrap();
    let binary = folder.path().join("netwright");
    std::fs::copy(NETWRIGHT, &binary).unwrap();
    use std::os::unix::fs::PermissionsExt;
    for path in [folder.path(), binary.as_path()] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let binary = binary.to_str().unwrap();
    let text = a.run(
        "setpriv",
        &[
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            "--bounding-set=-all",
            "--inh-caps=-all",
            binary,
            "inspect",
            "--json",
        ],
    );
    let seen: Value = serde_json::from_str(&text).unwrap();
    let va = nic(&seen, "va");
    // Everything that needs no privilege is there.
    assert_eq!(va["kind"], "veth");
    assert_eq!(va["addresses"], json!(["10.9.2.1/24"]));
    assert_eq!(va["details"]["peer_namespace"], inode(&b));
    let denied = va["details"]["peer"]["denied"].as_str().unwrap_or_else(|| panic!("{va:#}"));
    assert!(denied.contains("CAP_SYS_ADMIN"), "{denied}");
    let there = namespace(&seen, inode(&b));
    assert!(there["links"]["denied"].as_str().unwrap().contains("CAP_SYS_ADMIN"), "{there:#}");
    let remedies: Vec<&str> =
        seen["no_access"].as_array().unwrap().iter().filter_map(|u| u["remedy"].as_str()).collect();
    for capability in ["CAP_SYS_ADMIN", "CAP_SYS_PTRACE"] {
        assert!(remedies.iter().any(|r| r.contains(capability)), "{capability}: {remedies:?}");
    }
}
