// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * check.c - what silicon would refuse of the control commands that belong to the
 * engine: ids, states, addresses, references, contexts.  Called by eng_cqp()
 * before the command is executed; the command's own code keeps only the checks
 * that it needs to be safe.
 *
 * Codes: CQP_BAD_PARAM for a field, CQP_HMC_ERROR for an object whose memory is not
 * there, CQP_BAD_STAG for STags (specification 01, 4.5; unknown minors are our choice).
 */
#include <stdarg.h>
#include <stdio.h>
#include "engine_int.h"

bool violated(struct eng *e, const char *fmt, ...)
{
	char text[240];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (e->ops.violation)
		e->ops.violation(e->dev, text);
	return e->cfg.strict;
}

static bool dma_ok(struct eng *e, u64 pa, u32 len)
{
	return !e->ops.dma_ok || e->ops.dma_ok(e->dev, pa, len);
}

static bool backed(struct eng *e, enum eng_object object, u32 idx)
{
	return !e->ops.backed || e->ops.backed(e->dev, object, idx);
}

static bool qp_exists(struct eng *e, u32 n) { return qp_get(e, n) || uda_exists(e, n); }

/* A ring or list of "pages" pages through page-list entries. */
static bool pages_ok(struct eng *e, u32 pble, u64 pages, u64 page_size)
{
	for (u64 i = 0; i < pages; i++) {
		u64 val;

		if (!e->ops.pble_read(e->dev, pble + i, &val) ||
		    !dma_ok(e, val & ~(page_size - 1), 4096))
			return false;
	}
	return true;
}

static bool ring_ok(struct eng *e, bool virt, u64 base, u32 bytes)
{
	return virt ? pages_ok(e, base, queue_pages(bytes), 4096) : dma_ok(e, base, bytes);
}

/* QP */

static u32 check_qp_queues(struct eng *e, u32 n, const u64 *c, bool virt, bool uda)
{
	u32 sq = (4u << bits(c[3], 15, 12)) * QUANTUM, rq = (4u << bits(c[3], 11, 8)) * QUANTUM;
	u32 txcq = bits(c[17], 24, 0), rxcq = bits(c[17], 56, 32);

	if ((bits(c[3], 15, 12) > 13 || bits(c[3], 11, 8) > 13) &&
	    violated(e, "CREATE_QP %u: context: size codes SQ %u RQ %u, at most 13", n,
		     (u32)bits(c[3], 15, 12), (u32)bits(c[3], 11, 8)))
		return CQP_BAD_PARAM;
	if ((!cq_get(e, txcq) || !cq_get(e, rxcq)) &&
	    violated(e, "CREATE_QP %u: context: CQ %u or %u does not exist", n, txcq, rxcq))
		return CQP_BAD_PARAM;
	if (!ring_ok(e, virt, c[1], sq) &&
	    violated(e, "CREATE_QP %u: context: SQ at %s 0x%llx, %u bytes, is not guest memory", n,
		     virt ? "PBLE" : "address", (unsigned long long)c[1], sq))
		return CQP_BAD_PARAM;
	/* the IEQ and a QP without receive queue name no buffer */
	if ((c[2] || !uda) && !ring_ok(e, virt, c[2], rq) &&
	    violated(e, "CREATE_QP %u: context: RQ at %s 0x%llx, %u bytes, is not guest memory", n,
		     virt ? "PBLE" : "address", (unsigned long long)c[2], rq))
		return CQP_BAD_PARAM;
	return 0;
}

static u32 check_iwarp_context(struct eng *e, const char *op, u32 n, const u64 *c)
{
	u64 q2 = c[18] & ~0xffull;

	if ((bits(c[0], 1, 0) != 1 || bits(c[0], 63, 62) != 1) &&
	    violated(e, "%s %u: context: DDP version %u, RDMAP version %u (1 and 1)", op, n,
		     (u32)bits(c[0], 1, 0), (u32)bits(c[0], 63, 62)))
		return CQP_BAD_PARAM;
	if (!bit(c[20], 28) && violated(e, "%s %u: context: iWARP mode is off", op, n))
		return CQP_BAD_PARAM;
	if (bits(c[20], 18, 16) > 4 &&
	    violated(e, "%s %u: context: IRD code %u, at most 4", op, n, (u32)bits(c[20], 18, 16)))
		return CQP_BAD_PARAM;
	if (!dma_ok(e, q2, 256) && violated(e, "%s %u: context: Q2 at 0x%llx is not guest memory", op,
					    n, (unsigned long long)q2))
		return CQP_BAD_PARAM;
	return 0;
}

static u32 check_tcp_context(struct eng *e, u32 n, const u64 *c)
{
	u32 mss = bits(c[6], 29, 16), arp = bits(c[6], 63, 48);
	u32 nxt = (u32)c[10], max = (u32)c[12], una = c[12] >> 32;

	if (bits(c[7], 31, 28) != TCP_ESTABLISHED &&
	    violated(e, "MODIFY_QP %u: context: TCP state %u, must be 5", n, (u32)bits(c[7], 31, 28)))
		return CQP_BAD_PARAM;
	if ((mss < 128 || mss > 9702) &&
	    violated(e, "MODIFY_QP %u: context: MSS %u (128 to 9702)", n, mss))
		return CQP_BAD_PARAM;
	if ((arp >= e->cfg.max_arp || !e->arp_ok[arp]) &&
	    violated(e, "MODIFY_QP %u: context: ARP entry %u is not valid", n, arp))
		return CQP_BAD_PARAM;
	if ((nxt != max || nxt != una) &&
	    violated(e, "MODIFY_QP %u: context: SNDNXT %u, SNDMAX %u, SNDUNA %u differ", n, nxt, max,
		     una))
		return CQP_BAD_PARAM;
	if ((!bits(c[3], 47, 32) || !bits(c[3], 63, 48)) &&
	    violated(e, "MODIFY_QP %u: context: TCP port 0", n))
		return CQP_BAD_PARAM;
	if (bit(c[7], 20) && (bits(c[7], 35, 32) > 14 || bits(c[7], 43, 40) > 14) &&
	    violated(e, "MODIFY_QP %u: context: window shifts %u and %u, at most 14", n,
		     (u32)bits(c[7], 35, 32), (u32)bits(c[7], 43, 40)))
		return CQP_BAD_PARAM;
	if (!(c[11] >> 32) && violated(e, "MODIFY_QP %u: context: receive window 0", n))
		return CQP_BAD_PARAM;
	return 0;
}

static u32 check_create_qp(struct eng *e, const u64 w[8])
{
	u32 n = bits(w[3], 23, 0), type = bits(w[3], 50, 48), err;
	u64 c[32];

	if (n >= e->cfg.max_qp && violated(e, "CREATE_QP %u: %u were committed", n, e->cfg.max_qp))
		return CQP_BAD_PARAM;
	if (qp_exists(e, n) && violated(e, "CREATE_QP %u: exists", n))
		return CQP_BAD_PARAM;
	if (!backed(e, ENG_OBJ_QP, n) && violated(e, "CREATE_QP %u: HMC object has no memory", n))
		return CQP_HMC_ERROR;
	if (!e->ops.dma_read(e->dev, w[2], c, sizeof(c))) {
		violated(e, "CREATE_QP %u: context at 0x%llx is not guest memory", n,
			 (unsigned long long)w[2]);
		return CQP_BAD_PARAM;
	}
	if (!dma_ok(e, w[5], 64) && violated(e, "CREATE_QP %u: shadow area at 0x%llx is not guest memory",
					     n, (unsigned long long)w[5]))
		return CQP_BAD_PARAM;
	err = check_qp_queues(e, n, c, bit(w[3], 45), type == 2);
	return err || type == 2 ? err : check_iwarp_context(e, "CREATE_QP", n, c);
}

static u32 check_modify_qp(struct eng *e, const u64 w[8])
{
	u32 n = bits(w[3], 23, 0), next = bits(w[3], 62, 60), err = 0;
	struct qp *q = qp_get(e, n);
	u64 c[32];

	if (!qp_exists(e, n)) {
		violated(e, "MODIFY_QP %u: does not exist", n);
		return CQP_BAD_PARAM;
	}
	if (!q)
		return 0;
	if (bits(w[3], 50, 48) != q->type && violated(e, "MODIFY_QP %u: type %u, created with %u", n,
						      (u32)bits(w[3], 50, 48), q->type))
		return CQP_BAD_PARAM;
	if (!e->ops.dma_read(e->dev, w[2], c, sizeof(c))) {
		violated(e, "MODIFY_QP %u: context at 0x%llx is not guest memory", n,
			 (unsigned long long)w[2]);
		return CQP_BAD_PARAM;
	}
	if (bit(w[3], 52) && (bits(w[1], 45, 32) < 128 || bits(w[1], 45, 32) > 9702) &&
	    violated(e, "MODIFY_QP %u: new MSS %u (128 to 9702)", n, (u32)bits(w[1], 45, 32)))
		return CQP_BAD_PARAM;
	if (next == IW_RTS && q->state == IW_IDLE) {
		err = check_iwarp_context(e, "MODIFY_QP", n, c);
		if (!err && bit(w[3], 43))
			err = check_tcp_context(e, n, c);
	}
	return err;
}

static u32 check_qp_command(struct eng *e, const u64 w[8], const char *op)
{
	u32 n = bits(w[3], 23, 0);

	if (qp_exists(e, n))
		return 0;
	violated(e, "%s: QP %u does not exist", op, n);
	return CQP_BAD_PARAM;
}

/* CQ */

static u32 cq_number(struct eng *e, const u64 w[8]) { return w[3] & ((1u << e->g->cqn_bits) - 1); }

static u32 check_create_cq(struct eng *e, const u64 w[8])
{
	u32 n = cq_number(e, w), size = bits(w[0], 20, 0);
	u32 ceq = w[3] >> e->g->ceq_shift & ((1u << e->g->ceq_bits) - 1);
	bool virt = bit(w[3], 47);

	if (n >= e->cfg.max_cq && violated(e, "CREATE_CQ %u: %u were committed", n, e->cfg.max_cq))
		return CQP_BAD_PARAM;
	if (cq_get(e, n) && violated(e, "CREATE_CQ %u: exists", n))
		return CQP_BAD_PARAM;
	if (!size && violated(e, "CREATE_CQ %u: size 0", n))
		return CQP_BAD_PARAM;
	if (!backed(e, ENG_OBJ_CQ, n) && violated(e, "CREATE_CQ %u: HMC object has no memory", n))
		return CQP_HMC_ERROR;
	/* the CCQ is created before its CEQ */
	if (n && bit(w[3], 49) && e->ops.ceq_exists && !e->ops.ceq_exists(e->dev, ceq) &&
	    violated(e, "CREATE_CQ %u: CEQ %u does not exist", n, ceq))
		return CQP_BAD_PARAM;
	if (!dma_ok(e, w[5], 64) && violated(e, "CREATE_CQ %u: shadow area at 0x%llx is not guest memory",
					     n, (unsigned long long)w[5]))
		return CQP_BAD_PARAM;
	if (virt != (bits(w[3], 45, 44) == 1) &&
	    violated(e, "CREATE_CQ %u: VIRTMAP %u with page list level %u", n, virt,
		     (u32)bits(w[3], 45, 44)))
		return CQP_BAD_PARAM;
	if (!ring_ok(e, virt, virt ? bits(w[6], 27, 0) : w[4], size * 32) &&
	    violated(e, "CREATE_CQ %u: ring of %u entries is not guest memory", n, size))
		return CQP_BAD_PARAM;
	return 0;
}

static u32 cq_users(struct eng *e, u32 n)
{
	u32 users = uda_cq_users(e, n);

	for (u32 i = 0; i < e->cfg.max_qp; i++)
		users += e->qp[i] && (e->qp[i]->txcq == n || e->qp[i]->rxcq == n);
	return users;
}

static u32 check_destroy_cq(struct eng *e, const u64 w[8])
{
	u32 n = cq_number(e, w);
	struct cq *c = cq_get(e, n);

	if (!c) {
		violated(e, "DESTROY_CQ %u: does not exist", n);
		return CQP_BAD_PARAM;
	}
	if (bits(w[0], 20, 0) != c->size && violated(e, "DESTROY_CQ %u: size %u, it has %u", n,
						     (u32)bits(w[0], 20, 0), c->size))
		return CQP_BAD_PARAM;
	if (bits(w[1], 62, 0) != c->ctx && violated(e, "DESTROY_CQ %u: context 0x%llx, created with 0x%llx",
						    n, (unsigned long long)bits(w[1], 62, 0),
						    (unsigned long long)c->ctx))
		return CQP_BAD_PARAM;
	if (w[5] != c->shadow && violated(e, "DESTROY_CQ %u: shadow 0x%llx, created with 0x%llx", n,
					  (unsigned long long)w[5], (unsigned long long)c->shadow))
		return CQP_BAD_PARAM;
	if (n && bit(w[3], 47) != c->virt && violated(e, "DESTROY_CQ %u: VIRTMAP %u, it has %u", n,
						      bit(w[3], 47), c->virt))
		return CQP_BAD_PARAM;
	if (cq_users(e, n) && violated(e, "DESTROY_CQ %u: %u QPs use it", n, cq_users(e, n)))
		return CQP_BAD_PARAM;
	return 0;
}

static u32 check_modify_cq(struct eng *e, const u64 w[8])
{
	u32 n = cq_number(e, w);

	if (cq_get(e, n))
		return 0;
	violated(e, "MODIFY_CQ %u: does not exist", n);
	return CQP_BAD_PARAM;
}

/* STags */

static u32 command_pd(struct eng *e, const u64 w[8])
{
	return w[1] >> e->g->pd_shift & ((1u << e->g->pd_bits) - 1);
}

static u32 check_stag_slot(struct eng *e, const char *op, u32 stag)
{
	u32 idx = stag >> 8 & e->mr_mask;
	bool same;

	if (mem_slot(e, stag, &same)->state != MR_FREE && violated(e, "%s 0x%08x: index %u is in use (0x%08x)",
			op, stag, idx, mem_slot(e, stag, &same)->stag))
		return CQP_BAD_STAG;
	if (!idx && violated(e, "%s 0x%08x: index 0", op, stag))
		return CQP_BAD_STAG;
	if (idx >= e->cfg.max_mr && violated(e, "%s 0x%08x: index %u, %u were committed", op, stag, idx,
					     e->cfg.max_mr))
		return CQP_BAD_STAG;
	if (!backed(e, ENG_OBJ_MR, idx) && violated(e, "%s 0x%08x: HMC object %u has no memory", op, stag,
						    idx))
		return CQP_HMC_ERROR;
	return 0;
}

/* Page list of a region: the leaves of a two-level list have 512 entries. */
static bool region_pages_ok(struct eng *e, const struct mrte *m)
{
	static const u64 page_size[4] = { 1 << 12, 1 << 21, 1 << 30, 1 << 12 };
	u64 pages = region_page_count(m), root;

	if (m->lpbl == 1)
		return pages_ok(e, m->pble, pages, page_size[m->hpage]);
	for (u64 i = 0; i < (pages + 511) / 512; i++) {
		u64 n = pages - i * 512 < 512 ? pages - i * 512 : 512;

		if (!e->ops.pble_read(e->dev, m->pble + i, &root) ||
		    !pages_ok(e, (u32)root, n, page_size[m->hpage]))
			return false;
	}
	return true;
}

static u32 check_reg_mr(struct eng *e, const u64 w[8])
{
	struct mrte m = { .mr = true, .va = w[0], .len = bits(w[1], 45, 0), .pble = bits(w[6], 27, 0),
		.lpbl = bits(w[3], 45, 44), .hpage = bits(w[3], 47, 46) };
	u32 stag = (u32)w[2], err = check_stag_slot(e, "REG_MR", stag), rights = bits(w[3], 52, 48);

	if (err)
		return err;
	if (!bit(w[3], 43) && violated(e, "REG_MR 0x%08x: not marked as a region", stag))
		return CQP_BAD_PARAM;
	if (!rights && violated(e, "REG_MR 0x%08x: no rights", stag))
		return CQP_BAD_PARAM;
	if (!!(rights & (R_RREAD | R_RWRITE)) != bit(w[3], 53) &&
	    violated(e, "REG_MR 0x%08x: rights 0x%x with remote access %u", stag, rights, bit(w[3], 53)))
		return CQP_BAD_PARAM;
	if ((m.lpbl == 2 || m.hpage == 3) &&
	    violated(e, "REG_MR 0x%08x: page list level %u, page size code %u", stag, m.lpbl, m.hpage))
		return CQP_BAD_PARAM;
	if (m.lpbl && m.lpbl != 2 && !region_pages_ok(e, &m) &&
	    violated(e, "REG_MR 0x%08x: page list at PBLE %u for %llu bytes is not in memory", stag,
		     m.pble, (unsigned long long)m.len))
		return CQP_HMC_ERROR;
	if (!m.lpbl && m.len && !dma_ok(e, w[4], 1) &&
	    violated(e, "REG_MR 0x%08x: address 0x%llx is not guest memory", stag,
		     (unsigned long long)w[4]))
		return CQP_BAD_PARAM;
	return 0;
}

static u32 check_alloc_stag(struct eng *e, const u64 w[8])
{
	u32 stag = w[2] & 0xffffff00, err = check_stag_slot(e, "ALLOC_STAG", stag);

	if (!err && bit(w[3], 43) && !bits(w[1], 45, 0) &&
	    violated(e, "ALLOC_STAG 0x%08x: region of length 0", stag))
		return CQP_BAD_PARAM;
	return err;
}

static u32 check_dealloc(struct eng *e, const u64 w[8])
{
	u32 stag = (u32)w[2];
	const struct mrte *m;
	bool same;

	m = mem_slot(e, stag, &same);
	if (!same) {
		violated(e, "DEALLOC_STAG 0x%08x: does not exist", stag);
		return CQP_BAD_STAG;
	}
	if (m->mr != bit(w[3], 43) && violated(e, "DEALLOC_STAG 0x%08x: names a %s, it is a %s", stag,
					       bit(w[3], 43) ? "region" : "window",
					       m->mr ? "region" : "window"))
		return CQP_BAD_STAG;
	if (m->pd != command_pd(e, w) && violated(e, "DEALLOC_STAG 0x%08x: PD %u, created with %u", stag,
						  command_pd(e, w), m->pd))
		return CQP_BAD_STAG;
	if (m->windows && violated(e, "DEALLOC_STAG 0x%08x: %u windows are bound to it", stag,
				   m->windows))
		return CQP_BAD_STAG;
	return 0;
}

/* ARP, address handles, quad hash */

static u32 check_arp(struct eng *e, const u64 w[8])
{
	u32 n = bits(w[3], 11, 0);
	bool add = bit(w[3], 42);

	if ((!n || n >= e->cfg.max_arp) &&
	    violated(e, "MANAGE_ARP %u: 1 to %u", n, e->cfg.max_arp - 1))
		return CQP_BAD_PARAM;
	if (!add && n < e->cfg.max_arp && !e->arp_ok[n] &&
	    violated(e, "MANAGE_ARP %u: delete of an entry that is not valid", n))
		return CQP_BAD_PARAM;
	if (add && n < e->cfg.max_arp && e->arp_ok[n] &&
	    violated(e, "MANAGE_ARP %u: entry exists", n))
		return CQP_BAD_PARAM;
	/* group addresses are allowed: the in-tree driver enters multicast neighbours */
	if (add && !bits(w[2], 47, 0) && violated(e, "MANAGE_ARP %u: MAC address 0", n))
		return CQP_BAD_PARAM;
	if (add && !backed(e, ENG_OBJ_ARP, n) &&
	    violated(e, "MANAGE_ARP %u: HMC object has no memory", n))
		return CQP_HMC_ERROR;
	return 0;
}

static u32 check_ah(struct eng *e, const u64 w[8], bool create)
{
	u32 n = bits(w[3], 16, 0), arp = bits(w[2], 63, 48);
	const char *op = create ? "CREATE_AH" : "DESTROY_AH";

	if (n >= e->cfg.max_ah && violated(e, "%s %u: %u were committed", op, n, e->cfg.max_ah))
		return CQP_BAD_PARAM;
	if (uda_ah_used(e, n) == create &&
	    violated(e, "%s %u: %s", op, n, create ? "exists" : "does not exist"))
		return CQP_BAD_PARAM;
	if (create && (arp >= e->cfg.max_arp || !e->arp_ok[arp]) &&
	    violated(e, "CREATE_AH %u: ARP entry %u is not valid", n, arp))
		return CQP_BAD_PARAM;
	if (create && !backed(e, ENG_OBJ_AH, n) && violated(e, "CREATE_AH %u: HMC object has no memory", n))
		return CQP_HMC_ERROR;
	return 0;
}

static u32 check_qhash(struct eng *e, const u64 w[8])
{
	u32 type = bits(w[3], 44, 42), qpn = bits(w[1], 49, 32);

	if ((type < 1 || type > 6) && violated(e, "QUAD_HASH: type %u (1 to 6)", type))
		return CQP_BAD_PARAM;
	if (type <= 2 && !bits(w[1], 15, 0) && violated(e, "QUAD_HASH: local port 0"))
		return CQP_BAD_PARAM;
	if (bits(w[3], 62, 61) == 3 && violated(e, "QUAD_HASH: operation 3 (0 to 2)"))
		return CQP_BAD_PARAM;
	if (type <= 2 && bits(w[3], 62, 61) && !qp_exists(e, qpn) &&
	    violated(e, "QUAD_HASH: local port %u: QP %u does not exist", (u32)bits(w[1], 15, 0), qpn))
		return CQP_BAD_PARAM;
	return 0;
}

u32 check_command(struct eng *e, const u64 w[8])
{
	switch (bits(w[3], 37, 32)) {
	case 0x00: return check_create_qp(e, w);
	case 0x01: return check_modify_qp(e, w);
	case 0x02: return check_qp_command(e, w, "DESTROY_QP");
	case 0x03: return check_create_cq(e, w);
	case 0x04: return check_modify_cq(e, w);
	case 0x05: return check_destroy_cq(e, w);
	case 0x09: return check_alloc_stag(e, w);
	case 0x0a: return check_reg_mr(e, w);
	case 0x0d: return check_dealloc(e, w);
	case 0x0f: return check_arp(e, w);
	case 0x1c: return check_ah(e, w, true);
	case 0x1e: return check_ah(e, w, false);
	case 0x22: return check_qp_command(e, w, "FLUSH_WQES");
	case 0x25: return check_qhash(e, w);
	case 0x29: return check_qp_command(e, w, "SUSPEND_QP");
	case 0x2a: return check_qp_command(e, w, "RESUME_QP");
	}
	return 0;
}
