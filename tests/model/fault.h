/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * fault.h - rules that damage traffic on the wire.  The switch asks fault_judge()
 * once for every frame and port it leaves through; time and queues are its own.
 */
#ifndef FAULT_H
#define FAULT_H

#include <stdio.h>
#include "util.h"

struct fault_set;

struct fault_verdict {
	bool drop, dup, reorder, corrupt, split;
	bool fix_checksum;	/* corrupt: make the TCP checksum good again */
	u32 offset, bit;	/* corrupt: which bit */
	u32 cut;		/* split: bytes of payload in the first segment */
	bool cut_on;		/* split: and in each that follows */
	u64 delay_ns;
};

struct fault_set *fault_new(u64 seed);
void fault_free(struct fault_set *s);
/* Returns false (and a zero verdict) when no rule applies. */
bool fault_judge(struct fault_set *s, const char *from, const char *to, const u8 *frame, u32 len,
		 struct fault_verdict *v);
/* Control command "fault ..."; see fault_help. */
int fault_command(struct fault_set *s, int argc, char **argv, FILE *out);
extern const char fault_help[];

#endif
