// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Queue pair states: what consumers ask for by modify, and the moves that follow from the
 * fate of the connection (spec 02, 4.6; spec 03, 8.4).
 *
 * The QP's mutex is held across each command, so commands on one QP never overlap, and no
 * state is changed by a completion handler.
 */
#include <rdma/uverbs_ioctl.h>

#include "abi.h"
#include "qp.h"
#include "qpc.h"

static enum ib_qp_state ib_state_of(enum irdma_iw_state state)
{
	switch (state) {
	case IRDMA_IW_IDLE:
		return IB_QPS_INIT;
	case IRDMA_IW_RTS:
		return IB_QPS_RTS;
	case IRDMA_IW_CLOSING:
		return IB_QPS_SQD;
	case IRDMA_IW_TERMINATE:
		return IB_QPS_SQE;
	default:
		return IB_QPS_ERR;
	}
}

/**
 * irdma_qp_set_state - the hardware was moved to a state
 * @qp: queue pair, its mutex held
 * @state: hardware state; the state that consumers see follows from it
 */
void irdma_qp_set_state(struct irdma_qp *qp, enum irdma_iw_state state)
{
	spin_lock_irq(&qp->lock);
	qp->iw_state = state;
	qp->ib_state = ib_state_of(state);
	spin_unlock_irq(&qp->lock);
	irdma_qp_wake(qp);
}

/* Does the hardware still have a connection that a reset would end? */
static bool stream_alive(struct irdma_qp *qp)
{
	bool alive;

	spin_lock_irq(&qp->lock);
	alive = qp->have_tcp && qp->tcp_state > IRDMA_TCP_CLOSED &&
		qp->tcp_state != IRDMA_TCP_TIME_WAIT;
	spin_unlock_irq(&qp->lock);
	return alive;
}

/**
 * irdma_qp_hw_modify - execute a modify command
 * @qp: queue pair, its mutex held
 * @cmd: next_state and flags; the rest is filled in here
 *
 * The host context is built anew for it.  Sleeps.
 *
 * Return: 0 or the failure of the command.  The tracked state does not change.
 */
int irdma_qp_hw_modify(struct irdma_qp *qp, struct irdma_qp_cmd *cmd)
{
	__le64 context[IRDMA_QPC_WORDS];
	struct irdma_cqp_req req;

	cmd->qpn = qp->qpn;
	cmd->type = IRDMA_QP_IWARP;
	cmd->context = context;
	cmd->shadow = qp->shadow_dma;
	cmd->virt_queues = qp->virt_queues;
	irdma_qp_build_context(qp, context);
	irdma_cqp_prep_modify_qp(qp->dev, &req, cmd);
	return irdma_cqp_exec(qp->dev, &req);
}

/*
 * The connection is over for the consumer whatever becomes of the FIN or RST that the
 * hardware still sends.
 */
static void forget_stream(struct irdma_qp *qp)
{
	spin_lock_irq(&qp->lock);
	if (qp->have_tcp && qp->tcp_state != IRDMA_TCP_TIME_WAIT)
		qp->tcp_state = IRDMA_TCP_CLOSED;
	spin_unlock_irq(&qp->lock);
}

/**
 * irdma_qp_enter_error - move to ERROR and flush
 * @qp: queue pair, its mutex held
 *
 * Resets the connection if there still is one.  Never fails: a QP that the hardware does not
 * find in a state to be moved is in error already.  Idempotent.  The caller tells the
 * connection engine (irdma_cm_disconn()) after releasing the mutex.  Sleeps.
 */
void irdma_qp_enter_error(struct irdma_qp *qp)
{
	/* Nothing is under way in an idle QP, and in one that goes nothing will be. */
	if (qp->destroying && qp->iw_state == IRDMA_IW_IDLE)
		return;
	if (qp->iw_state != IRDMA_IW_ERROR) {
		struct irdma_qp_cmd cmd = {
			.next_state = IRDMA_IW_ERROR,
			.term_act = IRDMA_TERM_NOTHING,
			.remove_hash = qp->hash_owned,
			.reset_con = stream_alive(qp),
			.cqnum_valid = true,
			.arp_valid = qp->have_tcp,
		};
		int ret = irdma_qp_hw_modify(qp, &cmd);

		if (ret && ret != -EBUSY && ret != -ENODEV)
			irdma_err(qp->dev, "QP %u: moving to error failed: %pe\n", qp->qpn,
				  ERR_PTR(ret));
		qp->hash_owned = false;
		irdma_qp_set_state(qp, IRDMA_IW_ERROR);
		forget_stream(qp);
		timer_delete(&qp->conn->end_timer);
	}
	if (!qp->destroying)
		irdma_qp_flush_queues(qp);
}

/**
 * irdma_qp_start_end_timer - do not wait for ever for the end of the connection
 * @qp: queue pair, its mutex held
 *
 * Does nothing if the timer runs already: a terminate gets what is left of a close.
 */
void irdma_qp_start_end_timer(struct irdma_qp *qp)
{
	spin_lock_irq(&qp->lock);
	if (!qp->destroying && !timer_pending(&qp->conn->end_timer))
		mod_timer(&qp->conn->end_timer,
			  jiffies + msecs_to_jiffies(IRDMA_END_TIMEOUT_MS));
	spin_unlock_irq(&qp->lock);
}

/**
 * irdma_qp_start_closing - send a FIN and wait for the peer's
 * @qp: queue pair in RTS, its mutex held
 *
 * If the peer does not end the connection in time, the timer does.  Sleeps.
 *
 * Return: 0, or the failure of the command; the QP is in error then.
 */
int irdma_qp_start_closing(struct irdma_qp *qp)
{
	struct irdma_qp_cmd cmd = {
		.next_state = IRDMA_IW_CLOSING,
		.term_act = IRDMA_TERM_NOTHING,
		.cqnum_valid = true,
		.arp_valid = true,
	};
	int ret;

	ret = irdma_qp_hw_modify(qp, &cmd);
	if (ret) {
		irdma_qp_enter_error(qp);
		return ret;
	}
	irdma_qp_set_state(qp, IRDMA_IW_CLOSING);
	spin_lock_irq(&qp->lock);
	qp->closing = true;
	spin_unlock_irq(&qp->lock);
	irdma_qp_start_end_timer(qp);
	return 0;
}

/* Terminate and FIN on the consumer's own account. */
static int start_terminate(struct irdma_qp *qp)
{
	struct irdma_qp_cmd cmd = {
		.next_state = IRDMA_IW_TERMINATE,
		.term_act = IRDMA_TERM_AND_FIN,
	};
	int ret;

	if (qp->iw_state != IRDMA_IW_RTS && qp->iw_state != IRDMA_IW_CLOSING)
		return -EINVAL;
	ret = irdma_qp_hw_modify(qp, &cmd);
	if (ret) {
		irdma_qp_enter_error(qp);
		return ret;
	}
	irdma_qp_set_state(qp, IRDMA_IW_TERMINATE);
	irdma_qp_start_end_timer(qp);
	return 0;
}

/* More work requests were posted to a flushed user QP (spec 02, 7.6). */
static void reflush(struct irdma_qp *qp, const struct irdma_abi_modify_qp_req *req)
{
	if (qp->user && (req->flush_sq || req->flush_rq))
		irdma_qp_flush_again(qp, req->flush_sq, req->flush_rq);
}

/* Both sides may close at once: that a connection has ended by itself is no mistake. */
static int close_stream(struct irdma_qp *qp)
{
	int ret;

	if (qp->iw_state != IRDMA_IW_RTS)
		return qp->iw_state <= IRDMA_IW_CLOSING || qp->have_tcp ? 0 : -EINVAL;
	ret = irdma_qp_start_closing(qp);
	return ret == -EBUSY ? 0 : ret;
}

static int modify_state(struct irdma_qp *qp, enum ib_qp_state state,
			const struct irdma_abi_modify_qp_req *req)
{
	switch (state) {
	case IB_QPS_INIT:
	case IB_QPS_RTR:
		if (qp->iw_state != IRDMA_IW_IDLE)
			return -EINVAL;
		spin_lock_irq(&qp->lock);
		qp->ib_state = state;
		spin_unlock_irq(&qp->lock);
		return 0;
	case IB_QPS_RTS:
		/* The stream comes from the connection engine, see irdma_qp_start_stream(). */
		return qp->iw_state == IRDMA_IW_RTS ? 0 : -EINVAL;
	case IB_QPS_SQD:
		return close_stream(qp);
	case IB_QPS_SQE:
		return start_terminate(qp);
	case IB_QPS_ERR:
	case IB_QPS_RESET:
		if (qp->iw_state == IRDMA_IW_ERROR)
			reflush(qp, req);
		else
			irdma_qp_enter_error(qp);
		return 0;
	default:
		return -EINVAL;
	}
}

static int get_modify_req(struct ib_udata *udata, struct irdma_abi_modify_qp_req *req)
{
	if (!udata)
		return 0;
	if (udata->outlen && udata->outlen < IRDMA_MODIFY_QP_RESP_MIN)
		return -EINVAL;
	if (!udata->inlen)
		return 0;
	return irdma_udata_in(udata, req, sizeof(*req), sizeof(*req));
}

/* There are no push pages. */
static int answer_modify(struct ib_udata *udata)
{
	struct irdma_abi_modify_qp_resp resp = {};

	if (!udata || !udata->outlen)
		return 0;
	return irdma_udata_out(udata, &resp, sizeof(resp));
}

/**
 * irdma_modify_qp - change the state or access flags of a queue pair
 * @ibqp: queue pair
 * @attr: new values
 * @mask: which members of @attr are valid
 * @udata: of user space, or NULL
 *
 * Access flags can only be granted, and all are from the start.  A QP reaches RTS only through
 * the connection engine.  Process context.
 *
 * Return: 0, -EINVAL for a transition that iWARP does not have (spec 02, 4.6), -EOPNOTSUPP for
 * attributes beyond the standard ones, or the failure of the command.
 */
int irdma_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask, struct ib_udata *udata)
{
	struct irdma_abi_modify_qp_req req = {};
	struct irdma_qp *qp = to_irdma_qp(ibqp);
	int ret;

	if (mask & ~IB_QP_ATTR_STANDARD_BITS)
		return -EOPNOTSUPP;
	ret = get_modify_req(udata, &req);
	if (ret || !(mask & IB_QP_STATE))
		return ret;

	/* A connect in progress would keep the mutex until its command has completed. */
	if (attr->qp_state == IB_QPS_ERR || attr->qp_state == IB_QPS_RESET)
		irdma_cm_qp_going(ibqp);
	mutex_lock(&qp->mutex);
	ret = modify_state(qp, attr->qp_state, &req);
	mutex_unlock(&qp->mutex);
	if (qp->have_tcp)
		irdma_cm_disconn(ibqp);
	return ret ?: answer_modify(udata);
}
