//! Tests of permissions: root of the host, root of a user namespace, and other users.

use std::fs;

use super::{json, read};
use crate::support::{
    output, run,
    tuned::{on_a_host, same},
};

#[test]
fn what_privilege_is_missing_is_named_before_the_first_write() {
    on_a_host(|host| {
        let before = host.print();
        // A journal belongs to one user.
        let theirs = tempfile::tempdir().unwrap();
        std::os::unix::fs::chown(theirs.path(), Some(65534), None).unwrap();
        let folder_of = |who: &[&str]| {
            let folder = if who.contains(&"65534") { &theirs } else { &host.state };
            folder.path().to_str().unwrap()
        };
        let (fin, place) =
            ("sysctl.net.ipv4.tcp_fin_timeout=31", format!("process.{}.affinity=1", host.pid()));
        let nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"];
        let net_only =
            [&nobody[..], &["--inh-caps", "+net_admin", "--ambient-caps", "+net_admin"]].concat();
        let root_without = ["setpriv", "--bounding-set", "-net_admin", "--inh-caps", "-net_admin"];
        let other_users = ["unshare", "-U", "--map-root-user"];
        let whole = "CAP_NET_ADMIN is missing";
        let file = "/sys/class/net/v0/mtu may be written by its owner, root, alone";
        for (who, ask, lacks) in [
            (&nobody[..], ["nic.v0.mtu=1400", fin], vec![whole, file, "tcp_fin_timeout may be"]),
            // The kernel setting comes first in the plan, and is permitted; the rest is not.
            (&net_only, ["nic.v0.mtu=1400", fin], vec![file]),
            (&net_only, [place.as_str(), fin], vec!["CAP_SYS_NICE is missing"]),
            (&root_without, ["nic.v0.txqueuelen=700", fin], vec![whole]),
            (&root_without, ["nic.v0.channels=rx 2 tx 2", fin], vec![whole]),
            (&other_users, ["nic.v0.channels=rx 2 tx 2", fin], vec!["another user namespace"]),
        ] {
            let run_as = |args: &[&str]| {
                let state = ["--state-dir", folder_of(who)];
                let words = [who, &[crate::support::NETWRIGHT, "tune"], args, &state].concat();
                let out = output(words[0], &words[1..]);
                let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
                (out.status.code().unwrap(), text(&out.stdout), text(&out.stderr))
            };
            for dry_run in [&["--dry-run"][..], &[]] {
                let (code, _, err) = run_as(&[&["apply"], dry_run, &ask].concat());
                assert_eq!(code, 3, "{who:?} {ask:?}: {err}");
                for lack in &lacks {
                    assert!(err.contains(lack), "{who:?} {ask:?}: no {lack:?} in {err}");
                }
                let other = [whole, file].into_iter().find(|w| !lacks.contains(w));
                assert!(other.is_none_or(|o| !err.contains(o)), "{who:?} {ask:?}: {err}");
                assert!(err.contains("nothing was written") && err.lines().count() == 1, "{err}");
            }
            let (code, out, err) = run_as(&[&["plan", "--json"][..], &ask].concat());
            assert_eq!((code, json(&out)["changes"].as_array().unwrap().len()), (0, 2), "{err}");
            assert!(json(&out)["notes"].to_string().contains("could not apply it"), "{out}");
        }
        same(&before, &host.print(), "without privilege");
        for folder in [&theirs, &host.state] {
            assert_eq!(fs::read_dir(folder.path().join("journal")).unwrap().count(), 0);
        }
        // Each makes the changes that it may make.
        for who in [&net_only[..], &root_without] {
            let state = ["--state-dir", folder_of(who)];
            for (command, now) in [(&["apply", fin][..], "31"), (&["rollback"], "60")] {
                let words = [who, &[crate::support::NETWRIGHT, "tune"], command, &state].concat();
                run(words[0], &words[1..]);
                assert_eq!(read("/proc/sys/net/ipv4/tcp_fin_timeout"), now);
            }
        }
        same(&before, &host.print(), "after what was permitted");
    });
}

/// Root of a user namespace with its own network namespace: some files of interfaces are for the
/// host's root alone.
#[test]
fn root_of_a_user_namespace_changes_what_the_kernel_lets_it() {
    let state = tempfile::tempdir().unwrap();
    let tune =
        format!("{} tune apply --state-dir {}", crate::support::NETWRIGHT, state.path().display());
    let script = format!(
        "mount -t sysfs sysfs /sys && ip link add v0 type veth peer name v1 || exit 9
         {tune} nic.v0.txqueuelen=700 && exit 8
         echo 700 > /sys/class/net/v0/tx_queue_len && exit 7
         {tune} nic.v0.mtu=1400 sysctl.net.ipv4.tcp_fin_timeout=31 nic.v0.features.rx-gro=off || exit 6
         cat /sys/class/net/v0/mtu /proc/sys/net/ipv4/tcp_fin_timeout"
    );
    let out = output("unshare", &["-U", "--map-root-user", "-n", "-m", "sh", "-c", &script]);
    let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
    let (said, err) = (text(&out.stdout), text(&out.stderr));
    assert!(out.status.success(), "{} {said}{err}", out.status);
    assert!(said.ends_with("1400\n31\n"), "{said}");
    assert!(err.contains("CAP_NET_ADMIN of the host's first user namespace is missing"), "{err}");
}

/// Containers and practice hosts share a disk, and with it the journal, but not their settings.
#[test]
fn each_namespace_rolls_its_own_change_back() {
    on_a_host(|host| {
        let state = host.state.path().to_str().unwrap();
        let other = crate::support::Namespace::new();
        let there = |args: &[&str]| {
            let words = [&["tune"], args, &["--state-dir", state]].concat();
            other.run(crate::support::NETWRIGHT, &words)
        };
        let knob = "sysctl.net.ipv4.tcp_fin_timeout";
        let file = "/proc/sys/net/ipv4/tcp_fin_timeout";
        let before = read(file);
        assert_eq!(host.tune(&["apply", &format!("{knob}=33")]).0, 0);
        there(&["apply", &format!("{knob}=44")]);
        let status = json(&host.tune(&["status", "--json"]).1);
        assert_eq!(status["values"].as_array().unwrap().len(), 2, "{status}");
        let (code, said, err) = host.tune(&["rollback"]);
        assert!(code == 0 && said.contains("Change 1 is rolled back"), "{said}{err}");
        assert_eq!(read(file), before);
        // Nothing of this namespace remains; the command enters the other one.
        let (code, said, err) = host.tune(&["rollback"]);
        assert!(code == 0 && said.contains("Change 2 is rolled back"), "{said}{err}");
        assert_eq!(other.run("cat", &[file]).trim(), before.trim());
    });
}
