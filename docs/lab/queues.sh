#!/bin/sh
# The question of queues.toml without Netwright's measure and prove: ethtool and 16 qperf at once, eight blocks of runs with
# one and with four channels, each A B B A or B A A B by a coin. From this repository's root, the lab being up:
#   sudo sh docs/lab/queues.sh
# Prints each block's ratio of round trips a second (four channels to one), their median, and how many are above 1.
netwright=${NETWRIGHT:-netwright} lab=${LAB:-queues} blocks=${1:-8}
server() { $netwright lab exec $lab/server -- "$@"; }
server sh -c 'pidof qperf > /dev/null || for n in $(seq 16); do setsid qperf -lp $((19800 + n)) > /dev/null 2>&1 & done'
# Half of each one-way time is the time of a round trip: 16 clients, the sum of what each has a second.
rate() {
  server ethtool -L eth0 combined $1 > /dev/null 2>&1
  $netwright lab exec $lab/client -- sh -c '
    for n in $(seq 16); do qperf -t 2 -lp $((19800 + n)) -m 64 10.97.0.2 tcp_lat & done; wait' |
    awk '/latency/ {sum += 1 / ($3 * ($4 == "ms" ? 1e-3 : $4 == "sec" ? 1 : 1e-6)) / 2} END {print sum}'
}
block=0
while [ $((block += 1)) -le $blocks ]; do
  if [ $(($(od -An -N1 -tu1 /dev/urandom) % 2)) = 0 ]; then order="1 4 4 1"; else order="4 1 1 4"; fi
  for channels in $order; do echo "$channels $(rate $channels)"; done |
    awk '{sum[$1] += log($2)} END {printf "%.3f\n", exp((sum[4] - sum[1]) / 2)}'
done | sort -n | awk '{print; r[NR] = $1; above += $1 > 1}
  END {print "median of", NR, "blocks:", (r[int((NR + 1) / 2)] + r[int(NR / 2) + 1]) / 2 "; above 1:", above}'
server ethtool -L eth0 combined 1 > /dev/null 2>&1
