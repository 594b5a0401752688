// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Raw packet queues (ILQ, IEQ): spec 03 section 7, spec 02 sections 4.4, 5.10 and 6.
 *
 * All memory is there before the first frame: nothing is allocated on the packet path.  A
 * transmit buffer is also the right to an SQ entry, so a frame that got a buffer can always
 * be posted.  Receive buffers go round: RQ entry, receiver, free list, RQ entry; errors put
 * them back like everything else.
 *
 * Completions are handled by a tasklet, a budget of them at a time, which also makes the
 * receiver's calls one at a time.  Senders may be in any context; tx_lock and rx_lock cover
 * a few stores each.
 */
#include <linux/bitfield.h>
#include <linux/dma-mapping.h>
#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <linux/interrupt.h>
#include <linux/slab.h>

#include "irdma.h"
#include "ilq.h"
#include "qos.h"
#include "qpc.h"
#include "wq.h"

#define ILQ_BUDGET		64	/* completions until others may run */
#define ILQ_QUANTUM		32	/* bytes of a WQE and of a CQ slot */
#define ILQ_SHADOW_SIZE		64
#define ILQ_CEQN		0

/* SQ entry (spec 02, 5.10, E810) */
#define WQE_QW1_LEN		GENMASK_ULL(62, 32)
#define WQE_QW1_VALID		BIT_ULL(63)
#define WQE_QW3_AH		GENMASK_ULL(24, 0)
#define WQE_QW3_OPCODE		GENMASK_ULL(37, 32)
#define WQE_QW3_L4LEN		GENMASK_ULL(45, 42)
#define WQE_QW3_SIGNALED	BIT_ULL(62)
#define WQE_QW3_VALID		BIT_ULL(63)
#define WQE_OP_SEND		0x03ULL

/* CQE (spec 02, 6.1) */
#define CQE_QW0_LEN		GENMASK_ULL(31, 0)
#define CQE_QW2_QPN		GENMASK_ULL(55, 32)
#define CQE_QW3_MINOR		GENMASK_ULL(15, 0)
#define CQE_QW3_MAJOR		GENMASK_ULL(31, 16)
#define CQE_QW3_IDX		GENMASK_ULL(46, 32)
#define CQE_QW3_EXTENDED	BIT_ULL(50)
#define CQE_QW3_IPV4		BIT_ULL(53)
#define CQE_QW3_ERROR		BIT_ULL(55)
#define CQE_QW3_SQ		BIT_ULL(62)
#define CQE_QW3_VALID		BIT_ULL(63)
#define EXT_QW2_MAC		GENMASK_ULL(47, 0)
#define EXT_QW2_VLAN		GENMASK_ULL(63, 48)
#define EXT_QW3_VLAN_VALID	BIT_ULL(60)
#define EXT_QW3_MAC_VALID	BIT_ULL(61)

/* UDA context (spec 01, 3.5) */
#define QPC_QW3_SQ_SIZE		GENMASK_ULL(15, 12)
#define QPC_QW3_RQ_SIZE		GENMASK_ULL(11, 8)
#define QPC_QW6_MSS		GENMASK_ULL(29, 16)
#define QPC_QW17_TXCQ		GENMASK_ULL(24, 0)
#define QPC_QW17_RXCQ		GENMASK_ULL(56, 32)
#define QPC_QW20_PRIVEN		BIT_ULL(25)
#define QPC_QW22_QS_HANDLE	GENMASK_ULL(25, 16)

/* Received frame (spec 02, 5.10): a 40-byte L3 area, then TCP. */
#define L3_AREA			40
#define L3_IPV4_OFFSET		20
#define TCP_HDR_MIN		20

/* A CQE with its extension. */
struct ilq_cqe {
	u64 qw[4];
	u64 ext[4];
};

/**
 * struct irdma_ilq - a raw packet queue
 * @dev: device
 * @config: as asked for
 * @handler: told of completions
 * @qos: transmit queue set
 * @tasklet: drains the CQ
 * @mem: CQ ring and shadow, SQ, RQ, QP shadow, transmit buffers
 * @mem_dma: bus address of @mem
 * @mem_size: bytes of @mem
 * @cq: CQ ring
 * @cq_shadow: its shadow area
 * @cq_size: slots
 * @cq_head: next slot to read
 * @cq_polarity: valid bit expected there
 * @armed: an event was asked for and has not come
 * @sq: SQ ring
 * @rq: RQ ring
 * @txs: all transmit buffers
 * @tx_lock: SQ, @tx_free and @tx_posted
 * @tx_free: buffers that nobody uses
 * @tx_posted: by SQ index, the buffer that hardware sends
 * @sq_head: next SQ entry to write
 * @sq_polarity: valid bit for it
 * @bufs: all receive buffers
 * @rx_lock: RQ, @rx_free and @rx_posted
 * @rx_free: buffers that nobody uses
 * @rx_posted: by RQ index, the buffer that hardware fills
 * @rq_head: next RQ entry to write
 * @rq_count: entries that hardware has
 * @rq_polarity: valid bit for @rq_head
 * @deaf: frames are put back unread
 * @stats: counters, each written in one context only or under a lock
 */
struct irdma_ilq {
	struct irdma_device *dev;
	struct irdma_ilq_config config;
	struct irdma_cq_handler handler;
	struct irdma_qos_user qos;
	struct tasklet_struct tasklet;

	void *mem;
	dma_addr_t mem_dma;
	size_t mem_size;

	__le64 *cq;
	__le64 *cq_shadow;
	u32 cq_size;
	u32 cq_head;
	bool cq_polarity;
	bool armed;

	__le64 *sq;
	__le64 *rq;

	struct irdma_ilq_tx *txs;
	spinlock_t tx_lock;
	struct list_head tx_free;
	struct irdma_ilq_tx **tx_posted;
	u32 sq_head;
	bool sq_polarity;

	struct irdma_ilq_buf *bufs;
	spinlock_t rx_lock;
	struct list_head rx_free;
	struct irdma_ilq_buf **rx_posted;
	u32 rq_head;
	u32 rq_count;
	bool rq_polarity;
	bool deaf;

	struct irdma_ilq_stats stats;
};

/* Offsets of the parts of irdma_ilq.mem. */
struct ilq_layout {
	size_t cq;
	size_t cq_shadow;
	size_t sq;
	size_t rq;
	size_t qp_shadow;
	size_t tx;
	size_t size;
};

static void ilq_layout(const struct irdma_ilq *ilq, struct ilq_layout *at)
{
	const struct irdma_ilq_config *config = &ilq->config;

	at->cq = 0;
	at->cq_shadow = ALIGN((size_t)ilq->cq_size * ILQ_QUANTUM, 256);
	at->sq = ALIGN(at->cq_shadow + ILQ_SHADOW_SIZE, 4096);
	at->rq = at->sq + (size_t)config->sq_size * ILQ_QUANTUM;
	at->qp_shadow = at->rq + (size_t)config->rq_size * ILQ_QUANTUM;
	at->tx = ALIGN(at->qp_shadow + ILQ_SHADOW_SIZE, 256);
	at->size = at->tx + (size_t)config->sq_size * config->tx_size;
}

/* --- transmit --- */

/**
 * irdma_ilq_tx_alloc - get an empty transmit buffer
 * @ilq: queue
 *
 * Context: any.
 * Return: a buffer with @frame.data and @frame.size set, or NULL when all are in use.
 */
struct irdma_ilq_tx *irdma_ilq_tx_alloc(struct irdma_ilq *ilq)
{
	struct irdma_ilq_tx *tx;
	unsigned long flags;

	spin_lock_irqsave(&ilq->tx_lock, flags);
	tx = list_first_entry_or_null(&ilq->tx_free, struct irdma_ilq_tx, entry);
	if (tx)
		list_del(&tx->entry);
	else
		ilq->stats.no_buffer++;
	spin_unlock_irqrestore(&ilq->tx_lock, flags);
	if (tx) {
		tx->frame.len = 0;
		tx->done = NULL;
	}
	return tx;
}

/**
 * irdma_ilq_tx_free - give back a transmit buffer that was not sent
 * @ilq: queue
 * @tx: the buffer
 *
 * Context: any.
 */
void irdma_ilq_tx_free(struct irdma_ilq *ilq, struct irdma_ilq_tx *tx)
{
	unsigned long flags;

	spin_lock_irqsave(&ilq->tx_lock, flags);
	list_add(&tx->entry, &ilq->tx_free);
	spin_unlock_irqrestore(&ilq->tx_lock, flags);
}

/**
 * irdma_ilq_tx_send - transmit a frame
 * @ilq: queue
 * @tx: buffer with @frame.len, @frame.tcp_len and @ah set
 *
 * There is one SQ entry more than there are buffers, so there is always room.
 *
 * Context: any.
 */
void irdma_ilq_tx_send(struct irdma_ilq *ilq, struct irdma_ilq_tx *tx)
{
	unsigned long flags;
	__le64 *wqe;
	u64 hdr;

	hdr = FIELD_PREP(WQE_QW3_AH, tx->ah) | FIELD_PREP(WQE_QW3_OPCODE, WQE_OP_SEND) |
	      FIELD_PREP(WQE_QW3_L4LEN, tx->frame.tcp_len / 4) | WQE_QW3_SIGNALED;

	spin_lock_irqsave(&ilq->tx_lock, flags);
	wqe = ilq->sq + ilq->sq_head * (ILQ_QUANTUM / sizeof(*wqe));
	ilq->tx_posted[ilq->sq_head] = tx;
	wqe[0] = cpu_to_le64(tx->dma);
	wqe[1] = cpu_to_le64(FIELD_PREP(WQE_QW1_LEN, tx->frame.len) |
			     (ilq->sq_polarity ? WQE_QW1_VALID : 0));
	wqe[2] = 0;
	dma_wmb();
	wqe[3] = cpu_to_le64(hdr | (ilq->sq_polarity ? WQE_QW3_VALID : 0));
	if (++ilq->sq_head == ilq->config.sq_size) {
		ilq->sq_head = 0;
		ilq->sq_polarity = !ilq->sq_polarity;
	}
	wmb();	/* the entry must be in memory before hardware is told to look */
	irdma_ring_sq(ilq->dev, ilq->config.qpn);
	spin_unlock_irqrestore(&ilq->tx_lock, flags);
}

static void ilq_sent(struct irdma_ilq *ilq, u32 idx, bool ok)
{
	struct irdma_ilq_tx *tx;
	unsigned long flags;

	spin_lock_irqsave(&ilq->tx_lock, flags);
	tx = ilq->tx_posted[idx];
	ilq->tx_posted[idx] = NULL;
	spin_unlock_irqrestore(&ilq->tx_lock, flags);
	if (!tx) {
		ilq->stats.rx_bad++;
		return;
	}
	if (ok)
		ilq->stats.sent++;
	else
		ilq->stats.send_errors++;
	if (tx->done)
		tx->done(tx, ok);
	irdma_ilq_tx_free(ilq, tx);
}

/* --- receive --- */

static void ilq_post_rx(struct irdma_ilq *ilq, struct irdma_ilq_buf *buf)
{
	__le64 *wqe = ilq->rq + ilq->rq_head * (ILQ_QUANTUM / sizeof(*wqe));

	ilq->rx_posted[ilq->rq_head] = buf;
	wqe[0] = cpu_to_le64(buf->dma);
	wqe[1] = cpu_to_le64(FIELD_PREP(WQE_QW1_LEN, ilq->config.rx_size) |
			     (ilq->rq_polarity ? WQE_QW1_VALID : 0));
	wqe[2] = 0;
	dma_wmb();
	wqe[3] = cpu_to_le64(ilq->rq_polarity ? WQE_QW3_VALID : 0);
	ilq->rq_count++;
	if (++ilq->rq_head == ilq->config.rq_size) {
		ilq->rq_head = 0;
		ilq->rq_polarity = !ilq->rq_polarity;
	}
}

/**
 * irdma_ilq_rx_free - give back a receive buffer
 * @ilq: queue
 * @buf: a buffer that the receiver kept
 *
 * Context: any.
 */
void irdma_ilq_rx_free(struct irdma_ilq *ilq, struct irdma_ilq_buf *buf)
{
	unsigned long flags;

	dma_sync_single_for_device(dma_dev(ilq->dev), buf->dma, ilq->config.rx_size,
				   DMA_FROM_DEVICE);
	spin_lock_irqsave(&ilq->rx_lock, flags);
	list_add(&buf->entry, &ilq->rx_free);
	while (ilq->rq_count < ilq->config.rq_size && !list_empty(&ilq->rx_free)) {
		buf = list_first_entry(&ilq->rx_free, struct irdma_ilq_buf, entry);
		list_del(&buf->entry);
		ilq_post_rx(ilq, buf);
	}
	spin_unlock_irqrestore(&ilq->rx_lock, flags);
}

/* The buffer of a completed RQ entry, which is free now; a spare one takes its place. */
static struct irdma_ilq_buf *ilq_take_rx(struct irdma_ilq *ilq, u32 idx)
{
	struct irdma_ilq_buf *buf;
	unsigned long flags;

	spin_lock_irqsave(&ilq->rx_lock, flags);
	buf = ilq->rx_posted[idx];
	ilq->rx_posted[idx] = NULL;
	if (buf)
		ilq->rq_count--;
	spin_unlock_irqrestore(&ilq->rx_lock, flags);
	return buf;
}

/* Lengths, family and VLAN of a received frame; false if the completion makes no sense. */
static bool ilq_describe(struct irdma_ilq *ilq, const struct ilq_cqe *cqe,
			 struct irdma_ilq_buf *buf)
{
	u32 len = FIELD_GET(CQE_QW0_LEN, cqe->qw[0]);
	u16 vid = FIELD_GET(EXT_QW2_VLAN, cqe->ext[2]) & VLAN_VID_MASK;
	u32 ip_at;

	if (len < L3_AREA + TCP_HDR_MIN || len > ilq->config.rx_size)
		return false;
	buf->rx.ipv4 = cqe->qw[3] & CQE_QW3_IPV4;
	ip_at = buf->rx.ipv4 ? L3_IPV4_OFFSET : 0;
	buf->rx.ip = buf->data + ip_at;
	buf->rx.len = len - ip_at;
	/* A tag with VLAN id 0 carries only a priority (IEEE 802.1Q). */
	buf->rx.vlan = (cqe->ext[3] & EXT_QW3_VLAN_VALID) && vid ? vid : IRDMA_CM_NO_VLAN;
	buf->has_mac = cqe->ext[3] & EXT_QW3_MAC_VALID;
	if (buf->has_mac)
		u64_to_ether_addr(FIELD_GET(EXT_QW2_MAC, cqe->ext[2]), buf->src_mac);
	return true;
}

static void ilq_received(struct irdma_ilq *ilq, u32 idx, const struct ilq_cqe *cqe)
{
	struct irdma_ilq_buf *buf = ilq_take_rx(ilq, idx);
	bool kept = false;

	if (!buf) {
		ilq->stats.rx_bad++;
		return;
	}
	dma_sync_single_for_cpu(dma_dev(ilq->dev), buf->dma, ilq->config.rx_size,
				DMA_FROM_DEVICE);
	if (cqe->qw[3] & CQE_QW3_ERROR) {
		ilq->stats.rx_errors++;
	} else if (!ilq_describe(ilq, cqe, buf)) {
		ilq->stats.rx_bad++;
	} else if (!READ_ONCE(ilq->deaf)) {
		ilq->stats.received++;
		kept = ilq->config.receive(ilq->config.arg, buf);
	}
	if (!kept)
		irdma_ilq_rx_free(ilq, buf);
}

/* --- completions --- */

static const __le64 *ilq_slot(const struct irdma_ilq *ilq, u32 idx)
{
	return ilq->cq + idx * (ILQ_QUANTUM / sizeof(__le64));
}

static bool ilq_slot_valid(const struct irdma_ilq *ilq, u32 idx, bool polarity)
{
	u64 qw3 = le64_to_cpu(READ_ONCE(ilq_slot(ilq, idx)[3]));

	return !!(qw3 & CQE_QW3_VALID) == polarity;
}

static void ilq_copy_slot(const struct irdma_ilq *ilq, u32 idx, u64 *qw)
{
	const __le64 *slot = ilq_slot(ilq, idx);
	int i;

	for (i = 0; i < ILQ_QUANTUM / sizeof(*slot); i++)
		qw[i] = le64_to_cpu(slot[i]);
}

static void ilq_advance(struct irdma_ilq *ilq)
{
	if (++ilq->cq_head == ilq->cq_size) {
		ilq->cq_head = 0;
		ilq->cq_polarity = !ilq->cq_polarity;
	}
}

/* Take one completion off the CQ; false if there is none, or only half of one. */
static bool ilq_poll(struct irdma_ilq *ilq, struct ilq_cqe *cqe)
{
	bool next_polarity = ilq->cq_polarity;
	u32 next = ilq->cq_head + 1;

	if (!ilq_slot_valid(ilq, ilq->cq_head, ilq->cq_polarity))
		return false;
	dma_rmb();	/* the rest of the entry is older than its valid bit */
	ilq_copy_slot(ilq, ilq->cq_head, cqe->qw);
	memset(cqe->ext, 0, sizeof(cqe->ext));
	if (cqe->qw[3] & CQE_QW3_EXTENDED) {
		if (next == ilq->cq_size) {
			next = 0;
			next_polarity = !next_polarity;
		}
		if (!ilq_slot_valid(ilq, next, next_polarity))
			return false;
		dma_rmb();
		ilq_copy_slot(ilq, next, cqe->ext);
		ilq_advance(ilq);
	}
	ilq_advance(ilq);
	irdma_cq_shadow_set_head(ilq->cq_shadow, ilq->cq_head);
	return true;
}

static void ilq_complete(struct irdma_ilq *ilq, const struct ilq_cqe *cqe)
{
	u32 idx = FIELD_GET(CQE_QW3_IDX, cqe->qw[3]);
	bool sq = cqe->qw[3] & CQE_QW3_SQ;

	if (FIELD_GET(CQE_QW2_QPN, cqe->qw[2]) != ilq->config.qpn ||
	    idx >= (sq ? ilq->config.sq_size : ilq->config.rq_size)) {
		ilq->stats.rx_bad++;
		return;
	}
	if (cqe->qw[3] & CQE_QW3_ERROR)
		irdma_err_ratelimited(ilq->dev, "%s: %s entry %u failed, error 0x%04llx/0x%04llx\n",
				      ilq->config.name, sq ? "send" : "receive", idx,
				      FIELD_GET(CQE_QW3_MAJOR, cqe->qw[3]),
				      FIELD_GET(CQE_QW3_MINOR, cqe->qw[3]));
	if (sq)
		ilq_sent(ilq, idx, !(cqe->qw[3] & CQE_QW3_ERROR));
	else
		ilq_received(ilq, idx, cqe);
}

/*
 * Not again before the event has come: the arm sequence has two bits, and a hardware that reads
 * it after four more arms sees no change (see arm_hw() in cq.c).
 */
static void ilq_arm(struct irdma_ilq *ilq)
{
	if (READ_ONCE(ilq->armed))
		return;
	WRITE_ONCE(ilq->armed, true);
	irdma_cq_shadow_arm(ilq->cq_shadow, false);
	irdma_arm_cq(ilq->dev, ilq->config.cqn);
}

static void ilq_tasklet(struct tasklet_struct *tasklet)
{
	struct irdma_ilq *ilq = container_of(tasklet, struct irdma_ilq, tasklet);
	struct ilq_cqe cqe;
	int left;

	for (left = ILQ_BUDGET; left && ilq_poll(ilq, &cqe); left--)
		ilq_complete(ilq, &cqe);
	if (left) {
		ilq_arm(ilq);
		/* It is not known whether arming reports what came in between (spec 01, 6.3). */
		if (!ilq_slot_valid(ilq, ilq->cq_head, ilq->cq_polarity))
			return;
	}
	tasklet_schedule(&ilq->tasklet);
}

static void ilq_comp(struct irdma_cq_handler *handler)
{
	struct irdma_ilq *ilq = container_of(handler, struct irdma_ilq, handler);

	WRITE_ONCE(ilq->armed, false);
	tasklet_schedule(&ilq->tasklet);
}

static void ilq_cq_error(struct irdma_cq_handler *handler, u16 ae_code)
{
	struct irdma_ilq *ilq = container_of(handler, struct irdma_ilq, handler);

	irdma_err(ilq->dev, "%s: event 0x%04x on its completion queue\n", ilq->config.name,
		  ae_code);
	irdma_mark_dead(ilq->dev, "raw packet queue lost");
}

static const struct irdma_cq_handler_ops ilq_handler_ops = {
	.comp = ilq_comp,
	.error = ilq_cq_error,
};

/* --- life --- */

static void ilq_write_context(const struct irdma_ilq *ilq, const struct ilq_layout *at,
			      __le64 *qpc)
{
	memset(qpc, 0, IRDMA_QPC_WORDS * sizeof(*qpc));
	qpc[1] = cpu_to_le64(ilq->mem_dma + at->sq);
	qpc[2] = cpu_to_le64(ilq->mem_dma + at->rq);
	qpc[3] = cpu_to_le64(FIELD_PREP(QPC_QW3_SQ_SIZE, ilog2(ilq->config.sq_size) - 2) |
			     FIELD_PREP(QPC_QW3_RQ_SIZE, ilog2(ilq->config.rq_size) - 2));
	qpc[6] = cpu_to_le64(FIELD_PREP(QPC_QW6_MSS, ilq->config.rx_size));
	qpc[17] = cpu_to_le64(FIELD_PREP(QPC_QW17_TXCQ, ilq->config.cqn) |
			      FIELD_PREP(QPC_QW17_RXCQ, ilq->config.cqn));
	qpc[20] = cpu_to_le64(QPC_QW20_PRIVEN);
	qpc[21] = cpu_to_le64(ilq->config.qpn);
	qpc[22] = cpu_to_le64(FIELD_PREP(QPC_QW22_QS_HANDLE, ilq->qos.qs_handle));
}

static int ilq_alloc_rings(struct irdma_ilq *ilq, struct ilq_layout *at)
{
	struct irdma_ilq_tx *tx;
	u32 i;

	ilq_layout(ilq, at);
	ilq->mem_size = at->size;
	ilq->mem = dma_alloc_coherent(dma_dev(ilq->dev), at->size, &ilq->mem_dma, GFP_KERNEL);
	if (!ilq->mem)
		return -ENOMEM;
	ilq->cq = ilq->mem + at->cq;
	ilq->cq_shadow = ilq->mem + at->cq_shadow;
	ilq->sq = ilq->mem + at->sq;
	ilq->rq = ilq->mem + at->rq;
	/* One less than entries: the ring is never full. */
	for (i = 0; i < ilq->config.sq_size - 1; i++) {
		tx = &ilq->txs[i];
		tx->frame.data = ilq->mem + at->tx + (size_t)i * ilq->config.tx_size;
		tx->frame.size = ilq->config.tx_size;
		tx->dma = ilq->mem_dma + at->tx + (size_t)i * ilq->config.tx_size;
		list_add_tail(&tx->entry, &ilq->tx_free);
	}
	return 0;
}

static void ilq_free_bufs(struct irdma_ilq *ilq)
{
	struct irdma_ilq_buf *buf;
	u32 i;

	/* Backwards: the first buffer of a page, which owns it, goes last. */
	for (i = ilq->config.rx_bufs; i--;) {
		buf = &ilq->bufs[i];
		if (!buf->page)
			continue;
		dma_unmap_page(dma_dev(ilq->dev), buf->dma, ilq->config.rx_size, DMA_FROM_DEVICE);
		if (buf->offset == 0)
			__free_pages(buf->page, get_order(ilq->config.rx_size));
	}
}

/* Several small buffers share a page, a large one has pages of its own. */
static int ilq_alloc_bufs(struct irdma_ilq *ilq)
{
	u32 size = ilq->config.rx_size, per_block, i;
	unsigned int order = get_order(size);
	struct irdma_ilq_buf *buf;
	struct page *page = NULL;

	per_block = (PAGE_SIZE << order) / size;
	for (i = 0; i < ilq->config.rx_bufs; i++) {
		buf = &ilq->bufs[i];
		buf->offset = i % per_block * size;
		if (!buf->offset)
			page = alloc_pages(GFP_KERNEL, order);
		if (!page)
			return -ENOMEM;
		buf->dma = dma_map_page(dma_dev(ilq->dev), page, buf->offset, size,
					DMA_FROM_DEVICE);
		if (dma_mapping_error(dma_dev(ilq->dev), buf->dma)) {
			if (!buf->offset)
				__free_pages(page, order);
			return -ENOMEM;
		}
		buf->page = page;
		buf->data = page_address(page) + buf->offset;
		buf->seg.end = buf->data + size;
		list_add_tail(&buf->entry, &ilq->rx_free);
	}
	return 0;
}

static void ilq_free(struct irdma_ilq *ilq)
{
	if (ilq->bufs)
		ilq_free_bufs(ilq);
	if (ilq->mem)
		dma_free_coherent(dma_dev(ilq->dev), ilq->mem_size, ilq->mem, ilq->mem_dma);
	kvfree(ilq->bufs);
	kvfree(ilq->txs);
	kvfree(ilq->rx_posted);
	kvfree(ilq->tx_posted);
	kfree(ilq);
}

static struct irdma_ilq *ilq_alloc(struct irdma_device *dev,
				   const struct irdma_ilq_config *config, struct ilq_layout *at)
{
	struct irdma_ilq *ilq = kzalloc(sizeof(*ilq), GFP_KERNEL);

	if (!ilq)
		return NULL;
	ilq->dev = dev;
	ilq->config = *config;
	ilq->cq_size = config->sq_size + 2 * config->rq_size;	/* a receive takes two slots */
	ilq->cq_polarity = true;
	ilq->sq_polarity = true;
	ilq->rq_polarity = true;
	ilq->handler.cqn = config->cqn;
	ilq->handler.ops = &ilq_handler_ops;
	irdma_qos_user_init(&ilq->qos, config->qpn);
	tasklet_setup(&ilq->tasklet, ilq_tasklet);
	spin_lock_init(&ilq->tx_lock);
	spin_lock_init(&ilq->rx_lock);
	INIT_LIST_HEAD(&ilq->tx_free);
	INIT_LIST_HEAD(&ilq->rx_free);
	ilq->tx_posted = kvcalloc(config->sq_size, sizeof(*ilq->tx_posted), GFP_KERNEL);
	ilq->rx_posted = kvcalloc(config->rq_size, sizeof(*ilq->rx_posted), GFP_KERNEL);
	ilq->txs = kvcalloc(config->sq_size, sizeof(*ilq->txs), GFP_KERNEL);
	ilq->bufs = kvcalloc(config->rx_bufs, sizeof(*ilq->bufs), GFP_KERNEL);
	if (!ilq->tx_posted || !ilq->rx_posted || !ilq->txs || !ilq->bufs ||
	    ilq_alloc_rings(ilq, at) || ilq_alloc_bufs(ilq)) {
		ilq_free(ilq);
		return NULL;
	}
	return ilq;
}

static struct irdma_qp_cmd ilq_qp_cmd(const struct irdma_ilq *ilq, const struct ilq_layout *at,
				      __le64 *context)
{
	ilq_write_context(ilq, at, context);
	return (struct irdma_qp_cmd){
		.qpn = ilq->config.qpn,
		.type = IRDMA_QP_UDA,
		.context = context,
		.shadow = ilq->mem_dma + at->qp_shadow,
		.next_state = IRDMA_IW_RTS,
		.cqnum_valid = true,
	};
}

static struct irdma_cq_cmd ilq_cq_cmd(const struct irdma_ilq *ilq, const struct ilq_layout *at)
{
	return (struct irdma_cq_cmd){
		.cqn = ilq->config.cqn,
		.size = ilq->cq_size,
		.ceqn = ILQ_CEQN,
		.threshold = ilq->cq_size / 4,
		.ring = ilq->mem_dma + at->cq,
		.shadow = ilq->mem_dma + at->cq_shadow,
		.ceqe_mask = true,
	};
}

static int ilq_create_cq(struct irdma_ilq *ilq, const struct ilq_layout *at)
{
	struct irdma_cq_cmd cmd = ilq_cq_cmd(ilq, at);
	struct irdma_cqp_req req = {};

	irdma_cqp_prep_create_cq(ilq->dev, &req, &cmd);
	return irdma_cqp_exec(ilq->dev, &req);
}

static void ilq_destroy_cq(struct irdma_ilq *ilq, const struct ilq_layout *at)
{
	struct irdma_cq_cmd cmd = ilq_cq_cmd(ilq, at);
	struct irdma_cqp_req req = {};

	irdma_cqp_prep_destroy_cq(ilq->dev, &req, &cmd);
	irdma_cqp_exec(ilq->dev, &req);
}

static int ilq_create_qp(struct irdma_ilq *ilq, const struct ilq_layout *at)
{
	__le64 context[IRDMA_QPC_WORDS];
	struct irdma_qp_cmd cmd = ilq_qp_cmd(ilq, at, context);
	struct irdma_cqp_req req = {};

	irdma_cqp_prep_create_qp(ilq->dev, &req, &cmd);
	return irdma_cqp_exec(ilq->dev, &req);
}

static void ilq_destroy_qp(struct irdma_ilq *ilq, const struct ilq_layout *at)
{
	__le64 context[IRDMA_QPC_WORDS];
	struct irdma_qp_cmd cmd = ilq_qp_cmd(ilq, at, context);
	struct irdma_cqp_req req = {};

	cmd.remove_hash = true;
	irdma_cqp_prep_destroy_qp(ilq->dev, &req, &cmd);
	/* Hardware would go on writing to the buffers, which are about to be freed. */
	if (irdma_cqp_exec(ilq->dev, &req))
		irdma_mark_dead(ilq->dev, "a raw queue pair cannot be destroyed");
}

static void ilq_post_all(struct irdma_ilq *ilq)
{
	struct irdma_ilq_buf *buf;

	spin_lock_irq(&ilq->rx_lock);
	while (ilq->rq_count < ilq->config.rq_size) {
		buf = list_first_entry(&ilq->rx_free, struct irdma_ilq_buf, entry);
		list_del(&buf->entry);
		ilq_post_rx(ilq, buf);
	}
	spin_unlock_irq(&ilq->rx_lock);
}

/**
 * irdma_ilq_create - set up a raw packet queue and start receiving
 * @dev: device; interrupts, CEQ 0 and the scheduler are up
 * @config: which queue, and its sizes
 *
 * Context: process, sleeps.
 * Return: the queue or an ERR_PTR(): -ENOMEM or what the control queue answers.
 */
struct irdma_ilq *irdma_ilq_create(struct irdma_device *dev,
				   const struct irdma_ilq_config *config)
{
	struct ilq_layout at;
	struct irdma_ilq *ilq;
	int err;

	ilq = ilq_alloc(dev, config, &at);
	if (!ilq)
		return ERR_PTR(-ENOMEM);
	err = irdma_cq_handler_add(dev, &ilq->handler);
	if (err)
		goto free;
	err = ilq_create_cq(ilq, &at);
	if (err)
		goto del_handler;
	err = irdma_qos_join(dev, &ilq->qos, 0);
	if (err)
		goto destroy_cq;
	err = ilq_create_qp(ilq, &at);
	if (err)
		goto leave_qos;
	ilq_post_all(ilq);
	ilq_arm(ilq);
	return ilq;

leave_qos:
	irdma_qos_leave(dev, &ilq->qos);
destroy_cq:
	ilq_destroy_cq(ilq, &at);
del_handler:
	irdma_cq_handler_del(dev, &ilq->handler, ILQ_CEQN);
free:
	ilq_free(ilq);
	irdma_err(dev, "%s not created: %pe\n", config->name, ERR_PTR(err));
	return ERR_PTR(err);
}

/**
 * irdma_ilq_stop_receive - deliver no frames any more
 * @ilq: queue
 *
 * When this returns the receiver does not run and will not run.  Sending goes on.
 *
 * Context: process, sleeps.
 */
void irdma_ilq_stop_receive(struct irdma_ilq *ilq)
{
	WRITE_ONCE(ilq->deaf, true);
	tasklet_disable(&ilq->tasklet);
	tasklet_enable(&ilq->tasklet);
}

/* Frames that hardware did not finish: their owners must hear of them all the same. */
static void ilq_fail_sends(struct irdma_ilq *ilq)
{
	u32 i;

	for (i = 0; i < ilq->config.sq_size; i++)
		if (ilq->tx_posted[i])
			ilq_sent(ilq, i, false);
}

/**
 * irdma_ilq_destroy - take a raw packet queue away
 * @ilq: queue; nobody allocates transmit buffers any more, kept receive buffers need not be
 *	given back
 *
 * Frames that are still posted end with an error.
 *
 * Context: process, sleeps.
 */
void irdma_ilq_destroy(struct irdma_ilq *ilq)
{
	struct ilq_layout at;

	ilq_layout(ilq, &at);
	irdma_ilq_stop_receive(ilq);
	ilq_destroy_qp(ilq, &at);
	irdma_qos_leave(ilq->dev, &ilq->qos);
	ilq_destroy_cq(ilq, &at);
	irdma_cq_handler_del(ilq->dev, &ilq->handler, ILQ_CEQN);
	tasklet_kill(&ilq->tasklet);
	ilq_fail_sends(ilq);
	ilq_free(ilq);
}

/**
 * irdma_ilq_read_stats - copy the counters of a queue
 * @ilq: queue
 * @stats: where to
 *
 * Context: any.
 */
void irdma_ilq_read_stats(const struct irdma_ilq *ilq, struct irdma_ilq_stats *stats)
{
	*stats = ilq->stats;
}

/**
 * irdma_ilq_qs_handle - transmit queue set of a queue
 * @ilq: queue
 *
 * Return: the handle that quad-hash entries of this receiver carry.
 */
u16 irdma_ilq_qs_handle(const struct irdma_ilq *ilq)
{
	return ilq->qos.qs_handle;
}
