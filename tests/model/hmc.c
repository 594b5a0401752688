// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * hmc.c - host memory cache: object tables in host memory, handed over as 2 MiB
 * segment descriptors (SD).  Called by the control queue (rdma.c) and, for page
 * lists and backing checks, by the engine's callbacks.
 */
#include "rdma_int.h"

/* Offset in the query/commit buffers, log2 size, maximum count. */
static const struct hmc_obj {
	u16 off, lg2;
	u32 max;
	const char *name;
} hmc[NUM_HMC] = {
	{ 0,   9, 2048,  "QP" },	{ 8,   6, 4096,  "CQ" },
	{ 16,  6, 0,     "SRQ" },	{ 24,  6, 16384, "HTE" },
	{ 32,  6, 256,   "ARP" },	{ 40, 13, 1,     "APBVT" },
	{ 48,  6, 16384, "MR" },	{ 56,  6, 32768, "XF" },
	{ 64,  2, 8192,  "XFFL" },	{ 72,  6, 1 << 18, "Q1" },
	{ 80,  2, 65536, "Q1FL" },	{ 88,  7, 2048,  "TIMER" },
	{ 96,  6, 256,   "FSIMC" },	{ 104, 6, 256,   "FSIAV" },
	{ 112, 3, 1 << 21, "PBLE" },	{ 128, 6, 65536, "RRF" },
	{ 136, 2, 16384, "RRFFL" },	{ 144, 6, 4096,  "HDR" },
	{ 152, 6, 4096,  "MD" },	{ 160, 6, 65536, "OOISC" },
	{ 168, 2, 16384, "OOISCFFL" },
};

/* Each followed by its free list. */
static const u8 fifos[] = { HMC_XF, HMC_Q1, HMC_RRF, HMC_OOISC };

#define SD_VALID	1u
#define SD_DIRECT	2u
#define SD_CMD_WRITE	0x80000000u
#define SD_CMD_PE	0x8000u
#define SD_CMD_INDEX	0xfffu

/* Host address behind an HMC offset, through segment and page descriptors. */
void *hmc_ptr(struct nic *d, u64 off, u32 len)
{
	u64 sd = off >> 21 < MAX_SD ? rdma.sd[off >> 21] : 0, pd;
	u8 *p;

	if (!(sd & SD_VALID))
		return NULL;
	if (sd & SD_DIRECT)
		return dma_ptr(d, (sd & ~0xfffull) + (off & 0x1fffff), len);
	p = dma_ptr(d, (sd & ~0xfffull) + (off >> 12 & 511) * 8, 8);
	pd = p ? ld64(p) : 0;
	return pd & 1 ? dma_ptr(d, (pd & ~0xfffull) + (off & 0xfff), len) : NULL;
}

u8 *hmc_pble(struct nic *d, u32 idx)
{
	if (idx >= rdma.hmc_count[HMC_PBLE])
		return NULL;
	return hmc_ptr(d, rdma.hmc_base[HMC_PBLE] + 8ull * idx, 8);
}

bool hmc_backed(struct nic *d, u32 object, u32 idx)
{
	u32 size = 1u << hmc[object].lg2;

	return idx < rdma.hmc_count[object] &&
	       hmc_ptr(d, rdma.hmc_base[object] + (u64)idx * size, size > 4096 ? 4096 : size);
}

/* 4 KiB pages of host memory behind the valid segment descriptors. */
u32 hmc_pages(struct nic *d)
{
	u32 n = 0;

	for (u32 i = 0; i < MAX_SD; i++) {
		const u8 *pd;

		if (!(rdma.sd[i] & SD_VALID))
			continue;
		if (rdma.sd[i] & SD_DIRECT) {
			n += 512;
			continue;
		}
		pd = dma_ptr(d, rdma.sd[i] & ~0xfffull, 4096);
		for (u32 k = 0; pd && k < 512; k++)
			n += ld64(pd + 8 * k) & 1;
	}
	return n;
}

/* CQP 0x20: what the function may have: first SD, number of SDs, object limits. */
void hmc_query(u8 *b)
{
	memset(b, 0, 176);
	for (size_t i = 0; i < NUM_HMC; i++) {
		u16 off;

		if (i == HMC_APBVT)	/* fixed size, the slot is ARP's */
			continue;
		/* QP, CQ in slots 8, 16; the rest keep the commit order + 8 up to ARP */
		off = hmc[i].off <= 32 ? hmc[i].off + 8 : hmc[i].off;
		st64(b + off, hmc[i].max | (u64)hmc[i].lg2 << 32);
	}
	st64(b, 0 | 64ull << 32);			/* first SD 0, 64 SDs */
	/* free lists: upper half is the FIFO's block size, not the object size */
	for (size_t i = 0; i < ARRAY_SIZE(fifos); i++)
		st64(b + hmc[fifos[i] + 1].off, hmc[fifos[i] + 1].max | 4ull << 32);
	st64(b + 120, MAX_CEQ | 4ull << 16 | 16ull << 32); /* CEQs, hash multiplier, timer buckets */
}

/* CQP 0x21: the driver says how many of each; answer where each table starts. */
u32 hmc_commit(struct nic *d, u8 *b)
{
	u64 base = 0;

	for (size_t i = 0; i < NUM_HMC; i++) {
		u32 n = i == HMC_APBVT ? 1 : (u32)ld64(b + hmc[i].off);

		if (n > hmc[i].max && refuse(d, "COMMIT_FPM: %s count %u, at most %u", hmc[i].name, n,
					     hmc[i].max))
			return CQP_BAD_PARAM;
	}
	for (size_t i = 0; i < NUM_HMC; i++) {
		u32 n = i == HMC_APBVT ? 1 : (u32)ld64(b + hmc[i].off);

		rdma.hmc_count[i] = n;
		rdma.hmc_base[i] = base;
		st64(b + hmc[i].off, n | (base / 512) << 32);
		TRACE(d, 1, "  HMC %-8s %6u objects at 0x%llx", hmc[i].name, n,
		      (unsigned long long)base);
		base += (u64)n << hmc[i].lg2;
		base = (base + 4095) & ~4095ull;
	}
	return 0;
}

static u32 update_sd(struct nic *d, u64 cmd, u64 data)
{
	u32 idx = cmd & SD_CMD_INDEX;

	if (idx >= MAX_SD && refuse(d, "UPDATE_PE_SDS: SD index %u, at most %u", idx, MAX_SD - 1))
		return CQP_BAD_PARAM;
	if ((cmd & (SD_CMD_WRITE | SD_CMD_PE)) != (SD_CMD_WRITE | SD_CMD_PE) &&
	    refuse(d, "UPDATE_PE_SDS: SD %u: command word 0x%llx lacks bit 31 or 15", idx,
		   (unsigned long long)cmd))
		return CQP_BAD_PARAM;
	if (!(data & SD_VALID) == !(rdma.sd[idx & (MAX_SD - 1)] & SD_VALID) &&
	    refuse(d, "UPDATE_PE_SDS: SD %u is %s already", idx, data & SD_VALID ? "valid" : "invalid"))
		return CQP_BAD_PARAM;
	if ((data & SD_VALID) && !dma_ptr(d, data & ~0xfffull, data & SD_DIRECT ? 2 << 20 : 4096) &&
	    refuse(d, "UPDATE_PE_SDS: SD %u: address 0x%llx is not guest memory", idx,
		   (unsigned long long)(data & ~0xfffull)))
		return CQP_BAD_PARAM;
	if (idx < MAX_SD)
		rdma.sd[idx] = data;
	return 0;
}

/* CQP 0x1f: up to three descriptors in the WQE, more in a buffer. */
u32 hmc_update_sds(struct nic *d, const u8 *w)
{
	static const u8 slot[3] = { 0, 32, 48 };
	u32 extra = ld64(w + 24) & 0xf, err = 0;
	u8 *buf = NULL;

	if (extra) {
		buf = dma_ptr(d, ld64(w + 16) & ~0x7full, extra * 16);
		if (!buf && refuse(d, "UPDATE_PE_SDS: buffer 0x%llx is not guest memory",
				   (unsigned long long)(ld64(w + 16) & ~0x7full)))
			return CQP_BAD_PARAM;
	}
	for (int i = 0; i < 3 && !err; i++) {
		u64 cmd = ld64(w + slot[i]);

		if (i && !(cmd >> 63))
			continue;
		err = update_sd(d, (u32)cmd, ld64(w + slot[i] + 8));
	}
	for (u32 i = 0; buf && i < extra && !err; i++)
		err = update_sd(d, (u32)ld64(buf + 16 * i), ld64(buf + 16 * i + 8));
	return err;
}

/* CQP 0x2b: from here on the tables are used; all but the page lists must be there. */
u32 hmc_allocated(struct nic *d)
{
	for (size_t i = 0; i < NUM_HMC; i++) {
		u64 end = rdma.hmc_base[i] + ((u64)rdma.hmc_count[i] << hmc[i].lg2);

		if (i == HMC_PBLE || !rdma.hmc_count[i])
			continue;
		for (u64 sd = rdma.hmc_base[i] >> 21; sd <= (end - 1) >> 21; sd++)
			if (!(rdma.sd[sd & (MAX_SD - 1)] & SD_VALID) &&
			    refuse(d, "SHMC_PAGES_ALLOCATED: %s objects: SD %llu is not valid",
				   hmc[i].name, (unsigned long long)sd))
				return CQP_HMC_ERROR;
	}
	return 0;
}
