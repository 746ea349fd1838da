#!/bin/sh
# The experiment of placement.toml by the classic tools alone: taskset and wrk, each cell seven
# times in turn. Prints the median of each in requests a second. The lab is up, nginx runs there.
worker=$(pgrep -P "$(cat /run/nw-placement-nginx.pid)") || exit
rps() { netwright lab exec placement/right -- sh -c "echo $1 > /sys/class/net/eth0/queues/rx-0/rps_cpus"; }
out=$(mktemp -d) || exit
trap 'taskset -acp 0-1 "$worker" > /dev/null; rps 0; rm -r "$out"' EXIT
for round in 1 2 3 4 5 6 7; do
    for nginx in 0 1; do
        for softirqs in 0 1; do
            taskset -acp $nginx "$worker" > /dev/null
            rps $((1 << softirqs))
            ip netns exec nw-placement-left taskset -c 0 wrk -t1 -c8 -d1 http://10.99.0.2:8080/ |
                awk '/^Requests/ { print $2 }' >> "$out/nginx cpu $nginx, softirqs cpu $softirqs"
        done
    done
done
for cell in "$out"/nginx*; do
    echo "${cell##*/}: $(sort -n "$cell" | sed -n 4p)"
done
