// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * eq.c - completion event queues (CEQ) and the asynchronous event queue (AEQ):
 * rings in guest memory that the device fills, and the vectors they raise.
 * Called by the engine's callbacks and by the control queue.
 *
 * The device must not overrun the driver: an AEQ has as many entries as the driver
 * gave back through AEQALLOC; a CEQ entry is given back by CQACK.
 */
#include <stdlib.h>
#include "rdma_int.h"

static bool ring_mapped(struct nic *d, const struct eq *q, u32 entry)
{
	u64 bytes = (u64)q->size * entry;

	if (!q->virt)
		return bytes <= UINT32_MAX && dma_ptr(d, q->base, bytes);
	for (u64 i = 0; i < (bytes + 4095) / 4096; i++) {
		u8 *p = hmc_pble(d, q->pble + i);

		if (!p || !dma_ptr(d, ld64(p) & ~0xfffull, 4096))
			return false;
	}
	return true;
}

static u32 eq_create(struct nic *d, struct eq *q, const char *name, u32 n, const u8 *w, u32 entry)
{
	struct eq new = { .used = true, .size = ld64(w + 16) & 0x3fffff, .base = ld64(w + 32),
		.pble = ld64(w + 48) & 0xfffffff, .virt = ld64(w + 24) >> 47 & 1, .pol = 1 };

	new.room = new.size;
	if (q->used && refuse(d, "CREATE %s %u: exists", name, n))
		return CQP_BAD_PARAM;
	if (!new.size && refuse(d, "CREATE %s %u: size 0", name, n))
		return CQP_BAD_PARAM;
	if (!ring_mapped(d, &new, entry) &&
	    refuse(d, "CREATE %s %u: ring of %u entries at %s 0x%llx is not guest memory", name, n,
		   new.size, new.virt ? "PBLE" : "address",
		   (unsigned long long)(new.virt ? new.pble : new.base)))
		return CQP_BAD_PARAM;
	*q = new;
	return 0;
}

static u32 eq_destroy(struct nic *d, struct eq *q, const char *name, u32 n, const u8 *w)
{
	u32 size = ld64(w + 16) & 0x3fffff;

	if (!q->used && refuse(d, "DESTROY %s %u: does not exist", name, n))
		return CQP_BAD_PARAM;
	if (size != q->size && refuse(d, "DESTROY %s %u: size %u, created with %u", name, n, size,
				      q->size))
		return CQP_BAD_PARAM;
	q->used = false;
	return 0;
}

u32 ceq_create(struct nic *d, const u8 *w, bool create)
{
	u32 n = ld64(w + 24) & 0x3ff;

	if (n >= MAX_CEQ) {
		refuse(d, "%s CEQ %u: at most %u", create ? "CREATE" : "DESTROY", n, MAX_CEQ - 1);
		return CQP_BAD_PARAM;
	}
	return create ? eq_create(d, &rdma.ceq[n], "CEQ", n, w, 8)
		      : eq_destroy(d, &rdma.ceq[n], "CEQ", n, w);
}

u32 aeq_create(struct nic *d, const u8 *w, bool create)
{
	return create ? eq_create(d, &rdma.aeq, "AEQ", 0, w, 16)
		      : eq_destroy(d, &rdma.aeq, "AEQ", 0, w);
}

/* Place for the next entry of "size" bytes, and its valid bit; NULL: no queue or no room. */
static u8 *eq_next(struct nic *d, struct eq *q, u32 size, u64 *valid)
{
	u64 off = (u64)size * q->head;
	u8 *p, *e;

	if (!q->used || !q->size)
		return NULL;
	if (q->virt) {
		p = hmc_pble(d, q->pble + (off >> 12));
		e = p ? dma_ptr(d, (ld64(p) & ~0xfffull) + (off & 0xfff), size) : NULL;
	} else {
		e = dma_ptr(d, q->base + off, size);
	}
	*valid = (u64)q->pol << 63;
	if (++q->head == q->size) {
		q->head = 0;
		q->pol ^= 1;
	}
	return e;
}

static void ceq_post(struct nic *d, u32 n, u64 ctx)
{
	u64 valid;
	u8 *e;

	if (n >= MAX_CEQ || !rdma.ceq[n].used)
		return;
	if (!rdma.ceq[n].room) {
		if (refuse(d, "CEQ %u overflows: all %u entries wait for a CQACK", n, rdma.ceq[n].size))
			return;
	} else {
		rdma.ceq[n].room--;
	}
	e = eq_next(d, &rdma.ceq[n], 8, &valid);
	if (!e)
		return;
	__atomic_store_n((u64 *)e, (ctx & ~(1ull << 63)) | valid, __ATOMIC_RELEASE);
	irq_cause(d, rget(d, d->type->rdma->ceqctl + 4 * n));
}

static void aeq_post(struct nic *d, const struct eng_ae *ae)
{
	u64 valid;
	u8 *e;

	TRACE(d, 1, "AE 0x%03x for %u, source %u, WQE %u, iwarp %u tcp %u", ae->code, ae->id, ae->src,
	      ae->wqe_idx, ae->iw_state, ae->tcp_state);
	if (!rdma.aeq.used)
		return;
	if (!rdma.aeq.room) {
		if (refuse(d, "AEQ overflows: event 0x%03x for %u is lost, %u entries wait for AEQALLOC",
			   ae->code, ae->id, rdma.aeq.size))
			return;
	} else {
		rdma.aeq.room--;
	}
	e = eq_next(d, &rdma.aeq, 16, &valid);
	if (!e)
		return;
	st64(e, ae->ctx);
	__atomic_store_n((u64 *)(e + 8), (ae->id & 0x3ffff) | (u64)(ae->wqe_idx & 0x7fff) << 18 |
			 (u64)ae->code << 34 | (u64)(ae->id >> 18 & 1) << 46 | (u64)ae->src << 50 |
			 (u64)ae->iw_state << 54 | (u64)ae->tcp_state << 57 |
			 (u64)(ae->q2data & 3) << 61 | valid, __ATOMIC_RELEASE);
	irq_cause(d, rget(d, d->type->rdma->aeqctl));
}

/* An entry of the CQ's event queue was taken. */
void ceq_ack(struct nic *d, u32 cqn)
{
	int n = rdma.eng ? eng_cq_ceq(rdma.eng, cqn) : -1;

	(void)d;
	if (n >= 0 && n < MAX_CEQ && rdma.ceq[n].room < rdma.ceq[n].size)
		rdma.ceq[n].room++;
}

void aeq_credit(struct nic *d, u32 n)
{
	u32 taken = rdma.aeq.size - rdma.aeq.room;

	if (n > taken && refuse(d, "AEQALLOC %u: only %u entries were posted", n, taken))
		n = taken;
	rdma.aeq.room += n < taken ? n : taken;
}

/* delays on command */

static struct late_event *late_add(u64 delay_ns)
{
	struct late_event *l = zalloc(sizeof(*l));

	l->due = mono_ns() + delay_ns;
	if (!rdma_faults.late)
		rdma_faults.late_tail = &rdma_faults.late;
	*rdma_faults.late_tail = l;
	rdma_faults.late_tail = &l->next;
	return l;
}

void ceq_event(void *dev, u32 n, u64 ctx)
{
	struct late_event *l;

	if (!rdma_faults.ceq_delay_ns) {
		ceq_post(dev, n, ctx);
		return;
	}
	l = late_add(rdma_faults.ceq_delay_ns);
	l->num = n;
	l->ctx = ctx;
}

void aeq_event(void *dev, const struct eng_ae *ae)
{
	struct late_event *l;

	if (!rdma_faults.aeq_delay_ns) {
		aeq_post(dev, ae);
		return;
	}
	l = late_add(rdma_faults.aeq_delay_ns);
	l->kind = LATE_AEQ;
	l->ae = *ae;
}

void cq_arm(u32 n)
{
	struct late_event *l;

	if (!rdma_faults.arm_delay_ns) {
		eng_cq_arm(rdma.eng, n);
		return;
	}
	l = late_add(rdma_faults.arm_delay_ns);
	l->kind = LATE_ARM;
	l->num = n;
}

/* The list is in order of arrival; with two different delays a short one waits its turn. */
u64 late_deadline(void) { return rdma_faults.late ? rdma_faults.late->due : UINT64_MAX; }

void late_poll(struct nic *d)
{
	struct late_event *l;

	while ((l = rdma_faults.late) && l->due <= mono_ns()) {
		rdma_faults.late = l->next;
		if (l->kind == LATE_AEQ)
			aeq_post(d, &l->ae);
		else if (l->kind == LATE_CEQ)
			ceq_post(d, l->num, l->ctx);
		else if (rdma.eng && eng_has_cq(rdma.eng, l->num))	/* it may have gone meanwhile */
			eng_cq_arm(rdma.eng, l->num);
		free(l);
	}
}

void late_forget(void)
{
	struct late_event *l;

	while ((l = rdma_faults.late)) {
		rdma_faults.late = l->next;
		free(l);
	}
}
