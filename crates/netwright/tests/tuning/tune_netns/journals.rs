//! Tests of journals that are damaged, newer, or not writable, and of their lock.

use std::{
    fs,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use super::{namespace, tune, wait_for};
use crate::support::{NETWRIGHT, Namespace, output, watchdogs::has_lock};

#[test]
fn a_journal_that_makes_no_sense_is_no_empty_one() {
    let ns = namespace();
    let state = tempfile::tempdir().unwrap();
    let change_request = "sysctl.net.ipv4.tcp_fin_timeout=31";
    assert_eq!(tune(state.path(), &["apply", change_request, "--netns", &ns.name]).0, 0);
    let file = state.path().join("journal/000001.jsonl");
    let whole = fs::read_to_string(&file).unwrap();
    let rest = whole.split_once('\n').unwrap().1;
    for damaged in [format!("garbage\n{rest}"), "garbage\n".to_owned()] {
        fs::write(&file, damaged).unwrap();
        for command in ["status", "rollback", "log"] {
            let (code, said, reported) = tune(state.path(), &[command]);
            assert_eq!(code, 4, "{command}: {said}{reported}");
            assert!(
                reported.contains("000001.jsonl") && reported.contains("damaged"),
                "{command}: {reported}"
            );
            assert!(!said.contains("No active changes"), "{command}: {said}");
        }
        // A command that uses no journal does not report it.
        for (args, reported) in
            [(&["inspect", "--json"][..], false), (&["tune", "plan", change_request], true)]
        {
            let mut command = Command::new(NETWRIGHT);
            let out = command.args(args).env("NETWRIGHT_STATE", state.path()).output().unwrap();
            let said = String::from_utf8_lossy(&out.stderr);
            assert_eq!(said.contains("000001.jsonl"), reported, "{args:?}: {said}");
        }
    }
    fs::write(&file, whole).unwrap();
    assert_eq!(tune(state.path(), &["rollback"]).0, 0);
    assert_eq!(ns.run("sysctl", &["-n", "net.ipv4.tcp_fin_timeout"]).trim(), "60");
}

/// A JSON object as a line of a journal.
fn sealed(object: &str) -> String {
    String::from_utf8(tune::journal::sealed(object.as_bytes())).unwrap()
}

/// The journal as a later version would write it.
fn made_newer(journal: &str) -> String {
    let (first, rest) = journal.split_once('\n').unwrap();
    let bare = first.split_once(",\"crc32\"").unwrap().0;
    let newer = bare.replacen("\"schema_version\":1", "\"schema_version\":2", 1);
    format!("{}\n{rest}", sealed(&format!("{newer}}}")))
}

/// A flipped bit on the disk: no change may count as undone, or as never made.
#[test]
fn a_flipped_bit_in_a_journal_is_damage_whatever_it_tells() {
    let (ns, state) = (namespace(), tempfile::tempdir().unwrap());
    let asks = ["apply", "--netns", &ns.name, "nic.v0.txqueuelen=500"];
    assert_eq!(tune(state.path(), &asks).0, 0);
    let file = state.path().join("journal/000001.jsonl");
    let whole = fs::read(&file).unwrap();
    let at = |what: &str| {
        let found = whole.windows(what.len()).position(|w| w == what.as_bytes());
        found.unwrap_or_else(|| panic!("no {what:?}"))
    };
    for byte in
        [0, at("begin"), at("\"old\":\"1000") + 7, at("writing"), at("applied"), whole.len() - 2]
    {
        let mut flipped = whole.clone();
        flipped[byte] ^= 1;
        fs::write(&file, &flipped).unwrap();
        for args in
            [&["status"][..], &["rollback"], &["apply", "nic.v0.mtu=1400", "--netns", &ns.name]]
        {
            let (code, out, err) = tune(state.path(), args);
            let reported = err.contains("000001.jsonl") && err.contains("damaged");
            assert!(code == 4 && reported, "byte {byte}, {args:?}: {code} {out}{err}");
        }
    }
    fs::write(&file, &whole).unwrap();
    assert_eq!(tune(state.path(), &["rollback"]).0, 0);
}

#[test]
fn what_a_newer_netwright_wrote_is_reported_and_left_to_it() {
    let ns = namespace();
    let state = tempfile::tempdir().unwrap();
    let asks = ["sysctl.net.ipv4.tcp_fin_timeout=31", "nic.v0.mtu=1400"];
    for ask in asks {
        assert_eq!(tune(state.path(), &["apply", ask, "--netns", &ns.name]).0, 0);
    }
    let file = state.path().join("journal/000001.jsonl");
    let whole = fs::read_to_string(&file).unwrap();
    let newer = [
        made_newer(&whole),
        format!("{whole}{}\n", sealed(r#"{"seq":9,"at_unix_ms":5,"event":"put_aside"}"#)),
    ];
    let line = |out: &str, version: &str| {
        let line = format!("written by a newer netwright ({version}); use that one");
        let out = out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(out.contains("000001.jsonl") && out.contains(&line), "no {line:?} in {out}");
    };
    for (journal, version) in newer.iter().zip(["schema_version 2", "record \"put_aside\""]) {
        fs::write(&file, journal).unwrap();
        let one = ["rollback", "1"];
        let dry_run = ["rollback", "1", "--dry-run"];
        let finish = ["apply", "--finish", "1"];
        let apply = ["apply", "sysctl.net.ipv4.tcp_syn_retries=5", "--netns", &ns.name];
        for args in [&one[..], &dry_run, &finish, &["confirm", "1"], &["status"], &["log"], &apply]
        {
            let (code, out, err) = tune(state.path(), args);
            assert_eq!(code, 4, "{args:?}: {out}{err}");
            line(&err, version);
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), *journal);
    }
    // The other change set continues; the incomplete rollback is reported.
    let (code, out, err) = tune(state.path(), &["rollback", "--all"]);
    assert_eq!(code, 1, "{out}{err}");
    line(&out, "record \"put_aside\"");
    assert!(ns.run("ip", &["link", "show", "v0"]).contains("mtu 1500"), "{out}{err}");
    assert_eq!(ns.run("sysctl", &["-n", "net.ipv4.tcp_fin_timeout"]).trim(), "31");
    fs::write(&file, whole).unwrap();
    assert_eq!(tune(state.path(), &["rollback", "1"]).0, 0);
    assert_eq!(ns.run("sysctl", &["-n", "net.ipv4.tcp_fin_timeout"]).trim(), "60");
}

/// The writes of a newer version are unknown: nothing below them is rolled back.
#[test]
fn a_change_beneath_a_newer_netwrights_is_left_and_a_later_one_goes_on() {
    let (ns, state) = (namespace(), tempfile::tempdir().unwrap());
    let apply = |ask: &str| {
        let (code, out, err) = tune(state.path(), &["apply", ask, "--netns", &ns.name]);
        assert_eq!(code, 0, "{out}{err}");
    };
    let value = || ns.run("sysctl", &["-n", "net.ipv4.tcp_fin_timeout"]).trim().to_owned();
    for ask in ["sysctl.net.ipv4.tcp_fin_timeout=31", "sysctl.net.ipv4.tcp_fin_timeout=32"] {
        apply(ask);
    }
    apply("nic.v0.mtu=1400");
    let file = state.path().join("journal/000002.jsonl");
    let whole = fs::read_to_string(&file).unwrap();
    fs::write(&file, made_newer(&whole)).unwrap();
    let reported = "change 2 was made later by a newer netwright and may have set the same";
    // The later one continues; the earlier one stays.
    let (code, out, err) = tune(state.path(), &["rollback", "--all"]);
    let folded = out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(code == 1 && folded.contains(reported), "{code} {out}{err}");
    assert!(ns.run("ip", &["link", "show", "v0"]).contains("mtu 1500"), "{out}{err}");
    assert_eq!(value(), "32");
    for more in [&["1"][..], &["1", "--dry-run"], &[], &["--all"]] {
        let (code, out, err) = tune(state.path(), &[&["rollback"], more].concat());
        assert!(code == 4 && err.contains(reported), "{more:?}: {code} {out}{err}");
        assert_eq!(err.lines().filter(|l| l.contains(reported)).count(), 1, "{err}");
        assert_eq!(value(), "32", "{more:?}");
    }
    // An interrupted one is no exception.
    let first = state.path().join("journal/000001.jsonl");
    let all = fs::read_to_string(&first).unwrap();
    let cut = all.lines().filter(|l| !l.contains("\"applied\""));
    fs::write(&first, cut.map(|l| format!("{l}\n")).collect::<String>()).unwrap();
    let (code, out, err) = tune(state.path(), &["rollback", "--unfinished"]);
    assert!(code == 4 && err.contains(reported), "{code} {out}{err}");
    assert_eq!(value(), "32");
    fs::write(&first, all).unwrap();
    fs::write(&file, whole).unwrap();
    let (code, out, err) = tune(state.path(), &["rollback", "--all"]);
    assert_eq!((code, value().as_str()), (0, "60"), "{out}{err}");
}

#[test]
fn a_state_folder_that_is_no_folder_is_exit_code_4() {
    let state = tempfile::tempdir().unwrap();
    let file = state.path().join("file");
    fs::write(&file, "").unwrap();
    let journal = state.path().join("with");
    fs::create_dir(&journal).unwrap();
    fs::write(journal.join("journal"), "").unwrap();
    let reported = [(&file, file.clone()), (&journal, journal.join("journal"))];
    for (place, named) in &reported {
        let place = place.to_str().unwrap();
        for args in [&["status"][..], &["log"], &["rollback"], &["confirm"], &["rollback", "--all"]]
        {
            let (code, out, err) = tune(state.path(), &[args, &["--state-dir", place]].concat());
            let line = format!("{}: is no folder", named.display());
            assert!(code == 4 && err.contains(&line), "{args:?}: {code} {out}{err}");
        }
    }
    let none = state.path().join("none");
    let (code, out, err) = tune(&none, &["status"]);
    assert!(code == 0 && out.contains("No active changes"), "{code} {out}{err}");
}

#[test]
fn a_journal_that_may_not_be_read_is_exit_code_3() {
    use std::os::unix::fs::PermissionsExt as _;
    let (ns, state) = (namespace(), tempfile::tempdir().unwrap());
    let state = state.path();
    let (code, out, err) = tune(state, &["apply", "--netns", &ns.name, "nic.v0.txqueuelen=500"]);
    assert_eq!(code, 0, "{out}{err}");
    let folder = state.join("journal");
    let mode = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(state, 0o755);
    // In the format of an earlier netwright, then in the present one.
    mode(&folder, 0o755);
    for (path, bits) in [(folder.join("000001.jsonl"), 0o600), (folder.clone(), 0o700)] {
        mode(&path, bits);
        for command in ["status", "log"] {
            let nobody = ["--reuid", "65534", "--regid", "65534", "--clear-groups", NETWRIGHT];
            let mut args = nobody.to_vec();
            args.extend(["tune", command, "--state-dir", state.to_str().unwrap()]);
            let out = output("setpriv", &args);
            let err = String::from_utf8_lossy(&out.stderr).into_owned();
            let reported = format!("{}: not permitted", path.display());
            assert!(out.status.code() == Some(3) && err.contains(&reported), "{command}: {err}");
        }
    }
}

/// A user who could write the journal could make root write anything; one who can lock it keeps the
/// watchdog from its rollback.
#[test]
fn nobody_else_writes_the_journal_or_holds_the_lock() {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
    let (ns, state) = (namespace(), tempfile::tempdir().unwrap());
    let parent = state.path();
    let state = parent.join("new");
    let apply =
        |change_request: &str| tune(&state, &["apply", "--netns", &ns.name, change_request]);
    assert_eq!(apply("nic.v0.txqueuelen=500").0, 0);
    let (folder, lock) = (state.join("journal"), state.join("lock"));
    let file = folder.join("000001.jsonl");
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    let modes = || [&state, &folder, &lock, &file].map(|p| mode(p));
    assert_eq!(modes(), [0o700, 0o700, 0o600, 0o600]);

    // Files that an earlier netwright left open to others are closed before they are needed.
    let set = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    for (path, bits) in [(parent, 0o755), (&state, 0o755), (&folder, 0o755), (&lock, 0o644)] {
        set(path, bits);
    }
    assert_eq!(apply("nic.v0.mtu=1400").0, 0);
    assert_eq!(modes(), [0o700, 0o700, 0o600, 0o600]);
    let nobody =
        ["--reuid", "65534", "--clear-groups", "flock", "-s", lock.to_str().unwrap(), "true"];
    assert!(!output("setpriv", &nobody).status.success(), "nobody has the lock");
    assert_eq!(tune(&state, &["rollback"]).0, 0);

    let refused = |why: &str| {
        for args in [&["status"][..], &["log"], &["rollback"], &["apply", "nic.lo.mtu=65000"]] {
            let (code, out, err) = tune(&state, args);
            assert!(code == 4 && err.contains(why), "{args:?}: {code} {out}{err}");
            assert_eq!(ns.run("cat", &["/sys/class/net/v0/tx_queue_len"]).trim(), "500");
        }
    };
    let whole = fs::read_to_string(&file).unwrap();
    for path in [&file, &folder, &state] {
        chown(path, Some(65534), None).unwrap();
        refused("belongs to user 65534");
        chown(path, Some(0), None).unwrap();
        let before = mode(path);
        set(path, before | 0o002);
        refused("others may write to it");
        set(path, before);
    }
    let elsewhere = parent.join("elsewhere");
    fs::rename(&file, &elsewhere).unwrap();
    symlink(&elsewhere, &file).unwrap();
    refused("is a symbolic link");
    fs::rename(&elsewhere, &file).unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), whole);
    fs::write(&elsewhere, "kept").unwrap();
    fs::remove_file(&lock).unwrap();
    symlink(&elsewhere, &lock).unwrap();
    refused("is a symbolic link");
    assert_eq!(fs::read(&elsewhere).unwrap(), b"kept");
    fs::remove_file(&lock).unwrap();
    assert_eq!(tune(&state, &["rollback"]).0, 0);
}

/// A permitted process is named as the holder, and does not stop the watchdog.
#[test]
fn a_lock_that_is_held_keeps_the_guard_for_a_bound_only() {
    let (ns, state) = (namespace(), tempfile::tempdir().unwrap());
    let state = state.path();
    let asks = ["apply", "--netns", &ns.name, "--confirm", "5s", "nic.v0.txqueuelen=500"];
    assert_eq!(tune(state, &asks).0, 0);
    let lock = state.join("lock");
    let mut holder = Command::new("flock");
    let mut holder =
        holder.args(["-s", "-o", lock.to_str().unwrap(), "sleep", "60"]).spawn().unwrap();
    let held = |why: &str| {
        let (code, out, err) = tune(state, &["rollback", "--no-wait"]);
        assert!(code == 4 && err.contains(why), "{code} {out}{err}");
    };
    wait_for("the holder", || has_lock(holder.id()));
    held(&format!("process {} is changing this host", holder.id()));
    let qlen = || ns.run("cat", &["/sys/class/net/v0/tx_queue_len"]).trim().to_owned();
    assert_eq!(qlen(), "500");
    let begun = Instant::now();
    wait_for("the watchdog", || qlen() == "1000");
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    wait_for("its word", || {
        fs::read_to_string(state.join("journal/000001.jsonl")).unwrap().contains("rolled_back")
    });
    holder.kill().unwrap();
    holder.wait().unwrap();
    let (code, out, err) = tune(state, &["rollback"]);
    assert!(code == 0 && out.contains("No active changes"), "{out}{err}");
}

/// Without a spare descriptor, an unreadable value is not taken for a missing one.
#[test]
fn without_descriptors_nothing_is_said_to_be_absent() {
    let (ns, state) = (namespace(), tempfile::tempdir().unwrap());
    let asks = ["apply", "--netns", &ns.name, "nic.v0.txqueuelen=500"];
    assert_eq!(tune(state.path(), &asks).0, 0);
    let folder = state.path().display().to_string();
    let mut refused = 0;
    for limit in 3..12 {
        for command in ["status", "log", "rollback --dry-run", "apply nic.v0.mtu=1400", "rollback"]
        {
            let line =
                format!("ulimit -n {limit}; exec {NETWRIGHT} tune {command} --state-dir {folder}");
            let out = ns.output("sh", &["-c", &line]);
            let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
            let (said, reported) = (text(&out.stdout), text(&out.stderr));
            let when = format!("{limit} descriptors, {command}: {:?} {said}{reported}", out.status);
            assert!(!said.contains("No active changes") && !said.contains("no change"), "{when}");
            refused += i32::from(reported.contains("EMFILE"));
            if command == "rollback" && out.status.success() {
                assert!(said.contains("Change 1 is rolled back"), "{when}");
                assert_eq!(ns.run("cat", &["/sys/class/net/v0/tx_queue_len"]).trim(), "1000");
                assert!(refused >= 3, "only {refused} were refused");
                return;
            }
            // The failed change has not begun.
            let begun = state.path().join("journal/000002.jsonl").exists();
            assert_eq!(begun, command.starts_with("apply") && out.status.success(), "{when}");
            if begun {
                assert_eq!(tune(state.path(), &["rollback", "2"]).0, 0);
                fs::remove_file(state.path().join("journal/000002.jsonl")).unwrap();
            }
        }
    }
    panic!("rollback never went through");
}

/// Runs commands in the namespace, with the state folder on its own file system.
fn on_its_own_file_system(ns: &Namespace, state: &Path, script: &str) -> String {
    let head = format!(
        "set -e; S={}; N='{NETWRIGHT} tune'; mount -t tmpfs -o mode=700 tmpfs $S; export NETWRIGHT_STATE=$S; \
         qlen() {{ cat /sys/class/net/v0/tx_queue_len; }}; ",
        state.display()
    );
    ns.run("sh", &["-c", &format!("{head}{script}")])
}

#[test]
fn a_guard_whose_journal_became_read_only_undoes_and_records_it_later() {
    let (ns, state) = (namespace(), tempfile::tempdir().unwrap());
    let out = on_its_own_file_system(
        &ns,
        state.path(),
        "$N apply --confirm 2s nic.v0.txqueuelen=500 >$S/out; mount -o remount,ro $S; \
         for i in $(seq 100); do [ $(qlen) = 1000 ] && break; sleep 0.1; done; qlen; sleep 1.5; \
         ip link set v0 txqueuelen 700; mount -o remount,rw $S; \
         for i in $(seq 100); do grep -q rolled_back $S/journal/*1.jsonl && break; sleep 0.1; done; \
         qlen; $N log --json",
    );
    let (before, log) = out.split_at(out.find('{').unwrap());
    // Rolled back once; a value set afterwards is left alone.
    assert_eq!(before.split_whitespace().collect::<Vec<_>>(), ["1000", "700"], "{out}");
    let log: serde_json::Value = serde_json::from_str(log).unwrap();
    assert_eq!(log["sets"][0]["state"], "rolled_back", "{out}");
    assert!(out.contains("it was not confirmed in time"), "{out}");
}

/// A stopped watchdog, beside one that has rolled back and could not record it yet.
#[test]
fn a_confirmation_after_the_deadline_says_what_came_first() {
    let (ns, state) = (namespace(), tempfile::tempdir().unwrap());
    let out = on_its_own_file_system(
        &ns,
        state.path(),
        "watchdog() { sed -n 's/.*\"armed\",\"pid\":\\([0-9]*\\).*/\\1/p' $S/journal/*$1.jsonl; }; \
         $N apply --confirm 5s nic.v0.txqueuelen=500 >$S/out; kill -STOP $(watchdog 1); sleep 5.2; \
         $N confirm; echo code $?; kill -CONT $(watchdog 1); \
         while [ -e /proc/$(watchdog 1) ]; do sleep 0.1; done; qlen; $N rollback; \
         $N apply --confirm 5s nic.v0.txqueuelen=500 >$S/out; mount -o remount,ro $S; \
         for i in $(seq 100); do [ $(qlen) = 1000 ] && break; sleep 0.1; done; \
         kill -STOP $(watchdog 2); mount -o remount,rw $S; $N confirm || echo code $?; \
         kill -CONT $(watchdog 2); while [ -e /proc/$(watchdog 2) ]; do sleep 0.1; done; \
         qlen; $N status",
    );
    let said = out.split_whitespace().collect::<Vec<_>>().join(" ");
    let kept = "Change 1 is confirmed and stays; its time was over, and its watchdog had not begun to \
                undo it. code 0 500 Change 1 is rolled back";
    assert!(said.contains(kept), "{out}");
    let late = "Too late: change 2 was undone, and its journal could not be written: nic.v0.txqueuelen is \
                1000 again; `netwright tune rollback 2` closes it. code 1 1000 No active changes";
    assert!(said.contains(late), "{out}");
}

#[test]
fn a_read_only_journal_is_rolled_back_from_and_says_that_nothing_was_recorded() {
    let (ns, state) = (namespace(), tempfile::tempdir().unwrap());
    let out = on_its_own_file_system(
        &ns,
        state.path(),
        "$N apply --no-confirm nic.v0.txqueuelen=500 >$S/out; mount -o remount,ro $S; \
         $N rollback || echo code $?; qlen; $N apply --no-confirm nic.v0.txqueuelen=600 2>&1 || \
         echo code $?; qlen; mount -o remount,rw $S; $N rollback; echo code $?",
    );
    assert!(out.contains("The journal could not be written"), "{out}");
    assert!(out.contains("the file system is read-only"), "{out}");
    assert_eq!(out.matches("\n1000\n").count(), 2, "{out}");
    assert!(out.trim_end().ends_with("code 0"), "{out}");
}
