//! The classic command for each knob.

use super::{HASH_FIELDS, NicSetting, OWN_QDISC, SEGMENT_SIZES, Target};
use crate::quote;

/// The command that sets `new`; see [`Target::command`].
pub(super) fn of(target: Target<'_>, new: &str) -> String {
    match target {
        Target::Sysctl(key) => quote::sysctl(key, new),
        Target::Nic(nic, setting) => {
            nic_command(nic, setting, new).unwrap_or_else(|| echo(target, new))
        }
        Target::Queue(..) | Target::Irq(_) => echo(target, new),
        Target::Cpu(_, "idle_limit") => echo(target, &idle_limit(new)),
        Target::Cpu(..) => echo(target, new),
        Target::Process(pid, "affinity") => format!("taskset -acp {new} {pid}"),
        Target::Process(pid, "cpu_max") => {
            format!("echo {new} > cpu.max of the cgroup in /proc/{pid}/cgroup")
        }
        Target::Process(pid, _) => {
            format!("echo {new} > cpuset.cpus (and .mems) of the cgroup in /proc/{pid}/cgroup")
        }
        Target::Pci(address, field) => {
            let (register, least, shift, mask) = match field {
                "mmrbc" => ("CAP07+2.w", 512, 2, 0xc),
                _ => ("CAP_EXP+8.w", 128, 12, 0x7000),
            };
            let code = new.parse::<u32>().map_or(0, |n| (n / least).trailing_zeros());
            format!("setpci -s {address} {register}={:x}:{mask:x}", code << shift)
        }
        Target::Irqbalance(setting) => irqbalance_command(setting, new),
        Target::Memory(_) => echo(target, new),
        Target::Route(to, setting) => route_command(to, setting, new),
        Target::Boot(parameter) => {
            format!(
                "{} on the kernel cmdline, by the boot loader's file",
                boot_word(parameter, new)
            )
        }
    }
}

fn echo(target: Target<'_>, new: &str) -> String {
    target.file().map_or_else(String::new, |file| quote::echo(new, &file))
}

/// A word of the kernel cmdline; one without a value is a bare word.
fn boot_word(parameter: &str, value: &str) -> String {
    match value {
        "" | "on" => parameter.to_owned(),
        value => format!("{parameter}={value}"),
    }
}

/// `ip route change` takes a whole route: its other words are those of `ip route show`.
fn route_command(to: &str, setting: &str, new: &str) -> String {
    let (prefix, metric) = match to.split_once('@') {
        Some((prefix, metric)) => (prefix, format!(" metric {metric}")),
        None => (to, String::new()),
    };
    let six = if prefix.contains(':') { " -6" } else { "" };
    let set = match new {
        "none" => format!(" (without {setting})"),
        new => format!(" {setting} {new}"),
    };
    format!(
        "ip{six} route change {prefix} …{metric}{set} (…: as ip{six} route show {prefix} prints it)"
    )
}

/// `None` for what is a file alone.
fn nic_command(name: &str, setting: NicSetting<'_>, new: &str) -> Option<String> {
    let nic = quote::shell(name);
    Some(match setting {
        NicSetting::Plain(setting) => match setting {
            "channels" => format!("ethtool -L {nic} {new}"),
            "mtu" => format!("ip link set {nic} mtu {new}"),
            "txqueuelen" => format!("ip link set {nic} txqueuelen {new}"),
            "qdisc" => qdisc_command(&nic, new),
            size if SEGMENT_SIZES.contains(&size) => {
                format!("ip link set dev {nic} {size} {new}")
            }
            "rss.key" => format!("ethtool -X {nic} hkey {new}"),
            "rss.table" => format!("ethtool -X {nic} … (queues in order: {new})"),
            _ => return None,
        },
        NicSetting::Ring(ring) => format!("ethtool -G {nic} {} {new}", ring.replace('_', "-")),
        NicSetting::Coalesce(parameter) => {
            let classic = parameter.replace("max_frames", "frames").replace('_', "-");
            format!("ethtool -C {nic} {classic} {new}")
        }
        NicSetting::Feature(feature) => {
            // Features with a short name that means this feature alone.
            let short = match feature {
                "rx-gro" => "gro".into(),
                "rx-lro" => "lro".into(),
                name => quote::shell(name),
            };
            format!("ethtool -K {nic} {short} {new}")
        }
        NicSetting::Pause(parameter) => format!("ethtool -A {nic} {parameter} {new}"),
        NicSetting::HashFields(flow) => {
            let letter = |w: &str| HASH_FIELDS.iter().find(|f| f.1 == w).map_or("", |f| f.2);
            let letters: String = new.split(' ').map(letter).collect();
            format!("ethtool -N {nic} rx-flow-hash {flow} {letters}")
        }
        NicSetting::Napi(setting, which) => format!(
            "ynl --family netdev --do napi-set --json '{{\"id\": …, \"{}\": {new}}}' (…: NAPI {which} of \
             {nic}, by napi-get)",
            setting.replace('_', "-"),
        ),
    })
}

fn qdisc_command(nic: &str, new: &str) -> String {
    // An exact value of ours says so where it is the one that the kernel gave.
    if new == "default" || new.ends_with(OWN_QDISC) {
        return format!("tc qdisc del dev {nic} root");
    }
    match new.strip_prefix("mq") {
        Some("") => format!("tc qdisc replace dev {nic} root mq"),
        Some(child) => format!(
            "tc qdisc replace dev {nic} root handle 1: mq; for each queue N: tc qdisc replace dev {nic} \
             parent 1:N{child}"
        ),
        None => format!("tc qdisc replace dev {nic} root {new}"),
    }
}

/// As the kernel takes it: `none` and `poll` are our words.
fn idle_limit(new: &str) -> String {
    match new {
        "none" => "0".into(),
        "poll" => "n/a".into(),
        us => us.to_owned(),
    }
}

fn irqbalance_command(setting: &str, new: &str) -> String {
    // An exact value says more after its first word.
    let first = new.split_whitespace().next().unwrap_or_default();
    match setting {
        "paused" if new == "on" => "kill -STOP $(pidof irqbalance)".into(),
        "paused" => "kill -CONT $(pidof irqbalance)".into(),
        "banned_irqs" => format!("irqbalance-ui, or \"settings ban irqs {new}\" to its socket"),
        "banned_cpus" => {
            let list = if new == "none" { "NULL" } else { new };
            format!("irqbalance-ui, or \"settings cpus {list}\" to its socket")
        }
        "policyscript" if first == "none" => {
            "systemctl revert irqbalance; systemctl restart irqbalance".into()
        }
        "policyscript" => {
            format!("systemctl edit --runtime irqbalance: ExecStart=… --policyscript={first}")
        }
        _ => format!("systemctl {} irqbalance", if first == "on" { "start" } else { "stop" }),
    }
}
