//! Tests of `tune` and power cuts: a guest that changes itself is killed in the middle, and its
//! disk is examined.

use std::{
    fs,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use crate::support::{NETWRIGHT, needs_root, run};
use lab::{server::ServerSpec, state::Resource, testing::TestLab};
use serde_json::Value;

/// Settings that take any number from [`FIRST`] up.
const KNOBS: [&str; 12] = [
    "net.core.rmem_default",
    "net.core.rmem_max",
    "net.core.wmem_default",
    "net.core.wmem_max",
    "net.core.optmem_max",
    "net.core.somaxconn",
    "net.ipv4.tcp_notsent_lowat",
    "net.core.netdev_budget_usecs",
    "net.ipv4.tcp_limit_output_bytes",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_max_tw_buckets",
    "net.ipv4.tcp_max_orphans",
];

const FIRST: u64 = 1_000_000;

/// How many times the disk is examined, at least, before the final power cut.
const LOOKS: usize = 8;

fn guest(image: &Path) -> TestLab {
    let small =
        ServerSpec { cpus: 1, nodes: 1, nic_node: 0, queues: 1, ..ServerSpec::new(NETWRIGHT) };
    TestLab::server(&ServerSpec { image: Some(image.to_owned()), ..small }).unwrap()
}

fn signal(pid: u32, signal: i32) {
    // SAFETY: takes numbers only; the process is the guest's, which lives as long as its lab.
    assert_eq!(unsafe { libc::kill(pid as i32, signal) }, 0);
}

/// Runs `netwright tune log` on an image's file system as a boot would find it, with the file
/// system's journal replayed.
fn after_a_cut(image: &Path, folder: &Path) -> Value {
    let (copy, found) = (folder.join("copy"), folder.join("found"));
    fs::copy(image, &copy).unwrap();
    let (copy, to) = (copy.to_str().unwrap(), found.to_str().unwrap());
    // Exit code 1: it repaired something.
    let mended = Command::new("e2fsck").args(["-fy", copy]).output().unwrap();
    assert!(mended.status.code().is_some_and(|c| c < 2), "{mended:?}");
    let _ = fs::remove_dir_all(&found);
    fs::create_dir(&found).unwrap();
    run("debugfs", &["-R", &format!("rdump / {to}"), copy]);
    let state = found.join("state");
    let log = run(NETWRIGHT, &["tune", "log", "--json", "--state-dir", state.to_str().unwrap()]);
    serde_json::from_str(&log).unwrap()
}

/// The changed values that the guest reported: the knob, and the change set.
fn reported(console: &Path) -> Vec<(String, u64)> {
    let text = String::from_utf8_lossy(&fs::read(console).unwrap()).into_owned();
    assert!(!text.contains("\nfailed "), "{text}");
    // The last line may be incomplete.
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let reported = |line: &str| {
        let (knob, value) = line.trim().strip_prefix("changed ")?.split_once(' ')?;
        Some((format!("sysctl.{knob}"), value.parse::<u64>().ok()?.checked_sub(FIRST)?))
    };
    whole.lines().filter_map(reported).collect()
}

/// Every reported value is in the journal after the cut, and the journal is otherwise complete.
/// Returns the number of changes of an incomplete last set.
fn consistent(log: &Value, reported: &[(String, u64)]) -> Option<u64> {
    assert_eq!(log["damaged"], serde_json::json!([]), "{log}");
    let sets = log["sets"].as_array().unwrap();
    for (knob, id) in reported {
        let set = sets.iter().find(|s| s["id"] == *id);
        let set = set.unwrap_or_else(|| panic!("{knob} was changed by set {id}: {log}"));
        let changes = set["changes"].as_array().unwrap();
        let n = changes.iter().position(|c| c["knob"] == **knob).unwrap() as u64;
        let begun = set["begun"].as_u64().unwrap();
        assert!(n < begun, "{knob} was changed by set {id}, whose journal begins {begun}: {set}");
    }
    let last = sets.last()?;
    let begun = last["begun"].as_u64().unwrap();
    (last["made"].as_u64().unwrap() < KNOBS.len() as u64).then_some(begun)
}

#[test]
fn whatever_a_power_cut_finds_changed_stands_in_the_journal() {
    needs_root();
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("disk,1");
    fs::File::create(&image).unwrap().set_len(32 << 20).unwrap();
    run("mkfs.ext4", &["-q", image.to_str().unwrap()]);

    let lab = guest(&image);
    let qemu = lab.state.resources.iter().find_map(|r| match r {
        Resource::Process { pid, what, .. } if what.contains("QEMU") => Some(*pid),
        _ => None,
    });
    let qemu = qemu.unwrap();
    let console = lab.folder().join("console.log");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/guest/power.sh");
    let line = format!(
        "setsid bash {script} {NETWRIGHT} {FIRST} {} > /dev/null 2>&1 < /dev/null &",
        KNOBS.join(" ")
    );
    assert_eq!(lab.output("server", &["sh", "-c", &line]).unwrap().code, 0);

    let (began, mut seen, mut looks, mut in_the_middle) = (Instant::now(), 0, 0, 0);
    let cut = loop {
        assert!(began.elapsed() < Duration::from_secs(120), "{looks} looks, {in_the_middle} torn");
        std::thread::sleep(Duration::from_millis(1));
        let before = reported(&console);
        // Another value has changed since: more may be in progress.
        if before.len() == seen {
            continue;
        }
        seen = before.len();
        signal(qemu, libc::SIGSTOP);
        let log = after_a_cut(&image, folder.path());
        let begun = consistent(&log, &before);
        looks += 1;
        in_the_middle += usize::from(begun.is_some_and(|n| n > 0));
        if in_the_middle >= LOOKS && begun.is_some_and(|n| n > 0) {
            break log;
        }
        signal(qemu, libc::SIGCONT);
    };
    signal(qemu, libc::SIGKILL);
    drop(lab);

    let lab = guest(&image);
    let modules = "for m in virtio_blk crc32c_generic ext4; do busybox modprobe $m || exit 1; done";
    let mount = format!("{modules}; mkdir -p /run/disk && mount /dev/vda /run/disk");
    assert_eq!(lab.output("server", &["sh", "-c", &mount]).unwrap().code, 0);
    let tune = |args: &[&str]| {
        let words = [&[NETWRIGHT], args, &["--state-dir", "/run/disk/state"]].concat();
        let out = lab.output("server", &words).unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (out.code, text(&out.stdout), text(&out.stderr))
    };
    let (code, log, err) = tune(&["tune", "log", "--json"]);
    let log: Value = serde_json::from_str(&log).unwrap_or_else(|e| panic!("{code} {e}: {err}"));
    let sets = log["sets"].as_array().unwrap();
    assert_eq!(log["damaged"], serde_json::json!([]));
    let made = |log: &Value| -> Vec<(Value, Value)> {
        let all = log["sets"].as_array().unwrap().iter();
        all.map(|s| (s["begun"].clone(), s["made"].clone())).collect()
    };
    assert_eq!(made(&log), made(&cut), "the boot found what the look at the disk had found");
    assert!(sets.iter().all(|s| s["state"] == "gone_with_boot"), "{log}");
    let last = sets.last().unwrap()["id"].to_string();
    let (code, _, err) = tune(&["tune", "rollback", &last]);
    assert_eq!(code, 0, "{err}");
    let (_, log, err) = tune(&["tune", "log", "--json"]);
    assert!(!err.contains("interrupted"), "{err} {log}");
}
