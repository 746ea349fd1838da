//! One channel of four possible: found under load, four set, load spread, rolled back.

use std::{
    fs::File,
    net::UdpSocket,
    os::fd::AsRawFd,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use lab::testing::TestLab;

use crate::support::NETWRIGHT;

/// Datagrams of 64 flows from the lab's client to a closed port of the guest, at full speed, until
/// dropped.
struct Flood {
    stop: Arc<AtomicBool>,
    in_bursts: Arc<AtomicBool>,
    sender: Option<JoinHandle<()>>,
}

impl Flood {
    fn start(lab: &TestLab) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let in_bursts = Arc::new(AtomicBool::new(false));
        let (ended, bursts) = (Arc::clone(&stop), Arc::clone(&in_bursts));
        let space = format!("/run/netns/{}", lab.namespace("client").unwrap());
        let sender = thread::spawn(move || {
            let space = File::open(space).unwrap();
            // SAFETY: an open descriptor; only this thread changes its namespace.
            assert_eq!(unsafe { libc::setns(space.as_raw_fd(), libc::CLONE_NEWNET) }, 0);
            let flows: Vec<UdpSocket> =
                (0..64).map(|_| UdpSocket::bind("10.97.0.1:0").unwrap()).collect();
            let mut since = Instant::now();
            for flow in flows.iter().cycle() {
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                if bursts.load(Ordering::Relaxed) && since.elapsed() > Duration::from_millis(50) {
                    thread::sleep(Duration::from_millis(450));
                    since = Instant::now();
                }
                // The guest's reply that the port is closed is sometimes an error here.
                let _ = flow.send_to(&[0; 64], "10.97.0.2:9000");
            }
        });
        Self { stop, in_bursts, sender: Some(sender) }
    }

    /// Sends with pauses from now on, in which the guest drains its queues. The kernel moves an
    /// interrupt when it next fires; a queue that is never empty is polled and may not fire for
    /// long.
    fn in_bursts(&self) {
        self.in_bursts.store(true, Ordering::Relaxed);
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.sender.take().map(JoinHandle::join);
    }
}

/// Each step has its message. The guest's other CPUs idle only as the emulator allows: one look may
/// miss it.
const FIND_AND_APPLY: &str = r#"
mkdir /tmp/queues && cd /tmp/queues && export NETWRIGHT_STATE=$PWD/state || exit 1
print() { ethtool -l eth0; grep . /proc/irq/*/smp_affinity_list /sys/class/net/eth0/queues/*/?ps_*; }
print > before 2> /dev/null
for look in 1 2 3 4 5; do
  "$NETWRIGHT" doctor --window 3s --json > findings.json
  "$NETWRIGHT" tune plan - --json < findings.json > plan.json
  grep -q '"nic.eth0.channels"' plan.json && break
done
grep -o '"rule": *"few_channels"' findings.json > /dev/null && echo looked
"$NETWRIGHT" tune apply --no-confirm plan.json >&2 && echo applied
ethtool -l eth0 | awk '/^Combined/ {n = $2} END {print "channels " n}'
head -c 3000 plan.json >&2
"#;

const SPREAD_AND_UNDO: &str = r#"
cd /tmp/queues && export NETWRIGHT_STATE=$PWD/state || exit 1
print() { ethtool -l eth0; grep . /proc/irq/*/smp_affinity_list /sys/class/net/eth0/queues/*/?ps_*; }
# Packets that each CPU took in. A saturated queue is polled and hardly interrupts.
taken() { while read -r n _; do echo $((16#$n)); done < /proc/net/softnet_stat; }
taken > old
for look in $(seq 20); do
  sleep 1; taken > new
  on=$(paste old new | awk '$2 - $1 > 300 {n++} END {print n + 0}')
  [ "$on" = 4 ] && break
done
echo "on $on CPUs"; paste old new >&2
"$NETWRIGHT" tune status >&2; echo "status $?"
"$NETWRIGHT" tune rollback >&2 && echo undone
print > after 2> /dev/null
cmp before after >&2 && echo same
"#;

/// Runs in a guest of the preset `queues`.
pub fn is_worked(lab: &TestLab) {
    let flood = Flood::start(lab);
    let (mut said, mut reported) = (String::new(), String::new());
    for steps in [FIND_AND_APPLY, SPREAD_AND_UNDO] {
        let steps = format!("NETWRIGHT={NETWRIGHT}\n{steps}");
        let argv = ["timeout", "200", "bash", "-c", &steps];
        let out = lab.output_within("server", &argv, Duration::from_secs(210)).unwrap();
        said += &String::from_utf8_lossy(&out.stdout);
        reported += &String::from_utf8_lossy(&out.stderr);
        flood.in_bursts();
    }
    drop(flood);
    let expected = ["looked", "applied", "channels 4", "on 4 CPUs", "status 0", "undone", "same"];
    assert_eq!(said.lines().collect::<Vec<_>>(), expected, "{said}{reported}");
}
