//! The names of knobs, their objects, and the classic command for each: one place for the rules,
//! for `tune` and for the documentation.

mod command;

use std::fmt;

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
    /// `memory.SETTING`: a setting of the whole host's memory.
    Memory(&'k str),
    /// `route.DESTINATION.SETTING`: the route, as in `default` or `10.0.0.0/8@100`, and its setting.
    Route(&'k str, &'k str),
    /// `boot.PARAMETER`: a parameter of the kernel cmdline.
    Boot(&'k str),
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

/// Largest packets that the stack makes before segmentation and after merging (BIG TCP): settings of
/// `ip link`. **Source**: `IFLA_GSO_MAX_SIZE` and its like, `include/uapi/linux/if_link.h`.
pub const SEGMENT_SIZES: [&str; 4] =
    ["gso_max_size", "gro_max_size", "gso_ipv4_max_size", "gro_ipv4_max_size"];

const THP: &str = "/sys/kernel/mm/transparent_hugepage";

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
            "memory" => Some(Self::Memory(rest)).filter(|_| !rest.is_empty()),
            "route" => rest
                .rsplit_once('.')
                .filter(|(to, setting)| !to.is_empty() && !setting.is_empty())
                .map(|(to, setting)| Self::Route(to, setting)),
            "boot" => Some(Self::Boot(rest)).filter(|_| !rest.is_empty()),
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
                // Netlink's alone.
                size if SEGMENT_SIZES.contains(&size) => return None,
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
            Self::Memory("thp") => format!("{THP}/enabled"),
            Self::Memory("thp_defrag") => format!("{THP}/defrag"),
            _ => return None,
        })
    }

    /// The command that an administrator without netwright types, or what it does instead where no one
    /// command does it. `new` is in the kernel's form.
    pub fn command(self, new: &str) -> String {
        command::of(self, new)
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
            Self::Memory(setting) => write!(f, "memory.{setting}"),
            Self::Route(to, setting) => write!(f, "route.{to}.{setting}"),
            Self::Boot(parameter) => write!(f, "boot.{parameter}"),
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

/// The suffix of an exact value of a queueing discipline that the kernel created by itself.
pub const OWN_QDISC: &str = " (the kernel's default)";

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
            ("nic.eth0.gso_max_size", "200000", "ip link set dev eth0 gso_max_size 200000"),
            ("memory.thp", "never", "echo never > /sys/kernel/mm/transparent_hugepage/enabled"),
            (
                "process.4711.cpu_max",
                "50000 100000",
                "echo 50000 100000 > cpu.max of the cgroup in /proc/4711/cgroup",
            ),
            (
                "route.default@100.initcwnd",
                "20",
                "ip route change default … metric 100 initcwnd 20 (…: as ip route show default prints it)",
            ),
            (
                "route.2001:db8::/32.rto_min",
                "none",
                "ip -6 route change 2001:db8::/32 … (without rto_min) (…: as ip -6 route show \
                 2001:db8::/32 prints it)",
            ),
            (
                "boot.iommu.strict",
                "0",
                "iommu.strict=0 on the kernel cmdline, by the boot loader's file",
            ),
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
