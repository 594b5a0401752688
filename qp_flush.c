// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Completions of queue pairs: what hardware completions mean to the consumer, and the end of
 * all that is posted to a QP in error (spec 02, 4.8 and 6.4).
 *
 * The hardware is asked to flush so that it is known to be done with the queues; what it says
 * then is not used for kernel QPs.  Every work request that is left in a flushed ring, or
 * posted to it later, completes in software when the CQ is polled, in order and once, because
 * taking it out of the ring is what completes it.  irdma_poll_cq() asks for these when its
 * own ring is empty, so they stay behind the hardware's.
 *
 * The functions called by irdma_poll_cq() run under the CQ's lock.
 */
#include <linux/rcupdate.h>

#include "qp.h"

static enum ib_wc_status status_of(u8 flush_code)
{
	switch (flush_code) {
	case IRDMA_FLUSH_PROT:
		return IB_WC_LOC_PROT_ERR;
	case IRDMA_FLUSH_REM_ACCESS:
		return IB_WC_REM_ACCESS_ERR;
	case IRDMA_FLUSH_LOC_QP_OP:
		return IB_WC_LOC_QP_OP_ERR;
	case IRDMA_FLUSH_REM_OP:
		return IB_WC_REM_OP_ERR;
	case IRDMA_FLUSH_LOC_LEN:
		return IB_WC_LOC_LEN_ERR;
	case IRDMA_FLUSH_FATAL:
		return IB_WC_FATAL_ERR;
	case IRDMA_FLUSH_RETRY_EXC:
		return IB_WC_RETRY_EXC_ERR;
	case IRDMA_FLUSH_MW_BIND:
		return IB_WC_MW_BIND_ERR;
	case IRDMA_FLUSH_REM_INV_REQ:
		return IB_WC_REM_INV_REQ_ERR;
	case IRDMA_FLUSH_RNR_RETRY_EXC:
		return IB_WC_RNR_RETRY_EXC_ERR;
	default:
		return IB_WC_WR_FLUSH_ERR;
	}
}

static bool complete_sq(struct irdma_qp *qp, const struct irdma_cqe *cqe, struct ib_wc *wc)
{
	struct irdma_sq_wr wr;

	if (!irdma_sq_retire(&qp->kq->sq, cqe->wqe_idx, cqe->error, &wr))
		return false;
	wc->wr_id = wr.wr_id;
	wc->opcode = wr.wc_op;
	wc->byte_len = wr.len;
	return true;
}

static bool complete_rq(struct irdma_qp *qp, const struct irdma_cqe *cqe, struct ib_wc *wc)
{
	bool found;

	/* The index of a failed receive is not to be relied on. */
	if (cqe->error)
		found = irdma_rq_flush_one(&qp->kq->rq, &wc->wr_id);
	else
		found = irdma_rq_retire(&qp->kq->rq, cqe->wqe_idx, &wc->wr_id);
	if (!found)
		return false;
	wc->opcode = IB_WC_RECV;
	wc->byte_len = cqe->len;
	if (cqe->has_imm) {
		wc->opcode = IB_WC_RECV_RDMA_WITH_IMM;
		wc->wc_flags |= IB_WC_WITH_IMM;
		wc->ex.imm_data = cpu_to_be32(cqe->imm);
	}
	if (cqe->invalidated) {
		wc->wc_flags |= IB_WC_WITH_INVALIDATE;
		wc->ex.invalidate_rkey = cqe->inv_stag;
	}
	return true;
}

/**
 * irdma_qp_complete - turn a hardware completion into one for the consumer
 * @dev: device
 * @cqe: the completion
 * @wc: result
 *
 * The lock of the CQ keeps the QP alive: destruction takes it after unpublishing the QP.
 *
 * Return: false if the consumer must not see it: flushes, internal entries, QPs that do not
 * exist any more.
 */
bool irdma_qp_complete(struct irdma_device *dev, const struct irdma_cqe *cqe, struct ib_wc *wc)
{
	struct irdma_qp_conn *conn;
	struct irdma_qp *qp = NULL;

	if (cqe->error && cqe->major == IRDMA_CQE_MAJOR_FLUSH)
		return false;
	rcu_read_lock();
	conn = xa_load(&dev->qps, cqe->qpn);
	if (conn && conn->context == cqe->context)
		qp = conn->qp;
	rcu_read_unlock();
	if (!qp)
		return false;

	memset(wc, 0, sizeof(*wc));
	wc->qp = &qp->ibqp;
	if (cqe->error) {
		wc->status = IB_WC_GENERAL_ERR;
		wc->vendor_err = cqe->major << 16 | cqe->minor;
	}
	return cqe->sq ? complete_sq(qp, cqe, wc) : complete_rq(qp, cqe, wc);
}

static bool take_flushed(struct irdma_flushq *flushq, struct ib_wc *wc)
{
	struct irdma_qp *qp = flushq->qp;
	struct irdma_sq_wr wr;
	u8 *code;
	bool found;

	memset(wc, 0, sizeof(*wc));
	if (flushq->is_sq) {
		found = irdma_sq_flush_one(&qp->kq->sq, &wr);
		wc->wr_id = wr.wr_id;
		wc->opcode = wr.wc_op;
		code = &qp->sq_flush_code;
	} else {
		found = irdma_rq_flush_one(&qp->kq->rq, &wc->wr_id);
		wc->opcode = IB_WC_RECV;
		code = &qp->rq_flush_code;
	}
	if (!found)
		return false;
	wc->qp = &qp->ibqp;
	wc->status = status_of(*code);
	wc->vendor_err = IRDMA_CQE_MAJOR_FLUSH << 16 | *code;
	*code = IRDMA_FLUSH_GENERAL;
	return true;
}

/**
 * irdma_qp_complete_flushed - completions of flushed work requests
 * @cq: CQ whose ring is empty
 * @num: room in @wc
 * @wc: results
 *
 * Return: how many there are.
 */
int irdma_qp_complete_flushed(struct irdma_cq *cq, int num, struct ib_wc *wc)
{
	struct irdma_flushq *flushq;
	int done = 0;

	list_for_each_entry(flushq, &to_irdma_kcq(cq)->flushing, link)
		while (done < num && take_flushed(flushq, &wc[done]))
			done++;
	return done;
}

static bool flushq_empty(const struct irdma_flushq *flushq)
{
	return flushq->is_sq ? irdma_sq_empty(&flushq->qp->kq->sq) : irdma_rq_empty(&flushq->qp->kq->rq);
}

/**
 * irdma_qp_flushed_left - are there flushed work requests to be polled?
 * @cq: CQ
 *
 * Return: true if the next poll finds some.
 */
bool irdma_qp_flushed_left(struct irdma_cq *cq)
{
	struct irdma_flushq *flushq;

	list_for_each_entry(flushq, &to_irdma_kcq(cq)->flushing, link)
		if (!flushq_empty(flushq))
			return true;
	return false;
}

static void hw_flush(struct irdma_qp *qp, bool sq, bool rq)
{
	struct irdma_flush_cmd cmd = {
		.qpn = qp->qpn,
		.sq = sq,
		.rq = rq,
		.sq_minor = qp->sq_flush_code ?: IRDMA_FLUSH_GENERAL,
		.rq_minor = qp->rq_flush_code ?: IRDMA_FLUSH_GENERAL,
	};
	struct irdma_cqp_req req;
	int ret;

	irdma_cqp_prep_flush(qp->dev, &req, &cmd);
	ret = irdma_cqp_exec(qp->dev, &req);
	if (ret && ret != -EBUSY && ret != -ENODEV)
		irdma_err_ratelimited(qp->dev, "QP %u: flushing failed: %pe\n", qp->qpn,
				      ERR_PTR(ret));
}

static void start_software_flush(struct irdma_cq *cq, struct irdma_flushq *flushq)
{
	spin_lock_irq(&cq->lock);
	if (list_empty(&flushq->link))
		list_add_tail(&flushq->link, &to_irdma_kcq(cq)->flushing);
	spin_unlock_irq(&cq->lock);
}

static void kick_cqs(struct irdma_qp *qp)
{
	irdma_cq_kick(irdma_qp_send_cq(qp));
	if (irdma_qp_recv_cq(qp) != irdma_qp_send_cq(qp))
		irdma_cq_kick(irdma_qp_recv_cq(qp));
}

/**
 * irdma_qp_flush_queues - complete all that is posted, now and from now on
 * @qp: queue pair in ERROR, its mutex held
 *
 * Idempotent.  Sleeps.  When it returns, a kernel consumer can poll the completions.
 */
void irdma_qp_flush_queues(struct irdma_qp *qp)
{
	if (qp->flushed)
		return;
	if (!qp->have_tcp)
		irdma_qp_fill_sq_start(qp);
	if (qp->user || !irdma_sq_empty(&qp->kq->sq) || !irdma_rq_empty(&qp->kq->rq))
		hw_flush(qp, true, true);
	WRITE_ONCE(qp->flushed, true);
	/* Whoever posts without seeing the flag has his entry seen below. */
	smp_mb();
	if (qp->user)
		return;
	start_software_flush(irdma_qp_send_cq(qp), &qp->kq->sq_flush);
	start_software_flush(irdma_qp_recv_cq(qp), &qp->kq->rq_flush);
	kick_cqs(qp);
}

/**
 * irdma_qp_flush_again - user space has posted to a flushed QP
 * @qp: user QP in ERROR, its mutex held
 * @sq: to the SQ
 * @rq: to the RQ
 */
void irdma_qp_flush_again(struct irdma_qp *qp, bool sq, bool rq)
{
	qp->sq_flush_code = IRDMA_FLUSH_GENERAL;
	qp->rq_flush_code = IRDMA_FLUSH_GENERAL;
	hw_flush(qp, sq, rq);
}

/**
 * irdma_qp_flush_work - work requests were posted to a flushed QP
 * @work: flush_work of a kernel QP
 */
void irdma_qp_flush_work(struct work_struct *work)
{
	struct irdma_kqueues *kq = container_of(work, struct irdma_kqueues, flush_work);

	kick_cqs(kq->sq_flush.qp);
}

static void stop_software_flush(struct irdma_cq *cq, struct irdma_flushq *flushq)
{
	spin_lock_irq(&cq->lock);
	list_del_init(&flushq->link);
	spin_unlock_irq(&cq->lock);
}

/**
 * irdma_qp_forget_completions - nobody who polls uses the QP any more
 * @qp: queue pair that cannot be found any more
 *
 * Completions that are still in the CQs will be dropped.
 */
void irdma_qp_forget_completions(struct irdma_qp *qp)
{
	if (!qp->kq)
		return;
	stop_software_flush(irdma_qp_send_cq(qp), &qp->kq->sq_flush);
	stop_software_flush(irdma_qp_recv_cq(qp), &qp->kq->rq_flush);
}
