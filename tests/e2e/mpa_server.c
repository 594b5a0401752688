// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A server that accepts every connection and never says a word: what a hand-played peer
 * attacks.  Runs in a guest until it is killed:
 *
 *	mpa_server PORT BACKLOG
 *
 * Each request gets a QP of its own without receive buffers; whatever becomes of the
 * connection, its resources go and the next one is served.  It listens on all addresses of
 * both families.  "listening" on standard output says that it is ready.  A request that
 * cannot be accepted is told on standard error, one line each, and does not end the server.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH	4

static struct ibv_cq *cq;

static void die(const char *what)
{
	fprintf(stderr, "mpa_server: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* All connections share a CQ that nobody polls: no work is ever posted. */
static bool make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = DEPTH, .max_recv_wr = DEPTH,
			 .max_send_sge = 1, .max_recv_sge = 1 },
	};

	if (!cq)
		cq = ibv_create_cq(id->verbs, DEPTH, NULL, NULL, 0);
	if (!cq)
		return false;
	attr.send_cq = cq;
	attr.recv_cq = cq;
	return !rdma_create_qp(id, NULL, &attr);
}

static void forget(struct rdma_cm_id *id)
{
	if (id->qp)
		rdma_destroy_qp(id);
	rdma_destroy_id(id);
}

static void serve(struct rdma_cm_id *id, const struct rdma_conn_param *asked)
{
	struct rdma_conn_param param = {
		.responder_resources = asked->responder_resources,
		.initiator_depth = asked->initiator_depth,
	};

	if (make_qp(id) && !rdma_accept(id, &param))
		return;
	/* ECONNRESET: the peer was gone before we came to it. */
	fprintf(stderr, "mpa_server: no connection for a request: %s\n", strerror(errno));
	forget(id);
}

int main(int argc, char **argv)
{
	struct sockaddr_in6 any = { .sin6_family = AF_INET6 };
	struct rdma_event_channel *channel;
	struct rdma_conn_param asked;
	enum rdma_cm_event_type type;
	struct rdma_cm_event *event;
	struct rdma_cm_id *listener;
	struct rdma_cm_id *id;

	if (argc != 3 || atoi(argv[1]) < 1 || atoi(argv[1]) > 65535 || atoi(argv[2]) < 1) {
		fprintf(stderr, "usage: mpa_server PORT BACKLOG (port 1 to 65535, backlog from 1)\n");
		return 2;
	}
	any.sin6_port = htons(atoi(argv[1]));
	channel = rdma_create_event_channel();
	if (!channel)
		die("rdma_create_event_channel");
	if (rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP))
		die("rdma_create_id");
	if (rdma_bind_addr(listener, (struct sockaddr *)&any))
		die("rdma_bind_addr");
	if (rdma_listen(listener, atoi(argv[2])))
		die("rdma_listen");
	puts("listening");
	fflush(stdout);

	while (!rdma_get_cm_event(channel, &event)) {
		type = event->event;
		id = event->id;
		asked = event->param.conn;
		rdma_ack_cm_event(event);
		switch (type) {
		case RDMA_CM_EVENT_CONNECT_REQUEST:
			serve(id, &asked);
			break;
		case RDMA_CM_EVENT_ESTABLISHED:
		case RDMA_CM_EVENT_TIMEWAIT_EXIT:
			break;
		case RDMA_CM_EVENT_DEVICE_REMOVAL:
			return 0;
		default:
			if (id != listener)
				forget(id);
		}
	}
	die("rdma_get_cm_event");
}
