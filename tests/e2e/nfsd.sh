#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Runs in a guest: export a RAM disk by NFS over RDMA (port 20049), or end that.
# usage: nfsd.sh start|stop
set -e
case $1 in
start)
	modprobe -a nfsd rpcrdma
	mkdir -p /srv && mount -t tmpfs tmpfs /srv
	[ -e /proc/fs/nfsd/threads ] || mount -t nfsd nfsd /proc/fs/nfsd
	touch /var/lib/nfs/etab
	exportfs -i -o rw,no_root_squash,insecure,no_subtree_check,fsid=0 '*:/srv'
	# the shortest period of grace that nfsd takes
	rpc.nfsd -N 3 -G 10 4
	rpc.mountd -N 3
	echo rdma 20049 > /proc/fs/nfsd/portlist
	;;
stop)
	rpc.nfsd 0
	killall rpc.mountd
	exportfs -ua
	umount /srv
	umount /proc/fs/nfsd
	;;
esac
