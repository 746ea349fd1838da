# What the suite `doctor_guest` plants in its guest, a function for each fault; sourced by each of its steps.
# eth0 is virtio-net with eight queues, eth1 vmxnet3, eth2 e1000e; all on node 1, whose CPUs are 4 to 7.
queue_irqs() { # of a NIC's receiving queues, and of eth0's sending ones, in their order
  case $1 in
    eth0) awk -F: '/virtio.*-input\.[0-9]/ {print $1 + 0}' /proc/interrupts ;;
    eth0-tx) awk -F: '/virtio.*-output\.[0-9]/ {print $1 + 0}' /proc/interrupts ;;
    eth1) awk -F: '/eth1-rxtx-[0-9]/ {print $1 + 0}' /proc/interrupts ;;
    eth2) awk -F: '/eth2-rx-0/ {print $1 + 0}' /proc/interrupts ;;
  esac
}
place() { # such queues on these CPUs, in turn
  local nic=$1 irq all; shift; all=("$@")
  for irq in $(queue_irqs "$nic"); do
    echo "$1" > "/proc/irq/$irq/smp_affinity_list"
    shift; [ $# -gt 0 ] || set -- "${all[@]}"
  done
}
steer() { local file; for file in /sys/class/net/eth0/queues/$1; do echo "$2" > "$file"; done; }
truth() { # the kernel's own counters, which a look is held to
  cat /proc/uptime /proc/interrupts /proc/net/softnet_stat /proc/net/stat/nf_conntrack /proc/net/stat/arp_cache /proc/net/sockstat
  grep "^cpu[0-9]" /proc/stat
  echo "entries in table $(cat /proc/sys/net/netfilter/nf_conntrack_count)"; ethtool -S eth1
}
look() { # what doctor says, between two readings of them
  truth > before
  "$NETWRIGHT" doctor --json --no-bpf --window 2s "$@" > findings || return
  truth > after
  cat findings; echo =====; cat before; echo =====; cat after
}
start() { # a program on a CPU; its process is told
  taskset -c "$1" perl -MSocket "${@:2}" > /dev/null 2>&1 &
  echo $!
}
balance() { # irqbalance with these options, which looks at nothing for now; its process is told
  mkdir -p /run/irqbalance
  irqbalance --foreground --interval=600 "$@" > /dev/null 2>&1 &
  until [ -e /run/irqbalance/irqbalance$!.sock ]; do sleep 0.1; done
  echo $!
}
connections() { # tracked on loopback, this many at most
  local module
  for module in crc32c_generic libcrc32c act_ct cls_matchall sch_ingress; do busybox modprobe $module; done
  tc qdisc add dev lo clsact
  tc filter add dev lo ingress protocol ip matchall action ct commit
  sysctl -qw net.netfilter.nf_conntrack_max="$1"
}
listens='socket S, PF_INET, SOCK_DGRAM, 0; bind S, sockaddr_in 9000, INADDR_ANY or die; recv S, $_, 2000, 0 while 1'
# Busy, with pauses: a CPU that never waits holds the guest's other CPUs up for 100 ms each time.
spins='while (1) { 1 for 1 .. 10000; select undef, undef, undef, 0.003 }'
works='while (1) { 1 for 1 .. 80000; select undef, undef, undef, 0.003 }'
fills='while (1) { 1 for 1 .. 500000; select undef, undef, undef, 0.003 }'
# 60 flows over loopback, a burst of 30 of them every 120 ms.
flows='socket $f[$_], PF_INET, SOCK_DGRAM, 0 for 0 .. 59; while (1) {
  send $_, "x", 0, sockaddr_in 9, INADDR_LOOPBACK for @f[0 .. 29];
  push @f, splice @f, 0, 37; select undef, undef, undef, 0.12 }'
# To 50 hosts of the link that are not there.
strangers='socket S, PF_INET, SOCK_DGRAM, 0; while (1) {
  send S, "x", 0, sockaddr_in 9, inet_aton "10.97.0.$_" for 100 .. 149; select undef, undef, undef, 0.2 }'
# To the client by eth1, 60 datagrams in one call.
segments='socket S, PF_INET, SOCK_DGRAM, 0; setsockopt S, 17, 103, pack "i", 60;
  while (1) { send S, "x" x 3600, 0, sockaddr_in 9, inet_aton "10.97.1.1" for 1 .. 10 }'
# A megabyte that nobody reads.
holds='use Fcntl; socket L, PF_INET, SOCK_STREAM, 0; bind L, sockaddr_in 9001, INADDR_LOOPBACK; listen L, 5;
  socket C, PF_INET, SOCK_STREAM, 0; connect C, sockaddr_in 9001, INADDR_LOOPBACK; fcntl C, F_SETFL, O_NONBLOCK;
  for (1 .. 200) { last unless defined syswrite C, "x" x 8192 } sleep 1000'
