// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Bring-up and teardown of the protocol engine, and its end when hardware is lost (spec 01
 * sections 1.5, 3 and 4.6).
 *
 * irdma_hw_start() goes through a table of steps; irdma_hw_stop(), and a step that fails, undo
 * them in reverse order.  After irdma_mark_dead() the same teardown runs: commands end at once
 * with -ENODEV and memory is freed.  main.c calls both, one at a time.
 */
#include <linux/bitfield.h>
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/pci.h>
#include <linux/workqueue.h>

#include "irdma.h"

#define ENGINE_READY		0x80
#define ENGINE_TIMEOUT_MS	15000
#define ENGINE_POLL_MS		10

#define LBARCTRL_DB_SIZE	GENMASK(5, 4)
#define DB_SIZE_4M		1
#define DB_SIZE_8M		2

/* Feature query (spec 01, 3.6). */
#define FEATURE_RECORDS		34	/* as many as known firmware has */
#define FEATURE_FW_MINOR	GENMASK_ULL(15, 0)
#define FEATURE_FW_MAJOR	GENMASK_ULL(31, 16)
#define FEATURE_COUNT		GENMASK_ULL(47, 32)

/* Causes of a critical error in OICR, and a value of GLPE_CRITERR that is but a warning. */
#define OICR_HMC_ERROR		BIT(26)
#define OICR_PUSH_ERROR		BIT(27)
#define OICR_CRIT_ERROR		BIT(28)
#define CRITERR_Q1_CHECK	0x0001024D

#define REMOVED			(~0U)	/* what reads of a device that is gone return */

#define DEAD_BIT		0	/* of irdma_device.dead */

/**
 * irdma_rd32() - read a register
 * @dev: the device
 * @reg: the register
 *
 * No register of ours reads as all ones: that tells that the device is gone, and marks it so.
 *
 * Context: any, without the locks of the control queue.
 * Return: the value.
 */
u32 irdma_rd32(struct irdma_device *dev, enum irdma_reg reg)
{
	u32 val = readl(dev->lan->regs + dev->gen->regs[reg]);

	if (unlikely(val == REMOVED))
		irdma_mark_dead(dev, "it does not answer register reads");
	return val;
}

/**
 * irdma_wr32() - write a register
 * @dev: the device
 * @reg: the register
 * @val: the value; memory written before is visible to hardware first
 *
 * Context: any.
 */
void irdma_wr32(struct irdma_device *dev, enum irdma_reg reg, u32 val)
{
	writel(val, dev->lan->regs + dev->gen->regs[reg]);
}

/**
 * irdma_ring_sq() - tell hardware of new send queue entries
 * @dev: the device
 * @qpn: QP number
 *
 * Context: any, after the valid bits were written.
 */
void irdma_ring_sq(struct irdma_device *dev, u32 qpn)
{
	irdma_wr32(dev, IRDMA_REG_WQEALLOC, qpn);
}

/**
 * irdma_arm_cq() - make a new arm request in a CQ's shadow area take effect
 * @dev: the device
 * @cqn: CQ number
 *
 * Context: any, after the shadow area was written.
 */
void irdma_arm_cq(struct irdma_device *dev, u32 cqn)
{
	irdma_wr32(dev, IRDMA_REG_CQARM, cqn);
}

static void reset_worker(struct work_struct *work)
{
	struct irdma_device *dev = container_of(work, struct irdma_device, reset_work);
	int err;

	if (!dev->lan->ops->request_reset)
		return;
	err = dev->lan->ops->request_reset(dev->lan);
	/* -EBUSY: one is under way already. */
	if (err && err != -EBUSY)
		irdma_err(dev, "the LAN driver refuses a reset: %pe\n", ERR_PTR(err));
}

/**
 * irdma_mark_dead() - the device is lost: end every wait, ask for a reset
 * @dev: the device
 * @why: for the message
 *
 * Only the first call for a device has an effect.
 *
 * Context: any, without the locks of the control queue.
 */
void irdma_mark_dead(struct irdma_device *dev, const char *why)
{
	bool present;

	if (test_and_set_bit(DEAD_BIT, &dev->dead))
		return;
	present = pci_device_is_present(dev->lan->pdev);
	irdma_err(dev, "device lost: %s%s\n", why,
		  present ? ", asking for a reset" : ", it was removed");
	irdma_cqp_fail_all(dev);
	dev->lost(dev);
	if (present)
		queue_work(dev->hw_wq, &dev->reset_work);
}

/**
 * irdma_mark_reset() - the LAN driver resets the function: end every wait
 * @dev: the device
 *
 * Context: any, without the locks of the control queue.
 */
void irdma_mark_reset(struct irdma_device *dev)
{
	if (test_and_set_bit(DEAD_BIT, &dev->dead))
		return;
	irdma_cqp_fail_all(dev);
	dev->lost(dev);
}

/**
 * irdma_is_dead() - has irdma_mark_dead() been called?
 * @dev: the device
 *
 * Context: any.
 * Return: true once the hardware is given up.
 */
bool irdma_is_dead(const struct irdma_device *dev)
{
	return test_bit(DEAD_BIT, &dev->dead);
}

/**
 * irdma_hw_crit_err() - react to a critical error that the LAN driver was told of
 * @dev: the device
 * @oicr: accumulated cause bits
 *
 * An HMC error alone resets nothing: it would take the LAN down with it.
 *
 * Context: process.
 */
void irdma_hw_crit_err(struct irdma_device *dev, u32 oicr)
{
	u32 code;

	if (oicr & OICR_CRIT_ERROR) {
		code = irdma_rd32(dev, IRDMA_REG_CRITERR);
		irdma_err(dev, "critical error 0x%08x\n", code);
		if (code != CRITERR_Q1_CHECK)
			irdma_mark_dead(dev, "critical error of the protocol engine");
	}
	if (oicr & OICR_HMC_ERROR && dev->gen->regs[IRDMA_REG_HMC_ERRORINFO])
		irdma_err(dev, "HMC error: info 0x%08x data 0x%08x\n",
			  irdma_rd32(dev, IRDMA_REG_HMC_ERRORINFO),
			  irdma_rd32(dev, IRDMA_REG_HMC_ERRORDATA));
	if (oicr & OICR_PUSH_ERROR)
		irdma_mark_dead(dev, "push error");
}

static int software_start(struct irdma_device *dev)
{
	dev->hw_wq = alloc_workqueue("irdma_hw", WQ_UNBOUND | WQ_HIGHPRI | WQ_MEM_RECLAIM, 0);
	if (!dev->hw_wq)
		return -ENOMEM;
	INIT_WORK(&dev->reset_work, reset_worker);
	return 0;
}

static void software_stop(struct irdma_device *dev)
{
	/* Also lets a requested reset be asked for. */
	destroy_workqueue(dev->hw_wq);
	dev->hw_wq = NULL;
}

static bool engine_is_ready(struct irdma_device *dev, u32 status[3])
{
	status[0] = irdma_rd32(dev, IRDMA_REG_CPUSTATUS0);
	status[1] = irdma_rd32(dev, IRDMA_REG_CPUSTATUS1);
	status[2] = irdma_rd32(dev, IRDMA_REG_CPUSTATUS2);
	return status[0] == ENGINE_READY && status[1] == ENGINE_READY &&
	       status[2] == ENGINE_READY;
}

static int engine_wait(struct irdma_device *dev)
{
	unsigned long deadline = jiffies + msecs_to_jiffies(ENGINE_TIMEOUT_MS);
	u32 status[3], db_size;

	while (!engine_is_ready(dev, status)) {
		if (irdma_is_dead(dev))
			return -ENODEV;
		if (time_after(jiffies, deadline)) {
			irdma_err(dev, "protocol engine not ready: status 0x%x 0x%x 0x%x\n",
				  status[0], status[1], status[2]);
			return -ETIMEDOUT;
		}
		msleep(ENGINE_POLL_MS);
	}
	db_size = FIELD_GET(LBARCTRL_DB_SIZE, irdma_rd32(dev, IRDMA_REG_LBARCTRL));
	if (irdma_is_dead(dev))
		return -ENODEV;
	if (db_size != DB_SIZE_4M && db_size != DB_SIZE_8M) {
		irdma_err(dev, "doorbells are not enabled: size code %u, must be 1 or 2\n",
			  db_size);
		return -ENODEV;
	}
	return 0;
}

/* Query @records feature records; *count is how many there are. */
static int query_features(struct irdma_device *dev, u32 records, u32 *count)
{
	struct device *dma_dev = &dev->lan->pdev->dev;
	size_t size = records * sizeof(__le64);
	struct irdma_cqp_req req;
	dma_addr_t addr;
	__le64 *buf;
	u64 word;
	int err;

	buf = dma_alloc_coherent(dma_dev, size, &addr, GFP_KERNEL);
	if (!buf)
		return -ENOMEM;
	irdma_cqp_prep_query_features(dev, &req, addr, size);
	err = irdma_cqp_exec(dev, &req);
	word = le64_to_cpu(buf[0]);
	dma_free_coherent(dma_dev, size, buf, addr);
	if (err)
		return err;
	*count = FIELD_GET(FEATURE_COUNT, word);
	if (*count < 2) {
		irdma_err(dev, "firmware tells %u features, must be 2 or more\n", *count);
		return -EINVAL;
	}
	dev->fw_ver = FIELD_GET(FEATURE_FW_MAJOR, word) << 32 | FIELD_GET(FEATURE_FW_MINOR, word);
	return 0;
}

static int features_read(struct irdma_device *dev)
{
	u32 count;
	int err;

	if (!dev->gen->has_features) {
		dev->fw_ver = dev->gen->assumed_fw_ver;
		return 0;
	}
	err = query_features(dev, FEATURE_RECORDS, &count);
	if (!err && count > FEATURE_RECORDS)
		err = query_features(dev, count, &count);
	return err;
}

static const struct step {
	const char *what;
	int (*start)(struct irdma_device *dev);
	void (*stop)(struct irdma_device *dev);
} steps[] = {
	{ "work queue",			software_start,			software_stop },
	{ "protocol engine",		engine_wait,			NULL },
	{ "control queue",		irdma_cqp_start,		irdma_cqp_stop },
	{ "firmware features",		features_read,			NULL },
	{ "HMC sizing",			irdma_hmc_size,			irdma_hmc_unsize },
	{ "HMC memory",			irdma_hmc_populate,		irdma_hmc_depopulate },
	{ "event queues",		irdma_events_init,		irdma_events_free },
	{ "control completion queue",	irdma_ccq_start,		irdma_ccq_stop },
	{ "CEQ 0",			irdma_ceq0_start,		irdma_ceq0_stop },
	{ "control queue interrupts",	irdma_ccq_interrupts_start,	irdma_ccq_interrupts_stop },
	{ "CEQs",			irdma_ceqs_start,		irdma_ceqs_stop },
	{ "PBLE pool",			irdma_pble_start,		irdma_pble_stop },
	{ "AEQ",			irdma_aeq_start,		irdma_aeq_stop },
};

static void undo(struct irdma_device *dev, unsigned int started)
{
	while (started--)
		if (steps[started].stop)
			steps[started].stop(dev);
}

/**
 * irdma_hw_start() - bring the protocol engine up
 * @dev: the device with @lan and @gen set
 *
 * Afterwards commands, events and PBLEs can be used, ids be allocated, and @limits are known.
 *
 * Context: process, sleeps.
 * Return: 0 or the error of the step that failed; nothing is left of a failed attempt.
 */
int irdma_hw_start(struct irdma_device *dev)
{
	unsigned int i;
	int err;

	for (i = 0; i < ARRAY_SIZE(steps); i++) {
		err = steps[i].start(dev);
		if (err) {
			irdma_err(dev, "bring-up failed at %s: %pe\n", steps[i].what, ERR_PTR(err));
			undo(dev, i);
			return err;
		}
	}
	return 0;
}

/**
 * irdma_hw_stop() - undo irdma_hw_start()
 * @dev: the device; no verbs object exists any more
 *
 * Context: process, sleeps.
 */
void irdma_hw_stop(struct irdma_device *dev)
{
	undo(dev, ARRAY_SIZE(steps));
}
