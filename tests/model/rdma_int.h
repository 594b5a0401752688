/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * rdma_int.h - private state of the RDMA half: control queue (rdma.c), host memory
 * cache (hmc.c), event queues (eq.c), its faults (rdma_fault.c).
 */
#ifndef RDMA_INT_H
#define RDMA_INT_H

#include "engine.h"
#include "nic.h"
#include "rdma.h"
#include "strict.h"

enum { MAX_CEQ = 64, MAX_SD = 256, MAX_WS_NODE = 1024, NUM_HMC = 21 };

/* Objects of the host memory cache, in the order of the FPM buffers. */
enum { HMC_QP, HMC_CQ, HMC_SRQ, HMC_HTE, HMC_ARP, HMC_APBVT, HMC_MR, HMC_XF, HMC_XFFL, HMC_Q1,
       HMC_Q1FL, HMC_TIMER, HMC_FSIMC, HMC_FSIAV, HMC_PBLE, HMC_RRF, HMC_RRFFL, HMC_HDR, HMC_MD,
       HMC_OOISC, HMC_OOISCFFL };

/* CQP opcodes that the device itself executes or that faults name. */
enum { CQP_QUERY_FEATURES = 0x12, CQP_CREATE_CEQ = 0x16, CQP_DESTROY_CEQ = 0x18,
       CQP_CREATE_AEQ = 0x19, CQP_DESTROY_AEQ = 0x1b, CQP_UPDATE_SDS = 0x1f,
       CQP_QUERY_FPM = 0x20, CQP_COMMIT_FPM = 0x21, CQP_FLUSH = 0x22, CQP_APBVT = 0x23,
       CQP_NOP = 0x24, CQP_PAGES_ALLOCATED = 0x2b, CQP_WS_NODE = 0x2c, CQP_MANAGE_STATS = 0x2d,
       CQP_GATHER_STATS = 0x2e, CQP_UP_MAP = 0x2f, CQP_PUSH_PAGES = 0x11,
       CQP_ALLOC_LOC_MAC = 0x14 };

struct eq {
	bool used, virt;
	u64 base;
	u32 size, head, pble;
	u8 pol;
	u32 room;		/* entries the driver has given back */
};

/* An event kept back by "events delay". */
struct late_event {
	struct late_event *next;
	u64 due;
	enum { LATE_CEQ, LATE_AEQ, LATE_ARM } kind;
	u32 num;		/* of the event queue, or of the CQ to arm */
	u64 ctx;
	struct eng_ae ae;
};

/* "The n-th command (of an opcode) from now on": counts down as commands arrive. */
struct cqp_trigger {
	u64 left;		/* 0: off */
	int opcode;		/* -1: any */
};

struct rdma_faults {
	struct cqp_trigger hold, fail, stop;
	u32 fail_code;		/* major << 16 | minor */
	u32 fail_again;		/* how many more fail after the first */
	bool held, stopped;	/* the control queue does not move */
	bool ignore_flush;
	u64 ceq_delay_ns, aeq_delay_ns, arm_delay_ns;
	struct late_event *late, **late_tail;
};

struct rdma {
	bool up;			/* CQP created */
	u64 sq, ctx;			/* ring address, driver's cookie */
	u32 size, tail, head;		/* head: last doorbell */
	u8 pol;
	struct eng *eng;		/* NULL until COMMIT_FPM */
	struct eq ceq[MAX_CEQ], aeq;
	u64 sd[MAX_SD];			/* segment descriptors */
	u64 hmc_base[NUM_HMC];
	u32 hmc_count[NUM_HMC];
	u16 next_qs;
	u8 apbvt[65536 / 8];		/* TCP ports given to the engine */
	u8 ws_node[MAX_WS_NODE];	/* work-scheduler nodes: 0 free, 1 inner, 2 leaf */
	u64 ops[64];			/* commands since the CQP was created, by opcode */
};

/* One device a process; faults outlive a reset of the device. */
extern struct rdma rdma;
extern struct rdma_faults rdma_faults;
const char *cqp_name(u32 opcode);

/* hmc.c */
void *hmc_ptr(struct nic *d, u64 off, u32 len);		/* NULL: not backed */
u8  *hmc_pble(struct nic *d, u32 idx);			/* 8 bytes */
bool hmc_backed(struct nic *d, u32 object, u32 idx);
u32  hmc_pages(struct nic *d);
void hmc_query(u8 *buf);
u32  hmc_commit(struct nic *d, u8 *buf);		/* 0 or CQP error code */
u32  hmc_update_sds(struct nic *d, const u8 *wqe);
u32  hmc_allocated(struct nic *d);			/* command 0x2b */

/* eq.c */
u32  ceq_create(struct nic *d, const u8 *wqe, bool create);
u32  aeq_create(struct nic *d, const u8 *wqe, bool create);
void ceq_event(void *dev, u32 n, u64 ctx);
void aeq_event(void *dev, const struct eng_ae *ae);
void cq_arm(u32 n);
void ceq_ack(struct nic *d, u32 cqn);
void aeq_credit(struct nic *d, u32 n);
u64  late_deadline(void);
void late_poll(struct nic *d);
void late_forget(void);

#endif
