// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * TCP of the connection engine, as far as a connection needs it before hardware takes over
 * and after a refused start-up: RFC 9293, options of RFC 7323, RST and SYN rules of RFC 5961.
 *
 * irdma_receive_ilq() is the only way in.  A frame is checked once, by
 * irdma_cm_parse_frame(); from there on its parsed form is passed.  All functions that take a
 * node want its lock held, if nothing else is said.
 */
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/slab.h>

#include "cm_priv.h"

#define ST(x)	IRDMA_CM_STATE_##x

enum {
	IPV4_HDR	= 20,
	IPV6_HDR	= 40,
	TCP_HDR		= 20,
};

enum {
	TCPOPT_END	= 0,
	TCPOPT_NOP	= 1,
	TCPOPT_MAXSEG	= 2,	/* RFC 9293 3.7.1, 4 bytes */
	TCPOPT_SCALE	= 3,	/* RFC 7323 2.2, 3 bytes */
};

/**
 * irdma_process_options - read the TCP options of a segment
 * @opt: first option
 * @len: bytes of options, 0 to 40
 * @opts: receives maximum segment size and window scale
 *
 * Every option but END and NOP has a length byte of at least 2 that does not lead beyond the
 * header (RFC 9293 3.1); kinds that we do not know are skipped by it.
 *
 * Context: Any; pure.
 * Return: 0, or -EINVAL if an option's length cannot be right.
 */
int irdma_process_options(const u8 *opt, u32 len, struct irdma_cm_opts *opts)
{
	u32 opt_len;

	opts->mss = 0;
	opts->scale = -1;
	for (; len && *opt != TCPOPT_END; opt += opt_len, len -= opt_len) {
		if (*opt == TCPOPT_NOP) {
			opt_len = 1;
			continue;
		}
		if (len < 2)
			return -EINVAL;
		opt_len = opt[1];
		if (opt_len < 2 || opt_len > len)
			return -EINVAL;
		if (*opt == TCPOPT_MAXSEG) {
			if (opt_len != 4)
				return -EINVAL;
			opts->mss = irdma_cm_get16(opt + 2);
		} else if (*opt == TCPOPT_SCALE) {
			if (opt_len != 3)
				return -EINVAL;
			opts->scale = min_t(u8, opt[2], IRDMA_CM_MAX_SCALE);
		}
	}
	return 0;
}

static bool irdma_cm_parse_ipv4(const struct irdma_cm_rx *rx, struct irdma_cm_seg *seg,
				u32 *tcp_len)
{
	const u8 *ip = rx->ip;
	u32 total = irdma_cm_get16(ip + 2);

	/* version 4, no IP options; not a fragment */
	if (ip[0] != 0x45 || irdma_cm_get16(ip + 6) & 0x3fff || ip[9] != IPPROTO_TCP)
		return false;
	if (total < IPV4_HDR || total > rx->len)
		return false;
	seg->tos = ip[1];
	seg->quad.ipv4 = 1;
	seg->quad.remote_ip[0] = irdma_cm_get32(ip + 12);
	seg->quad.local_ip[0] = irdma_cm_get32(ip + 16);
	*tcp_len = total - IPV4_HDR;
	return true;
}

static bool irdma_cm_parse_ipv6(const struct irdma_cm_rx *rx, struct irdma_cm_seg *seg,
				u32 *tcp_len)
{
	const u8 *ip = rx->ip;
	u32 payload = irdma_cm_get16(ip + 4);
	int i;

	if (ip[0] >> 4 != 6 || ip[6] != IPPROTO_TCP)
		return false;
	if (payload > rx->len - IPV6_HDR)
		return false;
	seg->tos = irdma_cm_get16(ip) >> 4;
	for (i = 0; i < 4; i++) {
		seg->quad.remote_ip[i] = irdma_cm_get32(ip + 8 + 4 * i);
		seg->quad.local_ip[i] = irdma_cm_get32(ip + 24 + 4 * i);
	}
	*tcp_len = payload;
	return true;
}

static bool irdma_cm_parse_tcp(const u8 *tcp, u32 len, struct irdma_cm_seg *seg,
			       enum irdma_cm_drop *why)
{
	u32 hdr_len = (tcp[12] >> 4) * 4;

	if (hdr_len < TCP_HDR || hdr_len > len) {
		*why = IRDMA_CM_DROP_TCP_OFF;
		return false;
	}
	if (irdma_process_options(tcp + TCP_HDR, hdr_len - TCP_HDR, &seg->opts)) {
		*why = IRDMA_CM_DROP_TCP_OPT;
		return false;
	}
	seg->quad.remote_port = irdma_cm_get16(tcp);
	seg->quad.local_port = irdma_cm_get16(tcp + 2);
	seg->seq = irdma_cm_get32(tcp + 4);
	seg->ack = irdma_cm_get32(tcp + 8);
	seg->flags = tcp[13];
	seg->wnd = irdma_cm_get16(tcp + 14);
	seg->data = tcp + hdr_len;
	seg->len = len - hdr_len;
	seg->tcp = tcp;
	seg->tcp_len = len;
	return true;
}

/**
 * irdma_cm_parse_frame - check a received frame once and for all
 * @rx: the frame
 * @seg: receives its parsed form; points into the frame
 * @why: receives the reason if it is refused
 *
 * Every length is checked here.  Refused are IP options, fragments, IPv6 extension headers,
 * and frames that are shorter than their headers say; what lies behind the IP datagram
 * (Ethernet padding) is ignored.
 *
 * Context: Any; pure.
 * Return: whether the frame can be used.
 */
bool irdma_cm_parse_frame(const struct irdma_cm_rx *rx, struct irdma_cm_seg *seg,
			  enum irdma_cm_drop *why)
{
	u32 ip_hdr = rx->ipv4 ? IPV4_HDR : IPV6_HDR;
	u32 tcp_len;

	memset(seg, 0, sizeof(*seg));
	seg->rx = rx;
	seg->quad.vlan = rx->vlan;
	*why = IRDMA_CM_DROP_SHORT;
	if (rx->len < ip_hdr + TCP_HDR)
		return false;
	*why = IRDMA_CM_DROP_IP;
	if (rx->ipv4 ? !irdma_cm_parse_ipv4(rx, seg, &tcp_len)
		     : !irdma_cm_parse_ipv6(rx, seg, &tcp_len))
		return false;
	*why = IRDMA_CM_DROP_SHORT;
	if (tcp_len < TCP_HDR)
		return false;
	return irdma_cm_parse_tcp(rx->ip + ip_hdr, tcp_len, seg, why);
}

static u32 irdma_cm_put_tcp(const struct irdma_cm_node *node, const struct irdma_cm_tx *tx, u8 *p)
{
	u32 hdr_len = TCP_HDR + tx->opt_len;
	bool ack = tx->flags & IRDMA_TCP_ACK;

	irdma_cm_put16(p, node->quad.local_port);
	irdma_cm_put16(p + 2, node->quad.remote_port);
	irdma_cm_put32(p + 4, tx->seq);
	irdma_cm_put32(p + 8, ack ? node->rcv_nxt : 0);
	p[12] = hdr_len / 4 << 4;
	p[13] = tx->flags;
	irdma_cm_put16(p + 14, tx->flags & IRDMA_TCP_RST ? 0 : IRDMA_CM_WIRE_WINDOW);
	/* checksum, which hardware fills in, and urgent pointer */
	irdma_cm_put32(p + 16, 0);
	memcpy(p + TCP_HDR, tx->opts, tx->opt_len);
	memcpy(p + hdr_len, tx->hdr, tx->hdr_len);
	if (tx->len)
		memcpy(p + hdr_len + tx->hdr_len, tx->data, tx->len);
	return hdr_len + tx->hdr_len + tx->len;
}

/**
 * irdma_form_ah_cm_frame - build a frame whose lower headers an address handle holds (E810)
 * @node: connection
 * @tx: the segment
 *
 * The frame starts with the TCP header.
 *
 * Context: Any, under the node's lock.
 * Return: the frame, or NULL if there is no address handle or no buffer.
 */
struct irdma_cm_frame *irdma_form_ah_cm_frame(struct irdma_cm_node *node,
					      const struct irdma_cm_tx *tx)
{
	struct irdma_cm_frame *frame;

	if (!irdma_cm_flag(node, IRDMA_CM_F_AH))
		return NULL;
	frame = node->core->ops->frame_alloc(node->core, IRDMA_CM_FRAME_MAX);
	if (!frame)
		return NULL;
	frame->mac_len = 0;
	frame->ip_len = 0;
	frame->tcp_len = TCP_HDR + tx->opt_len;
	frame->ipv4 = node->quad.ipv4;
	frame->loopback = node->route.loopback;
	frame->len = irdma_cm_put_tcp(node, tx, frame->data);
	return frame;
}

static u32 irdma_cm_put_ethernet(const struct irdma_cm_node *node, u8 *p)
{
	u16 proto = node->quad.ipv4 ? ETH_P_IP : ETH_P_IPV6;

	memcpy(p, node->route.remote_mac, ETH_ALEN);
	memcpy(p + ETH_ALEN, node->route.local_mac, ETH_ALEN);
	if (node->quad.vlan == IRDMA_CM_NO_VLAN) {
		irdma_cm_put16(p + 12, proto);
		return 14;
	}
	irdma_cm_put16(p + 12, ETH_P_8021Q);
	irdma_cm_put16(p + 14, node->route.prio << 13 | node->quad.vlan);
	irdma_cm_put16(p + 16, proto);
	return 18;
}

static u32 irdma_cm_put_ip(struct irdma_cm_node *node, u8 *p, u32 tcp_len)
{
	const struct irdma_cm_quad *quad = &node->quad;
	int i;

	if (quad->ipv4) {
		p[0] = 0x45;
		p[1] = node->tos;
		irdma_cm_put16(p + 2, IPV4_HDR + tcp_len);
		irdma_cm_put16(p + 4, ++node->ip_id);
		irdma_cm_put16(p + 6, 0x4000);	/* don't fragment */
		p[8] = IRDMA_CM_TTL;
		p[9] = IPPROTO_TCP;
		irdma_cm_put16(p + 10, 0);	/* checksum: hardware */
		irdma_cm_put32(p + 12, quad->local_ip[0]);
		irdma_cm_put32(p + 16, quad->remote_ip[0]);
		return IPV4_HDR;
	}
	irdma_cm_put32(p, 6U << 28 | node->tos << 20);
	irdma_cm_put16(p + 4, tcp_len);
	p[6] = IPPROTO_TCP;
	p[7] = IRDMA_CM_TTL;
	for (i = 0; i < 4; i++) {
		irdma_cm_put32(p + 8 + 4 * i, quad->local_ip[i]);
		irdma_cm_put32(p + 24 + 4 * i, quad->remote_ip[i]);
	}
	return IPV6_HDR;
}

/**
 * irdma_form_uda_cm_frame - build a complete frame (X722)
 * @node: connection
 * @tx: the segment
 *
 * The frame starts with the Ethernet header; hardware fills in the checksums.
 *
 * Context: Any, under the node's lock.
 * Return: the frame, or NULL if there is no buffer.
 */
struct irdma_cm_frame *irdma_form_uda_cm_frame(struct irdma_cm_node *node,
					       const struct irdma_cm_tx *tx)
{
	u32 tcp_len = TCP_HDR + tx->opt_len + tx->hdr_len + tx->len;
	struct irdma_cm_frame *frame;
	u8 *p;

	frame = node->core->ops->frame_alloc(node->core, IRDMA_CM_FRAME_MAX);
	if (!frame)
		return NULL;
	p = frame->data;
	frame->mac_len = irdma_cm_put_ethernet(node, p);
	frame->ip_len = irdma_cm_put_ip(node, p + frame->mac_len, tcp_len);
	frame->tcp_len = TCP_HDR + tx->opt_len;
	frame->ipv4 = node->quad.ipv4;
	frame->loopback = node->route.loopback;
	frame->len = frame->mac_len + frame->ip_len;
	frame->len += irdma_cm_put_tcp(node, tx, p + frame->len);
	return frame;
}

/**
 * irdma_free_sqbuf - give back a frame that is not going to be sent
 * @core: engine
 * @frame: the frame
 *
 * Frames that were sent go back by themselves when hardware has transmitted them.
 *
 * Context: Any.
 */
void irdma_free_sqbuf(struct irdma_cm_core *core, struct irdma_cm_frame *frame)
{
	core->ops->frame_free(core, frame);
}

/**
 * irdma_cm_transmit - build a segment and send it once
 * @node: connection
 * @tx: the segment
 *
 * Context: Any, under the node's lock.
 * Return: 0; -ENOMEM without buffer or address handle; -ENODEV if the hardware is gone.
 */
int irdma_cm_transmit(struct irdma_cm_node *node, const struct irdma_cm_tx *tx)
{
	struct irdma_cm_core *core = node->core;
	struct irdma_cm_frame *frame;
	const u8 *tcp;

	frame = core->ops->raw_frames ? irdma_form_uda_cm_frame(node, tx)
				      : irdma_form_ah_cm_frame(node, tx);
	if (!frame) {
		irdma_cm_count(core, IRDMA_CM_TX_FAILED);
		return -ENOMEM;
	}
	if (READ_ONCE(core->dead)) {
		irdma_free_sqbuf(core, frame);
		return -ENODEV;
	}
	irdma_cm_count(core, IRDMA_CM_TX_FRAMES);
	tcp = frame->data + frame->mac_len + frame->ip_len;
	if (core->ops->trace_frame)
		core->ops->trace_frame(node, true, tcp, frame->len - (tcp - frame->data));
	return core->ops->frame_send(core, node, frame);
}

static void irdma_cm_syn_options(const struct irdma_cm_node *node, struct irdma_cm_tx *tx)
{
	u8 *p = tx->opts;

	p[0] = TCPOPT_MAXSEG;
	p[1] = 4;
	irdma_cm_put16(p + 2, node->mss);
	tx->opt_len = 4;
	/* A SYN-ACK offers scaling only if the SYN did (RFC 7323 section 2.2). */
	if (node->out == IRDMA_CM_OUT_SYNACK && !irdma_cm_flag(node, IRDMA_CM_F_SCALE))
		return;
	p[4] = TCPOPT_SCALE;
	p[5] = 3;
	p[6] = IRDMA_CM_RCV_SCALE;
	p[7] = TCPOPT_END;
	tx->opt_len = 8;
}

/**
 * irdma_cm_send_out - transmit the segment that waits for its acknowledgement
 * @node: connection
 *
 * It is built anew each time, so that it acknowledges what has arrived meanwhile.
 *
 * Context: Any, under the node's lock.
 */
void irdma_cm_send_out(struct irdma_cm_node *node)
{
	struct irdma_cm_tx tx = { .flags = IRDMA_TCP_ACK };
	enum irdma_mpa_kind kind = IRDMA_MPA_REQUEST;

	switch (node->out) {
	case IRDMA_CM_OUT_NONE:
	case IRDMA_CM_OUT_DELAYED_ACK:
		return;
	case IRDMA_CM_OUT_SYN:
		tx.flags = IRDMA_TCP_SYN;
		irdma_cm_syn_options(node, &tx);
		tx.seq = node->iss;
		break;
	case IRDMA_CM_OUT_SYNACK:
		tx.flags |= IRDMA_TCP_SYN;
		irdma_cm_syn_options(node, &tx);
		tx.seq = node->iss;
		break;
	case IRDMA_CM_OUT_MPA_REJ:
		tx.flags |= IRDMA_TCP_FIN;
		kind = IRDMA_MPA_REJECT;
		fallthrough;
	case IRDMA_CM_OUT_MPA_REQ:
		/* Nothing is queued behind it (RFC 9293 section 3.9.1.2). */
		tx.flags |= IRDMA_TCP_PSH;
		tx.hdr_len = irdma_cm_build_mpa_frame(node, tx.hdr, kind);
		tx.data = node->tx_data;
		tx.len = node->tx_len;
		tx.seq = node->snd_nxt - tx.hdr_len - tx.len - !!(tx.flags & IRDMA_TCP_FIN);
		break;
	case IRDMA_CM_OUT_FIN:
		tx.flags |= IRDMA_TCP_FIN;
		tx.seq = node->snd_nxt - 1;
		break;
	}
	irdma_cm_transmit(node, &tx);
}

/**
 * irdma_send_reset - reset the peer's end of a connection, once
 * @node: connection; keeps all its references
 *
 * Context: Any, under the node's lock.
 * Return: 0, or the errno of irdma_cm_transmit(); then the peer finds out by its own timers.
 */
int irdma_send_reset(struct irdma_cm_node *node)
{
	struct irdma_cm_tx tx = {
		.seq = node->snd_nxt,
		.flags = IRDMA_TCP_RST | IRDMA_TCP_ACK,
	};

	irdma_cm_count(node->core, IRDMA_CM_RSTS_SENT);
	return irdma_cm_transmit(node, &tx);
}

/* RFC 9293 3.5.2 group 2: the segment acknowledges what we never sent. */
static void irdma_cm_reset_seg(struct irdma_cm_node *node, const struct irdma_cm_seg *seg)
{
	struct irdma_cm_tx tx = { .seq = seg->ack, .flags = IRDMA_TCP_RST };

	irdma_cm_count(node->core, IRDMA_CM_RSTS_SENT);
	irdma_cm_transmit(node, &tx);
}

/**
 * irdma_send_ack - acknowledge what has been received, once
 * @node: connection
 *
 * Context: Any, under the node's lock.
 */
void irdma_send_ack(struct irdma_cm_node *node)
{
	struct irdma_cm_tx tx = { .seq = node->snd_nxt, .flags = IRDMA_TCP_ACK };

	if (node->out == IRDMA_CM_OUT_DELAYED_ACK)
		irdma_free_retrans_entry(node);
	irdma_cm_transmit(node, &tx);
}

/**
 * irdma_cm_delay_ack - acknowledge what has been received, soon
 * @node: connection with nothing outstanding
 *
 * Most likely something is sent meanwhile that carries the acknowledgement (RFC 9293 section
 * 3.8.6.3): the MPA reply, by us or by hardware.
 *
 * Context: Any, under the node's lock.
 */
void irdma_cm_delay_ack(struct irdma_cm_node *node)
{
	node->out = IRDMA_CM_OUT_DELAYED_ACK;
	node->retrans_at = jiffies + msecs_to_jiffies(IRDMA_CM_ACK_DELAY_MS);
	irdma_timer_list_prep(node);
}

/*
 * Answer a segment that is not acceptable with an ACK, at a bounded rate (RFC 5961 section 7).
 */
static void irdma_cm_challenge(struct irdma_cm_node *node)
{
	if ((u32)jiffies - node->ack_time >= HZ) {
		node->ack_time = jiffies;
		node->ack_credit = IRDMA_CM_ACKS_PER_S;
	}
	if (!node->ack_credit)
		return;
	node->ack_credit--;
	irdma_cm_count(node->core, IRDMA_CM_CHALLENGE_ACKS);
	irdma_send_ack(node);
}

/**
 * irdma_send_syn - send SYN or SYN-ACK, repeated until it is acknowledged
 * @node: connection
 * @ack: SYN-ACK: answers the peer's SYN
 *
 * Context: Any, under the node's lock.
 */
void irdma_send_syn(struct irdma_cm_node *node, bool ack)
{
	node->snd_una = node->iss;
	node->snd_nxt = node->iss;
	irdma_cm_set_state(node, ack ? ST(SYN_RCVD) : ST(SYN_SENT));
	irdma_schedule_cm_timer(node, ack ? IRDMA_CM_OUT_SYNACK : IRDMA_CM_OUT_SYN, 1);
}

/**
 * irdma_send_fin - close our half of a connection, repeated until it is acknowledged
 * @node: connection; the caller has set the state that follows
 *
 * Context: Any, under the node's lock.
 */
void irdma_send_fin(struct irdma_cm_node *node)
{
	irdma_schedule_cm_timer(node, IRDMA_CM_OUT_FIN, 1);
}

/**
 * irdma_free_retrans_entry - forget the segment that waits for its acknowledgement
 * @node: connection
 *
 * The timer is left as it is; it finds out that nothing is to be repeated.
 *
 * Context: Any, under the node's lock.
 */
void irdma_free_retrans_entry(struct irdma_cm_node *node)
{
	node->out = IRDMA_CM_OUT_NONE;
	node->retries = 0;
}

/**
 * irdma_cleanup_retrans_entry - the outstanding segment was acknowledged or is given up
 * @node: connection
 *
 * Context: Any, under the node's lock.
 */
void irdma_cleanup_retrans_entry(struct irdma_cm_node *node)
{
	irdma_free_retrans_entry(node);
	irdma_timer_list_prep(node);
}

/**
 * irdma_active_open_err - an attempt to connect has failed
 * @node: active connection before its hand-over
 * @status: negative errno for the ULP
 * @reset: reset the peer's end
 *
 * Closes the connection; its event work raises CONNECT_REPLY.
 *
 * Context: Any, under the node's lock.
 */
void irdma_active_open_err(struct irdma_cm_node *node, int status, bool reset)
{
	if (!irdma_cm_flag(node, IRDMA_CM_F_ALIVE))
		return;
	node->status = status;
	if (reset && node->state != ST(SETUP))
		irdma_send_reset(node);
	irdma_cm_node_closed(node);
	irdma_create_event(node, IRDMA_CM_EV_ABORTED);
}

/**
 * irdma_passive_open_err - a connection that no id knows is given up
 * @node: passive connection before its hand-over, or any that is closing
 * @reset: reset the peer's end
 *
 * If its request is with the ULP, accept and reject will not find it any more.
 *
 * Context: Any, under the node's lock.
 */
void irdma_passive_open_err(struct irdma_cm_node *node, bool reset)
{
	if (!irdma_cm_flag(node, IRDMA_CM_F_ALIVE))
		return;
	if (!node->active)
		irdma_cm_count(node->core, IRDMA_CM_PASSIVE_ERRORS);
	if (reset && node->state != ST(SETUP))
		irdma_send_reset(node);
	irdma_cm_node_closed(node);
}

/**
 * irdma_handle_tcp_options - take over what the peer's SYN or SYN-ACK offers
 * @node: connection
 * @seg: a segment with SYN
 *
 * The peer's MSS is clamped to the least that every host must take; without the option that
 * is also its value.  Scaling needs both sides (RFC 7323 section 2.2).  The window of a SYN is
 * never scaled.
 *
 * Context: Any, under the node's lock.
 */
void irdma_handle_tcp_options(struct irdma_cm_node *node, const struct irdma_cm_seg *seg)
{
	u16 floor = node->quad.ipv4 ? IRDMA_CM_MIN_MSS_V4 : IRDMA_CM_MIN_MSS_V6;

	node->mss = min(node->mss, max(seg->opts.mss, floor));
	if (seg->opts.scale >= 0) {
		irdma_cm_set_flag(node, IRDMA_CM_F_SCALE);
		node->snd_scale = seg->opts.scale;
		node->rcv_scale = IRDMA_CM_RCV_SCALE;
	} else {
		irdma_cm_clear_flag(node, IRDMA_CM_F_SCALE);
		node->snd_scale = 0;
		node->rcv_scale = 0;
	}
	node->snd_wnd = seg->wnd;
	node->max_snd_wnd = seg->wnd;
}

static u32 irdma_cm_rcv_wnd(const struct irdma_cm_node *node)
{
	return (u32)IRDMA_CM_WIRE_WINDOW << node->rcv_scale;
}

static bool irdma_cm_in_window(const struct irdma_cm_node *node, u32 seq)
{
	return seq - node->rcv_nxt < irdma_cm_rcv_wnd(node);
}

/**
 * irdma_check_syn - does a segment in SYN_SENT acknowledge our SYN?
 * @node: connection
 * @seg: segment with ACK
 *
 * Context: Any, under the node's lock.
 * Return: true if ISS < SEG.ACK <= SND.NXT (RFC 9293 3.10.7.3).
 */
bool irdma_check_syn(const struct irdma_cm_node *node, const struct irdma_cm_seg *seg)
{
	return irdma_seq_lt(node->iss, seg->ack) && irdma_seq_le(seg->ack, node->snd_nxt);
}

/**
 * irdma_check_seq - does a segment overlap the receive window?
 * @node: connection in a synchronised state
 * @seg: segment
 *
 * Context: Any, under the node's lock.
 * Return: whether it is acceptable (RFC 9293 3.10.7.4, first check).
 */
bool irdma_check_seq(const struct irdma_cm_node *node, const struct irdma_cm_seg *seg)
{
	u32 len = seg->len + !!(seg->flags & IRDMA_TCP_SYN) + !!(seg->flags & IRDMA_TCP_FIN);

	if (irdma_cm_in_window(node, seg->seq))
		return true;
	return len && irdma_cm_in_window(node, seg->seq + len - 1);
}

/* Only what opens a connection: SYN without anything that contradicts it. */
static bool irdma_cm_is_syn(const struct irdma_cm_seg *seg)
{
	return (seg->flags & (IRDMA_TCP_SYN | IRDMA_TCP_ACK | IRDMA_TCP_RST | IRDMA_TCP_FIN)) ==
	       IRDMA_TCP_SYN;
}

/* A token bucket kept as the time at which it is full again. */
static bool irdma_cm_syn_token(struct irdma_cm_core *core)
{
	u64 step = 1000000000ULL / core->config.syn_rate;
	u64 depth = step * core->config.syn_burst;
	u64 now = ktime_get_ns();
	u64 old, next;

	do {
		old = atomic64_read(&core->syn_next_ns);
		next = max(old, now) + step;
		if (next > now + depth)
			return false;
	} while ((u64)atomic64_cmpxchg(&core->syn_next_ns, old, next) != old);
	return true;
}

static enum irdma_cm_drop irdma_cm_new_passive(struct irdma_cm_core *core,
					       struct irdma_cm_listener *listener,
					       const struct irdma_cm_seg *seg)
{
	/* The peer's DSCP unless the ULP has set one; never its ECN bits. */
	u8 tos = listener->tos_set ? listener->tos : seg->tos & ~3;
	struct irdma_cm_node *node;
	int ret = 0;

	node = irdma_make_cm_node(core, &seg->quad, tos, listener);
	if (IS_ERR(node))
		return PTR_ERR(node) == -ENOMEM ? IRDMA_CM_DROP_NO_MEM : IRDMA_CM_DROP_NO_ROUTE;

	spin_lock_bh(&node->lock);
	if (core->ops->trace_frame)
		core->ops->trace_frame(node, false, seg->tcp, seg->tcp_len);
	if (node->state == ST(SETUP)) {
		node->rcv_nxt = seg->seq + 1;
		irdma_handle_tcp_options(node, seg);
		ret = irdma_cm_node_setup(node);
		if (ret)
			irdma_passive_open_err(node, false);
	}
	spin_unlock_bh(&node->lock);
	irdma_cm_node_put(node);
	return ret ? IRDMA_CM_DROP_NO_MEM : IRDMA_CM_DROP_COUNT;
}

/**
 * irdma_handle_syn_pkt - a SYN that belongs to no connection
 * @core: engine
 * @seg: the SYN
 *
 * Admission, cheapest first: listener, its limits, the engine's cap of half-open connections,
 * and the token bucket of CQP work.  The SYN-ACK is sent when hardware has the entries of the
 * new connection; until then frames of the peer would go to the host's stack.
 *
 * Context: Any, without locks.
 */
void irdma_handle_syn_pkt(struct irdma_cm_core *core, const struct irdma_cm_seg *seg)
{
	enum irdma_cm_drop drop = IRDMA_CM_DROP_NO_LISTENER;
	struct irdma_cm_listener *listener;

	listener = irdma_find_listener(core, &seg->quad);
	if (!listener)
		goto drop;
	drop = irdma_cm_admit(listener);
	if (drop == IRDMA_CM_DROP_COUNT && !irdma_cm_syn_token(core))
		drop = IRDMA_CM_DROP_RATE;
	if (drop == IRDMA_CM_DROP_COUNT)
		drop = irdma_cm_new_passive(core, listener, seg);
	irdma_dec_refcnt_listen(listener);
drop:
	if (drop != IRDMA_CM_DROP_COUNT)
		irdma_cm_drop(core, seg->rx, drop);
}

/**
 * irdma_handle_synack_pkt - any segment that comes in SYN_SENT
 * @node: connection in SYN_SENT
 * @seg: segment
 *
 * RFC 9293 3.10.7.3: first ACK, then RST, then SYN.  A SYN without ACK is a simultaneous open.
 * The MPA request carries the acknowledgement of the peer's SYN.
 *
 * Context: Any, under the node's lock.
 */
void irdma_handle_synack_pkt(struct irdma_cm_node *node, const struct irdma_cm_seg *seg)
{
	bool ack = seg->flags & IRDMA_TCP_ACK;

	if (ack && !irdma_check_syn(node, seg)) {
		if (!(seg->flags & IRDMA_TCP_RST))
			irdma_cm_reset_seg(node, seg);
		irdma_cm_drop(node->core, seg->rx, IRDMA_CM_DROP_ACK);
		return;
	}
	if (seg->flags & IRDMA_TCP_RST) {
		if (ack)
			irdma_active_open_err(node, -ECONNRESET, false);
		else
			irdma_cm_drop(node->core, seg->rx, IRDMA_CM_DROP_RST);
		return;
	}
	if (!(seg->flags & IRDMA_TCP_SYN)) {
		irdma_cm_drop(node->core, seg->rx, IRDMA_CM_DROP_STATE);
		return;
	}
	node->rcv_nxt = seg->seq + 1;
	irdma_handle_tcp_options(node, seg);
	irdma_cleanup_retrans_entry(node);
	if (ack) {
		node->snd_una = seg->ack;
		irdma_send_mpa_request(node);
	} else {
		irdma_send_syn(node, true);
	}
}

static bool irdma_cm_fin_acked(const struct irdma_cm_node *node)
{
	return node->snd_una == node->snd_nxt;
}

static void irdma_cm_time_wait(struct irdma_cm_node *node)
{
	if (atomic_read(&node->core->time_wait) >= IRDMA_CM_MAX_TIME_WAIT) {
		irdma_cm_node_closed(node);
		return;
	}
	irdma_cm_set_state(node, ST(TIME_WAIT));
}

/* What a new acknowledgement means in each state. */
static void irdma_cm_acked(struct irdma_cm_node *node)
{
	switch (node->state) {
	case ST(SYN_RCVD):
		if (node->active) {
			irdma_send_mpa_request(node);
		} else {
			irdma_cm_set_state(node, ST(ESTABLISHED));
			irdma_cm_handshake_done(node);
		}
		break;
	case ST(MPAREQ_SENT):
		irdma_cm_set_deadline(node, IRDMA_CM_MPA_ACKED_MS);
		break;
	case ST(FIN_WAIT1):
		irdma_cm_set_state(node, ST(FIN_WAIT2));
		break;
	case ST(CLOSING):
		irdma_cm_time_wait(node);
		break;
	case ST(LAST_ACK):
		irdma_cm_node_closed(node);
		break;
	default:
		break;
	}
}

/**
 * irdma_handle_ack_pkt - the ACK part of a segment in a synchronised state
 * @node: connection
 * @seg: acceptable segment with ACK
 *
 * RFC 9293 3.10.7.4 fifth check with the limits of RFC 5961 section 5.2: an ACK of what was
 * never sent, or from long ago, is answered with a challenge ACK.  Updates the send window.
 *
 * Context: Any, under the node's lock.
 * Return: whether the rest of the segment may be looked at.
 */
bool irdma_handle_ack_pkt(struct irdma_cm_node *node, const struct irdma_cm_seg *seg)
{
	if (node->state == ST(SYN_RCVD) && !irdma_check_syn(node, seg)) {
		irdma_cm_reset_seg(node, seg);
		irdma_cm_drop(node->core, seg->rx, IRDMA_CM_DROP_ACK);
		return false;
	}
	if (irdma_seq_lt(node->snd_nxt, seg->ack) ||
	    irdma_seq_lt(seg->ack, node->snd_una - node->max_snd_wnd)) {
		irdma_cm_challenge(node);
		irdma_cm_drop(node->core, seg->rx, IRDMA_CM_DROP_ACK);
		return false;
	}
	if (irdma_seq_lt(seg->ack, node->snd_una))
		return true;

	node->snd_wnd = (u32)seg->wnd << node->snd_scale;
	node->max_snd_wnd = max(node->max_snd_wnd, node->snd_wnd);
	if (seg->ack == node->snd_una)
		return true;
	node->snd_una = seg->ack;
	if (!irdma_cm_fin_acked(node))
		return true;
	irdma_cleanup_retrans_entry(node);
	irdma_cm_acked(node);
	return irdma_cm_flag(node, IRDMA_CM_F_ALIVE);
}

/**
 * irdma_handle_fin_pkt - the peer has closed its half
 * @node: connection; the FIN is next in sequence
 *
 * RFC 9293 3.10.7.4 eighth check.  While the ULP decides the FIN is acknowledged and
 * remembered: accept will fail.
 *
 * Context: Any, under the node's lock.
 */
void irdma_handle_fin_pkt(struct irdma_cm_node *node)
{
	node->rcv_nxt++;
	irdma_cm_set_flag(node, IRDMA_CM_F_PEER_FIN);
	switch (node->state) {
	case ST(ESTABLISHED):
	case ST(MPAREJ_RCVD):
		irdma_cm_set_state(node, ST(LAST_ACK));
		irdma_send_fin(node);
		break;
	case ST(MPAREQ_SENT):
		if (!irdma_cm_fall_back(node))
			irdma_active_open_err(node, -ECONNRESET, true);
		break;
	case ST(FIN_WAIT1):
		irdma_send_ack(node);
		irdma_cm_set_state(node, ST(CLOSING));
		break;
	case ST(FIN_WAIT2):
		irdma_send_ack(node);
		irdma_cm_time_wait(node);
		break;
	default:
		irdma_send_ack(node);
		break;
	}
}

/**
 * irdma_handle_rst_pkt - a RST in a synchronised state
 * @node: connection
 * @seg: segment with RST
 *
 * RFC 5961 section 3.2: only a RST at exactly RCV.NXT resets; one elsewhere in the window is
 * answered with a challenge ACK; others are dropped.  Instead of an MPA reply it may be that
 * the peer does not know MPA v2.
 *
 * Context: Any, under the node's lock.
 */
void irdma_handle_rst_pkt(struct irdma_cm_node *node, const struct irdma_cm_seg *seg)
{
	if (seg->seq != node->rcv_nxt) {
		if (irdma_cm_in_window(node, seg->seq))
			irdma_cm_challenge(node);
		irdma_cm_drop(node->core, seg->rx, IRDMA_CM_DROP_RST);
		return;
	}
	switch (node->state) {
	case ST(MPAREQ_RCVD):
	case ST(HANDOVER):
		irdma_free_retrans_entry(node);		/* nobody is there to be acknowledged to */
		irdma_cm_set_flag(node, IRDMA_CM_F_PEER_RESET);
		break;
	case ST(MPAREQ_SENT):
		if (irdma_cm_fall_back(node))
			break;
		irdma_active_open_err(node, -ECONNRESET, false);
		break;
	case ST(SYN_RCVD):
		if (node->active)
			irdma_active_open_err(node, -ECONNRESET, false);
		else
			irdma_passive_open_err(node, false);
		break;
	case ST(ESTABLISHED):
		irdma_passive_open_err(node, false);
		break;
	default:
		irdma_cm_node_closed(node);
		break;
	}
}

/* Data and FIN must be next in sequence; earlier bytes are cut off, later ones come again. */
static bool irdma_cm_in_order(struct irdma_cm_node *node, struct irdma_cm_seg *seg)
{
	u32 old = node->rcv_nxt - seg->seq;

	if (irdma_seq_lt(node->rcv_nxt, seg->seq)) {
		irdma_cm_challenge(node);
		irdma_cm_drop(node->core, seg->rx, IRDMA_CM_DROP_SEQ);
		return false;
	}
	old = min(old, seg->len);
	seg->data += old;
	seg->len -= old;
	seg->seq += old;
	return true;
}

/* Returns true if the segment opens a new connection on the quad of an old one. */
static bool irdma_cm_unacceptable(struct irdma_cm_node *node, const struct irdma_cm_seg *seg)
{
	if (node->state == ST(TIME_WAIT) && irdma_cm_is_syn(seg) &&
	    irdma_seq_lt(node->rcv_nxt, seg->seq)) {
		irdma_cm_node_closed(node);
		return true;
	}
	if (seg->flags & IRDMA_TCP_RST) {
		irdma_cm_drop(node->core, seg->rx, IRDMA_CM_DROP_RST);
		return false;
	}
	if (node->state == ST(SYN_RCVD) && irdma_cm_is_syn(seg) &&
	    seg->seq + 1 == node->rcv_nxt && node->ack_credit) {
		/* The peer repeats its SYN: our SYN-ACK was lost. */
		node->ack_credit--;
		irdma_cm_send_out(node);
	} else {
		irdma_cm_challenge(node);
		if (node->state == ST(TIME_WAIT) && seg->flags & IRDMA_TCP_FIN)
			irdma_cm_set_deadline(node, IRDMA_CM_TIME_WAIT_MS);
	}
	irdma_cm_drop(node->core, seg->rx, IRDMA_CM_DROP_SEQ);
	return false;
}

static void irdma_cm_synchronised(struct irdma_cm_node *node, struct irdma_cm_seg *seg)
{
	struct irdma_cm_core *core = node->core;

	if (seg->flags & IRDMA_TCP_RST) {
		irdma_handle_rst_pkt(node, seg);
		return;
	}
	if (seg->flags & IRDMA_TCP_SYN) {
		irdma_cm_challenge(node);
		irdma_cm_drop(core, seg->rx, IRDMA_CM_DROP_SYN);
		return;
	}
	if (node->state == ST(HANDOVER)) {
		/* Hardware gets it when the peer repeats it. */
		irdma_cm_drop(core, seg->rx, IRDMA_CM_DROP_OFFLOADED);
		return;
	}
	if (!(seg->flags & IRDMA_TCP_ACK)) {
		irdma_cm_drop(core, seg->rx, IRDMA_CM_DROP_ACK);
		return;
	}
	if (!irdma_handle_ack_pkt(node, seg))
		return;
	if (!seg->len && !(seg->flags & IRDMA_TCP_FIN))
		return;
	if (!irdma_cm_in_order(node, seg))
		return;
	if (seg->len && !irdma_handle_rcv_mpa(node, seg))
		return;
	if (seg->flags & IRDMA_TCP_FIN && seg->seq + seg->len == node->rcv_nxt)
		irdma_handle_fin_pkt(node);
}

/**
 * irdma_process_pkt - a segment of a known connection
 * @node: connection
 * @seg: segment
 *
 * The order of checks is that of RFC 9293 3.10.7.
 *
 * Context: Any, under the node's lock.
 * Return: true if the segment is a SYN for a new connection, after @node was closed for it.
 */
bool irdma_process_pkt(struct irdma_cm_node *node, const struct irdma_cm_seg *seg)
{
	struct irdma_cm_seg own = *seg;

	switch (node->state) {
	case ST(CLOSED):
		irdma_cm_drop(node->core, seg->rx, IRDMA_CM_DROP_NO_NODE);
		return false;
	case ST(OFFLOADED):
		irdma_cm_drop(node->core, seg->rx, IRDMA_CM_DROP_OFFLOADED);
		return false;
	case ST(SETUP):
		if (!node->active && seg->flags & IRDMA_TCP_RST && seg->seq == node->rcv_nxt)
			irdma_passive_open_err(node, false);
		else
			irdma_cm_drop(node->core, seg->rx, IRDMA_CM_DROP_SETUP);
		return false;
	case ST(SYN_SENT):
		irdma_handle_synack_pkt(node, seg);
		return false;
	default:
		break;
	}
	if (!irdma_check_seq(node, seg))
		return irdma_cm_unacceptable(node, seg);
	if (node->state == ST(TIME_WAIT) && irdma_cm_is_syn(seg)) {
		irdma_cm_node_closed(node);
		return true;
	}
	irdma_cm_synchronised(node, &own);
	return false;
}

/**
 * irdma_receive_ilq - a frame came in on the raw queue
 * @core: engine
 * @rx: the frame; not kept
 *
 * The cost does not depend on the number of connections or listeners, no lock but that of the
 * connection is taken, and memory is allocated for an admitted SYN and for the start-up frame
 * of a connection only.  What is not used is counted by reason (&enum irdma_cm_drop).
 *
 * Context: Softirq or process; frames of one device may be handled on several CPUs.
 */
void irdma_receive_ilq(struct irdma_cm_core *core, const struct irdma_cm_rx *rx)
{
	struct irdma_cm_node *node;
	enum irdma_cm_drop why;
	struct irdma_cm_seg seg;
	bool syn;

	irdma_cm_count(core, IRDMA_CM_RX_FRAMES);
	if (!irdma_cm_parse_frame(rx, &seg, &why)) {
		irdma_cm_drop(core, rx, why);
		return;
	}
	node = irdma_find_node(core, &seg.quad);
	if (!node) {
		syn = irdma_cm_is_syn(&seg);
		if (!syn)
			irdma_cm_drop(core, rx, IRDMA_CM_DROP_NO_NODE);
	} else {
		spin_lock_bh(&node->lock);
		if (core->ops->trace_frame)
			core->ops->trace_frame(node, false, seg.tcp, seg.tcp_len);
		syn = irdma_process_pkt(node, &seg);
		spin_unlock_bh(&node->lock);
		irdma_cm_node_put(node);
	}
	if (syn)
		irdma_handle_syn_pkt(core, &seg);
}

/**
 * irdma_cm_close - close a connection that the ULP has done with
 * @node: connection that software owns
 *
 * Orderly after a refusal; by RST while it is being set up; nothing if it is closing already.
 *
 * Context: Any, takes the node's lock.
 * Return: 0, or -EINVAL if it is closing already.
 */
int irdma_cm_close(struct irdma_cm_node *node)
{
	int ret = 0;

	spin_lock_bh(&node->lock);
	switch (node->state) {
	case ST(MPAREJ_RCVD):
		irdma_cm_set_state(node, ST(FIN_WAIT1));
		irdma_send_fin(node);
		break;
	case ST(FIN_WAIT1):
	case ST(FIN_WAIT2):
	case ST(CLOSING):
	case ST(LAST_ACK):
	case ST(TIME_WAIT):
	case ST(CLOSED):
		ret = -EINVAL;
		break;
	case ST(SETUP):
	case ST(HANDOVER):
	case ST(OFFLOADED):
		irdma_cm_node_closed(node);
		break;
	default:
		irdma_send_reset(node);
		irdma_cm_node_closed(node);
	}
	spin_unlock_bh(&node->lock);
	return ret;
}
