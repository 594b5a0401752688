// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Runs the tests of one program. */
#include "test.h"

int test_failed;
void (*on_dma_wmb)(void);

int run_tests(const struct test *tests, size_t num)
{
	size_t i;
	int failed = 0;

	for (i = 0; i < num; i++) {
		test_failed = 0;
		on_dma_wmb = NULL;
		tests[i].run();
		if (test_failed) {
			printf("FAILED: %s\n", tests[i].name);
			failed++;
		}
	}
	printf("%zu passed, %d failed\n", num - failed, failed);
	return failed ? 1 : 0;
}
