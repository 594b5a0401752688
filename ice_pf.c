// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * ice's older interface, kernels with linux/net/intel/iidc.h (spec 01, 1.4).  It hands out
 * struct ice_pf, which only ice's private headers define, so the places of the few members
 * that are read come from the type information of the kernel's own ice module
 * (scripts/ice-layout, at build time).  Reads cannot fault, and irdma_ice_fill_lan() compares
 * with what is known from public sources before anything is used.  On kernels with symbol
 * versions, which cover the layout of struct ice_pf, an ice of another layout than the one
 * that was built for does not even let the module load.
 *
 * Called by ice_if.c under the auxiliary device's lock.
 */
#include <linux/minmax.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "ice_if.h"
#include "ice_layout.h"

#define ICE_MAX_RDMA_VECTORS	2048	/* MSI-X table size of a PCI function */

/**
 * irdma_ice_parent_of() - handle of ice's exported functions
 * @adev: auxiliary device that ice created
 *
 * Return: the handle; lives as long as @adev.
 */
struct irdma_ice_parent *irdma_ice_parent_of(struct auxiliary_device *adev)
{
	return container_of(adev, struct iidc_auxiliary_dev, adev)->pf;
}

/* Copy a member at @offset of an object of ice's; -EFAULT if there is no memory. */
static long irdma_ice_read(const void *object, size_t offset, void *to, size_t len)
{
	return copy_from_kernel_nofault(to, object + offset, len);
}

/**
 * irdma_ice_fill_lan() - learn what there is to know of the function
 * @pf: handle of the function
 * @lan: gets netdev, regs, pf_id and vsi; pdev is set already
 *
 * Return: 0, or -ENODEV if ice's structures do not look as they did at build time.
 */
int irdma_ice_fill_lan(struct irdma_ice_parent *pf, struct irdma_lan *lan)
{
	void __iomem * const *bars = pcim_iomap_table(lan->pdev);
	void __iomem *regs;
	struct device *netdev_parent;
	struct pci_dev *pdev;
	void **vsis, *vsi;

	if (irdma_ice_read(pf, ICE_PF_PDEV, &pdev, sizeof(pdev)) || pdev != lan->pdev ||
	    irdma_ice_read(pf, ICE_PF_HW + ICE_HW_HW_ADDR, &regs, sizeof(regs)) ||
	    !regs || !bars || regs != bars[0] ||
	    irdma_ice_read(pf, ICE_PF_HW + ICE_HW_PF_ID, &lan->pf_id, sizeof(lan->pf_id)) ||
	    irdma_ice_read(pf, ICE_PF_VSI, &vsis, sizeof(vsis)) ||
	    irdma_ice_read(vsis, 0, &vsi, sizeof(vsi)) ||
	    irdma_ice_read(vsi, ICE_VSI_NETDEV, &lan->netdev, sizeof(lan->netdev)) ||
	    irdma_ice_read(lan->netdev, offsetof(struct net_device, dev.parent),
			   &netdev_parent, sizeof(netdev_parent)) ||
	    netdev_parent != &lan->pdev->dev ||
	    irdma_ice_read(vsi, ICE_VSI_VSI_NUM, &lan->vsi, sizeof(lan->vsi))) {
		dev_err(&lan->pdev->dev,
			"irdma: offsets do not fit the loaded ice module; rebuild irdma for it\n");
		return -ENODEV;
	}
	lan->regs = regs;
	return 0;
}

/**
 * irdma_ice_get_vectors() - find the interrupt vectors that ice has set aside for RDMA
 * @pf: handle of the function
 * @lan: gets vectors and num_vectors
 * @wanted: how many at most
 *
 * Context: process, may sleep.
 * Return: 0 if there is at least one, else a negative errno.
 */
int irdma_ice_get_vectors(struct irdma_ice_parent *pf, struct irdma_lan *lan,
			  unsigned int wanted)
{
	struct msix_entry *entries, entry;
	u16 num, base;
	unsigned int i;

	if (irdma_ice_read(pf, ICE_PF_NUM_RDMA_MSIX, &num, sizeof(num)) ||
	    irdma_ice_read(pf, ICE_PF_RDMA_BASE_VECTOR, &base, sizeof(base)) ||
	    irdma_ice_read(pf, ICE_PF_MSIX_ENTRIES, &entries, sizeof(entries)) ||
	    !entries || num > ICE_MAX_RDMA_VECTORS || base > ICE_MAX_RDMA_VECTORS)
		return -ENODEV;

	wanted = min_t(unsigned int, wanted, num);
	lan->vectors = kcalloc(wanted, sizeof(*lan->vectors), GFP_KERNEL);
	if (!lan->vectors)
		return -ENOMEM;
	for (i = 0; i < wanted; i++) {
		/* Entries that ice could not get an interrupt for are zero, at the end. */
		if (irdma_ice_read(entries, (base + i) * sizeof(entry), &entry, sizeof(entry)) ||
		    !entry.vector)
			break;
		lan->vectors[i].idx = entry.entry;
		lan->vectors[i].irq = entry.vector;
	}
	lan->num_vectors = i;
	if (i)
		return 0;
	kfree(lan->vectors);
	lan->vectors = NULL;
	return -ENODEV;
}

/**
 * irdma_ice_put_vectors() - undo irdma_ice_get_vectors()
 * @pf: handle of the function
 * @lan: owner of the vectors, whose handlers are gone; ice keeps the vectors themselves
 */
void irdma_ice_put_vectors(struct irdma_ice_parent *pf, struct irdma_lan *lan)
{
	kfree(lan->vectors);
	lan->vectors = NULL;
	lan->num_vectors = 0;
}

/**
 * irdma_ice_read_qos() - read the priorities that ice has set up
 * @pf: handle of the function
 * @qos: gets them
 */
void irdma_ice_read_qos(struct irdma_ice_parent *pf, struct irdma_ice_qos *qos)
{
	ice_get_qos_params(pf, qos);
}
