/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the LAN driver (ice, i40e) lends to us, in one form for both generations.
 *
 * ice_if.c and i40e_if.c fill a struct irdma_lan from the LAN driver's auxiliary device
 * and hand it to irdma_device_add(); they pass the LAN driver's events to
 * irdma_lan_event().  Nothing else in the tree knows a LAN driver's types.
 */
#ifndef IRDMA_LAN_H
#define IRDMA_LAN_H

#include <linux/netdevice.h>
#include <linux/pci.h>

#define IRDMA_MAX_USER_PRIO	8
#define IRDMA_MAX_DSCP		64

struct irdma_device;
struct irdma_hw_gen;
struct irdma_lan;

/**
 * struct irdma_qos - priorities as the LAN driver has them configured
 * @num_tc: traffic classes in use, at least 1
 * @up2tc: traffic class of each 802.1p user priority
 * @rel_bw: relative bandwidth of each traffic class, 0 reads as 1
 * @dscp_mode: priorities are taken from the DSCP instead of the VLAN tag
 * @dscp_map: user priority of each DSCP, valid in @dscp_mode
 * @qs_handle: fixed queue-set handle of each user priority (X722 only)
 */
struct irdma_qos {
	u8 num_tc;
	u8 up2tc[IRDMA_MAX_USER_PRIO];
	u8 rel_bw[IRDMA_MAX_USER_PRIO];
	bool dscp_mode;
	u8 dscp_map[IRDMA_MAX_DSCP];
	u16 qs_handle[IRDMA_MAX_USER_PRIO];
};

/**
 * struct irdma_lan_ops - what the LAN driver does for us; all may sleep
 * @add_qset: register a transmit queue set of traffic class @tc, returns its TEID
 * @del_qset: undo @add_qset
 * @request_reset: ask for a reset of this function; returns at once
 * @set_filter: steer this function's iWARP packets to the protocol engine, or stop that
 * @get_qos: read the priorities anew
 */
struct irdma_lan_ops {
	int (*add_qset)(struct irdma_lan *lan, u16 qs_handle, u8 tc, u32 *teid);
	int (*del_qset)(struct irdma_lan *lan, u16 qs_handle, u8 tc, u32 teid);
	int (*request_reset)(struct irdma_lan *lan);
	int (*set_filter)(struct irdma_lan *lan, bool enable);
	int (*get_qos)(struct irdma_lan *lan, struct irdma_qos *qos);
};

/**
 * struct irdma_vector - one interrupt vector lent by the LAN driver
 * @idx: index in the function's MSI-X table
 * @irq: Linux interrupt number
 */
struct irdma_vector {
	u16 idx;
	int irq;
};

/**
 * struct irdma_lan - the LAN function our device lives on
 * @pdev: PCI function, also the DMA device
 * @netdev: its net device
 * @regs: kernel mapping of BAR 0
 * @pf_id: PF number, used as HMC function id
 * @vsi: hardware number of the main VSI (0 on X722)
 * @num_vectors: vectors in @vectors
 * @vectors: interrupt vectors for our use
 * @qos: priorities at probe time
 * @ops: services of the LAN driver
 * @priv: for the file that filled this structure
 */
struct irdma_lan {
	struct pci_dev *pdev;
	struct net_device *netdev;
	void __iomem *regs;
	u8 pf_id;
	u16 vsi;
	unsigned int num_vectors;
	struct irdma_vector *vectors;
	struct irdma_qos qos;
	const struct irdma_lan_ops *ops;
	void *priv;
};

/**
 * enum irdma_lan_event - what the LAN driver tells us (spec 01, 1.5)
 * @IRDMA_LAN_MTU_CHANGED: the net device has a new MTU
 * @IRDMA_LAN_TC_CHANGING: traffic classes are about to change, stop transmitting
 * @IRDMA_LAN_TC_CHANGED: traffic classes have changed, go on
 * @IRDMA_LAN_CRIT_ERR: critical error, the argument holds the OICR cause bits
 */
enum irdma_lan_event {
	IRDMA_LAN_MTU_CHANGED,
	IRDMA_LAN_TC_CHANGING,
	IRDMA_LAN_TC_CHANGED,
	IRDMA_LAN_CRIT_ERR,
};

struct irdma_device *irdma_device_add(struct irdma_lan *lan, const struct irdma_hw_gen *gen);
void irdma_device_remove(struct irdma_device *dev, bool in_reset);
void irdma_lan_event(struct irdma_device *dev, enum irdma_lan_event event, u32 arg);

int irdma_ice_register(void);
void irdma_ice_unregister(void);

#endif
