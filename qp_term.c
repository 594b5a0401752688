// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Error events of queue pairs, translated: to the terminate message for the peer, to the
 * completion status of the work request that caused them, to the consumer's event (spec 01,
 * 5.4 to 5.6; spec 02, 4.7; RFC 5040, 5041, 5044).
 *
 * The Q2 buffer holds a frame that a peer sent, so every length in it is checked.
 */
#include <linux/bits.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/types.h>

#include "qp_term.h"
#include "wq.h"

/* First byte of a terminate message: layer << 4 | error type. */
#define RDMAP_PROTECTION	0x01
#define RDMAP_OPERATION		0x02
#define DDP_CATASTROPHIC	0x10
#define DDP_TAGGED		0x11
#define DDP_UNTAGGED		0x12
#define MPA_LLP			0x23

/* Header control bits, third byte. */
#define TERM_DDP_LEN		0x80
#define TERM_DDP_HDR		0x40
#define TERM_RDMAP_HDR		0x20

/* Bytes. */
#define TERM_CTRL_LEN		4
#define ETH_LEN			14
#define TAGGED_HDR_LEN		14
#define UNTAGGED_HDR_LEN	18
#define READ_REQ_HDR_LEN	28
#define MPA_LEN_LEN		2
#define IPV6_HDR_LEN		40

/* First two bytes of a DDP segment. */
#define DDP_CTRL_TAGGED		0x80
#define DDP_CTRL_TOP		0xc0	/* tagged, last */
#define DDP_CTRL_LAST_UNTAGGED	0x40
#define DDP_CTRL_VERSION	0x03
#define RDMAP_CTRL_VERSION	0xc0
#define RDMAP_VERSION_1		0x40
#define RDMAP_CTRL_OPCODE	0x0f

#define RDMAP_WRITE		0
#define RDMAP_READ_REQUEST	1
#define RDMAP_SEND_INV		4
#define RDMAP_SEND_SE_INV	6

#define TERM_QN			2	/* queue of terminate messages, RFC 5040 */

/* Events that the received frame can refine, and those found in received terminates. */
enum {
	AE_UNALLOCATED_STAG	= 0x0102,
	AE_BAD_QP		= 0x0104,
	AE_BAD_PD		= 0x0105,
	AE_BAD_STAG_KEY		= 0x0106,
	AE_BAD_STAG_INDEX	= 0x0107,
	AE_BOUNDS_VIOLATION	= 0x0108,
	AE_DDP_MSN		= 0x0301,
	AE_DDP_VERSION		= 0x0304,
	AE_DDP_MO		= 0x0305,
	AE_DDP_QN		= 0x0307,
	AE_RDMAP_VERSION	= 0x0311,
	AE_QP_CATASTROPHIC	= 0x0700,
};

struct term_entry {
	u16 ae;
	struct irdma_term_info info;
};

/* Spec 01, 5.5, without what the frame decides.  All other errors are fatal. */
static const struct term_entry entries[] = {
	{ 0x0102, { RDMAP_PROTECTION, 0x00, IRDMA_FLUSH_REM_ACCESS, true } },
	{ 0x0103, { RDMAP_PROTECTION, 0x00, IRDMA_FLUSH_REM_ACCESS, true } },
	{ 0x0104, { DDP_UNTAGGED, 0x01, IRDMA_FLUSH_LOC_QP_OP, false } },
	{ 0x0105, { RDMAP_PROTECTION, 0x03, IRDMA_FLUSH_REM_ACCESS, false } },
	{ 0x0106, { RDMAP_OPERATION, 0x00, IRDMA_FLUSH_REM_ACCESS, true } },
	{ 0x0107, { RDMAP_OPERATION, 0x00, IRDMA_FLUSH_REM_ACCESS, true } },
	{ 0x0108, { RDMAP_PROTECTION, 0x01, IRDMA_FLUSH_REM_ACCESS, true } },
	{ 0x0109, { RDMAP_PROTECTION, 0x02, IRDMA_FLUSH_REM_ACCESS, true } },
	{ 0x010a, { RDMAP_PROTECTION, 0x04, IRDMA_FLUSH_REM_ACCESS, true } },
	{ 0x0112, { RDMAP_PROTECTION, 0x02, IRDMA_FLUSH_REM_ACCESS, true } },
	/* A memory window is not bound: the consumer's doing, of which the peer learns the end only. */
	{ 0x0114, { RDMAP_OPERATION, 0xff, IRDMA_FLUSH_MW_BIND, false } },
	{ 0x0115, { RDMAP_OPERATION, 0xff, IRDMA_FLUSH_MW_BIND, false } },
	{ 0x0116, { RDMAP_OPERATION, 0xff, IRDMA_FLUSH_MW_BIND, false } },
	{ 0x0117, { RDMAP_OPERATION, 0xff, IRDMA_FLUSH_MW_BIND, false } },
	{ 0x0118, { RDMAP_OPERATION, 0xff, IRDMA_FLUSH_MW_BIND, false } },
	{ 0x0119, { RDMAP_OPERATION, 0xff, IRDMA_FLUSH_MW_BIND, false } },
	{ 0x011a, { RDMAP_OPERATION, 0xff, IRDMA_FLUSH_MW_BIND, false } },
	{ 0x011b, { RDMAP_OPERATION, 0xff, IRDMA_FLUSH_MW_BIND, false } },
	{ 0x011c, { RDMAP_PROTECTION, 0x02, IRDMA_FLUSH_REM_ACCESS, true } },
	{ 0x011e, { RDMAP_OPERATION, 0xff, IRDMA_FLUSH_MW_BIND, false } },
	{ 0x0120, { RDMAP_OPERATION, 0xff, IRDMA_FLUSH_MW_BIND, false } },
	{ 0x0301, { DDP_UNTAGGED, 0x03, IRDMA_FLUSH_GENERAL, false } },
	{ 0x0303, { DDP_UNTAGGED, 0x05, IRDMA_FLUSH_LOC_LEN, true } },
	{ 0x0304, { DDP_UNTAGGED, 0x06, IRDMA_FLUSH_GENERAL, false } },
	{ 0x0305, { DDP_UNTAGGED, 0x04, IRDMA_FLUSH_GENERAL, false } },
	{ 0x0306, { DDP_UNTAGGED, 0x02, IRDMA_FLUSH_REM_OP, false } },
	{ 0x0307, { DDP_UNTAGGED, 0x01, IRDMA_FLUSH_GENERAL, false } },
	{ 0x0308, { DDP_CATASTROPHIC, 0x00, IRDMA_FLUSH_FATAL, false } },
	{ 0x0311, { RDMAP_OPERATION, 0x05, IRDMA_FLUSH_GENERAL, false } },
	{ 0x0505, { MPA_LLP, 0x02, IRDMA_FLUSH_GENERAL, false } },
	{ 0x0507, { DDP_CATASTROPHIC, 0x00, IRDMA_FLUSH_LOC_LEN, false } },
	{ 0x0700, { DDP_CATASTROPHIC, 0x00, IRDMA_FLUSH_FATAL, false } },
};

static const struct irdma_term_info fatal = {
	RDMAP_OPERATION, 0xff, IRDMA_FLUSH_FATAL, false
};

/**
 * irdma_ae_reaction - what a QP does about an event
 * @ae_code: event code
 *
 * Return: every code that spec 01, 5.4 does not name is abnormal.
 */
enum irdma_ae_reaction irdma_ae_reaction(u16 ae_code)
{
	switch (ae_code) {
	case 0x020f:	/* shared receive queues, newer generations */
	case 0x050c:	/* doubt reachability */
	case 0x0520:	/* resource exhaustion */
	case 0x0603:	/* reset not sent */
	case 0x0900:	/* suspended, the scheduler's business */
		return IRDMA_AE_NOTHING;
	case 0x050e:
		return IRDMA_AE_ESTABLISHED;
	case 0x0202:	/* bad LLP close */
	case 0x0503:
		return IRDMA_AE_FIN;
	case 0x0501:
		return IRDMA_AE_CLOSED;
	case 0x0201:	/* bad close */
	case 0x0601:	/* reset sent */
		return IRDMA_AE_ERROR_CLOSE;
	case 0x0502:
		return IRDMA_AE_RESET;
	case 0x0602:
		return IRDMA_AE_TERM_SENT;
	case 0x0509:
		return IRDMA_AE_TERM_RECEIVED;
	default:
		return IRDMA_AE_ABNORMAL;
	}
}

/**
 * struct fpdu - the offending frame's FPDU
 * @start: MPA length, followed by the DDP segment
 * @room: bytes from @start to the end of the buffer
 * @len: MPA length
 */
struct fpdu {
	const u8 *start;
	u32 room;
	u32 len;
};

static u32 get_be16(const u8 *p)
{
	return p[0] << 8 | p[1];
}

static u32 get_be32(const u8 *p)
{
	return get_be16(p) << 16 | get_be16(p + 2);
}

/* The frame starts with an Ethernet header without VLAN tag. */
static bool find_fpdu(const u8 *q2, u32 q2_size, struct fpdu *fpdu)
{
	u32 ip = IRDMA_Q2_FRAME + ETH_LEN;
	u32 tcp, start;

	if (ip >= q2_size)
		return false;
	tcp = ip + (q2[ip] >> 4 == 6 ? IPV6_HDR_LEN : (q2[ip] & 0x0f) * 4);
	if (tcp + 13 > q2_size)
		return false;
	start = tcp + (q2[tcp + 12] >> 4) * 4;
	if (start + MPA_LEN_LEN + UNTAGGED_HDR_LEN > q2_size)
		return false;
	fpdu->start = q2 + start;
	fpdu->room = q2_size - start;
	fpdu->len = get_be16(fpdu->start);
	return true;
}

static bool is_tagged(const struct fpdu *fpdu)
{
	return fpdu->start[MPA_LEN_LEN] & DDP_CTRL_TAGGED;
}

static u8 rdmap_opcode(const struct fpdu *fpdu)
{
	return fpdu->start[MPA_LEN_LEN + 1] & RDMAP_CTRL_OPCODE;
}

static bool is_send_inv(const struct fpdu *fpdu)
{
	u8 op = rdmap_opcode(fpdu);

	return op == RDMAP_SEND_INV || op == RDMAP_SEND_SE_INV;
}

/* What only the frame tells: was it a write, a send with invalidate, a tagged segment? */
static void refine(u16 ae_code, const struct fpdu *fpdu, struct irdma_term_info *info)
{
	bool write = rdmap_opcode(fpdu) == RDMAP_WRITE;

	switch (ae_code) {
	case AE_UNALLOCATED_STAG:
		if (write) {
			info->layer_type = DDP_TAGGED;
			info->code = 0x00;
			info->flush_code = IRDMA_FLUSH_PROT;
		}
		break;
	case AE_BAD_QP:
	case AE_BAD_PD:
		/* The STag is not of this stream, be it a window's or another domain's. */
		if (write) {
			info->layer_type = DDP_TAGGED;
			info->code = 0x02;
			info->flush_code = IRDMA_FLUSH_PROT;
		} else {
			info->layer_type = RDMAP_PROTECTION;
			info->code = is_send_inv(fpdu) ? 0x09 : 0x03;
			info->flush_code = IRDMA_FLUSH_REM_ACCESS;
		}
		break;
	case AE_BAD_STAG_KEY:
	case AE_BAD_STAG_INDEX:
		/* An invalid STag is a protection error of RFC 5040, for a write one of RFC 5041. */
		if (is_send_inv(fpdu)) {
			info->code = 0x09;
			info->flush_code = IRDMA_FLUSH_REM_OP;
		} else {
			info->layer_type = write ? DDP_TAGGED : RDMAP_PROTECTION;
			info->code = 0x00;
		}
		break;
	case AE_BOUNDS_VIOLATION:
		info->layer_type = DDP_TAGGED;
		info->code = 0x01;
		info->flush_code = IRDMA_FLUSH_PROT;
		break;
	case AE_DDP_VERSION:
		if (is_tagged(fpdu)) {
			info->layer_type = DDP_TAGGED;
			info->code = 0x04;
		}
		break;
	}
}

/**
 * irdma_term_info - what an error event amounts to
 * @ae_code: event code
 * @q2: Q2 buffer
 * @q2_size: its size, bytes
 * @q2_data: the device has written the offending frame to it
 * @info: result
 */
void irdma_term_info(u16 ae_code, const u8 *q2, u32 q2_size, bool q2_data,
		     struct irdma_term_info *info)
{
	struct fpdu fpdu;
	size_t i;

	*info = fatal;
	for (i = 0; i < ARRAY_SIZE(entries); i++)
		if (entries[i].ae == ae_code)
			*info = entries[i].info;
	if (q2_data && find_fpdu(q2, q2_size, &fpdu))
		refine(ae_code, &fpdu, info);
}

/* Copy the headers that the message quotes; returns the bytes copied. */
static u32 quote(u8 *term, const struct fpdu *fpdu)
{
	u32 hdr_len = is_tagged(fpdu) ? TAGGED_HDR_LEN : UNTAGGED_HDR_LEN;
	u32 len = 0;

	if (!fpdu->len)
		return 0;
	len = MPA_LEN_LEN;
	term[2] |= TERM_DDP_LEN;
	if (fpdu->len >= hdr_len) {
		len += hdr_len;
		term[2] |= TERM_DDP_HDR;
		if (!is_tagged(fpdu) && rdmap_opcode(fpdu) == RDMAP_READ_REQUEST &&
		    fpdu->len >= UNTAGGED_HDR_LEN + READ_REQ_HDR_LEN &&
		    fpdu->room >= len + READ_REQ_HDR_LEN) {
			len += READ_REQ_HDR_LEN;
			term[2] |= TERM_RDMAP_HDR;
		}
	}
	memcpy(term + TERM_CTRL_LEN, fpdu->start, len);
	return len;
}

/**
 * irdma_term_build - write a terminate message to the Q2 buffer
 * @q2: Q2 buffer
 * @q2_size: its size, bytes
 * @q2_data: the device has written the offending frame to it
 * @info: from irdma_term_info()
 *
 * Return: bytes of the message.
 */
u32 irdma_term_build(u8 *q2, u32 q2_size, bool q2_data, const struct irdma_term_info *info)
{
	struct fpdu fpdu;
	u32 len = TERM_CTRL_LEN;

	memset(q2, 0, IRDMA_TERM_MAX);
	q2[0] = info->layer_type;
	q2[1] = info->code;
	if (q2_data && find_fpdu(q2, q2_size, &fpdu))
		len += quote(q2, &fpdu);
	return len;
}

/**
 * irdma_term_check - check a terminate message that the peer sent
 * @q2: Q2 buffer with the frame
 * @q2_size: its size, bytes
 * @finished: the peer will not send anything any more
 *
 * Return: 0, or the code of the event that the message's headers amount to.
 */
u16 irdma_term_check(const u8 *q2, u32 q2_size, bool *finished)
{
	const u8 *ddp, *term;
	struct fpdu fpdu;

	*finished = false;
	if (!find_fpdu(q2, q2_size, &fpdu))
		return AE_QP_CATASTROPHIC;
	ddp = fpdu.start + MPA_LEN_LEN;
	if ((ddp[0] & DDP_CTRL_TOP) != DDP_CTRL_LAST_UNTAGGED)
		return AE_QP_CATASTROPHIC;
	if ((ddp[0] & DDP_CTRL_VERSION) != 1)
		return AE_DDP_VERSION;
	if (get_be32(ddp + 6) != TERM_QN)
		return AE_DDP_QN;
	if (get_be32(ddp + 10) != 1)
		return AE_DDP_MSN;
	if (get_be32(ddp + 14))
		return AE_DDP_MO;
	if ((ddp[1] & RDMAP_CTRL_VERSION) != RDMAP_VERSION_1)
		return AE_RDMAP_VERSION;

	term = ddp + UNTAGGED_HDR_LEN;
	if (fpdu.room > MPA_LEN_LEN + UNTAGGED_HDR_LEN)
		*finished = term[0] == RDMAP_PROTECTION || term[0] == RDMAP_OPERATION;
	return 0;
}
