//! Tests on generated trees of settings.

use std::{fs, path::Path};

use model::{
    Bytes, Reading,
    sysctl::{DefaultFrom, Origin, Sysctl},
};

use super::{super::testing, *};

/// A tree with these files.
fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
    let dir = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = dir.path().join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let root = Root::open(dir.path()).unwrap();
    (dir, root)
}

fn read_tree(root: &Root) -> BTreeMap<String, Sysctl> {
    let mut host = testing::host();
    host.kernel = Reading::Known("6.18.44-fc".into());
    host.page_size_bytes = Reading::Known(Bytes(4096));
    host.build.hz = Reading::Known(250);
    read(root, &host, &Reading::Known(Bytes(24_684_092 << 10)), &mut vec![])
}

fn set_by(path: &str, line: u32, value: &str) -> Origin {
    Origin::File { path: path.into(), line, value: value.into() }
}

const SOMAXCONN: &str = "/proc/sys/net/core/somaxconn";

#[test]
fn the_last_file_by_name_wins_whatever_its_folder() {
    let (_d, root) = tree(&[
        ("/run/systemd/system/x", ""),
        (SOMAXCONN, "512\n"),
        ("/etc/sysctl.d/10-a.conf", "net.core.somaxconn = 1024\n"),
        ("/usr/lib/sysctl.d/50-b.conf", "# x\nnet/core/somaxconn=512\n"),
        ("/etc/sysctl.conf", "net.core.somaxconn = 99\n"),
    ]);
    let all = read_tree(&root);
    let s = &all["net.core.somaxconn"];
    assert_eq!(s.origin, set_by("/usr/lib/sysctl.d/50-b.conf", 2, "512"));
    assert_eq!(s.default, Reading::Known("4096".into()));
    assert_eq!(s.default_from, DefaultFrom::VersionTable);
    assert!(s.default_source.contains("19f92a030ca6"), "{}", s.default_source);
}

#[test]
fn one_name_counts_once_and_a_link_is_named_by_its_target() {
    let (d, root) = tree(&[
        ("/run/systemd/system/x", ""),
        (SOMAXCONN, "99\n"),
        ("/usr/lib/sysctl.d/60-x.conf", "net.core.somaxconn = 1\n"),
        ("/etc/sysctl.d/60-x.conf", "\n"),
        ("/etc/sysctl.conf", "\nnet.core.somaxconn = 99\n"),
    ]);
    let link = d.path().join("etc/sysctl.d/99-sysctl.conf");
    std::os::unix::fs::symlink("../sysctl.conf", link).unwrap();
    assert_eq!(read_tree(&root)["net.core.somaxconn"].origin, set_by("/etc/sysctl.conf", 2, "99"));
}

#[test]
fn a_file_that_is_not_in_force_is_no_origin() {
    let (_d, root) =
        tree(&[(SOMAXCONN, "777\n"), ("/etc/sysctl.d/10-a.conf", "net.core.somaxconn = 1024\n")]);
    assert_eq!(read_tree(&root)["net.core.somaxconn"].origin, Origin::Unknown);
}

#[test]
fn patterns_yield_to_names_and_exclusions() {
    let reserved = "/proc/sys/net/ipv4/tcp_sack";
    let (_d, root) = tree(&[
        (reserved, "0\n"),
        ("/etc/sysctl.d/10.conf", "net.ipv4.tcp_sack = 0\n"),
        ("/etc/sysctl.d/20.conf", "net.ipv4.tcp_s* = 1\n"),
    ]);
    assert_eq!(
        read_tree(&root)["net.ipv4.tcp_sack"].origin,
        set_by("/etc/sysctl.d/10.conf", 1, "0")
    );
    let (_d, root) = tree(&[
        (reserved, "1\n"),
        ("/etc/sysctl.d/10.conf", "net.ipv4.tcp_s* = 1\n-net.ipv4.tcp_sack\n"),
    ]);
    assert_eq!(read_tree(&root)["net.ipv4.tcp_sack"].origin, Origin::Default);
}

#[test]
fn tuned_and_the_kernel_cmdline_are_owners_too() {
    let profile = (
        "/usr/lib/tuned/net/tuned.conf",
        "[main]\ninclude=base\n[sysctl]\nnet.ipv4.tcp_rmem=\"4096 131072 16777216\" # why\n",
    );
    let files = [
        ("/etc/tuned/active_profile", "net\n"),
        profile,
        ("/usr/lib/tuned/base/tuned.conf", "[sysctl]\nnet.core.somaxconn=>2048\n"),
        ("/proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t16777216\n"),
        (SOMAXCONN, "2048\n"),
        ("/proc/sys/net/ipv4/tcp_fin_timeout", "30\n"),
        ("/proc/cmdline", "quiet sysctl.net.ipv4.tcp_fin_timeout=30\n"),
    ];
    let (_d, root) = tree(&files);
    let all = read_tree(&root);
    let tuned = |path: &str, line| Origin::Tuned { profile: "net".into(), path: path.into(), line };
    assert_eq!(all["net.ipv4.tcp_rmem"].origin, tuned(profile.0, 4));
    assert_eq!(all["net.ipv4.tcp_rmem"].default, Reading::Known("4096 131072 33554432".into()));
    assert_eq!(all["net.core.somaxconn"].origin, tuned("/usr/lib/tuned/base/tuned.conf", 2));
    assert_eq!(all["net.ipv4.tcp_fin_timeout"].origin, Origin::KernelCmdline);
}

#[test]
fn sysctl_files_come_over_tuned_unless_configured_otherwise() {
    let common = [
        ("/etc/tuned/active_profile", "p\n"),
        ("/etc/tuned/p/tuned.conf", "[sysctl]\nnet.core.somaxconn=2048\n"),
        ("/etc/sysctl.d/1.conf", "net.core.somaxconn=2048\n"),
        (SOMAXCONN, "2048\n"),
    ];
    let (d, root) = tree(&common);
    assert_eq!(
        read_tree(&root)["net.core.somaxconn"].origin,
        set_by("/etc/sysctl.d/1.conf", 1, "2048")
    );
    fs::write(Path::new(d.path()).join("etc/tuned/tuned-main.conf"), "reapply_sysctl = 0\n")
        .unwrap();
    assert!(matches!(read_tree(&root)["net.core.somaxconn"].origin, Origin::Tuned { .. }));
}

#[test]
fn a_fresh_namespace_speaks_only_of_what_it_does_not_inherit() {
    let (_d, root) = tree(&[
        (
            "/netwright/answers/fresh-namespace-sysctls.json",
            r#"{"value":{"net/core/somaxconn":"111","net/ipv4/tcp_rmem":"1 2 3"}}"#,
        ),
        (SOMAXCONN, "512\n"),
        ("/proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t33554432\n"),
    ]);
    let all = read_tree(&root);
    assert_eq!(all["net.core.somaxconn"].default, Reading::Known("111".into()));
    assert_eq!(all["net.core.somaxconn"].default_from, DefaultFrom::FreshNamespace);
    assert_eq!(all["net.ipv4.tcp_rmem"].default, Reading::Known("4096 131072 33554432".into()));
    assert_eq!(all["net.ipv4.tcp_rmem"].default_from, DefaultFrom::VersionTable);
    assert_eq!(all["net.ipv4.tcp_rmem"].origin, Origin::Default);
}

#[test]
fn nothing_there_is_absent_and_never_a_default() {
    let (_d, root) = tree(&[("/proc/sys/net/ipv4/ip_local_reserved_ports", "\n")]);
    let all = read_tree(&root);
    let s = &all["net.core.somaxconn"];
    assert!(!s.value.is_known() && !s.default.is_known());
    assert_eq!(s.origin, Origin::Unknown);
    let none = &all["net.ipv4.ip_local_reserved_ports"];
    assert_eq!((none.value.get(), none.default.get()), (Some(String::new()), Some(String::new())));
    assert_eq!(none.origin, Origin::Default);
}

#[test]
fn an_unknown_or_patched_version_claims_no_boundary() {
    let (_d, root) = tree(&[(SOMAXCONN, "128\n"), ("/proc/sys/net/ipv4/tcp_sack", "1\n")]);
    let with = |release: &str| {
        let mut host = testing::host();
        host.kernel = Reading::Known(release.into());
        read(&root, &host, &Reading::absent("x"), &mut vec![])
    };
    assert_eq!(with("5.10.0-8-amd64")["net.core.somaxconn"].default.get().as_deref(), Some("4096"));
    assert_eq!(with("5.3.18")["net.core.somaxconn"].default.get().as_deref(), Some("128"));
    for unsure in ["4.18.0-553.el8_10.x86_64", "strange"] {
        let all = with(unsure);
        assert_eq!(all["net.core.somaxconn"].default.get(), None, "{unsure}");
        assert_eq!(all["net.core.somaxconn"].origin, Origin::Unknown);
        assert_eq!(all["net.ipv4.tcp_sack"].default.get().as_deref(), Some("1"));
    }
}
