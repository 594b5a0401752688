// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Queue pairs: creation, query, destruction, look-up and references (spec 02, 4 and 7.5).
 *
 * Verbs call in here in process context.  A kernel QP has its queues in one piece of coherent
 * memory; those of a user QP are a registration that mr.c keeps.
 */
#include <linux/dma-mapping.h>
#include <linux/dmapool.h>
#include <linux/log2.h>
#include <linux/slab.h>
#include <rdma/uverbs_ioctl.h>

#include "abi.h"
#include "ieq.h"
#include "qp.h"
#include "qpc.h"

#define CREATE_RESP_MIN		20	/* bytes of the driver's part, spec 02, 7.5 */

#define QUEUE_PAGE_SIZE		4096	/* bytes, of queue memory, whatever PAGE_SIZE is */

/* Completion contexts of kernel QPs are never used twice; 0 stands for "none". */
static atomic64_t next_context = ATOMIC64_INIT(1);

static struct kmem_cache *conn_cache;

/**
 * irdma_qp_init - once a module, before the first QP
 *
 * Context: process.
 * Return: 0 or -ENOMEM.
 */
int irdma_qp_init(void)
{
	conn_cache = KMEM_CACHE(irdma_qp_conn, 0);
	return conn_cache ? 0 : -ENOMEM;
}

/**
 * irdma_qp_exit - undo irdma_qp_init()
 *
 * Context: process.
 */
void irdma_qp_exit(void)
{
	rcu_barrier();		/* QPs on their way through free_conn() */
	kmem_cache_destroy(conn_cache);
}

static void free_conn(struct rcu_head *rcu)
{
	kmem_cache_free(conn_cache, container_of(rcu, struct irdma_qp_conn, rcu));
}

/* What the capabilities amount to (spec 02, 5.2). */
struct qp_sizes {
	u32 sq_quanta;
	u32 rq_quanta;
	u8 sq_shift;
	u8 rq_shift;
};

static u32 max_qp_wr(const struct irdma_hw_gen *gen)
{
	return (gen->max_sq_quanta - IRDMA_SQ_RESERVE) / gen->max_quanta_per_wr;
}

static int check_caps(struct irdma_device *dev, const struct ib_qp_cap *cap)
{
	const struct irdma_hw_gen *gen = dev->gen;

	if (cap->max_send_sge > gen->max_wq_frags || cap->max_recv_sge > gen->max_wq_frags ||
	    cap->max_inline_data > gen->max_inline) {
		ibdev_dbg(&dev->ibdev,
			  "QP wants %u send SGEs, %u receive SGEs, %u inline bytes; at most %u, %u, %u\n",
			  cap->max_send_sge, cap->max_recv_sge, cap->max_inline_data,
			  gen->max_wq_frags, gen->max_wq_frags, gen->max_inline);
		return -EINVAL;
	}
	return 0;
}

static void shifts(const struct irdma_hw_gen *gen, const struct ib_qp_cap *cap,
		   struct qp_sizes *sizes)
{
	const struct irdma_wq_fmt *fmt = gen->wq_fmt;

	sizes->sq_shift = irdma_wq_shift(fmt, cap->max_send_sge + fmt->imm_frag,
					 cap->max_inline_data);
	sizes->rq_shift = max(irdma_wq_shift(fmt, cap->max_recv_sge, 0), fmt->min_rq_shift);
}

/* The consumer told how much it wants to post. */
static int sizes_from_wrs(struct irdma_device *dev, const struct ib_qp_cap *cap,
			  struct qp_sizes *sizes)
{
	const struct irdma_hw_gen *gen = dev->gen;

	if (cap->max_send_wr > max_qp_wr(gen) || cap->max_recv_wr > max_qp_wr(gen)) {
		ibdev_dbg(&dev->ibdev, "QP wants %u sends and %u receives; at most %u each\n",
			  cap->max_send_wr, cap->max_recv_wr, max_qp_wr(gen));
		return -EINVAL;
	}
	shifts(gen, cap, sizes);
	return irdma_wq_depth(cap->max_send_wr, sizes->sq_shift, IRDMA_SQ_RESERVE,
			      gen->min_wq_size, gen->max_sq_quanta, &sizes->sq_quanta) ?:
	       irdma_wq_depth(cap->max_recv_wr, sizes->rq_shift, IRDMA_RQ_RESERVE,
			      gen->min_wq_size, gen->max_rq_quanta, &sizes->rq_quanta);
}

/* An older library told the sizes of the rings that it has laid out, in entries. */
static int sizes_from_rings(struct irdma_device *dev, const struct ib_qp_cap *cap,
			    struct qp_sizes *sizes)
{
	const struct irdma_hw_gen *gen = dev->gen;
	u64 sq, rq;

	shifts(gen, cap, sizes);
	sq = (u64)cap->max_send_wr << sizes->sq_shift;
	rq = (u64)cap->max_recv_wr << sizes->rq_shift;
	if (sq < 4 || sq > gen->max_sq_quanta || !is_power_of_2(sq) ||
	    rq < 4 || rq > gen->max_rq_quanta || !is_power_of_2(rq)) {
		ibdev_dbg(&dev->ibdev, "rings of %llu and %llu quanta; powers of two up to %u, %u\n",
			  sq, rq, gen->max_sq_quanta, gen->max_rq_quanta);
		return -EINVAL;
	}
	sizes->sq_quanta = sq;
	sizes->rq_quanta = rq;
	return 0;
}

static void grant_caps(struct irdma_qp *qp, const struct qp_sizes *sizes)
{
	qp->cap.max_send_wr = (sizes->sq_quanta - IRDMA_SQ_RESERVE) >> sizes->sq_shift;
	qp->cap.max_recv_wr = (sizes->rq_quanta - IRDMA_RQ_RESERVE) >> sizes->rq_shift;
}

static void set_sizes(struct irdma_qp *qp, const struct qp_sizes *sizes)
{
	qp->rq_shift = sizes->rq_shift;
	qp->sq_size_code = ilog2(sizes->sq_quanta) - 2;
	qp->rq_size_code = ilog2(sizes->rq_quanta) - 2;
}

static void free_q2(struct irdma_qp *qp)
{
	dma_pool_free(qp->dev->q2_bufs, qp->q2, qp->q2_dma);
}

static int alloc_q2(struct irdma_qp *qp)
{
	qp->q2 = dma_pool_zalloc(qp->dev->q2_bufs, GFP_KERNEL, &qp->q2_dma);
	return qp->q2 ? 0 : -ENOMEM;
}

static void free_kqueues(struct irdma_device *dev, struct irdma_kqueues *kq)
{
	if (kq->mem)
		dma_free_coherent(dma_dev(dev), kq->mem_size, kq->mem, kq->mem_dma);
	kvfree(kq->rq.wr_ids);
	kvfree(kq->sq.wrs);
	kfree(kq);
}

static void init_flushq(struct irdma_qp *qp, struct irdma_flushq *flushq, bool is_sq)
{
	INIT_LIST_HEAD(&flushq->link);
	flushq->qp = qp;
	flushq->is_sq = is_sq;
}

/* Returns NULL if there is no memory. */
static struct irdma_kqueues *alloc_kqueues(struct irdma_qp *qp, const struct qp_sizes *sizes)
{
	size_t sq_bytes = (size_t)sizes->sq_quanta * IRDMA_QUANTUM;
	size_t rq_bytes = (size_t)sizes->rq_quanta * IRDMA_QUANTUM;
	const struct irdma_hw_gen *gen = qp->dev->gen;
	struct irdma_kqueues *kq;

	kq = kzalloc(sizeof(*kq), GFP_KERNEL);
	if (!kq)
		return NULL;
	kq->sq.fmt = gen->wq_fmt;
	kq->sq.depth = sizes->sq_quanta;
	kq->sq.chunk = gen->max_sq_chunk;
	kq->rq.fmt = gen->wq_fmt;
	kq->rq.size = sizes->rq_quanta >> sizes->rq_shift;
	kq->rq.shift = sizes->rq_shift;
	kq->sq.wrs = kvcalloc(kq->sq.depth, sizeof(*kq->sq.wrs), GFP_KERNEL);
	kq->rq.wr_ids = kvcalloc(kq->rq.size, sizeof(*kq->rq.wr_ids), GFP_KERNEL);
	kq->mem_size = sq_bytes + rq_bytes + IRDMA_QP_SHADOW_SIZE;
	kq->mem = dma_alloc_coherent(dma_dev(qp->dev), kq->mem_size, &kq->mem_dma, GFP_KERNEL);
	if (!kq->sq.wrs || !kq->rq.wr_ids || !kq->mem) {
		free_kqueues(qp->dev, kq);
		return NULL;
	}
	kq->sq.ring = kq->mem;
	kq->rq.ring = kq->mem + sq_bytes;
	irdma_sq_init(&kq->sq, irdma_conn_wqes(qp->rts_ae));
	irdma_rq_init(&kq->rq);
	spin_lock_init(&kq->sq_lock);
	spin_lock_init(&kq->rq_lock);
	init_flushq(qp, &kq->sq_flush, true);
	init_flushq(qp, &kq->rq_flush, false);
	INIT_WORK(&kq->flush_work, irdma_qp_flush_work);
	return kq;
}

static int init_kernel_queues(struct irdma_qp *qp, const struct qp_sizes *sizes)
{
	struct irdma_kqueues *kq = alloc_kqueues(qp, sizes);
	int ret;

	if (!kq)
		return -ENOMEM;
	ret = alloc_q2(qp);
	if (ret) {
		free_kqueues(qp->dev, kq);
		return ret;
	}
	qp->kq = kq;
	qp->sq_addr = kq->mem_dma;
	qp->rq_addr = qp->sq_addr + sizes->sq_quanta * IRDMA_QUANTUM;
	qp->shadow_dma = qp->rq_addr + sizes->rq_quanta * IRDMA_QUANTUM;
	return 0;
}

static u32 queue_pages(u32 quanta)
{
	return DIV_ROUND_UP(quanta * IRDMA_QUANTUM, QUEUE_PAGE_SIZE);
}

static int init_user_queues(struct irdma_qp *qp, const struct qp_sizes *sizes,
			    struct irdma_ucontext *uctx, struct ib_udata *udata)
{
	struct irdma_abi_create_qp_req req;
	struct irdma_queue_mem mem;
	struct irdma_ureg *ureg;
	int ret;

	ret = irdma_udata_in(udata, &req, sizeof(req), sizeof(req));
	if (ret)
		return ret;
	ureg = irdma_ureg_claim(uctx, IRDMA_UREG_QP, req.queues_va, &mem);
	if (IS_ERR(ureg))
		return PTR_ERR(ureg);
	if (mem.pages < queue_pages(sizes->sq_quanta) ||
	    mem.rq_pages < queue_pages(sizes->rq_quanta)) {
		ibdev_dbg(&qp->dev->ibdev,
			  "queues registered with %u + %u pages, the QP needs %u + %u\n",
			  mem.pages, mem.rq_pages, queue_pages(sizes->sq_quanta),
			  queue_pages(sizes->rq_quanta));
		ret = -EINVAL;
		goto release;
	}
	ret = alloc_q2(qp);
	if (ret)
		goto release;

	qp->ureg = ureg;
	qp->sq_addr = mem.addr;
	qp->rq_addr = mem.rq_addr;
	qp->virt_queues = mem.virt;
	qp->shadow_dma = mem.shadow;
	qp->conn->context = req.context;
	return 0;

release:
	irdma_ureg_release(ureg);
	return ret;
}

static void free_queues(struct irdma_qp *qp)
{
	free_q2(qp);
	if (qp->kq)
		free_kqueues(qp->dev, qp->kq);
	if (qp->ureg)
		irdma_ureg_release(qp->ureg);
}

/**
 * irdma_qp_build_context - write the host context as the QP is now
 * @qp: queue pair, its mutex held or not visible to others
 * @context: receives IRDMA_QPC_WORDS words
 */
void irdma_qp_build_context(const struct irdma_qp *qp, __le64 *context)
{
	struct irdma_device *dev = qp->dev;
	struct irdma_qpc qpc = {
		.context = qp->conn->context,
		.sq_addr = qp->sq_addr,
		.rq_addr = qp->rq_addr,
		.q2_addr = qp->q2_dma,
		.pd = to_irdma_pd(qp->ibqp.pd)->id,
		.send_cqn = irdma_qp_send_cq(qp)->handler.cqn,
		.recv_cqn = irdma_qp_recv_cq(qp)->handler.cqn,
		.qs_handle = qp->conn->qos.qs_handle,
		.exception_qpn = IRDMA_QPN_IEQ,
		.src_mac = qp->have_tcp ? qp->conn->tcp.src_mac : dev->lan->netdev->dev_addr,
		.sq_size_code = qp->sq_size_code,
		.rq_size_code = qp->rq_size_code,
		.rq_shift = qp->rq_shift,
		.ib_reads = dev->gen->max_read_sges > 1,
		.privileged = !qp->user,
		.write_ok = qp->write_ok,
		.read_ok = qp->read_ok,
		.err_rq_idx = qp->err_rq_idx,
		.tcp = qp->have_tcp ? &qp->conn->tcp : NULL,
		.lsmm_len = qp->conn->lsmm.len,
	};

	irdma_qpc_build(context, &qpc);
}

static int hw_create(struct irdma_qp *qp)
{
	__le64 context[IRDMA_QPC_WORDS];
	struct irdma_qp_cmd cmd = {
		.qpn = qp->qpn,
		.type = IRDMA_QP_IWARP,
		.context = context,
		.shadow = qp->shadow_dma,
		.next_state = IRDMA_IW_IDLE,
		.virt_queues = qp->virt_queues,
		.cqnum_valid = true,
		.mac_valid = true,
	};
	struct irdma_cqp_req req;

	irdma_qp_build_context(qp, context);
	irdma_cqp_prep_create_qp(qp->dev, &req, &cmd);
	return irdma_cqp_exec(qp->dev, &req);
}

/* Returns whether the adapter gave the QP up. */
static bool hw_destroy(struct irdma_qp *qp)
{
	__le64 context[IRDMA_QPC_WORDS];
	struct irdma_qp_cmd cmd = {
		.qpn = qp->qpn,
		.type = IRDMA_QP_IWARP,
		.context = context,
		.shadow = qp->shadow_dma,
		.virt_queues = qp->virt_queues,
		.remove_hash = true,
	};
	struct irdma_cqp_req req;
	int ret;

	irdma_qp_build_context(qp, context);
	irdma_cqp_prep_destroy_qp(qp->dev, &req, &cmd);
	ret = irdma_cqp_exec(qp->dev, &req);
	if (!ret || irdma_is_dead(qp->dev))
		return true;
	irdma_err(qp->dev, "destroying QP %u failed: %pe (%#x/%#x)\n", qp->qpn,
		  ERR_PTR(ret), req.major, req.minor);
	to_irdma_pd(qp->ibqp.pd)->lost = true;
	irdma_qp_send_cq(qp)->lost = true;
	irdma_qp_recv_cq(qp)->lost = true;
	return false;
}

static void free_qpn(struct irdma_qp *qp, bool gone)
{
	if (gone)
		ida_free(&qp->dev->qp_ids, qp->qpn);
	else
		irdma_id_keep(qp->dev, "QP", qp->qpn);
}

/* Make the QP findable. */
static int publish(struct irdma_qp *qp)
{
	struct irdma_device *dev = qp->dev;

	refcount_set(&qp->conn->refs, 1);
	return xa_err(xa_store_irq(&dev->qps, qp->qpn, qp->conn, GFP_KERNEL));
}

static void unpublish(struct irdma_qp *qp)
{
	xa_erase_irq(&qp->dev->qps, qp->qpn);
	irdma_ref_put_and_wait(&qp->conn->refs);
}

static int answer_user(struct irdma_qp *qp, const struct qp_sizes *sizes,
		       struct irdma_ucontext *uctx, struct ib_udata *udata)
{
	struct irdma_abi_create_qp_resp resp = {
		.qpn = qp->qpn,
		.sq_wqes = sizes->sq_quanta >> sizes->sq_shift,
		.rq_wqes = sizes->rq_quanta >> sizes->rq_shift,
		.push_idx = uctx->legacy ? IRDMA_PUSH_IDX_LEGACY : 0,
		.lsmm = 1,
		.caps = IRDMA_QP_CAP_WRITE_IMM,
	};

	return irdma_udata_out(udata, &resp, sizeof(resp));
}

static void init_qp(struct irdma_qp *qp, struct irdma_qp_conn *conn,
		    const struct ib_qp_init_attr *attr, struct ib_udata *udata)
{
	conn->qp = qp;
	conn->context = atomic64_inc_return(&next_context);
	qp->conn = conn;
	qp->dev = to_irdma_dev(qp->ibqp.device);
	qp->user = udata;
	qp->rts_ae = qp->dev->gen->feature_flags & IRDMA_FEATURE_RTS_AE;
	qp->sig_all = attr->sq_sig_type == IB_SIGNAL_ALL_WR;
	qp->cap = attr->cap;
	qp->write_ok = true;
	qp->read_ok = true;
	qp->err_rq_idx = IRDMA_QPC_NO_RQ_IDX;
	qp->ib_state = IB_QPS_RESET;
	spin_lock_init(&qp->lock);
	mutex_init(&qp->mutex);
	INIT_WORK(&conn->ae_work, irdma_qp_ae_work);
	timer_setup(&conn->end_timer, irdma_qp_end_timer, 0);
	irdma_cm_qp_init(&conn->cm, &qp->ibqp);
}

static int check_init_attr(struct irdma_device *dev, const struct ib_qp_init_attr *attr,
			   struct ib_udata *udata)
{
	if (attr->create_flags || attr->qp_type != IB_QPT_RC || attr->srq)
		return -EOPNOTSUPP;
	if (udata && udata->outlen < CREATE_RESP_MIN)
		return -EINVAL;
	return check_caps(dev, &attr->cap);
}

/*
 * Numbers go round before one comes again: what is still under way for the last QP that had it,
 * an event or a frame, gets the time to arrive and find nobody.
 */
static int alloc_qpn(struct irdma_device *dev)
{
	u32 next = READ_ONCE(dev->next_qpn), end = dev->limits.qps;
	int id = -EINVAL;

	if (next > IRDMA_RESERVED_IDS && next < end)
		id = irdma_id_alloc(&dev->qp_ids, next, end);
	if (id < 0)
		id = irdma_id_alloc(&dev->qp_ids, IRDMA_RESERVED_IDS, end);
	if (id >= 0)
		WRITE_ONCE(dev->next_qpn, id + 1);
	return id;
}

/**
 * irdma_create_qp - create a queue pair in hardware state IDLE
 * @ibqp: zeroed object
 * @attr: what the consumer wants; the granted capabilities are returned in it
 * @udata: of user space, or NULL
 *
 * Context: process.
 * Return: 0, -EOPNOTSUPP for anything but a plain RC QP, -EINVAL for a limit
 * exceeded, the number of QPs included, -ENODATA if user space did not register the queues,
 * -ENOMEM, or the failure of the command.
 */
int irdma_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *attr, struct ib_udata *udata)
{
	struct irdma_device *dev = to_irdma_dev(ibqp->device);
	struct irdma_qp *qp = to_irdma_qp(ibqp);
	struct irdma_ucontext *uctx = NULL;
	struct irdma_qp_conn *conn;
	struct qp_sizes sizes;
	bool gone = true;
	int ret;

	if (udata)
		uctx = rdma_udata_to_drv_context(udata, struct irdma_ucontext, ibucontext);
	ret = check_init_attr(dev, attr, udata);
	if (ret)
		return ret;
	if (uctx && !uctx->raw_attrs)
		ret = sizes_from_rings(dev, &attr->cap, &sizes);
	else
		ret = sizes_from_wrs(dev, &attr->cap, &sizes);
	if (ret)
		return ret;

	conn = kmem_cache_zalloc(conn_cache, GFP_KERNEL);
	if (!conn)
		return -ENOMEM;
	init_qp(qp, conn, attr, udata);
	set_sizes(qp, &sizes);
	if (udata)
		ret = init_user_queues(qp, &sizes, uctx, udata);
	else
		ret = init_kernel_queues(qp, &sizes);
	if (ret)
		goto free_conn;
	if (!uctx || uctx->raw_attrs)
		grant_caps(qp, &sizes);

	ret = alloc_qpn(dev);
	if (ret < 0)
		goto free_queues;
	qp->qpn = ret;
	ibqp->qp_num = ret;
	irdma_qos_user_init(&qp->conn->qos, qp->qpn);
	ret = publish(qp);
	if (ret)
		goto free_id;
	ret = hw_create(qp);
	if (ret)
		goto unpublish;
	qp->iw_state = IRDMA_IW_IDLE;
	if (udata) {
		ret = answer_user(qp, &sizes, uctx, udata);
		if (ret)
			goto destroy;
	}
	attr->cap = qp->cap;
	return 0;

destroy:
	gone = hw_destroy(qp);
unpublish:
	unpublish(qp);
free_id:
	free_qpn(qp, gone);
free_queues:
	free_queues(qp);
free_conn:
	call_rcu(&conn->rcu, free_conn);
	return ret;
}

/**
 * irdma_query_qp - tell state and attributes
 * @ibqp: queue pair
 * @attr: state
 * @mask: which members of @attr are wanted; all are set
 * @init_attr: attributes of the creation
 *
 * Context: process.
 * Return: 0.
 */
int irdma_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		   struct ib_qp_init_attr *init_attr)
{
	struct irdma_qp *qp = to_irdma_qp(ibqp);

	memset(attr, 0, sizeof(*attr));
	memset(init_attr, 0, sizeof(*init_attr));
	mutex_lock(&qp->mutex);
	spin_lock_irq(&qp->lock);
	attr->qp_state = qp->ib_state;
	spin_unlock_irq(&qp->lock);
	attr->cur_qp_state = attr->qp_state;
	attr->cap = qp->cap;
	attr->port_num = 1;
	if (qp->write_ok)
		attr->qp_access_flags |= IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE;
	if (qp->read_ok)
		attr->qp_access_flags |= IB_ACCESS_REMOTE_READ;
	if (qp->have_tcp) {
		attr->max_rd_atomic = qp->conn->tcp.ord;
		attr->max_dest_rd_atomic = qp->conn->tcp.ird;
	}
	mutex_unlock(&qp->mutex);

	init_attr->event_handler = ibqp->event_handler;
	init_attr->qp_context = ibqp->qp_context;
	init_attr->send_cq = ibqp->send_cq;
	init_attr->recv_cq = ibqp->recv_cq;
	init_attr->srq = ibqp->srq;
	init_attr->cap = attr->cap;
	init_attr->sq_sig_type = qp->sig_all ? IB_SIGNAL_ALL_WR : IB_SIGNAL_REQ_WR;
	init_attr->qp_type = ibqp->qp_type;
	init_attr->port_num = 1;
	return 0;
}

static void cancel_works(struct irdma_qp *qp)
{
	timer_delete_sync(&qp->conn->end_timer);
	cancel_work_sync(&qp->conn->ae_work);
	if (qp->kq)
		cancel_work_sync(&qp->kq->flush_work);
}

/**
 * irdma_destroy_qp - destroy a queue pair
 * @ibqp: queue pair
 * @udata: unused
 *
 * Process context; returns when neither the hardware, nor the connection engine, nor an event
 * uses the QP any more.  Completions that were not polled are gone.
 *
 * Return: 0.
 */
int irdma_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata)
{
	struct irdma_qp *qp = to_irdma_qp(ibqp);
	struct irdma_device *dev = qp->dev;
	bool connected, gone;

	spin_lock_irq(&qp->lock);
	qp->destroying = true;
	spin_unlock_irq(&qp->lock);
	irdma_qp_wake(qp);
	connected = irdma_cm_qp_going(ibqp);
	cancel_works(qp);

	mutex_lock(&qp->mutex);
	irdma_qp_enter_error(qp);
	mutex_unlock(&qp->mutex);
	if (connected)
		irdma_cm_disconn(ibqp);

	unpublish(qp);
	cancel_works(qp);
	irdma_qp_forget_completions(qp);
	gone = hw_destroy(qp);
	irdma_ieq_forget(dev, qp->qpn);
	irdma_qos_leave(dev, &qp->conn->qos);
	if (gone)
		irdma_lsmm_put(to_irdma_pd(ibqp->pd), &qp->conn->lsmm);
	call_rcu(&qp->conn->rcu, free_conn);
	/* The next QP of this number, with the same context too, must not get our last events. */
	irdma_aeq_drain(dev);
	free_qpn(qp, gone);
	free_queues(qp);
	return 0;
}

/**
 * irdma_qp_lookup - find a QP and take a reference
 * @dev: device
 * @qpn: QP number
 *
 * Context: any.
 * Return: the QP, to be released by irdma_qp_rem_ref(), or NULL.
 */
struct ib_qp *irdma_qp_lookup(struct irdma_device *dev, u32 qpn)
{
	struct ib_qp *ibqp = NULL;
	struct irdma_qp_conn *conn;

	rcu_read_lock();
	conn = xa_load(&dev->qps, qpn);
	if (conn && refcount_inc_not_zero(&conn->refs))
		ibqp = &conn->qp->ibqp;
	rcu_read_unlock();
	return ibqp;
}

/**
 * irdma_get_qp - find a QP for iw_cm
 * @ibdev: device
 * @qpn: QP number
 *
 * iw_cm takes its reference by irdma_qp_add_ref() right after, without a protection against
 * destruction in between.  So the reference is taken here, and add_ref takes it over.
 * Atomic context.
 *
 * Return: the QP, or NULL if there is none or it is being destroyed.
 */
struct ib_qp *irdma_get_qp(struct ib_device *ibdev, int qpn)
{
	struct ib_qp *ibqp = irdma_qp_lookup(to_irdma_dev(ibdev), qpn);

	if (!ibqp)
		return NULL;
	if (READ_ONCE(to_irdma_qp(ibqp)->destroying)) {
		irdma_qp_rem_ref(ibqp);
		return NULL;
	}
	atomic_inc(&to_irdma_qp(ibqp)->conn->lent);
	return ibqp;
}

/**
 * irdma_qp_add_ref - take a reference
 * @ibqp: queue pair, referenced already or just returned by irdma_get_qp()
 *
 * Any context.
 */
void irdma_qp_add_ref(struct ib_qp *ibqp)
{
	struct irdma_qp_conn *conn = to_irdma_qp(ibqp)->conn;

	if (atomic_dec_if_positive(&conn->lent) < 0)
		refcount_inc(&conn->refs);
}

/**
 * irdma_qp_rem_ref - drop a reference
 * @ibqp: queue pair
 *
 * Any context.
 */
void irdma_qp_rem_ref(struct ib_qp *ibqp)
{
	irdma_ref_put(&to_irdma_qp(ibqp)->conn->refs);
}

/**
 * irdma_qp_cm - what the connection engine keeps in a QP
 * @ibqp: queue pair
 *
 * Return: never NULL.
 */
struct irdma_qp_cm *irdma_qp_cm(struct ib_qp *ibqp)
{
	return &to_irdma_qp(ibqp)->conn->cm;
}

/**
 * irdma_qp_conn_state - snapshot for the disconnect decision
 * @ibqp: queue pair
 * @st: result
 *
 * Any context.
 */
void irdma_qp_conn_state(struct ib_qp *ibqp, struct irdma_qp_conn_state *st)
{
	struct irdma_qp *qp = to_irdma_qp(ibqp);
	unsigned long flags;

	spin_lock_irqsave(&qp->lock, flags);
	st->iw_state = qp->iw_state;
	st->tcp_state = qp->tcp_state;
	st->last_ae = qp->last_ae;
	st->term_flags = qp->term_flags;
	st->destroying = qp->destroying;
	st->ib_state = qp->ib_state;
	spin_unlock_irqrestore(&qp->lock, flags);
}
