//! Every rule, one file each, by catalogue number.

use crate::Rule;

pub(crate) mod accept_queue_overflow;
pub(crate) mod app_migrates;
pub(crate) mod app_off_softirq_node;
pub(crate) mod backlog_drops;
pub(crate) mod below_kernel_default;
pub(crate) mod buffer_below_bdp;
pub(crate) mod cloud_allowance;
pub(crate) mod coalescing_goal;
pub(crate) mod conflicting_tuner;
pub(crate) mod conntrack_filling;
pub(crate) mod cpu_quota;
pub(crate) mod cpu_steal;
pub(crate) mod driver_starvation;
pub(crate) mod ena_large_llq;
pub(crate) mod fec_errors;
pub(crate) mod few_channels;
pub(crate) mod flow_skew;
pub(crate) mod governor_idle_states;
pub(crate) mod iommu_strict;
pub(crate) mod irq_off_node;
pub(crate) mod irq_suspension;
pub(crate) mod irqs_piled_up;
pub(crate) mod ksoftirqd_hot;
pub(crate) mod link_below_capability;
pub(crate) mod link_faults;
pub(crate) mod memory_pressure;
pub(crate) mod mtu_mismatch;
pub(crate) mod neighbour_table;
pub(crate) mod nic_resets;
pub(crate) mod numa_balancing;
pub(crate) mod offloads_off;
pub(crate) mod pause_storm;
pub(crate) mod pcie_degraded;
pub(crate) mod ports_running_out;
pub(crate) mod qdisc_drops;
pub(crate) mod retransmits;
pub(crate) mod rfs_half_set;
pub(crate) mod ring_too_small;
pub(crate) mod rps_missing;
pub(crate) mod rps_redundant;
pub(crate) mod sack_timestamps_off;
pub(crate) mod setting_lost;
pub(crate) mod silent_drops;
pub(crate) mod slow_clocksource;
pub(crate) mod small_read_request;
pub(crate) mod smt_sibling_shared;
pub(crate) mod syn_queue_overflow;
pub(crate) mod synthetic_path;
pub(crate) mod tcp_mem_units;
pub(crate) mod tcp_memory_pressure;
pub(crate) mod time_squeeze;
pub(crate) mod transceiver_alarm;
pub(crate) mod udp_receive_drops;
pub(crate) mod xps_not_local;

/// All rules, ascending by catalogue number. A test compares the list with the folder.
pub static ALL: &[&Rule] = &[
    &few_channels::RULE,
    &irqs_piled_up::RULE,
    &irq_off_node::RULE,
    &app_off_softirq_node::RULE,
    &time_squeeze::RULE,
    &backlog_drops::RULE,
    &ksoftirqd_hot::RULE,
    &ring_too_small::RULE,
    &rps_missing::RULE,
    &rps_redundant::RULE,
    &rfs_half_set::RULE,
    &xps_not_local::RULE,
    &flow_skew::RULE,
    &conflicting_tuner::RULE,
    &setting_lost::RULE,
    &buffer_below_bdp::RULE,
    &tcp_mem_units::RULE,
    &tcp_memory_pressure::RULE,
    &sack_timestamps_off::RULE,
    &accept_queue_overflow::RULE,
    &syn_queue_overflow::RULE,
    &ports_running_out::RULE,
    &mtu_mismatch::RULE,
    &offloads_off::RULE,
    &coalescing_goal::RULE,
    &governor_idle_states::RULE,
    &pcie_degraded::RULE,
    &small_read_request::RULE,
    &conntrack_filling::RULE,
    &qdisc_drops::RULE,
    &app_migrates::RULE,
    &numa_balancing::RULE,
    &smt_sibling_shared::RULE,
    &retransmits::RULE,
    &udp_receive_drops::RULE,
    &cloud_allowance::RULE,
    &below_kernel_default::RULE,
    &cpu_quota::RULE,
    &cpu_steal::RULE,
    &silent_drops::RULE,
    &link_faults::RULE,
    &neighbour_table::RULE,
    &driver_starvation::RULE,
    &pause_storm::RULE,
    &slow_clocksource::RULE,
    &memory_pressure::RULE,
    &irq_suspension::RULE,
    &iommu_strict::RULE,
    &link_below_capability::RULE,
    &fec_errors::RULE,
    &synthetic_path::RULE,
    &transceiver_alarm::RULE,
    &nic_resets::RULE,
    &ena_large_llq::RULE,
];
