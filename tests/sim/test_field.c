// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Field cases (docs/field-cases.md) that need a peer or a ULP at an exact moment: each test
 * names its cases.  That iw_cm hears of events in their order, once, and of nothing it does not
 * know is checked by ulp.c in all of them.
 */
#include "peer.h"

#define US_NS		1000ULL
#define ACCEPT_AT_US	200
#define SWEEP_US	600
#define STEP_US		5

static u32 next_seq;	/* of the peer */
static unsigned int won, lost;	/* connections that were, or were not, made before the peer went */

static void in_us(unsigned int us)
{
	sim_run_for(us * US_NS);
}

static void delayed_accept(void *arg)
{
	(void)arg;
	sim_sleep_ns(ACCEPT_AT_US * US_NS);
	do_accept(NULL);
}

static void expect_end(struct sim_id *id, unsigned int established)
{
	SIM_CHECK(id->got[IW_CM_EVENT_CLOSE] == established &&
		  id->got[IW_CM_EVENT_DISCONNECT] <= established,
		  "%u DISCONNECT, %u CLOSE after %u establishing events",
		  id->got[IW_CM_EVENT_DISCONNECT], id->got[IW_CM_EVENT_CLOSE], established);
}

/* --- connect --- */

/* C01: the caller's private data is its own again; out of a fiber nothing could sleep. */
static void test_connect_keeps_private_data(void)
{
	u8 pdata[200], sent[200];
	u32 i;

	for (i = 0; i < sizeof(sent); i++)
		sent[i] = pdata[i] = sim_random();
	begin(false);
	conn_param.private_data = pdata;
	conn_param.private_data_len = sizeof(pdata);
	do_connect(NULL);
	memset(pdata, 0xee, sizeof(pdata));
	SIM_CHECK(!op_result, "connect returns %d", op_result);
	sim_run_for(8 * SEC);			/* three SYNs are lost */
	our_iss = last()->seq;
	peer_raw(PEER_PORT, 30000, PEER_ISS, our_iss + 1, S | A, syn_opts, 8, NULL, 0);
	SIM_CHECK(last()->len == 24 + sizeof(sent) &&
		  !memcmp(last()->data + 24, sent, sizeof(sent)), "private data of the request");
	end();
}

/* --- MPA --- */

/* C10: ESTABLISHED would let the ULP send, and the peer has to be the first to. */
static void test_first_word_is_the_peers(void)
{
	begin(true);
	to_request();
	run(do_accept, NULL);
	peer(PEER_ISS + 1 + REQ_LEN, our_iss + 1 + last()->len, A, NULL, 0);
	sim_run_for(5 * SEC);
	SIM_CHECK(!request->got[IW_CM_EVENT_ESTABLISHED], "established before the peer spoke");
	peer(PEER_ISS + 1 + REQ_LEN, our_iss + 25, A, "FFFF", 4);
	sim_run_for(10 * MS);
	SIM_CHECK(request->got[IW_CM_EVENT_ESTABLISHED] == 1, "not established");
	end();
}

static u32 good_reply(u8 *p)
{
	return mpa(p, true, 0x50, 2, 0x8000 | 6, 0x4000 | 5, 40);
}

static void expect_connected(u32 cut)
{
	sim_run_for(10 * MS);
	SIM_CHECK(qp->stream, "cut at %u: the stream is not handed over", cut);
	peer(next_seq, last()->seq + last()->len, A, NULL, 0);	/* the RTR arrived */
	sim_run_for(10 * MS);
	SIM_CHECK(replies == 1 && !event.status && event.private_data_len == 40,
		  "cut at %u: %u replies, status %d, %u bytes", cut, replies, event.status,
		  event.private_data_len);
	/* C15: our own depths; the server serves 6 reads. */
	SIM_CHECK(event.ird == 8 && event.ord == 6, "reply tells ird %u ord %u", event.ird,
		  event.ord);
}

/* C11: a reply in two pieces, cut anywhere, each of them sent twice. */
static void test_reply_in_two_pieces(void)
{
	u8 p[600];
	u32 n = good_reply(p), cut;

	for (cut = 1; cut < n; cut++) {
		to_mpareq_sent();
		peer(PEER_ISS + 1, our_iss + 25, A, p, cut);
		SIM_CHECK(!replies && !qp->stream, "cut at %u: half a reply is taken", cut);
		peer(PEER_ISS + 1, our_iss + 25, A, p, cut);
		peer(PEER_ISS + 1 + cut, our_iss + 25, A, p + cut, n - cut);
		next_seq = PEER_ISS + 1 + n;
		expect_connected(cut);
		end();
	}
}

/* C11: one byte at a time, the next one first; and a server that does not speak MPA. */
static void test_reply_in_bytes(void)
{
	static const char banner[] = "220 ready, but for something else\r\n";
	u8 p[600];
	u32 n = good_reply(p), i;

	to_mpareq_sent();
	for (i = 0; i < n; i++) {
		if (i + 1 < n)
			peer(PEER_ISS + 2 + i, our_iss + 25, A, p + i + 1, 1);
		peer(PEER_ISS + 1 + i, our_iss + 25, A, p + i, 1);
	}
	next_seq = PEER_ISS + 1 + n;
	expect_connected(1);
	end();

	to_mpareq_sent();
	peer(PEER_ISS + 1, our_iss + 25, A, banner, sizeof(banner));
	expect_status(-EPROTO);
	end();
}

/* C15: private data of all lengths, without the depths that stand before it on the wire. */
static void test_private_data_in_requests(void)
{
	static const u16 lengths[] = { 0, 1, 8, 196, 255 };
	u8 p[600];
	u32 i, v, n;

	for (i = 0; i < ARRAY_SIZE(lengths); i++)
		for (v = 1; v <= 2; v++) {
			begin(true);
			handshake();
			n = mpa(p, false, v == 2 ? 0x50 : 0x40, v, 0x8000 | 32, 0x4000 | 1,
				lengths[i]);
			peer(PEER_ISS + 1, our_iss + 1, A, p, n);
			SIM_CHECK(requests == 1 && event.private_data_len == lengths[i] &&
				  !memcmp(event_pdata, p + n - lengths[i], lengths[i]),
				  "v%u: %u of %u bytes", v, event.private_data_len, lengths[i]);
			if (v == 2)	/* the peer's view, as iw_cm's users expect it */
				SIM_CHECK(event.ird == 32 && event.ord == 1,
					  "request tells ird %u ord %u", event.ird, event.ord);
			end();
		}
}

static u8 answer[255];

static void accept_with_data(void *arg)
{
	conn_param.private_data = answer;
	conn_param.private_data_len = *(u16 *)arg;
	do_accept(NULL);
}

/* C15: and in replies, as the ULP gave it. */
static void test_private_data_in_replies(void)
{
	static u16 lengths[] = { 0, 1, 8, 196, 255 };
	u32 i;

	for (i = 0; i < sizeof(answer); i++)
		answer[i] = 255 - i;
	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		begin(true);
		to_request();
		run(accept_with_data, &lengths[i]);
		SIM_CHECK(last()->len == 24U + lengths[i] &&
			  irdma_cm_get16(last()->data + 18) == 4 + lengths[i] &&
			  !memcmp(last()->data + 24, answer, lengths[i]), "reply with %u bytes",
			  lengths[i]);
		end();
	}
}

/* --- the peer goes, at each moment --- */

/* C12: FIN or RST of the client around accept. */
static void close_around_accept(unsigned int us, u8 flags)
{
	begin(true);
	to_request();
	host->cmd_delay_ns = 50 * US_NS;
	sim_fiber(delayed_accept, NULL);
	in_us(us);
	peer(PEER_ISS + 1 + REQ_LEN, flags & A ? last()->seq + last()->len : 0, flags, NULL, 0);
	sim_run_for(30 * SEC);
	if (op_result)
		SIM_CHECK(op_result == -ECONNRESET, "accept returns %d", op_result);
	SIM_CHECK(request->got[IW_CM_EVENT_ESTABLISHED] == !op_result,
		  "closed after %u us: accept %d, %u ESTABLISHED", us, op_result,
		  request->got[IW_CM_EVENT_ESTABLISHED]);
	expect_end(request, !op_result);
	*(op_result ? &lost : &won) += 1;
	end();
}

/* A sweep that only ever sees one outcome misses the moment that it is made for. */
static void expect_both_outcomes(void)
{
	SIM_CHECK(won > 10 && lost > 10, "%u were connected, %u not", won, lost);
	won = lost = 0;
}

static void test_client_closes_around_accept(void)
{
	unsigned int us;

	for (us = 0; us < SWEEP_US; us += STEP_US) {
		close_around_accept(us, F | A);
		close_around_accept(us, R);
	}
	expect_both_outcomes();
}

/* The second attempt, with MPA revision 1, finds nobody. */
static void refuse_second_attempt(void)
{
	u32 iss = last()->seq;

	if (last()->flags == S)
		peer(0, iss + 1, R | A, NULL, 0);
}

/* C12: FIN or RST of the server before, in and behind its reply. */
static void close_around_reply(u32 bytes, unsigned int us, u8 flags)
{
	u8 p[600];
	u32 n = min(good_reply(p), bytes);

	to_mpareq_sent();
	host->cmd_delay_ns = 50 * US_NS;
	if (!us) {			/* in one segment with what there is of the reply */
		peer(PEER_ISS + 1, our_iss + 25, flags | A, p, n);
	} else {
		if (n)
			peer_raw(PEER_PORT, 30000, PEER_ISS + 1, our_iss + 25, A, NULL, 0, p, n);
		in_us(us);
		peer(PEER_ISS + 1 + n, last()->seq + last()->len, flags, NULL, 0);
	}
	refuse_second_attempt();
	sim_run_for(60 * SEC);
	SIM_CHECK(active->got[IW_CM_EVENT_CONNECT_REPLY] == 1,
		  "%u bytes, then closed after %u us: %u CONNECT_REPLY", n, us,
		  active->got[IW_CM_EVENT_CONNECT_REPLY]);
	expect_end(active, !active->status);
	*(active->status ? &lost : &won) += 1;
	end();
}

static void test_server_closes_around_reply(void)
{
	static const u32 bytes[] = { 0, 1, 19, 20, 23, 24, 63, 64 };
	unsigned int us;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(bytes); i++)
		for (us = 0; us < SWEEP_US; us += 40) {
			close_around_reply(bytes[i], us, F | A);
			if (us)
				close_around_reply(bytes[i], us, R);
		}
	expect_both_outcomes();
}

/* --- rejection --- */

static void refuse_at_once(struct sim_id *id, struct iw_cm_event *ev)
{
	if (ev->event != IW_CM_EVENT_CONNECT_REQUEST)
		return;
	requests++;
	sim_reject(id, "no", 2);
	sim_id_destroy(id);
}

static void listen_and_refuse(void *arg)
{
	(void)arg;
	listener = sim_id_new(host, refuse_at_once, NULL);
	op_result = sim_listen(listener, 0, PORT, 2);
}

/* C13: the ULP says no from its handler and lets the id go; then the peer does this or that. */
static void test_reject_in_the_handler(void)
{
	static const u8 then[] = { 0, A, F | A, R };
	u8 p[600];
	u32 i, n = normal_request(p);

	for (i = 0; i < ARRAY_SIZE(then); i++) {
		begin(false);
		run(listen_and_refuse, NULL);
		handshake();
		peer(PEER_ISS + 1, our_iss + 1, A, p, n);
		SIM_CHECK(requests == 1, "%u requests", requests);
		expect(F | P | A, our_iss + 1, PEER_ISS + 1 + n);
		if (then[i])
			peer(PEER_ISS + 1 + n, then[i] & A ? our_iss + 1 + last()->len + 1 : 0,
			     then[i], NULL, 0);
		sim_run_for(130 * SEC);
		SIM_CHECK(!atomic_read(&host->core->num_nodes), "the connection stays");
		end();
	}
}

/* C08: iw_cm loses several requests with their listener, some of peers that have gone. */
static void test_lost_requests(void)
{
	struct sim_id *l;
	u8 p[600];
	u32 n = normal_request(p), i;

	begin(true);
	l = listener;
	l->drop_events = true;
	for (i = 0; i < 2; i++) {
		peer_raw(PEER_PORT + i, PORT, PEER_ISS, 0, S, syn_opts, 8, NULL, 0);
		our_iss = last()->seq;
		peer_raw(PEER_PORT + i, PORT, PEER_ISS + 1, our_iss + 1, i ? F | A : A, NULL, 0, p,
			 n);
	}
	l->drop_events = false;
	listener = NULL;
	run((void (*)(void *))sim_id_destroy, l);
	SIM_CHECK(!requests, "%u requests", requests);
	sim_run_for(62 * SEC);
	SIM_CHECK(!atomic_read(&host->core->num_nodes), "%d connections stay",
		  atomic_read(&host->core->num_nodes));
	end();
}

/* --- timers --- */

enum { SILENT = 8 };
static struct sim_id *silent_ids[SILENT];
static struct sim_qp *silent_qps[SILENT];
static unsigned int told;

static void count_reply(struct sim_id *id, struct iw_cm_event *ev)
{
	(void)id;
	told += ev->event == IW_CM_EVENT_CONNECT_REPLY && ev->status;
}

static void free_silent(void *arg)
{
	u32 i;

	(void)arg;
	for (i = 0; i < SILENT; i++) {
		sim_qp_destroy(silent_qps[i]);
		sim_id_destroy(silent_ids[i]);
	}
}

/* C17: the device goes at any moment while SYNs are repeated; nothing hangs, each ULP is told. */
static void test_removal_while_syns_wait(void)
{
	u32 i, round;

	for (round = 0; round < 50; round++) {
		begin(false);
		told = 0;
		for (i = 0; i < SILENT; i++) {
			silent_ids[i] = sim_id_new(host, count_reply, NULL);
			silent_qps[i] = sim_qp_new(host);
			op_result = sim_connect(silent_ids[i], silent_qps[i], PEER, 30000 + i,
						PEER_PORT, &conn_param);
			SIM_CHECK(!op_result, "connect returns %d", op_result);
		}
		sim_run_for(sim_random() % (5 * SEC));
		if (sim_one_in(2)) {
			host->dead = true;
			irdma_cm_set_dead(host->core);
		}
		irdma_cm_teardown_connections(host->core, NULL);
		sim_run_for(10 * MS);
		SIM_CHECK(told == SILENT, "%u of %u ULPs were told", told, SILENT);
		run(free_silent, NULL);
		end();
	}
}

/* C19: what TCP has acknowledged is not sent again, however late the answer is. */
static void test_late_reply(void)
{
	u8 p[600];
	u32 n = good_reply(p);
	unsigned int copies;

	to_mpareq_sent();
	sim_run_for(1100 * MS);			/* lost: once more */
	SIM_CHECK(last()->len == 24 && last()->seq == our_iss + 1, "the request is not repeated");
	peer(PEER_ISS + 1, our_iss + 25, A, NULL, 0);
	copies = num_seen;
	sim_run_for(15 * SEC);
	SIM_CHECK(num_seen == copies, "an acknowledged request is sent again");
	peer(PEER_ISS + 1, our_iss + 25, A, p, n);
	next_seq = PEER_ISS + 1 + n;
	expect_connected(0);
	end();
}

/* C19: the ULP gives up while the request, or the reply with its FIN, waits to be repeated. */
static void test_close_with_a_repetition_due(void)
{
	unsigned int ms;

	for (ms = 900; ms < 1100; ms += 10) {
		to_mpareq_sent();
		sim_run_for(ms * MS);
		run(do_destroy_qp, NULL);
		expect_status(-ECONNABORTED);
		end();

		begin(true);
		to_request();
		run(do_reject, NULL);
		sim_run_for(ms * MS);
		run((void (*)(void *))sim_id_destroy, request);
		request = NULL;
		sim_run_for(130 * SEC);
		SIM_CHECK(!atomic_read(&host->core->num_nodes), "the connection stays");
		end();
	}
}

/* C19: the first bytes of the stream come while it changes hands: each of them once. */
static void test_first_bytes_around_hand_over(void)
{
	u32 nxt = PEER_ISS + 1 + REQ_LEN;
	unsigned int us, tries;

	for (us = 0; us < SWEEP_US; us += STEP_US) {
		begin(true);
		to_request();
		host->cmd_delay_ns = 50 * US_NS;
		sim_fiber(delayed_accept, NULL);
		in_us(us);
		for (tries = 0; tries < 5; tries++)
			peer(nxt, last()->seq + last()->len, A, "FFFFF", 5);
		SIM_CHECK(qp->rx_bytes == 5, "after %u us: the QP got %llu bytes", us,
			  (unsigned long long)qp->rx_bytes);
		SIM_CHECK(request->state == ID_ESTABLISHED, "after %u us: not established", us);
		end();
	}
}

#define T NAMED_TEST
static const struct named_test tests[] = {
	T(connect_keeps_private_data), T(first_word_is_the_peers), T(reply_in_two_pieces),
	T(reply_in_bytes), T(private_data_in_requests), T(private_data_in_replies),
	T(client_closes_around_accept), T(server_closes_around_reply), T(reject_in_the_handler),
	T(lost_requests), T(removal_while_syns_wait), T(late_reply),
	T(close_with_a_repetition_due), T(first_bytes_around_hand_over),
};

TEST_MAIN(tests)
