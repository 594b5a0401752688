// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Hardware counters as port statistics (sysfs hw_counters, rdma statistic).
 *
 * The device counts modulo 2^24 to 2^56; a read gathers all counters into a buffer with one
 * control command and adds what has come since the last time to 64-bit totals.  A work item
 * does the same once a minute, so that none comes round unseen.  Called by ib_core (process
 * context) and main.c; the mutex of struct irdma_stats serialises gathering.
 * Spec 01 section 7.5, spec 02 section 8.4.
 */
#include <linux/dma-mapping.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "irdma.h"
#include "stats.h"

#define IRDMA_GATHER_SIZE	1024	/* bytes that hardware writes */
#define IRDMA_GATHER_PERIOD	(60 * HZ)

/**
 * struct irdma_stats - counters of a device
 * @dev: owner
 * @lock: serialises gathering; protects @last and @total
 * @buf: written by hardware
 * @buf_dma: bus address of @buf
 * @work: periodic gathering
 * @descs: names, for ib_core
 * @last: raw value of each counter when it was gathered last
 * @total: sum of what was counted
 */
struct irdma_stats {
	struct irdma_device *dev;
	struct mutex lock;
	__le64 *buf;
	dma_addr_t buf_dma;
	struct delayed_work work;
	struct rdma_stat_desc *descs;
	u64 *last;
	u64 *total;
};

#define AT(byte, bit, bits)	.word = (byte) / 8, .shift = bit, .width = bits

/* InSegs: only the upper half of its word carries a count (spec 02, 8.4, note on index 26). */
const struct irdma_counter irdma_e810_counters[IRDMA_E810_COUNTERS] = {
	{ "ip4InDiscards",	AT(24, 32, 32) },
	{ "ip4InTruncatedPkts",	AT(24, 0, 32) },
	{ "ip4OutNoRoutes",	AT(184, 32, 24) },
	{ "ip6InDiscards",	AT(72, 32, 32) },
	{ "ip6InTruncatedPkts",	AT(72, 0, 32) },
	{ "ip6OutNoRoutes",	AT(184, 0, 24) },
	{ IRDMA_TCP_COUNTER("RetransSegs"), AT(216, 32, 32) },
	{ IRDMA_TCP_COUNTER("InOptErrors"), AT(200, 32, 24) },
	{ IRDMA_TCP_COUNTER("InProtoErrors"), AT(200, 0, 24) },
	{ "rxVlanErrors",	AT(0, 32, 24) },
	{ "ip4InOctets",	AT(8, 0, 48) },
	{ "ip4InPkts",		AT(16, 0, 48) },
	{ "ip4InReasmRqd",	AT(32, 0, 48) },
	{ "ip4InMcastPkts",	AT(48, 0, 48) },
	{ "ip4OutOctets",	AT(104, 0, 48) },
	{ "ip4OutPkts",		AT(112, 0, 48) },
	{ "ip4OutSegRqd",	AT(120, 0, 48) },
	{ "ip4OutMcastPkts",	AT(136, 0, 48) },
	{ "ip6InOctets",	AT(56, 0, 48) },
	{ "ip6InPkts",		AT(64, 0, 48) },
	{ "ip6InReasmRqd",	AT(80, 0, 48) },
	{ "ip6InMcastPkts",	AT(96, 0, 48) },
	{ "ip6OutOctets",	AT(144, 0, 48) },
	{ "ip6OutPkts",		AT(152, 0, 48) },
	{ "ip6OutSegRqd",	AT(160, 0, 48) },
	{ "ip6OutMcastPkts",	AT(176, 0, 48) },
	{ IRDMA_TCP_COUNTER("InSegs"), AT(192, 32, 32) },
	{ IRDMA_TCP_COUNTER("OutSegs"), AT(208, 0, 48) },
	{ IRDMA_IW_COUNTER("InRdmaReads"), AT(248, 0, 48) },
	{ IRDMA_IW_COUNTER("InRdmaSends"), AT(256, 0, 48) },
	{ IRDMA_IW_COUNTER("InRdmaWrites"), AT(240, 0, 48) },
	{ IRDMA_IW_COUNTER("OutRdmaReads"), AT(272, 0, 48) },
	{ IRDMA_IW_COUNTER("OutRdmaSends"), AT(280, 0, 48) },
	{ IRDMA_IW_COUNTER("OutRdmaWrites"), AT(264, 0, 48) },
	{ IRDMA_IW_COUNTER("RdmaBnd"), AT(288, 0, 48) },
	{ IRDMA_IW_COUNTER("RdmaInv"), AT(296, 0, 48) },
	{ "ip4InMcastOctets",	AT(40, 0, 48) },
	{ "ip4OutMcastOctets",	AT(128, 0, 48) },
	{ "ip6InMcastOctets",	AT(88, 0, 48) },
	{ "ip6OutMcastOctets",	AT(168, 0, 48) },
	{ "RxUDP",		AT(224, 0, 48) },
	{ "TxUDP",		AT(232, 0, 48) },
	{ "RxECNMrkd",		AT(304, 0, 56) },
	{ "cnpHandled",		AT(312, 0, 32) },
	{ "cnpIgnored",		AT(312, 32, 24) },
	{ "cnpSent",		AT(320, 0, 32) },
};

/* Under the lock: brings the totals up to date. */
static int irdma_stats_gather(struct irdma_stats *stats)
{
	struct irdma_device *dev = stats->dev;
	struct irdma_cqp_req req;
	unsigned int i;
	int err;

	irdma_cqp_prep_gather_stats(dev, &req, stats->buf_dma);
	err = irdma_cqp_exec(dev, &req);
	if (err)
		return err;

	for (i = 0; i < dev->gen->num_counters; i++) {
		const struct irdma_counter *c = &dev->gen->counters[i];
		u64 mask = GENMASK_ULL(c->width - 1, 0);
		u64 now = (le64_to_cpu(stats->buf[c->word]) >> c->shift) & mask;

		stats->total[i] += (now - stats->last[i]) & mask;
		stats->last[i] = now;
	}
	return 0;
}

static void irdma_stats_work(struct work_struct *work)
{
	struct irdma_stats *stats = container_of(work, struct irdma_stats, work.work);

	mutex_lock(&stats->lock);
	irdma_stats_gather(stats);
	mutex_unlock(&stats->lock);
	if (!irdma_is_dead(stats->dev))
		queue_delayed_work(stats->dev->wq, &stats->work, IRDMA_GATHER_PERIOD);
}

static struct rdma_hw_stats *irdma_alloc_hw_port_stats(struct ib_device *ibdev, u32 port)
{
	struct irdma_device *dev = to_irdma_dev(ibdev);

	return rdma_alloc_hw_stats_struct(dev->stats->descs, dev->gen->num_counters,
					  RDMA_HW_STATS_DEFAULT_LIFESPAN);
}

static int irdma_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *hw_stats, u32 port,
			      int index)
{
	struct irdma_stats *stats = to_irdma_dev(ibdev)->stats;
	int err;

	mutex_lock(&stats->lock);
	err = irdma_stats_gather(stats);
	if (!err)
		memcpy(hw_stats->value, stats->total,
		       hw_stats->num_counters * sizeof(*hw_stats->value));
	mutex_unlock(&stats->lock);
	return err ?: hw_stats->num_counters;
}

const struct ib_device_ops irdma_stats_ops = {
	.alloc_hw_port_stats = irdma_alloc_hw_port_stats,
	.get_hw_stats = irdma_get_hw_stats,
};

/**
 * irdma_stats_create() - allocate what counting needs
 * @dev: device whose LAN function is known; its hardware need not run yet
 *
 * Context: process, may sleep.
 * Return: 0 or -ENOMEM.
 */
int irdma_stats_create(struct irdma_device *dev)
{
	unsigned int i, n = dev->gen->num_counters;
	struct irdma_stats *stats;

	stats = kzalloc(sizeof(*stats), GFP_KERNEL);
	if (!stats)
		return -ENOMEM;
	stats->dev = dev;
	mutex_init(&stats->lock);
	INIT_DELAYED_WORK(&stats->work, irdma_stats_work);

	stats->descs = kcalloc(n, sizeof(*stats->descs), GFP_KERNEL);
	stats->last = kcalloc(n, sizeof(*stats->last), GFP_KERNEL);
	stats->total = kcalloc(n, sizeof(*stats->total), GFP_KERNEL);
	stats->buf = dma_alloc_coherent(dma_dev(dev), IRDMA_GATHER_SIZE, &stats->buf_dma,
					GFP_KERNEL);
	dev->stats = stats;
	if (!stats->descs || !stats->last || !stats->total || !stats->buf) {
		irdma_stats_destroy(dev);
		return -ENOMEM;
	}
	for (i = 0; i < n; i++)
		stats->descs[i].name = dev->gen->counters[i].name;
	return 0;
}

/**
 * irdma_stats_destroy() - undo irdma_stats_create()
 * @dev: device that no longer runs, as hardware may write to the buffer until then
 *
 * Context: process, may sleep.
 */
void irdma_stats_destroy(struct irdma_device *dev)
{
	struct irdma_stats *stats = dev->stats;

	if (stats->buf)
		dma_free_coherent(dma_dev(dev), IRDMA_GATHER_SIZE, stats->buf,
				  stats->buf_dma);
	kfree(stats->total);
	kfree(stats->last);
	kfree(stats->descs);
	kfree(stats);
	dev->stats = NULL;
}

/**
 * irdma_stats_start() - begin to gather periodically
 * @dev: running device
 */
void irdma_stats_start(struct irdma_device *dev)
{
	queue_delayed_work(dev->wq, &dev->stats->work, IRDMA_GATHER_PERIOD);
}

/**
 * irdma_stats_stop() - undo irdma_stats_start()
 * @dev: running or dead device
 *
 * Context: process, may sleep, no longer than one control command takes.
 */
void irdma_stats_stop(struct irdma_device *dev)
{
	cancel_delayed_work_sync(&dev->stats->work);
}
