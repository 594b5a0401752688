// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * MPA start-up: building, collecting and judging request and reply frames (RFC 5044 section 7,
 * enhanced by RFC 6581), the negotiation of read depths and of the ready-to-receive message,
 * and the repetition of a failed attempt with MPA v1.
 *
 * Called by cm_tcp.c and cm_conn.c under the node's lock.
 */
#include <linux/slab.h>

#include "cm_priv.h"

#define ST(x)	IRDMA_CM_STATE_##x

#define MPA_KEY_LEN		16
#define MPA_KEY_REQ		"MPA ID Req Frame"
#define MPA_KEY_REP		"MPA ID Rep Frame"

/* byte 16: flags; byte 17: revision; bytes 18, 19: length of what follows */
#define MPA_FLAG_MARKERS	0x80
#define MPA_FLAG_CRC		0x40
#define MPA_FLAG_REJECT		0x20
#define MPA_FLAG_ENHANCED	0x10

/* RFC 6581 section 9: control bits above the depths */
#define MPA_IRD_P2P		0x8000
#define MPA_IRD_RTR_SEND	0x4000
#define MPA_ORD_RTR_WRITE	0x8000
#define MPA_ORD_RTR_READ	0x4000
#define MPA_DEPTH_MASK		0x3fff

/**
 * irdma_record_ird_ord - note the depths that the ULP of an active connection wants
 * @node: connection
 * @ird: reads that the peer may have outstanding
 * @ord: reads that we may have outstanding
 *
 * Both are cut to what the device can do.  The ready-to-receive message may be a read, which
 * needs an outbound depth of 1.
 *
 * Context: Any, under the node's lock or before the node is known.
 */
void irdma_record_ird_ord(struct irdma_cm_node *node, u32 ird, u32 ord)
{
	node->ird = min_t(u32, ird, node->core->config.max_ird);
	node->ord = min_t(u32, ord, node->core->config.max_ord);
	if (!node->ord && node->rtr & IRDMA_CM_RTR_READ)
		node->ord = 1;
}

/**
 * irdma_build_mpa_v1 - write the part of a start-up frame that both revisions have
 * @node: connection
 * @frame: 20 bytes
 * @kind: request, accepting or rejecting reply
 *
 * CRC is always asked for and markers never: the hardware checks CRCs and needs no markers.
 *
 * Context: Any, under the node's lock.
 * Return: bytes written, 20.
 */
u32 irdma_build_mpa_v1(const struct irdma_cm_node *node, u8 *frame, enum irdma_mpa_kind kind)
{
	memcpy(frame, kind == IRDMA_MPA_REQUEST ? MPA_KEY_REQ : MPA_KEY_REP, MPA_KEY_LEN);
	frame[16] = MPA_FLAG_CRC;
	if (kind == IRDMA_MPA_REJECT)
		frame[16] |= MPA_FLAG_REJECT;
	frame[17] = node->mpa_rev;
	irdma_cm_put16(frame + 18, node->tx_len);
	return IRDMA_MPA_HDR_V1;
}

/**
 * irdma_build_mpa_v2 - write the header of an enhanced start-up frame
 * @node: connection
 * @frame: 24 bytes
 * @kind: request, accepting or rejecting reply
 *
 * A request offers the peer-to-peer model with either ready-to-receive message; a reply has the
 * model of the request and the one message that was chosen.
 *
 * Context: Any, under the node's lock.
 * Return: bytes written, 24.
 */
u32 irdma_build_mpa_v2(const struct irdma_cm_node *node, u8 *frame, enum irdma_mpa_kind kind)
{
	bool no_depths = irdma_cm_flag(node, IRDMA_CM_F_NO_DEPTHS);
	u16 ird = no_depths ? IRDMA_MPA_NO_DEPTH : node->ird;
	u16 ord = no_depths ? IRDMA_MPA_NO_DEPTH : node->ord;

	irdma_build_mpa_v1(node, frame, kind);
	frame[16] |= MPA_FLAG_ENHANCED;
	irdma_cm_put16(frame + 18, node->tx_len + IRDMA_MPA_HDR_V2 - IRDMA_MPA_HDR_V1);
	if (irdma_cm_flag(node, IRDMA_CM_F_P2P)) {
		ird |= MPA_IRD_P2P;
		if (node->rtr & IRDMA_CM_RTR_WRITE)
			ord |= MPA_ORD_RTR_WRITE;
		if (node->rtr & IRDMA_CM_RTR_READ)
			ord |= MPA_ORD_RTR_READ;
	}
	irdma_cm_put16(frame + 20, ird);
	irdma_cm_put16(frame + 22, ord);
	return IRDMA_MPA_HDR_V2;
}

/**
 * irdma_cm_build_mpa_frame - write the header of a start-up frame
 * @node: connection, whose private data follows the header
 * @frame: 24 bytes
 * @kind: request, accepting or rejecting reply
 *
 * Context: Any, under the node's lock.
 * Return: bytes written, 20 or 24.
 */
u32 irdma_cm_build_mpa_frame(const struct irdma_cm_node *node, u8 *frame,
			     enum irdma_mpa_kind kind)
{
	if (irdma_cm_flag(node, IRDMA_CM_F_ENHANCED))
		return irdma_build_mpa_v2(node, frame, kind);
	return irdma_build_mpa_v1(node, frame, kind);
}

static u32 irdma_cm_hdr_len(const struct irdma_cm_node *node)
{
	return irdma_cm_flag(node, IRDMA_CM_F_ENHANCED) ? IRDMA_MPA_HDR_V2 : IRDMA_MPA_HDR_V1;
}

/**
 * irdma_send_mpa_request - send the MPA request, repeated until it is acknowledged
 * @node: active connection whose handshake is complete
 *
 * It carries the acknowledgement of the peer's SYN.
 *
 * Context: Any, under the node's lock.
 */
void irdma_send_mpa_request(struct irdma_cm_node *node)
{
	irdma_cm_set_state(node, ST(MPAREQ_SENT));
	irdma_schedule_cm_timer(node, IRDMA_CM_OUT_MPA_REQ,
				irdma_cm_hdr_len(node) + node->tx_len);
}

/**
 * irdma_send_mpa_reject - send a rejecting reply with FIN, repeated until it is acknowledged
 * @node: passive connection whose ULP has refused; private data is set
 *
 * Context: Any, under the node's lock.
 */
void irdma_send_mpa_reject(struct irdma_cm_node *node)
{
	bool peer_closed = irdma_cm_flag(node, IRDMA_CM_F_PEER_FIN);

	irdma_cm_set_state(node, peer_closed ? ST(LAST_ACK) : ST(FIN_WAIT1));
	irdma_schedule_cm_timer(node, IRDMA_CM_OUT_MPA_REJ,
				irdma_cm_hdr_len(node) + node->tx_len + 1);
}

/**
 * irdma_cm_negotiate_accept - settle the depths of a passive connection
 * @node: connection whose request was parsed
 * @ird: inbound depth that the ULP wants
 * @ord: outbound depth that the ULP wants
 *
 * The outbound depth does not exceed what the peer can take; the inbound depth covers what the
 * peer will use as far as the device can (spec 03, 5.5).
 *
 * Context: Any, under the node's lock.
 */
void irdma_cm_negotiate_accept(struct irdma_cm_node *node, u32 ird, u32 ord)
{
	const struct irdma_cm_config *config = &node->core->config;

	node->ird = min_t(u32, ird, config->max_ird);
	node->ord = min_t(u32, ord, config->max_ord);
	if (irdma_cm_flag(node, IRDMA_CM_F_ENHANCED) &&
	    !irdma_cm_flag(node, IRDMA_CM_F_NO_DEPTHS)) {
		node->ird = max_t(u32, node->ird, min_t(u32, node->peer_ord, config->max_ird));
		node->ord = min(node->ord, node->peer_ird);
	}
	if (irdma_cm_flag(node, IRDMA_CM_F_P2P) && node->rtr == IRDMA_CM_RTR_READ && !node->ird)
		node->ird = 1;
	irdma_cm_set_flag(node, IRDMA_CM_F_REPLY);
}

static int irdma_cm_negotiate_request(struct irdma_cm_node *node, u16 ird_word, u16 ord_word)
{
	if (!(ird_word & MPA_IRD_P2P)) {
		node->rtr = 0;
		return 0;
	}
	irdma_cm_set_flag(node, IRDMA_CM_F_P2P);
	if (ord_word & MPA_ORD_RTR_READ)
		node->rtr = IRDMA_CM_RTR_READ;
	else if (ord_word & MPA_ORD_RTR_WRITE)
		node->rtr = IRDMA_CM_RTR_WRITE;
	else
		return -EPROTO;
	return 0;
}

static int irdma_cm_negotiate_reply(struct irdma_cm_node *node, u16 ird_word, u16 ord_word)
{
	u16 i = ird_word & MPA_DEPTH_MASK;
	u16 o = ord_word & MPA_DEPTH_MASK;

	if (!(ird_word & MPA_IRD_P2P))
		return -EPROTO;
	if (ord_word & MPA_ORD_RTR_READ)
		node->rtr = IRDMA_CM_RTR_READ;
	else if (ord_word & MPA_ORD_RTR_WRITE)
		node->rtr = IRDMA_CM_RTR_WRITE;
	else
		return -EPROTO;
	if (i == IRDMA_MPA_NO_DEPTH || o == IRDMA_MPA_NO_DEPTH)
		return 0;
	if (o > node->core->config.max_ird)
		return -EPROTO;
	node->ird = max(node->ird, o);
	node->ord = min(node->ord, i);
	if (!node->ord && node->rtr == IRDMA_CM_RTR_READ)
		return -EPROTO;
	return 0;
}

/**
 * irdma_negotiate_mpa_v2_ird_ord - evaluate the control words of an enhanced frame
 * @node: connection
 * @ird_word: inbound depth of the sender, peer-to-peer bit
 * @ord_word: outbound depth of the sender, ready-to-receive bits
 *
 * Request: notes the depths of the peer and its model, and chooses the ready-to-receive
 * message, a read if the peer can.  Without the peer-to-peer bit the initiator's ULP sends
 * first and no such message is needed.  Reply: raises our inbound depth to what the peer will
 * use and lowers our outbound depth to what it takes.
 *
 * Context: Any, under the node's lock.
 * Return: 0; -EPROTO if there is no common ready-to-receive message, the peer wants more
 * inbound depth than the device has, or it does not answer to what we asked.
 */
int irdma_negotiate_mpa_v2_ird_ord(struct irdma_cm_node *node, u16 ird_word, u16 ord_word)
{
	const struct irdma_cm_config *config = &node->core->config;
	u16 i = ird_word & MPA_DEPTH_MASK;
	u16 o = ord_word & MPA_DEPTH_MASK;

	if (node->active)
		return irdma_cm_negotiate_reply(node, ird_word, ord_word);
	if (i == IRDMA_MPA_NO_DEPTH || o == IRDMA_MPA_NO_DEPTH) {
		irdma_cm_set_flag(node, IRDMA_CM_F_NO_DEPTHS);
	} else {
		node->peer_ird = min_t(u32, i, config->max_ord);
		node->peer_ord = min_t(u32, o, config->max_ird);
	}
	return irdma_cm_negotiate_request(node, ird_word, ord_word);
}

static int irdma_cm_check_key(const struct irdma_cm_node *node, const u8 *frame,
			      enum irdma_mpa_kind *kind)
{
	u8 flags = frame[16];

	if (memcmp(frame, node->active ? MPA_KEY_REP : MPA_KEY_REQ, MPA_KEY_LEN))
		return -EPROTO;
	if (!node->active)
		*kind = IRDMA_MPA_REQUEST;
	else
		*kind = flags & MPA_FLAG_REJECT ? IRDMA_MPA_REJECT : IRDMA_MPA_ACCEPT;
	return 0;
}

/* Without the block of RFC 6581 nothing was negotiated, and nobody sends an RTR. */
static void irdma_cm_not_enhanced(struct irdma_cm_node *node)
{
	irdma_cm_clear_flag(node, IRDMA_CM_F_ENHANCED);
	irdma_cm_clear_flag(node, IRDMA_CM_F_P2P);
	node->rtr = 0;
}

/**
 * irdma_parse_mpa - judge what has been received of the peer's start-up frame
 * @node: connection in ESTABLISHED (passive) or MPAREQ_SENT (active)
 * @frame: its first byte
 * @len: bytes received so far
 * @kind: receives what it is
 *
 * On success the place of the private data is noted in the node.
 *
 * Context: Any, under the node's lock.
 * Return: 0 if the frame is complete; -EAGAIN if more has to come; -EPROTO if it is none, its
 * revision or length is not allowed, bytes follow it, or its negotiation fails.
 */
int irdma_parse_mpa(struct irdma_cm_node *node, const u8 *frame, u32 len,
		    enum irdma_mpa_kind *kind)
{
	u32 hdr_len = IRDMA_MPA_HDR_V1;
	u32 block_len;
	u8 rev;
	int ret;

	if (len < IRDMA_MPA_HDR_V1)
		return -EAGAIN;
	ret = irdma_cm_check_key(node, frame, kind);
	if (ret)
		return ret;
	rev = frame[17];
	block_len = irdma_cm_get16(frame + 18);
	if (rev < 1 || rev > node->mpa_rev || block_len > IRDMA_MPA_MAX_PDATA)
		return -EPROTO;
	if (rev == 2 && frame[16] & MPA_FLAG_ENHANCED)
		hdr_len = IRDMA_MPA_HDR_V2;
	if (IRDMA_MPA_HDR_V1 + block_len < hdr_len || len > IRDMA_MPA_HDR_V1 + block_len)
		return -EPROTO;
	if (len < IRDMA_MPA_HDR_V1 + block_len)
		return -EAGAIN;

	node->mpa_rev = rev;
	if (frame[16] & MPA_FLAG_MARKERS)
		irdma_cm_set_flag(node, IRDMA_CM_F_MARKERS);
	node->rx_data = hdr_len;
	node->rx_data_len = len - hdr_len;
	if (*kind == IRDMA_MPA_REJECT)
		return 0;
	if (hdr_len == IRDMA_MPA_HDR_V1) {
		irdma_cm_not_enhanced(node);
		return 0;
	}
	irdma_cm_set_flag(node, IRDMA_CM_F_ENHANCED);
	return irdma_negotiate_mpa_v2_ird_ord(node, irdma_cm_get16(frame + 20),
					      irdma_cm_get16(frame + 22));
}

static u32 irdma_cm_frame_size(const struct irdma_cm_seg *seg)
{
	if (seg->len < IRDMA_MPA_HDR_V1)
		return IRDMA_MPA_MAX_FRAME;
	return min_t(u32, IRDMA_MPA_HDR_V1 + irdma_cm_get16(seg->data + 18), IRDMA_MPA_MAX_FRAME);
}

/* Append to what has been received; bytes that do not fit cannot belong to a valid frame. */
static int irdma_cm_collect(struct irdma_cm_node *node, const struct irdma_cm_seg *seg)
{
	if (!node->rx_buf) {
		node->rx_size = irdma_cm_frame_size(seg);
		node->rx_buf = kmalloc(node->rx_size, GFP_ATOMIC);
		if (!node->rx_buf)
			return -ENOMEM;
	}
	if (node->rx_len + seg->len > node->rx_size)
		return -EPROTO;
	memcpy(node->rx_buf + node->rx_len, seg->data, seg->len);
	node->rx_len += seg->len;
	node->rcv_nxt += seg->len;
	return 0;
}

static void irdma_cm_startup_failed(struct irdma_cm_node *node, int status)
{
	if (node->active)
		irdma_active_open_err(node, status, true);
	else
		irdma_passive_open_err(node, true);
}

static void irdma_cm_request_parsed(struct irdma_cm_node *node)
{
	const struct irdma_cm_config *config = &node->core->config;

	if (!irdma_cm_flag(node, IRDMA_CM_F_ENHANCED) ||
	    irdma_cm_flag(node, IRDMA_CM_F_NO_DEPTHS)) {
		node->peer_ird = config->max_ord;
		node->peer_ord = config->max_ird;
	}
	irdma_cm_set_state(node, ST(MPAREQ_RCVD));
	irdma_cm_request_done(node);
	irdma_cm_delay_ack(node);
	irdma_create_event(node, IRDMA_CM_EV_MPA_REQ);
}

static void irdma_cm_reply_parsed(struct irdma_cm_node *node, enum irdma_mpa_kind kind)
{
	irdma_cm_set_flag(node, IRDMA_CM_F_REPLY);
	irdma_cleanup_retrans_entry(node);
	/* The RTR frame, which the hand-over has hardware send, acknowledges a reply as well. */
	if (kind == IRDMA_MPA_REJECT || !irdma_cm_flag(node, IRDMA_CM_F_P2P))
		irdma_send_ack(node);
	if (kind == IRDMA_MPA_REJECT) {
		irdma_cm_set_state(node, ST(MPAREJ_RCVD));
		irdma_create_event(node, IRDMA_CM_EV_MPA_REJECT);
	} else {
		irdma_cm_set_state(node, ST(HANDOVER));
		irdma_create_event(node, IRDMA_CM_EV_CONNECTED);
	}
}

/**
 * irdma_handle_rcv_mpa - bytes of the stream have arrived
 * @node: connection
 * @seg: segment with data that is next in sequence, or was received before and is empty now
 *
 * Collects the start-up frame in whatever segments it comes, and goes on when it is complete.
 * What a peer sends after its FIN was announced by us is acknowledged and thrown away.
 *
 * Context: Any, under the node's lock.
 * Return: whether a FIN in the same segment may be looked at.
 */
bool irdma_handle_rcv_mpa(struct irdma_cm_node *node, const struct irdma_cm_seg *seg)
{
	enum irdma_mpa_kind kind;
	int ret;

	switch (node->state) {
	case ST(ESTABLISHED):
	case ST(MPAREQ_SENT):
		break;
	case ST(FIN_WAIT1):
	case ST(FIN_WAIT2):
		node->rcv_nxt += seg->len;
		irdma_send_ack(node);
		return true;
	default:
		irdma_cm_drop(node->core, seg->rx, IRDMA_CM_DROP_STATE);
		return false;
	}

	ret = irdma_cm_collect(node, seg);
	if (ret == -ENOMEM) {
		irdma_cm_drop(node->core, seg->rx, IRDMA_CM_DROP_NO_MEM);
		return false;
	}
	if (!ret)
		ret = irdma_parse_mpa(node, node->rx_buf, node->rx_len, &kind);
	if (ret == -EAGAIN) {
		irdma_send_ack(node);
		return true;
	}
	if (ret) {
		irdma_cm_startup_failed(node, ret);
		return false;
	}
	if (kind == IRDMA_MPA_REQUEST)
		irdma_cm_request_parsed(node);
	else
		irdma_cm_reply_parsed(node, kind);
	return node->state != ST(HANDOVER);
}

/**
 * irdma_cm_fall_back - try again with MPA v1
 * @node: active connection whose peer closed or reset instead of replying
 *
 * RFC 6581 section 10: a peer that knows v1 only may close the connection when it sees a v2
 * request.  The handshake starts anew on the same quad, with an initial sequence number far
 * above what was used.
 *
 * Context: Any, under the node's lock.
 * Return: false if this was the v1 attempt already, or a reply had begun.
 */
bool irdma_cm_fall_back(struct irdma_cm_node *node)
{
	if (node->mpa_rev != 2 || node->rx_len)
		return false;
	irdma_cm_count(node->core, IRDMA_CM_MPA_FALLBACKS);
	if (irdma_cm_flag(node, IRDMA_CM_F_PEER_FIN))
		irdma_send_reset(node);
	irdma_cleanup_retrans_entry(node);
	irdma_cm_not_enhanced(node);
	irdma_cm_clear_flag(node, IRDMA_CM_F_PEER_FIN);
	irdma_cm_clear_flag(node, IRDMA_CM_F_SCALE);
	node->mpa_rev = 1;
	node->iss = node->snd_nxt + 0x10000 + irdma_cm_isn(node->core, &node->quad) % 0x10000;
	node->rcv_nxt = 0;
	irdma_send_syn(node, false);
	return true;
}
