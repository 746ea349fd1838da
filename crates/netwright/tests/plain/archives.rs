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
