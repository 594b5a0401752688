// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Physical buffer lists: arrays of page addresses in HMC memory that memory regions, queues
 * and the AEQ refer to by index (spec 02 section 2).
 *
 * The PBLE table takes up a part of the HMC address space.  The pool allocates from it in
 * chunks, one a segment of 2 MiB, in units of 8 PBLEs.  A segment that other objects needed
 * anyway costs nothing; a new one gets pages as they are used, or 2 MiB at once for a very
 * long list.  Pages go when a good number of them is idle, segments when they are empty and
 * another one is empty too.
 *
 * One mutex guards the pool.  irdma_pbl_set() writes to memory of a list that its caller
 * owns, without lock.
 */
#include <linux/dma-mapping.h>
#include <linux/slab.h>

#include "hmc_priv.h"

#define GRANULE			8	/* PBLEs */
#define GRANULE_BYTES		(GRANULE * IRDMA_PBLE_SIZE)
#define LEAF_PBLES		512	/* of a two-level list */
#define MAX_INDEX		BIT_ULL(28)	/* field of the commands */
/* A list that needs this much of a new segment gets a contiguous one. */
#define DIRECT_MIN_PBLES	(IRDMA_SD_SIZE / IRDMA_PBLE_SIZE / 4)
#define MAX_IDLE_PAGES		64

/**
 * struct irdma_pble_chunk - the part of the PBLE table in one segment
 * @entry: in &irdma_pble_pool.chunks
 * @sd: the segment
 * @shared: other objects keep the segment
 * @offset: where the chunk begins in the segment, bytes
 * @first: index of its first PBLE
 * @granules: its size
 * @used: granules in use
 * @refs: users of each page of the segment; other objects count as one
 * @bitmap: granules in use
 */
struct irdma_pble_chunk {
	struct list_head entry;
	struct irdma_sd *sd;
	bool shared;
	u32 offset;
	u32 first;
	u32 granules;
	u32 used;
	u16 refs[IRDMA_SD_PAGES];
	unsigned long bitmap[];
};

/* A contiguous run of PBLEs. */
struct pble_run {
	struct irdma_pble_chunk *chunk;
	u32 first;
	u32 count;
};

/**
 * struct two_levels - private part of a two-level list
 * @root: holds the index of each leaf
 * @num_leaves: leaves in @leaf
 * @leaf: hold the page addresses, LEAF_PBLES each, the last one maybe fewer
 */
struct two_levels {
	struct pble_run root;
	u32 num_leaves;
	struct pble_run leaf[];
};

static __le64 *pble(const struct irdma_pble_chunk *chunk, u32 index)
{
	u32 offset = chunk->offset + (index - chunk->first) * IRDMA_PBLE_SIZE;

	if (chunk->sd->type == IRDMA_SD_DIRECT)
		return chunk->sd->va + offset;
	return chunk->sd->pages[offset >> IRDMA_HMC_PAGE_SHIFT] + offset_in_page(offset);
}

static u32 first_page(const struct irdma_pble_chunk *chunk, u32 granule)
{
	return (chunk->offset + granule * GRANULE_BYTES) >> IRDMA_HMC_PAGE_SHIFT;
}

static void put_page_of(struct irdma_device *dev, struct irdma_pble_chunk *chunk, u32 page)
{
	struct irdma_pble_pool *pool = &dev->hmc->pool;

	if (--chunk->refs[page] || chunk->sd->type == IRDMA_SD_DIRECT)
		return;
	if (pool->idle_pages < MAX_IDLE_PAGES)
		pool->idle_pages++;
	else
		irdma_sd_del_page(dev, chunk->sd, page);
}

static int get_page_of(struct irdma_device *dev, struct irdma_pble_chunk *chunk, u32 page)
{
	struct irdma_sd *sd = chunk->sd;
	int err;

	if (!chunk->refs[page] && sd->type == IRDMA_SD_PAGED) {
		if (sd->pages[page]) {
			dev->hmc->pool.idle_pages--;
		} else {
			err = irdma_sd_add_page(dev, sd, page);
			if (err)
				return err;
		}
	}
	chunk->refs[page]++;
	return 0;
}

static void put_pages(struct irdma_device *dev, struct irdma_pble_chunk *chunk, u32 from, u32 to)
{
	while (to-- > from)
		put_page_of(dev, chunk, to);
}

static int get_pages(struct irdma_device *dev, struct irdma_pble_chunk *chunk, u32 from, u32 to)
{
	u32 page;
	int err;

	for (page = from; page < to; page++) {
		err = get_page_of(dev, chunk, page);
		if (err) {
			put_pages(dev, chunk, from, page);
			return err;
		}
	}
	return 0;
}

static int back_chunk(struct irdma_device *dev, struct irdma_sd *sd, u32 pbles)
{
	int err;

	if (pbles < DIRECT_MIN_PBLES || irdma_sd_alloc_direct(dev, sd)) {
		err = irdma_sd_alloc_paged(dev, sd);
		if (err)
			return err;
	}
	err = irdma_sd_write(dev, sd, true);
	if (err)
		irdma_sd_free(dev, sd);
	return err;
}

/* Make the PBLEs of segment @i available; a list of @pbles is to be allocated. */
static struct irdma_pble_chunk *add_chunk(struct irdma_device *dev, u32 i, u32 pbles)
{
	struct irdma_pble_pool *pool = &dev->hmc->pool;
	u64 start = (u64)i << IRDMA_SD_SHIFT;
	u64 from = max(pool->first, start), to = min(pool->end, start + IRDMA_SD_SIZE);
	u32 granules = (to - from) / GRANULE_BYTES, page;
	struct irdma_sd *sd = &dev->hmc->sds[i];
	struct irdma_pble_chunk *chunk;
	int err;

	chunk = kvzalloc(struct_size(chunk, bitmap, BITS_TO_LONGS(granules)), GFP_KERNEL);
	if (!chunk)
		return ERR_PTR(-ENOMEM);
	chunk->sd = sd;
	chunk->offset = from - start;
	chunk->first = (from - pool->base) / IRDMA_PBLE_SIZE;
	chunk->granules = granules;
	chunk->shared = sd->type != IRDMA_SD_NONE;
	if (!chunk->shared) {
		err = back_chunk(dev, sd, pbles);
		if (err) {
			kvfree(chunk);
			return ERR_PTR(err);
		}
	} else if (sd->type == IRDMA_SD_PAGED) {
		for (page = 0; page < IRDMA_SD_PAGES; page++)
			chunk->refs[page] = sd->pages[page] ? 1 : 0;
	}
	sd->in_pool = true;
	list_add_tail(&chunk->entry, &pool->chunks);
	return chunk;
}

static void del_chunk(struct irdma_device *dev, struct irdma_pble_chunk *chunk)
{
	struct irdma_sd *sd = chunk->sd;
	u32 page;

	list_del(&chunk->entry);
	for (page = 0; sd->type == IRDMA_SD_PAGED && page < IRDMA_SD_PAGES; page++)
		if (sd->pages[page] && !chunk->refs[page])
			dev->hmc->pool.idle_pages--;
	sd->in_pool = false;
	if (!chunk->shared)
		irdma_sd_free(dev, sd);
	kvfree(chunk);
}

/* Give an empty chunk's segment back, but keep one for the next list. */
static void maybe_shrink(struct irdma_device *dev, struct irdma_pble_chunk *chunk)
{
	struct irdma_pble_chunk *other;

	if (chunk->used || chunk->shared)
		return;
	list_for_each_entry(other, &dev->hmc->pool.chunks, entry) {
		if (other == chunk || other->used || other->shared)
			continue;
		/* If hardware does not let go of the segment, it stays in the pool. */
		if (!irdma_sd_write(dev, chunk->sd, false))
			del_chunk(dev, chunk);
		return;
	}
}

static int alloc_from(struct irdma_device *dev, struct irdma_pble_chunk *chunk, u32 count,
		      struct pble_run *run)
{
	u32 granules = DIV_ROUND_UP(count, GRANULE);
	u32 at;
	int err;

	if (granules > chunk->granules - chunk->used)
		return -ENOSPC;
	at = bitmap_find_next_zero_area(chunk->bitmap, chunk->granules, 0, granules, 0);
	if (at + granules > chunk->granules)
		return -ENOSPC;
	err = get_pages(dev, chunk, first_page(chunk, at), first_page(chunk, at + granules - 1) + 1);
	if (err)
		return err;
	bitmap_set(chunk->bitmap, at, granules);
	chunk->used += granules;
	run->chunk = chunk;
	run->first = chunk->first + at * GRANULE;
	run->count = count;
	return 0;
}

static void free_run(struct irdma_device *dev, const struct pble_run *run)
{
	struct irdma_pble_chunk *chunk = run->chunk;
	u32 granules = DIV_ROUND_UP(run->count, GRANULE);
	u32 at = (run->first - chunk->first) / GRANULE;

	bitmap_clear(chunk->bitmap, at, granules);
	chunk->used -= granules;
	put_pages(dev, chunk, first_page(chunk, at), first_page(chunk, at + granules - 1) + 1);
	maybe_shrink(dev, chunk);
}

/* Segments of the table that are not in the pool yet; those that cost nothing first. */
static int grow_and_alloc(struct irdma_device *dev, u32 count, struct pble_run *run)
{
	struct irdma_hmc *hmc = dev->hmc;
	struct irdma_pble_pool *pool = &hmc->pool;
	u32 first = pool->first >> IRDMA_SD_SHIFT;
	u32 end = DIV_ROUND_UP_ULL(pool->end, IRDMA_SD_SIZE);
	struct irdma_pble_chunk *chunk;
	unsigned int pass;
	int err;
	u32 i;

	for (pass = 0; pass < 2; pass++) {
		for (i = first; i < end; i++) {
			if (hmc->sds[i].in_pool ||
			    (pass == 0 && hmc->sds[i].type == IRDMA_SD_NONE))
				continue;
			chunk = add_chunk(dev, i, count);
			if (IS_ERR(chunk))
				return PTR_ERR(chunk);
			err = alloc_from(dev, chunk, count, run);
			if (err != -ENOSPC)
				return err;
			/* Too small at the edge of the table: it stays for shorter lists. */
		}
	}
	return -ENOMEM;
}

static int alloc_run(struct irdma_device *dev, u32 count, struct pble_run *run)
{
	struct irdma_pble_pool *pool = &dev->hmc->pool;
	struct irdma_pble_chunk *chunk;
	int err;

	list_for_each_entry(chunk, &pool->chunks, entry) {
		err = alloc_from(dev, chunk, count, run);
		if (err != -ENOSPC)
			return err;
	}
	if (pool->first >= pool->end ||
	    count > (u32)(IRDMA_SD_SIZE / IRDMA_PBLE_SIZE))
		return -ENOMEM;
	return grow_and_alloc(dev, count, run);
}

static void free_two_levels(struct irdma_device *dev, struct two_levels *two)
{
	while (two->num_leaves--)
		free_run(dev, &two->leaf[two->num_leaves]);
	free_run(dev, &two->root);
	kvfree(two);
}

static int alloc_two_levels(struct irdma_device *dev, u32 pages, struct irdma_pbl *pbl)
{
	u32 leaves = DIV_ROUND_UP(pages, LEAF_PBLES);
	struct two_levels *two;
	u32 i, count;
	int err;

	two = kvzalloc(struct_size(two, leaf, leaves), GFP_KERNEL);
	if (!two)
		return -ENOMEM;
	err = alloc_run(dev, leaves, &two->root);
	if (err) {
		kvfree(two);
		return err;
	}
	for (i = 0; i < leaves; i++) {
		count = min_t(u32, pages - i * LEAF_PBLES, LEAF_PBLES);
		err = alloc_run(dev, count, &two->leaf[i]);
		if (err) {
			free_two_levels(dev, two);
			return err;
		}
		two->num_leaves++;
		WRITE_ONCE(*pble(two->root.chunk, two->root.first + i),
			   cpu_to_le64(two->leaf[i].first));
	}
	pbl->level = IRDMA_PBL_TWO_LEVELS;
	pbl->first = two->root.first;
	pbl->priv = two;
	return 0;
}

/**
 * irdma_pbl_alloc() - allocate a list of page addresses
 * @dev: the device
 * @pages: entries
 * @one_level_only: the user cannot have a two-level list (queues)
 * @pbl: filled; @level is IRDMA_PBL_NONE after an error
 *
 * One level is tried first; two levels are a choice for lists of more than 512 pages.
 *
 * Context: process, sleeps.
 * Return: 0, -EINVAL (@pages is 0), -ENOMEM, or an error of irdma_cqp_exec().
 */
int irdma_pbl_alloc(struct irdma_device *dev, u32 pages, bool one_level_only,
		    struct irdma_pbl *pbl)
{
	struct irdma_pble_pool *pool = &dev->hmc->pool;
	struct pble_run run;
	int err;

	memset(pbl, 0, sizeof(*pbl));
	if (!pages)
		return -EINVAL;
	mutex_lock(&pool->lock);
	err = alloc_run(dev, pages, &run);
	if (!err) {
		pbl->level = IRDMA_PBL_ONE_LEVEL;
		pbl->first = run.first;
		pbl->priv = run.chunk;
	} else if (err == -ENOMEM && !one_level_only && pages > LEAF_PBLES) {
		err = alloc_two_levels(dev, pages, pbl);
	}
	mutex_unlock(&pool->lock);
	if (!err)
		pbl->count = pages;
	return err;
}

/**
 * irdma_pbl_free() - free a list
 * @dev: the device
 * @pbl: list that hardware does not use any more, or one of level NONE
 *
 * Context: process, sleeps.
 */
void irdma_pbl_free(struct irdma_device *dev, struct irdma_pbl *pbl)
{
	struct irdma_pble_pool *pool = &dev->hmc->pool;
	struct pble_run run;

	if (pbl->level == IRDMA_PBL_NONE)
		return;
	mutex_lock(&pool->lock);
	if (pbl->level == IRDMA_PBL_ONE_LEVEL) {
		run = (struct pble_run){ pbl->priv, pbl->first, pbl->count };
		free_run(dev, &run);
	} else {
		free_two_levels(dev, pbl->priv);
	}
	mutex_unlock(&pool->lock);
	memset(pbl, 0, sizeof(*pbl));
}

/**
 * irdma_pbl_set() - write an entry of a list
 * @pbl: the list
 * @i: entry, 0..count - 1
 * @addr: bus address of a page
 *
 * Context: any; the caller owns the list.
 */
void irdma_pbl_set(struct irdma_pbl *pbl, u32 i, dma_addr_t addr)
{
	const struct two_levels *two;
	const struct pble_run *leaf;
	__le64 *entry;

	if (pbl->level == IRDMA_PBL_ONE_LEVEL) {
		entry = pble(pbl->priv, pbl->first + i);
	} else {
		two = pbl->priv;
		leaf = &two->leaf[i / LEAF_PBLES];
		entry = pble(leaf->chunk, leaf->first + i % LEAF_PBLES);
	}
	WRITE_ONCE(*entry, cpu_to_le64(addr));
}

/**
 * irdma_pble_start() - begin with an empty pool; nothing is allocated yet
 * @dev: the device; its HMC objects are populated
 *
 * Return: 0.
 */
int irdma_pble_start(struct irdma_device *dev)
{
	const struct irdma_hmc_obj *obj = &dev->hmc->obj[IRDMA_HMC_PBLE];
	struct irdma_pble_pool *pool = &dev->hmc->pool;

	mutex_init(&pool->lock);
	INIT_LIST_HEAD(&pool->chunks);
	pool->base = obj->base;
	pool->first = ALIGN(obj->base, SZ_4K);
	pool->end = obj->base + min_t(u64, obj->count, MAX_INDEX) * IRDMA_PBLE_SIZE;
	return 0;
}

/**
 * irdma_pble_stop() - give back everything that the pool has
 * @dev: the device; no list is in use
 *
 * Context: process, sleeps.
 */
void irdma_pble_stop(struct irdma_device *dev)
{
	struct irdma_pble_pool *pool = &dev->hmc->pool;
	struct irdma_pble_chunk *chunk, *next;

	list_for_each_entry_safe(chunk, next, &pool->chunks, entry) {
		WARN_ON(chunk->used);
		/*
		 * A segment that hardware still has goes with the others of
		 * irdma_hmc_depopulate(), a few commands for all of them.
		 */
		chunk->shared = true;
		del_chunk(dev, chunk);
	}
	mutex_destroy(&pool->lock);
}
