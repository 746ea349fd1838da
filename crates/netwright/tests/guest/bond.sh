# A bond of two NICs whose driver takes the link down for seconds (eth2 and eth3, e1000e): `netwright
# tune` ($1) changes both, one after the other; the bond is never without a member, also where the
# second does not come back. A line for each.
cd "$(mktemp -d)" || exit 1
export NETWRIGHT_STATE=$PWD/state
rings() { for nic in eth2 eth3; do ethtool -g $nic | sed 1,/Current/d | awk '/^TX:/ {print $2}'; done | xargs; }
resets() { for nic in eth2 eth3; do echo $(($(cat /sys/class/net/$nic/carrier_down_count) - ${1:-0})); shift; done | xargs; }
both_up() {
  for _ in $(seq 120); do
    [ "$(cat /sys/class/net/eth[23]/bonding_slave/mii_status | xargs)" = "up up" ] && return
    sleep 0.25
  done
}
# What the bond itself counted: how often it was left without any member.
left() { echo $(($(cat /sys/class/net/bond9/carrier_down_count) - left)); }
busybox modprobe bonding max_bonds=0
ip link add bond9 type bond mode active-backup miimon 50
for nic in eth2 eth3; do ip addr flush dev $nic; ip link set $nic down; ip link set $nic master bond9; done
ip link set bond9 up
both_up
# The one whose link was up first is in use; here always the same.
echo eth2 > /sys/class/net/bond9/bonding/active_slave
left=$(cat /sys/class/net/bond9/carrier_down_count)
was=$(rings)
down=$(resets)
"$1" tune apply --no-confirm nic.eth2.rings.tx=1024 nic.eth3.rings.tx=1024 >&2; applied=$?
turns=$(grep '"event":"writing"' "$NETWRIGHT_STATE/journal/000001.jsonl" | grep -o '"knob":"nic.eth[23]' | cut -d. -f2 | xargs)
echo "bond: $applied, $(rings), turns $turns, resets $(resets $down), left $(left)"
"$1" tune rollback >&2; back=$?
echo "bond back: $back, $([ "$(rings)" = "$was" ] && echo as before), left $(left)"
# The second's link goes for good in its reset, until all is being undone. A guest that is very slow
# may take it down too late: then once more.
for _ in 1 2 3; do
  both_up
  next=$(printf '%s/journal/%06d.jsonl' "$NETWRIGHT_STATE" $(($(ls "$NETWRIGHT_STATE/journal" | wc -l) + 1)))
  (
    while read -r carrier < /sys/class/net/eth2/carrier && [ "$carrier" = 1 ]; do sleep 0.02; done
    ip link set eth2 down
    for _ in $(seq 600); do grep -qs '"event":"undoing"' "$next" && break; sleep 0.1; done
    ip link set eth2 up
  ) & fault=$!
  "$1" tune apply --no-confirm --link-wait 5s nic.eth2.rings.tx=1024 nic.eth3.rings.tx=1024 2> said; applied=$?
  cat said >&2
  [ $applied = 0 ] || break
  "$1" tune rollback >&2
  wait $fault
done
echo "no way back: $applied, $(grep -o 'its link did not come back into bond9: eth2 has no link after 5 s' said)," \
  "$([ "$(rings)" = "$was" ] && echo as before), left $(left)"
