//! Tests of `fix` that is killed or interrupted in the middle.

use std::{
    fs,
    process::{Child, Output, Stdio},
};

use super::{candidate, complaint, differ, document, faults, model, wait_for};
use crate::support::{
    heeding,
    tuned::{Practice, on_a_host, same},
    watchdogs::kill_watchdog_of,
};
use serde_json::Value;

fn signal(child: &Child, signal: i32) {
    // SAFETY: our own child, not waited for yet.
    assert_eq!(unsafe { libc::kill(child.id() as i32, signal) }, 0);
}

/// Sends a signal while the last decoy is tried, when something has been kept.
fn interrupted(host: &Practice, with: i32) -> Output {
    let mut command = heeding(model(host, &["--yes", "--json"]), with);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let decoy = || fs::read_to_string("/proc/sys/net/ipv4/tcp_keepalive_intvl").unwrap();
    wait_for("the decoy", || {
        signal(&child, libc::SIGSTOP);
        let set = decoy() == "60\n";
        if !set {
            signal(&child, libc::SIGCONT);
        }
        set
    });
    if with == libc::SIGKILL {
        kill_watchdog_of(child.id());
    }
    signal(&child, with);
    signal(&child, libc::SIGCONT);
    child.wait_with_output().unwrap()
}

#[test]
fn kill_9_is_named_and_undone() {
    on_a_host(|host| {
        faults();
        let before = host.print();
        interrupted(host, libc::SIGKILL);
        let notice = || complaint(&host.netwright(&["schema", "fix"]).output().unwrap());
        let said = notice();
        assert!(said.contains("netwright fix was interrupted, and changes "), "{said}");
        assert!(said.contains("`netwright tune rollback --unfinished` undoes them all"), "{said}");
        let (code, _, said) = host.tune(&["apply", "sysctl.net.core.somaxconn=8192"]);
        assert!(code == 4 && said.contains("rollback --unfinished` first"), "{said}");
        // What was kept until then is still on trial: one command reverts all of it.
        let (code, out, _) = host.tune(&["rollback", "--unfinished", "--dry-run"]);
        assert!(code == 0 && out.contains("tcp_rmem would be 4096 16384 65536 again"), "{out}");
        let (code, out, said) = host.tune(&["rollback", "--unfinished", "--json"]);
        let out: Value = serde_json::from_str(&out).unwrap();
        let sets = out["sets"].as_array().unwrap();
        assert!(code == 0 && sets.len() >= 3, "{said} {out}");
        assert!(sets.iter().all(|s| s["state"] == "rolled_back"), "{out}");
        assert_eq!(out["set"], sets[0]);
        assert!(!notice().contains("interrupted"), "{}", notice());
        let (code, out, _) = host.tune(&["rollback", "--unfinished"]);
        assert!(code == 0 && out.contains("Nothing was interrupted"), "{out}");
        same(&before, &host.print(), "after rollback");
    });
}

#[test]
fn ctrl_c_keeps_what_was_proven() {
    on_a_host(|host| {
        faults();
        let before = host.print();
        let out = interrupted(host, libc::SIGINT);
        let d = document(&out);
        assert_eq!(d["ended"], "interrupted", "{d:#}");
        assert_eq!(out.status.code(), Some(0), "{}", complaint(&out));
        assert_eq!(candidate(&d, "sysctl.net.ipv4.tcp_rmem")["status"], "kept");
        assert!(!differ(&before, host).iter().any(|f| f.contains("keepalive")));
        assert_eq!(host.tune(&["rollback"]).0, 0);
        same(&before, &host.print(), "after rollback");
    });
}
