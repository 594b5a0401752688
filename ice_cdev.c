// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * ice's public interface, kernels with linux/net/intel/iidc_rdma_ice.h (spec 01, 1.3).
 * Called by ice_if.c under the auxiliary device's lock.
 */
#include <linux/slab.h>

#include "ice_if.h"

/**
 * irdma_ice_parent_of() - handle of ice's exported functions
 * @adev: auxiliary device that ice created
 *
 * Return: the handle; lives as long as @adev.
 */
struct irdma_ice_parent *irdma_ice_parent_of(struct auxiliary_device *adev)
{
	return container_of(adev, struct iidc_rdma_core_auxiliary_dev, adev)->cdev_info;
}

/**
 * irdma_ice_fill_lan() - learn what there is to know of the function
 * @cdev: handle of the function
 * @lan: gets netdev, regs, pf_id and vsi; pdev is set already
 *
 * Return: 0, or -ENODEV if @cdev belongs to another PCI function than @lan.
 */
int irdma_ice_fill_lan(struct irdma_ice_parent *cdev, struct irdma_lan *lan)
{
	const struct iidc_rdma_priv_dev_info *info = cdev->iidc_priv;

	if (cdev->pdev != lan->pdev || !info || !info->hw_addr) {
		dev_err(&lan->pdev->dev, "irdma: ice gives no information on this function\n");
		return -ENODEV;
	}
	lan->netdev = info->netdev;
	lan->regs = info->hw_addr;
	lan->pf_id = info->pf_id;
	lan->vsi = info->vport_id;
	return 0;
}

/**
 * irdma_ice_get_vectors() - take interrupt vectors from ice's pool
 * @cdev: handle of the function
 * @lan: gets vectors and num_vectors
 * @wanted: how many at most
 *
 * Context: process, may sleep.
 * Return: 0 if there is at least one, else a negative errno.
 */
int irdma_ice_get_vectors(struct irdma_ice_parent *cdev, struct irdma_lan *lan,
			  unsigned int wanted)
{
	struct msix_entry entry;
	int err = 0;

	lan->vectors = kcalloc(wanted, sizeof(*lan->vectors), GFP_KERNEL);
	if (!lan->vectors)
		return -ENOMEM;
	for (lan->num_vectors = 0; lan->num_vectors < wanted; lan->num_vectors++) {
		err = ice_alloc_rdma_qvector(cdev, &entry);
		if (err)
			break;
		lan->vectors[lan->num_vectors].idx = entry.entry;
		lan->vectors[lan->num_vectors].irq = entry.vector;
	}
	if (lan->num_vectors)
		return 0;
	kfree(lan->vectors);
	lan->vectors = NULL;
	return err;
}

/**
 * irdma_ice_put_vectors() - undo irdma_ice_get_vectors()
 * @cdev: handle of the function
 * @lan: owner of the vectors, whose handlers are gone
 *
 * Context: process, may sleep.
 */
void irdma_ice_put_vectors(struct irdma_ice_parent *cdev, struct irdma_lan *lan)
{
	struct msix_entry entry;

	while (lan->num_vectors) {
		lan->num_vectors--;
		entry.entry = lan->vectors[lan->num_vectors].idx;
		entry.vector = lan->vectors[lan->num_vectors].irq;
		ice_free_rdma_qvector(cdev, &entry);
	}
	kfree(lan->vectors);
	lan->vectors = NULL;
}

/**
 * irdma_ice_read_qos() - read the priorities that ice has set up
 * @cdev: handle of the function
 * @qos: gets a copy; ice brings its own up to date before it sends the event of a change
 */
void irdma_ice_read_qos(struct irdma_ice_parent *cdev, struct irdma_ice_qos *qos)
{
	const struct iidc_rdma_priv_dev_info *info = cdev->iidc_priv;

	*qos = info->qos_info;
}
