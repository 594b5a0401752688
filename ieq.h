/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Exception queue: segments of established connections that hardware cannot place because
 * an FPDU is not complete in them (spec 03, 7.7 and 7.8).
 */
#ifndef IRDMA_IEQ_H
#define IRDMA_IEQ_H

#include <linux/types.h>

struct irdma_device;

int irdma_ieq_start(struct irdma_device *dev);
void irdma_ieq_stop(struct irdma_device *dev);
/* A QP is being destroyed: nothing of its stream is kept. Process context. */
void irdma_ieq_forget(struct irdma_device *dev, u32 qpn);

#endif
