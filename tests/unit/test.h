/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A test is a function that returns after its first failed check; main() of each program runs
 * its table and prints one line, which scripts/check adds up.
 */
#ifndef TEST_H
#define TEST_H

#include <stdio.h>
#include <stdlib.h>

#include "shim.h"

struct test {
	const char *name;
	void (*run)(void);
};

extern int test_failed;	/* of the running test */

#define CHECK(cond) do { \
	if (!(cond)) { \
		printf("%s:%d: %s\n", __FILE__, __LINE__, #cond); \
		test_failed = 1; \
		return; \
	} \
} while (0)

#define CHECK_EQ(got, want) do { \
	u64 got_ = (u64)(got), want_ = (u64)(want); \
	if (got_ != want_) { \
		printf("%s:%d: %s is 0x%llx, not 0x%llx\n", __FILE__, __LINE__, #got, \
		       (unsigned long long)got_, (unsigned long long)want_); \
		test_failed = 1; \
		return; \
	} \
} while (0)

/* Calls a function that may fail a check. */
#define CHECK_CALL(call) do { call; if (test_failed) return; } while (0)

int run_tests(const struct test *tests, size_t num);

#endif
