use super::*;
use std::{fs, os::unix::fs::symlink};

/// Every test runs all ways of following paths: the short one, folder by folder through
/// openat2, and component by component.
fn both(tree: &Path, test: impl Fn(&DirRoot)) {
    for (openat2, quick) in [(true, true), (true, false), (false, false)] {
        let mut root = DirRoot::open_with(tree, openat2).unwrap();
        assert_eq!(root.openat2, openat2, "this kernel has openat2");
        root.quick = quick.then(|| quick::Quick::assumed(&root.fd));
        test(&root);
        test(&root); // again with the folders remembered
    }
    test(&DirRoot::open(tree).unwrap()); // as it is for this user
}

fn tree() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let at = |p: &str| dir.path().join(p);
    fs::create_dir_all(at("sys/devices/pci/net/eth0")).unwrap();
    fs::create_dir_all(at("sys/class/net")).unwrap();
    fs::create_dir_all(at("etc")).unwrap();
    fs::write(at("sys/devices/pci/net/eth0/mtu"), "1500\n").unwrap();
    fs::write(at("etc/passwd"), "inside").unwrap();
    symlink("../../devices/pci/net/eth0", at("sys/class/net/eth0")).unwrap();
    dir
}

#[test]
fn reads_files_links_and_listings() {
    let dir = tree();
    both(dir.path(), |r| {
        assert_eq!(r.read("/sys/class/net/eth0/mtu").unwrap(), b"1500\n");
        assert_eq!(r.read("/sys/class/net/../net/./eth0/mtu").unwrap(), b"1500\n");
        assert_eq!(r.link("/sys/class/net/eth0").unwrap(), "../../devices/pci/net/eth0");
        assert_eq!(r.resolve("/sys/class/net/eth0").unwrap(), "/sys/devices/pci/net/eth0");
        assert_eq!(r.resolve("/sys/class/net/eth0/..").unwrap(), "/sys/devices/pci/net");
        assert_eq!(r.resolve("/").unwrap(), "/");
        assert_eq!(r.resolve("/..").unwrap(), "/");
        assert_eq!(r.entries("/sys/class/net/eth0").unwrap(), ["mtu"]);
        let mut top = r.entries("/").unwrap();
        top.sort();
        assert_eq!(top, ["etc", "sys"]);
        assert_eq!(r.read("/sys"), Err(libc::EISDIR));
        assert_eq!(r.read("/sys/class/net/eth0"), Err(libc::EISDIR));
        assert_eq!(r.read("/"), Err(libc::EISDIR));
        assert_eq!(r.read("/nope/x"), Err(libc::ENOENT));
        assert_eq!(r.read("/etc/passwd/x"), Err(libc::ENOTDIR));
        assert_eq!(r.entries("/etc/passwd"), Err(libc::ENOTDIR));
        assert_eq!(r.link("/etc/passwd"), Err(libc::EINVAL));
        assert_eq!(r.read("/a\0b"), Err(libc::EINVAL));
    });
}

#[test]
fn no_link_leads_outside() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "outside").unwrap();
    let dir = tree();
    let at = |p: &str| dir.path().join(p);
    symlink("/etc/passwd", at("absolute")).unwrap();
    symlink("../../../../../../etc/passwd", at("etc/climbs")).unwrap();
    symlink(outside.path(), at("out")).unwrap();
    symlink(outside.path().join("secret"), at("etc/secret")).unwrap();
    symlink("..", at("etc/up")).unwrap();
    both(dir.path(), |r| {
        assert_eq!(r.read("/absolute").unwrap(), b"inside");
        assert_eq!(r.read("/etc/climbs").unwrap(), b"inside");
        assert_eq!(r.read("/../../etc/passwd").unwrap(), b"inside");
        assert_eq!(r.read("/out/secret"), Err(libc::ENOENT));
        assert_eq!(r.read("/etc/secret"), Err(libc::ENOENT));
        assert_eq!(r.entries("/out"), Err(libc::ENOENT));
        assert_eq!(r.resolve("/out"), Err(libc::ENOENT));
        assert_eq!(r.read("/etc/up"), Err(libc::EISDIR));
        assert_eq!(r.resolve("/etc/up").unwrap(), "/");
        assert_eq!(r.resolve("/etc/up/up").unwrap_err(), libc::ENOENT);
    });
}

#[test]
fn exists_is_whether_it_resolves() {
    let dir = tree();
    let at = |p: &str| dir.path().join(p);
    symlink("/etc/passwd", at("etc/good")).unwrap();
    symlink("nowhere", at("etc/dangling")).unwrap();
    symlink("loop", at("etc/loop")).unwrap();
    both(dir.path(), |r| {
        for path in [
            "/",
            "/etc",
            "/etc/",
            "/etc/passwd",
            "/etc/passwd/x",
            "/etc/good",
            "/etc/dangling",
            "/etc/loop",
            "/etc/nope",
            "/sys/class/net/eth0",
            "/sys/class/net/eth0/mtu",
            "/..",
            "/etc/..",
            "/etc/a\0b",
        ] {
            assert_eq!(r.exists(path), r.resolve(path).is_ok(), "{path}");
        }
    });
}

#[test]
fn links_in_links_resolve_as_the_kernel_does() {
    let dir = tree();
    let at = |p: &str| dir.path().join(p);
    fs::create_dir_all(at("a/b/c")).unwrap();
    fs::create_dir_all(at("x/y")).unwrap();
    fs::write(at("a/file"), "a").unwrap();
    fs::write(at("x/file"), "x").unwrap();
    for (link, target) in [
        ("x/y/tob", "/a/b"),
        ("x/y/climbs", "tob/../file"), // a's, not y's
        ("x/y/up", ".."),
        ("x/y/upup", "../.."),
        ("x/y/over", "../../../../x/file"),
        ("x/chain", "y/climbs"),
        ("x/slash", "/a//b/./c"),
    ] {
        symlink(target, at(link)).unwrap();
    }
    both(dir.path(), |r| {
        for (path, real) in [
            ("/x/y/tob/c", "/a/b/c"),
            ("/x/y/climbs", "/a/file"),
            ("/x/y/up", "/x"),
            ("/x/y/up/file", "/x/file"),
            ("/x/y/upup", "/"),
            ("/x/y/upup/a/b", "/a/b"),
            ("/x/y/over", "/x/file"),
            ("/x/chain", "/a/file"),
            ("/x/slash", "/a/b/c"),
            ("/x//y/./tob", "/a/b"),
        ] {
            assert_eq!(r.resolve(path).as_deref(), Ok(real), "{path}");
        }
        assert_eq!(r.read("/x/chain").unwrap(), b"a");
    });
}

#[test]
fn small_and_large_files_are_read_whole() {
    let dir = tree();
    for length in [0, 1, 511, 512, 513, 4095, 4096, 4097, 300_000] {
        let text: Vec<u8> = (0..length).map(|i| b'a' + (i % 23) as u8).collect();
        fs::write(dir.path().join("etc/file"), &text).unwrap();
        both(dir.path(), |r| assert_eq!(r.read("/etc/file").unwrap(), text, "{length}"));
    }
}

#[test]
fn loops_end() {
    let dir = tree();
    let at = |p: &str| dir.path().join(p);
    symlink("b", at("a")).unwrap();
    symlink("a", at("b")).unwrap();
    symlink("deep/deep", at("deep")).unwrap();
    symlink("net:[4026531840]", at("etc/ns")).unwrap();
    both(dir.path(), |r| {
        for path in ["/a", "/a/x", "/deep"] {
            assert_eq!(r.read(path), Err(libc::ELOOP), "{path}");
            assert_eq!(r.resolve(path), Err(libc::ELOOP), "{path}");
        }
        assert_eq!(r.resolve("/etc/ns").unwrap(), "/etc/ns", "an identity, not a path");
        assert_eq!(r.resolve("/etc/ns/x"), Err(libc::ENOENT));
    });
}

#[test]
fn pipes_devices_and_sockets_are_neither_opened_nor_waited_for() {
    let dir = tree();
    let at = |p: &str| dir.path().join(p);
    rustix::fs::mkfifoat(rustix::fs::CWD, at("etc/pipe"), 0o600.into()).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(at("etc/socket")).unwrap();
    symlink("pipe", at("etc/topipe")).unwrap();
    both(dir.path(), |r| {
        for name in ["pipe", "socket", "topipe"] {
            assert_eq!(r.read(&format!("/etc/{name}")), Err(libc::EINVAL), "{name}");
        }
        assert_eq!(r.entries("/etc/pipe"), Err(libc::ENOTDIR));
    });
}

#[test]
fn a_length_that_is_a_lie_is_not_believed() {
    let dir = tree();
    let sparse = fs::File::create(dir.path().join("etc/sparse")).unwrap();
    sparse.set_len(MAX_FILE_BYTES + 1).unwrap();
    both(dir.path(), |r| assert_eq!(r.read("/etc/sparse"), Err(libc::EFBIG)));
    // A live /proc says 0 and gives more; a live /sys says 4096 and gives less.
    both(Path::new("/"), |r| {
        assert!(r.read("/proc/stat").unwrap().starts_with(b"cpu"));
        assert!(r.read("/sys/class/net/lo/mtu").unwrap().len() < 10);
    });
}

#[test]
fn a_name_that_is_no_text_is_not_there() {
    use std::os::unix::ffi::OsStrExt;
    let dir = tree();
    fs::write(dir.path().join("etc").join(std::ffi::OsStr::from_bytes(b"bad\xff")), "x").unwrap();
    symlink(std::ffi::OsStr::from_bytes(b"bad\xff"), dir.path().join("etc/link")).unwrap();
    both(dir.path(), |r| {
        let mut names = r.entries("/etc").unwrap();
        names.sort();
        assert_eq!(names, ["link", "passwd"]);
        assert_eq!(r.link("/etc/link"), Err(libc::EILSEQ));
    });
}

#[test]
fn many_folders_do_not_use_up_the_descriptors() {
    let dir = tree();
    for n in 0..3000 {
        let folder = dir.path().join(format!("many/{n}"));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("f"), n.to_string()).unwrap();
    }
    both(dir.path(), |r| {
        for n in 0..3000 {
            assert_eq!(r.read(&format!("/many/{n}/f")).unwrap(), n.to_string().as_bytes());
        }
    });
}

#[test]
fn what_else_is_renamed_on_the_host_loses_nothing() {
    use std::sync::atomic::{AtomicBool, Ordering};

    let dir = tree();
    let elsewhere = tempfile::tempdir().unwrap();
    let (a, b) = (elsewhere.path().join("a"), elsewhere.path().join("b"));
    fs::write(&a, "").unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                fs::rename(&a, &b).unwrap();
                fs::rename(&b, &a).unwrap();
            }
        });
        let mut lost = 0;
        for _ in 0..4_000 {
            // A new root remembers no folder.
            let mut root = DirRoot::open_with(dir.path(), true).unwrap();
            root.quick = None;
            lost += u32::from(root.read("/sys/class/net/eth0/mtu").is_err());
        }
        done.store(true, Ordering::Relaxed);
        assert_eq!(lost, 0);
    });
}

#[test]
fn the_one_folder_around_a_hosts_files_is_passed_through() {
    let unpacked = tempfile::tempdir().unwrap();
    let top = unpacked.path().join("sosreport-db1");
    std::fs::create_dir_all(top.join("proc")).unwrap();
    std::fs::write(top.join("proc/uptime"), "100.00 50.00\n").unwrap();
    let read = || crate::Root::open(unpacked.path()).unwrap().read("/proc/uptime").is_ok();
    assert!(read());
    // A sum beside it is no folder; a second host is.
    std::fs::write(unpacked.path().join("sosreport-db1.tar.xz.sha256"), "").unwrap();
    assert!(read());
    std::fs::create_dir(unpacked.path().join("sosreport-db2")).unwrap();
    assert!(!read());
}
