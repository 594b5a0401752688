// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Addresses, routes and neighbours of the net device and of the VLAN devices on it
 * (spec 03, 4.11, 4.12, 6.5, 6.6, 9.5).
 *
 * Look-ups ask the kernel's own tables under RCU, so they are never out of date and take
 * no RTNL.  The notifiers, registered once a module, only start a work item that compares
 * what there is with what the connection engine was told of, and tells it the difference
 * without any lock of the network stack held.  Neighbour updates change the hardware ARP
 * entry in place at once.
 */
#include <linux/if_vlan.h>
#include <linux/inetdevice.h>
#include <linux/slab.h>
#include <net/addrconf.h>
#include <net/arp.h>
#include <net/ip6_route.h>
#include <net/ndisc.h>
#include <net/netevent.h>
#include <net/route.h>

#include "cm.h"
#include "utils.h"

/* There is no event for the end of duplicate address detection, which takes about a second. */
#define TENTATIVE_RETRY_MS	500
#define MISSING_GRACE_MS	1000

/**
 * struct known_addr - an address in a scan of the net devices
 * @entry: in the list of the scan
 * @addr: the address
 * @ifindex: of the device that has it
 * @missing: since when (jiffies) it is away, 0: it is there
 */
struct known_addr {
	struct list_head entry;
	struct irdma_cm_laddr addr;
	int ifindex;
	unsigned long missing;
};

/**
 * struct addr_scan - a walk over all addresses
 * @list: what was found, &struct known_addr
 * @tentative: an address is not usable yet
 * @err: -ENOMEM
 */
struct addr_scan {
	struct list_head list;
	bool tentative;
	int err;
};

static LIST_HEAD(watched);
static DEFINE_SPINLOCK(watched_lock);

/* --- devices and local addresses --- */

static u16 vlan_of(const struct net_device *ndev)
{
	return is_vlan_dev(ndev) ? vlan_dev_vlan_id(ndev) : IRDMA_CM_NO_VLAN;
}

static bool is_ours(const struct irdma_device *dev, const struct net_device *ndev)
{
	if (ndev == dev->lan->netdev)
		return true;
	return is_vlan_dev(ndev) && vlan_dev_real_dev(ndev) == dev->lan->netdev;
}

static void fill_ipv4(u32 *ip, __be32 addr)
{
	memset(ip, 0, 4 * sizeof(*ip));
	ip[0] = ntohl(addr);
}

static void fill_ipv6(u32 *ip, const struct in6_addr *addr)
{
	int i;

	for (i = 0; i < 4; i++)
		ip[i] = ntohl(addr->s6_addr32[i]);
}

static struct in6_addr to_in6(const u32 *ip)
{
	struct in6_addr addr;
	int i;

	for (i = 0; i < 4; i++)
		addr.s6_addr32[i] = htonl(ip[i]);
	return addr;
}

static void fill_laddr(struct irdma_cm_laddr *laddr, const struct net_device *ndev, bool ipv4,
		       const u32 *ip)
{
	memset(laddr, 0, sizeof(*laddr));
	memcpy(laddr->ip, ip, sizeof(laddr->ip));
	laddr->ipv4 = ipv4;
	laddr->vlan = vlan_of(ndev);
	ether_addr_copy(laddr->mac, ndev->dev_addr);
}

/* The device of ours that has an IPv4 address; under RCU. */
static struct net_device *owner_ipv4(struct irdma_device *dev, __be32 ip)
{
	struct net_device *ndev = __ip_dev_find(dev_net(dev->lan->netdev), ip, false);

	return ndev && is_ours(dev, ndev) ? ndev : NULL;
}

/* The same for IPv6; the net device goes before its VLANs, which may share its addresses. */
static struct net_device *owner_ipv6(struct irdma_device *dev, const struct in6_addr *ip)
{
	struct net_device *netdev = dev->lan->netdev, *upper;
	struct net *net = dev_net(netdev);
	struct list_head *iter;

	if (!ipv6_mod_enabled())
		return NULL;
	if (ipv6_chk_addr(net, ip, netdev, 1))
		return netdev;
	netdev_for_each_upper_dev_rcu(netdev, upper, iter)
		if (is_vlan_dev(upper) && ipv6_chk_addr(net, ip, upper, 1))
			return upper;
	return NULL;
}

static struct net_device *owner(struct irdma_device *dev, bool ipv4, const u32 *ip)
{
	struct in6_addr addr6;

	if (ipv4)
		return owner_ipv4(dev, htonl(ip[0]));
	addr6 = to_in6(ip);
	return owner_ipv6(dev, &addr6);
}

/**
 * irdma_get_vlan_ipv4 - VLAN and MAC address that go with one of our IPv4 addresses
 * @dev: device
 * @ip: the address, host order
 * @addr: filled in
 *
 * Context: any.
 * Return: 0 or -EADDRNOTAVAIL.
 */
int irdma_get_vlan_ipv4(struct irdma_device *dev, u32 ip, struct irdma_cm_laddr *addr)
{
	const u32 words[4] = { ip };
	struct net_device *ndev;

	rcu_read_lock();
	ndev = owner_ipv4(dev, htonl(ip));
	if (ndev)
		fill_laddr(addr, ndev, true, words);
	rcu_read_unlock();
	return ndev ? 0 : -EADDRNOTAVAIL;
}

/**
 * irdma_get_vlan_mac_ipv6 - VLAN and MAC address that go with one of our IPv6 addresses
 * @dev: device
 * @ip: the address, four host-order words
 * @addr: filled in
 *
 * An address that the net device shares with a VLAN on it, as link-local ones are, is taken
 * for that of the net device.
 *
 * Context: any.
 * Return: 0 or -EADDRNOTAVAIL.
 */
int irdma_get_vlan_mac_ipv6(struct irdma_device *dev, const u32 *ip,
			    struct irdma_cm_laddr *addr)
{
	struct in6_addr addr6 = to_in6(ip);
	struct net_device *ndev;

	rcu_read_lock();
	ndev = owner_ipv6(dev, &addr6);
	if (ndev)
		fill_laddr(addr, ndev, false, ip);
	rcu_read_unlock();
	return ndev ? 0 : -EADDRNOTAVAIL;
}

static void scan_add(struct addr_scan *scan, const struct net_device *ndev, bool ipv4,
		     const u32 *ip)
{
	struct known_addr *known = kzalloc(sizeof(*known), GFP_ATOMIC);

	if (!known) {
		scan->err = -ENOMEM;
		return;
	}
	fill_laddr(&known->addr, ndev, ipv4, ip);
	known->ifindex = ndev->ifindex;
	list_add_tail(&known->entry, &scan->list);
}

static void scan_ipv4(struct addr_scan *scan, struct net_device *ndev)
{
	struct in_device *in_dev = __in_dev_get_rcu(ndev);
	const struct in_ifaddr *ifa;
	u32 ip[4];

	if (!in_dev)
		return;
	in_dev_for_each_ifa_rcu(ifa, in_dev) {
		fill_ipv4(ip, ifa->ifa_local);
		scan_add(scan, ndev, true, ip);
	}
}

static void scan_ipv6(struct addr_scan *scan, struct net_device *ndev)
{
	struct inet6_dev *in6_dev = __in6_dev_get(ndev);
	const struct inet6_ifaddr *ifp;
	u32 ip[4];

	if (!in6_dev)
		return;
	list_for_each_entry_rcu(ifp, &in6_dev->addr_list, if_list) {
		if (ifp->flags & IFA_F_DADFAILED)
			continue;
		if ((ifp->flags & IFA_F_TENTATIVE) && !(ifp->flags & IFA_F_OPTIMISTIC)) {
			scan->tentative = true;
			continue;
		}
		fill_ipv6(ip, &ifp->addr);
		scan_add(scan, ndev, false, ip);
	}
}

static void scan_device(struct addr_scan *scan, struct net_device *ndev)
{
	if (!netif_running(ndev))
		return;
	scan_ipv4(scan, ndev);
	scan_ipv6(scan, ndev);
}

static void scan_free(struct list_head *list)
{
	struct known_addr *known, *next;

	list_for_each_entry_safe(known, next, list, entry)
		kfree(known);
	INIT_LIST_HEAD(list);
}

/* All addresses that we have now. */
static int scan_all(struct irdma_device *dev, struct addr_scan *scan)
{
	struct net_device *netdev = dev->lan->netdev, *upper;
	struct list_head *iter;

	INIT_LIST_HEAD(&scan->list);
	scan->tentative = false;
	scan->err = 0;
	rcu_read_lock();
	scan_device(scan, netdev);
	netdev_for_each_upper_dev_rcu(netdev, upper, iter)
		if (is_vlan_dev(upper))
			scan_device(scan, upper);
	rcu_read_unlock();
	if (scan->err)
		scan_free(&scan->list);
	return scan->err;
}

/**
 * irdma_addr_for_each - walk over our addresses of a family
 * @dev: device
 * @ipv4: family
 * @fn: called for each, may sleep; ends the walk by a result that is not 0
 * @arg: for @fn
 *
 * Context: process.
 * Return: the last result of @fn, 0 without addresses, or -ENOMEM.
 */
int irdma_addr_for_each(struct irdma_device *dev, bool ipv4,
			int (*fn)(const struct irdma_cm_laddr *addr, void *arg), void *arg)
{
	struct known_addr *known;
	struct addr_scan scan;
	int ret;

	ret = scan_all(dev, &scan);
	if (ret)
		return ret;
	list_for_each_entry(known, &scan.list, entry) {
		if (known->addr.ipv4 != ipv4)
			continue;
		ret = fn(&known->addr, arg);
		if (ret)
			break;
	}
	scan_free(&scan.list);
	return ret;
}

/* --- routes --- */

static u8 user_prio(struct irdma_device *dev, struct net_device *ndev, u8 tos)
{
	const struct irdma_qos *qos = &dev->lan->qos;
	u32 prio;

	if (qos->dscp_mode)
		return qos->dscp_map[tos >> 2];
	prio = rt_tos2priority(tos);
	if (is_vlan_dev(ndev))
		return vlan_dev_get_egress_qos_mask(ndev, prio) >> VLAN_PRIO_SHIFT;
	return prio & 7;
}

/* Pin the ARP entry of a neighbour whose address is known; otherwise have it resolved. */
static int pin_neighbour(struct irdma_device *dev, struct neighbour *neigh, bool ipv4,
			 struct irdma_cm_route *route)
{
	struct irdma_arp_key key = { .ipv4 = ipv4, .ifindex = neigh->dev->ifindex };
	bool valid = READ_ONCE(neigh->nud_state) & NUD_VALID;
	int idx;

	/* Our packets do not pass the stack, which has to be told that the entry is in use. */
	neigh_event_send(neigh, NULL);
	if (!valid)
		return -EAGAIN;
	if (ipv4)
		fill_ipv4(key.ip, *(__be32 *)neigh->primary_key);
	else
		fill_ipv6(key.ip, (struct in6_addr *)neigh->primary_key);
	neigh_ha_snapshot(route->remote_mac, neigh, neigh->dev);
	idx = irdma_arp_get(dev, &key, route->remote_mac);
	if (idx < 0)
		return idx;
	route->arp_idx = idx;
	return 0;
}

static int pin_dst(struct irdma_device *dev, struct dst_entry *dst, const void *daddr, bool ipv4,
		   struct net_device *ndev, struct irdma_cm_route *route)
{
	struct neighbour *neigh;
	int err;

	if (dst->dev != ndev)
		return -EHOSTUNREACH;
	neigh = dst_neigh_lookup(dst, daddr);
	if (!neigh)
		return -EHOSTUNREACH;
	err = pin_neighbour(dev, neigh, ipv4, route);
	neigh_release(neigh);
	route->mtu = min_t(u32, route->mtu, dst_mtu(dst));
	return err;
}

/**
 * irdma_addr_resolve_neigh - find and pin the way to an IPv4 address
 * @dev: device
 * @ndev: net device that has @src
 * @src: our address
 * @dst: the peer's address
 * @route: filled in: MTU, MAC address and ARP index of the next hop
 *
 * Context: any, under RCU.
 * Return: 0, -EHOSTUNREACH, -EAGAIN while the neighbour is being resolved, -ENOSPC.
 */
static int irdma_addr_resolve_neigh(struct irdma_device *dev, struct net_device *ndev, u32 src,
				    u32 dst, struct irdma_cm_route *route)
{
	struct flowi4 fl4 = {
		.daddr = htonl(dst),
		.saddr = htonl(src),
		.flowi4_oif = ndev->ifindex,
	};
	struct rtable *rt = ip_route_output_key(dev_net(ndev), &fl4);
	int err;

	if (IS_ERR(rt))
		return -EHOSTUNREACH;
	err = pin_dst(dev, &rt->dst, &fl4.daddr, true, ndev, route);
	ip_rt_put(rt);
	return err;
}

/**
 * irdma_get_dst_ipv6 - route to an IPv6 address
 * @ndev: net device that has @src
 * @src: our address
 * @dst: the peer's address
 *
 * Context: any.
 * Return: a route that the caller releases, or NULL if there is none.
 */
static struct dst_entry *irdma_get_dst_ipv6(struct net_device *ndev, const struct in6_addr *src,
					    const struct in6_addr *dst)
{
	struct flowi6 fl6 = {
		.daddr = *dst,
		.saddr = *src,
		.flowi6_oif = ndev->ifindex,
	};
	struct dst_entry *entry = ip6_route_output(dev_net(ndev), NULL, &fl6);

	if (!entry->error)
		return entry;
	dst_release(entry);
	return NULL;
}

/**
 * irdma_addr_resolve_neigh_ipv6 - find and pin the way to an IPv6 address
 * @dev: device
 * @ndev: net device that has @src
 * @src: our address
 * @dst: the peer's address
 * @route: filled in: MTU, MAC address and ARP index of the next hop
 *
 * Context: any, under RCU.
 * Return: as irdma_addr_resolve_neigh().
 */
static int irdma_addr_resolve_neigh_ipv6(struct irdma_device *dev, struct net_device *ndev,
					 const u32 *src, const u32 *dst,
					 struct irdma_cm_route *route)
{
	struct in6_addr src6 = to_in6(src), dst6 = to_in6(dst);
	struct dst_entry *entry = irdma_get_dst_ipv6(ndev, &src6, &dst6);
	int err;

	if (!entry)
		return -EHOSTUNREACH;
	err = pin_dst(dev, entry, &dst6, false, ndev, route);
	dst_release(entry);
	return err;
}

/* The peer is this device: the next hop is our own MAC address. */
static int pin_ourselves(struct irdma_device *dev, struct net_device *ndev,
			 const struct irdma_cm_quad *quad, struct irdma_cm_route *route)
{
	struct irdma_arp_key key = { .ipv4 = quad->ipv4, .ifindex = ndev->ifindex };
	int idx;

	memcpy(key.ip, quad->remote_ip, sizeof(key.ip));
	ether_addr_copy(route->remote_mac, ndev->dev_addr);
	route->loopback = true;
	idx = irdma_arp_get(dev, &key, route->remote_mac);
	if (idx < 0)
		return idx;
	route->arp_idx = idx;
	return 0;
}

/* The net device of a connection: that of the frame's VLAN, or the owner of the address. */
static struct net_device *device_of(struct irdma_device *dev, const struct irdma_cm_quad *quad)
{
	if (quad->vlan != IRDMA_CM_NO_VLAN)
		return __vlan_find_dev_deep_rcu(dev->lan->netdev, htons(ETH_P_8021Q), quad->vlan);
	return owner(dev, quad->ipv4, quad->local_ip);
}

/**
 * irdma_addr_resolve - find and pin the way to a peer
 * @dev: device
 * @quad: addresses; VLAN of the frame of a passive connection
 * @tos: type of service, selects the priority
 * @route: filled in; irdma_arp_put() of its index unpins
 *
 * Context: any.
 * Return: 0, -EADDRNOTAVAIL not our address, -EHOSTUNREACH, -EAGAIN while the neighbour is
 * being resolved, -ENOSPC.
 */
int irdma_addr_resolve(struct irdma_device *dev, const struct irdma_cm_quad *quad, u8 tos,
		       struct irdma_cm_route *route)
{
	struct net_device *ndev;
	int err;

	memset(route, 0, sizeof(*route));
	rcu_read_lock();
	ndev = device_of(dev, quad);
	if (!ndev) {
		err = -EADDRNOTAVAIL;
		goto unlock;
	}
	route->mtu = min(READ_ONCE(ndev->mtu), dev->mtu);
	route->vlan = vlan_of(ndev);
	route->prio = user_prio(dev, ndev, tos);
	ether_addr_copy(route->local_mac, ndev->dev_addr);
	if (owner(dev, quad->ipv4, quad->remote_ip))
		err = pin_ourselves(dev, ndev, quad, route);
	else if (quad->ipv4)
		err = irdma_addr_resolve_neigh(dev, ndev, quad->local_ip[0], quad->remote_ip[0],
					       route);
	else
		err = irdma_addr_resolve_neigh_ipv6(dev, ndev, quad->local_ip, quad->remote_ip,
						    route);
unlock:
	rcu_read_unlock();
	return err;
}

/* --- changes --- */

static struct known_addr *find_known(struct list_head *list, const struct known_addr *what)
{
	struct known_addr *known;

	list_for_each_entry(known, list, entry)
		if (known->ifindex == what->ifindex &&
		    !memcmp(&known->addr, &what->addr, sizeof(what->addr)))
			return known;
	return NULL;
}

/* Our own addresses may be next hops of loopback connections. */
static void update_own_arp(struct irdma_device *dev, const struct known_addr *known, bool up)
{
	struct irdma_arp_key key = { .ipv4 = known->addr.ipv4, .ifindex = known->ifindex };

	memcpy(key.ip, known->addr.ip, sizeof(key.ip));
	irdma_arp_update(dev, &key, up ? known->addr.mac : NULL);
}

/* Does another interface, or the same one with another MAC address, have the address now? */
static bool address_moved(struct list_head *now, const struct known_addr *what)
{
	struct known_addr *known;

	list_for_each_entry(known, now, entry)
		if (known->addr.ipv4 == what->addr.ipv4 &&
		    !memcmp(known->addr.ip, what->addr.ip, sizeof(what->addr.ip)))
			return true;
	return false;
}

/*
 * Has the address been away long enough?  The LAN driver closes and opens its interface to
 * change traffic classes, and an administrator may: like those of the host's own TCP, our
 * connections and listeners outlive that.
 */
static bool addr_is_gone(struct list_head *now, struct known_addr *known)
{
	if (!known->missing)
		known->missing = jiffies ?: 1;
	return address_moved(now, known) ||
	       time_after_eq(jiffies, known->missing + msecs_to_jiffies(MISSING_GRACE_MS));
}

/* Returns whether an address is missing that may come back. */
static bool refresh(struct irdma_device *dev, struct list_head *now)
{
	struct irdma_addrs *addrs = dev->addrs;
	struct known_addr *known, *next;
	bool missing = false;

	list_for_each_entry_safe(known, next, &addrs->known, entry) {
		if (find_known(now, known)) {
			known->missing = 0;
			continue;
		}
		if (!addr_is_gone(now, known)) {
			missing = true;
			continue;
		}
		list_del(&known->entry);
		irdma_if_notify(dev->cm, &known->addr, false);
		update_own_arp(dev, known, false);
		kfree(known);
	}
	list_for_each_entry_safe(known, next, now, entry) {
		if (find_known(&addrs->known, known))
			continue;
		list_move_tail(&known->entry, &addrs->known);
		update_own_arp(dev, known, true);
		irdma_if_notify(dev->cm, &known->addr, true);
	}
	return missing;
}

static void refresh_work(struct work_struct *work)
{
	struct irdma_addrs *addrs = container_of(to_delayed_work(work), struct irdma_addrs,
						 refresh_work);
	struct irdma_device *dev = addrs->dev;
	struct addr_scan scan;
	bool missing = false;

	mutex_lock(&addrs->refresh_lock);
	if (!scan_all(dev, &scan)) {
		missing = refresh(dev, &scan.list);
		scan_free(&scan.list);
	}
	mutex_unlock(&addrs->refresh_lock);
	if (scan.err || scan.tentative || missing)
		queue_delayed_work(dev->wq, &addrs->refresh_work,
				   msecs_to_jiffies(TENTATIVE_RETRY_MS));
}

/**
 * irdma_addr_watch - begin to follow the addresses of a device
 * @dev: device; its connection engine is there
 *
 * Context: process.
 */
void irdma_addr_watch(struct irdma_device *dev)
{
	struct irdma_addrs *addrs = dev->addrs;

	INIT_DELAYED_WORK(&addrs->refresh_work, refresh_work);
	spin_lock_bh(&watched_lock);
	list_add_tail(&addrs->device_entry, &watched);
	spin_unlock_bh(&watched_lock);
	queue_delayed_work(dev->wq, &addrs->refresh_work, 0);
}

/**
 * irdma_addr_unwatch - undo irdma_addr_watch()
 * @dev: device; its connection engine is still there, and is told nothing afterwards
 *
 * Context: process, sleeps.
 */
void irdma_addr_unwatch(struct irdma_device *dev)
{
	struct irdma_addrs *addrs = dev->addrs;

	spin_lock_bh(&watched_lock);
	list_del(&addrs->device_entry);
	spin_unlock_bh(&watched_lock);
	cancel_delayed_work_sync(&addrs->refresh_work);
	scan_free(&addrs->known);
}

static void addr_changed(const struct net_device *ndev)
{
	struct irdma_addrs *addrs;

	spin_lock_bh(&watched_lock);
	list_for_each_entry(addrs, &watched, device_entry)
		if (is_ours(addrs->dev, ndev))
			mod_delayed_work(addrs->dev->wq, &addrs->refresh_work, 0);
	spin_unlock_bh(&watched_lock);
}

static int inetaddr_event(struct notifier_block *nb, unsigned long event, void *ptr)
{
	const struct in_ifaddr *ifa = ptr;

	addr_changed(ifa->ifa_dev->dev);
	return NOTIFY_DONE;
}

static int inet6addr_event(struct notifier_block *nb, unsigned long event, void *ptr)
{
	const struct inet6_ifaddr *ifp = ptr;

	addr_changed(ifp->idev->dev);
	return NOTIFY_DONE;
}

static int netdevice_event(struct notifier_block *nb, unsigned long event, void *ptr)
{
	switch (event) {
	case NETDEV_UP:
	case NETDEV_DOWN:
	case NETDEV_CHANGEADDR:
	case NETDEV_UNREGISTER:
		addr_changed(netdev_notifier_info_to_dev(ptr));
		break;
	}
	return NOTIFY_DONE;
}

static void neigh_changed(struct neighbour *neigh)
{
	bool ipv4 = neigh->tbl->family == AF_INET;
	struct irdma_arp_key key = { .ipv4 = ipv4, .ifindex = neigh->dev->ifindex };
	bool valid = READ_ONCE(neigh->nud_state) & NUD_VALID;
	struct irdma_addrs *addrs;
	u8 mac[MAX_ADDR_LEN];

	if (ipv4)
		fill_ipv4(key.ip, *(__be32 *)neigh->primary_key);
	else
		fill_ipv6(key.ip, (struct in6_addr *)neigh->primary_key);
	neigh_ha_snapshot(mac, neigh, neigh->dev);
	spin_lock_bh(&watched_lock);
	list_for_each_entry(addrs, &watched, device_entry)
		if (is_ours(addrs->dev, neigh->dev))
			irdma_arp_update(addrs->dev, &key, valid ? mac : NULL);
	spin_unlock_bh(&watched_lock);
}

static int netevent_event(struct notifier_block *nb, unsigned long event, void *ptr)
{
	struct neighbour *neigh = ptr;

	if (event == NETEVENT_NEIGH_UPDATE &&
	    (neigh->tbl->family == AF_INET || neigh->tbl->family == AF_INET6))
		neigh_changed(neigh);
	return NOTIFY_DONE;
}

static struct notifier_block inetaddr_nb = { .notifier_call = inetaddr_event };
static struct notifier_block inet6addr_nb = { .notifier_call = inet6addr_event };
static struct notifier_block netdevice_nb = { .notifier_call = netdevice_event };
static struct notifier_block netevent_nb = { .notifier_call = netevent_event };

/**
 * irdma_addr_register_notifiers - once a module, before the first device
 *
 * Context: process.
 * Return: 0 or a negative errno.
 */
int irdma_addr_register_notifiers(void)
{
	int err;

	err = register_netdevice_notifier(&netdevice_nb);
	if (err)
		return err;
	err = register_inetaddr_notifier(&inetaddr_nb);
	if (err)
		goto unregister_netdevice;
	err = register_inet6addr_notifier(&inet6addr_nb);
	if (err)
		goto unregister_inetaddr;
	err = register_netevent_notifier(&netevent_nb);
	if (err)
		goto unregister_inet6addr;
	return 0;

unregister_inet6addr:
	unregister_inet6addr_notifier(&inet6addr_nb);
unregister_inetaddr:
	unregister_inetaddr_notifier(&inetaddr_nb);
unregister_netdevice:
	unregister_netdevice_notifier(&netdevice_nb);
	return err;
}

/**
 * irdma_addr_unregister_notifiers - undo irdma_addr_register_notifiers()
 *
 * Context: process.
 */
void irdma_addr_unregister_notifiers(void)
{
	unregister_netevent_notifier(&netevent_nb);
	unregister_inet6addr_notifier(&inet6addr_nb);
	unregister_inetaddr_notifier(&inetaddr_nb);
	unregister_netdevice_notifier(&netdevice_nb);
}
