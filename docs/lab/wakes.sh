#!/bin/bash
# Counts who wakes a process: for SECONDS, the wake-ups of its threads, by whether the CPU that wakes
# and the thread's CPU are on one NUMA node. Needs root and tracefs, no eBPF.
# Usage: wakes.sh PID SECONDS        prints: wakes 4167 other_node 4077 same_node_percent 2.16
set -e
event=/sys/kernel/tracing/events/sched/sched_waking
[ -e $event ] || mount -t tracefs none /sys/kernel/tracing
for task in "/proc/$1/task/"*; do filter="$filter${filter:+ || }pid==${task##*/}"; done
echo "!hist:keys=common_cpu,target_cpu" > $event/trigger 2> /dev/null || true # of a run that was killed
echo "hist:keys=common_cpu,target_cpu if $filter" > $event/trigger
sleep "$2"
for node in /sys/devices/system/node/node[0-9]*; do
  for cpu in "$node"/cpu[0-9]*; do echo "node ${cpu##*/cpu} ${node##*node}"; done
done | cat - $event/hist | awk '
  $1 == "node" { node[$2] = $3 }
  /common_cpu:/ {
    gsub(/[{},]/, " ")
    for (i = 1; i < NF; i++) value[$i] = $(i + 1)
    wakes += value["hitcount:"]
    if (node[value["common_cpu:"]] != node[value["target_cpu:"]]) other += value["hitcount:"]
  }
  END {
    if (!wakes) { print "nothing woke the process"; exit 1 }
    printf "wakes %d other_node %d same_node_percent %.2f\n", wakes, other, 100 * (wakes - other) / wakes
  }'
echo "!hist:keys=common_cpu,target_cpu" > $event/trigger
