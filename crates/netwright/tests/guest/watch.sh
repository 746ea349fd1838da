# All of one boot: `netwright watch` ($1) sees an application on CPU 0, first with the NIC's
# interrupts on CPUs 2 and 3, then upon it, then squeezes and backlog drops, then a CPU that goes
# and comes back, at last the application's end and a NIC that goes and comes back. A datagram comes
# to port 9000 all the time. Everything waits for intervals that watch has written, nothing for ever,
# and nothing outlives this script.
cd "$(mktemp -d)" || exit 1
trap 'kill -9 $(jobs -p) 2> /dev/null' EXIT
fail() { echo "$1 (second $SECONDS)" >&2; tail -n 5 note >&2; exit 1; }
lines() { wc -l < seen; }
# Half a second, without a process of its own: those are dear in an emulated guest.
exec 9<> <(:)
nap() { read -rt 0.5 -u 9; }
# Until watch has written $1 more intervals.
intervals() {
  local until=$(($(lines) + $1))
  while [ "$(lines)" -lt $until ]; do
    kill -0 $watch 2> /dev/null || fail "watch has ended"
    [ $SECONDS -lt 130 ] || fail "only $(lines) intervals"
    nap
  done
}
# The third interval from now is the first that surely began after now.
phase() {
  local now; now=$(lines)
  intervals 3
  echo "phase $1 $((now + 2)) $(lines)"
}
softnet() { echo "softnet $1"; cat /proc/net/softnet_stat; echo; }
interrupts_to() {
  local queue
  for queue in /proc/irq/*/virtio*-*put.*; do echo "$1" > "${queue%/*}/smp_affinity_list"; done
}

# The observer's own work stays away from the CPUs that are looked at.
taskset -cp 1 $$ > /dev/null
ethtool -L eth0 combined 4
# An application that polls its socket, and rests now and then: an emulator of one thread lets
# another CPU run only when this one has nothing to do, or after a tenth of a second.
taskset -c 0 perl -MSocket -e 'socket S, PF_INET, SOCK_DGRAM, 0; bind S, sockaddr_in 9000, INADDR_ANY
  or die; while (1) { recv S, $_, 2000, MSG_DONTWAIT for 1 .. 200; select undef, undef, undef, 0.003 }' &
application=$!
echo "application $application"
interrupts_to 2-3
softnet outer
: > seen
"$1" watch --json --interval 1s --softirq always --waits always --duration 140s > seen 2> note &
watch=$!
intervals 1
softnet inner
phase apart
interrupts_to 0
phase together

for q in /sys/class/net/eth0/queues/rx-*; do echo 2 > "$q/rps_cpus"; done
sysctl -qw net.core.netdev_budget=1 net.core.netdev_max_backlog=1
intervals 2
sysctl -qw net.core.netdev_budget=300 net.core.netdev_max_backlog=1000
for q in /sys/class/net/eth0/queues/rx-*; do echo 0 > "$q/rps_cpus"; done
softnet inner

# CPU 3 goes while it is watched, and comes back.
at=$(lines)
echo 0 > /sys/devices/system/cpu/cpu3/online || fail "CPU 3 stays"
phase without
echo 1 > /sys/devices/system/cpu/cpu3/online || fail "CPU 3 stays away"
phase again
echo "phase hotplug $at $(lines)"

# So does the NIC, with all that it has counted, while datagrams come; and the application ends.
at=$(lines)
nic=$(readlink -f /sys/class/net/eth0/device)
kill -9 $application
echo "${nic##*/}" > /sys/bus/virtio/drivers/virtio_net/unbind || fail "the NIC stays"
phase bare
echo "${nic##*/}" > /sys/bus/virtio/drivers/virtio_net/bind || fail "the NIC stays away"
phase back
echo "phase unplug $at $(lines)"
kill -TERM $watch
wait $watch || fail "watch ended with $?"
softnet outer
echo "seen"
cat seen
