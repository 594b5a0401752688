/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * rdma_fault.h - control commands that make the RDMA half misbehave (rdma_fault.c).
 */
#ifndef RDMA_FAULT_H
#define RDMA_FAULT_H

#include "ctl.h"

extern const char cqp_help[], ae_help[], hmc_help[], critical_help[], events_help[];
int cqp_command(void *ctx, int argc, char **argv, FILE *out);
int ae_command(void *ctx, int argc, char **argv, FILE *out);
int hmc_command(void *ctx, int argc, char **argv, FILE *out);
int critical_command(void *ctx, int argc, char **argv, FILE *out);
int events_command(void *ctx, int argc, char **argv, FILE *out);

#endif
