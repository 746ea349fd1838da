#!/bin/sh
# The question of migration.toml without Netwright's prove: the cpusets' own files, and iperf3; blocks of runs
# wandering and pinned, each A B B A or B A A B by a coin. The lab being up:
#   sudo sh docs/lab/migration.sh [BLOCKS]
# Prints each block's ratio of the rates (pinned to wandering), their median, and how many are above 1.
netwright=${NETWRIGHT:-netwright} lab=${LAB:-migration} blocks=${1:-8}
cpuset() { # the file of a container's cpuset, of either version of cgroups
  path=$($netwright lab exec $lab/$1 -- cat /proc/self/cgroup | grep -E ':(cpuset)?:' | cut -d: -f3 | head -n 1)
  ls /sys/fs/cgroup/cpuset$path/cpuset.cpus /sys/fs/cgroup$path/cpuset.cpus 2> /dev/null
}
one=$(cpuset c1) two=$(cpuset c2) all=$(cat "$(cpuset c1)")
rate() {
  if [ $1 = pinned ]; then echo 0 > $one; echo 1 > $two; else echo $all > $one; echo $all > $two; fi
  $netwright lab exec $lab/c2 -- iperf3 -s -1 -D && sleep 0.3
  $netwright lab exec $lab/c1 -- iperf3 -c 10.98.0.3 -t 5 -f m | awk '/sender/ {print $7}'
}
block=0
while [ $((block += 1)) -le $blocks ]; do
  if [ $(($(od -An -N1 -tu1 /dev/urandom) % 2)) = 0 ]; then order="w pinned pinned w"; else order="pinned w w pinned"; fi
  for level in $order; do echo "$level $(rate $level)"; done |
    awk '{sum[$1] += log($2)} END {printf "%.3f\n", exp((sum["pinned"] - sum["w"]) / 2)}'
done | sort -n | awk '{print; r[NR] = $1; above += $1 > 1}
  END {print "median of", NR, "blocks:", (r[int((NR + 1) / 2)] + r[int(NR / 2) + 1]) / 2 "; above 1:", above + 0}'
echo $all > $one; echo $all > $two
