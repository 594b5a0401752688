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
	sim_free_fibers();
	printf("%u passed, 0 failed\n", tests_passed);
	return 0;
}

struct named_test {
	const char *name;
	void (*fn)(void);
};

#define NAMED_TEST(f) { #f, test_##f }

/* A main() that runs tests, each with the seed that its first argument says. */
#define TEST_MAIN(tests)							\
int main(int argc, char **argv)							\
{										\
	u64 seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;			\
	unsigned int i;								\
										\
	for (i = 0; i < ARRAY_SIZE(tests); i++) {				\
		sim_srandom(seed);						\
		test_begin(tests[i].name);					\
		tests[i].fn();							\
		test_passed();							\
	}									\
	return test_summary();							\
}

#endif
