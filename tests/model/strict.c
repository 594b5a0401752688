// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * strict.c - log of violations (strict.h).  A driver in a loop must not fill the
 * disk: beyond MAX_LOGGED lines only the count goes on.
 */
#include <stdarg.h>
#include "nic.h"
#include "strict.h"

enum { KEEP = 32, LINE = 240, MAX_LOGGED = 10000 };

static u64 count;
static char last[KEEP][LINE];

void strict_note(const char *text)
{
	snprintf(last[count % KEEP], LINE, "%s", text);
	if (++count <= MAX_LOGGED)
		logmsg("STRICT: %s", text);
}

bool refuse(struct nic *d, const char *fmt, ...)
{
	char text[LINE];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	strict_note(text);
	return !d->lenient;
}

void strict_print(FILE *out)
{
	fprintf(out, "count %llu\n", (unsigned long long)count);
	for (u64 i = count > KEEP ? count - KEEP : 0; i < count; i++)
		fprintf(out, "%s\n", last[i % KEEP]);
}

u64 strict_count(void) { return count; }

void strict_clear(void) { count = 0; }
