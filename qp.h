/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Queue pairs.  qp.c creates and destroys them, qp_modify.c moves them between states,
 * qp_ae.c reacts to hardware events, qp_post.c posts and completes work requests,
 * qpc.c builds the host context.
 *
 * Locks: @mutex serialises everything that issues commands and changes the state; @lock
 * (irq-safe) protects what events and posting read.  The producer sides of the rings have
 * @sq_lock and @rq_lock, the consumer sides the lock of their CQ.
 * Order: mutex -> CQ lock -> sq_lock, rq_lock -> lock.
 */
#ifndef IRDMA_QP_H
#define IRDMA_QP_H

#include <linux/timer.h>
#include <linux/wait_bit.h>

#include "lsmm.h"
#include "qos.h"
#include "verbs.h"
#include "wq.h"

#define IRDMA_Q2_SIZE		256	/* bytes */
#define IRDMA_QP_SHADOW_SIZE	64	/* bytes */
#define IRDMA_QP_AES		8	/* events of a QP that wait to be handled */

/* Reaction to a peer that does not end the connection or answer a terminate, ms. */
#define IRDMA_END_TIMEOUT_MS	1000
#define IRDMA_RTS_TIMEOUT_MS	12000

/* TCP states in events (spec 02, 4.2). */
#define IRDMA_TCP_CLOSED	1
#define IRDMA_TCP_ESTABLISHED	5
#define IRDMA_TCP_CLOSE_WAIT	6
#define IRDMA_TCP_TIME_WAIT	11

/* Events that more than one place knows by number (spec 01, 5.5). */
#define IRDMA_AE_RTS			0x050e
#define IRDMA_AE_SUSPENDED		0x0900

/**
 * struct irdma_qp_conn - how a QP is found by its number, and what it has for its connection
 * @qp: the QP, valid while a reference is held, or under the lock of one of its CQs
 * @context: completion context: of user space, or unique among kernel QPs; tells the QP from an
 *	earlier one of the same number
 * @refs: users of the QP, one is its own until destruction
 * @lent: references that irdma_get_qp() took for the irdma_qp_add_ref() that follows
 * @aes: ring of events that @ae_work still has to handle, under the QP's lock
 * @rcu: frees it, when nobody can find the QP any more
 * @ae_work: handles @aes, and what @end_timer found
 * @end_timer: gives up waiting for the end of the connection
 * @tcp: stream of the connection, valid if &irdma_qp.have_tcp
 * @qos: transmit queue set
 * @lsmm: last streaming-mode message, held until the peer has answered it
 * @cm: what the connection engine keeps here
 *
 * The core allocates struct irdma_qp with kmalloc(), which has no size between 512 and 1024
 * bytes.  This part has a cache of its own, and outlives the QP by an RCU grace period.
 */
struct irdma_qp_conn {
	struct irdma_qp *qp;
	u64 context;
	refcount_t refs;
	atomic_t lent;
	union {
		struct irdma_ae aes[IRDMA_QP_AES];
		struct rcu_head rcu;
	};
	struct work_struct ae_work;
	struct timer_list end_timer;
	struct irdma_tcp_ctx tcp;
	struct irdma_qos_user qos;
	struct irdma_lsmm lsmm;
	struct irdma_qp_cm cm;
};

/**
 * struct irdma_flushq - a queue whose remaining work requests complete in software
 * @link: in the CQ's list, under the CQ's lock; empty until the flush is done
 * @qp: its QP
 * @is_sq: the send queue of @qp, otherwise the receive queue
 */
struct irdma_flushq {
	struct list_head link;
	struct irdma_qp *qp;
	bool is_sq;
};

/**
 * struct irdma_kqueues - the queues of a kernel QP; those of a user QP are its own affair
 * @sq: send queue
 * @rq: receive queue
 * @sq_lock: producer side of @sq
 * @rq_lock: producer side of @rq
 * @sq_flush: software completions of @sq
 * @rq_flush: software completions of @rq
 * @flush_work: tells the CQs that work requests were posted after a flush
 * @mem: memory of both rings, with the shadow area
 * @mem_dma: its bus address
 * @mem_size: its size, bytes
 */
struct irdma_kqueues {
	struct irdma_sq sq;
	struct irdma_rq rq;
	spinlock_t sq_lock;
	spinlock_t rq_lock;
	struct irdma_flushq sq_flush;
	struct irdma_flushq rq_flush;
	struct work_struct flush_work;
	void *mem;
	dma_addr_t mem_dma;
	size_t mem_size;
};

/**
 * struct irdma_qp - a queue pair
 * @ibqp: the verbs object; must be first
 * @dev: its device
 * @conn: what does not fit here, see there
 * @ureg: queue memory of user space
 * @kq: queues of a kernel QP
 * @q2: Q2 buffer
 * @q2_dma: its bus address
 * @shadow_dma: bus address of the shadow area
 * @sq_addr: bus address or PBLE index of the SQ
 * @rq_addr: bus address or PBLE index of the RQ
 * @mutex: see above
 * @lock: protects the fields from @ib_state to @end_passed
 * @qpn: QP number
 * @cap: granted capabilities
 * @err_rq_idx: index of the receive that failed, or -1
 * @last_ae: code of the last event, under @lock
 * @user: created by user space
 * @rts_ae: three connection entries, AE 0x050E after RTS
 * @sig_all: every work request is signaled
 * @virt_queues: the addresses are PBLE indexes
 * @sq_size_code: SQSIZE of the context
 * @rq_size_code: RQSIZE of the context
 * @rq_shift: log2 of the quanta of an RQ entry
 * @sq_flush_code: enum irdma_flush_code of the oldest flushed send, the others are merely flushed
 * @rq_flush_code: the same of the receives
 * @have_tcp: the QP had a stream
 * @hash_owned: the quad hash entry goes with the QP
 * @write_ok: remote writes and read responses are accepted
 * @read_ok: remote reads are accepted
 * @access_event: the asynchronous event of a terminated QP is an access error
 * @ib_state: state as query tells it, enum ib_qp_state
 * @iw_state: hardware state that we asked for, enum irdma_iw_state
 * @tcp_state: TCP state as the last event told it
 * @term_flags: enum irdma_term_flags
 * @destroying: nobody may start anything any more
 * @closing: a FIN or a close request was seen
 * @rts_seen: AE 0x050E arrived
 * @flushed: both queues were flushed since the QP entered ERROR
 * @ae_first: index of the oldest of &irdma_qp_conn.aes
 * @ae_count: how many there are
 * @ae_lost: there was no room for one, or the device is dead: the QP must be aborted
 * @end_passed: the peer did not end the connection in time
 *
 * To fit in 512 bytes on every kernel it has no holes.
 */
struct irdma_qp {
	struct ib_qp ibqp;
	struct irdma_device *dev;
	struct irdma_qp_conn *conn;
	struct irdma_ureg *ureg;
	struct irdma_kqueues *kq;
	void *q2;
	dma_addr_t q2_dma;
	dma_addr_t shadow_dma;
	u64 sq_addr;
	u64 rq_addr;
	struct mutex mutex;
	spinlock_t lock;
	u32 qpn;
	struct ib_qp_cap cap;
	int err_rq_idx;
	u16 last_ae;

	bool user;
	bool rts_ae;
	bool sig_all;
	bool virt_queues;
	u8 sq_size_code;
	u8 rq_size_code;
	u8 rq_shift;
	u8 sq_flush_code;
	u8 rq_flush_code;
	bool have_tcp;
	bool hash_owned;
	bool write_ok;
	bool read_ok;
	bool access_event;

	u8 ib_state;
	u8 iw_state;
	u8 tcp_state;
	u8 term_flags;
	bool destroying;
	bool closing;
	bool rts_seen;
	bool flushed;
	u8 ae_first;
	u8 ae_count;
	bool ae_lost;
	bool end_passed;
};

/*
 * What irdma_qp_start_stream() waits for may have changed: @rts_seen, @iw_state, @tcp_state or
 * @destroying of the QP.
 */
static inline void irdma_qp_wake(struct irdma_qp *qp)
{
	smp_mb();	/* the change, before wake_up_var() looks for somebody who waits */
	wake_up_var(qp);
}

static inline struct irdma_qp *to_irdma_qp(struct ib_qp *ibqp)
{
	return container_of(ibqp, struct irdma_qp, ibqp);
}

static inline struct irdma_cq *irdma_qp_send_cq(const struct irdma_qp *qp)
{
	return to_irdma_cq(qp->ibqp.send_cq);
}

static inline struct irdma_cq *irdma_qp_recv_cq(const struct irdma_qp *qp)
{
	return to_irdma_cq(qp->ibqp.recv_cq);
}

/* qp.c */
void irdma_qp_build_context(const struct irdma_qp *qp, __le64 *context);

/* qp_modify.c; with the QP's mutex held */
void irdma_qp_set_state(struct irdma_qp *qp, enum irdma_iw_state state);
int irdma_qp_hw_modify(struct irdma_qp *qp, struct irdma_qp_cmd *cmd);
void irdma_qp_enter_error(struct irdma_qp *qp);
int irdma_qp_start_closing(struct irdma_qp *qp);
void irdma_qp_start_end_timer(struct irdma_qp *qp);

/* qp_stream.c */
void irdma_qp_fill_sq_start(struct irdma_qp *qp);

/* qp_ae.c */
void irdma_qp_ae_work(struct work_struct *work);
void irdma_qp_end_timer(struct timer_list *timer);

/* qp_flush.c; the first two with the QP's mutex held */
void irdma_qp_flush_queues(struct irdma_qp *qp);
void irdma_qp_flush_again(struct irdma_qp *qp, bool sq, bool rq);
void irdma_qp_flush_work(struct work_struct *work);
void irdma_qp_forget_completions(struct irdma_qp *qp);

#endif
