// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Host memory cache: how many objects hardware gets, and the memory behind them (spec 02
 * section 1).
 *
 * Bring-up asks for hardware's limits, chooses counts, commits them and learns where each
 * table stands in the function's address space.  Then every segment of that space is backed:
 * where objects fill at least half of it by one block of 2 MiB, else by just the pages that
 * they touch.  The PBLE table is left to pble.c, which backs it as it is used.
 *
 * hw.c calls the four steps, one at a time; the functions on segments are also called by
 * pble.c, under the lock of its pool.
 */
#include <linux/bitfield.h>
#include <linux/dma-mapping.h>
#include <linux/log2.h>
#include <linux/slab.h>

#include "hmc_priv.h"

#define FPM_BUF_SIZE		208	/* query and commit */
#define FPM_BASE_UNIT		512
#define FPM_ALIGN		512
#define HMC_MAX_SDS		8192

#define QUERY_SDS		0	/* byte offset */
#define QUERY_EVENTS		120	/* byte offset */
#define QUERY_MAX_SDS		GENMASK_ULL(44, 32)
#define QUERY_COUNT		GENMASK_ULL(31, 0)
#define QUERY_UPPER		GENMASK_ULL(63, 32)
#define QUERY_CEQS		GENMASK_ULL(9, 0)
#define QUERY_HT_MULTIPLIER	GENMASK_ULL(19, 16)
#define QUERY_TIMER_BUCKETS	GENMASK_ULL(47, 32)
#define COMMIT_BASE		GENMASK_ULL(63, 32)
#define QPS_BITS		GENMASK(20, 0)
#define CQS_BITS		GENMASK(19, 0)

#define SD_CMD_INDEX		GENMASK_ULL(14, 0)
#define SD_CMD_PE		BIT_ULL(15)
#define SD_CMD_WRITE		BIT_ULL(31)
#define SD_DATA_VALID		BIT_ULL(0)
#define SD_DATA_DIRECT		BIT_ULL(1)
#define SD_DATA_PAGES		GENMASK_ULL(11, 2)
#define PD_VALID		BIT_ULL(0)
#define PDINV_SD		GENMASK(11, 0)
#define PDINV_PE		BIT(15)
#define PDINV_PD		GENMASK(24, 16)

/* Backing of a segment that objects fill to less than this is given page by page. */
#define DIRECT_MIN_PAGES	(IRDMA_SD_PAGES / 2)

/* Sizing (spec 02, 1.4). */
#define MAX_SIZING_PASSES	2000
#define MIN_QPS			128
#define MRS_PER_QP		64	/* a storage queue of depth 64 */
#define PROFILE_FAVOUR_VF	2
#define ARP_INDEX_LIMIT		4096	/* 12-bit field of CQP op 0x0F */

#define NO_QUERY		0xFFFF

/* Where an object's words stand in the two buffers, and its size if it is not told there. */
static const struct {
	u16 query;
	u16 commit;
	u16 fixed_size;
} layout[IRDMA_HMC_TYPES] = {
	[IRDMA_HMC_QP]		= { 8, 0, 0 },
	[IRDMA_HMC_CQ]		= { 16, 8, 0 },
	[IRDMA_HMC_SRQ]		= { 24, 16, 0 },
	[IRDMA_HMC_HTE]		= { 32, 24, 0 },
	[IRDMA_HMC_ARP]		= { 40, 32, 0 },
	[IRDMA_HMC_APBVT]	= { NO_QUERY, 40, 8192 },
	[IRDMA_HMC_MR]		= { 48, 48, 0 },
	[IRDMA_HMC_XF]		= { 56, 56, 0 },
	[IRDMA_HMC_XFFL]	= { 64, 64, 4 },
	[IRDMA_HMC_Q1]		= { 72, 72, 0 },
	[IRDMA_HMC_Q1FL]	= { 80, 80, 4 },
	[IRDMA_HMC_TIMER]	= { 88, 88, 0 },
	[IRDMA_HMC_FSIMC]	= { 96, 96, 0 },
	[IRDMA_HMC_FSIAV]	= { 104, 104, 0 },
	[IRDMA_HMC_PBLE]	= { 112, 112, IRDMA_PBLE_SIZE },
	[IRDMA_HMC_RRF]		= { 128, 128, 0 },
	[IRDMA_HMC_RRFFL]	= { 136, 136, 4 },
	[IRDMA_HMC_HDR]		= { 144, 144, 0 },
	[IRDMA_HMC_MD]		= { 152, 152, 0 },
	[IRDMA_HMC_OOISC]	= { 160, 160, 0 },
	[IRDMA_HMC_OOISCFFL]	= { 168, 168, 4 },
};

/* QPs by limits_sel. */
static const u32 selected_qps[] = { 128, 1024, 2048, 4096, 16384, 65536, 131072, 262144 };
static_assert(ARRAY_SIZE(selected_qps) == IRDMA_LIMITS_SEL_MAX + 1);

static bool has(const struct irdma_device *dev, enum irdma_hmc_type type)
{
	return dev->gen->hmc_objects & BIT(type);
}

/**
 * struct hmc_plan - what the sizing passes change
 * @qps: queue pairs, power of two
 * @mrs: memory regions
 * @pbles: PBLEs
 * @fsimcs: multicast groups
 * @fsiavs: address handles
 */
struct hmc_plan {
	u32 qps;
	u32 mrs;
	u32 pbles;
	u32 fsimcs;
	u32 fsiavs;
};

static void set_count(struct irdma_hmc *hmc, enum irdma_hmc_type type, u64 count)
{
	hmc->obj[type].count = min_t(u64, count, hmc->obj[type].max);
}

/* A FIFO and its free list, which has an entry a block. */
static void set_fifo(struct irdma_hmc *hmc, enum irdma_hmc_type fifo, u64 count, u32 block)
{
	set_count(hmc, fifo, count);
	/* The free list follows its FIFO in enum irdma_hmc_type. */
	set_count(hmc, fifo + 1, block ? hmc->obj[fifo].count / block : 0);
}

static void set_counts(struct irdma_device *dev, const struct hmc_plan *plan)
{
	const struct irdma_hw_gen *gen = dev->gen;
	struct irdma_hmc *hmc = dev->hmc;
	struct irdma_hmc_obj *obj = hmc->obj;
	u32 qps = plan->qps;
	unsigned int i;

	for (i = 0; i < IRDMA_HMC_TYPES; i++)
		obj[i].count = obj[i].max;
	set_count(hmc, IRDMA_HMC_QP, qps);
	set_count(hmc, IRDMA_HMC_CQ, 2 * qps);
	set_count(hmc, IRDMA_HMC_SRQ, 0);
	set_count(hmc, IRDMA_HMC_HTE, (u64)hmc->ht_multiplier *
		  roundup_pow_of_two(round_up(qps + plan->fsimcs, 512)));
	set_count(hmc, IRDMA_HMC_MR, plan->mrs);
	set_count(hmc, IRDMA_HMC_PBLE, plan->pbles);
	set_count(hmc, IRDMA_HMC_FSIMC, plan->fsimcs);
	set_count(hmc, IRDMA_HMC_FSIAV, plan->fsiavs);
	set_count(hmc, IRDMA_HMC_HDR, qps);
	set_count(hmc, IRDMA_HMC_TIMER, (u64)hmc->timer_buckets * (round_up(qps, 512) / 512 + 1));
	set_fifo(hmc, IRDMA_HMC_XF, gen->hmc_xf_count(qps, hmc->xf_block), hmc->xf_block);
	set_fifo(hmc, IRDMA_HMC_Q1, gen->hmc_q1_count(qps, gen->max_ird), hmc->q1_block);
	set_fifo(hmc, IRDMA_HMC_RRF, 32ULL * qps, hmc->rrf_block);
	set_fifo(hmc, IRDMA_HMC_OOISC, 32ULL * qps, hmc->ooisc_block);
}

static u32 needed_sds(const struct irdma_hmc *hmc)
{
	u64 bytes = 0;
	unsigned int i;

	for (i = 0; i < IRDMA_HMC_TYPES; i++)
		bytes += ALIGN((u64)hmc->obj[i].count * hmc->obj[i].size, FPM_ALIGN);
	return DIV_ROUND_UP_ULL(bytes, IRDMA_SD_SIZE);
}

/* One pass's worth less of something, when @excess segments too many are needed. */
static void shrink_plan(struct hmc_plan *plan, u32 excess, unsigned int pass)
{
	if (excess > 128) {
		if (!(pass & 1) && plan->qps > MIN_QPS) {
			plan->qps /= 2;
		} else {
			plan->pbles /= 2;
			plan->mrs /= 2;
		}
		return;
	}
	if (irdma_resource_profile != PROFILE_FAVOUR_VF &&
	    plan->pbles > (u64)SZ_512K * excess) {
		plan->pbles -= SZ_256K * excess;
		return;
	}
	if (plan->pbles > 100 * 1024) {
		plan->pbles -= 10 * 1024;
	} else if (plan->pbles > 1024) {
		plan->pbles -= 1024;
	} else if (plan->qps <= MIN_QPS) {
		if (plan->fsimcs > 256)
			plan->fsimcs /= 2;
		if (plan->fsiavs > 256)
			plan->fsiavs /= 2;
	}
	if (plan->mrs > 1024)
		plan->mrs -= 1024;
	if (pass % 10 == 9 && plan->qps > MIN_QPS) {
		plan->qps /= 2;
		if (plan->fsiavs > 256)
			plan->fsiavs /= 2;
	}
}

static int choose_counts(struct irdma_device *dev)
{
	struct irdma_hmc *hmc = dev->hmc;
	struct hmc_plan plan = {
		.qps = min(selected_qps[irdma_limits_sel], hmc->obj[IRDMA_HMC_QP].max),
		.pbles = hmc->obj[IRDMA_HMC_PBLE].max,
		.fsimcs = hmc->obj[IRDMA_HMC_FSIMC].max,
		.fsiavs = hmc->obj[IRDMA_HMC_FSIAV].max,
	};
	unsigned int pass;
	u32 needed;

	if (!plan.qps)
		return -EINVAL;
	plan.qps = rounddown_pow_of_two(plan.qps);
	while (plan.qps > 1 &&
	       dev->gen->hmc_q1_count(plan.qps, dev->gen->max_ird) > hmc->obj[IRDMA_HMC_Q1].max)
		plan.qps /= 2;
	plan.mrs = min_t(u64, (u64)MRS_PER_QP * plan.qps, hmc->obj[IRDMA_HMC_MR].max);

	for (pass = 0; pass < MAX_SIZING_PASSES; pass++) {
		set_counts(dev, &plan);
		needed = needed_sds(hmc);
		if (needed <= hmc->max_sds)
			break;
		shrink_plan(&plan, needed - hmc->max_sds, pass);
	}
	if (pass == MAX_SIZING_PASSES) {
		irdma_err(dev, "HMC: %u segments needed for %u QPs, hardware has %u\n", needed,
			  plan.qps, hmc->max_sds);
		return -EINVAL;
	}
	if (pass)
		set_count(hmc, IRDMA_HMC_PBLE,
			  plan.pbles + (u64)SZ_256K * (hmc->max_sds - needed));
	return 0;
}

static u64 buf_word(const __le64 *buf, unsigned int offset)
{
	return le64_to_cpu(buf[offset / sizeof(*buf)]);
}

static int parse_query(struct irdma_device *dev, const __le64 *buf)
{
	struct irdma_hmc *hmc = dev->hmc;
	u64 word;
	u32 upper;
	unsigned int i;

	hmc->max_sds = min_t(u32, FIELD_GET(QUERY_MAX_SDS, buf_word(buf, QUERY_SDS)), HMC_MAX_SDS);
	word = buf_word(buf, QUERY_EVENTS);
	dev->limits.ceqs = FIELD_GET(QUERY_CEQS, word);
	hmc->ht_multiplier = FIELD_GET(QUERY_HT_MULTIPLIER, word);
	hmc->timer_buckets = FIELD_GET(QUERY_TIMER_BUCKETS, word);

	for (i = 0; i < IRDMA_HMC_TYPES; i++) {
		struct irdma_hmc_obj *obj = &hmc->obj[i];

		if (!has(dev, i))
			continue;
		obj->size = layout[i].fixed_size;
		obj->max = 1;
		if (layout[i].query == NO_QUERY)
			continue;
		word = buf_word(buf, layout[i].query);
		obj->max = FIELD_GET(QUERY_COUNT, word);
		upper = FIELD_GET(QUERY_UPPER, word);
		if (layout[i].fixed_size)
			continue;
		if (obj->max && upper > IRDMA_SD_SHIFT) {
			irdma_err(dev, "HMC object %u: size 2^%u\n", i, upper);
			return -EINVAL;
		}
		obj->size = BIT(upper);
	}
	hmc->xf_block = FIELD_GET(QUERY_UPPER, buf_word(buf, layout[IRDMA_HMC_XFFL].query));
	hmc->q1_block = FIELD_GET(QUERY_UPPER, buf_word(buf, layout[IRDMA_HMC_Q1FL].query));
	hmc->rrf_block = FIELD_GET(QUERY_UPPER, buf_word(buf, layout[IRDMA_HMC_RRFFL].query));
	hmc->ooisc_block = FIELD_GET(QUERY_UPPER, buf_word(buf, layout[IRDMA_HMC_OOISCFFL].query));

	if (!hmc->q1_block || (hmc->obj[IRDMA_HMC_XF].max && !hmc->xf_block) ||
	    (hmc->obj[IRDMA_HMC_RRFFL].max && !hmc->rrf_block) ||
	    (hmc->obj[IRDMA_HMC_OOISCFFL].max && !hmc->ooisc_block)) {
		irdma_err(dev, "HMC: free-list block of 0 elements (%u, %u, %u, %u)\n",
			  hmc->q1_block, hmc->xf_block, hmc->rrf_block, hmc->ooisc_block);
		return -EINVAL;
	}
	return 0;
}

static void fill_commit(struct irdma_device *dev, __le64 *buf)
{
	unsigned int i;

	memset(buf, 0, FPM_BUF_SIZE);
	for (i = 0; i < IRDMA_HMC_TYPES; i++)
		/* The APBVT is always there; its word is for the base only. */
		if (has(dev, i) && i != IRDMA_HMC_APBVT)
			buf[layout[i].commit / sizeof(*buf)] =
				cpu_to_le64(dev->hmc->obj[i].count);
}

static int parse_commit(struct irdma_device *dev, const __le64 *buf)
{
	struct irdma_hmc *hmc = dev->hmc;
	u64 end = 0;
	unsigned int i;

	for (i = 0; i < IRDMA_HMC_TYPES; i++) {
		struct irdma_hmc_obj *obj = &hmc->obj[i];
		u64 word = buf_word(buf, layout[i].commit);

		if (!has(dev, i))
			continue;
		obj->base = FIELD_GET(COMMIT_BASE, word) * FPM_BASE_UNIT;
		if (i != IRDMA_HMC_APBVT)
			obj->count = word & (i == IRDMA_HMC_QP ? QPS_BITS :
					     i == IRDMA_HMC_CQ ? CQS_BITS : QUERY_COUNT);
		if (obj->count)
			end = max(end, obj->base + (u64)obj->count * obj->size);
	}
	hmc->num_sds = DIV_ROUND_UP_ULL(end, IRDMA_SD_SIZE);
	if (hmc->num_sds > HMC_MAX_SDS) {
		irdma_err(dev, "HMC ends at %#llx, beyond %u segments\n", end, HMC_MAX_SDS);
		return -EINVAL;
	}
	return 0;
}

static int set_limits(struct irdma_device *dev)
{
	const struct irdma_hmc_obj *obj = dev->hmc->obj;
	struct irdma_limits *limits = &dev->limits;

	limits->qps = obj[IRDMA_HMC_QP].count;
	limits->cqs = obj[IRDMA_HMC_CQ].count;
	limits->mrs = obj[IRDMA_HMC_MR].count;
	limits->ahs = obj[IRDMA_HMC_FSIAV].count;
	limits->arps = min_t(u32, obj[IRDMA_HMC_ARP].count, ARP_INDEX_LIMIT);
	limits->pds = dev->gen->max_pds;
	if (limits->qps > IRDMA_RESERVED_IDS && limits->cqs > IRDMA_RESERVED_IDS && limits->mrs > 1)
		return 0;
	irdma_err(dev, "HMC grants %u QPs, %u CQs and %u MRs: too few\n", limits->qps, limits->cqs,
		  limits->mrs);
	return -EINVAL;
}

static int query_and_commit(struct irdma_device *dev, __le64 *buf, dma_addr_t addr)
{
	struct irdma_cqp_req req;
	int err;

	irdma_cqp_prep_query_fpm(dev, &req, addr);
	err = irdma_cqp_exec(dev, &req) ?: parse_query(dev, buf) ?: choose_counts(dev);
	if (err)
		return err;
	fill_commit(dev, buf);
	irdma_cqp_prep_commit_fpm(dev, &req, addr, FPM_BUF_SIZE);
	return irdma_cqp_exec(dev, &req) ?: parse_commit(dev, buf) ?: set_limits(dev);
}

/**
 * irdma_hmc_size() - settle the number of objects and set the device's limits
 * @dev: the device; the control queue runs
 *
 * Context: process, sleeps.
 * Return: 0, -ENOMEM, -EINVAL (hardware's numbers make no sense), or an error of
 *	irdma_cqp_exec().
 */
int irdma_hmc_size(struct irdma_device *dev)
{
	struct irdma_hmc *hmc;
	dma_addr_t addr;
	__le64 *buf;
	int err = -ENOMEM;

	hmc = kzalloc(sizeof(*hmc), GFP_KERNEL);
	if (!hmc)
		return -ENOMEM;
	mutex_init(&hmc->cmd_lock);
	dev->hmc = hmc;
	hmc->overflow = dma_alloc_coherent(dma_dev(dev), IRDMA_SD_OVERFLOW_SIZE,
					   &hmc->overflow_addr, GFP_KERNEL);
	if (!hmc->overflow)
		goto free_hmc;
	buf = dma_alloc_coherent(dma_dev(dev), FPM_BUF_SIZE, &addr, GFP_KERNEL);
	if (!buf)
		goto free_overflow;
	err = query_and_commit(dev, buf, addr);
	dma_free_coherent(dma_dev(dev), FPM_BUF_SIZE, buf, addr);
	if (err)
		goto free_overflow;
	hmc->sds = kvcalloc(hmc->num_sds, sizeof(*hmc->sds), GFP_KERNEL);
	if (!hmc->sds) {
		err = -ENOMEM;
		goto free_overflow;
	}
	return 0;

free_overflow:
	dma_free_coherent(dma_dev(dev), IRDMA_SD_OVERFLOW_SIZE, hmc->overflow, hmc->overflow_addr);
free_hmc:
	mutex_destroy(&hmc->cmd_lock);
	kfree(hmc);
	dev->hmc = NULL;
	return err;
}

/**
 * irdma_hmc_unsize() - free what irdma_hmc_size() allocated
 * @dev: the device; nothing is populated
 */
void irdma_hmc_unsize(struct irdma_device *dev)
{
	struct irdma_hmc *hmc = dev->hmc;

	kvfree(hmc->sds);
	dma_free_coherent(dma_dev(dev), IRDMA_SD_OVERFLOW_SIZE, hmc->overflow, hmc->overflow_addr);
	mutex_destroy(&hmc->cmd_lock);
	kfree(hmc);
	dev->hmc = NULL;
}

static u32 sd_index(const struct irdma_device *dev, const struct irdma_sd *sd)
{
	return sd - dev->hmc->sds;
}

/**
 * irdma_sd_alloc_direct() - back a segment by one zeroed block
 * @dev: the device
 * @sd: segment of type NONE
 *
 * Context: process, sleeps.
 * Return: 0 or -ENOMEM.  Hardware does not know of it before irdma_sd_write().
 */
int irdma_sd_alloc_direct(struct irdma_device *dev, struct irdma_sd *sd)
{
	sd->va = dma_alloc_coherent(dma_dev(dev), IRDMA_SD_SIZE, &sd->addr,
				    GFP_KERNEL | __GFP_NOWARN);
	if (!sd->va)
		return -ENOMEM;
	sd->type = IRDMA_SD_DIRECT;
	return 0;
}

/**
 * irdma_sd_alloc_paged() - give a segment an empty table of pages
 * @dev: the device
 * @sd: segment of type NONE
 *
 * Context: process, sleeps.
 * Return: 0 or -ENOMEM.  Hardware does not know of it before irdma_sd_write().
 */
int irdma_sd_alloc_paged(struct irdma_device *dev, struct irdma_sd *sd)
{
	sd->pages = kvcalloc(IRDMA_SD_PAGES, sizeof(*sd->pages), GFP_KERNEL);
	if (!sd->pages)
		return -ENOMEM;
	sd->va = dma_alloc_coherent(dma_dev(dev), SZ_4K, &sd->addr, GFP_KERNEL);
	if (!sd->va) {
		kvfree(sd->pages);
		sd->pages = NULL;
		return -ENOMEM;
	}
	sd->type = IRDMA_SD_PAGED;
	return 0;
}

/* Hardware may have the page descriptor in its cache. */
static void invalidate_pd(struct irdma_device *dev, const struct irdma_sd *sd, u32 page)
{
	if (sd->known)
		irdma_wr32(dev, IRDMA_REG_PDINV, FIELD_PREP(PDINV_SD, sd_index(dev, sd)) |
			   PDINV_PE | FIELD_PREP(PDINV_PD, page));
}

/**
 * irdma_sd_add_page() - back a page of a paged segment by zeroed memory
 * @dev: the device
 * @sd: paged segment
 * @page: index in the segment; has no page
 *
 * Context: process, sleeps.
 * Return: 0 or -ENOMEM.
 */
int irdma_sd_add_page(struct irdma_device *dev, struct irdma_sd *sd, u32 page)
{
	__le64 *pd = (__le64 *)sd->va + page;
	dma_addr_t addr;

	sd->pages[page] = dma_alloc_coherent(dma_dev(dev), SZ_4K, &addr, GFP_KERNEL);
	if (!sd->pages[page])
		return -ENOMEM;
	WRITE_ONCE(*pd, cpu_to_le64(addr | PD_VALID));
	invalidate_pd(dev, sd, page);
	return 0;
}

/**
 * irdma_sd_del_page() - take back a page of a paged segment
 * @dev: the device
 * @sd: paged segment
 * @page: index in the segment; nothing in it is in use
 *
 * Context: process, sleeps.
 */
void irdma_sd_del_page(struct irdma_device *dev, struct irdma_sd *sd, u32 page)
{
	__le64 *pd = (__le64 *)sd->va + page;
	dma_addr_t addr = le64_to_cpu(*pd) & ~PD_VALID;

	WRITE_ONCE(*pd, 0);
	invalidate_pd(dev, sd, page);
	dma_free_coherent(dma_dev(dev), SZ_4K, sd->pages[page], addr);
	sd->pages[page] = NULL;
}

/**
 * irdma_sd_free() - free the memory of a segment
 * @dev: the device
 * @sd: segment that hardware does not know (any more)
 *
 * Context: process, sleeps.
 */
void irdma_sd_free(struct irdma_device *dev, struct irdma_sd *sd)
{
	u32 i;

	if (sd->type == IRDMA_SD_DIRECT)
		dma_free_coherent(dma_dev(dev), IRDMA_SD_SIZE, sd->va, sd->addr);
	if (sd->type == IRDMA_SD_PAGED) {
		for (i = 0; i < IRDMA_SD_PAGES; i++)
			if (sd->pages[i])
				irdma_sd_del_page(dev, sd, i);
		dma_free_coherent(dma_dev(dev), SZ_4K, sd->va, sd->addr);
		kvfree(sd->pages);
	}
	memset(sd, 0, sizeof(*sd));
}

static struct irdma_sd_entry sd_entry(struct irdma_device *dev, const struct irdma_sd *sd,
				      bool valid)
{
	return (struct irdma_sd_entry){
		.cmd = FIELD_PREP(SD_CMD_INDEX, sd_index(dev, sd)) | SD_CMD_PE | SD_CMD_WRITE,
		.data = (valid ? sd->addr | SD_DATA_VALID : 0) |
			(sd->type == IRDMA_SD_DIRECT ? SD_DATA_DIRECT : 0) |
			FIELD_PREP(SD_DATA_PAGES, IRDMA_SD_PAGES),
	};
}

static int write_sds(struct irdma_device *dev, struct irdma_sd **sds, unsigned int count,
		     bool valid)
{
	struct irdma_sd_entry entries[IRDMA_SDS_PER_CMD];
	struct irdma_hmc *hmc = dev->hmc;
	struct irdma_cqp_req req;
	unsigned int i;
	int err;

	for (i = 0; i < count; i++)
		entries[i] = sd_entry(dev, sds[i], valid);
	mutex_lock(&hmc->cmd_lock);
	irdma_cqp_prep_update_sds(dev, &req, entries, count, hmc->overflow, hmc->overflow_addr);
	err = irdma_cqp_exec(dev, &req);
	mutex_unlock(&hmc->cmd_lock);
	for (i = 0; !err && i < count; i++)
		sds[i]->known = valid;
	return err;
}

/**
 * irdma_sd_write() - tell hardware of a segment, or that it is gone
 * @dev: the device
 * @sd: segment with memory
 * @valid: hardware may use it
 *
 * Context: process, sleeps.
 * Return: 0 or an error of irdma_cqp_exec().
 */
int irdma_sd_write(struct irdma_device *dev, struct irdma_sd *sd, bool valid)
{
	return write_sds(dev, &sd, 1, valid);
}

/* Mark the pages of segment @sd that objects other than PBLEs touch. */
static void mark_pages(const struct irdma_hmc *hmc, u32 sd, unsigned long *pages)
{
	u64 start = (u64)sd << IRDMA_SD_SHIFT, end = start + IRDMA_SD_SIZE;
	unsigned int i;

	bitmap_zero(pages, IRDMA_SD_PAGES);
	for (i = 0; i < IRDMA_HMC_TYPES; i++) {
		const struct irdma_hmc_obj *obj = &hmc->obj[i];
		u64 from = max(obj->base, start);
		u64 to = min(obj->base + (u64)obj->count * obj->size, end);
		u32 first, last;

		if (i == IRDMA_HMC_PBLE || from >= to)
			continue;
		first = (from - start) >> IRDMA_HMC_PAGE_SHIFT;
		last = (to - 1 - start) >> IRDMA_HMC_PAGE_SHIFT;
		bitmap_set(pages, first, last - first + 1);
	}
}

static int back_sd(struct irdma_device *dev, struct irdma_sd *sd)
{
	DECLARE_BITMAP(pages, IRDMA_SD_PAGES);
	unsigned int count, page;
	int err;

	mark_pages(dev->hmc, sd_index(dev, sd), pages);
	count = bitmap_weight(pages, IRDMA_SD_PAGES);
	if (!count)
		return 0;
	if (count >= DIRECT_MIN_PAGES && !irdma_sd_alloc_direct(dev, sd))
		return 0;
	err = irdma_sd_alloc_paged(dev, sd);
	if (err)
		return err;
	for_each_set_bit(page, pages, IRDMA_SD_PAGES) {
		err = irdma_sd_add_page(dev, sd, page);
		if (err) {
			irdma_sd_free(dev, sd);
			return err;
		}
	}
	return 0;
}

/* Send @valid for all segments whose state differs, as many in a command as it takes. */
static int write_all(struct irdma_device *dev, bool valid)
{
	struct irdma_sd *batch[IRDMA_SDS_PER_CMD];
	struct irdma_hmc *hmc = dev->hmc;
	unsigned int count = 0;
	int err;
	u32 i;

	for (i = 0; i < hmc->num_sds; i++) {
		struct irdma_sd *sd = &hmc->sds[i];

		if (sd->type == IRDMA_SD_NONE || sd->known == valid)
			continue;
		batch[count++] = sd;
		if (count < IRDMA_SDS_PER_CMD)
			continue;
		err = write_sds(dev, batch, count, valid);
		if (err)
			return err;
		count = 0;
	}
	return count ? write_sds(dev, batch, count, valid) : 0;
}

/**
 * irdma_hmc_populate() - give every object memory and let hardware use it
 * @dev: the device; irdma_hmc_size() has succeeded
 *
 * Context: process, sleeps.
 * Return: 0, -ENOMEM, or an error of irdma_cqp_exec(); a failed attempt is undone.
 */
int irdma_hmc_populate(struct irdma_device *dev)
{
	struct irdma_hmc *hmc = dev->hmc;
	struct irdma_cqp_req req;
	int err;
	u32 i;

	for (i = 0; i < hmc->num_sds; i++) {
		err = back_sd(dev, &hmc->sds[i]);
		if (err)
			goto undo;
	}
	err = write_all(dev, true);
	if (err)
		goto undo;
	irdma_cqp_prep_pages_allocated(dev, &req);
	err = irdma_cqp_exec(dev, &req);
	if (err)
		goto undo;
	return 0;

undo:
	irdma_hmc_depopulate(dev);
	return err;
}

/**
 * irdma_hmc_depopulate() - take all memory of the objects back
 * @dev: the device; no object is in use
 *
 * Context: process, sleeps.
 */
void irdma_hmc_depopulate(struct irdma_device *dev)
{
	struct irdma_hmc *hmc = dev->hmc;
	u32 i;

	/* Also after a failure: the control queue, and with it all use, ends next. */
	write_all(dev, false);
	for (i = 0; i < hmc->num_sds; i++) {
		/* The whole table goes, so hardware's copies of its pages do not matter. */
		hmc->sds[i].known = false;
		irdma_sd_free(dev, &hmc->sds[i]);
	}
}
