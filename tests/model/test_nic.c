// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * test_nic.c - the NIC without a guest: vfio-user transport and admin queue against
 * malformed requests, control queue against what silicon refuses, faults.
 *
 * Built with AddressSanitizer: an answer is half of a case's result, that nothing is
 * read or written out of place the other.  Every case starts from a reset device and
 * a fresh client connection.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include "nic.h"
#include "rdma_fault.h"
#include "rdma_int.h"

#define RAM_SIZE	(8u << 20)
#define RAM_BASE	0x10000000ull

enum { VERSION = 1, DMA_MAP, DMA_UNMAP, GET_INFO, REGION_INFO, IO_FDS, IRQ_INFO, SET_IRQS, READ,
       WRITE, DMA_READ, DMA_WRITE, RESET };
enum { BAR0 = 0, CONFIG = 7 };

static struct nic dev;
static int client = -1, ram_fd;
static u8 *ram;
static unsigned int passed, failed;
static bool ok;
static const char *case_name;

#define CHECK(cond, ...) do {						\
	if (!(cond)) {							\
		printf("FAIL %s, line %d: %s: ", case_name, __LINE__, #cond);	\
		printf(__VA_ARGS__);					\
		putchar('\n');						\
		ok = false;						\
	}								\
} while (0)

/* the client */

struct hdr {
	u16 id, cmd;
	u32 size, flags, err;
};

static void send_raw(const void *data, size_t len, int fd)
{
	union { char b[CMSG_SPACE(sizeof(int))]; struct cmsghdr align; } c = { 0 };
	struct iovec iov = { (void *)data, len };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (fd >= 0) {
		struct cmsghdr *cm;

		m.msg_control = c.b;
		m.msg_controllen = sizeof(c.b);
		cm = CMSG_FIRSTHDR(&m);
		cm->cmsg_level = SOL_SOCKET;
		cm->cmsg_type = SCM_RIGHTS;
		cm->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(cm), &fd, sizeof(int));
	}
	if (sendmsg(client, &m, MSG_NOSIGNAL) != (ssize_t)len)
		CHECK(0, "send: %s", strerror(errno));
}

/* Send a request; returns the errno of the answer, or -1 when the server hung up. */
static int request(u16 cmd, const void *payload, u32 len, void *answer, u32 *alen, int fd)
{
	static u8 msg[1 << 18];
	struct hdr h = { .id = 7, .cmd = cmd, .size = sizeof(h) + len };
	ssize_t n;

	memcpy(msg, &h, sizeof(h));
	memcpy(msg + sizeof(h), payload, len);
	send_raw(msg, sizeof(h) + len, fd);
	if (vu_handle(&dev) < 0)
		return -1;
	n = recv(client, msg, sizeof(msg), MSG_DONTWAIT);
	CHECK(n >= (ssize_t)sizeof(h), "answer of %zd bytes", n);
	memcpy(&h, msg, sizeof(h));
	CHECK(h.id == 7 && h.cmd == cmd && h.size == n, "answer header id %u cmd %u size %u", h.id, h.cmd,
	      h.size);
	CHECK(!!(h.flags & 0x20) == !!h.err, "error flag and number disagree");
	if (alen)
		*alen = n - sizeof(h);
	if (answer)
		memcpy(answer, msg + sizeof(h), n - sizeof(h));
	return h.err;
}

static int simple(u16 cmd, const void *payload, u32 len) { return request(cmd, payload, len, NULL, NULL, -1); }

static int access_region(bool write, u64 off, u32 region, u32 count, u32 data_len, u32 *val)
{
	u8 p[64] = { 0 }, a[1 << 17];
	int err;

	st64(p, off);
	st32(p + 8, region);
	st32(p + 12, count);
	if (write)
		st32(p + 16, *val);
	err = request(write ? WRITE : READ, p, 16 + data_len, a, NULL, -1);
	if (!err && !write && count >= 4)
		*val = ld32(a + 16);
	return err;
}

static u32 reg_get(u32 off)
{
	u32 v = 0;
	int err = access_region(false, off, BAR0, 4, 0, &v);

	CHECK(!err, "read of 0x%x: %d", off, err);
	return v;
}

static void reg_put(u32 off, u32 v)
{
	int err = access_region(true, off, BAR0, 4, 4, &v);

	CHECK(!err, "write of 0x%x: %d", off, err);
}

static int map_ram(u64 iova, u64 size, u64 off, int fd)
{
	u8 p[32] = { 0 };

	st32(p, 32);
	st32(p + 4, 3);
	st64(p + 8, off);
	st64(p + 16, iova);
	st64(p + 24, size);
	return request(DMA_MAP, p, sizeof(p), NULL, NULL, fd);
}

static void setup(void)
{
	int sv[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, sv))
		abort();
	dev.sock = sv[0];
	client = sv[1];
	memset(ram, 0, RAM_SIZE);
	strict_clear();
	nic_reset(&dev, true);
	CHECK(!map_ram(RAM_BASE, RAM_SIZE, 0, ram_fd), "map of guest memory");
}

static void teardown(void)
{
	close(client);
	vu_close(&dev);
	dev.removed = false;
	rdma_faults = (struct rdma_faults){ .hold.opcode = -1, .fail.opcode = -1, .stop.opcode = -1 };
}

/* vfio-user */

static void vu_short_payloads(void)
{
	static const u8 cmds[] = { VERSION, DMA_MAP, DMA_UNMAP, GET_INFO, REGION_INFO, IRQ_INFO, SET_IRQS,
				   READ, WRITE };
	static const u8 least[] = { 4, 32, 24, 16, 16, 16, 20, 16, 16 };
	u8 p[64] = { 0 };

	for (size_t i = 0; i < sizeof(cmds); i++)
		for (u32 len = 0; len < least[i]; len++)
			CHECK(simple(cmds[i], p, len) == EINVAL, "command %u, %u bytes", cmds[i], len);
}

static void vu_unknown_commands(void)
{
	u8 p[64] = { 0 };

	for (u16 cmd = 14; cmd < 40; cmd++)
		CHECK(simple(cmd, p, sizeof(p)) == ENOTSUP, "command %u", cmd);
	CHECK(simple(0, p, 4) == ENOTSUP, "command 0");
	CHECK(simple(0xffff, p, 4) == ENOTSUP, "command 0xffff");
}

static void vu_bad_sizes(void)
{
	static const u32 sizes[] = { 0, 1, 15, (1 << 17) + 17, 0x7fffffff, 0xffffffff };

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct hdr h = { .id = 1, .cmd = VERSION, .size = sizes[i] };

		send_raw(&h, sizeof(h), -1);
		CHECK(vu_handle(&dev) < 0, "size %u accepted", sizes[i]);
		teardown();
		setup();
	}
}

static void vu_truncated(void)
{
	struct hdr h = { .id = 1, .cmd = VERSION, .size = sizeof(h) + 20 };

	send_raw(&h, 7, -1);
	shutdown(client, SHUT_WR);
	CHECK(vu_handle(&dev) < 0, "half a header accepted");
	teardown();
	setup();
	send_raw(&h, sizeof(h), -1);
	shutdown(client, SHUT_WR);
	CHECK(vu_handle(&dev) < 0, "header without payload accepted");
}

static void vu_region_bounds(void)
{
	static const u64 offs[] = { BAR0_SIZE, BAR0_SIZE - 2, UINT64_MAX - 3, UINT64_MAX, 1ull << 63 };
	u32 v = 0;

	for (size_t i = 0; i < ARRAY_SIZE(offs); i++) {
		CHECK(access_region(false, offs[i], BAR0, 4, 0, &v) == EINVAL, "read at 0x%llx",
		      (unsigned long long)offs[i]);
		CHECK(access_region(true, offs[i], BAR0, 4, 4, &v) == EINVAL, "write at 0x%llx",
		      (unsigned long long)offs[i]);
		CHECK(access_region(false, offs[i], CONFIG, 4, 0, &v) == EINVAL, "config at 0x%llx",
		      (unsigned long long)offs[i]);
		CHECK(access_region(true, offs[i], 3, 4, 4, &v) == EINVAL, "BAR 3 at 0x%llx",
		      (unsigned long long)offs[i]);
	}
	CHECK(access_region(false, 4093, CONFIG, 4, 0, &v) == EINVAL, "read across the end of config");
	CHECK(access_region(false, 0, BAR0, 0xffffffff, 0, &v) == EINVAL, "read of 4 GB");
	CHECK(access_region(true, 0, BAR0, 0xffffffff, 4, &v) == EINVAL, "write of 4 GB");
	CHECK(access_region(true, 0, CONFIG, 100, 4, &v) == EINVAL, "write with too little data");
	for (u32 r = 1; r < 12; r++)
		if (r != 3 && r != CONFIG)
			CHECK(access_region(false, 0, r, 4, 0, &v) == EINVAL, "region %u", r);
	CHECK(!access_region(false, 0, CONFIG, 4, 0, &v) && v == 0x15928086, "device id 0x%08x", v);
}

static void vu_dma_map(void)
{
	int short_fd = memfd_create("short", MFD_CLOEXEC);

	if (ftruncate(short_fd, 4096))
		abort();
	CHECK(map_ram(0, 0, 0, ram_fd) == EINVAL, "size 0");
	CHECK(map_ram(UINT64_MAX - 4095, 8192, 0, ram_fd) == EINVAL, "wraps");
	CHECK(map_ram(0, 8192, UINT64_MAX - 4095, ram_fd) == EINVAL, "offset wraps");
	CHECK(map_ram(RAM_BASE + 4096, 4096, 0, ram_fd) == EEXIST, "overlap");
	CHECK(map_ram(0, 1 << 20, 0, short_fd) == EINVAL, "file is too short");
	CHECK(map_ram(0, 4096, 1, ram_fd) == EINVAL, "offset is not a page's");
	CHECK(!map_ram(0x40000000, 4096, 0, -1), "memory without a file");
	CHECK(!dma_ptr(&dev, 0x40000000, 8), "access to memory without a file");
	CHECK(!dma_ptr(&dev, RAM_BASE + RAM_SIZE - 4, 8), "access across the end");
	CHECK(!dma_ptr(&dev, UINT64_MAX - 3, 8), "access that wraps");
	memcpy(ram + RAM_SIZE - 8, "lastword", 8);
	CHECK(!memcmp(dma_ptr(&dev, RAM_BASE + RAM_SIZE - 8, 8), "lastword", 8), "last bytes");
	close(short_fd);
}

static void vu_set_irqs(void)
{
	u8 p[20] = { 0 };

	st32(p + 4, 1 << 5 | 1 << 2);
	st32(p + 8, 2);
	st32(p + 12, 64);
	st32(p + 16, 1);
	CHECK(simple(SET_IRQS, p, sizeof(p)) == EINVAL, "start beyond the vectors");
	st32(p + 12, 0);
	st32(p + 16, 65);
	CHECK(simple(SET_IRQS, p, sizeof(p)) == EINVAL, "too many vectors");
	st32(p + 12, 0xffffffff);
	st32(p + 16, 2);
	CHECK(simple(SET_IRQS, p, sizeof(p)) == EINVAL, "start and count wrap");
	st32(p + 12, 0);
	st32(p + 16, 64);
	CHECK(!simple(SET_IRQS, p, sizeof(p)), "fewer descriptors than vectors");
	st32(p + 8, 99);
	CHECK(!simple(SET_IRQS, p, sizeof(p)), "unknown interrupt index is ignored");
}

static void vu_garbage(void)
{
	static u8 p[512];

	srand(1);
	for (int i = 0; i < 20000; i++) {
		u32 len = rand() % sizeof(p);
		u16 cmd = rand() % 16;

		for (u32 k = 0; k < len; k++)
			p[k] = rand() % 4 ? rand() : 0;
		if (cmd == DMA_UNMAP || cmd == RESET)
			continue;
		if (request(cmd, p, len, NULL, NULL, -1) < 0) {
			teardown();
			setup();
		}
	}
}

/* admin queue */

enum { ATQ = 0x1000, ATQ_LEN = 8, AQ_BUF = 0x3000, F_BUF = 0x1000, F_ERR = 4, F_DD = 1 };

static void aq_setup(void)
{
	reg_put(0x00080000, (u32)(RAM_BASE + ATQ));
	reg_put(0x00080100, 0);
	reg_put(0x00080200, ATQ_LEN | 1u << 31);
	reg_put(0x00080300, 0);
	reg_put(0x00080400, 0);
}

/* Returns the command's return value, -1 when it was not done. */
static int aq(u16 op, u16 flags, u16 len, u64 buf, const void *params)
{
	u32 at = reg_get(0x00080300);
	u8 *q = ram + ATQ + 32 * at;

	memset(q, 0, 32);
	st16(q, flags);
	st16(q + 2, op);
	st16(q + 4, len);
	if (params)
		memcpy(q + 16, params, 16);
	if (flags & F_BUF) {
		st32(q + 24, buf >> 32);
		st32(q + 28, (u32)buf);
	}
	reg_put(0x00080400, (at + 1) % ATQ_LEN);
	return ld16(q) & F_DD ? ld16(q + 6) : -1;
}

static void aq_basics(void)
{
	aq_setup();
	CHECK(aq(0x0001, 0, 0, 0, NULL) == 0, "get version");
	CHECK(ram[ATQ + 16 + 13] == 1 && ram[ATQ + 16 + 14] == 7, "API version %u.%u",
	      ram[ATQ + 16 + 13], ram[ATQ + 16 + 14]);
	CHECK(aq(0x7777, 0, 0, 0, NULL) != 0, "unknown opcode succeeded");
}

static void aq_ring_registers(void)
{
	aq_setup();
	reg_put(0x00080200, 0);
	reg_put(0x00080400, 3);			/* disabled queue */
	reg_put(0x00080200, 0x3ff | 1u << 31);
	reg_put(0x00080400, 0xffffffff);	/* tail beyond the ring */
	reg_put(0x00080000, 0xfffff000);	/* ring outside guest memory */
	reg_put(0x00080100, 0xffffffff);
	reg_put(0x00080400, 1);
	aq_setup();
	reg_put(0x00080300, 0x12345);		/* head beyond the ring */
	reg_put(0x00080400, 1);
	aq_setup();
	CHECK(aq(0x0001, 0, 0, 0, NULL) == 0, "does not work after bad registers");
}

static void aq_bad_buffers(void)
{
	aq_setup();
	CHECK(aq(0x000A, F_BUF, 4096, 0xdead00000000, NULL) != 0, "buffer outside guest memory");
	aq_setup();
	CHECK(aq(0x000A, F_BUF, 16, RAM_BASE + AQ_BUF, NULL) != 0, "buffer too small");
	aq_setup();
	CHECK(aq(0x0001, 0, 0, 0, NULL) == 0, "does not work after bad buffers");
}

/* Every opcode with lengths and contents that make no sense. */
static void aq_garbage(void)
{
	static const u16 lens[] = { 0, 1, 4, 7, 8, 24, 48, 4096 };
	u8 params[16];

	srand(2);
	for (u32 op = 0; op < 0x10000; op += op < 0xd00 ? 1 : 0x3f) {
		if (op == 0x0c40)	/* would load a package */
			continue;
		for (size_t i = 0; i < ARRAY_SIZE(lens); i++) {
			u64 at = RAM_SIZE - lens[i];	/* right at the end of guest memory */

			for (int k = 0; k < 16; k++)
				params[k] = rand() % 3 ? rand() : 0xff;
			for (u32 k = 0; k < lens[i]; k++)
				ram[at + k] = rand() % 3 ? rand() : 0xff;
			if (lens[i] == 0 && i)
				continue;
			aq_setup();
			aq(op, F_BUF, lens[i], RAM_BASE + at, params);
			aq_setup();
			aq(op, 0, lens[i], 0, params);
		}
	}
	teardown();
	setup();
	aq_setup();
	CHECK(aq(0x0001, 0, 0, 0, NULL) == 0, "does not work after garbage");
}

/* control queue */

enum { CQP_CTX = 0x10000, CQP_RING = 0x12000, CQP_ENTRIES = 64, FPM = 0x20000, AREA = 0x40000 };
#define HMC_AREA	(4u << 20)

static u8 cqp_pol;

static void cqp_setup(void)
{
	u8 *c = ram + CQP_CTX;

	memset(c, 0, 64);
	st64(c, 5u << 8 | 1 << 3);
	st64(c + 8, RAM_BASE + CQP_RING);
	st64(c + 24, 0x1122334455667788);
	reg_put(0x0050a100, 0);
	reg_put(0x0050a080, RAM_BASE + CQP_CTX);
	CHECK(reg_get(0x0050a000) == 1, "CQP is not created");
	cqp_pol = 1;
}

/* Run one command; returns PFPE_CQPERRCODES (0: success). */
static u32 cqp(u8 op, u64 hdr, const u64 w[8])
{
	u32 tail = reg_get(0x00500880) & 0x7ff;
	u8 *q = ram + CQP_RING + 64 * tail;

	for (int i = 0; i < 8; i++)
		st64(q + 8 * i, w ? w[i] : 0);
	st64(q + 24, hdr | (u64)op << 32 | (u64)cqp_pol << 63);
	tail = (tail + 1) % CQP_ENTRIES;
	if (!tail)
		cqp_pol ^= 1;
	reg_put(0x00500800, tail);
	CHECK((reg_get(0x00500880) & 0x7ff) == tail, "command 0x%02x is not done", op);
	return reg_get(0x00500880) >> 31 ? reg_get(0x0050a200) : 0;
}

/* Small counts, everything backed by two segments in guest memory. */
static void hmc_setup(void)
{
	u64 w[8] = { 0 };

	memset(ram + FPM, 0, 208);
	st64(ram + FPM + 0, 16);	/* QP */
	st64(ram + FPM + 8, 16);	/* CQ */
	st64(ram + FPM + 32, 8);	/* ARP */
	st64(ram + FPM + 48, 64);	/* MR */
	st64(ram + FPM + 104, 8);	/* AH */
	st64(ram + FPM + 112, 512);	/* PBLE */
	w[4] = RAM_BASE + FPM;
	CHECK(!cqp(CQP_COMMIT_FPM, 208, w), "commit");
	memset(w, 0, sizeof(w));
	w[0] = 0x80008000;
	w[1] = (RAM_BASE + HMC_AREA) | 512 << 2 | 3;
	CHECK(!cqp(CQP_UPDATE_SDS, 0, w), "segment descriptor");
	CHECK(!cqp(CQP_PAGES_ALLOCATED, 0, NULL), "pages allocated");
}

static void refused(u32 err, const char *what)
{
	CHECK(err >> 16 == 0xffff || err >> 16 == 0xf000, "%s: error 0x%08x", what, err);
	CHECK(strict_count() > 0, "%s: no STRICT line", what);
	strict_clear();
}

static void cqp_before_commit(void)
{
	u64 w[8] = { 64 };

	cqp_setup();
	refused(cqp(0x03, 0, w), "CREATE_CQ before COMMIT_FPM");
	refused(cqp(0x3f, 0, NULL), "unknown opcode");
}

static void cqp_doorbells(void)
{
	reg_put(0x00500800, 5);
	CHECK(strict_count(), "doorbell without a CQP");
	cqp_setup();
	strict_clear();
	reg_put(0x00500800, CQP_ENTRIES);
	CHECK(strict_count(), "doorbell beyond the ring");
	strict_clear();
	cqp_pol = 0;
	refused(cqp(CQP_NOP, 0, NULL), "wrong valid bit");
	reg_put(0x0050a080, 0xfffff000);
	CHECK(reg_get(0x0050a000) >> 31, "context outside memory accepted");
}

static void cqp_hmc(void)
{
	u64 w[8] = { 0 };

	cqp_setup();
	memset(ram + FPM, 0, 208);
	st64(ram + FPM, 100000);
	w[4] = RAM_BASE + FPM;
	refused(cqp(CQP_COMMIT_FPM, 208, w), "too many QPs");
	w[4] = 0x900000000000;
	refused(cqp(CQP_COMMIT_FPM, 208, w), "buffer outside memory");
	memset(w, 0, sizeof(w));
	w[0] = 0x80008000 | 5;
	w[1] = 0x900000000003;
	refused(cqp(CQP_UPDATE_SDS, 0, w), "segment outside memory");
	w[1] = 0;
	refused(cqp(CQP_UPDATE_SDS, 0, w), "clearing what is not valid");
	st64(ram + FPM, 16);
	memset(w, 0, sizeof(w));
	w[4] = RAM_BASE + FPM;
	CHECK(!cqp(CQP_COMMIT_FPM, 208, w), "commit");
	refused(cqp(CQP_PAGES_ALLOCATED, 0, NULL), "objects without memory");
}

static void cq_words(u64 w[8], u32 size)
{
	memset(w, 0, 64);
	w[0] = size;
	w[1] = 0x5555;
	w[4] = RAM_BASE + AREA;
	w[5] = RAM_BASE + AREA + 0x8000;
}

static void cqp_cq(void)
{
	u64 w[8];

	cqp_setup();
	hmc_setup();
	cq_words(w, 0);
	refused(cqp(0x03, 3, w), "size 0");
	cq_words(w, 64);
	refused(cqp(0x03, 16, w), "number beyond the committed");
	refused(cqp(0x03, 3 | 1ull << 49, w), "CEQ that does not exist");
	w[4] = 0x900000000000;
	refused(cqp(0x03, 3, w), "ring outside memory");
	cq_words(w, 64);
	w[6] = 4000;
	refused(cqp(0x03, 3 | 1ull << 47 | 1ull << 44, w), "page list that is not there");
	refused(cqp(0x05, 3, w), "destroy of an unknown CQ");
	cq_words(w, 64);
	CHECK(!cqp(0x03, 3, w), "good CQ");
	refused(cqp(0x03, 3, w), "exists");
	w[0] = 128;
	refused(cqp(0x05, 3, w), "destroy with another size");
	cq_words(w, 64);
	w[1] = 1;
	refused(cqp(0x05, 3, w), "destroy with another context");
	cq_words(w, 64);
	CHECK(!cqp(0x05, 3, w), "good destroy");
	CHECK(!strict_count(), "%llu violations", (unsigned long long)strict_count());
}

static void cqp_stags(void)
{
	u64 w[8] = { 0 };
	const u64 mr = 1ull << 43 | 0x3ull << 48 | 1ull << 59;

	cqp_setup();
	hmc_setup();
	w[0] = 0x1000;
	w[1] = 4096 | 7ull << 46;
	w[2] = 5 << 8 | 0x11;
	w[4] = RAM_BASE + AREA;
	CHECK(!cqp(0x0a, mr, w), "good region");
	refused(cqp(0x0a, mr, w), "index in use");
	w[2] = 6 << 8;
	refused(cqp(0x0a, mr & ~(0x1full << 48), w), "no rights");
	refused(cqp(0x0a, mr | 2ull << 44, w), "page list level 2");
	w[6] = 600;
	refused(cqp(0x0a, mr | 1ull << 44, w), "page list that is not there");
	w[6] = 0;
	w[2] = 64 << 8;
	refused(cqp(0x0a, mr, w), "index beyond the committed");
	memset(w, 0, sizeof(w));
	w[2] = 9 << 8;
	refused(cqp(0x0d, 1ull << 43, w), "dealloc of an unknown STag");
	w[2] = 5 << 8;
	w[1] = 8ull << 46;
	refused(cqp(0x0d, 1ull << 43, w), "dealloc with another PD");
	w[1] = 7ull << 46;
	refused(cqp(0x0d, 0, w), "dealloc as a window");
	CHECK(!cqp(0x0d, 1ull << 43, w), "good dealloc");
}

static void cqp_tables(void)
{
	u64 w[8] = { 0 };

	cqp_setup();
	hmc_setup();
	w[2] = 0x020000000001;
	refused(cqp(0x0f, 0 | 1ull << 42, w), "ARP entry 0");
	refused(cqp(0x0f, 8 | 1ull << 42, w), "ARP entry beyond the committed");
	CHECK(!cqp(0x0f, 3 | 1ull << 42, w), "good ARP entry");
	refused(cqp(0x0f, 3 | 1ull << 42, w), "ARP entry exists");
	refused(cqp(0x0f, 4, w), "delete of an unknown ARP entry");
	CHECK(!cqp(0x0f, 3, w), "good delete");
	memset(w, 0, sizeof(w));
	w[2] = 7174;
	CHECK(!cqp(CQP_APBVT, 1ull << 62, w), "good APBVT port");
	refused(cqp(CQP_APBVT, 1ull << 62, w), "APBVT port exists");
	CHECK(!cqp(CQP_APBVT, 0, w), "good APBVT delete");
	refused(cqp(CQP_APBVT, 0, w), "delete of an unknown APBVT port");
	memset(w, 0, sizeof(w));
	w[1] = 7174 | 1ull << 32;
	refused(cqp(0x25, 2ull << 42 | 1ull << 61 | 1ull << 60, w), "quad hash to an unknown QP");
	refused(cqp(0x25, 2ull << 42 | 1ull << 60, w), "delete of an unknown quad-hash entry");
	w[2] = 2ull << 48;
	refused(cqp(0x1c, 1, w), "address handle with an unknown ARP entry");
	refused(cqp(0x1e, 1, w), "destroy of an unknown address handle");
	refused(cqp(0x02, 3, w), "destroy of an unknown QP");
	refused(cqp(0x22, 3 | 1ull << 61, w), "flush of an unknown QP");
}

static void cqp_event_queues(void)
{
	u64 w[8] = { 0 };

	cqp_setup();
	hmc_setup();
	refused(cqp(CQP_CREATE_CEQ, 0, w), "CEQ of size 0");
	w[2] = 64;
	w[4] = RAM_BASE + AREA;
	CHECK(!cqp(CQP_CREATE_CEQ, 0, w), "good CEQ");
	refused(cqp(CQP_CREATE_CEQ, 0, w), "CEQ exists");
	refused(cqp(CQP_CREATE_CEQ, 64, w), "CEQ 64");
	w[2] = 32;
	refused(cqp(CQP_DESTROY_CEQ, 0, w), "destroy with another size");
	w[2] = 64;
	CHECK(!cqp(CQP_DESTROY_CEQ, 0, w), "good destroy");
	refused(cqp(CQP_DESTROY_CEQ, 0, w), "destroy of an unknown CEQ");
	w[2] = 4;
	CHECK(!cqp(CQP_CREATE_AEQ, 0, w), "good AEQ");
	for (int i = 0; i < 4; i++)
		aeq_event(&dev, &(struct eng_ae){ .code = 0x501, .id = 1 });
	CHECK(!strict_count(), "AEQ is full, not over");
	aeq_event(&dev, &(struct eng_ae){ .code = 0x501, .id = 1 });
	CHECK(strict_count() == 1, "AEQ overflow not seen");
	strict_clear();
	reg_put(0x00502d00, 5);
	CHECK(strict_count() == 1, "too many AEQ entries given back");
}

/* faults */

static void fault_cqp(void)
{
	u32 tail;

	cqp_setup();
	rdma_faults.fail.left = 2;
	rdma_faults.fail_code = 0xffff8002;
	CHECK(!cqp(CQP_NOP, 0, NULL), "first command");
	CHECK(cqp(CQP_NOP, 0, NULL) == 0xffff8002, "second command is not the one that fails");
	CHECK(!cqp(CQP_NOP, 0, NULL), "third command");
	rdma_faults.fail.left = 1;
	rdma_faults.fail_again = 1;
	CHECK(cqp(CQP_NOP, 0, NULL) && cqp(CQP_NOP, 0, NULL), "two that fail in turn");
	CHECK(!cqp(CQP_NOP, 0, NULL), "the one after them");
	rdma_faults.fail.left = 1;
	CHECK(!cqp_command(&dev, 2, (char *[]){ "cqp", "release" }, stdout), "release");
	CHECK(!cqp(CQP_NOP, 0, NULL), "a fault that was armed and taken back");
	rdma_faults.hold.left = 1;
	tail = reg_get(0x00500880);
	st64(ram + CQP_RING + 64 * tail + 24, (u64)CQP_NOP << 32 | 1ull << 63);
	reg_put(0x00500800, tail + 1);
	CHECK(reg_get(0x00500880) == tail, "held command was done");
	rdma_resume(&dev);
	CHECK(reg_get(0x00500880) == tail + 1, "released command was not done");
}

static void fault_removed(void)
{
	u32 v = 0;

	cqp_setup();
	dev.removed = true;
	CHECK(reg_get(0x0050a000) == 0xffffffff, "register after removal");
	CHECK(!access_region(false, 0, CONFIG, 4, 0, &v) && v == 0xffffffff, "config 0x%08x", v);
}

static void fault_reset(void)
{
	cqp_setup();
	reset_announce(&dev, RESET_CORE, 1);
	CHECK((reg_get(0x000B8188) & 0xf) == 5, "GLGEN_RSTAT 0x%x", reg_get(0x000B8188));
	while (dev.reset_at) {
		usleep(200);
		reset_poll(&dev);
	}
	CHECK(reg_get(0x000B8188) == 4, "GLGEN_RSTAT 0x%x", reg_get(0x000B8188));
	CHECK(reg_get(0x0050a000) == 0, "CQP survived the reset");
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "vfio-user: short payloads", vu_short_payloads },
	{ "vfio-user: unknown commands", vu_unknown_commands },
	{ "vfio-user: bad message sizes", vu_bad_sizes },
	{ "vfio-user: truncated messages", vu_truncated },
	{ "vfio-user: region bounds", vu_region_bounds },
	{ "vfio-user: memory maps", vu_dma_map },
	{ "vfio-user: interrupts", vu_set_irqs },
	{ "vfio-user: garbage", vu_garbage },
	{ "admin queue: basics", aq_basics },
	{ "admin queue: ring registers", aq_ring_registers },
	{ "admin queue: bad buffers", aq_bad_buffers },
	{ "admin queue: garbage", aq_garbage },
	{ "control queue: before commit", cqp_before_commit },
	{ "control queue: doorbells", cqp_doorbells },
	{ "control queue: host memory cache", cqp_hmc },
	{ "control queue: CQ", cqp_cq },
	{ "control queue: STags", cqp_stags },
	{ "control queue: tables", cqp_tables },
	{ "control queue: event queues", cqp_event_queues },
	{ "faults: control queue", fault_cqp },
	{ "faults: removal", fault_removed },
	{ "faults: reset", fault_reset },
};

int main(int argc, char **argv)
{
	if (log_open("test", "/dev/null"))
		return 1;
	dev.type = nic_type_find("e810");
	dev.name = "test";
	dev.sock = dev.sock_l = -1;
	memcpy(dev.mac, "\x02\xe8\x10\0\0\1", 6);
	for (int i = 0; i < MSIX_VECS; i++)
		dev.irqfd[i] = -1;
	dev.bar0 = mmap(NULL, BAR0_SIZE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	ram_fd = memfd_create("ram", MFD_CLOEXEC);
	if (dev.bar0 == MAP_FAILED || ram_fd < 0 || ftruncate(ram_fd, RAM_SIZE))
		return 1;
	ram = mmap(NULL, RAM_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, ram_fd, 0);
	if (ram == MAP_FAILED)
		return 1;
	pci_init(&dev);
	wire_init(&dev, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		case_name = cases[i].name;
		if (argc > 1 && !strstr(case_name, argv[1]))
			continue;
		ok = true;
		setup();
		cases[i].run();
		teardown();
		printf("%s %s\n", ok ? "ok  " : "FAIL", case_name);
		fflush(stdout);
		passed += ok;
		failed += !ok;
	}
	printf("nic: %u passed, %u failed\n", passed, failed);
	return failed ? 1 : 0;
}
