// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * ctl.c - server side of the control socket (protocol: ctl.h).  Commands are
 * served one at a time from the event loop; a client that does not send its
 * line within a second is dropped, so it cannot stop the model.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include "ctl.h"

#define CTL_MAX_LINE	4096

int ctl_fail(FILE *out, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vfprintf(out, fmt, ap);
	va_end(ap);
	return -1;
}

static bool read_line(int fd, char *buf, size_t size)
{
	size_t n = 0;
	ssize_t r;

	while (n < size - 1) {
		char *nl;

		r = recv(fd, buf + n, size - 1 - n, 0);
		if (r <= 0)
			return false;
		n += r;
		buf[n] = 0;
		nl = strchr(buf, '\n');
		if (nl) {
			*nl = 0;
			return true;
		}
	}
	return false;
}

static int dispatch(const struct ctl_cmd *cmds, void *ctx, int argc, char **argv, FILE *out)
{
	const struct ctl_cmd *c;

	if (!argc)
		return ctl_fail(out, "empty command; 'help' lists the commands");
	if (!strcmp(argv[0], "help")) {
		for (c = cmds; c->name; c++)
			fprintf(out, "%s %s\n", c->name, c->help);
		return 0;
	}
	for (c = cmds; c->name; c++)
		if (!strcmp(c->name, argv[0]))
			return c->run(ctx, argc, argv, out);
	return ctl_fail(out, "unknown command '%s'; 'help' lists the commands", argv[0]);
}

static void reply(int fd, int err, const char *text, size_t len)
{
	const char *head = err ? "error " : "ok\n";
	size_t sent = 0;
	ssize_t r;

	if (send(fd, head, strlen(head), MSG_NOSIGNAL) < 0)
		return;
	while (sent < len) {
		r = send(fd, text + sent, len - sent, MSG_NOSIGNAL);
		if (r <= 0)
			return;
		sent += r;
	}
}

void ctl_serve(int listen_fd, const struct ctl_cmd *cmds, void *ctx)
{
	struct timeval second = { .tv_sec = 1 };
	char line[CTL_MAX_LINE], *argv[CTL_MAX_ARGS], *save, *text = NULL;
	size_t len = 0;
	int fd, argc = 0, err;
	FILE *out;

	fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd < 0)
		return;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof(second));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &second, sizeof(second));
	out = open_memstream(&text, &len);
	if (out && read_line(fd, line, sizeof(line))) {
		for (char *w = strtok_r(line, " \t", &save); w && argc < CTL_MAX_ARGS;
		     w = strtok_r(NULL, " \t", &save))
			argv[argc++] = w;
		err = dispatch(cmds, ctx, argc, argv, out);
		fflush(out);
		reply(fd, err, text, len);
	}
	if (out)
		fclose(out);
	free(text);
	close(fd);
}
