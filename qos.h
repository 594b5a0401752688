/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Transmit scheduler of E810 (spec 01, 4.8 op 0x2C): root, one node for the VSI, one leaf
 * for each traffic class in use.  A leaf is a queue set; its handle goes into QP contexts
 * and quad-hash entries.
 */
#ifndef IRDMA_QOS_H
#define IRDMA_QOS_H

#include <linux/types.h>

struct irdma_device;

int irdma_qos_start(struct irdma_device *dev);
void irdma_qos_stop(struct irdma_device *dev);

int irdma_qos_get(struct irdma_device *dev, u8 user_prio, u16 *qs_handle);
void irdma_qos_put(struct irdma_device *dev, u8 user_prio);

void irdma_qos_tc_changing(struct irdma_device *dev);
void irdma_qos_tc_changed(struct irdma_device *dev);

#endif
