#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    net::TcpListener,
    os::unix::net::UnixListener,
    process::{Command, Stdio},
};

use super::*;

/// CPU time of this very thread.
fn own_ns() -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec.
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut t) }, 0);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

#[test]
fn whoever_listens_on_a_port_is_found_with_what_it_spent() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (root, port) = (Root::live(), listener.local_addr().unwrap().port());
    let serving = Serving::find(&root, &At::Port(port)).into_known().unwrap();
    assert_eq!(serving.holders, BTreeSet::from([std::process::id()]));
    assert!(!serving.is_gone(&root));
    let (first, began) = (serving.spent(&root), own_ns());
    let mut x = 1u64;
    while own_ns() - began < 20_000_000 {
        x = std::hint::black_box(x.wrapping_mul(6_364_136_223_846_793_005));
    }
    let (grown, last) = (own_ns() - began, serving.spent(&root));
    // The clocks are those of the same process: read before and after, they enclose what was seen.
    let seen = last.since(&first);
    assert!(seen >= grown && last.at_ns > first.at_ns, "{seen} of {grown}");
    drop(listener);
    assert!(!Serving::find(&root, &At::Port(port)).is_known());
}

/// A busy process beside the server does not count; a child of the server does.
#[test]
fn a_stranger_is_no_part_of_it_and_a_child_is() {
    let root = Root::live();
    let busy = || {
        let all = ["-c", "while :; do :; done"];
        Command::new("sh").args(all).stdin(Stdio::null()).spawn().unwrap()
    };
    let (mut server, mut stranger) = (busy(), busy());
    let one = Serving { holders: BTreeSet::from([server.id()]) };
    let (a, b) = (one.spent(&root), {
        std::thread::sleep(std::time::Duration::from_millis(60));
        one.spent(&root)
    });
    let all = Serving { holders: BTreeSet::from([std::process::id()]) }.spent(&root);
    for child in [&mut server, &mut stranger] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert_eq!(b.by_pid.keys().copied().collect::<Vec<_>>(), [server.id()]);
    // One process of one thread: no more than the time that went by.
    assert!(b.since(&a) <= b.at_ns - a.at_ns + 5_000_000, "{a:?} {b:?}");
    assert!(all.by_pid.contains_key(&server.id()) && all.by_pid.contains_key(&stranger.id()));
}

#[test]
fn a_unix_socket_is_found_by_its_path_though_it_has_blanks() {
    let name = format!("nw serving {}.sock", std::process::id());
    let path = std::env::temp_dir().join(name);
    let _ = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path).unwrap();
    let root = Root::live();
    let found = Serving::find(&root, &At::Path(path.to_str().unwrap()));
    drop(listener);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(found.into_known().unwrap().holders, BTreeSet::from([std::process::id()]));
    assert!(!Serving::find(&root, &At::Path("/nowhere/a.sock")).is_known());
}

#[test]
fn a_recycled_id_counts_from_its_beginning() {
    let spent = |all: &[(u32, u64)]| Spent { at_ns: 0, by_pid: all.iter().copied().collect() };
    let (first, last) = (spent(&[(1, 50), (2, 10), (3, 7)]), spent(&[(1, 80), (2, 4), (9, 5)]));
    assert_eq!(last.since(&first), 30 + 4 + 5);
}
