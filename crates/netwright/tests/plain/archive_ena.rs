//! Tests of an ENA NIC in a support archive: its ring, its counters and what its device says in the log.

use std::fs;

use serde_json::Value;

use crate::support::{NETWRIGHT, run};

const RINGS: &str = "sos_commands/networking/ethtool_-g_eth0";
const STATISTICS: &str = "sos_commands/networking/ethtool_-S_eth0";
const LOG: &str = "sos_commands/kernel/dmesg";

/// The output of ethtool 6.5, with the largest transmit ring and the entries in use.
fn rings(most: u32, entry: u32) -> String {
    format!(
        "Ring parameters for eth0:\nPre-set maximums:\nRX:\t\t\t16384\nRX Mini:\t\tn/a\n\
         RX Jumbo:\t\tn/a\nTX:\t\t\t{most}\nTX push buff len:\t224\n\
         Current hardware settings:\nRX:\t\t\t1024\nRX Mini:\t\tn/a\nRX Jumbo:\t\tn/a\n\
         TX:\t\t\t512\nRX Buf Len:\t\tn/a\nCQE Size:\t\tn/a\nTX Push:\ton\nRX Push:\toff\n\
         TX push buff len:\t{entry}\nTCP data split:\toff\n"
    )
}

/// As the driver prints it: names with their queue.
fn statistics(stops: u64) -> String {
    format!(
        "NIC statistics:\n     bw_out_allowance_exceeded: 0\n     pps_allowance_exceeded: 0\n     \
         ena_srd_mode: 0\n     queue_0_tx_cnt: 900000000\n     queue_0_tx_queue_stop: {stops}\n     \
         queue_0_tx_llq_buffer_copy: 880000000\n     queue_1_tx_queue_stop: 0\n"
    )
}

/// A ring that is full, headers that the device drops, and the look-alike of each.
#[test]
fn an_ena_nic_of_an_archive_is_judged_by_its_entries() {
    let host = tempfile::tempdir().unwrap();
    let put = |path: &str, text: &str| {
        let path = host.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    // A thousand seconds, so that the totals are rates of a busy host.
    put("proc/uptime", "1000.00 1.00\n");
    put("proc/stat", "cpu0 1000 0 200 300 0 0 50 0 0 0\nbtime 1700000000\n");
    put("sos_commands/networking/ethtool_-i_eth0", "driver: ena\nbus-info: 0000:00:05.0\n");
    put(
        "sos_commands/networking/ip_-s_-d_link",
        "2: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9001 qdisc mq state UP qlen 1000\n    \
         link/ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff\n",
    );
    let find = || {
        let args = ["doctor", "--json", "--root", host.path().to_str().unwrap()];
        let d: Value = serde_json::from_str(&run(NETWRIGHT, &args)).unwrap();
        d["findings"].as_array().unwrap().iter().find(|f| f["rule"] == "ena_large_llq").cloned()
    };
    let line = |code: u32| {
        format!(
            "[  990.100000] ena 0000:00:05.0: Sub-optimal configuration notification code: {code}. Refer to \
             AWS ENA documentation for additional details and mitigation options.\n"
        )
    };
    let quiet =
        "[    1.500000] ena 0000:00:05.0: Elastic Network Adapter (ENA) found at mem 80404000\n";
    put(LOG, quiet);
    put(RINGS, &rings(512, 224));
    put(STATISTICS, &statistics(40));
    assert_eq!(find(), None, "large entries that nothing fills");

    put(STATISTICS, &statistics(2_500_000));
    let f = find().expect("a ring of large entries that is always full");
    assert!(f["title"].as_str().unwrap().contains("transmit ring is full"), "{f:#}");
    assert_eq!(f["subject"], "eth0", "{f:#}");
    let text = f.to_string();
    assert!(text.contains("224 bytes") && text.contains("tx-push-buf-len 96"), "{f:#}");

    put(RINGS, &rings(1024, 96));
    assert_eq!(find(), None, "regular entries: rule 43 judges their full ring");
    put(STATISTICS, &statistics(40));
    put(LOG, &(quiet.to_owned() + &line(2)));
    assert_eq!(find(), None, "another notification");

    put(LOG, &(quiet.to_owned() + &line(3)));
    let f = find().expect("headers that the device drops");
    assert_eq!(f["title"], "eth0 drops packets with headers above 96 bytes", "{f:#}");
    assert_eq!(f["severity"], "warning", "{f:#}");
    assert!(f.to_string().contains("tx-push-buf-len 224"), "{f:#}");
    put(RINGS, &rings(512, 224));
    assert_eq!(find(), None, "larger entries have answered the device");
}
