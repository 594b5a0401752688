/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * ctl.h - control socket: one command a connection.
 *
 * A client sends one line and reads until end of file: "ok" or "error TEXT" on
 * the first line, the command's output after it.
 */
#ifndef CTL_H
#define CTL_H

#include <stdio.h>
#include "util.h"

#define CTL_MAX_ARGS	32

/*
 * Runs one command.  Output goes to "out"; on failure the message (one line)
 * is what was written there.  Returns 0 or -1.
 */
typedef int (*ctl_fn)(void *ctx, int argc, char **argv, FILE *out);

struct ctl_cmd {
	const char *name;	/* first word */
	const char *help;	/* arguments and meaning, one line */
	ctl_fn run;
};

/* Accept one client on the listening socket and serve its command. */
void ctl_serve(int listen_fd, const struct ctl_cmd *cmds, void *ctx);
/* printf() to out and return -1. */
int ctl_fail(FILE *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
