// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A scripted peer against one host: frames byte by byte, and what must come back.  First what a
 * peer must not be able to do (spec 03, 9.1 and section 10), then what RFC 9293, RFC 5961,
 * RFC 5044 and RFC 6581 demand.
 */
#include "peer.h"

/* --- frames that no one should send --- */

static void test_option_length_zero(void)
{
	static const u8 bad[][4] = {
		{ 3, 0, 7, 0 }, { 8, 0, 0, 0 }, { 2, 0, 5, 0xb4 }, { 254, 0, 0, 0 }, { 3, 1, 7, 0 },
		{ 8, 10, 0, 0 }, { 2, 3, 5, 0 }, { 1, 1, 1, 5 }, { 3, 4, 1, 1 },
	};
	u32 i;

	begin(true);
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		NONE_SENT(DROPS(TCP_OPT, peer_raw(PEER_PORT, PORT, PEER_ISS, 0, S, bad[i], 4, NULL,
						  0)));
	to_request();
	NONE_SENT(DROPS(TCP_OPT, peer_raw(PEER_PORT, PORT, PEER_ISS + 1 + REQ_LEN, our_iss + 1, A,
					  bad[0], 4, NULL, 0)));
	end();
}

static void send_broken(const u8 *p, u32 len)
{
	sim_send(p, len, true, IRDMA_CM_NO_VLAN);
	sim_run_for(MS);
}

static void test_lengths(void)
{
	u8 p[64] = { 0 };
	u32 off;

	begin(true);
	put_ip(p, 20);
	irdma_cm_put16(p + 22, PORT);
	p[33] = S;
	for (off = 0; off < 16; off++)
		if (off != 5) {
			p[32] = off << 4;
			NONE_SENT(DROPS(TCP_OFF, send_broken(p, 40)));
		}
	p[32] = 5 << 4;
	irdma_cm_put16(p + 2, 41);		/* longer than the frame */
	NONE_SENT(DROPS(IP, send_broken(p, 40)));
	irdma_cm_put16(p + 2, 19);
	NONE_SENT(DROPS(IP, send_broken(p, 40)));
	irdma_cm_put16(p + 2, 39);		/* no room for TCP */
	NONE_SENT(DROPS(SHORT, send_broken(p, 40)));
	irdma_cm_put16(p + 2, 40);
	NONE_SENT(DROPS(SHORT, send_broken(p, 39)));
	p[0] = 0x46;				/* IP options */
	NONE_SENT(DROPS(IP, send_broken(p, 44)));
	p[0] = 0x45;
	p[6] = 0x20;				/* fragment */
	NONE_SENT(DROPS(IP, send_broken(p, 40)));
	p[6] = 0;
	p[7] = 1;
	NONE_SENT(DROPS(IP, send_broken(p, 40)));
	end();
}

static void test_ipv6_extension(void)
{
	u8 p[100] = { 0 };

	begin(true);
	ipv6 = true;
	put_ip(p, 28);
	p[6] = 0;				/* hop-by-hop options first */
	sim_send(p, 68, false, IRDMA_CM_NO_VLAN);
	DROPS(IP, sim_run_for(MS));
	end();
}

static void test_syn_ack_kills_nobody(void)
{
	begin(true);
	to_request();
	peer(PEER_ISS + 1 + REQ_LEN, our_iss + 1, S | A, NULL, 0);
	expect(A, our_iss + 1, PEER_ISS + 1 + REQ_LEN);	/* challenge */
	peer(PEER_ISS + 1 + REQ_LEN, 0, S, NULL, 0);
	expect(A, our_iss + 1, PEER_ISS + 1 + REQ_LEN);
	run(do_reject, NULL);
	SIM_CHECK(!op_result, "reject returns %d", op_result);
	end();
}

static void test_rst_in_window(void)
{
	u32 nxt = PEER_ISS + 1 + REQ_LEN;

	begin(true);
	to_request();
	NONE_SENT(DROPS(RST, peer(nxt - 1, 0, R, NULL, 0)));
	NONE_SENT(DROPS(RST, peer(nxt + 0x100000, 0, R, NULL, 0)));
	DROPS(RST, peer(nxt + 1, 0, R, NULL, 0));
	expect(A, our_iss + 1, nxt);		/* challenge, RFC 5961 3.2 */
	run(do_accept, NULL);
	SIM_CHECK(last()->len, "no reply was sent");
	end();
}

/* RFC 9293 section 3.10.7.4: what the peer has reset is not answered, by an ACK that was due either. */
static void test_rst_before_the_ack(void)
{
	u8 p[600];
	u32 n;

	begin(true);
	handshake();
	n = normal_request(p);
	peer(PEER_ISS + 1, our_iss + 1, A, p, n);
	peer(PEER_ISS + 1 + n, 0, R, NULL, 0);
	NONE_SENT(sim_run_for(24 * MS));
	end();
}

/* C12 */
static void test_rst_before_accept(void)
{
	begin(true);
	to_request();
	peer(PEER_ISS + 1 + REQ_LEN, 0, R, NULL, 0);
	run(do_accept, NULL);
	SIM_CHECK(op_result == -ECONNRESET, "accept returns %d", op_result);
	end();
}

/* C12 */
static void test_fin_before_accept(void)
{
	begin(true);
	to_request();
	peer(PEER_ISS + 1 + REQ_LEN, our_iss + 1, F | A, NULL, 0);
	expect(A, our_iss + 1, PEER_ISS + 2 + REQ_LEN);
	run(do_accept, NULL);
	SIM_CHECK(op_result == -ECONNRESET, "accept returns %d", op_result);
	end();
}

static void test_silent_clients(void)
{
	u16 port;

	begin(true);
	for (port = 50000; port < 50100; port++) {
		peer_raw(port, PORT, 1, 0, S, syn_opts, 8, NULL, 0);
		if (last()->flags == (S | A))
			peer_raw(port, PORT, 2, last()->seq + 1, A, NULL, 0, NULL, 0);
	}
	SIM_CHECK(sim_drops(host, IRDMA_CM_DROP_BACKLOG), "the backlog has no limit");
	NONE_SENT(peer_raw(PEER_PORT, PORT, PEER_ISS, 0, S, syn_opts, 8, NULL, 0));
	sim_run_for(11 * SEC);
	num_seen = 0;
	to_request();				/* a good client is served now */
	end();
}

static void test_half_open_flood(void)
{
	unsigned int port;

	begin(true);
	for (port = 1024; port < 5024; port++)
		peer_raw(port, PORT, port, 0, S, syn_opts, 8, NULL, 0);
	SIM_CHECK(atomic_read(&host->core->num_nodes) < 40, "%d connections from a flood",
		  atomic_read(&host->core->num_nodes));
	sim_run_for(70 * SEC);
	SIM_CHECK(!atomic_read(&host->core->num_nodes), "half-open connections stay");
	num_seen = 0;
	to_request();
	end();
}

static void test_address_goes(void)
{
	begin(true);
	to_request();
	run(down, NULL);
	expect(R | A, our_iss + 1, 0);
	NONE_SENT(peer_raw(50001, PORT, 1, 0, S, syn_opts, 8, NULL, 0); num_seen -= 1);
	run(do_accept, NULL);
	SIM_CHECK(op_result == -ECONNRESET, "accept returns %d", op_result);
	end();
}

static void test_listener_goes(void)
{
	struct sim_id *l;

	begin(true);
	to_request();
	l = listener;
	listener = NULL;
	run((void (*)(void *))sim_id_destroy, l);
	run(do_accept, NULL);			/* the ULP has the request: it may go on */
	SIM_CHECK(last()->len, "no reply was sent");
	end();
}

/* C08: nobody accepts or rejects what iw_cm threw away. */
static void test_lost_request(void)
{
	struct sim_id *l;

	begin(true);
	l = listener;
	handshake();
	l->drop_events = true;			/* iw_cm throws the request away */
	{
		u8 p[600];
		u32 n = normal_request(p);

		peer(PEER_ISS + 1, our_iss + 1, A, p, n);
	}
	l->drop_events = false;
	listener = NULL;
	run((void (*)(void *))sim_id_destroy, l);
	SIM_CHECK(!requests && atomic_read(&host->core->num_nodes) == 1, "request is gone");
	sim_run_for(62 * SEC);
	SIM_CHECK(!atomic_read(&host->core->num_nodes), "nobody reclaims the request");
	expect(R | A, our_iss + 1, 0);
	end();
}

/* --- TCP --- */

static void test_syn_options(void)
{
	static const u8 mss_only[4] = { 2, 4, 0, 100 };

	begin(true);
	handshake();
	SIM_CHECK(last()->flags == (S | A) && last()->opt_len == 8, "options of the SYN-ACK");
	SIM_CHECK(!memcmp(last()->opts, "\2\4\5\264\3\3\2", 7), "MSS 1460, scale 2");
	SIM_CHECK(last()->wnd == 0xffff, "window");
	peer_raw(50001, PORT, 1, 0, S, mss_only, 4, NULL, 0);
	SIM_CHECK(last()->opt_len == 4, "scaling offered although the SYN did not");
	SIM_CHECK(irdma_cm_get16(last()->opts + 2) == 536, "MSS 100 is clamped to 536");
	peer_raw(50002, PORT, 1, 0, S, NULL, 0, NULL, 0);
	SIM_CHECK(irdma_cm_get16(last()->opts + 2) == 536, "MSS without the option is 536");
	end();
}

static void test_syn_retransmission(void)
{
	u64 t0;
	u32 first;

	begin(true);
	peer_raw(PEER_PORT, PORT, PEER_ISS, 0, S, syn_opts, 8, NULL, 0);
	first = last()->seq;
	SIM_CHECK(num_seen == 1, "%u SYN-ACKs", num_seen);
	peer_raw(PEER_PORT, PORT, PEER_ISS, 0, S, syn_opts, 8, NULL, 0);
	SIM_CHECK(num_seen == 2 && last()->seq == first, "a repeated SYN is not answered");
	t0 = sim_now_ns;
	sim_run_for(40 * SEC);			/* 1, 3, 7, 15, 31 s, then RST */
	(void)t0;
	SIM_CHECK(num_seen == 7 || num_seen == 8, "%u segments", num_seen);
	sim_run_for(30 * SEC);
	expect(R | A, first + 1, PEER_ISS + 1);
	SIM_CHECK(!atomic_read(&host->core->num_nodes), "the connection stays");
	end();
}

static void test_bytewise(bool reorder)
{
	u8 p[600];
	u32 n = normal_request(p), i;

	begin(true);
	handshake();
	for (i = 0; i < n; i++) {
		if (reorder && i + 1 < n)	/* the next byte first, and this one twice */
			peer(PEER_ISS + 2 + i, our_iss + 1, A, p + i + 1, 1);
		peer(PEER_ISS + 1 + i, our_iss + 1, A, p + i, 1);
		if (reorder)
			peer(PEER_ISS + 1 + i, our_iss + 1, A, p + i, 1);
	}
	SIM_CHECK(requests == 1 && event.private_data_len == 3 && !memcmp(event_pdata, "\1\2\3", 3),
		  "%u requests with %u bytes", requests, event.private_data_len);
	end();
}

/* C11 */
static void test_one_byte_segments(void)
{
	test_bytewise(false);
}

/* C11 */
static void test_reordered_segments(void)
{
	test_bytewise(true);
}

/* C11 */
static void test_overlapping_segments(void)
{
	u8 p[600];
	u32 n = normal_request(p);

	begin(true);
	handshake();
	peer(PEER_ISS + 1, our_iss + 1, A, p, 10);
	peer(PEER_ISS + 6, our_iss + 1, A, p + 5, 12);
	peer(PEER_ISS + 1, our_iss + 1, A, p, n);
	SIM_CHECK(requests == 1 && event.private_data_len == 3 && !memcmp(event_pdata, "\1\2\3", 3),
		  "%u requests with %u bytes", requests, event.private_data_len);
	end();
}

static void test_request_with_handshake_ack(void)
{
	u8 p[600];
	u32 n = normal_request(p);

	begin(true);
	peer_raw(PEER_PORT, PORT, PEER_ISS, 0, S, syn_opts, 8, NULL, 0);
	our_iss = last()->seq;
	peer(PEER_ISS + 1, our_iss + 1, A, p, n);
	SIM_CHECK(requests == 1, "%u requests", requests);
	end();
}

static void test_bad_ack_in_syn_rcvd(void)
{
	begin(true);
	peer_raw(PEER_PORT, PORT, PEER_ISS, 0, S, syn_opts, 8, NULL, 0);
	our_iss = last()->seq;
	DROPS(ACK, peer(PEER_ISS + 1, our_iss + 77, A, NULL, 0));
	expect(R, our_iss + 77, 0);		/* RFC 9293 3.10.7.4 */
	peer(PEER_ISS + 1, our_iss + 1, A, NULL, 0);
	DROPS(ACK, peer(PEER_ISS + 1, our_iss + 2, A, NULL, 0));
	expect(A, our_iss + 1, PEER_ISS + 1);	/* challenge, RFC 5961 5.2 */
	end();
}

/* C13 */
static void test_reject_and_close(void)
{
	u32 nxt = PEER_ISS + 1 + REQ_LEN, fin;

	begin(true);
	to_request();
	run(do_reject, NULL);
	expect(F | P | A, our_iss + 1, nxt);
	SIM_CHECK(last()->len == 26 && last()->data[16] == 0x70 && last()->data[25] == 'o',
		  "rejecting reply of %u bytes", last()->len);
	fin = our_iss + 1 + 26;
	peer(nxt, fin, A, NULL, 0);		/* all but the FIN */
	sim_run_for(1100 * MS);
	expect(F | P | A, our_iss + 1, nxt);	/* comes again */
	peer(nxt, fin + 1, A, NULL, 0);		/* FIN_WAIT2 */
	peer(nxt, fin + 1, F | A, NULL, 0);	/* TIME_WAIT */
	expect(A, fin + 1, nxt + 1);
	num_seen = 0;
	peer(nxt, fin + 1, F | A, NULL, 0);
	expect(A, fin + 1, nxt + 1);
	SIM_CHECK(atomic_read(&host->core->num_nodes) == 1, "no TIME_WAIT");
	run((void (*)(void *))sim_id_destroy, request);
	request = NULL;
	peer_raw(PEER_PORT, PORT, nxt + 100, 0, S, syn_opts, 8, NULL, 0);
	expect(S | A, 0, nxt + 101);		/* a new connection takes over */
	SIM_CHECK(irdma_seq_lt(fin, last()->seq), "its sequence numbers begin below the old ones");
	end();
}

static void test_simultaneous_close(void)
{
	u32 nxt = PEER_ISS + 1 + REQ_LEN, fin;

	begin(true);
	to_request();
	run(do_reject, NULL);
	fin = our_iss + 1 + 26;
	peer(nxt, our_iss + 1, F | A, NULL, 0);	/* does not acknowledge ours: CLOSING */
	expect(A, fin + 1, nxt + 1);
	SIM_CHECK(!atomic_read(&host->core->time_wait), "TIME_WAIT before our FIN was acknowledged");
	sim_run_for(1100 * MS);
	expect(F | P | A, our_iss + 1, nxt + 1);
	peer(nxt + 1, fin + 1, A, NULL, 0);
	SIM_CHECK(atomic_read(&host->core->num_nodes) == 1, "no TIME_WAIT");
	sim_run_for(61 * SEC);
	SIM_CHECK(!atomic_read(&host->core->num_nodes), "TIME_WAIT does not end");
	end();
}

/* --- MPA, passive --- */

struct mpa_case {
	const char *what;
	u8 flags, rev;
	u16 ird, ord;
	u32 len;		/* private data */
	bool ok;
	u8 ev_ird, ev_ord;
	u32 ev_len;
	u16 rep_ird, rep_ord;	/* words of the reply to accept(8, 8) */
};

static const struct mpa_case mpa_cases[] = {
	{ "read RTR", 0x50, 2, 0x8000 | 4, 0xc000 | 2, 3, true, 4, 2, 3, 0x8000 | 8, 0x4000 | 4 },
	{ "write RTR", 0x50, 2, 0x8000 | 4, 0x8000 | 2, 0, true, 4, 2, 0, 0x8000 | 8, 0x8000 | 4 },
	{ "only send RTR", 0x50, 2, 0xc000 | 4, 2, 0, false },
	{ "client-server", 0x50, 2, 4, 2, 0, true, 4, 2, 0, 8, 4 },
	{ "raised IRD", 0x50, 2, 0x8000 | 4, 0x4000 | 20, 0, true, 4, 20, 0, 0x8000 | 20, 0x4000 | 4 },
	{ "ORD above all", 0x50, 2, 0x8000 | 500, 0x4000 | 500, 0, true, 64, 64, 0, 0x8000 | 64,
	  0x4000 | 8 },
	{ "no depths", 0x50, 2, 0xbfff, 0x4000 | 0x3fff, 0, true, 64, 64, 0, 0xbfff, 0x7fff },
	{ "no IRD", 0x50, 2, 0x8000, 0x4000, 0, true, 0, 0, 0, 0x8000 | 8, 0x4000 },
	{ "v1", 0x40, 1, 0, 0, 5, true, 64, 64, 5, 0, 0 },
	{ "v2 without block", 0x40, 2, 0, 0, 5, true, 64, 64, 5, 0, 0 },
	{ "revision 0", 0x40, 0, 0, 0, 0, false },
	{ "revision 3", 0x50, 3, 0, 0, 0, false },
	{ "255 bytes", 0x50, 2, 0x8000 | 4, 0xc000 | 2, 255, true, 4, 2, 255, 0x8000 | 8, 0x4000 | 4 },
	{ "508 bytes", 0x50, 2, 0x8000 | 4, 0xc000 | 2, 508, true, 4, 2, 255, 0x8000 | 8, 0x4000 | 4 },
	{ "509 bytes", 0x50, 2, 0x8000 | 4, 0xc000 | 2, 509, false },
	{ "513 bytes v1", 0x40, 1, 0, 0, 513, false },
	{ "reject flag", 0x70, 2, 0x8000 | 4, 0xc000 | 2, 1, true, 4, 2, 1, 0x8000 | 8, 0x4000 | 4 },
};

static void check_reply(const struct mpa_case *c)
{
	const u8 *p = last()->data;
	bool block = c->rev == 2 && c->flags & 0x10;

	SIM_CHECK(last()->len == (block ? 24 : 20), "%s: reply of %u bytes", c->what, last()->len);
	SIM_CHECK(!memcmp(p, "MPA ID Rep Frame", 16) && p[16] == (block ? 0x50 : 0x40) &&
		  p[17] == c->rev, "%s: header of the reply", c->what);
	if (block)
		SIM_CHECK(irdma_cm_get16(p + 20) == c->rep_ird && irdma_cm_get16(p + 22) == c->rep_ord,
			  "%s: reply says %04x %04x", c->what, irdma_cm_get16(p + 20),
			  irdma_cm_get16(p + 22));
}

/* C10, C13, C15: what a request says, and what our reply says to it. */
static void test_mpa_requests(void)
{
	const struct mpa_case *c;
	u8 p[600];

	for (c = mpa_cases; c < mpa_cases + ARRAY_SIZE(mpa_cases); c++) {
		begin(true);
		handshake();
		peer(PEER_ISS + 1, our_iss + 1, A, p,
		     mpa(p, false, c->flags, c->rev, c->ird, c->ord, c->len));
		SIM_CHECK(requests == c->ok, "%s: %u requests", c->what, requests);
		if (!c->ok) {
			expect(R | A, our_iss + 1, 0);
			end();
			continue;
		}
		SIM_CHECK(event.ird == c->ev_ird && event.ord == c->ev_ord &&
			  event.private_data_len == c->ev_len, "%s: ird %u ord %u, %u bytes",
			  c->what, event.ird, event.ord, event.private_data_len);
		run(do_accept, NULL);
		check_reply(c);
		end();
	}
}

/* C19: an initiator that speaks before it is answered breaks RFC 5044, 7.1. */
static void test_bytes_after_request(void)
{
	u8 p[600];
	u32 n = normal_request(p);

	begin(true);
	handshake();
	p[n] = 'F';
	peer(PEER_ISS + 1, our_iss + 1, A, p, n + 1);
	SIM_CHECK(!requests, "accepted");
	expect(R | A, our_iss + 1, 0);
	end();
}

static void test_byte_after_split_request(void)
{
	u8 p[600];
	u32 n = normal_request(p);

	begin(true);
	handshake();
	p[n] = 'F';
	peer(PEER_ISS + 1, our_iss + 1, A, p, 5);
	peer(PEER_ISS + 6, our_iss + 1, A, p + 5, n + 1 - 5);
	SIM_CHECK(!requests, "accepted");
	expect(R | A, our_iss + 1, 0);
	end();
}

static void test_length_too_large(void)
{
	u8 p[600];

	begin(true);
	handshake();
	mpa(p, false, 0x40, 1, 0, 0, 0);
	irdma_cm_put16(p + 18, 513);
	peer(PEER_ISS + 1, our_iss + 1, A, p, 20);	/* refused before the data comes */
	expect(R | A, our_iss + 1, 0);
	end();
}

static void test_tos_without_ecn(void)
{
	begin(true);
	peer_tos = 0xbb;
	to_request();
	peer_tos = 0;
	run(do_accept, NULL);
	SIM_CHECK(qp->tcp.tos == 0xb8, "TOS %02x", qp->tcp.tos);
	end();
}

static void do_listen_exact(void *arg)
{
	*(struct sim_id **)arg = sim_id_new(host, on_event, NULL);
	op_result = sim_listen(*(struct sim_id **)arg, US, PORT, 2);
}

static void test_listeners_share_an_entry(void)
{
	struct sim_id *exact, *again;

	begin(true);
	run(do_listen_exact, &exact);
	SIM_CHECK(!op_result, "listen beside a wildcard returns %d", op_result);
	run(do_listen_exact, &again);
	SIM_CHECK(op_result == -EADDRINUSE, "the same listen again returns %d", op_result);
	run((void (*)(void *))sim_id_destroy, again);
	run((void (*)(void *))sim_id_destroy, exact);
	to_request();				/* the wildcard still listens */
	end();
}

static void do_listen_v6(void *arg)
{
	struct sockaddr_in6 *sin6;

	listener = sim_id_new(host, on_event, NULL);
	listener->state = ID_LISTEN;
	listener->free_work = 2;
	listener->id.afonly = *(bool *)arg;
	sin6 = (struct sockaddr_in6 *)&listener->id.m_local_addr;
	sin6->sin6_family = AF_INET6;
	sin6->sin6_port = htons(PORT);
	op_result = irdma_create_listen(&listener->id, 2);
}

static void test_dual_stack(void)
{
	bool afonly;
	int i;

	for (i = 0; i < 2; i++) {
		begin(false);
		afonly = i;
		run(do_listen_v6, &afonly);
		SIM_CHECK(!op_result, "listen returns %d", op_result);
		if (afonly) {
			peer_raw(PEER_PORT, PORT, PEER_ISS, 0, S, syn_opts, 8, NULL, 0);
			expect(R | A, 0, PEER_ISS + 1);	/* from the host's own stack */
		} else {
			to_request();
			SIM_CHECK(((struct sockaddr_in *)&event.remote_addr)->sin_family == AF_INET,
				  "family of the request");
		}
		end();
	}
}

static void do_disconnect(void *arg)
{
	(void)arg;
	sim_qp_disconnect(qp);
}

static void to_established(void)
{
	to_request();
	run(do_accept, NULL);
	peer(PEER_ISS + 1 + REQ_LEN, our_iss + 1 + last()->len, A, "FFFF", 4);
	sim_run_for(10 * MS);
	SIM_CHECK(request->state == ID_ESTABLISHED, "not established");
	SIM_CHECK(!host->ahs, "software keeps an address handle");
}

static void test_peer_resets(void)
{
	begin(true);
	to_established();
	peer(PEER_ISS + 5 + REQ_LEN, 0, R, NULL, 0);
	sim_run_for(10 * MS);
	SIM_CHECK(request->got[IW_CM_EVENT_DISCONNECT] == 1 && closes == 1 &&
		  disconnect_status == -ECONNRESET, "DISCONNECT %d, CLOSE %u", disconnect_status,
		  closes);
	end();
}

static void test_many_in_turn(void)
{
	u16 port;

	begin(true);
	for (port = 2000; port < 2100; port++) {
		peer_raw(port, PORT, 1, 0, S, syn_opts, 8, NULL, 0);
		expect(S | A, 0, 2);
		peer_raw(port, PORT, 2, last()->seq + 1, A, NULL, 0, NULL, 0);
		peer_raw(port, PORT, 2, 0, R, NULL, 0, NULL, 0);
	}
	end();
}

static void test_peer_ignores_close(void)
{
	u32 nxt = PEER_ISS + 1 + REQ_LEN;

	begin(true);
	to_established();
	run(do_disconnect, NULL);
	expect(F | A, 0, nxt + 4);
	sim_run_for(29 * SEC);
	SIM_CHECK(!closes, "closed too early");
	sim_run_for(2 * SEC);
	SIM_CHECK(closes == 1, "no CLOSE although the peer is silent");
	end();
}

/* --- active --- */

static void test_refused_port(void)
{
	to_syn_sent();
	peer(0, our_iss + 2, R | A, NULL, 0);	/* not ours: ignored */
	SIM_CHECK(!replies, "RST without our ACK number");
	peer(0, our_iss + 1, R | A, NULL, 0);
	expect_status(-ECONNRESET);
	SIM_CHECK(num_seen == 1, "tries again although the port is closed");
	end();
}

static void test_wrong_syn_ack(void)
{
	to_syn_sent();
	peer(PEER_ISS, our_iss + 99, S | A, NULL, 0);
	expect(R, our_iss + 99, 0);
	peer(PEER_ISS, our_iss + 1, A, NULL, 0);	/* stray ACK */
	sim_run_for(1100 * MS);
	expect(S, our_iss, 0);			/* goes on */
	peer(PEER_ISS, our_iss + 1, S | A, NULL, 0);
	SIM_CHECK(last()->len == 24, "no request");
	end();
}

/* C01: the event comes when the last SYN had its time. */
static void test_silent_server(void)
{
	to_syn_sent();
	sim_run_for(30 * SEC);
	SIM_CHECK(!replies && num_seen == 5, "%u SYNs", num_seen);
	sim_run_for(20 * SEC);			/* 31 s: the last one, 47 s: RST */
	expect_status(-ETIMEDOUT);
	SIM_CHECK(num_seen == 7, "%u segments", num_seen);
	end();
}

/* C19: acknowledged, but not answered. */
static void test_silent_mpa_server(void)
{
	to_mpareq_sent();
	peer(PEER_ISS + 1, our_iss + 25, A, NULL, 0);
	sim_run_for(19 * SEC);
	SIM_CHECK(!replies, "too early");
	sim_run_for(2 * SEC);
	expect_status(-ETIMEDOUT);
	end();
}

/* C01, C22 */
static void test_connect_cancelled(void)
{
	to_mpareq_sent();
	run(do_destroy_qp, NULL);
	expect_status(-ECONNABORTED);
	end();
}

static void test_fall_back(u8 flags)
{
	u32 iss;

	to_mpareq_sent();
	peer(PEER_ISS + 1, our_iss + 25, flags, NULL, 0);
	expect(S, 0, 0);
	iss = last()->seq;
	SIM_CHECK(!replies && irdma_seq_lt(our_iss + 25, iss), "no second attempt");
	peer_raw(PEER_PORT, 30000, 90000, iss + 1, S | A, syn_opts, 8, NULL, 0);
	SIM_CHECK(last()->len == 20 && last()->data[17] == 1, "request is not v1");
	peer(90001, iss + 21, R | A, NULL, 0);
	expect_status(-ECONNRESET);
	end();
}

static void test_fall_back_rst(void)
{
	test_fall_back(R | A);
}

static void test_fall_back_fin(void)
{
	test_fall_back(F | A);
}

struct reply_case {
	const char *what;
	u8 flags, rev;
	u16 ird, ord;
	int status;		/* 1: hand-over starts */
	u16 ctx_ird, ctx_ord;
};

static const struct reply_case reply_cases[] = {
	{ "read RTR", 0x50, 2, 0x8000 | 6, 0x4000 | 5, 1, 8, 6 },
	{ "write RTR", 0x50, 2, 0x8000 | 16, 0x8000 | 5, 1, 8, 8 },
	{ "raised IRD", 0x50, 2, 0x8000 | 16, 0x4000 | 20, 1, 20, 8 },
	{ "too much ORD", 0x50, 2, 0x8000 | 16, 0x4000 | 65, -EPROTO },
	{ "no RTR", 0x50, 2, 0x8000 | 16, 5, -EPROTO },
	{ "not peer-to-peer", 0x50, 2, 16, 0x4000 | 5, -EPROTO },
	{ "no depth for the read", 0x50, 2, 0x8000, 0x4000, -EPROTO },
	{ "no depths", 0x50, 2, 0xbfff, 0x7fff, 1, 8, 8 },
	{ "v1", 0x40, 1, 0, 0, 1, 8, 8 },
	{ "revision 3", 0x50, 3, 0, 0, -EPROTO },
	{ "rejected", 0x70, 2, 0x8000 | 6, 0x4000 | 5, -ECONNREFUSED },
};

/* C10 */
static void test_mpa_replies(void)
{
	const struct reply_case *c;
	u8 p[600];

	for (c = reply_cases; c < reply_cases + ARRAY_SIZE(reply_cases); c++) {
		to_mpareq_sent();
		peer(PEER_ISS + 1, our_iss + 25, A, p,
		     mpa(p, true, c->flags, c->rev, c->ird, c->ord, 4));
		if (c->status == 1) {
			SIM_CHECK(qp->stream && qp->tcp.ird == c->ctx_ird && qp->tcp.ord == c->ctx_ord,
				  "%s: ird %u ord %u", c->what, qp->tcp.ird, qp->tcp.ord);
		} else {
			expect_status(c->status);
			SIM_CHECK(event.private_data_len == (c->status == -ECONNREFUSED ? 4 : 0),
				  "%s: private data", c->what);
		}
		end();
	}
}

static void test_rejected_peer_vanishes(void)
{
	u8 p[600];
	u32 n = mpa(p, true, 0x70, 2, 0x8000, 0x4000, 4);

	to_mpareq_sent();
	peer(PEER_ISS + 1, our_iss + 25, A, p, n);
	expect_status(-ECONNREFUSED);
	expect(F | A, our_iss + 25, PEER_ISS + 1 + n);
	run(do_destroy_qp, NULL);		/* does not wait for the peer */
	end();
}

static void test_simultaneous_open(void)
{
	to_syn_sent();
	peer_raw(PEER_PORT, 30000, PEER_ISS, 0, S, syn_opts, 8, NULL, 0);
	expect(S | A, our_iss, PEER_ISS + 1);
	peer(PEER_ISS + 1, our_iss + 1, A, NULL, 0);
	SIM_CHECK(last()->len == 24, "no request");
	end();
}

static void test_window_is_scaled(void)
{
	u8 p[600];

	to_mpareq_sent();
	peer(PEER_ISS + 1, our_iss + 25, A, p,
	     mpa(p, true, 0x50, 2, 0x8000 | 6, 0x4000 | 5, 4));
	SIM_CHECK(qp->tcp.snd_wnd == 0x8000 << 7 && qp->tcp.snd_scale == 7 &&
		  qp->tcp.rcv_scale == 2 && qp->tcp.rcv_wnd == 0xffff << 2 && qp->tcp.mss == 1460,
		  "window %u, scales %u and %u, MSS %u", qp->tcp.snd_wnd, qp->tcp.snd_scale,
		  qp->tcp.rcv_scale, qp->tcp.mss);
	end();
}

static void test_qp_used_twice(void)
{
	struct sim_id *second;

	to_syn_sent();
	second = sim_id_new(host, on_event, NULL);
	op_result = sim_connect(second, qp, PEER, 30001, PEER_PORT, &conn_param);
	SIM_CHECK(op_result == -EBUSY, "second connect of a QP returns %d", op_result);
	run((void (*)(void *))sim_id_destroy, second);
	end();
}

static void test_self_connect(void)
{
	begin(false);
	qp = sim_qp_new(host);
	active = sim_id_new(host, on_event, NULL);
	op_result = sim_connect(active, qp, US, 30000, 30000, &conn_param);
	SIM_CHECK(op_result == -EADDRNOTAVAIL, "connect to itself returns %d", op_result);
	end();
}

#define T NAMED_TEST
static const struct named_test tests[] = {
	T(option_length_zero), T(lengths), T(ipv6_extension), T(syn_ack_kills_nobody),
	T(rst_in_window), T(rst_before_the_ack), T(rst_before_accept), T(fin_before_accept), T(silent_clients),
	T(half_open_flood), T(address_goes), T(listener_goes), T(lost_request), T(syn_options),
	T(syn_retransmission), T(one_byte_segments), T(reordered_segments),
	T(request_with_handshake_ack), T(bad_ack_in_syn_rcvd), T(reject_and_close),
	T(simultaneous_close), T(mpa_requests), T(bytes_after_request),
	T(byte_after_split_request), T(length_too_large), T(overlapping_segments),
	T(peer_ignores_close), T(peer_resets), T(many_in_turn),
	T(tos_without_ecn), T(listeners_share_an_entry), T(dual_stack), T(window_is_scaled),
	T(qp_used_twice), T(refused_port),
	T(wrong_syn_ack), T(silent_server), T(silent_mpa_server), T(connect_cancelled),
	T(fall_back_rst), T(fall_back_fin), T(mpa_replies), T(rejected_peer_vanishes),
	T(simultaneous_open), T(self_connect),
};

TEST_MAIN(tests)
