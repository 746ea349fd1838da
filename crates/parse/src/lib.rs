//! One parser for each format of outside bytes, of the kernel and of other programs: bytes in,
//! `model` out.
//!
//! No parser panics on any input or allocates more than a small multiple of its input. None turns
//! unknown input into zero. [`PARSERS`] names all of them for the fuzzer; a test compares the list
//! with the files of this folder.

pub mod acpi;
pub mod benchmark;
mod benchmark_runs;
pub mod btf_enum;
pub mod cache_size;
pub mod cgroup;
pub mod cgroup_cpu;
pub mod conntrack_text;
pub mod cpuinfo;
pub mod dockerfile;
pub mod environ;
pub mod error;
pub mod ethtool_link_text;
pub mod ethtool_text;
pub mod fio_json;
pub mod genl_ethtool;
pub mod genl_netdev;
pub mod head_text;
pub mod hexmask;
pub mod hyperfine_json;
pub mod inet_diag;
pub mod ini;
pub mod interrupts;
pub mod ip_link_text;
pub mod iperf3_json;
pub mod irq_name;
pub mod irqbalance_setup;
pub mod kallsyms;
pub mod kconfig;
pub mod kernel_cmdline;
pub mod kernel_log;
pub mod list;
pub mod lscpu_text;
pub mod meminfo;
pub mod mountinfo;
pub mod net_dev;
pub mod net_snmp;
pub mod net_snmp6;
pub mod netlink;
pub mod netstat_text;
pub mod netwright_json;
pub mod nstat_text;
pub mod numa_maps;
pub mod number_table;
pub mod os_release;
pub mod pci_config;
pub mod pci_link;
pub mod peers;
pub mod pgbench_log;
pub mod pgbench_text;
pub mod pressure;
pub mod proc_net_stat;
pub mod proc_net_tcp;
pub mod proc_stat;
pub mod proc_status;
pub mod prometheus_json;
pub mod prove_json;
pub mod rtnl_addr;
pub mod rtnl_link;
pub mod rtnl_qdisc;
pub mod rtnl_stats;
pub mod schedstat;
pub mod sff_module;
pub mod shell_settings;
pub mod shell_vars;
pub mod sockperf_text;
pub mod sockstat;
pub mod softirqs;
pub mod softnet_stat;
pub mod ss_info_text;
pub mod ss_text;
pub mod supportconfig;
pub mod sysctl_conf;
pub mod sysinfo_s390;
pub mod task_sched;
pub mod task_stat;
pub mod tc_qdisc_text;
pub mod text;
pub mod uptime_text;
pub mod vlan_config;
pub mod vmstat;
pub mod wrk_text;
pub mod yaml_settings;

pub use error::ParseError;

/// A parser as the fuzzer sees it: a name, and a function that must not panic.
pub type FuzzEntry = (&'static str, fn(&[u8]));

/// Every parser of outside bytes, by module name, ascending.
pub const PARSERS: &[FuzzEntry] = &[
    ("acpi", |b| drop(acpi::header(b))),
    ("benchmark", |b| drop(benchmark::parse(b))),
    ("btf_enum", |b| drop(btf_enum::values(b, "skb_drop_reason"))),
    ("cache_size", |b| drop(cache_size::parse(b))),
    ("cgroup", |b| drop(cgroup::parse(b).map(|c| (c.unit(), c.container())))),
    ("cgroup_cpu", |b| {
        let _ = (cgroup_cpu::stat(b), cgroup_cpu::max(b));
    }),
    ("conntrack_text", |b| drop(conntrack_text::parse(b))),
    ("cpuinfo", |b| drop(cpuinfo::parse(b))),
    ("dockerfile", |b| drop(dockerfile::parse(b))),
    ("environ", |b| drop(environ::value(b, "container"))),
    ("ethtool_link_text", |b| {
        let _ = (ethtool_link_text::modes(b), ethtool_link_text::fec(b));
    }),
    ("ethtool_text", |b| {
        let _ = (ethtool_text::limits(b), ethtool_text::features(b), ethtool_text::coalesce(b));
        let _ = (ethtool_text::statistics(b), ethtool_text::driver(b), ethtool_text::link(b));
        let _ = (ethtool_text::pause(b), ethtool_text::rss(b), ethtool_text::rule_count(b));
    }),
    ("fio_json", |b| document(b, fio_json::runs)),
    ("genl_ethtool", |b| {
        let _ = (genl_ethtool::coalesce(b), genl_ethtool::rss(b));
        let _ = (genl_ethtool::link_modes(b), genl_ethtool::fec(b), genl_ethtool::module_bytes(b));
    }),
    ("genl_netdev", |b| {
        drop((genl_netdev::queue(b), genl_netdev::napi(b), genl_netdev::qstats(b)));
    }),
    ("head_text", |b| drop(head_text::parse(b))),
    ("hexmask", |b| drop(hexmask::parse(b))),
    ("hyperfine_json", |b| document(b, hyperfine_json::runs)),
    ("inet_diag", |b| {
        let _ = inet_diag::parse(b);
    }),
    ("ini", |b| {
        for e in ini::parse(b).entries {
            let _ = ini::without_comment(&e.value);
        }
    }),
    ("interrupts", |b| drop(interrupts::parse(b))),
    ("ip_link_text", |b| drop(ip_link_text::parse(b))),
    ("iperf3_json", |b| document(b, iperf3_json::runs)),
    ("irq_name", |b| {
        let _ = irq_name::parse(&String::from_utf8_lossy(b));
    }),
    ("irqbalance_setup", |b| drop(irqbalance_setup::parse(b))),
    ("kallsyms", |b| {
        let mut functions = kallsyms::Functions::default();
        b.chunks(7).for_each(|piece| functions.take(piece));
        drop(functions.sorted().at(0xffff_ffff_8100_0000));
    }),
    ("kconfig", |b| drop(kconfig::parse(b))),
    ("kernel_cmdline", |b| drop(kernel_cmdline::parse(b))),
    ("kernel_log", |b| drop(kernel_log::parse(b, "dmesg"))),
    ("list", |b| drop(list::parse(b))),
    ("lscpu_text", |b| drop(lscpu_text::parse(b))),
    ("meminfo", |b| drop(meminfo::value(b, "MemTotal"))),
    ("mountinfo", |b| drop((mountinfo::parse(b), mountinfo::of_types(b, b"cgroup")))),
    ("net_dev", |b| drop(net_dev::parse(b))),
    ("net_snmp", |b| drop(net_snmp::parse(b))),
    ("net_snmp6", |b| drop(net_snmp6::parse(b))),
    ("netlink", netlink::fuzz),
    ("netstat_text", |b| drop(netstat_text::parse(b))),
    ("netwright_json", |b| document(b, netwright_json::runs)),
    ("nstat_text", |b| drop(nstat_text::parse(b))),
    ("numa_maps", |b| drop(numa_maps::memory_by_node(b))),
    ("number_table", |b| drop(number_table::rows(&String::from_utf8_lossy(b)))),
    ("os_release", |b| drop(os_release::pretty_name(b))),
    ("pci_config", |b| drop(pci_config::parse(b))),
    ("pci_link", |b| {
        let _ = (pci_link::speed_mts(b), pci_link::lanes(b));
    }),
    ("peers", |b| drop(peers::parse(b))),
    ("pgbench_log", |b| drop(pgbench_log::run(&String::from_utf8_lossy(b)))),
    ("pgbench_text", |b| drop(pgbench_text::runs(&String::from_utf8_lossy(b)))),
    ("pressure", |b| drop(pressure::parse(b))),
    ("proc_net_stat", |b| drop(proc_net_stat::parse(b))),
    ("proc_net_tcp", |b| drop(proc_net_tcp::parse(b))),
    ("proc_stat", |b| drop(proc_stat::parse(b))),
    ("proc_status", |b| {
        let _ = proc_status::value(b, "Cpus_allowed_list");
    }),
    ("prometheus_json", |b| drop(prometheus_json::parse(b))),
    ("prove_json", |b| {
        document(b, prove_json::document);
        document(b, |d| prove_json::record(std::slice::from_ref(d)));
    }),
    ("rtnl_addr", |b| {
        let _ = rtnl_addr::parse(b);
    }),
    ("rtnl_link", |b| drop(rtnl_link::parse(b))),
    ("rtnl_qdisc", |b| drop(rtnl_qdisc::parse(b))),
    ("rtnl_stats", |b| drop(rtnl_stats::parse(b))),
    ("schedstat", |b| drop(schedstat::parse(b))),
    ("sff_module", |b| {
        let _ =
            (sff_module::printed(b), sff_module::layout(b).map(|l| sff_module::diagnostics(l, b)));
        let _ = sff_module::diagnostics(sff_module::Layout::Sff8472, b);
    }),
    ("shell_settings", |b| drop(shell_settings::parse(b, model::lint::Place::Script))),
    ("shell_vars", |b| drop(shell_vars::parse(b))),
    ("sockperf_text", |b| drop(sockperf_text::runs(&String::from_utf8_lossy(b)))),
    ("sockstat", |b| drop(sockstat::parse(b))),
    ("softirqs", |b| drop(softirqs::parse(b))),
    ("softnet_stat", |b| drop(softnet_stat::parse(b, None))),
    ("ss_info_text", |b| drop((ss_info_text::connections(b), ss_info_text::udp(b)))),
    ("ss_text", |b| drop(ss_text::listeners(b))),
    ("supportconfig", |b| drop(supportconfig::parse(b))),
    ("sysctl_conf", |b| {
        for s in sysctl_conf::parse(b).settings {
            let _ = sysctl_conf::glob_matches(&s.path, "net/ipv4/conf/all/rp_filter");
            let _ = sysctl_conf::same_value(s.value.as_deref().unwrap_or_default(), "0-3");
        }
    }),
    ("sysinfo_s390", |b| drop(sysinfo_s390::control_program(b))),
    ("task_sched", |b| drop(task_sched::migrations(b))),
    ("task_stat", |b| drop(task_stat::parse(b))),
    ("tc_qdisc_text", |b| {
        drop((tc_qdisc_text::parse(b), tc_qdisc_text::parse_of(b, Some("eth0"))))
    }),
    ("text", |b| {
        let _ = text::number::<i64>(b);
        let _ = text::numbers::<i64>(b);
        let _ = (text::hex(b), text::chosen(b));
    }),
    ("uptime_text", |b| {
        let _ = uptime_text::parse(b);
    }),
    ("vlan_config", |b| drop(vlan_config::parse(b))),
    ("vmstat", |b| drop(vmstat::parse(b))),
    ("wrk_text", |b| drop(wrk_text::runs(&String::from_utf8_lossy(b)))),
    ("yaml_settings", |b| drop(yaml_settings::parse(b))),
];

/// Feeds a parser of JSON documents.
fn document<T>(bytes: &[u8], parser: impl Fn(&serde_json::Value) -> T) {
    if let Ok(document) = serde_json::from_slice(bytes) {
        let _ = parser(&document);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adding a parser is adding a file; this list is the one place that must name it.
    #[test]
    fn every_parser_file_is_fuzzed() {
        #[allow(clippy::disallowed_methods, reason = "a test may look at its own sources")]
        let mut files: Vec<String> = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src"))
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .filter_map(|n| n.strip_suffix(".rs").map(str::to_owned))
            .filter(|n| !["lib", "error", "benchmark_runs"].contains(&n.as_str()))
            .collect();
        files.sort();
        let named: Vec<&str> = PARSERS.iter().map(|p| p.0).collect();
        assert_eq!(files, named);
    }

    proptest::proptest! {
        #[test]
        fn no_parser_panics_on_any_bytes(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..400)) {
            for (_, parser) in PARSERS {
                parser(&bytes);
            }
        }

        #[test]
        fn no_parser_panics_on_kernel_like_text(text in "([0-9a-fx,:.\\- ]{0,30}[\\n\\t ]?){0,12}") {
            for (_, parser) in PARSERS {
                parser(text.as_bytes());
            }
        }
    }
}
