//! Situations of real investigations, in miniature.

use std::time::Duration;

use model::{BitsPerSec, Nanos};

use crate::{Lab, LabError, channel::Channel, netns, pair::PairSpec, state::Reach, wander};

/// A situation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preset {
    /// One channel where four are possible: one CPU takes all interrupts.
    Queues,
    /// Softirqs on the other node than the NIC.
    Softirq,
    /// A slower path beside loopback.
    Latency,
    /// Two containers whose threads something sends from CPU to CPU.
    Migration,
    /// Small buffers and a small MTU on a fast, long wire.
    Tengig,
}

impl Preset {
    /// As typed.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queues => "queues",
            Self::Softirq => "softirq",
            Self::Latency => "latency",
            Self::Migration => "migration",
            Self::Tengig => "tengig",
        }
    }

    /// The shape it needs.
    pub const fn shape(self) -> &'static str {
        match self {
            Self::Queues | Self::Softirq => "server",
            Self::Latency | Self::Tengig => "pair",
            Self::Migration => "containers",
        }
    }

    /// The pair it starts from.
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

    /// Makes the situation in a lab whose hosts are up.
    ///
    /// # Errors
    /// As the tools on the hosts say.
    pub fn apply(self, lab: &mut Lab) -> Result<(), LabError> {
        match self {
            Self::Queues => {
                guest(lab, "ethtool -L eth0 combined 1")?;
                lab.note("server: eth0 uses 1 of its channels; one CPU takes all its interrupts");
            }
            Self::Softirq => {
                guest(lab, OTHER_NODE)?;
                lab.note("server: eth0's interrupts go to the CPUs of the other node");
            }
            Self::Tengig => {
                for host in lab.state.hosts.clone() {
                    if let Reach::Namespace { namespace, .. } = &host.reach {
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
                wander::start(lab)?;
                lab.note(
                    "the containers' cpusets allow all CPUs; their threads are moved every 4 ms",
                );
            }
        }
        Ok(())
    }
}

/// Binds every queue interrupt of eth0 to the CPUs of another node than the NIC's.
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
            Reach::Guest { ports } => Some(ports.clone()),
            Reach::Namespace { .. } => None,
        })
        .ok_or_else(|| LabError::failed("applying the preset", "the lab has no guest"))?;
    let argv = ["sh", "-c", script].map(str::to_owned);
    let channel = Channel::open(&folder, Duration::from_secs(10))?;
    let done = channel.output(&argv, Duration::from_secs(30))?;
    if done.code == 0 {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&done.stderr);
    Err(LabError::failed("applying the preset in the guest", said.trim()))
}
