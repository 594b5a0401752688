#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Runs in a guest: export a RAM disk by NVMe over RDMA.  usage: nvmet.sh ADDRESS
set -e
modprobe -a nvmet nvmet-rdma brd
[ -d /sys/kernel/config/nvmet ] || mount -t configfs none /sys/kernel/config
cd /sys/kernel/config/nvmet
mkdir subsystems/test subsystems/test/namespaces/1 ports/1
echo 1 > subsystems/test/attr_allow_any_host
printf /dev/ram0 > subsystems/test/namespaces/1/device_path
echo 1 > subsystems/test/namespaces/1/enable
echo rdma > ports/1/addr_trtype
echo ipv4 > ports/1/addr_adrfam
echo "$1" > ports/1/addr_traddr
echo 4420 > ports/1/addr_trsvcid
ln -s /sys/kernel/config/nvmet/subsystems/test ports/1/subsystems/test
