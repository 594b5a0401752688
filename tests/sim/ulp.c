// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * iw_cm as a provider sees it (spec 03, 1.5 and 1.6): states, one ordered queue of events for
 * the whole system, a limited number of events for each id, and a kernel BUG where the real
 * one has one.  A ULP's handler runs on the queue and may sleep there.
 */
#include "sim.h"

struct queued {
	struct list_head entry;
	struct sim_id *id;
	struct iw_cm_event ev;
	u8 pdata[256];
};

int sim_ids;
static struct list_head queue = { &queue, &queue };
static bool worker_busy;
static struct sim_event worker_event;

static void id_unref(struct sim_id *id)
{
	SIM_CHECK(id->refs > 0, "id dropped twice");
	if (--id->refs)
		return;
	sim_ids--;
	free(id);
}

static void id_add_ref(struct iw_cm_id *id)
{
	struct sim_id *s = container_of(id, struct sim_id, id);

	SIM_CHECK(s->refs > 0, "reference on a dead id");
	s->refs++;
}

static void id_rem_ref(struct iw_cm_id *id)
{
	id_unref(container_of(id, struct sim_id, id));
}

static void drop_qp(struct sim_id *id)
{
	struct sim_qp *qp = id->qp;

	id->qp = NULL;
	if (qp)
		id->host->ops.qp_put(&qp->ibqp);
}

static void on_request(struct sim_id *listener, struct queued *q)
{
	struct sim_id *id;

	SIM_CHECK(!q->ev.status, "CONNECT_REQUEST with status %d", q->ev.status);
	if (listener->drop_events)
		return;	/* thrown away; the provider has to notice */
	SIM_CHECK(listener->state == ID_LISTEN, "CONNECT_REQUEST in state %d", listener->state);
	id = sim_id_new(listener->host, listener->handler, listener->arg);
	id->state = ID_CONN_RECV;
	id->free_work = 3;
	id->id.provider_data = q->ev.provider_data;
	id->listener = listener;
	id->got[IW_CM_EVENT_CONNECT_REQUEST]++;
	listener->handler(id, &q->ev);
}

static void on_reply(struct sim_id *id, struct queued *q)
{
	SIM_CHECK(id->state == ID_CONN_SENT, "CONNECT_REPLY in state %d", id->state);
	id->connect_wait = false;
	id->status = q->ev.status;
	if (q->ev.status) {
		id->state = ID_IDLE;
		drop_qp(id);
	} else {
		id->state = ID_ESTABLISHED;
	}
}

static void deliver(struct queued *q)
{
	struct sim_id *id = q->id;

	if (q->ev.event == IW_CM_EVENT_CONNECT_REQUEST) {
		on_request(id, q);
		return;
	}
	id->got[q->ev.event]++;
	switch (q->ev.event) {
	case IW_CM_EVENT_CONNECT_REPLY:
		on_reply(id, q);
		break;
	case IW_CM_EVENT_ESTABLISHED:
		SIM_CHECK(id->state == ID_CONN_RECV, "ESTABLISHED in state %d", id->state);
		id->state = ID_ESTABLISHED;
		id->connect_wait = false;
		break;
	case IW_CM_EVENT_DISCONNECT:
		SIM_CHECK(id->got[IW_CM_EVENT_DISCONNECT] == 1, "second DISCONNECT");
		if (id->state == ID_ESTABLISHED)
			id->state = ID_CLOSING;
		break;
	case IW_CM_EVENT_CLOSE:
		SIM_CHECK(id->state == ID_ESTABLISHED || id->state == ID_CLOSING ||
			  id->state == ID_DESTROYING, "CLOSE in state %d", id->state);
		SIM_CHECK(!id->qp || id->qp->flushed, "CLOSE before the flush");
		drop_qp(id);
		if (id->state != ID_DESTROYING)
			id->state = ID_IDLE;
		break;
	default:
		SIM_CHECK(false, "event %d", q->ev.event);
	}
	if (!id->drop_events && id->handler)
		id->handler(id, &q->ev);
}

static void worker(void *unused)
{
	(void)unused;
	while (!list_empty(&queue)) {
		struct queued *q = list_first_entry(&queue, struct queued, entry);

		list_del(&q->entry);
		deliver(q);
		q->id->free_work++;
		id_unref(q->id);
		free(q);
	}
	worker_busy = false;
}

static void worker_starts(struct sim_event *e)
{
	(void)e;
	sim_fiber(worker, NULL);
}

static int id_event(struct iw_cm_id *iw, struct iw_cm_event *ev)
{
	struct sim_id *id = container_of(iw, struct sim_id, id);
	struct queued *q;

	SIM_CHECK(id->refs > 0, "event for a dead id");
	if (!id->free_work)
		return -ENOMEM;
	id->free_work--;
	id->refs++;
	q = calloc(1, sizeof(*q));
	q->id = id;
	q->ev = *ev;
	if (ev->private_data_len)
		memcpy(q->pdata, ev->private_data, ev->private_data_len);
	q->ev.private_data = q->pdata;
	list_add_tail(&q->entry, &queue);
	if (!worker_busy) {
		worker_busy = true;
		worker_event.fn = worker_starts;
		sim_event_at(&worker_event, sim_now_ns + sim_random() % 30000);
	}
	return 0;
}

struct sim_id *sim_id_new(struct sim_host *h,
			  void (*handler)(struct sim_id *, struct iw_cm_event *), void *arg)
{
	struct sim_id *id = calloc(1, sizeof(*id));

	id->host = h;
	id->refs = 1;
	id->free_work = 4;
	id->handler = handler;
	id->arg = arg;
	id->id.device = &h->ibdev;
	id->id.event_handler = id_event;
	id->id.add_ref = id_add_ref;
	id->id.rem_ref = id_rem_ref;
	sim_ids++;
	return id;
}

void sim_id_destroy(struct sim_id *id)
{
	u64 limit = sim_now_ns + 130 * SEC;

	while (id->connect_wait) {
		SIM_CHECK(sim_now_ns < limit, "iw_destroy_cm_id hangs in state %d", id->state);
		sim_sleep_ns(MS);
	}
	id->drop_events = true;
	switch (id->state) {
	case ID_LISTEN:
		id->state = ID_DESTROYING;
		irdma_destroy_listen(&id->id);
		break;
	case ID_ESTABLISHED:
		id->state = ID_DESTROYING;
		if (id->qp)
			sim_qp_error(id->qp);
		break;
	case ID_CONN_RECV:
		id->state = ID_DESTROYING;
		irdma_reject(&id->id, NULL, 0);
		break;
	default:
		id->state = ID_DESTROYING;
		break;
	}
	if (id->state == ID_DESTROYING)
		drop_qp(id);
	id_unref(id);
}

static void set_addr(struct sockaddr_storage *ss, bool ipv6, u32 ip, u16 port)
{
	struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)ss;
	struct sockaddr_in *sin = (struct sockaddr_in *)ss;

	if (ipv6) {
		sin6->sin6_family = AF_INET6;
		sin6->sin6_addr.s6_addr32[0] = htonl(0xfd000000);
		sin6->sin6_addr.s6_addr32[3] = htonl(ip);
		sin6->sin6_port = htons(port);
		return;
	}
	sin->sin_family = AF_INET;
	sin->sin_addr.s_addr = htonl(ip);
	sin->sin_port = htons(port);
}

int sim_listen(struct sim_id *id, u32 ip, u16 port, int backlog)
{
	int ret;

	set_addr(&id->id.m_local_addr, id->ipv6, ip, port);
	id->free_work = backlog;
	id->state = ID_LISTEN;
	ret = irdma_create_listen(&id->id, backlog);
	if (ret)
		id->state = ID_IDLE;
	return ret;
}

int sim_connect(struct sim_id *id, struct sim_qp *qp, u32 remote_ip, u16 local_port, u16 port,
		struct iw_cm_conn_param *param)
{
	int ret;

	set_addr(&id->id.m_local_addr, id->ipv6, id->host->ip, local_port);
	set_addr(&id->id.m_remote_addr, id->ipv6, remote_ip, port);
	id->state = ID_CONN_SENT;
	id->connect_wait = true;
	id->qp = qp;
	id->host->ops.qp_hold(&qp->ibqp);
	param->qpn = qp->qpn;
	ret = irdma_connect(&id->id, param);
	if (ret) {
		id->state = ID_IDLE;
		id->connect_wait = false;
		drop_qp(id);
	}
	return ret;
}

int sim_accept(struct sim_id *id, struct sim_qp *qp, struct iw_cm_conn_param *param)
{
	int ret;

	id->connect_wait = true;
	id->qp = qp;
	id->host->ops.qp_hold(&qp->ibqp);
	param->qpn = qp->qpn;
	ret = irdma_accept(&id->id, param);
	if (ret) {
		SIM_CHECK(id->state == ID_CONN_RECV, "accept failed in state %d", id->state);
		id->state = ID_IDLE;
		id->connect_wait = false;
		drop_qp(id);
	}
	return ret;
}

int sim_reject(struct sim_id *id, const void *pdata, u8 len)
{
	SIM_CHECK(id->state == ID_CONN_RECV, "reject in state %d", id->state);
	id->state = ID_IDLE;
	return irdma_reject(&id->id, pdata, len);
}
