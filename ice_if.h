/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What ice_if.c needs from the form of ice's interface that the target kernel has: ice_cdev.c
 * speaks the public one (iidc_rdma.h), ice_pf.c the older one (iidc.h), where a part of the
 * answers stands in ice's private structures.  Kbuild compiles one of the two.
 */
#ifndef IRDMA_ICE_IF_H
#define IRDMA_ICE_IF_H

#include "compat.h"
#include "lan.h"

#ifdef IRDMA_HAVE_IIDC_RDMA
#include <linux/net/intel/iidc_rdma.h>
#include <linux/net/intel/iidc_rdma_ice.h>
#define irdma_ice_parent	iidc_rdma_core_dev_info
#define irdma_ice_drv		iidc_rdma_core_auxiliary_drv
#define irdma_ice_event		iidc_rdma_event
#define irdma_ice_qos		iidc_rdma_qos_params
#define IRDMA_ICE_EVENT(name)	IIDC_RDMA_EVENT_##name
#define IRDMA_ICE_FUNC_RESET	IIDC_FUNC_RESET
#else
#include <linux/net/intel/iidc.h>
#define irdma_ice_parent	ice_pf
#define irdma_ice_drv		iidc_auxiliary_drv
#define irdma_ice_event		iidc_event
#define irdma_ice_qos		iidc_qos_params
#define IRDMA_ICE_EVENT(name)	IIDC_EVENT_##name
#define IRDMA_ICE_FUNC_RESET	IIDC_PFR
#endif

struct irdma_ice_parent *irdma_ice_parent_of(struct auxiliary_device *adev);
int irdma_ice_fill_lan(struct irdma_ice_parent *parent, struct irdma_lan *lan);
int irdma_ice_get_vectors(struct irdma_ice_parent *parent, struct irdma_lan *lan,
			  unsigned int wanted);
void irdma_ice_put_vectors(struct irdma_ice_parent *parent, struct irdma_lan *lan);
void irdma_ice_read_qos(struct irdma_ice_parent *parent, struct irdma_ice_qos *qos);

#endif
