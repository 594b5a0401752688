// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Posting to kernel queue pairs (spec 02, 5).  Any context; the producer lock of the queue is
 * held while entries are written, so the chain of a call stays together.
 *
 * Posting is legal in every state.  What a QP in error is given completes as flushed.
 */
#include "qp.h"

static bool send_len_ok(struct irdma_qp *qp, const struct ib_send_wr *wr)
{
	u64 len = 0;
	int i;

	if (wr->num_sge < 0 || wr->num_sge > qp->cap.max_send_sge)
		return false;
	for (i = 0; i < wr->num_sge; i++)
		len += wr->sg_list[i].length;
	if (wr->send_flags & IB_SEND_INLINE)
		return len <= qp->cap.max_inline_data;
	return len <= IRDMA_MAX_MSG_SIZE;
}

static void set_common(struct irdma_qp *qp, const struct ib_send_wr *wr, struct irdma_sq_msg *msg)
{
	*msg = (struct irdma_sq_msg) {
		.wr_id = wr->wr_id,
		.sges = wr->sg_list,
		.num_sge = wr->num_sge,
		.inline_data = wr->send_flags & IB_SEND_INLINE,
		.signaled = qp->sig_all || (wr->send_flags & IB_SEND_SIGNALED),
		.read_fence = wr->send_flags & IB_SEND_FENCE,
	};
}

static int post_message(struct irdma_qp *qp, const struct ib_send_wr *wr)
{
	bool solicited = wr->send_flags & IB_SEND_SOLICITED;
	struct irdma_sq_msg msg;

	if (!send_len_ok(qp, wr))
		return -EINVAL;
	set_common(qp, wr, &msg);
	msg.wc_op = IB_WC_SEND;
	if (wr->opcode == IB_WR_SEND_WITH_INV) {
		msg.op = solicited ? IRDMA_OP_SEND_SOL_INV : IRDMA_OP_SEND_INV;
		msg.stag = wr->ex.invalidate_rkey;
	} else {
		msg.op = solicited ? IRDMA_OP_SEND_SOL : IRDMA_OP_SEND;
	}
	return irdma_sq_put_msg(&qp->kq->sq, &msg);
}

static int post_write(struct irdma_qp *qp, const struct ib_send_wr *wr)
{
	struct irdma_sq_msg msg;

	if (!send_len_ok(qp, wr))
		return -EINVAL;
	set_common(qp, wr, &msg);
	msg.wc_op = IB_WC_RDMA_WRITE;
	msg.op = wr->send_flags & IB_SEND_SOLICITED ? IRDMA_OP_WRITE_SOL : IRDMA_OP_WRITE;
	msg.remote_addr = rdma_wr(wr)->remote_addr;
	msg.stag = rdma_wr(wr)->rkey;
	if (wr->opcode == IB_WR_RDMA_WRITE_WITH_IMM) {
		if (!qp->kq->sq.fmt->imm_frag)
			return -EINVAL;
		msg.has_imm = true;
		msg.imm = be32_to_cpu(wr->ex.imm_data);
	}
	return irdma_sq_put_msg(&qp->kq->sq, &msg);
}

static int post_read(struct irdma_qp *qp, const struct ib_send_wr *wr)
{
	struct irdma_sq_msg msg;

	if ((wr->send_flags & IB_SEND_INLINE) || !send_len_ok(qp, wr) ||
	    wr->num_sge > qp->dev->gen->max_read_sges)
		return -EINVAL;
	set_common(qp, wr, &msg);
	msg.wc_op = IB_WC_RDMA_READ;
	msg.op = wr->opcode == IB_WR_RDMA_READ_WITH_INV ? IRDMA_OP_READ_INV : IRDMA_OP_READ;
	msg.remote_addr = rdma_wr(wr)->remote_addr;
	msg.stag = rdma_wr(wr)->rkey;
	return irdma_sq_put_msg(&qp->kq->sq, &msg);
}

static int post_reg(struct irdma_qp *qp, const struct ib_send_wr *wr)
{
	const struct ib_reg_wr *rwr = reg_wr(wr);
	struct irdma_sq_reg reg = {
		.wr_id = wr->wr_id,
		.signaled = qp->sig_all || (wr->send_flags & IB_SEND_SIGNALED),
		.read_fence = wr->send_flags & IB_SEND_FENCE,
	};
	int ret;

	ret = irdma_mr_fast_reg(rwr->mr, rwr->key, rwr->access, &reg);
	return ret ?: irdma_sq_put_fast_reg(&qp->kq->sq, &reg);
}

static int post_one_send(struct irdma_qp *qp, const struct ib_send_wr *wr)
{
	switch (wr->opcode) {
	case IB_WR_SEND:
	case IB_WR_SEND_WITH_INV:
		return post_message(qp, wr);
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
		return post_write(qp, wr);
	case IB_WR_RDMA_READ:
	case IB_WR_RDMA_READ_WITH_INV:
		return post_read(qp, wr);
	case IB_WR_LOCAL_INV:
		return irdma_sq_put_local_inv(&qp->kq->sq, wr->wr_id, wr->ex.invalidate_rkey,
					      qp->sig_all || (wr->send_flags & IB_SEND_SIGNALED),
					      wr->send_flags & IB_SEND_FENCE);
	case IB_WR_REG_MR:
		return post_reg(qp, wr);
	default:
		return -EINVAL;
	}
}

/*
 * An entry was posted: is the hardware done with the QP, so that nothing but us completes it?
 * Orders the entry before the look at the flag, see irdma_qp_flush_queues().
 */
static bool completes_in_software(struct irdma_qp *qp)
{
	smp_mb();
	if (!READ_ONCE(qp->flushed))
		return false;
	queue_work(qp->dev->wq, &qp->kq->flush_work);
	return true;
}

/**
 * irdma_post_send - post a chain of send work requests
 * @ibqp: kernel queue pair
 * @wr: chain
 * @bad_wr: the first that was not posted, set on failure
 *
 * Any context.
 *
 * Return: 0, -ENOMEM if the queue is full, -EINVAL for a work request that the QP was not made
 * for.  What stands before @bad_wr is posted.
 */
int irdma_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		    const struct ib_send_wr **bad_wr)
{
	struct irdma_qp *qp = to_irdma_qp(ibqp);
	bool posted = false;
	unsigned long flags;
	int ret = 0;

	spin_lock_irqsave(&qp->kq->sq_lock, flags);
	for (; wr; wr = wr->next) {
		ret = post_one_send(qp, wr);
		if (ret)
			break;
		posted = true;
	}
	spin_unlock_irqrestore(&qp->kq->sq_lock, flags);
	if (posted && !completes_in_software(qp))
		irdma_ring_sq(qp->dev, qp->qpn);
	if (ret && bad_wr)
		*bad_wr = wr;
	return ret;
}

static int post_one_recv(struct irdma_qp *qp, const struct ib_recv_wr *wr)
{
	if (wr->num_sge < 0 || wr->num_sge > qp->cap.max_recv_sge)
		return -EINVAL;
	return irdma_rq_put(&qp->kq->rq, wr->wr_id, wr->sg_list, wr->num_sge);
}

/**
 * irdma_post_recv - post a chain of receive work requests
 * @ibqp: kernel queue pair
 * @wr: chain
 * @bad_wr: the first that was not posted, set on failure
 *
 * The hardware looks for receives by itself.  Any context.
 *
 * Return: 0, -ENOMEM if the queue is full, -EINVAL for too many buffers.  What stands before
 * @bad_wr is posted.
 */
int irdma_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		    const struct ib_recv_wr **bad_wr)
{
	struct irdma_qp *qp = to_irdma_qp(ibqp);
	bool posted = false;
	unsigned long flags;
	int ret = 0;

	spin_lock_irqsave(&qp->kq->rq_lock, flags);
	for (; wr; wr = wr->next) {
		ret = post_one_recv(qp, wr);
		if (ret)
			break;
		posted = true;
	}
	spin_unlock_irqrestore(&qp->kq->rq_lock, flags);
	if (posted)
		completes_in_software(qp);
	if (ret && bad_wr)
		*bad_wr = wr;
	return ret;
}
