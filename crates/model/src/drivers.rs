//! The effect on the link when a driver's setting changes. Each row of the table names the
//! functions of the kernel's sources that it is based on. They are those of Linux 6.12.117 as
//! Debian ships it, unless the row names another version. Rows with less than a link reset were
//! also checked in 6.1.192, with the same result. Newer kernels were not checked, except for the
//! patch named at gve; a driver may differ there.
//!
//! A driver or a setting without a row is assumed to take the link down. No row claims that nothing
//! is disturbed: the watchdog runs wherever the operator's own connection passes.

use crate::tune::{Basis, Disruption};

/// A setting that is sent to a driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act<'a> {
    /// Set the numbers of channels: `ethtool -L`.
    Channels,
    /// Set the ring sizes: `ethtool -G`.
    Rings,
    /// `ip link set mtu`.
    Mtu,
    /// Set pause frames: `ethtool -A`.
    Pause,
    /// Set the RSS indirection table: `ethtool -X`.
    RssTable,
    /// `ethtool -C`, by the name of the parameter.
    Coalesce(&'a str),
    /// `ethtool -K`, by the kernel's name of the feature.
    Feature(&'a str),
}

/// Which acts a row is about.
enum ActScope {
    This(Act<'static>),
    Coalesce(&'static [&'static str]),
    Features(&'static [&'static str]),
    /// Every feature that no other row of the driver names.
    OtherFeatures,
}

use Act::{Channels, Mtu, Pause, Rings, RssTable};
use ActScope::{Features, OtherFeatures, This};
use Disruption::{BriefStall, LinkReset};

/// Driver, acts, how far they reach, and what it does.
type Row = (&'static str, &'static [ActScope], Disruption, &'static str);

const CLOSED: &str = "closes the interface and opens it again";
const CARRIER: &str = "closes its queues and opens new ones, without carrier in between";
const DOWN: &str = "takes the interface down and up";
const NO_RESET: &str = "takes it without a reset";

const TABLE: &[Row] = &[
    // bnxt.c: bnxt_change_mtu; bnxt_ethtool.c: bnxt_set_channels, bnxt_set_ringparam,
    // bnxt_set_rxfh: bnxt_close_nic (bnxt_tx_disable: netif_carrier_off) and bnxt_open_nic.
    ("bnxt_en", &[This(Channels), This(Rings), This(Mtu), This(RssTable)], LinkReset, CARRIER),
    // bnxt_ethtool.c: bnxt_set_coalesce: the same for this parameter alone; the others are set by a
    // command (bnxt_hwrm_set_coal).
    ("bnxt_en", &[ActScope::Coalesce(&["stats_block_usecs"])], LinkReset, CARRIER),
    // bnxt.c: bnxt_set_features (bnxt_reinit_features), where aggregation, the VLAN tags or the
    // filters change; bnxt_fix_features, dev.c: netdev_fix_features: rx-gro and rx-checksum take
    // rx-gro-hw along, and the two VLAN tags each other.
    (
        "bnxt_en",
        &[Features(&[
            "rx-checksum",
            "rx-gro",
            "rx-gro-hw",
            "rx-lro",
            "rx-ntuple-filter",
            "rx-vlan-hw-parse",
            "rx-vlan-stag-hw-parse",
        ])],
        LinkReset,
        CARRIER,
    ),
    // e1000e/ethtool.c: e1000_set_ringparam, e1000_set_pauseparam (where pause is negotiated;
    // forced pause is a register or, on fibre, a new link); netdev.c: e1000_change_mtu:
    // e1000e_down, e1000e_up. Seen on QEMU's e1000e: rings and MTU.
    ("e1000e", &[This(Rings), This(Mtu), This(Pause)], LinkReset, DOWN),
    // e1000e/netdev.c: e1000_set_features: e1000e_reinit_locked for these, and for no other;
    // e1000_fix_features: the VLAN tags of both ways go together. Seen on QEMU's e1000e.
    (
        "e1000e",
        &[Features(&[
            "rx-all",
            "rx-checksum",
            "rx-fcs",
            "rx-hashing",
            "rx-vlan-hw-parse",
            "tx-vlan-hw-insert",
        ])],
        LinkReset,
        DOWN,
    ),
    ("e1000e", &[OtherFeatures], BriefStall, NO_RESET),
    // ena_ethtool.c: ena_set_channels, ena_set_ringparam; ena_netdev.c: ena_update_queue_count,
    // ena_update_queue_params: ena_close (ena_down: netif_carrier_off), ena_open or ena_up.
    ("ena", &[This(Channels), This(Rings)], LinkReset, CARRIER),
    // ena_netdev.c: ena_change_mtu: ena_com_set_dev_mtu; beside it a note at each receive ring
    // (update_rx_ring_mtu), and nothing else.
    ("ena", &[This(Mtu)], BriefStall, "sends the device a command, without a reset"),
    // gve_main.c: gve_adjust_queues, gve_set_features; gve_ethtool.c: gve_adjust_ring_sizes:
    // gve_adjust_config: gve_close (gve_queues_stop: netif_carrier_off), gve_queues_start. In 6.1
    // no ring can be set, and gve_close and gve_open are called at once. rx-gro-hw is what newer
    // kernels call rx-lro (e637c244b954, of which the patch was read, not a kernel with it).
    ("gve", &[This(Channels), This(Rings), Features(&["rx-lro", "rx-gro-hw"])], LinkReset, CARRIER),
    // netvsc_drv.c: netvsc_set_channels, netvsc_set_ringparam, netvsc_change_mtu: netvsc_detach
    // (rndis_filter_device_remove), netvsc_attach.
    (
        "hv_netvsc",
        &[This(Channels), This(Rings), This(Mtu)],
        LinkReset,
        "takes the device away from the hypervisor and attaches it again",
    ),
    // i40e_ethtool.c: i40e_set_channels; i40e_main.c: i40e_reconfig_rss_queues:
    // i40e_prep_for_reset, i40e_reset_and_rebuild.
    ("i40e", &[This(Channels)], LinkReset, "resets the function and rebuilds it"),
    // i40e_ethtool.c: i40e_set_ringparam: i40e_down, i40e_up; i40e_main.c: i40e_change_mtu:
    // i40e_vsi_reinit_locked.
    ("i40e", &[This(Rings), This(Mtu)], LinkReset, DOWN),
    // i40e_ethtool.c: i40e_set_pauseparam: netif_carrier_off, i40e_set_fc, i40e_nway_reset.
    ("i40e", &[This(Pause)], LinkReset, "renegotiates the link"),
    // i40e_main.c: i40e_set_features: i40e_set_ntuple, then i40e_do_reset.
    ("i40e", &[Features(&["rx-ntuple-filter"])], LinkReset, "resets the function"),
    // i40e_main.c: i40e_set_features: i40e_set_loopback (not in 6.1): i40e_down, i40e_up.
    ("i40e", &[Features(&["loopback"])], LinkReset, "closes the link upon itself"),
    // ice_ethtool.c: ice_set_channels; ice_main.c: ice_vsi_recfg_qs: ice_vsi_close, ice_vsi_open.
    ("ice", &[This(Channels)], LinkReset, CLOSED),
    // ice_ethtool.c: ice_set_ringparam; ice_main.c: ice_change_mtu (ice_down_up): ice_down
    // (netif_carrier_off), ice_up.
    ("ice", &[This(Rings), This(Mtu)], LinkReset, DOWN),
    // igb_ethtool.c: igb_set_channels; igb_main.c: igb_reinit_queues: igb_close, igb_open.
    ("igb", &[This(Channels)], LinkReset, CLOSED),
    // igb_ethtool.c: igb_set_ringparam, igb_set_pauseparam (where pause is negotiated; forced pause
    // is a register or, without copper, a new link); igb_main.c: igb_change_mtu: igb_down
    // (netif_carrier_off), igb_up.
    ("igb", &[This(Rings), This(Mtu), This(Pause)], LinkReset, DOWN),
    // igb_main.c: igb_set_features: igb_reinit_locked for these, and for no other; rx-vlan-hw-parse
    // is written to registers (igb_vlan_mode); nothing is known of the others.
    ("igb", &[Features(&["rx-all", "rx-ntuple-filter"])], LinkReset, DOWN),
    ("igb", &[OtherFeatures], BriefStall, NO_RESET),
    // igc_ethtool.c: igc_ethtool_set_channels; igc_main.c: igc_reinit_queues: igc_close, igc_open.
    ("igc", &[This(Channels)], LinkReset, CLOSED),
    // igc_ethtool.c: igc_ethtool_set_ringparam, igc_ethtool_set_pauseparam (as igb); igc_main.c:
    // igc_change_mtu: igc_down (netif_carrier_off), igc_up.
    ("igc", &[This(Rings), This(Mtu), This(Pause)], LinkReset, DOWN),
    // igc_main.c: igc_set_features: igc_reinit_locked for these, and for no other; the rest as igb
    // (igc_vlan_mode).
    ("igc", &[Features(&["rx-all", "rx-ntuple-filter"])], LinkReset, DOWN),
    ("igc", &[OtherFeatures], BriefStall, NO_RESET),
    // ixgbe_ethtool.c: ixgbe_set_channels; ixgbe_main.c: ixgbe_setup_tc: ixgbe_close, ixgbe_open.
    ("ixgbe", &[This(Channels)], LinkReset, CLOSED),
    // ixgbe_ethtool.c: ixgbe_set_ringparam: ixgbe_down (netif_carrier_off), ixgbe_up;
    // ixgbe_set_pauseparam; ixgbe_main.c: ixgbe_change_mtu: ixgbe_reinit_locked.
    ("ixgbe", &[This(Rings), This(Mtu), This(Pause)], LinkReset, DOWN),
    // ixgbe_ethtool.c: ixgbe_set_coalesce: ixgbe_do_reset where merging (ixgbe_update_rsc) or the
    // writing back of descriptors (TXDCTL.WTHRESH) changes with it.
    (
        "ixgbe",
        &[ActScope::Coalesce(&["rx_usecs", "tx_usecs"])],
        LinkReset,
        "takes the interface down and up where the new time changes how it merges packets or \
         writes back descriptors",
    ),
    // ixgbe_main.c: ixgbe_set_features: ixgbe_do_reset, for l2-fwd-offload
    // ixgbe_reset_l2fw_offload (ixgbe_setup_tc) where it is in use; ixgbe_fix_features: rx-checksum
    // takes rx-lro along.
    (
        "ixgbe",
        &[Features(&[
            "hw-tc-offload",
            "l2-fwd-offload",
            "rx-all",
            "rx-checksum",
            "rx-lro",
            "rx-ntuple-filter",
        ])],
        LinkReset,
        DOWN,
    ),
    // mlx5 en_ethtool.c: mlx5e_ethtool_set_channels, mlx5e_ethtool_set_ringparam; en_main.c:
    // mlx5e_change_mtu (not where its receive queues stay as they are): mlx5e_safe_switch_params,
    // mlx5e_switch_priv_channels: netif_carrier_off until the new channels are there.
    ("mlx5_core", &[This(Channels), This(Rings), This(Mtu)], LinkReset, CARRIER),
    // mlx5 en_main.c: set_feature_lro (not where its receive queues stay as they are),
    // set_feature_hw_gro: the same.
    ("mlx5_core", &[Features(&["rx-gro-hw", "rx-lro"])], LinkReset, CARRIER),
    // mlx5 en_ethtool.c: mlx5e_ethtool_set_coalesce: the same in 6.1.192 where adaptive moderation
    // is switched; in 6.12.117 the queues stay (mlx5e_dim_rx_change, mlx5e_dim_tx_change). Which of
    // the two a kernel does is not reported apart here, so the harsher is said.
    (
        "mlx5_core",
        &[ActScope::Coalesce(&["adaptive_rx", "adaptive_tx"])],
        LinkReset,
        "closes its queues and opens new ones on older kernels, without carrier in between",
    ),
    // r8169_main.c: rtl8169_change_mtu: rtl_jumbo_config, which for an MTU above 1500 takes pause
    // frames out of the negotiation (phy_start_aneg); nothing is negotiated on the way back.
    ("r8169", &[This(Mtu)], LinkReset, "renegotiates the link for an MTU above 1500"),
    // r8169_main.c: rtl8169_set_pauseparam; phy_device.c: phy_set_asym_pause: phy_start_aneg.
    ("r8169", &[This(Pause)], LinkReset, "renegotiates the link"),
    // r8169_main.c: rtl8169_set_features: RxConfig and CPlusCmd are written, and nothing else.
    ("r8169", &[OtherFeatures], BriefStall, NO_RESET),
    // tg3.c: tg3_set_channels: tg3_stop, tg3_carrier_off, tg3_start.
    ("tg3", &[This(Channels)], LinkReset, CLOSED),
    // tg3.c: tg3_set_ringparam, tg3_change_mtu, tg3_set_pauseparam: tg3_halt, tg3_restart_hw; with
    // phylib, for pause, phy_set_asym_pause instead.
    ("tg3", &[This(Rings), This(Mtu)], LinkReset, "halts the chip and starts it again"),
    (
        "tg3",
        &[This(Pause)],
        LinkReset,
        "renegotiates the link, or halts the chip and starts it again",
    ),
    // tg3.c: tg3_set_features: tg3_set_loopback, and nothing else.
    ("tg3", &[Features(&["loopback"])], LinkReset, "closes the link upon itself"),
    ("tg3", &[OtherFeatures], BriefStall, NO_RESET),
    // veth.c: veth_set_channels: netif_carrier_off at both ends.
    ("veth", &[This(Channels)], LinkReset, "takes the carrier off both its ends meanwhile"),
    // virtio_net.c: virtnet_set_channels (virtnet_set_queues) and virtnet_set_rxfh
    // (virtnet_commit_rss_command) by VIRTIO_NET_CTRL_MQ, virtnet_set_ringparam (virtnet_rx_resize,
    // virtnet_tx_resize: each queue is stopped and resized by itself); no callback for the MTU.
    // Seen on QEMU's virtio-net, rings and MTU: the carrier stays.
    ("virtio_net", &[This(Channels), This(Rings), This(Mtu), This(RssTable)], BriefStall, NO_RESET),
    // virtio_net.c: virtnet_set_features (virtnet_set_guest_offloads, virtnet_commit_rss_command).
    // Seen on QEMU's virtio-net.
    ("virtio_net", &[OtherFeatures], BriefStall, NO_RESET),
    // vmxnet3_ethtool.c: vmxnet3_set_ringparam; vmxnet3_drv.c: vmxnet3_change_mtu:
    // vmxnet3_quiesce_dev (netif_carrier_off), vmxnet3_reset_dev, vmxnet3_activate_dev. Seen on
    // QEMU's vmxnet3.
    ("vmxnet3", &[This(Rings), This(Mtu)], LinkReset, "resets the device"),
    // vmxnet3_ethtool.c: vmxnet3_set_features (VMXNET3_CMD_UPDATE_FEATURE). Seen on QEMU's vmxnet3.
    ("vmxnet3", &[OtherFeatures], BriefStall, "sends the device a command, without a reset"),
];

/// What a driver is known to do.
fn known(driver: &str, act: Act<'_>) -> Option<(Disruption, &'static str)> {
    let rows = || TABLE.iter().filter(|(d, ..)| *d == driver);
    let names = |of: &ActScope| match (of, act) {
        (This(a), _) => *a == act,
        (ActScope::Coalesce(names), Act::Coalesce(name))
        | (Features(names), Act::Feature(name)) => names.contains(&name),
        _ => false,
    };
    let other = |of: &ActScope| matches!((of, act), (OtherFeatures, Act::Feature(_)));
    let row = rows()
        .find(|(_, acts, ..)| acts.iter().any(names))
        .or_else(|| rows().find(|(_, acts, ..)| acts.iter().any(other)));
    row.map(|(_, _, disruption, does)| (*disruption, *does))
}

/// What is usual of hardware, and of an interface without any; whether that holds for all.
fn usual(act: Act<'_>, physical: bool) -> (Disruption, &'static str, Basis) {
    match act {
        Act::Channels | Act::Rings => {
            (LinkReset, "many drivers take the link down and up", Basis::Assumed)
        }
        Act::Mtu if physical => {
            (LinkReset, "many drivers take the link down and up", Basis::Assumed)
        }
        Act::Feature(_) if physical => {
            (LinkReset, "some drivers take the link down and up", Basis::Assumed)
        }
        Act::Pause => (LinkReset, "many drivers renegotiate the link", Basis::Assumed),
        Act::Coalesce(_) => (BriefStall, "some drivers restart their queues", Basis::Assumed),
        Act::Mtu => (BriefStall, "large packets on their way may be lost once", Basis::General),
        Act::Feature(_) => (BriefStall, "packets on their way may be dropped once", Basis::General),
        Act::RssTable => {
            let why = "flows change their queue once, and their packets their order";
            (BriefStall, why, Basis::General)
        }
    }
}

/// The impact of a driver's setting, with its reason and basis. `physical`: whether the interface
/// has a device, or this is unknown.
pub fn impact(driver: Option<&str>, physical: bool, act: Act<'_>) -> (Disruption, String, Basis) {
    if let Some((driver, (disruption, does))) = driver.and_then(|d| Some((d, known(d, act)?))) {
        return (disruption, format!("{driver} {does}"), Basis::Driver);
    }
    let (disruption, why, basis) = usual(act, physical);
    let why = match (basis, driver) {
        (Basis::Assumed, Some(driver)) if TABLE.iter().any(|(d, ..)| *d == driver) => {
            format!("assumed, as it is not known of {driver}: {why}")
        }
        (Basis::Assumed, Some(driver)) => format!("assumed, unknown driver {driver}: {why}"),
        (Basis::Assumed, None) => format!("assumed, driver not known: {why}"),
        _ => why.into(),
    };
    (disruption, why, basis)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A watchdog is needed for every disruption above none.
    #[test]
    fn no_row_takes_the_watchdog_away() {
        assert!(TABLE.iter().all(|(_, _, disruption, _)| *disruption >= BriefStall));
    }
}
