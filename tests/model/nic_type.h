/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * nic_type.h - what differs between adapters: one constant table each.  Everything
 * else (transport, control queue, host memory cache, event queues, data engine,
 * wire) is shared and looks here.
 */
#ifndef NIC_TYPE_H
#define NIC_TYPE_H

#include "engine.h"

struct nic;

/* Registers of the protocol engine, offsets in BAR 0 (specification 01, 2.1). */
struct rdma_regs {
	u32 cqpdb, cqptail, cqperrcodes;	/* tail: [10:0] and bit 31 error */
	u32 ccqpstatus, ccqplow, ccqphigh;	/* status: bit 0 done, bit 31 error */
	u32 cqarm, cqack, aeqalloc, wqealloc;
	u32 cpustatus;		/* three in a row, 0x80 each: firmware ready */
	u32 lbarctrl;		/* [5:4] doorbell window: 2 = 8 MB */
	u32 ceqctl, aeqctl;	/* vectors; one CEQ register each 4 bytes */
	u32 hmc_errorinfo, hmc_errordata, criterr;
	u32 db_page;		/* user space's doorbells: + 0 send queue, + 64 arm CQ */
};

struct nic_type {
	const char *name;	/* of --type */
	enum eng_gen gen;	/* WQE, CQE and context layouts */
	u16 pci_device, pci_subsystem;
	u8 pci_revision;
	const struct rdma_regs *rdma;

	/* firmware and LAN half */
	void (*reset)(struct nic *d, bool core);
	u32  (*reg_read)(struct nic *d, u32 off);
	void (*reg_write)(struct nic *d, u32 off, u32 val);
	void (*link_event)(struct nic *d);	/* tell the driver about the link */
	bool (*rx_ready)(const struct nic *d);	/* there are receive buffers */
	void (*rx_frame)(struct nic *d, const u8 *frame, u32 len);
};

/* NULL: unknown name. */
const struct nic_type *nic_type_find(const char *name);
extern const char nic_type_names[];	/* for messages */

#endif
