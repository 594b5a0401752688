/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Buffers for last streaming-mode messages: the MPA reply of a passive connection, which the
 * hardware sends when it takes the stream over (spec 02, 5.9).
 */
#ifndef IRDMA_LSMM_H
#define IRDMA_LSMM_H

#include <linux/types.h>

struct irdma_lsmm_region;
struct irdma_pd;

#define IRDMA_LSMM_SIZE	576	/* bytes; an MPA reply with all private data is 532 */

/**
 * struct irdma_lsmm - a message that the hardware may read
 * @region: memory that it lies in, NULL while there is none
 * @slot: its place there
 * @len: its length, bytes
 * @addr: its address in @stag
 * @stag: the region
 */
struct irdma_lsmm {
	struct irdma_lsmm_region *region;
	u16 slot;
	u16 len;
	u32 stag;
	u64 addr;
};

void irdma_lsmm_init(struct irdma_pd *pd);
void irdma_lsmm_exit(struct irdma_pd *pd);
int irdma_lsmm_get(struct irdma_pd *pd, const void *msg, u32 len, struct irdma_lsmm *lsmm);
void irdma_lsmm_put(struct irdma_pd *pd, struct irdma_lsmm *lsmm);

#endif
