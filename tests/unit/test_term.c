// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Error events and terminate messages: spec 01, 5.4 to 5.6; spec 02, 4.7. */
#include "qp_term.h"
#include "test.h"
#include "wq.h"

#define Q2_SIZE		256
#define FPDU		(IRDMA_Q2_FRAME + 14 + 20 + 20)

static u8 q2[Q2_SIZE];

/* A frame with an FPDU of @len bytes, whose DDP segment starts with @ddp and @rdmap. */
static void frame(u32 len, u8 ddp, u8 rdmap)
{
	u32 i;

	for (i = 0; i < Q2_SIZE; i++)
		q2[i] = i;
	q2[IRDMA_Q2_FRAME + 14] = 0x45;
	q2[IRDMA_Q2_FRAME + 14 + 20 + 12] = 0x50;
	q2[FPDU] = len >> 8;
	q2[FPDU + 1] = len;
	q2[FPDU + 2] = ddp;
	q2[FPDU + 3] = rdmap;
}

static struct irdma_term_info info_of(u16 ae, bool q2_data)
{
	struct irdma_term_info info;

	irdma_term_info(ae, q2, Q2_SIZE, q2_data, &info);
	return info;
}

/* C55: the table of spec 01, 5.5, for events without a frame. */
static void table(void)
{
	static const struct { u16 ae; u8 layer_type, code, flush; } want[] = {
		{ 0x0102, 0x01, 0x00, 3 }, { 0x0103, 0x01, 0x00, 3 }, { 0x0104, 0x12, 0x01, 4 },
		{ 0x0105, 0x01, 0x03, 3 }, { 0x0106, 0x02, 0x00, 3 }, { 0x0107, 0x02, 0x00, 3 },
		{ 0x0108, 0x01, 0x01, 3 }, { 0x0109, 0x01, 0x02, 3 }, { 0x010a, 0x01, 0x04, 3 },
		{ 0x010c, 0x02, 0xff, 7 }, { 0x0112, 0x01, 0x02, 3 }, { 0x0114, 0x02, 0xff, 9 },
		{ 0x0118, 0x02, 0xff, 9 }, { 0x0119, 0x02, 0xff, 9 }, { 0x0120, 0x02, 0xff, 9 },
		{ 0x011b, 0x02, 0xff, 9 }, { 0x011c, 0x01, 0x02, 3 }, { 0x0132, 0x02, 0xff, 7 },
		{ 0x0205, 0x02, 0xff, 7 }, { 0x0206, 0x02, 0xff, 7 }, { 0x020a, 0x02, 0xff, 7 },
		{ 0x0220, 0x02, 0xff, 7 }, { 0x0301, 0x12, 0x03, 1 }, { 0x0303, 0x12, 0x05, 6 },
		{ 0x0304, 0x12, 0x06, 1 }, { 0x0305, 0x12, 0x04, 1 }, { 0x0306, 0x12, 0x02, 5 },
		{ 0x0307, 0x12, 0x01, 1 }, { 0x0308, 0x10, 0x00, 7 }, { 0x0311, 0x02, 0x05, 1 },
		{ 0x0312, 0x02, 0xff, 7 }, { 0x0505, 0x23, 0x02, 1 }, { 0x0507, 0x10, 0x00, 6 },
		{ 0x050a, 0x02, 0xff, 7 }, { 0x0700, 0x10, 0x00, 7 },
	};
	struct irdma_term_info info;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(want); i++) {
		info = info_of(want[i].ae, false);
		CHECK_EQ(info.layer_type, want[i].layer_type);
		CHECK_EQ(info.code, want[i].code);
		CHECK_EQ(info.flush_code, want[i].flush);
	}
}

static void access_events(void)
{
	static const u16 access[] = {
		0x0102, 0x0103, 0x0106, 0x0107, 0x0108, 0x0109, 0x010a, 0x0112, 0x011c, 0x0303,
	};
	u32 ae, count = 0;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(access); i++)
		CHECK(info_of(access[i], false).access_event);
	for (ae = 0; ae < 0x1000; ae++)
		count += info_of(ae, false).access_event;
	CHECK_EQ(count, ARRAY_SIZE(access));
}

static void reactions(void)
{
	static const struct { u16 ae; enum irdma_ae_reaction reaction; } want[] = {
		{ 0x050e, IRDMA_AE_ESTABLISHED }, { 0x0503, IRDMA_AE_FIN },
		{ 0x0202, IRDMA_AE_FIN }, { 0x0501, IRDMA_AE_CLOSED },
		{ 0x0201, IRDMA_AE_ERROR_CLOSE }, { 0x0601, IRDMA_AE_ERROR_CLOSE },
		{ 0x0502, IRDMA_AE_RESET }, { 0x0602, IRDMA_AE_TERM_SENT },
		{ 0x0509, IRDMA_AE_TERM_RECEIVED }, { 0x050c, IRDMA_AE_NOTHING },
		{ 0x0520, IRDMA_AE_NOTHING }, { 0x0603, IRDMA_AE_NOTHING },
		{ 0x020f, IRDMA_AE_NOTHING }, { 0x0102, IRDMA_AE_ABNORMAL },
		{ 0x0700, IRDMA_AE_ABNORMAL }, { 0x0508, IRDMA_AE_ABNORMAL },
		{ 0x0999, IRDMA_AE_ABNORMAL },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(want); i++)
		CHECK_EQ(irdma_ae_reaction(want[i].ae), want[i].reaction);
}

/* What the frame decides: columns "W", "I", "tagged" and "Q2" of the table. */
static void refined(void)
{
	static const struct { u16 ae; u8 ddp, rdmap, layer_type, code, flush; } want[] = {
		{ 0x0102, 0xc1, 0x40, 0x11, 0x00, 2 },	/* write */
		{ 0x0102, 0x41, 0x41, 0x01, 0x00, 3 },	/* read request */
		{ 0x0104, 0xc1, 0x40, 0x11, 0x02, 2 },	/* DDP: STag of another stream */
		{ 0x0104, 0x41, 0x41, 0x01, 0x03, 3 },	/* RDMAP: STag of another stream */
		{ 0x0104, 0x41, 0x44, 0x01, 0x09, 3 },
		{ 0x0105, 0xc1, 0x40, 0x11, 0x02, 2 },
		{ 0x0105, 0x41, 0x44, 0x01, 0x09, 3 },	/* send with invalidate */
		{ 0x0105, 0x41, 0x46, 0x01, 0x09, 3 },
		{ 0x0105, 0x41, 0x43, 0x01, 0x03, 3 },
		{ 0x0106, 0x41, 0x44, 0x02, 0x09, 5 },
		{ 0x0107, 0x41, 0x46, 0x02, 0x09, 5 },
		{ 0x0107, 0xc1, 0x40, 0x11, 0x00, 3 },	/* DDP: invalid STag */
		{ 0x0106, 0x41, 0x41, 0x01, 0x00, 3 },	/* RDMAP: invalid STag */
		{ 0x0108, 0xc1, 0x40, 0x11, 0x01, 2 },
		{ 0x0304, 0xc2, 0x40, 0x11, 0x04, 1 },
		{ 0x0304, 0x42, 0x43, 0x12, 0x06, 1 },
	};
	struct irdma_term_info info;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(want); i++) {
		frame(100, want[i].ddp, want[i].rdmap);
		info = info_of(want[i].ae, true);
		CHECK_EQ(info.layer_type, want[i].layer_type);
		CHECK_EQ(info.code, want[i].code);
		CHECK_EQ(info.flush_code, want[i].flush);
	}
}

static void build(bool q2_data, u32 want_len, u8 want_bits)
{
	struct irdma_term_info info = info_of(0x0102, q2_data);
	u8 fpdu[64];
	u32 i;

	memcpy(fpdu, q2 + FPDU, sizeof(fpdu));
	CHECK_EQ(irdma_term_build(q2, Q2_SIZE, q2_data, &info), want_len);
	CHECK_EQ(q2[0], info.layer_type);
	CHECK_EQ(q2[1], info.code);
	CHECK_EQ(q2[2], want_bits);
	CHECK_EQ(q2[3], 0);
	for (i = 4; i < want_len; i++)
		CHECK_EQ(q2[i], fpdu[i - 4]);
	for (; i < 72; i++)
		CHECK_EQ(q2[i], 0);
}

static void messages(void)
{
	frame(100, 0xc1, 0x40);
	CHECK_CALL(build(false, 4, 0));
	frame(0, 0xc1, 0x40);
	CHECK_CALL(build(true, 4, 0));
	frame(100, 0xc1, 0x40);		/* tagged */
	CHECK_CALL(build(true, 4 + 2 + 14, 0xc0));
	frame(13, 0xc1, 0x40);
	CHECK_CALL(build(true, 4 + 2, 0x80));
	frame(100, 0x41, 0x43);		/* untagged */
	CHECK_CALL(build(true, 4 + 2 + 18, 0xc0));
	frame(17, 0x41, 0x43);
	CHECK_CALL(build(true, 4 + 2, 0x80));
	frame(46, 0x41, 0x41);		/* read request */
	CHECK_CALL(build(true, 4 + 2 + 18 + 28, 0xe0));
	frame(45, 0x41, 0x41);
	CHECK_CALL(build(true, 4 + 2 + 18, 0xc0));
}

static void received(u8 ddp, u8 rdmap, u32 qn, u32 msn, u32 mo, u8 layer_type)
{
	frame(40, ddp, rdmap);
	memset(q2 + FPDU + 4, 0, 16);
	q2[FPDU + 11] = qn;
	q2[FPDU + 15] = msn;
	q2[FPDU + 19] = mo;
	q2[FPDU + 20] = layer_type;
}

static void peer_terminates(void)
{
	bool finished;

	received(0x41, 0x47, 2, 1, 0, 0x01);
	CHECK_EQ(irdma_term_check(q2, Q2_SIZE, &finished), 0);
	CHECK(finished);
	received(0x41, 0x47, 2, 1, 0, 0x02);
	CHECK_EQ(irdma_term_check(q2, Q2_SIZE, &finished), 0);
	CHECK(finished);
	received(0x41, 0x47, 2, 1, 0, 0x11);
	CHECK_EQ(irdma_term_check(q2, Q2_SIZE, &finished), 0);
	CHECK(!finished);
	received(0xc1, 0x47, 2, 1, 0, 0x01);
	CHECK_EQ(irdma_term_check(q2, Q2_SIZE, &finished), 0x0700);
	received(0x01, 0x47, 2, 1, 0, 0x01);
	CHECK_EQ(irdma_term_check(q2, Q2_SIZE, &finished), 0x0700);
	received(0x42, 0x47, 2, 1, 0, 0x01);
	CHECK_EQ(irdma_term_check(q2, Q2_SIZE, &finished), 0x0304);
	received(0x41, 0x47, 1, 1, 0, 0x01);
	CHECK_EQ(irdma_term_check(q2, Q2_SIZE, &finished), 0x0307);
	received(0x41, 0x47, 2, 2, 0, 0x01);
	CHECK_EQ(irdma_term_check(q2, Q2_SIZE, &finished), 0x0301);
	received(0x41, 0x47, 2, 1, 1, 0x01);
	CHECK_EQ(irdma_term_check(q2, Q2_SIZE, &finished), 0x0305);
	received(0x41, 0x87, 2, 1, 0, 0x01);
	CHECK_EQ(irdma_term_check(q2, Q2_SIZE, &finished), 0x0311);
	CHECK(!finished);
}

static void ipv6_frame(void)
{
	u32 fpdu = IRDMA_Q2_FRAME + 14 + 40 + 32;
	struct irdma_term_info info;

	memset(q2, 0, sizeof(q2));
	q2[IRDMA_Q2_FRAME + 14] = 0x6f;		/* version 6, traffic class */
	q2[IRDMA_Q2_FRAME + 14 + 40 + 12] = 0x80;
	q2[fpdu + 1] = 100;
	q2[fpdu + 2] = 0xc1;
	q2[fpdu + 3] = 0x40;
	info = info_of(0x0102, true);
	CHECK_EQ(info.layer_type, 0x11);
	CHECK_EQ(irdma_term_build(q2, Q2_SIZE, true, &info), 4 + 2 + 14);
}

/* C50: any frame, in a buffer that the sanitizer guards. */
static void arbitrary_frames(void)
{
	struct irdma_term_info info;
	u32 seed = 1, n, i, size;
	bool finished;

	for (n = 0; n < 200000; n++) {
		u8 *buf;

		size = n % 2 ? Q2_SIZE : IRDMA_TERM_MAX + n % 185;
		buf = malloc(size);
		CHECK(buf);
		for (i = 0; i < size; i++) {
			seed = seed * 1664525 + 1013904223;
			buf[i] = seed >> 24;
		}
		if (n % 3 == 0 && size > IRDMA_Q2_FRAME + 14)
			buf[IRDMA_Q2_FRAME + 14] = 0x45;
		irdma_term_info(0x0105, buf, size, true, &info);
		irdma_term_check(buf, size, &finished);
		i = irdma_term_build(buf, size, true, &info);
		free(buf);
		CHECK(i >= 4 && i <= 52);
	}
}

static const struct test tests[] = {
	{ "table of errors", table },
	{ "access errors", access_events },
	{ "reactions", reactions },
	{ "what the frame decides", refined },
	{ "terminate messages", messages },
	{ "terminate of the peer", peer_terminates },
	{ "IPv6 frame", ipv6_frame },
	{ "arbitrary frames", arbitrary_frames },
};

int main(void)
{
	return run_tests(tests, ARRAY_SIZE(tests));
}
