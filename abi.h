/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What rdma-core's irdma provider and this driver say to each other behind the common
 * uverbs structures (spec 02, section 7).  Each structure is the driver-private tail of one
 * request or response, in host byte order; the layouts are fixed for all times.
 *
 * The kernel's own rdma/irdma-abi.h is not used: that of 6.1 ends before the fields that
 * newer libraries read.
 */
#ifndef IRDMA_ABI_H
#define IRDMA_ABI_H

#include <linux/bits.h>
#include <linux/build_bug.h>
#include <linux/stddef.h>
#include <linux/types.h>

#define IRDMA_ABI_VER		5	/* uverbs ABI version of the device */
#define IRDMA_ABI_VER_MIN	4	/* oldest that alloc_ucontext accepts */

/* feature_flags of the context response. */
#define IRDMA_FEATURE_RTS_AE	BIT_ULL(0)	/* three connection WQEs, AE 0x050E */
#define IRDMA_FEATURE_CQ_RESIZE	BIT_ULL(1)	/* separate CQ shadow area, resize */

/* comp_mask of the context request and response. */
#define IRDMA_COMP_RAW_ATTR	BIT_ULL(0)	/* capabilities as the application gave them */
#define IRDMA_COMP_MIN_WQ_SIZE	BIT_ULL(1)	/* response: min_wq_size is valid */
#define IRDMA_COMP_MAX_SRQ	BIT_ULL(2)	/* response: max_srq_quanta is valid */
#define IRDMA_COMP_WQE_V2	BIT_ULL(3)	/* request: library can build newer entries */

/* Bytes at which older libraries end their context tails. */
#define IRDMA_UCTX_REQ_MIN	8
#define IRDMA_UCTX_RESP_LEGACY	16

struct irdma_abi_uctx_req {
	__u32 reserved;
	__u8 version;
	__u8 reserved2[3];
	__u64 comp_mask;
};
static_assert(sizeof(struct irdma_abi_uctx_req) == 16);
static_assert(offsetof(struct irdma_abi_uctx_req, version) == 4);
static_assert(offsetof(struct irdma_abi_uctx_req, comp_mask) == IRDMA_UCTX_REQ_MIN);

struct irdma_abi_uctx_resp {
	__u32 max_pds;			/* legacy responses only */
	__u32 max_qps;			/* legacy responses only */
	__u32 wq_size;			/* legacy responses only */
	__u8 version;
	__u8 reserved[3];
	__u64 feature_flags;
	__u64 db_mmap_key;		/* file offset of the doorbell page */
	__u32 max_frags;
	__u32 max_read_frags;
	__u32 max_inline;		/* bytes */
	__u32 max_rq_quanta;
	__u32 max_sq_quanta;
	__u32 min_cq_slots;
	__u32 max_cq_slots;
	__u16 sq_chunk;		/* quanta */
	__u8 hw_rev;
	__u8 reserved2;
	__u64 comp_mask;
	__u16 min_wq_size;		/* WQEs */
	__u16 reserved3;
	__u32 max_srq_quanta;
};
static_assert(sizeof(struct irdma_abi_uctx_resp) == 80);
static_assert(offsetof(struct irdma_abi_uctx_resp, feature_flags) == IRDMA_UCTX_RESP_LEGACY);
static_assert(offsetof(struct irdma_abi_uctx_resp, db_mmap_key) == 24);
static_assert(offsetof(struct irdma_abi_uctx_resp, sq_chunk) == 60);
static_assert(offsetof(struct irdma_abi_uctx_resp, hw_rev) == 62);
static_assert(offsetof(struct irdma_abi_uctx_resp, comp_mask) == 64);
static_assert(offsetof(struct irdma_abi_uctx_resp, min_wq_size) == 72);
static_assert(offsetof(struct irdma_abi_uctx_resp, max_srq_quanta) == 76);

struct irdma_abi_pd_resp {
	__u32 pd_id;
	__u32 reserved;
};
static_assert(sizeof(struct irdma_abi_pd_resp) == 8);

/* What a memory registration is for. */
enum irdma_abi_reg_type {
	IRDMA_ABI_REG_MEM	= 0,
	IRDMA_ABI_REG_QP	= 1,
	IRDMA_ABI_REG_CQ	= 2,
};

/* The counts are in pages of 4096 bytes and mean nothing for IRDMA_ABI_REG_MEM. */
struct irdma_abi_reg_req {
	__u16 type;
	__u16 cq_pages;
	__u16 rq_pages;
	__u16 sq_pages;
};
static_assert(sizeof(struct irdma_abi_reg_req) == 8);
static_assert(offsetof(struct irdma_abi_reg_req, sq_pages) == 6);

/* Legacy libraries send only ring_va. */
struct irdma_abi_create_cq_req {
	__aligned_u64 ring_va;
	__aligned_u64 shadow_va;
};
static_assert(sizeof(struct irdma_abi_create_cq_req) == 16);

struct irdma_abi_create_cq_resp {
	__u32 cqn;
	__u32 slots;
};
static_assert(sizeof(struct irdma_abi_create_cq_resp) == 8);

struct irdma_abi_resize_cq_req {
	__aligned_u64 ring_va;
};
static_assert(sizeof(struct irdma_abi_resize_cq_req) == 8);

struct irdma_abi_create_qp_req {
	__aligned_u64 queues_va;
	__aligned_u64 context;		/* comes back in completions */
};
static_assert(sizeof(struct irdma_abi_create_qp_req) == 16);

/* caps of the create_qp response. */
#define IRDMA_QP_CAP_WRITE_IMM	BIT(0)
#define IRDMA_QP_CAP_SEND_IMM	BIT(1)
#define IRDMA_QP_CAP_ROCE	BIT(2)
#define IRDMA_QP_CAP_PUSH	BIT(3)

#define IRDMA_PUSH_IDX_LEGACY	0xffff

/* Legacy libraries end before caps. */
struct irdma_abi_create_qp_resp {
	__u32 qpn;
	__u32 sq_wqes;
	__u32 rq_wqes;
	__u32 options;
	__u16 push_idx;
	__u8 lsmm;			/* first SQ entries belong to the connection manager */
	__u8 reserved;
	__u32 caps;
};
static_assert(sizeof(struct irdma_abi_create_qp_resp) == 24);
static_assert(offsetof(struct irdma_abi_create_qp_resp, push_idx) == 16);
static_assert(offsetof(struct irdma_abi_create_qp_resp, caps) == 20);

struct irdma_abi_modify_qp_req {
	__u8 flush_sq;
	__u8 flush_rq;
	__u8 reserved[6];
};
static_assert(sizeof(struct irdma_abi_modify_qp_req) == 8);

#define IRDMA_MODIFY_QP_RESP_MIN	19

struct irdma_abi_modify_qp_resp {
	__aligned_u64 wqe_page_key;
	__aligned_u64 db_page_key;
	__u16 push_offset;
	__u8 push_valid;
	__u8 reserved[5];
};
static_assert(sizeof(struct irdma_abi_modify_qp_resp) == 24);
static_assert(offsetof(struct irdma_abi_modify_qp_resp, push_valid) == 18);

#endif
