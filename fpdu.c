// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Cutting a TCP byte stream into FPDUs: fpdu.h tells what for.  An FPDU is a 2-byte length
 * of the ULPDU, the ULPDU, padding to a multiple of 4, and CRC32c of all that (RFC 5044
 * section 4.1).  Compiles in user space too (tests/unit).
 */
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/string.h>

#include "fpdu.h"

#define FPDU_LEN_BYTES	2
#define FPDU_CRC_BYTES	4
#define FPDU_OVERHEAD	(FPDU_LEN_BYTES + FPDU_CRC_BYTES)

/**
 * irdma_fpdu_init - begin with an empty stream
 * @stream: the stream
 * @seq: sequence number of its first byte, where an FPDU begins
 * @max_fpdu: bytes of the largest FPDU
 * @crc32c: as in &struct irdma_fpdu_stream
 */
void irdma_fpdu_init(struct irdma_fpdu_stream *stream, u32 seq, u32 max_fpdu,
		     u32 (*crc32c)(u32 crc, const u8 *data, u32 len))
{
	INIT_LIST_HEAD(&stream->segs);
	INIT_LIST_HEAD(&stream->used);
	stream->seq = seq;
	stream->avail = 0;
	stream->max_fpdu = max_fpdu;
	stream->crc32c = crc32c;
}

/**
 * irdma_fpdu_add - append a segment
 * @stream: the stream
 * @seg: payload
 * @seq: sequence number of its first byte
 *
 * Bytes that are there already are cut off its front.  A segment behind a gap is refused: the
 * peer sends it again.  One that has room in the segment before is copied there, so that a
 * stream of small segments does not take a buffer for each.
 *
 * Return: %IRDMA_FPDU_KEPT: @seg is in the stream; otherwise it stays the caller's, with
 * %IRDMA_FPDU_COPIED its bytes are in the stream and with %IRDMA_FPDU_REFUSED they are not.
 */
enum irdma_fpdu_added irdma_fpdu_add(struct irdma_fpdu_stream *stream, struct irdma_fpdu_seg *seg,
				     u32 seq)
{
	s32 known = stream->seq + stream->avail - seq;
	struct irdma_fpdu_seg *last;
	size_t room;

	if (known < 0 || known >= (s64)seg->len)
		return IRDMA_FPDU_REFUSED;
	seg->data += known;
	seg->len -= known;
	stream->avail += seg->len;
	last = list_empty(&stream->segs) ? NULL :
	       list_last_entry(&stream->segs, struct irdma_fpdu_seg, entry);
	room = last ? last->end - (last->data + last->len) : 0;
	if (room < seg->len) {
		list_add_tail(&seg->entry, &stream->segs);
		return IRDMA_FPDU_KEPT;
	}
	memcpy(last->end - room, seg->data, seg->len);
	last->len += seg->len;
	return IRDMA_FPDU_COPIED;
}

/* Copy the first bytes, which are there, without consuming them. */
static void fpdu_copy(const struct irdma_fpdu_stream *stream, u8 *buf, u32 len)
{
	const struct irdma_fpdu_seg *seg;
	u32 part;

	list_for_each_entry(seg, &stream->segs, entry) {
		part = min(seg->len, len);
		memcpy(buf, seg->data, part);
		buf += part;
		len -= part;
		if (!len)
			break;
	}
}

static void fpdu_consume(struct irdma_fpdu_stream *stream, u32 len)
{
	struct irdma_fpdu_seg *seg, *next;
	u32 part;

	stream->seq += len;
	stream->avail -= len;
	list_for_each_entry_safe(seg, next, &stream->segs, entry) {
		part = min(seg->len, len);
		seg->data += part;
		seg->len -= part;
		len -= part;
		if (seg->len)
			break;
		list_move_tail(&seg->entry, &stream->used);
	}
}

static bool fpdu_crc_ok(const struct irdma_fpdu_stream *stream, const u8 *fpdu, u32 size)
{
	const u8 *sent = fpdu + size - FPDU_CRC_BYTES;
	u32 crc = ~stream->crc32c(~0U, fpdu, size - FPDU_CRC_BYTES);

	return crc == (sent[0] | sent[1] << 8 | sent[2] << 16 | (u32)sent[3] << 24);
}

/**
 * irdma_fpdu_next - take the next FPDU off a stream
 * @stream: the stream
 * @buf: where it is copied to
 * @size: bytes at @buf, not less than the stream's largest FPDU
 *
 * Return: its bytes; 0 if it is not complete yet; -EMSGSIZE if it is too large; -EBADMSG if
 * its CRC is wrong.  After an error nothing can be made of the stream any more.
 */
int irdma_fpdu_next(struct irdma_fpdu_stream *stream, u8 *buf, u32 size)
{
	u8 head[FPDU_LEN_BYTES];
	u32 len;

	if (stream->avail < FPDU_LEN_BYTES)
		return 0;
	fpdu_copy(stream, head, sizeof(head));
	len = ALIGN((u32)(head[0] << 8 | head[1]) + FPDU_OVERHEAD, 4);
	if (len > stream->max_fpdu || len > size)
		return -EMSGSIZE;
	if (stream->avail < len)
		return 0;
	fpdu_copy(stream, buf, len);
	if (!fpdu_crc_ok(stream, buf, len))
		return -EBADMSG;
	fpdu_consume(stream, len);
	return len;
}
