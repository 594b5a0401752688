// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The module: parameters, life cycle of a device, port state.
 *
 * ice_if.c calls irdma_device_add(), irdma_device_remove() and irdma_lan_event(), all under
 * the auxiliary device's lock.  Order of bring-up and teardown: spec 01, 3.5 and 3.7; of
 * events: 1.5.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/dma-mapping.h>
#include <linux/ethtool.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/rtnetlink.h>
#include <net/addrconf.h>

#include "cm_hw.h"
#include "irdma.h"
#include "qos.h"
#include "qp.h"
#include "stats.h"
#include "verbs.h"

#define IRDMA_MIN_MTU_IPV4	576	/* RFC 791 */
#define IRDMA_SPEED_RETRY	(HZ / 20)

MODULE_AUTHOR("The irdma founders");
MODULE_DESCRIPTION("iWARP driver for Intel E810");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_VERSION(IRDMA_VERSION);
MODULE_SOFTDEP("pre: ice");

unsigned int irdma_limits_sel = IRDMA_LIMITS_SEL_DEFAULT;
unsigned int irdma_resource_profile = IRDMA_PROFILE_DEFAULT;
static unsigned int irdma_roce_ena;

/**
 * struct irdma_param - a numeric module parameter
 * @value: variable that it sets
 * @min: lowest value allowed
 * @max: highest value allowed
 * @bias: what is added to the administrator's number
 * @hint: said when the value is refused
 */
struct irdma_param {
	unsigned int *value;
	unsigned int min;
	unsigned int max;
	unsigned int bias;
	const char *hint;
};

static int irdma_param_set(const char *val, const struct kernel_param *kp)
{
	const struct irdma_param *p = kp->arg;
	unsigned int num;

	if (!val || kstrtouint(val, 0, &num) || num < p->min || num > p->max) {
		pr_err("%s=%.*s is not allowed, only %u to %u%s\n", kp->name,
		       val ? (int)strcspn(val, "\n") : 0, val ?: "", p->min, p->max, p->hint);
		return -EINVAL;
	}
	*p->value = num + p->bias;
	return 0;
}

static int irdma_param_get(char *buf, const struct kernel_param *kp)
{
	const struct irdma_param *p = kp->arg;

	return sysfs_emit(buf, "%u\n", *p->value - p->bias);
}

static const struct kernel_param_ops irdma_param_ops = {
	.set = irdma_param_set,
	.get = irdma_param_get,
};

static const struct irdma_param irdma_param_limits_sel = {
	.value = &irdma_limits_sel, .max = IRDMA_LIMITS_SEL_MAX, .hint = "",
};

static const struct irdma_param irdma_param_resource_profile = {
	.value = &irdma_resource_profile, .max = IRDMA_PROFILE_MAX - IRDMA_PROFILE_DEFAULT,
	.bias = IRDMA_PROFILE_DEFAULT, .hint = "",
};

static const struct irdma_param irdma_param_roce_ena = {
	.value = &irdma_roce_ena, .hint = ": this driver does iWARP, not RoCEv2",
};

module_param_cb(limits_sel, &irdma_param_ops, (void *)&irdma_param_limits_sel, 0444);
MODULE_PARM_DESC(limits_sel,
		 "Queue pairs: 0=128 1=1024 2=2048 3=4096 4=16384 5=65536 6=131072 7=262144; "
		 "more take more memory at load (0-7, default: 1)");
module_param_cb(resource_profile, &irdma_param_ops, (void *)&irdma_param_resource_profile, 0444);
MODULE_PARM_DESC(resource_profile,
		 "Hardware resources: 0=PF only 1=weighted to VFs 2=even distribution "
		 "(0-2, default: 0)");
module_param_cb(roce_ena, &irdma_param_ops, (void *)&irdma_param_roce_ena, 0444);
MODULE_PARM_DESC(roce_ena, "RoCEv2 instead of iWARP: not supported, must be 0 (default: 0)");

/* Link speed, Mb/s, up to which a pair of InfiniBand's speed and width is reported. */
static const struct {
	u32 mbps;
	u8 speed;
	u8 width;
} irdma_speeds[] = {
	{ SPEED_1000,	IB_SPEED_SDR,	IB_WIDTH_1X },
	{ SPEED_10000,	IB_SPEED_FDR10,	IB_WIDTH_1X },
	{ SPEED_20000,	IB_SPEED_DDR,	IB_WIDTH_4X },
	{ SPEED_25000,	IB_SPEED_EDR,	IB_WIDTH_1X },
	{ SPEED_40000,	IB_SPEED_FDR10,	IB_WIDTH_4X },
	{ SPEED_100000,	IB_SPEED_EDR,	IB_WIDTH_4X },
};

/**
 * irdma_port_speed() - speed of the link when it last changed
 * @dev: the device
 * @speed: gets IB_SPEED_*
 * @width: gets IB_WIDTH_*
 *
 * Takes no lock: removal waits for those who ask, and may itself run under the RTNL.
 * Context: any.
 */
void irdma_port_speed(struct irdma_device *dev, u16 *speed, u8 *width)
{
	u32 mbps = READ_ONCE(dev->link_mbps);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(irdma_speeds) - 1; i++)
		if (mbps <= irdma_speeds[i].mbps)
			break;
	*speed = irdma_speeds[i].speed;
	*width = irdma_speeds[i].width;
}

/* Under the RTNL. */
static void irdma_port_read_speed(struct irdma_device *dev)
{
	struct ethtool_link_ksettings settings = {};

	if (!netif_device_present(dev->lan->netdev) ||
	    __ethtool_get_link_ksettings(dev->lan->netdev, &settings) ||
	    settings.base.speed == (u32)SPEED_UNKNOWN)
		return;
	WRITE_ONCE(dev->link_mbps, settings.base.speed);
}

/* Does not wait for the RTNL, whose holder may be waiting for the removal of the device. */
static void irdma_port_speed_work(struct work_struct *work)
{
	struct irdma_device *dev = container_of(work, struct irdma_device, speed_work.work);

	if (!rtnl_trylock()) {
		queue_delayed_work(dev->wq, &dev->speed_work, IRDMA_SPEED_RETRY);
		return;
	}
	irdma_port_read_speed(dev);
	rtnl_unlock();
}

static void irdma_port_notify(struct irdma_device *dev)
{
	bool up = netif_running(dev->lan->netdev) && netif_carrier_ok(dev->lan->netdev);
	struct ib_event event = {
		.device = &dev->ibdev,
		.element.port_num = 1,
		.event = up ? IB_EVENT_PORT_ACTIVE : IB_EVENT_PORT_ERR,
	};

	if (dev->link_up == up)
		return;
	dev->link_up = up;
	if (!IRDMA_CORE_SENDS_PORT_EVENTS)
		ib_dispatch_event(&event);
}

/* Under the RTNL, which serialises it. */
static int irdma_netdev_event(struct notifier_block *nb, unsigned long event, void *ptr)
{
	struct net_device *netdev = netdev_notifier_info_to_dev(ptr);
	struct ib_device *ibdev;
	struct irdma_device *dev;

	if (event != NETDEV_UP && event != NETDEV_DOWN && event != NETDEV_CHANGE &&
	    event != NETDEV_CHANGENAME)
		return NOTIFY_DONE;
	ibdev = ib_device_get_by_netdev(netdev, RDMA_DRIVER_IRDMA);
	if (!ibdev)
		return NOTIFY_DONE;
	dev = to_irdma_dev(ibdev);
	if (event == NETDEV_CHANGENAME) {
		strscpy(ibdev->iw_ifname, netdev->name, sizeof(ibdev->iw_ifname));
	} else {
		irdma_port_read_speed(dev);
		irdma_port_notify(dev);
	}
	ib_device_put(ibdev);
	return NOTIFY_DONE;
}

static struct notifier_block irdma_netdev_nb = {
	.notifier_call = irdma_netdev_event,
};

static void irdma_check_mtu(struct irdma_device *dev)
{
	if (dev->mtu < IRDMA_MIN_MTU_IPV4)
		irdma_warn(dev, "MTU %u is below %u, which IPv4 needs\n", dev->mtu,
			   IRDMA_MIN_MTU_IPV4);
	else if (dev->mtu < IPV6_MIN_MTU)
		irdma_warn(dev, "MTU %u is below %u, which IPv6 needs\n", dev->mtu,
			   IPV6_MIN_MTU);
}

static struct irdma_device *irdma_device_alloc(struct irdma_lan *lan,
					       const struct irdma_hw_gen *gen)
{
	struct irdma_device *dev;

	dev = ib_alloc_device(irdma_device, ibdev);
	if (!dev)
		return NULL;
	dev->wq = alloc_workqueue("irdma-%s", WQ_UNBOUND | WQ_MEM_RECLAIM, 0,
				  pci_name(lan->pdev));
	if (!dev->wq)
		goto dealloc;
	/* Coherent memory comes in pages otherwise, and there may be many QPs. */
	dev->q2_bufs = dma_pool_create("irdma_q2", &lan->pdev->dev, IRDMA_Q2_SIZE, IRDMA_Q2_SIZE, 0);
	if (!dev->q2_bufs)
		goto destroy_wq;
	dev->lan = lan;
	dev->gen = gen;
	dev->mtu = lan->netdev->mtu;
	dev->qp_ae = irdma_qp_ae;
	dev->lost = irdma_qps_lost;
	INIT_DELAYED_WORK(&dev->speed_work, irdma_port_speed_work);
	xa_init_flags(&dev->qps, XA_FLAGS_LOCK_IRQ);
	xa_init_flags(&dev->cq_handlers, XA_FLAGS_LOCK_IRQ);
	ida_init(&dev->qp_ids);
	ida_init(&dev->cq_ids);
	ida_init(&dev->pd_ids);
	ida_init(&dev->mr_ids);
	ida_init(&dev->ah_ids);
	return dev;

destroy_wq:
	destroy_workqueue(dev->wq);
dealloc:
	ib_dealloc_device(&dev->ibdev);
	return NULL;
}

static void irdma_device_free(struct irdma_device *dev)
{
	destroy_workqueue(dev->wq);
	dma_pool_destroy(dev->q2_bufs);
	WARN_ON(!xa_empty(&dev->qps));
	WARN_ON(!xa_empty(&dev->cq_handlers));
	ida_destroy(&dev->qp_ids);
	ida_destroy(&dev->cq_ids);
	ida_destroy(&dev->pd_ids);
	ida_destroy(&dev->mr_ids);
	ida_destroy(&dev->ah_ids);
	ib_dealloc_device(&dev->ibdev);
}

static int irdma_register(struct irdma_device *dev)
{
	struct ib_device *ibdev = &dev->ibdev;
	int err;

	ibdev->node_type = RDMA_NODE_RNIC;
	ibdev->phys_port_cnt = 1;
	ibdev->num_comp_vectors = dev->num_comp_vectors;
	ibdev->dev.parent = &dev->lan->pdev->dev;
	addrconf_addr_eui48((u8 *)&ibdev->node_guid, dev->lan->netdev->dev_addr);
	strscpy(ibdev->iw_ifname, dev->lan->netdev->name, sizeof(ibdev->iw_ifname));
	ib_set_device_ops(ibdev, &irdma_verbs_ops);
	ib_set_device_ops(ibdev, &irdma_iwcm_ops);
	ib_set_device_ops(ibdev, &irdma_stats_ops);
	err = ib_device_set_netdev(ibdev, dev->lan->netdev, 1);
	if (err)
		return err;

	/* One element of a scatterlist may be as long as a memory region. */
	dma_set_max_seg_size(&dev->lan->pdev->dev, UINT_MAX);
	dev->link_up = netif_running(dev->lan->netdev) && netif_carrier_ok(dev->lan->netdev);
	irdma_port_speed_work(&dev->speed_work.work);
	return ib_register_device(ibdev, "irdma%d", &dev->lan->pdev->dev);
}

static void irdma_unregister(struct irdma_device *dev)
{
	ib_unregister_device(&dev->ibdev);
	cancel_delayed_work_sync(&dev->speed_work);
}

/**
 * irdma_device_add() - bring an RDMA device up on a LAN function
 * @lan: the function; stays the caller's and must outlive the device
 * @gen: its hardware generation
 *
 * Context: process, may sleep, under the auxiliary device's lock.
 * Return: the device, or an ERR_PTR with everything undone and a message given.
 */
struct irdma_device *irdma_device_add(struct irdma_lan *lan, const struct irdma_hw_gen *gen)
{
	struct irdma_device *dev;
	int err;

	dev = irdma_device_alloc(lan, gen);
	if (!dev)
		return ERR_PTR(-ENOMEM);
	irdma_check_mtu(dev);
	err = irdma_stats_create(dev);
	if (err)
		goto free_device;
	err = irdma_hw_start(dev);
	if (err)
		goto destroy_stats;
	err = irdma_net_start(dev);
	if (err)
		goto stop_hw;
	err = irdma_register(dev);
	if (err)
		goto stop_net;
	/* The last step: packets reach the protocol engine from here on. */
	err = lan->ops->set_filter(lan, true);
	if (err)
		goto unregister;
	irdma_stats_start(dev);
	return dev;

unregister:
	irdma_unregister(dev);
stop_net:
	cancel_delayed_work_sync(&dev->speed_work);
	irdma_net_stop(dev);
stop_hw:
	irdma_hw_stop(dev);
destroy_stats:
	irdma_stats_destroy(dev);
free_device:
	irdma_err(dev, "cannot bring up RDMA on %s: %pe\n", netdev_name(lan->netdev),
		  ERR_PTR(err));
	irdma_device_free(dev);
	return ERR_PTR(err);
}

/**
 * irdma_device_remove() - undo irdma_device_add()
 * @dev: the device; gone on return
 * @in_reset: the hardware has been reset already and must not be given commands
 *
 * Works on a dead device as well.  Context: process, may sleep, under the auxiliary device's
 * lock.
 */
void irdma_device_remove(struct irdma_device *dev, bool in_reset)
{
	struct irdma_lan *lan = dev->lan;

	if (in_reset)
		irdma_mark_reset(dev);
	else
		irdma_cqp_check(dev);
	/* A failure leaves packets to a device that drops them. */
	lan->ops->set_filter(lan, false);
	irdma_stats_stop(dev);
	irdma_unregister(dev);
	irdma_net_stop(dev);
	irdma_hw_stop(dev);
	irdma_stats_destroy(dev);
	irdma_device_free(dev);
}

/**
 * irdma_lan_event() - react to an event of the LAN driver
 * @dev: the device that it concerns
 * @event: what happened
 * @arg: depends on @event
 *
 * Context: process, may sleep, under the auxiliary device's lock: never waits for removal.
 */
void irdma_lan_event(struct irdma_device *dev, enum irdma_lan_event event, u32 arg)
{
	switch (event) {
	case IRDMA_LAN_MTU_CHANGED:
		if (dev->mtu == dev->lan->netdev->mtu)
			break;
		dev->mtu = dev->lan->netdev->mtu;
		irdma_check_mtu(dev);
		irdma_net_mtu_changed(dev);
		break;
	case IRDMA_LAN_TC_CHANGING:
		irdma_qos_tc_changing(dev);
		break;
	case IRDMA_LAN_TC_CHANGED:
		irdma_qos_tc_changed(dev);
		break;
	case IRDMA_LAN_CRIT_ERR:
		irdma_hw_crit_err(dev, arg);
		break;
	}
}

static int __init irdma_init(void)
{
	int err;

	err = irdma_mr_init();
	if (err)
		return err;
	err = irdma_qp_init();
	if (err)
		goto exit_mr;
	err = register_netdevice_notifier(&irdma_netdev_nb);
	if (err)
		goto exit_qp;
	err = irdma_net_register();
	if (err)
		goto unregister_notifier;
	err = irdma_ice_register();
	if (err)
		goto unregister_net;
	return 0;

unregister_net:
	irdma_net_unregister();
unregister_notifier:
	unregister_netdevice_notifier(&irdma_netdev_nb);
exit_qp:
	irdma_qp_exit();
exit_mr:
	irdma_mr_exit();
	return err;
}
module_init(irdma_init);

static void __exit irdma_exit(void)
{
	irdma_ice_unregister();
	irdma_net_unregister();
	unregister_netdevice_notifier(&irdma_netdev_nb);
	irdma_qp_exit();
	irdma_mr_exit();
}
module_exit(irdma_exit);
