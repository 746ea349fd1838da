//! All knobs, one file each.

mod boot_parameter;
mod cpu_energy_preference;
mod cpu_governor;
mod cpu_idle_limit;
mod irq_affinity;
mod irqbalance;
mod irqbalance_cpus;
mod irqbalance_policy;
mod irqbalance_running;
mod memory_thp;
mod nic_channels;
mod nic_coalesce;
mod nic_defer_hard_irqs;
mod nic_features;
mod nic_gro_flush_timeout;
mod nic_mtu;
pub(crate) mod nic_napi;
mod nic_pause;
mod nic_qdisc;
mod nic_rings;
mod nic_segment_size;
mod nic_threaded;
mod nic_txqueuelen;
mod pci_request;
mod process_affinity;
mod process_cpu_max;
mod process_cpuset;
mod queue_rfs_flows;
mod queue_rps_cpus;
mod queue_xps_cpus;
mod route_metric;
mod rss_hash_fields;
mod rss_key;
mod rss_table;
mod sysctl;

use model::knob::Target;

use crate::knob::{Kind, Knob};

/// All kinds of knobs, sorted by name.
pub const ALL: &[Kind] = &[
    boot_parameter::KIND,
    cpu_energy_preference::KIND,
    cpu_governor::KIND,
    cpu_idle_limit::KIND,
    irq_affinity::KIND,
    irqbalance::KIND,
    irqbalance_cpus::KIND,
    irqbalance_policy::KIND,
    irqbalance_running::KIND,
    memory_thp::KIND,
    nic_channels::KIND,
    nic_coalesce::KIND,
    nic_defer_hard_irqs::KIND,
    nic_features::KIND,
    nic_gro_flush_timeout::KIND,
    nic_mtu::KIND,
    nic_napi::KIND,
    nic_pause::KIND,
    nic_qdisc::KIND,
    nic_rings::KIND,
    nic_segment_size::KIND,
    nic_threaded::KIND,
    nic_txqueuelen::KIND,
    pci_request::KIND,
    process_affinity::KIND,
    process_cpu_max::KIND,
    process_cpuset::KIND,
    queue_rfs_flows::KIND,
    queue_rps_cpus::KIND,
    queue_xps_cpus::KIND,
    route_metric::KIND,
    rss_hash_fields::KIND,
    rss_key::KIND,
    rss_table::KIND,
    sysctl::KIND,
];

/// The knob with this full name.
pub fn find(name: &str) -> Option<Box<dyn Knob + '_>> {
    let target = Target::parse(name)?;
    ALL.iter().find_map(|kind| (kind.parse)(target))
}

/// Canonical name of the value that a knob sets: the same for all its names.
pub fn value(knob: &str) -> String {
    find(knob).and_then(|k| k.same_as()).unwrap_or_else(|| knob.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_the_files() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/knobs");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|e| e.unwrap().path())
            .filter(|p| p.is_file())
            .map(|p| p.file_stem().unwrap().to_str().unwrap().to_owned())
            .collect();
        files.sort();
        let listed: Vec<&str> = ALL.iter().map(|k| k.name).collect();
        assert_eq!(files, listed);
    }

    #[test]
    fn a_name_belongs_to_one_knob() {
        for (name, knob) in [
            ("sysctl.net.core.somaxconn", "sysctl"),
            ("nic.eth0.100.mtu", "nic_mtu"),
            ("nic.eth0.channels", "nic_channels"),
            ("nic.eth0.rings.rx", "nic_rings"),
            ("nic.eth0.txqueuelen", "nic_txqueuelen"),
            ("nic.eth0.queue.rx-11.rps_cpus", "queue_rps_cpus"),
            ("nic.eth0.100.napi.threaded.rx-0", "nic_napi"),
            ("nic.eth0.napi.gro_flush_timeout.12", "nic_napi"),
            ("nic.eth0.queue.rx-0.rfs_flows", "queue_rfs_flows"),
            ("nic.eth0.queue.tx-3.xps_cpus", "queue_xps_cpus"),
            ("nic.eth0.threaded", "nic_threaded"),
            ("nic.eth0.1.coalesce.rx_usecs", "nic_coalesce"),
            ("nic.eth0.coalesce.rx_usecs_irq", "nic_coalesce"),
            ("nic.eth0.features.rx-gro", "nic_features"),
            ("nic.enp175s0f1np1.pause.rx", "nic_pause"),
            ("nic.enp175s0f1np1.rings.tx", "nic_rings"),
            ("nic.enp175s0f1np1.coalesce.rx_usecs", "nic_coalesce"),
            ("nic.enp175s0f1np1.rss.hash_fields.udp4", "rss_hash_fields"),
            ("nic.enp175s0f1np1.rss.table", "rss_table"),
            ("nic.enp175s0f1np1.features.rx-gro", "nic_features"),
            ("nic.eth0.rss.table", "rss_table"),
            ("nic.eth0.rss.key", "rss_key"),
            ("nic.eth0.rss.hash_fields.udp4", "rss_hash_fields"),
            ("irq.38.affinity", "irq_affinity"),
            ("irqbalance.paused", "irqbalance"),
            ("irqbalance.banned_cpus", "irqbalance_cpus"),
            ("irqbalance.policyscript", "irqbalance_policy"),
            ("irqbalance.running", "irqbalance_running"),
            ("cpu.0.governor", "cpu_governor"),
            ("cpu.127.idle_limit", "cpu_idle_limit"),
            ("cpu.1.energy_preference", "cpu_energy_preference"),
            ("nic.eth0.100.qdisc", "nic_qdisc"),
            ("process.4711.affinity", "process_affinity"),
            ("process.4711.cpuset", "process_cpuset"),
            ("process.4711.cpu_max", "process_cpu_max"),
            ("nic.eth0.100.gso_max_size", "nic_segment_size"),
            ("nic.eth0.gro_ipv4_max_size", "nic_segment_size"),
            ("memory.thp_defrag", "memory_thp"),
            ("route.default.initcwnd", "route_metric"),
            ("route.10.0.0.0/8@100.rto_min", "route_metric"),
            ("route.2001:db8::/32.congctl", "route_metric"),
            ("boot.iommu.strict", "boot_parameter"),
            ("boot.nohz_full", "boot_parameter"),
            ("pci.0000:81:00.0.read_request", "pci_request"),
            ("pci.10000:81:00.1.mmrbc", "pci_request"),
        ] {
            let target = Target::parse(name).unwrap_or_else(|| panic!("{name}"));
            let takers: Vec<_> =
                ALL.iter().filter(|k| (k.parse)(target).is_some()).map(|k| k.name).collect();
            assert_eq!(takers, [knob], "{name}");
            assert_eq!(find(name).unwrap().target().to_string(), name);
        }
        for none in [
            "",
            "nic..mtu",
            "nic.a/b.mtu",
            "nic.sixteen-letters-x.mtu",
            "nic.eth0.queue.rx-.rps_cpus",
            "nic.eth0.napi.threaded.rx-",
            "nic.eth0.napi.gro.rx-0",
            "nic.eth0.queue.tx-0.rps_cpus",
            "irq.x.affinity",
            "cpu.01.governor",
            "cpu.x.governor",
            "sysctl.",
            "sysctl.net/../../etc/passwd",
            "sysctl.net.*",
            "process.0.affinity",
            "process.0.cpu_max",
            "memory.thpp",
            "route.default.mtu",
            "route.eth0.initcwnd",
            "route..initcwnd",
            "boot.quiet",
            "nic.eth0.rings.blue",
        ] {
            assert!(find(none).is_none(), "{none:?} was taken");
        }
    }
}
