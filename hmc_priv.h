/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What hmc.c (objects, segment descriptors) and pble.c (physical buffer lists) share.
 */
#ifndef IRDMA_HMC_PRIV_H
#define IRDMA_HMC_PRIV_H

#include <linux/bitmap.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/sizes.h>

#include "irdma.h"

#define IRDMA_SD_SIZE		SZ_2M
#define IRDMA_SD_SHIFT		21
#define IRDMA_SD_PAGES		512
#define IRDMA_HMC_PAGE_SHIFT	12
#define IRDMA_PBLE_SIZE		8

enum irdma_sd_type {
	IRDMA_SD_NONE,
	IRDMA_SD_DIRECT,	/* one block of 2 MiB */
	IRDMA_SD_PAGED,		/* a table of pages of 4 KiB, some of them there */
};

/**
 * struct irdma_sd - a segment of 2 MiB of the function's HMC address space
 * @type: how it is backed
 * @known: hardware has the descriptor
 * @in_pool: PBLEs are allocated from it
 * @va: the block, or the table of page descriptors
 * @addr: bus address of @va
 * @pages: paged: the pages, NULL where there is none
 */
struct irdma_sd {
	enum irdma_sd_type type;
	bool known;
	bool in_pool;
	void *va;
	dma_addr_t addr;
	void **pages;
};

/**
 * struct irdma_hmc_obj - a table of objects in HMC address space
 * @base: byte address
 * @max: objects that hardware can have
 * @count: objects that it has
 * @size: bytes of an object
 */
struct irdma_hmc_obj {
	u64 base;
	u32 max;
	u32 count;
	u32 size;
};

/**
 * struct irdma_pble_pool - physical buffer lists in HMC memory
 * @lock: guards everything here
 * @chunks: parts of the PBLE table that can be allocated from
 * @base: HMC address of the PBLE with index 0
 * @first: HMC address where the usable part begins
 * @end: HMC address where it ends
 * @idle_pages: backed pages without a user
 */
struct irdma_pble_pool {
	struct mutex lock;
	struct list_head chunks;
	u64 base;
	u64 first;
	u64 end;
	unsigned int idle_pages;
};

/**
 * struct irdma_hmc - host memory cache of a device
 * @obj: object tables
 * @max_sds: segments that hardware can have
 * @ht_multiplier: of the quad-hash table
 * @timer_buckets: unit of the timer table
 * @xf_block: transmit FIFO elements per free-list entry
 * @q1_block: inbound-read elements per free-list entry
 * @rrf_block: read-response elements per free-list entry
 * @ooisc_block: out-of-order elements per free-list entry
 * @num_sds: segments from address 0 to the end of the last object
 * @sds: the segments
 * @cmd_lock: guards @overflow during a command
 * @overflow: descriptors that do not fit into a command
 * @overflow_addr: its bus address
 * @pool: PBLEs
 */
struct irdma_hmc {
	struct irdma_hmc_obj obj[IRDMA_HMC_TYPES];
	u32 max_sds;
	u32 ht_multiplier;
	u32 timer_buckets;
	u32 xf_block;
	u32 q1_block;
	u32 rrf_block;
	u32 ooisc_block;

	u32 num_sds;
	struct irdma_sd *sds;
	struct mutex cmd_lock;
	__le64 *overflow;
	dma_addr_t overflow_addr;

	struct irdma_pble_pool pool;
};

int irdma_sd_alloc_direct(struct irdma_device *dev, struct irdma_sd *sd);
int irdma_sd_alloc_paged(struct irdma_device *dev, struct irdma_sd *sd);
void irdma_sd_free(struct irdma_device *dev, struct irdma_sd *sd);
int irdma_sd_add_page(struct irdma_device *dev, struct irdma_sd *sd, u32 page);
void irdma_sd_del_page(struct irdma_device *dev, struct irdma_sd *sd, u32 page);
int irdma_sd_write(struct irdma_device *dev, struct irdma_sd *sd, bool valid);

#endif
