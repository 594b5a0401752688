/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Cuts a TCP byte stream into FPDUs (RFC 5044 section 4) without regard to segment borders,
 * for the exception queue (ieq.c).  Pure functions on memory, without locks.  Markers are
 * not looked for: this driver never asks a peer for them.
 */
#ifndef IRDMA_FPDU_H
#define IRDMA_FPDU_H

#include <linux/list.h>
#include <linux/types.h>

/**
 * struct irdma_fpdu_seg - payload of one TCP segment, and of others that were copied behind it;
 * embedded in what its owner keeps
 * @entry: in a list of the stream
 * @data: first byte
 * @len: bytes
 * @end: up to here more may be written behind them
 */
struct irdma_fpdu_seg {
	struct list_head entry;
	const u8 *data;
	u32 len;
	u8 *end;
};

/* What became of a segment. */
enum irdma_fpdu_added {
	IRDMA_FPDU_REFUSED,
	IRDMA_FPDU_COPIED,
	IRDMA_FPDU_KEPT,
};

/**
 * struct irdma_fpdu_stream - bytes of a stream that are not cut yet
 * @segs: contiguous segments, oldest first
 * @used: segments that were consumed, for their owner to take
 * @seq: sequence number of the first byte in @segs, at an FPDU border
 * @avail: bytes in @segs
 * @max_fpdu: bytes of the largest FPDU that is taken for one
 * @crc32c: continues the CRC-32C of RFC 5044, reflected, without inversions
 */
struct irdma_fpdu_stream {
	struct list_head segs;
	struct list_head used;
	u32 seq;
	u32 avail;
	u32 max_fpdu;
	u32 (*crc32c)(u32 crc, const u8 *data, u32 len);
};

void irdma_fpdu_init(struct irdma_fpdu_stream *stream, u32 seq, u32 max_fpdu,
		     u32 (*crc32c)(u32 crc, const u8 *data, u32 len));
enum irdma_fpdu_added irdma_fpdu_add(struct irdma_fpdu_stream *stream, struct irdma_fpdu_seg *seg,
				     u32 seq);
int irdma_fpdu_next(struct irdma_fpdu_stream *stream, u8 *buf, u32 size);

#endif
