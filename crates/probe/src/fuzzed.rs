//! Entry points for the fuzzers: one for each reader of archives, files and recordings. None may
//! panic on any input; each panics where a reader contradicts itself.

use std::str::FromStr;

use crate::{
    Root, facts,
    root::Limits,
    snapshot::redact::{Key, Redactor},
    watch::recording::Recording,
};

/// A parser's name, and what feeds it any bytes.
type Parser = (&'static str, fn(&[u8]));

/// Every reader of outside bytes in this crate that is not `parse`'s, ascending.
pub const PARSERS: &[Parser] = &[
    ("archive", archive),
    ("host_file", host_file),
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
    let mut tar = tar::Builder::new(vec![]);
    let mut header = tar::Header::new_gnu();
    header.set_size(bytes.len() as u64);
    header.set_mode(0o644);
    let Ok(()) = tar.append_data(&mut header, path, bytes) else { return };
    // Evidence of systemd and tuned.
    for (path, text) in [("proc/1/comm", &b"irqbalance\n"[..]), ("etc/hostname", b"host\n")] {
        header.set_size(text.len() as u64);
        let Ok(()) = tar.append_data(&mut header, path, text) else { return };
    }
    let Ok(tar) = tar.into_inner() else { return };
    let Ok(root) = Root::read_archive(&tar[..], &LIMITS) else { return };
    let _ = facts::collect(&root, &facts::Request::default());
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
