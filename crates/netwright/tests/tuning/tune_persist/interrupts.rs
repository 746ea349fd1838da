//! Tests of interrupts that are kept by name.

use std::fs;

use super::{files, tree};
use crate::support::{output, run};

#[test]
fn interrupts_are_kept_by_name_and_irqbalance_is_kept_off_them() {
    let tree = tree();
    let root = tree.path().to_str().unwrap();
    let tune = |args: &[&str]| {
        let mut all = vec!["tune"];
        all.extend(args);
        all.extend(["--root", root]);
        let out = output(crate::support::NETWRIGHT, &all);
        let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
        (out.status.code().unwrap(), text(&out.stdout), text(&out.stderr))
    };
    let before = files(tree.path());
    let asked = [
        "apply",
        "irq.38.affinity=1",
        "sysctl.net.core.somaxconn=8192",
        "sysctl.net.core.busy_poll=50",
    ];
    let (code, out, err) = tune(&asked);
    assert_eq!(code, 0, "{out}{err}");
    let (code, out, err) = tune(&["persist"]);
    assert_eq!(code, 1, "one is not kept: {out}{err}");
    let flat = out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("sysctl.conf:2 sets it too and is read later"), "{out}");
    let at = |p: &str| tree.path().join(p.trim_start_matches('/'));

    let script = fs::read_to_string(at("/etc/netwright/irq-affinity")).unwrap();
    assert!(script.starts_with("#!/bin/sh\n"), "{script}");
    // The same script on the folder: after another boot the interrupt has another number.
    fs::rename(at("proc/irq/38"), at("proc/irq/51")).unwrap();
    fs::write(at("proc/irq/51/smp_affinity_list"), "0-1\n").unwrap();
    let here = script.replace("/proc/irq", &format!("{root}/proc/irq"));
    fs::write(at("here.sh"), here).unwrap();
    run("sh", &[at("here.sh").to_str().unwrap()]);
    assert_eq!(fs::read_to_string(at("proc/irq/51/smp_affinity_list")).unwrap(), "1\n");
    fs::remove_file(at("here.sh")).unwrap();
    fs::rename(at("proc/irq/51"), at("proc/irq/38")).unwrap();

    let policy = fs::read_to_string(at("/etc/netwright/irqbalance-policy")).unwrap();
    let here = policy.replace("/proc/irq", &format!("{root}/proc/irq"));
    fs::write(at("here.sh"), here).unwrap();
    let asked = |irq: &str| run("sh", &[at("here.sh").to_str().unwrap(), "/sys/devices/x", irq]);
    assert_eq!(asked("38"), "ban=true\n");
    assert_eq!(asked("39"), "");
    fs::remove_file(at("here.sh")).unwrap();
    let environment = fs::read_to_string(at("/etc/netwright/irqbalance.env")).unwrap();
    assert!(
        environment.ends_with(
            "IRQBALANCE_ARGS=\"--banmod=nvme --policyscript=/etc/netwright/irqbalance-policy\"\n"
        ),
        "what was there before stays: {environment}"
    );
    let drop_in = at("/etc/systemd/system/irqbalance.service.d/netwright.conf");
    let drop_in = fs::read_to_string(drop_in).unwrap();
    assert!(drop_in.contains("EnvironmentFile=/etc/netwright/irqbalance.env"), "{drop_in}");

    // systemd's own check of the unit.
    let unit = at("/etc/systemd/system/netwright-irq.service");
    let out = output("systemd-analyze", &["verify", unit.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    let ours = said.lines().filter(|l| l.contains("netwright-irq.service"));
    // The folder's script is missing on this host, which verify accepts.
    assert_eq!(ours.collect::<Vec<_>>(), Vec::<&str>::new(), "{said}");

    let (code, out, err) = tune(&["rollback"]);
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.contains("still kept for the next boot"), "{out}");
    assert_eq!(tune(&["persist", "--remove"]).0, 0);
    let mut after = files(tree.path());
    after.retain(|p, _| !p.starts_with(at("/var/lib/netwright")));
    assert_eq!(after, before, "all of it is away");
    assert!(!at("/etc/netwright").exists() && !at("/etc/systemd").exists());
}
