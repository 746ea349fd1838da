//! What a process uses: the disks behind its open files, and the addresses of its sockets.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use model::{Reading, placement::ProcessUse};
use parse::mountinfo::{self, Mount};

use super::sockets;
use crate::{ReadError, Root, error::reading};

/// Layers of a device mapper, RAID and multipath stack that are followed.
const MOST_LAYERS: u32 = 8;

/// The disks and addresses of a process. **Source**: the links in `/proc/PID/fd`,
/// `/proc/PID/mountinfo`, `/sys/class/block`, and the socket tables in `/proc/PID/net`.
pub fn read(root: &Root, pid: u32) -> ProcessUse {
    let open = open_paths(root, pid);
    ProcessUse {
        pid,
        disks: open.as_ref().and_then(|paths| disks(root, pid, paths)),
        addresses: match (sockets::inodes(root, pid), elsewhere(root, pid)) {
            (_, true) => Reading::Absent(format!(
                "/proc/{pid}/ns/net: another network namespace, whose addresses are no NIC's here"
            )),
            (Ok(inodes), false) => Reading::Known(addresses(root, pid, &inodes)),
            (Err(e), false) => e.into_reading(),
        },
    }
}

/// Whether the process is known to be in another network namespace than the reader, whose NICs the
/// facts have. A container may use an address that a NIC of the host has, too.
fn elsewhere(root: &Root, pid: u32) -> bool {
    let own = root.link("/proc/self/ns/net");
    matches!((own, root.link(&format!("/proc/{pid}/ns/net"))), (Ok(own), Ok(its)) if own != its)
}

/// Absolute paths of a process's open files, each once.
fn open_paths(root: &Root, pid: u32) -> Reading<BTreeSet<String>> {
    let folder = format!("/proc/{pid}/fd");
    let names: Result<Vec<String>, ReadError> = root.entries(&folder);
    reading(names).map(|names| {
        let links = names.iter().filter_map(|fd| root.link(&format!("{folder}/{fd}")).ok());
        let whole = |path: String| path.trim_end_matches(" (deleted)").to_owned();
        links.map(whole).filter(|path| path.starts_with('/')).collect()
    })
}

/// Whole disks with how each is known. A service that opens block devices itself, as an OSD does,
/// uses those; its log files say nothing then.
fn disks(root: &Root, pid: u32, paths: &BTreeSet<String>) -> Reading<Vec<(String, String)>> {
    let mut found = BTreeMap::new();
    for path in paths.iter().filter(|p| p.starts_with("/dev/")) {
        for disk in whole_disks(root, path) {
            found.entry(disk).or_insert_with(|| format!("{path} is open"));
        }
    }
    if found.is_empty() {
        let mounts = match root.read(&format!("/proc/{pid}/mountinfo")) {
            Ok(text) => mountinfo::parse(&text),
            Err(e) => return e.into_reading(),
        };
        for mount in paths.iter().filter_map(|path| mount_of(&mounts, path)) {
            for disk in whole_disks(root, &mount.source) {
                let known_by = format!("open files on {}", mount.mount_point);
                found.entry(disk).or_insert(known_by);
            }
        }
    }
    Reading::Known(found.into_iter().collect())
}

/// The mount that a path is on: the last one with the longest fitting mount point.
fn mount_of<'m>(mounts: &'m [Mount], path: &str) -> Option<&'m Mount> {
    let fits = |m: &&Mount| {
        let rest = path.strip_prefix(m.mount_point.trim_end_matches('/'));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    mounts.iter().filter(fits).max_by_key(|m| m.mount_point.len())
}

/// The whole disks below a block device's node: of a partition its disk, of a device mapper or RAID
/// device those of all its members. Empty for what is no block device.
fn whole_disks(root: &Root, node: &str) -> BTreeSet<String> {
    let target = root.resolve(node).unwrap_or_else(|_| node.to_owned());
    let mut found = BTreeSet::new();
    if let Some(name) = target.strip_prefix("/dev/") {
        below(root, name, MOST_LAYERS, &mut found);
    }
    found
}

fn below(root: &Root, name: &str, layers: u32, found: &mut BTreeSet<String>) {
    // The kernel writes a slash in a device's name as `!` (`cciss!c0d0`).
    let name = name.replace('/', "!");
    let class = format!("/sys/class/block/{name}");
    let members = root.entries(&format!("{class}/slaves")).unwrap_or_default();
    if layers > 0 && !members.is_empty() {
        members.iter().for_each(|m| below(root, m, layers - 1, found));
        return;
    }
    // A partition's folder is inside that of its disk: …/nvme0n1/nvme0n1p2.
    let Ok(path) = root.link(&class) else { return };
    let mut parts = path.rsplit('/').skip(1);
    match parts.next().filter(|parent| root.exists(&format!("/sys/block/{parent}"))) {
        Some(disk) => found.insert(disk.to_owned()),
        None => found.insert(name),
    };
}

fn addresses(root: &Root, pid: u32, inodes: &BTreeSet<u64>) -> Vec<IpAddr> {
    let all = sockets::rows(root, pid, ["tcp", "tcp6"]).into_iter();
    let all = all.chain(sockets::rows(root, pid, ["udp", "udp6"]));
    let own = all.filter(|s| inodes.contains(&s.inode)).map(|s| s.local.ip().to_canonical());
    let useful = own.filter(|ip| !ip.is_loopback() && !ip.is_unspecified());
    useful.collect::<BTreeSet<_>>().into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(point: &str, source: &str) -> Mount {
        Mount {
            root: "/".into(),
            mount_point: point.into(),
            fs_type: "ext4".into(),
            source: source.into(),
            super_options: vec![],
        }
    }

    #[test]
    fn the_innermost_mount_has_a_file() {
        let all = [mount("/", "/dev/vda1"), mount("/var/lib", "/dev/vdb"), mount("/var/li", "x")];
        let of = |path: &str| mount_of(&all, path).map(|m| m.source.as_str());
        assert_eq!(of("/var/lib/postgresql/base/1"), Some("/dev/vdb"));
        assert_eq!(of("/var/lib"), Some("/dev/vdb"));
        assert_eq!(of("/var/libx"), Some("/dev/vda1"));
        assert_eq!(of("/etc/passwd"), Some("/dev/vda1"));
    }

    #[test]
    fn a_stack_of_volumes_leads_to_its_disks() {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            path
        };
        let link = |path: &str, to: &str| std::os::unix::fs::symlink(to, at(path)).unwrap();
        let file = |path: &str, text: &str| std::fs::write(at(path), text).unwrap();
        let pci = "../../devices/pci0000:80/0000:81:00.0/nvme/nvme0";
        for disk in ["nvme0n1", "nvme1n1"] {
            let to = pci.replace("nvme0", &disk[..5]);
            link(&format!("sys/block/{disk}"), &format!("{}/{disk}", &to[3..]));
            link(&format!("sys/class/block/{disk}"), &format!("{to}/{disk}"));
            link(&format!("sys/class/block/{disk}p2"), &format!("{to}/{disk}/{disk}p2"));
            file(&format!("{}/{disk}/size", to.replace("../../", "sys/")), "1\n");
        }
        // An OSD's volume, on a RAID of two partitions.
        for (upper, lower) in [("dm-0", "md0"), ("md0", "nvme0n1p2"), ("md0", "nvme1n1p2")] {
            file(&format!("sys/devices/virtual/block/{upper}/slaves/{lower}/x"), "");
        }
        for upper in ["dm-0", "md0"] {
            link(
                &format!("sys/class/block/{upper}"),
                &format!("../../devices/virtual/block/{upper}"),
            );
            link(&format!("sys/block/{upper}"), &format!("../devices/virtual/block/{upper}"));
        }
        file("proc/7/comm", "ceph-osd\n");
        link("proc/7/fd/3", "/dev/dm-0");
        link("proc/7/fd/4", "/var/log/osd.log");
        link("proc/7/fd/5", "/dev/null");
        link("proc/7/fd/6", "socket:[77]");
        file("proc/7/mountinfo", "36 25 8:1 / / rw - ext4 /dev/nvme9n1 rw\n");
        file("proc/8/mountinfo", "36 25 8:1 / /var rw - ext4 /dev/nvme1n1p2 rw\n");
        link("proc/8/fd/3", "/var/lib/postgresql/1 (deleted)");
        let row = "   0: 0500000A:1A90 0600000A:D431 01 00000000:00000000 00:00000000 00000000 0 0 77 1 x\n";
        file("proc/7/net/tcp", &format!("  sl  local_address\n{row}"));

        let root = Root::open(dir.path()).unwrap();
        let osd = read(&root, 7);
        let by = || "/dev/dm-0 is open".to_owned();
        assert_eq!(
            osd.disks,
            Reading::Known(vec![("nvme0n1".into(), by()), ("nvme1n1".into(), by())])
        );
        assert_eq!(osd.addresses, Reading::Known(vec!["10.0.0.5".parse().unwrap()]));
        let database = read(&root, 8);
        assert_eq!(
            database.disks,
            Reading::Known(vec![("nvme1n1".into(), "open files on /var".into())])
        );
        assert!(!read(&root, 9).disks.is_known());
    }
}
