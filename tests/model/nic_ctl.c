// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * nic_ctl.c - control commands of the NIC process, and the end report.  Called
 * from the event loop (nic.c) between two rounds, so nothing is in progress.
 */
#define _GNU_SOURCE
#include "nic.h"
#include "nic_ctl.h"
#include "rdma.h"
#include "rdma_fault.h"
#include "strict.h"

struct counter {
	const char *name;
	u64 value;
	bool object;		/* must be zero after an orderly removal of the driver */
};

enum { MAX_COUNTERS = 64 };

static u32 list_counters(struct nic *d, struct counter *c)
{
	const struct eng_stats none = { 0 }, *s = rdma_stats() ? rdma_stats() : &none;
	struct rdma_usage u;
	u32 n = 0;

	rdma_usage(d, &u);
#define OBJ(name, v) (c[n++] = (struct counter){ name, v, true })
#define CNT(name, v) (c[n++] = (struct counter){ name, v, false })
	OBJ("cqp", u.cqp);
	OBJ("ceq", u.ceq);
	OBJ("aeq", u.aeq);
	OBJ("qp", u.eng.qp);
	OBJ("uda_qp", u.eng.uda_qp);
	OBJ("cq", u.eng.cq);
	OBJ("mr", u.eng.mr);
	OBJ("mw", u.eng.mw);
	OBJ("ah", u.eng.ah);
	OBJ("arp", u.eng.arp);
	OBJ("qhash", u.eng.qhash);
	OBJ("apbvt", u.apbvt);
	OBJ("pble", u.eng.pble);
	OBJ("hmc_pages", u.hmc_pages);
	OBJ("sd", u.sd);
	OBJ("ws_node", u.ws_node);
	CNT("strict", strict_count());
	CNT("cqp_ops", u.cqp_ops);
	CNT("reg_reads", d->cnt.reg_reads);
	CNT("reg_writes", d->cnt.reg_writes);
	CNT("irqs", d->cnt.irqs);
	CNT("lan_tx_pkts", d->cnt.tx_pkts);
	CNT("lan_rx_pkts", d->cnt.rx_pkts);
	CNT("lan_rx_drop", d->cnt.rx_drop);
	CNT("wire_tx_drop", d->cnt.tx_drop);
	CNT("rdma_in_segs", s->in_segs);
	CNT("rdma_out_segs", s->out_segs);
	CNT("rdma_retrans_segs", s->retrans_segs);
	CNT("rdma_rto", s->rto_fired);
	CNT("rdma_fast_retrans", s->fast_retrans);
	CNT("rdma_dup_segs", s->dup_segs);
	CNT("rdma_ooo_segs", s->ooo_segs);
	CNT("rdma_exception_segs", s->exception_segs);
	CNT("rdma_arms_unseen", s->arms_unseen);
	CNT("rdma_proto_err", s->in_proto_err);
#undef OBJ
#undef CNT
	return n;
}

void nic_report(struct nic *d)
{
	struct counter c[MAX_COUNTERS];
	u32 n = list_counters(d, c), left = 0;

	for (u32 i = 0; i < n; i++) {
		if (!c[i].object || !c[i].value)
			continue;
		logmsg("still allocated: %s %llu", c[i].name, (unsigned long long)c[i].value);
		left++;
	}
	if (!left)
		logmsg("nothing is allocated");
}

static int cmd_counters(void *ctx, int argc, char **argv, FILE *out)
{
	struct counter c[MAX_COUNTERS];
	u32 n = list_counters(ctx, c);

	for (u32 i = 0; i < n; i++) {
		if (argc == 2 && !strcmp(argv[1], "objects") && !c[i].object)
			continue;
		fprintf(out, "%s %llu\n", c[i].name, (unsigned long long)c[i].value);
	}
	return 0;
}

static int cmd_link(void *ctx, int argc, char **argv, FILE *out)
{
	if (argc != 2 || (strcmp(argv[1], "up") && strcmp(argv[1], "down")))
		return ctl_fail(out, "usage: link up|down");
	wire_admin(ctx, !strcmp(argv[1], "down"));
	return 0;
}

static int cmd_trace(void *ctx, int argc, char **argv, FILE *out)
{
	struct nic *d = ctx;
	u64 level;

	if (argc == 2 && !strcmp(argv[1], "on"))
		d->trace = 1;
	else if (argc == 2 && !strcmp(argv[1], "off"))
		d->trace = 0;
	else if (argc == 2 && parse_num(argv[1], 0, 2, &level))
		d->trace = level;
	else
		return ctl_fail(out, "usage: trace on|off|0|1|2");
	return 0;
}

static int cmd_regs(void *ctx, int argc, char **argv, FILE *out)
{
	struct nic *d = ctx;

	if (argc == 2 && !strcmp(argv[1], "count"))
		fprintf(out, "reads %llu\nwrites %llu\n", (unsigned long long)d->cnt.reg_reads,
			(unsigned long long)d->cnt.reg_writes);
	else if (argc == 2 && !strcmp(argv[1], "clear"))
		d->cnt.reg_reads = d->cnt.reg_writes = 0;
	else
		return ctl_fail(out, "usage: regs count|clear");
	return 0;
}

static int cmd_strict(void *ctx, int argc, char **argv, FILE *out)
{
	(void)ctx;
	if (argc == 1)
		strict_print(out);
	else if (argc == 2 && !strcmp(argv[1], "clear"))
		strict_clear();
	else
		return ctl_fail(out, "usage: strict [clear]");
	return 0;
}

static int cmd_reset(void *ctx, int argc, char **argv, FILE *out)
{
	struct nic *d = ctx;
	int type = argc < 2 ? -1 : !strcmp(argv[1], "pf") ? RESET_PF : !strcmp(argv[1], "core") ?
		RESET_CORE : !strcmp(argv[1], "global") ? RESET_GLOBAL : -1;
	u64 ms = 1000;

	if (type < 0 || argc > 3 || (argc == 3 && !parse_num(argv[2], 1, 60000, &ms)))
		return ctl_fail(out, "usage: reset pf|core|global [MS]   (MS 1 to 60000)");
	if (d->reset_at)
		return ctl_fail(out, "a reset is in progress");
	reset_announce(d, type, ms);
	return 0;
}

static int cmd_remove(void *ctx, int argc, char **argv, FILE *out)
{
	struct nic *d = ctx;

	if (argc != 2 || (strcmp(argv[1], "on") && strcmp(argv[1], "off")))
		return ctl_fail(out, "usage: remove on|off");
	d->removed = !strcmp(argv[1], "on");
	logmsg("fault: device is %s", d->removed ? "gone" : "back");
	return 0;
}

static int cmd_listeners(void *ctx, int argc, char **argv, FILE *out)
{
	(void)ctx;
	(void)argv;
	if (argc != 1)
		return ctl_fail(out, "usage: listeners");
	rdma_listeners(out);
	return 0;
}

const struct ctl_cmd nic_commands[] = {
	{ "counters", "[objects] - name and value of every counter, or of what is allocated",
	  cmd_counters },
	{ "listeners", "- port, address and VLAN (-1: none) of what takes connection requests",
	  cmd_listeners },
	{ "link", "up|down - the port's link", cmd_link },
	{ "trace", "on|off|0|1|2 - trace of commands (1, on) and of every register (2)", cmd_trace },
	{ "cqp", cqp_help, cqp_command },
	{ "ae", ae_help, ae_command },
	{ "hmc", hmc_help, hmc_command },
	{ "critical", critical_help, critical_command },
	{ "events", events_help, events_command },
	{ "reset", "pf|core|global [MS] - announce a reset to the LAN driver; a core or global "
	  "reset happens MS later (default 1000)", cmd_reset },
	{ "remove", "on|off - surprise removal: reads return ones, nothing else works", cmd_remove },
	{ "strict", "[clear] - number of violations and the last ones", cmd_strict },
	{ "regs", "count|clear - register reads and writes", cmd_regs },
	{ NULL, NULL, NULL }
};
