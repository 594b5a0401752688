/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the files of the connection engine (cm.c, cm_tcp.c, cm_mpa.c, cm_listen.c, cm_conn.c)
 * share, and the limits of the engine.  Nobody else includes this.
 *
 * Locks, outermost first: core->listen_lock (sleeps), node->lock, listener->lock.  All
 * spinlocks are taken with bottom halves off.  QP links (struct irdma_qp_cm) have a lock of
 * their own that is never held together with another.
 */
#ifndef IRDMA_CM_PRIV_H
#define IRDMA_CM_PRIV_H

#include "cm.h"

/* TCP (RFC 9293, 7323) */
#define IRDMA_CM_MIN_MSS_V4	536
#define IRDMA_CM_MIN_MSS_V6	1220
#define IRDMA_CM_RCV_SCALE	2
#define IRDMA_CM_MAX_SCALE	14		/* RFC 7323 section 2.3 */
#define IRDMA_CM_WIRE_WINDOW	0xffff
#define IRDMA_CM_RETRIES	5		/* after the first transmission */
#define IRDMA_CM_FIRST_RTO_MS	1000
#define IRDMA_CM_ACK_DELAY_MS	20		/* RFC 9293 section 3.8.6.3: at most 500 */
#define IRDMA_CM_MAX_RTO_MS	16000
#define IRDMA_CM_ACKS_PER_S	10		/* challenge and duplicate ACKs of a node */
#define IRDMA_CM_TTL		64

/* Deadlines, ms (spec 03, 4.9) */
#define IRDMA_CM_SETUP_MS	20000
#define IRDMA_CM_SYN_MS		63000
#define IRDMA_CM_MPA_REQ_MS	10000
#define IRDMA_CM_MPA_REP_MS	51000		/* 31 s of retransmissions + 20 s */
#define IRDMA_CM_MPA_ACKED_MS	20000
#define IRDMA_CM_ORPHAN_MS	60000		/* request whose listener is gone */
#define IRDMA_CM_FIN_MS		63000
#define IRDMA_CM_MPAREJ_MS	10000
#define IRDMA_CM_TIME_WAIT_MS	60000
#define IRDMA_CM_QP_CLOSE_MS	30000
#define IRDMA_CM_CLEANUP_MS	60000

/* What a peer can make us keep */
#define IRDMA_CM_MAX_HALF_OPEN	16384
#define IRDMA_CM_MAX_TIME_WAIT	4096
#define IRDMA_CM_SYN_RATE	50000
#define IRDMA_CM_SYN_BURST	4096
#define IRDMA_CM_MIN_BACKLOG	16		/* half-open slots of a listener, at least */
#define IRDMA_CM_IDLE_MS	1000		/* then a peer may lose its slot to another */

/* MPA (RFC 5044 section 7.1, RFC 6581 sections 6 and 9) */
#define IRDMA_MPA_HDR_V1	20
#define IRDMA_MPA_HDR_V2	24
#define IRDMA_MPA_MAX_PDATA	512
#define IRDMA_MPA_MAX_FRAME	(IRDMA_MPA_HDR_V1 + IRDMA_MPA_MAX_PDATA)
#define IRDMA_MPA_MAX_PDATA_V2	508
#define IRDMA_MPA_NO_DEPTH	0x3fff
#define IRDMA_CM_MAX_EVENT_VAL	255		/* 8-bit fields of struct iw_cm_event */

/* bits of irdma_cm_node.flags */
enum irdma_cm_flag {
	IRDMA_CM_F_ALIVE,		/* not closed yet, the node owns itself */
	IRDMA_CM_F_AH,			/* hardware entries that exist ... */
	IRDMA_CM_F_QHASH,
	IRDMA_CM_F_PORT,
	IRDMA_CM_F_DEADLINE,		/* node->deadline counts */
	IRDMA_CM_F_HALF_OPEN,		/* counted as half-open */
	IRDMA_CM_F_UNDECIDED,		/* counted as undecided in the listener */
	IRDMA_CM_F_SCALE,		/* window scaling agreed */
	IRDMA_CM_F_ENHANCED,		/* MPA v2 block present */
	IRDMA_CM_F_P2P,			/* peer-to-peer model: an RTR is sent */
	IRDMA_CM_F_NO_DEPTHS,		/* peer leaves IRD/ORD to the ULPs */
	IRDMA_CM_F_MARKERS,		/* peer wants markers */
	IRDMA_CM_F_REPLY,		/* the peer's reply was parsed: its data may be shown */
	IRDMA_CM_F_PEER_FIN,
	IRDMA_CM_F_PEER_RESET,
	IRDMA_CM_F_CANCELLED,		/* the QP went away during the hand-over */
	IRDMA_CM_F_ESTABLISHED,		/* the establishing event was raised */
	IRDMA_CM_F_DISCONN_MISSED,	/* the disconnect worker came before that */
	IRDMA_CM_F_DISCONNECTED,	/* DISCONNECT was raised */
	IRDMA_CM_F_ABORTED,		/* we reset an established connection */
};

/* bits of irdma_cm_node.events, in the order in which they are handled */
enum irdma_cm_event_type {
	IRDMA_CM_EV_MPA_REQ,		/* tell the listener's id of a request */
	IRDMA_CM_EV_CONNECTED,		/* reply accepted: start the QP, tell the id */
	IRDMA_CM_EV_MPA_REJECT,		/* reply refused: tell the id, close */
	IRDMA_CM_EV_ABORTED,		/* attempt failed: tell the id */
	IRDMA_CM_EV_RESET,		/* established connection has to be reset */
	IRDMA_CM_EV_COUNT
};

/* The one segment that waits for its acknowledgement, or an ACK that waits to be sent. */
enum irdma_cm_out {
	IRDMA_CM_OUT_NONE,
	IRDMA_CM_OUT_SYN,
	IRDMA_CM_OUT_SYNACK,
	IRDMA_CM_OUT_MPA_REQ,
	IRDMA_CM_OUT_MPA_REJ,		/* reply with the reject flag, and FIN */
	IRDMA_CM_OUT_FIN,
	IRDMA_CM_OUT_DELAYED_ACK,
};

enum irdma_cm_tcp_flags {
	IRDMA_TCP_FIN	= 0x01,
	IRDMA_TCP_SYN	= 0x02,
	IRDMA_TCP_RST	= 0x04,
	IRDMA_TCP_PSH	= 0x08,
	IRDMA_TCP_ACK	= 0x10,
};

/**
 * struct irdma_cm_opts - TCP options that we look at
 * @mss: maximum segment size, 0 if absent
 * @scale: window shift, -1 if absent
 */
struct irdma_cm_opts {
	u16 mss;
	s8 scale;
};

/**
 * struct irdma_cm_seg - a received TCP segment, checked
 * @rx: the frame it came in
 * @quad: from our point of view
 * @tos: TOS or traffic class
 * @seq: sequence number
 * @ack: acknowledgement number
 * @wnd: window, not scaled
 * @flags: IRDMA_TCP_*
 * @opts: options
 * @data: payload
 * @len: bytes of payload
 * @tcp: the TCP header
 * @tcp_len: bytes from there to the end
 */
struct irdma_cm_seg {
	const struct irdma_cm_rx *rx;
	struct irdma_cm_quad quad;
	u8 tos;
	u32 seq;
	u32 ack;
	u16 wnd;
	u8 flags;
	struct irdma_cm_opts opts;
	const u8 *data;
	u32 len;
	const u8 *tcp;
	u32 tcp_len;
};

/**
 * struct irdma_cm_tx - a segment to send
 * @seq: sequence number
 * @flags: IRDMA_TCP_*; with ACK the node's rcv_nxt is acknowledged
 * @opt_len: bytes in @opts, a multiple of 4
 * @opts: TCP options
 * @hdr_len: bytes in @hdr
 * @hdr: MPA header
 * @len: bytes at @data
 * @data: what follows the header
 */
struct irdma_cm_tx {
	u32 seq;
	u8 flags;
	u8 opt_len;
	u8 opts[8];
	u8 hdr_len;
	u8 hdr[IRDMA_MPA_HDR_V2];
	u16 len;
	const u8 *data;
};

enum irdma_mpa_kind {
	IRDMA_MPA_REQUEST,
	IRDMA_MPA_ACCEPT,
	IRDMA_MPA_REJECT,
};

struct irdma_cm_syn;

/**
 * struct irdma_cm_child - an address that a listener serves; under core->listen_lock
 * @entry: in the listener's children
 * @syn: the counted quad-hash entry
 */
struct irdma_cm_child {
	struct list_head entry;
	struct irdma_cm_syn *syn;
};

static inline bool irdma_cm_flag(const struct irdma_cm_node *node, enum irdma_cm_flag flag)
{
	return node->flags & BIT(flag);
}

static inline void irdma_cm_set_flag(struct irdma_cm_node *node, enum irdma_cm_flag flag)
{
	node->flags |= BIT(flag);
}

/* Returns whether it was set. */
static inline bool irdma_cm_clear_flag(struct irdma_cm_node *node, enum irdma_cm_flag flag)
{
	bool was_set = irdma_cm_flag(node, flag);

	node->flags &= ~BIT(flag);
	return was_set;
}

/* Modular comparison of sequence numbers (RFC 9293 section 3.4). */
static inline bool irdma_seq_lt(u32 a, u32 b)
{
	return (s32)(a - b) < 0;
}

static inline bool irdma_seq_le(u32 a, u32 b)
{
	return (s32)(a - b) <= 0;
}

static inline u16 irdma_cm_get16(const u8 *p)
{
	return p[0] << 8 | p[1];
}

static inline u32 irdma_cm_get32(const u8 *p)
{
	return (u32)irdma_cm_get16(p) << 16 | irdma_cm_get16(p + 2);
}

static inline void irdma_cm_put16(u8 *p, u16 val)
{
	p[0] = val >> 8;
	p[1] = val & 0xff;
}

static inline void irdma_cm_put32(u8 *p, u32 val)
{
	irdma_cm_put16(p, val >> 16);
	irdma_cm_put16(p + 2, val);
}

/* cm.c */
void irdma_cm_count(struct irdma_cm_core *core, enum irdma_cm_counter counter);
void irdma_cm_drop(struct irdma_cm_core *core, const struct irdma_cm_rx *rx,
		   enum irdma_cm_drop reason);
void irdma_cm_set_state(struct irdma_cm_node *node, enum irdma_cm_state to);
void irdma_cm_set_deadline(struct irdma_cm_node *node, unsigned int ms);
void irdma_cm_node_closed(struct irdma_cm_node *node);
int irdma_cm_node_setup(struct irdma_cm_node *node);
void irdma_cm_release_frames(struct irdma_cm_node *node);
u32 irdma_cm_isn(struct irdma_cm_core *core, const struct irdma_cm_quad *quad);
struct irdma_cm_node *irdma_cm_take_request(struct irdma_cm_core *core, u64 handle);
void irdma_copy_ip_ntohl(u32 *dst, const __be32 *src);
void irdma_copy_ip_htonl(__be32 *dst, const u32 *src);
void irdma_get_addr_info(const struct irdma_cm_node *node, struct irdma_cm_quad *quad);
void irdma_fill_sockaddr4(const struct irdma_cm_node *node, struct iw_cm_event *event);
void irdma_fill_sockaddr6(const struct irdma_cm_node *node, struct iw_cm_event *event);
void irdma_get_cmevent_info(const struct irdma_cm_node *node, const struct iw_cm_id *cm_id,
			    struct iw_cm_event *event);
int irdma_send_cm_event(struct irdma_cm_node *cm_node, struct iw_cm_id *cm_id,
			enum iw_cm_event_type type, int status);
void irdma_create_event(struct irdma_cm_node *node, enum irdma_cm_event_type type);
void irdma_cm_post_event(struct irdma_cm_node *node);
void irdma_cm_event_handler(struct work_struct *work);
void irdma_event_connect_error(struct irdma_cm_node *node);
void irdma_cm_event_reset(struct irdma_cm_node *node);
void irdma_timer_list_prep(struct irdma_cm_node *node);
void irdma_schedule_cm_timer(struct irdma_cm_node *node, enum irdma_cm_out out, u32 seq_len);
void irdma_retrans_expired(struct irdma_cm_node *node);
void irdma_handle_close_entry(struct irdma_cm_node *node);
void irdma_cm_timer_tick(struct timer_list *timer);
int irdma_add_hte_node(struct irdma_cm_core *core, struct irdma_cm_node *node);
bool irdma_ipv4_is_lpb(u32 local, u32 remote);
bool irdma_ipv6_is_lpb(const u32 *local, const u32 *remote);
int irdma_cm_create_ah(struct irdma_cm_node *node);
void irdma_cm_free_ah(struct irdma_cm_node *node);
struct irdma_cm_node *irdma_make_cm_node(struct irdma_cm_core *core,
					 const struct irdma_cm_quad *quad, u8 tos,
					 struct irdma_cm_listener *listener);
void irdma_rem_ref_cm_node(struct irdma_cm_node *node);
unsigned int irdma_teardown_list_prep(struct irdma_cm_core *core,
				      const struct irdma_cm_laddr *addr,
				      struct irdma_cm_node **list, unsigned int max);

/* cm_tcp.c */
bool irdma_cm_parse_frame(const struct irdma_cm_rx *rx, struct irdma_cm_seg *seg,
			  enum irdma_cm_drop *why);
int irdma_process_options(const u8 *opt, u32 len, struct irdma_cm_opts *opts);
void irdma_handle_tcp_options(struct irdma_cm_node *node, const struct irdma_cm_seg *seg);
struct irdma_cm_frame *irdma_form_ah_cm_frame(struct irdma_cm_node *node,
					      const struct irdma_cm_tx *tx);
struct irdma_cm_frame *irdma_form_uda_cm_frame(struct irdma_cm_node *node,
					       const struct irdma_cm_tx *tx);
void irdma_free_sqbuf(struct irdma_cm_core *core, struct irdma_cm_frame *frame);
int irdma_cm_transmit(struct irdma_cm_node *node, const struct irdma_cm_tx *tx);
void irdma_cm_send_out(struct irdma_cm_node *node);
int irdma_send_reset(struct irdma_cm_node *node);
void irdma_active_open_err(struct irdma_cm_node *node, int status, bool reset);
void irdma_passive_open_err(struct irdma_cm_node *node, bool reset);
void irdma_send_syn(struct irdma_cm_node *node, bool ack);
void irdma_send_ack(struct irdma_cm_node *node);
void irdma_cm_delay_ack(struct irdma_cm_node *node);
void irdma_send_fin(struct irdma_cm_node *node);
void irdma_free_retrans_entry(struct irdma_cm_node *node);
void irdma_cleanup_retrans_entry(struct irdma_cm_node *node);
void irdma_handle_fin_pkt(struct irdma_cm_node *node);
void irdma_handle_rst_pkt(struct irdma_cm_node *node, const struct irdma_cm_seg *seg);
bool irdma_check_syn(const struct irdma_cm_node *node, const struct irdma_cm_seg *seg);
bool irdma_check_seq(const struct irdma_cm_node *node, const struct irdma_cm_seg *seg);
void irdma_handle_syn_pkt(struct irdma_cm_core *core, const struct irdma_cm_seg *seg);
void irdma_handle_synack_pkt(struct irdma_cm_node *node, const struct irdma_cm_seg *seg);
bool irdma_handle_ack_pkt(struct irdma_cm_node *node, const struct irdma_cm_seg *seg);
bool irdma_process_pkt(struct irdma_cm_node *node, const struct irdma_cm_seg *seg);
int irdma_cm_close(struct irdma_cm_node *node);

/* cm_mpa.c */
void irdma_record_ird_ord(struct irdma_cm_node *node, u32 ird, u32 ord);
u32 irdma_build_mpa_v1(const struct irdma_cm_node *node, u8 *frame, enum irdma_mpa_kind kind);
u32 irdma_build_mpa_v2(const struct irdma_cm_node *node, u8 *frame, enum irdma_mpa_kind kind);
u32 irdma_cm_build_mpa_frame(const struct irdma_cm_node *node, u8 *frame,
			     enum irdma_mpa_kind kind);
void irdma_send_mpa_request(struct irdma_cm_node *node);
void irdma_send_mpa_reject(struct irdma_cm_node *node);
void irdma_cm_negotiate_accept(struct irdma_cm_node *node, u32 ird, u32 ord);
int irdma_negotiate_mpa_v2_ird_ord(struct irdma_cm_node *node, u16 ird_word, u16 ord_word);
int irdma_parse_mpa(struct irdma_cm_node *node, const u8 *frame, u32 len,
		    enum irdma_mpa_kind *kind);
bool irdma_handle_rcv_mpa(struct irdma_cm_node *node, const struct irdma_cm_seg *seg);
bool irdma_cm_fall_back(struct irdma_cm_node *node);

/* cm_listen.c */
int irdma_cm_init_listen(struct irdma_cm_core *core);
void irdma_cm_cleanup_listen(struct irdma_cm_core *core);
struct irdma_cm_listener *irdma_find_listener(struct irdma_cm_core *core,
					      const struct irdma_cm_quad *quad);
bool irdma_cm_listener_get(struct irdma_cm_listener *listener);
void irdma_dec_refcnt_listen(struct irdma_cm_listener *listener);
enum irdma_cm_drop irdma_cm_admit(struct irdma_cm_listener *listener);
bool irdma_cm_attach(struct irdma_cm_node *node, struct irdma_cm_listener *listener);
void irdma_cm_handshake_done(struct irdma_cm_node *node);
void irdma_cm_request_done(struct irdma_cm_node *node);
void irdma_cm_detach(struct irdma_cm_node *node);
unsigned int irdma_reset_list_prep(struct irdma_cm_listener *listener,
				   struct irdma_cm_node **list, unsigned int max);
void irdma_cm_del_listen(struct irdma_cm_listener *listener);
struct irdma_cm_listener *irdma_make_listen_node(struct irdma_cm_core *core,
						 const struct irdma_cm_key *key,
						 struct iw_cm_id *cm_id, int backlog);
int irdma_add_mqh_4(struct irdma_cm_listener *listener);
int irdma_add_mqh_6(struct irdma_cm_listener *listener);
int irdma_add_mqh(struct irdma_cm_listener *listener);
void irdma_del_multiple_qhash(struct irdma_cm_listener *listener);
int irdma_qhash_ctrl(struct irdma_cm_listener *listener, const struct irdma_cm_laddr *addr,
		     bool up);

/* cm_conn.c */
struct irdma_cm_node *irdma_create_cm_node(struct irdma_cm_core *core,
					   const struct irdma_cm_quad *quad,
					   const struct iw_cm_id *cm_id,
					   const struct iw_cm_conn_param *param);
struct iw_cm_id *irdma_qp_disconnect(struct irdma_cm_node *node);
int irdma_cm_reject(struct irdma_cm_node *node, const void *pdata, u8 pdata_len);
void irdma_init_tcp_ctx(const struct irdma_cm_node *node, struct irdma_tcp_ctx *tcp);
void irdma_cm_init_tsa_conn(const struct irdma_cm_node *node, struct irdma_tcp_ctx *tcp,
			    struct irdma_start *start);
void irdma_free_lsmm_rsrc(struct irdma_start *start);
void irdma_cm_event_connected(struct irdma_cm_node *node);
void irdma_cm_disconn_true(struct ib_qp *ibqp);
void irdma_disconnect_worker(struct work_struct *work);

#endif
