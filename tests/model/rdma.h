/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * rdma.h - what the control commands ask of the RDMA half (rdma.c).
 */
#ifndef RDMA_H
#define RDMA_H

#include <stdio.h>
#include "engine.h"

struct nic;

/* Objects that exist; all zero after an orderly module removal. */
struct rdma_usage {
	struct eng_usage eng;
	u32 cqp, ceq, aeq, sd, hmc_pages, apbvt, ws_node;
	u64 cqp_ops;		/* commands since the CQP was created or "cqp clear" */
};

void rdma_usage(struct nic *d, struct rdma_usage *u);
void rdma_listeners(FILE *out);
void rdma_cqp_log(FILE *out);		/* one line an opcode: number, name, count */
void rdma_cqp_clear(void);
const struct eng_stats *rdma_stats(void);	/* NULL: no engine */

#endif
