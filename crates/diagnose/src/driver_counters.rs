//! What drivers' own counters mean (`ethtool -S`), by one table. A name that is not here is not judged.
//!
//! Each row was read in the driver that has it, below `drivers/net`, and in
//! `Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst`. Counters by queue
//! that the kernel names itself are those of `Documentation/netlink/specs/netdev.yaml`.

use std::collections::BTreeMap;

use model::nic::Nic;

use crate::{
    Case,
    rule::{Missing, need},
};

/// What a counter counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// A buffer for received packets could not be allocated.
    NoBuffer,
    /// A transmit queue was full and stopped, or started again after that.
    QueueStopped,
    /// A pause frame came: the other end of the link asks this one to wait.
    PauseReceived,
    /// A pause frame was sent.
    PauseSent,
    /// Time for which received pause frames held this end, µs.
    PauseReceivedTime,
    /// Time for which sent pause frames held the other end, µs.
    PauseSentTime,
    /// A block that forward error correction could not repair.
    FecLost,
    /// A block or symbol that it repaired.
    FecRepaired,
}

use Meaning::{
    FecLost, FecRepaired, NoBuffer, PauseReceived, PauseReceivedTime, PauseSent, PauseSentTime,
    QueueStopped,
};

/// Drivers with the same names, the name of the counter (`*` stands for a number), what it means, and
/// the file that has it.
type Row = (&'static [&'static str], &'static str, Meaning, &'static str);

#[rustfmt::skip]
const TABLE: &[Row] = &[
    (&["e1000", "e1000e"], "alloc_rx_buff_failed", NoBuffer, "intel/e1000e/ethtool.c"),
    (&["e1000", "e1000e", "ixgbe", "ixgbevf", "igbvf"], "tx_restart_queue", QueueStopped, "intel/ixgbe/ixgbe_ethtool.c"),
    (&["e1000", "e1000e", "igb", "igc", "ixgbe"], "rx_flow_control_xoff", PauseReceived, "intel/igb/igb_ethtool.c"),
    (&["e1000", "e1000e", "igb", "igc", "ixgbe"], "tx_flow_control_xoff", PauseSent, "intel/igb/igb_ethtool.c"),
    (&["igb", "igc"], "rx_queue_*_alloc_failed", NoBuffer, "intel/igc/igc_ethtool.c"),
    (&["igb", "igc"], "tx_queue_*_restart", QueueStopped, "intel/igc/igc_ethtool.c"),
    (&["ixgbe", "ixgbevf"], "alloc_rx_page_failed", NoBuffer, "intel/ixgbe/ixgbe_ethtool.c"),
    (&["ixgbe", "ixgbevf"], "alloc_rx_buff_failed", NoBuffer, "intel/ixgbe/ixgbe_ethtool.c"),
    (&["i40e", "ice"], "rx_alloc_fail", NoBuffer, "intel/i40e/i40e_ethtool.c"),
    (&["i40e", "ice"], "rx_pg_alloc_fail", NoBuffer, "intel/i40e/i40e_ethtool.c"),
    (&["i40e"], "tx_stopped", QueueStopped, "intel/i40e/i40e_ethtool.c"),
    (&["i40e", "ice"], "tx_restart", QueueStopped, "intel/ice/ice_ethtool.c"),
    (&["i40e"], "port.link_xoff_rx", PauseReceived, "intel/i40e/i40e_ethtool.c"),
    (&["i40e"], "port.link_xoff_tx", PauseSent, "intel/i40e/i40e_ethtool.c"),
    (&["ice"], "link_xoff_rx.nic", PauseReceived, "intel/ice/ice_ethtool.c"),
    (&["ice"], "link_xoff_tx.nic", PauseSent, "intel/ice/ice_ethtool.c"),
    (&["mlx5_core"], "rx_buff_alloc_err", NoBuffer, "mellanox/mlx5/core/en_stats.c"),
    (&["mlx5_core"], "rx*_buff_alloc_err", NoBuffer, "mellanox/mlx5/core/en_stats.c"),
    (&["mlx5_core"], "tx_queue_stopped", QueueStopped, "mellanox/mlx5/core/en_stats.c"),
    (&["mlx5_core"], "rx_pause_ctrl_phy", PauseReceived, "mellanox/mlx5/core/en_stats.c"),
    (&["mlx5_core"], "tx_pause_ctrl_phy", PauseSent, "mellanox/mlx5/core/en_stats.c"),
    (&["mlx5_core"], "rx_global_pause_duration", PauseReceivedTime, "mellanox/mlx5/core/en_stats.c"),
    (&["mlx5_core"], "tx_global_pause_duration", PauseSentTime, "mellanox/mlx5/core/en_stats.c"),
    (&["mlx5_core"], "rx_prio*_pause_duration", PauseReceivedTime, "mellanox/mlx5/core/en_stats.c"),
    (&["mlx5_core"], "tx_prio*_pause_duration", PauseSentTime, "mellanox/mlx5/core/en_stats.c"),
    (&["mlx4_core", "mlx4_en"], "queue_stopped", QueueStopped, "mellanox/mlx4/en_ethtool.c"),
    (&["bnxt_en"], "rx_total_oom_discards", NoBuffer, "broadcom/bnxt/bnxt.c"),
    (&["bnxt_en"], "rx_pause_frames", PauseReceived, "broadcom/bnxt/bnxt_ethtool.c"),
    (&["bnxt_en"], "tx_pause_frames", PauseSent, "broadcom/bnxt/bnxt_ethtool.c"),
    (&["bnxt_en"], "rx_fec_uncorrectable_blocks", FecLost, "broadcom/bnxt/bnxt_ethtool.c"),
    (&["bnxt_en"], "rx_fec_corrected_blocks", FecRepaired, "broadcom/bnxt/bnxt_ethtool.c"),
    (&["sfc"], "fec_uncorrected_errors", FecLost, "sfc/ef10.c"),
    (&["sfc"], "fec_corrected_errors", FecRepaired, "sfc/ef10.c"),
    (&["tg3"], "rx_xoff_pause_rcvd", PauseReceived, "broadcom/tg3.c"),
    (&["tg3"], "tx_xoff_sent", PauseSent, "broadcom/tg3.c"),
    (&["ena"], "queue_*_rx_page_alloc_fail", NoBuffer, "amazon/ena/ena_ethtool.c"),
    (&["ena"], "queue_*_rx_skb_alloc_fail", NoBuffer, "amazon/ena/ena_ethtool.c"),
    (&["ena"], "queue_*_tx_queue_stop", QueueStopped, "amazon/ena/ena_ethtool.c"),
    (&["gve", "gvnic"], "rx_skb_alloc_fail", NoBuffer, "google/gve/gve_ethtool.c"),
    (&["gve", "gvnic"], "rx_buf_alloc_fail", NoBuffer, "google/gve/gve_ethtool.c"),
    (&["gve", "gvnic"], "tx_stop[*]", QueueStopped, "google/gve/gve_ethtool.c"),
    (&["vmxnet3"], "rx buf alloc fail", NoBuffer, "vmxnet3/vmxnet3_ethtool.c"),
    (&["vmxnet3"], "ring full", QueueStopped, "vmxnet3/vmxnet3_ethtool.c"),
];

/// The kernel's own names of the same, by queue.
const QUEUE: [(&str, Meaning); 2] = [("rx-alloc-fail", NoBuffer), ("tx-stop", QueueStopped)];

/// One counter of the NIC, or the same of all its queues.
#[derive(Debug, PartialEq)]
pub(crate) struct Grown {
    /// Its name; a `*` stands for each queue or priority.
    pub name: String,
    pub count: u64,
    pub source: String,
}

/// Growth of the counters of one meaning, most first. Several may count the same events. An empty list:
/// this driver has none that is known to mean it.
pub(crate) fn grown(case: &Case<'_>, nic: &Nic, meaning: Meaning) -> Result<Vec<Grown>, Missing> {
    let source = format!("ethtool -S {}", nic.name);
    let sample = case.nic_sample(&nic.name)?;
    // Without one counter of a driver there is still the kernel's own.
    let driver = nic.driver.known().map_or("", String::as_str);
    let rows: Vec<&Row> =
        TABLE.iter().filter(|r| r.2 == meaning && r.0.contains(&driver)).collect();
    if !rows.is_empty() {
        need(&source, &sample.driver_stats)?;
    }
    let mut sums: BTreeMap<String, Grown> = BTreeMap::new();
    let mut add = |name: &str, source: &str, count: u64| {
        let new = || Grown { name: name.to_owned(), count: 0, source: source.to_owned() };
        let sum = sums.entry(name.to_owned()).or_insert_with(new);
        // Each priority holds the link by itself; queues add up.
        sum.count = match meaning {
            PauseReceivedTime | PauseSentTime => sum.count.max(count),
            _ => sum.count.saturating_add(count),
        };
    };
    for (name, d) in sample.driver_stats.known().into_iter().flatten() {
        if let Some(row) = rows.iter().find(|r| is(r.1, name)) {
            add(row.1, &source, *need(&format!("{source}: {name}"), d)?);
        }
    }
    for queue in sample.queues.known().into_iter().flatten() {
        for (name, _) in QUEUE.iter().filter(|q| q.1 == meaning) {
            if let Some(d) = queue.counters.get(*name) {
                let count = *need(&format!("{} {name}", queue.id), d)?;
                add(name, "netdev netlink qstats-get", count);
            }
        }
    }
    let mut all: Vec<Grown> = sums.into_values().collect();
    all.sort_by_key(|g| std::cmp::Reverse(g.count));
    Ok(all)
}

/// Whether a counter has the name. vmxnet3 indents its names and repeats them for each queue, which
/// [`model::samples`] names `NAME#2`.
fn is(pattern: &str, name: &str) -> bool {
    let own = name.split_once('#').map_or(name, |(own, _)| own).trim();
    match pattern.split_once('*') {
        None => own == pattern,
        Some((before, after)) => own
            .strip_prefix(before)
            .and_then(|rest| rest.strip_suffix(after))
            .is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_queues_and_priorities() {
        assert!(is("rx*_buff_alloc_err", "rx12_buff_alloc_err"));
        assert!(!is("rx*_buff_alloc_err", "rx_buff_alloc_err"));
        assert!(!is("rx*_buff_alloc_err", "rx0_xsk_buff_alloc_err"), "an application's own memory");
        assert!(is("tx_stop[*]", "tx_stop[3]"));
        assert!(is("ring full", "  ring full#2"));
        assert!(!is("tx_restart", "tx_restart_queue"));
    }

    #[test]
    fn a_driver_has_a_name_once() {
        for (n, (drivers, name, _, file)) in TABLE.iter().enumerate() {
            assert!(!file.is_empty() && !drivers.is_empty());
            let again = TABLE.iter().skip(n + 1).find(|(others, other, ..)| {
                name == other && others.iter().any(|d| drivers.contains(d))
            });
            assert_eq!(again, None);
        }
    }
}
