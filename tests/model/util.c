// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * util.c - log, clock, UNIX sockets and parsers shared by the NIC process, the
 * wire process and rnicctl.  Single threaded; the log is the only global state.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include "util.h"

static struct {
	FILE *file;
	const char *tag;
	u64 start;
} log_state = { .tag = "rnicsim" };

u64 mono_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

int log_open(const char *tag, const char *file)
{
	log_state.tag = tag;
	log_state.start = mono_ns();
	log_state.file = stderr;
	if (file) {
		log_state.file = fopen(file, "we");
		if (!log_state.file) {
			fprintf(stderr, "rnicsim: log file %s: %s\n", file, strerror(errno));
			return -1;
		}
	}
	setvbuf(log_state.file, NULL, _IOLBF, 0);
	return 0;
}

void logmsg(const char *fmt, ...)
{
	FILE *f = log_state.file ? log_state.file : stderr;
	va_list ap;

	fprintf(f, "[%9.6f %s] ", (mono_ns() - log_state.start) / 1e9, log_state.tag);
	va_start(ap, fmt);
	vfprintf(f, fmt, ap);
	va_end(ap);
	fputc('\n', f);
}

void *zalloc(size_t n)
{
	void *p = calloc(1, n);

	if (!p) {
		logmsg("out of memory (%zu bytes)", n);
		exit(1);
	}
	return p;
}

static bool unix_addr(const char *path, struct sockaddr_un *a)
{
	*a = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (strlen(path) >= sizeof(a->sun_path)) {
		errno = ENAMETOOLONG;
		return false;
	}
	strcpy(a->sun_path, path);
	return true;
}

int unix_connect(const char *path, int type)
{
	struct sockaddr_un a;
	int s, e;

	if (!unix_addr(path, &a))
		return -1;
	s = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
	if (s >= 0 && connect(s, (struct sockaddr *)&a, sizeof(a))) {
		e = errno;
		close(s);
		errno = e;
		return -1;
	}
	return s;
}

int unix_listen(const char *path, int type)
{
	struct sockaddr_un a;
	int s;

	if (!unix_addr(path, &a)) {
		fprintf(stderr, "rnicsim: socket path is longer than %zu bytes: %s\n",
			sizeof(a.sun_path) - 1, path);
		return -1;
	}
	s = unix_connect(path, type);
	if (s >= 0) {
		close(s);
		fprintf(stderr, "rnicsim: %s is in use by another process\n", path);
		return -1;
	}
	if (errno == ECONNREFUSED)	/* left behind by a process that was killed */
		unlink(path);
	s = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
	if (s < 0 || bind(s, (struct sockaddr *)&a, sizeof(a)) || listen(s, 64)) {
		fprintf(stderr, "rnicsim: cannot listen on %s: %s\n", path, strerror(errno));
		if (s >= 0)
			close(s);
		return -1;
	}
	return s;
}

int stop_fd(void)
{
	sigset_t set;

	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC);
}

bool parse_num(const char *s, u64 min, u64 max, u64 *out)
{
	char *end;
	u64 v;

	if (*s < '0' || *s > '9')
		return false;
	errno = 0;
	v = strtoull(s, &end, 0);
	if (errno || *end || v < min || v > max)
		return false;
	*out = v;
	return true;
}

bool parse_mac(const char *s, u8 mac[6])
{
	int n = 0;

	return sscanf(s, "%2hhx:%2hhx:%2hhx:%2hhx:%2hhx:%2hhx%n", &mac[0], &mac[1], &mac[2],
		      &mac[3], &mac[4], &mac[5], &n) == 6 && !s[n];
}
