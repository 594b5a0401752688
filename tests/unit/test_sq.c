// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Send queue: entry bytes by spec 02, 5.4 to 5.6 and 5.9, and a reader that walks the ring as
 * the device does (5.3), started at every position.
 */
#include <errno.h>

#include "test.h"
#include "wq.h"

#define DEPTH		512
#define VALID		(1ULL << 63)
#define SIGNALED	(1ULL << 62)
#define OP(n)		((u64)(n) << 32)
#define FRAGS(n)	((u64)(n) << 38)

static struct irdma_sq sq;
static __le64 ring[DEPTH * 4];
static struct irdma_sq_wr wrs[DEPTH];

static void setup(const struct irdma_wq_fmt *fmt, u32 chunk, u32 first)
{
	memset(ring, 0, sizeof(ring));
	memset(wrs, 0, sizeof(wrs));
	sq = (struct irdma_sq) {
		.ring = ring, .wrs = wrs, .fmt = fmt, .depth = DEPTH, .chunk = chunk,
	};
	irdma_sq_init(&sq, first);
}

static const struct ib_sge sges[13] = {
	{ 0x1000, 0x10, 0xaa01 }, { 0x2000, 0x20, 0xaa02 }, { 0x3000, 0x30, 0xaa03 },
	{ 0x4000, 0x40, 0xaa04 }, { 0x5000, 0x50, 0xaa05 }, { 0x6000, 0x60, 0xaa06 },
	{ 0x7000, 0x70, 0xaa07 }, { 0x8000, 0x80, 0xaa08 }, { 0x9000, 0x90, 0xaa09 },
	{ 0xa000, 0xa0, 0xaa0a }, { 0xb000, 0xb0, 0xaa0b }, { 0xc000, 0xc0, 0xaa0c },
	{ 0xd000, 0xd0, 0xaa0d },
};

static struct irdma_sq_msg message(u8 op, u32 num_sge)
{
	return (struct irdma_sq_msg) {
		.wr_id = 0x77, .op = op, .sges = sges, .num_sge = num_sge, .signaled = true,
	};
}

static u64 e810_frag(u32 i, u64 valid)
{
	return valid | (u64)sges[i].length << 32 | sges[i].lkey;
}

static void send_e810(void)
{
	struct irdma_sq_msg msg = message(IRDMA_OP_SEND, 1);

	setup(&irdma_wq_fmt_e810, 8, 8);
	CHECK_EQ(irdma_sq_put_msg(&sq, &msg), 0);
	CHECK_EQ(ring[32], 0x1000);
	CHECK_EQ(ring[33], VALID | 0x10ULL << 32 | 0xaa01);
	CHECK_EQ(ring[34], 0);
	CHECK_EQ(ring[35], VALID | SIGNALED | OP(3));
	CHECK_EQ(sq.head, 9);
	CHECK_EQ(wrs[8].len, 0x10);
}

static void send_empty(void)
{
	struct irdma_sq_msg msg = message(IRDMA_OP_SEND, 0);

	setup(&irdma_wq_fmt_e810, 8, 8);
	msg.signaled = false;
	CHECK_EQ(irdma_sq_put_msg(&sq, &msg), 0);
	CHECK_EQ(ring[32], 0);
	CHECK_EQ(ring[33], VALID);
	CHECK_EQ(ring[35], VALID | OP(3));
}

static void send_invalidate(void)
{
	struct irdma_sq_msg msg = message(IRDMA_OP_SEND_SOL_INV, 1);

	setup(&irdma_wq_fmt_e810, 8, 8);
	msg.stag = 0xdeadbeef;
	msg.read_fence = true;
	CHECK_EQ(irdma_sq_put_msg(&sq, &msg), 0);
	CHECK_EQ(ring[35], VALID | SIGNALED | 1ULL << 60 | OP(6) | 0xdeadbeef);
}

/* Every fragment count of E810: quanta by the table in 5.2, dummy fragment on even counts. */
static void frag_counts_e810(void)
{
	static const u8 quanta[] = { 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7 };
	static const u8 add[] = { 0, 0, 2, 2, 4, 4, 6, 6, 8, 8, 10, 10, 12, 12 };
	u32 n, i;

	for (n = 1; n <= 13; n++) {
		struct irdma_sq_msg msg = message(IRDMA_OP_SEND, n);

		setup(&irdma_wq_fmt_e810, 8, 8);
		CHECK_EQ(irdma_sq_put_msg(&sq, &msg), 0);
		CHECK_EQ(sq.head, 8 + quanta[n]);
		CHECK_EQ(ring[35], VALID | SIGNALED | OP(3) | FRAGS(add[n]));
		CHECK_EQ(ring[33], e810_frag(0, VALID));
		for (i = 1; i < n; i++) {
			CHECK_EQ(ring[36 + 2 * (i - 1)], sges[i].addr);
			CHECK_EQ(ring[37 + 2 * (i - 1)], e810_frag(i, VALID));
		}
		if (n % 2 == 0) {
			CHECK_EQ(ring[36 + 2 * (n - 1)], 0);
			CHECK_EQ(ring[37 + 2 * (n - 1)], VALID);
		}
	}
}

static void write_e810(void)
{
	struct irdma_sq_msg msg = message(IRDMA_OP_WRITE, 1);

	setup(&irdma_wq_fmt_e810, 8, 8);
	msg.remote_addr = 0x1122334455667788;
	msg.stag = 0xcafe;
	CHECK_EQ(irdma_sq_put_msg(&sq, &msg), 0);
	CHECK_EQ(ring[34], 0x1122334455667788);
	CHECK_EQ(ring[35], VALID | SIGNALED | OP(0) | 0xcafe);
}

/* Immediate data takes the place of the first fragment. */
static void write_imm_e810(void)
{
	struct irdma_sq_msg msg = message(IRDMA_OP_WRITE, 2);

	setup(&irdma_wq_fmt_e810, 8, 8);
	msg.has_imm = true;
	msg.imm = 0x01020304;
	msg.remote_addr = 0x9000;
	msg.stag = 0xcafe;
	CHECK_EQ(irdma_sq_put_msg(&sq, &msg), 0);
	CHECK_EQ(ring[32], 0x01020304);
	CHECK_EQ(ring[34], 0x9000);
	CHECK_EQ(ring[35], VALID | SIGNALED | 1ULL << 47 | FRAGS(2) | OP(0) | 0xcafe);
	CHECK_EQ(ring[36], 0x1000);
	CHECK_EQ(ring[37], e810_frag(0, VALID));
	CHECK_EQ(ring[38], 0x2000);
	CHECK_EQ(ring[39], e810_frag(1, VALID));
	CHECK_EQ(sq.head, 10);

	setup(&irdma_wq_fmt_e810, 8, 8);
	msg.num_sge = 0;
	CHECK_EQ(irdma_sq_put_msg(&sq, &msg), 0);
	CHECK_EQ(ring[35], VALID | SIGNALED | 1ULL << 47 | OP(0) | 0xcafe);
	CHECK_EQ(sq.head, 9);
}

static void read_e810(void)
{
	struct irdma_sq_msg msg = message(IRDMA_OP_READ_INV, 1);

	setup(&irdma_wq_fmt_e810, 8, 8);
	msg.remote_addr = 0x9000;
	msg.stag = 0xcafe;
	msg.local_fence = true;
	CHECK_EQ(irdma_sq_put_msg(&sq, &msg), 0);
	CHECK_EQ(ring[35], VALID | SIGNALED | 1ULL << 61 | OP(0xb) | 0xcafe);
}

static void x722_messages(void)
{
	struct irdma_sq_msg msg = message(IRDMA_OP_SEND, 3);

	setup(&irdma_wq_fmt_x722, 2, 2);
	CHECK_EQ(irdma_sq_put_msg(&sq, &msg), 0);
	CHECK_EQ(sq.head, 4);
	CHECK_EQ(ring[9], 0xaa01ULL << 32 | 0x10);
	CHECK_EQ(ring[11], VALID | SIGNALED | OP(3) | FRAGS(2));
	CHECK_EQ(ring[13], 0xaa02ULL << 32 | 0x20);
	CHECK_EQ(ring[15], 0xaa03ULL << 32 | 0x30);

	/* A single quantum at an even index: the next one must look invalid. */
	msg.num_sge = 1;
	ring[23] = VALID;
	CHECK_EQ(irdma_sq_put_msg(&sq, &msg), 0);
	CHECK_EQ(ring[19], VALID | SIGNALED | OP(3));
	CHECK_EQ(ring[23], 0);
}

static u8 *wqe_bytes(u32 idx)
{
	return (u8 *)&ring[idx * 4];
}

static void put_inline_len(const struct irdma_wq_fmt *fmt, u32 chunk, u32 len, u8 *data)
{
	struct ib_sge parts[2] = {
		{ (uintptr_t)data, len / 3, 0 },
		{ (uintptr_t)data + len / 3, len - len / 3, 0 },
	};
	struct irdma_sq_msg msg = message(IRDMA_OP_SEND, 2);
	u32 i;

	for (i = 0; i < len; i++)
		data[i] = 0x80 + i;
	setup(fmt, chunk, 8);
	msg.sges = parts;
	msg.inline_data = true;
	CHECK_EQ(irdma_sq_put_msg(&sq, &msg), 0);
	CHECK_EQ(ring[35], VALID | SIGNALED | 1ULL << 57 | (u64)len << 48 | OP(3));
}

static void inline_e810(void)
{
	static const u8 last[] = { 8, 39, 70, 101 };	/* bytes that fit in 1, 2, 3, 4 quanta */
	u8 data[101];
	u32 len, i, quanta;

	for (len = 0; len <= 101; len++) {
		CHECK_CALL(put_inline_len(&irdma_wq_fmt_e810, 8, len, data));
		for (quanta = 1; len > last[quanta - 1]; quanta++)
			;
		CHECK_EQ(sq.head, 8 + quanta);
		for (i = 0; i < len; i++) {
			u32 at = i < 8 ? 8 + i : 32 + (i - 8) / 31 * 32 + (i - 8) % 31;

			CHECK_EQ(wqe_bytes(8)[at], data[i]);
		}
		for (i = 1; i < quanta; i++)
			CHECK_EQ(wqe_bytes(8)[32 * i + 31], 0x80);
	}
}

static void inline_x722(void)
{
	u8 data[48];
	u32 len, i;

	for (len = 0; len <= 48; len++) {
		CHECK_CALL(put_inline_len(&irdma_wq_fmt_x722, 2, len, data));
		CHECK_EQ(sq.head, len <= 16 ? 9 : 10);
		for (i = 0; i < len; i++)
			CHECK_EQ(wqe_bytes(8)[i < 16 ? i : 16 + i], data[i]);
	}
}

/* C35: both fences when asked for, the local one always. */
static void local_invalidate(void)
{
	setup(&irdma_wq_fmt_e810, 8, 8);
	CHECK_EQ(irdma_sq_put_local_inv(&sq, 1, 0xdeadbeef, true, true), 0);
	CHECK_EQ(ring[33], 0xdeadbeef);
	CHECK_EQ(ring[35], VALID | SIGNALED | 1ULL << 61 | 1ULL << 60 | OP(0xa));
	setup(&irdma_wq_fmt_x722, 2, 8);
	CHECK_EQ(irdma_sq_put_local_inv(&sq, 1, 0xdeadbeef, false, false), 0);
	CHECK_EQ(ring[33], 0xdeadbeefULL << 32);
	CHECK_EQ(ring[35], VALID | 1ULL << 61 | OP(0xa));
}

static void fast_register(void)
{
	struct irdma_sq_reg reg = {
		.va = 0x7f0000001000, .len = 0x123456, .page0 = 0x123456789000,
		.first_pble = 0xabc1234, .use_pbl = true, .stag = 0x12345678,
		.page_size_code = 1, .rights = 0x0f, .signaled = true,
	};

	setup(&irdma_wq_fmt_e810, 8, 8);
	CHECK_EQ(irdma_sq_put_fast_reg(&sq, &reg), 0);
	CHECK_EQ(ring[32], 0x7f0000001000);
	CHECK_EQ(ring[33], 0x123456789000 | 0xabc);
	CHECK_EQ(ring[34], 0x1234ULL << 48 | 0x123456);
	CHECK_EQ(ring[35], VALID | SIGNALED | 1ULL << 61 | 1ULL << 53 | 0xfULL << 48 | 1ULL << 46 |
			   1ULL << 44 | OP(9) | 0x12345678);

	setup(&irdma_wq_fmt_e810, 8, 8);
	reg.use_pbl = false;
	CHECK_EQ(irdma_sq_put_fast_reg(&sq, &reg), 0);
	CHECK_EQ(ring[33], 0x123456789000);
	CHECK_EQ(ring[34], 0x123456);
	CHECK_EQ(ring[35] >> 44 & 3, 0);
}

static void bind_window(void)
{
	struct irdma_sq_bind bind = {
		.va = 0x5000, .len = 0x1000, .mr_stag = 0x1111, .mw_stag = 0x2222,
		.rights = 0x0c, .va_based = true, .mw_type1 = true,
	};

	setup(&irdma_wq_fmt_e810, 8, 8);
	CHECK_EQ(irdma_sq_put_bind(&sq, &bind), 0);
	CHECK_EQ(ring[32], 0x5000);
	CHECK_EQ(ring[33], 0x1111ULL << 32 | 0x2222);
	CHECK_EQ(ring[34], 0x1000);
	CHECK_EQ(ring[35] & ~(1ULL << 61), VALID | 1ULL << 54 | 1ULL << 53 | 0xcULL << 48 | OP(8));
	setup(&irdma_wq_fmt_x722, 2, 8);
	bind.va_based = false;
	CHECK_EQ(irdma_sq_put_bind(&sq, &bind), 0);
	CHECK_EQ(ring[32], 0);
	CHECK_EQ(ring[33], 0x2222ULL << 32 | 0x1111);
}

static void connection_entries(void)
{
	struct irdma_lsmm lsmm = { .addr = 0xabc000, .len = 44, .stag = 0x1234 };

	memset(ring, 0xff, sizeof(ring));
	irdma_put_lsmm(&irdma_wq_fmt_e810, ring, &lsmm, true);
	CHECK_EQ(ring[0], 0xabc000);
	CHECK_EQ(ring[1], VALID | 44ULL << 32 | 0x1234);
	CHECK_EQ(ring[2], 0);
	CHECK_EQ(ring[3], VALID | 1ULL << 59 | 1ULL << 58 | OP(3));
	CHECK_EQ(ring[7], VALID | 1ULL << 61 | OP(0xc));
	CHECK_EQ(ring[11], VALID | OP(0x30));
	CHECK_EQ(ring[12], ~0ULL);

	irdma_put_rtr(&irdma_wq_fmt_e810, ring, true, true);
	CHECK_EQ(ring[0], 0);
	CHECK_EQ(ring[1], VALID | 0xabcd);
	CHECK_EQ(ring[3], VALID | OP(1) | 0x1234);
	CHECK_EQ(ring[11], VALID | OP(0x30));

	irdma_put_rtr(&irdma_wq_fmt_e810, ring, false, true);
	CHECK_EQ(ring[1], VALID);
	CHECK_EQ(ring[3], VALID | OP(0));

	memset(ring, 0xff, sizeof(ring));
	irdma_put_no_rtr(ring, true);
	CHECK_EQ(ring[3], VALID | OP(0xc));
	CHECK_EQ(ring[11], VALID | OP(0x30));

	memset(ring, 0xff, sizeof(ring));
	irdma_put_lsmm(&irdma_wq_fmt_x722, ring, &lsmm, false);
	CHECK_EQ(ring[1], 0x1234ULL << 32 | 44);
	CHECK_EQ(ring[4], ~0ULL);
	CHECK_EQ(irdma_conn_wqes(true), 3);
	CHECK_EQ(irdma_conn_wqes(false), 1);
}

/* What the device would do: where it reads, and with which valid bit. */
static struct {
	u32 idx;
	u64 valid;
	u32 chunk;
} dev;

static void dev_setup(u32 idx, u32 chunk)
{
	dev.idx = idx;
	dev.valid = VALID;
	dev.chunk = chunk;
}

static void dev_step(u32 quanta)
{
	dev.idx += quanta;
	if (dev.idx == DEPTH) {
		dev.idx = 0;
		dev.valid ^= VALID;
	}
}

/* Takes the next entry that is not padding; its quanta, or 0 if there is none. */
static u32 dev_take(bool e810, u64 *first_word)
{
	for (;;) {
		u64 hdr = ring[dev.idx * 4 + 3];
		u32 quanta, i;

		if ((hdr & VALID) != dev.valid)
			return 0;
		if ((hdr >> 32 & 0x3f) == IRDMA_OP_NOP) {
			if (ring[dev.idx * 4] || ring[dev.idx * 4 + 1] || ring[dev.idx * 4 + 2])
				return ~0U;
			if (dev.idx == 0)
				return ~0U;
			dev_step(1);
			continue;
		}
		quanta = 1 + ((hdr >> 38 & 0xf) + 1) / 2;
		if (dev.idx / dev.chunk != (dev.idx + quanta - 1) / dev.chunk)
			return ~0U;
		for (i = 1; e810 && i < quanta; i++)
			if ((ring[(dev.idx + i) * 4 + 3] & VALID) != dev.valid)
				return ~0U;
		*first_word = ring[dev.idx * 4];
		dev_step(quanta);
		return quanta;
	}
}

/* None of the next 128 quanta may look valid in the pass that reaches it (5.3). */
static bool ahead_is_clean(void)
{
	u32 i, idx = sq.head;
	u64 valid = sq.polarity ? VALID : 0;

	for (i = 0; i < 128; i++) {
		if ((ring[idx * 4 + 3] & VALID) == valid)
			return false;
		if (++idx == DEPTH) {
			idx = 0;
			valid ^= VALID;
		}
	}
	return true;
}

static u32 lcg_state;

static u32 lcg(u32 n)
{
	lcg_state = lcg_state * 1664525 + 1013904223;
	return (lcg_state >> 8) % n;
}

/*
 * Post, let the device read and complete, for several laps; fragments have all bits set where
 * they may, so that stale ones would be taken for headers.
 */
static void laps(bool e810, u32 chunk, u32 max_frags, u32 first, u32 seed)
{
	struct ib_sge list[13];
	u32 posted = 0, done = 0, i;
	struct irdma_sq_wr wr;

	setup(e810 ? &irdma_wq_fmt_e810 : &irdma_wq_fmt_x722, chunk, first);
	memset(ring, 0xff, first * IRDMA_QUANTUM);	/* belongs to the next lap */
	dev_setup(first, chunk);
	lcg_state = seed;
	for (i = 0; i < 13; i++)
		list[i] = (struct ib_sge) { ~0ULL, 0x7fffffff, ~0U };

	while (posted < 1500) {
		struct irdma_sq_msg msg = message(IRDMA_OP_SEND, 1 + lcg(max_frags));
		u32 burst = lcg(20);

		msg.sges = list;
		for (i = 0; i < burst; i++) {
			list[0].addr = posted;
			msg.wr_id = posted;
			if (irdma_sq_put_msg(&sq, &msg))
				break;
			posted++;
		}
		if (e810)
			CHECK(ahead_is_clean());
		while (done < posted && lcg(4)) {
			u64 first_word = ~0ULL;
			u32 at = dev.idx, quanta = dev_take(e810, &first_word);

			CHECK(quanta && quanta != ~0U);
			CHECK_EQ(first_word, done);
			at = (dev.idx - quanta) & (DEPTH - 1);
			CHECK(irdma_sq_retire(&sq, at, false, &wr));
			CHECK_EQ(wr.wr_id, done);
			done++;
		}
	}
	while (done < posted) {
		u64 first_word;
		u32 quanta = dev_take(e810, &first_word);

		CHECK(quanta && quanta != ~0U);
		CHECK_EQ(first_word, done);
		CHECK(irdma_sq_retire(&sq, (dev.idx - quanta) & (DEPTH - 1), false, &wr));
		done++;
	}
	{
		u64 first_word;

		CHECK_EQ(dev_take(e810, &first_word), 0);
	}
	CHECK(irdma_sq_empty(&sq));
}

static void laps_e810(void)
{
	u32 first;

	for (first = 0; first < DEPTH; first++)
		CHECK_CALL(laps(true, 8, 13, first, first));
}

static void laps_x722(void)
{
	u32 first;

	for (first = 0; first < DEPTH; first++)
		CHECK_CALL(laps(false, 2, 3, first, first));
}

/* Inline entries at every position of both laps. */
static void inline_polarity(void)
{
	u8 data[101] = { 0 };
	struct ib_sge sge = { (uintptr_t)data, 101, 0 };
	struct irdma_sq_msg msg = message(IRDMA_OP_SEND, 1);
	struct irdma_sq_wr wr;
	u32 n, k;

	setup(&irdma_wq_fmt_e810, 8, 0);
	msg.sges = &sge;
	msg.inline_data = true;
	for (n = 0; n < 3 * DEPTH / 4; n++) {
		u32 at = sq.head;
		u8 want = n / (DEPTH / 4) % 2 ? 0 : 0x80;

		CHECK_EQ(irdma_sq_put_msg(&sq, &msg), 0);
		for (k = 1; k < 4; k++)
			CHECK_EQ(wqe_bytes(at)[32 * k + 31], want);
		CHECK_EQ(wqe_bytes(at)[31] & 0x80, want);
		CHECK(irdma_sq_retire(&sq, at, false, &wr));
	}
}

/* C34: depth - 257 quanta fit; what does not fit changes nothing. */
static void full(void)
{
	static __le64 before[DEPTH * 4];
	struct irdma_sq_msg msg = message(IRDMA_OP_SEND, 1);
	struct irdma_sq copy;
	u32 n = 0;

	setup(&irdma_wq_fmt_e810, 8, 3);
	while (!irdma_sq_put_msg(&sq, &msg))
		n++;
	CHECK_EQ(n, DEPTH - 257);
	copy = sq;
	memcpy(before, ring, sizeof(ring));
	CHECK_EQ(irdma_sq_put_msg(&sq, &msg), -ENOMEM);
	CHECK_EQ(irdma_sq_put_local_inv(&sq, 0, 0, false, false), -ENOMEM);
	CHECK(!memcmp(before, ring, sizeof(ring)));
	CHECK(!memcmp(&copy, &sq, sizeof(sq)));
}

/* C48: as many of the largest entries as creation grants can be posted from the first on. */
static void granted_depth(void)
{
	static const u8 sge_of_shift[] = { 1, 3, 7, 13 };
	u32 shift;

	for (shift = 0; shift < 4; shift++) {
		struct irdma_sq_msg msg = message(IRDMA_OP_SEND, sge_of_shift[shift]);
		u32 n = (DEPTH - IRDMA_SQ_RESERVE) >> shift, i;

		setup(&irdma_wq_fmt_e810, 8, 3);
		for (i = 0; i < n; i++)
			CHECK_EQ(irdma_sq_put_msg(&sq, &msg), 0);
	}
}

static __le64 *at_barrier;
static u64 seen_at_barrier;

static void look(void)
{
	seen_at_barrier = *at_barrier;
}

/* C39: the word that makes an entry valid is written last. */
static void header_last(void)
{
	struct irdma_sq_msg msg = message(IRDMA_OP_SEND, 13);

	setup(&irdma_wq_fmt_e810, 8, 8);
	at_barrier = &ring[35];
	seen_at_barrier = VALID;
	on_dma_wmb = look;
	CHECK_EQ(irdma_sq_put_msg(&sq, &msg), 0);
	CHECK_EQ(seen_at_barrier & VALID, 0);
	CHECK_EQ(ring[35] & VALID, VALID);
}

/* C30: entries of the driver itself never complete, all of the consumer do, once. */
static void retire_rules(void)
{
	struct irdma_sq_msg msg = message(IRDMA_OP_SEND, 1);
	struct irdma_sq_wr wr;

	setup(&irdma_wq_fmt_e810, 8, 3);
	CHECK(!irdma_sq_retire(&sq, 0, false, &wr));	/* connection entries */
	CHECK(!irdma_sq_retire(&sq, 2, true, &wr));
	msg.signaled = false;
	msg.wr_id = 1;
	CHECK_EQ(irdma_sq_put_msg(&sq, &msg), 0);	/* 3 */
	msg.signaled = true;
	msg.wr_id = 2;
	CHECK_EQ(irdma_sq_put_msg(&sq, &msg), 0);	/* 4 */
	CHECK(!irdma_sq_retire(&sq, 0, false, &wr));
	CHECK(!irdma_sq_retire(&sq, 5, false, &wr));	/* not posted */
	CHECK(!irdma_sq_retire(&sq, DEPTH, false, &wr));
	CHECK(!irdma_sq_retire(&sq, 3, false, &wr));	/* unsignaled */
	CHECK(irdma_sq_retire(&sq, 4, false, &wr));	/* retires both */
	CHECK_EQ(wr.wr_id, 2);
	CHECK(irdma_sq_empty(&sq));
	CHECK(!irdma_sq_retire(&sq, 4, false, &wr));	/* once */

	msg.signaled = false;
	msg.wr_id = 3;
	CHECK_EQ(irdma_sq_put_msg(&sq, &msg), 0);	/* 5 */
	CHECK(irdma_sq_retire(&sq, 5, true, &wr));	/* failures complete unsignaled ones */
	CHECK_EQ(wr.wr_id, 3);
}

/* C30: flush with padding at every distance from the start. */
static void flush_order(void)
{
	struct irdma_sq_wr wr;
	u32 first, i, posted, got;

	for (first = 0; first < DEPTH; first++) {
		setup(&irdma_wq_fmt_e810, 8, first);
		CHECK(!irdma_sq_flush_one(&sq, &wr));
		for (posted = 0; posted < 20; posted++) {
			struct irdma_sq_msg msg = message(IRDMA_OP_SEND, 1 + posted * 5 % 13);

			msg.wr_id = 1000 + posted;
			msg.wc_op = IB_WC_RDMA_READ;
			msg.signaled = posted & 1;
			CHECK_EQ(irdma_sq_put_msg(&sq, &msg), 0);
		}
		for (i = 0, got = 0; irdma_sq_flush_one(&sq, &wr); i++, got++) {
			CHECK_EQ(wr.wr_id, 1000 + i);
			CHECK_EQ(wr.wc_op, IB_WC_RDMA_READ);
		}
		CHECK_EQ(got, posted);
		CHECK(irdma_sq_empty(&sq));
	}
}

static void shift_table(void)
{
	const struct irdma_wq_fmt *e = &irdma_wq_fmt_e810, *x = &irdma_wq_fmt_x722;

	CHECK_EQ(irdma_wq_shift(e, 0, 0), 0);
	CHECK_EQ(irdma_wq_shift(e, 1, 8), 0);
	CHECK_EQ(irdma_wq_shift(e, 1, 9), 1);
	CHECK_EQ(irdma_wq_shift(e, 2, 0), 1);
	CHECK_EQ(irdma_wq_shift(e, 3, 39), 1);
	CHECK_EQ(irdma_wq_shift(e, 3, 40), 2);
	CHECK_EQ(irdma_wq_shift(e, 4, 0), 2);
	CHECK_EQ(irdma_wq_shift(e, 7, 101), 2);
	CHECK_EQ(irdma_wq_shift(e, 8, 0), 3);
	CHECK_EQ(irdma_wq_shift(e, 14, 101), 3);
	CHECK_EQ(irdma_wq_shift(e, 1, 102), 3);
	CHECK_EQ(irdma_wq_shift(x, 1, 16), 0);
	CHECK_EQ(irdma_wq_shift(x, 1, 17), 1);
	CHECK_EQ(irdma_wq_shift(x, 3, 48), 1);
	CHECK_EQ(irdma_wq_shift(x, 4, 48), 2);
	CHECK_EQ(irdma_wq_shift(x, 1, 49), 2);
}

/* C48: rounding of depths, without overflow. */
static void depth_rule(void)
{
	u32 q = 0;

	CHECK_EQ(irdma_wq_depth(0, 0, 258, 8, 32768, &q), 0);
	CHECK_EQ(q, 512);
	CHECK_EQ(irdma_wq_depth(254, 0, 258, 8, 32768, &q), 0);
	CHECK_EQ(q, 512);
	CHECK_EQ(irdma_wq_depth(255, 0, 258, 8, 32768, &q), 0);
	CHECK_EQ(q, 1024);
	CHECK_EQ(irdma_wq_depth(4063, 3, 258, 8, 32768, &q), 0);
	CHECK_EQ(q, 32768);
	CHECK_EQ(irdma_wq_depth(4064, 3, 258, 8, 32768, &q), -EINVAL);
	CHECK_EQ(irdma_wq_depth(895, 1, 258, 4, 2048, &q), 0);
	CHECK_EQ(q, 2048);
	CHECK_EQ(irdma_wq_depth(896, 1, 258, 4, 2048, &q), -EINVAL);
	CHECK_EQ(irdma_wq_depth(0, 2, 1, 8, 32768, &q), 0);
	CHECK_EQ(q, 32);
	CHECK_EQ(irdma_wq_depth(7, 0, 1, 8, 32768, &q), 0);
	CHECK_EQ(q, 8);
	CHECK_EQ(irdma_wq_depth(8, 0, 1, 8, 32768, &q), 0);
	CHECK_EQ(q, 16);
	CHECK_EQ(irdma_wq_depth(0xffffffff, 3, 258, 8, 32768, &q), -EINVAL);
	CHECK_EQ(irdma_wq_depth(32768, 0, 258, 8, 32768, &q), -EINVAL);
}

static const struct test tests[] = {
	{ "send", send_e810 },
	{ "send without data", send_empty },
	{ "send with invalidate", send_invalidate },
	{ "all fragment counts", frag_counts_e810 },
	{ "write", write_e810 },
	{ "write with immediate", write_imm_e810 },
	{ "read with invalidate", read_e810 },
	{ "X722 messages", x722_messages },
	{ "inline, all lengths, E810", inline_e810 },
	{ "inline, all lengths, X722", inline_x722 },
	{ "local invalidate", local_invalidate },
	{ "fast register", fast_register },
	{ "bind window", bind_window },
	{ "connection entries", connection_entries },
	{ "laps from every position, E810", laps_e810 },
	{ "laps from every position, X722", laps_x722 },
	{ "inline polarity", inline_polarity },
	{ "full queue", full },
	{ "granted depth can be posted", granted_depth },
	{ "header is written last", header_last },
	{ "which completions count", retire_rules },
	{ "flush order", flush_order },
	{ "shift table", shift_table },
	{ "depth rule", depth_rule },
};

int main(void)
{
	return run_tests(tests, ARRAY_SIZE(tests));
}
