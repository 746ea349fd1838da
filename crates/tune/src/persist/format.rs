//! Exports the same values as a shell script, Ansible tasks or a tuned profile.

use model::quote;
use std::collections::BTreeMap;
use std::fmt::Write;

use model::tune::NotKept;

use super::{
    files, irq, not_kept,
    record::{PersistedValue, Subject},
    render::{NOT_PLAIN, Rendered, by_hand, command, is_plain},
};

/// A document; a comment at its end names each value that it cannot express.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Printed {
    pub text: String,
    /// Values that the document cannot express.
    pub left_out: Vec<NotKept>,
}

impl Printed {
    fn new(mut text: String, left_out: Vec<NotKept>) -> Self {
        if !left_out.is_empty() {
            text.push('\n');
        }
        for n in &left_out {
            // Joined to one line, whatever the text holds.
            let line = format!("not here: {}={}: {} (change {})", n.knob, n.value, n.why, n.id);
            let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
            text += &format!("# {}\n", quote::shown(&line));
        }
        Self { text, left_out }
    }
}

/// A script that sets every value now, by the classic commands. `unnamed` are values whose object
/// could not be identified.
pub fn shell(kept: &[PersistedValue], unnamed: &[NotKept]) -> Printed {
    let mut left_out = unnamed.to_vec();
    let mut text = String::from(
        "#!/bin/sh\n# Sets now what netwright has in force; it does not keep it over a reboot.\nset -eu\n",
    );
    for k in kept {
        text += &match (&k.subject, command(k)) {
            (Subject::Irq { action }, _) => irq::loop_over(action, &k.value),
            (Subject::Unit { name }, _) if k.knob.ends_with(".cpuset") => {
                let (cpus, mems) = k.value.split_once(" mems ").unwrap_or((&k.value, ""));
                let mems = match mems {
                    "" => String::new(),
                    mems => format!(" AllowedMemoryNodes={}", quote::shell(mems)),
                };
                format!(
                    "systemctl set-property --runtime {} AllowedCPUs={}{mems}\n",
                    quote::shell(name),
                    quote::shell(cpus)
                )
            }
            (Subject::Unit { name }, _) => format!(
                "for pid in $(cat \"/sys/fs/cgroup$(systemctl show -P ControlGroup {})/cgroup.procs\"); \
                 do\n    taskset -a -c -p {} \"$pid\"\ndone\n",
                quote::shell(name),
                quote::shell(&k.value)
            ),
            (_, Some(command)) => format!("{command}\n"),
            (_, None) => {
                left_out.push(not_kept(k, by_hand(k)));
                continue;
            }
        };
    }
    Printed::new(text, left_out)
}

/// Ansible tasks that install the files that `tune persist` would write.
pub fn ansible(rendered: &Rendered) -> Printed {
    let mut text = String::from(
        "# Include in a play that becomes root; `tasks:` and `handlers:` may be split.\n\
         - name: Settings kept by netwright\n  hosts: all\n  become: true\n  tasks:\n",
    );
    let mut folders: Vec<&str> =
        rendered.files.iter().filter_map(|f| Some(f.path.rsplit_once('/')?.0)).collect();
    folders.sort_unstable();
    folders.dedup();
    for folder in folders {
        let _ = write!(
            text,
            "    - name: {}\n      ansible.builtin.file:\n        path: {}\n        \
             state: directory\n        mode: \"0755\"\n",
            quote::yaml(&format!("Folder {folder}")),
            quote::yaml(folder)
        );
    }
    for f in &rendered.files {
        let _ = write!(
            text,
            "    - name: {0}\n      ansible.builtin.copy:\n        dest: {0}\n        owner: root\n        \
             group: root\n        mode: \"{1:04o}\"\n        content: ",
            quote::yaml(&f.path),
            f.mode
        );
        text += &content(&files::dressed(&f.body));
        text += "      notify: Reload the configuration\n";
    }
    text += "  handlers:\n    - name: Reload the configuration\n      ansible.builtin.shell: \
             >-\n        systemctl daemon-reload; udevadm control --reload; sysctl --system\n";
    Printed::new(text, rendered.not_kept.clone())
}

/// A file's text in YAML: a literal block, unless a template or a control character forbids that.
fn content(body: &str) -> String {
    let quoted = quote::yaml(body);
    if quoted.starts_with('!') || body.contains(|c| c != '\n' && quote::acts(c)) {
        return format!("{quoted}\n");
    }
    let line = |l: &str| if l.is_empty() { "\n".into() } else { format!("          {l}\n") };
    format!("|\n{}", body.lines().map(line).collect::<String>())
}

/// A profile for tuned: `/etc/tuned/netwright/tuned.conf`.
pub fn tuned(kept: &[PersistedValue], unnamed: &[NotKept]) -> Printed {
    let mut left_out = unnamed.to_vec();
    let mut text = String::from(
        "# /etc/tuned/netwright/tuned.conf (since tuned 2.23 /etc/tuned/profiles/netwright/tuned.conf);\n\
         # `tuned-adm profile netwright` takes it, `tuned-adm profile NAME netwright` beside another.\n\
         # To add it to another profile: include=NAME below [main].\n[main]\nsummary=Kept by netwright\n",
    );
    let (mut sysctl, mut sysfs) = (String::new(), String::new());
    let mut nics: BTreeMap<String, BTreeMap<&str, Vec<String>>> = BTreeMap::new();
    for k in kept {
        if k.value.contains("${") || !is_plain(k) {
            left_out.push(not_kept(k, NOT_PLAIN));
            continue;
        }
        if let Some(key) = k.knob.strip_prefix("sysctl.") {
            let _ = writeln!(sysctl, "{key}={}", k.value);
            continue;
        }
        let interface = match &k.subject {
            Subject::Nic(i) => Some(i),
            _ => None,
        };
        let nic = interface.map(|i| &i.name);
        let rest = nic
            .and_then(|n| k.knob.strip_prefix("nic.")?.strip_prefix(n.as_str())?.strip_prefix('.'));
        // tuned's net plugin silently ignores interfaces without hardware.
        let hardware = interface.is_some_and(|i| i.driver.is_some());
        let device = rest.filter(|_| hardware).and_then(|r| device_option(r, &k.value));
        if let (false, Some(nic), Some(file)) = (hardware, nic, rest.and_then(device_file)) {
            let _ = writeln!(sysfs, "/sys/class/net/{nic}/{file}={}", k.value);
            continue;
        }
        let command = command(k).unwrap_or_default();
        let echo = command.strip_prefix("echo ").and_then(|c| c.split_once(" > "));
        match (device, nic, echo) {
            (Some((option, word)), Some(nic), _) => {
                nics.entry(nic.clone()).or_default().entry(option).or_default().push(word);
            }
            (_, _, Some((value, file))) if file.starts_with("/sys/") => {
                let _ = writeln!(sysfs, "{file}={value}");
            }
            _ => {
                left_out.push(not_kept(k, "tuned has no option for it"));
            }
        }
    }
    if !sysctl.is_empty() {
        text += &format!("\n[sysctl]\n{sysctl}");
    }
    for (nic, options) in nics {
        text += &format!("\n[net_{nic}]\ntype=net\ndevices={nic}\n");
        for (option, words) in options {
            text += &format!("{option}={}\n", words.join(" "));
        }
    }
    if !sysfs.is_empty() {
        text += &format!("\n[sysfs]\n{sysfs}");
    }
    Printed::new(text, left_out)
}

/// The interface file that is also an option of tuned's net plugin.
fn device_file(knob: &str) -> Option<&'static str> {
    match knob {
        "mtu" => Some("mtu"),
        "txqueuelen" => Some("tx_queue_len"),
        _ => None,
    }
}

/// Option of tuned's net plugin, and its value.
fn device_option(knob: &str, value: &str) -> Option<(&'static str, String)> {
    match knob.split_once('.') {
        None if knob == "channels" => Some(("channels", value.to_owned())),
        None if knob == "mtu" => Some(("mtu", value.to_owned())),
        None if knob == "txqueuelen" => Some(("txqueuelen", value.to_owned())),
        Some(("rings", r)) => Some(("ring", format!("{} {value}", r.replace('_', "-")))),
        Some(("coalesce", c)) => {
            let name = c.replace("max_frames", "frames").replace('_', "-");
            Some(("coalesce", format!("{name} {value}")))
        }
        Some(("features", f)) => Some(("features", format!("{f} {value}"))),
        Some(("pause", p)) => Some(("pause", format!("{p} {value}"))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::persist::record::Interface;

    #[test]
    fn tuned_sets_hardware_by_its_net_plugin_and_the_rest_by_files() {
        let kept = |nic: &str, driver: Option<&str>, knob: &str, value: &str| PersistedValue {
            id: 1,
            knob: format!("nic.{nic}.{knob}"),
            set_as: None,
            value: value.into(),
            subject: Subject::Nic(Interface {
                name: nic.into(),
                mac: None,
                driver: driver.map(str::to_owned),
                link_file: None,
                link_lines: vec![],
                mtu_owner: None,
            }),
        };
        let ixgbe = Some("ixgbe");
        let printed = tuned(
            &[
                kept("eth0", ixgbe, "mtu", "9000"),
                kept("eth0", ixgbe, "channels", "combined 4"),
                kept("eth0", ixgbe, "rings.rx", "2048"),
                kept("eth0", ixgbe, "rings.tx", "1024"),
                kept("bond0", None, "mtu", "9000"),
                kept("bond0", None, "features.rx-gro", "off"),
            ],
            &[],
        );
        let text = &printed.text;
        let has = |lines: &str| assert!(text.contains(lines), "{lines:?} is not in {text}");
        has("[net_eth0]\ntype=net\ndevices=eth0\nchannels=combined 4\nmtu=9000\n\
             ring=rx 2048 tx 1024\n");
        has("[sysfs]\n/sys/class/net/bond0/mtu=9000\n");
        has("# not here: nic.bond0.features.rx-gro=off: tuned has no option for it (change 1)\n");
        assert_eq!(printed.left_out.len(), 1);
        assert!(!text.contains("net_bond0"), "{text}");
    }
    #[test]
    fn what_a_form_cannot_say_is_named_in_it() {
        let kept = |knob: &str| PersistedValue {
            id: 7,
            knob: knob.into(),
            set_as: None,
            value: "0 1".into(),
            subject: Subject::Host,
        };
        let unnamed = not_kept(&kept("process.7.affinity"), "of no\nservice");
        let table = [kept("nic.eth0.rss.table")];
        let rendered = Rendered { not_kept: vec![unnamed.clone()], ..Rendered::default() };
        for (printed, all) in [
            (shell(&table, std::slice::from_ref(&unnamed)), 2),
            (tuned(&table, std::slice::from_ref(&unnamed)), 2),
            (ansible(&rendered), 1),
        ] {
            assert_eq!(printed.left_out.len(), all);
            let named = "# not here: process.7.affinity=0 1: of no service (change 7)\n";
            assert!(printed.text.contains(named), "{}", printed.text);
            let table = printed.text.contains("# not here: nic.eth0.rss.table=0 1: ");
            assert_eq!(table, all == 2, "{}", printed.text);
        }
    }
}
