// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Tables of hardware that connections share: local TCP ports (APBVT), ARP entries, address
 * handles (spec 01, 4.8 ops 0x0F, 0x1C, 0x23; spec 03, 4.11 and 6.4).
 *
 * Called by cm_hw.c and addr.c in any context; only irdma_port_get() without a waiter sleeps.
 * &irdma_addrs.lock guards the tables, and commands are submitted under it.
 *
 * A command is in flight for an entry at most once; whatever changes meanwhile is done when
 * it completes.  Entries without users stay in hardware for the next user, so that a
 * connection to a known peer costs no ARP or address handle command.
 */
#include <linux/completion.h>
#include <linux/etherdevice.h>
#include <linux/jhash.h>
#include <linux/slab.h>

#include "utils.h"

#define ARP_KEEP	256	/* unused entries */
#define AH_KEEP		64
#define AH_TTL		64	/* spec 03, 4.11 */

struct irdma_port {
	struct irdma_hwent ent;
	struct hlist_node hash_entry;
	u16 num;
};

struct irdma_arp {
	struct irdma_hwent ent;
	struct hlist_node hash_entry;
	struct irdma_arp_key key;
	u16 idx;
	u8 mac[ETH_ALEN];
	struct irdma_cqp_req clear_req;
};

struct irdma_ah {
	struct irdma_hwent ent;
	struct hlist_node hash_entry;
	struct irdma_ah_key key;
	u32 idx;
};

/* --- answers --- */

static void answer_work(struct work_struct *work)
{
	struct irdma_addrs *addrs = container_of(work, struct irdma_addrs, answer_work);
	struct irdma_waiter *waiter, *next;
	LIST_HEAD(answers);

	spin_lock_irq(&addrs->lock);
	list_splice_init(&addrs->answers, &answers);
	spin_unlock_irq(&addrs->lock);
	list_for_each_entry_safe(waiter, next, &answers, entry)
		waiter->done(waiter, waiter->err);
}

/**
 * irdma_answer - tell a waiter how its command ended
 * @dev: device
 * @waiter: who waits
 * @err: 0 or a negative errno
 *
 * A device that is dead answers a command within the call that gave it, where the caller may
 * hold locks that the waiter needs: then the waiter is told by a work item.
 *
 * Context: any.
 */
void irdma_answer(struct irdma_device *dev, struct irdma_waiter *waiter, int err)
{
	struct irdma_addrs *addrs = dev->addrs;
	unsigned long flags;

	if (err != -ENODEV && err != -EBUSY) {
		waiter->done(waiter, err);
		return;
	}
	waiter->err = err;
	spin_lock_irqsave(&addrs->lock, flags);
	list_add_tail(&waiter->entry, &addrs->answers);
	spin_unlock_irqrestore(&addrs->lock, flags);
	queue_work(dev->wq, &addrs->answer_work);
}

struct sync_waiter {
	struct irdma_waiter waiter;
	struct completion completion;
	int err;
};

static void sync_done(struct irdma_waiter *waiter, int err)
{
	struct sync_waiter *sync = container_of(waiter, struct sync_waiter, waiter);

	sync->err = err;
	complete(&sync->completion);
}

/* --- entries --- */

static void hwent_done(struct irdma_device *dev, struct irdma_cqp_req *req);

static void hwent_init(struct irdma_hwent *ent, struct irdma_hwent_table *table)
{
	ent->table = table;
	INIT_LIST_HEAD(&ent->waiters);
	INIT_LIST_HEAD(&ent->idle);
}

/*
 * Give the command that brings hardware after what the users want; lock held.  Commands are
 * submitted under the lock so that they reach hardware in the order of the table's changes: an
 * address handle after the ARP entry it refers to.  An entry without users may be gone when
 * this returns.
 */
static void hwent_next(struct irdma_hwent *ent)
{
	struct irdma_addrs *addrs = ent->table->dev->addrs;
	struct task_struct *outer = addrs->submitter;

	if (ent->busy)
		return;
	if (ent->wanted && (!ent->present || ent->dirty)) {
		ent->adding = true;
	} else if (!ent->wanted && ent->present && !ent->stuck) {
		ent->adding = false;
	} else {
		if (!ent->wanted && !ent->present && !atomic_read(&ent->users))
			ent->table->type->release(ent);
		return;
	}
	ent->busy = true;
	WRITE_ONCE(addrs->submitter, current);
	ent->uncleared = false;
	if (ent->dirty && ent->present && ent->adding)
		ent->table->type->clear(ent);
	ent->dirty = false;
	ent->table->type->prep(ent, ent->adding);
	irdma_cqp_submit(ent->table->dev, &ent->req, hwent_done);
	WRITE_ONCE(addrs->submitter, outer);
}

/* Lock held. */
static void hwent_not_idle(struct irdma_hwent *ent)
{
	if (list_empty(&ent->idle))
		return;
	list_del_init(&ent->idle);
	ent->table->idle_count--;
}

/*
 * Note how a command ended; lock held.  Who waited for it is moved to @waiters, to be told what
 * this returns: an entry that hardware does not give up serves those who have come since.
 */
static int hwent_finish(struct irdma_hwent *ent, int status, struct list_head *waiters)
{
	int err = ent->adding ? status : 0;

	ent->busy = false;
	/* Hardware would refuse to write what it still has, be it the same or another entry. */
	ent->stuck = status && !irdma_is_dead(ent->table->dev) && (!ent->adding || ent->uncleared);
	ent->present = ent->stuck || (ent->adding && !status);
	if (ent->adding && status) {
		ent->wanted = false;
		ent->dirty |= ent->stuck;
		hwent_not_idle(ent);
	}
	if (ent->adding || ent->present)
		list_splice_tail_init(&ent->waiters, waiters);
	hwent_next(ent);
	return err;
}

/*
 * A dead device answers within irdma_cqp_submit(), where this thread holds the lock and
 * whatever its caller holds: then the waiters are told by the work item.
 */
static void hwent_done(struct irdma_device *dev, struct irdma_cqp_req *req)
{
	struct irdma_hwent *ent = container_of(req, struct irdma_hwent, req);
	struct irdma_addrs *addrs = dev->addrs;
	struct irdma_waiter *waiter, *next;
	LIST_HEAD(waiters);
	unsigned long flags;
	int err;

	if (READ_ONCE(addrs->submitter) == current) {
		err = hwent_finish(ent, req->status, &waiters);
		list_for_each_entry(waiter, &waiters, entry)
			waiter->err = err;
		list_splice_tail(&waiters, &addrs->answers);
		queue_work(dev->wq, &addrs->answer_work);
		return;
	}
	spin_lock_irqsave(&addrs->lock, flags);
	err = hwent_finish(ent, req->status, &waiters);
	spin_unlock_irqrestore(&addrs->lock, flags);
	list_for_each_entry_safe(waiter, next, &waiters, entry)
		irdma_answer(dev, waiter, err);
}

/* One more user; lock held. */
static void hwent_get(struct irdma_hwent *ent)
{
	if (atomic_inc_return(&ent->users) == 1)
		hwent_not_idle(ent);
	ent->wanted = true;
	ent->stuck = false;
}

/* The oldest unused entry, if there is one, has to go; lock held. */
static void hwent_evict(struct irdma_hwent_table *table)
{
	struct irdma_hwent *ent;

	ent = list_first_entry_or_null(&table->idle, struct irdma_hwent, idle);
	if (!ent)
		return;
	hwent_not_idle(ent);
	ent->wanted = false;
	hwent_next(ent);
}

/* The last user has gone; lock held. */
static void hwent_unused(struct irdma_hwent *ent)
{
	struct irdma_hwent_table *table = ent->table;

	if (ent->wanted && table->type->keep) {
		list_add_tail(&ent->idle, &table->idle);
		if (++table->idle_count > table->type->keep)
			hwent_evict(table);
	} else {
		ent->wanted = false;
		hwent_next(ent);
	}
}

/* One user less. Any context. */
static void hwent_put(struct irdma_hwent *ent)
{
	struct irdma_addrs *addrs = ent->table->dev->addrs;
	unsigned long flags;

	if (!atomic_dec_and_lock_irqsave(&ent->users, &addrs->lock, flags))
		return;
	hwent_unused(ent);
	spin_unlock_irqrestore(&addrs->lock, flags);
}

/* Give up all unused entries. */
static void hwent_drain(struct irdma_addrs *addrs, struct irdma_hwent_table *table)
{
	spin_lock_irq(&addrs->lock);
	while (table->idle_count)
		hwent_evict(table);
	spin_unlock_irq(&addrs->lock);
}

/* Wait until hardware has an entry that the caller uses; lock held.  hwent_next() must follow. */
static int hwent_wait(struct irdma_hwent *ent, struct irdma_waiter *waiter)
{
	bool leaving = ent->busy && !ent->adding;

	if (ent->present && !leaving)
		return 0;
	list_add_tail(&waiter->entry, &ent->waiters);
	return -EINPROGRESS;
}

/* --- local TCP ports --- */

static void port_prep(struct irdma_hwent *ent, bool add)
{
	struct irdma_port *port = container_of(ent, struct irdma_port, ent);

	irdma_cqp_prep_apbvt(ent->table->dev, &ent->req, port->num, add);
}

static void port_release(struct irdma_hwent *ent)
{
	struct irdma_port *port = container_of(ent, struct irdma_port, ent);

	hash_del(&port->hash_entry);
	kfree(port);
}

static const struct irdma_hwent_type port_type = {
	.prep = port_prep,
	.release = port_release,
};

/* Lock held. */
static struct irdma_port *port_find(struct irdma_addrs *addrs, u16 num)
{
	struct irdma_port *port;

	hash_for_each_possible(addrs->ports, port, hash_entry, num)
		if (port->num == num)
			return port;
	return NULL;
}

/* Lock held. */
static struct irdma_port *port_find_or_add(struct irdma_addrs *addrs, u16 num)
{
	struct irdma_port *port = port_find(addrs, num);

	if (port)
		return port;
	port = kzalloc(sizeof(*port), GFP_ATOMIC);
	if (!port)
		return NULL;
	hwent_init(&port->ent, &addrs->port_table);
	port->num = num;
	hash_add(addrs->ports, &port->hash_entry, num);
	return port;
}

/**
 * irdma_port_get - let hardware look at the TCP frames of a local port
 * @dev: device
 * @num: TCP port
 * @waiter: told when the port is there; NULL: sleep until then
 *
 * Context: any with @waiter, otherwise process.
 * Return: 0 the port is there; -EINPROGRESS @waiter will be told; another errno: no reference
 * was taken.  A waiter that is told of an error has a reference and must put it.
 */
int irdma_port_get(struct irdma_device *dev, u16 num, struct irdma_waiter *waiter)
{
	struct sync_waiter sync = { .waiter.done = sync_done };
	struct irdma_addrs *addrs = dev->addrs;
	struct irdma_port *port;
	unsigned long flags;
	int err;

	init_completion(&sync.completion);
	spin_lock_irqsave(&addrs->lock, flags);
	port = port_find_or_add(addrs, num);
	if (port) {
		hwent_get(&port->ent);
		err = hwent_wait(&port->ent, waiter ?: &sync.waiter);
		hwent_next(&port->ent);
	} else {
		err = -ENOMEM;
	}
	spin_unlock_irqrestore(&addrs->lock, flags);
	if (err != -EINPROGRESS || waiter)
		return err;
	wait_for_completion(&sync.completion);
	if (sync.err)
		hwent_put(&port->ent);
	return sync.err;
}

/**
 * irdma_port_put - undo irdma_port_get()
 * @dev: device
 * @num: TCP port
 *
 * Context: any.
 */
void irdma_port_put(struct irdma_device *dev, u16 num)
{
	struct irdma_addrs *addrs = dev->addrs;
	struct irdma_port *port;
	unsigned long flags;

	spin_lock_irqsave(&addrs->lock, flags);
	port = port_find(addrs, num);
	if (!WARN_ON(!port) && atomic_dec_and_test(&port->ent.users))
		hwent_unused(&port->ent);
	spin_unlock_irqrestore(&addrs->lock, flags);
}

/* --- ARP table --- */

static void arp_prep(struct irdma_hwent *ent, bool add)
{
	struct irdma_arp *arp = container_of(ent, struct irdma_arp, ent);

	irdma_cqp_prep_arp(ent->table->dev, &ent->req, arp->idx, arp->mac, add);
}

static void arp_cleared(struct irdma_device *dev, struct irdma_cqp_req *req)
{
	struct irdma_arp *arp = container_of(req, struct irdma_arp, clear_req);

	arp->ent.uncleared = req->status;
}

/* Right in front of the command that writes the new address, which completes after this one. */
static void arp_clear(struct irdma_hwent *ent)
{
	struct irdma_arp *arp = container_of(ent, struct irdma_arp, ent);

	irdma_cqp_prep_arp(ent->table->dev, &arp->clear_req, arp->idx, arp->mac, false);
	irdma_cqp_submit(ent->table->dev, &arp->clear_req, arp_cleared);
}

static void arp_release(struct irdma_hwent *ent)
{
	struct irdma_arp *arp = container_of(ent, struct irdma_arp, ent);
	struct irdma_addrs *addrs = ent->table->dev->addrs;

	hash_del(&arp->hash_entry);
	xa_erase(&addrs->arp_by_idx, arp->idx);
	ida_free(&addrs->arp_ids, arp->idx);
	kfree(arp);
}

static const struct irdma_hwent_type arp_type = {
	.prep = arp_prep,
	.clear = arp_clear,
	.release = arp_release,
	.keep = ARP_KEEP,
};

static u32 arp_hash(const struct irdma_arp_key *key)
{
	return jhash2((const u32 *)key, sizeof(*key) / sizeof(u32), 0);
}

static struct irdma_arp *arp_find(struct irdma_addrs *addrs, const struct irdma_arp_key *key)
{
	struct irdma_arp *arp;

	hash_for_each_possible(addrs->arps, arp, hash_entry, arp_hash(key))
		if (!memcmp(&arp->key, key, sizeof(*key)))
			return arp;
	return NULL;
}

/* A new entry; lock held. Index 0 means "none" to hardware. */
static struct irdma_arp *arp_add(struct irdma_device *dev, const struct irdma_arp_key *key)
{
	struct irdma_addrs *addrs = dev->addrs;
	struct irdma_arp *arp = kzalloc(sizeof(*arp), GFP_ATOMIC);
	int idx;

	if (!arp)
		return ERR_PTR(-ENOMEM);
	idx = ida_alloc_range(&addrs->arp_ids, 1, dev->limits.arps - 1, GFP_ATOMIC);
	if (idx < 0)
		goto free;
	if (xa_err(xa_store(&addrs->arp_by_idx, idx, arp, GFP_ATOMIC)))
		goto free_idx;
	hwent_init(&arp->ent, &addrs->arp_table);
	arp->key = *key;
	arp->idx = idx;
	hash_add(addrs->arps, &arp->hash_entry, arp_hash(key));
	return arp;

free_idx:
	ida_free(&addrs->arp_ids, idx);
	idx = -ENOMEM;
free:
	kfree(arp);
	return ERR_PTR(idx);
}

/* Set the address that hardware shall have; lock held. */
static void arp_set_mac(struct irdma_arp *arp, const u8 *mac)
{
	if (!ether_addr_equal(arp->mac, mac)) {
		ether_addr_copy(arp->mac, mac);
		arp->ent.dirty = true;
	}
	hwent_next(&arp->ent);
}

/**
 * irdma_arp_get - pin the ARP entry of a next hop
 * @dev: device
 * @key: the next hop; all bytes are compared
 * @mac: its MAC address
 *
 * The command that writes the entry is ordered before every later command, so the index may
 * be used in them at once.
 *
 * Context: any.
 * Return: the index, -ENOMEM, or -ENOSPC when every entry is in use; in this case an unused
 * one was given up if there is one, and a later try may succeed.
 */
int irdma_arp_get(struct irdma_device *dev, const struct irdma_arp_key *key, const u8 *mac)
{
	struct irdma_addrs *addrs = dev->addrs;
	struct irdma_arp *arp;
	unsigned long flags;
	int ret;

	spin_lock_irqsave(&addrs->lock, flags);
	arp = arp_find(addrs, key);
	if (!arp)
		arp = arp_add(dev, key);
	if (IS_ERR(arp)) {
		ret = PTR_ERR(arp);
		if (ret == -ENOSPC)
			hwent_evict(&addrs->arp_table);
	} else {
		hwent_get(&arp->ent);
		ret = arp->idx;
		arp_set_mac(arp, mac);
	}
	spin_unlock_irqrestore(&addrs->lock, flags);
	return ret;
}

/**
 * irdma_arp_put - undo irdma_arp_get()
 * @dev: device
 * @idx: what it returned
 *
 * Context: any.
 */
void irdma_arp_put(struct irdma_device *dev, u16 idx)
{
	struct irdma_arp *arp = xa_load(&dev->addrs->arp_by_idx, idx);

	if (!WARN_ON(!arp))
		hwent_put(&arp->ent);
}

/**
 * irdma_arp_update - a neighbour has changed
 * @dev: device
 * @key: the neighbour
 * @mac: its MAC address now, or NULL if it is not known any more
 *
 * An entry is changed in place, so that QPs and address handles that use it go on.  An entry
 * without users is given up when the neighbour is gone.
 *
 * Context: any.
 */
void irdma_arp_update(struct irdma_device *dev, const struct irdma_arp_key *key, const u8 *mac)
{
	struct irdma_addrs *addrs = dev->addrs;
	struct irdma_arp *arp;
	unsigned long flags;

	spin_lock_irqsave(&addrs->lock, flags);
	arp = arp_find(addrs, key);
	if (arp && mac) {
		arp_set_mac(arp, mac);
	} else if (arp && !list_empty(&arp->ent.idle)) {
		list_move(&arp->ent.idle, &addrs->arp_table.idle);
		hwent_evict(&addrs->arp_table);
	}
	spin_unlock_irqrestore(&addrs->lock, flags);
}

/* --- address handles --- */

static void ah_prep(struct irdma_hwent *ent, bool add)
{
	struct irdma_ah *ah = container_of(ent, struct irdma_ah, ent);
	const struct irdma_ah_key *key = &ah->key;
	struct irdma_ah_cmd cmd = {
		.ah = ah->idx,
		.arp_idx = key->arp_idx,
		.ipv4 = key->ipv4,
		.loopback = key->loopback,
		.tos = key->tos,
		.ttl = AH_TTL,
	};

	if (key->vlan != IRDMA_CM_NO_VLAN) {
		cmd.insert_vlan = true;
		cmd.vlan_tag = key->vlan | key->prio << 13;
	}
	ether_addr_copy(cmd.src_mac, key->src_mac);
	memcpy(cmd.src_ip, key->src_ip, sizeof(cmd.src_ip));
	memcpy(cmd.dst_ip, key->dst_ip, sizeof(cmd.dst_ip));
	if (add)
		irdma_cqp_prep_create_ah(ent->table->dev, &ent->req, &cmd);
	else
		irdma_cqp_prep_destroy_ah(ent->table->dev, &ent->req, &cmd);
}

static void ah_release(struct irdma_hwent *ent)
{
	struct irdma_ah *ah = container_of(ent, struct irdma_ah, ent);

	hash_del(&ah->hash_entry);
	ida_free(&ent->table->dev->ah_ids, ah->idx);
	kfree(ah);
}

static const struct irdma_hwent_type ah_type = {
	.prep = ah_prep,
	.release = ah_release,
	.keep = AH_KEEP,
};

static u32 ah_hash(const struct irdma_ah_key *key)
{
	BUILD_BUG_ON(sizeof(*key) != 48);
	return jhash2((const u32 *)key, sizeof(*key) / sizeof(u32), 0);
}

static struct irdma_ah *ah_find(struct irdma_addrs *addrs, const struct irdma_ah_key *key)
{
	struct irdma_ah *ah;

	hash_for_each_possible(addrs->ahs, ah, hash_entry, ah_hash(key))
		if (!memcmp(&ah->key, key, sizeof(*key)))
			return ah;
	return NULL;
}

static struct irdma_ah *ah_add(struct irdma_device *dev, const struct irdma_ah_key *key)
{
	struct irdma_addrs *addrs = dev->addrs;
	struct irdma_ah *ah = kzalloc(sizeof(*ah), GFP_ATOMIC);
	int idx;

	if (!ah)
		return ERR_PTR(-ENOMEM);
	idx = ida_alloc_range(&dev->ah_ids, 1, dev->limits.ahs - 1, GFP_ATOMIC);
	if (idx < 0) {
		kfree(ah);
		return ERR_PTR(idx);
	}
	hwent_init(&ah->ent, &addrs->ah_table);
	ah->key = *key;
	ah->idx = idx;
	hash_add(addrs->ahs, &ah->hash_entry, ah_hash(key));
	return ah;
}

/**
 * irdma_ah_get - get an address handle
 * @dev: device
 * @key: what it shall contain; the ARP entry must stay pinned as long as the handle is used
 * @waiter: told when hardware has it, if @status is -EINPROGRESS
 * @where: the handle is stored here before @waiter can be told
 * @status: 0: it can be used at once; -EINPROGRESS
 *
 * Context: any.
 * Return: a counted handle or an ERR_PTR(): -ENOMEM, -ENOSPC as for irdma_arp_get().  A waiter
 * that is told of an error has a reference and must put it.
 */
struct irdma_ah *irdma_ah_get(struct irdma_device *dev, const struct irdma_ah_key *key,
			      struct irdma_waiter *waiter, struct irdma_ah **where,
			      int *status)
{
	struct irdma_addrs *addrs = dev->addrs;
	struct irdma_ah *ah;
	unsigned long flags;

	spin_lock_irqsave(&addrs->lock, flags);
	ah = ah_find(addrs, key);
	if (!ah)
		ah = ah_add(dev, key);
	if (!IS_ERR(ah)) {
		hwent_get(&ah->ent);
		*where = ah;
		*status = hwent_wait(&ah->ent, waiter);
		hwent_next(&ah->ent);
	} else if (PTR_ERR(ah) == -ENOSPC) {
		hwent_evict(&addrs->ah_table);
	}
	spin_unlock_irqrestore(&addrs->lock, flags);
	return ah;
}

/**
 * irdma_ah_hold - take another reference
 * @ah: a handle that the caller holds already
 *
 * Context: any, takes no lock.
 */
void irdma_ah_hold(struct irdma_ah *ah)
{
	atomic_inc(&ah->ent.users);
}

/**
 * irdma_ah_put - drop a reference
 * @ah: the handle
 *
 * Context: any; takes a lock only for the last reference.
 */
void irdma_ah_put(struct irdma_ah *ah)
{
	hwent_put(&ah->ent);
}

/**
 * irdma_ah_index - number of an address handle in work requests
 * @ah: the handle
 *
 * Context: any.
 * Return: the index that hardware knows it by.
 */
u32 irdma_ah_index(const struct irdma_ah *ah)
{
	return ah->idx;
}

/* --- life --- */

static void table_init(struct irdma_hwent_table *table, struct irdma_device *dev,
		       const struct irdma_hwent_type *type)
{
	table->dev = dev;
	table->type = type;
	INIT_LIST_HEAD(&table->idle);
}

/**
 * irdma_addrs_start - make the tables of a device
 * @dev: device; its limits are known
 *
 * Context: process.
 * Return: 0 or -ENOMEM.
 */
int irdma_addrs_start(struct irdma_device *dev)
{
	struct irdma_addrs *addrs = kzalloc(sizeof(*addrs), GFP_KERNEL);

	if (!addrs)
		return -ENOMEM;
	addrs->dev = dev;
	spin_lock_init(&addrs->lock);
	xa_init_flags(&addrs->arp_by_idx, XA_FLAGS_LOCK_IRQ);
	ida_init(&addrs->arp_ids);
	hash_init(addrs->ports);
	hash_init(addrs->arps);
	hash_init(addrs->ahs);
	table_init(&addrs->port_table, dev, &port_type);
	table_init(&addrs->arp_table, dev, &arp_type);
	table_init(&addrs->ah_table, dev, &ah_type);
	INIT_LIST_HEAD(&addrs->answers);
	INIT_WORK(&addrs->answer_work, answer_work);
	INIT_LIST_HEAD(&addrs->known);
	mutex_init(&addrs->refresh_lock);
	dev->addrs = addrs;
	return 0;
}

/* Forget what hardware did not give up; it does so with the control queue. */
static void release_stuck(struct irdma_addrs *addrs)
{
	struct irdma_port *port;
	struct hlist_node *next;
	struct irdma_arp *arp;
	struct irdma_ah *ah;
	int i;

	spin_lock_irq(&addrs->lock);
	hash_for_each_safe(addrs->ahs, i, next, ah, hash_entry)
		if (ah->ent.stuck)
			ah_release(&ah->ent);
	hash_for_each_safe(addrs->arps, i, next, arp, hash_entry)
		if (arp->ent.stuck)
			arp_release(&arp->ent);
	hash_for_each_safe(addrs->ports, i, next, port, hash_entry)
		if (port->ent.stuck)
			port_release(&port->ent);
	spin_unlock_irq(&addrs->lock);
}

/**
 * irdma_addrs_stop - undo irdma_addrs_start()
 * @dev: device; no connection and no transmit buffer is left
 *
 * Context: process, sleeps until hardware has given up its entries.
 */
void irdma_addrs_stop(struct irdma_device *dev)
{
	struct irdma_addrs *addrs = dev->addrs;

	hwent_drain(addrs, &addrs->ah_table);
	hwent_drain(addrs, &addrs->arp_table);
	irdma_cqp_flush_submitted(dev);
	flush_work(&addrs->answer_work);
	release_stuck(addrs);
	WARN_ON(!hash_empty(addrs->ahs));
	WARN_ON(!hash_empty(addrs->arps));
	WARN_ON(!hash_empty(addrs->ports));
	xa_destroy(&addrs->arp_by_idx);
	ida_destroy(&addrs->arp_ids);
	mutex_destroy(&addrs->refresh_lock);
	kfree(addrs);
	dev->addrs = NULL;
}
