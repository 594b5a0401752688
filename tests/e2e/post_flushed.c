// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Two threads at once post sends and receives to one queue pair in state ERR: each work request
 * must come back, flushed, once, in the order of its thread, and within a second.  Nobody polls
 * meanwhile, since the adapter's library asks for a flush only when it finds its queue empty,
 * and misses that moment when another thread empties it.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ROUNDS		50
#define DEPTH		100
#define THREADS		2
#define POSTS		(DEPTH / THREADS)	/* of each kind, thread and round */
#define PATIENCE_S	1.0

static struct ibv_qp *qp;
static struct ibv_mr *mr;
static pthread_barrier_t start, posted;

static void must(int ok, const char *what)
{
	if (ok)
		return;
	printf("%s: expected success, got %m\n", what);
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static int post(uint64_t id, int send)
{
	struct ibv_sge sge = { .addr = (uintptr_t)mr->addr, .length = 64, .lkey = mr->lkey };
	struct ibv_send_wr swr = { .wr_id = id, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
				   .send_flags = IBV_SEND_SIGNALED };
	struct ibv_recv_wr rwr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 };
	struct ibv_send_wr *bad_send;
	struct ibv_recv_wr *bad_recv;

	return send ? ibv_post_send(qp, &swr, &bad_send) : ibv_post_recv(qp, &rwr, &bad_recv);
}

static void *poster(void *arg)
{
	uint64_t thread = (uintptr_t)arg;
	int i, round, send;

	for (round = 0; round < ROUNDS; round++) {
		pthread_barrier_wait(&start);
		for (i = round * POSTS; i < (round + 1) * POSTS; i++) {
			for (send = 0; send < 2; send++) {
				errno = post(thread << 32 | i, send);
				must(!errno, "posting");
			}
		}
		pthread_barrier_wait(&posted);
	}
	return NULL;
}

/* Takes what is there; returns how many. */
static int take(struct ibv_cq *cq, const char *name, uint32_t next[THREADS])
{
	struct ibv_wc wc[16];
	int i, n = ibv_poll_cq(cq, 16, wc);

	must(n >= 0, "polling");
	for (i = 0; i < n; i++) {
		uint32_t thread = wc[i].wr_id >> 32;

		if (thread >= THREADS || (uint32_t)wc[i].wr_id != next[thread] || wc[i].status != IBV_WC_WR_FLUSH_ERR) {
			printf("%s: expected %u or %u, flushed, got %#llx, %s\n", name, next[0], next[1],
			       (unsigned long long)wc[i].wr_id, ibv_wc_status_str(wc[i].status));
			exit(1);
		}
		next[thread]++;
	}
	return n;
}

/* Returns how many of a round are missing when time is up. */
static int take_all(struct ibv_cq *send_cq, struct ibv_cq *recv_cq)
{
	static uint32_t sent[THREADS], received[THREADS];
	double deadline = now() + PATIENCE_S;
	int left = 2 * THREADS * POSTS;

	while (left && now() < deadline)
		left -= take(send_cq, "sends", sent) + take(recv_cq, "receives", received);
	return left;
}

static void to_state(enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	errno = ibv_modify_qp(qp, &attr, IBV_QP_STATE);
	must(!errno, "modify");
}

int main(void)
{
	struct ibv_device **devices = ibv_get_device_list(NULL);
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	pthread_t threads[THREADS];
	struct ibv_context *context;
	struct ibv_pd *pd;
	int round, left;
	uintptr_t i;

	must(devices && devices[0], "finding a device");
	context = ibv_open_device(devices[0]);
	must(context != NULL, "opening the device");
	pd = ibv_alloc_pd(context);
	must(pd != NULL, "PD");
	mr = ibv_reg_mr(pd, aligned_alloc(4096, 4096), 4096, IBV_ACCESS_LOCAL_WRITE);
	init.send_cq = ibv_create_cq(context, 1024, NULL, NULL, 0);
	init.recv_cq = ibv_create_cq(context, 1024, NULL, NULL, 0);
	must(mr && init.send_cq && init.recv_cq, "region and CQs");
	qp = ibv_create_qp(pd, &init);
	must(qp != NULL, "QP");
	to_state(IBV_QPS_INIT);
	to_state(IBV_QPS_ERR);

	pthread_barrier_init(&start, NULL, THREADS + 1);
	pthread_barrier_init(&posted, NULL, THREADS + 1);
	for (i = 0; i < THREADS; i++)
		must(!pthread_create(&threads[i], NULL, poster, (void *)i), "thread");
	for (round = 0; round < ROUNDS; round++) {
		pthread_barrier_wait(&start);
		pthread_barrier_wait(&posted);
		left = take_all(init.send_cq, init.recv_cq);
		if (left) {
			printf("round %d: expected all to come back, %d of %d did not\n", round, left,
			       2 * THREADS * POSTS);
			return 1;
		}
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	must(!ibv_destroy_qp(qp) && !ibv_destroy_cq(init.send_cq) && !ibv_destroy_cq(init.recv_cq) &&
	     !ibv_dereg_mr(mr) && !ibv_dealloc_pd(pd), "giving back");
	return 0;
}
