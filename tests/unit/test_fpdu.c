// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* FPDUs in a byte stream whose segments have any borders: RFC 5044 section 4. */
#include <errno.h>

#include "fpdu.h"
#include "test.h"

#define MAX_FPDU	1460
#define ISN		0xfffff000u	/* sequence numbers wrap within the test */
#define NUM_SEGS	4096

static u8 wire[65536];
static u32 wire_len;
static struct irdma_fpdu_seg segs[NUM_SEGS];
static struct irdma_fpdu_stream stream;
static u8 buf[MAX_FPDU];

/* Bit by bit from the polynomial of RFC 3720 appendix B.4, reflected. */
static u32 crc32c(u32 crc, const u8 *data, u32 len)
{
	int i;

	while (len--) {
		crc ^= *data++;
		for (i = 0; i < 8; i++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
	}
	return crc;
}

/* Append an FPDU with a ULPDU of @len bytes to the wire; returns its size. */
static u32 put_fpdu(u32 len)
{
	u32 size = (2 + len + 3) / 4 * 4, i, crc;
	u8 *p = wire + wire_len;

	memset(p, 0, size);
	p[0] = len >> 8;
	p[1] = len;
	for (i = 0; i < len; i++)
		p[2 + i] = i * 7 + len;
	crc = ~crc32c(~0u, p, size);
	for (i = 0; i < 4; i++)
		p[size + i] = crc >> 8 * i;
	wire_len += size + 4;
	return size + 4;
}

static void restart(void)
{
	wire_len = 0;
	irdma_fpdu_init(&stream, ISN, MAX_FPDU, crc32c);
}

static bool add(u32 i, u32 from, u32 len)
{
	segs[i].data = wire + from;
	segs[i].len = len;
	return irdma_fpdu_add(&stream, &segs[i], ISN + from);
}

/* The check value of RFC 3720 B.4 (32 bytes of zeroes) proves the CRC above. */
static void test_crc(void)
{
	static const u8 zeroes[32];

	CHECK_EQ(~crc32c(~0u, zeroes, sizeof(zeroes)), 0x8a9136aa);
}

static void cut_all(u32 seg_len)
{
	static const u32 lens[] = { 1, 2, 3, 4, 18, 1454, 0, 700, 1453, 5 };
	u32 i, at = 0, next = 0, size[ARRAY_SIZE(lens)];
	u32 n = 0;
	int got;

	restart();
	for (i = 0; i < ARRAY_SIZE(lens); i++)
		size[i] = put_fpdu(lens[i]);
	for (i = 0; at < wire_len; i++) {
		u32 len = min(seg_len, wire_len - at);

		CHECK(add(i, at, len));
		at += len;
		while ((got = irdma_fpdu_next(&stream, buf, sizeof(buf))) != 0) {
			CHECK(n < ARRAY_SIZE(lens));
			CHECK_EQ(got, size[n]);
			CHECK(!memcmp(buf, wire + next, got));
			next += got;
			n++;
			CHECK_EQ(stream.seq, ISN + next);
		}
	}
	CHECK_EQ(n, ARRAY_SIZE(lens));
	CHECK_EQ(stream.avail, 0);
	CHECK(list_empty(&stream.segs));
	CHECK(!list_empty(&stream.used));
}

static void test_any_border(void)
{
	u32 len;

	for (len = 2; len <= 1500; len++)
		CHECK_CALL(cut_all(len));
}

static void test_gap_and_overlap(void)
{
	restart();
	put_fpdu(100);
	CHECK(!add(0, 8, 10));			/* gap */
	CHECK(add(1, 0, 50));
	CHECK(!add(2, 10, 40));			/* nothing new */
	CHECK(add(3, 30, wire_len - 30));	/* repeats 20 bytes */
	CHECK_EQ(irdma_fpdu_next(&stream, buf, sizeof(buf)), wire_len);
	CHECK(!memcmp(buf, wire, wire_len));
}

static void test_bad_crc(void)
{
	u32 i;

	for (i = 2; i < 24; i++) {
		restart();
		put_fpdu(18);
		wire[i] ^= 0x10;
		CHECK(add(0, 0, wire_len));
		CHECK_EQ((s32)irdma_fpdu_next(&stream, buf, sizeof(buf)), -EBADMSG);
	}
}

static void test_too_large(void)
{
	restart();
	put_fpdu(1454);
	CHECK(add(0, 0, wire_len));
	CHECK_EQ(irdma_fpdu_next(&stream, buf, sizeof(buf)), MAX_FPDU);
	restart();
	put_fpdu(1455);
	CHECK(add(0, 0, 2));
	CHECK_EQ((s32)irdma_fpdu_next(&stream, buf, sizeof(buf)), -EMSGSIZE);
}

int main(void)
{
	static const struct test tests[] = {
		{ "crc", test_crc },
		{ "any border", test_any_border },
		{ "gap and overlap", test_gap_and_overlap },
		{ "bad crc", test_bad_crc },
		{ "too large", test_too_large },
	};

	return run_tests(tests, ARRAY_SIZE(tests));
}
