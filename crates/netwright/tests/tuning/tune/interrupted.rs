//! Tests of interrupted changes, and of the watchdog's rollback.

use std::{fs, time::Duration};

use super::{MTU, json, read};
use crate::support::{
    traced::{self, End, Then},
    tuned::{Practice, on_a_host, same, within},
};

#[test]
fn the_next_command_of_any_kind_tells_of_a_crash_and_it_can_be_finished() {
    on_a_host(|host| {
        let asks = [
            "apply",
            "--no-confirm",
            "nic.v0.mtu=1400",
            "nic.v0.txqueuelen=700",
            "nic.v1.mtu=1400",
        ];
        let end = traced::tune(host.state.path(), &asks, &mut |_| {
            if read("/sys/class/net/v0/tx_queue_len") == "700" { Then::Kill } else { Then::GoOn }
        });
        assert_eq!(end, End::Killed);
        let mut any = host.command(host.state.path(), &[]);
        any = {
            let mut c = std::process::Command::new(any.get_program());
            c.args(["schema", "watch"]).env("NETWRIGHT_STATE", host.state.path());
            c
        };
        let out = any.output().unwrap();
        let reported = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(
            reported.contains("change 1 was interrupted after")
                && reported.contains("tune rollback 1"),
            "{reported}"
        );
        let (code, _, err) = host.tune(&["apply", "nic.v0.mtu=1300"]);
        assert!(code == 4 && err.contains("change 1 was interrupted"), "{err}");
        assert_eq!(host.tune(&["status"]).0, 1);
        let (code, out, _) = host.tune(&["apply", "--finish", "1", "--dry-run"]);
        let would = "nic.v0.txqueuelen: 700 would be written (it was 1000)";
        assert!(code == 0 && out.contains(would) && !out.contains("nic.v0.mtu"), "{out}");
        let (code, out, err) = host.tune(&["apply", "--finish", "1"]);
        assert_eq!(code, 0, "{out}{err}");
        assert_eq!((read(MTU), read("/sys/class/net/v1/mtu")), ("1400".into(), "1400".into()));
        let (code, _, _) = host.tune(&["rollback"]);
        assert_eq!((code, read(MTU)), (0, "1500".into()));
    });
}

#[test]
fn completing_that_fails_names_what_it_leaves() {
    on_a_host(|host| {
        let asks = [
            "apply",
            "--no-confirm",
            "nic.v0.mtu=1400",
            "nic.v0.txqueuelen=700",
            "nic.v1.mtu=1400",
        ];
        let end = traced::tune(host.state.path(), &asks, &mut |_| {
            if read("/sys/class/net/v1/mtu") == "1400" { Then::Kill } else { Then::GoOn }
        });
        assert_eq!(end, End::Killed);
        // Another process sets the written value, or the value to be written, which ends the
        // change.
        fs::write(MTU, "1350").unwrap();
        fs::write("/sys/class/net/v0/tx_queue_len", "900").unwrap();
        let (code, out, err) = host.tune(&["apply", "--finish", "1", "--json"]);
        assert!(
            code == 4 && err.contains("nic.v0.txqueuelen was 1000 and is 900 now"),
            "{code} {err}"
        );
        let reported = "nic.v0.mtu is 1350, neither ours (1400) nor the old value (1500)";
        assert!(err.contains(reported) && err.contains("it is left as it is"), "{err}");
        assert!(err.contains("`netwright tune rollback 1 --force` overwrites it"), "{err}");
        let outcome = json(&out);
        let drifted = outcome["drifted"].as_array().unwrap();
        assert_eq!(drifted.len(), 1, "{outcome}");
        assert_eq!(
            (&drifted[0]["knob"], &drifted[0]["found"]),
            (&"nic.v0.mtu".into(), &"1350".into())
        );
        assert_eq!((read(MTU), read("/sys/class/net/v1/mtu")), ("1350".into(), "1500".into()));
        assert_eq!(read("/sys/class/net/v0/tx_queue_len"), "900", "never begun");
    });
}

#[test]
fn what_may_cut_the_own_connection_is_undone_unless_confirmed() {
    on_a_host(|host| {
        let before = host.print();
        let over_ssh = |args: &[&str]| {
            let mut c = host.command(host.state.path(), args);
            c.env("SSH_CONNECTION", "10.9.0.2 50000 10.9.0.1 22").output().unwrap()
        };
        let out = over_ssh(&["plan", "nic.v0.mtu=1400"]);
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        assert!(text.contains("may cut your own connection"), "{text}");
        let other = over_ssh(&["plan", "nic.v1.mtu=1400"]);
        assert!(!String::from_utf8_lossy(&other.stdout).contains("own connection"));

        // By default there is a watchdog; a confirmed change stays.
        let out = over_ssh(&["apply", "nic.v0.mtu=1400", "--json"]);
        assert!(out.status.success());
        let outcome = json(&String::from_utf8_lossy(&out.stdout));
        assert_eq!(outcome["set"]["state"], "awaiting_confirmation");
        let (code, _, err) = host.tune(&["apply", "nic.v1.mtu=1400"]);
        assert!(code == 4 && err.contains("waits for a confirmation"), "{err}");
        assert_eq!(host.tune(&["confirm"]).0, 0);
        assert_eq!(host.tune(&["rollback"]).0, 0);

        // Without confirmation it is rolled back.
        assert!(over_ssh(&["apply", "nic.v0.mtu=1400", "--confirm", "5s"]).status.success());
        within(Duration::from_secs(30), "the watchdog undoes", || read(MTU) == "1500");
        let rolled_back =
            || json(&host.tune(&["log", "--json"]).1)["sets"][1]["state"] == "rolled_back";
        within(Duration::from_secs(30), "the watchdog says so", rolled_back);
        let (code, out, _) = host.tune(&["confirm", "2"]);
        assert!(code == 1 && out.contains("Too late"), "{out}");
        same(&before, &host.print(), "after the watchdog");
    });
}

#[test]
fn a_watchdog_that_is_gone_is_reported_before_its_time_is_over() {
    on_a_host(|host| {
        assert_eq!(host.tune(&["apply", "nic.v0.txqueuelen=700", "--confirm", "1h"]).0, 0);
        let status = || json(&host.tune(&["status", "--json"]).1);
        assert_eq!(
            (host.tune(&["status"]).0, &status()["sets"][0]["watchdog_running"]),
            (0, &json("true"))
        );
        let journal = fs::read_to_string(host.state.path().join("journal/000001.jsonl")).unwrap();
        let armed = journal.lines().map(json).find(|r| r["event"] == "armed").unwrap();
        let watchdog = i32::try_from(armed["pid"].as_i64().unwrap()).unwrap();
        // SAFETY: our own watchdog, whose number the journal tells.
        assert_eq!(unsafe { libc::kill(watchdog, libc::SIGKILL) }, 0);
        let gone = || status()["sets"][0]["watchdog_running"] == json("false");
        within(Duration::from_secs(30), "it ends", gone);
        assert_eq!(status()["sets"][0]["undone_within_ms"]["absent"], "its watchdog is gone");
        let (code, out, _) = host.tune(&["status"]);
        assert!(
            code == 1 && out.contains("its watchdog is gone; `netwright tune confirm 1"),
            "{out}"
        );
        assert_eq!(host.tune(&["rollback"]).0, 0);
    });
}

#[test]
fn the_guard_undoes_also_when_the_tool_is_killed_in_the_middle() {
    on_a_host(|host| {
        let before = host.print();
        let asks = [
            "apply",
            "--confirm",
            "2s",
            "nic.v0.mtu=1400",
            "nic.v0.txqueuelen=700",
            "nic.v1.mtu=1400",
        ];
        let mut child = host
            .command(host.state.path(), &asks)
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        // However far it gets.
        within(Duration::from_secs(30), "it begins", || {
            read(MTU) == "1400" || child.try_wait().unwrap().is_some()
        });
        let _ = child.kill();
        child.wait().unwrap();
        within(Duration::from_secs(30), "the watchdog undoes", || host.print() == before);
    });
}

#[test]
fn what_a_watchdog_will_undo_of_an_interrupted_change_is_reported() {
    on_a_host(|host| {
        let asks = ["apply", "--confirm", "1h", "nic.v0.mtu=1400", "nic.v0.txqueuelen=700"];
        assert_eq!(host.tune(&asks).0, 0);
        interrupted(host);
        let (code, out, _) = host.tune(&["status"]);
        assert!(code == 1 && out.contains("its watchdog undoes it in 35"), "{code} {out}");
        let set = &json(&host.tune(&["status", "--json"]).1)["sets"][0];
        assert!(set["state"] == "unfinished" && set["watchdog_running"] == true, "{set}");
        assert!(set["undone_within_ms"].as_u64().unwrap() > 3_400_000, "{set}");
        assert!(set["confirm_within_ms"]["absent"].is_string(), "{set}");
        let (_, _, err) = host.tune(&["plan", "nic.v0.mtu=1300"]);
        assert!(err.contains("its watchdog undoes it in 35"), "{err}");
        assert_eq!(host.tune(&["rollback"]).0, 0);
    });
}

/// Removes its last record, as after a kill.
fn interrupted(host: &Practice) {
    let journal = host.state.path().join("journal/000001.jsonl");
    let whole = fs::read_to_string(&journal).unwrap();
    let (before, last) = whole.trim_end().rsplit_once('\n').unwrap();
    assert_eq!(json(last)["event"], "applied");
    fs::write(&journal, format!("{before}\n")).unwrap();
}

#[test]
fn what_is_completed_has_a_guard_of_its_own() {
    on_a_host(|host| {
        let watchdogs = || -> Vec<i32> {
            let text = fs::read_to_string(host.state.path().join("journal/000001.jsonl")).unwrap();
            let armed = text.lines().map(json).filter(|r| r["event"] == "armed");
            armed.map(|r| r["pid"].as_i64().unwrap() as i32).collect()
        };
        // SAFETY: signal 0 only checks for existence.
        let lives = |pid: i32| unsafe { libc::kill(pid, 0) } == 0;
        let asks = ["apply", "--confirm", "1h", "nic.v0.mtu=1400", "nic.v0.txqueuelen=700"];
        assert_eq!(host.tune(&asks).0, 0);
        interrupted(host);
        let (code, out, err) = host.tune(&["apply", "--finish", "1", "--confirm", "30m"]);
        assert!(code == 0 && out.contains("It is undone in 17"), "{out}{err}");
        let both = watchdogs();
        assert_eq!(both.len(), 2);
        within(Duration::from_secs(30), "the first one leaves", || !lives(both[0]));
        assert_eq!(read(MTU), "1400");
        // An ended process is no watchdog.
        interrupted(host);
        let (code, _, err) = host.tune(&["apply", "--finish", "1", "--no-confirm"]);
        assert!(code == 2 && err.contains("was begun with a watchdog"), "{err}");
        // SAFETY: a watchdog of ours.
        assert_eq!(unsafe { libc::kill(both[1], libc::SIGKILL) }, 0);
        let (code, out, err) = host.tune(&["apply", "--finish", "1", "--confirm", "5s"]);
        assert_eq!(code, 0, "{out}{err}");
        within(Duration::from_secs(30), "the third one undoes", || read(MTU) == "1500");
    });
}

#[test]
fn what_reaches_beyond_a_network_namespace_is_reported() {
    on_a_host(|host| {
        let (code, out, _) = host.tune(&["plan", "sysctl.vm.swappiness=61", "nic.v0.mtu=1400"]);
        let reported =
            "sysctl.vm.swappiness is the whole host's, not only this network namespace's";
        assert!(code == 0 && out.contains(reported), "{out}");
        let (_, out, _) = host.tune(&["plan", "nic.v0.mtu=1400"]);
        assert!(!out.contains("whole host's"), "{out}");
        // What a namespace does not permit could not be restored there.
        let allowed = read("/proc/sys/net/ipv4/tcp_allowed_congestion_control");
        let available = read("/proc/sys/net/ipv4/tcp_available_congestion_control");
        let mut other = available.split(' ').filter(|a| !allowed.split(' ').any(|b| b == *a));
        if let Some(other) = other.next() {
            let change_request = format!("sysctl.net.ipv4.tcp_congestion_control={other}");
            let (code, _, err) = host.tune(&["apply", &change_request]);
            assert!(code == 4 && err.contains("tcp_allowed_congestion_control"), "{code} {err}");
        }
    });
}

#[test]
fn completing_from_afar_what_was_begun_at_the_host_waits_for_a_confirmation() {
    on_a_host(|host| {
        assert_eq!(host.tune(&["apply", "--no-confirm", "nic.v0.mtu=1400"]).0, 0);
        interrupted(host);
        let finish = ["apply", "--finish", "1"];
        let afar = |args: &[&str]| {
            let mut c = host.command(host.state.path(), args);
            c.env("SSH_CONNECTION", "10.9.0.2 50000 10.9.0.1 22").output().unwrap()
        };
        fs::write(MTU, "1450").unwrap();
        let (code, _, err) = host.tune(&[&finish[..], &["--dry-run"]].concat());
        assert!(code == 4 && err.contains("nic.v0.mtu is 1450 now, and was 1400"), "{err}");
        fs::write(MTU, "1400").unwrap();
        let out = afar(&[&finish[..], &["--no-confirm"]].concat());
        assert!(!String::from_utf8_lossy(&out.stdout).contains("unless"), "{out:?}");
        interrupted(host);
        let out = afar(&finish);
        let said = String::from_utf8_lossy(&out.stdout);
        assert!(
            out.status.success() && said.contains("unless `netwright tune confirm 1"),
            "{out:?}"
        );
        assert_eq!(host.tune(&["rollback"]).0, 0);
    });
}
