// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Listeners of the connection engine: the downcalls iw_create_listen and iw_destroy_listen,
 * which addresses a listener serves and how that follows the net device, and the limits on
 * what is pending at a listener.
 *
 * Packets find a listener by hash under RCU: first by address, port and VLAN, then by port
 * alone.  Listeners and their hardware entries change under core->listen_lock only; address
 * events take it too, never under RTNL.
 */
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/slab.h>
#include <net/ipv6.h>

#include "cm_priv.h"

#define ST(x)	IRDMA_CM_STATE_##x

/* A SYN quad-hash entry; listeners on the same address and port share it. */
struct irdma_cm_syn {
	struct irdma_cm_key key;
	struct rhash_head hash_entry;
	struct irdma_cm_laddr addr;
	unsigned int users;
};

static const struct rhashtable_params irdma_cm_listener_params = {
	.key_len = sizeof(struct irdma_cm_key),
	.key_offset = offsetof(struct irdma_cm_listener, key),
	.head_offset = offsetof(struct irdma_cm_listener, hash_entry),
	.automatic_shrinking = true,
};

static const struct rhashtable_params irdma_cm_syn_params = {
	.key_len = sizeof(struct irdma_cm_key),
	.key_offset = offsetof(struct irdma_cm_syn, key),
	.head_offset = offsetof(struct irdma_cm_syn, hash_entry),
	.automatic_shrinking = true,
};

/**
 * irdma_cm_init_listen - set up what this file keeps in the engine
 * @core: engine
 *
 * Context: Process, sleeps.
 * Return: 0 or -ENOMEM.
 */
int irdma_cm_init_listen(struct irdma_cm_core *core)
{
	int ret;

	mutex_init(&core->listen_lock);
	INIT_LIST_HEAD(&core->listener_list);
	ret = rhashtable_init(&core->listeners, &irdma_cm_listener_params);
	if (ret)
		return ret;
	ret = rhashtable_init(&core->syn_entries, &irdma_cm_syn_params);
	if (ret)
		rhashtable_destroy(&core->listeners);
	return ret;
}

/**
 * irdma_cm_cleanup_listen - undo irdma_cm_init_listen() when no listener is left
 * @core: engine
 *
 * Context: Process, sleeps.
 */
void irdma_cm_cleanup_listen(struct irdma_cm_core *core)
{
	rhashtable_destroy(&core->syn_entries);
	rhashtable_destroy(&core->listeners);
}

/**
 * irdma_cm_listener_get - take a reference on a listener found by hash
 * @listener: listener, under RCU
 *
 * Context: Any.
 * Return: false if the last reference is gone.
 */
bool irdma_cm_listener_get(struct irdma_cm_listener *listener)
{
	return refcount_inc_not_zero(&listener->refs);
}

/**
 * irdma_dec_refcnt_listen - drop a reference on a listener
 * @listener: listener
 *
 * The last one frees it; by then it is out of all tables.
 *
 * Context: Any.
 */
void irdma_dec_refcnt_listen(struct irdma_cm_listener *listener)
{
	struct irdma_cm_core *core = listener->core;

	if (!refcount_dec_and_test(&listener->refs))
		return;
	irdma_cm_count(core, IRDMA_CM_LISTENERS_DESTROYED);
	kfree_rcu(listener, rcu);
	if (atomic_dec_and_test(&core->num_listeners))
		wake_up_all(&core->idle);
}

static struct irdma_cm_listener *irdma_cm_lookup(struct irdma_cm_core *core,
						 const struct irdma_cm_key *key)
{
	return rhashtable_lookup_fast(&core->listeners, key, irdma_cm_listener_params);
}

/**
 * irdma_find_listener - find the listener that a SYN is for
 * @core: engine
 * @quad: of the SYN, from our point of view
 *
 * An exact address comes before the wildcard of the family, and that before an IPv6 wildcard
 * that is not restricted to IPv6.  A wildcard takes every VLAN.
 *
 * Context: Any; at most three hash look-ups, without a lock.
 * Return: the listener with a reference, or NULL.
 */
struct irdma_cm_listener *irdma_find_listener(struct irdma_cm_core *core,
					      const struct irdma_cm_quad *quad)
{
	struct irdma_cm_key key = {
		.port = quad->local_port,
		.vlan = quad->vlan,
		.ipv4 = quad->ipv4,
	};
	struct irdma_cm_listener *listener;

	memcpy(key.ip, quad->local_ip, sizeof(key.ip));
	rcu_read_lock();
	listener = irdma_cm_lookup(core, &key);
	if (!listener) {
		memset(key.ip, 0, sizeof(key.ip));
		key.vlan = 0;
		listener = irdma_cm_lookup(core, &key);
	}
	if (!listener && quad->ipv4) {
		key.ipv4 = 0;
		listener = irdma_cm_lookup(core, &key);
		if (listener && !listener->dual_stack)
			listener = NULL;
	}
	if (listener && !irdma_cm_listener_get(listener))
		listener = NULL;
	rcu_read_unlock();
	return listener;
}

/* The stage in which a listener has no room; IRDMA_CM_STAGE_COUNT if it has. */
static enum irdma_cm_stage irdma_cm_full_stage(const struct irdma_cm_listener *listener)
{
	if (listener->undecided > listener->backlog)
		return IRDMA_CM_SILENT;
	if (listener->half_open > max_t(u32, listener->backlog, IRDMA_CM_MIN_BACKLOG))
		return IRDMA_CM_HALF_OPEN;
	return IRDMA_CM_STAGE_COUNT;
}

static void irdma_cm_enter_stage(struct irdma_cm_node *node, struct irdma_cm_listener *listener,
				 enum irdma_cm_stage stage)
{
	node->stage_since = jiffies;
	list_move_tail(&node->listener_entry, &listener->nodes[stage]);
}

/* The peer that has been idle longest in a full stage, referenced; NULL if all are recent. */
static struct irdma_cm_node *irdma_cm_idlest(struct irdma_cm_listener *listener)
{
	enum irdma_cm_stage stage = irdma_cm_full_stage(listener);
	struct irdma_cm_node *node;

	if (stage == IRDMA_CM_STAGE_COUNT)
		return NULL;
	node = list_first_entry_or_null(&listener->nodes[stage], struct irdma_cm_node,
					listener_entry);
	if (!node ||
	    time_before(jiffies, node->stage_since + msecs_to_jiffies(IRDMA_CM_IDLE_MS)) ||
	    !refcount_inc_not_zero(&node->refs))
		return NULL;
	return node;
}

/*
 * Make room in a full listener (spec 03, D-48).  A peer that completed the handshake is reset;
 * one that did not may be a forged address and is told nothing.
 */
static void irdma_cm_drop_idle(struct irdma_cm_listener *listener)
{
	struct irdma_cm_node *node;
	bool waits;

	do {
		spin_lock_bh(&listener->lock);
		node = irdma_cm_idlest(listener);
		spin_unlock_bh(&listener->lock);
		if (!node)
			return;
		spin_lock_bh(&node->lock);
		waits = node->listener == listener && node->state != ST(MPAREQ_RCVD);
		if (waits)
			irdma_passive_open_err(node, node->state == ST(ESTABLISHED));
		spin_unlock_bh(&node->lock);
		irdma_cm_node_put(node);
	} while (waits);
}

/**
 * irdma_cm_admit - may this listener take another SYN?
 * @listener: listener
 *
 * Half-open connections and requests that the ULP has not decided are limited apart, so that
 * neither silent peers nor a slow ULP can make memory grow.  Peers that have said nothing for
 * IRDMA_CM_IDLE_MS lose their place first, so that they cannot close the listener either.
 *
 * Context: Any, takes the listener's lock and those of idle nodes.
 * Return: IRDMA_CM_DROP_COUNT if it may, else the reason to drop the SYN.
 */
enum irdma_cm_drop irdma_cm_admit(struct irdma_cm_listener *listener)
{
	struct irdma_cm_core *core = listener->core;
	enum irdma_cm_drop drop = IRDMA_CM_DROP_COUNT;

	irdma_cm_drop_idle(listener);
	spin_lock_bh(&listener->lock);
	if (listener->dead)
		drop = IRDMA_CM_DROP_NO_LISTENER;
	else if (irdma_cm_full_stage(listener) != IRDMA_CM_STAGE_COUNT)
		drop = IRDMA_CM_DROP_BACKLOG;
	spin_unlock_bh(&listener->lock);
	if (drop != IRDMA_CM_DROP_COUNT)
		return drop;
	if (READ_ONCE(core->stopping) || READ_ONCE(core->dead))
		return IRDMA_CM_DROP_NO_LISTENER;
	if ((u32)atomic_read(&core->half_open) >= core->config.max_half_open)
		return IRDMA_CM_DROP_HALF_OPEN;
	return IRDMA_CM_DROP_COUNT;
}

/**
 * irdma_cm_attach - a new passive connection belongs to a listener
 * @node: connection; takes a reference on the listener
 * @listener: listener
 *
 * Context: Any, under the node's lock.
 * Return: false if the listener has died.
 */
bool irdma_cm_attach(struct irdma_cm_node *node, struct irdma_cm_listener *listener)
{
	bool alive;

	spin_lock_bh(&listener->lock);
	alive = !listener->dead;
	if (alive) {
		listener->half_open++;
		irdma_cm_enter_stage(node, listener, IRDMA_CM_HALF_OPEN);
	}
	spin_unlock_bh(&listener->lock);
	if (!alive)
		return false;
	refcount_inc(&listener->refs);
	node->listener = listener;
	irdma_cm_set_flag(node, IRDMA_CM_F_HALF_OPEN);
	atomic_inc(&node->core->half_open);
	return true;
}

/**
 * irdma_cm_handshake_done - a passive connection is no longer half-open
 * @node: connection; counts as undecided from now on
 *
 * Context: Any, under the node's lock.
 */
void irdma_cm_handshake_done(struct irdma_cm_node *node)
{
	struct irdma_cm_listener *listener = node->listener;

	if (!listener || !irdma_cm_clear_flag(node, IRDMA_CM_F_HALF_OPEN))
		return;
	atomic_dec(&node->core->half_open);
	irdma_cm_set_flag(node, IRDMA_CM_F_UNDECIDED);
	spin_lock_bh(&listener->lock);
	listener->half_open--;
	listener->undecided++;
	irdma_cm_enter_stage(node, listener, IRDMA_CM_SILENT);
	spin_unlock_bh(&listener->lock);
}

/**
 * irdma_cm_request_done - the request of a passive connection is complete
 * @node: connection; from now on it is up to the ULP
 *
 * Context: Any, under the node's lock.
 */
void irdma_cm_request_done(struct irdma_cm_node *node)
{
	struct irdma_cm_listener *listener = node->listener;

	if (!listener)
		return;
	spin_lock_bh(&listener->lock);
	irdma_cm_enter_stage(node, listener, IRDMA_CM_REQUESTED);
	spin_unlock_bh(&listener->lock);
}

/**
 * irdma_cm_detach - a connection does not belong to its listener any more
 * @node: connection that was accepted, refused, or died; active ones have no listener
 *
 * The only place where the listener's counts go down for good.
 *
 * Context: Any, under the node's lock.
 */
void irdma_cm_detach(struct irdma_cm_node *node)
{
	struct irdma_cm_listener *listener = node->listener;
	bool half_open = irdma_cm_clear_flag(node, IRDMA_CM_F_HALF_OPEN);
	bool undecided = irdma_cm_clear_flag(node, IRDMA_CM_F_UNDECIDED);

	if (!listener)
		return;
	if (half_open)
		atomic_dec(&node->core->half_open);
	node->listener = NULL;
	spin_lock_bh(&listener->lock);
	listener->half_open -= half_open;
	listener->undecided -= undecided;
	list_del_init(&node->listener_entry);
	spin_unlock_bh(&listener->lock);
	irdma_dec_refcnt_listen(listener);
}

static struct irdma_cm_syn *irdma_cm_syn_get(struct irdma_cm_core *core,
					     const struct irdma_cm_laddr *addr, u16 port)
{
	struct irdma_cm_key key = { .port = port, .vlan = addr->vlan, .ipv4 = addr->ipv4 };
	struct irdma_cm_syn *syn;
	int ret;

	memcpy(key.ip, addr->ip, sizeof(key.ip));
	syn = rhashtable_lookup_fast(&core->syn_entries, &key, irdma_cm_syn_params);
	if (syn) {
		syn->users++;
		return syn;
	}
	syn = kzalloc(sizeof(*syn), GFP_KERNEL);
	if (!syn)
		return ERR_PTR(-ENOMEM);
	syn->key = key;
	syn->addr = *addr;
	syn->users = 1;
	ret = core->ops->syn_add(core, addr, port);
	if (ret)
		goto free;
	ret = rhashtable_insert_fast(&core->syn_entries, &syn->hash_entry, irdma_cm_syn_params);
	if (!ret)
		return syn;
	core->ops->syn_del(core, addr, port);
free:
	kfree(syn);
	return ERR_PTR(ret);
}

static void irdma_cm_syn_put(struct irdma_cm_core *core, struct irdma_cm_syn *syn)
{
	if (--syn->users)
		return;
	rhashtable_remove_fast(&core->syn_entries, &syn->hash_entry, irdma_cm_syn_params);
	core->ops->syn_del(core, &syn->addr, syn->key.port);
	kfree(syn);
}

static struct irdma_cm_child *irdma_cm_find_child(struct irdma_cm_listener *listener,
						  const struct irdma_cm_laddr *addr)
{
	struct irdma_cm_child *child;

	list_for_each_entry(child, &listener->children, entry)
		if (child->syn->key.ipv4 == addr->ipv4 && child->syn->key.vlan == addr->vlan &&
		    !memcmp(child->syn->key.ip, addr->ip, sizeof(addr->ip)))
			return child;
	return NULL;
}

static void irdma_cm_del_child(struct irdma_cm_listener *listener, struct irdma_cm_child *child)
{
	list_del(&child->entry);
	irdma_cm_syn_put(listener->core, child->syn);
	kfree(child);
}

static int irdma_cm_add_child(struct irdma_cm_listener *listener,
			      const struct irdma_cm_laddr *addr)
{
	struct irdma_cm_child *child;

	if (irdma_cm_find_child(listener, addr))
		return 0;
	child = kzalloc(sizeof(*child), GFP_KERNEL);
	if (!child)
		return -ENOMEM;
	child->syn = irdma_cm_syn_get(listener->core, addr, listener->key.port);
	if (IS_ERR(child->syn)) {
		int ret = PTR_ERR(child->syn);

		kfree(child);
		return ret;
	}
	list_add_tail(&child->entry, &listener->children);
	return 0;
}

static int irdma_cm_each_addr(const struct irdma_cm_laddr *addr, void *arg)
{
	return irdma_cm_add_child(arg, addr);
}

/**
 * irdma_add_mqh_4 - let a wildcard listener serve all our IPv4 addresses
 * @listener: listener
 *
 * Context: Process, sleeps, under core->listen_lock; not under RTNL.
 * Return: 0, also if there is no address yet; -ENOMEM or the failure of a command.
 */
int irdma_add_mqh_4(struct irdma_cm_listener *listener)
{
	return listener->core->ops->for_each_addr(listener->core, true, irdma_cm_each_addr,
						  listener);
}

/**
 * irdma_add_mqh_6 - let a wildcard listener serve all our IPv6 addresses
 * @listener: listener
 *
 * Context: Process, sleeps, under core->listen_lock; not under RTNL.
 * Return: 0, also if there is no address yet; -ENOMEM or the failure of a command.
 */
int irdma_add_mqh_6(struct irdma_cm_listener *listener)
{
	return listener->core->ops->for_each_addr(listener->core, false, irdma_cm_each_addr,
						  listener);
}

/**
 * irdma_add_mqh - let a wildcard listener serve all addresses of its families
 * @listener: listener
 *
 * Context: Process, sleeps, under core->listen_lock.
 * Return: 0 or a negative errno; then some addresses may be served already.
 */
int irdma_add_mqh(struct irdma_cm_listener *listener)
{
	int ret;

	if (listener->key.ipv4)
		return irdma_add_mqh_4(listener);
	ret = irdma_add_mqh_6(listener);
	if (!ret && listener->dual_stack)
		ret = irdma_add_mqh_4(listener);
	return ret;
}

/**
 * irdma_del_multiple_qhash - a listener serves no address any more
 * @listener: listener
 *
 * Context: Process, sleeps, under core->listen_lock.
 */
void irdma_del_multiple_qhash(struct irdma_cm_listener *listener)
{
	struct irdma_cm_child *child, *next;

	list_for_each_entry_safe(child, next, &listener->children, entry)
		irdma_cm_del_child(listener, child);
}

static bool irdma_cm_serves(const struct irdma_cm_listener *listener,
			    const struct irdma_cm_laddr *addr)
{
	if (listener->wildcard)
		return listener->key.ipv4 == addr->ipv4 ||
		       (addr->ipv4 && listener->dual_stack);
	return listener->key.ipv4 == addr->ipv4 && listener->key.vlan == addr->vlan &&
	       !memcmp(listener->key.ip, addr->ip, sizeof(addr->ip));
}

/**
 * irdma_qhash_ctrl - an address came or went: does it concern this listener?
 * @listener: listener
 * @addr: address
 * @up: it came
 *
 * Context: Process, sleeps, under core->listen_lock.
 * Return: 0 or a negative errno.
 */
int irdma_qhash_ctrl(struct irdma_cm_listener *listener, const struct irdma_cm_laddr *addr,
		     bool up)
{
	struct irdma_cm_child *child;

	if (!irdma_cm_serves(listener, addr))
		return 0;
	if (up)
		return irdma_cm_add_child(listener, addr);
	child = irdma_cm_find_child(listener, addr);
	if (child)
		irdma_cm_del_child(listener, child);
	return 0;
}

/**
 * irdma_if_notify - one of our addresses came or went
 * @core: engine
 * @addr: address
 * @up: it came
 *
 * Listeners follow; connections of an address that went are reset.
 *
 * Context: Process, sleeps; not under RTNL, because commands are waited for.
 */
void irdma_if_notify(struct irdma_cm_core *core, const struct irdma_cm_laddr *addr, bool up)
{
	struct irdma_cm_listener *listener;
	int ret;

	mutex_lock(&core->listen_lock);
	list_for_each_entry(listener, &core->listener_list, list_entry) {
		ret = irdma_qhash_ctrl(listener, addr, up);
		if (ret)
			pr_warn_ratelimited("irdma: port %u does not listen on a new address: %pe\n",
					    listener->key.port, ERR_PTR(ret));
	}
	mutex_unlock(&core->listen_lock);
	if (!up)
		irdma_cm_teardown_connections(core, addr);
}

/**
 * irdma_make_listen_node - make a listener and let SYNs find it
 * @core: engine
 * @key: what it listens on
 * @cm_id: its id; the listener takes a reference
 * @backlog: requests that may wait for the ULP
 *
 * Context: Process, sleeps, under core->listen_lock.
 * Return: the listener; ERR_PTR(-EADDRINUSE) if there is one for @key; -ENOMEM.
 */
struct irdma_cm_listener *irdma_make_listen_node(struct irdma_cm_core *core,
						 const struct irdma_cm_key *key,
						 struct iw_cm_id *cm_id, int backlog)
{
	struct irdma_cm_listener *listener;
	int ret, i;

	listener = kzalloc(sizeof(*listener), GFP_KERNEL);
	if (!listener)
		return ERR_PTR(-ENOMEM);
	listener->core = core;
	listener->key = *key;
	listener->wildcard = !memchr_inv(key->ip, 0, sizeof(key->ip));
	listener->dual_stack = listener->wildcard && !key->ipv4 && !cm_id->afonly;
	listener->tos_set = cm_id->tos_set;
	listener->tos = cm_id->tos & ~3;
	listener->backlog = max(backlog, 1);
	listener->cm_id = cm_id;
	refcount_set(&listener->refs, 1);
	spin_lock_init(&listener->lock);
	INIT_LIST_HEAD(&listener->children);
	for (i = 0; i < IRDMA_CM_STAGE_COUNT; i++)
		INIT_LIST_HEAD(&listener->nodes[i]);

	ret = rhashtable_insert_fast(&core->listeners, &listener->hash_entry,
				     irdma_cm_listener_params);
	if (ret) {
		kfree(listener);
		return ERR_PTR(ret == -EEXIST ? -EADDRINUSE : ret);
	}
	cm_id->add_ref(cm_id);
	list_add_tail(&listener->list_entry, &core->listener_list);
	atomic_inc(&core->num_listeners);
	irdma_cm_count(core, IRDMA_CM_LISTENERS_CREATED);
	return listener;
}

/**
 * irdma_reset_list_prep - collect the connections that still belong to a listener
 * @listener: listener that is dead
 * @list: receives the nodes, referenced
 * @max: how many fit
 *
 * Context: Any, takes the listener's lock.
 * Return: number of nodes in @list.
 */
unsigned int irdma_reset_list_prep(struct irdma_cm_listener *listener,
				   struct irdma_cm_node **list, unsigned int max)
{
	struct irdma_cm_node *node;
	unsigned int n = 0;
	int i;

	spin_lock_bh(&listener->lock);
	for (i = 0; i < IRDMA_CM_STAGE_COUNT; i++) {
		list_for_each_entry(node, &listener->nodes[i], listener_entry) {
			if (n == max)
				break;
			if (refcount_inc_not_zero(&node->refs))
				list[n++] = node;
		}
	}
	spin_unlock_bh(&listener->lock);
	return n;
}

/*
 * A request that the ULP may have seen stays: the ULP can still accept it.  If iw_cm threw it
 * away with the listener nobody will, so it has a deadline from now on.
 */
static void irdma_cm_listener_gone(struct irdma_cm_node *node)
{
	spin_lock_bh(&node->lock);
	if (node->state == ST(MPAREQ_RCVD) && !(node->events & BIT(IRDMA_CM_EV_MPA_REQ))) {
		irdma_cm_detach(node);
		irdma_cm_set_deadline(node, IRDMA_CM_ORPHAN_MS);
	} else if (node->listener) {
		irdma_passive_open_err(node, true);
	}
	spin_unlock_bh(&node->lock);
}

/**
 * irdma_cm_del_listen - a listener stops listening
 * @listener: listener; its reference of being alive is dropped
 *
 * No request is raised on its id any more.  Connections that are being set up are reset.
 *
 * Context: Process, sleeps, without core->listen_lock.
 */
void irdma_cm_del_listen(struct irdma_cm_listener *listener)
{
	struct irdma_cm_core *core = listener->core;
	struct irdma_cm_node *list[32];
	struct iw_cm_id *cm_id;
	unsigned int n, i;

	mutex_lock(&core->listen_lock);
	rhashtable_remove_fast(&core->listeners, &listener->hash_entry, irdma_cm_listener_params);
	list_del(&listener->list_entry);
	irdma_del_multiple_qhash(listener);
	mutex_unlock(&core->listen_lock);
	core->ops->port_put(core, listener->key.port);

	spin_lock_bh(&listener->lock);
	listener->dead = true;
	cm_id = listener->cm_id;
	listener->cm_id = NULL;
	spin_unlock_bh(&listener->lock);
	cm_id->rem_ref(cm_id);

	while ((n = irdma_reset_list_prep(listener, list, ARRAY_SIZE(list)))) {
		for (i = 0; i < n; i++) {
			irdma_cm_listener_gone(list[i]);
			irdma_cm_node_put(list[i]);
		}
	}
	irdma_dec_refcnt_listen(listener);
}

static int irdma_cm_listen_addr(struct irdma_cm_core *core, const struct sockaddr_storage *ss,
				struct irdma_cm_key *key, struct irdma_cm_laddr *addr)
{
	int ret;

	memset(key, 0, sizeof(*key));
	if (ss->ss_family == AF_INET) {
		const struct sockaddr_in *sin = (const struct sockaddr_in *)ss;

		key->ipv4 = 1;
		key->ip[0] = ntohl(sin->sin_addr.s_addr);
		key->port = ntohs(sin->sin_port);
	} else if (ss->ss_family == AF_INET6) {
		const struct sockaddr_in6 *sin6 = (const struct sockaddr_in6 *)ss;

		irdma_copy_ip_ntohl(key->ip, sin6->sin6_addr.s6_addr32);
		key->port = ntohs(sin6->sin6_port);
	} else {
		return -EAFNOSUPPORT;
	}
	if (!key->port)
		return -EINVAL;
	if (!memchr_inv(key->ip, 0, sizeof(key->ip)))
		return 0;
	ret = core->ops->local_addr(core, key->ipv4, key->ip, addr);
	if (!ret)
		key->vlan = addr->vlan;
	return ret;
}

/**
 * irdma_create_listen - device operation iw_create_listen
 * @cm_id: listening id; its mapped local address counts
 * @backlog: requests that may wait for the ULP, at least 1
 *
 * A wildcard address serves all addresses that the net device and its VLANs have or will get.
 * Does not take RTNL.
 *
 * Context: Process, sleeps.
 * Return: 0; -EADDRNOTAVAIL if the address is not ours, -EADDRINUSE, -EAFNOSUPPORT, -EINVAL
 * for port 0, -ENODEV, -ENOMEM, or the failure of a command.
 */
int irdma_create_listen(struct iw_cm_id *cm_id, int backlog)
{
	struct irdma_cm_core *core = irdma_cm_core_of(cm_id->device);
	struct irdma_cm_listener *listener;
	struct irdma_cm_laddr addr;
	struct irdma_cm_key key;
	int ret;

	if (READ_ONCE(core->stopping) || READ_ONCE(core->dead))
		return -ENODEV;
	ret = irdma_cm_listen_addr(core, &cm_id->m_local_addr, &key, &addr);
	if (ret)
		return ret;
	ret = core->ops->port_get(core, key.port, NULL);
	if (ret)
		return ret;

	mutex_lock(&core->listen_lock);
	listener = irdma_make_listen_node(core, &key, cm_id, backlog);
	if (IS_ERR(listener)) {
		mutex_unlock(&core->listen_lock);
		core->ops->port_put(core, key.port);
		return PTR_ERR(listener);
	}
	ret = listener->wildcard ? irdma_add_mqh(listener) : irdma_cm_add_child(listener, &addr);
	mutex_unlock(&core->listen_lock);
	if (ret) {
		irdma_cm_del_listen(listener);
		return ret;
	}
	cm_id->provider_data = listener;
	return 0;
}

/**
 * irdma_destroy_listen - device operation iw_destroy_listen
 * @cm_id: listening id
 *
 * Context: Process, sleeps.
 * Return: 0.
 */
int irdma_destroy_listen(struct iw_cm_id *cm_id)
{
	struct irdma_cm_listener *listener = cm_id->provider_data;

	if (listener) {
		cm_id->provider_data = NULL;
		irdma_cm_del_listen(listener);
	}
	return 0;
}
