#!/bin/sh
# The experiment of tengig.toml by the classic tools alone: iperf3, sysctl and ip, each cell
# measured seven times in turn. Prints the median of each in Mbit/s. The lab of preset tengig is up.
left() { ip netns exec nw-tengig-left "$@"; }
right() { ip netns exec nw-tengig-right "$@"; }
both() { left "$@" && right "$@"; }
out=$(mktemp -d) || exit
right iperf3 -s -D -p 5299 -I "$out/pid"
trap 'kill "$(cat "$out/pid")"; both ip link set eth0 mtu 1500
    both sysctl -qw net.ipv4.tcp_rmem="4096 65536 131072" net.ipv4.tcp_wmem="4096 65536 131072"
    rm -r "$out"' EXIT
sleep 1
for round in 1 2 3 4 5 6 7; do
    for mtu in 1500 9000; do
        for most in 131072 4194304; do
            both ip link set eth0 mtu $mtu
            both sysctl -qw net.ipv4.tcp_rmem="4096 65536 $most" net.ipv4.tcp_wmem="4096 65536 $most"
            left iperf3 -c 10.99.0.2 -p 5299 -t 1 -O 1 -f m |
                awk '/receiver/ { print $7 }' >> "$out/mtu $mtu, buffers $most"
        done
    done
done
for cell in "$out"/mtu*; do
    echo "${cell##*/}: $(sort -n "$cell" | sed -n 4p)"
done
