/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Verbs objects and what their files offer to each other and to the connection engine.
 */
#ifndef IRDMA_VERBS_H
#define IRDMA_VERBS_H

#include "irdma.h"

struct irdma_cm_node;

struct irdma_ucontext {
	struct ib_ucontext ibucontext;
	/* grows: owner verbs.c */
};

struct irdma_pd {
	struct ib_pd ibpd;
	u32 id;
};

/* What an AE or a modify left behind; read by the disconnect decision (spec 03, 8.3). */
enum irdma_term_flags {
	IRDMA_TERM_SENT		= BIT(0),
	IRDMA_TERM_RECEIVED	= BIT(1),
	IRDMA_TERM_DONE		= BIT(2),
};

/*
 * TCP and iWARP part of the QP context at hand-over, computed by the connection engine
 * (spec 03, 6.2).  IP addresses are host-order words, IPv4 in word 0.
 */
struct irdma_tcp_ctx {
	bool ipv4;
	u32 local_ip[4];
	u32 remote_ip[4];
	u16 local_port;
	u16 remote_port;
	u16 vlan_tag;		/* id | priority << 13 */
	bool insert_vlan;
	u8 tos;
	u8 ttl;
	u16 mss;
	u16 arp_idx;
	u8 src_mac[6];
	u8 snd_scale;
	u8 rcv_scale;
	u32 snd_nxt;
	u32 rcv_nxt;
	u32 snd_wnd;		/* bytes, scaled */
	u32 max_snd_wnd;
	u32 rcv_wnd;
	u8 user_prio;
	/* MPA */
	u16 ird;
	u16 ord;
	bool snd_markers;
	bool rcv_markers;
	bool crc_required;
};

/* First work request after the hand-over (spec 02, 5.9). */
enum irdma_start_kind {
	IRDMA_START_LSMM,	/* passive: MPA reply as last streaming-mode message */
	IRDMA_START_RTR_READ,	/* active: zero-length read */
	IRDMA_START_RTR_WRITE,	/* active: zero-length write */
};

struct irdma_start {
	enum irdma_start_kind kind;
	const void *lsmm;	/* MPA reply frame with private data */
	u32 lsmm_len;		/* bytes */
};

/* qp.c, called by the connection engine's glue (cm_hw.c). All may sleep unless said. */

/*
 * Put the QP into RTS on the given stream: connection WQEs, host context, MODIFY_QP, wait for
 * AE 0x050E (E810).  The LSMM is copied to memory that the QP owns until it is in error.
 * Returns 0, -ECONNRESET (reset before or instead of RTS), -ETIMEDOUT, -EIO, -ENODEV.  On an
 * error the QP has been moved to ERROR with RESETCON.
 */
int irdma_qp_start_stream(struct irdma_device *dev, struct ib_qp *ibqp,
			  const struct irdma_tcp_ctx *tcp, const struct irdma_start *start);
/* Move to ERROR (reset the connection if it is alive) and flush. Idempotent. */
void irdma_qp_abort(struct ib_qp *ibqp);
/* Flush both queues once and wait until the completions can be polled. */
void irdma_qp_flush(struct ib_qp *ibqp);
/* Raise the asynchronous event of a terminated QP (spec 03, 8.3). */
void irdma_qp_terminate_event(struct ib_qp *ibqp);

/* iw_cm's references; add_ref and get_qp are called with interrupts off. */
struct ib_qp *irdma_get_qp(struct ib_device *ibdev, int qpn);
void irdma_qp_add_ref(struct ib_qp *ibqp);
void irdma_qp_rem_ref(struct ib_qp *ibqp);

/*
 * What the connection engine keeps in a QP.  @lock orders the links with destruction:
 * cm_node and cm_id are set and cleared together under it.
 */
struct irdma_qp_cm {
	spinlock_t lock;
	struct irdma_cm_node *cm_node;	/* counted */
	struct iw_cm_id *cm_id;		/* counted */
	struct work_struct disconn_work;	/* irdma_disconnect_worker() */
};

/* Snapshot of a QP for the disconnect decision (spec 03, 8.3). */
struct irdma_qp_conn_state {
	u8 iw_state;
	u8 tcp_state;
	u16 last_ae;
	unsigned int term_flags;
	bool destroying;
	enum ib_qp_state ib_state;
};

void irdma_qp_conn_state(struct ib_qp *ibqp, struct irdma_qp_conn_state *st);
struct irdma_qp_cm *irdma_qp_cm(struct ib_qp *ibqp);

/* cm_conn.c, called by qp.c: something happened that may end the connection. Any context. */
void irdma_cm_disconn(struct ib_qp *ibqp);
/* cm_conn.c, called by qp.c when a QP leaves RTS or is destroyed: cancels a connect in progress. */
void irdma_cm_qp_going(struct ib_qp *ibqp);

#endif
