// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Start-up frames byte for byte.  A table of frames composed by hand from the figures of
 * RFC 5044 section 7.1.1 and RFC 6581 sections 6 and 9 is compared with what the engine
 * writes, and given to its parser.  Then connections of every variant are made, and each frame
 * on the wire goes to a capture file, for golden.py to have it judged by tshark.
 *
 * usage: test_golden SEED ROUNDS [CAPTURE]
 */
#include "test.h"

enum { US = 0x0a000001, THEM = 0x0a000002, SCRIPT = 0x0a000063, PORT = 20886 };
enum { F = IRDMA_TCP_FIN, S = IRDMA_TCP_SYN, R = IRDMA_TCP_RST, A = IRDMA_TCP_ACK, P = IRDMA_TCP_PSH };
enum { MAX_FRAME = 20 + 512 };

/* --- frames by hand --- */

#define KEY_REQ		"4d504120494420526571204672616d65"	/* "MPA ID Req Frame" */
#define KEY_REP		"4d504120494420526570204672616d65"	/* "MPA ID Rep Frame" */

enum { NO_BUILD = 1, ENHANCED = 2, P2P = 4, NO_DEPTHS = 8, MARKERS = 16, READ = 32, WRITE = 64 };

static const struct golden {
	const char *what;
	const char *hex;		/* without the last @fill bytes, which are 0, 1, 2 ... */
	enum irdma_mpa_kind kind;
	u8 flags;			/* with NO_BUILD: only peers send it */
	u16 ird, ord;			/* of the sender */
	u16 fill;
	int result;			/* of the parser */
} goldens[] = {
	{ "v1 request", KEY_REQ "40010000", IRDMA_MPA_REQUEST },
	{ "v1 request, 3 bytes", KEY_REQ "40010003616263", IRDMA_MPA_REQUEST },
	{ "v1 request, 512 bytes", KEY_REQ "40010200", IRDMA_MPA_REQUEST, .fill = 512 },
	{ "v1 reply", KEY_REP "40010000", IRDMA_MPA_ACCEPT },
	{ "v1 reply, 1 byte", KEY_REP "40010001ff", IRDMA_MPA_ACCEPT },
	{ "v1 reject, 2 bytes", KEY_REP "600100026e6f", IRDMA_MPA_REJECT },
	{ "v2 request", KEY_REQ "500200048008c008", IRDMA_MPA_REQUEST, ENHANCED | P2P | READ | WRITE, 8, 8 },
	{ "v2 request, IRD 0, ORD 1, 1 byte", KEY_REQ "500200058000c0015a", IRDMA_MPA_REQUEST,
	  ENHANCED | P2P | READ | WRITE, 0, 1 },
	{ "v2 request, 508 bytes", KEY_REQ "500202008020c020", IRDMA_MPA_REQUEST,
	  ENHANCED | P2P | READ | WRITE, 32, 32, .fill = 508 },
	{ "v2 reply, read RTR", KEY_REP "5002000480204020", IRDMA_MPA_ACCEPT, ENHANCED | P2P | READ, 32, 32 },
	{ "v2 reply, write RTR, 4 bytes", KEY_REP "500200088001800001020304", IRDMA_MPA_ACCEPT,
	  ENHANCED | P2P | WRITE, 1, 0 },
	{ "v2 reply, depths left to the ULPs", KEY_REP "50020004bfff7fff", IRDMA_MPA_ACCEPT,
	  ENHANCED | P2P | READ | NO_DEPTHS },
	{ "v2 reject, 1 byte", KEY_REP "70020005800040006e", IRDMA_MPA_REJECT, ENHANCED | P2P | READ },
	{ "v2 request, client-server", KEY_REQ "5002000400040002", IRDMA_MPA_REQUEST, ENHANCED, 4, 2 },
	{ "v2 reply without the block", KEY_REP "4002000161", IRDMA_MPA_ACCEPT, NO_BUILD },
	{ "v1 request, no CRC", KEY_REQ "00010000", IRDMA_MPA_REQUEST, NO_BUILD },
	{ "v1 request, markers", KEY_REQ "c0010000", IRDMA_MPA_REQUEST, NO_BUILD | MARKERS },
	{ "v2 request, only a send RTR", KEY_REQ "50020004c0080008", IRDMA_MPA_REQUEST,
	  NO_BUILD | ENHANCED | P2P, .result = -EPROTO },
	{ "v2 reply, client-server", KEY_REP "5002000400040002", IRDMA_MPA_ACCEPT, NO_BUILD | ENHANCED,
	  .result = -EPROTO },
};

static u32 unhex(const struct golden *g, u8 *frame)
{
	u32 len = strlen(g->hex) / 2, i;

	for (i = 0; i < len; i++)
		SIM_CHECK(sscanf(g->hex + 2 * i, "%2hhx", &frame[i]) == 1, "%s: hex", g->what);
	for (i = 0; i < g->fill; i++)
		frame[len + i] = i;
	return len + g->fill;
}

static void golden_node(const struct golden *g, struct irdma_cm_node *node)
{
	static struct irdma_cm_core core = { .config = { .max_ird = 64, .max_ord = 64 } };

	memset(node, 0, sizeof(*node));
	node->core = &core;
	node->active = g->kind != IRDMA_MPA_REQUEST;
	node->mpa_rev = 2;
}

static void golden_build(const struct golden *g, const u8 *want, u32 want_len)
{
	static struct irdma_cm_node node;
	u8 frame[MAX_FRAME];
	u32 hdr_len, i;

	golden_node(g, &node);
	node.mpa_rev = want[17];
	node.ird = g->ird;
	node.ord = g->ord;
	node.rtr = (g->flags & READ ? IRDMA_CM_RTR_READ : 0) | (g->flags & WRITE ? IRDMA_CM_RTR_WRITE : 0);
	if (g->flags & ENHANCED)
		irdma_cm_set_flag(&node, IRDMA_CM_F_ENHANCED);
	if (g->flags & P2P)
		irdma_cm_set_flag(&node, IRDMA_CM_F_P2P);
	if (g->flags & NO_DEPTHS)
		irdma_cm_set_flag(&node, IRDMA_CM_F_NO_DEPTHS);
	hdr_len = g->flags & ENHANCED ? 24 : 20;
	node.tx_len = want_len - hdr_len;

	memset(frame, 0xee, sizeof(frame));
	SIM_CHECK(irdma_cm_build_mpa_frame(&node, frame, g->kind) == hdr_len, "%s: length of the header",
		  g->what);
	for (i = 0; i < hdr_len; i++)
		SIM_CHECK(frame[i] == want[i], "%s: byte %u is %02x, not %02x", g->what, i, frame[i],
			  want[i]);
}

static void golden_parse(const struct golden *g, const u8 *frame, u32 len)
{
	u32 hdr_len = g->flags & ENHANCED ? 24 : 20, n;
	u16 i = irdma_cm_get16(frame + 20) & 0x3fff, o = irdma_cm_get16(frame + 22) & 0x3fff;
	static struct irdma_cm_node node;
	enum irdma_mpa_kind kind;
	u8 exact[MAX_FRAME + 1];
	int ret;

	for (n = 0; n < len; n++) {
		golden_node(g, &node);
		ret = irdma_parse_mpa(&node, memcpy(exact, frame, n), n, &kind);
		SIM_CHECK(ret == -EAGAIN, "%s: the first %u bytes give %d", g->what, n, ret);
	}
	golden_node(g, &node);
	memcpy(exact, frame, len);
	ret = irdma_parse_mpa(&node, exact, len + 1, &kind);
	SIM_CHECK(ret == -EPROTO, "%s: a byte too many gives %d", g->what, ret);

	golden_node(g, &node);
	node.ird = 1;
	node.ord = 64;
	ret = irdma_parse_mpa(&node, frame, len, &kind);
	SIM_CHECK(ret == g->result, "%s: the parser says %d, not %d", g->what, ret, g->result);
	if (ret)
		return;
	SIM_CHECK(kind == g->kind && node.mpa_rev == frame[17], "%s: kind %d, revision %d", g->what, kind,
		  node.mpa_rev);
	SIM_CHECK(node.rx_data == hdr_len && node.rx_data_len == len - hdr_len, "%s: %u bytes at %u",
		  g->what, node.rx_data_len, node.rx_data);
	SIM_CHECK(irdma_cm_flag(&node, IRDMA_CM_F_MARKERS) == !!(g->flags & MARKERS), "%s: markers", g->what);
	if (kind == IRDMA_MPA_REJECT)
		return;
	SIM_CHECK(irdma_cm_flag(&node, IRDMA_CM_F_ENHANCED) == !!(g->flags & ENHANCED), "%s: S", g->what);
	if (!(g->flags & ENHANCED))
		return;
	SIM_CHECK(kind == IRDMA_MPA_ACCEPT || irdma_cm_flag(&node, IRDMA_CM_F_P2P) == !!(g->flags & P2P),
		  "%s: A", g->what);
	SIM_CHECK(node.rtr == (g->flags & READ ? IRDMA_CM_RTR_READ :
			       g->flags & WRITE ? IRDMA_CM_RTR_WRITE : 0), "%s: RTR %u", g->what, node.rtr);
	/* RFC 6581 section 9.1: neither side issues more reads than the other one takes. */
	if (kind == IRDMA_MPA_REQUEST)
		SIM_CHECK(node.peer_ird == i && node.peer_ord == o, "%s: the peer has IRD %u, ORD %u",
			  g->what, node.peer_ird, node.peer_ord);
	else if (!(g->flags & NO_DEPTHS))
		SIM_CHECK(node.ird == max(o, 1) && node.ord == i, "%s: IRD %u, ORD %u", g->what, node.ird,
			  node.ord);
	else
		SIM_CHECK(node.ird == 1 && node.ord == 64, "%s: IRD %u, ORD %u", g->what, node.ird,
			  node.ord);
}

static void test_golden_frames(void)
{
	const struct golden *g;
	u8 frame[MAX_FRAME + 4];
	u32 len;

	for (g = goldens; g < goldens + ARRAY_SIZE(goldens); g++) {
		test_begin(g->what);
		memset(frame, 0, sizeof(frame));
		len = unhex(g, frame);
		SIM_CHECK(irdma_cm_get16(frame + 18) == len - 20, "%s: PD_Length", g->what);
		if (!(g->flags & NO_BUILD))
			golden_build(g, frame, len);
		golden_parse(g, frame, len);
		test_passed();
	}
}

/* --- the capture: pcapng, each packet with the name of its variant as comment --- */

static FILE *capture;
static const char *variant;	/* NULL: nothing is written */

static void put_u32(u32 val)
{
	fwrite(&val, 4, 1, capture);
}

static void open_capture(const char *path)
{
	static const u32 head[] = {
		0x0a0d0d0a, 28, 0x1a2b3c4d, 1, ~0u, ~0u, 28,	/* section */
		1, 20, 1, 0, 20,				/* interface: Ethernet */
	};

	capture = fopen(path, "wb");
	SIM_CHECK(capture, "cannot write %s: %s", path, strerror(errno));
	fwrite(head, sizeof(head), 1, capture);
}

static void write_packet(const u8 *frame, u32 len)
{
	u32 text = strlen(variant), size = 28 + (len + 3) / 4 * 4 + 4 + (text + 3) / 4 * 4 + 4 + 4;
	u64 us = sim_now_ns / 1000;

	put_u32(6);
	put_u32(size);
	put_u32(0);
	put_u32(us >> 32);
	put_u32(us);
	put_u32(len);
	put_u32(len);
	fwrite(frame, len, 1, capture);
	fwrite("\0\0\0", -len & 3, 1, capture);
	put_u32(1 | text << 16);	/* comment */
	fwrite(variant, text, 1, capture);
	fwrite("\0\0\0", -text & 3, 1, capture);
	put_u32(0);
	put_u32(size);
}

static u32 add_words(u32 sum, const u8 *p, u32 len)
{
	for (; len > 1; p += 2, len -= 2)
		sum += irdma_cm_get16(p);
	return len ? sum + (*p << 8) : sum;
}

static u16 fold(u32 sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

/* What hardware does on transmit: RFC 791 section 3.1, RFC 9293 section 3.1. */
static void fill_checksums(u8 *ip, u32 len, bool ipv4)
{
	u32 hdr = ipv4 ? 20 : 40, addrs = ipv4 ? 8 : 32, sum;

	if (ipv4)
		irdma_cm_put16(ip + 10, fold(add_words(0, ip, hdr)));
	sum = add_words(IPPROTO_TCP + len - hdr, ip + hdr - addrs, addrs);
	irdma_cm_put16(ip + hdr + 16, fold(add_words(sum, ip + hdr, len - hdr)));
}

static u32 hw_ethernet(u8 *p, const u8 *ip, bool ipv4, u16 vlan)
{
	u32 n = 12;

	sim_mac(p, irdma_cm_get32(ip + (ipv4 ? 16 : 36)));
	sim_mac(p + 6, irdma_cm_get32(ip + (ipv4 ? 12 : 20)));
	if (vlan != IRDMA_CM_NO_VLAN) {
		irdma_cm_put16(p + n, ETH_P_8021Q);
		irdma_cm_put16(p + n + 2, vlan);
		n += 4;
	}
	irdma_cm_put16(p + n, ipv4 ? ETH_P_IP : ETH_P_IPV6);
	return n + 2;
}

/* The FPDUs that follow the start-up are made by hardware, here filler: the variant ends there. */
static void tap(const u8 *mac, u32 mac_len, const u8 *ip, u32 len, bool ipv4, u16 vlan)
{
	u32 tcp = ipv4 ? 20 : 40, data = tcp + (ip[tcp + 12] >> 4) * 4;
	u8 frame[18 + SIM_MAX_PACKET];

	if (len > data && ip[data] != 'M')
		variant = NULL;
	if (!variant || !capture)
		return;
	if (mac_len)
		memcpy(frame, mac, mac_len);
	else
		mac_len = hw_ethernet(frame, ip, ipv4, vlan);
	memcpy(frame + mac_len, ip, len);
	fill_checksums(frame + mac_len, len, ipv4);
	write_packet(frame, mac_len + len);
}

/* --- ULPs --- */

struct ulp {
	struct sim_host *host;
	struct sim_id *id, *request;
	struct sim_qp *qp;
	struct iw_cm_conn_param param;
	u16 port;
	u32 remote;
	bool ipv6, reject;
	u8 tos;
	int result;
	unsigned int replies;
};

static struct ulp client, server;
static u8 pattern[512];		/* private data; golden.py has the same */

static void on_event(struct sim_id *id, struct iw_cm_event *ev)
{
	struct ulp *u = id->arg;

	if (ev->event == IW_CM_EVENT_CONNECT_REQUEST)
		u->request = id;
	if (ev->event == IW_CM_EVENT_CONNECT_REQUEST || ev->event == IW_CM_EVENT_CONNECT_REPLY)
		SIM_CHECK(!ev->private_data_len || !memcmp(ev->private_data, pattern, ev->private_data_len),
			  "private data that the peer did not send");
	if (ev->event == IW_CM_EVENT_CONNECT_REPLY)
		u->replies++;
}

static struct sim_id *new_id(struct ulp *u)
{
	struct sim_id *id = sim_id_new(u->host, on_event, u);

	id->ipv6 = u->ipv6;
	id->id.tos = u->tos;
	id->id.tos_set = u->tos;
	return id;
}

static void do_listen(void *arg)
{
	struct ulp *u = arg;

	u->id = new_id(u);
	u->result = sim_listen(u->id, u->host->ip, PORT, 4);
}

static void do_connect(void *arg)
{
	struct ulp *u = arg;

	u->qp = sim_qp_new(u->host);
	u->id = new_id(u);
	u->result = sim_connect(u->id, u->qp, u->remote, u->port, PORT, &u->param);
}

static void do_answer(void *arg)
{
	struct ulp *u = arg;

	if (u->reject) {
		u->result = sim_reject(u->request, pattern, u->param.private_data_len);
		return;
	}
	u->qp = sim_qp_new(u->host);
	u->result = sim_accept(u->request, u->qp, &u->param);
}

static void do_cleanup(void *arg)
{
	struct ulp *u = arg;

	if (u->qp)
		sim_qp_destroy(u->qp);
	if (u->request)
		sim_id_destroy(u->request);
	if (u->id)
		sim_id_destroy(u->id);
}

static void run(void (*fn)(void *), struct ulp *u)
{
	sim_fiber(fn, u);
	sim_run_for(10 * MS);
	SIM_CHECK(!u->result, "the ULP got %d", u->result);
}

static void set_param(struct ulp *u, u32 ird, u32 ord, u16 len)
{
	u->param.ird = ird;
	u->param.ord = ord;
	u->param.private_data = pattern;
	u->param.private_data_len = len;
}

static void begin(const char *name)
{
	static u16 port = 30000;

	test_begin(name);
	variant = name;
	sim_wire = (struct sim_wire){ .delay_ns = 3 };	/* so little that nothing changes order */
	memset(&client, 0, sizeof(client));
	memset(&server, 0, sizeof(server));
	client.port = ++port;		/* so that each variant has a quad of its own */
}

static void end(struct ulp *u)
{
	variant = NULL;
	if (!u->host)
		return;
	sim_fiber(do_cleanup, u);
	sim_run_for(10 * MS);
	sim_settle(u->host);
	sim_host_free(u->host);
}

static void passed(void)
{
	SIM_CHECK(!sim_ids, "%d ids are left", sim_ids);
	test_passed();
}

/* --- two hosts --- */

enum { RAW = 1, V6 = 2, REJECT = 4 };

static const struct pair_case {
	const char *name;
	u8 flags, tos;
	u16 vlan;			/* 0: none */
	u32 ird, ord;			/* that connect asks for */
	u16 len;			/* private data of the request */
	u32 accept_ird, accept_ord;
	u16 accept_len;
} pairs[] = {
	{ "pair", 0, 0, 0, 8, 8, 0, 8, 8, 0 },
	{ "pair, 1 byte, depth 0 and 1", 0, 0, 0, 0, 1, 1, 1, 0, 1 },
	{ "pair, 508 bytes, depth 32", 0, 0, 0, 32, 32, 508, 32, 32, 508 },
	{ "pair, ORD 0", 0, 0, 0, 8, 0, 0, 0, 8, 0 },
	{ "pair, unequal depths", 0, 0, 0, 4, 20, 0, 6, 32, 0 },
	{ "pair, depths above the device's", 0, 0, 0, 0x3fff, 0x3fff, 0, 0x3fff, 0x3fff, 0 },
	{ "pair, reject", REJECT, 0, 0, 8, 8, 0, 0, 0, 0 },
	{ "pair, reject with 1 byte", REJECT, 0, 0, 8, 8, 1, 0, 0, 1 },
	{ "pair, reject with 255 bytes", REJECT, 0, 0, 8, 8, 508, 0, 0, 255 },
	{ "pair, raw", RAW, 0, 0, 8, 8, 508, 8, 8, 508 },
	{ "pair, raw with TOS", RAW, 0xb8, 0, 8, 8, 0, 8, 8, 0 },
	{ "pair, raw reject", RAW | REJECT, 0, 0, 8, 8, 0, 0, 0, 255 },
	{ "pair, VLAN", 0, 0, 100, 8, 8, 1, 8, 8, 1 },
	{ "pair, raw VLAN with priority", RAW, 0xb8, 4094, 8, 8, 1, 8, 8, 1 },
	{ "pair, IPv6", V6, 0, 0, 8, 8, 508, 8, 8, 508 },
	{ "pair, IPv6 reject", V6 | REJECT, 0, 0, 8, 8, 0, 0, 0, 1 },
	{ "pair, raw IPv6", RAW | V6, 0xb8, 0, 8, 8, 508, 8, 8, 508 },
	{ "pair, raw IPv6 VLAN reject", RAW | V6 | REJECT, 0x28, 5, 8, 8, 1, 0, 0, 255 },
};

static void test_pair(const struct pair_case *c)
{
	begin(c->name);
	client.host = sim_host_new(US, c->flags & RAW);
	server.host = sim_host_new(THEM, c->flags & RAW);
	if (c->vlan)
		client.host->vlan = server.host->vlan = c->vlan;
	client.ipv6 = server.ipv6 = c->flags & V6;
	client.tos = server.tos = c->tos;
	client.remote = THEM;
	server.reject = c->flags & REJECT;
	set_param(&client, c->ird, c->ord, c->len);
	set_param(&server, c->accept_ird, c->accept_ord, c->accept_len);
	run(do_listen, &server);
	run(do_connect, &client);
	SIM_CHECK(server.request, "%s: no request", c->name);
	run(do_answer, &server);
	SIM_CHECK(client.replies == 1 && client.id->status == (server.reject ? -ECONNREFUSED : 0),
		  "%s: %u replies, status %d", c->name, client.replies, client.id->status);
	SIM_CHECK(server.reject || server.request->state == ID_ESTABLISHED, "%s: not established", c->name);
	/* The hardware's own frames: the tag's priority goes there in the QP context. */
	SIM_CHECK(server.reject || !c->vlan || server.qp->tcp.vlan_tag == (c->tos >> 5 << 13 | c->vlan),
		  "%s: VLAN tag of the QP", c->name);
	end(&client);
	end(&server);
	passed();
}

/* --- a scripted peer --- */

static u32 peer_nxt, peer_ack;	/* what it sends next, what it acknowledges */
static u16 peer_port, our_port;
static u8 last_flags;
static u32 last_len;

static void sniff(const struct sim_packet *p)
{
	const u8 *tcp = p->data + (p->ipv4 ? 20 : 40);

	last_flags = tcp[13];
	last_len = p->len - (tcp - p->data) - (tcp[12] >> 4) * 4;
	peer_ack = irdma_cm_get32(tcp + 4) + last_len + !!(last_flags & S) + !!(last_flags & F);
}

static void peer_opts(u8 flags, const void *opts, u32 opt_len, const void *data, u32 len)
{
	u8 p[SIM_MAX_PACKET] = { 0 }, *t = p + 20;

	p[0] = 0x45;
	irdma_cm_put16(p + 2, 40 + opt_len + len);
	p[8] = 64;
	p[9] = IPPROTO_TCP;
	irdma_cm_put32(p + 12, SCRIPT);
	irdma_cm_put32(p + 16, US);
	irdma_cm_put16(t, peer_port);
	irdma_cm_put16(t + 2, our_port);
	irdma_cm_put32(t + 4, peer_nxt);
	irdma_cm_put32(t + 8, flags & A ? peer_ack : 0);
	t[12] = (20 + opt_len) / 4 << 4;
	t[13] = flags | (len ? P : 0);
	irdma_cm_put16(t + 14, flags & R ? 0 : 0x8000);
	memcpy(t + 20, opts, opt_len);
	memcpy(t + 20 + opt_len, data, len);
	peer_nxt += len + !!(flags & S) + !!(flags & F);
	sim_send(p, 40 + opt_len + len, true, IRDMA_CM_NO_VLAN);
	sim_run_for(MS);
}

static void peer(u8 flags, const void *data, u32 len)
{
	peer_opts(flags, "", 0, data, len);
}

static u32 mpa(u8 *p, bool reply, u8 flags, u8 rev, u16 ird, u16 ord, u32 len)
{
	u32 hdr = mpa_header(p, reply, flags, rev, ird, ord, len);

	memcpy(p + hdr, pattern, len);
	return hdr + len;
}

static const u8 peer_syn_opts[8] = { 2, 4, 5, 0xb4, 3, 3, 7, 0 };

/* Flags: RFC 5044 section 7.1.1, with S of RFC 6581 section 6; words: RFC 6581 section 9. */
struct script_case {
	const char *name;
	u8 flags, rev;
	u16 ird, ord;			/* the words */
	u16 len;
	enum { ACCEPTED, REJECTED, RESET, BY_RST, BY_FIN } then;
	u32 our_ird, our_ord;
	u16 our_len;
	bool bare_syn;
};

static const struct script_case requests[] = {
	{ "request v1", 0x40, 1, 0, 0, 0, ACCEPTED, 8, 8, 0 },
	{ "request v1, SYN without options", 0x40, 1, 0, 0, 0, ACCEPTED, 8, 8, 0, true },
	{ "request v1, 1 byte", 0x40, 1, 0, 0, 1, ACCEPTED, 8, 8, 1 },
	{ "request v1, 512 bytes", 0x40, 1, 0, 0, 512, ACCEPTED, 8, 8, 512 },
	{ "request v1, no CRC", 0x00, 1, 0, 0, 0, ACCEPTED, 8, 8, 0 },
	{ "request v1, markers", 0xc0, 1, 0, 0, 0, ACCEPTED, 8, 8, 0 },
	{ "request v1, reject", 0x40, 1, 0, 0, 1, REJECTED, 0, 0, 0 },
	{ "request v1, reject with 255 bytes", 0x40, 1, 0, 0, 1, REJECTED, 0, 0, 255 },
	{ "request v2, no block", 0x40, 2, 0, 0, 3, ACCEPTED, 8, 8, 3 },
	{ "request v2, no CRC", 0x10, 2, 0x8008, 0xc008, 0, ACCEPTED, 8, 8, 0 },
	{ "request v2, markers", 0xd0, 2, 0x8008, 0xc008, 0, ACCEPTED, 8, 8, 0 },
	{ "request v2, client-server", 0x50, 2, 4, 2, 1, ACCEPTED, 8, 8, 1 },
	{ "request v2, client-server reject", 0x50, 2, 4, 2, 1, REJECTED, 0, 0, 1 },
	{ "request v2, B", 0x50, 2, 0xc008, 0x0008, 0, RESET },
	{ "request v2, C", 0x50, 2, 0x8008, 0x8008, 0, ACCEPTED, 8, 8, 0 },
	{ "request v2, D", 0x50, 2, 0x8008, 0x4008, 0, ACCEPTED, 8, 8, 0 },
	{ "request v2, B and C", 0x50, 2, 0xc008, 0x8008, 0, ACCEPTED, 8, 8, 0 },
	{ "request v2, B, C and D", 0x50, 2, 0xc008, 0xc008, 508, ACCEPTED, 8, 8, 508 },
	{ "request v2, depth 0", 0x50, 2, 0x8000, 0x8000, 0, ACCEPTED, 0, 8, 0 },
	{ "request v2, depth 0, D", 0x50, 2, 0x8000, 0x4000, 0, ACCEPTED, 0, 8, 0 },
	{ "request v2, depth 1", 0x50, 2, 0x8001, 0xc001, 0, ACCEPTED, 1, 8, 0 },
	{ "request v2, depth 32", 0x50, 2, 0x8020, 0xc020, 0, ACCEPTED, 0, 64, 0 },
	{ "request v2, depth 0x3fff", 0x50, 2, 0xbfff, 0xffff, 0, ACCEPTED, 8, 8, 0 },
	{ "request v2, IRD 0x3ffe", 0x50, 2, 0xbffe, 0xc001, 0, ACCEPTED, 64, 0x3fff, 0 },
	{ "request v3", 0x40, 3, 0, 0, 0, RESET },
};

static void test_request(const struct script_case *c)
{
	u8 p[MAX_FRAME + 4];

	begin(c->name);
	server.host = sim_host_new(US, false);
	server.reject = c->then == REJECTED;
	set_param(&server, c->our_ird, c->our_ord, c->our_len);
	run(do_listen, &server);

	our_port = PORT;
	peer_port = client.port;
	peer_nxt = 0x1000;
	peer_opts(S, peer_syn_opts, c->bare_syn ? 0 : sizeof(peer_syn_opts), "", 0);
	SIM_CHECK(last_flags == (S | A), "%s: no SYN-ACK", c->name);
	peer(A, "", 0);
	peer(A, p, mpa(p, false, c->flags, c->rev, c->ird, c->ord, c->len));
	if (c->then == RESET) {
		SIM_CHECK(!server.request && last_flags & R, "%s: no RST", c->name);
		end(&server);
		passed();
		return;
	}
	SIM_CHECK(server.request, "%s: no request", c->name);
	run(do_answer, &server);
	SIM_CHECK(last_len, "%s: no reply", c->name);
	if (server.reject) {
		peer(A, "", 0);
		peer(F | A, "", 0);
	} else {
		peer(A, "", 0);
		SIM_CHECK(server.qp->tcp.snd_markers == !!(c->flags & 0x80) && server.qp->tcp.crc_required,
			  "%s: markers or CRC of the QP", c->name);
	}
	end(&server);
	passed();
}

/* RFC 9293 section 3.5.2: what acknowledges bytes that were never sent is reset. */
static void test_bad_ack(void)
{
	begin("ACK of what was not sent");
	server.host = sim_host_new(US, false);
	run(do_listen, &server);
	our_port = PORT;
	peer_port = client.port;
	peer_nxt = 0x1000;
	peer_opts(S, peer_syn_opts, sizeof(peer_syn_opts), "", 0);
	peer_ack += 76;
	peer(A, "", 0);
	SIM_CHECK(last_flags == R, "no RST");
	end(&server);
	passed();
}

static const struct script_case replies[] = {
	{ "reply v2, D", 0x50, 2, 0x8020, 0x4020, 508, ACCEPTED, 32, 32, 0 },
	{ "reply v2, C", 0x50, 2, 0x8000, 0x8000, 0, ACCEPTED, 0, 0, 1 },
	{ "reply v2, B", 0x50, 2, 0xc008, 0x0008, 0, RESET, 8, 8, 0 },
	{ "reply v2, client-server", 0x50, 2, 8, 0x4008, 0, RESET, 8, 8, 0 },
	{ "reply v2, depth 0x3fff", 0x50, 2, 0xbfff, 0x7fff, 1, ACCEPTED, 8, 8, 0 },
	{ "reply v2, too much ORD", 0x50, 2, 0x8008, 0x4041, 1, RESET, 8, 8, 0 },
	{ "reply v2, no CRC", 0x10, 2, 0x8008, 0x4008, 0, ACCEPTED, 8, 8, 0 },
	{ "reply v2, markers", 0xd0, 2, 0x8008, 0x4008, 0, ACCEPTED, 8, 8, 0 },
	{ "reply v2, reject", 0x70, 2, 0x8000, 0x4000, 1, REJECTED, 8, 8, 0 },
	{ "reply v1 to v2", 0x40, 1, 0, 0, 512, ACCEPTED, 8, 8, 0 },
	{ "reply v1 to v2, reject", 0x60, 1, 0, 0, 0, REJECTED, 8, 8, 0 },
	{ "refused by RST, then v1", 0x40, 1, 0, 0, 1, BY_RST, 8, 8, 508 },
	{ "refused by FIN, then v1", 0x40, 1, 0, 0, 0, BY_FIN, 8, 8, 0 },
	{ "refused by RST, v1 rejected", 0x60, 1, 0, 0, 0, BY_RST, 8, 8, 1 },
};

static void peer_accepts_syn(const char *name, u32 request_len)
{
	SIM_CHECK(last_flags == S, "%s: no SYN", name);
	peer_opts(S | A, peer_syn_opts, sizeof(peer_syn_opts), "", 0);
	SIM_CHECK(last_len == request_len, "%s: request of %u bytes", name, last_len);
}

static void test_reply(const struct script_case *c)
{
	bool rejected = c->flags & 0x20;
	u8 p[MAX_FRAME + 4];

	begin(c->name);
	client.host = sim_host_new(US, false);
	client.remote = SCRIPT;
	set_param(&client, c->our_ird, c->our_ord, c->our_len);
	peer_port = PORT;
	our_port = client.port;
	peer_nxt = 0x1000;
	run(do_connect, &client);
	peer_accepts_syn(c->name, 24 + c->our_len);
	if (c->then == BY_RST || c->then == BY_FIN) {
		peer((c->then == BY_RST ? R : F) | A, "", 0);
		peer_nxt = 0x99000;
		peer_accepts_syn(c->name, 20 + c->our_len);
	}
	peer(A, p, mpa(p, true, c->flags, c->rev, c->ird, c->ord, c->len));
	if (rejected) {
		SIM_CHECK(client.replies == 1 && client.id->status == -ECONNREFUSED, "%s: status %d",
			  c->name, client.id->status);
		SIM_CHECK(last_flags & F, "%s: no FIN", c->name);
		peer(F | A, "", 0);
	} else if (c->then == RESET) {
		SIM_CHECK(client.replies == 1 && client.id->status == -EPROTO, "%s: status %d", c->name,
			  client.id->status);
	} else {
		SIM_CHECK(client.qp->stream, "%s: the QP was not started", c->name);
		SIM_CHECK(client.qp->tcp.snd_markers == !!(c->flags & 0x80) && client.qp->tcp.crc_required,
			  "%s: markers or CRC of the QP", c->name);
	}
	end(&client);
	passed();
}

int main(int argc, char **argv)
{
	u64 seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	unsigned int i;

	for (i = 0; i < sizeof(pattern); i++)
		pattern[i] = i * 7 + 1;
	if (argc > 3)
		open_capture(argv[3]);
	sim_srandom(seed);
	sim_tap = tap;
	sim_sniffer = sniff;
	test_golden_frames();
	for (i = 0; i < ARRAY_SIZE(pairs); i++)
		test_pair(&pairs[i]);
	for (i = 0; i < ARRAY_SIZE(requests); i++)
		test_request(&requests[i]);
	test_bad_ack();
	for (i = 0; i < ARRAY_SIZE(replies); i++)
		test_reply(&replies[i]);
	if (capture)
		SIM_CHECK(!fclose(capture), "the capture cannot be written");
	return test_summary();
}
