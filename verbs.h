/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Verbs objects and what their files offer to each other and to the connection engine.
 */
#ifndef IRDMA_VERBS_H
#define IRDMA_VERBS_H

#include "irdma.h"
#include "stream.h"
#include "wq.h"

struct irdma_ureg;

/**
 * struct irdma_ucontext - an open device of a user process
 * @ibucontext: the verbs object; must be first
 * @raw_attrs: create verbs carry the application's numbers (spec 02, 7.5)
 * @legacy: libi40iw or hw_rev 0 (spec 02, 7.10)
 * @abi_ver: ABI version that the library asked for
 * @db_entry: mapping of the doorbell page
 * @ureg_lock: protects the lists of registrations and their claims
 * @qp_uregs: queue memory of QPs that is not in use (mr.c)
 * @cq_uregs: rings and shadow areas of CQs that are not in use (mr.c)
 */
struct irdma_ucontext {
	struct ib_ucontext ibucontext;
	bool raw_attrs;
	bool legacy;
	u8 abi_ver;
	struct rdma_user_mmap_entry *db_entry;
	spinlock_t ureg_lock;
	struct list_head qp_uregs;
	struct list_head cq_uregs;
};

static inline struct irdma_ucontext *to_irdma_ucontext(struct ib_ucontext *ibucontext)
{
	return container_of(ibucontext, struct irdma_ucontext, ibucontext);
}

/**
 * struct irdma_pd - a protection domain
 * @ibpd: the verbs object; must be first
 * @id: its number
 * @lost: the adapter did not give up an object of it (irdma_id_keep())
 * @lsmm_lock: protects the fields below
 * @lsmm_spare: a region is empty
 * @lsmm_regions: memory for last streaming-mode messages, see lsmm.c
 */
struct irdma_pd {
	struct ib_pd ibpd;
	u32 id;
	bool lost;
	struct mutex lsmm_lock;
	bool lsmm_spare;
	struct list_head lsmm_regions;
};

static inline struct irdma_pd *to_irdma_pd(struct ib_pd *ibpd)
{
	return container_of(ibpd, struct irdma_pd, ibpd);
}

/**
 * struct irdma_mw - a memory window
 * @ibmw: the verbs object; must be first
 * @stag: as allocated; users change the low byte of the rkey
 */
struct irdma_mw {
	struct ib_mw ibmw;
	u32 stag;
};

enum irdma_ureg_type {
	IRDMA_UREG_QP	= 1,
	IRDMA_UREG_CQ	= 2,
};

/**
 * struct irdma_queue_mem - where queue memory lies
 * @pages: 4 KiB pages of the SQ or of the CQ's ring
 * @rq_pages: 4 KiB pages of the RQ
 * @virt: @addr and @rq_addr are PBLE indexes
 * @addr: SQ or CQ ring: bus address or PBLE index
 * @rq_addr: RQ: bus address or PBLE index
 * @shadow: bus address of the page behind the queues (QP; CQ without the resize feature)
 * @first_addr: bus address of the first page
 */
struct irdma_queue_mem {
	u32 pages;
	u32 rq_pages;
	bool virt;
	u64 addr;
	u64 rq_addr;
	dma_addr_t shadow;
	dma_addr_t first_addr;
};

/*
 * mr.c: queue memory that user space registered.  The free registration of @type that starts at
 * @va, and in @mem where it lies, or an ERR_PTR. Claimed once until released.
 */
struct irdma_ureg *irdma_ureg_claim(struct irdma_ucontext *uctx, enum irdma_ureg_type type, u64 va,
				    struct irdma_queue_mem *mem);
void irdma_ureg_release(struct irdma_ureg *ureg);
struct page *irdma_ureg_first_page(const struct irdma_ureg *ureg);

/* mr.c: an STag (index << 8 | key) of its own, without a region behind it. */
int irdma_stag_alloc(struct irdma_device *dev, u32 *stag);
void irdma_stag_free(struct irdma_device *dev, u32 stag);
int irdma_exec_reg_mr(struct irdma_device *dev, const struct irdma_stag_cmd *cmd);
int irdma_exec_dealloc_stag(struct irdma_device *dev, const struct irdma_stag_cmd *cmd);

/* Access rights of an STag (spec 02, 3.2). */
#define IRDMA_STAG_LOCAL_READ	BIT(0)
#define IRDMA_STAG_LOCAL_WRITE	BIT(1)
#define IRDMA_STAG_REMOTE_READ	BIT(2)
#define IRDMA_STAG_REMOTE_WRITE	BIT(3)
#define IRDMA_STAG_BIND		BIT(4)

/* mr.c: rights of a region with enum ib_access_flags @access. */
u8 irdma_stag_rights(int access);
/*
 * mr.c: what a fast register of @ibmr needs, from its last ib_map_mr_sg(): fills va, len,
 * page0, first_pble, use_pbl, stag (with @key's low byte), page_size_code and rights.
 * 0 or -EINVAL. Any context.
 */
int irdma_mr_fast_reg(struct ib_mr *ibmr, u32 key, int access, struct irdma_sq_reg *reg);

/**
 * struct irdma_cq_queue - the ring of a CQ
 * @cmd: command that describes the CQ to the hardware
 * @ring_ureg: ring (user CQs)
 * @shadow_ureg: shadow area (user CQs), NULL: behind the ring
 */
struct irdma_cq_queue {
	struct irdma_cq_cmd cmd;
	struct irdma_ureg *ring_ureg;
	struct irdma_ureg *shadow_ureg;
};

/**
 * struct irdma_cq - a completion queue
 * @ibcq: the verbs object; must be first
 * @handler: receives the events of the CQ; its cqn is the CQ number
 * @queue: private to cq.c; of a kernel CQ it is part of a struct irdma_kcq
 * @lock: irq-safe; polling, arming and &irdma_kcq.flushing
 * @kernel: not a user CQ
 * @lost: the adapter did not give up a QP that uses it (irdma_id_keep())
 * @armed: a kernel consumer waits for an event
 * @hw_armed: the event that the hardware will raise (kernel CQs)
 *
 * The core allocates it with kmalloc(), so it is kept to 256 bytes.
 */
struct irdma_cq {
	struct ib_cq ibcq;
	struct irdma_cq_handler handler;
	struct irdma_cq_queue *queue;
	spinlock_t lock;
	bool kernel;
	bool lost;
	bool armed;
	u8 hw_armed;
};

static inline struct irdma_cq *to_irdma_cq(struct ib_cq *ibcq)
{
	return container_of(ibcq, struct irdma_cq, ibcq);
}

/**
 * struct irdma_kcq - what a kernel CQ has besides
 * @queue: as that of a user CQ
 * @cq: the CQ
 * @flushing: struct irdma_flushq of QPs whose work requests complete in software
 * @ring: consumer's side
 * @mem: ring and shadow area
 * @mem_dma: its bus address
 * @mem_size: its size, bytes
 * @shadow: shadow area in @mem
 * @kick_work: calls the handler when arming found software completions
 *
 * The fields behind @flushing are private to cq.c.
 */
struct irdma_kcq {
	struct irdma_cq_queue queue;
	struct irdma_cq *cq;
	struct list_head flushing;
	struct irdma_cq_ring ring;
	void *mem;
	dma_addr_t mem_dma;
	size_t mem_size;
	__le64 *shadow;
	struct work_struct kick_work;
};

static inline struct irdma_kcq *to_irdma_kcq(struct irdma_cq *cq)
{
	return container_of(cq->queue, struct irdma_kcq, queue);
}

/*
 * cq.c: completions were added to @flushing; call the consumer's handler if the CQ is armed
 * (never otherwise: a CQ that is polled directly must not see it). No locks held.
 */
void irdma_cq_kick(struct irdma_cq *cq);

/*
 * qp_flush.c, called by irdma_poll_cq() of kernel CQs under the CQ's lock.  The first turns a
 * hardware completion into @wc; false: it is not for the consumer.  The second makes up to
 * @num completions of flushed queues; call it when the ring is empty.  The third tells
 * irdma_req_notify_cq() whether any are left.
 */
bool irdma_qp_complete(struct irdma_device *dev, const struct irdma_cqe *cqe, struct ib_wc *wc);
int irdma_qp_complete_flushed(struct irdma_cq *cq, int num, struct ib_wc *wc);
bool irdma_qp_flushed_left(struct irdma_cq *cq);

/*
 * verbs.c: the driver's tail of a request or response (spec 02, 7.1).  All may sleep.
 * irdma_udata_in() wants at least @min bytes, zeroes what is missing of @size, and refuses
 * unknown bytes that are not zero.
 */
int irdma_udata_in(struct ib_udata *udata, void *req, size_t size, size_t min);
int irdma_udata_out(struct ib_udata *udata, const void *resp, size_t size);
int irdma_udata_none(struct ib_udata *udata);
int irdma_id_alloc(struct ida *ids, u32 first, u32 end);
void irdma_id_keep(struct irdma_device *dev, const char *kind, u32 id);

/* Limits that query_device tells (spec 02, 8.1). */
#define IRDMA_MAX_FR_PAGES	262144	/* of a fast register */
#define IRDMA_MAX_MSG_SIZE	0x7fffffff

int irdma_mr_init(void);
void irdma_mr_exit(void);
int irdma_qp_init(void);
void irdma_qp_exit(void);

/* Verbs of mr.c, cq.c and the qp files, for the table in verbs.c. */
struct ib_mr *irdma_reg_user_mr(IRDMA_REG_USER_MR_ARGS);
struct ib_mr *irdma_reg_user_mr_dmabuf(IRDMA_REG_USER_MR_DMABUF_ARGS);
struct ib_mr *irdma_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start, u64 len, u64 virt,
				  int access, struct ib_pd *ibpd, struct ib_udata *udata);
struct ib_mr *irdma_get_dma_mr(struct ib_pd *ibpd, int access);
struct ib_mr *irdma_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type, u32 max_num_sg);
int irdma_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int sg_nents,
		    unsigned int *sg_offset);
int irdma_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata);
int irdma_alloc_mw(struct ib_mw *ibmw, struct ib_udata *udata);
int irdma_dealloc_mw(struct ib_mw *ibmw);

int irdma_create_cq(IRDMA_CREATE_CQ_ARGS);
int irdma_resize_cq(IRDMA_RESIZE_CQ_ARGS);
int irdma_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata);
int irdma_poll_cq(struct ib_cq *ibcq, int num, struct ib_wc *wc);
int irdma_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags);

int irdma_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *attr, struct ib_udata *udata);
int irdma_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask, struct ib_udata *udata);
int irdma_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		   struct ib_qp_init_attr *init);
int irdma_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata);
int irdma_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		    const struct ib_send_wr **bad_wr);
int irdma_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		    const struct ib_recv_wr **bad_wr);

/* qp.c: the handler of QP events, for irdma_device.qp_ae. */
void irdma_qp_ae(struct irdma_device *dev, u32 qpn, u64 context, const struct irdma_ae *ae);
/* qp_ae.c: ends all connections, for irdma_device.lost. */
void irdma_qps_lost(struct irdma_device *dev);

/* qp.c, called by the connection engine's glue (cm_hw.c). All may sleep unless said. */

/*
 * Put the QP into RTS on the given stream: connection WQEs, host context, MODIFY_QP, wait for
 * AE 0x050E (E810).  The LSMM is copied to memory that the QP owns until it is in error.
 * Returns 0, -ECONNRESET (reset before or instead of RTS), -ETIMEDOUT, -EIO, -ENODEV.  On an
 * error the QP has been moved to ERROR with RESETCON.  From this call on, success or not, the
 * quad-hash entry of the connection belongs to the QP (REMOVEHASHENTRY on its way to ERROR).
 */
int irdma_qp_start_stream(struct irdma_device *dev, struct ib_qp *ibqp,
			  const struct irdma_tcp_ctx *tcp, const struct irdma_start *start);
/* Move to ERROR (reset the connection if it is alive) and flush. Idempotent. */
void irdma_qp_abort(struct ib_qp *ibqp);
/* Flush both queues once and wait until the completions can be polled. */
void irdma_qp_flush(struct ib_qp *ibqp);
/* Raise the asynchronous event of a terminated QP (spec 03, 8.3). */
void irdma_qp_terminate_event(struct ib_qp *ibqp);

/* The QP of that number with a reference (irdma_qp_rem_ref()), or NULL. Any context. */
struct ib_qp *irdma_qp_lookup(struct irdma_device *dev, u32 qpn);

/*
 * For iw_cm only, called with interrupts off: each QP that irdma_get_qp() returns is passed to
 * irdma_qp_add_ref() next.  All others use irdma_qp_lookup().
 */
struct ib_qp *irdma_get_qp(struct ib_device *ibdev, int qpn);
void irdma_qp_add_ref(struct ib_qp *ibqp);
void irdma_qp_rem_ref(struct ib_qp *ibqp);

void irdma_qp_conn_state(struct ib_qp *ibqp, struct irdma_qp_conn_state *st);
struct irdma_qp_cm *irdma_qp_cm(struct ib_qp *ibqp);

#endif
