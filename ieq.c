// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Exception queue: hardware hands over segments of established connections in which an FPDU
 * is not complete (spec 03, 7.7).  cm_hw.c starts and stops it; frames come one at a time
 * from the queue's work item.
 */
#include <linux/err.h>

#include "ieq.h"
#include "ilq.h"
#include "irdma.h"

#define IEQ_SQ_ENTRIES	64
#define IEQ_RQ_ENTRIES	256
/* 40 bytes of L3 area and 20 of TCP header in front of what remains of the MTU without them. */
#define IEQ_OVERHEAD	20

static bool ieq_receive(void *arg, struct irdma_ilq_buf *buf)
{
	return false;
}

/**
 * irdma_ieq_start - set up the exception queue for the present MTU
 * @dev: device
 *
 * Context: process, sleeps.
 * Return: 0 or a negative errno.
 */
int irdma_ieq_start(struct irdma_device *dev)
{
	const struct irdma_ilq_config config = {
		.name = "IEQ",
		.cqn = IRDMA_CQN_IEQ,
		.qpn = IRDMA_QPN_IEQ,
		.sq_size = IEQ_SQ_ENTRIES,
		.rq_size = IEQ_RQ_ENTRIES,
		.rx_bufs = IEQ_RQ_ENTRIES,
		.rx_size = ALIGN(dev->mtu + IEQ_OVERHEAD, 64),
		.tx_size = ALIGN(dev->mtu + IEQ_OVERHEAD, 64),
		.receive = ieq_receive,
		.arg = dev,
	};
	struct irdma_ilq *ieq = irdma_ilq_create(dev, &config);

	if (IS_ERR(ieq))
		return PTR_ERR(ieq);
	dev->ieq = ieq;
	return 0;
}

/**
 * irdma_ieq_stop - undo irdma_ieq_start()
 * @dev: device; nothing happens if the queue is not there
 *
 * Context: process, sleeps.
 */
void irdma_ieq_stop(struct irdma_device *dev)
{
	if (!dev->ieq)
		return;
	irdma_ilq_destroy(dev->ieq);
	dev->ieq = NULL;
}
