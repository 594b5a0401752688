// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Builds the host context of a queue pair (spec 02, 4.2 and 4.2.1; spec 03, 6.2).  Called by
 * qp.c and qp_modify.c under the QP's mutex, before each command that makes the device read it.
 *
 * The TCP part describes a quiet, fully acknowledged stream: everything sent before the
 * hand-over was sent by the connection engine.
 */
#include <linux/bitfield.h>
#include <linux/bits.h>
#include <linux/log2.h>
#include <linux/string.h>

#include "qpc.h"

/* Word 0. */
#define QPC_DDP_VER		GENMASK_ULL(1, 0)
#define QPC_IB_READS		BIT_ULL(2)
#define QPC_IPV4		BIT_ULL(3)
#define QPC_INSERT_VLAN		BIT_ULL(5)
#define QPC_RQ_WQE_SIZE		GENMASK_ULL(9, 8)
#define QPC_ECN			BIT_ULL(14)
#define QPC_DROP_OOO_SEG	BIT_ULL(15)
#define QPC_ERR_RQ_IDX_VALID	BIT_ULL(19)
#define QPC_PD_HI		GENMASK_ULL(21, 20)
#define QPC_RDMAP_VER		GENMASK_ULL(63, 62)
/* Word 3. */
#define QPC_TTL			GENMASK_ULL(7, 0)
#define QPC_RQ_SIZE		GENMASK_ULL(11, 8)
#define QPC_SQ_SIZE		GENMASK_ULL(15, 12)
#define QPC_TOS			GENMASK_ULL(31, 24)
#define QPC_SRC_PORT		GENMASK_ULL(47, 32)
#define QPC_DST_PORT		GENMASK_ULL(63, 48)
/* Words 4, 5, 23 to 24 and all others with two halves. */
#define QPC_LO			GENMASK_ULL(31, 0)
#define QPC_HI			GENMASK_ULL(63, 32)
/* Word 6. */
#define QPC_SND_MSS		GENMASK_ULL(29, 16)
#define QPC_VLAN_TAG		GENMASK_ULL(47, 32)
#define QPC_ARP_IDX		GENMASK_ULL(63, 48)
/* Word 7. */
#define QPC_WSCALE		BIT_ULL(20)
#define QPC_IGN_TCP_OPT		BIT_ULL(22)
#define QPC_IGN_UNS_OPT		BIT_ULL(23)
#define QPC_TCP_STATE		GENMASK_ULL(31, 28)
#define QPC_RCV_SCALE		GENMASK_ULL(35, 32)
#define QPC_SND_SCALE		GENMASK_ULL(43, 40)
#define QPC_PD_LO		GENMASK_ULL(63, 48)
/* Word 16. */
#define QPC_MAX_SND_WND		GENMASK_ULL(31, 0)
#define QPC_ERR_RQ_IDX		GENMASK_ULL(46, 32)
#define QPC_REXMIT_THRESH	GENMASK_ULL(53, 48)
#define QPC_RTO_MIN		GENMASK_ULL(63, 57)
/* Word 17. */
#define QPC_TX_CQN		GENMASK_ULL(24, 0)
#define QPC_RX_CQN		GENMASK_ULL(56, 32)
/* Word 18. */
#define QPC_Q2_ADDR		GENMASK_ULL(63, 8)
/* Word 19. */
#define QPC_SRC_MAC		GENMASK_ULL(63, 16)
/* Word 20. */
#define QPC_ORD			GENMASK_ULL(7, 0)
#define QPC_IRD			GENMASK_ULL(18, 16)
#define QPC_WR_RDRSP_OK		BIT_ULL(20)
#define QPC_RD_OK		BIT_ULL(21)
#define QPC_SND_MARKERS		BIT_ULL(22)
#define QPC_BIND		BIT_ULL(23)
#define QPC_FAST_REG		BIT_ULL(24)
#define QPC_PRIVILEGED		BIT_ULL(25)
#define QPC_IWARP_MODE		BIT_ULL(28)
#define QPC_RCV_MARKERS		BIT_ULL(29)
#define QPC_ALIGN_HDRS		BIT_ULL(30)
#define QPC_RCV_MARK_OFFSET	GENMASK_ULL(40, 32)
#define QPC_SND_MARK_OFFSET	GENMASK_ULL(56, 48)
/* Word 22. */
#define QPC_QS_HANDLE		GENMASK_ULL(25, 16)
#define QPC_EXCEPTION_QPN	GENMASK_ULL(43, 32)
/* Word 26. */
#define QPC_REM_ENDPOINT	GENMASK_ULL(16, 0)

#define TCP_STATE_ESTABLISHED	5
#define MARKER_INTERVAL		512	/* bytes, RFC 5044 */
#define ECT_0			2	/* RFC 3168 */

/* Values that the hardware notes give without a unit (spec 03, 6.2). */
#define INITIAL_RTTVAR		6
#define INITIAL_SSTHRESH	0x3fffffff
#define REXMIT_THRESH		8
#define RTO_MIN			5

/**
 * irdma_qpc_ird_code - IRDSIZE field
 * @ird: inbound reads that the peer may have outstanding
 *
 * The device keeps 4, 16, 64, 128 or 256 entries, two for each read.
 *
 * Return: code of the smallest size that suffices as spec 02, 4.2 has it.
 */
u8 irdma_qpc_ird_code(u32 ird)
{
	u32 entries = ird ? roundup_pow_of_two(2 * ird) : 4;

	if (entries >= 256)
		return 4;
	if (entries >= 128)
		return 3;
	if (entries >= 32)
		return 2;
	return entries >= 8 ? 1 : 0;
}

static u64 halves(u32 lo, u32 hi)
{
	return FIELD_PREP(QPC_LO, lo) | FIELD_PREP(QPC_HI, hi);
}

/* The lower words come last; an IPv4 address stands where the lowest word would. */
static void put_ip(u64 *w, const u32 ip[4], bool ipv4)
{
	if (ipv4) {
		w[0] = halves(ip[0], 0);
		return;
	}
	w[0] = halves(ip[3], ip[2]);
	w[1] = halves(ip[1], ip[0]);
}

static u64 mac_to_int(const u8 *mac)
{
	u64 val = 0;
	int i;

	for (i = 0; i < 6; i++)
		val = val << 8 | mac[i];
	return val;
}

static void build_common(u64 *w, const struct irdma_qpc *qpc)
{
	w[0] |= FIELD_PREP(QPC_RQ_WQE_SIZE, qpc->rq_shift);
	w[1] = qpc->sq_addr;
	w[2] = qpc->rq_addr;
	w[3] |= FIELD_PREP(QPC_RQ_SIZE, qpc->rq_size_code) |
		FIELD_PREP(QPC_SQ_SIZE, qpc->sq_size_code);
	w[17] = FIELD_PREP(QPC_TX_CQN, qpc->send_cqn) | FIELD_PREP(QPC_RX_CQN, qpc->recv_cqn);
	w[21] = qpc->context;
	w[22] = FIELD_PREP(QPC_QS_HANDLE, qpc->qs_handle) |
		FIELD_PREP(QPC_EXCEPTION_QPN, qpc->exception_qpn);
}

static void build_iwarp(u64 *w, const struct irdma_qpc *qpc)
{
	w[0] |= FIELD_PREP(QPC_DDP_VER, 1) | FIELD_PREP(QPC_RDMAP_VER, 1) | QPC_ECN |
		FIELD_PREP(QPC_IB_READS, qpc->ib_reads) |
		FIELD_PREP(QPC_PD_HI, qpc->pd >> 16);
	w[7] |= FIELD_PREP(QPC_PD_LO, qpc->pd & 0xffff);
	w[16] |= FIELD_PREP(QPC_RTO_MIN, RTO_MIN);
	if (qpc->err_rq_idx != IRDMA_QPC_NO_RQ_IDX) {
		w[0] |= QPC_ERR_RQ_IDX_VALID;
		w[16] |= FIELD_PREP(QPC_ERR_RQ_IDX, qpc->err_rq_idx & 0x7fff);
	}
	w[18] = qpc->q2_addr & QPC_Q2_ADDR;
	if (qpc->src_mac)
		w[19] = FIELD_PREP(QPC_SRC_MAC, mac_to_int(qpc->src_mac));
	w[20] |= FIELD_PREP(QPC_WR_RDRSP_OK, qpc->write_ok) | FIELD_PREP(QPC_RD_OK, qpc->read_ok) |
		 QPC_BIND | FIELD_PREP(QPC_FAST_REG, qpc->privileged) |
		 FIELD_PREP(QPC_PRIVILEGED, qpc->privileged) | QPC_IWARP_MODE;
}

static void build_mpa(u64 *w, const struct irdma_qpc *qpc)
{
	const struct irdma_tcp_ctx *tcp = qpc->tcp;
	u32 snd_offset = tcp->snd_nxt;

	/* Markers begin with the first FPDU, behind the message in streaming mode. */
	if (tcp->snd_markers)
		snd_offset += qpc->lsmm_len;
	w[20] |= FIELD_PREP(QPC_ORD, tcp->ord) | FIELD_PREP(QPC_IRD, irdma_qpc_ird_code(tcp->ird)) |
		 FIELD_PREP(QPC_SND_MARKERS, tcp->snd_markers) |
		 FIELD_PREP(QPC_RCV_MARKERS, tcp->rcv_markers) |
		 FIELD_PREP(QPC_ALIGN_HDRS, tcp->rcv_markers) |
		 FIELD_PREP(QPC_RCV_MARK_OFFSET, tcp->rcv_nxt % MARKER_INTERVAL) |
		 FIELD_PREP(QPC_SND_MARK_OFFSET, snd_offset % MARKER_INTERVAL);
}

static void build_tcp(u64 *w, const struct irdma_tcp_ctx *tcp)
{
	/* ECN is on, so our segments must carry ECT. */
	u8 tos = tcp->tos & 3 ? tcp->tos : tcp->tos | ECT_0;

	w[0] |= FIELD_PREP(QPC_IPV4, tcp->ipv4) | FIELD_PREP(QPC_INSERT_VLAN, tcp->insert_vlan) |
		QPC_DROP_OOO_SEG;
	w[3] |= FIELD_PREP(QPC_TTL, tcp->ttl) | FIELD_PREP(QPC_TOS, tos) |
		FIELD_PREP(QPC_SRC_PORT, tcp->local_port) |
		FIELD_PREP(QPC_DST_PORT, tcp->remote_port);
	put_ip(&w[4], tcp->remote_ip, tcp->ipv4);
	w[6] = FIELD_PREP(QPC_SND_MSS, tcp->mss) | FIELD_PREP(QPC_VLAN_TAG, tcp->vlan_tag) |
	       FIELD_PREP(QPC_ARP_IDX, tcp->arp_idx);
	w[7] |= QPC_WSCALE | QPC_IGN_TCP_OPT | QPC_IGN_UNS_OPT |
		FIELD_PREP(QPC_TCP_STATE, TCP_STATE_ESTABLISHED) |
		FIELD_PREP(QPC_RCV_SCALE, tcp->rcv_scale) |
		FIELD_PREP(QPC_SND_SCALE, tcp->snd_scale);
	w[10] = halves(tcp->snd_nxt, tcp->snd_wnd);
	w[11] = halves(tcp->rcv_nxt, tcp->rcv_wnd);
	w[12] = halves(tcp->snd_nxt, tcp->snd_nxt);		/* SND.MAX, SND.UNA */
	w[13] = halves(0, INITIAL_RTTVAR);
	w[14] = halves(INITIAL_SSTHRESH, 2 * tcp->mss);		/* congestion window */
	w[15] = halves(tcp->rcv_nxt, tcp->snd_nxt);		/* SND.WL1, SND.WL2 */
	w[16] |= FIELD_PREP(QPC_MAX_SND_WND, tcp->max_snd_wnd) |
		 FIELD_PREP(QPC_REXMIT_THRESH, REXMIT_THRESH);
	put_ip(&w[23], tcp->local_ip, tcp->ipv4);
	w[26] = FIELD_PREP(QPC_REM_ENDPOINT, tcp->arp_idx);
}

/**
 * irdma_qpc_build - write the host context
 * @ctx: IRDMA_QPC_WORDS words, all of them are written
 * @qpc: what it says; values are in range
 */
void irdma_qpc_build(__le64 *ctx, const struct irdma_qpc *qpc)
{
	u64 w[IRDMA_QPC_WORDS] = {};
	int i;

	build_common(w, qpc);
	build_iwarp(w, qpc);
	if (qpc->tcp) {
		build_mpa(w, qpc);
		build_tcp(w, qpc->tcp);
	}
	for (i = 0; i < IRDMA_QPC_WORDS; i++)
		ctx[i] = cpu_to_le64(w[i]);
}
