// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * nic_type.c - the table of adapters (nic_type.h).  Looked up once, at start.
 */
#include "nic.h"

static const struct rdma_regs e810_rdma = {
	.cqpdb = 0x00500800, .cqptail = 0x00500880, .cqperrcodes = 0x0050a200,
	.ccqpstatus = 0x0050a000, .ccqplow = 0x0050a080, .ccqphigh = 0x0050a100,
	.cqarm = 0x00502c00, .cqack = 0x00502c80, .aeqalloc = 0x00502d00, .wqealloc = 0x00504400,
	.cpustatus = 0x0050ba5c, .lbarctrl = 0x0009de74, .ceqctl = 0x0015c000,
	.aeqctl = 0x0016cb00, .hmc_errorinfo = 0x00520400, .hmc_errordata = 0x00520500,
	.criterr = 0x00534000, .db_page = 0x007f0000,
};

static const struct nic_type types[] = {
	{
		.name = "e810", .gen = ENG_E810,
		.pci_device = 0x1592, .pci_subsystem = 0x0002, .pci_revision = 0x02,
		.rdma = &e810_rdma,
		.reset = e810_reset, .reg_read = e810_reg_read, .reg_write = e810_reg_write,
		.link_event = aq_link_event, .rx_ready = lan_rx_ready, .rx_frame = lan_rx_frame,
	},
};

const char nic_type_names[] = "e810";

const struct nic_type *nic_type_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (!strcmp(types[i].name, name))
			return &types[i];
	return NULL;
}
