// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Drives each verbs command of an irdma device with boundary values, below rdma-core: what
 * spec section 7 says of lengths, counts, indexes, masks and addresses is the expectation,
 * errno by errno where it names one.  Commands go through the ioctl that carries a write()
 * command, so that tails can have any length.  Runs in a guest, statically linked.
 *
 * usage: uverbs_fuzz [UVERBS-DEVICE [limits|crowd]]
 *
 * "limits" reaches each number of objects that the device reports, "crowd" gives commands from
 * many processes at once; without a word all the other cases run.  Prints a line for each
 * failure ("case: expected ..., got ...") and the counts last.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#define PAGE	4096UL
#define DRIVER_ID	9
#define ANY_ERRNO	-1	/* expectation: any of the errors that a user may see, or success */
#define COUNT(a)	(sizeof(a) / sizeof((a)[0]))

struct tail {
	const void *in;
	size_t in_len;
	void *out;
	size_t out_len;
};

struct uctx_req { uint32_t rsvd; uint8_t ver; uint8_t rsvd2[3]; uint64_t comp_mask; };
struct uctx_resp {
	uint32_t max_pds, max_qps, wq_size; uint8_t ver, rsvd[3];
	uint64_t features, db_key;
	uint32_t frags, read_sges, inline_len, rq_quanta, wq_quanta, min_cq, max_cq;
	uint16_t chunk; uint8_t hw_rev, rsvd2; uint64_t comp_mask;
	uint16_t min_wq, rsvd3; uint32_t srq_quanta;
};
struct reg_req { uint16_t type, cq_pages, rq_pages, sq_pages; };
struct cq_req { uint64_t ring, shadow; };
struct cq_resp { uint32_t cqn, slots; };
struct qp_req { uint64_t queues, context; };
struct qp_resp {
	uint32_t qpn, sq, rq, options; uint16_t push; uint8_t lsmm, rsvd; uint32_t caps;
};

/* An open context with what most cases need. */
struct ctx {
	int fd;
	struct uctx_resp resp;
	uint32_t pd;
	uint8_t *mem;	/* MEM_PAGES pages */
};

#define MEM_PAGES	64UL

static const char *device = "/dev/infiniband/uverbs0";
static unsigned int passed, failed;

static void verdict(bool ok, const char *expected, int got, const char *fmt, va_list ap)
{
	if (ok) {
		passed++;
		return;
	}
	failed++;
	vprintf(fmt, ap);
	printf(": expected %s, got %s (%d)\n", expected, got ? strerror(got) : "success", got);
}

/* Errors that tell a program of its mistake or of a lack of resources; others are bugs. */
static bool plausible(int err)
{
	static const int fine[] = { 0, EINVAL, EOPNOTSUPP, EFAULT, ENOMEM, EBUSY, ENODATA, EPROTO,
				    ENOENT, EOVERFLOW, ENOSPC, EPERM };
	for (size_t i = 0; i < COUNT(fine); i++)
		if (err == fine[i])
			return true;
	return false;
}

/* @got, an errno or 0, must be @want. */
__attribute__((format(printf, 3, 4)))
static int expect(int want, int got, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (want == ANY_ERRNO)
		verdict(plausible(got), "an errno for bad input", got, fmt, ap);
	else
		verdict(got == want, want ? strerror(want) : "success", got, fmt, ap);
	va_end(ap);
	return got;
}

__attribute__((format(printf, 3, 4)))
static void expect_value(uint64_t want, uint64_t got, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (want == got) {
		passed++;
	} else {
		failed++;
		vprintf(fmt, ap);
		printf(": expected %llu, got %llu\n", (unsigned long long)want,
		       (unsigned long long)got);
	}
	va_end(ap);
}

struct request {
	struct ib_uverbs_ioctl_hdr hdr;
	struct ib_uverbs_attr attrs[5];
};

static void put_attr(struct request *req, uint16_t id, const void *data, size_t len,
		     bool inline_ok)
{
	struct ib_uverbs_attr *attr = &req->attrs[req->hdr.num_attrs++];

	attr->attr_id = id;
	attr->len = len;
	attr->flags = UVERBS_ATTR_F_MANDATORY;
	attr->data = (uintptr_t)data;
	if (inline_ok && len <= sizeof(attr->data)) {
		attr->data = 0;
		memcpy(&attr->data, data, len);
	}
}

static void put_tail(struct request *req, const struct tail *tail)
{
	if (tail && tail->in_len)
		put_attr(req, UVERBS_ATTR_UHW_IN, tail->in, tail->in_len, true);
	if (tail && tail->out_len)
		put_attr(req, UVERBS_ATTR_UHW_OUT, tail->out, tail->out_len, false);
}

static int submit(int fd, struct request *req)
{
	req->hdr.driver_id = DRIVER_ID;
	req->hdr.length = sizeof(req->hdr) + req->hdr.num_attrs * sizeof(req->attrs[0]);
	return ioctl(fd, RDMA_VERBS_IOCTL, req) ? errno : 0;
}

/* One command; returns 0 or an errno. */
static int command(int fd, uint32_t cmd, const void *in, size_t in_len, void *out, size_t out_len,
		   const struct tail *tail)
{
	struct request req = { .hdr = { .object_id = UVERBS_OBJECT_DEVICE,
					.method_id = UVERBS_METHOD_INVOKE_WRITE } };
	uint64_t write_cmd = cmd;

	put_attr(&req, UVERBS_ATTR_WRITE_CMD, &write_cmd, sizeof(write_cmd), true);
	put_attr(&req, UVERBS_ATTR_CORE_IN, in, in_len, true);
	if (out_len)
		put_attr(&req, UVERBS_ATTR_CORE_OUT, out, out_len, false);
	put_tail(&req, tail);
	return submit(fd, &req);
}

static void fatal(const char *what, int err)
{
	printf("uverbs_fuzz: %s: %s\n", what, strerror(err));
	exit(2);
}

static int open_device(void)
{
	int fd = open(device, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		fatal(device, errno);
	return fd;
}

/* Not a write() command: newer kernels open contexts only through this method. */
static int get_context(int fd, const struct tail *tail)
{
	struct request req = { .hdr = { .object_id = UVERBS_OBJECT_DEVICE,
					.method_id = UVERBS_METHOD_GET_CONTEXT } };
	uint32_t vectors = 0;
	uint64_t support = 0;

	put_attr(&req, UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, &vectors, sizeof(vectors), false);
	put_attr(&req, UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT, &support, sizeof(support), false);
	put_tail(&req, tail);
	return submit(fd, &req);
}

static int alloc_pd(int fd, uint32_t *handle, const struct tail *tail)
{
	struct ib_uverbs_alloc_pd cmd = {};
	struct ib_uverbs_alloc_pd_resp resp = {};
	int err = command(fd, IB_USER_VERBS_CMD_ALLOC_PD, &cmd, sizeof(cmd), &resp, sizeof(resp),
			  tail);

	*handle = resp.pd_handle;
	return err;
}

static int dealloc_pd(int fd, uint32_t handle)
{
	struct ib_uverbs_dealloc_pd cmd = { .pd_handle = handle };

	return command(fd, IB_USER_VERBS_CMD_DEALLOC_PD, &cmd, sizeof(cmd), NULL, 0, NULL);
}

struct mr_args { uint64_t start, len, va; uint32_t access; };

static int reg_mr(struct ctx *c, const struct mr_args *a, uint32_t *handle,
		  const struct tail *tail, struct ib_uverbs_reg_mr_resp *resp)
{
	struct ib_uverbs_reg_mr cmd = { .start = a->start, .length = a->len, .hca_va = a->va,
					.pd_handle = c->pd, .access_flags = a->access };
	struct ib_uverbs_reg_mr_resp r = {};
	int err = command(c->fd, IB_USER_VERBS_CMD_REG_MR, &cmd, sizeof(cmd), &r, sizeof(r), tail);

	*handle = r.mr_handle;
	if (resp)
		*resp = r;
	return err;
}

static int dereg_mr(struct ctx *c, uint32_t handle)
{
	struct ib_uverbs_dereg_mr cmd = { .mr_handle = handle };

	return command(c->fd, IB_USER_VERBS_CMD_DEREG_MR, &cmd, sizeof(cmd), NULL, 0, NULL);
}

static struct mr_args at(const struct ctx *c, size_t page, size_t pages, uint32_t access)
{
	uint64_t va = (uintptr_t)c->mem + page * PAGE;

	return (struct mr_args){ va, pages * PAGE, va, access };
}

static uint32_t reg_queue(struct ctx *c, size_t page, size_t pages, struct reg_req req)
{
	struct mr_args a = at(c, page, pages, IB_UVERBS_ACCESS_LOCAL_WRITE);
	struct tail tail = { &req, sizeof(req), NULL, 0 };
	uint32_t handle;
	int err = reg_mr(c, &a, &handle, &tail, NULL);

	if (err)
		fatal("registering queue memory", err);
	return handle;
}

static void open_ctx(struct ctx *c)
{
	struct uctx_req req = { .ver = 5, .comp_mask = 1 };
	struct tail tail = { &req, sizeof(req), &c->resp, sizeof(c->resp) };
	uint64_t out;
	int err;

	c->fd = open_device();
	err = get_context(c->fd, &tail);
	if (err)
		fatal("opening a context", err);
	tail = (struct tail){ NULL, 0, &out, sizeof(out) };
	err = alloc_pd(c->fd, &c->pd, &tail);
	if (err)
		fatal("allocating a PD", err);
	c->mem = mmap(NULL, MEM_PAGES * PAGE, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (c->mem == MAP_FAILED)
		fatal("mmap", errno);
}

static void close_ctx(struct ctx *c)
{
	close(c->fd);
	munmap(c->mem, MEM_PAGES * PAGE);
}

/*
 * Contexts (7.2, 7.10; C47: bytes of the response, unknown bits, lengths of old libraries).
 */

static int context_errno(const uint8_t *in, size_t in_len, size_t out_len)
{
	struct uctx_req req = {};

	if (in_len < 8)
		return EINVAL;
	for (size_t i = sizeof(req); i < in_len; i++)
		if (in[i])
			return EOPNOTSUPP;
	memcpy(&req, in, in_len < sizeof(req) ? in_len : sizeof(req));
	if (out_len < 16 || req.ver < 4 || req.ver > 5)
		return EINVAL;
	if (req.comp_mask & ~9ULL || out_len == 16)
		return EOPNOTSUPP;
	return 0;
}

static void try_context(const uint8_t *in, size_t in_len, size_t out_len)
{
	uint8_t out[104];
	struct tail tail = { in, in_len, out, out_len };
	struct uctx_resp resp;
	int fd = open_device();

	memset(out, 0xA5, sizeof(out));
	if (!expect(context_errno(in, in_len, out_len), get_context(fd, &tail),
		    "context: request %zu, response %zu, version %u", in_len, out_len, in[4])) {
		memcpy(&resp, out, sizeof(resp));
		if (out_len >= 64) {
			expect_value(5, resp.ver, "context: version");
			expect_value(3, resp.features, "context: features");
			expect_value(2, resp.hw_rev, "context: hardware revision");
		}
		for (size_t i = sizeof(resp); i < out_len; i++)
			expect_value(0, out[i], "context: byte %zu of the response", i);
		expect_value(0xA5, out[out_len], "context: byte behind the response");
	}
	close(fd);
}

static void test_contexts(void)
{
	static const uint8_t versions[] = { 0, 3, 4, 5, 6, 255 };
	static const uint64_t masks[] = { 0, 1, 8, 9, 2, 4, 16, 1ULL << 63 };
	static const size_t outs[] = { 0, 1, 15, 16, 17, 63, 64, 72, 80, 88, 96 };
	uint8_t in[32];

	for (size_t len = 0; len <= 24; len++)
		for (size_t o = 0; o < COUNT(outs); o++) {
			memset(in, 0, sizeof(in));
			in[4] = 5;
			try_context(in, len, outs[o]);
		}
	for (size_t v = 0; v < COUNT(versions); v++)
		for (size_t m = 0; m < COUNT(masks); m++) {
			memset(in, 0, sizeof(in));
			in[4] = versions[v];
			memcpy(in + 8, &masks[m], 8);
			try_context(in, 16, 80);
			in[16] = 1;
			try_context(in, 17, 80);
		}
	/* Old libraries leave garbage in the reserved bytes. */
	memset(in, 0xFF, sizeof(in));
	in[4] = 5;
	try_context(in, 8, 64);
}

/*
 * The doorbell page (7.2).
 */

static void test_mmap(void)
{
	static const size_t lens[] = { 1, PAGE - 1, PAGE, PAGE + 1, 2 * PAGE, 1 << 20 };
	struct ctx c;

	open_ctx(&c);
	for (size_t i = 0; i < COUNT(lens); i++)
		for (uint64_t page = 0; page < 4; page++) {
			off_t off = c.resp.db_key + page * PAGE;
			bool good = !page && lens[i] <= PAGE;
			void *p = mmap(NULL, lens[i], PROT_READ | PROT_WRITE, MAP_SHARED, c.fd, off);

			expect(good ? 0 : EINVAL, p == MAP_FAILED ? errno : 0,
			       "mmap: %zu bytes at page %llu", lens[i], (unsigned long long)page);
			if (p != MAP_FAILED)
				munmap(p, lens[i]);
		}
	for (int bit = 20; bit < 44; bit++) {
		off_t off = c.resp.db_key + (1ULL << bit);
		void *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, c.fd, off);

		expect(EINVAL, p == MAP_FAILED ? errno : 0, "mmap: offset bit %d", bit);
	}
	expect(EINVAL, mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, c.fd,
			    c.resp.db_key) == MAP_FAILED ? errno : 0, "mmap: private");
	close_ctx(&c);
}

/*
 * Protection domains (C46).
 */

static void test_pds(void)
{
	uint8_t in[16] = {}, out[32];
	struct ctx c;
	uint32_t pd;

	open_ctx(&c);
	for (size_t in_len = 0; in_len <= 9; in_len++)
		for (size_t out_len = 0; out_len <= 16; out_len++) {
			struct tail tail = { in, in_len, out, out_len };

			if (!expect(out_len < 8 ? EINVAL : 0, alloc_pd(c.fd, &pd, &tail),
				    "PD: request %zu, response %zu", in_len, out_len))
				expect(0, dealloc_pd(c.fd, pd), "PD: dealloc");
		}
	in[3] = 1;
	expect(EOPNOTSUPP, alloc_pd(c.fd, &pd, &(struct tail){ in, 4, out, 8 }),
	       "PD: unknown request");
	close_ctx(&c);
}

/*
 * Memory regions (3, 7.3; C46: tails, none at all, counts against the memory's real size).
 */

static void try_mr(struct ctx *c, int want, struct mr_args a, const void *req, size_t len,
		   const char *what)
{
	struct tail tail = { req, len, NULL, 0 };
	struct ib_uverbs_reg_mr_resp resp;
	struct reg_req r = {};
	uint32_t handle;

	memcpy(&r, req, len < sizeof(r) ? len : sizeof(r));
	if (expect(want, reg_mr(c, &a, &handle, &tail, &resp),
		   "MR: %s, type %u, pages %u/%u/%u, start %#llx, length %#llx, tail %zu", what,
		   r.type, r.sq_pages, r.rq_pages, r.cq_pages, (unsigned long long)a.start,
		   (unsigned long long)a.len, len))
		return;
	if (!r.type) {
		expect_value(resp.lkey, resp.rkey, "MR: keys");
		expect_value(1, resp.lkey >> 8 != 0, "MR: index is not 0");
	} else {
		expect_value(0, resp.lkey | resp.rkey, "MR: keys of queue memory");
	}
	expect(0, dereg_mr(c, handle), "MR: dereg after %s", what);
}

static void test_mr_tails(struct ctx *c)
{
	struct mr_args a = at(c, 0, 4, IB_UVERBS_ACCESS_LOCAL_WRITE);
	uint8_t req[16] = {};

	for (size_t len = 0; len <= 16; len++)
		try_mr(c, len < 8 ? EINVAL : 0, a, req, len, "tail");
	for (size_t i = 8; i < 16; i++) {
		memset(req, 0, sizeof(req));
		req[i] = 1;
		try_mr(c, EOPNOTSUPP, a, req, 16, "unknown tail");
	}
	memset(req, 0xFF, 8);
	memset(req + 8, 0, 8);
	req[0] = req[1] = 0;
	try_mr(c, 0, a, req, 8, "garbage in page counts");
}

/* C40: length 0 and lengths that wrap. */
static void test_mr_ranges(struct ctx *c)
{
	static const uint64_t bad[] = { 0, (1ULL << 45) + 1, 1ULL << 46, 1ULL << 63, -1ULL,
					-4096ULL };
	struct reg_req req = {};
	struct mr_args a;

	for (size_t i = 0; i < COUNT(bad); i++) {
		a = at(c, 0, 1, 1);
		a.len = bad[i];
		try_mr(c, EINVAL, a, &req, sizeof(req), "length");
	}
	for (uint64_t len = 1; len <= 3 * PAGE; len += PAGE - 1) {
		a = at(c, 1, 1, 1);
		a.len = len;
		a.start += 5;
		a.va += 5;
		try_mr(c, 0, a, &req, sizeof(req), "odd start and length");
	}
	a = at(c, 0, 1, 1);
	a.va = -PAGE;
	a.len = PAGE;
	try_mr(c, 0, a, &req, sizeof(req), "address at the end");
	a.len = PAGE + 1;
	try_mr(c, EINVAL, a, &req, sizeof(req), "address that wraps");
	a = at(c, 0, 1, 1);
	a.start = a.va = 0xffff800000000000ULL;
	try_mr(c, ANY_ERRNO, a, &req, sizeof(req), "kernel address");
	a.start = a.va = 0;
	try_mr(c, EFAULT, a, &req, sizeof(req), "unmapped address");
	a = at(c, 0, 4, 0xffffffff);
	try_mr(c, ANY_ERRNO, a, &req, sizeof(req), "all access flags");
	for (int bit = 0; bit < 32; bit++) {
		a.access = 1u << bit | 1;
		try_mr(c, ANY_ERRNO, a, &req, sizeof(req), "access flag");
	}
}

/* C46, C47: page counts of queue memory, and its alignment. */
static void test_queue_regs(struct ctx *c)
{
	static const uint16_t counts[] = { 0, 1, 2, 6, 7, 8, 9, 0x7fff, 0x8000, 0xffff };
	const uint32_t region = 8;
	struct mr_args a = at(c, 0, region, 1);

	for (size_t s = 0; s < COUNT(counts); s++) {
		for (size_t r = 0; r < COUNT(counts); r++) {
			struct reg_req qp = { 1, 0xffff, counts[r], counts[s] };
			bool ok = counts[s] && counts[r] &&
				  counts[s] + counts[r] + 1U <= region;

			try_mr(c, ok ? 0 : EINVAL, a, &qp, sizeof(qp), "QP memory");
		}
		struct reg_req cq = { 2, counts[s], 0xffff, 0xffff };

		try_mr(c, counts[s] && counts[s] <= region ? 0 : EINVAL, a, &cq, sizeof(cq),
		       "CQ memory");
	}
	for (uint32_t type = 3; type <= 0xffff; type = type * 2 + 1) {
		struct reg_req req = { type, 1, 1, 1 };

		try_mr(c, EINVAL, a, &req, sizeof(req), "unknown type");
	}
	struct mr_args odd = a;

	odd.start += 64;
	odd.va += 64;
	odd.len -= PAGE;
	try_mr(c, EINVAL, odd, &(struct reg_req){ 1, 0, 1, 1 }, 8, "QP memory not page-aligned");
	try_mr(c, EINVAL, odd, &(struct reg_req){ 2, 1, 0, 0 }, 8, "CQ memory not page-aligned");
}

static int rereg(struct ctx *c, uint32_t mr, uint32_t flags, struct mr_args a, uint32_t pd,
		 struct ib_uverbs_rereg_mr_resp *resp)
{
	struct ib_uverbs_rereg_mr cmd = { .mr_handle = mr, .flags = flags, .start = a.start,
					  .length = a.len, .hca_va = a.va, .pd_handle = pd,
					  .access_flags = a.access };
	uint64_t zero = 0;
	struct tail tail = { &zero, sizeof(zero), NULL, 0 };

	return command(c->fd, IB_USER_VERBS_CMD_REREG_MR, &cmd, sizeof(cmd), resp, sizeof(*resp),
		       &tail);
}

/* C40, C41: what fails leaves a region that can be deregistered; rights need a pin for them. */
static void test_rereg(struct ctx *c)
{
	enum { TRANS = 1, PD = 2, ACCESS = 4 };
	struct mr_args a = at(c, 0, 4, IB_UVERBS_ACCESS_LOCAL_WRITE), b = at(c, 8, 7, 1);
	struct mr_args none = { .access = 0x7 }, wrap = b;
	struct reg_req req = {};
	struct tail tail = { &req, sizeof(req), NULL, 0 };
	struct ib_uverbs_rereg_mr_resp resp = {};
	struct ib_uverbs_reg_mr_resp first;
	uint32_t mr, ring, pd2, old = c->pd;
	uint64_t out;

	expect(0, reg_mr(c, &a, &mr, &tail, &first), "rereg: reg");
	expect(0, alloc_pd(c->fd, &pd2, &(struct tail){ NULL, 0, &out, 8 }), "rereg: second PD");
	expect(EFAULT, rereg(c, mr, TRANS, (struct mr_args){ 0, PAGE, 0, 1 }, 0, &resp),
	       "rereg: unmapped address");
	wrap.va = -PAGE;
	expect(EINVAL, rereg(c, mr, TRANS, wrap, 0, &resp), "rereg: address that wraps");
	b.len = 0;
	expect(EINVAL, rereg(c, mr, TRANS, b, 0, &resp), "rereg: length 0");
	b.len = (1ULL << 45) + 1;
	expect(EINVAL, rereg(c, mr, TRANS, b, 0, &resp), "rereg: length above the limit");
	b = at(c, 8, 7, 1);
	expect(EINVAL, rereg(c, mr, 0, b, 0, &resp), "rereg: no flag");
	for (int bit = 3; bit < 32; bit++)
		expect(ANY_ERRNO, rereg(c, mr, 1u << bit, b, 0, &resp), "rereg: flag %d", bit);
	for (uint32_t flags = 1; flags <= 7; flags++) {
		expect(0, rereg(c, mr, flags, b, flags & PD ? pd2 : 0, &resp), "rereg: flags %u",
		       flags);
		expect_value(first.lkey, resp.lkey, "rereg: lkey");
		expect(0, rereg(c, mr, flags, a, flags & PD ? old : 0, &resp),
		       "rereg: flags %u and back", flags);
	}
	/* Rights that were not pinned for need a new pin, also without a new address. */
	expect(0, rereg(c, mr, ACCESS, (struct mr_args){ .access = 0 }, 0, &resp),
	       "rereg: read only");
	expect(0, rereg(c, mr, ACCESS, none, 0, &resp), "rereg: writable again");
	expect(0, dereg_mr(c, mr), "rereg: dereg");
	expect(0, dealloc_pd(c->fd, pd2), "rereg: second PD is free again");

	/* Memory that may only be read cannot become writable. */
	mprotect(c->mem + 20 * PAGE, PAGE, PROT_READ);
	a = at(c, 20, 1, 0);
	expect(0, reg_mr(c, &a, &mr, &tail, NULL), "rereg: reg of read-only memory");
	expect(EFAULT, rereg(c, mr, ACCESS, none, 0, &resp), "rereg: writable on read-only memory");
	expect(0, dereg_mr(c, mr), "rereg: dereg of read-only memory");
	mprotect(c->mem + 20 * PAGE, PAGE, PROT_READ | PROT_WRITE);

	ring = reg_queue(c, 0, 4, (struct reg_req){ 2, 1, 0, 0 });
	expect(EINVAL, rereg(c, ring, TRANS, b, 0, &resp), "rereg: queue memory");
	expect(EINVAL, rereg(c, ring, ACCESS, none, 0, &resp), "rereg: access of queue memory");
	expect(0, dereg_mr(c, ring), "rereg: dereg of queue memory");
}

static int alloc_mw(struct ctx *c, uint8_t type, struct ib_uverbs_alloc_mw_resp *resp,
		    const struct tail *tail)
{
	struct ib_uverbs_alloc_mw cmd = { .pd_handle = c->pd, .mw_type = type };

	return command(c->fd, IB_USER_VERBS_CMD_ALLOC_MW, &cmd, sizeof(cmd), resp, sizeof(*resp),
		       tail);
}

static int dealloc_mw(struct ctx *c, uint32_t handle)
{
	struct ib_uverbs_dealloc_mw cmd = { .mw_handle = handle };

	return command(c->fd, IB_USER_VERBS_CMD_DEALLOC_MW, &cmd, sizeof(cmd), NULL, 0, NULL);
}

static void test_mws(struct ctx *c)
{
	struct ib_uverbs_alloc_mw_resp resp = {};
	uint64_t junk = 1;

	for (int type = 0; type < 256; type++) {
		int want = type == 1 || type == 2 ? 0 : EINVAL;

		if (!expect(want, alloc_mw(c, type, &resp, NULL), "MW: type %d", type)) {
			expect_value(1, resp.rkey >> 8 != 0, "MW: index is not 0");
			expect(0, dealloc_mw(c, resp.mw_handle), "MW: dealloc");
		}
	}
	expect(EOPNOTSUPP, alloc_mw(c, 1, &resp, &(struct tail){ &junk, 8, NULL, 0 }),
	       "MW: unknown tail");
}

static void test_mrs(void)
{
	struct ctx c;

	open_ctx(&c);
	test_mr_tails(&c);
	test_mr_ranges(&c);
	test_queue_regs(&c);
	test_rereg(&c);
	test_mws(&c);
	close_ctx(&c);
}

/*
 * Completion queues (7.4).
 */

struct cq_args { uint32_t cqe, vector; const void *in; size_t in_len, out_len; };

static int create_cq(struct ctx *c, const struct cq_args *a, uint32_t *handle,
		     struct cq_resp *drv)
{
	struct ib_uverbs_create_cq cmd = { .cqe = a->cqe, .comp_vector = a->vector,
					   .comp_channel = -1 };
	struct ib_uverbs_create_cq_resp resp = {};
	uint8_t out[64] = {};
	struct tail tail = { a->in, a->in_len, out, a->out_len };
	int err = command(c->fd, IB_USER_VERBS_CMD_CREATE_CQ, &cmd, sizeof(cmd), &resp,
			  sizeof(resp), &tail);

	*handle = resp.cq_handle;
	if (drv)
		memcpy(drv, out, sizeof(*drv));
	return err;
}

static int destroy_cq(struct ctx *c, uint32_t handle)
{
	struct ib_uverbs_destroy_cq cmd = { .cq_handle = handle };
	struct ib_uverbs_destroy_cq_resp resp;

	return command(c->fd, IB_USER_VERBS_CMD_DESTROY_CQ, &cmd, sizeof(cmd), &resp, sizeof(resp),
		       NULL);
}

static int resize_cq(struct ctx *c, uint32_t cq, uint32_t cqe, const void *in, size_t in_len)
{
	struct ib_uverbs_resize_cq cmd = { .cq_handle = cq, .cqe = cqe };
	struct ib_uverbs_resize_cq_resp resp;

	return command(c->fd, IB_USER_VERBS_CMD_RESIZE_CQ, &cmd, sizeof(cmd), &resp, sizeof(resp),
		       &(struct tail){ in, in_len, NULL, 0 });
}

#define RING_PAGES	2
#define RING_SLOTS	(RING_PAGES * PAGE / 32)

static void try_cq(struct ctx *c, int want, struct cq_args a, const char *what)
{
	struct cq_req r = {};
	struct cq_resp drv;
	uint32_t cq;

	memcpy(&r, a.in, a.in_len < sizeof(r) ? a.in_len : sizeof(r));
	if (expect(want, create_cq(c, &a, &cq, &drv),
		   "CQ: %s, %u slots, vector %u, ring %#llx, shadow %#llx, tails %zu and %zu",
		   what, a.cqe, a.vector, (unsigned long long)r.ring,
		   (unsigned long long)r.shadow, a.in_len, a.out_len))
		return;
	expect_value(a.cqe < 4 ? 4 : a.cqe, drv.slots, "CQ: slots granted for %u", a.cqe);
	expect(0, destroy_cq(c, cq), "CQ: destroy after %s", what);
}

/* C46 */
static void test_cq_create(struct ctx *c, struct cq_req good)
{
	static const uint32_t sizes[] = { 0, 1, 2, 3, 4, 5, 64, RING_SLOTS - 1, RING_SLOTS,
					  RING_SLOTS + 1, 2 * RING_SLOTS, 1048575, 2097150,
					  2097151, 2097152, 0x7fffffff, 0x80000000, 0xffffffff };
	uint64_t vas[] = { 0, 1, good.ring + 8, good.ring + PAGE, good.ring - 1, 1ULL << 63,
			   -1ULL };
	struct cq_args a = { 64, 0, &good, sizeof(good), 8 };
	uint8_t in[32] = {};

	for (size_t i = 0; i < COUNT(sizes); i++) {
		a.cqe = sizes[i];
		try_cq(c, sizes[i] && sizes[i] <= RING_SLOTS ? 0 : EINVAL, a, "size");
	}
	a.cqe = 64;
	for (uint32_t bit = 7; bit < 32; bit++) {
		a.vector = 1u << bit;
		try_cq(c, EINVAL, a, "vector");
	}
	a.vector = 0;
	memcpy(in, &good, sizeof(good));
	for (size_t len = 0; len <= 24; len++)
		for (size_t out = 0; out <= 12; out++) {
			struct cq_req seen = {};	/* what is not sent reads as 0 */
			int want = len < 8 || out < 8 ? EINVAL : 0;

			memcpy(&seen, in, len < sizeof(seen) ? len : sizeof(seen));
			if (!want && seen.shadow != good.shadow)
				want = EPROTO;
			try_cq(c, want, (struct cq_args){ 64, 0, in, len, out }, "tail");
		}
	in[20] = 1;
	try_cq(c, EOPNOTSUPP, (struct cq_args){ 64, 0, in, 24, 8 }, "unknown tail");
	for (size_t i = 0; i < COUNT(vas); i++) {
		struct cq_req req = { vas[i], good.shadow };

		try_cq(c, EPROTO, (struct cq_args){ 64, 0, &req, 16, 8 }, "ring address");
		req = (struct cq_req){ good.ring, vas[i] };
		try_cq(c, EPROTO, (struct cq_args){ 64, 0, &req, 16, 8 }, "shadow address");
	}
	try_cq(c, EPROTO, (struct cq_args){ 64, 0, &(struct cq_req){ good.ring, good.ring }, 16, 8 },
	       "one area for both");
}

static void test_cq_flags(struct ctx *c, struct cq_req good)
{
	for (int bit = 0; bit < 32; bit++) {
		struct ib_uverbs_ex_create_cq cmd = { .cqe = 64, .comp_channel = -1,
						      .flags = 1u << bit };
		struct ib_uverbs_ex_create_cq_resp resp = {};
		uint64_t out;
		struct tail tail = { &good, sizeof(good), &out, sizeof(out) };

		expect(EOPNOTSUPP, command(c->fd, IB_USER_VERBS_EX_CMD_CREATE_CQ |
					   IB_USER_VERBS_CMD_FLAG_EXTENDED, &cmd, sizeof(cmd),
					   &resp, sizeof(resp), &tail), "CQ: flag %d", bit);
	}
}

/* C45: memory of a CQ stays while that uses it.  C38: resize both ways. */
static void test_cq_use(struct ctx *c, struct cq_req good, uint32_t ring_mr, uint32_t shadow_mr)
{
	struct cq_args a = { RING_SLOTS, 0, &good, sizeof(good), 8 };
	struct cq_req second = { (uintptr_t)c->mem + 8 * PAGE, 0 };
	uint64_t junk[2] = { second.ring, 1 };
	uint32_t cq, other, mr2;

	mr2 = reg_queue(c, 8, RING_PAGES, (struct reg_req){ 2, RING_PAGES, 0, 0 });
	if (expect(0, create_cq(c, &a, &cq, NULL), "CQ use: create"))
		return;
	expect(EBUSY, dereg_mr(c, ring_mr), "CQ use: dereg of the ring");
	expect(EBUSY, dereg_mr(c, shadow_mr), "CQ use: dereg of the shadow area");
	expect(EPROTO, create_cq(c, &a, &other, NULL), "CQ use: second CQ on the same memory");

	for (size_t len = 0; len < 8; len++)
		expect(EINVAL, resize_cq(c, cq, 64, &second.ring, len), "resize: tail %zu", len);
	expect(EOPNOTSUPP, resize_cq(c, cq, 64, junk, 16), "resize: unknown tail");
	expect(EINVAL, resize_cq(c, cq, 0, &second.ring, 8), "resize: 0 slots");
	expect(EINVAL, resize_cq(c, cq, RING_SLOTS + 1, &second.ring, 8), "resize: ring too small");
	expect(EINVAL, resize_cq(c, cq, 2097151, &second.ring, 8), "resize: above the limit");
	expect(EINVAL, resize_cq(c, cq, 0xffffffff, &second.ring, 8), "resize: 2^32-1 slots");
	expect(ENOMEM, resize_cq(c, cq, 64, &good.ring, 8), "resize: to the ring in use");
	expect(ENOMEM, resize_cq(c, cq, 64, &(uint64_t){ 0 }, 8), "resize: to address 0");
	for (uint32_t slots = 1; slots <= RING_SLOTS; slots *= 2) {
		expect(0, resize_cq(c, cq, slots, &second.ring, 8), "resize: %u slots", slots);
		expect(EBUSY, dereg_mr(c, mr2), "resize: dereg of the new ring");
		expect(0, resize_cq(c, cq, RING_SLOTS, &good.ring, 8), "resize: and back");
	}
	expect(0, destroy_cq(c, cq), "CQ use: destroy");
	expect(ENOENT, destroy_cq(c, cq), "CQ use: destroy twice");
	expect(0, dereg_mr(c, mr2), "CQ use: dereg of the second ring");
}

static void test_cqs(void)
{
	struct cq_req good;
	uint32_t ring_mr, shadow_mr;
	struct ctx c;

	open_ctx(&c);
	good = (struct cq_req){ (uintptr_t)c.mem, (uintptr_t)c.mem + 4 * PAGE };
	ring_mr = reg_queue(&c, 0, RING_PAGES, (struct reg_req){ 2, RING_PAGES, 0, 0 });
	shadow_mr = reg_queue(&c, 4, 1, (struct reg_req){ 2, 1, 0, 0 });
	test_cq_create(&c, good);
	test_cq_flags(&c, good);
	test_cq_use(&c, good, ring_mr, shadow_mr);
	expect(0, dereg_mr(&c, ring_mr), "CQ: dereg of the ring");
	expect(0, dereg_mr(&c, shadow_mr), "CQ: dereg of the shadow area");
	close_ctx(&c);
}

/*
 * Queue pairs (7.5, 7.6).
 */

#define SQ_PAGES	8UL	/* 1024 quanta */
#define RQ_PAGES	4UL
#define QP_AT		16UL	/* page in the context's memory */

struct qp_args {
	uint32_t send_wr, recv_wr, send_sge, recv_sge, inline_len, srq;
	uint8_t type, is_srq;
	const void *in;
	size_t in_len, out_len;
};

struct qp_env { struct ctx c; uint32_t cq, ring_mr, shadow_mr, mr; struct qp_req req; };

static int create_qp(struct qp_env *e, const struct qp_args *a, uint32_t *handle,
		     struct qp_resp *drv)
{
	struct ib_uverbs_create_qp cmd = {
		.pd_handle = e->c.pd, .send_cq_handle = e->cq, .recv_cq_handle = e->cq,
		.srq_handle = a->srq, .is_srq = a->is_srq, .qp_type = a->type,
		.max_send_wr = a->send_wr, .max_recv_wr = a->recv_wr,
		.max_send_sge = a->send_sge, .max_recv_sge = a->recv_sge,
		.max_inline_data = a->inline_len,
	};
	struct ib_uverbs_create_qp_resp resp = {};
	uint8_t out[64] = {};
	struct tail tail = { a->in, a->in_len, out, a->out_len };
	int err = command(e->c.fd, IB_USER_VERBS_CMD_CREATE_QP, &cmd, sizeof(cmd), &resp,
			  sizeof(resp), &tail);

	*handle = resp.qp_handle;
	if (drv)
		memcpy(drv, out, sizeof(*drv));
	return err;
}

static int destroy_qp(struct qp_env *e, uint32_t handle)
{
	struct ib_uverbs_destroy_qp cmd = { .qp_handle = handle };
	struct ib_uverbs_destroy_qp_resp resp;

	return command(e->c.fd, IB_USER_VERBS_CMD_DESTROY_QP, &cmd, sizeof(cmd), &resp,
		       sizeof(resp), NULL);
}

static void open_qp_env(struct qp_env *e)
{
	struct cq_req cq_req;
	struct cq_args a = { 128, 0, &cq_req, sizeof(cq_req), 8 };
	int err;

	open_ctx(&e->c);
	e->ring_mr = reg_queue(&e->c, 0, 1, (struct reg_req){ 2, 1, 0, 0 });
	e->shadow_mr = reg_queue(&e->c, 1, 1, (struct reg_req){ 2, 1, 0, 0 });
	cq_req = (struct cq_req){ (uintptr_t)e->c.mem, (uintptr_t)e->c.mem + PAGE };
	err = create_cq(&e->c, &a, &e->cq, NULL);
	if (err)
		fatal("creating a CQ", err);
	e->mr = reg_queue(&e->c, QP_AT, SQ_PAGES + RQ_PAGES + 1,
			  (struct reg_req){ 1, 0, RQ_PAGES, SQ_PAGES });
	e->req = (struct qp_req){ (uintptr_t)e->c.mem + QP_AT * PAGE, 0x1234 };
}

static struct qp_args good_qp(struct qp_env *e)
{
	return (struct qp_args){ .send_wr = 16, .recv_wr = 16, .send_sge = 1, .recv_sge = 1,
				 .type = IB_UVERBS_QPT_RC, .in = &e->req,
				 .in_len = sizeof(e->req), .out_len = sizeof(struct qp_resp) };
}

static void try_qp(struct qp_env *e, int want, struct qp_args a, const char *what)
{
	struct qp_resp drv;
	uint32_t qp;

	if (expect(want, create_qp(e, &a, &qp, &drv),
		   "QP: %s, %u/%u WRs, %u/%u SGEs, inline %u, type %u, tails %zu and %zu", what,
		   a.send_wr, a.recv_wr, a.send_sge, a.recv_sge, a.inline_len, a.type, a.in_len,
		   a.out_len))
		return;
	expect_value(1, drv.lsmm, "QP: lsmm");
	expect_value(1, drv.qpn >= 3, "QP: number is not reserved");
	expect(0, destroy_qp(e, qp), "QP: destroy after %s", what);
}

/* C48 */
static void test_qp_caps(struct qp_env *e)
{
	static const uint32_t bad_wrs[] = { 4064, 32768, 65536, 1u << 27, 1u << 28, 1u << 29,
					    1u << 31, 0xfffffeff, 0xffffffff };
	struct qp_args a;

	for (size_t i = 0; i < COUNT(bad_wrs); i++) {
		a = good_qp(e);
		a.send_wr = bad_wrs[i];
		try_qp(e, EINVAL, a, "send WRs");
		a = good_qp(e);
		a.recv_wr = bad_wrs[i];
		try_qp(e, EINVAL, a, "receive WRs");
	}
	for (uint32_t n = 0; n <= 20; n++) {
		a = good_qp(e);
		a.send_sge = n;
		try_qp(e, n <= 13 ? 0 : EINVAL, a, "send SGEs");
		a = good_qp(e);
		a.recv_sge = n;
		try_qp(e, n <= 13 ? 0 : EINVAL, a, "receive SGEs");
	}
	for (uint32_t n = 0; n <= 128; n++) {
		a = good_qp(e);
		a.inline_len = n;
		try_qp(e, n <= 101 ? 0 : EINVAL, a, "inline");
	}
	for (int bit = 8; bit < 32; bit++) {
		a = good_qp(e);
		a.send_sge = 1u << bit;
		try_qp(e, EINVAL, a, "send SGEs");
		a = good_qp(e);
		a.recv_sge = 1u << bit;
		try_qp(e, EINVAL, a, "receive SGEs");
		a = good_qp(e);
		a.inline_len = 1u << bit;
		try_qp(e, EINVAL, a, "inline");
	}
	/*
	 * The memory holds 1024 quanta of SQ, 512 of RQ: one WR more must be refused. A send
	 * takes two quanta, one SGE and immediate data.
	 */
	a = good_qp(e);
	a.send_wr = (1024 - 258) / 2;
	try_qp(e, 0, a, "SQ that fills its memory");
	a.send_wr++;
	try_qp(e, EINVAL, a, "SQ larger than its memory");
	a = good_qp(e);
	a.recv_wr = 512 - 1;
	try_qp(e, 0, a, "RQ that fills its memory");
	a.recv_wr++;
	try_qp(e, EINVAL, a, "RQ larger than its memory");
	a = good_qp(e);
	a.send_wr = a.recv_wr = a.send_sge = a.recv_sge = 0;
	try_qp(e, 0, a, "all zero");
}

/* C46: lengths of both tails; addresses of queues, 0 among them. */
static void test_qp_tails(struct qp_env *e)
{
	uint64_t vas[] = { 0, 1, e->req.queues + 64, e->req.queues + PAGE, 1ULL << 63, -1ULL };
	uint8_t in[40] = {};
	struct qp_args a;

	memcpy(in, &e->req, sizeof(e->req));
	for (size_t len = 0; len <= 36; len++)
		for (size_t out = 0; out <= 28; out++) {
			a = good_qp(e);
			a.in = in;
			a.in_len = len;
			a.out_len = out;
			try_qp(e, len < 16 || out < 20 ? EINVAL : 0, a, "tail");
		}
	in[39] = 1;
	a.in_len = 40;
	try_qp(e, EOPNOTSUPP, a, "unknown tail");
	for (size_t i = 0; i < COUNT(vas); i++) {
		struct qp_req req = { vas[i], 0 };

		a = good_qp(e);
		a.in = &req;
		try_qp(e, ENODATA, a, "queue address");
	}
	for (int type = 0; type < 256; type++) {
		a = good_qp(e);
		a.type = type;
		if (type != IB_UVERBS_QPT_RC)
			expect_value(1, create_qp(e, &a, &(uint32_t){ 0 }, NULL) != 0,
				     "QP: type %d refused", type);
	}
	a = good_qp(e);
	a.is_srq = 1;
	try_qp(e, ANY_ERRNO, a, "SRQ");
}

static int modify_qp(struct qp_env *e, const struct ib_uverbs_ex_modify_qp *cmd,
		     const struct tail *tail)
{
	return command(e->c.fd, IB_USER_VERBS_EX_CMD_MODIFY_QP | IB_USER_VERBS_CMD_FLAG_EXTENDED,
		       cmd, sizeof(*cmd), NULL, 0, tail);
}

static int to_state(struct qp_env *e, uint32_t qp, uint8_t state, const struct tail *tail)
{
	struct ib_uverbs_ex_modify_qp cmd = { .base = { .qp_handle = qp, .attr_mask = 1,
							.qp_state = state } };

	return modify_qp(e, &cmd, tail);
}

static int query_state(struct qp_env *e, uint32_t qp)
{
	struct ib_uverbs_query_qp cmd = { .qp_handle = qp, .attr_mask = 1 };
	struct ib_uverbs_query_qp_resp resp = {};
	int err = command(e->c.fd, IB_USER_VERBS_CMD_QUERY_QP, &cmd, sizeof(cmd), &resp,
			  sizeof(resp), NULL);

	return err ? -err : resp.qp_state;
}

/* C26: the state that is told.  C31: ERR to ERR again and again, with each request to flush. */
static void test_qp_modify(struct qp_env *e)
{
	struct qp_args a = good_qp(e);
	uint8_t in[24] = {}, out[40];
	uint32_t qp;

	for (int state = 0; state < 256; state++) {
		if (expect(0, create_qp(e, &a, &qp, NULL), "modify: create"))
			return;
		/* Nobody may put an unconnected QP into RTS or past it except ERR. */
		int err = to_state(e, qp, state, NULL);

		expect(ANY_ERRNO, err, "modify: state %d", state);
		if (state > 6)
			expect_value(EINVAL, err, "modify: state %d refused", state);
		if (state == 3 || state > 6)
			expect_value(1, query_state(e, qp) != 3, "modify: not in RTS");
		expect(0, destroy_qp(e, qp), "modify: destroy");
	}
	if (expect(0, create_qp(e, &a, &qp, NULL), "modify: create"))
		return;
	for (int bit = 0; bit < 32; bit++) {
		struct ib_uverbs_ex_modify_qp cmd = { .base = { .qp_handle = qp, .port_num = 1,
								.attr_mask = 1u << bit } };

		memset(&cmd.base.qkey, 0xFF, 20);
		expect(ANY_ERRNO, modify_qp(e, &cmd, NULL), "modify: mask bit %d", bit);
	}
	expect(0, destroy_qp(e, qp), "modify: destroy");

	if (expect(0, create_qp(e, &a, &qp, NULL), "modify: create"))
		return;
	expect(0, to_state(e, qp, 6, NULL), "modify: to ERR");
	expect_value(6, query_state(e, qp), "modify: state after ERR");
	for (size_t len = 0; len <= sizeof(in); len++)
		for (size_t o = 0; o <= sizeof(out); o++)
			expect((len && len < 8) || (o && o < 19) ? EINVAL : 0,
			       to_state(e, qp, 6, &(struct tail){ in, len, out, o }),
			       "modify: ERR to ERR, tails %zu and %zu", len, o);
	in[20] = 1;
	expect(EOPNOTSUPP, to_state(e, qp, 6, &(struct tail){ in, 24, out, 24 }),
	       "modify: unknown tail");
	in[20] = 0;
	for (int flush = 0; flush < 256; flush++) {
		in[0] = flush;
		in[1] = flush >> 1;
		expect(0, to_state(e, qp, 6, &(struct tail){ in, 8, out, 24 }),
		       "modify: flush %d", flush);
	}
	expect(0, destroy_qp(e, qp), "modify: destroy");
}

/* C45: memory of a QP stays while that uses it. */
static void test_qp_use(struct qp_env *e)
{
	struct qp_args a = good_qp(e);
	uint32_t qp, other;

	if (expect(0, create_qp(e, &a, &qp, NULL), "QP use: create"))
		return;
	expect(EBUSY, dereg_mr(&e->c, e->mr), "QP use: dereg of the queues");
	expect(EBUSY, destroy_cq(&e->c, e->cq), "QP use: destroy of its CQ");
	expect(EBUSY, dealloc_pd(e->c.fd, e->c.pd), "QP use: dealloc of its PD");
	expect(ENODATA, create_qp(e, &a, &other, NULL), "QP use: second QP on the same memory");
	expect(0, destroy_qp(e, qp), "QP use: destroy");
	expect(ENOENT, destroy_qp(e, qp), "QP use: destroy twice");
}

static void test_qps(void)
{
	struct qp_env e;

	open_qp_env(&e);
	test_qp_caps(&e);
	test_qp_tails(&e);
	test_qp_modify(&e);
	test_qp_use(&e);
	expect(0, dereg_mr(&e.c, e.mr), "QP: dereg of the queues");
	expect(0, destroy_cq(&e.c, e.cq), "QP: destroy of the CQ");
	expect(0, dereg_mr(&e.c, e.ring_mr), "QP: dereg of the ring");
	expect(0, dereg_mr(&e.c, e.shadow_mr), "QP: dereg of the shadow area");
	close_ctx(&e.c);
}

/* C45: processes that end with everything in use, in the middle of anything. */
static void test_exits(void)
{
	for (int round = 0; round < 20; round++) {
		pid_t pid = fork();
		int status;

		if (!pid) {
			struct qp_env e;
			struct qp_args a;
			uint32_t qp;

			open_qp_env(&e);
			a = good_qp(&e);
			if (create_qp(&e, &a, &qp, NULL))
				_exit(1);
			if (round & 1)
				to_state(&e, qp, 6, NULL);
			if (round & 2)
				munmap(e.c.mem, MEM_PAGES * PAGE);
			_exit(0);
		}
		waitpid(pid, &status, 0);
		expect_value(0, status, "exit: round %d", round);
	}
}

/* C46: random commands with random contents: the kernel has to survive, nothing else. */
static void test_random(unsigned int seed)
{
	static const uint32_t cmds[] = {
		IB_USER_VERBS_CMD_ALLOC_PD, IB_USER_VERBS_CMD_REG_MR, IB_USER_VERBS_CMD_REREG_MR,
		IB_USER_VERBS_CMD_DEREG_MR, IB_USER_VERBS_CMD_ALLOC_MW,
		IB_USER_VERBS_CMD_DEALLOC_MW, IB_USER_VERBS_CMD_CREATE_CQ,
		IB_USER_VERBS_CMD_RESIZE_CQ, IB_USER_VERBS_CMD_DESTROY_CQ,
		IB_USER_VERBS_CMD_POLL_CQ, IB_USER_VERBS_CMD_REQ_NOTIFY_CQ,
		IB_USER_VERBS_CMD_CREATE_QP, IB_USER_VERBS_CMD_QUERY_QP,
		IB_USER_VERBS_CMD_MODIFY_QP, IB_USER_VERBS_CMD_DESTROY_QP,
		IB_USER_VERBS_CMD_POST_SEND, IB_USER_VERBS_CMD_POST_RECV,
		IB_USER_VERBS_CMD_CREATE_AH, IB_USER_VERBS_CMD_CREATE_SRQ,
		IB_USER_VERBS_CMD_ATTACH_MCAST, IB_USER_VERBS_CMD_OPEN_XRCD,
		IB_USER_VERBS_EX_CMD_CREATE_QP | IB_USER_VERBS_CMD_FLAG_EXTENDED,
		IB_USER_VERBS_EX_CMD_CREATE_CQ | IB_USER_VERBS_CMD_FLAG_EXTENDED,
		IB_USER_VERBS_EX_CMD_MODIFY_QP | IB_USER_VERBS_CMD_FLAG_EXTENDED,
		IB_USER_VERBS_EX_CMD_MODIFY_CQ | IB_USER_VERBS_CMD_FLAG_EXTENDED,
		IB_USER_VERBS_EX_CMD_CREATE_WQ | IB_USER_VERBS_CMD_FLAG_EXTENDED,
		IB_USER_VERBS_EX_CMD_CREATE_FLOW | IB_USER_VERBS_CMD_FLAG_EXTENDED,
		IB_USER_VERBS_EX_CMD_QUERY_DEVICE | IB_USER_VERBS_CMD_FLAG_EXTENDED,
	};
	uint8_t in[256], tail_in[64], out[512], tail_out[128];
	struct qp_env e;

	srandom(seed);
	open_qp_env(&e);
	for (unsigned int i = 0; i < 50000; i++) {
		struct tail tail = { tail_in, random() % 33, tail_out, random() % 65 };
		size_t in_len = 8 + random() % 200;

		for (size_t b = 0; b < sizeof(in); b += 4) {
			/* Small numbers are handles, counts and flags that mean something. */
			uint32_t v = random() % 4 ? random() % 5 : (uint32_t)random() << 1;

			memcpy(in + b, &v, 4);
		}
		for (size_t b = 0; b < sizeof(tail_in); b += 8) {
			uint64_t v = random() % 3 ? (uint64_t)random() % 3 :
				     (uintptr_t)e.c.mem + random() % MEM_PAGES * PAGE;

			memcpy(tail_in + b, &v, 8);
		}
		command(e.c.fd, cmds[random() % COUNT(cmds)], in, in_len, out, sizeof(out), &tail);
	}
	close_ctx(&e.c);
	passed++;
}

/*
 * Numbers of objects (C42: PDs above 0x7fff among them): all that the device reports can be
 * made, one more is refused with EINVAL.  The queues of all QPs and CQs lie in the same memory,
 * since nothing ever completes.
 */

static int another_pd(struct qp_env *e)
{
	uint32_t handle;
	uint64_t out;

	return alloc_pd(e->c.fd, &handle, &(struct tail){ NULL, 0, &out, sizeof(out) });
}

static int another_mr(struct qp_env *e)
{
	struct mr_args a = at(&e->c, 0, 1, IB_UVERBS_ACCESS_LOCAL_WRITE);
	struct reg_req req = {};
	uint32_t handle;

	return reg_mr(&e->c, &a, &handle, &(struct tail){ &req, sizeof(req), NULL, 0 }, NULL);
}

static int another_mw(struct qp_env *e)
{
	struct ib_uverbs_alloc_mw_resp resp;

	return alloc_mw(&e->c, 2, &resp, NULL);
}

static int another_cq(struct qp_env *e)
{
	struct cq_req req = { (uintptr_t)e->c.mem, (uintptr_t)e->c.mem + PAGE };
	struct cq_args a = { 64, 0, &req, sizeof(req), 8 };
	uint32_t handle;

	reg_queue(&e->c, 0, 1, (struct reg_req){ 2, 1, 0, 0 });
	reg_queue(&e->c, 1, 1, (struct reg_req){ 2, 1, 0, 0 });
	return create_cq(&e->c, &a, &handle, NULL);
}

static int another_qp(struct qp_env *e)
{
	struct qp_args a = good_qp(e);
	uint32_t handle;

	reg_queue(&e->c, QP_AT, SQ_PAGES + RQ_PAGES + 1, (struct reg_req){ 1, 0, RQ_PAGES, SQ_PAGES });
	return create_qp(e, &a, &handle, NULL);
}

/* @have of the @limit objects exist before, made by open_qp_env(). */
static void reach(const char *name, uint32_t limit, uint32_t have, int (*another)(struct qp_env *e))
{
	struct timespec start, end;
	struct qp_env e;
	int err = 0;

	clock_gettime(CLOCK_MONOTONIC, &start);
	/* twice: a context that ends gives all of them back */
	for (int round = 0; round < 2; round++) {
		uint32_t made = have;

		open_qp_env(&e);
		for (; made <= limit; made++) {
			err = another(&e);
			if (err || (round && made > have + 10))
				break;
		}
		if (!round) {
			expect_value(limit, made, "limits: number of %ss", name);
			expect(EINVAL, err, "limits: %s above the limit", name);
			expect(EINVAL, another(&e), "limits: %s above the limit, again", name);
		} else {
			expect(0, err, "limits: %s in a new context", name);
		}
		close_ctx(&e.c);
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	printf("%u %ss, %ld s\n", limit, name, (long)(end.tv_sec - start.tv_sec));
}

static void test_limits(void)
{
	struct ib_uverbs_query_device_resp a = {};
	uint64_t response = 0;
	struct ctx c;

	open_ctx(&c);
	if (expect(0, command(c.fd, IB_USER_VERBS_CMD_QUERY_DEVICE, &response, sizeof(response), &a,
			      sizeof(a), NULL), "limits: query"))
		return;
	close_ctx(&c);
	reach("QP", a.max_qp, 0, another_qp);
	reach("CQ", a.max_cq, 1, another_cq);
	reach("MR", a.max_mr, 0, another_mr);
	reach("MW", a.max_mw, 0, another_mw);
	reach("PD", a.max_pd, 1, another_pd);
}

/* Many processes give the commands at the same time (C39): none is lost, none mixed up. */
#define CROWD		8
#define CROWD_ROUNDS	200

static void test_crowd(void)
{
	uint32_t *keys = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pids[CROWD];

	for (unsigned int p = 0; p < CROWD; p++) {
		pids[p] = fork();
		if (pids[p])
			continue;
		struct ib_uverbs_reg_mr_resp resp;
		struct reg_req req = {};
		struct tail tail = { &req, sizeof(req), NULL, 0 };
		struct ib_uverbs_alloc_mw_resp mw;
		struct ctx c;
		uint32_t mr;

		open_ctx(&c);
		for (unsigned int i = 0; i < CROWD_ROUNDS; i++) {
			struct mr_args a = at(&c, i % 8, 1 + i % 8, 1);

			if (reg_mr(&c, &a, &mr, &tail, &resp) || alloc_mw(&c, 2, &mw, NULL))
				_exit(1);
			__atomic_store_n(&keys[p], resp.lkey >> 8 & 0x3fff, __ATOMIC_SEQ_CST);
			for (unsigned int other = 0; other < CROWD; other++)
				if (other != p && __atomic_load_n(&keys[other], __ATOMIC_SEQ_CST) ==
				    keys[p])
					_exit(2);
			__atomic_store_n(&keys[p], 0, __ATOMIC_SEQ_CST);
			if (dealloc_mw(&c, mw.mw_handle) || dereg_mr(&c, mr))
				_exit(3);
		}
		_exit(0);
	}
	for (unsigned int p = 0; p < CROWD; p++) {
		int status;

		waitpid(pids[p], &status, 0);
		expect_value(0, WEXITSTATUS(status), "crowd: process %u", p);
	}
}

int main(int argc, char **argv)
{
	unsigned int seed = 1;

	if (argc > 1)
		device = argv[1];
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc > 2) {
		if (!strcmp(argv[2], "limits"))
			test_limits();
		else if (!strcmp(argv[2], "crowd"))
			test_crowd();
		printf("%u passed, %u failed\n", passed, failed);
		return failed != 0;
	}
	test_contexts();
	test_mmap();
	test_pds();
	test_mrs();
	test_cqs();
	test_qps();
	test_exits();
	for (; seed <= 5; seed++) {
		printf("random commands, seed %u\n", seed);
		test_random(seed);
	}
	printf("%u passed, %u failed\n", passed, failed);
	return failed != 0;
}
