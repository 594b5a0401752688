// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Many connections between two hosts with ULPs that do whatever they may do at any moment, over
 * a wire that does whatever a network may do.  Checked: the order of events at both ends,
 * private data and depths, that every attempt ends, and that nothing is left at the end.
 */
#include "test.h"

enum { PORT = 7000 };

struct conn {
	u32 idx;
	struct sim_host *client, *server;
	struct sim_id *cid, *sid;
	struct sim_qp *cqp, *sqp;
	u8 len, rlen;			/* private data of request and reply */
	u32 ird, ord, sird, sord;
	bool refuse, retried, cancel, client_done, server_done, client_closes, abrupt, established;
	u64 accept_delay, hold;
	unsigned int running;		/* fibers that use it */
};

static struct conn *conns;
static unsigned int num_conns, ended, connected, refused, failed;

struct later {
	struct sim_event event;
	void (*fn)(void *arg);
	void *arg;
};

static void later_runs(struct sim_event *e)
{
	struct later *l = container_of(e, struct later, event);
	void (*fn)(void *arg) = l->fn;
	void *arg = l->arg;

	free(l);
	sim_fiber(fn, arg);
}

static void later(u64 delay, void (*fn)(void *arg), void *arg)
{
	struct later *l = calloc(1, sizeof(*l));

	l->event.fn = later_runs;
	l->fn = fn;
	l->arg = arg;
	sim_event_at(&l->event, sim_now_ns + delay);
}

static u8 pattern(const struct conn *c, u32 i, bool reply)
{
	return c->idx * 7 + i * 13 + reply;
}

static void fill(const struct conn *c, u8 *p, u32 len, bool reply)
{
	u32 i;

	irdma_cm_put32(p, c->idx);
	for (i = 4; i < len; i++)
		p[i] = pattern(c, i, reply);
}

static void check(const struct conn *c, const struct iw_cm_event *ev, u32 len, bool reply)
{
	const u8 *p = ev->private_data;
	u32 i;

	SIM_CHECK(ev->private_data_len == len, "connection %u: %u bytes of private data, not %u",
		  c->idx, ev->private_data_len, len);
	for (i = 4; i < len; i++)
		SIM_CHECK(p[i] == pattern(c, i, reply), "connection %u: private data differs",
			  c->idx);
}

static void end_side(struct sim_id **id, struct sim_qp **qp, bool *done)
{
	struct sim_id *i = *id;
	struct sim_qp *q = *qp;

	*id = NULL;
	*qp = NULL;
	*done = true;
	ended++;
	if (sim_one_in(2) && q) {
		sim_qp_destroy(q);
		q = NULL;
	}
	if (i)
		sim_id_destroy(i);
	if (q)
		sim_qp_destroy(q);
}

static void end_client(void *arg)
{
	struct conn *c = arg;

	if (!c->client_done && (c->cid || c->cqp))
		end_side(&c->cid, &c->cqp, &c->client_done);
}

static void end_server(void *arg)
{
	struct conn *c = arg;

	if (!c->server_done && (c->sid || c->sqp))
		end_side(&c->sid, &c->sqp, &c->server_done);
}

static void close_one(struct conn *c, bool client)
{
	struct sim_qp *qp = client ? c->cqp : c->sqp;

	if (!qp)
		return;
	if (c->abrupt)
		(client ? end_client : end_server)(c);
	else
		sim_qp_disconnect(qp);
}

static void close_client(void *arg)
{
	close_one(arg, true);
}

static void close_server(void *arg)
{
	close_one(arg, false);
}

static void accept_it(void *arg)
{
	struct conn *c = arg;
	struct iw_cm_conn_param param = { .ird = c->sird, .ord = c->sord };
	u8 p[256];

	if (!c->sid)
		return;
	fill(c, p, c->rlen, true);
	param.private_data = p;
	param.private_data_len = c->rlen;
	if (c->refuse) {
		sim_reject(c->sid, p, c->rlen);
		later(0, end_server, c);
		return;
	}
	c->sqp = sim_qp_new(c->server);
	if (sim_accept(c->sid, c->sqp, &param))
		later(0, end_server, c);
}

static void on_request(struct sim_id *id, struct iw_cm_event *ev)
{
	struct conn *c;
	u32 idx;

	SIM_CHECK(ev->private_data_len >= 4, "request without private data");
	idx = irdma_cm_get32(ev->private_data);
	SIM_CHECK(idx < num_conns, "request of connection %u", idx);
	c = &conns[idx];
	check(c, ev, c->len, false);
	if (c->sid || c->server_done) {		/* the attempt with MPA v1 */
		c->retried = true;
		irdma_reject(&id->id, NULL, 0);
		id->state = ID_IDLE;
		later(0, (void (*)(void *))sim_id_destroy, id);
		return;
	}
	SIM_CHECK(ev->ird == min(c->ird, 64U) || ev->ird == 64, "request tells ird %u", ev->ird);
	c->sid = id;
	id->arg = c;
	if (sim_wire.delay_ns < MS && sim_one_in(3))	/* holds up iw_cm's queue */
		accept_it(c);
	else
		later(c->accept_delay, accept_it, c);
}

static void server_event(struct sim_id *id, struct iw_cm_event *ev)
{
	struct conn *c = id->arg;

	switch (ev->event) {
	case IW_CM_EVENT_CONNECT_REQUEST:
		on_request(id, ev);
		break;
	case IW_CM_EVENT_ESTABLISHED:
		if (!c->client_closes)
			later(c->hold, close_server, c);
		break;
	case IW_CM_EVENT_CLOSE:
		later(sim_random() % MS, end_server, c);
		break;
	default:
		break;
	}
}

static void on_reply(struct conn *c, struct iw_cm_event *ev)
{
	if (ev->status == -ECONNREFUSED) {
		refused++;
		if (c->refuse && !c->retried)
			check(c, ev, c->rlen, true);
	} else if (ev->status) {
		SIM_CHECK(!ev->private_data_len && !ev->ird && !ev->ord,
			  "private data or depths with status %d", ev->status);
		failed++;
		if (getenv("SIM_VERBOSE") && !c->cancel)
			printf("  connection %u: status %d\n", c->idx, ev->status);
	} else {
		connected++;
		c->established = true;
		SIM_CHECK(!c->refuse, "connection %u was refused and accepted", c->idx);
		check(c, ev, c->rlen, true);
		SIM_CHECK(ev->ord <= max(min(c->ord, 64U), 1U) && ev->ord <= max(c->sird, c->ord),
			  "reply tells ord %u", ev->ord);
		if (c->client_closes)
			later(c->hold, close_client, c);
		return;
	}
	later(sim_random() % MS, end_client, c);
}

static void client_event(struct sim_id *id, struct iw_cm_event *ev)
{
	struct conn *c = id->arg;

	if (ev->event == IW_CM_EVENT_CONNECT_REPLY)
		on_reply(c, ev);
	else if (ev->event == IW_CM_EVENT_CLOSE)
		later(sim_random() % MS, end_client, c);
}

static void connect_it(void *arg)
{
	struct conn *c = arg;
	struct iw_cm_conn_param param = { .ird = c->ird, .ord = c->ord };
	u8 p[256];
	int ret;

	fill(c, p, c->len, false);
	param.private_data = p;
	param.private_data_len = c->len;
	c->cid = sim_id_new(c->client, client_event, c);
	c->cqp = sim_qp_new(c->client);
	ret = sim_connect(c->cid, c->cqp, c->server->ip, 10000 + c->idx % 50000, PORT, &param);
	if (ret) {
		SIM_CHECK(ret == -ENOMEM || ret == -EADDRINUSE, "connect returns %d", ret);
		failed++;
		later(0, end_client, c);
	} else if (c->cancel) {
		later(sim_random() % (3 * sim_wire.delay_ns), end_client, c);
	}
}

static void make_conn(struct conn *c, u32 idx, struct sim_host *client, struct sim_host *server,
		      u64 span)
{
	c->idx = idx;
	c->client = client;
	c->server = server;
	c->len = 4 + sim_random() % 252;
	c->rlen = 4 + sim_random() % 252;
	c->ird = sim_random() % 100;
	c->ord = sim_random() % 100;
	c->sird = sim_random() % 100;
	c->sord = sim_random() % 100;
	c->refuse = sim_one_in(6);
	c->cancel = sim_one_in(8);
	c->client_closes = sim_one_in(2);
	c->abrupt = sim_one_in(4);
	c->accept_delay = sim_random() % (50 * MS);
	c->hold = sim_one_in(3) ? 0 : sim_random() % (200 * MS);
	later(sim_random() % span, connect_it, c);
}

/* Who did not hear of a close because the peer is gone ends by himself. */
static void end_all(void *unused)
{
	u32 i;

	(void)unused;
	for (i = 0; i < num_conns; i++) {
		later(0, end_client, &conns[i]);
		later(0, end_server, &conns[i]);
	}
}

/* Hardware has ended a stream: its ULP must have heard of it by itself. */
static void check_told(void)
{
	u32 i;

	for (i = 0; i < num_conns; i++) {
		struct conn *c = &conns[i];

		SIM_CHECK(!c->cqp || !c->cqp->stream || c->cqp->running,
			  "client %u was not told of the end", i);
		SIM_CHECK(!c->sqp || !c->sqp->stream || c->sqp->running,
			  "server %u was not told of the end", i);
	}
}

struct mix {
	const char *name;
	struct sim_wire wire;
	unsigned int num, cmd_failures, tx_failures, alloc_failures, start_failures;
	bool raw, loopback;
	void (*trouble)(void *arg);	/* happens every 50 ms */
	unsigned int min_connected;	/* percent of those that nobody cancels or refuses */
};

static void listen_it(void *arg)
{
	struct sim_id *l = arg;
	int ret = sim_listen(l, sim_one_in(2) ? 0 : l->host->ip, PORT, 4096);

	SIM_CHECK(!ret, "listen returns %d", ret);
}

static void destroy_it(void *arg)
{
	sim_id_destroy(arg);
}

/* --- what else may happen while connections come and go --- */

static struct sim_host *server_host;
static struct sim_id *the_listener;

static void address_comes_and_goes(void *unused)
{
	struct irdma_cm_laddr a = { .vlan = IRDMA_CM_NO_VLAN, .ipv4 = 1 };

	(void)unused;
	a.ip[0] = server_host->ip;
	irdma_if_notify(server_host->core, &a, false);
	sim_sleep_ns(sim_random() % (20 * MS));
	irdma_if_notify(server_host->core, &a, true);
}

static void listener_comes_and_goes(void *unused)
{
	struct sim_id *l = the_listener;

	(void)unused;
	if (!l)
		return;
	the_listener = NULL;
	sim_id_destroy(l);
	sim_sleep_ns(sim_random() % (20 * MS));
	l = sim_id_new(server_host, server_event, NULL);
	listen_it(l);
	the_listener = l;
}

static void device_dies(void *unused)
{
	(void)unused;
	if (server_host->dead || !sim_one_in(4))
		return;
	server_host->dead = true;
	irdma_cm_set_dead(server_host->core);
}

static void trouble(const struct mix *m)
{
	u64 t;

	for (t = 50 * MS; m->trouble && t < m->num * MS / 4; t += 50 * MS)
		later(t, m->trouble, NULL);
}

static void run_mix(const struct mix *m)
{
	struct sim_host *a = sim_host_new(0x0a000001, m->raw);
	struct sim_host *b = m->loopback ? a : sim_host_new(0x0a000002, m->raw);
	struct sim_id *listener = sim_id_new(b, server_event, NULL);
	unsigned int wanted = 0;
	u32 i;

	server_host = b;
	the_listener = listener;
	sim_wire = m->wire;
	num_conns = m->num;
	ended = connected = refused = failed = 0;
	conns = calloc(num_conns, sizeof(*conns));
	sim_fiber(listen_it, listener);
	sim_run_for(SEC);
	a->cmd_failures = b->cmd_failures = m->cmd_failures;
	a->tx_failures = b->tx_failures = m->tx_failures;
	a->start_failures = b->start_failures = m->start_failures;
	sim_alloc_failures = m->alloc_failures;
	for (i = 0; i < num_conns; i++) {
		make_conn(&conns[i], i, a, b, num_conns * MS / 4);
		wanted += !conns[i].refuse && !conns[i].cancel;
	}
	trouble(m);
	sim_run_for(num_conns * MS / 4 + 120 * SEC);
	check_told();
	sim_alloc_failures = 0;
	a->cmd_failures = b->cmd_failures = 0;
	a->tx_failures = b->tx_failures = 0;
	later(0, end_all, NULL);
	sim_run_for(140 * SEC);
	if (sim_one_in(2))
		sim_settle(b);
	later(0, destroy_it, the_listener);
	sim_settle(a);
	sim_settle(b);
	SIM_CHECK(!sim_ids, "%d ids are left", sim_ids);
	for (i = 0; i < num_conns; i++)
		SIM_CHECK(!conns[i].cid && !conns[i].sid, "connection %u did not end", i);
	SIM_CHECK(connected + refused + failed > num_conns / 2, "only %u answers",
		  connected + refused + failed);
	SIM_CHECK(connected * 100 >= wanted * m->min_connected, "%u of %u connected", connected,
		  wanted);
	if (b != a)
		sim_host_free(b);
	sim_host_free(a);
	free(conns);
	if (getenv("SIM_VERBOSE"))
		printf("  %s: %u connected, %u refused, %u failed\n", m->name, connected, refused,
		       failed);
}

static const struct mix mixes[] = {
	{ "clean wire", { .delay_ns = 20000 }, .num = 3000, .min_connected = 99 },
	{ "X722 frames", { .delay_ns = 20000 }, .num = 1000, .raw = true, .min_connected = 99 },
	{ "loopback", { .delay_ns = 1000 }, .num = 1000, .loopback = true, .min_connected = 99 },
	{ "2 % loss", { 50, 0, 0, 20000 }, .num = 1500, .min_connected = 98 },
	{ "10 % loss", { 10, 0, 0, 20000 }, .num = 1000, .min_connected = 85 },
	{ "duplicates", { 0, 4, 0, 20000 }, .num = 1000, .min_connected = 99 },
	{ "reordering", { 0, 10, 3, 20000 }, .num = 1000, .min_connected = 95 },
	{ "slow and lossy", { 20, 20, 5, 40 * MS }, .num = 800, .min_connected = 80 },
	{ "commands fail", { 0, 0, 0, 20000 }, .num = 1000, .cmd_failures = 20 },
	{ "no buffers", { 0, 0, 0, 20000 }, .num = 1000, .tx_failures = 10, .min_connected = 80 },
	{ "no memory", { 0, 0, 0, 20000 }, .num = 1000, .alloc_failures = 15 },
	{ "address comes and goes", { 0, 0, 0, 20000 }, .num = 1000,
	  .trouble = address_comes_and_goes },
	{ "listener comes and goes", { 0, 0, 0, 20000 }, .num = 1000,
	  .trouble = listener_comes_and_goes },
	{ "device dies", { 0, 0, 0, 20000 }, .num = 1000, .trouble = device_dies },
	{ "hand-over fails", { 30, 0, 0, 20000 }, .num = 1000, .start_failures = 8 },
};

int main(int argc, char **argv)
{
	u64 seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	unsigned int rounds = argc > 2 ? atoi(argv[2]) : 1, i;

	for (; rounds; rounds--, seed++)
		for (i = 0; i < ARRAY_SIZE(mixes); i++) {
			sim_srandom(seed * 100 + i);
			test_begin(mixes[i].name);
			run_mix(&mixes[i]);
			test_passed();
		}
	return test_summary();
}
