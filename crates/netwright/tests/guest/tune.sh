# All of one boot: `netwright tune` ($1) changes what no namespace has of its own, each seen with
# the classic tools and undone. A line for each: what was asked, exit codes, whether the host
# differed in between and was the same afterwards.
cd "$(mktemp -d)" || exit 1
export NETWRIGHT_STATE=$PWD/state
print() {
  for irq in /proc/irq/*/smp_affinity_list; do echo "$irq $(cat "$irq")"; done
  ethtool -l eth0; ethtool -g eth0; ethtool -k eth0; tc -d qdisc show dev eth0
  grep . /sys/devices/system/cpu/cpu*/power/pm_qos_resume_latency_us
  cat /proc/$sleeper/cgroup /sys/fs/cgroup/cgroup.subtree_control; ls -d /sys/fs/cgroup/netwright*
  grep allowed_list /proc/$sleeper/status
  grep -r . /sys/class/net/eth0/queues/*/{r,x}ps_* /sys/class/net/eth0/{threaded,mtu,tx_queue_len} \
    /proc/sys/net/core/rps_sock_flow_entries /proc/sys/net/core/rmem_max /proc/sys/kernel/numa_balancing
} 2> /dev/null
say() { # what it was, exit codes of apply and rollback
  print > after
  echo "$1|$2|$3|$(cmp -s before during && echo same || echo differs)|$(cmp -s before after && echo same || echo differs)"
  cmp -s before after || diff before after >&2
}
busybox modprobe sch_fq
sleep 1000 > /dev/null 2>&1 & sleeper=$!
tc qdisc replace dev eth0 root handle 7: fq_codel target 6ms limit 999
print > before
printf '%s\n' irq.affinity=local:eth0 sysctl.kernel.numa_balancing=0 cpu.idle_limit=10us \
  nic.eth0.threaded=on nic.eth0.rfs=32768 nic.eth0.features.tx-tcp-segmentation=off \
  'nic.eth0.qdisc=mq fq limit 20000 flow_limit 200' "process.$sleeper.cpuset=3 mems 1" > settings
"$1" tune apply --no-confirm settings >&2; applied=$?
print > during
"$1" tune rollback >&2
say settings $applied $?
# The NIC's node is 1, its CPUs 2 and 3: both have the same number of queues.
for cpu in 2 3; do
  n=0
  for irq in $(awk -F: '/virtio.*(in|out)put\.[0-9]/ {print $1 + 0}' /proc/interrupts); do
    grep -q "/proc/irq/$irq/smp_affinity_list $cpu$" during && n=$((n + 1))
  done
  echo "interrupts on CPU $cpu: $n"
done
echo "fq: $(grep -c 'qdisc fq .*limit 20000p flow_limit 200p' during)"
echo "group: $(grep allowed_list during | awk '{print $2}' | xargs) $(grep ^0:: during | sed "s/$sleeper/N/")"
# Changes that may cut the operator's own connection: the guard undoes them.
own="10.97.0.1 50000 10.97.0.2 22"
SSH_CONNECTION=$own "$1" tune apply nic.eth0.rings.rx=128 nic.eth0.channels=2 nic.eth0.qdisc=default \
  --confirm 8s >&2; applied=$?
print > during
# Its end is seen by what it writes last: the journal, after everything was read again.
for _ in $(seq 240); do
  grep -q '"event":"rolled_back"' "$(ls "$NETWRIGHT_STATE"/journal/*.jsonl | tail -1)" && break
  sleep 0.25
done
say guard $applied 0
# The real irqbalance, which looks every second. One pinned interrupt is banned there, one is not.
set -- "$1" $(awk -F: '/virtio.*input\.[01]/ {print $1 + 0}' /proc/interrupts)
mkdir -p /run/irqbalance
irqbalance --foreground --interval=1 > irqbalance.log 2>&1 & balancer=$!
for _ in $(seq 80); do [ -e /run/irqbalance/irqbalance$balancer.sock ] && break; sleep 0.25; done
sleep 2
"$1" tune apply --no-confirm irqbalance.banned_irqs=+$2 irq.$2.affinity=0 irq.$3.affinity=0 >&2; applied=$?
for _ in $(seq 24); do [ "$(cat /proc/irq/$3/smp_affinity_list)" = 0 ] || break; sleep 0.25; done
"$1" tune status > status; held=$?
other=$(cat /proc/irq/$3/smp_affinity_list)
cat status irqbalance.log >&2
echo "irqbalance: $applied, banned $(cat /proc/irq/$2/smp_affinity_list), other $([ "$other" = 0 ] &&
  echo "stays, status $held" || echo "moved, status $held, $(grep -o 'irqbalance' status | tail -1)")"
kill $balancer $sleeper
