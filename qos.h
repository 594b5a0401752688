/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Transmit scheduler of E810 (spec 01, 4.8 op 0x2C): root, one node for the VSI, one leaf
 * for each traffic class in use.  A leaf is a queue set; its handle goes into QP contexts.
 */
#ifndef IRDMA_QOS_H
#define IRDMA_QOS_H

#include <linux/list.h>
#include <linux/types.h>

struct irdma_device;

/**
 * struct irdma_qos_user - a hardware QP that transmits on a queue set
 * @qpn: QP number, set by the owner
 * @user_prio: 802.1p priority 0..7, set by the owner before irdma_qos_join()
 * @qs_handle: queue-set handle for the QP context; valid while joined, changes with the
 *	traffic classes
 * @entry: private to qos.c; an empty list head while not joined
 */
struct irdma_qos_user {
	u32 qpn;
	u8 user_prio;
	u16 qs_handle;
	struct list_head entry;
};

int irdma_qos_start(struct irdma_device *dev);
void irdma_qos_stop(struct irdma_device *dev);

static inline void irdma_qos_user_init(struct irdma_qos_user *user, u32 qpn)
{
	user->qpn = qpn;
	INIT_LIST_HEAD(&user->entry);
}

int irdma_qos_join(struct irdma_device *dev, struct irdma_qos_user *user, u8 user_prio);
void irdma_qos_leave(struct irdma_device *dev, struct irdma_qos_user *user);

void irdma_qos_tc_changing(struct irdma_device *dev);
void irdma_qos_tc_changed(struct irdma_device *dev);
/* The AE "QP suspended" (0x0900) arrived for some QP. Any context. */
void irdma_qos_qp_suspended(struct irdma_device *dev);

#endif
