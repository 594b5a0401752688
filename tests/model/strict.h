/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * strict.h - what silicon would refuse.  Every violation is one log line that
 * starts with "STRICT:" and names object, field and value; the last ones are kept
 * for the control command "strict".
 */
#ifndef STRICT_H
#define STRICT_H

#include <stdio.h>
#include "util.h"

struct nic;

void strict_note(const char *text);
/* Note a violation; true when it is to be refused (false with --lenient). */
bool refuse(struct nic *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void strict_print(FILE *out);		/* "count N" and the last lines, oldest first */
u64  strict_count(void);
void strict_clear(void);

#endif
