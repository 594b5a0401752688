/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Exception queue: segments of established connections that hardware cannot place because
 * an FPDU is not complete in them (spec 03, 7.7 and 7.8).
 */
#ifndef IRDMA_IEQ_H
#define IRDMA_IEQ_H

#include <linux/types.h>

#include "ilq.h"

struct irdma_device;

/* What became of a frame that came to the exception queue, and how many segments went back. */
enum irdma_ieq_counter {
	IRDMA_IEQ_KEPT,
	IRDMA_IEQ_COPIED,
	IRDMA_IEQ_REFUSED,
	IRDMA_IEQ_MALFORMED,
	IRDMA_IEQ_NO_QP,
	IRDMA_IEQ_NO_STREAM,
	IRDMA_IEQ_BROKEN,
	IRDMA_IEQ_FULL,
	IRDMA_IEQ_FPDUS,
	IRDMA_IEQ_COUNTER_COUNT,
};

/**
 * struct irdma_ieq_stats - what the exception queue has seen since the last change of the MTU
 * @queue: its raw queue
 * @counters: enum irdma_ieq_counter
 */
struct irdma_ieq_stats {
	struct irdma_ilq_stats queue;
	u64 counters[IRDMA_IEQ_COUNTER_COUNT];
};

int irdma_ieq_start(struct irdma_device *dev);
void irdma_ieq_stop(struct irdma_device *dev);
/* A QP is being destroyed: nothing of its stream is kept. Process context. */
void irdma_ieq_forget(struct irdma_device *dev, u32 qpn);
void irdma_ieq_read_stats(const struct irdma_device *dev, struct irdma_ieq_stats *stats);

#endif
