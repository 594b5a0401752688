/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * test_engine.h - the bench that the engine's tests share (test_bench.c): two engines
 * back to back over a simulated wire, simulated time, guest memory and a driver that
 * builds WQEs, contexts and control commands.
 */
#ifndef TEST_ENGINE_H
#define TEST_ENGINE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "engine.h"
#include "engine_int.h"

#define CHECK(c, ...) do { if (!(c)) { printf("FAIL %s:%d [%s seed %u] %s: ", __FILE__, __LINE__, \
	case_name, case_seed, #c); printf("" __VA_ARGS__); printf("\n"); exit(1); } } while (0)
extern const char *case_name;
extern unsigned case_seed;
extern u64 T;
extern u64 rng_state;
u64 rnd(void);
u32 rndn(u32 n);
bool chance(double p);
/* nodes: guest memory, events */
#define RAM		(448ull << 20)
#define POOL		(128ull << 20)	/* pages above are handed out in random order */
#define NPBLE		(1u << 18)
struct node {
	struct eng *e;
	int id;
	enum eng_gen gen;
	u8 *ram;
	u64 brk;
	u32 *pages, npages;
	u64 *pble;
	u32 npble;
	u32 next_stag, next_cq, next_qp;
	struct eng_ae ae[64];
	u32 ae_w, ae_r;
	u32 ceqes;
	u64 last_ceq_ctx;
};
extern struct node N[2];
extern bool fuzzing;
bool d_read(void *d, u64 pa, void *b, u32 len);
bool d_write(void *d, u64 pa, const void *b, u32 len);
bool d_pble(void *d, u32 i, u64 *v);
void d_ceq(void *d, u32 ceq, u64 ctx);
void d_aeq(void *d, const struct eng_ae *ae);
u64 d_now(void *d);
/* wire */
struct pkt { struct pkt *next; u64 at; int to; u32 len; u8 data[]; };
extern struct pkt *wire;
struct w_state {
	double drop, dup, reorder, split, corrupt, flip;
	u64 delay, last[2];
	bool dead;
	u32 sent, dropped;
	FILE *pcap;
	struct { bool on; u8 off, xor; } edit;	/* alter one byte of the next FPDU of node 0 */
	u32 reads_out[2], max_reads[2];		/* seen on the wire, lossless runs only */
};
extern struct w_state W;
void pcap_frame(const u8 *f, u32 len);
void wire_put(int to, const u8 *f, u32 len, u64 at);
u16 csum(const u8 *ip, bool v4, u8 *th, u32 len);
void set_len(u8 *f, u32 ip, u32 th, u32 end, bool v4);
void deliver_later(int from, const u8 *f, u32 len);
void count_reads(int from, const u8 *p, u32 len);
void d_send(void *d, u32 qpn, const u8 *f, u32 len);
extern void (*ilq)(int node, const u8 *f, u32 len);
bool step(void);
void run_idle(void);
extern u64 rto_unit;
void nodes_new(enum eng_gen gen, u64 ack_delay);
void nodes_free(void);
u64 alloc(struct node *n, u64 len, u64 align);
u64 page(struct node *n);
u32 pbles(struct node *n, u32 count);
u32 cqp(struct node *n, u8 op, u64 w[8]);
u64 pd_word(struct node *n, u64 len, u32 pd);
u16 next_ae(struct node *n, struct eng_ae *out);
void expect_ae(struct node *n, u16 code, int src);
void no_ae(void);
/* memory regions */
struct tmr { struct node *n; u32 stag, npages; u64 va, len, *pa; bool zb; struct tmr *next; };
extern struct tmr *all_mrs;
void mr_pages(struct node *n, struct tmr *m, u64 len, bool contig);
u32 new_stag(struct node *n);
struct tmr *mr_new(struct node *n, u64 len, u8 rights, int level, bool zb, u32 pd);
void mr_free(struct tmr *m);
u64 mr_to(struct tmr *m, u64 off);
u8 *mr_ptr(struct tmr *m, u64 off, u64 *run);
void mr_fill(struct tmr *m, u64 off, u64 len, u64 seed);
void pat_check(struct tmr *m, u64 off, u64 len, u64 *s, const char *what);
void mr_check(struct tmr *m, u64 off, u64 len, u64 seed, const char *what);
/* completion queues */
struct tcq { struct node *n; u32 num, size, head; u8 pol, seq; u64 base, shadow, *pages; };
struct tcqe { u64 q[4], ext[4]; bool sq, err, has_ext; u32 idx, op, code, len; };
void cq_ring(struct tcq *c, u32 size, u64 w[8], bool virt);
struct tcq *cq_new(struct node *n, u32 size, bool virt);
void cq_free(struct tcq *c);
u8 *cq_slot(struct tcq *c, u32 i);
void cq_publish(struct tcq *c);
bool cq_poll(struct tcq *c, struct tcqe *o);
void cq_arm_req(struct tcq *c, bool se_only);
/* queue pairs */
struct opts {
	bool v6, vlan, ts, mark[2], ooo, user, vq, rtr_read, nocrc, bind;
	u32 mss, wnd, ord[2], ird_code[2], sq, rq_shift, rq, cq;
	u8 rights_write, rights_read;
	bool slow_arm;
};
struct op {			/* one posted SQ WQE */
	u8 kind;
	bool sig, inl;
	u16 idx;
	u8 quanta;
	u32 len, n;
	struct tmr *mr[14]; u64 off[14]; u32 flen[14];
	struct tmr *rmr; u64 roff;
	u64 seed;
	u32 imm; bool has_imm; u32 inv;
	int slot;
};
struct tqp {
	struct node *n;
	u32 num, sq_size, rq_size, rq_shift, sq_head, sq_tail, rq_head;
	u8 sq_pol, rq_pol;
	u64 ctx, shadow, q2, sq, rq, *sq_pages, *rq_pages;
	u64 c[32];
	struct tcq *scq, *rcq;
	u64 cookie;
	struct op ops[1024]; u32 ow, or;	/* posted, retired */
	struct tmr *rmr[512]; u32 rlen[512];	/* receive buffers by WQE */
	bool user;
};
#define PD 77
u8 *ring_ptr(struct tqp *q, bool sq, u64 byte);
u64 *virt_ring(struct node *n, u32 bytes, u64 *idx);
u32 lg2(u32 v);
u32 qp_mod(struct tqp *q, u8 next, u64 flags);
u32 qp_flush_cmd(struct tqp *q, bool sq, bool rq, u16 sqm, u16 rqm);
struct tqp *qp_new(struct node *n, const struct opts *o, int side);
void qp_free_t(struct tqp *q);
u32 sq_used(struct tqp *q);
bool sq_room(struct tqp *q);
void sq_index0(struct tqp *q);
void hdr_write(u8 *p, u64 hdr);
u16 sq_take(struct tqp *q, u32 quanta, u8 *raw);
void sq_put(struct tqp *q, u32 idx, u32 quanta, u8 *raw, u64 hdr);
void put_frag(struct tqp *q, u8 *raw, u32 i, u64 to, u32 len, u32 stag, u8 pol);
void post(struct tqp *q, struct op *o);
u16 post_raw(struct tqp *q, u64 w0, u64 w1, u64 w2, u64 hdr);
void post_recv(struct tqp *q, struct tmr *m, u32 n, const u32 *off, const u32 *len);
struct op *sq_done(struct tqp *q, const struct tcqe *c);
/* connections */
struct c_state {
	struct opts o;
	u32 iss[2], sport[2];
	u32 mpa_req_len, lsmm_len;
	struct tqp *q[2];
	u8 lsmm[600];
	bool active_rts;
};
extern struct c_state C;
extern const struct opts defaults;
void sw_frame(int from, u8 flags, u32 seq, u32 ack, const u8 *data, u32 len);
void tcp_ctx(struct tqp *q, int side, u32 snd, u32 rcv);
#define RTS_FLAGS (1ull << 42 | 1ull << 43 | 1ull << 47 | 1ull << 59)
void conn_wqes(struct tqp *q);
void ilq_reply(int node, const u8 *f, u32 len);
bool saw(struct node *n, u16 code);
extern struct tmr *lsmm_mr;
void connect_qps(const struct opts *o);
void disconnect_free(void);
#define EV_FLAGS (1ull << 47 | 1ull << 59)
void close_orderly(int side);

/* test_engine.c, test_errors.c: cases */
enum { E_WR_UNALLOC, E_WR_KEY, E_WR_PD, E_WR_BOUNDS, E_WR_RIGHTS, E_WR_WRAP, E_WR_INVALID, E_RD_BOUNDS,
       E_RD_RIGHTS, E_RD_UNALLOC, E_NO_RECV, E_TOO_LONG, E_RECV_LKEY, E_INV_RIGHTS, E_INV_UNALLOC, E_LKEY,
       E_LKEY_RIGHTS, E_STAG0_USER, E_ORD0, E_IRD, E_OPCODE, E_CRC, E_FASTREG_USER, E_FASTREG_VALID,
       E_BIND_OFF, E_LINV_KEY, E_MAX };
void terminate_flow(int x, u16 code, u8 src);
void error_case(int k, unsigned seed);
void protocol_case(unsigned k);
void big_mr_case(void);
void simul_close_case(void);
void abort_case(void);
void stag_case(void);
void stag_error_case(unsigned k);
void misc_case(void);
void uda_case(unsigned seed);
void cq_case(void);
#endif
