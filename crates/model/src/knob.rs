//! The names of knobs, their objects, and the classic command for each: one place for the rules,
//! for `tune` and for the documentation.

use std::fmt;

use crate::quote;

/// The parts of a knob's full name. Names of interfaces may hold dots (`eth0.100`), so what counts is
/// the end of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target<'k> {
    /// `sysctl.KEY`: the key in dotted form.
    Sysctl(&'k str),
    /// `nic.NIC.SETTING`: the interface and its setting.
    Nic(&'k str, NicSetting<'k>),
    /// `nic.NIC.queue.QUEUE.SETTING`; the queue as in `rx-0`.
    Queue(&'k str, &'k str, &'k str),
    /// `irq.N.affinity`: the number of the interrupt.
    Irq(u32),
    /// `cpu.N.SETTING`: the CPU and its setting.
    Cpu(u32, &'k str),
    /// `process.PID.SETTING`: the process and its setting.
    Process(u32, &'k str),
    /// `pci.ADDRESS.FIELD`: the function's address and a register field.
    Pci(&'k str, &'k str),
    /// `irqbalance.SETTING`: the setting alone.
    Irqbalance(&'k str),
}

/// A setting of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NicSetting<'k> {
    /// One word, as `mtu`; or `rss.table` or `rss.key`.
    Plain(&'k str),
    /// `rings.NAME`: `rx`, `tx` and the others of `ethtool -G`.
    Ring(&'k str),
    /// `coalesce.PARAMETER`: a parameter of `ethtool -C`.
    Coalesce(&'k str),
    /// `features.NAME`, as the kernel calls it.
    Feature(&'k str),
    /// `pause.PARAMETER`: a parameter of `ethtool -A`.
    Pause(&'k str),
    /// `rss.hash_fields.FLOW`: the flow type, such as `udp4`.
    HashFields(&'k str),
    /// `napi.SETTING.WHICH`: the setting and the NAPI instances.
    Napi(&'k str, &'k str),
}

/// `RXH_…` fields with ethtool's letters. **Source**: include/uapi/linux/ethtool.h, ethtool(8).
pub const HASH_FIELDS: [(u32, &str, &str); 8] = [
    (1, "dst_mac", "m"),
    (2, "vlan", "v"),
    (3, "l3_proto", "t"),
    (4, "src_ip", "s"),
    (5, "dst_ip", "d"),
    (6, "src_port", "f"),
    (7, "dst_port", "n"),
    (31, "discard", "r"),
];

impl<'k> Target<'k> {
    /// The parts of a full name; `None` where it is invalid. Settings with many names (rings,
    /// coalescing, features, kernel settings) are not checked for existence.
    pub fn parse(knob: &'k str) -> Option<Self> {
        let (kind, rest) = knob.split_once('.')?;
        let numbered = || {
            let (number, setting) = rest.split_once('.')?;
            let n: u32 = number.parse().ok()?;
            // No 007, no +7.
            (n.to_string() == number && !setting.is_empty()).then_some((n, setting))
        };
        match kind {
            "sysctl" => Some(Self::Sysctl(rest)).filter(|_| !rest.is_empty()),
            "nic" => nic(rest),
            "irq" => numbered().filter(|n| n.1 == "affinity").map(|n| Self::Irq(n.0)),
            "cpu" => numbered().map(|(n, setting)| Self::Cpu(n, setting)),
            "process" => numbered().map(|(n, setting)| Self::Process(n, setting)),
            "pci" => rest.rsplit_once('.').map(|(address, field)| Self::Pci(address, field)),
            "irqbalance" => Some(Self::Irqbalance(rest)).filter(|_| !rest.is_empty()),
            _ => None,
        }
    }

    /// The interface that it is a setting of.
    pub fn nic(self) -> Option<&'k str> {
        match self {
            Self::Nic(nic, _) | Self::Queue(nic, ..) => Some(nic),
            _ => None,
        }
    }

    /// The file that holds the setting, where it is one.
    pub fn file(self) -> Option<String> {
        Some(match self {
            Self::Queue(nic, queue, setting) => {
                let file = if setting == "rfs_flows" { "rps_flow_cnt" } else { setting };
                format!("/sys/class/net/{nic}/queues/{queue}/{file}")
            }
            Self::Nic(nic, NicSetting::Plain(setting)) => match setting {
                "channels" | "qdisc" | "rss.key" | "rss.table" => return None,
                "txqueuelen" => format!("/sys/class/net/{nic}/tx_queue_len"),
                attribute => format!("/sys/class/net/{nic}/{attribute}"),
            },
            Self::Irq(irq) => format!("/proc/irq/{irq}/smp_affinity_list"),
            Self::Cpu(cpu, setting) => {
                let file = match setting {
                    "governor" => "cpufreq/scaling_governor",
                    "energy_preference" => "cpufreq/energy_performance_preference",
                    "idle_limit" => "power/pm_qos_resume_latency_us",
                    _ => return None,
                };
                format!("/sys/devices/system/cpu/cpu{cpu}/{file}")
            }
            _ => return None,
        })
    }

    /// The command that an administrator without netwright types, or what it does instead where no one
    /// command does it. `new` is in the kernel's form.
    pub fn command(self, new: &str) -> String {
        match self {
            Self::Sysctl(key) => quote::sysctl(key, new),
            Self::Nic(nic, setting) => {
                nic_command(nic, setting, new).unwrap_or_else(|| self.echo(new))
            }
            Self::Queue(..) | Self::Irq(_) => self.echo(new),
            Self::Cpu(_, "idle_limit") => self.echo(&idle_limit(new)),
            Self::Cpu(..) => self.echo(new),
            Self::Process(pid, "affinity") => format!("taskset -acp {new} {pid}"),
            Self::Process(pid, _) => {
                format!("echo {new} > cpuset.cpus (and .mems) of the cgroup in /proc/{pid}/cgroup")
            }
            Self::Pci(address, field) => {
                let (register, least, shift, mask) = match field {
                    "mmrbc" => ("CAP07+2.w", 512, 2, 0xc),
                    _ => ("CAP_EXP+8.w", 128, 12, 0x7000),
                };
                let code = new.parse::<u32>().map_or(0, |n| (n / least).trailing_zeros());
                format!("setpci -s {address} {register}={:x}:{mask:x}", code << shift)
            }
            Self::Irqbalance(setting) => irqbalance_command(setting, new),
        }
    }

    fn echo(self, new: &str) -> String {
        self.file().map_or_else(String::new, |file| quote::echo(new, &file))
    }
}

/// The full name: what [`Target::parse`] took apart.
impl fmt::Display for Target<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sysctl(key) => write!(f, "sysctl.{key}"),
            Self::Nic(nic, setting) => write!(f, "nic.{nic}.{setting}"),
            Self::Queue(nic, queue, setting) => write!(f, "nic.{nic}.queue.{queue}.{setting}"),
            Self::Irq(irq) => write!(f, "irq.{irq}.affinity"),
            Self::Cpu(cpu, setting) => write!(f, "cpu.{cpu}.{setting}"),
            Self::Process(pid, setting) => write!(f, "process.{pid}.{setting}"),
            Self::Pci(address, field) => write!(f, "pci.{address}.{field}"),
            Self::Irqbalance(setting) => write!(f, "irqbalance.{setting}"),
        }
    }
}

impl fmt::Display for NicSetting<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain(name) => f.write_str(name),
            Self::Ring(name) => write!(f, "rings.{name}"),
            Self::Coalesce(name) => write!(f, "coalesce.{name}"),
            Self::Feature(name) => write!(f, "features.{name}"),
            Self::Pause(name) => write!(f, "pause.{name}"),
            Self::HashFields(flow) => write!(f, "rss.hash_fields.{flow}"),
            Self::Napi(setting, which) => write!(f, "napi.{setting}.{which}"),
        }
    }
}

/// What the kernel takes as an interface's name (`dev_valid_name`).
pub fn is_nic_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..")
        && name.len() < 16
        && !name.bytes().any(|b| b == b'/' || b == b':' || b.is_ascii_whitespace() || b == 0)
}

/// Whether it is `rx-N` or `tx-N`.
fn is_queue(name: &str) -> bool {
    let number = name.strip_prefix("rx-").or_else(|| name.strip_prefix("tx-"));
    number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

fn nic<'k>(rest: &'k str) -> Option<Target<'k>> {
    let group = |word: &str| {
        rest.rsplit_once(word).filter(|(nic, name)| is_nic_name(nic) && !name.is_empty())
    };
    let of = |word: &str, setting: fn(&'k str) -> NicSetting<'k>| {
        group(word).map(|(nic, name)| Target::Nic(nic, setting(name)))
    };
    if let Some((nic, end)) = group(".queue.") {
        let (queue, setting) = end.split_once('.').filter(|(queue, _)| is_queue(queue))?;
        return Some(Target::Queue(nic, queue, setting));
    }
    if let Some((nic, end)) = group(".napi.") {
        let (setting, which) = end.split_once('.')?;
        return Some(Target::Nic(nic, NicSetting::Napi(setting, which)));
    }
    let two_words = ["rss.key", "rss.table"].into_iter().find_map(|setting| {
        let nic = rest.strip_suffix(setting)?.strip_suffix('.')?;
        is_nic_name(nic).then_some(Target::Nic(nic, NicSetting::Plain(setting)))
    });
    two_words
        .or_else(|| of(".rings.", NicSetting::Ring))
        .or_else(|| of(".coalesce.", NicSetting::Coalesce))
        .or_else(|| of(".features.", NicSetting::Feature))
        .or_else(|| of(".pause.", NicSetting::Pause))
        .or_else(|| of(".rss.hash_fields.", NicSetting::HashFields))
        .or_else(|| of(".", NicSetting::Plain))
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

/// The suffix of an exact value of a queueing discipline that the kernel created by itself.
pub const OWN_QDISC: &str = " (the kernel's default)";

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

#[cfg(test)]
mod tests {
    use super::*;

    fn command(knob: &str, new: &str) -> String {
        Target::parse(knob).unwrap_or_else(|| panic!("{knob}")).command(new)
    }

    #[test]
    fn a_name_with_dots_is_the_interface_s() {
        let vlan = Target::parse("nic.eth0.100.mtu");
        assert_eq!(vlan, Some(Target::Nic("eth0.100", NicSetting::Plain("mtu"))));
        let table = Target::parse("nic.eth0.rss.table");
        assert_eq!(table, Some(Target::Nic("eth0", NicSetting::Plain("rss.table"))));
        let queue = Target::parse("nic.eth0.1.queue.tx-3.xps_cpus");
        assert_eq!(queue, Some(Target::Queue("eth0.1", "tx-3", "xps_cpus")));
        let napi = Target::parse("nic.eth0.napi.threaded.rx-0");
        assert_eq!(napi, Some(Target::Nic("eth0", NicSetting::Napi("threaded", "rx-0"))));
        assert_eq!(
            Target::parse("pci.0000:81:00.0.mmrbc"),
            Some(Target::Pci("0000:81:00.0", "mmrbc"))
        );
        for none in [
            "",
            "nic",
            "nic.mtu",
            "nic..mtu",
            "nic.a/b.mtu",
            "irq.07.affinity",
            "irq.7",
            "cpu.+1.governor",
            "x.y",
        ] {
            assert_eq!(Target::parse(none), None, "{none}");
        }
    }

    #[test]
    fn commands_are_those_that_an_administrator_types() {
        for (knob, new, text) in [
            ("sysctl.net.core.somaxconn", "4096", "sysctl -w net.core.somaxconn=4096"),
            ("nic.eth0.channels", "combined 4", "ethtool -L eth0 combined 4"),
            ("nic.eth0.rings.rx_mini", "512", "ethtool -G eth0 rx-mini 512"),
            ("nic.eth0.coalesce.rx_max_frames", "8", "ethtool -C eth0 rx-frames 8"),
            ("nic.eth0.features.rx-gro", "on", "ethtool -K eth0 gro on"),
            (
                "nic.eth0.features.tx-tcp-segmentation",
                "on",
                "ethtool -K eth0 tx-tcp-segmentation on",
            ),
            (
                "nic.eth0.rss.hash_fields.udp4",
                "src_ip dst_ip src_port dst_port",
                "ethtool -N eth0 rx-flow-hash udp4 sdfn",
            ),
            ("nic.$(id).mtu", "1500", "ip link set '$(id)' mtu 1500"),
            ("nic.eth0.qdisc", "default", "tc qdisc del dev eth0 root"),
            (
                "nic.eth0.queue.rx-2.rfs_flows",
                "4096",
                "echo 4096 > /sys/class/net/eth0/queues/rx-2/rps_flow_cnt",
            ),
            ("irq.38.affinity", "4-7", "echo 4-7 > /proc/irq/38/smp_affinity_list"),
            // The kernel knows no `none`: 0 is no limit to it.
            (
                "cpu.3.idle_limit",
                "none",
                "echo 0 > /sys/devices/system/cpu/cpu3/power/pm_qos_resume_latency_us",
            ),
            ("process.4711.affinity", "0-3", "taskset -acp 0-3 4711"),
            (
                "pci.0000:81:00.0.read_request",
                "512",
                "setpci -s 0000:81:00.0 CAP_EXP+8.w=2000:7000",
            ),
            (
                "irqbalance.banned_cpus",
                "none",
                "irqbalance-ui, or \"settings cpus NULL\" to its socket",
            ),
        ] {
            assert_eq!(command(knob, new), text, "{knob}");
            assert_eq!(Target::parse(knob).map(|t| t.to_string()).as_deref(), Some(knob));
        }
    }
}
