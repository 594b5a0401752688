/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Host memory cache: sizing, segment descriptors, and physical buffer lists
 * (spec 02 sections 1 and 2).
 */
#ifndef IRDMA_HMC_H
#define IRDMA_HMC_H

#include <linux/types.h>

struct irdma_device;
struct irdma_pble_chunk;

/* LPBLSIZE codes (spec 02, section 2). */
#define IRDMA_PBL_NONE		0
#define IRDMA_PBL_ONE_LEVEL	1
#define IRDMA_PBL_TWO_LEVELS	3

/**
 * struct irdma_pbl - a physical buffer list in HMC memory
 * @level: IRDMA_PBL_*; NONE means that nothing is allocated
 * @first: PBLE index for commands: of the run (one level) or of the root (two levels)
 * @count: pages that the list holds
 *
 * The rest is private to hmc.c.
 */
struct irdma_pbl {
	u8 level;
	u32 first;
	u32 count;
	void *priv;
};

int irdma_pbl_alloc(struct irdma_device *dev, u32 pages, bool one_level_only, struct irdma_pbl *pbl);
void irdma_pbl_free(struct irdma_device *dev, struct irdma_pbl *pbl);
/* Write entry @i (0..count-1); bus address of a page. Any context. */
void irdma_pbl_set(struct irdma_pbl *pbl, u32 i, dma_addr_t addr);

#endif
