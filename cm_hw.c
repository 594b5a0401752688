// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The connection engine on hardware: struct irdma_cm_ops over the raw queue (ilq.c), the
 * shared tables (utils.c), the network stack (addr.c) and queue pairs; and the life of all
 * these together.
 *
 * The engine calls most of this under a connection's lock, so answers that come within a
 * call are given by irdma_answer(), and a command in flight holds its connection.
 */
#include <linux/slab.h>
#include <rdma/iw_cm.h>

#include "cm.h"
#include "cm_hw.h"
#include "debugfs.h"
#include "ieq.h"
#include "ilq.h"
#include "irdma.h"
#include "qos.h"
#include "trace.h"
#include "utils.h"
#include "verbs.h"

/*
 * The ILQ carries a few small frames for each connection that is being set up, and loses
 * frames without harm: TCP repeats them.
 */
#define ILQ_ENTRIES	1024
#define ILQ_RX_SIZE	1024	/* bytes; a start-up frame with all private data is 652 */

/**
 * struct cm_setup - what a connection needs until its QP has it, a third of its memory
 * @node: the connection
 * @ah: address handle, NULL before and after its time
 * @ah_waiter: awaits the address handle
 * @port_waiter: awaits the local port
 * @qhash_waiter: awaits @qhash
 * @qhash: adds or removes the quad-hash entry; the engine never asks for both at once
 */
struct cm_setup {
	struct irdma_cm_node *node;
	struct irdma_ah *ah;
	struct irdma_waiter ah_waiter;
	struct irdma_waiter port_waiter;
	struct irdma_waiter qhash_waiter;
	struct irdma_cqp_req qhash;
};

/**
 * struct cm_node_hw - the hardware's part of a connection, behind its node
 * @setup: NULL once the QP has the connection
 */
struct cm_node_hw {
	struct cm_setup *setup;
};

/* A cache of their own: kmalloc() would take 512 bytes. */
static struct kmem_cache *node_cache;

static struct irdma_device *core_dev(const struct irdma_cm_core *core)
{
	return core->priv;
}

static struct cm_node_hw *node_hw(struct irdma_cm_node *node)
{
	return irdma_cm_node_priv(node);
}

/* --- frames --- */

static struct irdma_cm_frame *hw_frame_alloc(struct irdma_cm_core *core, u32 size)
{
	struct irdma_ilq_tx *tx = irdma_ilq_tx_alloc(core_dev(core)->ilq);

	return tx ? &tx->frame : NULL;
}

static void hw_frame_free(struct irdma_cm_core *core, struct irdma_cm_frame *frame)
{
	irdma_ilq_tx_free(core_dev(core)->ilq, container_of(frame, struct irdma_ilq_tx, frame));
}

static void hw_frame_done(struct irdma_ilq_tx *tx, bool sent)
{
	irdma_ah_put(tx->owner);
}

static int hw_frame_send(struct irdma_cm_core *core, struct irdma_cm_node *node,
			 struct irdma_cm_frame *frame)
{
	struct irdma_ilq_tx *tx = container_of(frame, struct irdma_ilq_tx, frame);
	struct cm_setup *setup = node_hw(node)->setup;
	struct irdma_ah *ah = setup ? setup->ah : NULL;

	if (!ah) {
		hw_frame_free(core, frame);
		return -ENOTCONN;
	}
	irdma_ah_hold(ah);
	tx->owner = ah;
	tx->done = hw_frame_done;
	tx->ah = irdma_ah_index(ah);
	irdma_ilq_tx_send(core_dev(core)->ilq, tx);
	return 0;
}

static bool hw_receive(void *arg, struct irdma_ilq_buf *buf)
{
	irdma_receive_ilq(arg, &buf->rx);
	return false;
}

/* --- nodes --- */

static struct irdma_cm_node *hw_node_alloc(void)
{
	struct irdma_cm_node *node = kmem_cache_zalloc(node_cache, GFP_ATOMIC);
	struct cm_setup *setup;

	if (!node)
		return NULL;
	setup = kzalloc(sizeof(*setup), GFP_ATOMIC);
	if (!setup) {
		kmem_cache_free(node_cache, node);
		return NULL;
	}
	setup->node = node;
	node_hw(node)->setup = setup;
	return node;
}

static void free_node(struct rcu_head *rcu)
{
	struct irdma_cm_node *node = container_of(rcu, struct irdma_cm_node, rcu);

	kfree(node_hw(node)->setup);
	kmem_cache_free(node_cache, node);
}

static void hw_node_free(struct irdma_cm_node *node)
{
	call_rcu(&node->rcu, free_node);
}

static void hw_handed_over(struct irdma_cm_node *node)
{
	struct cm_node_hw *hw = node_hw(node);

	kfree(hw->setup);
	hw->setup = NULL;
}

/* --- address handle, quad hash, port --- */

static void hw_ah_answer(struct irdma_waiter *waiter, int err)
{
	struct cm_setup *setup = container_of(waiter, struct cm_setup, ah_waiter);
	struct irdma_cm_node *node = setup->node;

	if (err) {
		irdma_ah_put(setup->ah);
		setup->ah = NULL;
	}
	irdma_cm_ah_done(node, err);
	irdma_cm_node_put(node);
}

static int hw_ah_create(struct irdma_cm_node *node)
{
	struct cm_setup *setup = node_hw(node)->setup;
	struct irdma_ah_key key = {
		.arp_idx = node->route.arp_idx,
		.vlan = node->route.vlan,
		.prio = node->route.prio,
		.tos = node->tos,
		.ipv4 = node->quad.ipv4,
		.loopback = node->route.loopback,
	};
	struct irdma_ah *ah;
	int status;

	memcpy(key.src_ip, node->quad.local_ip, sizeof(key.src_ip));
	memcpy(key.dst_ip, node->quad.remote_ip, sizeof(key.dst_ip));
	ether_addr_copy(key.src_mac, node->route.local_mac);
	setup->ah_waiter.done = hw_ah_answer;
	irdma_cm_node_get(node);
	ah = irdma_ah_get(core_dev(node->core), &key, &setup->ah_waiter, &setup->ah, &status);
	if (IS_ERR(ah)) {
		irdma_cm_node_put(node);
		return PTR_ERR(ah);
	}
	if (status == -EINPROGRESS)
		return 0;
	irdma_cm_node_put(node);
	return 1;
}

static void hw_ah_destroy(struct irdma_cm_node *node)
{
	struct cm_setup *setup = node_hw(node)->setup;

	irdma_ah_put(setup->ah);
	setup->ah = NULL;
}

static void hw_qhash_finished(struct irdma_device *dev, struct irdma_cqp_req *req)
{
	struct cm_setup *setup = container_of(req, struct cm_setup, qhash);

	irdma_answer(dev, &setup->qhash_waiter, req->status);
}

static void hw_qhash_added(struct irdma_waiter *waiter, int err)
{
	struct irdma_cm_node *node = container_of(waiter, struct cm_setup, qhash_waiter)->node;

	irdma_cm_qhash_done(node, err);
	irdma_cm_node_put(node);
}

static void hw_qhash_removed(struct irdma_waiter *waiter, int err)
{
	irdma_cm_node_put(container_of(waiter, struct cm_setup, qhash_waiter)->node);
}

static void hw_qhash(struct irdma_cm_node *node, bool add)
{
	struct irdma_device *dev = core_dev(node->core);
	struct cm_setup *setup = node_hw(node)->setup;
	struct irdma_qhash_cmd cmd = {
		.type = IRDMA_QHASH_TCP_ESTABLISHED,
		.qpn = IRDMA_QPN_ILQ,
		.qs_handle = irdma_ilq_qs_handle(dev->ilq),
		.vlan = node->quad.vlan,
		.ipv4 = node->quad.ipv4,
		.local_port = node->quad.local_port,
		.remote_port = node->quad.remote_port,
	};

	ether_addr_copy(cmd.mac, node->route.local_mac);
	memcpy(cmd.local_ip, node->quad.local_ip, sizeof(cmd.local_ip));
	memcpy(cmd.remote_ip, node->quad.remote_ip, sizeof(cmd.remote_ip));
	setup->qhash_waiter.done = add ? hw_qhash_added : hw_qhash_removed;
	irdma_cm_node_get(node);
	irdma_cqp_prep_qhash(dev, &setup->qhash, &cmd, add);
	irdma_cqp_submit(dev, &setup->qhash, hw_qhash_finished);
}

static int hw_qhash_add(struct irdma_cm_node *node)
{
	hw_qhash(node, true);
	return 0;
}

static void hw_qhash_del(struct irdma_cm_node *node)
{
	hw_qhash(node, false);
}

static void hw_port_answer(struct irdma_waiter *waiter, int err)
{
	struct irdma_cm_node *node = container_of(waiter, struct cm_setup, port_waiter)->node;

	if (err)
		irdma_port_put(core_dev(node->core), node->quad.local_port);
	irdma_cm_port_done(node, err);
	irdma_cm_node_put(node);
}

static int hw_port_get(struct irdma_cm_core *core, u16 port, struct irdma_cm_node *node)
{
	struct irdma_waiter *waiter;
	int err;

	if (!node)
		return irdma_port_get(core_dev(core), port, NULL);
	waiter = &node_hw(node)->setup->port_waiter;
	waiter->done = hw_port_answer;
	irdma_cm_node_get(node);
	err = irdma_port_get(core_dev(core), port, waiter);
	if (err != -EINPROGRESS)
		irdma_cm_node_put(node);
	return err;
}

static void hw_port_put(struct irdma_cm_core *core, u16 port)
{
	irdma_port_put(core_dev(core), port);
}

static int hw_syn(struct irdma_cm_core *core, const struct irdma_cm_laddr *addr, u16 port,
		  bool add)
{
	struct irdma_device *dev = core_dev(core);
	struct irdma_qhash_cmd cmd = {
		.type = IRDMA_QHASH_TCP_SYN,
		.qpn = IRDMA_QPN_ILQ,
		.qs_handle = irdma_ilq_qs_handle(dev->ilq),
		.vlan = addr->vlan,
		.ipv4 = addr->ipv4,
		.local_port = port,
	};
	struct irdma_cqp_req req = {};

	ether_addr_copy(cmd.mac, addr->mac);
	memcpy(cmd.local_ip, addr->ip, sizeof(cmd.local_ip));
	irdma_cqp_prep_qhash(dev, &req, &cmd, add);
	return irdma_cqp_exec(dev, &req);
}

static int hw_syn_add(struct irdma_cm_core *core, const struct irdma_cm_laddr *addr, u16 port)
{
	return hw_syn(core, addr, port, true);
}

static void hw_syn_del(struct irdma_cm_core *core, const struct irdma_cm_laddr *addr, u16 port)
{
	hw_syn(core, addr, port, false);
}

/* --- addresses and routes --- */

static int hw_resolve(struct irdma_cm_core *core, const struct irdma_cm_quad *quad, u8 tos,
		      struct irdma_cm_route *route)
{
	return irdma_addr_resolve(core_dev(core), quad, tos, route);
}

static void hw_route_put(struct irdma_cm_core *core, struct irdma_cm_route *route)
{
	if (route->arp_idx)
		irdma_arp_put(core_dev(core), route->arp_idx);
	route->arp_idx = 0;
}

static int hw_local_addr(struct irdma_cm_core *core, bool ipv4, const u32 *ip,
			 struct irdma_cm_laddr *addr)
{
	if (ipv4)
		return irdma_get_vlan_ipv4(core_dev(core), ip[0], addr);
	return irdma_get_vlan_mac_ipv6(core_dev(core), ip, addr);
}

static int hw_for_each_addr(struct irdma_cm_core *core, bool ipv4,
			    int (*fn)(const struct irdma_cm_laddr *addr, void *arg), void *arg)
{
	return irdma_addr_for_each(core_dev(core), ipv4, fn, arg);
}

/* --- queue pairs --- */

static struct ib_qp *hw_qp_get(struct irdma_cm_core *core, u32 qpn)
{
	return irdma_qp_lookup(core_dev(core), qpn);
}

static int hw_qp_start(struct irdma_cm_core *core, struct ib_qp *ibqp,
		       const struct irdma_tcp_ctx *tcp, const struct irdma_start *start)
{
	return irdma_qp_start_stream(core_dev(core), ibqp, tcp, start);
}

static const struct irdma_cm_ops hw_cm_ops = {
	.node_alloc = hw_node_alloc,
	.node_free = hw_node_free,
	.frame_alloc = hw_frame_alloc,
	.frame_send = hw_frame_send,
	.frame_free = hw_frame_free,
	.ah_create = hw_ah_create,
	.ah_destroy = hw_ah_destroy,
	.qhash_add = hw_qhash_add,
	.qhash_del = hw_qhash_del,
	.handed_over = hw_handed_over,
	.port_get = hw_port_get,
	.port_put = hw_port_put,
	.syn_add = hw_syn_add,
	.syn_del = hw_syn_del,
	.resolve = hw_resolve,
	.route_put = hw_route_put,
	.local_addr = hw_local_addr,
	.for_each_addr = hw_for_each_addr,
	.qp_get = hw_qp_get,
	.qp_hold = irdma_qp_add_ref,
	.qp_put = irdma_qp_rem_ref,
	.qp_cm = irdma_qp_cm,
	.qp_start = hw_qp_start,
	.qp_abort = irdma_qp_abort,
	.qp_flush = irdma_qp_flush,
	.qp_terminate_event = irdma_qp_terminate_event,
	.qp_conn_state = irdma_qp_conn_state,
	.trace_state = irdma_trace_state,
	.trace_frame = irdma_trace_frame,
	.trace_upcall = irdma_trace_upcall,
	.trace_drop = irdma_trace_drop,
};

/**
 * irdma_cm_core_of - the connection engine of a verbs device
 * @ibdev: verbs device
 *
 * Return: its engine.
 */
struct irdma_cm_core *irdma_cm_core_of(struct ib_device *ibdev)
{
	return to_irdma_dev(ibdev)->cm;
}

const struct ib_device_ops irdma_iwcm_ops = {
	/* references, with interrupts off */
	.iw_get_qp = irdma_get_qp,
	.iw_add_ref = irdma_qp_add_ref,
	.iw_rem_ref = irdma_qp_rem_ref,
	/* passive side */
	.iw_create_listen = irdma_create_listen,
	.iw_destroy_listen = irdma_destroy_listen,
	.iw_accept = irdma_accept,
	.iw_reject = irdma_reject,
	/* active side */
	.iw_connect = irdma_connect,
};

/* --- life --- */

/**
 * irdma_net_register - nodes, notifiers and debugfs, once a module before the first device
 *
 * Context: process.
 * Return: 0 or a negative errno.
 */
int irdma_net_register(void)
{
	int err;

	node_cache = kmem_cache_create("irdma_cm_node",
				       sizeof(struct irdma_cm_node) + sizeof(struct cm_node_hw),
				       __alignof__(struct irdma_cm_node), 0, NULL);
	if (!node_cache)
		return -ENOMEM;
	err = irdma_addr_register_notifiers();
	if (err) {
		kmem_cache_destroy(node_cache);
		return err;
	}
	irdma_debugfs_init();
	return 0;
}

/**
 * irdma_net_unregister - undo irdma_net_register()
 *
 * Context: process.
 */
void irdma_net_unregister(void)
{
	irdma_debugfs_exit();
	irdma_addr_unregister_notifiers();
	rcu_barrier();		/* nodes on their way through free_node() */
	kmem_cache_destroy(node_cache);
}

static int start_cm(struct irdma_device *dev)
{
	struct irdma_cm_config config = {
		.max_ird = dev->gen->max_ird,
		.max_ord = dev->gen->max_ord,
	};
	struct irdma_cm_core *core = irdma_setup_cm_core(&hw_cm_ops, dev, &config);

	if (IS_ERR_OR_NULL(core))
		return core ? PTR_ERR(core) : -ENOMEM;
	dev->cm = core;
	return 0;
}

static void stop_cm(struct irdma_device *dev)
{
	if (irdma_is_dead(dev))
		irdma_cm_set_dead(dev->cm);
	irdma_cleanup_cm_core(dev->cm);
	dev->cm = NULL;
}

static int start_ilq(struct irdma_device *dev)
{
	const struct irdma_ilq_config config = {
		.name = "ILQ",
		.cqn = IRDMA_CQN_ILQ,
		.qpn = IRDMA_QPN_ILQ,
		.sq_size = ILQ_ENTRIES,
		.rq_size = ILQ_ENTRIES,
		.rx_bufs = ILQ_ENTRIES,
		.rx_size = ILQ_RX_SIZE,
		.tx_size = IRDMA_CM_FRAME_MAX,
		.receive = hw_receive,
		.arg = dev->cm,
	};
	struct irdma_ilq *ilq = irdma_ilq_create(dev, &config);

	if (IS_ERR(ilq))
		return PTR_ERR(ilq);
	dev->ilq = ilq;
	return 0;
}

/**
 * irdma_net_start - bring up everything that connections need
 * @dev: device; hw.c has brought up the hardware
 *
 * Context: process, sleeps.
 * Return: 0 or a negative errno, with everything undone.
 */
int irdma_net_start(struct irdma_device *dev)
{
	int err;

	err = irdma_qos_start(dev);
	if (err)
		return err;
	err = irdma_addrs_start(dev);
	if (err)
		goto stop_qos;
	err = start_cm(dev);
	if (err)
		goto stop_addrs;
	err = start_ilq(dev);
	if (err)
		goto stop_cm;
	err = irdma_ieq_start(dev);
	if (err)
		goto stop_ilq;
	irdma_addr_watch(dev);
	irdma_debugfs_add(dev);
	return 0;

stop_ilq:
	irdma_ilq_destroy(dev->ilq);
stop_cm:
	stop_cm(dev);
stop_addrs:
	irdma_addrs_stop(dev);
stop_qos:
	irdma_qos_stop(dev);
	return err;
}

/**
 * irdma_net_stop - undo irdma_net_start()
 * @dev: device; no QP is left
 *
 * The engine is emptied while its queue still sends: each connection that is left is reset.
 *
 * Context: process, sleeps.
 */
void irdma_net_stop(struct irdma_device *dev)
{
	irdma_debugfs_del(dev);
	irdma_addr_unwatch(dev);
	irdma_ieq_stop(dev);
	irdma_ilq_stop_receive(dev->ilq);
	stop_cm(dev);
	irdma_ilq_destroy(dev->ilq);
	irdma_addrs_stop(dev);
	irdma_qos_stop(dev);
}

/**
 * irdma_net_mtu_changed - the net device has another MTU
 * @dev: device; dev->mtu is the new one
 *
 * New connections see it in their route; the exception queue gets buffers that fit.
 *
 * Context: process, sleeps.
 */
void irdma_net_mtu_changed(struct irdma_device *dev)
{
	irdma_debugfs_del(dev);		/* its readers look at the queue */
	irdma_ieq_stop(dev);
	if (irdma_ieq_start(dev))
		irdma_mark_dead(dev, "exception queue lost after a change of the MTU");
	irdma_debugfs_add(dev);
}
