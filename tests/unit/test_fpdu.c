// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * FPDUs in a byte stream whose segments have any borders, come twice, overlap or are missing:
 * RFC 5044 section 4.  What a peer may put into the length field is case C50 of the field.
 */
#include <errno.h>

#include "fpdu.h"
#include "test.h"

#define MAX_FPDU	1460
#define NUM_SEGS	4096

static u8 wire[65536];
static u32 wire_len;
static u32 isn = 0xfffffc00;	/* sequence numbers wrap within most tests */
static struct irdma_fpdu_seg segs[NUM_SEGS];
static struct irdma_fpdu_stream stream;
static u8 buf[MAX_FPDU];
static u32 room;		/* bytes behind each segment that may be written */

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

/* Append an FPDU with a ULPDU of @len bytes, padded with @pad, to the wire; returns its size. */
static u32 put_padded_fpdu(u32 len, u8 pad)
{
	u32 size = (2 + len + 3) / 4 * 4, i, crc;
	u8 *p = wire + wire_len;

	memset(p, pad, size);
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

static u32 put_fpdu(u32 len)
{
	return put_padded_fpdu(len, 0);
}

static void restart(void)
{
	wire_len = 0;
	irdma_fpdu_init(&stream, isn, MAX_FPDU, crc32c);
}

/* A failed check returns at once; a report of what it did not free would only hide it. */
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}

/* Allocated, so that ASan sees reads behind its end and after its release. */
static struct irdma_fpdu_seg *new_seg(u32 from, u32 len)
{
	struct irdma_fpdu_seg *seg = malloc(sizeof(*seg) + len + room);
	u8 *data = (u8 *)(seg + 1);

	seg->data = memcpy(data, wire + from, len);
	seg->len = len;
	seg->end = data + len + room;
	return seg;
}

/* Free what was consumed, as its owner does; returns how many segments that were. */
static u32 free_used(void)
{
	struct irdma_fpdu_seg *seg, *next;
	u32 n = 0;

	list_for_each_entry_safe(seg, next, &stream.used, entry) {
		free(seg);
		n++;
	}
	INIT_LIST_HEAD(&stream.used);
	return n;
}

static u32 free_all(void)
{
	struct irdma_fpdu_seg *seg, *next;

	list_for_each_entry_safe(seg, next, &stream.segs, entry)
		list_move_tail(&seg->entry, &stream.used);
	return free_used();
}

/* Offer bytes of the wire. */
static enum irdma_fpdu_added add_bytes(u32 from, u32 len)
{
	struct irdma_fpdu_seg *seg = new_seg(from, len);
	enum irdma_fpdu_added added = irdma_fpdu_add(&stream, seg, isn + from);

	if (added != IRDMA_FPDU_KEPT)
		free(seg);
	return added;
}

/* Offer bytes of the wire; returns whether they were taken. */
static bool offer(u32 from, u32 len)
{
	return add_bytes(from, len) != IRDMA_FPDU_REFUSED;
}

/* Take all FPDUs that are complete and compare them with the wire at @at; -1: wrong bytes. */
static int take_all(u32 *at)
{
	int got, n = 0;

	while ((got = irdma_fpdu_next(&stream, buf, sizeof(buf))) > 0) {
		if (memcmp(buf, wire + *at, got))
			return -1;
		*at += got;
		if (stream.seq != isn + *at)
			return -1;
		free_used();
		n++;
	}
	return got ? got : n;
}

static bool add(u32 i, u32 from, u32 len)
{
	segs[i].data = wire + from;
	segs[i].len = len;
	segs[i].end = wire + from + len;
	return irdma_fpdu_add(&stream, &segs[i], isn + from) == IRDMA_FPDU_KEPT;
}

/* The check value of RFC 3720 B.4 (32 bytes of zeroes) proves the CRC above. */
static void test_crc(void)
{
	static const u8 zeroes[32];

	CHECK_EQ(~crc32c(~0u, zeroes, sizeof(zeroes)), 0x8a9136aa);
}

/*
 * RFC 5044 section 4: length, padding to a multiple of 4, CRC, which goes out low byte first as
 * in RFC 3720 B.4.  The CRC-32C of four bytes of zeroes is 48674bc7.
 */
static void test_by_hand(void)
{
	static const u8 empty[] = { 0, 0, 0, 0, 0xc7, 0x4b, 0x67, 0x48 };

	restart();
	memcpy(wire, empty, sizeof(empty));
	CHECK(add(0, 0, sizeof(empty)));
	CHECK_EQ(irdma_fpdu_next(&stream, buf, sizeof(buf)), sizeof(empty));
	CHECK(!memcmp(buf, empty, sizeof(empty)));
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
			CHECK_EQ(stream.seq, isn + next);
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

	for (len = 1; len <= 1500; len++)
		CHECK_CALL(cut_all(len));
}

/*
 * Two FPDUs in three segments with borders at every pair of bytes: within the length, the
 * ULPDU, the padding and the CRC of either, and with both FPDUs in one segment.
 */
static void test_every_split(void)
{
	u32 first, second, b, c, i, at, done;
	u32 border[4] = { 0 };

	for (b = 1; b < 56; b++) {
		for (c = b; c <= 56; c++) {
			restart();
			first = put_fpdu(17);
			second = put_fpdu(23);
			CHECK_EQ(first + second, 56);
			border[1] = b;
			border[2] = c;
			border[3] = wire_len;
			at = 0;
			for (i = 0; i < 3; i++) {
				if (border[i] == border[i + 1])
					continue;
				CHECK(offer(border[i], border[i + 1] - border[i]));
				CHECK(take_all(&at) >= 0);
				/* as much as there is, and not more */
				done = border[i + 1] == wire_len ? wire_len :
				       border[i + 1] >= first ? first : 0;
				CHECK_EQ(at, done);
				CHECK_EQ(stream.avail, border[i + 1] - done);
			}
			CHECK_EQ(free_all(), 0);
		}
	}
}

/* A segment stays with the stream as long as a byte of it is not consumed. */
static void test_owner(void)
{
	u32 size, at = 0;

	restart();
	size = put_fpdu(10);
	put_fpdu(10);
	put_fpdu(10);
	CHECK(offer(0, size - 1));
	CHECK(offer(size - 1, size + 2));	/* end of one, one, begin of one */
	CHECK_EQ(irdma_fpdu_next(&stream, buf, sizeof(buf)), size);
	CHECK_EQ(free_used(), 1);
	CHECK_EQ(irdma_fpdu_next(&stream, buf, sizeof(buf)), size);
	CHECK_EQ(free_used(), 0);
	CHECK_EQ(irdma_fpdu_next(&stream, buf, sizeof(buf)), 0);
	CHECK(offer(2 * size + 1, size - 1));
	at = 2 * size;
	CHECK_EQ(irdma_fpdu_next(&stream, buf, sizeof(buf)), size);
	CHECK(!memcmp(buf, wire + at, size));
	CHECK_EQ(free_used(), 2);
	CHECK_EQ(stream.avail, 0);
}

/* Sequence numbers wrap at each byte of an FPDU, with a border there and next to it. */
static void test_wrap(void)
{
	u32 old = isn, at, k, b;

	for (k = 0; k <= 28; k++) {
		for (b = 1; b < 28; b++) {
			isn = -k;
			restart();
			put_fpdu(20);
			at = 0;
			CHECK(!offer(b, 28 - b));
			CHECK(offer(0, b));
			CHECK(!offer(0, b));
			CHECK(offer(b - 1, 28 - b + 1));
			CHECK_EQ(take_all(&at), 1);
			CHECK(!offer(b, 28 - b));
		}
	}
	isn = old;
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

/* A segment that came too early is not kept; when the gap is filled it comes again. */
static void test_out_of_order(void)
{
	u32 size, at = 0;

	restart();
	size = put_fpdu(40);
	put_fpdu(41);
	put_fpdu(42);
	CHECK(!offer(size, size));
	CHECK_EQ(take_all(&at), 0);
	CHECK(offer(0, size));
	CHECK_EQ(take_all(&at), 1);
	CHECK(!offer(size + 1, 10));		/* one byte is missing */
	CHECK(!offer(2 * size, wire_len - 2 * size));
	CHECK_EQ(stream.avail, 0);
	CHECK(offer(size, wire_len - size));
	CHECK_EQ(take_all(&at), 2);
	CHECK_EQ(at, wire_len);
}

/* Every segment that the peer may repeat, of what is there, consumed already or new in part. */
static void test_retransmission(void)
{
	u32 from, len, size, have, at;

	for (from = 0; from < 48; from++) {
		for (len = 1; len <= 72 - from; len++) {
			restart();
			size = put_fpdu(17);
			put_fpdu(17);
			put_fpdu(17);
			CHECK_EQ(wire_len, 72);
			at = 0;
			have = size + 10;
			CHECK(offer(0, have));
			CHECK_EQ(take_all(&at), 1);
			CHECK_EQ(offer(from, len), from <= have && from + len > have);
			if (from <= have && from + len > have)
				have = from + len;
			CHECK_EQ(stream.avail, have - size);
			CHECK_EQ(take_all(&at), have / size - 1);
			if (have < wire_len) {
				CHECK(offer(have, wire_len - have));
				CHECK(take_all(&at) > 0);
			}
			CHECK_EQ(at, wire_len);
			CHECK_EQ(free_all(), 0);
		}
	}
}

/* Sequence numbers that are nowhere near. */
static void test_far_away(void)
{
	static const u32 off[] = { 0x7fffffff, 0x80000000, 0x80000001, 0xc0000000, -65535u, -24u, 25 };
	u32 i, at = 0;

	restart();
	put_fpdu(17);
	for (i = 0; i < ARRAY_SIZE(off); i++) {
		segs[i].data = wire;
		segs[i].len = 24;
		CHECK(!irdma_fpdu_add(&stream, &segs[i], isn + off[i]));
	}
	CHECK(!offer(0, 0));
	CHECK_EQ(stream.avail, 0);
	CHECK(offer(0, 24));
	CHECK_EQ(take_all(&at), 1);
}

/* Padding is the sender's matter, except that the CRC covers it (RFC 5044 section 4). */
static void test_padding(void)
{
	u32 at = 0;

	restart();
	put_padded_fpdu(1, 0xff);
	put_padded_fpdu(3, 0x5a);
	put_padded_fpdu(4, 0xa5);
	CHECK(offer(0, wire_len));
	CHECK_EQ(take_all(&at), 3);
	restart();
	put_padded_fpdu(1, 0xff);
	wire[3] = 0;
	CHECK(offer(0, wire_len));
	CHECK_EQ((s32)irdma_fpdu_next(&stream, buf, sizeof(buf)), -EBADMSG);
	CHECK_EQ(free_all(), 1);
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
	restart();
	put_fpdu(94);
	CHECK(add(0, 0, wire_len));
	CHECK_EQ((s32)irdma_fpdu_next(&stream, buf, 99), -EMSGSIZE);	/* no room at the caller's */
	CHECK_EQ(irdma_fpdu_next(&stream, buf, 100), 100);
}

/* An error consumes nothing and stays: bytes behind it are not taken for an FPDU. */
static void test_error_stays(void)
{
	u32 size, at = 0, b;

	for (b = 1; b < 48; b++) {
		restart();
		size = put_fpdu(17);
		put_fpdu(17);
		put_fpdu(17);
		wire[size + 10] ^= 1;
		CHECK(offer(0, b));
		at = 0;
		CHECK(take_all(&at) >= 0);
		CHECK(offer(b, wire_len - b));
		CHECK_EQ((s32)take_all(&at), -EBADMSG);
		CHECK_EQ(at, size);
		CHECK_EQ((s32)take_all(&at), -EBADMSG);
		CHECK_EQ(stream.seq, isn + size);
		CHECK_EQ(stream.avail, wire_len - size);
		free_all();
	}
}

/*
 * C50: lengths that no DDP segment can have.  Each one is either an FPDU as MPA sees it, which
 * is passed on whole for hardware to refuse, or too large, and known to be as soon as the
 * second byte is there.
 */
static void test_every_length(void)
{
	u32 len, size, at;

	for (len = 0; len <= 0xffff; len++) {
		restart();
		wire[0] = len >> 8;
		wire[1] = len;
		CHECK(offer(0, 1));
		CHECK_EQ(irdma_fpdu_next(&stream, buf, sizeof(buf)), 0);
		CHECK(offer(1, 1));
		if (len > MAX_FPDU - 6) {
			CHECK_EQ((s32)irdma_fpdu_next(&stream, buf, sizeof(buf)), -EMSGSIZE);
			CHECK_EQ(free_all(), 2);
			continue;
		}
		CHECK_EQ(irdma_fpdu_next(&stream, buf, sizeof(buf)), 0);
		size = put_fpdu(len);
		at = 0;
		CHECK(offer(2, size - 3));
		CHECK_EQ(take_all(&at), 0);
		CHECK(offer(size - 1, 1));
		CHECK_EQ(take_all(&at), 1);
		CHECK_EQ(at, size);
	}
}

/* A bit of the length that flips: too large, more bytes awaited, or a CRC that does not fit. */
static void test_length_damaged(void)
{
	u32 bit, at, i;
	int ret;

	for (bit = 0; bit < 16; bit++) {
		restart();
		put_fpdu(700);
		for (i = 0; i < 40; i++)
			put_fpdu(100);
		wire[bit / 8] ^= 1 << bit % 8;
		at = 0;
		CHECK(offer(0, wire_len));
		ret = take_all(&at);
		CHECK(ret == -EMSGSIZE || ret == -EBADMSG);
		CHECK_EQ(at, 0);
		free_all();
	}
}

/* A segment is copied behind the one before when it fits there, without what is known of it already. */
static void test_room(void)
{
	u32 len, at;

	for (len = 1; len < 30; len++) {
		restart();
		put_fpdu(100);
		room = 10;
		CHECK_EQ(add_bytes(0, 20), IRDMA_FPDU_KEPT);
		CHECK_EQ(add_bytes(15, 5 + len), len <= 10 ? IRDMA_FPDU_COPIED : IRDMA_FPDU_KEPT);
		CHECK_EQ(add_bytes(20 + len, 10), len > 10 ? IRDMA_FPDU_COPIED : IRDMA_FPDU_KEPT);
		CHECK_EQ(add_bytes(0, 30 + len), IRDMA_FPDU_REFUSED);
		CHECK_EQ(add_bytes(31 + len, 5), IRDMA_FPDU_REFUSED);
		room = 0;
		at = 0;
		CHECK(offer(30 + len, wire_len - 30 - len));
		CHECK_EQ(take_all(&at), 1);
		CHECK_EQ(free_all(), 0);
	}
}

/* However small the segments are, what is not cut yet lies in two buffers of the size of an FPDU. */
static void test_small_segments(void)
{
	struct irdma_fpdu_seg *seg;
	u32 len, from, at, n;

	room = MAX_FPDU;
	for (len = 1; len < 100; len++) {
		restart();
		for (n = 0; n < 3; n++)
			put_fpdu(MAX_FPDU - 6);
		at = 0;
		for (from = 0; from < wire_len; from += len) {
			CHECK(offer(from, min(len, wire_len - from)));
			CHECK(take_all(&at) >= 0);
			n = 0;
			list_for_each_entry(seg, &stream.segs, entry)
				n++;
			CHECK(n <= 2);
		}
		CHECK_EQ(at, wire_len);
		CHECK_EQ(free_all(), 0);
	}
	room = 0;
}

static u32 next_random(u32 *state)
{
	*state = *state * 1664525 + 1013904223;
	return *state >> 8;
}

/* A peer that cuts at will, loses, repeats and combines, until all has arrived. */
static void random_stream(u32 seed)
{
	u32 state = seed, at = 0, have = 0, from, len, i;

	isn = next_random(&state) << 8 ^ next_random(&state);
	restart();
	for (i = 0; i < 20; i++)
		put_fpdu(next_random(&state) % (seed % 2 ? 40 : MAX_FPDU - 5));
	while (have < wire_len) {
		from = next_random(&state) % 4 ? have : next_random(&state) % wire_len;
		len = next_random(&state) % (seed % 3 ? 1460 : 50) + 1;
		len = min(len, wire_len - from);
		CHECK_EQ(offer(from, len), from <= have && from + len > have);
		if (from <= have && from + len > have)
			have = from + len;
		CHECK(take_all(&at) >= 0);
		CHECK_EQ(at + stream.avail, have);
	}
	CHECK_EQ(at, wire_len);
	CHECK_EQ(free_all(), 0);
}

static void test_random(void)
{
	static const u32 rooms[] = { 0, 50, 2000 };
	u32 old = isn, seed, i;

	for (i = 0; i < ARRAY_SIZE(rooms); i++) {
		room = rooms[i];
		for (seed = 1; seed <= 500; seed++)
			CHECK_CALL(random_stream(seed));
	}
	room = 0;
	isn = old;
}

int main(void)
{
	static const struct test tests[] = {
		{ "crc", test_crc },
		{ "by hand", test_by_hand },
		{ "any border", test_any_border },
		{ "every split", test_every_split },
		{ "owner", test_owner },
		{ "wrap", test_wrap },
		{ "gap and overlap", test_gap_and_overlap },
		{ "out of order", test_out_of_order },
		{ "retransmission", test_retransmission },
		{ "far away", test_far_away },
		{ "padding", test_padding },
		{ "bad crc", test_bad_crc },
		{ "too large", test_too_large },
		{ "error stays", test_error_stays },
		{ "every length", test_every_length },
		{ "length damaged", test_length_damaged },
		{ "room", test_room },
		{ "small segments", test_small_segments },
		{ "random", test_random },
	};

	return run_tests(tests, ARRAY_SIZE(tests));
}
