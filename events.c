// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Event queues and interrupt vectors (spec 01 sections 2.2, 2.3, 3.4 and 5).
 *
 * Each vector serves one CEQ; the first one serves the AEQ too, so any number of vectors will
 * do.  The interrupt handler drains its CEQ, calling the handlers of the CQs named there, and
 * leaves the AEQ to a work item, since reactions to its events sleep.
 *
 * A CQ handler is looked up under the lock of an event queue and kept by a reference while its
 * callback runs.  irdma_cq_handler_del() takes every one of these locks once after it has
 * removed the handler, so nobody can find it any more when it then waits for the references.
 *
 * Called by hw.c for bring-up and teardown, by cqp.c, cq.c and ilq.c for handlers.
 */
#include <linux/bitfield.h>
#include <linux/cpumask.h>
#include <linux/dma-mapping.h>
#include <linux/interrupt.h>
#include <linux/slab.h>
#include <linux/topology.h>

#include "irdma.h"

#define MAX_CEQ_ENTRIES		262143
#define MAX_AEQ_ENTRIES		524287
#define AEQ_ENTRY_WORDS		2
#define AEQ_PAGE_ENTRIES	(SZ_4K / (AEQ_ENTRY_WORDS * sizeof(__le64)))
/* Credits go back to hardware at least this often while a burst is worked off. */
#define AEQ_CREDIT_BATCH	64

#define ENTRY_VALID		BIT_ULL(63)
#define CEQE_CQN		GENMASK_ULL(31, 0)
#define CEQE_NOBODY		0xFFFFFFFFULL

#define AEQE_ID_LOW		GENMASK_ULL(17, 0)
#define AEQE_WQE_IDX		GENMASK_ULL(32, 18)
#define AEQE_OVERFLOW		BIT_ULL(33)
#define AEQE_CODE		GENMASK_ULL(45, 34)
#define AEQE_ID_HIGH		BIT_ULL(46)
#define AEQE_SOURCE		GENMASK_ULL(53, 50)
#define AEQE_IW_STATE		GENMASK_ULL(56, 54)
#define AEQE_TCP_STATE		GENMASK_ULL(60, 57)
#define AEQE_Q2_DATA		GENMASK_ULL(62, 61)

#define AE_CQ_OPERATION_ERROR	0x0203
#define AE_CQ_CATASTROPHIC	0x0702

/* Odd sources belong to a QP (spec 01, 5.2). */
#define AE_SOURCE_QP		BIT(0)

#define AEQCTL_ENABLE		0x40001800	/* | MSI-X index; both generations */
#define AEQCTL_DISABLE		0x00001800

#define LNKLST_CEQ		0x1000		/* | CEQ number */

/**
 * struct irdma_ceq - completion event queue and the vector that serves it
 * @dev: the device
 * @lock: guards @tail and @valid, and is held for each lookup of a CQ handler
 * @ring: entries of 8 bytes
 * @cmd: number, size and bus address as hardware knows them
 * @tail: next entry to read
 * @valid: valid bit of the current pass
 * @vector: the vector
 * @cpu: where its interrupts should go
 * @name: of the interrupt
 */
struct irdma_ceq {
	struct irdma_device *dev;
	spinlock_t lock;
	__le64 *ring;
	struct irdma_eq_cmd cmd;
	u32 tail;
	u64 valid;
	const struct irdma_vector *vector;
	unsigned int cpu;
	char name[32];
};

/**
 * struct irdma_aeq - asynchronous event queue
 * @lock: held for each lookup of a CQ handler
 * @work: drains the queue
 * @running: @work may be queued
 * @cmd: size and place as hardware knows them
 * @ring: entries of 16 bytes if they are contiguous
 * @pages: pages of the ring if they are not
 * @num_pages: of @pages
 * @pbl: list of @pages
 * @cursor: next entry to read, valid bit of the current pass in bit 31; written by @work only
 */
struct irdma_aeq {
	spinlock_t lock;
	struct work_struct work;
	bool running;
	struct irdma_eq_cmd cmd;
	__le64 *ring;
	struct aeq_page {
		__le64 *va;
		dma_addr_t addr;
	} *pages;
	u32 num_pages;
	struct irdma_pbl pbl;
	u32 cursor;
};

#define CURSOR_VALID	BIT(31)

struct irdma_events {
	struct irdma_device *dev;
	struct irdma_aeq aeq;
	unsigned int num_ceqs;
	struct irdma_ceq ceqs[];
};

static void write_array(struct irdma_device *dev, enum irdma_reg first, u32 i, u32 val)
{
	writel(val, dev->lan->regs + dev->gen->regs[first] + 4 * i);
}

static void vector_enable(struct irdma_device *dev, const struct irdma_vector *v)
{
	write_array(dev, IRDMA_REG_DYN_CTL, v->idx - dev->gen->vector_bias,
		    dev->gen->dyn_ctl_enable);
}

static void vector_disable(struct irdma_device *dev, const struct irdma_vector *v)
{
	write_array(dev, IRDMA_REG_DYN_CTL, v->idx - dev->gen->vector_bias, 0);
}

static void map_ceq(struct irdma_ceq *ceq)
{
	const struct irdma_hw_gen *gen = ceq->dev->gen;

	if (gen->regs[IRDMA_REG_LNKLST])
		write_array(ceq->dev, IRDMA_REG_LNKLST, ceq->vector->idx - gen->vector_bias,
			    LNKLST_CEQ | ceq->cmd.id);
	write_array(ceq->dev, IRDMA_REG_CEQCTL, ceq->cmd.id, gen->ceqctl_enable | ceq->vector->idx);
}

static void unmap_ceq(struct irdma_ceq *ceq)
{
	write_array(ceq->dev, IRDMA_REG_CEQCTL, ceq->cmd.id,
		    ceq->dev->gen->ceqctl_disable | ceq->vector->idx);
}

/* Under the lock of the event queue that named the CQ. */
static struct irdma_cq_handler *get_handler(struct irdma_device *dev, u32 cqn)
{
	struct irdma_cq_handler *h = xa_load(&dev->cq_handlers, cqn);

	return h && refcount_inc_not_zero(&h->refs) ? h : NULL;
}

/**
 * irdma_cq_handler_add() - from here on events of a CQ are delivered
 * @dev: the device
 * @h: handler with @cqn and @ops set
 *
 * Context: process, sleeps.  Before CREATE_CQ, so that no event is lost.
 * Return: 0, -ENOMEM, or -EBUSY if the CQ number has a handler.
 */
int irdma_cq_handler_add(struct irdma_device *dev, struct irdma_cq_handler *h)
{
	refcount_set(&h->refs, 1);
	return xa_insert_irq(&dev->cq_handlers, h->cqn, h, GFP_KERNEL);
}

/* Entries of a CQ that is gone must not reach a later CQ of the same number. */
static void scrub(struct irdma_ceq *ceq, u32 cqn)
{
	u32 i = ceq->tail;
	u64 valid = ceq->valid, entry;

	for (;;) {
		entry = le64_to_cpu(READ_ONCE(ceq->ring[i]));
		if ((entry & ENTRY_VALID) != valid)
			return;
		if (FIELD_GET(CEQE_CQN, entry) == cqn)
			ceq->ring[i] = cpu_to_le64(valid | CEQE_NOBODY);
		if (++i == ceq->cmd.entries) {
			i = 0;
			valid ^= ENTRY_VALID;
		}
	}
}

/**
 * irdma_cq_handler_del() - stop delivering the events of a CQ
 * @dev: the device
 * @h: handler that was added
 * @ceqn: CEQ of the CQ
 *
 * Context: process, sleeps; not from a callback of @h.  After DESTROY_CQ has completed.  When
 * it returns, no callback runs or will run, and no CEQ entry of the CQ is left.
 */
void irdma_cq_handler_del(struct irdma_device *dev, struct irdma_cq_handler *h, u32 ceqn)
{
	struct irdma_events *ev = dev->events;
	unsigned int i;

	xa_erase_irq(&dev->cq_handlers, h->cqn);
	for (i = 0; i < ev->num_ceqs; i++) {
		spin_lock_irq(&ev->ceqs[i].lock);
		if (i == ceqn && ev->ceqs[i].ring)
			scrub(&ev->ceqs[i], h->cqn);
		spin_unlock_irq(&ev->ceqs[i].lock);
	}
	spin_lock_irq(&ev->aeq.lock);
	spin_unlock_irq(&ev->aeq.lock);
	irdma_ref_put_and_wait(&h->refs);
}

/* Take one entry. Returns false if there is none; *h is NULL if the entry is nobody's. */
static bool next_ceqe(struct irdma_ceq *ceq, struct irdma_cq_handler **h)
{
	struct irdma_device *dev = ceq->dev;
	u64 entry;
	u32 cqn;

	spin_lock(&ceq->lock);
	entry = le64_to_cpu(READ_ONCE(ceq->ring[ceq->tail]));
	if ((entry & ENTRY_VALID) != ceq->valid) {
		spin_unlock(&ceq->lock);
		return false;
	}
	if (++ceq->tail == ceq->cmd.entries) {
		ceq->tail = 0;
		ceq->valid ^= ENTRY_VALID;
	}
	cqn = FIELD_GET(CEQE_CQN, entry);
	*h = cqn < dev->limits.cqs ? get_handler(dev, cqn) : NULL;
	/* Before the handler runs: it re-arms the CQ (spec 01, 2.4). */
	if (cqn < dev->limits.cqs)
		irdma_wr32(dev, IRDMA_REG_CQACK, cqn);
	spin_unlock(&ceq->lock);
	return true;
}

static bool aeq_pending(struct irdma_aeq *aeq);

static irqreturn_t vector_interrupt(int irq, void *data)
{
	struct irdma_ceq *ceq = data;
	struct irdma_device *dev = ceq->dev;
	struct irdma_aeq *aeq = &dev->events->aeq;
	struct irdma_cq_handler *h;

	/* Completions are in memory before the entry that tells of them. */
	while (next_ceqe(ceq, &h)) {
		dma_rmb();
		if (!h)
			continue;
		h->ops->comp(h);
		irdma_ref_put(&h->refs);
	}
	if (ceq->cmd.id == 0 && smp_load_acquire(&aeq->running) && aeq_pending(aeq))
		queue_work(dev->hw_wq, &aeq->work);
	vector_enable(dev, ceq->vector);
	return IRQ_HANDLED;
}

static int ceq_irq_start(struct irdma_ceq *ceq)
{
	struct irdma_device *dev = ceq->dev;
	int err;

	snprintf(ceq->name, sizeof(ceq->name), "irdma-%s-ceq%u", pci_name(dev->lan->pdev),
		 ceq->cmd.id);
	err = request_irq(ceq->vector->irq, vector_interrupt, 0, ceq->name, ceq);
	if (err) {
		irdma_err(dev, "interrupt %d for CEQ %u: %pe\n", ceq->vector->irq, ceq->cmd.id,
			  ERR_PTR(err));
		return err;
	}
	irq_update_affinity_hint(ceq->vector->irq, cpumask_of(ceq->cpu));
	map_ceq(ceq);
	vector_enable(dev, ceq->vector);
	return 0;
}

static void ceq_irq_stop(struct irdma_ceq *ceq)
{
	unmap_ceq(ceq);
	vector_disable(ceq->dev, ceq->vector);
	/* A handler that still runs enables the vector again; nothing is mapped to it any more. */
	synchronize_irq(ceq->vector->irq);
	vector_disable(ceq->dev, ceq->vector);
	irq_update_affinity_hint(ceq->vector->irq, NULL);
	free_irq(ceq->vector->irq, ceq);
}

static int ceq_start(struct irdma_ceq *ceq)
{
	struct irdma_device *dev = ceq->dev;
	size_t bytes;
	struct irdma_cqp_req req;
	int err;

	ceq->cmd.entries = min_t(u32, dev->limits.cqs, MAX_CEQ_ENTRIES);
	bytes = ALIGN(ceq->cmd.entries * sizeof(__le64), 256);
	ceq->ring = dma_alloc_coherent(dma_dev(dev), bytes, &ceq->cmd.ring, GFP_KERNEL);
	if (!ceq->ring)
		return -ENOMEM;
	ceq->tail = 0;
	ceq->valid = ENTRY_VALID;
	irdma_cqp_prep_create_ceq(dev, &req, &ceq->cmd);
	err = irdma_cqp_exec(dev, &req);
	if (err)
		goto free_ring;
	err = ceq_irq_start(ceq);
	if (err)
		goto destroy_ceq;
	return 0;

destroy_ceq:
	irdma_cqp_prep_destroy_ceq(dev, &req, &ceq->cmd);
	irdma_cqp_exec(dev, &req);
free_ring:
	dma_free_coherent(dma_dev(dev), bytes, ceq->ring, ceq->cmd.ring);
	ceq->ring = NULL;
	return err;
}

static void ceq_stop(struct irdma_ceq *ceq)
{
	struct irdma_device *dev = ceq->dev;
	size_t bytes = ALIGN(ceq->cmd.entries * sizeof(__le64), 256);
	struct irdma_cqp_req req;

	ceq_irq_stop(ceq);
	irdma_cqp_prep_destroy_ceq(dev, &req, &ceq->cmd);
	irdma_cqp_exec(dev, &req);
	dma_free_coherent(dma_dev(dev), bytes, ceq->ring, ceq->cmd.ring);
	ceq->ring = NULL;
}

/**
 * irdma_ceq0_start() - create CEQ 0 and let its vector interrupt
 * @dev: the device; the CCQ exists and is polled
 *
 * Context: process, sleeps.
 * Return: 0, -ENOMEM, or an error of request_irq() or irdma_cqp_exec().
 */
int irdma_ceq0_start(struct irdma_device *dev)
{
	return ceq_start(&dev->events->ceqs[0]);
}

/**
 * irdma_ceq0_stop() - undo irdma_ceq0_start()
 * @dev: the device; the CCQ is polled
 *
 * Context: process, sleeps.
 */
void irdma_ceq0_stop(struct irdma_device *dev)
{
	ceq_stop(&dev->events->ceqs[0]);
}

static void stop_ceqs_above(struct irdma_events *ev, unsigned int first)
{
	unsigned int i;

	for (i = ev->num_ceqs; i-- > first;)
		if (ev->ceqs[i].ring)
			ceq_stop(&ev->ceqs[i]);
}

/**
 * irdma_ceqs_start() - create the CEQs behind CEQ 0
 * @dev: the device; CQP completions are found by interrupt
 *
 * Context: process, sleeps.
 * Return: 0 or as irdma_ceq0_start(); nothing is left of a failed attempt.
 */
int irdma_ceqs_start(struct irdma_device *dev)
{
	struct irdma_events *ev = dev->events;
	unsigned int i;
	int err;

	for (i = 1; i < ev->num_ceqs; i++) {
		err = ceq_start(&ev->ceqs[i]);
		if (err) {
			stop_ceqs_above(ev, 1);
			return err;
		}
	}
	dev->num_comp_vectors = ev->num_ceqs;
	return 0;
}

/**
 * irdma_ceqs_stop() - undo irdma_ceqs_start()
 * @dev: the device
 *
 * Context: process, sleeps.
 */
void irdma_ceqs_stop(struct irdma_device *dev)
{
	stop_ceqs_above(dev->events, 1);
}

static __le64 *aeq_entry(const struct irdma_aeq *aeq, u32 i)
{
	if (aeq->ring)
		return aeq->ring + i * AEQ_ENTRY_WORDS;
	return aeq->pages[i / AEQ_PAGE_ENTRIES].va + i % AEQ_PAGE_ENTRIES * AEQ_ENTRY_WORDS;
}

static bool aeq_pending(struct irdma_aeq *aeq)
{
	u32 cursor = READ_ONCE(aeq->cursor);
	u64 word = le64_to_cpu(READ_ONCE(aeq_entry(aeq, cursor & ~CURSOR_VALID)[1]));

	return !!(word & ENTRY_VALID) == !!(cursor & CURSOR_VALID);
}

/*
 * Codes that tell of a QP whatever their source field says (spec 01, 5.3); for the others the
 * source decides.
 */
static bool is_qp_code(u16 code)
{
	switch (code) {
	case 0x011C ... 0x011F:
	case 0x0121:
	case 0x0132 ... 0x0135:
	case 0x0201 ... 0x0202:
	case 0x0205 ... 0x0208:
	case 0x020A:
	case 0x020D ... 0x020E:
	case 0x0304 ... 0x0305:
	case 0x0307 ... 0x0308:
	case 0x0311 ... 0x0314:
	case 0x0316:
	case 0x0380 ... 0x0383:
	case 0x0401 ... 0x0403:
	case 0x0406:
	case 0x0501 ... 0x0503:
	case 0x0505:
	case 0x0507 ... 0x050A:
	case 0x050C:
	case 0x050E ... 0x050F:
	case 0x0601 ... 0x0603:
	case 0x0700:
	case 0x0703 ... 0x0705:
	case 0x0900:
		return true;
	default:
		return false;
	}
}

static void cq_event(struct irdma_device *dev, u32 cqn, u16 code)
{
	struct irdma_aeq *aeq = &dev->events->aeq;
	struct irdma_cq_handler *h;

	spin_lock_irq(&aeq->lock);
	h = get_handler(dev, cqn);
	spin_unlock_irq(&aeq->lock);
	if (!h)
		return;
	h->ops->error(h, code);
	irdma_ref_put(&h->refs);
}

static void dispatch(struct irdma_device *dev, u32 id, u64 context, const struct irdma_ae *ae)
{
	if (ae->code == AE_CQ_OPERATION_ERROR || ae->code == AE_CQ_CATASTROPHIC) {
		cq_event(dev, id, ae->code);
	} else if (is_qp_code(ae->code) || ae->source & AE_SOURCE_QP) {
		if (dev->qp_ae)
			dev->qp_ae(dev, id, context, ae);
	} else {
		irdma_err_ratelimited(dev, "event 0x%04x of source %u for %u ignored\n", ae->code,
				      ae->source, id);
	}
}

static void decode_ae(u64 word, struct irdma_ae *ae)
{
	ae->code = FIELD_GET(AEQE_CODE, word);
	ae->wqe_idx = FIELD_GET(AEQE_WQE_IDX, word);
	ae->source = FIELD_GET(AEQE_SOURCE, word);
	ae->iw_state = FIELD_GET(AEQE_IW_STATE, word);
	ae->tcp_state = FIELD_GET(AEQE_TCP_STATE, word);
	ae->q2_data = FIELD_GET(AEQE_Q2_DATA, word);
}

static void return_credits(struct irdma_device *dev, u32 *taken)
{
	if (*taken)
		irdma_wr32(dev, IRDMA_REG_AEQALLOC, *taken);
	*taken = 0;
}

static void aeq_worker(struct work_struct *work)
{
	struct irdma_aeq *aeq = container_of(work, struct irdma_aeq, work);
	struct irdma_device *dev = container_of(aeq, struct irdma_events, aeq)->dev;
	u32 i, id, valid, taken = 0;
	u64 context, word;
	struct irdma_ae ae;
	__le64 *entry;

	while (aeq_pending(aeq)) {
		i = aeq->cursor & ~CURSOR_VALID;
		valid = aeq->cursor & CURSOR_VALID;
		entry = aeq_entry(aeq, i);
		/* The rest of the entry was written before its valid bit. */
		dma_rmb();
		word = le64_to_cpu(READ_ONCE(entry[1]));
		context = le64_to_cpu(entry[0]);
		id = FIELD_GET(AEQE_ID_LOW, word) | (u32)FIELD_GET(AEQE_ID_HIGH, word) << 18;
		decode_ae(word, &ae);
		if (++i == aeq->cmd.entries) {
			i = 0;
			valid ^= CURSOR_VALID;
		}
		WRITE_ONCE(aeq->cursor, i | valid);
		if (word & AEQE_OVERFLOW) {
			irdma_mark_dead(dev, "asynchronous event queue overflow");
			return;
		}
		if (++taken == AEQ_CREDIT_BATCH)
			return_credits(dev, &taken);
		dispatch(dev, id, context, &ae);
	}
	return_credits(dev, &taken);
}

static void aeq_free_pages(struct irdma_device *dev)
{
	struct irdma_aeq *aeq = &dev->events->aeq;

	while (aeq->num_pages--)
		dma_free_coherent(dma_dev(dev), SZ_4K, aeq->pages[aeq->num_pages].va,
				  aeq->pages[aeq->num_pages].addr);
	kvfree(aeq->pages);
	aeq->pages = NULL;
	irdma_pbl_free(dev, &aeq->pbl);
}

static int aeq_alloc_pages(struct irdma_device *dev)
{
	struct irdma_aeq *aeq = &dev->events->aeq;
	u32 want = DIV_ROUND_UP(aeq->cmd.entries, AEQ_PAGE_ENTRIES);
	struct aeq_page *page;
	int err;

	err = irdma_pbl_alloc(dev, want, true, &aeq->pbl);
	if (err)
		return err;
	aeq->num_pages = 0;
	aeq->pages = kvcalloc(want, sizeof(*aeq->pages), GFP_KERNEL);
	if (!aeq->pages) {
		irdma_pbl_free(dev, &aeq->pbl);
		return -ENOMEM;
	}
	for (; aeq->num_pages < want; aeq->num_pages++) {
		page = &aeq->pages[aeq->num_pages];
		page->va = dma_alloc_coherent(dma_dev(dev), SZ_4K, &page->addr, GFP_KERNEL);
		if (!page->va) {
			aeq_free_pages(dev);
			return -ENOMEM;
		}
		irdma_pbl_set(&aeq->pbl, aeq->num_pages, page->addr);
	}
	aeq->cmd.virt = true;
	aeq->cmd.first_pble = aeq->pbl.first;
	return 0;
}

static size_t aeq_bytes(const struct irdma_aeq *aeq)
{
	return ALIGN(aeq->cmd.entries * AEQ_ENTRY_WORDS * sizeof(__le64), 256);
}

static int aeq_alloc(struct irdma_device *dev)
{
	struct irdma_aeq *aeq = &dev->events->aeq;

	aeq->cmd.entries = min_t(u32, 2 * dev->limits.qps + dev->limits.cqs, MAX_AEQ_ENTRIES);
	aeq->cmd.virt = false;
	aeq->cursor = CURSOR_VALID;
	aeq->ring = dma_alloc_coherent(dma_dev(dev), aeq_bytes(aeq), &aeq->cmd.ring,
				       GFP_KERNEL | __GFP_NOWARN);
	if (aeq->ring)
		return 0;
	return dev->gen->virtual_aeq ? aeq_alloc_pages(dev) : -ENOMEM;
}

static void aeq_free(struct irdma_device *dev)
{
	struct irdma_aeq *aeq = &dev->events->aeq;

	if (aeq->ring)
		dma_free_coherent(dma_dev(dev), aeq_bytes(aeq), aeq->ring, aeq->cmd.ring);
	else
		aeq_free_pages(dev);
	aeq->ring = NULL;
}

/**
 * irdma_aeq_start() - create the asynchronous event queue
 * @dev: the device; vector 0 runs, the PBLE pool too
 *
 * Context: process, sleeps.
 * Return: 0, -ENOMEM, or an error of irdma_cqp_exec().
 */
int irdma_aeq_start(struct irdma_device *dev)
{
	struct irdma_aeq *aeq = &dev->events->aeq;
	struct irdma_cqp_req req;
	int err;

	err = aeq_alloc(dev);
	if (err)
		return err;
	irdma_cqp_prep_create_aeq(dev, &req, &aeq->cmd);
	err = irdma_cqp_exec(dev, &req);
	if (err) {
		aeq_free(dev);
		return err;
	}
	/* The interrupt handler reads the ring once it sees this. */
	smp_store_release(&aeq->running, true);
	irdma_wr32(dev, IRDMA_REG_AEQCTL, AEQCTL_ENABLE | dev->events->ceqs[0].vector->idx);
	/* Events since the creation raised no interrupt. */
	queue_work(dev->hw_wq, &aeq->work);
	return 0;
}

/**
 * irdma_aeq_drain() - handle the events that the hardware has written so far
 * @dev: the device; the queue runs
 *
 * Context: process, sleeps; not from an event's handler.
 */
void irdma_aeq_drain(struct irdma_device *dev)
{
	struct irdma_aeq *aeq = &dev->events->aeq;

	if (aeq_pending(aeq))
		queue_work(dev->hw_wq, &aeq->work);
	flush_work(&aeq->work);
}

/**
 * irdma_aeq_stop() - destroy the asynchronous event queue
 * @dev: the device; no event is awaited any more
 *
 * Context: process, sleeps.
 */
void irdma_aeq_stop(struct irdma_device *dev)
{
	struct irdma_aeq *aeq = &dev->events->aeq;
	const struct irdma_vector *v = dev->events->ceqs[0].vector;
	struct irdma_cqp_req req;

	irdma_wr32(dev, IRDMA_REG_AEQCTL, AEQCTL_DISABLE | v->idx);
	WRITE_ONCE(aeq->running, false);
	synchronize_irq(v->irq);
	cancel_work_sync(&aeq->work);
	irdma_wr32(dev, IRDMA_REG_AEQCTL, 0);
	irdma_cqp_prep_destroy_aeq(dev, &req, &aeq->cmd);
	irdma_cqp_exec(dev, &req);
	aeq_free(dev);
}

/**
 * irdma_events_init() - decide how many CEQs there will be
 * @dev: the device; limits are known
 *
 * One for each online CPU, as far as there are vectors; more would share CPUs for nothing.
 *
 * Context: process, sleeps.
 * Return: 0, -ENOMEM, or -EINVAL if the LAN driver lends no vector.
 */
int irdma_events_init(struct irdma_device *dev)
{
	int node = dev_to_node(dma_dev(dev));
	struct irdma_events *ev;
	unsigned int i, num;

	num = min3(dev->lan->num_vectors, num_online_cpus(),
		   min(dev->limits.ceqs, dev->gen->max_ceqs));
	if (!num) {
		irdma_err(dev, "needs an interrupt vector and a CEQ, has %u and %u\n",
			  dev->lan->num_vectors, dev->limits.ceqs);
		return -EINVAL;
	}
	ev = kvzalloc(struct_size(ev, ceqs, num), GFP_KERNEL);
	if (!ev)
		return -ENOMEM;
	ev->dev = dev;
	ev->num_ceqs = num;
	spin_lock_init(&ev->aeq.lock);
	INIT_WORK(&ev->aeq.work, aeq_worker);
	for (i = 0; i < num; i++) {
		ev->ceqs[i].dev = dev;
		ev->ceqs[i].cmd.id = i;
		ev->ceqs[i].vector = &dev->lan->vectors[i];
		ev->ceqs[i].cpu = cpumask_local_spread(i, node);
		spin_lock_init(&ev->ceqs[i].lock);
	}
	dev->events = ev;
	return 0;
}

/**
 * irdma_events_free() - undo irdma_events_init()
 * @dev: the device; all event queues are gone
 */
void irdma_events_free(struct irdma_device *dev)
{
	kvfree(dev->events);
	dev->events = NULL;
}
