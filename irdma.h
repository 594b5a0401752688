/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The device object: one per LAN function, from irdma_device_add() to
 * irdma_device_remove().  Each layer keeps its state in one member that its own
 * header defines.
 */
#ifndef IRDMA_H
#define IRDMA_H

#include <rdma/ib_verbs.h>

#include "compat.h"
#include "lan.h"
#include "hw.h"
#include "cqp.h"
#include "hmc.h"

struct irdma_cqp;
struct irdma_hmc;
struct irdma_events;
struct irdma_ilq;
struct irdma_ieq;
struct irdma_cm_core;
struct irdma_addrs;
struct irdma_ws;
struct irdma_stats;

/* what the committed HMC gives us; set by hmc.c */
struct irdma_limits {
	u32 qps;
	u32 cqs;
	u32 mrs;
	u32 ahs;
	u32 arps;
	u32 pds;
	u32 ceqs;
};

/**
 * struct irdma_device - one RDMA device
 * @ibdev: the verbs device; must be first
 * @lan: the function it lives on
 * @gen: what its hardware generation looks like
 * @limits: numbers of objects
 * @fw_ver: firmware version, major << 32 | minor
 * @dead: set once when the hardware is gone (see irdma_mark_dead())
 * @hw_wq: events and command callbacks (hw.c), high priority
 * @reset_work: asks the LAN driver for a reset (hw.c)
 * @cqp: control queue pair (cqp.c)
 * @hmc: host memory cache and PBLE pool (hmc.c)
 * @events: CEQs, AEQ and their vectors (hw.c)
 * @num_comp_vectors: CEQs that verbs CQs may use
 * @qp_ae: receiver of QP events, set by verbs before irdma_hw_start()
 * @lost: called once when the device died, in any context; set like @qp_ae
 * @qps: QP number -> struct irdma_qp_conn, looked up under RCU; use irdma_qp_lookup()
 * @cq_handlers: CQ number -> struct irdma_cq_handler, looked up under RCU
 * @qp_ids: QP numbers in use
 * @next_qpn: where the search for a free one begins; a hint
 * @cq_ids: CQ numbers in use
 * @pd_ids: PD numbers in use
 * @mr_ids: STag indexes in use
 * @ah_ids: address handles in use
 * @lost_objects: what the adapter did not give up; their numbers stay in use
 * @q2_bufs: Q2 buffers of QPs (qp.c)
 * @ilq: raw queue of connection set-up frames (ilq.c)
 * @ieq: raw queue of partial FPDUs (ieq.c)
 * @cm: connection engine (cm.c)
 * @addrs: addresses of the net device and its VLANs, ARP table, local ports (utils.c)
 * @ws: transmit scheduler (qos.c)
 * @stats: hardware counters (stats.c)
 * @wq: unbound work queue for what must sleep, reclaim-safe
 * @mtu: of the net device, bytes
 * @link_up: the net device runs and has a carrier (main.c)
 * @link_mbps: speed of its link (main.c)
 * @speed_work: reads @link_mbps when the RTNL is free (main.c)
 */
struct irdma_device {
	struct ib_device ibdev;
	struct irdma_lan *lan;
	const struct irdma_hw_gen *gen;
	struct irdma_limits limits;
	u64 fw_ver;
	unsigned long dead;
	struct workqueue_struct *hw_wq;
	struct work_struct reset_work;

	struct irdma_cqp *cqp;
	struct irdma_hmc *hmc;
	struct irdma_events *events;
	unsigned int num_comp_vectors;
	irdma_qp_ae_fn qp_ae;
	void (*lost)(struct irdma_device *dev);

	struct xarray qps;
	struct xarray cq_handlers;
	struct ida qp_ids;
	u32 next_qpn;
	struct ida cq_ids;
	struct ida pd_ids;
	struct ida mr_ids;
	struct ida ah_ids;
	atomic_t lost_objects;
	struct dma_pool *q2_bufs;

	struct irdma_ilq *ilq;
	struct irdma_ieq *ieq;
	struct irdma_cm_core *cm;
	struct irdma_addrs *addrs;
	struct irdma_ws *ws;
	struct irdma_stats *stats;
	struct workqueue_struct *wq;
	u32 mtu;
	bool link_up;
	u32 link_mbps;
	struct delayed_work speed_work;
};

/* What has the adapter's DMA mappings. */
static inline struct device *dma_dev(const struct irdma_device *dev)
{
	return &dev->lan->pdev->dev;
}

static inline struct irdma_device *to_irdma_dev(struct ib_device *ibdev)
{
	return container_of(ibdev, struct irdma_device, ibdev);
}

/* main.c */
void irdma_port_speed(struct irdma_device *dev, u16 *speed, u8 *width);

extern const struct ib_device_ops irdma_verbs_ops;	/* verbs.c */
extern const struct ib_device_ops irdma_iwcm_ops;	/* cm glue: iw_* operations */
extern const struct ib_device_ops irdma_stats_ops;	/* stats.c */

#endif
