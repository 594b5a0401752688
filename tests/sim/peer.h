/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A scripted peer against one host with a ULP that notes what it is told: frames byte by byte,
 * and what came back.  Each test program that includes this has its own.
 */
#ifndef SIM_PEER_H
#define SIM_PEER_H

#include "test.h"

enum { US = 0x0a000001, PEER = 0x0a000063, PORT = 7000, PEER_PORT = 40000, PEER_ISS = 5000 };
enum { F = IRDMA_TCP_FIN, S = IRDMA_TCP_SYN, R = IRDMA_TCP_RST, A = IRDMA_TCP_ACK,
       P = IRDMA_TCP_PSH };

struct seen {		/* a segment that the peer received */
	u32 seq, ack;
	u8 flags;
	u16 wnd;
	u8 opts[40];
	u32 opt_len;
	u8 data[600];
	u32 len;
};

static struct sim_host *host;
static struct sim_id *listener, *request, *active;
static struct sim_qp *qp;
static struct iw_cm_event event;	/* the last one */
static u8 event_pdata[256];
static unsigned int requests, replies, closes;
static int disconnect_status;
static struct seen seen[64];
static unsigned int num_seen;
static u32 our_iss;
static bool ipv6;
static u8 peer_tos;

/* --- the peer --- */

static inline void sniff(const struct sim_packet *p)
{
	const u8 *tcp = p->data + (p->ipv4 ? 20 : 40);
	u32 len = p->len - (p->ipv4 ? 20 : 40), hdr = (tcp[12] >> 4) * 4;
	struct seen *s = &seen[num_seen++ % ARRAY_SIZE(seen)];

	s->seq = irdma_cm_get32(tcp + 4);
	s->ack = irdma_cm_get32(tcp + 8);
	s->flags = tcp[13];
	s->wnd = irdma_cm_get16(tcp + 14);
	s->opt_len = hdr - 20;
	memcpy(s->opts, tcp + 20, s->opt_len);
	s->len = len - hdr;
	memcpy(s->data, tcp + hdr, s->len);
}

static inline struct seen *last(void)
{
	SIM_CHECK(num_seen, "nothing was sent");
	return &seen[(num_seen - 1) % ARRAY_SIZE(seen)];
}

static inline void put_ip(u8 *p, u32 tcp_len)
{
	if (!ipv6) {
		p[0] = 0x45;
		p[1] = peer_tos;
		irdma_cm_put16(p + 2, 20 + tcp_len);
		p[8] = 64;
		p[9] = IPPROTO_TCP;
		irdma_cm_put32(p + 12, PEER);
		irdma_cm_put32(p + 16, US);
		return;
	}
	p[0] = 0x60;
	irdma_cm_put16(p + 4, tcp_len);
	p[6] = IPPROTO_TCP;
	p[7] = 64;
	irdma_cm_put32(p + 8, 0xfd000000);
	irdma_cm_put32(p + 20, PEER);
	irdma_cm_put32(p + 24, 0xfd000000);
	irdma_cm_put32(p + 36, US);
}

static inline void peer_raw(u16 sport, u16 dport, u32 seq, u32 ack, u8 flags, const u8 *opts,
			    u32 opt_len, const void *data, u32 len)
{
	u8 p[SIM_MAX_PACKET] = { 0 };
	u32 hdr = ipv6 ? 40 : 20;
	u8 *t = p + hdr;

	put_ip(p, 20 + opt_len + len);
	irdma_cm_put16(t, sport);
	irdma_cm_put16(t + 2, dport);
	irdma_cm_put32(t + 4, seq);
	irdma_cm_put32(t + 8, ack);
	t[12] = (20 + opt_len) / 4 << 4;
	t[13] = flags;
	irdma_cm_put16(t + 14, 0x8000);
	if (opt_len)
		memcpy(t + 20, opts, opt_len);
	if (len)
		memcpy(t + 20 + opt_len, data, len);
	sim_send(p, hdr + 20 + opt_len + len, !ipv6, IRDMA_CM_NO_VLAN);
	sim_run_for(MS);
}

static inline void peer(u32 seq, u32 ack, u8 flags, const void *data, u32 len)
{
	peer_raw(PEER_PORT, active ? 30000 : PORT, seq, ack, flags, NULL, 0, data, len);
}

/* --- the host's ULP --- */

static inline void on_event(struct sim_id *id, struct iw_cm_event *ev)
{
	event = *ev;
	memcpy(event_pdata, ev->private_data, ev->private_data_len);
	switch (ev->event) {
	case IW_CM_EVENT_CONNECT_REQUEST:
		requests++;
		request = id;
		break;
	case IW_CM_EVENT_CONNECT_REPLY:
		replies++;
		break;
	case IW_CM_EVENT_DISCONNECT:
		SIM_CHECK(!closes, "DISCONNECT after CLOSE");
		disconnect_status = ev->status;
		break;
	case IW_CM_EVENT_CLOSE:
		closes++;
		break;
	default:
		break;
	}
}

static struct iw_cm_conn_param conn_param;
static int op_result;

static inline void do_listen(void *arg)
{
	listener = sim_id_new(host, on_event, NULL);
	op_result = sim_listen(listener, *(u32 *)arg, PORT, 2);
}

static inline void do_accept(void *arg)
{
	(void)arg;
	qp = sim_qp_new(host);
	op_result = sim_accept(request, qp, &conn_param);
}

static inline void do_reject(void *arg)
{
	(void)arg;
	op_result = sim_reject(request, "no", 2);
}

static inline void do_connect(void *arg)
{
	(void)arg;
	qp = sim_qp_new(host);
	active = sim_id_new(host, on_event, NULL);
	op_result = sim_connect(active, qp, PEER, 30000, PEER_PORT, &conn_param);
}

static inline void do_destroy_qp(void *arg)
{
	struct sim_qp *q = qp;

	(void)arg;
	qp = NULL;
	sim_qp_destroy(q);
}

static inline void do_cleanup(void *arg)
{
	(void)arg;
	if (qp)
		sim_qp_destroy(qp);
	if (request)
		sim_id_destroy(request);
	if (active)
		sim_id_destroy(active);
	if (listener)
		sim_id_destroy(listener);
	qp = NULL;
	request = active = listener = NULL;
}

static inline void down(void *arg)
{
	(void)arg;
	struct irdma_cm_laddr a = { .ip = { US }, .vlan = IRDMA_CM_NO_VLAN, .ipv4 = 1 };

	irdma_if_notify(host->core, &a, false);
}

static inline void run(void (*fn)(void *), void *arg)
{
	sim_fiber(fn, arg);
	sim_run_for(10 * MS);
}

static inline void begin(bool listening)
{
	u32 any = 0;

	sim_wire = (struct sim_wire){ .delay_ns = 1000 };
	sim_sniffer = sniff;
	num_seen = requests = replies = closes = 0;
	op_result = 1;
	memset(&event, 0, sizeof(event));
	memset(&conn_param, 0, sizeof(conn_param));
	conn_param.ird = conn_param.ord = 8;
	host = sim_host_new(US, false);
	if (listening)
		run(do_listen, &any);
}

static inline void end(void)
{
	run(do_cleanup, NULL);
	sim_settle(host);
	SIM_CHECK(!sim_ids, "%d ids are left", sim_ids);
	sim_host_free(host);
	ipv6 = false;
}

static inline void expect(u8 flags, u32 seq, u32 ack)
{
	struct seen *s = last();

	SIM_CHECK(s->flags == flags, "flags %02x, not %02x", s->flags, flags);
	SIM_CHECK(!seq || s->seq == seq, "sequence number %u, not %u", s->seq, seq);
	SIM_CHECK(!ack || s->ack == ack, "acknowledges %u, not %u", s->ack, ack);
}

#define NONE_SENT(what) do { unsigned int n_ = num_seen; what; \
	SIM_CHECK(num_seen == n_, "answered, but must not"); } while (0)
#define DROPS(reason, what) do { u64 d_ = sim_drops(host, IRDMA_CM_DROP_##reason); what; \
	SIM_CHECK(sim_drops(host, IRDMA_CM_DROP_##reason) == d_ + 1, "not counted as " #reason); \
	} while (0)

static const u8 syn_opts[8] = { 2, 4, 5, 0xb4, 3, 3, 7, 0 };

static inline void handshake(void)
{
	peer_raw(PEER_PORT, PORT, PEER_ISS, 0, S, syn_opts, 8, NULL, 0);
	expect(S | A, 0, PEER_ISS + 1);
	our_iss = last()->seq;
	peer(PEER_ISS + 1, our_iss + 1, A, NULL, 0);
}

static inline u32 mpa(u8 *p, bool reply, u8 flags, u8 rev, u16 ird, u16 ord, u32 n)
{
	u32 i, hdr = mpa_header(p, reply, flags, rev, ird, ord, n);

	for (i = 0; i < n; i++)
		p[hdr + i] = i + 1;
	return hdr + n;
}

static inline u32 normal_request(u8 *p)
{
	return mpa(p, false, 0x50, 2, 0x8000 | 4, 0xc000 | 2, 3);
}

static inline void to_request(void)
{
	u8 p[600];
	u32 n = normal_request(p);

	handshake();
	NONE_SENT(peer(PEER_ISS + 1, our_iss + 1, A, p, n));
	SIM_CHECK(requests == 1, "%u requests", requests);
	/* A reply could have carried the ACK. */
	sim_run_for(24 * MS);
	expect(A, our_iss + 1, PEER_ISS + 1 + n);
}

enum { REQ_LEN = 27 };

/* --- the host connects --- */

static inline void to_syn_sent(void)
{
	begin(false);
	run(do_connect, NULL);
	SIM_CHECK(!op_result, "connect returns %d", op_result);
	expect(S, 0, 0);
	our_iss = last()->seq;
}

static inline void to_mpareq_sent(void)
{
	to_syn_sent();
	peer_raw(PEER_PORT, 30000, PEER_ISS, our_iss + 1, S | A, syn_opts, 8, NULL, 0);
	expect(P | A, our_iss + 1, PEER_ISS + 1);
	SIM_CHECK(last()->len == 24 && !memcmp(last()->data, "MPA ID Req Frame", 16) &&
		  last()->data[16] == 0x50 && last()->data[17] == 2 &&
		  irdma_cm_get16(last()->data + 20) == (0x8000 | 8) &&
		  irdma_cm_get16(last()->data + 22) == (0xc000 | 8), "MPA request");
}

static inline void expect_status(int status)
{
	SIM_CHECK(replies == 1 && event.status == status, "%u replies, status %d", replies,
		  event.status);
}

#endif
