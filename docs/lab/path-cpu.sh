#!/bin/sh
# What a path takes of a host's CPUs: the wire of the latency preset, PostgreSQL and the client beside each other, in
# us of CPU time by transaction, on loopback and over the wire. As root: sh path-cpu.sh [CLIENTS [DURATION]]
# The wire's process and PostgreSQL have a control group each (all its processes inherit it); transactions are
# those that PostgreSQL counted. The client's is that of its threads, as it says itself.
set -eu
clients=${1:-16} duration=${2:-2s} lab=pathcpu
bin=$(ls -d /usr/lib/postgresql/*/bin | tail -n 1)
folder=$(mktemp -d /tmp/path-cpu-XXXXXX)
# The second version has the time of each group in cpu.stat, the first in a hierarchy of its own.
groups=/sys/fs/cgroup file=cpu.stat
[ -d $groups/cpuacct ] && groups=$groups/cpuacct file=cpuacct.usage
run() { setpriv --reuid 65534 --regid 65534 --clear-groups env HOME=/tmp LC_ALL=C "$@"; }
clean() {
    [ -f "$folder/data/postmaster.pid" ] && run "$bin/pg_ctl" -D "$folder/data" -m fast stop > /dev/null
    netwright lab down $lab > /dev/null 2>&1
    sleep 0.5
    rmdir $groups/path-cpu-wire $groups/path-cpu-server
    rm -rf "$folder"
}
used() { # ns of a group
    case $file in
    cpu.stat) awk '/^usage_usec/ {print $2 * 1000}' "$groups/path-cpu-$1/$file" ;;
    *) cat "$groups/path-cpu-$1/$file" ;;
    esac
}
done_so_far() {
    "$bin/psql" -qAt -h "$folder" -U postgres -c 'select sum(xact_commit) from pg_stat_database' postgres
}
mkdir $groups/path-cpu-wire $groups/path-cpu-server
netwright lab up pair --name $lab --preset latency --spin 0ns > /dev/null 2>&1
trap clean EXIT
pgrep -f "lab pair-link .*nw-$lab-left" > $groups/path-cpu-wire/cgroup.procs
chown 65534:65534 "$folder"
run "$bin/initdb" -U postgres -A trust --no-sync --no-instructions -D "$folder/data" > /dev/null
echo 'host all all 10.99.0.0/24 trust' >> "$folder/data/pg_hba.conf"
cat >> "$folder/data/postgresql.conf" << end
listen_addresses = '*'
unix_socket_directories = '$folder'
fsync = off
autovacuum = off
end
netwright lab exec $lab/right -- setpriv --reuid 65534 --regid 65534 --clear-groups env HOME=/tmp LC_ALL=C \
    "$bin/pg_ctl" -D "$folder/data" -l "$folder/log" -w start > /dev/null
# Who is started from here on inherits it.
for pid in $(head -n 1 "$folder/data/postmaster.pid") $(pgrep -P "$(head -n 1 "$folder/data/postmaster.pid")"); do
    echo "$pid" > $groups/path-cpu-server/cgroup.procs
done
"$bin/pgbench" -h "$folder" -U postgres -i -q postgres > /dev/null 2>&1
printf '%-12s %-9s %8s %11s %8s %9s\n' SCRIPT OVER WIRE POSTGRESQL CLIENT TOGETHER
for script in select1 select-only; do
    protocol=simple
    [ $script = select1 ] && protocol=prepared
    for from in right left; do
        at=10.99.0.2 over=wire
        [ $from = right ] && at=127.0.0.1 over=loopback
        wire=$(used wire) server=$(used server) n=$(done_so_far)
        client=$(netwright lab exec $lab/$from -- netwright measure pg "pg://postgres@$at/postgres" \
            --script $script --protocol $protocol --flows "$clients" --duration "$duration" --quiet --json |
            grep -o '"threads_per_unit_ns": *[0-9.]*' | head -n 1 | grep -o '[0-9.]*$')
        sleep 1
        echo $script $over $(($(used wire) - wire)) $(($(used server) - server)) $(($(done_so_far) - n)) "$client" |
            awk '{w = $3 / $5 / 1e3; s = $4 / $5 / 1e3; c = $6 / 1e3
                printf "%-12s %-9s %8.1f %11.1f %8.1f %9.1f\n", $1, $2, w, s, c, w + s + c}'
    done
done
