#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Runs in a guest: load the LAN driver and one RDMA driver, give every port its addresses,
# wait until they are active.  Prints one line per port: NETDEV PCI-ADDRESS IBDEV.
#
# usage: guest-up.sh DRIVER HOST-NUMBER [MODULE-FILE [MODULE-PARAMETER...]]
set -e
driver=$1 number=$2 module=$3
[ $# -le 3 ] && set -- || shift 3

fail() { echo "$*" >&2; exit 1; }

# One line about each PCI function of the LAN driver that has a netdev.
ports() {
	for dir in /sys/bus/pci/drivers/ice/0000:*/net/*; do
		[ -e "$dir" ] || continue
		pci=${dir#/sys/bus/pci/drivers/ice/}
		echo "${dir##*/} ${pci%%/*}"
	done
}

ib_device() {
	rdma link | sed -n "s,^link \([^/]*\)/.* netdev $1 .*,\1,p"
}

# The tool reads the state that the port's event work sets; nothing announces it to a shell.
wait_active() {
	tries=0
	while ! rdma link | grep -q "state ACTIVE.* netdev $1 "; do
		tries=$((tries + 1))
		[ $tries -lt 300 ] || fail "port of $1 is not active after 30 s: $(rdma link | tr '\n' ' ')"
		sleep 0.1
	done
}

modprobe -a ib_uverbs rdma_ucm iw_cm ice
[ -n "$(ports)" ] || fail "ice made no network device: $(dmesg | grep ' ice ' | tail -1)"

case $driver in
intree)
	ports | while read -r dev pci; do
		devlink dev param set "pci/$pci" name enable_roce value false cmode runtime
		devlink dev param set "pci/$pci" name enable_iwarp value true cmode runtime
	done
	modprobe irdma "$@"
	;;
irdma|siw)
	insmod "$module" "$@"
	;;
esac

n=0
ports | while read -r dev pci; do
	# no wait for duplicate address detection, in which IPv6 does not resolve neighbours
	echo 0 > "/proc/sys/net/ipv6/conf/$dev/accept_dad"
	ip link set "$dev" up
	ip addr replace "192.168.$((77 + n)).$number/24" dev "$dev"
	ip -6 addr replace "fd$((77 + n))::$number/64" dev "$dev" nodad
	[ "$driver" = siw ] && rdma link add "siw$n" type siw netdev "$dev"
	[ "$driver" = none ] || wait_active "$dev"
	echo "$dev $pci $(ib_device "$dev")"
	n=$((n + 1))
done
