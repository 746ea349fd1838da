//! The table against facts that were read in the sources by hand, and against the other table.

use super::{
    DefaultAt::{Computed, Unknown, Value},
    Existence::{No, Yes},
    *,
};
use crate::sysctls::{KernelDefault, TABLE as SETTINGS, UNSURE};

fn row(name: &str) -> &'static SysctlFacts {
    of(name).unwrap_or_else(|| panic!("no row for {name}"))
}

/// Name, a version, and the default that its sources have there.
#[test]
fn defaults_are_those_of_the_sources() {
    for (name, kernel, default) in [
        ("net.core.somaxconn", (5, 3), Value("128")),
        ("net.core.somaxconn", (5, 4), Value("4096")),
        ("net.core.optmem_max", (6, 5), Value("20480")),
        ("net.core.optmem_max", (6, 8), Value("131072")),
        ("net.core.rmem_max", (6, 17), Value("212992")),
        ("net.core.rmem_max", (6, 18), Value("4194304")),
        ("net.core.netdev_budget", (4, 18), Value("300")),
        ("net.core.netdev_budget_usecs", (4, 18), Value("2000")),
        (
            "net.core.netdev_budget_usecs",
            (6, 18),
            Computed("by tick rate: 100=20000 250=8000 1000=2000"),
        ),
        ("net.core.message_cost", (6, 1), Value("5")),
        ("net.core.default_qdisc", (6, 1), Computed("by build")),
        ("net.ipv4.tcp_tw_reuse", (4, 18), Value("2")),
        ("net.ipv4.tcp_limit_output_bytes", (4, 20), Value("262144")),
        ("net.ipv4.tcp_limit_output_bytes", (5, 0), Value("1048576")),
        ("net.ipv4.tcp_limit_output_bytes", (6, 17), Value("4194304")),
        ("net.ipv4.tcp_min_snd_mss", (6, 1), Value("48")),
        ("net.ipv4.tcp_notsent_lowat", (6, 1), Value("4294967295")),
        ("net.ipv4.tcp_fin_timeout", (5, 10), Value("60")),
        ("net.ipv4.tcp_invalid_ratelimit", (5, 10), Value("500")),
        ("net.ipv4.tcp_ecn", (6, 18), Value("2")),
        ("net.ipv4.ip_local_port_range", (4, 18), Value("32768 60999")),
        ("net.ipv4.ip_local_port_range", (6, 18), Value("32768 60999")),
        ("net.ipv4.tcp_mem", (5, 10), Computed("by memory")),
        ("net.ipv4.conf.*.rp_filter", (5, 10), Value("0")),
        ("net.ipv4.conf.*.send_redirects", (5, 10), Value("1")),
        ("net.ipv4.conf.all.accept_source_route", (5, 10), Value("0")),
        ("net.ipv4.neigh.default.gc_thresh3", (6, 1), Value("1024")),
        ("net.ipv4.neigh.*.gc_stale_time", (6, 1), Value("60")),
        ("net.ipv6.conf.*.router_solicitations", (6, 1), Value("-1")),
        ("net.netfilter.nf_conntrack_tcp_timeout_established", (6, 1), Value("432000")),
        ("net.netfilter.nf_conntrack_max", (6, 1), Computed("by memory")),
        ("net.unix.max_dgram_qlen", (6, 1), Value("10")),
        ("kernel.sched_migration_cost_ns", (4, 18), Value("500000")),
        ("fs.nr_open", (6, 1), Value("1048576")),
        ("vm.swappiness", (6, 1), Value("60")),
        ("net.core.somaxconn", (4, 17), Unknown),
    ] {
        assert_eq!(row(name).default_at(kernel), default, "{name} at {kernel:?}");
    }
}

#[test]
fn sysctls_come_and_go_where_the_sources_say() {
    for (name, kernel, there) in [
        ("kernel.sched_migration_cost_ns", (5, 12), Yes),
        ("kernel.sched_migration_cost_ns", (5, 14), No),
        ("kernel.sched_min_granularity_ns", (5, 12), Yes),
        ("kernel.sched_wakeup_granularity_ns", (5, 14), No),
        ("net.ipv4.ip_forward_update_priority", (4, 18), No),
        ("net.ipv4.ip_forward_update_priority", (4, 19), Yes),
        ("net.core.gro_normal_batch", (5, 3), No),
        ("net.core.gro_normal_batch", (5, 4), Yes),
        ("net.ipv4.tcp_rto_max_ms", (6, 14), No),
        ("net.ipv4.tcp_rto_max_ms", (6, 17), Yes),
        ("net.ipv4.tcp_child_ehash_entries", (6, 0), No),
        ("net.ipv4.tcp_child_ehash_entries", (6, 1), Yes),
        ("net.ipv4.tcp_shrink_window", (6, 5), Yes),
        ("net.ipv4.tcp_plb_enabled", (6, 1), No),
        ("net.ipv4.tcp_plb_enabled", (6, 2), Yes),
        ("net.ipv4.tcp_low_latency", (6, 18), Yes),
        ("net.ipv4.tcp_fack", (6, 18), Yes),
        ("net.ipv4.tcp_l3mdev_accept", (4, 18), Yes),
        ("net.mptcp.enabled", (5, 4), No),
        ("net.mptcp.enabled", (5, 6), Yes),
        ("net.core.skb_defer_max", (5, 17), No),
        ("net.core.skb_defer_max", (5, 19), Yes),
    ] {
        assert_eq!(row(name).exists_at(kernel), there, "{name} at {kernel:?}");
    }
}

#[test]
fn a_name_that_was_gone_before_the_table_says_where_it_was() {
    assert_eq!(of("net.ipv4.tcp_tw_recycle"), None);
    let gone = gone_before_the_table("net.ipv4.tcp_tw_recycle").unwrap();
    assert!(gone.source.ends_with("kernel/sysctl_binary.c"), "{}", gone.source);
    assert_eq!(gone_before_the_table("net.ipv4.tcp_unheard_of"), None);
}

#[test]
fn units_and_ranges_are_those_of_the_handlers() {
    for (name, unit) in [
        ("net.ipv4.tcp_fin_timeout", Some("s")),
        ("net.ipv4.icmp_ratelimit", Some("ms")),
        ("net.ipv4.neigh.*.locktime", Some("ticks")),
        ("net.core.netdev_budget_usecs", Some("us")),
        ("net.ipv4.tcp_comp_sack_delay_ns", Some("ns")),
        ("vm.dirty_writeback_centisecs", Some("centiseconds")),
        ("vm.min_free_kbytes", Some("KiB")),
        ("net.ipv4.tcp_retries2", None),
    ] {
        assert_eq!(row(name).unit, unit, "{name}");
    }
    assert_eq!(row("net.ipv4.tcp_syn_retries").range_at((6, 1)), (Some(1), Some(127)));
    // An update of 5.10 has it, 5.11 to 6.5 do not: in between it depends on the update.
    assert_eq!(row("net.ipv6.conf.*.accept_ra_min_lft").exists_at((5, 9)), No);
    assert_eq!(row("net.ipv6.conf.*.accept_ra_min_lft").exists_at((5, 15)), Existence::Unknown);
    assert_eq!(row("net.core.rmem_max").range_at((6, 1)).0, Some(2304));
    assert_eq!(row("vm.swappiness").range_at((6, 1)), (Some(0), Some(200)));
    assert_eq!(row("vm.swappiness").range_at((4, 19)), (Some(0), Some(100)));
}

#[test]
fn scopes_are_those_of_the_registration() {
    assert_eq!(row("net.core.netdev_budget").scope_at((6, 18)), ScopeAt::Host);
    assert_eq!(row("net.core.somaxconn").scope_at((4, 18)), ScopeAt::Namespace);
    assert_eq!(row("net.core.optmem_max").scope_at((4, 18)), ScopeAt::Host);
    assert_eq!(row("net.core.optmem_max").scope_at((6, 18)), ScopeAt::Namespace);
    assert_eq!(row("net.netfilter.nf_conntrack_max").scope_at((6, 18)), ScopeAt::Shared);
}

#[test]
fn a_nic_has_the_row_of_its_family() {
    assert_eq!(row("net.ipv4.conf.eth0.rp_filter").name, "net.ipv4.conf.*.rp_filter");
    assert_eq!(row("net.ipv6.conf.eth0.100.mtu").name, "net.ipv6.conf.*.mtu");
    assert_eq!(of("net.ipv4.conf.rp_filter"), None);
    assert_eq!(of(""), None);
    assert!(row("net.core.gro_normal_batch").access == Access::ReadWrite);
    assert!(row("net.ipv4.route.flush").access == Access::WriteOnly);
}

#[test]
fn a_boundary_between_two_versions_is_not_guessed() {
    let b = boundary("5.10<5.14").unwrap();
    assert_eq!([(5, 10), (5, 12), (5, 14)].map(|k| b.passed(k)), [Some(false), None, Some(true)]);
    assert_eq!(boundary("6.12<6.12").unwrap().passed((6, 12)), None);
    assert_eq!(boundary("-"), None);
    assert_eq!(boundary("4.18-"), None);
}

/// Each row is whole: its boundaries ascend, what it is coupled with exists.
#[test]
fn each_row_is_sound() {
    let (oldest, newest) = versions();
    assert_eq!((oldest, newest), ((4, 18), (6, 18)));
    let mut rows = 0;
    for row in all() {
        rows += 1;
        for history in [&row.default, &row.min, &row.max, &row.scope] {
            assert!(
                history.0[0].0.is_none() && history.0.iter().skip(1).all(|h| h.0.is_some()),
                "{}",
                row.name
            );
            assert!(history.0.is_sorted_by_key(|h| h.0.map(|b| b.by)), "{}", row.name);
        }
        assert!(
            row.scope.0.iter().all(|s| ["host", "shared", "netns"].contains(&s.1)),
            "{}",
            row.name
        );
        assert!(row.coupled.iter().all(|c| of(c).is_some()), "{}", row.name);
        assert!(gone_before_the_table(row.name).is_none(), "{}", row.name);
    }
    assert!(rows > 700, "{rows} rows");
}

/// The hand-written table of settings against this one, at each version of the table.
#[test]
fn the_settings_agree() {
    let mut compared = 0;
    for setting in SETTINGS {
        let (Some(known), Some(facts)) = (setting.known, of(setting.key)) else { continue };
        let KernelDefault::Since(spans) = known.default else { continue };
        for kernel in (18..=20)
            .map(|n| (4, n))
            .chain((0..=19).map(|n| (5, n)))
            .chain((0..=18).map(|n| (6, n)))
        {
            let Some(ours) = spans.iter().rev().find(|s| s.0 <= kernel).map(|s| s.1) else {
                continue;
            };
            if ours == UNSURE || facts.exists_at(kernel) != Yes {
                continue;
            }
            if let Value(theirs) = facts.default_at(kernel) {
                assert_eq!(ours, theirs, "{} at {kernel:?}", setting.key);
                compared += 1;
            }
        }
    }
    assert!(compared > 2000, "{compared} defaults");
}
