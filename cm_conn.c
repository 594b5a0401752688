// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Connections as iw_cm and the queue pairs see them: the downcalls connect, accept and reject,
 * the hand-over of the stream to a QP, and its end (spec 03, sections 6 and 8).
 *
 * A connection is linked to its QP and its iw_cm_id by connect and accept.  Whoever takes the
 * link apart by irdma_qp_disconnect() gets the id, and with it the right and the duty to raise
 * the last event, so that event cannot come twice.
 */
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/slab.h>
#include <net/ipv6.h>

#include "cm_priv.h"

#define ST(x)	IRDMA_CM_STATE_##x

/* Asynchronous events and TCP states that end a connection (spec 01, 5.4; spec 03, 8.3) */
#define AE_BAD_CLOSE		0x0201
#define AE_CLOSE_COMPLETE	0x0501
#define AE_CONNECTION_RESET	0x0502
#define AE_RESET_SENT		0x0601
#define TCP_CLOSED		1
#define TCP_CLOSE_WAIT		6
#define TCP_TIME_WAIT		11

static int irdma_cm_get_quad(const struct iw_cm_id *cm_id, struct irdma_cm_quad *quad)
{
	const struct sockaddr_storage *local = &cm_id->m_local_addr;
	const struct sockaddr_storage *remote = &cm_id->m_remote_addr;

	memset(quad, 0, sizeof(*quad));
	quad->vlan = IRDMA_CM_NO_VLAN;
	if (local->ss_family != remote->ss_family)
		return -EAFNOSUPPORT;
	if (local->ss_family == AF_INET) {
		const struct sockaddr_in *l = (const struct sockaddr_in *)local;
		const struct sockaddr_in *r = (const struct sockaddr_in *)remote;

		quad->ipv4 = 1;
		quad->local_ip[0] = ntohl(l->sin_addr.s_addr);
		quad->remote_ip[0] = ntohl(r->sin_addr.s_addr);
		quad->local_port = ntohs(l->sin_port);
		quad->remote_port = ntohs(r->sin_port);
	} else if (local->ss_family == AF_INET6) {
		const struct sockaddr_in6 *l = (const struct sockaddr_in6 *)local;
		const struct sockaddr_in6 *r = (const struct sockaddr_in6 *)remote;

		irdma_copy_ip_ntohl(quad->local_ip, l->sin6_addr.s6_addr32);
		irdma_copy_ip_ntohl(quad->remote_ip, r->sin6_addr.s6_addr32);
		quad->local_port = ntohs(l->sin6_port);
		quad->remote_port = ntohs(r->sin6_port);
	} else {
		return -EAFNOSUPPORT;
	}
	if (!quad->local_port || !quad->remote_port)
		return -EINVAL;
	/* A connection to itself would need two roles in one node. */
	if (quad->local_port == quad->remote_port &&
	    !memcmp(quad->local_ip, quad->remote_ip, sizeof(quad->local_ip)))
		return -EADDRNOTAVAIL;
	return 0;
}

static int irdma_cm_copy_pdata(struct irdma_cm_node *node, const void *data, u32 len, gfp_t gfp)
{
	if (!len)
		return 0;
	node->tx_data = kmemdup(data, len, gfp);
	if (!node->tx_data)
		return -ENOMEM;
	node->tx_len = len;
	return 0;
}

/**
 * irdma_create_cm_node - make an active connection
 * @core: engine
 * @quad: addresses and ports
 * @cm_id: its id, for the TOS
 * @param: what the ULP wants; private data is copied
 *
 * Context: Process.
 * Return: the node in SETUP with a reference for the caller, or an ERR_PTR as of
 * irdma_make_cm_node().
 */
struct irdma_cm_node *irdma_create_cm_node(struct irdma_cm_core *core,
					   const struct irdma_cm_quad *quad,
					   const struct iw_cm_id *cm_id,
					   const struct iw_cm_conn_param *param)
{
	struct irdma_cm_node *node;
	int ret;

	node = irdma_make_cm_node(core, quad, cm_id->tos_set ? cm_id->tos & ~3 : 0, NULL);
	if (IS_ERR(node))
		return PTR_ERR(node) == -EAGAIN ? ERR_PTR(-EHOSTUNREACH) : node;

	spin_lock_bh(&node->lock);
	irdma_cm_set_flag(node, IRDMA_CM_F_ENHANCED);
	irdma_cm_set_flag(node, IRDMA_CM_F_P2P);
	irdma_record_ird_ord(node, param->ird, param->ord);
	ret = irdma_cm_copy_pdata(node, param->private_data, param->private_data_len, GFP_ATOMIC);
	if (ret)
		irdma_cm_node_closed(node);
	spin_unlock_bh(&node->lock);
	if (ret) {
		irdma_cm_node_put(node);
		return ERR_PTR(ret);
	}
	return node;
}

/*
 * Tie a connection, its id and its QP together.  The node takes over the caller's reference on
 * the QP; the QP gets one on the node, the node one on the id.
 */
static int irdma_cm_link(struct irdma_cm_node *node, struct iw_cm_id *cm_id, struct ib_qp *ibqp)
{
	struct irdma_qp_cm *qcm = node->core->ops->qp_cm(ibqp);

	spin_lock_bh(&qcm->lock);
	if (qcm->cm_node) {
		spin_unlock_bh(&qcm->lock);
		return -EBUSY;
	}
	irdma_cm_node_get(node);
	qcm->cm_node = node;
	spin_unlock_bh(&qcm->lock);

	cm_id->add_ref(cm_id);
	spin_lock_bh(&node->lock);
	node->cm_id = cm_id;
	node->ibqp = ibqp;
	spin_unlock_bh(&node->lock);
	return 0;
}

/**
 * irdma_qp_disconnect - take the link between a connection, its id and its QP apart
 * @node: connection
 *
 * Context: Any, without locks.
 * Return: the id with the node's reference, which the caller drops after the last event; NULL
 * if there is no link or another caller was first.
 */
struct iw_cm_id *irdma_qp_disconnect(struct irdma_cm_node *node)
{
	const struct irdma_cm_ops *ops = node->core->ops;
	struct irdma_qp_cm *qcm;
	struct iw_cm_id *cm_id;
	struct ib_qp *ibqp;
	bool linked;

	spin_lock_bh(&node->lock);
	cm_id = node->cm_id;
	ibqp = node->ibqp;
	node->cm_id = NULL;
	node->ibqp = NULL;
	spin_unlock_bh(&node->lock);
	if (!ibqp)
		return NULL;

	qcm = ops->qp_cm(ibqp);
	spin_lock_bh(&qcm->lock);
	linked = qcm->cm_node == node;
	if (linked)
		qcm->cm_node = NULL;
	spin_unlock_bh(&qcm->lock);
	if (linked)
		irdma_cm_node_put(node);
	ops->qp_put(ibqp);
	return cm_id;
}

static void irdma_cm_drop_link(struct irdma_cm_node *node)
{
	struct iw_cm_id *cm_id = irdma_qp_disconnect(node);

	if (cm_id)
		cm_id->rem_ref(cm_id);
}

static int irdma_cm_start_connect(struct irdma_cm_node *node)
{
	int ret;

	spin_lock_bh(&node->lock);
	ret = irdma_cm_flag(node, IRDMA_CM_F_ALIVE) ? irdma_cm_node_setup(node) : -ECONNABORTED;
	if (ret)
		irdma_cm_node_closed(node);
	spin_unlock_bh(&node->lock);
	return ret;
}

/**
 * irdma_connect - device operation iw_connect
 * @cm_id: id; its mapped addresses go on the wire
 * @param: QP number, private data up to 508 bytes, depths
 *
 * Returns as soon as the hardware entries of the connection have been asked for; everything
 * after that, failure included, is told by exactly one CONNECT_REPLY.
 *
 * Context: Process.
 * Return: 0; -EINVAL for parameters out of range or an unknown QP, -EBUSY if the QP has a
 * connection, -EADDRINUSE if the addresses and ports have one, -EADDRNOTAVAIL, -EHOSTUNREACH
 * without a route or neighbour, -ENODEV, -ENOMEM.  No event follows an error.
 */
int irdma_connect(struct iw_cm_id *cm_id, struct iw_cm_conn_param *param)
{
	struct irdma_cm_core *core = irdma_cm_core_of(cm_id->device);
	struct irdma_cm_node *node;
	struct irdma_cm_quad quad;
	struct ib_qp *ibqp;
	int ret;

	if (READ_ONCE(core->stopping) || READ_ONCE(core->dead))
		return -ENODEV;
	if (param->private_data_len > IRDMA_MPA_MAX_PDATA_V2)
		return -EINVAL;
	ret = irdma_cm_get_quad(cm_id, &quad);
	if (ret)
		return ret;
	ibqp = core->ops->qp_get(core, param->qpn);
	if (!ibqp)
		return -EINVAL;
	node = irdma_create_cm_node(core, &quad, cm_id, param);
	if (IS_ERR(node)) {
		core->ops->qp_put(ibqp);
		return PTR_ERR(node);
	}

	ret = irdma_cm_link(node, cm_id, ibqp);
	if (ret) {
		core->ops->qp_put(ibqp);
		irdma_cm_close(node);
		goto put_node;
	}
	ret = irdma_cm_start_connect(node);
	if (ret)
		irdma_cm_drop_link(node);
put_node:
	irdma_cm_node_put(node);
	return ret;
}

/**
 * irdma_init_tcp_ctx - TCP part of the QP context, from the state of a connection
 * @node: connection in HANDOVER
 * @tcp: receives it (spec 03, 6.2)
 *
 * Context: Any, under the node's lock.
 */
void irdma_init_tcp_ctx(const struct irdma_cm_node *node, struct irdma_tcp_ctx *tcp)
{
	const struct irdma_cm_quad *quad = &node->quad;

	tcp->ipv4 = quad->ipv4;
	memcpy(tcp->local_ip, quad->local_ip, sizeof(tcp->local_ip));
	memcpy(tcp->remote_ip, quad->remote_ip, sizeof(tcp->remote_ip));
	tcp->local_port = quad->local_port;
	tcp->remote_port = quad->remote_port;
	tcp->insert_vlan = quad->vlan != IRDMA_CM_NO_VLAN;
	if (tcp->insert_vlan)
		tcp->vlan_tag = quad->vlan | node->route.prio << 13;
	tcp->tos = node->tos;
	tcp->ttl = IRDMA_CM_TTL;
	tcp->mss = node->mss;
	tcp->arp_idx = node->route.arp_idx;
	memcpy(tcp->src_mac, node->route.local_mac, sizeof(tcp->src_mac));
	tcp->snd_scale = node->snd_scale;
	tcp->rcv_scale = node->rcv_scale;
	tcp->snd_nxt = node->snd_nxt;
	tcp->rcv_nxt = node->rcv_nxt;
	tcp->snd_wnd = node->snd_wnd;
	tcp->max_snd_wnd = node->max_snd_wnd;
	tcp->rcv_wnd = (u32)IRDMA_CM_WIRE_WINDOW << node->rcv_scale;
	tcp->user_prio = node->route.prio;
}

/**
 * irdma_cm_init_tsa_conn - all that a QP has to know to take a stream over
 * @node: connection in HANDOVER
 * @tcp: receives the TCP and MPA part of the context
 * @start: receives the kind of the first message; the last streaming-mode message of a
 *	passive connection is the caller's
 *
 * Context: Any, under the node's lock.
 */
void irdma_cm_init_tsa_conn(const struct irdma_cm_node *node, struct irdma_tcp_ctx *tcp,
			    struct irdma_start *start)
{
	memset(tcp, 0, sizeof(*tcp));
	irdma_init_tcp_ctx(node, tcp);
	tcp->ird = node->ird;
	tcp->ord = node->ord;
	tcp->snd_markers = irdma_cm_flag(node, IRDMA_CM_F_MARKERS);
	tcp->crc_required = true;

	if (!node->active)
		start->kind = IRDMA_START_LSMM;
	else if (!irdma_cm_flag(node, IRDMA_CM_F_P2P))
		start->kind = IRDMA_START_NO_RTR;
	else if (node->rtr == IRDMA_CM_RTR_READ)
		start->kind = IRDMA_START_RTR_READ;
	else
		start->kind = IRDMA_START_RTR_WRITE;
}

/**
 * irdma_free_lsmm_rsrc - free our copy of the last streaming-mode message
 * @start: start of a passive connection; the QP has a copy of its own by now, or never started
 *
 * Context: Process.
 */
void irdma_free_lsmm_rsrc(struct irdma_start *start)
{
	kfree(start->lsmm);
	start->lsmm = NULL;
}

/*
 * Start the QP on the stream.  From here on the quad-hash entry belongs to the QP.  What the
 * peer or the ULP did to the connection meanwhile undoes a success.
 */
static int irdma_cm_start_qp(struct irdma_cm_node *node, struct ib_qp *ibqp,
			     const struct irdma_tcp_ctx *tcp, const struct irdma_start *start)
{
	struct irdma_cm_core *core = node->core;
	int ret;

	ret = core->ops->qp_start(core, ibqp, tcp, start);

	spin_lock_bh(&node->lock);
	if (!ret && irdma_cm_flag(node, IRDMA_CM_F_CANCELLED))
		ret = -ECONNABORTED;
	else if (!ret && irdma_cm_flag(node, IRDMA_CM_F_PEER_RESET))
		ret = -ECONNRESET;
	if (!ret) {
		irdma_cm_set_state(node, ST(OFFLOADED));
		irdma_cm_free_ah(node);
		core->ops->handed_over(node);
	}
	spin_unlock_bh(&node->lock);
	if (ret)
		core->ops->qp_abort(ibqp);
	return ret;
}

/* The establishing event has been queued: the disconnect worker may go on from here. */
static void irdma_cm_established(struct irdma_cm_node *node, struct ib_qp *ibqp)
{
	bool missed;

	spin_lock_bh(&node->lock);
	irdma_cm_set_flag(node, IRDMA_CM_F_ESTABLISHED);
	irdma_cm_release_frames(node);
	missed = irdma_cm_clear_flag(node, IRDMA_CM_F_DISCONN_MISSED);
	spin_unlock_bh(&node->lock);
	if (missed)
		irdma_cm_disconn(ibqp);
}

static int irdma_cm_begin_active(struct irdma_cm_node *node, struct irdma_tcp_ctx *tcp,
				 struct irdma_start *start, struct ib_qp **ibqp)
{
	int ret = 0;

	spin_lock_bh(&node->lock);
	if (node->state != ST(HANDOVER) || !node->ibqp) {
		ret = -ECONNABORTED;
	} else if (irdma_cm_flag(node, IRDMA_CM_F_CANCELLED)) {
		ret = -ECONNABORTED;
	} else if (irdma_cm_flag(node, IRDMA_CM_F_PEER_RESET)) {
		ret = -ECONNRESET;
	} else {
		*ibqp = node->ibqp;
		node->core->ops->qp_hold(*ibqp);
		irdma_cm_init_tsa_conn(node, tcp, start);
		irdma_cm_clear_flag(node, IRDMA_CM_F_QHASH);
	}
	if (ret)
		irdma_active_open_err(node, ret, true);
	spin_unlock_bh(&node->lock);
	return ret;
}

/* What accept was told is over before ESTABLISHED: the ULP hears of it right behind that. */
static void irdma_cm_accept_failed(struct irdma_cm_node *node)
{
	spin_lock_bh(&node->lock);
	irdma_cm_set_state(node, ST(OFFLOADED));
	irdma_cm_set_flag(node, IRDMA_CM_F_ABORTED);
	irdma_cm_free_ah(node);
	spin_unlock_bh(&node->lock);
}

/* An accepted request: start the QP and raise ESTABLISHED, in any case and once. */
static void irdma_cm_event_accepted(struct irdma_cm_node *node)
{
	const struct irdma_cm_ops *ops = node->core->ops;
	struct irdma_start start = { };
	struct irdma_tcp_ctx tcp;
	struct iw_cm_id *cm_id;
	struct ib_qp *ibqp;
	int ret;

	spin_lock_bh(&node->lock);
	ibqp = node->ibqp;
	ops->qp_hold(ibqp);
	cm_id = node->cm_id;
	cm_id->add_ref(cm_id);
	irdma_cm_init_tsa_conn(node, &tcp, &start);
	start.lsmm = node->tx_data;
	start.lsmm_len = node->tx_len;
	node->tx_data = NULL;
	spin_unlock_bh(&node->lock);

	ret = irdma_cm_start_qp(node, ibqp, &tcp, &start);
	irdma_free_lsmm_rsrc(&start);
	if (ret)
		irdma_cm_accept_failed(node);
	else
		irdma_cm_count(node->core, IRDMA_CM_ACCEPTS);
	irdma_send_cm_event(node, cm_id, IW_CM_EVENT_ESTABLISHED, 0);
	irdma_cm_established(node, ibqp);
	if (ret)
		irdma_cm_disconn(ibqp);
	cm_id->rem_ref(cm_id);
	ops->qp_put(ibqp);
}

/**
 * irdma_cm_event_connected - the peer or our ULP has accepted: start the QP and tell iw_cm
 * @node: connection in HANDOVER
 *
 * An active one raises CONNECT_REPLY, with the private data and depths of the reply, or with
 * the reason why the hand-over failed; a passive one ESTABLISHED.
 *
 * Context: Event work, sleeps; bounded by irdma_qp_start_stream().
 */
void irdma_cm_event_connected(struct irdma_cm_node *node)
{
	struct irdma_start start = { };
	struct irdma_tcp_ctx tcp;
	struct iw_cm_id *cm_id;
	struct ib_qp *ibqp;
	int ret;

	if (!node->active) {
		irdma_cm_event_accepted(node);
		return;
	}
	if (irdma_cm_begin_active(node, &tcp, &start, &ibqp))
		return;
	ret = irdma_cm_start_qp(node, ibqp, &tcp, &start);

	spin_lock_bh(&node->lock);
	cm_id = node->cm_id;
	if (ret)
		irdma_active_open_err(node, ret, false);
	else if (cm_id)
		cm_id->add_ref(cm_id);
	spin_unlock_bh(&node->lock);

	if (!ret && cm_id) {
		irdma_send_cm_event(node, cm_id, IW_CM_EVENT_CONNECT_REPLY, 0);
		irdma_cm_established(node, ibqp);
		cm_id->rem_ref(cm_id);
	}
	node->core->ops->qp_put(ibqp);
}

/* Claim a request for accept: from here on its listener has nothing to do with it. */
static int irdma_cm_claim(struct irdma_cm_node *node)
{
	if (node->state != ST(MPAREQ_RCVD) || irdma_cm_flag(node, IRDMA_CM_F_PEER_RESET) ||
	    irdma_cm_flag(node, IRDMA_CM_F_PEER_FIN))
		return -ECONNRESET;
	irdma_cm_detach(node);
	irdma_free_retrans_entry(node);		/* the reply acknowledges the request */
	irdma_cm_set_state(node, ST(HANDOVER));
	irdma_cm_clear_flag(node, IRDMA_CM_F_QHASH);
	return 0;
}

/*
 * Claim the request and build the reply.  The event work hands the stream over: it waits until
 * the peer has sent its first FPDU, which the caller of accept, often the one thread that
 * serves all connections, must not.
 */
static int irdma_cm_begin_passive(struct irdma_cm_node *node,
				  const struct iw_cm_conn_param *param)
{
	u32 len = param->private_data_len, hdr_len;
	u8 *lsmm;
	int ret;

	lsmm = kmalloc(IRDMA_MPA_HDR_V2 + len, GFP_KERNEL);
	if (!lsmm)
		return -ENOMEM;

	spin_lock_bh(&node->lock);
	ret = irdma_cm_claim(node);
	if (!ret) {
		irdma_cm_negotiate_accept(node, param->ird, param->ord);
		node->tx_len = len;
		hdr_len = irdma_cm_build_mpa_frame(node, lsmm, IRDMA_MPA_ACCEPT);
		if (len)
			memcpy(lsmm + hdr_len, param->private_data, len);
		node->tx_data = lsmm;
		node->tx_len = hdr_len + len;
		lsmm = NULL;
		irdma_create_event(node, IRDMA_CM_EV_CONNECTED);
	}
	spin_unlock_bh(&node->lock);
	kfree(lsmm);
	return ret;
}

static u32 irdma_cm_max_pdata(const struct irdma_cm_node *node)
{
	return irdma_cm_flag(node, IRDMA_CM_F_ENHANCED) ? IRDMA_MPA_MAX_PDATA_V2
							: IRDMA_MPA_MAX_PDATA;
}

static int irdma_cm_do_accept(struct irdma_cm_node *node, struct iw_cm_id *cm_id,
			      const struct iw_cm_conn_param *param)
{
	const struct irdma_cm_ops *ops = node->core->ops;
	struct ib_qp *ibqp;
	int ret;

	if (param->private_data_len > irdma_cm_max_pdata(node))
		return -EINVAL;
	ibqp = ops->qp_get(node->core, param->qpn);
	if (!ibqp)
		return -EINVAL;
	ret = irdma_cm_link(node, cm_id, ibqp);
	if (ret) {
		ops->qp_put(ibqp);
		return ret;
	}
	ret = irdma_cm_begin_passive(node, param);
	if (ret)
		irdma_cm_drop_link(node);
	return ret;
}

/**
 * irdma_accept - device operation iw_accept
 * @cm_id: id that iw_cm made for the request; its provider_data is the request's handle
 * @param: QP number, private data, depths
 *
 * Has the event work send the reply through the QP.  ESTABLISHED will be raised if 0 is
 * returned, and never otherwise: when the QP runs, or when it failed to, with DISCONNECT and
 * CLOSE behind it.
 *
 * Context: Process, sleeps.
 * Return: 0; -ECONNRESET if the connection is gone or the peer has closed it, -EINVAL for
 * parameters out of range or an unknown QP, -EBUSY if the QP has a connection, -ENOMEM.  After
 * an error the connection is reset.
 */
int irdma_accept(struct iw_cm_id *cm_id, struct iw_cm_conn_param *param)
{
	struct irdma_cm_core *core = irdma_cm_core_of(cm_id->device);
	struct irdma_cm_node *node;
	int ret;

	node = irdma_cm_take_request(core, (uintptr_t)cm_id->provider_data);
	if (!node)
		return -ECONNRESET;
	ret = irdma_cm_do_accept(node, cm_id, param);
	if (ret)
		irdma_cm_close(node);
	irdma_cm_node_put(node);
	return ret;
}

/**
 * irdma_cm_reject - refuse a request
 * @node: passive connection
 * @pdata: private data for the peer
 * @pdata_len: bytes of it
 *
 * Sends a rejecting reply and closes the connection.  Does nothing for an active connection,
 * and only cleans up if the peer was faster.
 *
 * Context: Process, takes the node's lock.
 * Return: 0; -ECONNRESET if there is nobody to tell; -ENOMEM, then the peer is reset.
 */
int irdma_cm_reject(struct irdma_cm_node *node, const void *pdata, u8 pdata_len)
{
	int ret = 0;

	if (node->active)
		return 0;
	spin_lock_bh(&node->lock);
	if (node->state != ST(MPAREQ_RCVD) || irdma_cm_flag(node, IRDMA_CM_F_PEER_RESET))
		ret = -ECONNRESET;
	else
		ret = irdma_cm_copy_pdata(node, pdata, pdata_len, GFP_ATOMIC);
	if (ret) {
		irdma_passive_open_err(node, ret == -ENOMEM);
	} else {
		irdma_cm_count(node->core, IRDMA_CM_REJECTS);
		irdma_cm_detach(node);
		irdma_send_mpa_reject(node);
	}
	spin_unlock_bh(&node->lock);
	return ret;
}

/**
 * irdma_reject - device operation iw_reject
 * @cm_id: id that iw_cm made for the request
 * @pdata: private data for the peer; NULL with length 0
 * @pdata_len: bytes of it
 *
 * Context: Process.
 * Return: 0, or -ECONNRESET if the connection is gone.  It is consumed in any case.
 */
int irdma_reject(struct iw_cm_id *cm_id, const void *pdata, u8 pdata_len)
{
	struct irdma_cm_core *core = irdma_cm_core_of(cm_id->device);
	struct irdma_cm_node *node;
	int ret;

	node = irdma_cm_take_request(core, (uintptr_t)cm_id->provider_data);
	if (!node)
		return -ECONNRESET;
	ret = irdma_cm_reject(node, pdata, pdata_len);
	irdma_cm_node_put(node);
	return ret;
}

/**
 * irdma_cm_qp_init - prepare the engine's part of a new QP
 * @qcm: the part
 * @ibqp: the QP
 *
 * Context: Process, before anyone else knows the QP.
 */
void irdma_cm_qp_init(struct irdma_qp_cm *qcm, struct ib_qp *ibqp)
{
	spin_lock_init(&qcm->lock);
	qcm->ibqp = ibqp;
	qcm->cm_node = NULL;
	INIT_WORK(&qcm->disconn_work, irdma_disconnect_worker);
}

/* The node that a QP is linked to, referenced, or NULL. */
static struct irdma_cm_node *irdma_cm_node_of(struct irdma_qp_cm *qcm)
{
	struct irdma_cm_node *node;

	spin_lock_bh(&qcm->lock);
	node = qcm->cm_node;
	if (node)
		irdma_cm_node_get(node);
	spin_unlock_bh(&qcm->lock);
	return node;
}

/* The QP's part is reached through the device because the QP's layout is not known here. */
static struct irdma_qp_cm *irdma_cm_part_of(struct ib_qp *ibqp)
{
	return irdma_cm_core_of(ibqp->device)->ops->qp_cm(ibqp);
}

/**
 * irdma_cm_qp_going - a QP leaves RTS or is being destroyed
 * @ibqp: QP
 *
 * An attempt to connect in progress fails with -ECONNABORTED.  An established connection gets
 * a deadline for its orderly close.
 *
 * Context: Any.
 * Return: Whether the QP has a connection.
 */
bool irdma_cm_qp_going(struct ib_qp *ibqp)
{
	struct irdma_cm_node *node = irdma_cm_node_of(irdma_cm_part_of(ibqp));

	if (!node)
		return false;
	spin_lock_bh(&node->lock);
	switch (node->state) {
	case ST(SETUP):
	case ST(SYN_SENT):
	case ST(SYN_RCVD):
	case ST(MPAREQ_SENT):
		irdma_active_open_err(node, -ECONNABORTED, true);
		break;
	case ST(HANDOVER):
		irdma_cm_set_flag(node, IRDMA_CM_F_CANCELLED);
		break;
	case ST(OFFLOADED):
		if (!irdma_cm_flag(node, IRDMA_CM_F_DEADLINE))
			irdma_cm_set_deadline(node, IRDMA_CM_QP_CLOSE_MS);
		break;
	default:
		break;
	}
	spin_unlock_bh(&node->lock);
	irdma_cm_node_put(node);
	return true;
}

/**
 * irdma_cm_disconn - the connection of a QP may have ended
 * @ibqp: QP that is referenced, or not destroyed yet
 *
 * Queues the disconnect worker, whose work item is part of the QP, so this cannot fail.
 *
 * Context: Any.
 */
void irdma_cm_disconn(struct ib_qp *ibqp)
{
	struct irdma_cm_core *core = irdma_cm_core_of(ibqp->device);

	core->ops->qp_hold(ibqp);
	if (!queue_work(core->wq, &core->ops->qp_cm(ibqp)->disconn_work))
		core->ops->qp_put(ibqp);
}

/**
 * irdma_disconnect_worker - look at a QP whose connection may have ended
 * @work: in the QP; owns a reference on it
 *
 * Context: Process, sleeps.
 */
void irdma_disconnect_worker(struct work_struct *work)
{
	struct ib_qp *ibqp = container_of(work, struct irdma_qp_cm, disconn_work)->ibqp;
	const struct irdma_cm_ops *ops = irdma_cm_core_of(ibqp->device)->ops;

	irdma_cm_disconn_true(ibqp);
	ops->qp_put(ibqp);
}

/* What the state of a QP means for its connection. */
struct irdma_cm_verdict {
	bool disconnect;	/* the peer, or an error, has ended it */
	bool close;		/* hardware has nothing more to say about it */
	bool terminated;
	int status;
};

static void irdma_cm_judge(const struct irdma_cm_core *core,
			   const struct irdma_qp_conn_state *st, struct irdma_cm_verdict *v)
{
	bool reset = st->last_ae == AE_CONNECTION_RESET;

	v->terminated = st->term_flags & IRDMA_TERM_DONE;
	v->disconnect = v->terminated || reset || st->tcp_state == TCP_CLOSE_WAIT;
	v->close = v->terminated || reset || st->destroying || st->ib_state == IB_QPS_ERR ||
		   st->tcp_state == TCP_CLOSED || st->tcp_state == TCP_TIME_WAIT ||
		   st->last_ae == AE_BAD_CLOSE || st->last_ae == AE_CLOSE_COMPLETE ||
		   st->last_ae == AE_RESET_SENT || READ_ONCE(core->dead);
	v->status = reset ? -ECONNRESET : 0;
}

/* Raise DISCONNECT once, under the node's own reference on the id. */
static void irdma_cm_raise_disconnect(struct irdma_cm_node *node, int status)
{
	struct iw_cm_id *cm_id = NULL;

	spin_lock_bh(&node->lock);
	if (node->cm_id && !irdma_cm_flag(node, IRDMA_CM_F_DISCONNECTED)) {
		irdma_cm_set_flag(node, IRDMA_CM_F_DISCONNECTED);
		if (irdma_cm_flag(node, IRDMA_CM_F_ABORTED))
			status = -ECONNRESET;
		cm_id = node->cm_id;
		cm_id->add_ref(cm_id);
	}
	spin_unlock_bh(&node->lock);
	if (!cm_id)
		return;
	irdma_send_cm_event(node, cm_id, IW_CM_EVENT_DISCONNECT, status);
	cm_id->rem_ref(cm_id);
}

static void irdma_cm_raise_close(struct irdma_cm_node *node)
{
	struct iw_cm_id *cm_id = irdma_qp_disconnect(node);

	if (cm_id) {
		irdma_send_cm_event(node, cm_id, IW_CM_EVENT_CLOSE, 0);
		cm_id->rem_ref(cm_id);
	}
	irdma_cm_close(node);
}

/* May the worker go on, and was the connection reset by us?  Else it comes again. */
static bool irdma_cm_may_disconnect(struct irdma_cm_node *node, struct irdma_cm_verdict *v)
{
	bool established;

	spin_lock_bh(&node->lock);
	established = irdma_cm_flag(node, IRDMA_CM_F_ESTABLISHED);
	if (!established)
		irdma_cm_set_flag(node, IRDMA_CM_F_DISCONN_MISSED);
	else if (v->disconnect && !v->close && !irdma_cm_flag(node, IRDMA_CM_F_DEADLINE))
		irdma_cm_set_deadline(node, IRDMA_CM_QP_CLOSE_MS);
	if (irdma_cm_flag(node, IRDMA_CM_F_ABORTED))
		v->disconnect = true;
	spin_unlock_bh(&node->lock);
	return established;
}

/**
 * irdma_cm_disconn_true - tell iw_cm what the state of a QP means for its connection
 * @ibqp: QP
 *
 * DISCONNECT when the peer or an error ended the connection, CLOSE when hardware is through
 * with it.  Before CLOSE the queues are flushed, so that no other completion follows it.  If
 * the establishing event has not been raised yet, its raiser calls again.
 *
 * Context: Disconnect work, sleeps.
 */
void irdma_cm_disconn_true(struct ib_qp *ibqp)
{
	struct irdma_cm_core *core = irdma_cm_core_of(ibqp->device);
	const struct irdma_cm_ops *ops = core->ops;
	struct irdma_qp_conn_state st;
	struct irdma_cm_verdict v;
	struct irdma_cm_node *node;

	ops->qp_conn_state(ibqp, &st);
	irdma_cm_judge(core, &st, &v);
	node = irdma_cm_node_of(ops->qp_cm(ibqp));
	if (!node) {
		if (v.close)
			ops->qp_flush(ibqp);
		return;
	}
	if (!irdma_cm_may_disconnect(node, &v))
		goto put_node;
	if (v.close) {
		if (!v.terminated && v.disconnect)
			irdma_cm_raise_disconnect(node, v.status);
		ops->qp_flush(ibqp);
		if (v.terminated) {
			ops->qp_terminate_event(ibqp);
			irdma_cm_raise_disconnect(node, v.status);
		}
		irdma_cm_raise_close(node);
	} else if (v.disconnect) {
		irdma_cm_raise_disconnect(node, v.status);
	}
put_node:
	irdma_cm_node_put(node);
}
