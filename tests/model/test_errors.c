// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * test_errors.c - the engine's tests of errors and of everything that is not plain
 * data: terminate, flush, abort, close, protocol violations, STags, queues, ILQ.
 */
#include "test_engine.h"

/* terminate, flush, abort */

/* Layer/type and code the driver puts into a Terminate (spec 01 5.5), per AE and opcode. */
static void term_codes(u16 ae, bool q2, u8 op, u8 *lt, u8 *code)
{
	bool w = q2 && op == RDMAP_WRITE, inv = q2 && (op == RDMAP_SEND_INV || op == RDMAP_SEND_SE_INV);
	u16 v;

	switch (ae) {
	case AE_UNALLOCATED_STAG: v = w ? 0x1100 : 0x0100; break;
	case AE_INVALID_STAG: v = 0x0100; break;
	case AE_BAD_QP: v = 0x1201; break;
	case AE_BAD_PD: v = w ? 0x1102 : inv ? 0x0109 : 0x0103; break;
	case AE_BAD_KEY: case AE_BAD_INDEX: v = inv ? 0x0209 : 0x0200; break;
	case AE_BOUNDS: v = q2 ? 0x1101 : 0x0101; break;
	case AE_RIGHTS: case AE_INVALIDATE_NO_REMOTE: case AE_PRIV_DENIED: v = 0x0102; break;
	case AE_TO_WRAP: v = 0x0104; break;
	case AE_MSG_TOO_LONG: v = 0x1205; break;
	case AE_NO_BUFFER: v = 0x1202; break;
	case AE_MPA_CRC: v = 0x2302; break;
	default: v = 0x02ff;
	}
	*lt = v >> 8;
	*code = v;
}

/* FPDU in the frame at Q2 + 72, parsed the way the driver does. */
static u8 *q2_fpdu(struct tqp *q)
{
	u8 *f = q->n->ram + q->q2 + 72;
	u32 ip = 14, th;

	if (C.o.v6)		/* the real driver cannot parse this one */
		th = ip + 40;
	else
		th = ip + (f[ip] & 15) * 4;
	return f + th + (f[th + 12] >> 4) * 4;
}

static u32 build_terminate(struct tqp *q, const struct eng_ae *a, u8 *img)
{
	u8 *p = q2_fpdu(q);
	u32 n = 4;

	memset(img, 0, 72);
	term_codes(a->code, a->q2data, p[3] & 15, &img[0], &img[1]);
	if (a->q2data && rb16(p)) {
		u32 dl = rb16(p), h = p[2] & 0x80 ? 14 : 18;

		img[2] = 0x80;
		memcpy(img + 4, p, 2);
		n = 6;
		if (dl >= h) {
			img[2] |= 0x40;
			memcpy(img + n, p + 2, h);
			n += h;
			if (h == 18 && dl >= 46 && (p[3] & 15) == RDMAP_READ_REQ) {
				img[2] |= 0x20;
				memcpy(img + n, p + 2 + 18, 28);
				n += 28;
			}
		}
	}
	memcpy(q->n->ram + q->q2, img, 72);
	return n;
}

static u32 drain(struct tqp *q, struct tcqe *last_sq, struct tcqe *last_rq)
{
	u32 flushed = 0;
	struct tcqe c;

	for (int k = 0; k < 2; k++)
		while (cq_poll(k ? q->rcq : q->scq, &c)) {
			if (c.err) {
				flushed++;
				*(c.sq ? last_sq : last_rq) = c;
			} else if (c.sq) {
				sq_done(q, &c);
			}
		}
	return flushed;
}

static bool expect_q2 = true;

/* Side x found an error: play both drivers through terminate, close, error, flush. */
void terminate_flow(int x, u16 code, u8 src)
{
	struct node *nx = &N[x], *ny = &N[!x];
	struct tqp *qx = C.q[x], *qy = C.q[!x];
	struct tcqe sq, rq;
	struct eng_ae a = { 0 }, b = { 0 };
	struct op o = { .kind = OP_WRITE, .sig = true };
	u8 img[72], *p;
	u32 n, r, want;

	run_idle();
	CHECK(next_ae(nx, &a) == code, "AE 0x%x, expected 0x%x", a.code, code);
	CHECK(a.src == src && a.iw_state == IW_RTS && a.ctx == qx->cookie, "AE 0x%x: source %u state %u",
	      a.code, a.src, a.iw_state);
	CHECK(!!a.q2data == (src != AESRC_SQ && expect_q2), "AE 0x%x: Q2 data %u", a.code, a.q2data);
	no_ae();
	n = build_terminate(qx, &a, img);
	CHECK(qp_mod(qx, IW_TERM, EV_FLAGS | 1ull << 56) == 0, "terminate");
	run_idle();
	expect_ae(nx, AE_TERM_SENT, -1);
	CHECK(next_ae(ny, &b) == AE_TERM_RECEIVED && b.q2data, "terminate not received: 0x%x", b.code);
	p = q2_fpdu(qy);
	CHECK(rb16(p) == 18 + n && p[2] == 0x41 && p[3] == 0x47 && rb32(p + 8) == 2 && rb32(p + 12) == 1 &&
	      rb32(p + 16) == 0 && !memcmp(p + 20, img, n), "terminate message");
	CHECK(qp_mod(qx, IW_TERM, EV_FLAGS | 2ull << 56) == 0, "FIN");
	run_idle();
	expect_ae(ny, AE_LLP_FIN, -1);
	if (img[0] == 0x01 || img[0] == 0x02) {		/* driver: terminate-done, reset */
		CHECK(qp_mod(qy, IW_ERROR, EV_FLAGS | 1ull << 55 | 1ull << 58) == 0, "error");
		expect_ae(ny, AE_RESET_SENT, -1);
		run_idle();
		expect_ae(nx, AE_LLP_RESET, -1);
	} else {
		CHECK(qp_mod(qy, IW_TERM, EV_FLAGS | 2ull << 56) == 0, "FIN, peer");
		run_idle();
		expect_ae(nx, AE_LLP_CLOSED, -1);
		expect_ae(ny, AE_LLP_CLOSED, -1);
		CHECK(qp_mod(qy, IW_ERROR, EV_FLAGS | 1ull << 55) == 0, "error");
	}
	CHECK(qp_mod(qx, IW_ERROR, EV_FLAGS | 1ull << 55) == 0, "error");
	no_ae();
	/* flush: exactly one CQE per queue with work */
	drain(qx, &sq, &rq);
	drain(qy, &sq, &rq);
	r = qp_flush_cmd(qx, true, true, src == AESRC_SQ ? 2 : 1, src == AESRC_RQ ? 3 : 1);
	n = drain(qx, &sq, &rq);
	want = r == 4 ? 2 : r ? 1 : 0;
	CHECK(n == want, "flush answered %u, %u CQEs", r, n);
	if (src == AESRC_SQ)
		CHECK((r == 3 || r == 4) && sq.code == (1u << 16 | 2) && sq.idx == a.wqe_idx,
		      "SQ flush CQE 0x%x index %u", sq.code, sq.idx);
	else if (src == AESRC_RQ && qx->rq_head)
		CHECK((r == 2 || r == 4) && rq.code == (1u << 16 | 3) && rq.idx == a.wqe_idx,
		      "RQ flush CQE 0x%x index %u/%u", rq.code, rq.idx, a.wqe_idx);
	qp_flush_cmd(qy, true, true, 1, 1);
	drain(qy, &sq, &rq);
	CHECK(qp_flush_cmd(qy, true, true, 1, 1) == 0 && drain(qy, &sq, &rq) == 0, "empty flush");
	post(qy, &o);		/* posted on the error QP: flushed by a later flush */
	o = qy->ops[(qy->ow - 1) % 1024];
	run_idle();
	CHECK(qp_flush_cmd(qy, true, true, 1, 1) == 3, "re-flush");
	CHECK(drain(qy, &sq, &rq) == 1 && sq.idx == o.idx, "re-flush CQE");
	qy->ops[(qy->ow - 1) % 1024].sig = false;
}

static const char *const err_name[] = { "write unallocated STag", "write bad key", "write wrong PD",
	"write out of bounds", "write no rights", "write TO wrap", "write invalid STag", "read out of bounds",
	"read no rights", "read unallocated", "no receive posted", "message too long", "receive bad lkey",
	"send-inv no remote rights", "send-inv unallocated", "send bad lkey", "read sink no local write",
	"STag 0 on user QP", "read with ORD 0", "IRD overflow", "unknown opcode", "MPA CRC error",
	"fast-reg on user QP", "fast-reg of valid STag", "bind disabled", "local inv bad key" };

void error_case(int k, unsigned seed)
{
	struct opts o = defaults;
	struct tmr *l, *r;
	struct op op = { .n = 1, .sig = true, .kind = OP_WRITE };
	u32 off = 0, len, max = 1 << 16, shift;
	u64 w[8] = { 0 };

	(void)seed;
	nodes_new(ENG_E810, 0);
	o.rtr_read = chance(0.5);
	o.v6 = chance(0.2);
	o.vlan = chance(0.3);
	o.mark[0] = chance(0.2);
	o.mark[1] = chance(0.2);
	o.user = k == E_STAG0_USER || k == E_FASTREG_USER;
	if (k == E_ORD0) {
		o.ord[0] = 0;
		o.rtr_read = false;
	}
	if (k == E_IRD) {
		o.ord[0] = 64;
		o.ird_code[1] = 0;
	}
	connect_qps(&o);
	l = mr_new(&N[0], max, R_LREAD | R_LWRITE, rndn(3), false, PD);
	r = mr_new(&N[1], max, 15, rndn(3), false, PD);
	len = 1 + rndn(40000);
	op.mr[0] = l;
	op.rmr = r;
	switch (k) {
	case E_WR_UNALLOC: r->stag = 0x00aaaa00; break;
	case E_WR_KEY: case E_LINV_KEY: r->stag ^= 1; break;
	case E_WR_PD: mr_free(r); op.rmr = r = mr_new(&N[1], max, 15, 1, false, PD + 1); break;
	case E_WR_BOUNDS: case E_RD_BOUNDS: op.roff = max - len + 1; break;
	case E_WR_RIGHTS: mr_free(r); op.rmr = r = mr_new(&N[1], max, 5, 1, false, PD); break;
	case E_RD_RIGHTS: mr_free(r); op.rmr = r = mr_new(&N[1], max, 10, 1, false, PD); break;
	case E_WR_WRAP: op.roff = 0 - r->va - 1; len = 100; break;
	case E_WR_INVALID:
		r->stag = new_stag(&N[1]);
		w[1] = pd_word(&N[1], max, PD);
		w[2] = r->stag;
		w[3] = 1ull << 43 | 1ull << 53;
		CHECK(cqp(&N[1], 0x09, w) == 0, "ALLOC_STAG");
		break;
	case E_RD_UNALLOC: r->stag = 0x00aaaa00; break;
	}
	op.len = op.flen[0] = len;
	shift = C.q[1]->rq_shift;
	if (k == E_TOO_LONG || k == E_RECV_LKEY || k == E_INV_RIGHTS || k == E_INV_UNALLOC) {
		struct tmr bad = *r;
		u32 cap = k == E_TOO_LONG ? len - 1 : len;

		bad.stag ^= k == E_RECV_LKEY;
		post_recv(C.q[1], r, 1, &off, &max);
		post_recv(C.q[1], &bad, 1, &off, &cap);
		op.kind = OP_SEND;
		op.rmr = NULL;
		post(C.q[0], &op);	/* a good one first */
		op.inv = 0;
		if (k == E_INV_RIGHTS || k == E_INV_UNALLOC) {
			struct tmr *t = mr_new(&N[1], 100, R_LREAD | R_LWRITE, 0, false, PD);

			op.kind = OP_SEND_INV;
			op.inv = k == E_INV_RIGHTS ? t->stag : 0xaaaa00;
			mr_free(t);
		}
		(void)shift;
	}
	switch (k) {
	case E_RD_BOUNDS: case E_RD_RIGHTS: case E_ORD0: case E_RD_UNALLOC: op.kind = OP_READ; break;
	case E_NO_RECV: op.kind = OP_SEND; op.rmr = NULL; break;
	case E_LKEY: l->stag ^= 1; break;
	case E_LKEY_RIGHTS: mr_free(l); op.mr[0] = l = mr_new(&N[0], max, R_LREAD, 0, false, PD);
		op.kind = OP_READ; break;
	case E_STAG0_USER: l->stag = 0; break;
	case E_OPCODE: op.kind = 0x3d; break;
	case E_CRC: W.corrupt = 1; break;
	}
	switch (k) {
	case E_IRD:
		op.kind = OP_READ;
		for (int i = 0; i < 30; i++)
			post(C.q[0], &op);
		break;
	case E_FASTREG_USER: case E_FASTREG_VALID:
		post_raw(C.q[0], l->va, l->pa[0], max, (u64)OP_FAST_REG << 32 | l->stag | 1ull << 62 |
			 3ull << 48 | 1ull << 53);
		break;
	case E_BIND_OFF:
		post_raw(C.q[0], l->va, (u64)l->stag << 32 | 0x1234, 100, (u64)OP_BIND_MW << 32 | 1ull << 62);
		break;
	case E_LINV_KEY:
		post_raw(C.q[0], 0, l->stag ^ 1, 0, (u64)OP_LOCAL_INV << 32 | 1ull << 62);
		break;
	default:
		post(C.q[0], &op);
	}
	run_idle();
	W.corrupt = 0;
	{
		static const struct { u8 x; u16 ae; u8 src; } want[E_MAX] = {
			[E_WR_UNALLOC] = { 1, AE_UNALLOCATED_STAG, AESRC_IN_WRITE },
			[E_WR_KEY] = { 1, AE_BAD_KEY, AESRC_IN_WRITE },
			[E_WR_PD] = { 1, AE_BAD_PD, AESRC_IN_WRITE },
			[E_WR_BOUNDS] = { 1, AE_BOUNDS, AESRC_IN_WRITE },
			[E_WR_RIGHTS] = { 1, AE_RIGHTS, AESRC_IN_WRITE },
			[E_WR_WRAP] = { 1, AE_TO_WRAP, AESRC_IN_WRITE },
			[E_WR_INVALID] = { 1, AE_INVALID_STAG, AESRC_IN_WRITE },
			[E_RD_BOUNDS] = { 1, AE_BOUNDS, AESRC_OUT_READ_RSP },
			[E_RD_RIGHTS] = { 1, AE_RIGHTS, AESRC_OUT_READ_RSP },
			[E_RD_UNALLOC] = { 1, AE_UNALLOCATED_STAG, AESRC_OUT_READ_RSP },
			[E_NO_RECV] = { 1, AE_NO_BUFFER, AESRC_RQ },
			[E_TOO_LONG] = { 1, AE_MSG_TOO_LONG, AESRC_RQ },
			[E_RECV_LKEY] = { 1, AE_BAD_KEY, AESRC_RQ },
			[E_INV_RIGHTS] = { 1, AE_INVALIDATE_NO_REMOTE, AESRC_RQ },
			[E_INV_UNALLOC] = { 1, AE_UNALLOCATED_STAG, AESRC_RQ },
			[E_LKEY] = { 0, AE_BAD_KEY, AESRC_SQ },
			[E_LKEY_RIGHTS] = { 0, AE_RIGHTS, AESRC_SQ },
			[E_STAG0_USER] = { 0, AE_STAG_ZERO, AESRC_SQ },
			[E_ORD0] = { 0, AE_ORD_ZERO, AESRC_SQ },
			[E_IRD] = { 1, AE_Q1_FULL, AESRC_OUT_READ_RSP },
			[E_OPCODE] = { 0, AE_WQE_OPCODE, AESRC_SQ },
			[E_CRC] = { 1, AE_MPA_CRC, AESRC_NONE },
			[E_FASTREG_USER] = { 0, AE_PRIV_DENIED, AESRC_SQ },
			[E_FASTREG_VALID] = { 0, AE_FASTREG_VALID, AESRC_SQ },
			[E_BIND_OFF] = { 0, AE_BIND_DISABLED, AESRC_SQ },
			[E_LINV_KEY] = { 0, AE_BAD_KEY, AESRC_SQ },
		};
		terminate_flow(want[k].x, want[k].ae, want[k].src);
	}
	printf("  error: %s\n", err_name[k]);
	mr_free(l);
	mr_free(r);
	disconnect_free();
	nodes_free();
}

static void one_sq(int side)
{
	struct tcqe c;

	run_idle();
	CHECK(cq_poll(C.q[side]->scq, &c) && c.sq && !c.err, "no completion");
	sq_done(C.q[side], &c);
}

/* a peer that breaks the protocol: one byte of a valid FPDU is changed, CRC made good */
void protocol_case(unsigned k)
{
	static const struct { const char *name; u8 kind, off, xor; u16 ae; u8 src; u32 len; } t[] = {
		{ "MSN gap", OP_SEND, 15, 2, AE_MSN_GAP, AESRC_RQ, 100 },
		{ "bad MO", OP_SEND, 19, 4, AE_DDP_MO, AESRC_RQ, 100 },
		{ "DDP version", OP_SEND, 2, 2, AE_DDP_VERSION, AESRC_RQ, 100 },
		{ "DDP version, tagged", OP_WRITE, 2, 2, AE_DDP_VERSION, AESRC_RQ, 100 },
		{ "RDMAP version", OP_WRITE, 3, 0xc0, AE_RDMAP_VERSION, AESRC_RQ, 100 },
		{ "queue number", OP_SEND, 11, 8, AE_DDP_QN, AESRC_RQ, 100 },
		{ "tagged send", OP_WRITE, 3, 3, AE_RDMAP_OPCODE, AESRC_IN_WRITE, 100 },
		{ "send on queue 1", OP_SEND, 11, 1, AE_RDMAP_OPCODE, AESRC_RQ, 100 },
		{ "read request without L", OP_READ, 2, 0x40, AE_BAD_READ_REQ, AESRC_OUT_READ_RSP, 100 },
		{ "read request MSN", OP_READ, 15, 4, AE_MSN_GAP, AESRC_OUT_READ_RSP, 100 },
		{ "unexpected read response", OP_WRITE, 3, 2, AE_BAD_WRITE_OR_RSP, AESRC_IN_WRITE, 100 },
		{ "segment too small", OP_WRITE, 1, 114 ^ 10, AE_SEGMENT_TOO_SMALL, AESRC_RQ, 100 },
		/* of the read response of node 0 to node 1: */
		{ "read response STag", 0xff, 7, 1, AE_BAD_WRITE_OR_RSP, AESRC_IN_WRITE, 100 },
		{ "read response TO", 0xff, 15, 1, AE_BAD_WRITE_OR_RSP, AESRC_IN_WRITE, 100 },
		{ "read response length", 0xff, 2, 0x40, AE_BAD_WRITE_OR_RSP, AESRC_IN_WRITE, 100 },
	};
	struct opts o = defaults;
	struct op op = { .n = 1, .sig = true };
	struct tmr *l, *r;
	u32 off = 0, len = 1000;
	int side;

	k %= sizeof(t) / sizeof(t[0]);
	side = t[k].kind == 0xff;
	nodes_new(ENG_E810, 0);
	connect_qps(&o);
	run_idle();
	l = mr_new(&N[side], 1000, 3, 0, false, PD);
	r = mr_new(&N[!side], 1000, 15, 0, false, PD);
	op.kind = side ? OP_READ : t[k].kind;
	op.mr[0] = l;
	op.len = op.flen[0] = t[k].len;
	if (op.kind == OP_SEND)
		post_recv(C.q[1], r, 1, &off, &len);
	else
		op.rmr = r;
	W.edit.on = true;
	W.edit.off = t[k].off;
	W.edit.xor = t[k].xor;
	post(C.q[side], &op);
	run_idle();
	CHECK(!W.edit.on, "nothing edited");
	terminate_flow(1, t[k].ae, t[k].src);
	printf("  protocol: %s\n", t[k].name);
	mr_free(l);
	mr_free(r);
	disconnect_free();
	nodes_free();
}

/* regions of more than 512 pages: second leaf of a two-level list, 2 MiB pages */
void big_mr_case(void)
{
	struct opts o = defaults;
	struct op op = { .n = 1, .sig = true };
	struct tmr *l, *r;

	nodes_new(ENG_E810, 0);
	connect_qps(&o);
	l = mr_new(&N[0], 7 << 20, 3, 2, false, PD);
	r = mr_new(&N[1], 7 << 20, 15, 2, true, PD);
	for (int i = 0; i < 20; i++) {
		op.kind = i & 1 ? OP_READ : OP_WRITE;
		op.mr[0] = l;
		op.rmr = r;
		op.len = op.flen[0] = 1 + rndn(3 << 20);
		op.off[0] = rndn(4 << 20);
		op.roff = rndn(4 << 20);
		op.seed = rnd() | 1;
		mr_fill(i & 1 ? r : l, i & 1 ? op.roff : op.off[0], op.len, op.seed);
		post(C.q[0], &op);
		one_sq(0);
		mr_check(i & 1 ? l : r, i & 1 ? op.off[0] : op.roff, op.len, op.seed, "large region");
	}
	mr_free(l);
	mr_free(r);
	{	/* 2 MiB pages in reverse order, one-level list */
		u64 w[8] = { 0 }, va = 0x7000000000ull + 12345, pa = alloc(&N[1], 8 << 20, 2 << 20);
		struct tmr big = { .n = &N[1], .va = va, .len = 5 << 20, .stag = new_stag(&N[1]) | 7 };

		l = mr_new(&N[0], 5 << 20, 3, 1, false, PD);
		w[0] = va;
		w[1] = pd_word(&N[1], big.len, PD);
		w[2] = big.stag;
		w[6] = pbles(&N[1], 3);
		for (int i = 0; i < 3; i++)
			N[1].pble[w[6] + i] = pa + ((u64)(2 - i) << 21);
		w[3] = 1ull << 43 | 1ull << 44 | 1ull << 46 | 15ull << 48 | 1ull << 53 | 1ull << 59;
		CHECK(cqp(&N[1], 0x0a, w) == 0, "REG_MR");
		big.npages = (12345 + big.len + 4095) >> 12;
		big.pa = malloc(8 * big.npages);
		for (u32 i = 0; i < big.npages; i++) {
			u64 b = (va & ((2 << 20) - 1) & ~4095ull) + 4096ull * i;

			big.pa[i] = pa + ((2 - (b >> 21)) << 21) + (b & ((2 << 20) - 1));
		}
		op.kind = OP_WRITE;
		op.mr[0] = l;
		op.rmr = &big;
		op.off[0] = op.roff = 0;
		op.len = op.flen[0] = big.len;
		mr_fill(l, 0, big.len, 99);
		post(C.q[0], &op);
		one_sq(0);
		mr_check(&big, 0, big.len, 99, "2 MiB pages");
		free(big.pa);
		mr_free(l);
	}
	no_ae();
	disconnect_free();
	nodes_free();
	printf("  two-level lists beyond 512 pages, 2 MiB pages\n");
}

/* both sides close at the same moment */
void simul_close_case(void)
{
	nodes_new(ENG_E810, 0);
	connect_qps(&defaults);
	run_idle();
	for (int i = 0; i < 2; i++)
		CHECK(qp_mod(C.q[i], IW_CLOSING, 0) == 0, "closing");
	run_idle();
	for (int i = 0; i < 2; i++)
		expect_ae(&N[i], AE_LLP_CLOSED, -1);
	no_ae();
	disconnect_free();
	nodes_free();
	printf("  simultaneous close\n");
}

void abort_case(void)
{
	struct opts o = defaults;
	struct op op = { .n = 1, .sig = true, .kind = OP_READ, .len = 60000, .flen = { 60000 } };
	struct tcqe sq, rq;
	struct tmr *l, *r;
	u32 off = 0, len = 60000;

	for (int k = 0; k < 3; k++) {
		nodes_new(ENG_E810, 0);
		connect_qps(&o);
		op.mr[0] = l = mr_new(&N[0], 70000, 3, 1, false, PD);
		op.rmr = r = mr_new(&N[1], 70000, 15, 2, false, PD);
		for (int i = 0; i < 5; i++)
			post(C.q[0], &op);
		post_recv(C.q[0], l, 1, &off, &len);
		for (int i = 0; i < 20; i++)
			step();
		if (k == 0) {		/* local abort with reads outstanding */
			CHECK(qp_mod(C.q[0], IW_CLOSING, 0) == CQP_BAD_CLOSE, "close of a busy QP");
			CHECK(qp_mod(C.q[0], IW_ERROR, 1ull << 55 | 1ull << 58) == 0, "error");
			expect_ae(&N[0], AE_RESET_SENT, -1);
			run_idle();
			expect_ae(&N[1], AE_LLP_RESET, -1);
		} else if (k == 1) {	/* peer vanishes */
			W.dead = true;
			run_idle();
			expect_ae(&N[1], AE_RETRIES, -1);
			CHECK(qp_mod(C.q[0], IW_ERROR, 1ull << 55 | 1ull << 58) == 0, "error");
			expect_ae(&N[0], AE_RESET_SENT, -1);
		} else {		/* reset from the passive side */
			CHECK(qp_mod(C.q[1], IW_ERROR, 1ull << 55 | 1ull << 58) == 0, "error");
			expect_ae(&N[1], AE_RESET_SENT, -1);
			run_idle();
			expect_ae(&N[0], AE_LLP_RESET, -1);
			CHECK(qp_mod(C.q[0], IW_CLOSING, 0) == CQP_LLP_CLOSED, "already closed");
		}
		CHECK(qp_flush_cmd(C.q[0], true, true, 1, 1) == 4, "flush both");
		CHECK(drain(C.q[0], &sq, &rq) == 2, "two flush CQEs");
		CHECK(sq.idx == C.q[0]->ops[C.q[0]->or % 1024].idx && sq.code == 0x10001 &&
		      rq.idx == 0 && rq.code == 0x10001, "flush CQEs: %u 0x%x, %u 0x%x", sq.idx, sq.code,
		      rq.idx, rq.code);
		run_idle();
		no_ae();
		mr_free(l);
		mr_free(r);
		disconnect_free();
		nodes_free();
	}
	printf("  abort, dead peer, reset: flush with outstanding reads\n");
}

/* fast register (levels 0 and 1), remote and local invalidate, windows of both types */
void stag_case(void)
{
	struct opts o = defaults;
	struct op op = { .n = 1, .sig = true, .kind = OP_WRITE };
	struct tmr *l, m, *parent, win;
	struct tcqe c;
	u32 off = 0, len, big = 100000;

	for (int level = 0; level < 2; level++) {
		u64 w[8] = { 0 }, pbl, hdr;

		nodes_new(ENG_E810, 0);
		o.bind = true;
		connect_qps(&o);
		op.mr[0] = l = mr_new(&N[0], big, 3, 1, false, PD);
		mr_pages(&N[1], &m, level ? 50000 : 3000, false);
		if (!level) {
			m.va &= ~0xfffull;
			m.npages = 1;
		}
		m.zb = false;
		len = m.len;
		m.stag = new_stag(&N[1]);
		w[1] = pd_word(&N[1], 4096 * m.npages, PD);
		w[2] = m.stag;
		w[3] = 1ull << 43 | 1ull << 53;
		CHECK(cqp(&N[1], 0x09, w) == 0, "ALLOC_STAG");
		for (int round = 0; round < 3; round++) {
			m.stag = (m.stag & ~0xffu) | (0x10 + round);
			pbl = level ? pbles(&N[1], m.npages) : 0;
			if (level)
				memcpy(N[1].pble + pbl, m.pa, 8 * m.npages);
			hdr = (u64)OP_FAST_REG << 32 | m.stag | 1ull << 62 | 1ull << 61 | 15ull << 48 | 1ull << 53 |
			      (u64)level << 44;
			post_raw(C.q[1], m.va, (level ? 0 : m.pa[0]) | pbl >> 16, m.len | (pbl & 0xffff) << 48, hdr);
			one_sq(1);
			op.kind = OP_WRITE;
			op.rmr = &m;
			op.len = op.flen[0] = len;
			op.seed = rnd() | 1;
			mr_fill(l, 0, len, op.seed);
			post(C.q[0], &op);
			one_sq(0);
			mr_check(&m, 0, len, op.seed, "write to fast-registered memory");
			if (round == 1) {	/* local invalidate */
				post_raw(C.q[1], 0, m.stag, 0, (u64)OP_LOCAL_INV << 32 | 3ull << 61);
				one_sq(1);
				continue;
			}
			post_recv(C.q[1], &m, 0, &off, &len);
			op.kind = OP_SEND_INV;
			op.rmr = NULL;
			op.inv = m.stag;
			op.len = op.n = 0;
			post(C.q[0], &op);
			one_sq(0);
			CHECK(cq_poll(C.q[1]->rcq, &c) && !c.sq && bit(c.q[3], 53) && (u32)c.q[2] == m.stag &&
			      c.len == 0, "remote invalidate");
			op.n = 1;
			op.inv = 0;
		}
		/* windows: type 2 then type 1 */
		parent = mr_new(&N[1], big, 15, 2, false, PD);
		for (int type = 2; type > 0; type--) {
			memset(w, 0, sizeof(w));
			win = *parent;
			win.stag = new_stag(&N[1]);
			w[1] = pd_word(&N[1], 0, PD);
			w[2] = win.stag;
			w[3] = (u64)(type == 1) << 42;
			CHECK(cqp(&N[1], 0x09, w) == 0, "ALLOC_STAG window");
			for (int round = 1; round < 3; round++) {
				win.stag = (win.stag & ~0xffu) | round;
				post_raw(C.q[1], win.va + 5000, (u64)parent->stag << 32 | win.stag, 20000,
					 (u64)OP_BIND_MW << 32 | 1ull << 62 | 8ull << 48 | 1ull << 53 |
					 (u64)(type == 1) << 54);
				one_sq(1);
				op.kind = OP_WRITE;
				op.rmr = &win;
				op.roff = 5000;
				op.len = op.flen[0] = 20000;
				op.seed = rnd() | 1;
				mr_fill(l, 0, 20000, op.seed);
				post(C.q[0], &op);
				one_sq(0);
				mr_check(parent, 5000, 20000, op.seed, "write through a window");
				if (type == 2) {
					post_raw(C.q[1], 0, win.stag, 0, (u64)OP_LOCAL_INV << 32 | 3ull << 61);
					one_sq(1);
				}
			}
		}
		no_ae();
		memset(w, 0, sizeof(w));
		w[2] = parent->stag;
		w[3] = 1ull << 43;
		CHECK(cqp(&N[1], 0x0d, w) == CQP_BAD_STAG, "parent with a bound window");
		op.roff = 4999 + 2 * level;		/* one byte outside the window */
		post(C.q[0], &op);
		terminate_flow(1, AE_BOUNDS, AESRC_IN_WRITE);
		op.roff = 0;
		mr_free(l);
		mr_free(parent);
		free(m.pa);
		disconnect_free();
		nodes_free();
	}
	printf("  fast register, invalidate, windows\n");
}

/* one send-queue operation each that must be refused with the given code */
void stag_error_case(unsigned k)
{
	static const struct { const char *name; u16 ae; } t[] = {
		{ "fast-reg of a window", AE_FASTREG_MW }, { "fast-reg too long", AE_FASTREG_LENGTH },
		{ "fast-reg two-level list", AE_FASTREG_PBL_CFG }, { "fast-reg wrong PD", AE_BAD_PD },
		{ "fast-reg remote rights", AE_FASTREG_RIGHTS }, { "fast-reg unallocated", AE_UNALLOCATED_STAG },
		{ "bind of a region", AE_BIND_OF_MR }, { "bind wrong type", AE_BIND_TYPE },
		{ "bind valid type 2", AE_BIND_VALID }, { "bind bad parent", AE_BIND_PARENT },
		{ "bind to a window", AE_BIND_TO_MW }, { "bind zero-based parent", AE_BIND_ZERO_BASED },
		{ "bind rights", AE_BIND_RIGHTS }, { "bind bounds", AE_BIND_BOUNDS },
		{ "zero-based type 1", AE_BIND_ZERO_MW1 }, { "invalidate type 1", AE_INVALIDATE_MW1 },
		{ "invalidate with windows", AE_INVALIDATE_BOUND }, { "invalidate twice", AE_INVALID_STAG },
		{ "invalidate STag 0", AE_STAG_ZERO }, { "bad STag index", AE_BAD_INDEX },
		{ "too many fragments", AE_WQE_FRAG }, { "send with immediate", AE_WQE_OPCODE },
	};
	struct opts o = defaults;
	struct tmr *mr, *zb, *ro;
	struct node *n = &N[0];
	u32 fr, fr2, mw2, mw1;
	u64 hdr_f, hdr_b = (u64)OP_BIND_MW << 32 | 8ull << 48 | 1ull << 53, len = 8192;
	u64 w[8];

	k %= sizeof(t) / sizeof(t[0]);
	nodes_new(ENG_E810, 0);
	o.bind = true;
	connect_qps(&o);
	run_idle();
	mr = mr_new(n, len, 15, 0, false, PD);
	zb = mr_new(n, len, 15, 0, true, PD);
	ro = mr_new(n, len, 5, 0, false, PD);
	fr = new_stag(n);
	fr2 = new_stag(n);
	mw2 = new_stag(n);
	mw1 = new_stag(n);
	for (int i = 0; i < 4; i++) {	/* region, region without remote access, two windows */
		memset(w, 0, sizeof(w));
		w[1] = pd_word(n, i < 2 ? len : 0, k == 3 ? PD + 1 : PD);
		w[2] = i == 0 ? fr : i == 1 ? fr2 : i == 2 ? mw2 : mw1;
		w[3] = i == 0 ? 1ull << 43 | 1ull << 53 : i == 1 ? 1ull << 43 : (u64)(i == 3) << 42;
		CHECK(cqp(n, 0x09, w) == 0, "ALLOC_STAG");
	}
	hdr_f = (u64)OP_FAST_REG << 32 | 15ull << 48 | 1ull << 53 | 1ull << 61;
	switch (k) {
	case 0: post_raw(C.q[0], mr->va, mr->pa[0], 100, hdr_f | mw2); break;
	case 1: post_raw(C.q[0], mr->va, mr->pa[0], len + 1, hdr_f | fr); break;
	case 2: post_raw(C.q[0], mr->va, 0, 100, hdr_f | fr | 3ull << 44); break;
	case 3: post_raw(C.q[0], mr->va, mr->pa[0], 100, hdr_f | fr); break;
	case 4: post_raw(C.q[0], mr->va, mr->pa[0], 100, hdr_f | fr2); break;
	case 5: post_raw(C.q[0], mr->va, mr->pa[0], 100, hdr_f | 0x3fff00); break;
	case 6: post_raw(C.q[0], mr->va, (u64)mr->stag << 32 | zb->stag, 10, hdr_b); break;
	case 7: post_raw(C.q[0], mr->va, (u64)mr->stag << 32 | mw1, 10, hdr_b); break;
	case 8: for (int i = 0; i < 2; i++)
			post_raw(C.q[0], mr->va, (u64)mr->stag << 32 | mw2, 10, hdr_b);
		break;
	case 9: post_raw(C.q[0], mr->va, (u64)(mr->stag ^ 1) << 32 | mw2, 10, hdr_b); break;
	case 10: post_raw(C.q[0], mr->va, (u64)mr->stag << 32 | mw2, 10, hdr_b);
		post_raw(C.q[0], mr->va, (u64)mw2 << 32 | mw1, 10, hdr_b | 1ull << 54); break;
	case 11: post_raw(C.q[0], 0, (u64)zb->stag << 32 | mw2, 10, hdr_b); break;
	case 12: post_raw(C.q[0], ro->va, (u64)ro->stag << 32 | mw2, 10, hdr_b); break;
	case 13: post_raw(C.q[0], mr->va + 1, (u64)mr->stag << 32 | mw2, len, hdr_b); break;
	case 14: post_raw(C.q[0], mr->va, (u64)mr->stag << 32 | mw1, 10,
			  (hdr_b | 1ull << 54) & ~(1ull << 53)); break;
	case 15: post_raw(C.q[0], mr->va, (u64)mr->stag << 32 | mw1, 10, hdr_b | 1ull << 54);
		post_raw(C.q[0], mr->va, (u64)mr->stag << 32 | mw1, 0, hdr_b | 1ull << 54);	/* unbind */
		post_raw(C.q[0], mr->va, (u64)mr->stag << 32 | (mw1 | 1), 10, hdr_b | 1ull << 54);
		post_raw(C.q[0], 0, mw1 | 1, 0, (u64)OP_LOCAL_INV << 32); break;
	case 16: post_raw(C.q[0], mr->va, (u64)mr->stag << 32 | mw2, 10, hdr_b);
		post_raw(C.q[0], 0, mr->stag, 0, (u64)OP_LOCAL_INV << 32); break;
	case 17: for (int i = 0; i < 2; i++)
			post_raw(C.q[0], 0, mr->stag, 0, (u64)OP_LOCAL_INV << 32);
		break;
	case 18: post_raw(C.q[0], 0, 0, 0, (u64)OP_LOCAL_INV << 32); break;
	case 19: post_raw(C.q[0], 0, mr->stag ^ 0x80000000, 0, (u64)OP_LOCAL_INV << 32); break;
	case 20: case 21: {
		struct op op = { .kind = OP_SEND, .n = k == 20 ? 14 : 1, .has_imm = k == 21 };

		for (u32 i = 0; i < op.n; i++) {
			op.mr[i] = mr;
			op.len += op.flen[i] = 1;
		}
		post(C.q[0], &op);
	}
	}
	terminate_flow(0, t[k].ae, AESRC_SQ);
	printf("  refused: %s\n", t[k].name);
	mr_free(mr);
	mr_free(zb);
	mr_free(ro);
	disconnect_free();
	nodes_free();
}

/* STag 0, all-memory region, suspend/resume, MSS change, generated AE, statistics */
void misc_case(void)
{
	struct opts o = defaults;
	struct node *n0 = &N[0], *n1 = &N[1];
	struct op op = { .n = 1, .sig = true, .kind = OP_WRITE, .len = 9000, .flen = { 9000 } };
	struct tmr all = { .n = &N[1], .va = 0 }, zero = { .n = &N[0], .va = 0 };
	u64 w[8] = { 0 }, buf[128], a, b;
	u32 before;

	nodes_new(ENG_E810, 200000);
	connect_qps(&o);
	run_idle();
	a = alloc(n0, 10000, 1);
	b = alloc(n1, 10000, 1);
	for (int i = 0; i < 9000; i++)
		n0->ram[a + i] = rnd();
	all.stag = new_stag(n1) | 3;
	w[1] = pd_word(n1, 0, PD);
	w[2] = all.stag;
	w[3] = 1ull << 43 | 15ull << 48 | 1ull << 53 | 1ull << 59;
	CHECK(cqp(n1, 0x0a, w) == 0, "REG_MR all memory");
	op.mr[0] = &zero;
	op.off[0] = a;
	op.rmr = &all;
	op.roff = b;
	post(C.q[0], &op);
	one_sq(0);
	CHECK(!memcmp(n0->ram + a, n1->ram + b, 9000), "STag 0 to all-memory region");

	memset(w, 0, sizeof(w));
	w[3] = C.q[0]->num;
	CHECK(cqp(n0, 0x29, w) == 0, "suspend");
	expect_ae(n0, AE_SUSPENDED, -1);
	before = W.sent;
	n0->ram[a] ^= 1;
	post(C.q[0], &op);
	run_idle();
	CHECK(W.sent == before, "suspended QP sends");
	w[3] = C.q[0]->num;
	CHECK(cqp(n0, 0x2a, w) == 0, "resume");
	one_sq(0);
	CHECK(n0->ram[a] == n1->ram[b], "resumed write");

	memset(w, 0, sizeof(w));		/* smaller MSS: 9000 bytes in 500-byte segments */
	w[1] = 500ull << 32;
	w[2] = C.q[0]->ctx;
	w[3] = C.q[0]->num | 1ull << 48 | 1ull << 52;
	CHECK(cqp(n0, 0x01, w) == 0, "MSS change");
	before = W.sent;
	post(C.q[0], &op);
	one_sq(0);
	CHECK(W.sent - before >= 18, "MSS change ignored");

	memset(w, 0, sizeof(w));
	w[1] = AE_BAD_CLOSE;
	w[3] = C.q[0]->num | 1ull << 59;
	CHECK(cqp(n0, 0x22, w) == 0, "generate AE");
	expect_ae(n0, AE_BAD_CLOSE, 0);

	eng_gather(n0->e, buf);
	CHECK(buf[33] == 3 && buf[30] == 0 && buf[26] > 30 && buf[24] >> 32, "statistics");
	eng_gather(n1->e, buf);
	CHECK(buf[30] == 3 && buf[31] == 1, "statistics of the peer");

	memset(w, 0, sizeof(w));
	w[3] = 63;
	CHECK(cqp(n0, 0x05, w) == CQP_BAD_PARAM, "destroy unknown CQ");
	w[3] = C.q[0]->scq->num;
	CHECK(cqp(n0, 0x05, w) == 0, "destroy CQ");
	w[3] = 5ull << 48;
	CHECK(cqp(n0, 0x20, w) == ENG_NOT_MINE, "foreign opcode");
	no_ae();
	disconnect_free();
	nodes_free();
	printf("  STag 0, all memory, suspend, MSS change, statistics\n");
}

/* the driver's ILQ: software TCP segments through address handles and hash entries */
void uda_case(unsigned seed)
{
	enum { QS = 16 };		/* quanta in SQ and RQ */
	struct tcq *cq[2];
	u64 sq[2], rq[2], ctx, buf[2], w[8];
	bool v6 = seed & 1, vlan = seed & 2, e810 = !(seed & 4);
	u32 ip = vlan ? 18 : 14, th = ip + (v6 ? 40 : 20);
	struct tcqe c;

	nodes_new(e810 ? ENG_E810 : ENG_X722, 0);
	ilq = NULL;
	for (int i = 0; i < 2; i++) {
		struct node *n = &N[i];
		u64 v[32] = { 0 };

		cq[i] = cq_new(n, 100, false);
		sq[i] = alloc(n, QS * 32, 128);
		rq[i] = alloc(n, QS * 32, 128);
		buf[i] = alloc(n, QS * 1024 * 2, 4096);
		ctx = alloc(n, 256, 256);
		v[1] = sq[i];
		v[2] = rq[i];
		v[3] = 2 << 8 | 2 << 12;
		v[6] = 1024 << 16;
		v[17] = cq[i]->num | (u64)cq[i]->num << 32;
		v[20] = 1 << 25;
		v[21] = 0x1111 + i;
		memcpy(n->ram + ctx, v, 256);
		memset(w, 0, 64);
		w[2] = ctx;
		w[5] = alloc(n, 64, 64);
		w[3] = 1 | 2ull << 48 | 2ull << 60 | 1ull << 47;
		CHECK(cqp(n, 0, w) == 0, "create ILQ");
		memset(w, 0, 64);
		w[2] = 0x020000000002ull - i;
		w[3] = 5 | 3ull << 42;
		cqp(n, 0x0f, w);
		memset(w, 0, 64);	/* address handle 9 */
		w[0] = (0x020000000001ull + i) << 16;
		w[1] = 100;
		w[2] = 64ull << 32 | 5ull << 48;
		w[3] = 9 | (u64)!v6 << 59 | (u64)vlan << 60;
		w[4] = v6 ? 2 - i : 0x0a000002 - i;
		w[5] = v6 ? 0xfd000000ull << 32 : 0;
		w[6] = v6 ? 1 + i : 0x0a000001 + i;
		w[7] = v6 ? 0xfd000000ull << 32 : 0;
		CHECK(cqp(n, 0x1c, w) == 0, "create AH");
		for (int k = 0; k < QS; k++) {
			u64 q[4] = { buf[i] + 1024 * k, e810 ? 1024ull << 32 | 1ull << 63 : 1024, 0, 1ull << 63 };

			memcpy(n->ram + rq[i] + 32 * k, q, 32);
		}
	}
	for (int side = 0; side < 2; side++) {	/* node 1 listens; node 0 waits for the reply */
		memset(w, 0, 64);
		w[1] = (side ? 7777 : 5555 | 7777 << 16) | 1ull << 32;
		w[2] = (u64)100 << 32;
		w[3] = (u64)(side ? 2 : 1) << 42 | (u64)vlan << 59 | (u64)!v6 << 60 | 1ull << 61;
		w[6] = v6 ? 1 + side : 0x0a000001 + side;
		w[7] = v6 ? 0xfd000000ull << 32 : 0;
		w[4] = v6 ? 2 - side : 0x0a000002 - side;
		w[5] = v6 ? 0xfd000000ull << 32 : 0;
		CHECK(cqp(&N[side], 0x25, w) == 0, "hash entry");
	}
	for (int k = 0; k < 100; k++)
		for (int i = 0; i < 2; i++) {
			struct node *n = &N[i], *p = &N[!i];
			u32 slot = k % QS, hl = e810 ? 0 : th;
			u8 *t = n->ram + buf[i] + QS * 1024 + 1024 * slot, *f = t;
			u64 pol = k / QS & 1 ? 0 : 1, q[4] = { t - n->ram, 0, 0, 0 };
			u32 len = hl + 28 + k;

			memset(t, 0, 1024);
			if (!e810) {
				f[0] = f[6] = 2;
				f[5] = 2 - i;
				f[11] = 1 + i;
				if (vlan)
					be32(f + 12, 0x81000064);
				be16(f + ip - 2, v6 ? 0x86dd : 0x0800);
				f[ip] = v6 ? 0x60 : 0x45;
				f[ip + (v6 ? 6 : 9)] = 6;
				be16(f + ip + (v6 ? 4 : 2), len - (v6 ? th : ip));
				f[ip + (v6 ? 23 : 15)] = 1 + i;
				f[ip + (v6 ? 39 : 19)] = 2 - i;
				f[ip + (v6 ? 8 : 12)] = f[ip + (v6 ? 24 : 16)] = v6 ? 0xfd : 10;
				t += th;
			}
			be16(t, i ? 7777 : 5555);
			be16(t + 2, i ? 5555 : 7777);
			t[12] = 7 << 4;
			t[13] = i ? 0x12 : 2;
			for (int b = 0; b < 8 + k; b++)
				t[20 + b] = k + b;
			q[1] = e810 ? (u64)len << 32 | pol << 63 : len;
			q[3] = (u64)OP_SEND << 32 | (e810 ? 7ull << 42 | 9 : 0) | 1ull << 62 | pol << 63;
			memcpy(n->ram + sq[i] + 32 * slot, q, 32);
			eng_doorbell(n->e, 1);
			CHECK(cq_poll(cq[i], &c) && c.sq && c.idx == slot && c.q[1] == 0x1111u + i, "send CQE");
			run_idle();
			CHECK(cq_poll(cq[!i], &c) && !c.sq && c.idx == slot && c.q[1] == 0x1112u - i, "receive CQE");
			f = p->ram + buf[!i] + 1024 * slot;
			if (e810) {
				CHECK(c.len == 68u + k && c.has_ext && bit(c.q[3], 53) == !v6 &&
				      bit(c.ext[3], 61) && (c.ext[2] & 0xffffffffffff) == 0x020000000001ull + i &&
				      bit(c.ext[3], 60) == vlan && (!vlan || c.ext[2] >> 48 == 100), "CQE fields");
				CHECK(v6 ? rb32(f + 20) == 1u + i && f[0] >> 4 == 6
					 : rb32(f + 20 + 12) == 0x0a000001u + i && f[20] == 0x45, "L3 area");
				f += 40;
			} else {
				CHECK(c.len == len && bit(c.q[3], 50) == vlan && (c.q[2] & 3) == v6, "CQE fields");
				f += th;
			}
			CHECK(rb16(f) == (i ? 7777 : 5555) && !memcmp(f + 20, t + 20, 8 + k), "TCP header");
			q[0] = buf[!i] + 1024 * slot;	/* repost with the next pass's polarity */
			pol ^= 1;
			q[1] = e810 ? 1024ull << 32 | pol << 63 : 1024;
			q[3] = pol << 63;
			memcpy(p->ram + rq[!i] + 32 * slot, q, 32);
		}
	for (int i = 0; i < 2; i++) {
		memset(w, 0, 64);
		w[3] = 1 | 2ull << 48;
		CHECK(cqp(&N[i], 2, w) == 0, "destroy ILQ");
		cq_free(cq[i]);
	}
	nodes_free();
	printf("  ILQ %s %s%s\n", e810 ? "E810" : "X722", v6 ? "v6" : "v4", vlan ? " vlan" : "");
}

static void post_nops(int n)
{
	for (int i = 0; i < n; i++)
		post_raw(C.q[0], 0, 0, 0, (u64)OP_NOP << 32 | 1ull << 62);
}
void cq_case(void)
{
	struct opts o = defaults;
	struct tcq *cq;
	struct tcqe c;
	u64 w[8] = { 0 };
	u32 n;

	for (int virt = 0; virt < 2; virt++) {
		nodes_new(ENG_E810, 0);
		o.cq = 300;
		o.vq = virt;
		connect_qps(&o);
		cq = C.q[0]->scq;
		N[0].ceqes = 0;
		post_nops(1);
		CHECK(N[0].ceqes == 0, "event without arm");
		cq_arm_req(cq, false);				/* pending: fires at once */
		CHECK(N[0].ceqes == 1 && N[0].last_ceq_ctx == (0x1234500000000000ull | cq->num), "pending at arm");
		post_nops(2);
		CHECK(N[0].ceqes == 1, "second event for one arm");
		cq_arm_req(cq, false);
		CHECK(N[0].ceqes == 1, "event before CQACK");
		eng_cq_ack(N[0].e, cq->num);
		CHECK(N[0].ceqes == 2, "held event");
		eng_cq_ack(N[0].e, cq->num);
		while (cq_poll(cq, &c))
			sq_done(C.q[0], &c);
		cq_arm_req(cq, true);				/* solicited only */
		post_nops(1);
		CHECK(N[0].ceqes == 2, "unsolicited completion fired");
		cq_arm_req(cq, false);				/* promoted to any: one is pending */
		CHECK(N[0].ceqes == 3, "promotion");
		eng_cq_ack(N[0].e, cq->num);
		/* wrap several times */
		for (int i = 0; i < 1000; i++) {
			post_nops(1);
			for (n = 0; cq_poll(cq, &c); n++)
				sq_done(C.q[0], &c);
			CHECK(n == 1u + !i, "wrap");
		}
		/* resize with entries left in the old ring */
		post_nops(3);
		{
			struct tcq old = *cq;
			u64 *op_ = cq->pages, sel = 1;

			memset(w, 0, sizeof(w));
			cq_ring(cq, 600, w, virt);
			w[3] |= 1ull << 43;
			CHECK(cqp(&N[0], 0x04, w) == 0, "resize");
			post_nops(2);
			for (n = 0; cq_poll(&old, &c); n++)
				sq_done(C.q[0], &c);
			CHECK(n == 3, "old ring has %u", n);
			cq->seq = old.seq;
			cq_publish(cq);
			memcpy(&sel, N[0].ram + cq->shadow + 32, 8);
			sel = (sel & ~0x3fffull) | 1;
			memcpy(N[0].ram + cq->shadow + 32, &sel, 8);
			for (n = 0; cq_poll(cq, &c); n++)
				sq_done(C.q[0], &c);
			CHECK(n == 2, "new ring has %u", n);
			free(op_);
		}
		/* overflow: 600 slots, software stops consuming */
		for (int i = 0; i < 599; i++) {
			post_nops(1);
			C.q[0]->sq_tail = C.q[0]->sq_head;
			CHECK(!saw(&N[0], AE_CQ_ERROR), "early overflow at %d", i);
		}
		post_nops(1);
		expect_ae(&N[0], AE_CQ_ERROR, AESRC_CQ);
		CHECK(N[0].ae[(N[0].ae_r - 1) % 64].ctx == (0x1234500000000000ull | cq->num), "CQ context in AE");
		no_ae();
		disconnect_free();
		nodes_free();
	}
	printf("  CQ arm, ack, wrap, resize, overflow\n");
}
