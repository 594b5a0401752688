/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What queue pairs and the connection engine tell each other at hand-over and at the end of
 * a connection.  No driver header is needed here, so that tests/sim can use it as well.
 */
#ifndef IRDMA_STREAM_H
#define IRDMA_STREAM_H

#include <linux/bits.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>
#include <rdma/iw_cm.h>

struct irdma_cm_core;
struct irdma_cm_node;

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
	u32 local_ip[4];
	u32 remote_ip[4];
	u16 local_port;
	u16 remote_port;
	u32 snd_nxt;
	u32 rcv_nxt;
	u32 snd_wnd;		/* bytes, scaled */
	u32 max_snd_wnd;
	u32 rcv_wnd;
	u16 vlan_tag;		/* id | priority << 13 */
	u16 mss;
	u16 arp_idx;
	u8 src_mac[6];
	bool ipv4;
	bool insert_vlan;
	u8 tos;
	u8 ttl;
	u8 snd_scale;
	u8 rcv_scale;
	u8 user_prio;
	/* MPA */
	bool snd_markers;
	bool rcv_markers;
	bool crc_required;
	u16 ird;
	u16 ord;
};

/* First work request after the hand-over (spec 02, 5.9). */
enum irdma_start_kind {
	IRDMA_START_LSMM,	/* passive: MPA reply as last streaming-mode message */
	IRDMA_START_RTR_READ,	/* active: zero-length read */
	IRDMA_START_RTR_WRITE,	/* active: zero-length write */
	IRDMA_START_NO_RTR,	/* active: MPA v1 or client-server model, the ULP speaks first */
};

struct irdma_start {
	enum irdma_start_kind kind;
	const void *lsmm;	/* MPA reply frame with private data */
	u32 lsmm_len;		/* bytes */
};

/*
 * What the connection engine keeps in a QP, set up by irdma_cm_qp_init().  @lock orders the
 * link with destruction.
 */
struct irdma_qp_cm {
	spinlock_t lock;	/* taken with bottom halves off, never together with another */
	struct ib_qp *ibqp;
	struct irdma_cm_node *cm_node;	/* counted, under @lock */
	struct work_struct disconn_work;	/* irdma_disconnect_worker(); holds a QP reference */
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

/* cm_conn.c, called by qp.c: before a new QP is visible to anyone. */
void irdma_cm_qp_init(struct irdma_qp_cm *qcm, struct ib_qp *ibqp);
/*
 * cm_conn.c, called by qp.c: the connection may have ended.  Any context.  Call it after
 * each event that changes what irdma_qp_conn_state() tells: AEs FIN, reset, close complete,
 * terminate done; QP moved to CLOSING or ERROR; device dead.  Extra calls do no harm.
 */
void irdma_cm_disconn(struct ib_qp *ibqp);
/*
 * cm_conn.c, called by qp.c when a QP leaves RTS or is destroyed: cancels a connect that is
 * still in progress (CONNECT_REPLY -ECONNABORTED).  Any context.  Returns whether there is a
 * connection.
 */
bool irdma_cm_qp_going(struct ib_qp *ibqp);

#endif
