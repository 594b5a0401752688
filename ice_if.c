// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The ice LAN driver (E810): binds to its auxiliary device, turns that into a struct irdma_lan
 * and passes its events up (spec 01, sections 1.3 to 1.5).  What differs between the forms of
 * ice's interface stands in ice_cdev.c and ice_pf.c.
 *
 * The driver core holds the device lock around probe and remove, ice holds it around the event
 * handler, so none of the three overlap for one device.
 */
#include <linux/auxiliary_bus.h>
#include <linux/bitfield.h>
#include <linux/cpumask.h>
#include <linux/io.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>

#include "hw.h"
#include "ice_if.h"

#define ICE_PF_FUNC_RID		0x0009e880	/* spec 01, 1.4 */
#define ICE_PF_FUNC_RID_FUNC	GENMASK(2, 0)

/**
 * struct irdma_ice - a bound function
 * @lan: what the rest of the driver sees
 * @parent: handle of ice's exported functions
 * @dev: our device on it
 * @link: in irdma_ice_list, so that an event finds us by @parent
 */
struct irdma_ice {
	struct irdma_lan lan;
	struct irdma_ice_parent *parent;
	struct irdma_device *dev;
	struct list_head link;
};

static LIST_HEAD(irdma_ice_list);
static DEFINE_MUTEX(irdma_ice_list_lock);

static struct irdma_ice *to_irdma_ice(struct irdma_lan *lan)
{
	return container_of(lan, struct irdma_ice, lan);
}

static int irdma_ice_add_qset(struct irdma_lan *lan, u16 qs_handle, u8 tc, u32 *teid)
{
	struct iidc_rdma_qset_params qset = {
		.qs_handle = qs_handle, .tc = tc, .vport_id = lan->vsi,
	};
	int err;

	err = ice_add_rdma_qset(to_irdma_ice(lan)->parent, &qset);
	if (!err)
		*teid = qset.teid;
	return err;
}

static int irdma_ice_del_qset(struct irdma_lan *lan, u16 qs_handle, u8 tc, u32 teid)
{
	struct iidc_rdma_qset_params qset = {
		.qs_handle = qs_handle, .tc = tc, .vport_id = lan->vsi, .teid = teid,
	};

	return ice_del_rdma_qset(to_irdma_ice(lan)->parent, &qset);
}

static int irdma_ice_request_reset(struct irdma_lan *lan)
{
	return ice_rdma_request_reset(to_irdma_ice(lan)->parent, IRDMA_ICE_FUNC_RESET);
}

static int irdma_ice_set_filter(struct irdma_lan *lan, bool enable)
{
	return ice_rdma_update_vsi_filter(to_irdma_ice(lan)->parent, lan->vsi, enable);
}

static int irdma_ice_get_qos(struct irdma_lan *lan, struct irdma_qos *qos)
{
	struct irdma_ice_qos *from;
	unsigned int i;

	from = kzalloc(sizeof(*from), GFP_KERNEL);
	if (!from)
		return -ENOMEM;
	irdma_ice_read_qos(to_irdma_ice(lan)->parent, from);

	memset(qos, 0, sizeof(*qos));
	qos->num_tc = clamp_t(u8, from->num_tc, 1, IRDMA_MAX_USER_PRIO);
	qos->dscp_mode = from->pfc_mode == IIDC_DSCP_PFC_MODE;
	for (i = 0; i < IRDMA_MAX_USER_PRIO; i++) {
		qos->up2tc[i] = from->up2tc[i];
		qos->rel_bw[i] = from->tc_info[i].rel_bw;
	}
	if (qos->dscp_mode)
		memcpy(qos->dscp_map, from->dscp_map, sizeof(qos->dscp_map));
	kfree(from);
	return 0;
}

static const struct irdma_lan_ops irdma_ice_lan_ops = {
	.add_qset = irdma_ice_add_qset,
	.del_qset = irdma_ice_del_qset,
	.request_reset = irdma_ice_request_reset,
	.set_filter = irdma_ice_set_filter,
	.get_qos = irdma_ice_get_qos,
};

/*
 * Whether what we were told describes one function: a mistake here would have us write to a
 * device that is not ours.
 */
static int irdma_ice_check(struct irdma_lan *lan)
{
	struct device *dev = &lan->pdev->dev;
	unsigned int i;
	u32 pf_id;

	if (!lan->netdev || lan->netdev->dev.parent != dev) {
		dev_err(dev, "irdma: ice's net device is not one of this function\n");
		return -ENODEV;
	}
	pf_id = FIELD_GET(ICE_PF_FUNC_RID_FUNC, readl(lan->regs + ICE_PF_FUNC_RID));
	if (lan->pf_id != pf_id) {
		dev_err(dev, "irdma: ice says function %u, the hardware says %u\n",
			lan->pf_id, pf_id);
		return -ENODEV;
	}
	for (i = 0; i < lan->num_vectors; i++) {
		if (lan->vectors[i].irq == pci_irq_vector(lan->pdev, lan->vectors[i].idx))
			continue;
		dev_err(dev, "irdma: MSI-X entry %u is interrupt %d, not %d as ice says\n",
			lan->vectors[i].idx, pci_irq_vector(lan->pdev, lan->vectors[i].idx),
			lan->vectors[i].irq);
		return -ENODEV;
	}
	return 0;
}

static int irdma_ice_probe(struct auxiliary_device *adev, const struct auxiliary_device_id *id)
{
	struct irdma_ice *ice;
	int err;

	ice = kzalloc(sizeof(*ice), GFP_KERNEL);
	if (!ice)
		return -ENOMEM;
	ice->parent = irdma_ice_parent_of(adev);
	ice->lan.pdev = to_pci_dev(adev->dev.parent);
	ice->lan.ops = &irdma_ice_lan_ops;

	err = irdma_ice_fill_lan(ice->parent, &ice->lan);
	if (err)
		goto free;
	/* One for each CPU; the first serves asynchronous events too.  Any number works. */
	err = irdma_ice_get_vectors(ice->parent, &ice->lan, num_online_cpus());
	if (err) {
		dev_err(&ice->lan.pdev->dev, "irdma: no interrupt vectors from ice: %pe\n",
			ERR_PTR(err));
		goto free;
	}
	err = irdma_ice_check(&ice->lan);
	if (err)
		goto put_vectors;
	err = irdma_ice_get_qos(&ice->lan, &ice->lan.qos);
	if (err)
		goto put_vectors;

	ice->dev = irdma_device_add(&ice->lan, &irdma_gen_e810);
	if (IS_ERR(ice->dev)) {
		err = PTR_ERR(ice->dev);
		goto put_vectors;
	}

	mutex_lock(&irdma_ice_list_lock);
	list_add(&ice->link, &irdma_ice_list);
	mutex_unlock(&irdma_ice_list_lock);
	auxiliary_set_drvdata(adev, ice);
	return 0;

put_vectors:
	irdma_ice_put_vectors(ice->parent, &ice->lan);
free:
	kfree(ice);
	return err;
}

static void irdma_ice_remove(struct auxiliary_device *adev)
{
	struct irdma_ice *ice = auxiliary_get_drvdata(adev);

	mutex_lock(&irdma_ice_list_lock);
	list_del(&ice->link);
	mutex_unlock(&irdma_ice_list_lock);

	irdma_device_remove(ice->dev, false);
	irdma_ice_put_vectors(ice->parent, &ice->lan);
	kfree(ice);
}

static struct irdma_ice *irdma_ice_find(struct irdma_ice_parent *parent)
{
	struct irdma_ice *ice, *found = NULL;

	mutex_lock(&irdma_ice_list_lock);
	list_for_each_entry(ice, &irdma_ice_list, link)
		if (ice->parent == parent)
			found = ice;
	mutex_unlock(&irdma_ice_list_lock);
	return found;
}

static void irdma_ice_event_handler(struct irdma_ice_parent *parent,
				    struct irdma_ice_event *event)
{
	struct irdma_ice *ice = irdma_ice_find(parent);

	/* The probe of the device has failed, or is still to come. */
	if (!ice)
		return;
	if (test_bit(IRDMA_ICE_EVENT(AFTER_MTU_CHANGE), event->type))
		irdma_lan_event(ice->dev, IRDMA_LAN_MTU_CHANGED, 0);
	if (test_bit(IRDMA_ICE_EVENT(BEFORE_TC_CHANGE), event->type))
		irdma_lan_event(ice->dev, IRDMA_LAN_TC_CHANGING, 0);
	if (test_bit(IRDMA_ICE_EVENT(AFTER_TC_CHANGE), event->type))
		irdma_lan_event(ice->dev, IRDMA_LAN_TC_CHANGED, 0);
	if (test_bit(IRDMA_ICE_EVENT(CRIT_ERR), event->type))
		irdma_lan_event(ice->dev, IRDMA_LAN_CRIT_ERR, event->reg);
}

/*
 * ice names its device after the protocol that devlink has selected, RoCEv2 unless told
 * otherwise; to ice itself the name makes no difference, so both run iWARP.
 */
static const struct auxiliary_device_id irdma_ice_ids[] = {
	{ .name = "ice.iwarp" },
	{ .name = "ice.roce" },
	{ }
};
MODULE_DEVICE_TABLE(auxiliary, irdma_ice_ids);

static struct irdma_ice_drv irdma_ice_driver = {
	.adrv = {
		.name = "ice",
		.id_table = irdma_ice_ids,
		.probe = irdma_ice_probe,
		.remove = irdma_ice_remove,
	},
	.event_handler = irdma_ice_event_handler,
};

/**
 * irdma_ice_register() - start to bind to the functions of ice
 *
 * Context: process, may sleep; functions that are there already are probed before it returns.
 * Return: 0 or a negative errno.
 */
int irdma_ice_register(void)
{
	return auxiliary_driver_register(&irdma_ice_driver.adrv);
}

/**
 * irdma_ice_unregister() - undo irdma_ice_register(), removing every device on ice
 *
 * Context: process, may sleep.
 */
void irdma_ice_unregister(void)
{
	auxiliary_driver_unregister(&irdma_ice_driver.adrv);
}
