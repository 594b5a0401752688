/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * /sys/kernel/debug/irdma/<PCI address>/: what the connection engine and its raw queues have
 * counted, each dropped frame with its reason.
 */
#ifndef IRDMA_DEBUGFS_H
#define IRDMA_DEBUGFS_H

struct irdma_device;

void irdma_debugfs_init(void);
void irdma_debugfs_exit(void);
void irdma_debugfs_add(struct irdma_device *dev);
void irdma_debugfs_del(struct irdma_device *dev);

#endif
