// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Kernel queue pairs without a connection: creation, states, posting, and a flush that
 * completes everything once and in order; regions for fast registers.  Cnn: the field case
 * that a test proves.
 *
 * Loading the module runs the tests on the device that the parameter names; it fails with
 * -EIO if one of them does.  The last line in the log counts them.
 */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <rdma/ib_verbs.h>

#define DEADLINE_MS	2000
#define MAX_SGE		13

static char *dev = "irdma0";
module_param(dev, charp, 0444);
MODULE_PARM_DESC(dev, "name of the RDMA device");

#define CHECK(cond) do { \
	if (!(cond)) { \
		pr_err("kqp: %s:%d: %s\n", __func__, __LINE__, #cond); \
		return -EIO; \
	} \
} while (0)

#define TRY(call) do { \
	int try_ret = (call); \
	if (try_ret) { \
		pr_err("kqp: %s:%d: %s: %d\n", __func__, __LINE__, #call, try_ret); \
		return try_ret; \
	} \
} while (0)

struct setup {
	struct ib_device *ibdev;
	struct ib_pd *pd;
	struct ib_cq *send_cq;
	struct ib_cq *recv_cq;
	struct ib_qp *qp;
	atomic_t events;
	struct completion event;
};

static void on_completion(struct ib_cq *cq, void *context)
{
	struct setup *s = context;

	atomic_inc(&s->events);
	complete(&s->event);
}

static struct ib_cq *new_cq(struct setup *s, int entries)
{
	struct ib_cq_init_attr attr = { .cqe = entries };

	return ib_create_cq(s->ibdev, on_completion, NULL, s, &attr);
}

static void tear_down(struct setup *s)
{
	if (!IS_ERR_OR_NULL(s->qp))
		ib_destroy_qp(s->qp);
	if (!IS_ERR_OR_NULL(s->recv_cq) && s->recv_cq != s->send_cq)
		ib_destroy_cq(s->recv_cq);
	if (!IS_ERR_OR_NULL(s->send_cq))
		ib_destroy_cq(s->send_cq);
	if (!IS_ERR_OR_NULL(s->pd))
		ib_dealloc_pd(s->pd);
}

static struct ib_qp_init_attr qp_attr(struct setup *s, u32 wrs, u32 sges)
{
	return (struct ib_qp_init_attr) {
		.send_cq = s->send_cq,
		.recv_cq = s->recv_cq,
		.cap = {
			.max_send_wr = wrs,
			.max_recv_wr = wrs,
			.max_send_sge = sges,
			.max_recv_sge = sges,
		},
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
	};
}

static int set_up(struct setup *s, u32 wrs, u32 sges, bool one_cq)
{
	struct ib_qp_init_attr attr;

	init_completion(&s->event);
	s->pd = ib_alloc_pd(s->ibdev, 0);
	if (IS_ERR(s->pd))
		return PTR_ERR(s->pd);
	s->send_cq = new_cq(s, 1024);
	s->recv_cq = one_cq ? s->send_cq : new_cq(s, 1024);
	if (IS_ERR(s->send_cq) || IS_ERR(s->recv_cq))
		return -ENOMEM;
	attr = qp_attr(s, wrs, sges);
	s->qp = ib_create_qp(s->pd, &attr);
	return PTR_ERR_OR_ZERO(s->qp);
}

static int to_state(struct ib_qp *qp, enum ib_qp_state state)
{
	struct ib_qp_attr attr = { .qp_state = state };

	return ib_modify_qp(qp, &attr, IB_QP_STATE);
}

static int state_is(struct ib_qp *qp, enum ib_qp_state state)
{
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr;

	TRY(ib_query_qp(qp, &attr, IB_QP_STATE, &init));
	CHECK(attr.qp_state == state && attr.cur_qp_state == state);
	CHECK(init.send_cq == qp->send_cq && init.recv_cq == qp->recv_cq);
	return 0;
}

static int post_recvs(struct ib_qp *qp, u64 first, u32 num)
{
	struct ib_sge sge = { .addr = 0x1000, .length = 64, .lkey = qp->pd->local_dma_lkey };
	const struct ib_recv_wr *bad;
	u32 i;

	for (i = 0; i < num; i++) {
		struct ib_recv_wr wr = { .wr_id = first + i, .sg_list = &sge, .num_sge = 1 };

		TRY(ib_post_recv(qp, &wr, &bad));
	}
	return 0;
}

static int post_send(struct ib_qp *qp, u64 id, enum ib_wr_opcode op, u32 sges)
{
	struct ib_sge list[MAX_SGE];
	struct ib_rdma_wr wr = {
		.wr = {
			.wr_id = id,
			.opcode = op,
			.sg_list = list,
			.num_sge = sges,
			.send_flags = id & 1 ? IB_SEND_SIGNALED : 0,
		},
		.remote_addr = 0x1000,
		.rkey = 0x100,
	};
	const struct ib_send_wr *bad;
	u32 i;

	for (i = 0; i < sges; i++)
		list[i] = (struct ib_sge) {
			.addr = 0x1000 * (i + 1), .length = 64, .lkey = qp->pd->local_dma_lkey,
		};
	return ib_post_send(qp, &wr.wr, &bad);
}

static int post_sends(struct ib_qp *qp, u64 first, u32 num)
{
	u32 i;

	for (i = 0; i < num; i++)
		TRY(post_send(qp, first + i, IB_WR_SEND, 1));
	return 0;
}

/* The next @num completions of @cq are flushed @first, @first + 1, ... */
static int expect_flushed(struct ib_cq *cq, struct ib_qp *qp, u64 first, u32 num, bool recv)
{
	unsigned long deadline = jiffies + msecs_to_jiffies(DEADLINE_MS);
	struct ib_wc wc;
	u32 got = 0;
	int n;

	while (got < num) {
		n = ib_poll_cq(cq, 1, &wc);
		CHECK(n >= 0);
		if (!n) {
			if (time_after(jiffies, deadline))
				pr_err("kqp: %u of %u completions\n", got, num);
			CHECK(!time_after(jiffies, deadline));
			usleep_range(100, 200);
			continue;
		}
		if (wc.wr_id != first + got)
			pr_err("kqp: wr_id %llu, not %llu\n", wc.wr_id, first + got);
		CHECK(wc.wr_id == first + got);
		CHECK(wc.status == IB_WC_WR_FLUSH_ERR);
		CHECK(wc.qp == qp);
		CHECK(!!(wc.opcode & IB_WC_RECV) == recv);
		got++;
	}
	return 0;
}

static int expect_nothing(struct ib_cq *cq)
{
	struct ib_wc wc;

	CHECK(!ib_poll_cq(cq, 1, &wc));
	return 0;
}

/* C28, C29: without a connection, each queue on its own CQ. */
static int flush_on_two_cqs(struct setup *s)
{
	TRY(set_up(s, 64, 1, false));
	TRY(to_state(s->qp, IB_QPS_INIT));
	TRY(post_recvs(s->qp, 100, 64));
	TRY(post_sends(s->qp, 500, 8));
	TRY(expect_nothing(s->send_cq));
	TRY(to_state(s->qp, IB_QPS_ERR));
	TRY(expect_flushed(s->recv_cq, s->qp, 100, 64, true));
	TRY(expect_flushed(s->send_cq, s->qp, 500, 8, false));
	TRY(expect_nothing(s->recv_cq));
	return expect_nothing(s->send_cq);
}

/* C31 */
static int post_to_error(struct setup *s)
{
	static const u32 counts[] = { 1, 2, 50 };
	u32 i;

	TRY(set_up(s, 64, 1, false));
	TRY(to_state(s->qp, IB_QPS_ERR));
	for (i = 0; i < ARRAY_SIZE(counts); i++) {
		TRY(post_sends(s->qp, 1000 * i, counts[i]));
		TRY(post_recvs(s->qp, 1000 * i, counts[i]));
		TRY(expect_flushed(s->recv_cq, s->qp, 1000 * i, counts[i], true));
		TRY(expect_flushed(s->send_cq, s->qp, 1000 * i, counts[i], false));
		TRY(to_state(s->qp, IB_QPS_ERR));
	}
	TRY(expect_nothing(s->send_cq));
	return expect_nothing(s->recv_cq);
}

static int wait_event_of(struct setup *s, int before)
{
	CHECK(wait_for_completion_timeout(&s->event, msecs_to_jiffies(DEADLINE_MS)));
	CHECK(atomic_read(&s->events) > before);
	return 0;
}

static int events_of_flushes(struct setup *s)
{
	int before = 0, i;

	TRY(set_up(s, 64, 1, true));
	TRY(post_sends(s->qp, 1, 1));
	for (i = 1; i <= 3; i++) {
		reinit_completion(&s->event);
		CHECK(ib_req_notify_cq(s->send_cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS) == 0);
		if (i == 1)
			TRY(to_state(s->qp, IB_QPS_ERR));
		else
			TRY(post_sends(s->qp, i, 1));
		TRY(wait_event_of(s, before));
		before = atomic_read(&s->events);
		TRY(expect_flushed(s->send_cq, s->qp, i, 1, false));
	}
	TRY(post_recvs(s->qp, 77, 1));
	CHECK(ib_req_notify_cq(s->send_cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS) == 1);
	return expect_flushed(s->send_cq, s->qp, 77, 1, true);
}

static int drain(struct setup *s)
{
	unsigned long start = jiffies;
	struct ib_qp_init_attr attr;
	struct ib_cq *cq;

	TRY(set_up(s, 64, 1, false));
	ib_destroy_qp(s->qp);
	cq = ib_alloc_cq(s->ibdev, s, 256, 0, IB_POLL_WORKQUEUE);
	CHECK(!IS_ERR(cq));
	attr = qp_attr(s, 64, 1);
	attr.send_cq = cq;
	attr.recv_cq = cq;
	s->qp = ib_create_qp(s->pd, &attr);
	if (!IS_ERR(s->qp)) {
		ib_drain_qp(s->qp);
		ib_destroy_qp(s->qp);
	}
	ib_free_cq(cq);
	CHECK(!IS_ERR(s->qp));
	s->qp = NULL;
	CHECK(time_before(jiffies, start + msecs_to_jiffies(DEADLINE_MS)));
	return 0;
}

/* C30: sizes that pad the ring with NOPs, for several laps. */
static int mixed_sizes(struct setup *s)
{
	static const enum ib_wr_opcode ops[] = { IB_WR_SEND, IB_WR_RDMA_WRITE, IB_WR_RDMA_READ };
	u32 posted = 0, done = 0;

	TRY(set_up(s, 128, MAX_SGE, true));
	TRY(to_state(s->qp, IB_QPS_ERR));
	while (posted < 3000) {
		u32 burst = 1 + posted * 7 % 30;

		while (burst--) {
			u32 sges = 1 + posted * 5 % MAX_SGE;

			TRY(post_send(s->qp, posted, ops[posted % ARRAY_SIZE(ops)], sges));
			posted++;
		}
		TRY(expect_flushed(s->send_cq, s->qp, done, posted - done, false));
		done = posted;
	}
	return expect_nothing(s->send_cq);
}

/* C34, C48: as much as is granted can be posted, one more is refused. */
static int full_queues(struct setup *s)
{
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr;
	u32 sent = 0;

	TRY(set_up(s, 20, MAX_SGE, false));
	TRY(ib_query_qp(s->qp, &attr, IB_QP_CAP, &init));
	CHECK(init.cap.max_send_wr >= 20 && init.cap.max_recv_wr >= 20);
	CHECK(init.cap.max_send_sge == MAX_SGE && init.cap.max_recv_sge == MAX_SGE);
	while (sent < init.cap.max_send_wr)
		TRY(post_send(s->qp, sent++, IB_WR_SEND, MAX_SGE));
	CHECK(post_send(s->qp, sent, IB_WR_SEND, MAX_SGE) == -ENOMEM);
	TRY(post_recvs(s->qp, 0, init.cap.max_recv_wr));
	{
		struct ib_recv_wr wr = { };
		const struct ib_recv_wr *bad = NULL;

		CHECK(ib_post_recv(s->qp, &wr, &bad) == -ENOMEM);
		CHECK(bad == &wr);
	}
	TRY(to_state(s->qp, IB_QPS_ERR));
	TRY(expect_flushed(s->send_cq, s->qp, 0, sent, false));
	TRY(expect_flushed(s->recv_cq, s->qp, 0, init.cap.max_recv_wr, true));
	return expect_nothing(s->send_cq);
}

/* C34: what stands before the bad one is posted, what follows is not. */
static int bad_chains(struct setup *s)
{
	const struct ib_send_wr *bad = NULL;
	struct ib_send_wr wr[10] = { };
	struct ib_sge sges[3] = { };
	u32 i;

	TRY(set_up(s, 64, 2, true));
	for (i = 0; i < ARRAY_SIZE(wr); i++) {
		wr[i].wr_id = i;
		wr[i].opcode = IB_WR_SEND;
		wr[i].sg_list = sges;
		wr[i].next = i + 1 < ARRAY_SIZE(wr) ? &wr[i + 1] : NULL;
	}
	wr[3].num_sge = 3;
	CHECK(ib_post_send(s->qp, wr, &bad) == -EINVAL);
	CHECK(bad == &wr[3]);
	wr[3].num_sge = 0;
	wr[5].opcode = IB_WR_ATOMIC_CMP_AND_SWP;
	CHECK(ib_post_send(s->qp, &wr[3], &bad) == -EINVAL);
	CHECK(bad == &wr[5]);
	wr[5].opcode = IB_WR_SEND;
	TRY(ib_post_send(s->qp, &wr[5], &bad));
	TRY(to_state(s->qp, IB_QPS_ERR));
	TRY(expect_flushed(s->send_cq, s->qp, 0, ARRAY_SIZE(wr), false));
	return expect_nothing(s->send_cq);
}

/* C26 */
static int states(struct setup *s)
{
	TRY(set_up(s, 8, 1, true));
	TRY(state_is(s->qp, IB_QPS_RESET));
	TRY(to_state(s->qp, IB_QPS_INIT));
	TRY(state_is(s->qp, IB_QPS_INIT));
	CHECK(to_state(s->qp, IB_QPS_RTS) == -EINVAL);
	TRY(state_is(s->qp, IB_QPS_INIT));
	TRY(to_state(s->qp, IB_QPS_SQD));
	TRY(state_is(s->qp, IB_QPS_INIT));
	TRY(to_state(s->qp, IB_QPS_ERR));
	TRY(state_is(s->qp, IB_QPS_ERR));
	CHECK(to_state(s->qp, IB_QPS_INIT) == -EINVAL);
	CHECK(to_state(s->qp, IB_QPS_SQD) == -EINVAL);
	TRY(to_state(s->qp, IB_QPS_ERR));
	return state_is(s->qp, IB_QPS_ERR);
}

static int refused(struct setup *s, struct ib_qp_cap cap, enum ib_qp_type type, int want)
{
	struct ib_qp_init_attr attr = qp_attr(s, 8, 1);
	struct ib_qp *qp;

	attr.cap = cap;
	attr.qp_type = type;
	qp = ib_create_qp(s->pd, &attr);
	if (!IS_ERR(qp))
		ib_destroy_qp(qp);
	CHECK(IS_ERR(qp) && PTR_ERR(qp) == want);
	return 0;
}

/* C48 */
static int limits(struct setup *s)
{
	const struct ib_device_attr *a = &s->ibdev->attrs;
	struct ib_qp_cap most = {
		.max_send_wr = a->max_qp_wr, .max_recv_wr = a->max_qp_wr,
		.max_send_sge = a->max_send_sge, .max_recv_sge = a->max_recv_sge,
	};
	struct ib_qp_init_attr attr;
	struct ib_qp_cap cap;

	TRY(set_up(s, 8, 1, true));
	ib_destroy_qp(s->qp);
	attr = qp_attr(s, 8, 1);
	attr.cap = most;
	s->qp = ib_create_qp(s->pd, &attr);
	CHECK(!IS_ERR(s->qp));
	CHECK(attr.cap.max_send_wr >= most.max_send_wr && attr.cap.max_recv_wr >= most.max_recv_wr);
#define REFUSE(field, value) \
	do { cap = most; cap.field = value; TRY(refused(s, cap, IB_QPT_RC, -EINVAL)); } while (0)
	REFUSE(max_send_wr, most.max_send_wr + 1);
	REFUSE(max_recv_wr, most.max_recv_wr + 1);
	REFUSE(max_send_wr, U32_MAX);
	REFUSE(max_recv_wr, U32_MAX);
	REFUSE(max_send_sge, most.max_send_sge + 1);
	REFUSE(max_recv_sge, most.max_recv_sge + 1);
	REFUSE(max_inline_data, U32_MAX);
#undef REFUSE
	return refused(s, most, IB_QPT_UD, -EOPNOTSUPP);
}

/* Takes @num completions of either QP, returns in @mine those of the first. */
static int poll_some(struct setup *s, u32 num, u32 *mine)
{
	struct ib_wc wc;

	*mine = 0;
	while (num--) {
		CHECK(ib_poll_cq(s->send_cq, 1, &wc) == 1);
		*mine += wc.qp == s->qp;
	}
	return 0;
}

/* C21: completions of a QP that is gone are dropped, those of its neighbour stay. */
static int neighbours(struct setup *s)
{
	struct ib_qp_init_attr attr;
	struct ib_qp *other;
	u32 mine;

	TRY(set_up(s, 64, 1, true));
	attr = qp_attr(s, 64, 1);
	other = ib_create_qp(s->pd, &attr);
	CHECK(!IS_ERR(other));
	if (post_recvs(other, 1, 64) || post_recvs(s->qp, 1000, 64) ||
	    to_state(other, IB_QPS_ERR) || to_state(s->qp, IB_QPS_ERR) ||
	    poll_some(s, 10, &mine)) {
		ib_destroy_qp(other);
		return -EIO;
	}
	ib_destroy_qp(other);
	TRY(expect_flushed(s->send_cq, s->qp, 1000 + mine, 64 - mine, true));
	return expect_nothing(s->send_cq);
}

static int post_reg(struct ib_qp *qp, struct ib_mr *mr, u32 key, u64 len)
{
	struct ib_reg_wr wr = {
		.wr = { .opcode = IB_WR_REG_MR },
		.mr = mr, .key = key, .access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ,
	};
	const struct ib_send_wr *bad;

	mr->length = len;
	return ib_post_send(qp, &wr.wr, &bad);
}

/* The keys that are refused, the length that would mean all of memory among them. */
static int try_reg(struct setup *s, struct ib_mr *mr)
{
	struct scatterlist sg[2];

	CHECK(post_reg(s->qp, mr, mr->rkey, SZ_4K) == -EINVAL);	/* no pages yet */
	sg_init_table(sg, 2);
	sg_dma_address(&sg[0]) = SZ_64K;
	sg_dma_len(&sg[0]) = SZ_4K;
	sg_dma_address(&sg[1]) = 4 * (u64)SZ_1G + SZ_4K;
	sg_dma_len(&sg[1]) = SZ_4K;
	CHECK(ib_map_mr_sg(mr, sg, 2, NULL, SZ_4K) == 2);
	CHECK(post_reg(s->qp, mr, mr->rkey, 0) == -EINVAL);
	CHECK(post_reg(s->qp, mr, mr->rkey, BIT_ULL(41)) == -EINVAL);
	CHECK(post_reg(s->qp, mr, mr->rkey ^ 0x100, SZ_8K) == -EINVAL);
	return post_reg(s->qp, mr, mr->rkey, SZ_8K);
}

/* C40: a length of 0 is never registered. C42: as many pages as the device says, no more. */
static int fast_registers(struct setup *s)
{
	u32 most = s->ibdev->attrs.max_fast_reg_page_list_len;
	u32 sizes[] = { 1, 2, 511, 512, 513, most - 1, most };
	struct ib_mr *mr;
	u32 i;
	int ret;

	TRY(set_up(s, 64, 1, true));
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		mr = ib_alloc_mr(s->pd, IB_MR_TYPE_MEM_REG, sizes[i]);
		CHECK(!IS_ERR(mr));
		ret = sizes[i] > 1 ? try_reg(s, mr) : 0;
		CHECK(!ib_dereg_mr(mr));
		TRY(ret);
	}
	CHECK(PTR_ERR(ib_alloc_mr(s->pd, IB_MR_TYPE_MEM_REG, 0)) == -EINVAL);
	CHECK(PTR_ERR(ib_alloc_mr(s->pd, IB_MR_TYPE_MEM_REG, most + 1)) == -EINVAL);
	CHECK(PTR_ERR(ib_alloc_mr(s->pd, IB_MR_TYPE_MEM_REG, U32_MAX)) == -EINVAL);
	return 0;
}

static int create_destroy(struct setup *s)
{
	struct ib_qp_init_attr attr;
	ktime_t start;
	u32 i;

	TRY(set_up(s, 64, 1, true));
	start = ktime_get();
	for (i = 0; i < 1000; i++) {
		struct ib_qp *qp;

		attr = qp_attr(s, 64, 1);
		qp = ib_create_qp(s->pd, &attr);
		CHECK(!IS_ERR(qp));
		ib_destroy_qp(qp);
	}
	pr_info("kqp: create and destroy a QP: %lld us\n",
		ktime_us_delta(ktime_get(), start) / 1000);
	return 0;
}

static const struct {
	const char *name;
	int (*run)(struct setup *s);
} tests[] = {
	{ "flush on two CQs", flush_on_two_cqs },
	{ "post to a QP in error", post_to_error },
	{ "events of flushes", events_of_flushes },
	{ "drain", drain },
	{ "mixed sizes", mixed_sizes },
	{ "full queues", full_queues },
	{ "bad chains", bad_chains },
	{ "states", states },
	{ "limits", limits },
	{ "neighbours on a CQ", neighbours },
	{ "fast registers", fast_registers },
	{ "create and destroy", create_destroy },
};

static u32 runs, failures;

static int kqp_add(struct ib_device *ibdev)
{
	u32 i;

	if (strcmp(dev_name(&ibdev->dev), dev))
		return -EOPNOTSUPP;
	runs++;
	for (i = 0; i < ARRAY_SIZE(tests); i++) {
		struct setup s = { .ibdev = ibdev };
		int ret = tests[i].run(&s);

		tear_down(&s);
		if (ret) {
			pr_err("kqp: FAILED: %s\n", tests[i].name);
			failures++;
		}
	}
	return 0;
}

static void kqp_remove(struct ib_device *ibdev, void *data)
{
}

static struct ib_client kqp_client = {
	.name = "kqp_test",
	.add = kqp_add,
	.remove = kqp_remove,
};

static int __init kqp_init(void)
{
	int ret = ib_register_client(&kqp_client);

	if (ret)
		return ret;
	ib_unregister_client(&kqp_client);
	if (!runs) {
		pr_err("kqp: no RDMA device %s\n", dev);
		return -ENODEV;
	}
	pr_info("kqp: %zu passed, %u failed\n", ARRAY_SIZE(tests) - failures, failures);
	return failures ? -EIO : 0;
}

static void __exit kqp_exit(void)
{
}

module_init(kqp_init);
module_exit(kqp_exit);
MODULE_LICENSE("Dual BSD/GPL");
MODULE_DESCRIPTION("Tests of kernel queue pairs");
