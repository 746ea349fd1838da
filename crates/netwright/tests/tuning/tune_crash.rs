//! Tests `kill -9` at every system call that writes: after each, the next command restores the host
//! exactly. In a namespace of the test.

use crate::support::{
    traced::{self, End, Then},
    tuned::{on_a_host, same},
};

#[test]
fn apply_killed_at_every_write_is_undone_exactly() {
    on_a_host(|host| {
        let changes = host.changes();
        assert!(changes.len() >= 20);
        let before = host.print();
        let mut args = vec!["apply", "--no-confirm"];
        args.extend(changes.iter().map(String::as_str));
        let (mut points, mut disturbed, mut unfinished) = (0, 0, 0);
        loop {
            let state = tempfile::tempdir().unwrap();
            let at = points + 1;
            let end = traced::tune(state.path(), &args, &mut |n| {
                if n == at { Then::Kill } else { Then::GoOn }
            });
            let after = host.print();
            disturbed += usize::from(after != before);
            let when = format!("killed at write {at}");
            let (code, out, err) = host.tune_in(state.path(), &["rollback"]);
            assert_eq!(code, 0, "{when}: {out}{err}");
            assert!(!out.contains("another program"), "{when}, but nobody else was there: {out}");
            unfinished += usize::from(out.contains("is rolled back"));
            same(&before, &host.print(), &when);
            if let End::Exited(code) = end {
                assert_eq!(code, 0, "apply itself failed");
                assert_ne!(after, before, "it changed nothing");
                break;
            }
            points = at;
        }
        println!("{points} points, at {disturbed} of them the host was changed");
        // At least an announcement, an open and a write; most are in the middle.
        assert!(points >= 4 * changes.len(), "only {points} points");
        assert!(disturbed >= 3 * changes.len(), "only {disturbed} in the middle");
        assert!(unfinished >= disturbed);
    });
}

/// The terminal of an operator goes away, as often as the command writes: it goes on to its end.
#[test]
fn apply_and_rollback_outlive_the_terminal() {
    on_a_host(|host| {
        let (changes, before) = (host.changes(), host.print());
        let state = tempfile::tempdir().unwrap();
        let mut hung_up = 0;
        let mut run = |args: &[&str]| {
            // Before it has a journal it has changed nothing, and may end; rollback has one from the
            // start, and its first calls are those of a program that starts.
            let journal = state.path().join("journal");
            let has_begun = || std::fs::read_dir(&journal).is_ok_and(|all| all.count() > 0);
            let end = traced::tune(state.path(), args, &mut |n| match has_begun() {
                true if args != ["rollback"] || n > 3 => {
                    hung_up += 1;
                    Then::HangUp
                }
                _ => Then::GoOn,
            });
            assert_eq!(end, End::Exited(0), "{args:?}");
        };
        run(&[
            &["apply", "--no-confirm"][..],
            &changes.iter().map(String::as_str).collect::<Vec<_>>(),
        ]
        .concat());
        let (code, out, err) = host.tune_in(state.path(), &["status"]);
        assert_eq!(code, 0, "all of it is in force: {out}{err}");
        assert_ne!(host.print(), before);
        run(&["rollback"]);
        same(&before, &host.print(), "rolled back");
        assert!(hung_up > 4 * changes.len(), "{hung_up} signals");
    });
}

#[test]
fn rollback_killed_at_every_write_is_completed_exactly() {
    on_a_host(|host| {
        let some: Vec<String> = host
            .changes()
            .into_iter()
            .filter(|c| {
                ["ip_forward", "somaxconn", "channels", "v0.mtu", "rx-0.rps", "tx-1", "process"]
                    .iter()
                    .any(|k| c.contains(k))
            })
            .collect();
        let before = host.print();
        let mut args = vec!["apply", "--no-confirm"];
        args.extend(some.iter().map(String::as_str));
        let mut points = 0;
        loop {
            let state = tempfile::tempdir().unwrap();
            let (code, out, err) = host.tune_in(state.path(), &args);
            assert_eq!(code, 0, "{out}{err}");
            assert_ne!(host.print(), before);
            let (code, out, err) = host.tune_in(state.path(), &["status"]);
            assert_eq!(code, 0, "nobody changed anything since: {out}{err}");
            let at = points + 1;
            let end = traced::tune(state.path(), &["rollback"], &mut |n| {
                if n == at { Then::Kill } else { Then::GoOn }
            });
            let when = format!("rollback killed at write {at}");
            let (code, out, err) = host.tune_in(state.path(), &["rollback"]);
            assert_eq!(code, 0, "{when}: {out}{err}");
            assert!(!out.contains("another program"), "{when}, but nobody else was there: {out}");
            same(&before, &host.print(), &when);
            if end != End::Killed {
                assert_eq!(end, End::Exited(0));
                break;
            }
            points = at;
        }
        assert!(points >= 3 * some.len(), "only {points} points");
    });
}

/// A value that another process set while the change was in force stays, wherever the rollback is
/// interrupted; `--force` restores everything.
#[test]
fn rollback_killed_at_every_write_leaves_what_somebody_else_set() {
    const FILE: &str = "/proc/sys/net/ipv4/tcp_fin_timeout";
    on_a_host(|host| {
        let before = host.print();
        let change_requests =
            ["nic.v0.mtu=1400", "sysctl.net.ipv4.tcp_fin_timeout=30", "nic.v1.txqueuelen=500"];
        let apply = [&["apply", "--no-confirm"], &change_requests[..]].concat();
        let mut points = 0;
        loop {
            let state = tempfile::tempdir().unwrap();
            let (code, out, err) = host.tune_in(state.path(), &apply);
            assert_eq!(code, 0, "{out}{err}");
            std::fs::write(FILE, "47").unwrap();
            let at = points + 1;
            let end = traced::tune(state.path(), &["rollback"], &mut |n| {
                if n == at { Then::Kill } else { Then::GoOn }
            });
            let when = format!("killed at write {at}");
            let (code, out, err) = host.tune_in(state.path(), &["rollback"]);
            let named =
                code == 1 && out.contains("is 47, neither ours (30) nor the old value (60)");
            let ended = code == 0 && out.contains("No active changes");
            assert!(named || ended, "{when}: {code} {out}{err}");
            assert_eq!(std::fs::read_to_string(FILE).unwrap(), "47\n", "{when}");
            let (_, log, _) = host.tune_in(state.path(), &["log"]);
            assert!(
                log.contains("tcp_fin_timeout: 47, set by another program, was left"),
                "{when}: {log}"
            );
            let (code, out, err) = host.tune_in(state.path(), &["rollback", "1", "--force"]);
            assert_eq!(code, 0, "{when}: {out}{err}");
            same(&before, &host.print(), &when);
            if end != End::Killed {
                assert_eq!(end, End::Exited(1), "somebody's value was left");
                break;
            }
            points = at;
        }
        assert!(points >= 3 * change_requests.len(), "only {points} points");
    });
}
