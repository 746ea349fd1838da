//! The list of namespaces, and what is known of the others.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use super::{agrees_with_ip, facts, inode, ip, ip_json, names_of, namespace, nic};
use crate::support::{NETWRIGHT, Namespace, run};
use serde_json::{Value, json};

#[test]
fn a_veth_knows_its_other_end_in_another_namespace_and_in_its_own() {
    let (a, b) = (Namespace::new(), Namespace::new());
    ip(
        &a,
        &[
            "link",
            "add",
            "va",
            "numtxqueues",
            "4",
            "numrxqueues",
            "3",
            "type",
            "veth",
            "peer",
            "name",
            "vb",
            "mtu",
            "1400",
            "netns",
            &b.name,
        ],
    );
    ip(&a, &["link", "add", "near", "type", "veth", "peer", "name", "far", "mtu", "9000"]);
    ip(&a, &["addr", "add", "10.9.0.1/24", "dev", "va"]);
    ip(&a, &["addr", "add", "10.9.0.7/32", "peer", "10.9.0.8", "dev", "near"]);
    ip(&a, &["addr", "add", "fd00:9::1/64", "dev", "va", "nodad"]);
    ip(&b, &["addr", "add", "10.9.0.2/24", "dev", "vb"]);
    ip(&a, &["link", "set", "va", "up"]);
    ip(&b, &["link", "set", "vb", "up"]);
    agrees_with_ip(&a);
    agrees_with_ip(&b);

    let seen = facts(&a);
    let va = nic(&seen, "va");
    let index = |ns, name| ip_json(ns, &["link", "show", name])[0]["ifindex"].clone();
    assert_eq!(va["details"]["type"], "veth");
    assert_eq!(va["details"]["peer"], "vb");
    assert_eq!(va["details"]["peer_ifindex"], index(&b, "vb"));
    assert_eq!(va["details"]["peer_namespace"], inode(&b));
    assert_eq!(va["details"]["peer_mtu"], 1400);
    // It has no process, so no cgroup identifies a container.
    assert!(va["details"]["peer_container"]["absent"].is_string(), "{va:#}");

    let local = nic(&seen, "near");
    assert_eq!(local["details"]["peer"], "far");
    assert_eq!(local["details"]["peer_namespace"], inode(&a));
    assert_eq!(local["details"]["peer_mtu"], 9000);

    // From the other side.
    let vb = facts(&b);
    let vb = nic(&vb, "vb");
    assert_eq!(
        (&vb["details"]["peer"], &vb["details"]["peer_namespace"]),
        (&json!("va"), &json!(inode(&a)))
    );

    // How the namespaces see each other's links.
    let there = namespace(&seen, inode(&b));
    assert_eq!((&there["name"], &there["process_count"]), (&json!(b.name), &json!(0)));
    assert_eq!(there["own"], false);
    let link = there["links"].as_array().unwrap().iter().find(|l| l["name"] == "vb").unwrap();
    assert_eq!(link["kind"], "veth");
    assert_eq!(link["lower_ifindex"], va["ifindex"]);
    assert_eq!(link["lower_namespace"], inode(&a));
    assert!(names_of(&link["addresses"]).contains("10.9.0.2/24"));
}

/// A child that is killed when the test ends.
struct Child(std::process::Child);

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_namespace_without_a_name_is_found_by_its_process() {
    let a = Namespace::new();
    let child =
        std::process::Command::new("unshare").args(["--net", "sleep", "60"]).spawn().unwrap();
    let child = Child(child);
    let pid = child.0.id();
    let path = format!("/proc/{pid}/ns/net");
    let own = std::fs::read_link("/proc/self/ns/net").unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    while std::fs::read_link(&path).ok().is_none_or(|t| t == own) {
        assert!(Instant::now() < deadline, "unshare made no namespace");
        std::thread::sleep(Duration::from_millis(20));
    }
    ip(
        &a,
        &["link", "add", "out", "type", "veth", "peer", "name", "in0", "netns", &pid.to_string()],
    );

    let seen = facts(&a);
    let inode: u64 = run("stat", &["-L", "-c", "%i", &path]).trim().parse().unwrap();
    let there = namespace(&seen, inode);
    assert_eq!((&there["pids"], &there["process_count"]), (&json!([pid]), &json!(1)));
    assert!(there["name"]["absent"].is_string());
    assert!(there["container"].is_string(), "{there:#}");
    let out = nic(&seen, "out");
    assert_eq!(
        (&out["details"]["peer"], &out["details"]["peer_namespace"]),
        (&json!("in0"), &json!(inode))
    );
    assert_eq!(out["details"]["peer_container"], there["container"]);
}

#[test]
fn namespaces_and_their_processes_are_those_of_lsns() {
    let ns = Namespace::new();
    // In the test's own namespace: lsns counts processes that it may see, as we do.
    let lsns = || -> BTreeMap<u64, u64> {
        let text = run("lsns", &["-t", "net", "-J", "-o", "NS,NPROCS"]);
        let all: Value = serde_json::from_str(&text).unwrap();
        let number = |v: &Value| v.as_u64().or_else(|| v.as_str()?.parse().ok()).unwrap();
        all["namespaces"]
            .as_array()
            .unwrap()
            .iter()
            .map(|n| (number(&n["ns"]), number(&n["nprocs"])))
            .collect()
    };
    // Other tests run meanwhile: a namespace counts if it exists before and after.
    let before = lsns();
    let seen: Value = serde_json::from_str(&run(NETWRIGHT, &["inspect", "--json"])).unwrap();
    let after = lsns();
    let own: u64 = run("stat", &["-L", "-c", "%i", "/proc/self/ns/net"]).trim().parse().unwrap();
    let stable: Vec<u64> = before.keys().filter(|k| after.contains_key(k)).copied().collect();
    assert!(stable.contains(&own), "{before:?}");
    for id in stable {
        let counts = [before[&id], after[&id]];
        let ours = namespace(&seen, id)["process_count"].as_u64().unwrap();
        // The tool and the measuring process themselves come and go in our namespace.
        let slack = if id == own { 40 } else { 2 };
        assert!(counts.iter().any(|c| c.abs_diff(ours) <= slack), "{id}: {ours}, lsns {counts:?}");
    }
    assert_eq!(namespace(&seen, inode(&ns))["name"], ns.name);
}

/// The usual way into a container's network keeps the host's `/sys`.
#[test]
fn another_namespaces_sysfs_is_refused_and_the_way_out_works() {
    let ns = Namespace::new();
    ip(&ns, &["link", "add", "nwdummy0", "type", "bridge"]);
    let enter = format!("--net=/run/netns/{}", ns.name);
    for command in [&["inspect"][..], &["doctor", "--window", "100ms"], &["snapshot", "-o", "/x"]] {
        let out = crate::support::output("nsenter", &[&[&*enter, NETWRIGHT], command].concat());
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(4), "{command:?}: {said}");
        assert!(said.contains("another network namespace's interfaces"), "{said}");
        assert!(said.contains("(nwdummy0)"), "{said}");
    }
    let own = format!("mount -t sysfs sysfs /sys && exec {NETWRIGHT} inspect --json");
    let text = run("nsenter", &[&enter, "unshare", "-m", "sh", "-c", &own]);
    let facts: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(nic(&facts, "nwdummy0")["kind"], "bridge");
}

/// A process in another namespace is not silently judged by this namespace's counters.
#[test]
fn a_chosen_process_of_another_namespace_is_named_as_such() {
    let ns = Namespace::new();
    let mut sleeper = std::process::Command::new("ip")
        .args(["netns", "exec", &ns.name, "sleep", "30"])
        .spawn()
        .unwrap();
    let pid = sleeper.id().to_string();
    let inside = inode(&ns);
    let begun = Instant::now();
    let line = loop {
        let out = run(NETWRIGHT, &["inspect", "--json", "--pid", &pid]);
        let facts: Value = serde_json::from_str(&out).unwrap();
        let no_access = facts["no_access"].as_array().unwrap().clone();
        let of = |u: &&Value| u["why"].as_str().unwrap().contains(&format!("net:[{inside}]"));
        match no_access.iter().find(of) {
            Some(line) => break line.clone(),
            None => assert!(begun.elapsed() < Duration::from_secs(10), "{no_access:#?}"),
        }
    };
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    assert_eq!(line["what"], format!("counters and NICs as sleep ({pid}) has them"));
    assert!(line["remedy"].as_str().unwrap().starts_with(&format!("nsenter -t {pid} -n ")));
}
