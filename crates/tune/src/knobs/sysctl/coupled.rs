//! Kernel settings that change others when written. **Source**: a trial write of each file of
//! `/proc/sys/net` in a separate namespace, and of the rest of `/proc/sys` on a host.

use parse::sysctl_conf;

use crate::Host;

/// One value in two units: the coarse file, and the fine one, which undoing writes last.
const FINER: &[(&str, &str)] = &[
    ("base_reachable_time", "base_reachable_time_ms"),
    ("gc_min_interval", "gc_min_interval_ms"),
    ("retrans_time", "retrans_time_ms"),
    ("unres_qlen", "unres_qlen_bytes"),
];

/// Names of one value, or units of it of which the unused one reads 0; the canonical name first. A
/// value that its own name cannot set (0 bytes) is restored through the other name.
const ONE: &[[&str; 2]] = &[
    ["kernel/panic_sys_info", "kernel/panic_print"],
    ["net/netfilter/nf_conntrack_max", "net/nf_conntrack_max"],
    ["user/max_fanotify_groups", "fs/fanotify/max_user_groups"],
    ["user/max_fanotify_marks", "fs/fanotify/max_user_marks"],
    ["user/max_inotify_instances", "fs/inotify/max_user_instances"],
    ["user/max_inotify_watches", "fs/inotify/max_user_watches"],
    ["vm/dirty_background_ratio", "vm/dirty_background_bytes"],
    ["vm/dirty_ratio", "vm/dirty_bytes"],
    ["vm/nr_hugepages", "vm/nr_hugepages_mempolicy"],
    ["vm/overcommit_ratio", "vm/overcommit_kbytes"],
];

/// Another name of `net/ipv4/conf/all/forwarding`.
const IP_FORWARD: &str = "net/ipv4/ip_forward";

/// IPv6 settings, besides forwarding, that `all` sets on every interface at once.
const ALL_OF_IPV6: &[&str] =
    &["addr_gen_mode", "disable_ipv6", "force_forwarding", "ignore_routes_with_linkdown"];

/// Knobs that writing this path may change, in the order of undoing.
pub fn coupled_settings(host: &Host, path: &str) -> Vec<String> {
    if forwards(path) {
        return of_forwarding(host, path);
    }
    let moved = match path.rsplit_once('/') {
        Some(("net/mptcp", "pm_type")) => vec!["net/mptcp/path_manager".into()],
        Some((folder, name)) => twin(path).into_iter().chain(within(host, folder, name)).collect(),
        None => vec![],
    };
    moved.iter().map(|p| knob(p)).collect()
}

/// Whether the value has a name in another unit, of which the unused one reads 0.
pub fn has_other_unit(path: &str) -> bool {
    let pair = ONE.iter().find(|pair| pair.contains(&path));
    pair.is_some_and(|[a, _]| a.starts_with("vm/") && a.ends_with("_ratio"))
}

/// The other name of a value with two names.
fn twin(path: &str) -> Option<String> {
    let pair = ONE.iter().find(|pair| pair.contains(&path))?;
    pair.iter().find(|name| **name != path).map(|name| (*name).to_owned())
}

/// Canonical knob of this path's value, whichever name and unit was written.
pub fn value(path: &str) -> String {
    let finer = |(folder, name): (&str, &str)| {
        let (_, finer) = FINER.iter().find(|(rough, _)| *rough == name && has_units(folder))?;
        Some(format!("{folder}/{finer}"))
    };
    match path {
        IP_FORWARD => knob("net/ipv4/conf/all/forwarding"),
        _ => match ONE.iter().find(|[_, other]| *other == path) {
            Some([name, _]) => knob(name),
            None => knob(&path.rsplit_once('/').and_then(finer).unwrap_or_else(|| path.into())),
        },
    }
}

fn knob(path: &str) -> String {
    format!("sysctl.{}", sysctl_conf::dotted(path))
}

/// Paths that writing an interface's or route's file changes.
fn within(host: &Host, folder: &str, name: &str) -> Vec<String> {
    let finer = FINER.iter().find(|(rough, _)| *rough == name).map(|(_, finer)| *finer);
    let mut all: Vec<String> = match finer {
        Some(finer) if has_units(folder) => vec![format!("{folder}/{finer}")],
        _ => vec![],
    };
    if let Some(table) = speaks_for_all(folder, name) {
        let name = finer.unwrap_or(name);
        let own = host.root().entries(&format!("/proc/sys/{table}")).unwrap_or_default();
        let others = own.iter().map(|n| format!("{table}/{n}")).filter(|f| f != folder);
        // In IPv4, `all` is a separate value.
        let moved = others.filter(|f| !f.ends_with("/all"));
        all.extend(moved.map(|f| format!("{f}/{name}")));
    }
    all
}

fn has_units(folder: &str) -> bool {
    folder == "net/ipv6/route"
        || folder.starts_with("net/ipv4/neigh/")
        || folder.starts_with("net/ipv6/neigh/")
}

/// The interface directories that a file changes: `default` of IPv4 and of neighbors applies to
/// every interface that was never set itself (`devinet_copy_dflt_conf`, `neigh_copy_dflt_parms`).
fn speaks_for_all<'f>(folder: &'f str, name: &str) -> Option<&'f str> {
    match folder.rsplit_once('/')? {
        (table @ ("net/ipv4/conf" | "net/ipv4/neigh" | "net/ipv6/neigh"), "default") => Some(table),
        (table @ "net/ipv6/conf", "all") if ALL_OF_IPV6.contains(&name) => Some(table),
        _ => None,
    }
}

/// Switching forwarding rewrites every interface's setting (`inet_forward_change`).
fn of_forwarding(host: &Host, path: &str) -> Vec<String> {
    let family = if path.starts_with("net/ipv6") { "net/ipv6" } else { "net/ipv4" };
    let names = host.root().entries(&format!("/proc/sys/{family}/conf")).unwrap_or_default();
    let own = |file: &str| knob(&format!("{family}/conf/{file}"));
    // `default` does not change `all`.
    let is_default = path.ends_with("/default/forwarding");
    let names = names.iter().filter(|n| !(is_default && *n == "all"));
    let mut all: Vec<String> = names.map(|n| own(&format!("{n}/forwarding"))).collect();
    // `all` first: writing it rewrites the others.
    all.sort_by_key(|k| !k.ends_with(".all.forwarding"));
    if !is_default {
        all.push(own("all/accept_redirects"));
    }
    all
}

/// Switches that apply to every interface.
pub fn forwards(path: &str) -> bool {
    path == IP_FORWARD
        || ["net/ipv4", "net/ipv6"]
            .iter()
            .any(|f| ["all", "default"].iter().any(|n| path == format!("{f}/conf/{n}/forwarding")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_names_what_it_moves() {
        let tree = tempfile::tempdir().unwrap();
        for folder in ["ipv4/conf", "ipv6/conf", "ipv4/neigh"] {
            for name in ["all", "default", "eth0.100"] {
                let path = tree.path().join("proc/sys/net").join(folder).join(name);
                std::fs::create_dir_all(path).unwrap();
            }
        }
        let host = Host::tree(tree.path()).unwrap();
        for (path, moved) in [
            ("net/ipv6/route/gc_min_interval", &["sysctl.net.ipv6.route.gc_min_interval_ms"][..]),
            ("net/ipv6/route/gc_min_interval_ms", &[]),
            ("net/ipv4/conf/default/rp_filter", &["sysctl.net.ipv4.conf.eth0/100.rp_filter"]),
            ("net/ipv4/conf/all/rp_filter", &[]),
            ("vm/dirty_bytes", &["sysctl.vm.dirty_ratio"]),
            ("vm/dirty_ratio", &["sysctl.vm.dirty_bytes"]),
            ("net/ipv6/conf/default/accept_ra", &[]),
            (
                "net/ipv6/conf/all/ignore_routes_with_linkdown",
                &[
                    "sysctl.net.ipv6.conf.default.ignore_routes_with_linkdown",
                    "sysctl.net.ipv6.conf.eth0/100.ignore_routes_with_linkdown",
                ],
            ),
            (
                "net/ipv4/neigh/default/unres_qlen",
                &[
                    "sysctl.net.ipv4.neigh.default.unres_qlen_bytes",
                    "sysctl.net.ipv4.neigh.eth0/100.unres_qlen_bytes",
                ],
            ),
        ] {
            assert_eq!(coupled_settings(&host, path), moved, "{path}");
        }
        let of_default = coupled_settings(&host, "net/ipv4/conf/default/forwarding");
        assert!(!of_default.iter().any(|k| k.contains(".all.")), "{of_default:?}");
        assert!(of_default.contains(&"sysctl.net.ipv4.conf.eth0/100.forwarding".to_owned()));
    }

    #[test]
    fn a_value_has_one_name() {
        for (path, name) in [
            ("net/ipv4/ip_forward", "sysctl.net.ipv4.conf.all.forwarding"),
            ("net/ipv4/conf/all/forwarding", "sysctl.net.ipv4.conf.all.forwarding"),
            ("net/ipv4/neigh/a.b/unres_qlen", "sysctl.net.ipv4.neigh.a/b.unres_qlen_bytes"),
            ("net/ipv6/route/gc_min_interval", "sysctl.net.ipv6.route.gc_min_interval_ms"),
            ("net/ipv4/route/gc_min_interval", "sysctl.net.ipv4.route.gc_min_interval"),
            ("net/ipv6/conf/all/forwarding", "sysctl.net.ipv6.conf.all.forwarding"),
            ("net/nf_conntrack_max", "sysctl.net.netfilter.nf_conntrack_max"),
            ("fs/inotify/max_user_watches", "sysctl.user.max_inotify_watches"),
            ("vm/dirty_bytes", "sysctl.vm.dirty_ratio"),
        ] {
            assert_eq!(value(path), name);
        }
    }
}
