// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Buffers for last streaming-mode messages.
 *
 * A QP may only be told of memory by an STag of its protection domain.  A region for each
 * connection would cost it two commands and a page, so regions belong to the PD and are cut
 * into slots.  A PD keeps those that are in use and one more: there are many only while many
 * connections wait for the answer to their reply at once.
 */
#include <linux/bitmap.h>
#include <linux/dma-mapping.h>
#include <linux/slab.h>

#include "lsmm.h"
#include "verbs.h"

#define REGION_SIZE	SZ_4K
#define REGION_SLOTS	(REGION_SIZE / IRDMA_LSMM_SIZE)

/**
 * struct irdma_lsmm_region - memory for some messages
 * @link: in the list of the PD
 * @va: the memory
 * @dma: its bus address, and its address in @stag
 * @stag: the region as the hardware knows it
 * @used: slots that hold a message
 */
struct irdma_lsmm_region {
	struct list_head link;
	void *va;
	dma_addr_t dma;
	u32 stag;
	DECLARE_BITMAP(used, REGION_SLOTS);
};

static int register_region(struct irdma_device *dev, u32 pd, struct irdma_lsmm_region *region)
{
	struct irdma_stag_cmd cmd = {
		.pd = pd,
		.len = REGION_SIZE,
		.va = region->dma,
		.addr = region->dma,
		.rights = IRDMA_STAG_LOCAL_READ | IRDMA_STAG_LOCAL_WRITE,
		.va_based = true,
	};
	int ret;

	ret = irdma_stag_alloc(dev, &cmd.stag);
	if (ret)
		return ret;
	ret = irdma_exec_reg_mr(dev, &cmd);
	if (ret)
		irdma_stag_free(dev, cmd.stag);
	else
		region->stag = cmd.stag;
	return ret;
}

static struct irdma_lsmm_region *add_region(struct irdma_device *dev, struct irdma_pd *pd)
{
	struct irdma_lsmm_region *region;
	int ret = -ENOMEM;

	region = kzalloc(sizeof(*region), GFP_KERNEL);
	if (!region)
		return ERR_PTR(-ENOMEM);
	region->va = dma_alloc_coherent(dma_dev(dev), REGION_SIZE, &region->dma, GFP_KERNEL);
	if (!region->va)
		goto free_region;
	ret = register_region(dev, pd->id, region);
	if (ret)
		goto free_memory;
	list_add(&region->link, &pd->lsmm_regions);
	return region;

free_memory:
	dma_free_coherent(dma_dev(dev), REGION_SIZE, region->va, region->dma);
free_region:
	kfree(region);
	return ERR_PTR(ret);
}

static void remove_region(struct irdma_device *dev, struct irdma_pd *pd,
			  struct irdma_lsmm_region *region)
{
	struct irdma_stag_cmd cmd = { .pd = pd->id, .stag = region->stag };

	list_del(&region->link);
	if (irdma_exec_dealloc_stag(dev, &cmd)) {
		/* Its memory is not given back either: who guesses the STag could write there. */
		pd->lost = true;
		irdma_id_keep(dev, "STag", region->stag);
	} else {
		irdma_stag_free(dev, region->stag);
		dma_free_coherent(dma_dev(dev), REGION_SIZE, region->va, region->dma);
	}
	kfree(region);
}

/* Regions with room stand in front of full ones. */
static struct irdma_lsmm_region *find_room(struct irdma_pd *pd)
{
	struct irdma_lsmm_region *region;

	region = list_first_entry_or_null(&pd->lsmm_regions, struct irdma_lsmm_region, link);
	return region && !bitmap_full(region->used, REGION_SLOTS) ? region : NULL;
}

/**
 * irdma_lsmm_init - prepare a protection domain
 * @pd: new protection domain
 */
void irdma_lsmm_init(struct irdma_pd *pd)
{
	mutex_init(&pd->lsmm_lock);
	INIT_LIST_HEAD(&pd->lsmm_regions);
}

/**
 * irdma_lsmm_exit - give back what a protection domain keeps for its connections
 * @pd: protection domain without QPs
 *
 * Context: process.
 */
void irdma_lsmm_exit(struct irdma_pd *pd)
{
	struct irdma_device *dev = to_irdma_dev(pd->ibpd.device);
	struct irdma_lsmm_region *region, *next;

	list_for_each_entry_safe(region, next, &pd->lsmm_regions, link)
		remove_region(dev, pd, region);
}

/**
 * irdma_lsmm_get - put a message where the hardware can read it
 * @pd: protection domain of the QP that will send it
 * @msg: message
 * @len: its length, bytes, at most IRDMA_LSMM_SIZE
 * @lsmm: result
 *
 * Context: process.
 * Return: 0, -EMSGSIZE, -ENOMEM, or the failure of the command that registers memory.
 */
int irdma_lsmm_get(struct irdma_pd *pd, const void *msg, u32 len, struct irdma_lsmm *lsmm)
{
	struct irdma_device *dev = to_irdma_dev(pd->ibpd.device);
	struct irdma_lsmm_region *region;
	u32 offset;

	if (len > IRDMA_LSMM_SIZE)
		return -EMSGSIZE;
	mutex_lock(&pd->lsmm_lock);
	region = find_room(pd) ?: add_region(dev, pd);
	if (IS_ERR(region)) {
		mutex_unlock(&pd->lsmm_lock);
		return PTR_ERR(region);
	}
	if (bitmap_empty(region->used, REGION_SLOTS))
		pd->lsmm_spare = false;
	lsmm->slot = find_first_zero_bit(region->used, REGION_SLOTS);
	__set_bit(lsmm->slot, region->used);
	if (bitmap_full(region->used, REGION_SLOTS))
		list_move_tail(&region->link, &pd->lsmm_regions);
	mutex_unlock(&pd->lsmm_lock);

	offset = lsmm->slot * IRDMA_LSMM_SIZE;
	memcpy(region->va + offset, msg, len);
	lsmm->region = region;
	lsmm->len = len;
	lsmm->stag = region->stag;
	lsmm->addr = region->dma + offset;
	return 0;
}

/**
 * irdma_lsmm_put - the hardware does not need a message any more
 * @pd: protection domain of irdma_lsmm_get()
 * @lsmm: message, or none
 *
 * Context: process.
 */
void irdma_lsmm_put(struct irdma_pd *pd, struct irdma_lsmm *lsmm)
{
	struct irdma_lsmm_region *region = lsmm->region;

	if (!region)
		return;
	lsmm->region = NULL;
	mutex_lock(&pd->lsmm_lock);
	__clear_bit(lsmm->slot, region->used);
	list_move(&region->link, &pd->lsmm_regions);
	if (bitmap_empty(region->used, REGION_SLOTS)) {
		if (pd->lsmm_spare)
			remove_region(to_irdma_dev(pd->ibpd.device), pd, region);
		pd->lsmm_spare = true;
	}
	mutex_unlock(&pd->lsmm_lock);
}
