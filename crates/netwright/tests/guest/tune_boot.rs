//! Tests of `tune persist` over a real boot. Debian's systemd is the guest's first process and
//! reads the files as usual. One boot writes them, the next has their values.

use std::{fs, os::unix::fs::symlink, path::Path, process::Command, time::Duration};

use crate::support::{NETWRIGHT, needs_root};
use lab::{
    server::{NicModel, ServerSpec},
    testing::TestLab,
};

/// A guest that boots systemd, with this folder over its root.
fn boot(folder: &Path) -> TestLab {
    let spec = ServerSpec {
        cpus: 2,
        nodes: 1,
        nic_node: 0,
        models: vec![NicModel::Virtio],
        systemd: Some(folder.to_owned()),
        patience: Duration::from_secs(180),
        ..ServerSpec::new(NETWRIGHT)
    };
    TestLab::server(&spec).unwrap()
}

/// This machine's own services stay off; one service of the test is on.
fn services(folder: &Path) {
    let units = folder.join("etc/systemd/system");
    let wants = units.join("multi-user.target.wants");
    fs::create_dir_all(&wants).unwrap();
    for target in ["multi-user", "timers", "getty", "sysinit"] {
        for place in ["/etc", "/lib"] {
            let place = format!("{place}/systemd/system/{target}.target.wants");
            let Ok(entries) = fs::read_dir(place) else { continue };
            for name in entries.map(|e| e.unwrap().file_name().into_string().unwrap()) {
                let needed = ["udev", "sysctl", "tmpfiles", "journald", "dbus", "irqbalance"];
                if (name.ends_with(".service") || name.ends_with(".timer"))
                    && !needed.iter().any(|n| name.contains(n))
                {
                    let _ = symlink("/dev/null", units.join(name));
                }
            }
        }
    }
    // systemd takes the guest for a container, for which Debian's irqbalance does not start.
    let drop_in = units.join("irqbalance.service.d");
    fs::create_dir(&drop_in).unwrap();
    fs::write(drop_in.join("guest.conf"), "[Unit]\nConditionVirtualization=\n").unwrap();
    let unit = "[Service]\nExecStart=/bin/sleep 100000\n";
    fs::write(units.join("practice.service"), unit).unwrap();
    symlink("../practice.service", wants.join("practice.service")).unwrap();
}

fn run(lab: &TestLab, script: &str) -> (i32, String, String) {
    let out = lab.output("server", &["timeout", "110", "bash", "-c", script, NETWRIGHT]).unwrap();
    let text = |b: &[u8]| String::from_utf8_lossy(b).trim().to_owned();
    (out.code, text(&out.stdout), text(&out.stderr))
}

/// Each kind of persisted setting, as the classic tools see it.
const VALUES: &str = "cat /proc/1/comm; sysctl -n net.core.somaxconn; \
    cd /sys/class/net/eth0; cat mtu tx_queue_len gro_flush_timeout queues/rx-0/rps_cpus; \
    ethtool -l eth0 | sed 1,/Current/d | grep Combined | xargs; \
    ethtool -g eth0 | sed 1,/Current/d | grep ^RX: | xargs; \
    irq=$(awk -F: '/virtio.*input\\.0/ {print $1 + 0; exit}' /proc/interrupts); \
    cat /proc/irq/$irq/smp_affinity_list; \
    taskset -cp $(systemctl show -P MainPID practice.service) | sed 's/.*: //'";

/// irqbalance stopped, then with a policy script, and both undone.
const IRQBALANCE: &str = "export NETWRIGHT_STATE=/run/other
    arguments() { tr '\\0' ' ' < /proc/$(systemctl show -P MainPID irqbalance)/cmdline; echo; }
    $0 tune apply irqbalance.running=off >&2; echo $?; systemctl is-active irqbalance
    $0 tune rollback >&2; echo $?; systemctl is-active irqbalance; arguments
    printf '#!/bin/sh\\nexit 0\\n' > /etc/policy
    $0 tune apply irqbalance.policyscript=/etc/policy >&2; echo $?; arguments
    chmod 755 /etc/policy
    $0 tune apply irqbalance.policyscript=/etc/policy >&2; echo $?; arguments
    mkdir /run/into; $0 tune persist --dry-run --into /run/into | grep -oc 'irqbalance.policyscript = /etc/policy'
    $0 tune rollback >&2; echo $?; arguments; find /run/systemd/system -name '*netwright*'";
const IRQBALANCE_DID: &[&str] = &[
    "0",
    "inactive",
    "0",
    "active",
    "/usr/sbin/irqbalance --foreground ",
    "4", // it cannot be run
    "/usr/sbin/irqbalance --foreground ",
    "0",
    "/usr/sbin/irqbalance --foreground --policyscript=/etc/policy ",
    "1",
    "0",
    "/usr/sbin/irqbalance --foreground",
];

#[test]
fn what_is_kept_is_there_after_a_boot() {
    needs_root();
    let folder = tempfile::tempdir().unwrap();
    services(folder.path());
    let first = boot(folder.path());
    let (_, did, reported) = run(&first, IRQBALANCE);
    assert_eq!(did.lines().collect::<Vec<_>>(), IRQBALANCE_DID, "{reported}");
    let (_, before, _) = run(&first, VALUES);
    assert!(before.starts_with("systemd\n4096\n1500\n1000\n0\n0\n"), "{before}");
    let script = "export NETWRIGHT_STATE=/run/state
        systemctl stop irqbalance
        irq=$(awk -F: '/virtio.*input\\.0/ {print $1 + 0; exit}' /proc/interrupts)
        now=$(cat /proc/irq/$irq/smp_affinity_list)
        $0 tune apply --no-confirm sysctl.net.core.somaxconn=8192 nic.eth0.mtu=1400 \
          nic.eth0.txqueuelen=500 nic.eth0.channels='combined 1' nic.eth0.rings.rx=128 \
          nic.eth0.gro_flush_timeout=20us nic.eth0.queue.rx-0.rps_cpus=2 \
          irq.$irq.affinity=$([ \"$now\" = 1 ] && echo 0 || echo 1) \
          process.$(systemctl show -P MainPID practice.service).affinity=1 >&2 || exit 1
        $0 tune persist >&2; echo persist $? >&2
        cd / && tar -c $(find etc -newer /run/state/journal/000001.jsonl -name '*netwright*' -type f) \
          etc/netwright | base64";
    let (code, files, reported) = run(&first, script);
    assert!(code == 0 && reported.contains("persist 0"), "{reported}");
    let (_, wanted, _) = run(&first, VALUES);
    assert_ne!(before, wanted);
    drop(first);

    let archive = folder.path().join("files");
    fs::write(&archive, &files).unwrap();
    let unpack =
        "base64 -d files | tar -x --skip-old-files && rm files && find etc -name '*netwright*'";
    let out = Command::new("sh").args(["-c", unpack]).current_dir(folder.path()).output().unwrap();
    let unpacked = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.success(), "{out:?}");

    let second = boot(folder.path());
    let (_, after, _) = run(&second, VALUES);
    let (_, failed, _) =
        run(&second, "systemctl --failed --no-legend; journalctl -b -p warning -o cat | tail -20");
    assert_eq!(after, wanted, "{unpacked}{reported}{failed}");
    // irqbalance runs every 10 s, and places its interrupts in its first run.
    let (_, arguments, _) = run(
        &second,
        "sleep 21; tr '\\0' '\\n' < /proc/$(systemctl show -P MainPID irqbalance)/cmdline | tail -1",
    );
    assert_eq!(arguments, "--policyscript=/etc/netwright/irqbalance-policy");
    let (_, later, reported) = run(&second, VALUES);
    assert_eq!(later, wanted, "{reported}");
}
