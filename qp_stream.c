// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Hand-over of a TCP stream from the connection engine to a queue pair, and its way back
 * (spec 02, 4.2.1 and 5.9; spec 03, 6).  Called by cm_hw.c in process context.
 */
#include <linux/etherdevice.h>
#include <linux/highmem.h>
#include <linux/if_vlan.h>

#include "qp.h"

static __le64 *map_sq_start(struct irdma_qp *qp)
{
	return qp->user ? kmap_local_page(irdma_ureg_first_page(qp->ureg)) : qp->kq->sq.ring;
}

static void unmap_sq_start(struct irdma_qp *qp, __le64 *ring)
{
	if (qp->user)
		kunmap_local(ring);
}

/* The entries in front of the consumer's, which both sides leave free (spec 02, 5.9). */
static int put_connection_wqes(struct irdma_qp *qp, const struct irdma_start *start)
{
	const struct irdma_wq_fmt *fmt = qp->dev->gen->wq_fmt;
	__le64 *ring;
	int ret;

	if (start->kind == IRDMA_START_LSMM) {
		ret = irdma_lsmm_get(to_irdma_pd(qp->ibqp.pd), start->lsmm, start->lsmm_len,
				     &qp->conn->lsmm);
		if (ret)
			return ret;
	}
	ring = map_sq_start(qp);
	switch (start->kind) {
	case IRDMA_START_LSMM:
		irdma_put_lsmm(fmt, ring, &qp->conn->lsmm, qp->rts_ae);
		break;
	case IRDMA_START_RTR_READ:
	case IRDMA_START_RTR_WRITE:
		irdma_put_rtr(fmt, ring, start->kind == IRDMA_START_RTR_READ, qp->rts_ae);
		break;
	case IRDMA_START_NO_RTR:
		irdma_put_no_rtr(ring, qp->rts_ae);
		break;
	}
	unmap_sq_start(qp, ring);
	return 0;
}

/**
 * irdma_qp_fill_sq_start - close the gap in front of the consumer's first SQ entry
 * @qp: queue pair in ERROR that never had a stream, its mutex held
 *
 * A flush begins at the first entry, and ends at the first that is not valid.
 */
void irdma_qp_fill_sq_start(struct irdma_qp *qp)
{
	__le64 *ring = map_sq_start(qp);

	irdma_put_no_rtr(ring, qp->rts_ae);
	unmap_sq_start(qp, ring);
}

static int modify_to_rts(struct irdma_qp *qp)
{
	struct irdma_qp_cmd cmd = {
		.next_state = IRDMA_IW_RTS,
		.tcp_valid = true,
		.ord_valid = true,
		.arp_valid = true,
		.cqnum_valid = true,
	};
	int ret;

	/* Events may arrive before the command completes. */
	spin_lock_irq(&qp->lock);
	qp->iw_state = IRDMA_IW_RTS;
	qp->ib_state = IB_QPS_RTS;
	qp->tcp_state = IRDMA_TCP_ESTABLISHED;
	spin_unlock_irq(&qp->lock);
	ret = irdma_qp_hw_modify(qp, &cmd);
	if (ret)
		irdma_err_ratelimited(qp->dev, "QP %u: moving to RTS failed: %pe\n", qp->qpn,
				      ERR_PTR(ret));
	return ret;
}

/* The QP never got the stream, so its quad-hash entry does not go with the QP. */
static void drop_hash_entry(struct irdma_qp *qp, const struct irdma_tcp_ctx *tcp)
{
	struct irdma_qhash_cmd cmd = {
		.type = IRDMA_QHASH_TCP_ESTABLISHED,
		.qpn = IRDMA_QPN_ILQ,
		.vlan = tcp->insert_vlan ? tcp->vlan_tag & VLAN_VID_MASK : 0xffff,
		.ipv4 = tcp->ipv4,
		.local_port = tcp->local_port,
		.remote_port = tcp->remote_port,
	};
	struct irdma_cqp_req req;
	int ret;

	ether_addr_copy(cmd.mac, tcp->src_mac);
	memcpy(cmd.local_ip, tcp->local_ip, sizeof(cmd.local_ip));
	memcpy(cmd.remote_ip, tcp->remote_ip, sizeof(cmd.remote_ip));
	irdma_cqp_prep_qhash(qp->dev, &req, &cmd, false);
	ret = irdma_cqp_exec(qp->dev, &req);
	if (ret && ret != -ENODEV)
		irdma_err_ratelimited(qp->dev, "QP %u: removing its quad hash entry failed: %pe\n",
				      qp->qpn, ERR_PTR(ret));
}

static int prepare(struct irdma_qp *qp, const struct irdma_tcp_ctx *tcp,
		   const struct irdma_start *start)
{
	int ret;

	if (qp->destroying || qp->iw_state == IRDMA_IW_ERROR)
		return -ECONNRESET;
	if (qp->iw_state != IRDMA_IW_IDLE)
		return -EINVAL;
	ret = irdma_qos_join(qp->dev, &qp->conn->qos, tcp->user_prio);
	return ret ?: put_connection_wqes(qp, start);
}

static int start_locked(struct irdma_qp *qp, const struct irdma_tcp_ctx *tcp,
			const struct irdma_start *start)
{
	int ret;

	ret = prepare(qp, tcp, start);
	if (ret) {
		drop_hash_entry(qp, tcp);
		if (ret != -EINVAL)
			irdma_qp_enter_error(qp);
		return ret;
	}
	qp->conn->tcp = *tcp;
	qp->have_tcp = true;
	qp->hash_owned = true;
	ret = modify_to_rts(qp);
	if (ret)
		irdma_qp_enter_error(qp);
	return ret;
}

static bool stream_settled(struct irdma_qp *qp, bool *up)
{
	bool settled;

	spin_lock_irq(&qp->lock);
	*up = qp->rts_seen;
	settled = qp->rts_seen || qp->destroying || qp->iw_state != IRDMA_IW_RTS ||
		  qp->tcp_state <= IRDMA_TCP_CLOSED || irdma_is_dead(qp->dev);
	spin_unlock_irq(&qp->lock);
	return settled;
}

static int wait_for_stream(struct irdma_qp *qp)
{
	bool up = false;

	if (!wait_var_event_timeout(qp, stream_settled(qp, &up),
				msecs_to_jiffies(IRDMA_RTS_TIMEOUT_MS)))
		return -ETIMEDOUT;
	if (irdma_is_dead(qp->dev))
		return -ENODEV;
	return up ? 0 : -ECONNRESET;
}

/**
 * irdma_qp_start_stream - hand a stream over to a queue pair
 * @dev: device
 * @ibqp: queue pair in IDLE
 * @tcp: state of the stream
 * @start: first message
 *
 * Returns when the peer's first FPDU has arrived (passive) or the first message is sent
 * (active), on hardware that tells.  Process context, waits up to 12 s.
 *
 * Return: 0, -ECONNRESET, -ETIMEDOUT, -EINVAL if the QP has or had a stream, or the failure of
 * a command.  On an error the QP is in ERROR and the connection was reset, except for -EINVAL,
 * which changes nothing.  The quad-hash entry is the QP's or gone in any case.
 */
int irdma_qp_start_stream(struct irdma_device *dev, struct ib_qp *ibqp,
			  const struct irdma_tcp_ctx *tcp, const struct irdma_start *start)
{
	struct irdma_qp *qp = to_irdma_qp(ibqp);
	int ret;

	mutex_lock(&qp->mutex);
	ret = start_locked(qp, tcp, start);
	mutex_unlock(&qp->mutex);
	if (ret || !qp->rts_ae)
		return ret;

	ret = wait_for_stream(qp);
	mutex_lock(&qp->mutex);
	if (ret)
		irdma_qp_enter_error(qp);
	else
		irdma_lsmm_put(to_irdma_pd(ibqp->pd), &qp->conn->lsmm);
	mutex_unlock(&qp->mutex);
	return ret;
}

/**
 * irdma_qp_abort - move to ERROR, reset the connection if it is alive, and flush
 * @ibqp: queue pair
 *
 * Idempotent.  Process context.
 */
void irdma_qp_abort(struct ib_qp *ibqp)
{
	struct irdma_qp *qp = to_irdma_qp(ibqp);

	mutex_lock(&qp->mutex);
	irdma_qp_enter_error(qp);
	mutex_unlock(&qp->mutex);
}

/**
 * irdma_qp_flush - complete everything that is posted, once
 * @ibqp: queue pair whose connection is over
 *
 * When this returns the completions can be polled.  The QP is in ERROR.  Process context.
 */
void irdma_qp_flush(struct ib_qp *ibqp)
{
	irdma_qp_abort(ibqp);
}
