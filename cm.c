// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The connection engine's core: life of a node (one connection), its states, its timer, the
 * events that iw_cm is told, and set-up and end of the engine.
 *
 * Packets come in by cm_tcp.c, downcalls by cm_conn.c and cm_listen.c.  All of them change a
 * node under its lock only, and its state only through irdma_cm_set_state().  What has to
 * sleep, and every upcall of a connection, is done by the node's event work.
 */
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <net/ipv6.h>

#include "cm_priv.h"

#define ST(x)	IRDMA_CM_STATE_##x

/*
 * The states: name, time a connection may stay in it (0: no limit of its own), and what may
 * follow.  TCP names as in RFC 9293 figure 5; the MPA states refine its ESTABLISHED.
 */
static const struct {
	const char *name;
	unsigned int deadline_ms;
	unsigned int next;
} irdma_cm_states[IRDMA_CM_STATE_COUNT] = {
	[ST(CLOSED)] = { "CLOSED", 0, 0 },
	/* hardware entries are there: SYN (active), SYN-ACK (passive) */
	[ST(SETUP)] = { "SETUP", IRDMA_CM_SETUP_MS,
		BIT(ST(SYN_SENT)) | BIT(ST(SYN_RCVD)) | BIT(ST(CLOSED)) },
	/* SYN-ACK; SYN alone is a simultaneous open */
	[ST(SYN_SENT)] = { "SYN_SENT", IRDMA_CM_SYN_MS,
		BIT(ST(MPAREQ_SENT)) | BIT(ST(SYN_RCVD)) | BIT(ST(CLOSED)) },
	/* ACK of our SYN: passive waits for the request, active sends it */
	[ST(SYN_RCVD)] = { "SYN_RCVD", IRDMA_CM_SYN_MS,
		BIT(ST(ESTABLISHED)) | BIT(ST(MPAREQ_SENT)) | BIT(ST(CLOSED)) },
	/* MPA request; FIN */
	[ST(ESTABLISHED)] = { "ESTABLISHED", IRDMA_CM_MPA_REQ_MS,
		BIT(ST(MPAREQ_RCVD)) | BIT(ST(LAST_ACK)) | BIT(ST(CLOSED)) },
	/* accepting reply; rejecting reply; RST or FIN instead: MPA v1 from the start */
	[ST(MPAREQ_SENT)] = { "MPAREQ_SENT", IRDMA_CM_MPA_REP_MS,
		BIT(ST(HANDOVER)) | BIT(ST(MPAREJ_RCVD)) | BIT(ST(SYN_SENT)) | BIT(ST(CLOSED)) },
	/* accept; reject; reject after the peer's FIN */
	[ST(MPAREQ_RCVD)] = { "MPAREQ_RCVD", 0,
		BIT(ST(HANDOVER)) | BIT(ST(FIN_WAIT1)) | BIT(ST(LAST_ACK)) | BIT(ST(CLOSED)) },
	[ST(HANDOVER)] = { "HANDOVER", 0, BIT(ST(OFFLOADED)) | BIT(ST(CLOSED)) },
	[ST(OFFLOADED)] = { "OFFLOADED", 0, BIT(ST(CLOSED)) },
	/* iw_cm was told: we close; the peer's FIN came first */
	[ST(MPAREJ_RCVD)] = { "MPAREJ_RCVD", IRDMA_CM_MPAREJ_MS,
		BIT(ST(FIN_WAIT1)) | BIT(ST(LAST_ACK)) | BIT(ST(CLOSED)) },
	[ST(FIN_WAIT1)] = { "FIN_WAIT1", IRDMA_CM_FIN_MS,
		BIT(ST(FIN_WAIT2)) | BIT(ST(CLOSING)) | BIT(ST(TIME_WAIT)) | BIT(ST(CLOSED)) },
	[ST(FIN_WAIT2)] = { "FIN_WAIT2", IRDMA_CM_FIN_MS,
		BIT(ST(TIME_WAIT)) | BIT(ST(CLOSED)) },
	[ST(CLOSING)] = { "CLOSING", IRDMA_CM_FIN_MS,
		BIT(ST(TIME_WAIT)) | BIT(ST(CLOSED)) },
	[ST(LAST_ACK)] = { "LAST_ACK", IRDMA_CM_FIN_MS, BIT(ST(CLOSED)) },
	[ST(TIME_WAIT)] = { "TIME_WAIT", IRDMA_CM_TIME_WAIT_MS, BIT(ST(CLOSED)) },
};

static const char * const irdma_cm_drop_names[IRDMA_CM_DROP_COUNT] = {
	[IRDMA_CM_DROP_SHORT] = "cm_drop_short",
	[IRDMA_CM_DROP_IP] = "cm_drop_ip",
	[IRDMA_CM_DROP_TCP_OFF] = "cm_drop_tcp_offset",
	[IRDMA_CM_DROP_TCP_OPT] = "cm_drop_tcp_option",
	[IRDMA_CM_DROP_NO_NODE] = "cm_drop_no_connection",
	[IRDMA_CM_DROP_NO_LISTENER] = "cm_drop_no_listener",
	[IRDMA_CM_DROP_BACKLOG] = "cm_drop_backlog",
	[IRDMA_CM_DROP_HALF_OPEN] = "cm_drop_half_open",
	[IRDMA_CM_DROP_RATE] = "cm_drop_syn_rate",
	[IRDMA_CM_DROP_NO_MEM] = "cm_drop_no_memory",
	[IRDMA_CM_DROP_NO_ROUTE] = "cm_drop_no_route",
	[IRDMA_CM_DROP_SETUP] = "cm_drop_setup",
	[IRDMA_CM_DROP_OFFLOADED] = "cm_drop_offloaded",
	[IRDMA_CM_DROP_SEQ] = "cm_drop_sequence",
	[IRDMA_CM_DROP_RST] = "cm_drop_rst",
	[IRDMA_CM_DROP_SYN] = "cm_drop_syn",
	[IRDMA_CM_DROP_ACK] = "cm_drop_ack",
	[IRDMA_CM_DROP_STATE] = "cm_drop_state",
};

static const char * const irdma_cm_counter_names[IRDMA_CM_COUNTER_COUNT] = {
	[IRDMA_CM_NODES_CREATED] = "cm_nodes_created",
	[IRDMA_CM_NODES_DESTROYED] = "cm_nodes_destroyed",
	[IRDMA_CM_LISTENERS_CREATED] = "cm_listeners_created",
	[IRDMA_CM_LISTENERS_DESTROYED] = "cm_listeners_destroyed",
	[IRDMA_CM_RX_FRAMES] = "cm_rx_frames",
	[IRDMA_CM_TX_FRAMES] = "cm_tx_frames",
	[IRDMA_CM_TX_FAILED] = "cm_tx_failed",
	[IRDMA_CM_RETRANSMITS] = "cm_retransmits",
	[IRDMA_CM_RSTS_SENT] = "cm_rsts_sent",
	[IRDMA_CM_CHALLENGE_ACKS] = "cm_challenge_acks",
	[IRDMA_CM_ACCEPTS] = "cm_accepts",
	[IRDMA_CM_REJECTS] = "cm_rejects",
	[IRDMA_CM_CONNECT_ERRORS] = "cm_connect_errors",
	[IRDMA_CM_PASSIVE_ERRORS] = "cm_passive_errors",
	[IRDMA_CM_TIMEOUTS] = "cm_timeouts",
	[IRDMA_CM_LOOPBACKS] = "cm_loopbacks",
	[IRDMA_CM_MPA_FALLBACKS] = "cm_mpa_fallbacks",
};

static const struct rhashtable_params irdma_cm_node_params = {
	.key_len = sizeof(struct irdma_cm_quad),
	.key_offset = offsetof(struct irdma_cm_node, quad),
	.head_offset = offsetof(struct irdma_cm_node, hash_entry),
	.automatic_shrinking = true,
};

static const struct rhashtable_params irdma_cm_request_params = {
	.key_len = sizeof(u64),
	.key_offset = offsetof(struct irdma_cm_node, handle),
	.head_offset = offsetof(struct irdma_cm_node, request_entry),
	.automatic_shrinking = true,
};

/**
 * irdma_cm_state_name - name of a state, for traces and messages
 * @state: any value
 *
 * Return: a constant string.
 */
const char *irdma_cm_state_name(enum irdma_cm_state state)
{
	return state < IRDMA_CM_STATE_COUNT ? irdma_cm_states[state].name : "?";
}

/**
 * irdma_cm_drop_name - name of a reason for dropping a frame, as users see it
 * @reason: any value
 *
 * Return: a constant string.
 */
const char *irdma_cm_drop_name(enum irdma_cm_drop reason)
{
	return reason < IRDMA_CM_DROP_COUNT ? irdma_cm_drop_names[reason] : "?";
}

/**
 * irdma_cm_counter_name - name of a counter, as users see it
 * @counter: any value
 *
 * Return: a constant string.
 */
const char *irdma_cm_counter_name(enum irdma_cm_counter counter)
{
	return counter < IRDMA_CM_COUNTER_COUNT ? irdma_cm_counter_names[counter] : "?";
}

/**
 * irdma_cm_count - count an event of the engine
 * @core: engine
 * @counter: what happened
 *
 * Context: Any; per-CPU, no lock.
 */
void irdma_cm_count(struct irdma_cm_core *core, enum irdma_cm_counter counter)
{
	this_cpu_inc(core->stats->counters[counter]);
}

/**
 * irdma_cm_drop - count and trace a frame that is thrown away
 * @core: engine
 * @rx: the frame
 * @reason: why
 *
 * Context: Any; per-CPU, no lock.
 */
void irdma_cm_drop(struct irdma_cm_core *core, const struct irdma_cm_rx *rx,
		   enum irdma_cm_drop reason)
{
	this_cpu_inc(core->stats->drops[reason]);
	if (core->ops->trace_drop)
		core->ops->trace_drop(core, rx, reason);
}

/**
 * irdma_cm_read_stats - sum up the counters of all CPUs
 * @core: engine
 * @sum: receives the sums
 *
 * Context: Any.  The values are not a snapshot: CPUs go on counting.
 */
void irdma_cm_read_stats(const struct irdma_cm_core *core, struct irdma_cm_stats *sum)
{
	unsigned int cpu, i;

	memset(sum, 0, sizeof(*sum));
	for_each_possible_cpu(cpu) {
		const struct irdma_cm_stats *s = per_cpu_ptr(core->stats, cpu);

		for (i = 0; i < IRDMA_CM_COUNTER_COUNT; i++)
			sum->counters[i] += READ_ONCE(s->counters[i]);
		for (i = 0; i < IRDMA_CM_DROP_COUNT; i++)
			sum->drops[i] += READ_ONCE(s->drops[i]);
	}
}

/**
 * irdma_copy_ip_ntohl - turn an address from wire into host order
 * @dst: receives four host-order words
 * @src: four big-endian words
 *
 * Context: Any.
 */
void irdma_copy_ip_ntohl(u32 *dst, const __be32 *src)
{
	int i;

	for (i = 0; i < 4; i++)
		dst[i] = ntohl(src[i]);
}

/**
 * irdma_copy_ip_htonl - turn an address from host into wire order
 * @dst: receives four big-endian words
 * @src: four host-order words
 *
 * Context: Any.
 */
void irdma_copy_ip_htonl(__be32 *dst, const u32 *src)
{
	int i;

	for (i = 0; i < 4; i++)
		dst[i] = htonl(src[i]);
}

/**
 * irdma_get_addr_info - the quad by which hardware knows a connection
 * @node: connection
 * @quad: receives family, VLAN, addresses and ports, all bytes of it set
 *
 * The same for adding and for deleting the established quad-hash entry: a delete must carry
 * exactly what the add carried (spec 03, 6.4).
 *
 * Context: Any; reads what is constant after creation.
 */
void irdma_get_addr_info(const struct irdma_cm_node *node, struct irdma_cm_quad *quad)
{
	*quad = node->quad;
}

/**
 * irdma_fill_sockaddr4 - put the addresses of an IPv4 connection into an event
 * @node: IPv4 connection
 * @event: event whose local and remote address are set
 *
 * Context: Any.
 */
void irdma_fill_sockaddr4(const struct irdma_cm_node *node, struct iw_cm_event *event)
{
	struct sockaddr_in *local = (struct sockaddr_in *)&event->local_addr;
	struct sockaddr_in *remote = (struct sockaddr_in *)&event->remote_addr;

	local->sin_family = AF_INET;
	remote->sin_family = AF_INET;
	local->sin_port = htons(node->quad.local_port);
	remote->sin_port = htons(node->quad.remote_port);
	local->sin_addr.s_addr = htonl(node->quad.local_ip[0]);
	remote->sin_addr.s_addr = htonl(node->quad.remote_ip[0]);
}

/**
 * irdma_fill_sockaddr6 - put the addresses of an IPv6 connection into an event
 * @node: IPv6 connection
 * @event: event whose local and remote address are set; scope id and flow label stay 0
 *
 * Context: Any.
 */
void irdma_fill_sockaddr6(const struct irdma_cm_node *node, struct iw_cm_event *event)
{
	struct sockaddr_in6 *local = (struct sockaddr_in6 *)&event->local_addr;
	struct sockaddr_in6 *remote = (struct sockaddr_in6 *)&event->remote_addr;

	local->sin6_family = AF_INET6;
	remote->sin6_family = AF_INET6;
	local->sin6_port = htons(node->quad.local_port);
	remote->sin6_port = htons(node->quad.remote_port);
	irdma_copy_ip_htonl(local->sin6_addr.s6_addr32, node->quad.local_ip);
	irdma_copy_ip_htonl(remote->sin6_addr.s6_addr32, node->quad.remote_ip);
}

static void irdma_cm_event_pdata(const struct irdma_cm_node *node, struct iw_cm_event *event)
{
	event->private_data_len = min_t(u32, node->rx_data_len, IRDMA_CM_MAX_EVENT_VAL);
	if (event->private_data_len)
		event->private_data = node->rx_buf + node->rx_data;
}

/**
 * irdma_get_cmevent_info - fill what CONNECT_REPLY and ESTABLISHED tell
 * @node: connection
 * @cm_id: its id
 * @event: event to fill
 *
 * Addresses are the mapped ones of the id.  The depths are our own, negotiated: rdma_cm hands
 * ird to the ULP as initiator_depth and ord as responder_resources, so it sees them as the peer
 * does.  All iWARP providers do that, and ULPs in the kernel swap them back for iWARP.  Private
 * data and depths are shown only if the peer's reply decided the outcome.
 *
 * Context: Any.
 */
void irdma_get_cmevent_info(const struct irdma_cm_node *node, const struct iw_cm_id *cm_id,
			    struct iw_cm_event *event)
{
	event->local_addr = cm_id->m_local_addr;
	event->remote_addr = cm_id->m_remote_addr;
	if (!irdma_cm_flag(node, IRDMA_CM_F_REPLY) ||
	    (event->status && event->status != -ECONNREFUSED))
		return;
	event->ird = min_t(u32, node->ird, IRDMA_CM_MAX_EVENT_VAL);
	event->ord = min_t(u32, node->ord, IRDMA_CM_MAX_EVENT_VAL);
	if (event->event == IW_CM_EVENT_CONNECT_REPLY)
		irdma_cm_event_pdata(node, event);
}

static void irdma_cm_request_info(const struct irdma_cm_node *node, struct iw_cm_event *event)
{
	if (node->quad.ipv4)
		irdma_fill_sockaddr4(node, event);
	else
		irdma_fill_sockaddr6(node, event);
	event->provider_data = (void *)(uintptr_t)node->handle;
	event->ird = min_t(u32, node->peer_ird, IRDMA_CM_MAX_EVENT_VAL);
	event->ord = min_t(u32, node->peer_ord, IRDMA_CM_MAX_EVENT_VAL);
	irdma_cm_event_pdata(node, event);
}

/**
 * irdma_send_cm_event - tell iw_cm what happened to a connection
 * @cm_node: connection
 * @cm_id: id whose handler is called; for CONNECT_REQUEST that of the listener
 * @type: CONNECT_REQUEST, CONNECT_REPLY, ESTABLISHED, DISCONNECT or CLOSE
 * @status: 0 or a negative errno; CONNECT_REQUEST, ESTABLISHED and CLOSE always tell 0
 *
 * The caller sees to the order that iw_cm demands (spec 03, 1.5) and holds references on both.
 * iw_cm only queues the event and copies private data, so nothing is waited for.
 *
 * Context: Any, but without the node's lock.
 * Return: what the handler returned: 0, or -ENOMEM if the event was not taken.  -EINVAL for
 * another @type.
 */
int irdma_send_cm_event(struct irdma_cm_node *cm_node, struct iw_cm_id *cm_id,
			enum iw_cm_event_type type, int status)
{
	struct iw_cm_event event = { .event = type, .status = status };
	int ret;

	switch (type) {
	case IW_CM_EVENT_CONNECT_REQUEST:
		event.status = 0;
		irdma_cm_request_info(cm_node, &event);
		break;
	case IW_CM_EVENT_CONNECT_REPLY:
		irdma_get_cmevent_info(cm_node, cm_id, &event);
		if (status)
			irdma_cm_count(cm_node->core, IRDMA_CM_CONNECT_ERRORS);
		break;
	case IW_CM_EVENT_ESTABLISHED:
		event.status = 0;
		irdma_get_cmevent_info(cm_node, cm_id, &event);
		break;
	case IW_CM_EVENT_CLOSE:
		event.status = 0;
		break;
	case IW_CM_EVENT_DISCONNECT:
		break;
	default:
		return -EINVAL;
	}
	ret = cm_id->event_handler(cm_id, &event);
	if (cm_node->core->ops->trace_upcall)
		cm_node->core->ops->trace_upcall(cm_node, cm_id, &event, ret);
	return ret;
}

/**
 * irdma_create_event - note an event of a connection for its event work
 * @node: connection
 * @type: what happened
 *
 * Nothing is allocated, so the event cannot get lost.
 *
 * Context: Any, under the node's lock.
 */
void irdma_create_event(struct irdma_cm_node *node, enum irdma_cm_event_type type)
{
	node->events |= BIT(type);
	irdma_cm_post_event(node);
}

/**
 * irdma_cm_post_event - queue the event work of a connection
 * @node: connection; the queued work owns a reference
 *
 * Context: Any.
 */
void irdma_cm_post_event(struct irdma_cm_node *node)
{
	irdma_cm_node_get(node);
	if (!queue_work(node->core->wq, &node->event_work))
		irdma_cm_node_put(node);
}

/* Tell the listener's id.  No request is raised once destroy_listen has returned. */
static int irdma_cm_raise_request(struct irdma_cm_node *node, struct irdma_cm_listener *listener)
{
	int ret = -ECONNRESET;

	spin_lock_bh(&listener->lock);
	if (!listener->dead)
		ret = irdma_send_cm_event(node, listener->cm_id, IW_CM_EVENT_CONNECT_REQUEST, 0);
	spin_unlock_bh(&listener->lock);
	return ret;
}

static void irdma_cm_event_request(struct irdma_cm_node *node)
{
	struct irdma_cm_core *core = node->core;
	struct irdma_cm_listener *listener = NULL;
	int ret = 0;

	spin_lock_bh(&node->lock);
	if (node->state == ST(MPAREQ_RCVD) && node->listener) {
		listener = node->listener;
		refcount_inc(&listener->refs);
		node->handle = atomic64_inc_return(&core->next_handle);
		irdma_cm_node_get(node);
		ret = rhashtable_insert_fast(&core->requests, &node->request_entry,
					     irdma_cm_request_params);
		if (ret) {
			node->handle = 0;
			irdma_cm_node_put(node);
		}
	}
	spin_unlock_bh(&node->lock);
	if (!listener)
		return;

	if (!ret)
		ret = irdma_cm_raise_request(node, listener);
	if (ret) {
		struct irdma_cm_node *own = irdma_cm_take_request(core, node->handle);

		/* iw_cm did not take the connection over, so it is ours to refuse. */
		irdma_cm_reject(node, NULL, 0);
		if (own)
			irdma_cm_node_put(own);
	}
	irdma_dec_refcnt_listen(listener);
}

/**
 * irdma_cm_take_request - find the connection behind a handle and take the handle back
 * @core: engine
 * @handle: provider_data of an iw_cm_id
 *
 * Context: Any.
 * Return: the node with the reference that the handle owned, or NULL if the connection is gone
 * or another caller was first.
 */
struct irdma_cm_node *irdma_cm_take_request(struct irdma_cm_core *core, u64 handle)
{
	struct irdma_cm_node *node;

	if (!handle)
		return NULL;
	rcu_read_lock();
	node = rhashtable_lookup_fast(&core->requests, &handle, irdma_cm_request_params);
	if (node && rhashtable_remove_fast(&core->requests, &node->request_entry,
					   irdma_cm_request_params))
		node = NULL;
	rcu_read_unlock();
	return node;
}

/* The peer refused: tell iw_cm, then close our half of the connection. */
static void irdma_cm_event_rejected(struct irdma_cm_node *node)
{
	struct iw_cm_id *cm_id = irdma_qp_disconnect(node);

	if (cm_id) {
		irdma_send_cm_event(node, cm_id, IW_CM_EVENT_CONNECT_REPLY, -ECONNREFUSED);
		cm_id->rem_ref(cm_id);
	}
	irdma_cm_close(node);
}

/**
 * irdma_event_connect_error - report that an active attempt failed
 * @node: connection, closed already; its status tells why
 *
 * Raises CONNECT_REPLY unless it was raised before.  After that neither the id nor the QP is
 * referenced by the connection any more.
 *
 * Context: Event work.
 */
void irdma_event_connect_error(struct irdma_cm_node *node)
{
	struct iw_cm_id *cm_id = irdma_qp_disconnect(node);

	if (!cm_id)
		return;
	irdma_send_cm_event(node, cm_id, IW_CM_EVENT_CONNECT_REPLY,
			    node->status ? node->status : -ECONNRESET);
	cm_id->rem_ref(cm_id);
}

/**
 * irdma_cm_event_reset - reset an established connection
 * @node: connection whose stream a QP owns
 *
 * For a connection whose address went away, or whose orderly close takes too long.  The QP is
 * moved to error and flushed; DISCONNECT and CLOSE follow from the disconnect worker.
 *
 * Context: Event work, sleeps.
 */
void irdma_cm_event_reset(struct irdma_cm_node *node)
{
	const struct irdma_cm_ops *ops = node->core->ops;
	struct ib_qp *ibqp;

	spin_lock_bh(&node->lock);
	ibqp = node->ibqp;
	if (ibqp)
		ops->qp_hold(ibqp);
	spin_unlock_bh(&node->lock);
	if (!ibqp)
		return;
	ops->qp_abort(ibqp);
	irdma_cm_disconn(ibqp);
	ops->qp_put(ibqp);
}

/**
 * irdma_cm_event_handler - the event work of a connection
 * @work: in the node; owns a reference on it
 *
 * Handles what irdma_create_event() noted, in the order of enum irdma_cm_event_type.  Each
 * connection has its own work, so one that waits for hardware does not delay the others.
 *
 * Context: Process, sleeps.
 */
void irdma_cm_event_handler(struct work_struct *work)
{
	static void (* const handlers[IRDMA_CM_EV_COUNT])(struct irdma_cm_node *node) = {
		[IRDMA_CM_EV_MPA_REQ] = irdma_cm_event_request,
		[IRDMA_CM_EV_CONNECTED] = irdma_cm_event_connected,
		[IRDMA_CM_EV_MPA_REJECT] = irdma_cm_event_rejected,
		[IRDMA_CM_EV_ABORTED] = irdma_event_connect_error,
		[IRDMA_CM_EV_RESET] = irdma_cm_event_reset,
	};
	struct irdma_cm_node *node = container_of(work, struct irdma_cm_node, event_work);
	unsigned int events, i;

	spin_lock_bh(&node->lock);
	events = node->events;
	node->events = 0;
	spin_unlock_bh(&node->lock);

	for (i = 0; i < IRDMA_CM_EV_COUNT; i++)
		if (events & BIT(i))
			handlers[i](node);
	irdma_cm_node_put(node);
}

/**
 * irdma_cm_set_deadline - bound the time in the present state
 * @node: connection
 * @ms: milliseconds from now; 0: no bound
 *
 * Context: Any, under the node's lock.
 */
void irdma_cm_set_deadline(struct irdma_cm_node *node, unsigned int ms)
{
	if (ms) {
		node->deadline = jiffies + msecs_to_jiffies(ms);
		irdma_cm_set_flag(node, IRDMA_CM_F_DEADLINE);
	} else {
		irdma_cm_clear_flag(node, IRDMA_CM_F_DEADLINE);
	}
	irdma_timer_list_prep(node);
}

/**
 * irdma_cm_set_state - the only place where a connection changes its state
 * @node: connection
 * @to: new state
 *
 * Starts the deadline of the new state.
 *
 * Context: Any, under the node's lock.
 */
void irdma_cm_set_state(struct irdma_cm_node *node, enum irdma_cm_state to)
{
	struct irdma_cm_core *core = node->core;
	enum irdma_cm_state from = node->state;

	WARN_ONCE(!(irdma_cm_states[from].next & BIT(to)), "irdma: no way from %s to %s\n",
		  irdma_cm_state_name(from), irdma_cm_state_name(to));
	if (from == ST(TIME_WAIT))
		atomic_dec(&core->time_wait);
	if (to == ST(TIME_WAIT))
		atomic_inc(&core->time_wait);
	node->state = to;
	if (core->ops->trace_state)
		core->ops->trace_state(node, from, to);
	irdma_cm_set_deadline(node, irdma_cm_states[to].deadline_ms);
}

/**
 * irdma_timer_list_prep - arm a connection's timer for what is due next
 * @node: connection
 *
 * That is the earlier of the retransmission and the deadline of the state.  The armed timer
 * owns a reference.
 *
 * Context: Any, under the node's lock.
 */
void irdma_timer_list_prep(struct irdma_cm_node *node)
{
	bool deadline = irdma_cm_flag(node, IRDMA_CM_F_DEADLINE);
	unsigned long when = node->deadline;

	if (node->out && (!deadline || time_before(node->retrans_at, when)))
		when = node->retrans_at;

	if (node->out || deadline) {
		if (!mod_timer(&node->timer, when))
			irdma_cm_node_get(node);
	} else if (timer_delete(&node->timer)) {
		irdma_cm_node_put(node);
	}
}

/**
 * irdma_schedule_cm_timer - send a segment that has to be acknowledged
 * @node: connection
 * @out: kind of segment
 * @seq_len: sequence numbers that it takes, SYN and FIN included
 *
 * It is sent at once, and again with doubled intervals until irdma_cleanup_retrans_entry().
 * There is never more than one such segment.
 *
 * Context: Any, under the node's lock.
 */
void irdma_schedule_cm_timer(struct irdma_cm_node *node, enum irdma_cm_out out, u32 seq_len)
{
	node->out = out;
	node->snd_nxt += seq_len;
	node->retries = 0;
	node->retrans_at = jiffies + msecs_to_jiffies(IRDMA_CM_FIRST_RTO_MS);
	irdma_cm_send_out(node);
	irdma_timer_list_prep(node);
}

/**
 * irdma_retrans_expired - the peer did not answer in time
 * @node: connection whose retransmissions or whose deadline are used up
 *
 * Context: Any, under the node's lock.
 */
void irdma_retrans_expired(struct irdma_cm_node *node)
{
	irdma_cm_count(node->core, IRDMA_CM_TIMEOUTS);
	switch (node->state) {
	case ST(SETUP):
	case ST(SYN_SENT):
	case ST(SYN_RCVD):
	case ST(ESTABLISHED):
	case ST(MPAREQ_SENT):
	case ST(MPAREQ_RCVD):
		if (node->active)
			irdma_active_open_err(node, -ETIMEDOUT, true);
		else
			irdma_passive_open_err(node, true);
		break;
	case ST(FIN_WAIT1):
	case ST(FIN_WAIT2):
	case ST(CLOSING):
	case ST(LAST_ACK):
	case ST(MPAREJ_RCVD):
		irdma_send_reset(node);
		irdma_cm_node_closed(node);
		break;
	default:
		irdma_handle_close_entry(node);
	}
}

/**
 * irdma_handle_close_entry - end what has waited long enough for an orderly close
 * @node: connection in TIME_WAIT, or established and closing
 *
 * Context: Any, under the node's lock.
 */
void irdma_handle_close_entry(struct irdma_cm_node *node)
{
	if (node->state == ST(OFFLOADED)) {
		irdma_cm_set_deadline(node, 0);
		irdma_create_event(node, IRDMA_CM_EV_RESET);
	} else {
		irdma_cm_node_closed(node);
	}
}

static void irdma_cm_retransmit(struct irdma_cm_node *node)
{
	unsigned int rto_ms;

	irdma_cm_count(node->core, IRDMA_CM_RETRANSMITS);
	node->retries++;
	rto_ms = min(IRDMA_CM_FIRST_RTO_MS << node->retries, IRDMA_CM_MAX_RTO_MS);
	node->retrans_at = jiffies + msecs_to_jiffies(rto_ms);
	irdma_cm_send_out(node);
	irdma_timer_list_prep(node);
}

/**
 * irdma_cm_timer_tick - a connection's timer fired
 * @timer: in the node; owned a reference
 *
 * Context: Timer softirq; takes the node's lock.
 */
void irdma_cm_timer_tick(struct timer_list *timer)
{
	struct irdma_cm_node *node = container_of(timer, struct irdma_cm_node, timer);

	spin_lock_bh(&node->lock);
	if (irdma_cm_flag(node, IRDMA_CM_F_DEADLINE) && time_after_eq(jiffies, node->deadline)) {
		irdma_retrans_expired(node);
	} else if (!node->out || time_before(jiffies, node->retrans_at)) {
		irdma_timer_list_prep(node);
	} else if (node->out == IRDMA_CM_OUT_DELAYED_ACK) {
		irdma_send_ack(node);
		irdma_timer_list_prep(node);
	} else if (node->retries >= IRDMA_CM_RETRIES) {
		irdma_retrans_expired(node);
	} else {
		irdma_cm_retransmit(node);
	}
	spin_unlock_bh(&node->lock);
	irdma_cm_node_put(node);
}

/**
 * irdma_find_node - find a connection by its quad
 * @core: engine
 * @quad: from our point of view, all bytes set
 *
 * Context: Any; no lock, cost does not depend on the number of connections.
 * Return: the node with a reference, or NULL.
 */
struct irdma_cm_node *irdma_find_node(struct irdma_cm_core *core, const struct irdma_cm_quad *quad)
{
	struct irdma_cm_node *node;

	rcu_read_lock();
	node = rhashtable_lookup_fast(&core->nodes, quad, irdma_cm_node_params);
	if (node && !refcount_inc_not_zero(&node->refs))
		node = NULL;
	rcu_read_unlock();
	return node;
}

/**
 * irdma_add_hte_node - make a connection known by its quad
 * @core: engine
 * @node: connection
 *
 * Context: Any.
 * Return: 0; -EEXIST if a connection has this quad already; -ENOMEM.
 */
int irdma_add_hte_node(struct irdma_cm_core *core, struct irdma_cm_node *node)
{
	return rhashtable_insert_fast(&core->nodes, &node->hash_entry, irdma_cm_node_params);
}

/**
 * irdma_ipv4_is_lpb - is the peer this host?
 * @local: local address, host order
 * @remote: remote address, host order
 *
 * Context: Any.
 * Return: true if the remote address is the local one or lies in 127.0.0.0/8.
 */
bool irdma_ipv4_is_lpb(u32 local, u32 remote)
{
	return local == remote || remote >> 24 == 127;
}

/**
 * irdma_ipv6_is_lpb - is the peer this host?
 * @local: local address, four host-order words
 * @remote: remote address, four host-order words
 *
 * Context: Any.
 * Return: true if the remote address is the local one or ::1.
 */
bool irdma_ipv6_is_lpb(const u32 *local, const u32 *remote)
{
	if (!memcmp(local, remote, 4 * sizeof(u32)))
		return true;
	return !remote[0] && !remote[1] && !remote[2] && remote[3] == 1;
}

/**
 * irdma_cm_isn - initial sequence number of a connection
 * @core: engine
 * @quad: the connection
 *
 * RFC 6528: a keyed hash of the quad plus a clock that ticks every 4 us.
 *
 * Context: Any.
 * Return: the sequence number of the SYN.
 */
u32 irdma_cm_isn(struct irdma_cm_core *core, const struct irdma_cm_quad *quad)
{
	return (u32)siphash(quad, sizeof(*quad), &core->isn_key) + (u32)(ktime_get_ns() >> 12);
}

/**
 * irdma_cm_create_ah - ask for the address handle of a connection
 * @node: connection
 *
 * The answer comes by irdma_cm_ah_done(); the command owns a reference until then.
 *
 * Context: Any, under the node's lock.
 * Return: 1 if an answer will come, 0 if the handle is there or not needed, or an errno.
 */
int irdma_cm_create_ah(struct irdma_cm_node *node)
{
	const struct irdma_cm_ops *ops = node->core->ops;
	int ret;

	if (!ops->ah_create) {
		irdma_cm_set_flag(node, IRDMA_CM_F_AH);
		return 0;
	}
	ret = ops->ah_create(node);
	if (ret != 1)
		return ret ? ret : 1;
	irdma_cm_set_flag(node, IRDMA_CM_F_AH);
	return 0;
}

/**
 * irdma_cm_free_ah - let the address handle of a connection go, if it has one
 * @node: connection
 *
 * Context: Any, under the node's lock.
 */
void irdma_cm_free_ah(struct irdma_cm_node *node)
{
	if (irdma_cm_clear_flag(node, IRDMA_CM_F_AH) && node->core->ops->ah_destroy)
		node->core->ops->ah_destroy(node);
}

static void irdma_cm_release_hw(struct irdma_cm_node *node)
{
	const struct irdma_cm_ops *ops = node->core->ops;

	irdma_cm_free_ah(node);
	if (irdma_cm_clear_flag(node, IRDMA_CM_F_QHASH))
		ops->qhash_del(node);
	if (irdma_cm_clear_flag(node, IRDMA_CM_F_PORT))
		ops->port_put(node->core, node->quad.local_port);
}

/**
 * irdma_cm_node_setup - start to make the hardware entries of a connection
 * @node: connection in SETUP
 *
 * Address handle, established quad-hash entry and local port are asked for together.  The last
 * answer continues the connection (SYN or SYN-ACK) or ends it.
 *
 * Context: Any, under the node's lock.
 * Return: 0, or the first errno; then the caller closes the node, and answers that are still
 * to come only complete its release.
 */
int irdma_cm_node_setup(struct irdma_cm_node *node)
{
	struct irdma_cm_core *core = node->core;
	int ret;

	ret = irdma_cm_create_ah(node);
	if (ret < 0)
		return ret;
	node->setup_pending += ret;

	ret = core->ops->qhash_add(node);
	if (ret)
		return ret;
	node->setup_pending++;

	ret = core->ops->port_get(core, node->quad.local_port, node);
	if (ret == -EINPROGRESS)
		node->setup_pending++;
	else if (ret)
		return ret;
	else
		irdma_cm_set_flag(node, IRDMA_CM_F_PORT);
	return 0;
}

static void irdma_cm_setup_done(struct irdma_cm_node *node, enum irdma_cm_flag flag, int status)
{
	spin_lock_bh(&node->lock);
	if (!status)
		irdma_cm_set_flag(node, flag);
	else if (!node->status)
		node->status = status;
	if (--node->setup_pending)
		goto unlock;

	if (node->state == ST(CLOSED))
		irdma_cm_release_hw(node);
	else if (node->status && node->active)
		irdma_active_open_err(node, node->status, false);
	else if (node->status)
		irdma_passive_open_err(node, false);
	else
		irdma_send_syn(node, !node->active);
unlock:
	spin_unlock_bh(&node->lock);
}

/**
 * irdma_cm_ah_done - answer to &irdma_cm_ops.ah_create
 * @node: connection; the caller still holds the command's reference
 * @status: 0 or a negative errno
 *
 * Context: Any, without the node's lock.
 */
void irdma_cm_ah_done(struct irdma_cm_node *node, int status)
{
	irdma_cm_setup_done(node, IRDMA_CM_F_AH, status);
}

/**
 * irdma_cm_qhash_done - answer to &irdma_cm_ops.qhash_add
 * @node: connection; the caller still holds the command's reference
 * @status: 0 or a negative errno
 *
 * Context: Any, without the node's lock.
 */
void irdma_cm_qhash_done(struct irdma_cm_node *node, int status)
{
	irdma_cm_setup_done(node, IRDMA_CM_F_QHASH, status);
}

/**
 * irdma_cm_port_done - answer to &irdma_cm_ops.port_get that returned -EINPROGRESS
 * @node: connection; the caller still holds the command's reference
 * @status: 0 or a negative errno
 *
 * Context: Any, without the node's lock.
 */
void irdma_cm_port_done(struct irdma_cm_node *node, int status)
{
	irdma_cm_setup_done(node, IRDMA_CM_F_PORT, status);
}

/**
 * irdma_cm_release_frames - free the start-up frames of a connection
 * @node: connection after its hand-over or at its end
 *
 * Context: Any, under the node's lock or with the last reference.
 */
void irdma_cm_release_frames(struct irdma_cm_node *node)
{
	kfree(node->rx_buf);
	kfree(node->tx_data);
	node->rx_buf = NULL;
	node->tx_data = NULL;
	node->rx_len = 0;
	node->rx_data_len = 0;
	node->tx_len = 0;
}

/**
 * irdma_cm_node_closed - the one way out: a connection becomes CLOSED
 * @node: connection
 *
 * Takes it out of all tables, starts the removal of its hardware entries, stops its timer and
 * drops the reference that it owned by being alive.  Events that were noted are still handled.
 * Does nothing if the node is closed already.
 *
 * Context: Any, under the node's lock; the caller holds a reference of its own.
 */
void irdma_cm_node_closed(struct irdma_cm_node *node)
{
	struct irdma_cm_core *core = node->core;

	if (!irdma_cm_clear_flag(node, IRDMA_CM_F_ALIVE))
		return;
	irdma_cleanup_retrans_entry(node);
	irdma_cm_set_state(node, ST(CLOSED));
	rhashtable_remove_fast(&core->nodes, &node->hash_entry, irdma_cm_node_params);
	if (node->handle && !rhashtable_remove_fast(&core->requests, &node->request_entry,
						    irdma_cm_request_params))
		irdma_cm_node_put(node);
	irdma_cm_detach(node);
	if (!node->setup_pending)
		irdma_cm_release_hw(node);
	irdma_cm_node_put(node);
}

static void irdma_cm_init_tcp(struct irdma_cm_node *node)
{
	u32 hdrs = node->quad.ipv4 ? 40 : 60;
	u32 floor = node->quad.ipv4 ? IRDMA_CM_MIN_MSS_V4 : IRDMA_CM_MIN_MSS_V6;

	node->mss = clamp_t(u32, node->route.mtu, floor + hdrs, U16_MAX) - hdrs;
	node->rcv_scale = IRDMA_CM_RCV_SCALE;
	node->iss = irdma_cm_isn(node->core, &node->quad);
	node->snd_una = node->iss;
	node->snd_nxt = node->iss;
	node->ack_credit = IRDMA_CM_ACKS_PER_S;
	node->mpa_rev = 2;
	node->rtr = IRDMA_CM_RTR_READ | IRDMA_CM_RTR_WRITE;
}

/* A new attempt may take over the quad of a connection that only waits for old duplicates. */
static int irdma_cm_insert(struct irdma_cm_core *core, struct irdma_cm_node *node)
{
	struct irdma_cm_node *old;
	int ret = irdma_add_hte_node(core, node);

	if (ret != -EEXIST)
		return ret;
	old = irdma_find_node(core, &node->quad);
	if (old) {
		spin_lock_bh(&old->lock);
		if (old->state == ST(TIME_WAIT)) {
			/* RFC 6191, RFC 9293 3.6.1: start above what was used before */
			node->iss = max(node->iss - old->snd_nxt, 0x10000U) + old->snd_nxt;
			node->snd_una = node->iss;
			node->snd_nxt = node->iss;
			irdma_cm_node_closed(old);
		}
		spin_unlock_bh(&old->lock);
		irdma_cm_node_put(old);
	}
	return irdma_add_hte_node(core, node);
}

/**
 * irdma_make_cm_node - make a connection
 * @core: engine
 * @quad: addresses and ports; the VLAN counts for a passive connection only
 * @tos: TOS or traffic class of what we send
 * @listener: for a passive connection; NULL for an active one
 *
 * Finds and pins the way to the peer, and enters the node into the table of connections in
 * state SETUP with its deadline running.
 *
 * Context: Any; the only allocation of the packet path, bounded by the cap of half-open
 * connections.
 * Return: the node with a reference for the caller; ERR_PTR(-ENOMEM), -EHOSTUNREACH, -EAGAIN
 * while the neighbour is being resolved, -EADDRINUSE if the quad is in use.
 */
struct irdma_cm_node *irdma_make_cm_node(struct irdma_cm_core *core,
					 const struct irdma_cm_quad *quad, u8 tos,
					 struct irdma_cm_listener *listener)
{
	struct irdma_cm_node *node;
	int ret;

	node = core->ops->node_alloc();
	if (!node)
		return ERR_PTR(-ENOMEM);
	ret = core->ops->resolve(core, quad, tos, &node->route);
	if (ret) {
		core->ops->node_free(node);
		return ERR_PTR(ret);
	}

	node->core = core;
	node->quad = *quad;
	if (!listener)
		node->quad.vlan = node->route.vlan;
	node->tos = tos;
	node->active = !listener;
	refcount_set(&node->refs, 2);	/* being alive, and the caller */
	timer_setup(&node->timer, irdma_cm_timer_tick, 0);
	INIT_WORK(&node->event_work, irdma_cm_event_handler);
	spin_lock_init(&node->lock);
	INIT_LIST_HEAD(&node->listener_entry);
	node->state = ST(SETUP);
	node->flags = BIT(IRDMA_CM_F_ALIVE);
	irdma_cm_init_tcp(node);

	atomic_inc(&core->num_nodes);
	irdma_cm_count(core, IRDMA_CM_NODES_CREATED);
	if (node->route.loopback)
		irdma_cm_count(core, IRDMA_CM_LOOPBACKS);
	ret = irdma_cm_insert(core, node);
	if (ret) {
		refcount_set(&node->refs, 1);
		irdma_cm_node_put(node);
		return ERR_PTR(ret == -EEXIST ? -EADDRINUSE : ret);
	}

	spin_lock_bh(&node->lock);
	if (irdma_cm_flag(node, IRDMA_CM_F_ALIVE)) {
		if (!listener || irdma_cm_attach(node, listener))
			irdma_cm_set_deadline(node, irdma_cm_states[ST(SETUP)].deadline_ms);
		else
			irdma_cm_node_closed(node);
	}
	spin_unlock_bh(&node->lock);
	return node;
}

/**
 * irdma_rem_ref_cm_node - drop a reference on a connection
 * @node: connection
 *
 * The last one gives back the way to the peer and frees the node after a grace period.  By
 * then the node is closed, and its id and QP have been let go.
 *
 * Context: Any.
 */
void irdma_rem_ref_cm_node(struct irdma_cm_node *node)
{
	struct irdma_cm_core *core = node->core;

	if (!refcount_dec_and_test(&node->refs))
		return;
	WARN_ON_ONCE(node->cm_id || node->ibqp || node->listener);
	core->ops->route_put(core, &node->route);
	irdma_cm_release_frames(node);
	irdma_cm_count(core, IRDMA_CM_NODES_DESTROYED);
	core->ops->node_free(node);
	if (atomic_dec_and_test(&core->num_nodes))
		wake_up_all(&core->idle);
}

/**
 * irdma_cm_node_get - take a reference on a connection
 * @node: connection that the caller knows to be referenced
 *
 * Context: Any.
 */
void irdma_cm_node_get(struct irdma_cm_node *node)
{
	refcount_inc(&node->refs);
}

/**
 * irdma_cm_node_put - drop a reference on a connection, see irdma_rem_ref_cm_node()
 * @node: connection
 *
 * Context: Any.
 */
void irdma_cm_node_put(struct irdma_cm_node *node)
{
	irdma_rem_ref_cm_node(node);
}

static bool irdma_cm_on_addr(const struct irdma_cm_node *node, const struct irdma_cm_laddr *addr)
{
	return node->quad.ipv4 == addr->ipv4 && node->quad.vlan == addr->vlan &&
	       !memcmp(node->quad.local_ip, addr->ip, sizeof(addr->ip));
}

/**
 * irdma_teardown_list_prep - collect connections that have to end
 * @core: engine
 * @addr: only those with this local address and VLAN; NULL: all
 * @list: receives the nodes, referenced
 * @max: how many fit
 *
 * Established connections that are being reset already are left out, so that calling this
 * again until it returns 0 comes to an end.
 *
 * Context: Process.
 * Return: number of nodes in @list.
 */
unsigned int irdma_teardown_list_prep(struct irdma_cm_core *core,
				      const struct irdma_cm_laddr *addr,
				      struct irdma_cm_node **list, unsigned int max)
{
	struct rhashtable_iter iter;
	struct irdma_cm_node *node;
	unsigned int n = 0;

	rhashtable_walk_enter(&core->nodes, &iter);
	rhashtable_walk_start(&iter);
	while (n < max && (node = rhashtable_walk_next(&iter))) {
		if (IS_ERR(node))	/* the table was resized: seen again, or next time */
			continue;
		if (READ_ONCE(node->flags) & BIT(IRDMA_CM_F_ABORTED))
			continue;
		if ((!addr || irdma_cm_on_addr(node, addr)) &&
		    refcount_inc_not_zero(&node->refs))
			list[n++] = node;
	}
	rhashtable_walk_stop(&iter);
	rhashtable_walk_exit(&iter);
	return n;
}

static void irdma_cm_teardown_node(struct irdma_cm_node *node)
{
	spin_lock_bh(&node->lock);
	irdma_cm_set_flag(node, IRDMA_CM_F_ABORTED);
	switch (node->state) {
	case ST(CLOSED):
		break;
	case ST(HANDOVER):
		irdma_cm_set_flag(node, IRDMA_CM_F_CANCELLED);
		break;
	case ST(OFFLOADED):
		irdma_create_event(node, IRDMA_CM_EV_RESET);
		break;
	default:
		if (node->ibqp)
			irdma_active_open_err(node, -ECONNABORTED, true);
		else
			irdma_passive_open_err(node, true);
	}
	spin_unlock_bh(&node->lock);
}

/**
 * irdma_cm_teardown_connections - end the connections of an address, or all
 * @core: engine
 * @addr: local address that went away; NULL: all connections
 *
 * Those that software owns are reset at once.  Those that a QP owns are reset by their event
 * work, in parallel; nothing is waited for here.
 *
 * Context: Process.
 */
void irdma_cm_teardown_connections(struct irdma_cm_core *core, const struct irdma_cm_laddr *addr)
{
	struct irdma_cm_node *list[64];
	unsigned int n, i;

	do {
		n = irdma_teardown_list_prep(core, addr, list, ARRAY_SIZE(list));
		for (i = 0; i < n; i++) {
			irdma_cm_teardown_node(list[i]);
			irdma_cm_node_put(list[i]);
		}
	} while (n);
}

/**
 * irdma_cm_set_dead - the hardware is gone
 * @core: engine
 *
 * Ends all connections: established ones get DISCONNECT and CLOSE, connecting ones
 * CONNECT_REPLY.  No new ones begin.
 *
 * Context: Process.
 */
void irdma_cm_set_dead(struct irdma_cm_core *core)
{
	WRITE_ONCE(core->dead, true);
	irdma_cm_teardown_connections(core, NULL);
}

/**
 * irdma_setup_cm_core - set up the engine of a device
 * @ops: services of the driver, kept
 * @priv: for the driver
 * @config: limits, copied
 *
 * Context: Process, sleeps.
 * Return: the engine, or ERR_PTR(-ENOMEM).
 */
struct irdma_cm_core *irdma_setup_cm_core(const struct irdma_cm_ops *ops, void *priv,
					  const struct irdma_cm_config *config)
{
	struct irdma_cm_core *core;
	int ret;

	core = kzalloc(sizeof(*core), GFP_KERNEL);
	if (!core)
		return ERR_PTR(-ENOMEM);
	core->ops = ops;
	core->priv = priv;
	core->config = *config;
	if (!core->config.max_half_open)
		core->config.max_half_open = IRDMA_CM_MAX_HALF_OPEN;
	if (!core->config.syn_rate)
		core->config.syn_rate = IRDMA_CM_SYN_RATE;
	if (!core->config.syn_burst)
		core->config.syn_burst = IRDMA_CM_SYN_BURST;
	get_random_bytes(&core->isn_key, sizeof(core->isn_key));
	init_waitqueue_head(&core->idle);

	ret = -ENOMEM;
	core->stats = alloc_percpu(struct irdma_cm_stats);
	if (!core->stats)
		goto free_core;
	core->wq = alloc_workqueue("irdma_cm", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!core->wq)
		goto free_stats;
	ret = rhashtable_init(&core->nodes, &irdma_cm_node_params);
	if (ret)
		goto free_wq;
	ret = rhashtable_init(&core->requests, &irdma_cm_request_params);
	if (ret)
		goto free_nodes;
	ret = irdma_cm_init_listen(core);
	if (ret)
		goto free_requests;
	return core;

free_requests:
	rhashtable_destroy(&core->requests);
free_nodes:
	rhashtable_destroy(&core->nodes);
free_wq:
	destroy_workqueue(core->wq);
free_stats:
	free_percpu(core->stats);
free_core:
	kfree(core);
	return ERR_PTR(ret);
}

/**
 * irdma_cleanup_cm_core - end the engine of a device
 * @core: engine; no downcall comes any more, but raw queue and commands still work
 *
 * Resets the connections that are left and waits until they, their timers and their commands
 * are gone.  After that the raw queue may go.
 *
 * Context: Process, sleeps; at most IRDMA_CM_CLEANUP_MS, after which what is left is leaked
 * with a warning rather than freed under a user.
 */
void irdma_cleanup_cm_core(struct irdma_cm_core *core)
{
	unsigned long timeout = msecs_to_jiffies(IRDMA_CM_CLEANUP_MS);

	WRITE_ONCE(core->stopping, true);
	irdma_cm_teardown_connections(core, NULL);
	wait_event_timeout(core->idle, !atomic_read(&core->num_nodes) &&
			   !atomic_read(&core->num_listeners), timeout);
	if (WARN(atomic_read(&core->num_nodes) || atomic_read(&core->num_listeners),
		 "irdma: %d connections and %d listeners are left\n",
		 atomic_read(&core->num_nodes), atomic_read(&core->num_listeners)))
		return;
	destroy_workqueue(core->wq);
	synchronize_rcu();
	irdma_cm_cleanup_listen(core);
	rhashtable_destroy(&core->requests);
	rhashtable_destroy(&core->nodes);
	free_percpu(core->stats);
	kfree(core);
}
