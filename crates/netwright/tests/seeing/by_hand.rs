//! A folder saved by hand, made by the lines of `docs/snapshot.md`, against this host.

use std::{fs, net::TcpListener, path::Path, process::Command};

use crate::support::{NETWRIGHT, run};
use serde_json::Value;

/// The lines of the page, up to the one that is run elsewhere.
fn lines() -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/snapshot.md");
    let page = fs::read_to_string(page).unwrap();
    let (_, section) = page.split_once("## A folder saved by hand").unwrap();
    let (_, block) = section.split_once("```sh\n").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    let (lines, last) = block.trim_end().rsplit_once('\n').unwrap();
    assert_eq!(last, "netwright doctor --root web1");
    lines.to_owned()
}

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&run(NETWRIGHT, args)).unwrap()
}

/// What counts or comes and goes, and what is said of the reader and of how a default was found.
const MOVING: [&str; 17] = [
    "accept_queue",
    "counts",
    "default",
    "default_from",
    "default_source",
    "driver_stats",
    "hypervisor",
    "listeners",
    "memory_free_bytes",
    "net.netfilter.nf_conntrack_count",
    "nohz_full",
    "no_access",
    "origin",
    "qdiscs",
    "softnet",
    "statistics",
    "uptime_s",
];
/// Lists that only the running host has.
const LIVE: [&str; 3] = ["processes", "storage", "tuners"];

/// Compares each value that the folder has; returns how many there were.
fn compare(at: &str, live: &Value, folder: &Value) -> usize {
    let known = |v: &Value| !["absent", "denied"].iter().any(|k| v.get(k).is_some());
    match (live, folder) {
        (_, value) if !known(value) => 0,
        (Value::Object(live), Value::Object(folder)) => {
            let keys = folder
                .iter()
                .filter(|(k, _)| !MOVING.contains(&k.as_str()) && !LIVE.contains(&k.as_str()));
            keys.map(|(key, value)| compare(&format!("{at}/{key}"), &live[key], value)).sum()
        }
        (Value::Array(live), Value::Array(folder)) => {
            assert_eq!(live.len(), folder.len(), "{at}");
            let pairs = live.iter().zip(folder).enumerate();
            pairs.map(|(n, (live, folder))| compare(&format!("{at}/{n}"), live, folder)).sum()
        }
        (live, folder) => {
            assert_eq!(live, folder, "{at}");
            1
        }
    }
}

#[test]
fn the_lines_of_the_page_save_what_the_host_says() {
    let tmp = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let saved = Command::new("sh").args(["-c", &lines()]).current_dir(&tmp).status().unwrap();
    // The last command of the loop fails where an interface has no such table.
    assert!(saved.code().is_some());
    let folder = tmp.path().join("web1").display().to_string();
    let (live, facts) =
        (json(&["inspect", "--json"]), json(&["inspect", "--json", "--root", &folder]));
    let same = compare("", &live, &facts);
    assert!(same > 1000, "only {same} values were compared");
    let known =
        |value: &Value| assert!(value.get("absent").is_none() && !value.is_null(), "{value}");
    for key in ["sysctls", "nics", "irqs", "cpus", "caches", "numa_nodes"] {
        let all = (&live[key], &facts[key]);
        let len = |v: &Value| v.as_array().map(Vec::len).or(v.as_object().map(|o| o.len()));
        assert_eq!(len(all.0), len(all.1), "{key}");
        assert!(len(all.1) > Some(0), "{key}");
    }
    let lo = |facts: &Value| {
        let nics = facts["nics"].as_array().unwrap();
        nics.iter().find(|n| n["name"] == "lo").unwrap().clone()
    };
    let (before, saved, after) = (lo(&live), lo(&facts), lo(&json(&["inspect", "--json"])));
    for counter in ["rx_bytes", "rx_packets", "tx_dropped", "rx_fifo_errors"] {
        let of = |nic: &Value| nic["statistics"][counter].as_u64().unwrap();
        assert!(of(&saved) <= of(&before) && of(&before) <= of(&after), "{counter}");
    }
    known(&saved["features"]);
    assert_eq!(saved["kind"], "loopback");
    let limit = |facts: &Value| {
        let all = facts["listeners"].as_array().unwrap();
        let ours = all.iter().find(|l| l["port"] == port).unwrap_or_else(|| panic!("{all:?}"));
        (ours["address"].clone(), ours["accept_queue_limit"].as_u64().unwrap())
    };
    assert_eq!(limit(&live), limit(&facts));
    let doctor = json(&["doctor", "--json", "--root", &folder]);
    assert_eq!(doctor["window"]["since_boot"], true);
    let uptime = |facts: &Value| facts["host"]["uptime_s"].as_u64().unwrap();
    let since_boot_s = doctor["window_ns"].as_u64().unwrap() / 1_000_000_000;
    assert_eq!(since_boot_s, uptime(&facts));
    assert!(uptime(&live) - uptime(&facts) < 300);
    let passed = doctor["passed"].as_array().map_or(0, Vec::len);
    assert!(passed >= 20, "only {passed} rules were checked: {doctor:#}");
}
