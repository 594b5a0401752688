// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What an impatient program does with connections, for test_field_connect.py.  Runs in a guest:
 *
 *	field_cm connect ADDRESS PORT COUNT LENGTH
 *		resolves addresses and waits for a byte of input; then COUNT connections at once,
 *		with LENGTH bytes of private data that are overwritten as soon as
 *		rdma_connect() is back; prints the time of the slowest call, then each
 *		event.  Ends when all have failed, or with its input.
 *	field_cm churn ADDRESS PORT COUNT
 *		COUNT in turn; each is destroyed with its QP and PD as soon as it is made or refused.
 *	field_cm serve FAMILY PORT BACKLOG IRD ORD LENGTH [hello]
 *		listens on all addresses, FAMILY 4 or 6 (and 4), accepts with these depths and
 *		private data, says "hello" as soon as a connection is established, prints what
 *		it was told and what it receives.
 *	field_cm listen PORT THREADS
 *		listens on all addresses and stops listening, again and again, until its input ends.
 *	field_cm listen-cost PORT
 *		prints backlog and time of rdma_listen().
 *	field_cm share ADDRESS PORT
 *		two connections on one CQ, one goes with completions that nobody has polled;
 *		prints how many of each were polled.
 *
 * Times are microseconds.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define DEPTH		10
#define MAX_CONNS	400
#define CQ_DEPTH	(DEPTH * MAX_CONNS)
#define BUFFER		256
#define RESOLVE_MS	5000

static struct rdma_event_channel *channel;
static struct ibv_cq *cq;
static char buffer[DEPTH][BUFFER];
static volatile bool input_ended;

static void die(const char *what)
{
	fprintf(stderr, "field_cm: %s: %s\n", what, strerror(errno));
	exit(1);
}

static long long now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000LL + t.tv_nsec / 1000;
}

static void fill(unsigned char *p, size_t len, unsigned int index)
{
	while (len--)
		p[len] = len + index;
}

static enum rdma_cm_event_type next_event(struct rdma_cm_id **id)
{
	enum rdma_cm_event_type type;
	struct rdma_cm_event *event;

	if (rdma_get_cm_event(channel, &event))
		die("rdma_get_cm_event");
	type = event->event;
	*id = event->id;
	rdma_ack_cm_event(event);
	return type;
}

static void expect(enum rdma_cm_event_type wanted)
{
	struct rdma_cm_id *id;
	enum rdma_cm_event_type type = next_event(&id);

	if (type != wanted) {
		fprintf(stderr, "field_cm: expected %s, got %s\n", rdma_event_str(wanted),
			rdma_event_str(type));
		exit(1);
	}
}

/* All QPs of the program share a CQ that holds what they have posted. */
static void make_qp(struct rdma_cm_id *id, struct ibv_pd *pd)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = DEPTH, .max_recv_wr = DEPTH,
			 .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 16 },
	};

	if (!cq)
		cq = ibv_create_cq(id->verbs, CQ_DEPTH, NULL, NULL, 0);
	if (!cq)
		die("ibv_create_cq");
	attr.send_cq = cq;
	attr.recv_cq = cq;
	if (rdma_create_qp(id, pd, &attr))
		die("rdma_create_qp");
}

static struct rdma_cm_id *resolved(const char *address, int port)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct rdma_cm_id *id;

	inet_pton(AF_INET, address, &to.sin_addr);
	if (rdma_create_id(channel, &id, NULL, RDMA_PS_TCP))
		die("rdma_create_id");
	if (rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, RESOLVE_MS))
		die("rdma_resolve_addr");
	expect(RDMA_CM_EVENT_ADDR_RESOLVED);
	if (rdma_resolve_route(id, RESOLVE_MS))
		die("rdma_resolve_route");
	expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
	return id;
}

static void forget(struct rdma_cm_id *id)
{
	if (id->qp)
		rdma_destroy_qp(id);
	rdma_destroy_id(id);
}

/* Returns how long rdma_connect() took, or a negative errno. */
static long long connect_with(struct rdma_cm_id *id, unsigned int index, size_t length)
{
	unsigned char data[BUFFER];
	struct rdma_conn_param param = {
		.private_data = data, .private_data_len = length,
		.responder_resources = 32, .initiator_depth = 1,
	};
	long long start = now_us();

	fill(data, length, index);
	if (rdma_connect(id, &param))
		return -errno;
	memset(data, 0xee, sizeof(data));
	return now_us() - start;
}

/* --- connect --- */

static void tell(unsigned int index, const struct rdma_cm_event *event)
{
	const struct rdma_conn_param *p = &event->param.conn;
	const unsigned char *data = p->private_data;
	unsigned int i;

	printf("%u %s %d", index, rdma_event_str(event->event) + strlen("RDMA_CM_EVENT_"),
	       event->status);
	if (event->event == RDMA_CM_EVENT_ESTABLISHED ||
	    event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		printf(" ird %u ord %u data ", p->responder_resources, p->initiator_depth);
		for (i = 0; i < p->private_data_len; i++)
			printf("%02x", data[i]);
	}
	putchar('\n');
	fflush(stdout);
}

static unsigned int index_of(struct rdma_cm_id **ids, unsigned int count,
			     const struct rdma_cm_id *id)
{
	unsigned int i;

	for (i = 0; i < count && ids[i] != id; i++)
		;
	return i;
}

static int do_connect(const char *address, int port, unsigned int count, size_t length)
{
	static struct rdma_cm_id *ids[MAX_CONNS];
	struct pollfd fds[2] = { { .fd = 0, .events = POLLIN } };
	unsigned int i, left = count;
	struct rdma_cm_event *event;
	long long took, slowest = 0;
	char c;

	for (i = 0; i < count; i++) {
		ids[i] = resolved(address, port);
		make_qp(ids[i], NULL);
	}
	puts("resolved");
	fflush(stdout);
	if (read(0, &c, 1) < 1)
		return 0;
	for (i = 0; i < count; i++) {
		took = connect_with(ids[i], i, length);
		if (took < 0) {
			errno = -took;
			die("rdma_connect");
		}
		slowest = took > slowest ? took : slowest;
	}
	printf("called %lld\n", slowest);
	fflush(stdout);
	fds[1] = (struct pollfd){ .fd = channel->fd, .events = POLLIN };
	while (left && poll(fds, 2, -1) > 0 && !fds[0].revents) {
		if (rdma_get_cm_event(channel, &event))
			die("rdma_get_cm_event");
		i = index_of(ids, count, event->id);
		tell(i, event);
		if (event->event != RDMA_CM_EVENT_ESTABLISHED && i < count) {
			rdma_ack_cm_event(event);
			forget(ids[i]);
			ids[i] = NULL;
			left--;
		} else {
			rdma_ack_cm_event(event);
		}
	}
	for (i = 0; i < count; i++)
		if (ids[i])
			forget(ids[i]);
	return 0;
}

/* --- churn --- */

static int do_churn(const char *address, int port, unsigned int count)
{
	unsigned int made = 0, i;

	for (i = 0; i < count; i++) {
		struct rdma_cm_id *id = resolved(address, port), *told;
		struct ibv_pd *pd = ibv_alloc_pd(id->verbs);

		if (!pd)
			die("ibv_alloc_pd");
		make_qp(id, pd);
		if (connect_with(id, i, 8) < 0)
			die("rdma_connect");
		made += next_event(&told) == RDMA_CM_EVENT_ESTABLISHED;
		forget(id);
		if (ibv_dealloc_pd(pd))
			die("ibv_dealloc_pd");
	}
	printf("%u made, %u not\n", made, count - made);
	return 0;
}

/* --- serve --- */

static struct rdma_cm_id *listener_on(int family, int port, int backlog)
{
	/* The port is at the same place in a sockaddr_in. */
	struct sockaddr_in6 any = {
		.sin6_family = family == 4 ? AF_INET : AF_INET6, .sin6_port = htons(port),
	};
	struct rdma_cm_id *id;

	if (rdma_create_id(channel, &id, NULL, RDMA_PS_TCP))
		die("rdma_create_id");
	if (rdma_bind_addr(id, (struct sockaddr *)&any))
		die("rdma_bind_addr");
	if (rdma_listen(id, backlog))
		die("rdma_listen");
	return id;
}

static struct ibv_mr *post_receives(struct rdma_cm_id *id)
{
	struct ibv_mr *mr = rdma_reg_msgs(id, buffer, sizeof(buffer));
	unsigned int i;

	if (!mr)
		die("rdma_reg_msgs");
	for (i = 0; i < DEPTH; i++)
		if (rdma_post_recv(id, (void *)(uintptr_t)i, buffer[i], BUFFER, mr))
			die("rdma_post_recv");
	return mr;
}

static void accept_one(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	make_qp(id, NULL);
	post_receives(id);
	if (rdma_accept(id, param)) {
		fprintf(stderr, "field_cm: rdma_accept: %s\n", strerror(errno));
		forget(id);
	}
}

static void say_hello(struct rdma_cm_id *id)
{
	static char hello[] = "hello";

	if (rdma_post_send(id, NULL, hello, strlen(hello), NULL, IBV_SEND_INLINE))
		die("rdma_post_send");
}

static void show_received(void)
{
	struct ibv_wc wc;

	while (cq && ibv_poll_cq(cq, 1, &wc) > 0)
		if (wc.opcode & IBV_WC_RECV && !wc.status) {
			printf("received %.*s\n", (int)wc.byte_len, buffer[wc.wr_id]);
			fflush(stdout);
		}
}

/* Nothing tells of a completion and of an event at once: looks at both every millisecond. */
static void do_serve(struct rdma_cm_id *listener, struct rdma_conn_param *param, bool hello)
{
	struct pollfd fd = { .fd = channel->fd, .events = POLLIN };
	struct rdma_cm_event *event;

	puts("listening");
	fflush(stdout);
	for (;;) {
		enum rdma_cm_event_type type;
		struct rdma_cm_id *id;

		show_received();
		if (poll(&fd, 1, 1) <= 0)
			continue;
		if (rdma_get_cm_event(channel, &event))
			die("rdma_get_cm_event");
		type = event->event;
		id = event->id;
		tell(0, event);
		rdma_ack_cm_event(event);
		if (type == RDMA_CM_EVENT_CONNECT_REQUEST)
			accept_one(id, param);
		else if (type == RDMA_CM_EVENT_ESTABLISHED && hello)
			say_hello(id);
		else if (type != RDMA_CM_EVENT_ESTABLISHED &&
			 type != RDMA_CM_EVENT_TIMEWAIT_EXIT && id != listener)
			forget(id);
	}
}

/* --- listen --- */

static void *listen_loop(void *arg)
{
	struct rdma_event_channel *own = rdma_create_event_channel();
	struct sockaddr_in6 any = {
		.sin6_family = AF_INET6, .sin6_port = htons((uintptr_t)arg),
	};
	struct rdma_cm_id *id;
	uintptr_t rounds = 0;

	while (!input_ended) {
		if (rdma_create_id(own, &id, NULL, RDMA_PS_TCP))
			die("rdma_create_id");
		if (rdma_bind_addr(id, (struct sockaddr *)&any) || rdma_listen(id, 4))
			die("rdma_listen");
		rdma_destroy_id(id);
		rounds++;
	}
	return (void *)rounds;
}

static int do_listen(int port, unsigned int count)
{
	pthread_t threads[16];
	uintptr_t all = 0;
	unsigned int i;
	void *rounds;
	char c;

	for (i = 0; i < count; i++)
		if (pthread_create(&threads[i], NULL, listen_loop, (void *)(uintptr_t)(port + i)))
			die("pthread_create");
	puts("listening");
	fflush(stdout);
	while (read(0, &c, 1) > 0)
		;
	input_ended = true;
	for (i = 0; i < count; i++) {
		pthread_join(threads[i], &rounds);
		all += (uintptr_t)rounds;
	}
	printf("%lu rounds\n", (unsigned long)all);
	return 0;
}

static int do_listen_cost(int port)
{
	static const int backlogs[] = { 1, 1, 16, 256, 4096 };	/* the first one warms up */
	unsigned int i;

	for (i = 0; i < sizeof(backlogs) / sizeof(backlogs[0]); i++) {
		long long start = now_us();
		struct rdma_cm_id *id = listener_on(6, port, backlogs[i]);

		if (i)
			printf("%d %lld\n", backlogs[i], now_us() - start);
		rdma_destroy_id(id);
	}
	return 0;
}

/* --- share --- */

static int do_share(const char *address, int port)
{
	struct ibv_mr *mrs[2];
	struct rdma_cm_id *ids[2];
	unsigned int got[2] = { 0 }, i;
	long long end;
	uint32_t qpn;

	for (i = 0; i < 2; i++) {
		ids[i] = resolved(address, port);
		make_qp(ids[i], NULL);
		mrs[i] = post_receives(ids[i]);
		if (connect_with(ids[i], i, 8) < 0)
			die("rdma_connect");
		expect(RDMA_CM_EVENT_ESTABLISHED);
	}
	for (i = 0; i < 2; i++)
		rdma_disconnect(ids[i]);	/* flushes what is posted */
	qpn = ids[1]->qp->qp_num;
	rdma_destroy_qp(ids[0]);
	end = now_us() + 500000;
	while (now_us() < end) {
		struct ibv_wc wc;
		int n = ibv_poll_cq(cq, 1, &wc);

		if (n < 0)
			die("ibv_poll_cq");
		if (n)
			got[wc.qp_num == qpn]++;
	}
	printf("%u of the dead, %u of the living\n", got[0], got[1]);
	for (i = 0; i < 2; i++) {
		rdma_dereg_mr(mrs[i]);
		forget(ids[i]);
	}
	return 0;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	int a[8] = { 0 }, i;

	for (i = 2; i < argc && i < 8; i++)
		a[i] = atoi(argv[i]);
	channel = rdma_create_event_channel();
	if (!channel)
		die("rdma_create_event_channel");
	/* The device stays open between connections, and so our CQ stays valid. */
	if (!rdma_get_devices(NULL))
		die("rdma_get_devices");
	if (!strcmp(mode, "connect") && argc == 6 && a[4] <= MAX_CONNS && a[5] <= BUFFER)
		return do_connect(argv[2], a[3], a[4], a[5]);
	if (!strcmp(mode, "churn") && argc == 5)
		return do_churn(argv[2], a[3], a[4]);
	if (!strcmp(mode, "serve") && (argc == 8 || argc == 9) && a[7] <= BUFFER) {
		static unsigned char data[BUFFER];
		struct rdma_conn_param param = {
			.private_data = data, .private_data_len = a[7],
			.responder_resources = a[5], .initiator_depth = a[6],
		};

		fill(data, a[7], 100);
		do_serve(listener_on(a[2], a[3], a[4]), &param, argc == 9);
	}
	if (!strcmp(mode, "listen") && argc == 4 && a[3] <= 16)
		return do_listen(a[2], a[3]);
	if (!strcmp(mode, "listen-cost") && argc == 3)
		return do_listen_cost(a[2]);
	if (!strcmp(mode, "share") && argc == 4)
		return do_share(argv[2], a[3]);
	fprintf(stderr, "usage: see the head of field_cm.c\n");
	return 2;
}
