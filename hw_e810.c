// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * E810 (and E822, E823) as the rest of the driver sees it: register map, limits and layouts
 * (spec 01 sections 2 and 7.1, spec 02 sections 1.4 and 5.1).  ice_if.c passes this table to
 * irdma_device_add().
 */
#include <linux/sizes.h>

#include "abi.h"
#include "irdma.h"
#include "stats.h"
#include "wq.h"

/* Inbound reads need two elements each: one for the request, one for its response. */
static u32 e810_q1_count(u32 qps, u32 max_ird)
{
	return 2 * max_ird * qps;
}

static u32 e810_xf_count(u32 qps, u32 xf_block)
{
	return 4 * xf_block * qps;
}

const struct irdma_hw_gen irdma_gen_e810 = {
	.name = "E810",
	.hw_rev = 2,
	.regs = {
		[IRDMA_REG_CQPTAIL]		= 0x500880,
		[IRDMA_REG_CQPDB]		= 0x500800,
		[IRDMA_REG_CCQPSTATUS]		= 0x50A000,
		[IRDMA_REG_CCQPHIGH]		= 0x50A100,
		[IRDMA_REG_CCQPLOW]		= 0x50A080,
		[IRDMA_REG_CQARM]		= 0x502C00,
		[IRDMA_REG_CQACK]		= 0x502C80,
		[IRDMA_REG_AEQALLOC]		= 0x502D00,
		[IRDMA_REG_CQPERRCODES]		= 0x50A200,
		[IRDMA_REG_WQEALLOC]		= 0x504400,
		[IRDMA_REG_CPUSTATUS0]		= 0x50BA5C,
		[IRDMA_REG_CPUSTATUS1]		= 0x50BA60,
		[IRDMA_REG_CPUSTATUS2]		= 0x50BA64,
		[IRDMA_REG_CRITERR]		= 0x534000,
		[IRDMA_REG_LBARCTRL]		= 0x09DE74,
		[IRDMA_REG_PDINV]		= 0x520300,
		[IRDMA_REG_DYN_CTL]		= 0x160000,
		[IRDMA_REG_CEQCTL]		= 0x15C000,
		[IRDMA_REG_AEQCTL]		= 0x16CB00,
		[IRDMA_REG_HMC_ERRORINFO]	= 0x520400,
		[IRDMA_REG_HMC_ERRORDATA]	= 0x520500,
	},
	.db_page_offset = SZ_8M - SZ_64K,
	.feature_flags = IRDMA_FEATURE_RTS_AE | IRDMA_FEATURE_CQ_RESIZE,
	.wq_fmt = &irdma_wq_fmt_e810,
	.max_wq_frags = 13,
	.max_read_sges = 13,
	.max_inline = 101,
	.max_sq_quanta = 32768,
	.max_rq_quanta = 32768,
	.max_sq_chunk = 8,
	.min_wq_size = 8,
	.max_quanta_per_wr = 8,
	.max_cqe = 1048575,
	.cqe_slots = 2,			/* completion and its extended part */
	.max_ird = 127,
	.max_ord = 255,
	.max_pds = 262144,
	.page_size_cap = SZ_4K | SZ_2M | SZ_1G,
	.max_mr_size = BIT_ULL(45),
	.counters = irdma_e810_counters,
	.num_counters = IRDMA_E810_COUNTERS,

	.vector_bias = 0,
	.dyn_ctl_enable = 0x00000003,	/* INTENA, CLEARPBA, no throttling */
	.ceqctl_enable = 0x40001800,	/* CAUSE_ENA, ITR index 3: none */
	.ceqctl_disable = 0x00001800,
	.max_ceqs = 1024,
	.virtual_aeq = true,

	.hw_major = 1,
	.protocol = 1,			/* iWARP only */
	.has_features = true,
	.cqn_mask = GENMASK_ULL(18, 0),
	.ceqn_mask = GENMASK_ULL(31, 22),
	.stag_pd_mask = GENMASK_ULL(63, 46),

	.hmc_objects = BIT(IRDMA_HMC_TYPES) - 1 - BIT(IRDMA_HMC_SRQ),
	.hmc_q1_count = e810_q1_count,
	.hmc_xf_count = e810_xf_count,
};
