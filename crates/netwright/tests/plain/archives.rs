//! Tests of hosts given as files only: counters since boot, and between two archives.

use std::{fs, path::Path};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{NETWRIGHT, output, run};

/// A tree with these TCP counters, at this time after boot.
fn tree(uptime_s: u64, sent: u64, retransmitted: u64) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let put = |path: &str, text: &str| {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    put("proc/uptime", &format!("{uptime_s}.00 1.00\n"));
    put("proc/sys/kernel/hostname", "db1\n");
    put("proc/sys/kernel/osrelease", "6.1.0-18-amd64\n");
    put("proc/stat", &format!("cpu0 {uptime_s} 0 200 300 0 0 50 0 0 0\nbtime 1700000000\n"));
    put(
        "proc/net/softnet_stat",
        &format!("{:08x} 00000000 00000000{} 00000000\n", sent, " 00000000".repeat(9)),
    );
    put("proc/net/snmp", &format!("Tcp: OutSegs RetransSegs\nTcp: {sent} {retransmitted}\n"));
    dir
}

fn doctor(args: &[&str]) -> Value {
    serde_json::from_str(&run(NETWRIGHT, &[&["doctor", "--json"], args].concat())).unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn retransmits(d: &Value) -> &Value {
    let all = d["findings"].as_array().unwrap();
    all.iter().find(|f| f["rule"] == "retransmits").unwrap_or_else(|| panic!("{d:#}"))
}

#[test]
fn one_reading_is_of_the_time_since_boot_and_sure_of_nothing() {
    let host = tree(864_000, 50_000_000, 2_000_000);
    let d = doctor(&["--root", text(host.path())]);
    assert_eq!(
        (&d["window"]["since_boot"], &d["window_ns"]),
        (&true.into(), &864_000_000_000_000u64.into())
    );
    let f = retransmits(&d);
    assert_eq!((&f["severity"], &f["confidence"]), (&"info".into(), &"low".into()), "{f:#}");
    assert!(f["evidence"].to_string().contains("since boot"), "{f:#}");
    let shown = run(NETWRIGHT, &["doctor", "--root", text(host.path())]);
    assert!(shown.contains("10 days since boot"), "{shown}");
    assert!(shown.contains("averages, not what happens now"), "{shown}");
}

#[test]
fn between_two_archives_what_happened_counts_in_full() {
    let (first, second) =
        (tree(864_000, 50_000_000, 2_000_000), tree(864_600, 51_000_000, 2_050_000));
    let d = doctor(&["--since", text(first.path()), "--root", text(second.path())]);
    assert_eq!(
        (&d["window"]["since_boot"], &d["window_ns"]),
        (&false.into(), &600_000_000_000u64.into())
    );
    let f = retransmits(&d);
    assert_ne!(f["severity"], "info", "{f:#}");
    assert!(f["title"].as_str().unwrap().contains("5.00%"), "{f:#}");
    // Archives in the wrong order, and without the second.
    let wrong = output(
        NETWRIGHT,
        &["doctor", "--since", text(second.path()), "--root", text(first.path())],
    );
    let said = String::from_utf8_lossy(&wrong.stderr);
    assert_eq!(wrong.status.code(), Some(4), "{said}");
    assert!(said.contains("--since: the first was not taken before the second"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    let alone = output(NETWRIGHT, &["doctor", "--since", text(first.path())]);
    assert_eq!(alone.status.code(), Some(2));
}

/// sos copies neither `/proc/uptime` nor most of `/sys/class/net`: what it printed stands in.
#[test]
fn a_sosreport_is_judged_by_what_tools_printed() {
    let sos = tree(0, 50_000_000, 2_000_000);
    let put = |path: &str, text: &str| {
        let path = sos.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    fs::remove_file(sos.path().join("proc/uptime")).unwrap();
    // Booted at second 20 of a minute.
    put("sos_commands/host/uptime", " 22:13:50 up 10 days, 0 min,  1 user,  load average: 0.00\n");
    put("sys/class/net/eth0/flags", "0x1003\n");
    put("sys/class/net/eth0/statistics/rx_packets", "700\n");
    put(
        "sos_commands/networking/ip_-s_-d_link",
        "2: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9000 qdisc mq state UP mode DEFAULT qlen 500\n\
        \x20   link/ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff numtxqueues 8 numrxqueues 8\n",
    );
    put(
        "sos_commands/networking/ethtool_eth0",
        "Settings for eth0:\n\tSpeed: 25000Mb/s\n\tDuplex: Full\n\tLink detected: yes\n",
    );
    put(
        "sos_commands/networking/tc_-s_qdisc_show",
        "qdisc fq 8001: dev eth0 root refcnt 9 limit 10000p\n\
        \x20Sent 900 bytes 7 pkt (dropped 41, overlimits 0 requeues 3)\n backlog 0b 0p requeues 3\n",
    );
    let d = doctor(&["--root", text(sos.path())]);
    assert_eq!(d["window_ns"], 864_030_000_000_000u64, "{:#}", d["window"]);
    assert_eq!(retransmits(&d)["severity"], "info");
    let facts: Value =
        serde_json::from_str(&run(NETWRIGHT, &["inspect", "--json", "--root", text(sos.path())]))
            .unwrap();
    let eth0 = &facts["nics"][0];
    let of = |key: &str| eth0[key].to_string();
    let seen =
        ["mtu", "ifindex", "operstate", "carrier", "speed_bps", "duplex", "txqueuelen"].map(of);
    assert_eq!(seen, ["9000", "2", "\"up\"", "true", "25000000000", "\"full\"", "500"], "{eth0:#}");
    let qdisc = &eth0["qdiscs"][0];
    assert_eq!((&qdisc["kind"], &qdisc["drops"]), (&"fq".into(), &41.into()), "{eth0:#}");
}

/// The kernel's own file is rarely in a sosreport; the tool's text has the same counters.
#[test]
fn dropped_connections_are_those_that_conntrack_printed() {
    let sos = tree(864_000, 50_000_000, 0);
    let put = |path: &str, text: &str| {
        let path = sos.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    put("proc/sys/net/netfilter/nf_conntrack_count", "100\n");
    put("proc/sys/net/netfilter/nf_conntrack_max", "262144\n");
    let printed = |drops: [u32; 2]| {
        let line = |cpu: usize| {
            format!(
                "cpu={cpu}   \tfound=3 invalid=9 insert=0 insert_failed=0 drop={} early_drop=0 \
                 error=0 search_restart=1 \n",
                drops[cpu]
            )
        };
        put("sos_commands/conntrack/conntrack_-S", &(line(0) + &line(1)));
        doctor(&["--root", text(sos.path())])
    };
    let d = printed([40_000, 2_001]);
    let found = |d: &Value| {
        let all = d["findings"].as_array().unwrap();
        all.iter().find(|f| f["rule"] == "conntrack_filling").cloned()
    };
    let f = found(&d).unwrap_or_else(|| panic!("{d:#}"));
    assert!(f["title"].as_str().unwrap().contains("42,001"), "{f:#}");
    let source = "sos_commands/conntrack/conntrack_-S for /proc/net/stat/nf_conntrack";
    assert!(f["evidence"].to_string().contains(source), "{f:#}");
    // The same text without drops, and no text at all: the rule is then skipped, not passed.
    let is_clear = |d: &Value| d["passed"].to_string().contains("conntrack_filling");
    let quiet = printed([0, 0]);
    assert!(found(&quiet).is_none() && is_clear(&quiet), "{quiet:#}");
    fs::remove_dir_all(sos.path().join("sos_commands/conntrack")).unwrap();
    let missing = doctor(&["--root", text(sos.path())]);
    assert!(found(&missing).is_none() && !is_clear(&missing), "{missing:#}");
}

/// One that SUSE's own tool made, packed and unpacked: `captured/README.md` has its origin.
#[test]
fn a_supportconfig_archive_is_judged_by_its_sections() {
    let packed = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captured/supportconfig.txz");
    let unpacked = tempfile::tempdir().unwrap();
    run("tar", &["-xJf", text(&packed), "-C", text(unpacked.path())]);
    let facts: Vec<Value> = [packed.as_path(), unpacked.path()]
        .iter()
        .map(|root| run(NETWRIGHT, &["inspect", "--json", "--root", text(root)]))
        .map(|json| serde_json::from_str(&json).unwrap())
        .collect();
    assert_eq!(facts[0], facts[1]);
    let facts = &facts[0];
    let eth0 = &facts["nics"][0];
    let of =
        |pointer: &str| eth0.pointer(pointer).unwrap_or_else(|| panic!("{pointer}")).to_string();
    for (pointer, value) in [
        ("/name", "\"eth0\""),
        ("/ifindex", "4"),
        ("/kind", "\"physical\""),
        ("/driver", "\"virtio_net\""),
        ("/bus_address", "\"0000:00:03.0\""),
        ("/mtu", "1400"),
        ("/carrier", "true"),
        ("/channels/combined", "1"),
        ("/rings/rx", "256"),
        ("/features/rx-gro/active", "true"),
        ("/statistics/rx_packets", "8823"),
        ("/qdiscs/0/kind", "\"pfifo_fast\""),
        ("/qdiscs/0/drops", "0"),
    ] {
        assert_eq!(of(pointer), value, "{pointer}");
    }
    // What a section without its comments has nothing left of, `sysctl -a` has.
    assert_eq!(facts["host"]["kernel_version"], "#1 SMP PREEMPT_DYNAMIC @0");
    assert_eq!(facts["host"]["cpus_online"], "0-1");
    assert_eq!(facts["sysctls"]["net.core.somaxconn"]["value"], "4096");
    assert_eq!(facts["numa_nodes"][0]["cpus"], "0-1");
    assert_eq!(facts["listeners"][0]["accept_queue_limit"], 128);
    assert!(facts["irqs"].get("absent").is_some(), "it has no /proc/interrupts");
    let d = doctor(&["--root", text(&packed)]);
    // Up 13:31; the second of the boot is not in it.
    assert_eq!(d["window_ns"], (13 * 3600 + 31 * 60 + 30) * 1_000_000_000u64);
    let f = d["findings"].as_array().unwrap().iter().find(|f| f["rule"] == "udp_receive_drops");
    let f = f.unwrap_or_else(|| panic!("{d:#}"));
    assert_eq!((&f["severity"], &f["confidence"]), (&"info".into(), &"low".into()), "{f:#}");
}

/// Names by hand are enough to find the folder in its archive, and others are no host.
#[test]
fn a_folder_by_hand_is_found_within_the_one_around_it() {
    let around = tempfile::tempdir().unwrap();
    let host = around.path().join("web1");
    fs::create_dir(&host).unwrap();
    fs::write(
        host.join("proc-net-softnet_stat.txt"),
        format!("00000009{}\n", " 00000000".repeat(12)),
    )
    .unwrap();
    fs::write(
        host.join("ip link.out"),
        "7: br-1: <UP> mtu 9000\n    link/ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff\n",
    )
    .unwrap();
    fs::write(
        host.join("ethtool_-g_br-1"),
        "Pre-set maximums:\nRX: 512\nCurrent hardware settings:\nRX: 64\n",
    )
    .unwrap();
    let tar = around.path().join("web1.tar");
    run("tar", &["-cf", text(&tar), "-C", text(around.path()), "web1"]);
    for root in [around.path(), &host, &tar] {
        let json = run(NETWRIGHT, &["inspect", "--json", "--root", text(root)]);
        let facts: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(facts["nics"][0]["name"], "br-1", "{}", root.display());
        assert_eq!(facts["nics"][0]["rings"]["rx"], 64);
        assert_eq!(facts["nics"][0]["mtu"], 9000);
        assert_eq!(facts["softnet"][0]["processed"], 9);
    }
}

#[test]
fn the_clock_of_an_archive_and_who_waits_for_memory() {
    let host = tree(1_000, 50_000, 10);
    let put = |path: &str, text: &str| {
        let path = host.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    put("sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n");
    put("proc/cmdline", "quiet clocksource=hpet\n");
    put("proc/pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=400000000\n");
    put("sys/kernel/sched_ext/state", "enabled\n");
    put("sys/kernel/sched_ext/root/ops", "lavd\n");
    let d = doctor(&["--root", text(host.path())]);
    let all = d["findings"].as_array().unwrap();
    let found =
        |rule: &str| all.iter().find(|f| f["rule"] == rule).unwrap_or_else(|| panic!("{d:#}"));
    let clock = found("slow_clocksource");
    assert!(clock["evidence"].to_string().contains("clocksource=hpet"), "{clock:#}");
    // 400 s of 1,000 s, which was at some time since boot.
    let memory = found("memory_pressure");
    assert!(memory["title"].as_str().unwrap().contains("40.0%"), "{memory:#}");
    assert_eq!((&memory["severity"], &memory["confidence"]), (&"info".into(), &"low".into()));
    let clear = d["passed"].as_array().unwrap().iter().find(|c| c["rule"] == "conflicting_tuner");
    assert!(clear.unwrap()["because"].as_str().unwrap().contains("lavd"), "{d:#}");
}

/// Where a folder has no file of `/proc`, what tools printed of the same is counted.
#[test]
fn sockets_counters_and_nodes_are_read_as_tools_printed_them() {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in [
        ("uptime.txt", " 22:13:50 up 10 days, 0 min,  1 user,  load average: 0.00\n"),
        (
            "nstat-zas.txt",
            "#kernel\nTcpOutSegs 50000000 0.0\nTcpRetransSegs 2000000 0.0\nTcpExtListenOverflows 7 0.0\n",
        ),
        ("lscpu.txt", "On-line CPU(s) list: 0-3\nNUMA node0 CPU(s): 0,1\nNUMA node1 CPU(s): 2,3\n"),
        (
            "ss-ltnp.txt",
            "State Recv-Q Send-Q Local\nLISTEN 3 64 *:80 *:* users:((\"a\",pid=9,fd=3))\n",
        ),
        ("ip-link.txt", "2: eth0: <UP,LOWER_UP> mtu 1500\n"),
        (
            "ethtool-a-eth0.txt",
            "Pause parameters for eth0:\nAutonegotiate:\ton\nRX:\toff\nTX:\ton\n",
        ),
        ("ethtool-n-eth0.txt", "2 RX rings available\nTotal 3 rules\n"),
        (
            "ethtool-x-eth0.txt",
            "RX flow hash indirection table for eth0 with 2 RX ring(s):\n    0:  0 1 0 1\nRSS hash key:\n6d:5a\n",
        ),
    ] {
        fs::write(folder.path().join(name), content).unwrap();
    }
    let root = text(folder.path());
    let f = retransmits(&doctor(&["--root", root])).clone();
    assert!(f["title"].as_str().unwrap().contains("4.00%"), "{f:#}");
    let facts = run(NETWRIGHT, &["inspect", "--json", "--root", root]);
    let facts: Value = serde_json::from_str(&facts).unwrap();
    let eth0 = &facts["nics"][0];
    for (what, value) in [
        (&facts["listeners"][0]["address"], "\"[::]:80\""),
        (&facts["listeners"][0]["accept_queue"], "3"),
        (&facts["listeners"][0]["accept_queue_limit"], "64"),
        (&facts["listeners"][0]["pids"], "[9]"),
        (&facts["cpus"][3]["numa_node"], "1"),
        (&eth0["pause"], r#"{"autoneg":true,"rx":false,"tx":true}"#),
        (&eth0["ntuple_rules"], "3"),
        (&eth0["rss"]["table"], "[0,1,0,1]"),
        (&eth0["rss"]["rings"], "2"),
    ] {
        assert_eq!(what.to_string(), value, "{facts:#}");
    }
}

/// The sources of a finding's evidence.
fn sources<'a>(d: &'a Value, rule: &str) -> Vec<(&'a str, &'a str)> {
    let all = d["findings"].as_array().unwrap();
    let f = all.iter().find(|f| f["rule"] == rule).unwrap_or_else(|| panic!("{d:#}"));
    let one = |e: &'a Value| (e["source"].as_str().unwrap(), e["value"].as_str().unwrap());
    f["evidence"].as_array().unwrap().iter().map(one).collect()
}

/// Evidence names the file that was read: of a sosreport what tools printed, where the kernel's is missing.
#[test]
fn evidence_names_the_text_that_was_read() {
    let sos = tempfile::tempdir().unwrap();
    let put = |path: &str, text: &str| {
        let path = sos.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    put("proc/uptime", "864000.00 1.00\n");
    put("proc/net/dev", "Inter-| Receive\n face |bytes\n");
    put(
        "sos_commands/networking/netstat_-s",
        "Tcp:\n    50000000 segments sent out\n    2000000 segments retransmitted\n\
         Udp:\n    90000 packets received\n    900000 receive buffer errors\n    0 send buffer errors\n\
         TcpExt:\n    40 times the listen queue of a socket overflowed\nIpExt:\n    InOctets: 9\n",
    );
    put(
        "sos_commands/networking/ss_-peaonmi",
        "tcp LISTEN 129 128 10.0.0.1:80 0.0.0.0:* users:((\"web\",pid=5,fd=3)) ino:3 sk:1\n\
         udp UNCONN 212992 0 10.0.0.1:53 0.0.0.0:* users:((\"named\",pid=7,fd=3)) ino:4 sk:2\n\
         \t skmem:(r212992,rb212992,t0,tb212992,f0,w0,o0,bl0,d900000)\n\
         tcp ESTAB 0 0 10.0.0.1:5432 10.0.0.2:50000 users:((\"db\",pid=9,fd=3)) ino:5 sk:3\n\
         \t skmem:(r0,rb131072,t0,tb64000,f0,w0,o0,bl0,d0) cubic mss:1448 cwnd:10 bytes_acked:32000000 \
         data_segs_out:30000 busy:10000ms sndbuf_limited:5000ms(50.0%) retrans:0/1500 minrtt:20 snd_wnd:900000\n",
    );
    put(
        "sos_commands/kernel/sysctl_-a",
        "net.core.somaxconn = 128\nnet.ipv4.tcp_wmem = 4096 16384 4194304\n",
    );
    put(
        "sos_commands/networking/ip_-s_-d_link",
        "2: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc mq state UP mode DEFAULT qlen 500\n\
         \x20   link/ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff parentbus pci parentdev 0000:00:03.0\n",
    );
    put(
        "sos_commands/networking/ethtool_eth0",
        "Settings for eth0:\n\tSpeed: 100Mb/s\n\tDuplex: Half\n\tLink detected: yes\n",
    );
    let d = doctor(&["--root", text(sos.path())]);
    let networking = "sos_commands/networking";
    let has = |rule: &str, source: &str, value: &str| {
        let all = sources(&d, rule);
        let fits = all.iter().any(|(s, v)| *s == source && v.contains(value));
        assert!(fits, "{rule}: {source}, {value}: {all:#?}");
    };
    let netstat = format!("{networking}/netstat_-s for /proc/net");
    has("retransmits", &format!("{netstat}/snmp"), "2,000,000");
    has("accept_queue_overflow", &format!("{netstat}/netstat"), "40");
    let ss = format!("{networking}/ss_-peaonmi");
    has("accept_queue_overflow", &ss, "129 waiting, limit 128");
    has("retransmits", &ss, "1,500 of 30,000 segments");
    has("udp_receive_drops", &ss, "900,000 dropped");
    has("buffer_below_bdp", &ss, "limited 50.0% of the time with data to send");
    let sysctl = "sos_commands/kernel/sysctl_-a for /proc/sys/net/core/somaxconn";
    has("accept_queue_overflow", sysctl, "128");
    let duplex = format!("{networking}/ethtool_eth0 for /sys/class/net/eth0/duplex");
    has("link_faults", &duplex, "half");
    let shown = run(NETWRIGHT, &["doctor", "-v", "--root", text(sos.path())]);
    assert!(shown.contains("named[7]") && shown.contains("db[9]"), "{shown}");
    // Of a file that is there, nothing is said.
    put("proc/net/snmp", "Tcp: OutSegs RetransSegs\nTcp: 50000000 2000000\n");
    let d = doctor(&["--root", text(sos.path())]);
    assert!(sources(&d, "retransmits").iter().any(|(s, _)| *s == "/proc/net/snmp"), "{d:#}");
}
