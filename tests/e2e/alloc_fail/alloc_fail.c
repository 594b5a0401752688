// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Allocation failures on command, linked into test builds of irdma.ko only
 * (tests/e2e/test_alloc.py): the linker turns each call of the functions below into a call of
 * our wrapper.  Calls are told apart by where they come from; parameter fail_site chooses one
 * place, fail_round the how manieth call from there fails.
 */
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/spinlock.h>

#define MAX_SITES	512

static unsigned int fail_site;
module_param(fail_site, uint, 0644);
MODULE_PARM_DESC(fail_site, "Number of the calling place, in the order of first calls; 0: none");

static unsigned int fail_round = 1;
module_param(fail_round, uint, 0644);
MODULE_PARM_DESC(fail_round, "How manieth call from there fails (default: 1)");

static unsigned int num_sites;
module_param(num_sites, uint, 0444);
MODULE_PARM_DESC(num_sites, "Calling places seen");

static unsigned int num_failed;
module_param(num_failed, uint, 0444);
MODULE_PARM_DESC(num_failed, "Calls that failed on command");

static DEFINE_SPINLOCK(lock);
static struct {
	unsigned long addr;
	unsigned int calls;
} sites[MAX_SITES];

static unsigned int find_site(unsigned long addr)
{
	unsigned int i;

	for (i = 0; i < num_sites; i++)
		if (sites[i].addr == addr)
			return i;
	if (num_sites == MAX_SITES)
		return MAX_SITES - 1;
	sites[num_sites].addr = addr;
	return num_sites++;
}

static bool must_fail(const char *what, unsigned long addr)
{
	unsigned long flags;
	unsigned int i;
	bool fail;

	spin_lock_irqsave(&lock, flags);
	i = find_site(addr);
	fail = ++sites[i].calls == fail_round && i + 1 == fail_site;
	if (fail)
		num_failed++;
	spin_unlock_irqrestore(&lock, flags);
	if (fail)
		pr_info("irdma: test: %s fails at %pS\n", what, (void *)addr);
	return fail;
}

/* All of these take at most six arguments, so one shape fits them all. */
#define WRAP(name, failure)								\
unsigned long __real_##name(unsigned long a, unsigned long b, unsigned long c,		\
			    unsigned long d, unsigned long e, unsigned long f);		\
unsigned long __wrap_##name(unsigned long a, unsigned long b, unsigned long c,		\
			    unsigned long d, unsigned long e, unsigned long f);		\
unsigned long __wrap_##name(unsigned long a, unsigned long b, unsigned long c,		\
			    unsigned long d, unsigned long e, unsigned long f)		\
{											\
	if (must_fail(#name, (unsigned long)__builtin_return_address(0)))		\
		return (unsigned long)(failure);					\
	return __real_##name(a, b, c, d, e, f);						\
}

/* WRAP(name, what it returns then) for each allocator that the driver calls on this kernel */
#include "wraps.h"
