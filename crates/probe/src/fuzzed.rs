//! Entry points for the fuzzers: one for each reader of archives, files and recordings. None may
//! panic on any input; each panics where a reader contradicts itself.

use std::str::FromStr;

use crate::{
    Root, facts,
    root::Limits,
    samples::{self, Options},
    serving,
    snapshot::redact::{Key, Redactor},
    watch::recording::Recording,
};

/// A parser's name, and what feeds it any bytes.
type Parser = (&'static str, fn(&[u8]));

/// Every reader of outside bytes in this crate that is not `parse`'s, ascending.
pub const PARSERS: &[Parser] = &[
    ("archive", archive),
    ("host_file", host_file),
    ("process_file", process_file),
    ("recording", recording),
    ("redacted", redacted),
];

const BLOCK: usize = 512;

/// Small: what an archive may cost at most is tested where the bounds are.
const LIMITS: Limits =
    Limits { total_bytes: 1 << 20, file_bytes: 1 << 18, entries: 200, path_bytes: 1 << 14 };

/// Headers get right checksums, or a fuzzer would spend its life on guessing them.
fn with_checksums(tar: &mut [u8]) {
    for block in tar.chunks_exact_mut(BLOCK) {
        if block.get(257..262) != Some(b"ustar") {
            continue;
        }
        let Some(field) = block.get_mut(148..156) else { continue };
        field.fill(b' ');
        let sum: u32 = block.iter().map(|&b| u32::from(b)).sum();
        if let Some(field) = block.get_mut(148..156) {
            field.copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        }
    }
}

/// A snapshot archive, and everything that is asked of it. An odd first byte leaves the checksums
/// as they are, for those that are compressed.
fn archive(bytes: &[u8]) {
    let Some((&how, bytes)) = bytes.split_first() else { return };
    let mut bytes = bytes.to_vec();
    if how & 1 == 0 {
        with_checksums(&mut bytes);
    }
    let Ok(root) = Root::read_archive(&bytes[..], &LIMITS) else { return };
    let mut todo = vec![String::new()];
    let mut asked = 0;
    while let Some(path) = todo.pop() {
        asked += 1;
        if asked > 400 {
            break; // links make a finite archive an endless tree
        }
        let _ = (root.read(&path), root.link(&path), root.resolve(&path));
        let _ = root.ask::<u64>(&path, || unreachable!("an archive is not the host"));
        for name in root.entries(&path).unwrap_or_default() {
            todo.push(format!("{path}/{name}"));
        }
    }
}

/// Files that a reader of facts parses itself, selected by the first byte. `parse` has the formats
/// of `/proc` and `/sys`.
const FILES: [&str; 24] = [
    "etc/udev/rules.d/60-x.rules",
    "etc/default/irqbalance",
    "etc/sysctl.d/60-x.conf",
    "etc/rc.local",
    "etc/crontab",
    "etc/network/interfaces",
    "etc/systemd/system/x.service",
    "etc/NetworkManager/system-connections/x.nmconnection",
    "etc/sysconfig/network-scripts/ifcfg-eth0",
    "etc/tuned/active_profile",
    "etc/tuned/x/tuned.conf",
    "etc/tuned/tuned-main.conf",
    "etc/default/instance_configs.cfg",
    "etc/os-release",
    "etc/sysfs.conf",
    "run/containerd/io.containerd.runtime.v2.task/k8s.io/x/config.json",
    "var/lib/docker/containers/0123/config.v2.json",
    "proc/1/cgroup",
    "proc/1/environ",
    "proc/1/cmdline",
    "proc/cmdline",
    "proc/config.gz",
    "proc/version",
    "proc/sys/kernel/osrelease",
];

/// A host of which only this file is known, and its facts.
fn host_file(bytes: &[u8]) {
    let Some((which, bytes)) = bytes.split_first() else { return };
    let Some(path) = FILES.get(usize::from(*which) % FILES.len()) else { return };
    // Evidence of systemd and tuned.
    let files = [(*path, bytes), ("proc/1/comm", b"irqbalance\n"), ("etc/hostname", b"host\n")];
    let Some(root) = host_of(&files) else { return };
    let _ = facts::collect(&root, &facts::Request::default());
}

/// A host of which only these files are known; `None` where they do not fit `LIMITS`.
pub fn host_of(files: &[(&str, &[u8])]) -> Option<Root> {
    let mut tar = tar::Builder::new(vec![]);
    for (path, text) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, path, *text).ok()?;
    }
    Root::read_archive(&tar.into_inner().ok()?[..], &LIMITS).ok()
}

/// Files of a process and of its threads, selected by the first byte.
const PROCESS_FILES: [&str; 12] = [
    "proc/7/status",
    "proc/7/stat",
    "proc/7/task/7/stat",
    "proc/7/task/7/status",
    "proc/7/task/7/schedstat",
    "proc/7/task/7/sched",
    "proc/7/task/7/children",
    "proc/7/cgroup",
    "proc/7/comm",
    "proc/2/comm",
    "proc/net/unix",
    "proc/net/tcp",
];

/// A host of which a process is known: what it is, its counters and the service that it is of.
fn process_file(bytes: &[u8]) {
    let Some((which, bytes)) = bytes.split_first() else { return };
    let Some(path) = PROCESS_FILES.get(usize::from(*which) % PROCESS_FILES.len()) else { return };
    let rest: [(&str, &[u8]); 4] = [
        ("proc/7/status", b"Name:\tx\nTgid:\t7\nCpus_allowed_list:\t0-1\n"),
        (
            "proc/7/task/7/stat",
            b"7 (x) S 1 7 7 0 -1 0 0 0 0 0 1 2 0 0 20 0 1 0 5 0 0 0 0 0 0 0 0\n",
        ),
        ("proc/8/stat", b"8 (y) S 7 8 8 0 -1 0 0 0 0 0 1 2 0 0 20 0 1 0 5 0 0 0 0 0 0 0 0\n"),
        ("proc/2/comm", b"kthreadd\n"),
    ];
    let mut files = vec![(*path, bytes)];
    files.extend(rest.into_iter().filter(|(other, _)| other != path));
    let Some(root) = host_of(&files) else { return };
    let _ = facts::process::read(&root, &[facts::Selector::Pid(7)]);
    let _ = samples::one(&root, 0, &Options { pids: vec![7, 8], ..Options::over(model::Nanos(1)) });
    let family = serving::family::of(&root, &[7].into());
    assert!(family.contains(&7), "a process is of its own service");
    let _ = serving::allowed(&root, 7);
    for at in [serving::At::Port(80), serving::At::Path("/run/x.sock")] {
        let _ = serving::Serving::find(&root, &at);
    }
}

/// A recording, and its intervals in any order. After an even first byte it is packed here, or a
/// fuzzer would spend its life on guessing checksums.
fn recording(bytes: &[u8]) {
    let Some((how, bytes)) = bytes.split_first() else { return };
    let packed = if how & 1 == 0 { zstd::encode_all(bytes, 1) } else { Ok(bytes.to_vec()) };
    let Ok(mut recording) =
        packed.map_err(drop).and_then(|b| Recording::read("fuzzed".into(), b).map_err(drop))
    else {
        return;
    };
    let last = recording.len() - 1;
    for number in [0, last, last / 2, last + 1] {
        let _ = recording.get(number);
    }
    assert!(recording.get(last + 1).is_err());
    let _ = recording.damage();
}

/// Files of a snapshot that someone else will see: no line is lost or made.
fn redacted(bytes: &[u8]) {
    const PLACES: [&str; 8] = [
        "/proc/net/tcp",
        "/proc/net/if_inet6",
        "/proc/1/cmdline",
        "/proc/cmdline",
        "/proc/1/mountinfo",
        "/etc/sysctl.conf",
        "/netwright/answers/x.json",
        "/sys/class/net/eth0/address",
    ];
    let Some((which, bytes)) = bytes.split_first() else { return };
    let Some(place) = PLACES.get(usize::from(*which) % PLACES.len()) else { return };
    let Ok(key) = Key::from_str("000102030405060708090a0b0c0d0e0f") else { return };
    let once = Redactor::new(&key).content(place, bytes.to_vec());
    let again = Redactor::new(&key).content(place, bytes.to_vec());
    assert_eq!(once, again, "the same key gives the same pseudonyms");
    let _ = Redactor::new(&key).path(&String::from_utf8_lossy(bytes));
}
