// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Receive queue and completion queue: spec 02, 5.7, 6.1 to 6.3. */
#include <errno.h>

#include "test.h"
#include "wq.h"

#define VALID	(1ULL << 63)

static struct irdma_rq rq;
static __le64 rq_ring[64 * 8 * 4];
static u64 wr_ids[64];

static void rq_setup(const struct irdma_wq_fmt *fmt, u32 size, u8 shift)
{
	memset(rq_ring, 0, sizeof(rq_ring));
	rq = (struct irdma_rq) {
		.ring = rq_ring, .wr_ids = wr_ids, .fmt = fmt, .size = size, .shift = shift,
	};
	irdma_rq_init(&rq);
}

static void rq_e810_bytes(void)
{
	const struct ib_sge sges[] = { { 0x1000, 0x10, 0xaa01 }, { 0x2000, 0x20, 0xaa02 } };

	rq_setup(&irdma_wq_fmt_e810, 8, 1);
	CHECK_EQ(irdma_rq_put(&rq, 7, sges, 2), 0);
	CHECK_EQ(rq_ring[0], 0x1000);
	CHECK_EQ(rq_ring[1], VALID | 0x10ULL << 32 | 0xaa01);
	CHECK_EQ(rq_ring[2], 0);
	CHECK_EQ(rq_ring[3], VALID | 2ULL << 38);
	CHECK_EQ(rq_ring[4], 0x2000);
	CHECK_EQ(rq_ring[5], VALID | 0x20ULL << 32 | 0xaa02);
	CHECK_EQ(rq_ring[6], 0);
	CHECK_EQ(rq_ring[7], VALID);
	/* The second entry starts one entry, not one quantum, further. */
	CHECK_EQ(irdma_rq_put(&rq, 8, sges, 1), 0);
	CHECK_EQ(rq_ring[8], 0x1000);
	CHECK_EQ(rq_ring[11], VALID);
}

static void rq_e810_no_buffer(void)
{
	rq_setup(&irdma_wq_fmt_e810, 8, 0);
	CHECK_EQ(irdma_rq_put(&rq, 7, NULL, 0), 0);
	CHECK_EQ(rq_ring[0], 0);
	CHECK_EQ(rq_ring[1], VALID);
	CHECK_EQ(rq_ring[3], VALID);
}

static void rq_x722_bytes(void)
{
	const struct ib_sge sges[] = { { 0x1000, 0x10, 1 }, { 0x2000, 0x20, 2 }, { 0x3000, 0x30, 3 } };

	rq_setup(&irdma_wq_fmt_x722, 4, 2);
	CHECK_EQ(irdma_rq_put(&rq, 7, sges, 3), 0);
	CHECK_EQ(rq_ring[1], 1ULL << 32 | 0x10);
	CHECK_EQ(rq_ring[3], VALID | 2ULL << 38);
	CHECK_EQ(rq_ring[5], 2ULL << 32 | 0x20);
	CHECK_EQ(rq_ring[6], 0x3000);
	CHECK_EQ(rq_ring[7], 3ULL << 32 | 0x30);
}

/* Three laps: valid bits alternate, identifiers come back in order, size - 1 entries fit. */
static void rq_laps(void)
{
	const struct ib_sge sge = { 0x1000, 1, 1 };
	u32 posted = 0, taken = 0, lap, i;
	u64 wr_id;

	rq_setup(&irdma_wq_fmt_e810, 8, 2);
	for (lap = 0; lap < 24; lap++) {
		while (posted - taken < 7) {
			u32 slot = posted % 8;
			u64 want = posted / 8 % 2 ? 0 : VALID;

			CHECK_EQ(irdma_rq_put(&rq, 100 + posted, &sge, 1), 0);
			CHECK_EQ(rq_ring[slot * 16 + 3] & VALID, want);
			CHECK_EQ(rq_ring[slot * 16 + 1] & VALID, want);
			posted++;
		}
		CHECK_EQ(irdma_rq_put(&rq, 0, &sge, 1), -ENOMEM);
		for (i = 0; i < 1 + lap % 7; i++, taken++) {
			CHECK(irdma_rq_retire(&rq, taken % 8 << 2, &wr_id));
			CHECK_EQ(wr_id, 100 + taken);
		}
	}
}

static void rq_flush(void)
{
	const struct ib_sge sge = { 0x1000, 1, 1 };
	u32 start, i;
	u64 wr_id;

	for (start = 0; start < 8; start++) {
		rq_setup(&irdma_wq_fmt_e810, 8, 0);
		for (i = 0; i < start; i++) {
			CHECK_EQ(irdma_rq_put(&rq, 1, &sge, 1), 0);
			CHECK(irdma_rq_flush_one(&rq, &wr_id));
		}
		CHECK(!irdma_rq_flush_one(&rq, &wr_id));
		for (i = 0; i < 7; i++)
			CHECK_EQ(irdma_rq_put(&rq, 40 + i, &sge, 1), 0);
		for (i = 0; i < 7; i++) {
			CHECK(irdma_rq_flush_one(&rq, &wr_id));
			CHECK_EQ(wr_id, 40 + i);
		}
		CHECK(!irdma_rq_flush_one(&rq, &wr_id));
		CHECK(irdma_rq_empty(&rq));
	}
}

static void rq_retire_bad_index(void)
{
	const struct ib_sge sge = { 0x1000, 1, 1 };
	u64 wr_id;

	rq_setup(&irdma_wq_fmt_e810, 8, 1);
	CHECK(!irdma_rq_retire(&rq, 0, &wr_id));
	CHECK_EQ(irdma_rq_put(&rq, 5, &sge, 1), 0);
	CHECK(!irdma_rq_retire(&rq, 2, &wr_id));	/* entry 1, not posted */
	CHECK(!irdma_rq_retire(&rq, 0x7fff, &wr_id));
	CHECK(irdma_rq_retire(&rq, 0, &wr_id));
	CHECK_EQ(wr_id, 5);
}

static __le64 *at_barrier;
static u64 seen_at_barrier;

static void look(void)
{
	seen_at_barrier = *at_barrier;
}

/* C39: the word that makes an entry valid is written last. */
static void rq_header_last(void)
{
	const struct ib_sge sge = { 0x1000, 1, 1 };

	rq_setup(&irdma_wq_fmt_e810, 8, 0);
	at_barrier = &rq_ring[3];
	seen_at_barrier = VALID;
	on_dma_wmb = look;
	CHECK_EQ(irdma_rq_put(&rq, 5, &sge, 1), 0);
	CHECK_EQ(seen_at_barrier, 0);
}

#define CQ_SLOTS 8

static __le64 slots[CQ_SLOTS * 4];
static struct irdma_cq_ring ring;

static void cq_setup(u32 head, bool polarity)
{
	memset(slots, polarity ? 0 : 0xff, sizeof(slots));
	ring = (struct irdma_cq_ring) {
		.slots = slots, .size = CQ_SLOTS, .head = head, .polarity = polarity,
	};
}

static void put_slot(u32 idx, u64 w0, u64 w1, u64 w2, u64 w3)
{
	__le64 *slot = &slots[idx * 4];

	slot[0] = w0;
	slot[1] = w1;
	slot[2] = w2;
	slot[3] = w3;
}

static void cqe_sq_success(void)
{
	struct irdma_cqe cqe;

	cq_setup(0, true);
	CHECK(!irdma_cq_ring_next(&ring, &cqe));
	/* QP 0x123456, entry 0x7abc, RDMA read, SQ */
	put_slot(0, 0, 0xfeedfacecafebeef, 0x123456ULL << 32,
		 VALID | 1ULL << 62 | 1ULL << 56 | 0x7abcULL << 32);
	CHECK(irdma_cq_ring_next(&ring, &cqe));
	CHECK_EQ(cqe.context, 0xfeedfacecafebeef);
	CHECK_EQ(cqe.qpn, 0x123456);
	CHECK_EQ(cqe.wqe_idx, 0x7abc);
	CHECK_EQ(cqe.op, IRDMA_OP_READ);
	CHECK(cqe.sq && !cqe.error && !cqe.has_imm && !cqe.invalidated && !cqe.solicited);
	CHECK_EQ(cqe.major, 0);
	CHECK_EQ(cqe.minor, 0);
	CHECK_EQ(ring.head, 1);
	CHECK(!irdma_cq_ring_next(&ring, &cqe));
}

static void cqe_rq_invalidated(void)
{
	struct irdma_cqe cqe;

	cq_setup(0, true);
	put_slot(0, 0x55aa1234ULL << 32 | 4096, 1, 9ULL << 32 | 0xabcdef12,
		 VALID | 1ULL << 53 | 1ULL << 54 | 4ULL << 32);
	CHECK(irdma_cq_ring_next(&ring, &cqe));
	CHECK(!cqe.sq && cqe.invalidated && cqe.solicited);
	CHECK_EQ(cqe.len, 4096);
	CHECK_EQ(cqe.inv_stag, 0xabcdef12);
	CHECK_EQ(cqe.qpn, 9);
}

static void cqe_error(void)
{
	struct irdma_cqe cqe;

	cq_setup(0, true);
	put_slot(0, 0, 1, 9ULL << 32, VALID | 1ULL << 55 | 1ULL << 16 | 6);
	CHECK(irdma_cq_ring_next(&ring, &cqe));
	CHECK(cqe.error);
	CHECK_EQ(cqe.major, IRDMA_CQE_MAJOR_FLUSH);
	CHECK_EQ(cqe.minor, IRDMA_FLUSH_LOC_LEN);
}

/* Both parts of an extended completion, at every slot and on both kinds of lap. */
static void cqe_extended(void)
{
	struct irdma_cqe cqe;
	u32 head, polarity;

	for (polarity = 0; polarity < 2; polarity++) {
		for (head = 0; head < CQ_SLOTS; head++) {
			u32 next = (head + 1) % CQ_SLOTS;
			u64 v1 = polarity ? VALID : 0;
			u64 v2 = next ? v1 : v1 ^ VALID;

			cq_setup(head, polarity);
			if (!next)
				put_slot(0, 0, 0, 0, v2 ^ VALID);
			put_slot(head, 100, 1, 9ULL << 32, v1 | 1ULL << 50);
			CHECK(!irdma_cq_ring_next(&ring, &cqe));	/* only the first part */
			CHECK_EQ(ring.head, head);
			put_slot(next, 0x11223344, 0, 0, v2 | 1ULL << 62);
			CHECK(irdma_cq_ring_next(&ring, &cqe));
			CHECK(cqe.has_imm);
			CHECK_EQ(cqe.imm, 0x11223344);
			CHECK_EQ(cqe.len, 100);
			CHECK_EQ(ring.head, (head + 2) % CQ_SLOTS);
			CHECK_EQ(ring.polarity, head + 2 >= CQ_SLOTS ? !polarity : polarity);
		}
	}
}

/* C39: nothing is taken before its valid bit says so, on either kind of lap. */
static void cqe_laps(void)
{
	struct irdma_cqe cqe;
	u32 n;

	cq_setup(0, true);
	for (n = 0; n < 5 * CQ_SLOTS; n++) {
		CHECK(!irdma_cq_ring_ready(&ring));
		CHECK(!irdma_cq_ring_next(&ring, &cqe));
		put_slot(n % CQ_SLOTS, n, 1, 3ULL << 32, n / CQ_SLOTS % 2 ? 0 : VALID);
		CHECK(irdma_cq_ring_ready(&ring));
		CHECK(irdma_cq_ring_next(&ring, &cqe));
		CHECK_EQ(cqe.len, n);
	}
}

static void cq_shadow(void)
{
	__le64 shadow[8] = { 0 };

	irdma_cq_shadow_set_head(shadow, 0xabcde);
	CHECK_EQ(shadow[0], 0xabcde);
	irdma_cq_shadow_switched(shadow, 2);
	CHECK_EQ(shadow[4], 2);
	irdma_cq_shadow_arm(shadow, false);
	CHECK_EQ(shadow[4], 1 << 16 | 1 << 15 | 1 << 14 | 2);
	irdma_cq_shadow_arm(shadow, true);
	CHECK_EQ(shadow[4], 2 << 16 | 1 << 15 | 2);
	irdma_cq_shadow_arm(shadow, false);
	irdma_cq_shadow_arm(shadow, false);
	CHECK_EQ(shadow[4], 0 << 16 | 1 << 15 | 1 << 14 | 2);
	irdma_cq_shadow_switched(shadow, 0x3fff);
	CHECK_EQ(shadow[4] & 0x3fff, 1);
	CHECK_EQ(shadow[4] >> 14, 3);
}

static const struct test tests[] = {
	{ "RQ entry bytes, E810", rq_e810_bytes },
	{ "RQ entry without buffer", rq_e810_no_buffer },
	{ "RQ entry bytes, X722", rq_x722_bytes },
	{ "RQ laps", rq_laps },
	{ "RQ flush from every position", rq_flush },
	{ "RQ completion with a wrong index", rq_retire_bad_index },
	{ "RQ header is written last", rq_header_last },
	{ "CQE: SQ success", cqe_sq_success },
	{ "CQE: RQ with invalidate", cqe_rq_invalidated },
	{ "CQE: error", cqe_error },
	{ "CQE: extended at every position", cqe_extended },
	{ "CQE: laps", cqe_laps },
	{ "CQ shadow area", cq_shadow },
};

int main(void)
{
	return run_tests(tests, ARRAY_SIZE(tests));
}
