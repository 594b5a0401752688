/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Register maps and limits of both generations, doorbells, interrupts, CEQs and the AEQ
 * (spec 01 sections 2, 3, 5 and 7).  hw.c owns bring-up and teardown of everything below
 * the verbs; what differs between the generations stands in struct irdma_hw_gen.
 */
#ifndef IRDMA_HW_H
#define IRDMA_HW_H

#include <linux/bits.h>
#include <linux/interrupt.h>
#include <linux/refcount.h>
#include <linux/types.h>
#include <linux/wait_bit.h>
#include <linux/xarray.h>

struct irdma_counter;
struct irdma_device;
struct irdma_wq_fmt;

/* Numbers that this driver keeps for itself (spec 01, 3.2 step 12). */
#define IRDMA_CQN_CCQ		0
#define IRDMA_CQN_ILQ		1
#define IRDMA_CQN_IEQ		2
#define IRDMA_QPN_ILQ		1
#define IRDMA_QPN_IEQ		2
#define IRDMA_RESERVED_IDS	3	/* of QPs, CQs and PDs each */

enum irdma_reg {
	IRDMA_REG_CQPTAIL,
	IRDMA_REG_CQPDB,
	IRDMA_REG_CCQPSTATUS,
	IRDMA_REG_CCQPHIGH,
	IRDMA_REG_CCQPLOW,
	IRDMA_REG_CQARM,
	IRDMA_REG_CQACK,
	IRDMA_REG_AEQALLOC,
	IRDMA_REG_CQPERRCODES,
	IRDMA_REG_WQEALLOC,
	IRDMA_REG_CPUSTATUS0,
	IRDMA_REG_CPUSTATUS1,
	IRDMA_REG_CPUSTATUS2,
	IRDMA_REG_CRITERR,
	IRDMA_REG_LBARCTRL,
	IRDMA_REG_PDINV,
	IRDMA_REG_DYN_CTL,	/* first of an array of 32-bit registers */
	IRDMA_REG_CEQCTL,	/* first of an array of 32-bit registers */
	IRDMA_REG_AEQCTL,
	IRDMA_REG_LNKLST,	/* X722: queue list heads of the vectors, an array */
	IRDMA_REG_HMC_ERRORINFO,	/* E810 */
	IRDMA_REG_HMC_ERRORDATA,	/* E810 */
	IRDMA_REG_COUNT
};

/*
 * all that differs between X722 and E810
 *
 * Numbers are those of spec 01 section 7.1 and spec 02 sections 4.1 and 5.1.
 */
struct irdma_hw_gen {
	const char *name;
	u8 hw_rev;			/* as told to user space: 1 X722, 2 E810 */
	u32 regs[IRDMA_REG_COUNT];	/* byte offsets in BAR 0, 0: there is none */
	u32 db_page_offset;		/* user doorbell page in BAR 0 */
	u64 feature_flags;		/* IRDMA_FEATURE_* of abi.h */
	bool legacy_abi;		/* known to libraries older than the ABI (spec 02, 7.10) */
	const struct irdma_wq_fmt *wq_fmt;	/* wq.h */
	u32 max_wq_frags;
	u32 max_read_sges;
	u32 max_inline;
	u32 max_sq_quanta;
	u32 max_rq_quanta;
	u32 max_sq_chunk;		/* quanta, power of two */
	u32 min_wq_size;		/* WQEs */
	u32 max_quanta_per_wr;
	u32 max_cqe;
	u32 cqe_slots;			/* of a CQ that one completion may take */
	u32 max_ird;
	u32 max_ord;
	u32 max_pds;
	u64 page_size_cap;
	u64 max_mr_size;
	const struct irdma_counter *counters;	/* stats.c */
	unsigned int num_counters;

	/* interrupts (spec 01, 2.2) */
	unsigned int vector_bias;	/* DYN_CTL and LNKLST are indexed by MSI-X index - bias */
	u32 dyn_ctl_enable;
	u32 ceqctl_enable;		/* | MSI-X index */
	u32 ceqctl_disable;		/* | MSI-X index */
	u32 max_ceqs;
	bool virtual_aeq;		/* the AEQ's ring may be given as a list of pages */

	/* control queue (spec 01, 3.3 and 4.8) */
	u8 hw_major;
	u8 protocol;			/* of the CQP context; 0 not written */
	bool has_features;		/* knows QUERY_RDMA_FEATURES */
	u64 assumed_fw_ver;		/* where it cannot be queried */
	u64 cqn_mask;			/* CQ commands, QW3: CQ number */
	u64 ceqn_mask;			/* CQ commands, QW3: CEQ number */
	u64 stag_pd_mask;		/* STag commands, QW1: PD number */

	/* host memory cache (spec 02, 1.1 and 1.4) */
	u32 hmc_objects;		/* BIT(enum irdma_hmc_type) */
	u32 (*hmc_q1_count)(u32 qps, u32 max_ird);
	u32 (*hmc_xf_count)(u32 qps, u32 xf_block);
	/* grows: owners of hw.c, cqp.c, hmc.c, stats.c add what they need */
};

extern const struct irdma_hw_gen irdma_gen_e810;

u32 irdma_rd32(struct irdma_device *dev, enum irdma_reg reg);
void irdma_wr32(struct irdma_device *dev, enum irdma_reg reg, u32 val);
void irdma_ring_sq(struct irdma_device *dev, u32 qpn);
void irdma_arm_cq(struct irdma_device *dev, u32 cqn);

/*
 * Messages before and after the registration of the verbs device: its own name is not known
 * yet when most of hw.c, cqp.c and hmc.c run.
 */
#define irdma_err(idev, fmt, ...) \
	dev_err(&(idev)->lan->pdev->dev, "irdma: " fmt, ##__VA_ARGS__)
#define irdma_warn(idev, fmt, ...) \
	dev_warn(&(idev)->lan->pdev->dev, "irdma: " fmt, ##__VA_ARGS__)
#define irdma_err_ratelimited(idev, fmt, ...) \
	dev_err_ratelimited(&(idev)->lan->pdev->dev, "irdma: " fmt, ##__VA_ARGS__)

/**
 * irdma_ref_put - drop a reference on what is destroyed when nobody uses it
 * @refs: count in the object, in which irdma_ref_put_and_wait() has its own
 *
 * Context: any.
 */
static inline void irdma_ref_put(refcount_t *refs)
{
	if (!refcount_dec_and_test(refs))
		return;
	/* From here on only the address is used, since the object may be gone. */
	smp_mb__after_atomic();
	wake_up_var(refs);
}

/**
 * irdma_ref_put_and_wait - drop the object's own reference and wait for all others
 * @refs: the count; nobody can take a reference any more
 *
 * Context: process, sleeps.
 */
static inline void irdma_ref_put_and_wait(refcount_t *refs)
{
	irdma_ref_put(refs);
	wait_var_event(refs, !refcount_read(refs));
}

struct irdma_cq_handler;

/**
 * struct irdma_cq_handler_ops - what a CQ does about its events
 * @comp: a CEQ entry for this CQ was taken (atomic context); it was acknowledged already
 * @error: AE 0x0203 or another CQ event arrived (process context)
 */
struct irdma_cq_handler_ops {
	void (*comp)(struct irdma_cq_handler *h);
	void (*error)(struct irdma_cq_handler *h, u16 ae_code);
};

/**
 * struct irdma_cq_handler - who is told about completions on a CQ
 * @ops: callbacks
 * @cqn: CQ number, also the CQ context that CEQ entries carry
 * @refs: held by whoever runs a callback; whoever waits for the last one waits for this variable
 */
struct irdma_cq_handler {
	const struct irdma_cq_handler_ops *ops;
	u32 cqn;
	refcount_t refs;
};

int irdma_cq_handler_add(struct irdma_device *dev, struct irdma_cq_handler *h);
/*
 * After DESTROY_CQ has completed: no callback runs or will run when this returns, and no CEQ
 * entry of the CQ is left, so the number may be used again. Sleeps.
 */
void irdma_cq_handler_del(struct irdma_device *dev, struct irdma_cq_handler *h, u32 ceqn);

/* what an asynchronous event says of its QP or CQ, decoded (spec 01, 5.2) */
struct irdma_ae {
	u16 code : 12;
	u16 source : 4;
	u16 wqe_idx;
	u8 iw_state : 4;
	u8 tcp_state : 4;
	u8 q2_data;
};

/* Called by hw.c for each QP event, in process context (a work item of the AEQ), in order. */
typedef void (*irdma_qp_ae_fn)(struct irdma_device *dev, u32 qpn, u64 context,
			       const struct irdma_ae *ae);

int irdma_hw_start(struct irdma_device *dev);
void irdma_hw_stop(struct irdma_device *dev);

/* Steps of irdma_hw_start() and irdma_hw_stop() in events.c, in this order. */
int irdma_events_init(struct irdma_device *dev);
void irdma_events_free(struct irdma_device *dev);
int irdma_ceq0_start(struct irdma_device *dev);
void irdma_ceq0_stop(struct irdma_device *dev);
int irdma_ceqs_start(struct irdma_device *dev);
void irdma_ceqs_stop(struct irdma_device *dev);
int irdma_aeq_start(struct irdma_device *dev);
void irdma_aeq_stop(struct irdma_device *dev);

void irdma_aeq_drain(struct irdma_device *dev);

/*
 * The device is lost (reset, CQP stuck, surprise removal): set once, every wait ends, no
 * command is issued any more.  Any context.
 */
void irdma_mark_dead(struct irdma_device *dev, const char *why);
/* The same when the LAN driver resets the function by itself: no reset is asked for. */
void irdma_mark_reset(struct irdma_device *dev);
bool irdma_is_dead(const struct irdma_device *dev);
/* React to IRDMA_LAN_CRIT_ERR with the accumulated OICR cause bits (spec 01, 1.5). Sleeps. */
void irdma_hw_crit_err(struct irdma_device *dev, u32 oicr);

#endif
