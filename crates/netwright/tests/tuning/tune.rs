//! `tune` on a host of the test's own: what is promised, knob by knob and fault by fault.

use std::{
    fs,
    os::fd::AsRawFd,
    path::Path,
    time::{Duration, Instant},
};

use crate::support::{
    heeding, output, run,
    traced::{self, End, Then},
    tuned::{Practice, on_a_host, same},
};
use serde_json::Value;

const MTU: &str = "/sys/class/net/v0/mtu";

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap().trim().to_owned()
}

/// Waits for something that takes its time, on a machine of any speed.
fn within(most: Duration, what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < most, "{what}: not within {most:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn every_knob_is_applied_as_the_classic_tools_see_it_and_undone_exactly() {
    on_a_host(|host| {
        let before = host.print();
        let changes = host.changes();
        let mut args = vec!["apply", "--no-confirm", "--json"];
        args.extend(changes.iter().map(String::as_str));
        let (code, out, err) = host.tune(&args);
        assert_eq!(code, 0, "{out}{err}");
        let outcome = json(&out);
        assert_eq!(outcome["set"]["state"], "in_force");
        assert_eq!(outcome["set"]["made"], changes.len());

        let sysctl = |key: &str| {
            run("sysctl", &["-n", key]).split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(sysctl("net.core.somaxconn"), "8192");
        assert_eq!(sysctl("net.ipv4.tcp_keepalive_time"), "600");
        assert_eq!(sysctl("net.ipv4.tcp_rmem"), "4096 131072 67108864");
        assert_eq!(
            sysctl("net.ipv4.conf.v0.forwarding"),
            "1",
            "ip_forward reaches every interface"
        );
        let link = run("ip", &["link", "show", "v0"]);
        assert!(link.contains("mtu 1400") && link.contains("qlen 500"), "{link}");
        let channels = run("ethtool", &["-l", "v0"]);
        let now = channels.split("Current").nth(1).unwrap();
        assert!(now.contains("RX:\t\t2") && now.contains("TX:\t\t2"), "{channels}");
        let mask =
            |f: &str| u32::from_str_radix(&read(&format!("/sys/class/net/{f}")), 16).unwrap();
        assert_eq!(mask("v0/queues/rx-0/rps_cpus"), 3);
        assert_eq!(mask("v1/queues/tx-1/xps_cpus"), 2);
        assert_eq!(read("/sys/class/net/v1/queues/rx-3/rps_flow_cnt"), "1024");
        assert_eq!(read("/sys/class/net/v0/gro_flush_timeout"), "20000");
        let features = run("ethtool", &["-k", "v1"]);
        assert!(features.contains("tx-tcp-segmentation: off"), "{features}");
        let waiting = run("tc", &["-d", "qdisc", "show", "dev", "v0"]);
        assert!(waiting.contains("pfifo") && waiting.contains("limit 500p"), "{waiting}");
        let waiting = run("tc", &["-d", "qdisc", "show", "dev", "v1"]);
        assert!(waiting.contains("mq") && waiting.matches("limit 200Kb").count() == 4, "{waiting}");
        let placed = run("taskset", &["-a", "-c", "-p", &host.pid().to_string()]);
        assert!(placed.trim_end().ends_with("list: 1"), "{placed}");

        let own = format!("/netwright-{}", host.pid());
        assert!(host.cgroup().ends_with(&own), "{}", host.cgroup());
        let status = read(&format!("/proc/{}/status", host.pid()));
        assert!(status.contains("Mems_allowed_list:\t0\n"), "{status}");

        let (code, out, err) = host.tune(&["status", "--json"]);
        assert_eq!(code, 0, "{out}{err}");
        assert_eq!(json(&out)["values"].as_array().unwrap().len(), changes.len());
        let (code, out, err) = host.tune(&["rollback"]);
        assert_eq!(code, 0, "{out}{err}");
        same(&before, &host.print(), "after the rollback");
        let (code, out, _) = host.tune(&["rollback"]);
        assert!(code == 0 && out.contains("nothing was written"), "{out}");
    });
}

#[test]
fn a_plan_writes_nothing_and_says_what_it_refuses_and_why() {
    on_a_host(|host| {
        let before = host.print();
        for (ask, code, why) in [
            ("nic.v0.blue=1", 2, "no such knob"),
            ("sysctl.net.core.somaxconn=10M", 2, "a number of connections"),
            ("sysctl.net.ipv4.tcp_rmem=16777216", 2, "takes 3 numbers"),
            ("sysctl.net.ipv4.tcp_fin_timeout=1500ms", 2, "a number of s"),
            ("nic.v0.mtu=99999999", 2, "out of range"),
            ("nic.v0.queue.rx-0.rfs_flows=100", 2, "rounds 100 up to 128"),
            ("nic.v0.queue.rx-0.rps_cpus=cpus:4000", 4, "not online"),
            ("nic.v0.queue.rx-9.rps_cpus=1", 4, "not there"),
            ("nic.gone.mtu=1400", 4, "no such interface here; there are lo, v"),
            ("nic.v0.mtuu=1400", 2, "did you mean nic.NIC.mtu=BYTES?"),
            ("sysclt.net.core.somaxconn=1", 2, "did you mean sysctl.…?"),
            ("process.no-such-one.affinity=0", 4, "no process of the name no-such-one runs"),
            ("nic.v0.gro_flush_timeout=20MB", 2, "is no time"),
            ("nic.v0.rings.rx=512", 4, "not supported"),
            ("nic.v0.pause.rx=off", 4, "not supported"),
            ("nic.v0.features.no-such=on", 4, "no such feature"),
            ("nic.v0.features.l2-fwd-offload=on", 4, "does not let it change"),
            ("nic.v0.coalesce.rx_usecs=1h", 4, "not supported"),
            ("nic.v0.channels=combined 2", 4, "no combined channels"),
            ("process.1.cpuset=9999", 4, "not online"),
            ("process.1.cpuset=0 mems 77", 4, "there is no node 77"),
            ("process.1.cpuset=0 and 1", 2, "is not CPUS"),
            ("nic.v0.qdisc=htb", 2, "is none of default"),
            ("nic.v0.qdisc=fq limit", 2, "a value is missing"),
            ("nic.lo.qdisc=mq pfifo", 4, "leave out mq"),
            ("nic.v0.ntuple=on", 4, "rx-ntuple-filter"),
            ("irq.affinity=close", 2, "is no policy"),
            ("irq.affinity=local:v0", 4, "no interrupt is known"),
            ("cpu.governor=performance", 4, "no CPU of this host shows"),
            ("cpu.idle_limit=0", 2, "write none, or poll"),
            ("nic.v0.mtu=9000", 4, "ask for nic.v1.mtu=9000 in the same plan"),
            ("sysctl.net.ipv4.tcp_congestion_control=none-such", 4, "offers"),
            ("sysctl.vm.drop_caches=3", 1, "an act"),
            ("sysctl.net.ipv4.tcp_fastopen_key=1-2-3-4", 1, "secret"),
            ("sysctl.net.ipv4.tcp_sack=0", 1, "loss recovery"),
            ("sysctl.net.ipv4.tcp_timestamps=0", 1, "wrapped sequence numbers"),
            ("sysctl.net.core.somaxconn=16", 1, "below this kernel's own default"),
            ("net.core.somaxconn=16", 1, "below this kernel's own default"),
            ("sysctl.net.ipv4.tcp_retries2=3", 1, "RFC 1122"),
            ("sysctl.net.ipv4.tcp_fack=1", 1, "no effect: it does nothing any more"),
            ("sysctl.net.ipv4.tcp_tw_recycle=1", 4, "Linux 4.12 took it away"),
            ("sysctl.kernel.poweroff_cmd=/bin/true", 1, "netwright never does that"),
            ("sysctl.kernel.randomize_va_space=0", 1, "netwright never does that"),
            ("sysctl.net.ipv4.ping_group_range=0 1", 1, "does not know this setting"),
            ("sysctl.net.core.somaxcon=1", 2, "did you mean sysctl.net.core.somaxconn?"),
            ("nic.v0.mtu=1000", 1, "IPv6"),
            ("nonsense", 4, "no such file"),
            ("=1", 2, "not KNOB=VALUE"),
        ] {
            for verb in ["plan", "apply"] {
                let (got, out, err) = host.tune(&[verb, ask]);
                assert_eq!(got, code, "{verb} {ask}: {out}{err}");
                assert!(err.contains(why), "{verb} {ask}: {err}");
            }
        }
        let empty = host.state.path().join("empty");
        fs::write(&empty, "# nothing\n").unwrap();
        let (code, _, err) = host.tune(&["apply", empty.to_str().unwrap()]);
        assert!(code == 2 && err.contains("empty"), "{err}");
        fs::write(&empty, "nic.v0.mtu=1400\nnic.v0.mtu=1300\n").unwrap();
        let (code, _, err) = host.tune(&["plan", empty.to_str().unwrap()]);
        assert!(code == 2 && err.contains("line 2"), "{err}");
        fs::write(&empty, "nonsense\n").unwrap();
        let (code, _, err) = host.tune(&["plan", empty.to_str().unwrap()]);
        assert!(code == 2 && err.contains("/empty: line 1: "), "{err}");
        let (code, out, _) = host.tune(&["apply", "--dry-run", "nic.v0.mtu=1400"]);
        assert!(code == 0 && out.contains("nic.v0.mtu  1500  1400 bytes"), "{out}");
        same(&before, &host.print(), "after plans only");
        assert!(
            !host.state.path().join("journal").exists()
                || fs::read_dir(host.state.path().join("journal")).unwrap().next().is_none()
        );
    });
}

#[test]
fn a_plan_for_another_host_or_other_values_is_refused_whole() {
    on_a_host(|host| {
        let file = host.state.path().join("plan.json");
        let name = file.to_str().unwrap();
        let ask =
            ["plan", "sysctl.net.ipv4.tcp_fin_timeout=30", "nic.v0.mtu=1400", "--json", "-o", name];
        assert_eq!(host.tune(&ask).0, 0);
        let plan = json(&fs::read_to_string(&file).unwrap());
        let before = host.print();
        for (key, value, why) in [
            ("/host/machine_id", Value::from("another"), "another host"),
            ("/host/boot_id", Value::from("another"), "another boot"),
            ("/host/net_namespace", Value::from(1), "another network namespace"),
            ("/changes/1/old", Value::from("9000"), "step 2 of 2: nic.v0.mtu was 9000"),
            ("/schema_version", Value::from(999), "schema_version"),
        ] {
            let mut other = plan.clone();
            *other.pointer_mut(key).unwrap() = value;
            fs::write(&file, other.to_string()).unwrap();
            let (code, _, err) = host.tune(&["apply", name]);
            assert!(matches!(code, 2 | 4) && err.contains(why), "{key}: {code} {err}");
            same(&before, &host.print(), key);
        }
        fs::write(&file, plan.to_string()).unwrap();
        let (code, _, err) = host.tune(&["apply", name]);
        assert_eq!(code, 0, "{err}");
        assert_eq!(read(MTU), "1400");
    });
}

#[test]
fn what_the_kernel_makes_something_else_of_is_undone_with_all_before_it() {
    on_a_host(|host| {
        let before = host.print();
        // A range the wrong way round is silently "1 0" (`ipv4_ping_group_range`).
        let (first, group) =
            ("sysctl.net.ipv4.tcp_fin_timeout=30", "sysctl.net.ipv4.ping_group_range=5 4");
        let asks = ["apply", first, group, "--i-understand"];
        let (code, _, err) = host.tune(&asks);
        assert_eq!(code, 4, "{err}");
        assert!(err.contains("5 4 was written and the kernel made 1 0 of it"), "{err}");
        assert!(err.contains("Everything was put back"), "{err}");
        let (_, log, _) = host.tune(&["log"]);
        assert!(!log.contains("somebody"), "the kernel made it: {log}");
        same(&before, &host.print(), "after a silent clamp");
    });
}

#[test]
fn a_read_only_proc_sys_in_the_middle_undoes_what_came_before() {
    on_a_host(|host| {
        let before = host.print();
        host.read_only("/proc/sys/net/ipv4");
        let asks =
            ["apply", "sysctl.net.core.somaxconn=8192", "sysctl.net.ipv4.tcp_fin_timeout=30"];
        let (code, _, err) = host.tune(&asks);
        assert_eq!(code, 4, "{err}");
        assert!(err.contains("read-only") && err.contains("Everything was put back"), "{err}");
        same(&before, &host.print(), "after a read-only /proc/sys");
    });
}

#[test]
fn what_a_rollback_left_is_in_status_and_goes_with_all() {
    on_a_host(|host| {
        let before = host.print();
        let asks =
            ["apply", "sysctl.net.core.somaxconn=8192", "sysctl.net.ipv4.tcp_fin_timeout=30"];
        assert_eq!(host.tune(&asks).0, 0);
        host.read_only("/proc/sys/net/ipv4");
        let (code, out, _) = host.tune(&["rollback", "--all"]);
        assert!(code == 1 && out.contains("tune rollback 1"), "{code} {out}");
        let (code, out, _) = host.tune(&["status"]);
        assert_eq!(code, 1, "{out}");
        for reported in ["partly rolled back", "tune rollback 1` tries again", "not put back:\n"] {
            assert!(out.contains(reported), "no {reported:?} in {out}");
        }
        let status = json(&host.tune(&["status", "--json"]).1);
        let values = status["values"].as_array().unwrap();
        assert_eq!(values.len(), 1, "only what is left: {status}");
        assert_eq!(values[0]["knob"], "sysctl.net.ipv4.tcp_fin_timeout");
        assert_eq!(values[0]["drift"]["kind"], "not_put_back");
        let (_, _, err) = host.tune(&["plan", "nic.v0.mtu=1400"]);
        assert!(err.contains("change 1 is only partly rolled back"), "{err}");

        run("umount", &["/proc/sys/net/ipv4"]);
        // A later change of what is left holds, and change 1 is left all the same.
        assert_eq!(host.tune(&["apply", "sysctl.net.ipv4.tcp_fin_timeout=20"]).0, 0);
        let (code, out, _) = host.tune(&["status"]);
        assert!(code == 1 && out.contains("partly rolled back"), "{code} {out}");
        assert_eq!(host.tune(&["rollback", "2"]).0, 0);
        let (code, out, _) = host.tune(&["rollback", "--all", "--dry-run"]);
        assert!(code == 0 && out.contains("tcp_fin_timeout would be 60 again"), "{out}");
        assert!(!out.contains("somaxconn"), "{out}");
        let (code, out, err) = host.tune(&["rollback", "--all"]);
        assert_eq!(code, 0, "{out}{err}");
        same(&before, &host.print(), "after the second try");
        let (code, out, _) = host.tune(&["status"]);
        assert!(code == 0 && out.contains("No active changes"), "{out}");
    });
}

#[test]
fn a_full_disk_at_any_size_leaves_the_host_as_it_was_or_as_asked() {
    on_a_host(|host| {
        let before = host.print();
        let changes = host.changes();
        let mut args = vec!["apply", "--no-confirm"];
        args.extend(changes.iter().map(String::as_str));
        let (mut failed, mut made) = (0, 0);
        // The journal is some twenty kilobytes; a page at a time.
        for pages in 1..=20 {
            let disk = host.small_disk(pages * 4096);
            let (code, _, err) = host.tune_in(disk.path(), &args);
            if code == 0 {
                made += 1;
                assert_eq!(host.tune_in(disk.path(), &["rollback"]).0 & !1, 0);
            } else {
                failed += 1;
                assert!(code == 4 && err.contains("no space"), "{pages} pages: {code} {err}");
            }
            same(&before, &host.print(), &format!("{pages} pages of disk"));
            run("umount", &[disk.path().to_str().unwrap()]);
        }
        assert!(failed >= 3 && made >= 1, "{failed} full, {made} not: the sizes test nothing");
    });
}

#[test]
fn a_device_that_vanishes_in_the_middle_is_named_and_the_rest_is_undone() {
    on_a_host(|host| {
        let sysctls = || {
            ["core/somaxconn", "ipv4/tcp_fin_timeout"].map(|k| read(&format!("/proc/sys/net/{k}")))
        };
        let before = sysctls();
        let asks = [
            "apply",
            "--no-confirm",
            "sysctl.net.core.somaxconn=8192",
            "sysctl.net.ipv4.tcp_fin_timeout=30",
            "nic.v0.mtu=1400",
            "nic.v0.txqueuelen=500",
        ];
        let end = traced::tune(host.state.path(), &asks, &mut |_| {
            if fs::read_to_string(MTU).is_ok_and(|mtu| mtu.trim() == "1400") {
                host.pull_out();
            }
            Then::GoOn
        });
        assert_eq!(end, End::Exited(4));
        assert!(!Path::new(MTU).exists(), "it was not pulled out");
        assert_eq!(sysctls(), before);
        let (_, out, _) = host.tune(&["log", "--json"]);
        let set = &json(&out)["sets"][0];
        assert_eq!(set["state"], "rolled_back");
        let reported = "nic.v0.mtu: gone with its value (v0 is gone from this network namespace)";
        assert!(set["trouble"].to_string().contains(reported), "{set}");
    });
}

#[test]
fn the_second_waits_for_the_first_or_refuses_at_once() {
    on_a_host(|host| {
        assert_eq!(host.tune(&["apply", "nic.v0.txqueuelen=700"]).0, 0);
        let lock = fs::OpenOptions::new().write(true).open(host.state.path().join("lock")).unwrap();
        // SAFETY: the descriptor is open.
        assert_eq!(unsafe { libc::flock(lock.as_raw_fd(), libc::LOCK_EX) }, 0);
        let (code, _, err) = host.tune(&["apply", "--no-wait", "nic.v0.mtu=1400"]);
        assert!(code == 4 && err.contains("is changing this host right now"), "{err}");
        let second = || {
            let command = host.command(host.state.path(), &["apply", "nic.v0.mtu=1400"]);
            let mut command = heeding(command, libc::SIGINT);
            let waits = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
            std::thread::sleep(Duration::from_millis(400));
            assert_eq!(read(MTU), "1500");
            waits
        };
        // Whoever waits has begun nothing: Ctrl-C ends it there and then.
        let mut waits = second();
        // SAFETY: our own child, which was not waited for yet.
        assert_eq!(unsafe { libc::kill(waits.id().cast_signed(), libc::SIGINT) }, 0);
        assert!(!waits.wait().unwrap().success());
        let waits = second();
        drop(lock);
        let out = waits.wait_with_output().unwrap();
        assert!(out.status.success());
        assert!(String::from_utf8_lossy(&out.stderr).contains("waiting for"), "it said nothing");
        assert_eq!(read(MTU), "1400");
    });
}

#[test]
fn an_older_change_goes_after_the_newer_one_and_drift_is_told() {
    on_a_host(|host| {
        let before = host.print();
        assert_eq!(host.tune(&["apply", "nic.v0.mtu=1400", "nic.v0.txqueuelen=700"]).0, 0);
        assert_eq!(host.tune(&["apply", "nic.v0.mtu=1300"]).0, 0);
        let (code, _, err) = host.tune(&["rollback", "1"]);
        assert!(code == 4 && err.contains("roll that back first"), "{err}");
        fs::write(MTU, "1350").unwrap();
        let (code, out, _) = host.tune(&["status"]);
        assert!(code == 1 && out.contains("changed since"), "{out}");
        assert_eq!(host.tune(&["rollback", "--force"]).0, 0);
        assert_eq!(read(MTU), "1400");
        assert_eq!(host.tune(&["rollback"]).0, 0);
        same(&before, &host.print(), "after both");
    });
}

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
        // Somebody sets what was made, and what was to be made, which ends it.
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

        // By default there is a watchdog; confirmed, the change stays.
        let out = over_ssh(&["apply", "nic.v0.mtu=1400", "--json"]);
        assert!(out.status.success());
        let outcome = json(&String::from_utf8_lossy(&out.stdout));
        assert_eq!(outcome["set"]["state"], "awaiting_confirmation");
        let (code, _, err) = host.tune(&["apply", "nic.v1.mtu=1400"]);
        assert!(code == 4 && err.contains("waits for a confirmation"), "{err}");
        assert_eq!(host.tune(&["confirm"]).0, 0);
        assert_eq!(host.tune(&["rollback"]).0, 0);

        // Not confirmed it is undone.
        assert!(over_ssh(&["apply", "nic.v0.mtu=1400", "--confirm", "1s"]).status.success());
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
fn a_guard_that_is_gone_is_told_before_its_time_is_over() {
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
        // However far it comes.
        within(Duration::from_secs(30), "it begins", || {
            read(MTU) == "1400" || child.try_wait().unwrap().is_some()
        });
        let _ = child.kill();
        child.wait().unwrap();
        within(Duration::from_secs(30), "the watchdog undoes", || host.print() == before);
    });
}

#[test]
fn what_a_guard_will_undo_of_a_change_that_was_cut_short_is_told() {
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

/// Before its last record, as after a kill.
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
        // SAFETY: signal 0 only asks.
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
        // One that is gone is no watchdog.
        interrupted(host);
        let (code, _, err) = host.tune(&["apply", "--finish", "1", "--no-confirm"]);
        assert!(code == 2 && err.contains("was begun with a watchdog"), "{err}");
        // SAFETY: a watchdog of ours.
        assert_eq!(unsafe { libc::kill(both[1], libc::SIGKILL) }, 0);
        let (code, out, err) = host.tune(&["apply", "--finish", "1", "--confirm", "1s"]);
        assert_eq!(code, 0, "{out}{err}");
        within(Duration::from_secs(30), "the third one undoes", || read(MTU) == "1500");
    });
}

#[test]
fn what_reaches_beyond_a_network_namespace_is_told() {
    on_a_host(|host| {
        let (code, out, _) = host.tune(&["plan", "sysctl.vm.swappiness=61", "nic.v0.mtu=1400"]);
        let reported =
            "sysctl.vm.swappiness is the whole host's, not only this network namespace's";
        assert!(code == 0 && out.contains(reported), "{out}");
        let (_, out, _) = host.tune(&["plan", "nic.v0.mtu=1400"]);
        assert!(!out.contains("whole host's"), "{out}");
        // What is not allowed in a namespace could not be put back there.
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

#[test]
fn a_discipline_comes_back_with_its_options_or_is_not_touched() {
    on_a_host(|host| {
        let tc = |words: &str| {
            let mut args = vec!["qdisc", "replace", "dev", "v1", "root"];
            args.extend(words.split(' '));
            run("tc", &args);
        };
        tc("handle 5: tbf rate 7mbit burst 9k latency 40ms");
        let before = host.print();
        for ask in ["nic.v1.qdisc=pfifo limit 9", "nic.v1.qdisc=mq", "nic.v1.qdisc=default"] {
            let (code, _, err) = host.tune(&["apply", ask]);
            assert_eq!(code, 0, "{ask}: {err}");
            assert_ne!(host.print(), before, "{ask}");
            let (code, out, err) = host.tune(&["rollback"]);
            assert_eq!(code, 0, "{ask}: {out}{err}");
            same(&before, &host.print(), ask);
        }
        tc("handle 6: htb");
        let (code, _, err) = host.tune(&["apply", "nic.v1.qdisc=pfifo"]);
        assert!(code == 4 && err.contains("htb is there, and could not be put back"), "{err}");
        let there = run("tc", &["qdisc", "show", "dev", "v1"]);
        assert!(there.contains("htb 6: root"), "{there}");
    });
}

/// All threads of all processes of the group, those that start later too; undone with them in it.
#[test]
fn a_cpuset_holds_for_those_that_start_later_and_is_dissolved_around_them() {
    on_a_host(|host| {
        let mut shell = std::process::Command::new("sh")
            .args(["-c", "read a; sleep 1000 & echo $!; read b; kill $!"])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let pid = shell.id();
        let allowed = |pid: u32| {
            let status = read(&format!("/proc/{pid}/status"));
            let line = status.lines().find(|l| l.starts_with("Cpus_allowed_list")).unwrap();
            line.split_whitespace().last().unwrap().to_owned()
        };
        let all = allowed(pid);
        let (code, _, err) = host.tune(&["apply", &format!("process.{pid}.cpuset=1")]);
        assert_eq!(code, 0, "{err}");
        let mut ears = std::io::BufReader::new(shell.stdout.take().unwrap());
        let mut mouth = shell.stdin.take().unwrap();
        let mut line = String::new();
        std::io::Write::write_all(&mut mouth, b"go\n").unwrap();
        std::io::BufRead::read_line(&mut ears, &mut line).unwrap();
        let child: u32 = line.trim().parse().unwrap();
        assert_eq!((allowed(pid), allowed(child)), ("1".into(), "1".into()));
        // It may not leave by itself.
        run("taskset", &["-c", "-p", "0-1", &child.to_string()]);
        assert_eq!(allowed(child), "1");
        let (code, out, err) = host.tune(&["rollback"]);
        assert_eq!(code, 0, "{out}{err}");
        assert_eq!(allowed(pid), all);
        assert!(
            !Path::new(&format!("{}/netwright-{pid}", crate::support::tuned::CPUSETS)).exists()
        );
        drop(mouth);
        shell.wait().unwrap();
    });
}

#[test]
fn what_privilege_is_missing_is_named_before_the_first_write() {
    on_a_host(|host| {
        let before = host.print();
        // A journal is one user's.
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
        // What each of them may, it does.
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

/// Root of a user namespace, with a network namespace of its own: some files of interfaces are for the
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
        // Nothing of this namespace is left: the other's, which is gone to.
        let (code, said, err) = host.tune(&["rollback"]);
        assert!(code == 0 && said.contains("Change 2 is rolled back"), "{said}{err}");
        assert_eq!(other.run("cat", &[file]).trim(), before.trim());
    });
}

/// What no namespace has of its own, on a folder laid out like a host.
#[test]
fn an_interrupt_is_moved_and_moved_back_on_a_folder() {
    let tree = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let file = tree.path().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    };
    write(
        "proc/interrupts",
        "           CPU0       CPU1\n 38:        100          0   PCI-MSI 1-edge      eth0-rx-0\n",
    );
    write("proc/irq/38/smp_affinity_list", "0-1\n");
    write("proc/irq/38/effective_affinity_list", "0\n");
    write("sys/devices/system/cpu/online", "0-1\n");
    write("sys/devices/system/cpu/present", "0-1\n");
    write("sys/devices/system/cpu/possible", "0-1\n");
    let tune = |args: &[&str]| tune_folder(tree.path(), args);
    let file = tree.path().join("proc/irq/38/smp_affinity_list");
    let (code, err) = tune(&["apply", "irq.38.affinity=7"]);
    assert!(code == 4 && err.contains("CPU 7 is not online"), "{err}");
    let (code, err) = tune(&["apply", "irq.38.affinity=1"]);
    assert_eq!(code, 0, "{err}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "1");
    assert_eq!(tune(&["status"]).0, 0);
    assert_eq!(tune(&["rollback"]).0, 0);
    assert_eq!(fs::read_to_string(&file).unwrap(), "0-1\n", "byte for byte");
    assert!(tree.path().join("var/lib/netwright/journal/000001.jsonl").exists());
}

/// A `.link` file's match is not evaluated: it is named for whatever it sets, on any interface.
#[test]
fn the_file_that_sets_a_knob_at_boot_is_named_as_its_owner() {
    let tree = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let file = tree.path().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    };
    let nic = "sys/class/net/eth0";
    write(&format!("{nic}/tx_queue_len"), "1000\n");
    write(&format!("{nic}/threaded"), "0\n");
    write(&format!("{nic}/address"), "52:54:00:00:00:01\n");
    write(&format!("{nic}/ifindex"), "2\n");
    let link = "/etc/systemd/network/10-fast.link";
    let text = "[Match]\nOriginalName=eth*\n[Link]\nTransmitQueueLength=2000\n";
    write(link.trim_start_matches('/'), text);
    let change_requests = ["nic.eth0.txqueuelen=4000", "nic.eth0.threaded=on"];
    let root = tree.path().to_str().unwrap();
    let args = [&["tune", "plan", "--json", "--root", root], &change_requests[..]].concat();
    let plan = json(&run(crate::support::NETWRIGHT, &args));
    let owner = |knob: &str| {
        let changes = plan["changes"].as_array().unwrap();
        let change = changes.iter().find(|c| c["knob"] == knob).unwrap();
        change["owner"].as_str().unwrap().to_owned()
    };
    assert_eq!(owner("nic.eth0.txqueuelen"), link, "{plan}");
    assert_eq!(owner("nic.eth0.threaded"), "", "the file says nothing of it: {plan}");
}

#[test]
fn a_profile_raises_what_is_low_leaves_what_is_high_and_skips_what_is_not_here() {
    on_a_host(|host| {
        // What is there now decides what a profile has to do.
        run("sysctl", &["-qw", "net.core.somaxconn=128", "net.ipv4.tcp_max_syn_backlog=65536"]);
        let low = host.print();
        let args = ["plan", "--profile", "web", "--nic", "v0", "--json"];
        let (code, out, err) = host.tune(&args);
        assert_eq!(code, 0, "{out}{err}");
        let plan = json(&out);
        let find = |list: &str, knob: &str| {
            let all = plan[list].as_array().unwrap();
            all.iter().find(|c| c["knob"] == knob).cloned().unwrap_or_default()
        };
        let raised = find("changes", "sysctl.net.core.somaxconn");
        assert_eq!((raised["old"].as_str(), raised["new"].as_str()), (Some("128"), Some("8192")));
        assert!(raised["why"].as_str().unwrap().contains("bursts"), "{raised}");
        let stays = find("unchanged", "sysctl.net.ipv4.tcp_max_syn_backlog");
        assert_eq!(stays["value"], "65536", "it is more than the profile wants");
        assert_eq!(find("refused", "nic.v0.coalesce.adaptive_rx")["kind"], "environment");
        same(&low, &host.print(), "after a plan only");

        let (code, out, err) = host.tune(&["apply", "--profile", "web", "--nic", "v0"]);
        assert_eq!(code, 0, "{out}{err}");
        assert!(err.contains("left out (profile web, line "), "{err}");
        assert_eq!(run("sysctl", &["-n", "net.core.somaxconn"]).trim(), "8192");
        assert_eq!(run("sysctl", &["-n", "net.ipv4.tcp_notsent_lowat"]).trim(), "131072");
        assert_eq!(host.tune(&["rollback"]).0, 0);
        same(&low, &host.print(), "after the rollback");
    });
}

#[test]
fn no_profile_lowers_anything_below_the_kernels_default() {
    on_a_host(|host| {
        for name in ["database", "latency", "storage-node", "throughput-10g", "web"] {
            let (code, out, err) = host.tune(&["plan", "--profile", name, "--nic", "v0", "--json"]);
            assert_eq!(code, 0, "{name}: {out}{err}");
            let plan = json(&out);
            for r in plan["refused"].as_array().unwrap() {
                let knob = r["knob"].as_str().unwrap();
                // What a veth has not, and what only the first namespace has.
                assert!(r["kind"] == "environment" || r["kind"] == "denied", "{name}: {knob}: {r}");
            }
            let all = ["changes", "unchanged", "refused"];
            let lines: usize = all.iter().map(|l| plan[l].as_array().unwrap().len()).sum();
            assert!(lines >= 6, "{name}: {lines}");
        }
    });
}

#[test]
fn the_recipe_of_2008_is_refused_line_by_line() {
    on_a_host(|host| {
        let (code, out, err) =
            host.tune(&["plan", "--profile", "lore-2008", "--nic", "v0", "--json"]);
        assert_eq!(code, 1, "{out}{err}");
        let plan = json(&out);
        assert_eq!(plan["changes"].as_array().unwrap().len(), 0, "{out}");
        assert_eq!(plan["unchanged"].as_array().unwrap().len(), 0, "{out}");
        let refused = plan["refused"].as_array().unwrap();
        assert_eq!(refused.len(), 16);
        for (knob, why) in [
            ("sysctl.net.ipv4.tcp_sack", "loss recovery"),
            ("sysctl.net.ipv4.tcp_timestamps", "wrap"),
            ("sysctl.net.ipv4.tcp_mem", "pages"),
            ("sysctl.net.ipv4.tcp_rmem", "every socket"),
            ("sysctl.net.core.netdev_max_backlog", "RPS"),
            ("setpci -d 8086:1a48 e6.b", "bare offset"),
            ("nic.v0.mtu", "every hop"),
            ("service irqbalance", "reset"),
        ] {
            let r = refused.iter().find(|r| r["knob"] == knob).unwrap_or_else(|| panic!("{knob}"));
            assert_eq!(r["kind"], "harmful", "{r}");
            assert!(r["why"].as_str().unwrap().contains(why), "{r}");
        }
        let (code, _, err) = host.tune(&["apply", "--profile", "lore-2008"]);
        assert!(code == 2 && err.contains("nothing of it can be applied"), "{code}: {err}");
        let (code, out, _) = host.tune(&["profiles"]);
        assert!(code == 0 && out.contains("lore-2008") && out.contains("COUNTER-EXAMPLE"), "{out}");
        let (code, out, _) = host.tune(&["profiles", "storage-node"]);
        assert!(code == 0 && out.contains("throughput-10g, line"), "{out}");
        let (code, _, err) = host.tune(&["plan", "--profile", "blue"]);
        assert!(code == 2 && err.contains("there is no profile \"blue\""), "{err}");
    });
}

#[test]
fn all_changes_go_with_one_command_the_last_first() {
    on_a_host(|host| {
        let before = host.print();
        for value in ["30", "31", "32"] {
            let change = format!("sysctl.net.ipv4.tcp_keepalive_intvl={value}");
            assert_eq!(host.tune(&["apply", &change]).0, 0);
        }
        assert_eq!(host.tune(&["apply", "sysctl.net.core.somaxconn=8192"]).0, 0);
        assert_eq!(host.tune(&["rollback", "4"]).0, 0);
        let (code, out, _) = host.tune(&["rollback", "--all", "--dry-run"]);
        assert!(code == 0 && out.contains("would be 31 again"), "{out}");
        let (code, out, err) = host.tune(&["rollback", "--all"]);
        assert_eq!(code, 0, "{err}");
        let ids: Vec<&str> = out.lines().filter_map(|l| l.split(' ').nth(1)).collect();
        assert_eq!(ids, ["3", "2", "1"], "{out}");
        same(&before, &host.print(), "after all went back");
        let (code, out, _) = host.tune(&["rollback", "--all"]);
        assert!(code == 0 && out.contains("No active changes"), "{out}");
        assert_eq!(host.tune(&["rollback", "--all", "2"]).0, 2);
    });
}

/// Exit code and standard error of `netwright tune ARGS` on a folder.
fn tune_folder(tree: &Path, args: &[&str]) -> (i32, String) {
    let out = std::process::Command::new(crate::support::NETWRIGHT)
        .arg("tune")
        .args(args)
        .arg("--root")
        .arg(tree)
        .output()
        .unwrap();
    (out.status.code().unwrap(), String::from_utf8_lossy(&out.stderr).into_owned())
}

/// Governors and idle states are no guest's.
#[test]
fn governors_and_idle_limits_are_set_and_put_back_on_a_folder() {
    let tree = tempfile::tempdir().unwrap();
    let cpu = tree.path().join("sys/devices/system/cpu");
    let write = |path: &str, text: &str| {
        let file = cpu.join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    };
    for file in ["online", "present", "possible"] {
        write(file, "0-3\n");
    }
    for id in 0..4 {
        write(&format!("cpu{id}/online"), "1\n");
        write(&format!("cpu{id}/power/pm_qos_resume_latency_us"), "0\n");
        write(&format!("cpu{id}/cpufreq/scaling_governor"), "powersave\n");
        write(&format!("cpu{id}/cpufreq/affected_cpus"), &format!("{id}\n"));
        write(&format!("cpu{id}/cpufreq/energy_performance_preference"), "balance_power\n");
        let policy = format!("cpufreq/policy{id}");
        write(&format!("{policy}/affected_cpus"), &format!("{id}\n"));
        write(&format!("{policy}/scaling_governor"), "powersave\n");
    }
    let read = |path: &str| fs::read_to_string(cpu.join(path)).unwrap();
    let ask = ["apply", "cpu.governor=performance", "cpu.idle_limit=10us", "cpu.2.idle_limit=poll"];
    let (code, err) = tune_folder(tree.path(), &ask);
    assert!(code == 2 && err.contains("asks for it too"), "{err}");
    let (code, err) = tune_folder(tree.path(), &ask[..3]);
    assert_eq!(code, 0, "{err}");
    for id in 0..4 {
        assert_eq!(read(&format!("cpu{id}/cpufreq/scaling_governor")), "performance");
        assert_eq!(read(&format!("cpu{id}/power/pm_qos_resume_latency_us")), "10");
    }
    assert_eq!(tune_folder(tree.path(), &["status"]).0, 0);
    // What intel_pstate does in the write itself; afterwards it is somebody's, who is told of.
    write("cpu1/cpufreq/energy_performance_preference", "performance\n");
    assert_eq!(tune_folder(tree.path(), &["status"]).0, 1);
    let (code, err) = tune_folder(tree.path(), &["rollback", "--force"]);
    assert_eq!(code, 0, "{err}");
    for id in 0..4 {
        assert_eq!(read(&format!("cpu{id}/cpufreq/scaling_governor")), "powersave\n");
        assert_eq!(read(&format!("cpu{id}/power/pm_qos_resume_latency_us")), "0\n");
        let leans = read(&format!("cpu{id}/cpufreq/energy_performance_preference"));
        assert_eq!(leans.trim(), "balance_power", "what the governor took along");
    }
}

/// A register is written only when that is asked for twice, and put back.
#[test]
fn a_pci_request_size_is_guarded_and_put_back_on_a_folder() {
    let tree = tempfile::tempdir().unwrap();
    let folder = tree.path().join("sys/bus/pci/devices/0000:02:00.0");
    fs::create_dir_all(&folder).unwrap();
    fs::create_dir_all(tree.path().join("proc")).unwrap();
    let mut space = vec![0x5au8; 256];
    space[..4].copy_from_slice(&[0x86, 0x80, 0x72, 0x15]);
    (space[6], space[0x0e], space[0x34]) = (0x10, 0, 0x80);
    space[0x80..0x82].copy_from_slice(&[0x10, 0]);
    space[0x88..0x8a].copy_from_slice(&0x2810u16.to_le_bytes());
    let file = folder.join("config");
    fs::write(&file, &space).unwrap();
    let ask = "pci.0000:02:00.0.read_request=2048";
    let (code, err) = tune_folder(tree.path(), &["apply", ask]);
    assert!(code == 1 && err.contains("--i-understand"), "{code}: {err}");
    assert_eq!(fs::read(&file).unwrap(), space);
    let (code, err) = tune_folder(tree.path(), &["apply", ask, "--i-understand", "--no-confirm"]);
    assert_eq!(code, 0, "{err}");
    let mut expected = space.clone();
    expected[0x88..0x8a].copy_from_slice(&0x4810u16.to_le_bytes());
    assert_eq!(fs::read(&file).unwrap(), expected);
    let (code, err) = tune_folder(tree.path(), &["rollback"]);
    assert_eq!(code, 0, "{err}");
    assert_eq!(fs::read(&file).unwrap(), space);
}
