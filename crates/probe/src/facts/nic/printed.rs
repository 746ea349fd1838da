//! The output of ethtool in a support archive, read where the kernel cannot be asked.

use std::collections::BTreeMap;

use model::{
    Reading,
    nic::{Channels, Coalesce, Feature, Pause, Rings, Rss},
};
use parse::ethtool_text::{self, Limits};

pub use parse::ethtool_text::{rule_count, statistics};

pub(super) use crate::root::ETHTOOL_DRIVER as DRIVER;
use crate::{Root, ask::ethtool::answers::DriverInfo};

pub const CHANNELS: [&str; 2] = ["ethtool -l", "ethtool --show-channels"];
pub const RINGS: [&str; 2] = ["ethtool -g", "ethtool --show-ring"];
pub const COALESCE: [&str; 2] = ["ethtool -c", "ethtool --show-coalesce"];
pub const FEATURES: [&str; 3] = ["ethtool -k", "ethtool --show-features", "ethtool --show-offload"];
pub const PAUSE: [&str; 2] = ["ethtool -a", "ethtool --show-pause"];
pub const RSS: [&str; 3] = ["ethtool -x", "ethtool --show-rxfh-indir", "ethtool --show-rxfh"];
pub const RULES: [&str; 4] =
    ["ethtool -n", "ethtool -u", "ethtool --show-nfc", "ethtool --show-ntuple"];
pub const STATISTICS: [&str; 2] = ["ethtool -S", "ethtool --statistics"];

/// The output of `ethtool -OPTION NIC` in the archive, for hosts that cannot be queried. The options
/// are the names of one.
///
/// **Source**: [`Root::output`].
pub fn or_printed<T>(
    asked: Reading<T>,
    root: &Root,
    (options, nic): (&[&str], &str),
    value: impl FnOnce(&[u8]) -> Option<T>,
) -> Reading<T> {
    let Reading::Absent(why) = asked else { return asked };
    let value = root.output(options, nic).and_then(|text| value(&text));
    value.map_or(Reading::Absent(why), Reading::Known)
}

pub fn driver(text: &[u8]) -> Option<DriverInfo> {
    let all = ethtool_text::driver(text);
    let of = |key: &str| all.get(key).cloned().unwrap_or_default();
    Some(DriverInfo {
        driver: all.get("driver")?.clone(),
        version: of("version"),
        fw_version: of("firmware-version"),
        bus_info: of("bus-info"),
    })
}

pub fn channels(text: &[u8]) -> Option<Channels> {
    let Limits { most, now } = ethtool_text::limits(text)?;
    let of = |block: &BTreeMap<String, u32>, name: &str| block.get(name).copied().unwrap_or(0);
    Some(Channels {
        rx: of(&now, "RX"),
        tx: of(&now, "TX"),
        combined: of(&now, "Combined"),
        other: of(&now, "Other"),
        max_rx: of(&most, "RX"),
        max_tx: of(&most, "TX"),
        max_combined: of(&most, "Combined"),
        max_other: of(&most, "Other"),
    })
}

pub fn rings(text: &[u8]) -> Option<Rings> {
    let Limits { most, now } = ethtool_text::limits(text)?;
    let of = |block: &BTreeMap<String, u32>, name: &str| block.get(name).copied().unwrap_or(0);
    Some(Rings {
        rx: of(&now, "RX"),
        rx_mini: of(&now, "RX Mini"),
        rx_jumbo: of(&now, "RX Jumbo"),
        tx: of(&now, "TX"),
        max_rx: of(&most, "RX"),
        max_rx_mini: of(&most, "RX Mini"),
        max_rx_jumbo: of(&most, "RX Jumbo"),
        max_tx: of(&most, "TX"),
        tx_push_buffer_bytes: now
            .get("TX push buff len")
            .map_or(Reading::absent(super::ethtool::NO_PUSH_BUFFER), |n| Reading::Known(*n)),
    })
}

pub fn features(text: &[u8]) -> Option<BTreeMap<String, Feature>> {
    let one = |f: ethtool_text::Feature| {
        let ethtool_text::Feature { name, active, requested, fixed } = f;
        (name, Feature { active, requested, fixed })
    };
    Some(ethtool_text::features(text)?.into_iter().map(one).collect())
}

pub fn coalesce(text: &[u8]) -> Option<Coalesce> {
    let parsed = ethtool_text::coalesce(text)?;
    let absent = "the driver has no such parameter";
    let number = |name: &str| {
        parsed.numbers.get(name).map_or(Reading::absent(absent), |n| Reading::Known(*n))
    };
    let on = |value: Option<bool>| value.map_or(Reading::absent(absent), Reading::Known);
    Some(Coalesce {
        rx_usecs: number("rx-usecs"),
        rx_max_frames: number("rx-frames"),
        tx_usecs: number("tx-usecs"),
        tx_max_frames: number("tx-frames"),
        adaptive_rx: on(parsed.adaptive_rx),
        adaptive_tx: on(parsed.adaptive_tx),
        rx_usecs_irq: number("rx-usecs-irq"),
        tx_usecs_irq: number("tx-usecs-irq"),
        stats_block_usecs: number("stats-block-usecs"),
    })
}

pub fn pause(text: &[u8]) -> Option<Pause> {
    let ethtool_text::Pause { autoneg, rx, tx } = ethtool_text::pause(text)?;
    Some(Pause { autoneg, rx, tx })
}

pub fn rss(text: &[u8]) -> Option<Rss> {
    let ethtool_text::Rss { rings, table, key, functions } = ethtool_text::rss(text)?;
    Some(Rss {
        table,
        key: key.map_or(Reading::absent("the driver shows no hash key"), Reading::Known),
        functions: functions
            .map_or(Reading::absent("the driver shows no hash function"), Reading::Known),
        hash_fields: Reading::absent("ethtool -x prints none"),
        contexts: Reading::absent("ethtool -x prints one"),
        rings: rings.map_or(Reading::absent("the driver does not say"), Reading::Known),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_ethtool_printed_stands_in_for_the_kernels_answer() {
        let sos = tempfile::tempdir().unwrap();
        let folder = sos.path().join("sos_commands/networking");
        fs::create_dir_all(&folder).unwrap();
        let text = "Channel parameters for eth0:\nPre-set maximums:\nCombined:\t4\n\
                    Current hardware settings:\nCombined:\t1\n";
        fs::write(folder.join("ethtool_-l_eth0"), text).unwrap();
        fs::write(folder.join("ethtool_-l_lo"), "netlink error: Operation not supported\n")
            .unwrap();
        let root = Root::open(sos.path()).unwrap();
        let of =
            |nic| or_printed(Reading::absent("nobody asked"), &root, (&CHANNELS, nic), channels);
        let eth0 = of("eth0").into_known().unwrap();
        assert_eq!((eth0.combined, eth0.max_combined, eth0.rx), (1, 4, 0));
        assert_eq!(of("lo").why_not(), Some("nobody asked"));
        assert_eq!(of("eth1").why_not(), Some("nobody asked"));
    }

    /// As ethtool 6.5 prints it for ena: `TX push buff len` stands in both blocks.
    #[test]
    fn the_push_buffer_is_the_one_in_use() {
        let text = |len: &str| {
            format!(
                "Ring parameters for eth0:\nPre-set maximums:\nRX:\t\t\t16384\nRX Mini:\t\tn/a\n\
                 RX Jumbo:\t\tn/a\nTX:\t\t\t512\nTX push buff len:\t224\n\
                 Current hardware settings:\nRX:\t\t\t1024\nRX Mini:\t\tn/a\nRX Jumbo:\t\tn/a\n\
                 TX:\t\t\t512\nRX Buf Len:\t\tn/a\nCQE Size:\t\tn/a\nTX Push:\ton\n\
                 TX push buff len:\t{len}\n"
            )
        };
        let of = |len: &str| rings(text(len).as_bytes()).unwrap();
        let rings = of("96");
        assert_eq!((rings.max_tx, rings.tx_push_buffer_bytes.get()), (512, Some(96)));
        assert_eq!(of("n/a").tx_push_buffer_bytes.get(), None);
    }

    #[test]
    fn sysctl_prints_what_proc_sys_has() {
        let sos = tempfile::tempdir().unwrap();
        let folder = sos.path().join("sos_commands/kernel");
        fs::create_dir_all(&folder).unwrap();
        let text = "kernel.hostname = db1\nnet.ipv4.tcp_rmem = 4096\t131072\t6291456\n\
                    net.ipv4.conf.eth0/100.rp_filter = 2\n";
        fs::write(folder.join("sysctl_-a"), text).unwrap();
        let root = Root::open(sos.path()).unwrap();
        let read = |path: &str| root.read(path).map(|b| String::from_utf8(b).unwrap());
        assert_eq!(read("/proc/sys/kernel/hostname").unwrap(), "db1");
        assert_eq!(read("/proc/sys/net/ipv4/tcp_rmem").unwrap(), "4096\t131072\t6291456");
        assert_eq!(read("/proc/sys/net/ipv4/conf/eth0.100/rp_filter").unwrap(), "2");
        assert!(root.exists("/proc/sys/kernel/hostname") && read("/proc/sys/vm/none").is_err());
    }
}
