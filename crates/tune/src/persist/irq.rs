//! Interrupts by name at boot, and irqbalance kept off them.

use parse::shell_vars;

use crate::{Host, host::service::unit_file};

/// The knob that gives irqbalance a script of the user's.
pub const POLICY_KNOB: &str = "irqbalance.policyscript";
/// Where our scripts are.
pub const SCRIPT: &str = "/etc/netwright/irq-affinity";
const POLICY: &str = "/etc/netwright/irqbalance-policy";
/// What hands it over.
pub const ENVIRONMENT: &str = "/etc/netwright/irqbalance.env";

/// A shell loop over the interrupts of an action.
pub fn loop_over(action: &str, cpus: &str) -> String {
    format!(
        "for irq in /proc/irq/*/'{action}'; do\n    echo {cpus} > \"${{irq%/*}}/smp_affinity_list\"\ndone\n"
    )
}

/// Path, mode and body of what sets the affinities at boot.
pub fn at_boot(pairs: &[(&str, &str)]) -> Vec<(String, u32, String)> {
    // virtio_net does so when its channels are set, which on a slow boot came after us.
    let mut script = String::from(
        "#!/bin/sh\n# Drivers place interrupts anew while udev sets their interfaces up.\n\
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

/// The settings files of an irqbalance that is installed in a system that does not run.
pub fn installed(system: &Host) -> Option<Vec<String>> {
    unit_file(system, "irqbalance.service")?;
    let there = |f: &&&str| system.root().exists(f);
    let files = ["/etc/default/irqbalance", "/etc/sysconfig/irqbalance"];
    Some(files.iter().filter(there).map(|f| (*f).to_owned()).collect())
}

/// Path, mode and body of the policy script that keeps irqbalance off these interrupts.
pub fn keep_off(actions: &[&str]) -> (String, u32, String) {
    let mut policy = String::from(
        "#!/bin/sh\n# Called by irqbalance with a device's folder and an interrupt's number.\n",
    );
    for action in actions {
        policy += &format!("[ -e \"/proc/irq/$2/\"'{action}' ] && echo ban=true\n");
    }
    policy += "exit 0\n";
    (POLICY.into(), 0o755, policy)
}

/// Path, mode and body of what gives irqbalance a policy script, through the very variable that its
/// unit passes on, in a file of ours that is read after the distribution's.
///
/// # Errors
/// Why it cannot be done.
pub fn hand_over(
    host: &Host,
    settings_files: &[String],
    policy: &str,
) -> Result<Vec<(String, u32, String)>, String> {
    let Some(file) = unit_file(host, "irqbalance.service") else {
        return Err("irqbalance is here without a systemd unit: give it --banirq yourself".into());
    };
    let text = host.text(&file).map_err(|e| e.to_string())?;
    let start = super::subject::section(&text, "Service");
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
        (
            "/etc/systemd/system/irqbalance.service.d/netwright.conf".into(),
            0o644,
            format!(
                "[Service]\n# Read after the distribution's own, which it includes.\nEnvironmentFile={ENVIRONMENT}\n"
            ),
        ),
    ])
}
