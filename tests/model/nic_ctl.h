/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * nic_ctl.h - control commands of the NIC process and its report.
 */
#ifndef NIC_CTL_H
#define NIC_CTL_H

#include "ctl.h"

struct nic;

extern const struct ctl_cmd nic_commands[];
void nic_report(struct nic *d);		/* "still allocated" lines to the log */

#endif
