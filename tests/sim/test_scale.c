// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What a frame costs with few and with many connections and listeners, counted in entries of
 * hash tables that are looked at, and what a connection costs in memory.
 */
#include "test.h"

enum { US = 0x0a000001, PORT = 7000, FRAMES = 2000 };

static struct sim_host *host;
static u32 first_port, num_listeners;
static struct sim_id **listeners;

static void nothing(struct sim_id *id, struct iw_cm_event *ev)
{
	(void)id;
	(void)ev;
}

static void listen_all(void *unused)
{
	u32 i;

	(void)unused;
	for (i = 0; i < num_listeners; i++) {
		struct sim_id *id = sim_id_new(host, nothing, NULL);

		listeners[i] = id;
		SIM_CHECK(!sim_listen(id, US, first_port + i, 100), "listen");
	}
}

static void unlisten_all(void *unused)
{
	u32 i;

	(void)unused;
	for (i = 0; i < num_listeners; i++)
		sim_id_destroy(listeners[i]);
}

static void frame(u8 *p, u32 ip, u16 port, u16 dport, u32 seq, u32 ack, u8 flags)
{
	memset(p, 0, 40);
	p[0] = 0x45;
	irdma_cm_put16(p + 2, 40);
	p[9] = IPPROTO_TCP;
	irdma_cm_put32(p + 12, ip);
	irdma_cm_put32(p + 16, US);
	irdma_cm_put16(p + 20, port);
	irdma_cm_put16(p + 22, dport);
	irdma_cm_put32(p + 24, seq);
	irdma_cm_put32(p + 28, ack);
	p[32] = 5 << 4;
	p[33] = flags;
	irdma_cm_put16(p + 34, 1000);
}

static void rx(const u8 *p)
{
	struct irdma_cm_rx rx = { .ip = p, .len = 40, .vlan = IRDMA_CM_NO_VLAN, .ipv4 = true };

	irdma_receive_ilq(host->core, &rx);
}

/* Half-open connections stand in for all: what finds them is the same. */
static void open_connections(u32 n)
{
	u8 p[40];
	u32 i;

	for (i = 0; i < n; i++) {
		frame(p, 0x0b000000 + i, 1024 + i % 60000, first_port + i % num_listeners, 100, 0,
		      IRDMA_TCP_SYN);
		rx(p);
		if (i % 64 == 63)
			sim_run_for(2 * MS);
	}
	sim_run_for(10 * MS);
}

struct cost { double frame, syn; };

static struct cost measure(u32 connections, u32 num)
{
	struct cost c;
	u64 before;
	u8 p[40];
	u32 i;

	num_listeners = num;
	first_port = 1000;
	listeners = calloc(num, sizeof(*listeners));
	host = sim_host_new(US, false);
	host->core->config.max_half_open = ~0U;
	sim_fiber(listen_all, NULL);
	sim_run_for(100 * SEC);
	open_connections(connections);
	SIM_CHECK((u32)atomic_read(&host->core->num_nodes) == connections, "%d connections of %u",
		  atomic_read(&host->core->num_nodes), connections);

	before = sim_hash_probes;
	for (i = 0; i < FRAMES; i++) {
		u32 n = sim_random() % connections;

		frame(p, 0x0b000000 + n, 1024 + n % 60000, first_port + n % num_listeners, 99, 1,
		      IRDMA_TCP_ACK);
		rx(p);
	}
	c.frame = (double)(sim_hash_probes - before) / FRAMES;

	before = sim_hash_probes;
	for (i = 0; i < FRAMES; i++) {	/* SYNs that are refused at the listener's limit, or not */
		frame(p, 0x0c000000 + i, 999, 999, 1, 0, IRDMA_TCP_SYN);
		rx(p);
	}
	c.syn = (double)(sim_hash_probes - before) / FRAMES;

	sim_fiber(unlisten_all, NULL);
	sim_run_for(200 * SEC);
	sim_settle(host);
	sim_host_free(host);
	free(listeners);
	return c;
}

static void test_cost(void)
{
	struct cost few = measure(10, 10);
	struct cost many = measure(100000, 60000);

	if (getenv("SIM_VERBOSE"))
		printf("  entries looked at for a frame: %.2f with 10, %.2f with 100000 connections\n"
		       "  for a SYN: %.2f and %.2f with 10 and 60000 listeners\n",
		       few.frame, many.frame, few.syn, many.syn);
	SIM_CHECK(many.frame < few.frame + 1.5, "%.2f, but %.2f with many", few.frame, many.frame);
	SIM_CHECK(many.syn < few.syn + 3, "%.2f, but %.2f with many", few.syn, many.syn);
}

/* A node of the in-tree driver takes 1 KiB, private data included, for its whole life. */
static void test_memory(void)
{
	if (getenv("SIM_VERBOSE"))
		printf("  a node has %zu bytes, an address look-up key %zu\n",
		       sizeof(struct irdma_cm_node), sizeof(struct irdma_cm_quad));
	SIM_CHECK(sizeof(struct irdma_cm_node) <= 640, "node of %zu bytes",
		  sizeof(struct irdma_cm_node));
}

int main(int argc, char **argv)
{
	sim_srandom(argc > 1 ? strtoull(argv[1], NULL, 0) : 1);
	test_begin("cost of a frame");
	test_cost();
	test_passed();
	test_begin("memory of a connection");
	test_memory();
	test_passed();
	return test_summary();
}
