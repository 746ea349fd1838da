//! Interrupt affinities by name at boot, and bans that keep irqbalance off these interrupts.

use model::{CpuSet, quote};
use parse::shell_vars;

use crate::{Host, host::service::unit_file};

/// The knob of CPUs that irqbalance keeps free.
pub const BANNED_KNOB: &str = "irqbalance.banned_cpus";
/// The knob that gives irqbalance the user's script.
pub const POLICY_KNOB: &str = "irqbalance.policyscript";
/// Path of the script that sets affinities at boot.
pub const SCRIPT: &str = "/etc/netwright/irq-affinity";
const POLICY: &str = "/etc/netwright/irqbalance-policy";
/// Environment file that passes the policy script to irqbalance.
pub const ENVIRONMENT: &str = "/etc/netwright/irqbalance.env";

/// A shell loop over the interrupts of an action.
pub fn loop_over(action: &str, cpus: &str) -> String {
    format!(
        "for irq in /proc/irq/*/{}; do\n    echo {} > \"${{irq%/*}}/smp_affinity_list\"\ndone\n",
        quote::shell(action),
        quote::shell(cpus)
    )
}

/// Path, mode and body of the files that set affinities at boot.
pub fn at_boot(pairs: &[(&str, &str)]) -> Vec<(String, u32, String)> {
    // virtio_net resets affinities when its channels are set, which on a slow boot came after our
    // script.
    let mut script = String::from(
        "#!/bin/sh\n# Drivers reset interrupt affinities while udev sets their interfaces up.\n\
         command -v udevadm > /dev/null && udevadm settle --timeout=30\n\
         # Numbers change with every boot, names do not.\n",
    );
    for (action, cpus) in pairs {
        script += &loop_over(action, cpus);
    }
    let unit = format!(
        "[Unit]\nDescription=Interrupt affinities kept by netwright\n\
         # Drivers ask for their interrupts when the interface comes up.\n\
         After=systemd-udev-trigger.service network.target network-online.target irqbalance.service\n\n\
         [Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/sh {SCRIPT}\n"
    );
    vec![
        (SCRIPT.into(), 0o755, script),
        ("/etc/systemd/system/netwright-irq.service".into(), 0o644, unit),
        (
            "/etc/systemd/system/multi-user.target.d/netwright-irq.conf".into(),
            0o644,
            "[Unit]\nWants=netwright-irq.service\n".into(),
        ),
    ]
}

/// Settings files of irqbalance, if installed on a system that is not running.
pub fn installed(system: &Host) -> Option<Vec<String>> {
    unit_file(system, "irqbalance.service")?;
    let there = |f: &&&str| system.root().exists(f);
    let files = ["/etc/default/irqbalance", "/etc/sysconfig/irqbalance"];
    Some(files.iter().filter(there).map(|f| (*f).to_owned()).collect())
}

/// Path, mode and body of the policy script that bans these interrupts.
pub fn keep_off(actions: &[&str]) -> (String, u32, String) {
    let mut policy = String::from(
        "#!/bin/sh\n# Called by irqbalance with a device's folder and an interrupt's number.\n",
    );
    for action in actions {
        policy += &format!("[ -e \"/proc/irq/$2/\"{} ] && echo ban=true\n", quote::shell(action));
    }
    policy += "exit 0\n";
    (POLICY.into(), 0o755, policy)
}

/// Path, mode and body of the files that give irqbalance a policy script. They use the variable
/// that its unit passes on, in our environment file read after the distribution's.
///
/// # Errors
/// The reason it cannot be done.
pub fn hand_over(
    host: &Host,
    settings_files: &[String],
    policy: &str,
) -> Result<Vec<(String, u32, String)>, String> {
    let Some(file) = unit_file(host, "irqbalance.service") else {
        return Err("irqbalance is here without a systemd unit: give it --banirq yourself".into());
    };
    let text = host.text(&file).map_err(|e| e.to_string())?;
    let start = super::section::section(&text, "Service");
    let start = start.iter().find_map(|l| l.strip_prefix("ExecStart=")).unwrap_or_default();
    let variable = start.split_whitespace().find_map(|w| {
        let name = w.strip_prefix('$')?.trim_matches(['{', '}']);
        (!name.is_empty()).then_some(name)
    });
    let Some(variable) = variable else {
        return Err(format!("{file} passes no arguments on: irqbalance may move them again"));
    };
    let mut now = String::new();
    for file in settings_files.iter().filter(|f| *f != ENVIRONMENT) {
        let Ok(text) = host.text(file) else { continue };
        for a in shell_vars::parse(text.as_bytes()).into_iter().filter(|a| a.name == variable) {
            now = a.value;
        }
    }
    if now.contains("--policyscript") || now.split_whitespace().any(|w| w.starts_with("-l")) {
        return Err("irqbalance has a policy script already: let that ban them".into());
    }
    let arguments = format!("{now} --policyscript={policy}");
    Ok(vec![
        (ENVIRONMENT.into(), 0o644, format!("{variable}=\"{}\"\n", arguments.trim_start())),
        reads_ours(),
    ])
}

/// The drop-in that makes irqbalance read our file.
fn reads_ours() -> (String, u32, String) {
    (
        "/etc/systemd/system/irqbalance.service.d/netwright.conf".into(),
        0o644,
        format!(
            "[Service]\n# Read after the distribution's own, which it includes.\nEnvironmentFile={ENVIRONMENT}\n"
        ),
    )
}

/// Path, mode and body of the files that keep irqbalance off these CPUs. They use both variables,
/// since irqbalance's versions differ and the distribution's file may set either.
///
/// # Errors
/// The reason it cannot be done.
pub fn banned_cpus(host: &Host, list: &str) -> Result<Vec<(String, u32, String)>, String> {
    let Ok(cpus) = list.parse::<CpuSet>() else {
        return Err("its settings files keep no CPU free, and so it starts".into());
    };
    if unit_file(host, "irqbalance.service").is_none() {
        return Err(
            "no systemd unit starts irqbalance: set IRQBALANCE_BANNED_CPULIST for it".into()
        );
    }
    let both = format!(
        "IRQBALANCE_BANNED_CPUS={}\nIRQBALANCE_BANNED_CPULIST={cpus}\n",
        cpus.to_hex_mask()
    );
    Ok(vec![(ENVIRONMENT.into(), 0o644, both), reads_ours()])
}

#[cfg(test)]
mod tests {
    use model::tune::NotKept;
    use probe::facts::{self, Request};

    use super::*;
    use crate::persist::{
        Destination,
        record::{PersistedValue, Subject},
        render::{Rendered, render},
    };

    /// The files rendered for a list of CPUs, on a system with these files.
    fn kept(files: &[(&str, &str)], value: &str) -> Rendered {
        let tree = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let file = tree.path().join(path);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        let host = Host::tree(tree.path()).unwrap();
        let facts = facts::collect(host.root(), &Request { processes: vec![] });
        let kept = PersistedValue {
            id: 1,
            knob: BANNED_KNOB.into(),
            set_as: None,
            value: value.into(),
            subject: Subject::Host,
        };
        render(&host, &Destination::this(), &facts, &[kept])
    }

    #[test]
    fn cpus_that_irqbalance_keeps_free_are_kept_in_both_its_forms() {
        let unit = "[Service]\nEnvironmentFile=-/etc/default/irqbalance\n";
        let unit = ("usr/lib/systemd/system/irqbalance.service", unit);
        let out = kept(&[unit, ("usr/lib/systemd/libsystemd-shared-252.so", "")], "0-1,32");
        let of = |path: &str| out.files.iter().find(|f| f.path == path).unwrap().body.clone();
        assert_eq!(
            of(ENVIRONMENT),
            "IRQBALANCE_BANNED_CPUS=00000001,00000003\nIRQBALANCE_BANNED_CPULIST=0-1,32\n"
        );
        let drop_in = of("/etc/systemd/system/irqbalance.service.d/netwright.conf");
        assert!(drop_in.contains(&format!("EnvironmentFile={ENVIRONMENT}")), "{drop_in}");
        assert!(out.not_kept.is_empty() && out.kept.len() == 1, "{out:?}");

        for (files, value, why) in [
            (&[unit][..], "none", "keep no CPU free"),
            (&[][..], "0", "no systemd unit starts irqbalance"),
        ] {
            let out = kept(files, value);
            let [NotKept { why: said, .. }] = out.not_kept.as_slice() else { panic!("{out:?}") };
            assert!(said.contains(why) && out.files.is_empty(), "{out:?}");
        }
    }
}
