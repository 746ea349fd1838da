#!/bin/sh
# A PostgreSQL for practice on the lab's server, if none answers there: netwright lab exec server -- sh THIS [ROWS]
# Its data are in /tmp of the guest and gone with it.
set -e
bin=$(ls -d /usr/lib/postgresql/*/bin | tail -n 1)
$bin/pg_isready -q -h 10.97.0.2 -U postgres && exit 0
run() { setpriv --reuid 65534 --regid 65534 --clear-groups env HOME=/tmp LC_ALL=C "$@"; }
folder=/tmp/practice-pg
rm -rf $folder; mkdir $folder; chown 65534:65534 $folder
run $bin/initdb -U postgres -A trust --no-sync --no-instructions -D $folder/data > $folder/log
cat >> $folder/data/postgresql.conf << end
listen_addresses = '10.97.0.2'
unix_socket_directories = '$folder'
fsync = off
autovacuum = off
shared_buffers = 32MB
end
echo 'host all all 10.97.0.0/24 trust' >> $folder/data/pg_hba.conf
run $bin/pg_ctl -D $folder/data -l $folder/server.log -w -t 120 start > $folder/started
run $bin/pgbench -h $folder -U postgres -i -q --unlogged-tables postgres > $folder/filled 2>&1
