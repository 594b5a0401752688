// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Encoding of work queue entries and decoding of completions (spec 02, sections 5 and 6).
 *
 * Pure functions on memory: qp_post.c calls the producers under the queue's lock and the
 * consumers under the CQ's lock, ilq.c and cq.c the completion decoder.  What differs
 * between X722 and E810 stands in two struct irdma_wq_fmt at the end.
 *
 * An entry belongs to the device as soon as its valid bit matches, doorbell or not.  So the
 * header is always written last, behind a DMA barrier, and the quanta ahead of the producer
 * are kept looking invalid.
 */
#include <linux/bitfield.h>
#include <linux/bits.h>
#include <linux/errno.h>
#include <linux/log2.h>
#include <linux/string.h>
#include <linux/types.h>
#include <asm/barrier.h>

#include "wq.h"

/* Header of an SQ or RQ entry (5.4). */
#define WQE_STAG		GENMASK_ULL(31, 0)
#define WQE_OPCODE		GENMASK_ULL(37, 32)
#define WQE_FRAG_COUNT		GENMASK_ULL(41, 38)
#define WQE_LPBL_SIZE		GENMASK_ULL(45, 44)
#define WQE_PAGE_SIZE		GENMASK_ULL(47, 46)
#define WQE_IMM			BIT_ULL(47)
#define WQE_INLINE_LEN		GENMASK_ULL(55, 48)
#define WQE_RIGHTS		GENMASK_ULL(52, 48)
#define WQE_VA_BASED		BIT_ULL(53)
#define WQE_MW_TYPE1		BIT_ULL(54)
#define WQE_INLINE		BIT_ULL(57)
#define WQE_STREAM_MODE		BIT_ULL(58)
#define WQE_WAIT_FOR_PDU	BIT_ULL(59)
#define WQE_READ_FENCE		BIT_ULL(60)
#define WQE_LOCAL_FENCE		BIT_ULL(61)
#define WQE_SIGNALED		BIT_ULL(62)
#define WQE_VALID		BIT_ULL(63)

/* Second word of a fragment. */
#define E810_FRAG_STAG		GENMASK_ULL(31, 0)
#define E810_FRAG_LEN		GENMASK_ULL(62, 32)
#define E810_FRAG_VALID		BIT_ULL(63)
#define X722_FRAG_LEN		GENMASK_ULL(31, 0)
#define X722_FRAG_STAG		GENMASK_ULL(63, 32)

/* Fast register, words 1 and 2. */
#define REG_PAGE0		GENMASK_ULL(63, 12)
#define REG_PBLE_HI		GENMASK_ULL(11, 0)
#define REG_LEN			GENMASK_ULL(40, 0)
#define REG_PBLE_LO		GENMASK_ULL(63, 48)

/* Zero-length read that opens the stream; the values only have to be recognisable. */
#define RTR_READ_REMOTE_STAG	0x1234
#define RTR_READ_LOCAL_STAG	0xabcd

/* CQE (6.1). */
#define CQE_LEN			GENMASK_ULL(31, 0)
#define CQE_INV_STAG		GENMASK_ULL(31, 0)
#define CQE_QPN			GENMASK_ULL(55, 32)
#define CQE_MINOR		GENMASK_ULL(15, 0)
#define CQE_MAJOR		GENMASK_ULL(31, 16)
#define CQE_WQE_IDX		GENMASK_ULL(46, 32)
#define CQE_EXTENDED		BIT_ULL(50)
#define CQE_INVALIDATED		BIT_ULL(53)
#define CQE_SOLICITED		BIT_ULL(54)
#define CQE_ERROR		BIT_ULL(55)
#define CQE_OPCODE		GENMASK_ULL(61, 56)
#define CQE_SQ			BIT_ULL(62)
#define CQE_VALID		BIT_ULL(63)
#define CQE_EXT_IMM		GENMASK_ULL(31, 0)
#define CQE_EXT_IMM_VALID	BIT_ULL(62)

/* CQ shadow area (6.3). */
#define CQ_SHADOW_HEAD		0
#define CQ_SHADOW_ARM		4
#define CQ_ARM_SELECT		GENMASK_ULL(13, 0)
#define CQ_ARM_NEXT		BIT_ULL(14)
#define CQ_ARM_NEXT_SE		BIT_ULL(15)
#define CQ_ARM_SEQ		GENMASK_ULL(17, 16)

static void e810_put_frag(__le64 *frag, u64 addr, u32 len, u32 stag, bool valid)
{
	frag[0] = cpu_to_le64(addr);
	frag[1] = cpu_to_le64(FIELD_PREP(E810_FRAG_STAG, stag) | FIELD_PREP(E810_FRAG_LEN, len) |
			      FIELD_PREP(E810_FRAG_VALID, valid));
}

static void x722_put_frag(__le64 *frag, u64 addr, u32 len, u32 stag, bool valid)
{
	frag[0] = cpu_to_le64(addr);
	frag[1] = cpu_to_le64(FIELD_PREP(X722_FRAG_STAG, stag) | FIELD_PREP(X722_FRAG_LEN, len));
}

/* Fragments behind the first, rounded up to whole quanta of two. */
static u32 e810_frag_count(u32 frags)
{
	return frags / 2 * 2;
}

static u32 x722_frag_count(u32 frags)
{
	return frags ? frags - 1 : 0;
}

static u32 e810_inline_quanta(u32 len)
{
	return len <= 8 ? 1 : 1 + (len - 8 + 30) / 31;
}

static u32 x722_inline_quanta(u32 len)
{
	return len <= 16 ? 1 : 2;
}

/*
 * Copy the data of @sges to @wqe from byte @pos on.  Bytes 16..31 hold remote offset and
 * header; behind them every quantum offers @room bytes.
 */
static void put_inline(u8 *wqe, u32 pos, u32 room, const struct ib_sge *sges, u32 num_sge)
{
	u32 end = 16, i;

	for (i = 0; i < num_sge; i++) {
		const u8 *src = (const u8 *)(uintptr_t)sges[i].addr;
		u32 left = sges[i].length;

		while (left) {
			u32 n;

			if (pos == end) {
				pos = (pos + 31) / 32 * 32;
				end = pos + room;
			}
			n = min(left, end - pos);
			memcpy(wqe + pos, src, n);
			pos += n;
			src += n;
			left -= n;
		}
	}
}

static u32 sges_len(const struct ib_sge *sges, u32 num_sge)
{
	u32 i, len = 0;

	for (i = 0; i < num_sge; i++)
		len += sges[i].length;
	return len;
}

static void e810_put_inline(__le64 *wqe, const struct ib_sge *sges, u32 num_sge, bool polarity)
{
	u32 quanta = e810_inline_quanta(sges_len(sges, num_sge));
	u8 *bytes = (u8 *)wqe;
	u32 i;

	put_inline(bytes, 8, 31, sges, num_sge);
	for (i = 1; i < quanta; i++)
		bytes[i * IRDMA_QUANTUM + 31] = polarity << 7;
}

static void x722_put_inline(__le64 *wqe, const struct ib_sge *sges, u32 num_sge, bool polarity)
{
	put_inline((u8 *)wqe, 0, 32, sges, num_sge);
}

static void e810_put_inval(__le64 *wqe, u32 stag)
{
	wqe[1] = cpu_to_le64(stag);
}

static void x722_put_inval(__le64 *wqe, u32 stag)
{
	wqe[1] = cpu_to_le64((u64)stag << 32);
}

static void e810_put_bind(__le64 *wqe, u32 mr_stag, u32 mw_stag)
{
	wqe[1] = cpu_to_le64((u64)mr_stag << 32 | mw_stag);
}

static void x722_put_bind(__le64 *wqe, u32 mr_stag, u32 mw_stag)
{
	wqe[1] = cpu_to_le64((u64)mw_stag << 32 | mr_stag);
}

const struct irdma_wq_fmt irdma_wq_fmt_e810 = {
	.put_frag = e810_put_frag,
	.frag_count = e810_frag_count,
	.inline_quanta = e810_inline_quanta,
	.put_inline = e810_put_inline,
	.put_inval = e810_put_inval,
	.put_bind = e810_put_bind,
	.shift_inline = { 8, 39, 101 },
	.imm_frag = true,
	.pad_frags = true,
};

const struct irdma_wq_fmt irdma_wq_fmt_x722 = {
	.put_frag = x722_put_frag,
	.frag_count = x722_frag_count,
	.inline_quanta = x722_inline_quanta,
	.put_inline = x722_put_inline,
	.put_inval = x722_put_inval,
	.put_bind = x722_put_bind,
	.shift_inline = { 16, 48, U32_MAX },
	.min_rq_shift = 2,
	.guard_next = true,
};

/**
 * irdma_wq_shift - log2 of the quanta that sizing grants to a work request
 * @fmt: entry format
 * @num_sge: fragments, immediate data included
 * @inline_len: largest inline length, bytes
 *
 * User space computes the same (spec 02, 5.2), so the two must agree exactly.
 *
 * Return: 0 to 3.
 */
u8 irdma_wq_shift(const struct irdma_wq_fmt *fmt, u32 num_sge, u32 inline_len)
{
	static const u8 max_sge[] = { 1, 3, 7 };
	u8 shift;

	for (shift = 0; shift < 3; shift++)
		if (num_sge <= max_sge[shift] && inline_len <= fmt->shift_inline[shift])
			break;
	return shift;
}

/**
 * irdma_wq_depth - size of a ring
 * @num_wr: work requests that must fit
 * @shift: from irdma_wq_shift()
 * @reserve: quanta that cannot be posted, IRDMA_SQ_RESERVE or IRDMA_RQ_RESERVE
 * @min_wqes: smallest ring, entries
 * @max_quanta: largest ring, quanta
 * @quanta: result, a power of two
 *
 * Return: 0, or -EINVAL if the ring would be too large (spec 02, 5.2).
 */
int irdma_wq_depth(u64 num_wr, u8 shift, u32 reserve, u32 min_wqes, u32 max_quanta, u32 *quanta)
{
	u64 need;

	if (num_wr > max_quanta)
		return -EINVAL;
	need = max_t(u64, roundup_pow_of_two((num_wr << shift) + reserve),
		     (u64)min_wqes << shift);
	if (need > max_quanta)
		return -EINVAL;
	*quanta = need;
	return 0;
}

static __le64 *sq_wqe(const struct irdma_sq *sq, u32 idx)
{
	return sq->ring + (size_t)idx * IRDMA_QUANTUM_WORDS;
}

static void publish(__le64 *wqe, u64 hdr)
{
	/* The device may fetch the entry as soon as it sees the header. */
	dma_wmb();
	WRITE_ONCE(wqe[IRDMA_WQE_HDR], cpu_to_le64(hdr));
}

/* The 128 quanta after the next 128 must not look valid in the pass that reaches them (5.3). */
static void sq_clean_ahead(struct irdma_sq *sq, u32 idx)
{
	u32 target = (idx + IRDMA_SQ_LOOKAHEAD) & (sq->depth - 1);
	bool polarity = target ? sq->polarity : !sq->polarity;

	memset(sq_wqe(sq, target), polarity ? 0x00 : 0xff, IRDMA_SQ_LOOKAHEAD * IRDMA_QUANTUM);
}

static void sq_step(struct irdma_sq *sq, u32 *idx, u32 quanta)
{
	*idx += quanta;
	if (*idx == sq->depth) {
		*idx = 0;
		sq->polarity = !sq->polarity;
	}
}

static void sq_pad(struct irdma_sq *sq, u32 *idx)
{
	__le64 *wqe = sq_wqe(sq, *idx);

	memset(wqe, 0, IRDMA_WQE_HDR * sizeof(*wqe));
	sq->wrs[*idx] = (struct irdma_sq_wr) { .quanta = 1, .flags = IRDMA_WR_HIDDEN };
	publish(wqe, FIELD_PREP(WQE_OPCODE, IRDMA_OP_NOP) | FIELD_PREP(WQE_VALID, sq->polarity));
	sq_step(sq, idx, 1);
}

/*
 * Find room for @quanta that do not cross a chunk; what remains of the chunk is filled with
 * NOPs.  Words 0 to 2 of the entry are zero then.  Its further quanta still look invalid:
 * each may be fetched before the header is, so each becomes valid by its own last word.
 * Returns NULL, and changes nothing, if the queue is full.
 */
static __le64 *sq_reserve(struct irdma_sq *sq, u32 quanta, u32 *idx)
{
	u32 used = (sq->head - smp_load_acquire(&sq->tail)) & (sq->depth - 1);
	u32 left = sq->chunk - (sq->head & (sq->chunk - 1));
	u32 pad = quanta > left ? left : 0;
	__le64 *wqe;

	if (used + pad + quanta + IRDMA_SQ_RESERVE - 1 > sq->depth)
		return NULL;

	*idx = sq->head;
	while (pad--)
		sq_pad(sq, idx);
	if (*idx % IRDMA_SQ_LOOKAHEAD == 0)
		sq_clean_ahead(sq, *idx);

	wqe = sq_wqe(sq, *idx);
	memset(wqe, 0, IRDMA_WQE_HDR * sizeof(*wqe));
	return wqe;
}

/* Record the entry at @idx, move the head behind it, and hand it to the device. */
static void sq_commit(struct irdma_sq *sq, __le64 *wqe, u32 idx, const struct irdma_sq_wr *wr,
		      u64 hdr)
{
	hdr |= FIELD_PREP(WQE_SIGNALED, wr->flags & IRDMA_WR_SIGNALED ? 1 : 0) |
	       FIELD_PREP(WQE_VALID, sq->polarity);
	sq->wrs[idx] = *wr;
	if (sq->fmt->guard_next && wr->quanta == 1 && !(idx & 1))
		wqe[IRDMA_QUANTUM_WORDS + IRDMA_WQE_HDR] =
			cpu_to_le64(FIELD_PREP(WQE_VALID, sq->polarity ? 0 : 1));
	sq_step(sq, &idx, wr->quanta);
	/* The completion may be polled before we return, so the head moves first. */
	smp_store_release(&sq->head, idx);
	publish(wqe, hdr);
}

/**
 * irdma_sq_init - make a send queue ready for its first entry
 * @sq: ring, records, format, depth and chunk are set; the ring is zeroed
 * @first_idx: entries below belong to the connection set-up (irdma_conn_wqes())
 */
void irdma_sq_init(struct irdma_sq *sq, u32 first_idx)
{
	sq->head = first_idx;
	sq->tail = first_idx;
	sq->polarity = true;
}

static void put_sges(const struct irdma_wq_fmt *fmt, __le64 *wqe, u32 slot,
		     const struct ib_sge *sges, u32 num_sge, bool polarity)
{
	u32 i;

	for (i = 0; i < num_sge; i++, slot++)
		fmt->put_frag(slot ? wqe + IRDMA_QUANTUM_WORDS + 2 * (slot - 1) : wqe,
			      sges[i].addr, sges[i].length, sges[i].lkey, polarity);
	/* Every quantum must end in a valid bit. */
	if (!slot)
		fmt->put_frag(wqe, 0, 0, 0, polarity);
	else if (fmt->pad_frags && slot % 2 == 0)
		fmt->put_frag(wqe + IRDMA_QUANTUM_WORDS + 2 * (slot - 1), 0, 0, 0, polarity);
}

/**
 * irdma_sq_put_msg - post a write, read or send
 * @sq: send queue, its producer lock held
 * @msg: operands; the caller has checked fragment count and inline length
 *
 * Return: 0, or -ENOMEM if the queue is full (it is unchanged then).
 */
int irdma_sq_put_msg(struct irdma_sq *sq, const struct irdma_sq_msg *msg)
{
	const struct irdma_wq_fmt *fmt = sq->fmt;
	u32 len = sges_len(msg->sges, msg->num_sge);
	u32 frags = msg->num_sge + msg->has_imm;
	struct irdma_sq_wr wr = {
		.wr_id = msg->wr_id,
		.len = len,
		.wc_op = msg->wc_op,
		.flags = msg->signaled ? IRDMA_WR_SIGNALED : 0,
	};
	__le64 *wqe;
	u64 hdr;
	u32 idx;

	if (msg->inline_data)
		wr.quanta = fmt->inline_quanta(len);
	else
		wr.quanta = 1 + (fmt->frag_count(frags) + 1) / 2;
	wqe = sq_reserve(sq, wr.quanta, &idx);
	if (!wqe)
		return -ENOMEM;

	hdr = FIELD_PREP(WQE_OPCODE, msg->op) | FIELD_PREP(WQE_STAG, msg->stag) |
	      FIELD_PREP(WQE_READ_FENCE, msg->read_fence) |
	      FIELD_PREP(WQE_LOCAL_FENCE, msg->local_fence) |
	      FIELD_PREP(WQE_IMM, msg->has_imm);
	if (msg->inline_data) {
		fmt->put_inline(wqe, msg->sges, msg->num_sge, sq->polarity);
		hdr |= WQE_INLINE | FIELD_PREP(WQE_INLINE_LEN, len);
	} else {
		put_sges(fmt, wqe, msg->has_imm, msg->sges, msg->num_sge, sq->polarity);
		hdr |= FIELD_PREP(WQE_FRAG_COUNT, fmt->frag_count(frags));
	}
	if (msg->has_imm)
		wqe[0] = cpu_to_le64(msg->imm);
	wqe[2] = cpu_to_le64(msg->remote_addr);
	sq_commit(sq, wqe, idx, &wr, hdr);
	return 0;
}

/**
 * irdma_sq_put_local_inv - post a local invalidate
 * @sq: send queue, its producer lock held
 * @wr_id: of the consumer
 * @stag: STag that becomes invalid
 * @signaled: wants a success completion
 * @read_fence: wait for earlier reads; earlier local operations are always waited for
 *
 * Return: 0, or -ENOMEM if the queue is full.
 */
int irdma_sq_put_local_inv(struct irdma_sq *sq, u64 wr_id, u32 stag, bool signaled, bool read_fence)
{
	struct irdma_sq_wr wr = {
		.wr_id = wr_id,
		.wc_op = IB_WC_LOCAL_INV,
		.quanta = 1,
		.flags = signaled ? IRDMA_WR_SIGNALED : 0,
	};
	__le64 *wqe;
	u32 idx;

	wqe = sq_reserve(sq, wr.quanta, &idx);
	if (!wqe)
		return -ENOMEM;
	sq->fmt->put_inval(wqe, stag);
	sq_commit(sq, wqe, idx, &wr,
		  FIELD_PREP(WQE_OPCODE, IRDMA_OP_LOCAL_INV) | WQE_LOCAL_FENCE |
		  FIELD_PREP(WQE_READ_FENCE, read_fence));
	return 0;
}

/**
 * irdma_sq_put_fast_reg - post a fast register of a VA-based region
 * @sq: send queue, its producer lock held
 * @reg: operands
 *
 * Return: 0, or -ENOMEM if the queue is full.
 */
int irdma_sq_put_fast_reg(struct irdma_sq *sq, const struct irdma_sq_reg *reg)
{
	struct irdma_sq_wr wr = {
		.wr_id = reg->wr_id,
		.wc_op = IB_WC_REG_MR,
		.quanta = 1,
		.flags = reg->signaled ? IRDMA_WR_SIGNALED : 0,
	};
	u32 first_pble = reg->use_pbl ? reg->first_pble : 0;
	__le64 *wqe;
	u32 idx;

	wqe = sq_reserve(sq, wr.quanta, &idx);
	if (!wqe)
		return -ENOMEM;
	wqe[0] = cpu_to_le64(reg->va);
	wqe[1] = cpu_to_le64((reg->page0 & REG_PAGE0) | FIELD_PREP(REG_PBLE_HI, first_pble >> 16));
	wqe[2] = cpu_to_le64(FIELD_PREP(REG_LEN, reg->len) |
			     FIELD_PREP(REG_PBLE_LO, first_pble & 0xffff));
	sq_commit(sq, wqe, idx, &wr,
		  FIELD_PREP(WQE_OPCODE, IRDMA_OP_FAST_REG) | FIELD_PREP(WQE_STAG, reg->stag) |
		  FIELD_PREP(WQE_LPBL_SIZE, reg->use_pbl) |
		  FIELD_PREP(WQE_PAGE_SIZE, reg->page_size_code) |
		  FIELD_PREP(WQE_RIGHTS, reg->rights) | WQE_VA_BASED | WQE_LOCAL_FENCE |
		  FIELD_PREP(WQE_READ_FENCE, reg->read_fence));
	return 0;
}

/**
 * irdma_sq_put_bind - post the bind of a memory window
 * @sq: send queue, its producer lock held
 * @bind: operands
 *
 * Return: 0, or -ENOMEM if the queue is full.
 */
int irdma_sq_put_bind(struct irdma_sq *sq, const struct irdma_sq_bind *bind)
{
	struct irdma_sq_wr wr = {
		.wr_id = bind->wr_id,
		.wc_op = IB_WC_BIND_MW,
		.quanta = 1,
		.flags = bind->signaled ? IRDMA_WR_SIGNALED : 0,
	};
	__le64 *wqe;
	u32 idx;

	wqe = sq_reserve(sq, wr.quanta, &idx);
	if (!wqe)
		return -ENOMEM;
	wqe[0] = cpu_to_le64(bind->va_based ? bind->va : 0);
	sq->fmt->put_bind(wqe, bind->mr_stag, bind->mw_stag);
	wqe[2] = cpu_to_le64(bind->len);
	sq_commit(sq, wqe, idx, &wr,
		  FIELD_PREP(WQE_OPCODE, IRDMA_OP_BIND_MW) |
		  FIELD_PREP(WQE_RIGHTS, bind->rights) |
		  FIELD_PREP(WQE_VA_BASED, bind->va_based) |
		  FIELD_PREP(WQE_MW_TYPE1, bind->mw_type1) | WQE_LOCAL_FENCE |
		  FIELD_PREP(WQE_READ_FENCE, bind->read_fence));
	return 0;
}

/**
 * irdma_rq_init - make a receive queue ready for its first entry
 * @rq: ring, records, format, size and shift are set; the ring is zeroed
 */
void irdma_rq_init(struct irdma_rq *rq)
{
	rq->head = 0;
	rq->tail = 0;
	rq->polarity = true;
}

/**
 * irdma_rq_put - post a receive
 * @rq: receive queue, its producer lock held
 * @wr_id: of the consumer
 * @sges: buffers
 * @num_sge: their number; the caller has checked it
 *
 * Return: 0, or -ENOMEM if the queue is full.
 */
int irdma_rq_put(struct irdma_rq *rq, u64 wr_id, const struct ib_sge *sges, u32 num_sge)
{
	u32 next = (rq->head + 1) & (rq->size - 1);
	bool polarity = rq->polarity;
	__le64 *wqe;

	if (next == smp_load_acquire(&rq->tail))
		return -ENOMEM;

	wqe = rq->ring + ((size_t)rq->head << rq->shift) * IRDMA_QUANTUM_WORDS;
	wqe[2] = 0;
	put_sges(rq->fmt, wqe, 0, sges, num_sge, polarity);
	rq->wr_ids[rq->head] = wr_id;
	if (!next)
		rq->polarity = !polarity;
	smp_store_release(&rq->head, next);
	publish(wqe, FIELD_PREP(WQE_FRAG_COUNT, rq->fmt->frag_count(num_sge)) |
		     FIELD_PREP(WQE_VALID, polarity));
	return 0;
}

static void put_rts_ae(__le64 *ring)
{
	__le64 *nop = ring + IRDMA_QUANTUM_WORDS, *ae = nop + IRDMA_QUANTUM_WORDS;

	memset(nop, 0, IRDMA_WQE_HDR * sizeof(*nop));
	memset(ae, 0, IRDMA_WQE_HDR * sizeof(*ae));
	publish(ae, FIELD_PREP(WQE_OPCODE, IRDMA_OP_GEN_RTS_AE) | WQE_VALID);
	publish(nop, FIELD_PREP(WQE_OPCODE, IRDMA_OP_NOP) | WQE_LOCAL_FENCE | WQE_VALID);
}

/**
 * irdma_put_lsmm - first entries of a passive QP: the last streaming-mode message (5.9)
 * @fmt: entry format
 * @ring: first quantum of the SQ
 * @lsmm: MPA reply
 * @rts_ae: have AE 0x050E raised when the stream is up
 *
 * The QP is not in RTS yet, so the device does not look at them.
 */
void irdma_put_lsmm(const struct irdma_wq_fmt *fmt, __le64 *ring, const struct irdma_lsmm *lsmm,
		    bool rts_ae)
{
	if (rts_ae)
		put_rts_ae(ring);
	fmt->put_frag(ring, lsmm->addr, lsmm->len, lsmm->stag, true);
	ring[2] = 0;
	publish(ring, FIELD_PREP(WQE_OPCODE, IRDMA_OP_SEND) | WQE_STREAM_MODE | WQE_WAIT_FOR_PDU |
		      WQE_VALID);
}

/**
 * irdma_put_rtr - first entries of an active QP: the "ready to receive" message (5.9)
 * @fmt: entry format
 * @ring: first quantum of the SQ
 * @read: zero-length read, otherwise zero-length write
 * @rts_ae: have AE 0x050E raised when the stream is up
 *
 * The QP is not in RTS yet, so the device does not look at them.
 */
void irdma_put_rtr(const struct irdma_wq_fmt *fmt, __le64 *ring, bool read, bool rts_ae)
{
	if (rts_ae)
		put_rts_ae(ring);
	fmt->put_frag(ring, 0, 0, read ? RTR_READ_LOCAL_STAG : 0, true);
	ring[2] = 0;
	publish(ring, FIELD_PREP(WQE_OPCODE, read ? IRDMA_OP_READ : IRDMA_OP_WRITE) |
		      FIELD_PREP(WQE_STAG, read ? RTR_READ_REMOTE_STAG : 0) | WQE_VALID);
}

/**
 * irdma_put_no_rtr - first entries of an active QP that waits for the ULP to speak
 * @ring: first quantum of the SQ
 * @rts_ae: have AE 0x050E raised when the stream is up
 *
 * The QP is not in RTS yet, so the device does not look at them.
 */
void irdma_put_no_rtr(__le64 *ring, bool rts_ae)
{
	if (rts_ae)
		put_rts_ae(ring);
	memset(ring, 0, IRDMA_WQE_HDR * sizeof(*ring));
	publish(ring, FIELD_PREP(WQE_OPCODE, IRDMA_OP_NOP) | WQE_VALID);
}

/**
 * irdma_sq_retire - an SQ completion arrived: forget all entries up to it
 * @sq: send queue, lock of its CQ held
 * @idx: index of the entry, from hardware, unchecked
 * @failed: the entry failed, so it completes even if it is not signaled
 * @wr: the entry's record
 *
 * Return: false if no such entry is outstanding, or it must not complete: entries of the
 * connection set-up, padding, unsignaled ones.
 */
bool irdma_sq_retire(struct irdma_sq *sq, u32 idx, bool failed, struct irdma_sq_wr *wr)
{
	u32 mask = sq->depth - 1;
	u32 used = (smp_load_acquire(&sq->head) - sq->tail) & mask;

	if (idx > mask || ((idx - sq->tail) & mask) >= used)
		return false;
	*wr = sq->wrs[idx];
	if ((wr->flags & IRDMA_WR_HIDDEN) || (!failed && !(wr->flags & IRDMA_WR_SIGNALED)))
		return false;
	smp_store_release(&sq->tail, (idx + wr->quanta) & mask);
	return true;
}

/**
 * irdma_sq_flush_one - take the oldest outstanding work request of a flushed queue
 * @sq: send queue, lock of its CQ held
 * @wr: its record
 *
 * Return: false if there is none.  Padding is skipped.
 */
bool irdma_sq_flush_one(struct irdma_sq *sq, struct irdma_sq_wr *wr)
{
	u32 head = smp_load_acquire(&sq->head);
	u32 tail = sq->tail;
	bool found = false;

	while (tail != head && !found) {
		*wr = sq->wrs[tail];
		tail = (tail + wr->quanta) & (sq->depth - 1);
		found = !(wr->flags & IRDMA_WR_HIDDEN);
	}
	smp_store_release(&sq->tail, tail);
	return found;
}

/**
 * irdma_rq_retire - an RQ completion arrived
 * @rq: receive queue, lock of its CQ held
 * @idx: index of the entry in quanta, from hardware, unchecked
 * @wr_id: of the entry
 *
 * Return: false if no such entry is outstanding.
 */
bool irdma_rq_retire(struct irdma_rq *rq, u32 idx, u64 *wr_id)
{
	u32 mask = rq->size - 1;
	u32 used = (smp_load_acquire(&rq->head) - rq->tail) & mask;

	idx >>= rq->shift;
	if (idx > mask || ((idx - rq->tail) & mask) >= used)
		return false;
	*wr_id = rq->wr_ids[idx];
	smp_store_release(&rq->tail, (idx + 1) & mask);
	return true;
}

/**
 * irdma_rq_flush_one - take the oldest outstanding receive of a flushed queue
 * @rq: receive queue, lock of its CQ held
 * @wr_id: of the entry
 *
 * Return: false if there is none.
 */
bool irdma_rq_flush_one(struct irdma_rq *rq, u64 *wr_id)
{
	if (irdma_rq_empty(rq))
		return false;
	*wr_id = rq->wr_ids[rq->tail];
	smp_store_release(&rq->tail, (rq->tail + 1) & (rq->size - 1));
	return true;
}

static const __le64 *cq_slot(const struct irdma_cq_ring *ring, u32 idx)
{
	return ring->slots + (size_t)idx * IRDMA_QUANTUM_WORDS;
}

static bool slot_ready(const __le64 *slot, bool polarity)
{
	return !!(le64_to_cpu(READ_ONCE(slot[IRDMA_WQE_HDR])) & CQE_VALID) == polarity;
}

static void cq_step(struct irdma_cq_ring *ring)
{
	if (++ring->head == ring->size) {
		ring->head = 0;
		ring->polarity = !ring->polarity;
	}
}

/**
 * irdma_cq_ring_ready - is a completion waiting?
 * @ring: completion queue buffer
 *
 * Return: true if the next slot is valid.
 */
bool irdma_cq_ring_ready(const struct irdma_cq_ring *ring)
{
	return slot_ready(cq_slot(ring, ring->head), ring->polarity);
}

/**
 * irdma_cq_ring_next - take the next completion
 * @ring: completion queue buffer, its lock held
 * @cqe: the completion
 *
 * An extended completion is taken when both of its slots are valid.  The caller tells the
 * device the new head (irdma_cq_shadow_set_head()).
 *
 * Return: false if there is none.
 */
bool irdma_cq_ring_next(struct irdma_cq_ring *ring, struct irdma_cqe *cqe)
{
	const __le64 *slot = cq_slot(ring, ring->head);
	const __le64 *ext = NULL;
	u64 w[IRDMA_QUANTUM_WORDS], ext_hdr = 0;

	if (!irdma_cq_ring_ready(ring))
		return false;
	dma_rmb();
	w[3] = le64_to_cpu(slot[3]);
	if (w[3] & CQE_EXTENDED) {
		u32 next = ring->head + 1 == ring->size ? 0 : ring->head + 1;

		ext = cq_slot(ring, next);
		if (!slot_ready(ext, next ? ring->polarity : !ring->polarity))
			return false;
		dma_rmb();
		ext_hdr = le64_to_cpu(ext[3]);
	}
	w[0] = le64_to_cpu(slot[0]);
	w[1] = le64_to_cpu(slot[1]);
	w[2] = le64_to_cpu(slot[2]);

	*cqe = (struct irdma_cqe) {
		.context = w[1],
		.qpn = FIELD_GET(CQE_QPN, w[2]),
		.len = FIELD_GET(CQE_LEN, w[0]),
		.inv_stag = FIELD_GET(CQE_INV_STAG, w[2]),
		.major = w[3] & CQE_ERROR ? FIELD_GET(CQE_MAJOR, w[3]) : 0,
		.minor = w[3] & CQE_ERROR ? FIELD_GET(CQE_MINOR, w[3]) : 0,
		.wqe_idx = FIELD_GET(CQE_WQE_IDX, w[3]),
		.op = FIELD_GET(CQE_OPCODE, w[3]),
		.sq = w[3] & CQE_SQ,
		.error = w[3] & CQE_ERROR,
		.solicited = w[3] & CQE_SOLICITED,
		.invalidated = !(w[3] & CQE_SQ) && (w[3] & CQE_INVALIDATED),
		.has_imm = ext && (ext_hdr & CQE_EXT_IMM_VALID),
	};
	if (cqe->has_imm)
		cqe->imm = FIELD_GET(CQE_EXT_IMM, le64_to_cpu(ext[0]));

	cq_step(ring);
	if (ext)
		cq_step(ring);
	return true;
}

/**
 * irdma_cq_shadow_set_head - tell the device how far the CQ was read
 * @shadow: CQ shadow area
 * @head: next slot to read
 */
void irdma_cq_shadow_set_head(__le64 *shadow, u32 head)
{
	WRITE_ONCE(shadow[CQ_SHADOW_HEAD], cpu_to_le64(head));
}

/**
 * irdma_cq_shadow_arm - ask for an event; the doorbell must follow
 * @shadow: CQ shadow area
 * @solicited_only: only solicited completions count
 */
void irdma_cq_shadow_arm(__le64 *shadow, bool solicited_only)
{
	u64 arm = le64_to_cpu(shadow[CQ_SHADOW_ARM]);

	arm = (arm & CQ_ARM_SELECT) | CQ_ARM_NEXT_SE | FIELD_PREP(CQ_ARM_NEXT, solicited_only ? 0 : 1) |
	      FIELD_PREP(CQ_ARM_SEQ, (FIELD_GET(CQ_ARM_SEQ, arm) + 1) & 3);
	WRITE_ONCE(shadow[CQ_SHADOW_ARM], cpu_to_le64(arm));
	/* The doorbell must find the new sequence number. */
	dma_wmb();
}

/**
 * irdma_cq_shadow_switched - the consumer is done with buffers that a resize replaced
 * @shadow: CQ shadow area
 * @buffers: their number
 */
void irdma_cq_shadow_switched(__le64 *shadow, u32 buffers)
{
	u64 arm = le64_to_cpu(shadow[CQ_SHADOW_ARM]);
	u64 select = (FIELD_GET(CQ_ARM_SELECT, arm) + buffers) & FIELD_MAX(CQ_ARM_SELECT);

	arm = (arm & ~CQ_ARM_SELECT) | FIELD_PREP(CQ_ARM_SELECT, select);
	WRITE_ONCE(shadow[CQ_SHADOW_ARM], cpu_to_le64(arm));
}
