# All of one boot: `netwright tune` ($1) changes what no namespace has of its own, each seen with
# the classic tools and undone. A line for each: what was asked, exit codes, whether the host
# differed in between and was the same afterwards.
cd "$(mktemp -d)" || exit 1
export NETWRIGHT_STATE=$PWD/state
print() {
  for irq in /proc/irq/*/smp_affinity_list; do echo "$irq $(cat "$irq")"; done
  tc -d qdisc show dev eth0
  grep . /sys/devices/system/cpu/cpu*/power/pm_qos_resume_latency_us
  cat /proc/$sleeper/cgroup /sys/fs/cgroup/cgroup.subtree_control; ls -d /sys/fs/cgroup/netwright*
  grep allowed_list /proc/$sleeper/status
  for what in "eth0 g" "eth0 k" "eth0 l" "eth0 x" "eth1 g" "eth1 k" "eth1 x" "eth2 a" "eth2 c" "eth2 g" "eth2 k"; do
    echo "$what"; ethtool -${what#* } ${what% *}
  done
  echo "eth0 n"; ethtool -n eth0 rx-flow-hash tcp4
  cat /sys/class/net/eth[12]/{mtu,tx_queue_len}; setpci -s 83:0.0 CAP_EXP+8.w
  grep -r . /sys/class/net/eth0/queues/*/{r,x}ps_* /sys/class/net/eth0/{threaded,mtu,tx_queue_len} \
    /sys/kernel/mm/transparent_hugepage/{enabled,defrag} /proc/sys/net/core/rps_sock_flow_entries /proc/sys/net/core/rmem_max /proc/sys/kernel/numa_balancing \
    /proc/sys/vm/{dirty_bytes,dirty_ratio,overcommit_kbytes,overcommit_ratio,min_free_kbytes} /proc/sys/{fs/inotify/max_user,user/max_inotify}_watches
} 2> /dev/null
say() { # what it was, exit codes of apply and rollback
  print > after
  echo "$1|$2|$3|$(cmp -s before during && echo same || echo differs)|$(cmp -s before after && echo same || echo differs)"
  cmp -s before after || diff before after >&2
}
busybox modprobe sch_fq
sleep 1000 > /dev/null 2>&1 & sleeper=$!
tc qdisc replace dev eth0 root handle 7: fq_codel target 6ms limit 999
echo 3000 > /proc/sys/vm/min_free_kbytes # huge pages move it along
print > before
printf '%s\n' irq.affinity=local:eth0 sysctl.kernel.numa_balancing=0 cpu.idle_limit=10us \
  sysctl.vm.dirty_bytes=268435456 sysctl.vm.overcommit_ratio=60 sysctl.fs.inotify.max_user_watches=70000 \
  memory.thp=never nic.eth0.threaded=on nic.eth0.rfs=32768 nic.eth0.features.tx-tcp-segmentation=off \
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
echo "one value: $(sed -nE 's#^/proc/sys/(vm/dirty_|.*_watches:)#\1#p' during | xargs)"
echo "huge pages: $(sed -n 's#.*hugepage/enabled:.*\[#[#p' during), reserve $(grep -q 'min_free_kbytes:3000$' during && echo stays || echo moved)"
# NICs that take what virtio-net alone does not: its receive hash, vmxnet3, e1000e.
until grep -q 1 /sys/class/net/eth2/carrier; do sleep 0.25; done # it negotiates
"$1" tune apply --no-confirm "nic.eth0.rss.table=equal 2" nic.eth0.rss.key=symmetric \
  "nic.eth0.rss.hash_fields.tcp4=src_ip dst_ip" nic.eth0.features.rx-hashing=on \
  "nic.eth1.rss.table=equal 3" nic.eth1.rings.rx=512 nic.eth1.mtu=1400 nic.eth1.features.rx-lro=off \
  nic.eth2.coalesce.rx_usecs=50us nic.eth2.rings.tx=512 \
  nic.eth2.features.rx-hashing=off >&2; applied=$?
print > during; cp during devices
"$1" tune rollback >&2
say devices $applied $?
# By itself: when e1000e's link comes back after a reset, the driver decides about pause anew.
until grep -q 1 /sys/class/net/eth2/carrier; do sleep 0.25; done
"$1" tune apply --no-confirm nic.eth2.pause.autoneg=off nic.eth2.pause.rx=off >&2; applied=$?
ethtool -a eth2 > pause; print > during
"$1" tune rollback >&2
say pause $applied $?
seen() { # the words that are the value, of the lines of one NIC's part
  sed -n "/^$1 $2\$/,/^eth/p" devices | grep -E "$3" | xargs
}
echo "table: $(seen eth0 x '^ +(0|120):')"
echo "key: $(seen eth0 x '^6d:')"
echo "fields: $(sed -n '/^TCP over IPV4/,/^$/p' devices | xargs)"
echo "hashing: $(seen eth0 k ^receive-hashing) $(seen eth2 k ^receive-hashing)"
echo "vmxnet3: $(seen eth1 x '^ +8:') $(seen eth1 g ^RX: | cut -d' ' -f3,4) $(seen eth1 k ^large-receive)"
echo "e1000e: $(grep -E '^(Auto|RX|TX)' pause | xargs) $(seen eth2 c ^rx-usecs:) $(seen eth2 g ^TX: | cut -d' ' -f3,4)"
# A real PCI Express capability: read as setpci reads it; QEMU's do not take another size.
"$1" tune plan --i-understand pci.0000:83:00.0.read_request=512 > plan
echo "read request: $(grep -o 'read_request .*' plan), setpci $(setpci -s 83:0.0 CAP_EXP+8.w)"
"$1" tune apply --no-confirm --i-understand pci.0000:83:00.0.read_request=512 2> said
echo "clamped: $?, $(grep -o '512 was written and the kernel made 128 of it' said)"
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
"$1" tune rollback >&2
# CPUs that it keeps free, and back; then stopped and looked at, which must not end it.
"$1" tune apply --no-confirm irqbalance.banned_cpus=+0-1 >&2; applied=$?
"$1" inspect --json > facts
"$1" tune rollback >&2; back=$?
"$1" inspect --json > facts2
bans() { python3 -c 'import json,sys
print("none" if not (b := next(r["banned_cpus"] for r in json.load(open(sys.argv[1]))["tuners"] if r["kind"]=="irqbalance")) else b)' "$1"; }
echo "banned CPUs: $applied, $(bans facts), $back, $(bans facts2)"
"$1" tune apply --no-confirm irqbalance.paused=on >&2; applied=$?
"$1" inspect --json > facts
"$1" tune rollback >&2; back=$?
# Once a second it looks around, and runs for that time.
for _ in $(seq 40); do sleep 0.25; state=$(cut -d' ' -f3 /proc/$balancer/stat); [ "$state" = S ] && break; done
echo "paused: $applied, $back, $state"
"$1" tune plan irqbalance.running=off 2>&1 | grep -om1 'no service manager runs this irqbalance'
kill $balancer $sleeper
# Kept over a boot: of the distribution's own readers, in a boot's order. The kernel's setting is back
# at its default, the device leaves and comes anew, and the real udevd hears of it.
values() {
  echo "$(sysctl -n net.core.somaxconn) $(cd /sys/class/net/eth2 && cat mtu tx_queue_len gro_flush_timeout | xargs)" \
    "$(ethtool -g eth2 | sed 1,/Current/d | grep ^TX: | xargs) $(ethtool -c eth2 | grep ^rx-usecs: | xargs)"
}
starts() {
  # A udevd that runs looks at its files for changes at most every 3 s; a boot's has read none before.
  sleep 3.5
  echo 1 > /sys/bus/pci/devices/0000:83:00.0/remove
  sysctl -qw net.core.somaxconn=4096
  /lib/systemd/systemd-sysctl
  echo 1 > /sys/bus/pci/rescan
  for _ in $(seq 120); do [ -e /sys/bus/pci/devices/0000:83:00.0/net ] && break; sleep 0.25; done
  SYSTEMD_IGNORE_CHROOT=1 udevadm settle -t 60
  now=$(basename /sys/bus/pci/devices/0000:83:00.0/net/*)
  [ "$now" = eth2 ] || ip link set "$now" name eth2
} >&2
mkdir -p /run/udev
/lib/systemd/systemd-udevd --daemon >&2
was=$(values)
"$1" tune apply --no-confirm sysctl.net.core.somaxconn=8192 nic.eth2.mtu=1400 nic.eth2.txqueuelen=500 \
  nic.eth2.rings.tx=512 nic.eth2.gro_flush_timeout=20us nic.eth2.coalesce.rx_usecs=50us >&2
"$1" tune persist >&2; kept=$?
starts
echo "kept: $kept, $(values)"
"$1" tune persist --remove >&2; removed=$?
starts
echo "no longer kept: $removed, $([ "$(values)" = "$was" ] && echo as before || values)"
kill $(pidof systemd-udevd)
