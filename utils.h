/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Hardware tables that connections share: local TCP ports (APBVT), ARP table, address
 * handles; and the addresses and routes of the net device (addr.c).
 *
 * An entry is written by the control queue, so it has a life of its own: it may be used by
 * many, is kept for the next user for a while, and is changed in place.  Users count it;
 * struct irdma_hwent brings hardware after what the users want.
 */
#ifndef IRDMA_UTILS_H
#define IRDMA_UTILS_H

#include <linux/hashtable.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "cm.h"
#include "irdma.h"

struct neighbour;

/**
 * struct irdma_waiter - who is told that hardware has an entry
 * @done: called once, process context, no lock held
 * @entry: private
 * @err: private
 */
struct irdma_waiter {
	void (*done)(struct irdma_waiter *waiter, int err);
	struct list_head entry;
	int err;
};

struct irdma_hwent;

/**
 * struct irdma_hwent_type - a kind of table entry
 * @prep: prepare the command that writes (@add) or removes the entry; lock held
 * @clear: give the command that removes an entry which is about to be written anew; lock
 *	held. Only for types whose entries change
 * @release: the entry is in no table of hardware and has no user: forget and free it; lock
 *	held
 * @keep: how many unused entries stay in hardware for the next user
 */
struct irdma_hwent_type {
	void (*prep)(struct irdma_hwent *ent, bool add);
	void (*clear)(struct irdma_hwent *ent);
	void (*release)(struct irdma_hwent *ent);
	unsigned int keep;
};

/**
 * struct irdma_hwent - state of an entry in a hardware table
 * @table: the table
 * @users: reaches 0 only under &irdma_addrs.lock, the rest is guarded by that lock
 * @wanted: hardware shall have it
 * @present: hardware has it
 * @stuck: hardware did not give it up, so it waits here for the next user
 * @busy: a command is in flight
 * @adding: that command writes the entry
 * @dirty: what hardware has is out of date
 * @uncleared: hardware did not give up what is to be written anew; written and read by the
 *	callbacks of commands, which come one at a time
 * @waiters: struct irdma_waiter
 * @idle: in the list of the table
 * @req: the command
 */
struct irdma_hwent {
	struct irdma_hwent_table *table;
	atomic_t users;
	bool wanted : 1;
	bool present : 1;
	bool stuck : 1;
	bool busy : 1;
	bool adding : 1;
	bool dirty : 1;
	bool uncleared;
	struct list_head waiters;
	struct list_head idle;
	struct irdma_cqp_req req;
};

/**
 * struct irdma_hwent_table - a hardware table of a device
 * @dev: device
 * @type: what its entries are
 * @idle: unused entries, oldest first
 * @idle_count: their number
 */
struct irdma_hwent_table {
	struct irdma_device *dev;
	const struct irdma_hwent_type *type;
	struct list_head idle;
	unsigned int idle_count;
};

/**
 * struct irdma_arp_key - a next hop
 * @ip: its address, IPv4 in word 0
 * @ifindex: net device it is reached through
 * @ipv4: family
 */
struct irdma_arp_key {
	u32 ip[4];
	int ifindex;
	u32 ipv4;
};

/**
 * struct irdma_ah_key - all that an address handle consists of
 * @src_ip: source address
 * @dst_ip: destination address
 * @arp_idx: ARP entry of the next hop
 * @vlan: VLAN id or IRDMA_CM_NO_VLAN
 * @prio: 802.1p priority of the tag
 * @tos: type of service or traffic class
 * @ipv4: family
 * @loopback: the peer is this device
 * @src_mac: source MAC address
 * @pad: 0
 *
 * Compared as bytes: no padding, all of it set.
 */
struct irdma_ah_key {
	u32 src_ip[4];
	u32 dst_ip[4];
	u16 arp_idx;
	u16 vlan;
	u8 prio;
	u8 tos;
	u8 ipv4;
	u8 loopback;
	u8 src_mac[ETH_ALEN];
	u8 pad[2];
};

struct irdma_ah;

#define IRDMA_PORT_HASH_BITS	10
#define IRDMA_ADDR_HASH_BITS	8

/**
 * struct irdma_addrs - tables of a device
 * @lock: all of it, but for what has a lock of its own
 * @submitter: the thread that holds @lock and gives a command
 * @ports: local TCP ports by number
 * @arps: next hop -> entry
 * @arp_by_idx: index -> entry
 * @arp_ids: indexes in use
 * @ahs: address handles by key
 * @port_table: local TCP ports, in use all of them
 * @arp_table: ARP entries
 * @ah_table: address handles
 * @answers: waiters that are told by @answer_work
 * @answer_work: tells them when a command failed within the call that gave it
 * @known: addresses that the connection engine was told of, under @refresh_lock
 * @refresh_lock: one refresh at a time
 * @refresh_work: compares @known with what the net devices have now
 * @device_entry: in the list of devices that the notifiers serve
 * @dev: device
 */
struct irdma_addrs {
	spinlock_t lock;
	struct task_struct *submitter;
	DECLARE_HASHTABLE(ports, IRDMA_PORT_HASH_BITS);
	DECLARE_HASHTABLE(arps, IRDMA_ADDR_HASH_BITS);
	struct xarray arp_by_idx;
	struct ida arp_ids;
	DECLARE_HASHTABLE(ahs, IRDMA_ADDR_HASH_BITS);
	struct irdma_hwent_table port_table;
	struct irdma_hwent_table arp_table;
	struct irdma_hwent_table ah_table;
	struct list_head answers;
	struct work_struct answer_work;

	struct list_head known;
	struct mutex refresh_lock;
	struct delayed_work refresh_work;
	struct list_head device_entry;
	struct irdma_device *dev;
};

/* utils.c */
int irdma_addrs_start(struct irdma_device *dev);
void irdma_addrs_stop(struct irdma_device *dev);
void irdma_answer(struct irdma_device *dev, struct irdma_waiter *waiter, int err);

int irdma_port_get(struct irdma_device *dev, u16 port, struct irdma_waiter *waiter);
void irdma_port_put(struct irdma_device *dev, u16 port);

int irdma_arp_get(struct irdma_device *dev, const struct irdma_arp_key *key, const u8 *mac);
void irdma_arp_put(struct irdma_device *dev, u16 idx);
void irdma_arp_update(struct irdma_device *dev, const struct irdma_arp_key *key, const u8 *mac);

struct irdma_ah *irdma_ah_get(struct irdma_device *dev, const struct irdma_ah_key *key,
			      struct irdma_waiter *waiter, struct irdma_ah **where,
			      int *status);
void irdma_ah_hold(struct irdma_ah *ah);
void irdma_ah_put(struct irdma_ah *ah);
u32 irdma_ah_index(const struct irdma_ah *ah);

/* addr.c */
int irdma_addr_register_notifiers(void);
void irdma_addr_unregister_notifiers(void);
void irdma_addr_watch(struct irdma_device *dev);
void irdma_addr_unwatch(struct irdma_device *dev);
int irdma_get_vlan_ipv4(struct irdma_device *dev, u32 ip, struct irdma_cm_laddr *addr);
int irdma_get_vlan_mac_ipv6(struct irdma_device *dev, const u32 *ip,
			    struct irdma_cm_laddr *addr);
int irdma_addr_for_each(struct irdma_device *dev, bool ipv4,
			int (*fn)(const struct irdma_cm_laddr *addr, void *arg), void *arg);
int irdma_addr_resolve(struct irdma_device *dev, const struct irdma_cm_quad *quad, u8 tos,
		       struct irdma_cm_route *route);

#endif
