/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Raw packet queues: a UDA queue pair with a completion queue of its own (spec 03 section 7;
 * spec 02, 4.4 and 5.10).  The ILQ carries the TCP segments of connections that hardware does
 * not own yet; the IEQ delivers segments of established connections that hardware cannot
 * place.
 */
#ifndef IRDMA_ILQ_H
#define IRDMA_ILQ_H

#include <linux/list.h>
#include <linux/types.h>

#include "cm.h"
#include "fpdu.h"

struct irdma_device;
struct irdma_ilq;

/**
 * struct irdma_ilq_tx - a transmit buffer; from irdma_ilq_tx_alloc() on its user's, until
 *	irdma_ilq_tx_send() or irdma_ilq_tx_free()
 * @frame: what is in it
 * @ah: address handle to send with, set by the user
 * @done: called when hardware is finished with the buffer, with the outcome; the buffer is
 *	free again when it returns. May be NULL. Process or softirq context, must not sleep
 * @owner: for @done
 * @entry: private
 * @dma: private
 */
struct irdma_ilq_tx {
	struct irdma_cm_frame frame;
	u32 ah;
	void (*done)(struct irdma_ilq_tx *tx, bool sent);
	void *owner;
	struct list_head entry;
	dma_addr_t dma;
};

/**
 * struct irdma_ilq_buf - a receive buffer with a frame in it
 * @rx: the frame, its VLAN and family
 * @src_mac: who sent it, if @has_mac
 * @has_mac: hardware told the source MAC address
 * @seg: for the user, while it keeps the buffer, of which @seg.end is the end
 * @entry: private
 * @data: private: start of the buffer
 * @page: private
 * @offset: private: in @page
 * @dma: private
 */
struct irdma_ilq_buf {
	struct irdma_cm_rx rx;
	u8 src_mac[ETH_ALEN];
	bool has_mac;
	struct irdma_fpdu_seg seg;
	struct list_head entry;
	u8 *data;
	struct page *page;
	u32 offset;
	dma_addr_t dma;
};

/**
 * struct irdma_ilq_config - what distinguishes the queues
 * @name: for messages
 * @cqn: CQ number
 * @qpn: QP number
 * @sq_size: entries, a power of two
 * @rq_size: entries, a power of two
 * @rx_bufs: receive buffers, at least @rq_size; the rest replaces buffers that are kept
 * @rx_size: bytes of a receive buffer
 * @tx_size: bytes of a transmit buffer
 * @receive: called for each frame, in a tasklet, one at a time. Returns true to keep the
 *	buffer until irdma_ilq_rx_free()
 * @arg: for @receive
 */
struct irdma_ilq_config {
	const char *name;
	u32 cqn;
	u32 qpn;
	u32 sq_size;
	u32 rq_size;
	u32 rx_bufs;
	u32 rx_size;
	u32 tx_size;
	bool (*receive)(void *arg, struct irdma_ilq_buf *buf);
	void *arg;
};

/**
 * struct irdma_ilq_stats - what a queue has seen
 * @sent: frames that left
 * @send_errors: frames that hardware refused
 * @no_buffer: allocations that failed because every buffer was in use
 * @received: frames handed to the receiver
 * @rx_errors: completions in error
 * @rx_bad: completions that make no sense (queue, index, length)
 */
struct irdma_ilq_stats {
	u64 sent;
	u64 send_errors;
	u64 no_buffer;
	u64 received;
	u64 rx_errors;
	u64 rx_bad;
};

struct irdma_ilq *irdma_ilq_create(struct irdma_device *dev,
				   const struct irdma_ilq_config *config);
void irdma_ilq_stop_receive(struct irdma_ilq *ilq);
void irdma_ilq_destroy(struct irdma_ilq *ilq);
void irdma_ilq_read_stats(const struct irdma_ilq *ilq, struct irdma_ilq_stats *stats);
u16 irdma_ilq_qs_handle(const struct irdma_ilq *ilq);

struct irdma_ilq_tx *irdma_ilq_tx_alloc(struct irdma_ilq *ilq);
void irdma_ilq_tx_free(struct irdma_ilq *ilq, struct irdma_ilq_tx *tx);
void irdma_ilq_tx_send(struct irdma_ilq *ilq, struct irdma_ilq_tx *tx);
void irdma_ilq_rx_free(struct irdma_ilq *ilq, struct irdma_ilq_buf *buf);

#endif
