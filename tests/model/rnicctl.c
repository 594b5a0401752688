// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * rnicctl.c - send one command to a control socket of rnicsim, print the answer.
 *
 * usage: rnicctl SOCKET COMMAND [ARGUMENT...]
 * Exit status: 0 done, 1 refused by rnicsim or not reachable, 2 usage.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "util.h"

static int send_command(int fd, int argc, char **argv)
{
	char line[4096];
	size_t n = 0;

	for (int i = 0; i < argc; i++) {
		size_t len = strlen(argv[i]);

		if (n + len + 2 > sizeof(line) || strchr(argv[i], '\n')) {
			fprintf(stderr, "rnicctl: command is longer than %zu bytes or has a newline\n",
				sizeof(line) - 2);
			return -1;
		}
		memcpy(line + n, argv[i], len);
		n += len;
		line[n++] = i + 1 < argc ? ' ' : '\n';
	}
	return send(fd, line, n, MSG_NOSIGNAL) == (ssize_t)n ? 0 : -1;
}

int main(int argc, char **argv)
{
	char word[16];
	FILE *in, *out;
	int fd, c, rc;

	if (argc < 3) {
		fprintf(stderr, "usage: rnicctl SOCKET COMMAND [ARGUMENT...]   (COMMAND help lists them)\n");
		return 2;
	}
	fd = unix_connect(argv[1], SOCK_STREAM);
	if (fd < 0) {
		fprintf(stderr, "rnicctl: %s: %s (is rnicsim running?)\n", argv[1], strerror(errno));
		return 1;
	}
	if (send_command(fd, argc - 2, argv + 2))
		return 1;
	in = fdopen(fd, "r");
	if (!in || fscanf(in, "%15s", word) != 1) {
		fprintf(stderr, "rnicctl: %s: no answer\n", argv[1]);
		return 1;
	}
	rc = strcmp(word, "ok") ? 1 : 0;
	out = rc ? stderr : stdout;
	if (rc)
		fputs("rnicctl: ", out);
	getc(in);		/* the blank or newline behind the first word */
	while ((c = getc(in)) != EOF)
		putc(c, out);
	if (rc)
		putc('\n', out);
	fclose(in);
	return rc;
}
