/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Work queue entries and completions as the hardware reads and writes them (spec 02,
 * sections 5 and 6): pure functions on memory, without locks and devices.  Callers hold
 * the lock of the queue.  wq.c compiles in user space too (tests/unit).
 */
#ifndef IRDMA_WQ_H
#define IRDMA_WQ_H

#include <linux/bits.h>
#include <linux/types.h>
#include <rdma/ib_verbs.h>

#include "lsmm.h"

#define IRDMA_QUANTUM		32	/* bytes, unit of ring sizes and WQE indexes */
#define IRDMA_QUANTUM_WORDS	4
#define IRDMA_MAX_FRAGS		13
#define IRDMA_SQ_RESERVE	258	/* quanta of an SQ that cannot be posted (5.2) */
#define IRDMA_RQ_RESERVE	1
#define IRDMA_SQ_LOOKAHEAD	128	/* quanta that are cleaned ahead of the producer (5.3) */

/* Word indexes in a WQE or CQE. */
#define IRDMA_WQE_HDR		3

/* SQ operations (5.5). */
enum irdma_sq_op {
	IRDMA_OP_WRITE		= 0x00,
	IRDMA_OP_READ		= 0x01,
	IRDMA_OP_SEND		= 0x03,
	IRDMA_OP_SEND_INV	= 0x04,
	IRDMA_OP_SEND_SOL	= 0x05,
	IRDMA_OP_SEND_SOL_INV	= 0x06,
	IRDMA_OP_BIND_MW	= 0x08,
	IRDMA_OP_FAST_REG	= 0x09,
	IRDMA_OP_LOCAL_INV	= 0x0a,
	IRDMA_OP_READ_INV	= 0x0b,
	IRDMA_OP_NOP		= 0x0c,
	IRDMA_OP_WRITE_SOL	= 0x0d,
	IRDMA_OP_GEN_RTS_AE	= 0x30,
};

/* Error codes of a CQE (6.4). */
#define IRDMA_CQE_MAJOR_FLUSH	1

enum irdma_flush_code {
	IRDMA_FLUSH_NONE		= 0,
	IRDMA_FLUSH_GENERAL		= 1,
	IRDMA_FLUSH_PROT		= 2,
	IRDMA_FLUSH_REM_ACCESS		= 3,
	IRDMA_FLUSH_LOC_QP_OP		= 4,
	IRDMA_FLUSH_REM_OP		= 5,
	IRDMA_FLUSH_LOC_LEN		= 6,
	IRDMA_FLUSH_FATAL		= 7,
	IRDMA_FLUSH_RETRY_EXC		= 8,
	IRDMA_FLUSH_MW_BIND		= 9,
	IRDMA_FLUSH_REM_INV_REQ		= 10,
	IRDMA_FLUSH_RNR_RETRY_EXC	= 11,
};

/**
 * struct irdma_wq_fmt - entry formats of one hardware generation (5.2 to 5.6)
 * @put_frag: write one 16-byte fragment; @valid is the polarity of the ring
 * @frag_count: additional-fragment count of the header for @frags fragments
 * @inline_quanta: quanta of a WQE with @len bytes of inline data
 * @put_inline: copy inline data around the header; @polarity as @valid
 * @put_inval: operand of a local invalidate
 * @put_bind: operands of a window bind
 * @shift_inline: largest inline length of shift 0, 1 and 2
 * @min_rq_shift: least shift of an RQ, whatever its fragments
 * @imm_frag: an SQ needs room for one more fragment (immediate data)
 * @pad_frags: an even number of fragments gets a dummy one
 * @guard_next: the device fetches 64 bytes, so the next quantum must not look valid
 */
struct irdma_wq_fmt {
	void (*put_frag)(__le64 *frag, u64 addr, u32 len, u32 stag, bool valid);
	u32 (*frag_count)(u32 frags);
	u32 (*inline_quanta)(u32 len);
	void (*put_inline)(__le64 *wqe, const struct ib_sge *sges, u32 num_sge, bool polarity);
	void (*put_inval)(__le64 *wqe, u32 stag);
	void (*put_bind)(__le64 *wqe, u32 mr_stag, u32 mw_stag);
	u32 shift_inline[3];
	u8 min_rq_shift;
	bool imm_frag;
	bool pad_frags;
	bool guard_next;
};

extern const struct irdma_wq_fmt irdma_wq_fmt_e810;
extern const struct irdma_wq_fmt irdma_wq_fmt_x722;

/* Flags of struct irdma_sq_wr. */
#define IRDMA_WR_SIGNALED	BIT(0)
#define IRDMA_WR_HIDDEN		BIT(1)	/* padding: never completes */

/**
 * struct irdma_sq_wr - what the driver remembers of an SQ entry until it completes
 * @wr_id: of the consumer
 * @len: bytes that a success completion reports
 * @wc_op: enum ib_wc_opcode
 * @quanta: size of the entry
 * @flags: IRDMA_WR_*
 */
struct irdma_sq_wr {
	u64 wr_id;
	u32 len;
	u8 wc_op;
	u8 quanta;
	u8 flags;
};

/**
 * struct irdma_sq - a send queue
 * @ring: @depth quanta
 * @wrs: one record a quantum, valid at the first quantum of each entry
 * @fmt: entry format
 * @depth: quanta, power of two
 * @chunk: an entry never crosses a multiple of this; quanta, power of two
 * @head: next quantum to write; written by the producer with release semantics
 * @tail: first quantum that did not complete; written by the consumer likewise
 * @polarity: valid bit of the current lap
 */
struct irdma_sq {
	__le64 *ring;
	struct irdma_sq_wr *wrs;
	const struct irdma_wq_fmt *fmt;
	u32 depth;
	u32 chunk;
	u32 head;
	u32 tail;
	bool polarity;
};

/**
 * struct irdma_rq - a receive queue
 * @ring: @size entries of 32 << @shift bytes
 * @wr_ids: of the posted entries
 * @fmt: entry format
 * @size: entries, power of two
 * @shift: log2 of the quanta of an entry
 * @head: next entry to write; written by the producer with release semantics
 * @tail: first entry that did not complete; written by the consumer likewise
 * @polarity: valid bit of the current lap
 */
struct irdma_rq {
	__le64 *ring;
	u64 *wr_ids;
	const struct irdma_wq_fmt *fmt;
	u32 size;
	u8 shift;
	u32 head;
	u32 tail;
	bool polarity;
};

/**
 * struct irdma_sq_msg - operands of the operations that move data
 * @wr_id: of the consumer
 * @op: IRDMA_OP_WRITE*, READ*, SEND*
 * @wc_op: opcode of the completion
 * @sges: local buffers
 * @num_sge: their number
 * @remote_addr: tagged offset at the peer (write, read)
 * @stag: remote STag (write, read) or STag to invalidate (send)
 * @imm: immediate data, numeric
 * @has_imm: @imm is sent
 * @inline_data: copy the data into the entry
 * @signaled: wants a success completion
 * @read_fence: wait for earlier reads
 * @local_fence: wait for earlier local operations
 */
struct irdma_sq_msg {
	u64 wr_id;
	u8 op;
	u8 wc_op;
	const struct ib_sge *sges;
	u32 num_sge;
	u64 remote_addr;
	u32 stag;
	u32 imm;
	bool has_imm;
	bool inline_data;
	bool signaled;
	bool read_fence;
	bool local_fence;
};

/**
 * struct irdma_sq_reg - operands of a fast register (5.4)
 * @wr_id: of the consumer
 * @va: first address of the region
 * @len: bytes
 * @page0: bus address of the first page
 * @first_pble: index of the list of pages, used if @use_pbl
 * @use_pbl: more than one page
 * @stag: index << 8 | key
 * @page_size_code: HPAGESIZE
 * @rights: STAGRIGHTS
 * @signaled: wants a success completion
 * @read_fence: wait for earlier reads
 */
struct irdma_sq_reg {
	u64 wr_id;
	u64 va;
	u64 len;
	u64 page0;
	u32 first_pble;
	bool use_pbl;
	u32 stag;
	u8 page_size_code;
	u8 rights;
	bool signaled;
	bool read_fence;
};

/**
 * struct irdma_sq_bind - operands of a window bind (5.4)
 * @wr_id: of the consumer
 * @va: first address (0 if zero-based)
 * @len: bytes
 * @mr_stag: STag of the region
 * @mw_stag: new STag of the window
 * @rights: STAGRIGHTS
 * @va_based: addressed by VA
 * @mw_type1: a type 1 window
 * @signaled: wants a success completion
 * @read_fence: wait for earlier reads
 */
struct irdma_sq_bind {
	u64 wr_id;
	u64 va;
	u64 len;
	u32 mr_stag;
	u32 mw_stag;
	u8 rights;
	bool va_based;
	bool mw_type1;
	bool signaled;
	bool read_fence;
};

u8 irdma_wq_shift(const struct irdma_wq_fmt *fmt, u32 num_sge, u32 inline_len);
int irdma_wq_depth(u64 num_wr, u8 shift, u32 reserve, u32 min_wqes, u32 max_quanta, u32 *quanta);

void irdma_sq_init(struct irdma_sq *sq, u32 first_idx);
int irdma_sq_put_msg(struct irdma_sq *sq, const struct irdma_sq_msg *msg);
int irdma_sq_put_local_inv(struct irdma_sq *sq, u64 wr_id, u32 stag, bool signaled, bool read_fence);
int irdma_sq_put_fast_reg(struct irdma_sq *sq, const struct irdma_sq_reg *reg);
int irdma_sq_put_bind(struct irdma_sq *sq, const struct irdma_sq_bind *bind);

void irdma_rq_init(struct irdma_rq *rq);
int irdma_rq_put(struct irdma_rq *rq, u64 wr_id, const struct ib_sge *sges, u32 num_sge);

/* First entries of every iWARP SQ (5.9); @rts_ae: three entries, not one. */
static inline u32 irdma_conn_wqes(bool rts_ae)
{
	return rts_ae ? 3 : 1;
}

void irdma_put_lsmm(const struct irdma_wq_fmt *fmt, __le64 *ring, const struct irdma_lsmm *lsmm,
		    bool rts_ae);
void irdma_put_rtr(const struct irdma_wq_fmt *fmt, __le64 *ring, bool read, bool rts_ae);
void irdma_put_no_rtr(__le64 *ring, bool rts_ae);

/* Producer and consumer run under different locks; the indexes order the records. */
bool irdma_sq_retire(struct irdma_sq *sq, u32 idx, bool failed, struct irdma_sq_wr *wr);
bool irdma_sq_flush_one(struct irdma_sq *sq, struct irdma_sq_wr *wr);
bool irdma_rq_retire(struct irdma_rq *rq, u32 idx, u64 *wr_id);
bool irdma_rq_flush_one(struct irdma_rq *rq, u64 *wr_id);

static inline bool irdma_sq_empty(const struct irdma_sq *sq)
{
	return smp_load_acquire(&sq->head) == sq->tail;
}

static inline bool irdma_rq_empty(const struct irdma_rq *rq)
{
	return smp_load_acquire(&rq->head) == rq->tail;
}

/**
 * struct irdma_cqe - a completion, decoded (6.1)
 * @context: completion context of the QP
 * @qpn: QP number
 * @len: payload bytes (RQ)
 * @inv_stag: STag that the peer invalidated, valid if @invalidated
 * @imm: immediate data, numeric, valid if @has_imm
 * @major: error class
 * @minor: error code
 * @wqe_idx: index of the entry in quanta
 * @op: operation
 * @sq: of the send queue
 * @error: not a success
 * @solicited: solicited event
 * @invalidated: see @inv_stag
 * @has_imm: see @imm
 */
struct irdma_cqe {
	u64 context;
	u32 qpn;
	u32 len;
	u32 inv_stag;
	u32 imm;
	u16 major;
	u16 minor;
	u16 wqe_idx;
	u8 op;
	bool sq;
	bool error;
	bool solicited;
	bool invalidated;
	bool has_imm;
};

/**
 * struct irdma_cq_ring - the consumer's side of a completion queue buffer
 * @slots: @size slots of 32 bytes
 * @size: slots
 * @head: next slot to read
 * @polarity: valid bit of the current lap, starts as true
 */
struct irdma_cq_ring {
	const __le64 *slots;
	u32 size;
	u32 head;
	bool polarity;
};

bool irdma_cq_ring_next(struct irdma_cq_ring *ring, struct irdma_cqe *cqe);
bool irdma_cq_ring_ready(const struct irdma_cq_ring *ring);
/* The CQ shadow area (6.3): eight words. */
void irdma_cq_shadow_set_head(__le64 *shadow, u32 head);
void irdma_cq_shadow_arm(__le64 *shadow, bool solicited_only);
void irdma_cq_shadow_switched(__le64 *shadow, u32 buffers);

#endif
