// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Preloaded into cmtime: it brings its two ends into step over a TCP connection to the very port
 * that it measures, where the adapter listens and takes the SYN.  The kernel's TCP gets the next port.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

typedef int call_t(int fd, const struct sockaddr *addr, socklen_t len);

static int with_next_port(const char *name, int fd, const struct sockaddr *addr, socklen_t len)
{
	call_t *call = (call_t *)dlsym(RTLD_NEXT, name);
	struct sockaddr_storage next = { 0 };
	/* struct sockaddr_in6 has its port in the same place */
	struct sockaddr_in *in = (struct sockaddr_in *)&next;

	if (!call || len > sizeof(next))
		abort();
	memcpy(&next, addr, len);
	if (in->sin_family == AF_INET || in->sin_family == AF_INET6)
		in->sin_port = htons(ntohs(in->sin_port) + 1);
	return call(fd, (struct sockaddr *)&next, len);
}

int bind(int fd, const struct sockaddr *addr, socklen_t len)
{
	return with_next_port("bind", fd, addr, len);
}

int connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	return with_next_port("connect", fd, addr, len);
}
