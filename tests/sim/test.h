/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Counting tests.  A failed check ends the program with its place and seed, so what has begun
 * and not passed has failed.
 */
#ifndef SIM_TEST_H
#define SIM_TEST_H

#include "sim.h"

static unsigned int tests_passed;

static inline void test_begin(const char *name)
{
	if (getenv("SIM_VERBOSE"))
		printf("%s (seed %llu)\n", name, (unsigned long long)sim_seed);
	fflush(stdout);
}

static inline void test_passed(void)
{
	tests_passed++;
}

static inline int test_summary(void)
{
	printf("%u passed, 0 failed\n", tests_passed);
	return 0;
}

#endif
