/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Host memory cache: sizing, segment descriptors, and physical buffer lists
 * (spec 02 sections 1 and 2).
 */
#ifndef IRDMA_HMC_H
#define IRDMA_HMC_H

#include <linux/types.h>

struct irdma_device;

/* Module parameters, checked by main.c before any device is added. */
extern unsigned int irdma_limits_sel;		/* 0..7: 128 to 262144 QPs */
extern unsigned int irdma_resource_profile;	/* 1..3: default, favour VFs, equal */

#define IRDMA_LIMITS_SEL_MAX		7
#define IRDMA_LIMITS_SEL_DEFAULT	1	/* 1024 QPs */
#define IRDMA_PROFILE_DEFAULT		1
#define IRDMA_PROFILE_MAX		3

/* Objects that hardware keeps in host memory, in the order of spec 02, 1.1. */
enum irdma_hmc_type {
	IRDMA_HMC_QP,
	IRDMA_HMC_CQ,
	IRDMA_HMC_SRQ,
	IRDMA_HMC_HTE,
	IRDMA_HMC_ARP,
	IRDMA_HMC_APBVT,
	IRDMA_HMC_MR,
	IRDMA_HMC_XF,
	IRDMA_HMC_XFFL,
	IRDMA_HMC_Q1,
	IRDMA_HMC_Q1FL,
	IRDMA_HMC_TIMER,
	IRDMA_HMC_FSIMC,
	IRDMA_HMC_FSIAV,
	IRDMA_HMC_PBLE,
	IRDMA_HMC_RRF,
	IRDMA_HMC_RRFFL,
	IRDMA_HMC_HDR,
	IRDMA_HMC_MD,
	IRDMA_HMC_OOISC,
	IRDMA_HMC_OOISCFFL,
	IRDMA_HMC_TYPES
};

/* LPBLSIZE codes (spec 02, section 2). */
#define IRDMA_PBL_NONE		0
#define IRDMA_PBL_ONE_LEVEL	1
#define IRDMA_PBL_TWO_LEVELS	3

/**
 * struct irdma_pbl - a physical buffer list in HMC memory
 * @level: IRDMA_PBL_*; NONE means that nothing is allocated
 * @count: pages that the list holds; PBLE indexes have 28 bits
 * @first: PBLE index for commands: of the run (one level) or of the root (two levels)
 *
 * The rest is private to pble.c.
 */
struct irdma_pbl {
	u32 level : 2;
	u32 count : 30;
	u32 first;
	/* private: to pble.c */
	void *priv;
};

int irdma_pbl_alloc(struct irdma_device *dev, u32 pages, bool one_level_only,
		    struct irdma_pbl *pbl);
void irdma_pbl_free(struct irdma_device *dev, struct irdma_pbl *pbl);
/* Write entry @i (0..count-1); bus address of a page. Any context. */
void irdma_pbl_set(struct irdma_pbl *pbl, u32 i, dma_addr_t addr);

/* Steps of irdma_hw_start() and irdma_hw_stop(). */
int irdma_hmc_size(struct irdma_device *dev);
void irdma_hmc_unsize(struct irdma_device *dev);
int irdma_hmc_populate(struct irdma_device *dev);
void irdma_hmc_depopulate(struct irdma_device *dev);
int irdma_pble_start(struct irdma_device *dev);
void irdma_pble_stop(struct irdma_device *dev);

#endif
