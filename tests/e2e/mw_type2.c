// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Preloaded into a program: memory windows of type 2 on rdma-core's irdma provider, which refuses to
 * allocate them and, before v64, posts each bind as one of type 1.  The kernel's command is given here; a bind
 * is posted by the provider and mended before the adapter sees it.  For that the provider writes its
 * doorbells to a page of ordinary memory, and they are passed on when its post has returned.
 * Completion events are not passed on: programs must poll.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>

#define PAGE		4096
#define MAX_BUFFERS	256
#define MAX_DOORBELLS	8
/* words of a bind (spec 02, 5.4): address, STags, length, and the header with the window's type */
#define QUANTUM		32
#define STAG_INDEX	0xffffff00u
#define OPCODE(header)	((header) >> 32 & 0x3f)
#define OP_BIND_MW	0x08
#define WINDOW_TYPE_1	(1ull << 54)

static struct ibv_context_ops provider;
static struct { void *addr; size_t len; } buffers[MAX_BUFFERS];
static struct { uint32_t *written; volatile uint32_t *adapter; } doorbells[MAX_DOORBELLS];

/*
 * Memory that the provider shares with the adapter: it tells libibverbs not to let children have it.
 */

int ibv_dontfork_range(void *base, size_t size)
{
	int (*library)(void *, size_t) = dlsym(RTLD_NEXT, "ibv_dontfork_range");

	for (int i = 0; i < MAX_BUFFERS; i++)
		if (!buffers[i].addr) {
			buffers[i].addr = base;
			buffers[i].len = size;
			break;
		}
	return library(base, size);
}

int ibv_dofork_range(void *base, size_t size)
{
	int (*library)(void *, size_t) = dlsym(RTLD_NEXT, "ibv_dofork_range");

	for (int i = 0; i < MAX_BUFFERS; i++)
		if (buffers[i].addr == base)
			buffers[i].addr = NULL;
	return library(base, size);
}

static bool is_device(int fd)
{
	char link[64], path[64] = "";

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	return readlink(link, path, sizeof(path) - 1) > 0 && strstr(path, "/uverbs");
}

void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	void *(*library)(void *, size_t, int, int, int, off_t) = dlsym(RTLD_NEXT, "mmap");
	void *got = library(addr, len, prot, flags, fd, offset);

	if (got == MAP_FAILED || fd < 0 || len != PAGE || !is_device(fd))
		return got;
	for (int i = 0; i < MAX_DOORBELLS; i++)
		if (!doorbells[i].adapter) {
			doorbells[i].adapter = got;
			doorbells[i].written = library(NULL, PAGE, PROT_READ | PROT_WRITE,
						       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			return doorbells[i].written;
		}
	abort();
}

void *mmap64(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	return mmap(addr, len, prot, flags, fd, offset);
}

/* The QP number at offset 0; no queue of a process has number 0. */
static void pass_doorbells_on(void)
{
	for (int i = 0; i < MAX_DOORBELLS; i++)
		if (doorbells[i].adapter && *doorbells[i].written) {
			*doorbells[i].adapter = *doorbells[i].written;
			*doorbells[i].written = 0;
		}
}

/* Make the bind of STag @stag that the provider has written one of type 2. */
static void mend(uint32_t stag)
{
	for (int i = 0; i < MAX_BUFFERS; i++) {
		uint64_t *wqe = buffers[i].addr;

		for (size_t n = 0; wqe && n < buffers[i].len / QUANTUM; n++, wqe += QUANTUM / 8)
			if (OPCODE(wqe[3]) == OP_BIND_MW && wqe[3] & WINDOW_TYPE_1 && (uint32_t)wqe[1] == stag)
				wqe[3] &= ~WINDOW_TYPE_1;
	}
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	bool bind = wr->opcode == IBV_WR_BIND_MW && wr->bind_mw.mw->type == IBV_MW_TYPE_2;
	int ret;

	if (bind)
		wr->bind_mw.rkey = (wr->bind_mw.mw->rkey & STAG_INDEX) | (wr->bind_mw.rkey & 0xff);
	ret = provider.post_send(qp, wr, bad);
	if (bind && !ret) {
		mend(wr->bind_mw.rkey);
		wr->bind_mw.mw->rkey = wr->bind_mw.rkey;
	}
	pass_doorbells_on();
	return ret;
}

static struct ibv_mw *alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct ib_uverbs_alloc_mw_resp resp = {};
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_alloc_mw cmd;
	} req = {
		.hdr = {
			.command = IB_USER_VERBS_CMD_ALLOC_MW,
			.in_words = sizeof(req) / 4,
			.out_words = sizeof(resp) / 4,
		},
		.cmd = {
			.response = (uintptr_t)&resp,
			.pd_handle = pd->handle,
			.mw_type = type,
		},
	};
	struct ibv_mw *mw = calloc(1, sizeof(*mw));

	if (!mw)
		return NULL;
	if (write(pd->context->cmd_fd, &req, sizeof(req)) != sizeof(req)) {
		free(mw);
		return NULL;
	}
	mw->context = pd->context;
	mw->pd = pd;
	mw->rkey = resp.rkey;
	mw->handle = resp.mw_handle;
	mw->type = type;
	return mw;
}

/* The first call of a program after it has opened the device. */
struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct ibv_pd *(*library)(struct ibv_context *) = dlsym(RTLD_NEXT, "ibv_alloc_pd");

	if (context->ops.post_send != post_send) {
		provider = context->ops;
		context->ops.post_send = post_send;
		context->ops.alloc_mw = alloc_mw;
	}
	return library(context);
}
