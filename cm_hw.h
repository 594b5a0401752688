/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The network half of a device, as main.c sees it: scheduler, addresses, raw queues and
 * the connection engine come and go together, in the one order that is safe.
 *
 * main.c calls irdma_net_start() between irdma_hw_start() and ib_register_device(), and
 * irdma_net_stop() between ib_unregister_device() and irdma_hw_stop().
 */
#ifndef IRDMA_CM_HW_H
#define IRDMA_CM_HW_H

struct irdma_device;

/* Once a module: the notifiers of addresses, neighbours and net devices. */
int irdma_net_register(void);
void irdma_net_unregister(void);

int irdma_net_start(struct irdma_device *dev);
void irdma_net_stop(struct irdma_device *dev);

/* The MTU of the net device is now dev->mtu: the exception queue gets fitting buffers. Sleeps. */
void irdma_net_mtu_changed(struct irdma_device *dev);

#endif
