# `netwright tune` ($1) makes one change set after another, $2 and a number for each knob that
# follows, its journal on the guest's disk. What each value becomes is told on the console at once.
for m in virtio_blk crc32c_generic ext4; do busybox modprobe $m || exit 1; done
mkdir -p /run/disk && mount /dev/vda /run/disk || exit 1
export NETWRIGHT_STATE=/run/disk/state
program=$1 first=$2
shift 2
watch() {
  local seen=() value knob i
  while :; do
    i=0
    for knob in "$@"; do
      read -r value < "/proc/sys/${knob//./\/}"
      [ -n "${seen[i]}" ] && [ "${seen[i]}" != "$value" ] && echo "changed $knob $value" > /dev/console
      seen[i]=$value
      i=$((i + 1))
    done
  done
}
watch "$@" &
for n in $(seq 500); do
  wishes=()
  for knob in "$@"; do wishes+=("sysctl.$knob=$((first + n))"); done
  "$program" tune apply --no-confirm --i-understand "${wishes[@]}" > /dev/null || echo "failed $n" > /dev/console
done
