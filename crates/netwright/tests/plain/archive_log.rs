//! Tests of the kernel's log in a support archive.

use std::fs;

use serde_json::Value;

use crate::support::{NETWRIGHT, run};

/// The kernel's log of a sosreport names a NIC that was reset, by its name and by its PCI address.
#[test]
fn the_kernel_log_of_an_archive_tells_of_resets() {
    let host = tempfile::tempdir().unwrap();
    let put = |path: &str, text: &str| {
        let path = host.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    put("proc/uptime", "864000.00 1.00\n");
    put("proc/stat", "cpu0 864000 0 200 300 0 0 50 0 0 0\nbtime 1700000000\n");
    put("sos_commands/networking/ethtool_-i_eth0", "driver: igb\nbus-info: 0000:01:00.0\n");
    put(
        "sos_commands/networking/ip_-s_-d_link",
        "2: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc mq state UP qlen 1000\n    \
         link/ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff\n",
    );
    let find = |rule: &str| {
        let args = ["doctor", "--json", "--root", host.path().to_str().unwrap()];
        let d: Value = serde_json::from_str(&run(NETWRIGHT, &args)).unwrap();
        d["findings"].as_array().unwrap().iter().find(|f| f["rule"] == rule).cloned()
    };
    let log = "sos_commands/kernel/dmesg";
    let healthy = "[   12.500000] igb 0000:01:00.0 eth0: igb: eth0 NIC Link is Up 1000 Mbps\n\
                   [863000.100000] igb 0000:01:00.0 eth0: VF Reset msg received from vf 0\n";
    put(log, healthy);
    assert_eq!(find("nic_resets"), None);
    let bad = "[863000.100000] NETDEV WATCHDOG: eth0 (igb): transmit queue 0 timed out\n\
               [863000.200000] igb 0000:01:00.0 eth0: Reset adapter\n\
               [863500.000000] igb 0000:01:00.0: PCIe Bus Error: severity=Uncorrected (Non-Fatal), type=Transaction Layer, (Requester ID)\n\
               [863600.000000] nvme 0000:09:00.0: PCIe Bus Error: severity=Uncorrected (Non-Fatal), type=Transaction Layer, (Requester ID)\n";
    put(log, bad);
    let f = find("nic_resets").unwrap();
    assert_eq!((&f["subject"], &f["severity"]), (&"eth0".into(), &"warning".into()), "{f:#}");
    let evidence = f["evidence"].as_array().unwrap();
    assert_eq!(evidence.len(), 3, "{f:#}");
    assert!(evidence.iter().all(|e| e["source"] == log), "{f:#}");
    assert!(
        f.to_string().contains("from 863000.1") || f.to_string().contains("at 863000.1"),
        "{f:#}"
    );
}
