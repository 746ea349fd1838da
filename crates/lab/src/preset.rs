//! Small versions of real performance problems.

use std::time::Duration;

use model::{BitsPerSec, Nanos};

use crate::{
    Lab, LabError, channel::Channel, netns, pair::PairSpec, server::Emulation, state::NodeAccess,
    thread_migration,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preset {
    /// One channel instead of four: one CPU takes all interrupts.
    Queues,
    /// Softirqs on another node than the NIC's.
    Softirq,
    /// A path slower than loopback.
    Latency,
    /// Two containers with threads that are moved between CPUs constantly.
    Migration,
    /// Small buffers and a small MTU on a fast link with a long delay.
    Tengig,
}

impl Preset {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queues => "queues",
            Self::Softirq => "softirq",
            Self::Latency => "latency",
            Self::Migration => "migration",
            Self::Tengig => "tengig",
        }
    }

    /// The topology it needs: `pair`, `containers` or `server`.
    pub const fn topology(self) -> &'static str {
        match self {
            Self::Queues | Self::Softirq => "server",
            Self::Latency | Self::Tengig => "pair",
            Self::Migration => "containers",
        }
    }

    /// Whether it is available as a pair; one of the two hosts is a guest if the problem needs one.
    pub const fn is_a_pair(self) -> bool {
        matches!(self, Self::Latency | Self::Tengig | Self::Queues)
    }

    /// Emulation of a pair's guest, which is measured rather than traced. The cost of a single
    /// channel only shows if further CPUs add computing time.
    pub const fn emulation_of_pair(self) -> Option<Emulation> {
        match self {
            Self::Queues => Some(Emulation::Each),
            _ => None,
        }
    }

    /// Parameters of the pair it starts from.
    pub fn pair(self) -> PairSpec {
        let base = PairSpec::default();
        match self {
            Self::Latency => PairSpec { delay: Some(Nanos(40_000)), queues: 1, ..base },
            Self::Tengig => PairSpec {
                rate: Some(BitsPerSec(1_000_000_000)),
                delay: Some(Nanos(2_000_000)),
                mtu: Some(1500),
                queues: 1,
                ..base
            },
            _ => base,
        }
    }

    /// Applies the part of the problem that needs guest CPUs running in parallel, which make a
    /// single channel a bottleneck.
    ///
    /// # Errors
    /// Errors of the tools on the hosts.
    pub fn apply_side_by_side(self, lab: &mut Lab) -> Result<(), LabError> {
        if self == Self::Queues {
            guest(lab, BLOCKED)?;
            lab.note("server: each packet is held against 4,000 blocked addresses in turn");
        }
        Ok(())
    }

    /// Applies the problem to a lab with its hosts up.
    ///
    /// # Errors
    /// Errors of the tools on the hosts.
    pub fn apply(self, lab: &mut Lab) -> Result<(), LabError> {
        match self {
            Self::Queues => {
                guest(lab, "ethtool -L eth0 combined 1")?;
                let client = netns::name_of(&lab.state.name, "client");
                netns::run(&client, "ethtool", &["-L", "eth0", "rx", "1", "tx", "1"])?;
                lab.note("server: eth0 uses 1 of its channels; one CPU takes all its interrupts");
                lab.note("client: eth0 uses 1 of its channels");
            }
            Self::Softirq => {
                guest(lab, OTHER_NODE)?;
                lab.note("server: eth0's interrupts go to the CPUs of the other node");
            }
            Self::Tengig => {
                for host in lab.state.hosts.clone() {
                    if let NodeAccess::Namespace { namespace, .. } = &host.reach {
                        netns::write(
                            namespace,
                            "/proc/sys/net/ipv4/tcp_rmem",
                            "4096 65536 131072",
                        )?;
                        netns::write(
                            namespace,
                            "/proc/sys/net/ipv4/tcp_wmem",
                            "4096 65536 131072",
                        )?;
                    }
                }
                lab.note("both hosts: TCP buffers of at most 128 KiB; the path holds 500 KB");
            }
            Self::Latency => lab.note("left to right is 40 µs slower each way than loopback"),
            Self::Migration => {
                thread_migration::start(lab)?;
                lab.note(
                    "the containers' cpusets allow all CPUs; their threads are moved every 4 ms",
                );
            }
        }
        Ok(())
    }
}

/// A list of blocked addresses, checked one by one for each received packet in its softirq (`tc
/// filter show dev eth0 ingress`). It replaces the CPUs that a guest lacks: in the field one CPU
/// received for 31 that answered, here for 3, so receiving must cost more to be the bottleneck.
pub const BLOCKED: &str = r#"set -e
for m in sch_ingress cls_u32 act_gact; do busybox modprobe $m; done
tc qdisc add dev eth0 clsact
for a in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do b=0; while [ $((b += 1)) -le 250 ]; do
  echo "filter add dev eth0 ingress protocol ip prio 1 u32 match ip dst 10.97.0.2/32 match ip src 198.18.$a.$b/32 action drop"
done; done > /tmp/blocked
tc -batch /tmp/blocked"#;

/// Binds every queue interrupt of eth0 to CPUs of another node than the NIC's.
const OTHER_NODE: &str = r#"set -e
own=$(cat /sys/class/net/eth0/device/numa_node 2>/dev/null || echo -1)
[ "$own" -ge 0 ] || own=$(cat /sys/class/net/eth0/device/../numa_node)
for n in /sys/devices/system/node/node[0-9]*; do
  [ "${n##*node}" = "$own" ] || other=$(cat $n/cpulist)
done
[ -n "$other" ] || { echo "this guest has one node only" >&2; exit 1; }
device=$(readlink -f /sys/class/net/eth0/device/..)
[ -d "$device/msi_irqs" ] || device=$(readlink -f /sys/class/net/eth0/device)
for i in $(ls "$device/msi_irqs"); do
  case $(ls /proc/irq/$i) in *input*|*output*|*rxtx*) echo "$other" > /proc/irq/$i/smp_affinity_list ;; esac
done"#;

fn guest(lab: &Lab, script: &str) -> Result<(), LabError> {
    let folder = lab
        .state
        .hosts
        .iter()
        .find_map(|h| match &h.reach {
            NodeAccess::Guest { ports } => Some(ports.clone()),
            NodeAccess::Namespace { .. } => None,
        })
        .ok_or_else(|| LabError::failed("applying the preset", "the lab has no guest"))?;
    let argv = ["sh", "-c", script].map(str::to_owned);
    let channel = Channel::open(&folder, Duration::from_secs(10))?;
    let done = channel.output(&argv, Duration::from_secs(60))?;
    if done.code == 0 {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&done.stderr);
    Err(LabError::failed("applying the preset in the guest", said.trim()))
}
