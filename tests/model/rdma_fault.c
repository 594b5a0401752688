// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * rdma_fault.c - control commands that make the RDMA half misbehave: the control
 * queue holds, fails or stops; flushes are ignored; events come late or from
 * nowhere.  Called from the event loop (nic_ctl.c).
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include "rdma_fault.h"
#include "rdma_int.h"

const char cqp_help[] =
	"log|clear - count of each command | hold N [OPCODE] - hold the n-th command from now (of "
	"that opcode) | fail N [OPCODE [CODE [COUNT]]] - fail it, CODE is major<<16|minor, and the next "
	"ones up to COUNT | stop-at N - answer "
	"nothing from the n-th on | continue - go on | release - go on, without any of these | ignore-flush on|off | status";
const char ae_help[] = "raise CODE [qp N|cq N] [src N] - asynchronous event (default: qp 1, src 0)";
const char hmc_help[] = "error INFO DATA - HMC error: ERRORINFO and ERRORDATA, and its interrupt";
const char critical_help[] = "VALUE - critical error: GLPE_CRITERR and its interrupt";
const char events_help[] = "delay ceq|aeq|arm MS - deliver events, or take requests for them, that much later; 0 ends it";

/* Opcode by number or name; -1: none given; false: unknown. */
static bool parse_opcode(const char *s, int *op)
{
	u64 v;

	if (parse_num(s, 0, 63, &v)) {
		*op = v;
		return true;
	}
	for (*op = 0; *op < 64; ++*op)
		if (!strcasecmp(cqp_name(*op), s))
			return true;
	return false;
}

static void print_trigger(FILE *out, const char *name, const struct cqp_trigger *t)
{
	if (t->left)
		fprintf(out, "%s in %llu of %s\n", name, (unsigned long long)t->left,
			t->opcode < 0 ? "any" : cqp_name(t->opcode));
}

static int cqp_status(FILE *out)
{
	fprintf(out, "%s\n", rdma_faults.stopped ? "stopped" : rdma_faults.held ? "held" : "running");
	print_trigger(out, "hold", &rdma_faults.hold);
	print_trigger(out, "fail", &rdma_faults.fail);
	print_trigger(out, "stop", &rdma_faults.stop);
	fprintf(out, "ignore-flush %s\n", rdma_faults.ignore_flush ? "on" : "off");
	return 0;
}

static int set_trigger(struct cqp_trigger *t, int argc, char **argv, FILE *out)
{
	int op = -1;
	u64 n;

	if (argc < 3 || !parse_num(argv[2], 1, UINT32_MAX, &n))
		return ctl_fail(out, "usage: cqp %s N, N from 1", argv[1]);
	if (argc > 3 && !parse_opcode(argv[3], &op))
		return ctl_fail(out, "unknown opcode '%s' (a number below 64 or a name of 'cqp log')",
				argv[3]);
	t->left = n;
	t->opcode = op;
	return 0;
}

int cqp_command(void *ctx, int argc, char **argv, FILE *out)
{
	const char *sub = argc > 1 ? argv[1] : "";
	u64 code = CQP_ERR(0x8002), count = 1;

	if (argc == 2 && !strcmp(sub, "log")) {
		rdma_cqp_log(out);
		return 0;
	}
	if (argc == 2 && !strcmp(sub, "clear")) {
		rdma_cqp_clear();
		return 0;
	}
	if (argc == 2 && !strcmp(sub, "status"))
		return cqp_status(out);
	if (argc == 2 && !strcmp(sub, "release")) {
		rdma_faults.stop.left = rdma_faults.hold.left = rdma_faults.fail.left = 0;
		rdma_resume(ctx);
		return 0;
	}
	if (argc == 2 && !strcmp(sub, "continue")) {
		rdma_resume(ctx);
		return 0;
	}
	if (argc <= 4 && !strcmp(sub, "hold"))
		return set_trigger(&rdma_faults.hold, argc, argv, out);
	if (argc <= 4 && !strcmp(sub, "stop-at"))
		return set_trigger(&rdma_faults.stop, argc, argv, out);
	if (argc <= 6 && !strcmp(sub, "fail")) {
		if (argc > 4 && !parse_num(argv[4], 0x10000, UINT32_MAX, &code))
			return ctl_fail(out, "error code '%s' (0x00010000 to 0xffffffff)", argv[4]);
		if (argc > 5 && !parse_num(argv[5], 1, UINT32_MAX, &count))
			return ctl_fail(out, "count '%s', from 1", argv[5]);
		rdma_faults.fail_code = code;
		rdma_faults.fail_again = count - 1;
		return set_trigger(&rdma_faults.fail, argc, argv, out);
	}
	if (argc == 3 && !strcmp(sub, "ignore-flush") &&
	    (!strcmp(argv[2], "on") || !strcmp(argv[2], "off"))) {
		rdma_faults.ignore_flush = !strcmp(argv[2], "on");
		return 0;
	}
	return ctl_fail(out, "usage: cqp %s", cqp_help);
}

int ae_command(void *ctx, int argc, char **argv, FILE *out)
{
	u64 code, id = 1, src = 0;
	bool cq = false;

	(void)ctx;
	if (argc < 3 || strcmp(argv[1], "raise") || !parse_num(argv[2], 0, 0xfff, &code) || !(argc & 1))
		return ctl_fail(out, "usage: ae %s", ae_help);
	for (int i = 3; i + 1 < argc; i += 2) {
		bool is_cq = !strcmp(argv[i], "cq");

		if (is_cq || !strcmp(argv[i], "qp")) {
			cq = is_cq;
			if (!parse_num(argv[i + 1], 0, 0x7ffff, &id))
				return ctl_fail(out, "'%s' is not a number below 524288", argv[i + 1]);
		} else if (strcmp(argv[i], "src") || !parse_num(argv[i + 1], 0, 15, &src)) {
			return ctl_fail(out, "usage: ae %s", ae_help);
		}
	}
	if (!rdma.eng || !rdma.aeq.used)
		return ctl_fail(out, "no RDMA driver is running");
	if (!eng_raise(rdma.eng, cq, id, code, src))
		return ctl_fail(out, "%s %llu does not exist", cq ? "CQ" : "QP", (unsigned long long)id);
	return 0;
}

int hmc_command(void *ctx, int argc, char **argv, FILE *out)
{
	struct nic *d = ctx;
	u64 info, data;

	if (argc != 4 || strcmp(argv[1], "error") || !parse_num(argv[2], 0, UINT32_MAX, &info) ||
	    !parse_num(argv[3], 0, UINT32_MAX, &data))
		return ctl_fail(out, "usage: hmc %s", hmc_help);
	rset(d, d->type->rdma->hmc_errorinfo, info);
	rset(d, d->type->rdma->hmc_errordata, data);
	oicr_raise(d, OICR_HMC_ERR);
	return 0;
}

int critical_command(void *ctx, int argc, char **argv, FILE *out)
{
	struct nic *d = ctx;
	u64 v;

	if (argc != 2 || !parse_num(argv[1], 0, UINT32_MAX, &v))
		return ctl_fail(out, "usage: critical %s", critical_help);
	rset(d, d->type->rdma->criterr, v);
	oicr_raise(d, OICR_PE_CRITERR);
	return 0;
}

int events_command(void *ctx, int argc, char **argv, FILE *out)
{
	u64 ms;

	(void)ctx;
	if (argc != 4 || strcmp(argv[1], "delay") || !parse_num(argv[3], 0, 60000, &ms))
		return ctl_fail(out, "usage: events %s", events_help);
	if (!strcmp(argv[2], "ceq"))
		rdma_faults.ceq_delay_ns = ms * 1000000;
	else if (!strcmp(argv[2], "aeq"))
		rdma_faults.aeq_delay_ns = ms * 1000000;
	else if (!strcmp(argv[2], "arm"))
		rdma_faults.arm_delay_ns = ms * 1000000;
	else
		return ctl_fail(out, "usage: events %s", events_help);
	return 0;
}
