//! Which numbers a kernel setting takes: outside of them the kernel answers `EINVAL`, or takes what
//! makes no sense.
//!
//! **Source**: the tables of net/core/sysctl_net_core.c and net/ipv4/sysctl_net_ipv4.c (`extra1`,
//! `extra2`, the width of the handler's type), Documentation/networking/ip-sysctl.rst and
//! Documentation/admin-guide/sysctl/net.rst for what the kernel takes and gives no meaning. Where
//! kernels differ, the widest.

use crate::knob::{Refusal, usage};

/// An `int`.
const INT: i128 = i32::MAX as i128;
/// Seconds that are kept in ticks: the most where a second has a thousand.
const TICKS: i128 = INT / 1000;

/// Key, least, most; of settings with several words each of them.
const RANGES: &[(&str, i128, i128)] = &[
    ("kernel.numa_balancing", 0, 3),
    ("net.core.busy_poll", 0, INT),
    ("net.core.busy_read", 0, INT),
    ("net.core.dev_weight", 1, INT),
    ("net.core.dev_weight_rx_bias", 1, INT),
    ("net.core.dev_weight_tx_bias", 1, INT),
    ("net.core.devconf_inherit_init_net", 0, 3),
    ("net.core.flow_limit_table_len", 1, INT),
    ("net.core.gro_normal_batch", 1, INT),
    ("net.core.high_order_alloc_disable", 0, 1),
    ("net.core.netdev_budget", 1, INT),
    ("net.core.netdev_budget_usecs", 0, INT),
    ("net.core.netdev_max_backlog", 0, INT),
    ("net.core.netdev_tstamp_prequeue", 0, 1),
    ("net.core.optmem_max", 0, INT),
    ("net.core.rmem_default", 2304, INT),
    ("net.core.rmem_max", 2304, INT),
    ("net.core.rps_sock_flow_entries", 0, 1 << 29),
    ("net.core.skb_defer_max", 0, INT),
    ("net.core.somaxconn", 0, INT),
    ("net.core.wmem_default", 4608, INT),
    ("net.core.wmem_max", 4608, INT),
    ("net.ipv4.ip_early_demux", 0, 1),
    ("net.ipv4.ip_no_pmtu_disc", 0, 3),
    ("net.ipv4.tcp_abort_on_overflow", 0, 1),
    ("net.ipv4.tcp_adv_win_scale", -31, 31),
    ("net.ipv4.tcp_app_win", 0, 31),
    ("net.ipv4.tcp_autocorking", 0, 1),
    ("net.ipv4.tcp_dsack", 0, 1),
    ("net.ipv4.tcp_early_demux", 0, 1),
    ("net.ipv4.tcp_early_retrans", 0, 4),
    // 3 to 5 are AccECN, of newer kernels than 6.18.
    ("net.ipv4.tcp_ecn", 0, 5),
    ("net.ipv4.tcp_ecn_fallback", 0, 1),
    ("net.ipv4.tcp_fastopen", 0, 0x607),
    ("net.ipv4.tcp_fin_timeout", 0, TICKS),
    ("net.ipv4.tcp_frto", 0, 2),
    ("net.ipv4.tcp_keepalive_intvl", 1, TICKS),
    ("net.ipv4.tcp_keepalive_probes", 0, 255),
    ("net.ipv4.tcp_keepalive_time", 1, TICKS),
    ("net.ipv4.tcp_limit_output_bytes", 0, INT),
    ("net.ipv4.tcp_max_orphans", 0, INT),
    ("net.ipv4.tcp_max_syn_backlog", 1, INT),
    ("net.ipv4.tcp_max_tw_buckets", 0, INT),
    ("net.ipv4.tcp_mem", 0, i64::MAX as i128 / 4096),
    ("net.ipv4.tcp_min_snd_mss", 48, 65_535),
    ("net.ipv4.tcp_min_tso_segs", 1, 255),
    ("net.ipv4.tcp_moderate_rcvbuf", 0, 1),
    ("net.ipv4.tcp_mtu_probing", 0, 2),
    ("net.ipv4.tcp_no_metrics_save", 0, 1),
    ("net.ipv4.tcp_notsent_lowat", 0, u32::MAX as i128),
    ("net.ipv4.tcp_orphan_retries", 0, 255),
    ("net.ipv4.tcp_pacing_ca_ratio", 0, 1000),
    ("net.ipv4.tcp_pacing_ss_ratio", 0, 1000),
    ("net.ipv4.tcp_recovery", 0, 7),
    ("net.ipv4.tcp_retries1", 0, 255),
    ("net.ipv4.tcp_retries2", 0, 255),
    ("net.ipv4.tcp_rfc1337", 0, 1),
    ("net.ipv4.tcp_rmem", 1, INT),
    ("net.ipv4.tcp_sack", 0, 1),
    ("net.ipv4.tcp_shrink_window", 0, 1),
    ("net.ipv4.tcp_slow_start_after_idle", 0, 1),
    ("net.ipv4.tcp_syn_retries", 1, 127),
    ("net.ipv4.tcp_synack_retries", 0, 255),
    ("net.ipv4.tcp_syncookies", 0, 2),
    ("net.ipv4.tcp_thin_linear_timeouts", 0, 1),
    ("net.ipv4.tcp_timestamps", 0, 2),
    ("net.ipv4.tcp_tso_win_divisor", 0, 255),
    ("net.ipv4.tcp_tw_reuse", 0, 2),
    ("net.ipv4.tcp_window_scaling", 0, 1),
    ("net.ipv4.tcp_wmem", 1, INT),
    ("net.ipv4.udp_early_demux", 0, 1),
    ("net.ipv4.udp_mem", 0, i64::MAX as i128 / 4096),
    ("net.ipv4.udp_rmem_min", 1, INT),
    ("net.ipv4.udp_wmem_min", 1, INT),
    ("net.unix.max_dgram_qlen", 0, INT),
];

/// Sizes of tables, which the kernel rounds up to a power of two, or refuses.
const POWERS_OF_TWO: &[&str] = &["net.core.flow_limit_table_len", "net.core.rps_sock_flow_entries"];

/// Refuses a value of which a word is out of range.
///
/// # Errors
/// Names the word and the range.
pub fn check(key: &str, unit: &str, new: &str) -> Result<(), Refusal> {
    let Some((_, least, most)) = RANGES.iter().find(|(k, ..)| *k == key) else { return Ok(()) };
    let unit = if matches!(unit, "boolean" | "mode") { "" } else { unit };
    for word in new.split(' ') {
        let Ok(n) = word.parse::<i128>() else { continue };
        if n < *least || n > *most {
            return usage(format!("{n} is out of range: {least} to {most} {unit}").trim_end());
        }
        let power = u64::try_from(n).is_ok_and(|n| n == 0 || n.is_power_of_two());
        if POWERS_OF_TWO.contains(&key) && !power {
            return usage(format!("{n} is no power of two, which the kernel makes of it"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn every_word_is_held_against_the_range() {
        for (key, value, range) in [
            ("net.ipv4.tcp_syn_retries", "128", "1 to 127"),
            ("net.ipv4.tcp_mtu_probing", "3", "0 to 2"),
            ("net.core.somaxconn", "-1", "0 to 2147483647 connections"),
            ("net.core.rmem_max", "2303", "2304 to 2147483647"),
            ("net.ipv4.tcp_rmem", "4096 131072 2147483648", "1 to 2147483647"),
            ("net.core.rps_sock_flow_entries", "1000", "no power of two"),
        ] {
            let unit = if key.ends_with("somaxconn") { "connections" } else { "" };
            let why = check(key, unit, value).unwrap_err().why;
            assert!(why.contains(range), "{key}={value}: {why}");
        }
        for (key, value) in [
            ("net.ipv4.tcp_syn_retries", "127"),
            ("net.ipv4.tcp_rmem", "1 2 2147483647"),
            ("net.core.rps_sock_flow_entries", "0"),
            ("net.core.rps_sock_flow_entries", "32768"),
            ("net.ipv4.tcp_unheard_of", "-1"),
        ] {
            assert_eq!(check(key, "", value), Ok(()), "{key}={value}");
        }
    }

    #[test]
    fn a_key_stands_once_in_order() {
        assert!(RANGES.windows(2).all(|w| w[0].0 < w[1].0));
        assert!(RANGES.iter().all(|(_, least, most)| least < most));
    }
}
