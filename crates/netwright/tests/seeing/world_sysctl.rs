//! Kernel settings against `sysctl`, on this host and in a network namespace made by `unshare`.

use std::collections::BTreeMap;

use crate::support::{NETWRIGHT, Namespace, needs_root, run};
use serde_json::Value;

fn sysctls(facts: &Value) -> &serde_json::Map<String, Value> {
    facts["sysctls"].as_object().expect("no sysctls")
}

fn inspect() -> Value {
    serde_json::from_str(&run(NETWRIGHT, &["inspect", "--json"])).expect("no JSON")
}

/// `sysctl -a` as words by key, which is what a person would compare with.
fn by_sysctl(text: &str) -> BTreeMap<String, String> {
    text.lines()
        .filter_map(|l| l.split_once(" ="))
        .map(|(k, v)| (k.to_owned(), v.split_whitespace().collect::<Vec<_>>().join(" ")))
        .collect()
}

#[test]
fn every_value_is_what_sysctl_says() {
    let facts = inspect();
    let theirs = by_sysctl(&run("sysctl", &["-a", "--ignore"]));
    let mut compared = 0;
    for (key, ours) in sysctls(&facts) {
        match (ours["value"].as_str(), theirs.get(key)) {
            (Some(v), Some(t)) => {
                // A count changes between two readings.
                if key != "net.netfilter.nf_conntrack_count" {
                    assert_eq!(v, t, "{key}");
                }
                compared += 1;
            }
            (None, None) => {}
            (ours, theirs) => panic!("{key}: we say {ours:?}, sysctl {theirs:?}"),
        }
    }
    assert!(compared > 90, "only {compared} settings were compared");
}

#[test]
fn defaults_are_what_a_fresh_namespace_says() {
    needs_root();
    let facts = inspect();
    let fresh = by_sysctl(&run("unshare", &["-n", "sysctl", "-a", "--ignore"]));
    let mut asked = 0;
    for (key, ours) in sysctls(&facts) {
        if ours["default_from"] == "fresh_namespace" {
            assert_eq!(ours["default"].as_str(), fresh.get(key).map(String::as_str), "{key}");
            asked += 1;
        }
    }
    assert!(asked > 50, "only {asked} defaults came from a namespace");
}

/// The table's values against the kernel, where the kernel can be asked.
#[test]
fn the_table_agrees_with_this_kernel() {
    needs_root();
    let live = inspect();
    // The same host without the fresh namespace's answer: only the table is left.
    let tree = tempfile::tempdir().unwrap();
    for (key, _) in sysctls(&live) {
        let below = key.replace('.', "/");
        copy(&format!("/proc/sys/{below}"), tree.path());
    }
    for file in ["/proc/meminfo", "/proc/config.gz", "/proc/sys/kernel/osrelease"] {
        copy(file, tree.path());
    }
    copy("/sys/devices/system/node/online", tree.path());
    let root = tree.path().to_str().unwrap();
    let offline = run(NETWRIGHT, &["inspect", "--json", "--root", root]);
    let offline: Value = serde_json::from_str(&offline).unwrap();
    let mut held = 0;
    for (key, ours) in sysctls(&live) {
        let table = &sysctls(&offline)[key];
        assert_ne!(table["default_from"], "fresh_namespace", "{key}");
        let Some(default) = table["default"].as_str() else { continue };
        if ours["default_from"] == "fresh_namespace" {
            assert_eq!(Some(default), ours["default"].as_str(), "{key}: {table:#}");
            held += 1;
        }
    }
    assert!(held > 50, "only {held} entries of the table were held against the kernel");
}

fn copy(file: &str, tree: &std::path::Path) {
    let Ok(bytes) = std::fs::read(file) else { return };
    let to = tree.join(file.trim_start_matches('/'));
    std::fs::create_dir_all(to.parent().unwrap()).unwrap();
    std::fs::write(to, bytes).unwrap();
}

#[test]
fn a_namespace_shows_its_own_values_and_says_why_others_are_missing() {
    let ns = Namespace::new();
    ns.run(
        "sysctl",
        &["-w", "net.core.somaxconn=77", "net.ipv4.ip_local_reserved_ports=8080,9000-9010"],
    );
    let facts = ns.netwright_json(&["inspect", "--json"]);
    let all = sysctls(&facts);
    assert_eq!(all["net.core.somaxconn"]["value"], "77");
    assert_eq!(all["net.core.somaxconn"]["origin"]["kind"], "unknown");
    assert_eq!(all["net.core.somaxconn"]["default_from"], "fresh_namespace");
    assert_ne!(all["net.core.somaxconn"]["default"], "77");
    assert_eq!(all["net.ipv4.ip_local_reserved_ports"]["value"], "8080,9000-9010");
    assert_eq!(all["net.ipv4.ip_local_reserved_ports"]["default"], "");
    let hidden = all["net.core.netdev_budget"]["value"]["absent"].as_str().unwrap();
    assert!(hidden.contains("initial network namespace"), "{hidden}");
}

/// A setting that new namespaces copy from the initial one proves nothing: changing it must not
/// change our default.
#[test]
fn inherited_settings_come_from_the_table() {
    let facts = inspect();
    for key in [
        "net.ipv4.tcp_rmem",
        "net.ipv4.tcp_wmem",
        "net.ipv4.tcp_congestion_control",
        "net.core.rmem_max",
    ] {
        assert_ne!(sysctls(&facts)[key]["default_from"], "fresh_namespace", "{key}");
    }
}
