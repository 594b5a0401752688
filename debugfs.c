// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Counters of the connection engine and of the raw queues in debugfs, one name and value a
 * line: irdma/<PCI address>/cm_counters, cm_drops, ilq, ieq.
 *
 * cm_hw.c calls this (process context) while engine and queues exist; a reader keeps a file
 * from being removed, so they outlive every reader.
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>

#include "cm.h"
#include "debugfs.h"
#include "ieq.h"
#include "ilq.h"
#include "irdma.h"

static struct dentry *debugfs_root;

static int cm_counters_show(struct seq_file *file, void *unused)
{
	struct irdma_device *dev = file->private;
	struct irdma_cm_stats stats;
	unsigned int i;

	irdma_cm_read_stats(dev->cm, &stats);
	for (i = 0; i < IRDMA_CM_COUNTER_COUNT; i++)
		seq_printf(file, "%s %llu\n", irdma_cm_counter_name(i), stats.counters[i]);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(cm_counters);

static int cm_drops_show(struct seq_file *file, void *unused)
{
	struct irdma_device *dev = file->private;
	struct irdma_cm_stats stats;
	unsigned int i;

	irdma_cm_read_stats(dev->cm, &stats);
	for (i = 0; i < IRDMA_CM_DROP_COUNT; i++)
		seq_printf(file, "%s %llu\n", irdma_cm_drop_name(i), stats.drops[i]);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(cm_drops);

static void show_queue(struct seq_file *file, const struct irdma_ilq_stats *stats)
{
	seq_printf(file, "sent %llu\n", stats->sent);
	seq_printf(file, "send_errors %llu\n", stats->send_errors);
	seq_printf(file, "no_buffer %llu\n", stats->no_buffer);
	seq_printf(file, "received %llu\n", stats->received);
	seq_printf(file, "rx_errors %llu\n", stats->rx_errors);
	seq_printf(file, "rx_bad %llu\n", stats->rx_bad);
}

static int ilq_show(struct seq_file *file, void *unused)
{
	struct irdma_device *dev = file->private;
	struct irdma_ilq_stats stats;

	if (!dev->ilq)
		return 0;
	irdma_ilq_read_stats(dev->ilq, &stats);
	show_queue(file, &stats);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(ilq);

static int ieq_show(struct seq_file *file, void *unused)
{
	static const char *const names[] = {
		[IRDMA_IEQ_KEPT] = "kept",
		[IRDMA_IEQ_COPIED] = "copied",
		[IRDMA_IEQ_REFUSED] = "refused",
		[IRDMA_IEQ_MALFORMED] = "malformed",
		[IRDMA_IEQ_NO_QP] = "no_qp",
		[IRDMA_IEQ_NO_STREAM] = "no_stream",
		[IRDMA_IEQ_BROKEN] = "broken",
		[IRDMA_IEQ_FULL] = "full",
		[IRDMA_IEQ_FPDUS] = "fpdus",
	};
	struct irdma_device *dev = file->private;
	struct irdma_ieq_stats stats;
	unsigned int i;

	if (!dev->ieq)
		return 0;
	irdma_ieq_read_stats(dev, &stats);
	show_queue(file, &stats.queue);
	for (i = 0; i < IRDMA_IEQ_COUNTER_COUNT; i++)
		seq_printf(file, "%s %llu\n", names[i], stats.counters[i]);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(ieq);

/**
 * irdma_debugfs_add - make the files of a device
 * @dev: device; engine and raw queues are there
 *
 * Context: process.
 */
void irdma_debugfs_add(struct irdma_device *dev)
{
	struct dentry *dir = debugfs_create_dir(pci_name(dev->lan->pdev), debugfs_root);

	debugfs_create_file("cm_counters", 0444, dir, dev, &cm_counters_fops);
	debugfs_create_file("cm_drops", 0444, dir, dev, &cm_drops_fops);
	debugfs_create_file("ilq", 0444, dir, dev, &ilq_fops);
	debugfs_create_file("ieq", 0444, dir, dev, &ieq_fops);
}

/**
 * irdma_debugfs_del - remove the files of a device
 * @dev: device
 *
 * Waits for readers.
 *
 * Context: process, sleeps.
 */
void irdma_debugfs_del(struct irdma_device *dev)
{
	debugfs_lookup_and_remove(pci_name(dev->lan->pdev), debugfs_root);
}

/**
 * irdma_debugfs_init - make the directory of the module
 *
 * A kernel without debugfs goes without.
 *
 * Context: process.
 */
void irdma_debugfs_init(void)
{
	debugfs_root = debugfs_create_dir("irdma", NULL);
}

/**
 * irdma_debugfs_exit - remove the directory of the module
 *
 * Context: process.
 */
void irdma_debugfs_exit(void)
{
	debugfs_remove(debugfs_root);
}
