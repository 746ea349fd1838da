//! Tests of `tune` on a host of the test: its promises, knob by knob and fault by fault.

mod folders;
mod interrupted;
mod privileges;
mod profiles;

use std::{
    fs,
    io::{BufRead, BufReader},
    os::fd::AsRawFd,
    path::Path,
};

use crate::support::{
    heeding, run,
    traced::{self, End, Then},
    tuned::{on_a_host, same},
};
use serde_json::Value;

const MTU: &str = "/sys/class/net/v0/mtu";

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap().trim().to_owned()
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
        // The kernel silently turns a reversed range into "1 0" (`ipv4_ping_group_range`).
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
        // A later change of the remaining value holds; change 1 remains open nevertheless.
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
        // The journal has some twenty kilobytes; a page at a time.
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
            let mut waits = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
            let mut said = BufReader::new(waits.stderr.take().unwrap()).lines();
            assert!(said.any(|l| l.unwrap().contains("waiting for")), "it said nothing");
            assert_eq!(read(MTU), "1500");
            (waits, said)
        };
        // A waiting command has begun nothing: Ctrl-C ends it at once.
        let (mut waits, _said) = second();
        // SAFETY: our own child, which was not waited for yet.
        assert_eq!(unsafe { libc::kill(waits.id().cast_signed(), libc::SIGINT) }, 0);
        assert!(!waits.wait().unwrap().success());
        let (mut waits, _said) = second();
        drop(lock);
        assert!(waits.wait().unwrap().success());
        assert_eq!(read(MTU), "1400");
    });
}

#[test]
fn an_older_change_goes_after_the_newer_one_and_drift_is_reported() {
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
        assert!(code == 4 && err.contains("htb is in place, and could not be restored"), "{err}");
        let there = run("tc", &["qdisc", "show", "dev", "v1"]);
        assert!(there.contains("htb 6: root"), "{there}");
    });
}

/// All threads of all processes of the group, including those that start later; undone while they
/// are in it.
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
