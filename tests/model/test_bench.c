// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * test_bench.c - two engines back to back over a simulated wire: simulated time,
 * guest memory and a driver.  Used by test_engine.c and test_errors.c.
 */
#include "test_engine.h"

const char *case_name = "";
unsigned case_seed;
u64 T;				/* simulated time, ns */

u64 rng_state;
u64 rnd(void)
{
	rng_state ^= rng_state << 13; rng_state ^= rng_state >> 7; rng_state ^= rng_state << 17;
	return rng_state * 0x2545f4914f6cdd1dull;
}
u32 rndn(u32 n) { return n ? (rnd() >> 33) % n : 0; }
bool chance(double p) { return p > 0 && rndn(1000000) < p * 1000000; }

struct node N[2];

bool fuzzing;

bool d_read(void *d, u64 pa, void *b, u32 len)
{
	struct node *n = d;
	if (pa >= RAM || len > RAM - pa) return false;
	memcpy(b, n->ram + pa, len);
	return true;
}
bool d_write(void *d, u64 pa, const void *b, u32 len)
{
	struct node *n = d;
	if (pa >= RAM || len > RAM - pa) return false;
	memcpy(n->ram + pa, b, len);
	return true;
}
bool d_pble(void *d, u32 i, u64 *v)
{
	struct node *n = d;
	if (i >= n->npble) return false;
	*v = n->pble[i];
	return true;
}
void d_ceq(void *d, u32 ceq, u64 ctx)
{
	struct node *n = d;
	(void)ceq;
	n->ceqes++;
	n->last_ceq_ctx = ctx;
}
void d_aeq(void *d, const struct eng_ae *ae)
{
	struct node *n = d;
	if (fuzzing)
		n->ae_r = n->ae_w;
	CHECK(n->ae_w - n->ae_r < 64, "AE flood, code 0x%x", ae->code);
	n->ae[n->ae_w++ % 64] = *ae;
	if (getenv("VERBOSE"))
		printf("  %10llu node %d AE 0x%03x src %u wqe %u iw %u tcp %u q2 %u\n",
		       (unsigned long long)T / 1000, n->id, ae->code, ae->src, ae->wqe_idx,
		       ae->iw_state, ae->tcp_state, ae->q2data);
}
u64 d_now(void *d) { (void)d; return T; }

struct pkt *wire;
struct w_state W;

void pcap_frame(const u8 *f, u32 len)
{
	u32 h[4] = { T / 1000000000, T % 1000000000 / 1000, len, len };

	if (W.pcap) {
		fwrite(h, sizeof(h), 1, W.pcap);
		fwrite(f, len, 1, W.pcap);
	}
}

void wire_put(int to, const u8 *f, u32 len, u64 at)
{
	struct pkt *p = malloc(sizeof(*p) + len), **w = &wire;

	p->at = at; p->to = to; p->len = len;
	memcpy(p->data, f, len);
	while (*w && (*w)->at <= at)
		w = &(*w)->next;
	p->next = *w;
	*w = p;
}

/* independent checksum code of the "network" */
u16 csum(const u8 *ip, bool v4, u8 *th, u32 len)
{
	u32 s = 6 + len;
	const u8 *a = v4 ? ip + 12 : ip + 8;
	for (u32 i = 0; i < (v4 ? 8u : 32u); i += 2) s += rb16(a + i);
	for (u32 i = 0; i + 1 < len; i += 2) s += rb16(th + i);
	if (len & 1) s += th[len - 1] << 8;
	while (s >> 16) s = (s & 0xffff) + (s >> 16);
	return ~s;
}

void set_len(u8 *f, u32 ip, u32 th, u32 end, bool v4)
{
	if (v4) {
		u32 s = 0;
		be16(f + ip + 2, end - ip);
		be16(f + ip + 10, 0);
		for (u32 i = 0; i < th - ip; i += 2) s += rb16(f + ip + i);
		while (s >> 16) s = (s & 0xffff) + (s >> 16);
		be16(f + ip + 10, ~s);
	} else {
		be16(f + ip + 4, end - th);
	}
	be16(f + th + 16, 0);
	be16(f + th + 16, csum(f + ip, v4, f + th, end - th));
}

void deliver_later(int from, const u8 *f, u32 len)
{
	u64 at = T + W.delay + rndn(2000);

	if (at <= W.last[from])
		at = W.last[from] + 1;		/* in order unless reordered */
	if (chance(W.reorder))
		at += rndn(300000);
	else
		W.last[from] = at;
	if (W.dead || chance(W.drop)) {
		W.dropped++;
		return;
	}
	wire_put(!from, f, len, at);
	if (chance(W.dup))
		wire_put(!from, f, len, at + rndn(100000));
}

void count_reads(int from, const u8 *p, u32 len)
{
	if (len < 20)
		return;
	if (!(p[2] & 0x80) && (p[3] & 15) == RDMAP_READ_REQ) {
		if (++W.reads_out[from] > W.max_reads[from])
			W.max_reads[from] = W.reads_out[from];
	} else if ((p[2] & 0xc0) == 0xc0 && (p[3] & 15) == RDMAP_READ_RSP) {
		W.reads_out[!from]--;
	}
}

void d_send(void *d, u32 qpn, const u8 *f, u32 len)
{
	struct node *n = d;
	u32 ip, th, end, pl;
	bool v4;
	u8 a[20000];

	(void)qpn;
	W.sent++;
	pcap_frame(f, len);
	CHECK(frame_parse(f, len, &ip, &th, &end, &v4) && end == len, "bad frame");
	memcpy(a, f, len);
	CHECK(csum(a + ip, v4, a + th, end - th) == 0, "bad TCP checksum");
	pl = th + (f[th + 12] >> 4) * 4;
	if (!W.drop && !W.dup && !W.split)
		count_reads(n->id, f + pl, end - pl);
	if (W.edit.on && n->id == 0 && end - pl > 20) {
		u32 fl, crc;

		W.edit.on = false;
		a[pl + W.edit.off] ^= W.edit.xor;
		fl = ((2 + rb16(a + pl) + 3) & ~3u) + 4;
		CHECK(fl <= end - pl, "edited length");
		crc = crc32c(0, a + pl, fl - 4);
		memcpy(a + pl + fl - 4, &crc, 4);
		set_len(a, ip, th, end, v4);
	}
	if (end - pl > 60 && chance(W.corrupt)) {	/* damage the FPDU, keep TCP happy */
		a[pl + 30] ^= 0x10;
		set_len(a, ip, th, end, v4);
	}
	if (chance(W.flip)) {				/* any bit behind the addresses */
		for (int i = rndn(3); i >= 0; i--)
			a[th + 4 + rndn(end - th - 4)] ^= 1 << rndn(8);
		pl = th + (a[th + 12] >> 4) * 4;
		set_len(a, ip, th, end, v4);
		deliver_later(n->id, a, end);
		return;
	}
	if (end - pl > 1 && chance(W.split)) {		/* two segments instead of one */
		u32 cut = 1 + rndn(end - pl - 1);
		u8 b[20000];

		memcpy(b, a, len);
		b[th + 13] &= ~(1u);
		set_len(b, ip, th, pl + cut, v4);
		deliver_later(n->id, b, pl + cut);
		memmove(a + pl, a + pl + cut, end - pl - cut);
		be32(a + th + 4, rb32(a + th + 4) + cut);
		end -= cut;
		set_len(a, ip, th, end, v4);
		deliver_later(n->id, a, end);
		return;
	}
	deliver_later(n->id, a, len);
}

void (*ilq)(int node, const u8 *f, u32 len);	/* frames without a connected QP */

bool step(void)
{
	u64 d0 = eng_deadline(N[0].e), d1 = eng_deadline(N[1].e), d = d0 < d1 ? d0 : d1;

	if (wire && wire->at <= d) {
		struct pkt *p = wire;
		int q = eng_match(N[p->to].e, p->data, p->len);

		wire = p->next;
		if (p->at > T)
			T = p->at;
		if (q >= 0)
			eng_rx(N[p->to].e, q, p->data, p->len);
		else if (ilq)
			ilq(p->to, p->data, p->len);
		else
			eng_input(N[p->to].e, p->data, p->len);
		free(p);
		return true;
	}
	if (d == UINT64_MAX)
		return false;
	if (d > T)
		T = d;
	eng_poll(N[0].e);
	eng_poll(N[1].e);
	return true;
}
void run_idle(void)
{
	u64 limit = 0;
	while (step())
		CHECK(limit++ < 30000000, "does not come to rest");
}

u64 rto_unit = 1000000;		/* ns; short, so that losses cost little virtual time */

void nodes_new(enum eng_gen gen, u64 ack_delay)
{
	struct eng_ops ops = { .dma_read = d_read, .dma_write = d_write, .pble_read = d_pble,
			       .send_frame = d_send, .ceq_event = d_ceq, .aeq_event = d_aeq,
			       .now_ns = d_now };
	struct eng_cfg cfg = { .gen = gen, .max_qp = 64, .max_cq = 64, .max_mr = 4096, .max_arp = 16,
			       .rto_unit_ns = rto_unit, .ack_delay_ns = ack_delay };
	FILE *pc = W.pcap;

	memset(&W, 0, sizeof(W));
	W.pcap = pc;
	W.delay = 10000;
	T = 1000000000;
	for (int i = 0; i < 2; i++) {
		struct node *n = &N[i];

		memset(n, 0, sizeof(*n));
		n->id = i;
		n->gen = gen;
		n->ram = calloc(1, RAM);
		n->brk = 0x10000;
		n->npages = (RAM - POOL) >> 12;
		n->pages = malloc(4 * n->npages);
		for (u32 k = 0; k < n->npages; k++)
			n->pages[k] = (POOL >> 12) + k;
		for (u32 k = n->npages - 1; k; k--) {
			u32 j = rndn(k + 1), t = n->pages[k];
			n->pages[k] = n->pages[j];
			n->pages[j] = t;
		}
		n->pble = calloc(NPBLE, 8);
		n->npble = 16;
		n->next_stag = 1 + rndn(100);
		n->next_cq = 3;
		n->next_qp = 3;
		n->e = eng_new(&cfg, &ops, n);
	}
}
void nodes_free(void)
{
	for (int i = 0; i < 2; i++) {
		eng_free(N[i].e);
		free(N[i].ram);
		free(N[i].pages);
		free(N[i].pble);
	}
	while (wire) {
		struct pkt *p = wire;
		wire = p->next;
		free(p);
	}
	ilq = NULL;
}

u64 alloc(struct node *n, u64 len, u64 align)
{
	u64 a = (n->brk + align - 1) & ~(align - 1);

	n->brk = a + len;
	CHECK(n->brk <= POOL, "out of guest memory");
	return a;
}
u64 page(struct node *n)
{
	CHECK(n->npages, "out of guest pages");
	return (u64)n->pages[--n->npages] << 12;
}
u32 pbles(struct node *n, u32 count)
{
	u32 i = (n->npble + 7) & ~7u;
	n->npble = i + count;
	CHECK(n->npble <= NPBLE, "out of PBLEs");
	return i;
}

u32 cqp(struct node *n, u8 op, u64 w[8])
{
	w[3] |= (u64)op << 32 | 1ull << 63;
	return eng_cqp(n->e, w);
}
u64 pd_word(struct node *n, u64 len, u32 pd)
{
	return len | (u64)pd << (n->gen == ENG_E810 ? 46 : 48);
}

u16 next_ae(struct node *n, struct eng_ae *out)
{
	if (n->ae_r == n->ae_w)
		return 0;
	*out = n->ae[n->ae_r++ % 64];
	return out->code;
}
void expect_ae(struct node *n, u16 code, int src)
{
	struct eng_ae a = { 0 };
	u16 got = next_ae(n, &a);

	CHECK(got == code, "node %d: AE 0x%x, expected 0x%x", n->id, got, code);
	CHECK(src < 0 || a.src == src, "AE 0x%x source %u, expected %d", got, a.src, src);
}
void no_ae(void)
{
	for (int i = 0; i < 2; i++)
		CHECK(N[i].ae_r == N[i].ae_w, "node %d: unexpected AE 0x%x", i,
		      N[i].ae[N[i].ae_r % 64].code);
}

struct tmr *all_mrs;

void mr_pages(struct node *n, struct tmr *m, u64 len, bool contig)
{
	m->n = n;
	m->len = len;
	m->va = (rnd() & 0x7ffffffff000ull) | rndn(4096);
	m->npages = ((m->va & 4095) + len + 4095) >> 12;
	m->pa = malloc(8 * m->npages);
	if (contig)
		m->pa[0] = alloc(n, 4096ull * m->npages, 4096);
	for (u32 i = contig; i < m->npages; i++)
		m->pa[i] = contig ? m->pa[0] + 4096ull * i : page(n);
}
u32 new_stag(struct node *n)
{
	return (u32)(rnd() << 22) | n->next_stag++ << 8;	/* driver key | index; key 0 */
}
/* level 0, 1 or 2 (LPBLSIZE 0, 1, 3) */
struct tmr *mr_new(struct node *n, u64 len, u8 rights, int level, bool zb, u32 pd)
{
	struct tmr *m = calloc(1, sizeof(*m));
	u64 w[8] = { 0 };

	m->next = all_mrs;
	all_mrs = m;
	mr_pages(n, m, len, level == 0);
	m->zb = zb;
	m->stag = new_stag(n) | (u8)rnd();
	w[0] = zb ? m->va & 4095 : m->va;
	w[1] = pd_word(n, len, pd);
	w[2] = m->stag;
	w[3] = 1ull << 43 | (u64)rights << 48 | (u64)!!(rights & 12) << 53 | (u64)!zb << 59;
	if (level == 0) {
		w[4] = m->pa[0];
	} else if (level == 1) {
		w[6] = pbles(n, m->npages);
		memcpy(n->pble + w[6], m->pa, 8 * m->npages);
		w[3] |= 1ull << 44;
	} else {
		u32 leaves = (m->npages + 511) / 512;

		w[6] = pbles(n, leaves);
		w[3] |= 3ull << 44;
		for (u32 i = 0; i < leaves; i++) {
			u32 c = min32(512, m->npages - 512 * i), leaf = pbles(n, c);

			n->pble[w[6] + i] = leaf;
			memcpy(n->pble + leaf, m->pa + 512 * i, 8 * c);
		}
	}
	CHECK(cqp(n, 0x0a, w) == 0, "REG_MR");
	return m;
}
void mr_free(struct tmr *m)
{
	struct tmr **p = &all_mrs;

	while (*p != m)
		p = &(*p)->next;
	*p = m->next;
	free(m->pa);
	free(m);
}
u64 mr_to(struct tmr *m, u64 off) { return (m->zb ? 0 : m->va) + off; }
u8 *mr_ptr(struct tmr *m, u64 off, u64 *run)
{
	u64 o = (m->va & 4095) + off;
	*run = 4096 - (o & 4095);
	return m->n->ram + m->pa[o >> 12] + (o & 4095);
}
void mr_fill(struct tmr *m, u64 off, u64 len, u64 seed)
{
	u64 s = seed | 1;
	for (u64 i = 0; i < len;) {
		u64 run; u8 *p = mr_ptr(m, off + i, &run);
		for (u64 k = 0; k < run && i < len; k++, i++) {
			s = s * 6364136223846793005ull + 1442695040888963407ull;
			p[k] = s >> 56;
		}
	}
}
/* running state so that a pattern can be checked over several pieces */
void pat_check(struct tmr *m, u64 off, u64 len, u64 *s, const char *what)
{
	for (u64 i = 0; i < len;) {
		u64 run; u8 *p = mr_ptr(m, off + i, &run);
		for (u64 k = 0; k < run && i < len; k++, i++) {
			*s = *s * 6364136223846793005ull + 1442695040888963407ull;
			CHECK(p[k] == (u8)(*s >> 56), "%s: wrong byte at %llu of %llu", what,
			      (unsigned long long)i, (unsigned long long)len);
		}
	}
}
void mr_check(struct tmr *m, u64 off, u64 len, u64 seed, const char *what)
{
	u64 s = seed | 1;
	pat_check(m, off, len, &s, what);
}

void cq_ring(struct tcq *c, u32 size, u64 w[8], bool virt)
{
	c->size = size;
	c->head = 0;
	c->pol = 1;
	w[0] = size;
	w[5] = c->shadow;
	w[3] |= c->num;
	if (virt) {
		u32 np = (size * 32 + 4095) / 4096;

		c->pages = calloc(np, 8);
		w[6] = pbles(c->n, np);
		w[3] |= 1ull << 44 | 1ull << 47;
		for (u32 i = 0; i < np; i++)
			c->n->pble[w[6] + i] = c->pages[i] = page(c->n);
	} else {
		w[4] = c->base = alloc(c->n, size * 32, 256);
	}
}
struct tcq *cq_new(struct node *n, u32 size, bool virt)
{
	struct tcq *c = calloc(1, sizeof(*c));
	u64 w[8] = { 0 };

	c->n = n;
	c->num = n->next_cq++;
	c->shadow = alloc(n, 64, 64);
	cq_ring(c, size, w, virt);
	w[1] = 0x1234500000000000ull | c->num;
	w[3] |= 1ull << 46 | 1ull << 48 | 1ull << 49;
	CHECK(cqp(n, 0x03, w) == 0, "CREATE_CQ");
	return c;
}
void cq_free(struct tcq *c) { free(c->pages); free(c); }
u8 *cq_slot(struct tcq *c, u32 i)
{
	return c->n->ram + (c->pages ? c->pages[i / 128] + i % 128 * 32 : c->base + i * 32);
}
void cq_publish(struct tcq *c) { memcpy(c->n->ram + c->shadow, &(u64){ c->head }, 8); }
bool cq_poll(struct tcq *c, struct tcqe *o)
{
	memset(o, 0, sizeof(*o));
	memcpy(o->q, cq_slot(c, c->head), 32);
	if (o->q[3] >> 63 != c->pol)
		return false;
	for (int i = 0; i < 1 + (c->n->gen == ENG_E810 && bit(o->q[3], 50)); i++) {
		if (i) {
			memcpy(o->ext, cq_slot(c, c->head), 32);
			CHECK(o->ext[3] >> 63 == c->pol, "extended CQE polarity");
			o->has_ext = true;
		}
		if (++c->head == c->size) {
			c->head = 0;
			c->pol ^= 1;
		}
	}
	cq_publish(c);
	o->sq = bit(o->q[3], 62);
	o->err = bit(o->q[3], 55);
	o->idx = bits(o->q[3], 46, 32);
	o->op = bits(o->q[3], 61, 56);
	o->code = (u32)o->q[3];
	o->len = (u32)o->q[0];
	return true;
}
void cq_arm_req(struct tcq *c, bool se_only)
{
	u64 v;
	memcpy(&v, c->n->ram + c->shadow + 32, 8);
	c->seq = (c->seq + 1) & 3;
	v = (v & 0x3fff) | (u64)!se_only << 14 | 1 << 15 | (u64)c->seq << 16;
	memcpy(c->n->ram + c->shadow + 32, &v, 8);
	eng_cq_arm(c->n->e, c->num);
}

u8 *ring_ptr(struct tqp *q, bool sq, u64 byte)
{
	u64 *pg = sq ? q->sq_pages : q->rq_pages;
	return q->n->ram + (pg ? pg[byte >> 12] + (byte & 4095) : (sq ? q->sq : q->rq) + byte);
}
u64 *virt_ring(struct node *n, u32 bytes, u64 *idx)
{
	u32 np = (bytes + 4095) / 4096;
	u64 *p = calloc(np, 8);

	*idx = pbles(n, np);
	for (u32 i = 0; i < np; i++)
		n->pble[*idx + i] = p[i] = page(n);
	return p;
}
u32 lg2(u32 v) { u32 n = 0; while (1u << n < v) n++; return n; }

u32 qp_mod(struct tqp *q, u8 next, u64 flags)
{
	u64 w[8] = { 0 };

	memcpy(q->n->ram + q->ctx, q->c, 256);
	w[2] = q->ctx;
	w[5] = q->shadow;
	w[3] = q->num | 1ull << 48 | (u64)next << 60 | flags;
	return cqp(q->n, 0x01, w);
}
u32 qp_flush_cmd(struct tqp *q, bool sq, bool rq, u16 sqm, u16 rqm)
{
	u64 w[8] = { 0 };

	w[2] = (u64)rqm | 1ull << 16 | (u64)sqm << 32 | 1ull << 48;
	w[3] = q->num | 1ull << 60 | (u64)sq << 61 | (u64)rq << 62;
	return cqp(q->n, 0x22, w);
}
struct tqp *qp_new(struct node *n, const struct opts *o, int side)
{
	struct tqp *q = calloc(1, sizeof(*q));
	u64 w[8] = { 0 }, *c = q->c;

	q->n = n;
	q->num = n->next_qp++;
	q->user = o->user;
	q->sq_size = o->sq;
	q->rq_shift = n->gen == ENG_X722 ? 2 : o->rq_shift;
	q->rq_size = o->rq;
	q->sq_pol = q->rq_pol = 1;
	q->q2 = alloc(n, 512, 256);
	q->ctx = q->q2 + 256;
	q->shadow = alloc(n, 64, 128);
	q->cookie = 0xabc0000000000000ull | q->num;
	q->scq = cq_new(n, o->cq, o->vq);
	q->rcq = chance(0.5) ? q->scq : cq_new(n, o->cq, false);
	if (o->vq) {
		q->sq_pages = virt_ring(n, q->sq_size * 32, &c[1]);
		q->rq_pages = virt_ring(n, q->rq_size * 32 << q->rq_shift, &c[2]);
	} else {
		c[1] = q->sq = alloc(n, q->sq_size * 32, 128);
		c[2] = q->rq = alloc(n, q->rq_size * 32 << q->rq_shift, 128);
	}
	c[0] |= 1 | 1ull << 62 | (u64)q->rq_shift << 8 | (u64)(n->gen == ENG_E810) << 2;
	c[3] |= (u64)(lg2(q->rq_size << q->rq_shift) - 2) << 8 | (u64)(lg2(q->sq_size) - 2) << 12;
	c[7] |= (u64)(PD & 0xffff) << 48;
	c[17] = q->scq->num | (u64)q->rcq->num << 32;
	c[18] = q->q2;
	c[19] = n->gen == ENG_E810 ? (0x020000000000ull | (n->id + 1)) << 16 : 0;
	c[20] = o->ord[side] | (u64)o->ird_code[side] << 16 | 1ull << 20 | 1ull << 21 |
		(u64)o->bind << 23 | (u64)!o->user << 24 | (u64)!o->user << 25 | 1ull << 28 |
		(u64)o->nocrc << 31;
	c[21] = q->cookie;
	memcpy(n->ram + q->ctx, c, 256);
	w[2] = q->ctx;
	w[5] = q->shadow;
	w[3] = q->num | 1ull << 47 | 1ull << 48 | 1ull << 51 | 1ull << 60 | 1ull << 42 |
	       (u64)o->vq << 45;
	CHECK(cqp(n, 0x00, w) == 0, "CREATE_QP");
	return q;
}
void qp_free_t(struct tqp *q)
{
	u64 w[8] = { 0 };

	w[3] = q->num | 1ull << 48 | 1ull << 55;
	CHECK(cqp(q->n, 0x02, w) == 0, "DESTROY_QP");
	if (q->rcq != q->scq)
		cq_free(q->rcq);
	cq_free(q->scq);
	free(q->sq_pages);
	free(q->rq_pages);
	free(q);
}

/* posting */
u32 sq_used(struct tqp *q) { return (q->sq_head - q->sq_tail + q->sq_size) % q->sq_size; }
bool sq_room(struct tqp *q) { return sq_used(q) + 16 <= q->sq_size - 257 - 8; }

void sq_index0(struct tqp *q) { if (q->sq_head == 0) q->sq_pol ^= 1; }
void hdr_write(u8 *p, u64 hdr) { memcpy(p + 24, &hdr, 8); }

/* Reserve quanta like the driver: NOP padding at the chunk end, look-ahead cleaning. */
u16 sq_take(struct tqp *q, u32 quanta, u8 *raw)
{
	u32 chunk = q->n->gen == ENG_E810 ? 8 : 2, idx;

	if (q->sq_head % chunk + quanta > chunk)
		while (q->sq_head % chunk) {
			u8 *p = ring_ptr(q, true, q->sq_head * 32ull);

			memset(p, 0, 32);
			hdr_write(p, (u64)OP_NOP << 32 | (u64)q->sq_pol << 63);
			q->sq_head = (q->sq_head + 1) % q->sq_size;
		}
	sq_index0(q);
	idx = q->sq_head;
	for (u32 i = idx; i < idx + quanta; i++)
		if (i % 128 == 0) {
			u32 t = (i + 128) % q->sq_size;
			u8 fill = t ? (q->sq_pol ? 0 : 0xff) : (q->sq_pol ? 0xff : 0);

			memset(ring_ptr(q, true, t * 32ull), fill, 4096);
		}
	memset(raw, 0, 256);
	q->sq_head = (q->sq_head + quanta) % q->sq_size;
	return idx;
}
/* copy a built WQE into the ring, header last */
void sq_put(struct tqp *q, u32 idx, u32 quanta, u8 *raw, u64 hdr)
{
	for (u32 k = 1; k < quanta; k++)
		memcpy(ring_ptr(q, true, (idx + k) * 32ull), raw + 32 * k, 32);
	memcpy(ring_ptr(q, true, idx * 32ull), raw, 24);
	hdr_write(ring_ptr(q, true, idx * 32ull), hdr | (u64)q->sq_pol << 63);
	eng_doorbell(q->n->e, q->num);
}
void put_frag(struct tqp *q, u8 *raw, u32 i, u64 to, u32 len, u32 stag, u8 pol)
{
	u8 *p = raw + (i ? 32 + 16 * (i - 1) : 0);
	u64 w = q->n->gen == ENG_E810 ? (u64)len << 32 | stag | (u64)pol << 63
				      : (u64)stag << 32 | len;
	memcpy(p, &to, 8);
	memcpy(p + 8, &w, 8);
}

/* Post op: kind is the SQ opcode; fragments, remote target etc. filled in by the caller. */
void post(struct tqp *q, struct op *o)
{
	u8 raw[256], data[256];
	bool e810 = q->n->gen == ENG_E810, read = o->kind == OP_READ || o->kind == OP_READ_INV;
	u32 nf = o->n + o->has_imm, add, quanta;
	u64 hdr = (u64)o->kind << 32 | (u64)o->sig << 62;
	u16 idx;

	if (o->inl) {
		u32 left = o->len, first = e810 ? 8 : 16, done = 0;

		for (u32 i = 0, at = 0; i < o->n; at += o->flen[i++])
			for (u32 k = 0; k < o->flen[i]; k++) {
				u64 run;
				data[at + k] = *mr_ptr(o->mr[i], o->off[i] + k, &run);
			}
		quanta = left <= first ? 1 : 1 + (left - first + (e810 ? 30 : 31)) / (e810 ? 31 : 32);
		idx = sq_take(q, quanta, raw);
		done = min32(left, first);
		memcpy(raw + (e810 ? 8 : 0), data, done);
		for (u32 k = 1; k < quanta; k++) {
			u32 c = min32(left - done, e810 ? 31 : 32);

			memcpy(raw + 32 * k, data + done, c);
			done += c;
			if (e810)
				raw[32 * k + 31] = q->sq_pol << 7;
		}
		hdr |= 1ull << 57 | (u64)left << 48;
	} else {
		add = nf ? nf - 1 : 0;
		if (e810)
			add = (add + 1) & ~1u;
		quanta = 1 + (add + 1) / 2;
		idx = sq_take(q, quanta, raw);
		for (u32 i = 0; i <= add; i++)
			put_frag(q, raw, i, 0, 0, 0, q->sq_pol);
		for (u32 i = 0; i < o->n; i++)
			put_frag(q, raw, i + o->has_imm, mr_to(o->mr[i], o->off[i]), o->flen[i],
				 o->mr[i]->stag, q->sq_pol);
		hdr |= (u64)add << 38;
	}
	if (o->has_imm) {
		memcpy(raw, &o->imm, 4);
		hdr |= 1ull << 47;
	}
	if (read || o->kind == OP_WRITE || o->kind == OP_WRITE_SE) {
		u64 to = o->rmr ? mr_to(o->rmr, o->roff) : 0;

		memcpy(raw + 16, &to, 8);
		hdr |= o->rmr ? o->rmr->stag : 0;
	} else {
		hdr |= o->inv;
	}
	o->idx = idx;
	o->quanta = quanta;
	q->ops[q->ow++ % 1024] = *o;
	sq_put(q, idx, quanta, raw, hdr);
}
/* one-quantum WQE from raw words */
u16 post_raw(struct tqp *q, u64 w0, u64 w1, u64 w2, u64 hdr)
{
	u8 raw[256];
	u16 idx = sq_take(q, 1, raw);
	struct op *o = &q->ops[q->ow++ % 1024];

	memset(o, 0, sizeof(*o));
	o->kind = bits(hdr, 37, 32);
	o->sig = bit(hdr, 62);
	o->idx = idx;
	o->quanta = 1;
	memcpy(raw, (u64[]){ w0, w1, w2 }, 24);
	sq_put(q, idx, 1, raw, hdr);
	return idx;
}
void post_recv(struct tqp *q, struct tmr *m, u32 n, const u32 *off, const u32 *len)
{
	u32 slot = q->rq_head, add = n ? n - 1 : 0;
	u8 raw[256] = { 0 };
	u64 at = (u64)slot * 32 << q->rq_shift;

	if (q->n->gen == ENG_E810)
		add = (add + 1) & ~1u;
	for (u32 i = 0; i <= add; i++)
		put_frag(q, raw, i, 0, 0, 0, q->rq_pol);
	q->rlen[slot] = 0;
	for (u32 i = 0; i < n; i++) {
		put_frag(q, raw, i, mr_to(m, off[i]), len[i], m->stag, q->rq_pol);
		q->rlen[slot] += len[i];
	}
	q->rmr[slot] = m;
	memcpy(ring_ptr(q, false, at), raw, 24);
	for (u32 k = 1; k < 1u << q->rq_shift; k++)
		memcpy(ring_ptr(q, false, at + 32 * k), raw + 32 * k, 32);
	hdr_write(ring_ptr(q, false, at), (u64)add << 38 | (u64)q->rq_pol << 63);
	if (++q->rq_head == q->rq_size) {
		q->rq_head = 0;
		q->rq_pol ^= 1;
	}
}

/* SQ success completion: retire ops in order; the first signaled one must be this CQE's. */
struct op *sq_done(struct tqp *q, const struct tcqe *c)
{
	CHECK(c->q[1] == q->cookie && bits(c->q[2], 55, 32) == q->num, "CQE identity");
	while (q->or != q->ow) {
		struct op *o = &q->ops[q->or++ % 1024];

		q->sq_tail = (o->idx + o->quanta) % q->sq_size;
		if (o->sig) {
			CHECK(o->idx == c->idx && o->kind == c->op,
			      "completion for %u/%u, expected %u/%u", c->idx, c->op, o->idx, o->kind);
			return o;
		}
	}
	CHECK(0, "completion without a signaled WQE");
	return NULL;
}

struct c_state C;

const struct opts defaults = { .mss = 1460, .wnd = 0x3fffc, .ord = { 16, 16 },
	.ird_code = { 2, 2 }, .sq = 512, .rq_shift = 3, .rq = 64, .cq = 1024, .rtr_read = true };

/* A TCP frame made by software (handshake, MPA request); goes to the capture only. */
void sw_frame(int from, u8 flags, u32 seq, u32 ack, const u8 *data, u32 len)
{
	u8 f[700] = { 0 };
	u32 ip = 14 + 4 * C.o.vlan, th, opt = flags & 2 ? 8 : 0;

	f[0] = f[6] = 2;
	f[5] = 2 - from;
	f[11] = 1 + from;
	if (C.o.vlan) {
		be16(f + 12, 0x8100);
		be16(f + 14, 100);
	}
	if (C.o.v6) {
		be16(f + ip - 2, 0x86dd);
		be32(f + ip, 0x60000000);
		f[ip + 6] = 6;
		f[ip + 7] = 64;
		be32(f + ip + 8, 0xfd000000);
		be32(f + ip + 24, 0xfd000000);
		f[ip + 23] = 1 + from;
		f[ip + 39] = 2 - from;
		th = ip + 40;
	} else {
		be16(f + ip - 2, 0x0800);
		f[ip] = 0x45;
		f[ip + 8] = 64;
		f[ip + 9] = 6;
		be32(f + ip + 12, 0x0a000001 + from);
		be32(f + ip + 16, 0x0a000002 - from);
		th = ip + 20;
	}
	be16(f + th, C.sport[from]);
	be16(f + th + 2, C.sport[!from]);
	be32(f + th + 4, seq);
	be32(f + th + 8, ack);
	f[th + 12] = (20 + opt) / 4 << 4;
	f[th + 13] = flags;
	be16(f + th + 14, flags & 2 ? 65535 : C.o.wnd >> 2 > 65535 ? 65535 : C.o.wnd >> 2);
	if (opt) {
		be32(f + th + 20, 0x02040000 | C.o.mss);
		be32(f + th + 24, 0x01030302);		/* NOP, window scale 2 */
	}
	memcpy(f + th + 20 + opt, data, len);
	set_len(f, ip, th, th + 20 + opt + len, !C.o.v6);
	pcap_frame(f, th + 20 + opt + len);
}

void tcp_ctx(struct tqp *q, int side, u32 snd, u32 rcv)
{
	u64 *c = q->c;
	struct opts *o = &C.o;
	u32 snd_mark = side ? (snd % 512 + C.lsmm_len) % 512 : snd % 512;

	c[0] |= (u64)!o->v6 << 3 | (u64)o->vlan << 5 | (u64)o->ts << 7 | (u64)!o->ooo << 15;
	c[3] |= 64 | 2u << 24 | (u64)C.sport[side] << 32 | (u64)C.sport[!side] << 48;
	if (o->v6) {
		c[4] = 2 - side;
		c[5] = 0xfd000000ull << 32;
		c[23] = 1 + side;
		c[24] = 0xfd000000ull << 32;
	} else {
		c[4] = 0x0a000002 - side;
		c[23] = 0x0a000001 + side;
	}
	c[6] = (u64)o->mss << 16 | 100ull << 32 | 5ull << 48;
	c[7] |= 1 << 20 | 5u << 28 | 2ull << 32 | 2ull << 40;
	c[10] = snd | (u64)o->wnd << 32;
	c[11] = rcv | (u64)o->wnd << 32;
	c[12] = snd | (u64)snd << 32;
	c[13] = 6ull << 32;
	c[14] = 0x3fffffff | (u64)(2 * o->mss) << 32;
	c[15] = rcv | (u64)snd << 32;
	/* above 10 % loss a run of eight losses does happen */
	c[16] = o->wnd | (W.drop > 0.1 ? 20ull : 8ull) << 48 | 5ull << 57;
	c[20] |= (u64)o->mark[!side] << 22 | (u64)o->mark[side] << 29 |
		 (u64)(rcv % 512) << 32 | (u64)snd_mark << 48;
}

void conn_wqes(struct tqp *q)
{
	u8 nop[32] = { 0 };

	q->sq_head = q->sq_tail = 1;
	if (q->n->gen == ENG_E810) {
		hdr_write(nop, (u64)OP_NOP << 32 | 1ull << 61 | 1ull << 63);
		memcpy(ring_ptr(q, true, 32), nop, 32);
		hdr_write(nop, (u64)OP_GEN_RTS_AE << 32 | 1ull << 63);
		memcpy(ring_ptr(q, true, 64), nop, 32);
		q->sq_head = q->sq_tail = 3;
	}
}

/* The active side's driver: the MPA reply arrives as stream data before RTS. */
void ilq_reply(int node, const u8 *f, u32 len)
{
	u32 ip, th, end, pl;
	bool v4;
	u8 raw[32] = { 0 };
	struct tqp *q = C.q[0];

	if (node != 0 || C.active_rts || !frame_parse(f, len, &ip, &th, &end, &v4))
		return;
	pl = th + (f[th + 12] >> 4) * 4;
	if (rb32(f + th + 4) != C.iss[1] + 1 || end == pl)
		return;
	if (end - pl < C.lsmm_len)
		return;		/* split by the wire: wait for the retransmission */
	CHECK(end - pl == C.lsmm_len && !memcmp(f + pl, C.lsmm, C.lsmm_len), "MPA reply");
	C.active_rts = true;
	tcp_ctx(q, 0, C.iss[0] + 1 + C.mpa_req_len, C.iss[1] + 1 + C.lsmm_len);
	conn_wqes(q);
	put_frag(q, raw, 0, 0, 0, C.o.rtr_read ? 0xabcd : 0, 1);
	hdr_write(raw, (C.o.rtr_read ? (u64)OP_READ << 32 | 0x1234 : 0) | 1ull << 63);
	memcpy(ring_ptr(q, true, 0), raw, 32);
	CHECK(qp_mod(q, IW_RTS, RTS_FLAGS) == 0, "active RTS");
}

bool saw(struct node *n, u16 code)
{
	for (u32 i = n->ae_r; i != n->ae_w; i++)
		if (n->ae[i % 64].code == code)
			return true;
	return false;
}

struct tmr *lsmm_mr;
void connect_qps(const struct opts *o)
{
	u8 req[600], raw[32] = { 0 };
	struct tqp *q;
	u32 pd_len = rndn(40), split = 0;

	memset(&C, 0, sizeof(C));
	C.o = *o;
	for (int i = 0; i < 2; i++) {
		u64 w[8] = { 0 };

		C.iss[i] = chance(0.5) ? 0u - rndn(200000) : (u32)rnd();	/* wraps */
		C.sport[i] = 20000 + rndn(20000);
		w[2] = 0x020000000002ull - i;
		w[3] = 5 | 3ull << 42;
		CHECK(cqp(&N[i], 0x0f, w) == 0, "ARP");
		memset(w, 0, sizeof(w));
		w[4] = 0x020000000001ull + i;
		CHECK(cqp(&N[i], 0x0e, w) == 0, "local MAC");
		C.q[i] = qp_new(&N[i], o, i);
	}
	memcpy(req, "MPA ID Req Frame", 16);
	req[16] = 0x40 | o->mark[0] << 7;
	req[17] = 1;
	be16(req + 18, pd_len);
	memset(req + 20, 'p', pd_len);
	C.mpa_req_len = 20 + pd_len;
	memcpy(C.lsmm, req, C.mpa_req_len);
	memcpy(C.lsmm, "MPA ID Rep Frame", 16);
	C.lsmm[16] = 0x40 | o->mark[1] << 7;
	C.lsmm_len = 20 + pd_len;
	sw_frame(0, 2, C.iss[0], 0, req, 0);
	sw_frame(1, 0x12, C.iss[1], C.iss[0] + 1, req, 0);
	sw_frame(0, 0x10, C.iss[0] + 1, C.iss[1] + 1, req, 0);
	sw_frame(0, 0x18, C.iss[0] + 1, C.iss[1] + 1, req, C.mpa_req_len);
	T += 1000;

	q = C.q[1];
	tcp_ctx(q, 1, C.iss[1] + 1, C.iss[0] + 1 + C.mpa_req_len);
	conn_wqes(q);
	lsmm_mr = mr_new(&N[1], C.lsmm_len, R_LREAD | R_LWRITE, 0, false, PD);
	for (u32 i = 0; i < C.lsmm_len; i++) {
		u64 run;
		*mr_ptr(lsmm_mr, i, &run) = C.lsmm[i];
	}
	put_frag(q, raw, 0, lsmm_mr->va, C.lsmm_len, lsmm_mr->stag, 1);
	hdr_write(raw, (u64)OP_SEND << 32 | 1ull << 58 | 1ull << 59 | 1ull << 63);
	memcpy(ring_ptr(q, true, 0), raw, 32);
	ilq = ilq_reply;
	CHECK(qp_mod(q, IW_RTS, RTS_FLAGS) == 0, "passive RTS");
	if (N[0].gen == ENG_E810) {
		CHECK(!saw(&N[1], AE_CONNECTED), "passive side must wait for the first FPDU");
		while (!saw(&N[0], AE_CONNECTED) || !saw(&N[1], AE_CONNECTED))
			CHECK(step() && split++ < 10000, "connection not established");
		expect_ae(&N[0], AE_CONNECTED, -1);
		expect_ae(&N[1], AE_CONNECTED, -1);
	} else {
		run_idle();
		CHECK(C.active_rts, "connection not established");
	}
}
void disconnect_free(void)
{
	for (int i = 0; i < 2; i++)
		qp_free_t(C.q[i]);
	mr_free(lsmm_mr);
}

/* orderly close started by "side"; both drivers react like the real one */
void close_orderly(int side)
{
	u32 n = 0;

	CHECK(qp_mod(C.q[side], IW_CLOSING, 0) == 0, "closing");
	while (!saw(&N[!side], AE_LLP_FIN))
		CHECK(step() && n++ < 100000, "FIN not seen");
	expect_ae(&N[!side], AE_LLP_FIN, -1);
	CHECK(qp_mod(C.q[!side], IW_CLOSING, EV_FLAGS) == 0, "closing, passive");
	while (!saw(&N[0], AE_LLP_CLOSED) || !saw(&N[1], AE_LLP_CLOSED))
		CHECK(step() && n++ < 100000, "not closed");
	expect_ae(&N[0], AE_LLP_CLOSED, -1);
	expect_ae(&N[1], AE_LLP_CLOSED, -1);
	run_idle();
	for (int i = 0; i < 2; i++)
		CHECK(qp_mod(C.q[i], IW_ERROR, 1ull << 55) == 0, "to error");
	no_ae();
}
