#!/bin/bash
# In the lab's guest of four nodes: a plan of `place` judged by `prove` against where the service is
# now, then the reverse. The metric is the share of wake-ups that come from the service's own node.
# Usage: place.sh NETWRIGHT        while a client of the lab asks 10.97.0.2
set -e
here=$(dirname "$0")
export NETWRIGHT_STORE=off NETWRIGHT_STATE=/tmp/state
# Badly placed: the service on node 0, the interrupts of its NIC (on node 2) on node 1.
taskset -c 0-3 "$1" serve --quiet --bind 10.97.0.2 --open > /dev/null 2>&1 & pid=$!
irqs=$(awk -F: '/virtio2-(input|output)\.[0-9]/ {print $1 + 0}' /proc/interrupts)
for irq in $irqs; do echo 4 > "/proc/irq/$irq/smp_affinity_list"; done
until "$here/wakes.sh" $pid 1; do sleep 1; done # its client is there
before="process.$pid.affinity=0-3"
for irq in $irqs; do before="$before irq.$irq.affinity=4"; done
"$1" place --pid $pid
"$1" place --pid $pid --lines > /tmp/placement.conf
prove() { # changes, one a line, on standard input
  sed 's/^/--change\n/' | xargs -d '\n' "$1" prove --budget 5m -q \
    --command "$here/wakes.sh $pid 0.3" --metric 'same_node=/same_node_percent ([0-9.]+)/:higher' || true
}
prove "$1" < /tmp/placement.conf
"$1" tune apply -q --no-confirm /tmp/placement.conf
tr ' ' '\n' <<< "$before" | prove "$1"
kill $pid
