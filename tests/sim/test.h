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

/*
 * The head of a scripted peer's MPA frame: flags, revision, with revision 2 and S the words of IRD
 * and ORD.  n: bytes of private data that the caller puts behind it.  Returns its length.
 */
static inline u32 mpa_header(u8 *p, bool reply, u8 flags, u8 rev, u16 ird, u16 ord, u32 n)
{
	u32 hdr = rev == 2 && flags & 0x10 ? 24 : 20;

	memcpy(p, reply ? "MPA ID Rep Frame" : "MPA ID Req Frame", 16);
	p[16] = flags;
	p[17] = rev;
	irdma_cm_put16(p + 18, n + hdr - 20);
	irdma_cm_put16(p + 20, ird);
	irdma_cm_put16(p + 22, ord);
	return hdr;
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
