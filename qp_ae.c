// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Hardware events of queue pairs (spec 01, 5.4 to 5.6; spec 03, 8.2).
 *
 * hw.c calls irdma_qp_ae() for each event, in order.  What needs commands is done by a work
 * item of the QP under the QP's mutex, so that a slow QP does not hold up the others.
 */
#include "qos.h"
#include "qp.h"
#include "qp_term.h"

static bool source_is_rq(u8 source)
{
	return source == 1 || source == 3;
}

static bool source_is_sq(u8 source)
{
	return source == 5 || source == 7;
}

/* The QP's lock is held.  Returns false if there is no room. */
static bool put_ae(struct irdma_qp *qp, const struct irdma_ae *ae)
{
	if (qp->ae_count == IRDMA_QP_AES)
		return false;
	qp->conn->aes[(qp->ae_first + qp->ae_count++) % IRDMA_QP_AES] = *ae;
	return true;
}

/* The QP's lock is held.  Returns false if there is none. */
static bool get_ae(struct irdma_qp *qp, struct irdma_ae *ae)
{
	if (!qp->ae_count)
		return false;
	*ae = qp->conn->aes[qp->ae_first];
	qp->ae_first = (qp->ae_first + 1) % IRDMA_QP_AES;
	qp->ae_count--;
	return true;
}

/* The QP's lock is held. */
static void note_states(struct irdma_qp *qp, const struct irdma_ae *ae)
{
	qp->last_ae = ae->code;
	/* In ERROR the stream is over for us, even while the hardware still says good-bye. */
	if (qp->iw_state != IRDMA_IW_ERROR)
		qp->tcp_state = ae->tcp_state;
}

/**
 * irdma_qp_ae - an event for a QP arrived
 * @dev: device
 * @qpn: QP number
 * @context: completion context of the QP, or 0
 * @ae: the event
 *
 * Process context.  Events of QPs that do not exist any more are dropped.
 */
void irdma_qp_ae(struct irdma_device *dev, u32 qpn, u64 context, const struct irdma_ae *ae)
{
	struct ib_qp *ibqp;
	struct irdma_qp *qp;

	if (ae->code == IRDMA_AE_SUSPENDED) {
		irdma_qos_qp_suspended(dev);
		return;
	}
	ibqp = irdma_qp_lookup(dev, qpn);
	if (!ibqp)
		return;
	qp = to_irdma_qp(ibqp);
	if (context && context != qp->conn->context) {
		irdma_qp_rem_ref(ibqp);
		return;
	}

	spin_lock_irq(&qp->lock);
	note_states(qp, ae);
	if (ae->code == IRDMA_AE_RTS)
		qp->rts_seen = true;
	else if (!put_ae(qp, ae))
		qp->ae_lost = true;
	if (!qp->destroying && ae->code != IRDMA_AE_RTS)
		queue_work(dev->wq, &qp->conn->ae_work);
	spin_unlock_irq(&qp->lock);
	irdma_qp_wake(qp);
	irdma_qp_rem_ref(ibqp);
}

static void set_tcp_state(struct irdma_qp *qp, u8 state)
{
	spin_lock_irq(&qp->lock);
	qp->tcp_state = state;
	spin_unlock_irq(&qp->lock);
	irdma_qp_wake(qp);
}

static void set_term_flag(struct irdma_qp *qp, enum irdma_term_flags flag)
{
	spin_lock_irq(&qp->lock);
	qp->term_flags |= flag;
	spin_unlock_irq(&qp->lock);
}

static void term_done(struct irdma_qp *qp)
{
	if (qp->term_flags & IRDMA_TERM_DONE)
		return;
	set_term_flag(qp, IRDMA_TERM_DONE);
	irdma_qp_enter_error(qp);
}

/**
 * irdma_qp_end_timer - the peer did not end the connection in time
 * @timer: end_timer of a QP
 */
void irdma_qp_end_timer(struct timer_list *timer)
{
	struct irdma_qp_conn *conn = timer_container_of(conn, timer, end_timer);
	struct irdma_qp *qp = conn->qp;
	unsigned long flags;

	spin_lock_irqsave(&qp->lock, flags);
	qp->end_passed = true;
	if (!qp->destroying)
		queue_work(qp->dev->wq, &conn->ae_work);
	spin_unlock_irqrestore(&qp->lock, flags);
}

static void give_up(struct irdma_qp *qp)
{
	if (qp->term_flags)
		term_done(qp);
	else
		irdma_qp_enter_error(qp);
}

static void modify_to_terminate(struct irdma_qp *qp, enum irdma_term_act act, u32 term_len)
{
	struct irdma_qp_cmd cmd = {
		.next_state = IRDMA_IW_TERMINATE,
		.term_act = act,
		.term_len = term_len & 0xf,	/* all that the field holds (spec 02, 4.7) */
		.cqnum_valid = true,
		.arp_valid = true,
	};

	if (irdma_qp_hw_modify(qp, &cmd)) {
		term_done(qp);
		return;
	}
	irdma_qp_set_state(qp, IRDMA_IW_TERMINATE);
}

/* Remember for the flush which work request is to blame, and for what. */
static void note_culprit(struct irdma_qp *qp, u8 source, const struct irdma_term_info *info)
{
	if (source_is_sq(source))
		qp->sq_flush_code = info->flush_code;
	else if (source_is_rq(source))
		qp->rq_flush_code = info->flush_code;
	qp->access_event = info->access_event;
}

static void send_terminate(struct irdma_qp *qp, u16 ae_code, u8 source, bool q2_data)
{
	struct irdma_term_info info;
	u32 len;

	if (qp->term_flags & IRDMA_TERM_SENT)
		return;
	irdma_term_info(ae_code, qp->q2, IRDMA_Q2_SIZE, q2_data, &info);
	note_culprit(qp, source, &info);
	len = irdma_term_build(qp->q2, IRDMA_Q2_SIZE, q2_data, &info);
	set_term_flag(qp, IRDMA_TERM_SENT);
	irdma_qp_start_end_timer(qp);
	modify_to_terminate(qp, IRDMA_TERM_ONLY, len);
}

/* Returns true if the connection ended without a terminate. */
static bool on_abnormal(struct irdma_qp *qp, const struct irdma_ae *ae)
{
	struct irdma_term_info info;

	ibdev_warn_ratelimited(&qp->dev->ibdev,
			       "QP %u: event %#x, source %u, entry %u, iWARP state %u, TCP state %u\n",
			       qp->qpn, ae->code, ae->source, ae->wqe_idx, ae->iw_state,
			       ae->tcp_state);
	if (source_is_rq(ae->source))
		qp->err_rq_idx = ae->wqe_idx;
	if (ae->iw_state == IRDMA_IW_RTS || ae->iw_state == IRDMA_IW_TERMINATE) {
		send_terminate(qp, ae->code, ae->source, ae->q2_data);
		return false;
	}
	irdma_term_info(ae->code, qp->q2, IRDMA_Q2_SIZE, ae->q2_data, &info);
	note_culprit(qp, ae->source, &info);
	irdma_qp_enter_error(qp);
	return true;
}

static void on_fin(struct irdma_qp *qp)
{
	if (qp->term_flags || qp->closing)
		return;
	set_tcp_state(qp, IRDMA_TCP_CLOSE_WAIT);
	if (qp->iw_state == IRDMA_IW_RTS)
		irdma_qp_start_closing(qp);
}

/* The hardware has nothing more to say about this connection. */
static void on_closed(struct irdma_qp *qp)
{
	if (qp->term_flags)
		term_done(qp);
	else if (qp->tcp_state != IRDMA_TCP_TIME_WAIT)
		set_tcp_state(qp, IRDMA_TCP_CLOSED);
}

static void on_terminate(struct irdma_qp *qp, const struct irdma_ae *ae)
{
	bool finished = false;
	u16 bad = 0;

	if (ae->q2_data)
		bad = irdma_term_check(qp->q2, IRDMA_Q2_SIZE, &finished);
	if (bad) {
		send_terminate(qp, bad, ae->source, true);
		return;
	}
	set_term_flag(qp, IRDMA_TERM_RECEIVED);
	if (finished) {
		term_done(qp);
		return;
	}
	irdma_qp_start_end_timer(qp);
	modify_to_terminate(qp, IRDMA_TERM_FIN_ONLY, 0);
}

/* Returns true if the consumer is to be told of a fatal event. */
static bool handle_ae(struct irdma_qp *qp, const struct irdma_ae *ae)
{
	if (qp->iw_state == IRDMA_IW_ERROR)
		return false;
	switch (irdma_ae_reaction(ae->code)) {
	case IRDMA_AE_FIN:
		on_fin(qp);
		break;
	case IRDMA_AE_CLOSED:
		on_closed(qp);
		break;
	case IRDMA_AE_RESET:
		set_tcp_state(qp, IRDMA_TCP_CLOSED);
		break;
	case IRDMA_AE_ERROR_CLOSE:
		irdma_qp_enter_error(qp);
		break;
	case IRDMA_AE_TERM_SENT:
		modify_to_terminate(qp, IRDMA_TERM_FIN_ONLY, 0);
		break;
	case IRDMA_AE_TERM_RECEIVED:
		on_terminate(qp, ae);
		break;
	case IRDMA_AE_ABNORMAL:
		return on_abnormal(qp, ae);
	case IRDMA_AE_NOTHING:
	case IRDMA_AE_ESTABLISHED:
		break;
	}
	return false;
}

/**
 * irdma_qps_lost - the device is dead: end all connections
 * @dev: device
 *
 * Each QP goes to ERROR without the help of the hardware, which flushes it, ends its
 * connection and tells its consumer.  Any context.
 */
void irdma_qps_lost(struct irdma_device *dev)
{
	struct irdma_qp_conn *conn;
	unsigned long qpn, flags;
	struct irdma_qp *qp;

	rcu_read_lock();
	xa_for_each(&dev->qps, qpn, conn) {
		if (!refcount_inc_not_zero(&conn->refs))
			continue;
		qp = conn->qp;
		spin_lock_irqsave(&qp->lock, flags);
		qp->ae_lost = true;
		if (!qp->destroying)
			queue_work(dev->wq, &qp->conn->ae_work);
		spin_unlock_irqrestore(&qp->lock, flags);
		irdma_qp_wake(qp);
		irdma_qp_rem_ref(&qp->ibqp);
	}
	rcu_read_unlock();
}

/**
 * irdma_qp_ae_work - handle the events of a QP
 * @work: ae_work of a QP
 */
void irdma_qp_ae_work(struct work_struct *work)
{
	struct irdma_qp *qp = container_of(work, struct irdma_qp_conn, ae_work)->qp;
	bool more, lost, ended, fatal = false;
	struct irdma_ae ae;

	mutex_lock(&qp->mutex);
	do {
		spin_lock_irq(&qp->lock);
		more = get_ae(qp, &ae);
		lost = qp->ae_lost;
		ended = qp->end_passed;
		spin_unlock_irq(&qp->lock);
		if (more && !qp->destroying)
			fatal |= handle_ae(qp, &ae);
	} while (more);
	if (lost && !qp->destroying && qp->iw_state != IRDMA_IW_ERROR) {
		irdma_qp_enter_error(qp);
		fatal = true;
	}
	if (ended && !qp->destroying)
		give_up(qp);
	mutex_unlock(&qp->mutex);
	if (fatal)
		irdma_qp_terminate_event(&qp->ibqp);
	irdma_cm_disconn(&qp->ibqp);
}

/**
 * irdma_qp_terminate_event - tell the consumer that a terminate ended the connection
 * @ibqp: queue pair
 *
 * Process context.
 */
void irdma_qp_terminate_event(struct ib_qp *ibqp)
{
	struct irdma_qp *qp = to_irdma_qp(ibqp);
	struct ib_event event = {
		.device = ibqp->device,
		.element.qp = ibqp,
		.event = qp->access_event ? IB_EVENT_QP_ACCESS_ERR : IB_EVENT_QP_FATAL,
	};

	if (ibqp->event_handler)
		ibqp->event_handler(&event, ibqp->qp_context);
}
