//! The table of sysctls against the running kernel: each sysctl of `/proc/sys/net`, and its default in a new
//! network namespace.

use std::{fs, path::Path};

use crate::support::{needs_root, run};
use model::sysctl_versions::{self, DefaultAt, Existence, ScopeAt};

/// Loggers have no names of their own: one for each protocol family.
const NOT_IN_THE_TABLE: &str = "net.netfilter.nf_log.";

/// The loopback device sets these for itself (`net/ipv4/devinet.c`, `net/ipv6/addrconf.c`).
const OF_LOOPBACK: [&str; 5] =
    ["disable_policy", "disable_xfrm", "accept_dad", "mtu", "use_tempaddr"];

fn names(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        if entry.path().is_dir() {
            names(&entry.path(), found);
        } else {
            let path = entry.path();
            let below = path.strip_prefix("/proc/sys").unwrap().to_str().unwrap();
            found.push(below.replace('.', "_").replace('/', "."));
        }
    }
}

/// Major and minor of the running kernel, where the table has them.
fn kernel() -> sysctl_versions::Kernel {
    let release = run("uname", &["-r"]);
    let mut parts = release.split(|c: char| !c.is_ascii_digit()).flat_map(str::parse);
    let kernel = (parts.next().unwrap(), parts.next().unwrap());
    let (oldest, newest) = sysctl_versions::versions();
    assert!(
        (oldest..=newest).contains(&kernel),
        "the table ends at {newest:?}: run scripts/sysctl-table"
    );
    kernel
}

#[test]
fn each_sysctl_of_this_kernel_is_in_the_table() {
    let kernel = kernel();
    let mut all = vec![];
    names(Path::new("/proc/sys/net"), &mut all);
    assert!(all.len() > 300, "only {} sysctls", all.len());
    for name in all.iter().filter(|n| !n.starts_with(NOT_IN_THE_TABLE)) {
        let facts =
            sysctl_versions::of(name).unwrap_or_else(|| panic!("{name} is not in the table"));
        assert_ne!(facts.exists_at(kernel), Existence::No, "{name}");
    }
}

#[test]
fn defaults_are_those_of_a_new_namespace() {
    needs_root();
    let kernel = kernel();
    let mut compared = 0;
    for line in run("unshare", &["-n", "sysctl", "-a", "--ignore"]).lines() {
        let Some((name, value)) = line.split_once(" =") else { continue };
        let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
        let leaf = name.rsplit('.').next().unwrap();
        if name.split('.').nth(3) == Some("lo") && OF_LOOPBACK.contains(&leaf) {
            continue;
        }
        let Some(facts) = name.starts_with("net.").then(|| sysctl_versions::of(name)).flatten()
        else {
            continue;
        };
        // A value of all namespaces may be another one than the default.
        if facts.scope_at(kernel) != ScopeAt::Namespace {
            continue;
        }
        if let DefaultAt::Value(default) = facts.default_at(kernel) {
            assert_eq!(value, default, "{name}");
            compared += 1;
        }
    }
    assert!(compared > 300, "only {compared} defaults");
}
