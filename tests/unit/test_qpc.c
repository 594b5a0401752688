// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Host context of a QP: spec 02, 4.2; spec 03, 6.2. */
#include "qpc.h"
#include "test.h"

static const u8 mac[6] = { 0x02, 0x11, 0x22, 0x33, 0x44, 0x55 };

static const struct irdma_qpc idle = {
	.context = 0x1122334455667788, .sq_addr = 0x10000, .rq_addr = 0x20000, .q2_addr = 0x30000,
	.pd = 0x2abcd, .send_cqn = 5, .recv_cqn = 6, .qs_handle = 0x155, .exception_qpn = 2,
	.src_mac = mac, .sq_size_code = 7, .rq_size_code = 3, .rq_shift = 2, .ib_reads = true,
	.write_ok = true, .read_ok = true, .err_rq_idx = IRDMA_QPC_NO_RQ_IDX,
};

static const struct irdma_tcp_ctx stream = {
	.ipv4 = true, .local_ip = { 0x0a000001 }, .remote_ip = { 0x0a000002 },
	.local_port = 1234, .remote_port = 4321, .vlan_tag = 0x6005, .insert_vlan = true,
	.tos = 0x10, .ttl = 64, .mss = 1448, .arp_idx = 9, .snd_scale = 7, .rcv_scale = 2,
	.snd_nxt = 0x80000010, .rcv_nxt = 0x40000203, .snd_wnd = 0x10000, .max_snd_wnd = 0x20000,
	.rcv_wnd = 0x3fffc, .ird = 127, .ord = 64,
};

static __le64 ctx[IRDMA_QPC_WORDS];

static void idle_words(void)
{
	u32 i;

	memset(ctx, 0xff, sizeof(ctx));
	irdma_qpc_build(ctx, &idle);
	/* RDMAP 1, PD high bits 2, ECN, RQ entries of 4 quanta, IB reads, DDP 1 */
	CHECK_EQ(ctx[0], 1ULL << 62 | 2 << 20 | 1 << 14 | 2 << 8 | 1 << 2 | 1);
	CHECK_EQ(ctx[1], 0x10000);
	CHECK_EQ(ctx[2], 0x20000);
	CHECK_EQ(ctx[3], 7 << 12 | 3 << 8);
	CHECK_EQ(ctx[7], 0xabcdULL << 48);
	CHECK_EQ(ctx[16], 5ULL << 57);
	CHECK_EQ(ctx[17], 6ULL << 32 | 5);
	CHECK_EQ(ctx[18], 0x30000);
	CHECK_EQ(ctx[19], 0x021122334455ULL << 16);
	CHECK_EQ(ctx[20], 1 << 28 | 1 << 23 | 1 << 21 | 1 << 20);
	CHECK_EQ(ctx[21], 0x1122334455667788);
	CHECK_EQ(ctx[22], 2ULL << 32 | 0x155 << 16);
	for (i = 0; i < IRDMA_QPC_WORDS; i++)
		if ((i >= 4 && i <= 6) || (i >= 8 && i <= 15) || i >= 23)
			CHECK_EQ(ctx[i], 0);
}

static void privileged(void)
{
	struct irdma_qpc qpc = idle;

	qpc.privileged = true;
	qpc.read_ok = false;
	irdma_qpc_build(ctx, &qpc);
	CHECK_EQ(ctx[20], 1 << 28 | 1 << 25 | 1 << 24 | 1 << 23 | 1 << 20);
}

/* C32: the bit that makes the index of a failed receive count. */
static void failed_receive(void)
{
	struct irdma_qpc qpc = idle;

	qpc.err_rq_idx = 0x1234;
	irdma_qpc_build(ctx, &qpc);
	CHECK_EQ(ctx[0] >> 19 & 1, 1);
	CHECK_EQ(ctx[16] >> 32 & 0x7fff, 0x1234);
	qpc.err_rq_idx = 0;
	irdma_qpc_build(ctx, &qpc);
	CHECK_EQ(ctx[0] >> 19 & 1, 1);
}

static void stream_ipv4(void)
{
	struct irdma_qpc qpc = idle;

	qpc.tcp = &stream;
	irdma_qpc_build(ctx, &qpc);
	CHECK_EQ(ctx[0], 1ULL << 62 | 2 << 20 | 1 << 15 | 1 << 14 | 2 << 8 | 1 << 5 | 1 << 3 |
			 1 << 2 | 1);
	CHECK_EQ(ctx[3], 4321ULL << 48 | 1234ULL << 32 | 0x12 << 24 | 7 << 12 | 3 << 8 | 64);
	CHECK_EQ(ctx[4], 0x0a000002);
	CHECK_EQ(ctx[5], 0);
	CHECK_EQ(ctx[6], 9ULL << 48 | 0x6005ULL << 32 | 1448 << 16);
	CHECK_EQ(ctx[7], 0xabcdULL << 48 | 7ULL << 40 | 2ULL << 32 | 5 << 28 | 1 << 23 | 1 << 22 |
			 1 << 20);
	CHECK_EQ(ctx[10], 0x10000ULL << 32 | 0x80000010);
	CHECK_EQ(ctx[11], 0x3fffcULL << 32 | 0x40000203);
	CHECK_EQ(ctx[12], 0x80000010ULL << 32 | 0x80000010);
	CHECK_EQ(ctx[13], 6ULL << 32);
	CHECK_EQ(ctx[14], 2896ULL << 32 | 0x3fffffff);
	CHECK_EQ(ctx[15], 0x80000010ULL << 32 | 0x40000203);
	CHECK_EQ(ctx[16], 5ULL << 57 | 8ULL << 48 | 0x20000);
	/* marker offsets are the sequence numbers modulo 512 */
	CHECK_EQ(ctx[20], 0x010ULL << 48 | 0x003ULL << 32 | 1 << 28 | 1 << 23 | 1 << 21 | 1 << 20 |
			  4 << 16 | 64);
	CHECK_EQ(ctx[23], 0x0a000001);
	CHECK_EQ(ctx[26], 9);
}

static void stream_ipv6(void)
{
	struct irdma_tcp_ctx tcp = stream;
	struct irdma_qpc qpc = idle;

	tcp.ipv4 = false;
	memcpy(tcp.local_ip, (u32 [4]) { 1, 2, 3, 4 }, 16);
	memcpy(tcp.remote_ip, (u32 [4]) { 5, 6, 7, 8 }, 16);
	qpc.tcp = &tcp;
	irdma_qpc_build(ctx, &qpc);
	CHECK_EQ(ctx[0] >> 3 & 1, 0);
	CHECK_EQ(ctx[4], 7ULL << 32 | 8);
	CHECK_EQ(ctx[5], 5ULL << 32 | 6);
	CHECK_EQ(ctx[23], 3ULL << 32 | 4);
	CHECK_EQ(ctx[24], 1ULL << 32 | 2);
}

static void markers(void)
{
	struct irdma_tcp_ctx tcp = stream;
	struct irdma_qpc qpc = idle;

	tcp.snd_markers = true;
	tcp.rcv_markers = true;
	qpc.tcp = &tcp;
	qpc.lsmm_len = 0x1f4;
	irdma_qpc_build(ctx, &qpc);
	CHECK_EQ(ctx[20] >> 22 & 1, 1);
	CHECK_EQ(ctx[20] >> 29 & 3, 3);
	CHECK_EQ(ctx[20] >> 48 & 0x1ff, 0x004);	/* 0x010 + 0x1f4, modulo 512 */
	CHECK_EQ(ctx[20] >> 32 & 0x1ff, 0x003);
}

static void congestion_bits(void)
{
	struct irdma_tcp_ctx tcp = stream;
	struct irdma_qpc qpc = idle;

	qpc.tcp = &tcp;
	tcp.tos = 0x11;		/* ECT(1) stays */
	irdma_qpc_build(ctx, &qpc);
	CHECK_EQ(ctx[3] >> 24 & 0xff, 0x11);
}

static void ird_codes(void)
{
	static const struct { u32 ird; u8 code; } want[] = {
		{ 0, 0 }, { 1, 0 }, { 2, 0 }, { 3, 1 }, { 4, 1 }, { 8, 1 }, { 9, 2 }, { 16, 2 },
		{ 32, 2 }, { 33, 3 }, { 63, 3 }, { 64, 3 }, { 65, 4 }, { 127, 4 }, { 128, 4 },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(want); i++)
		CHECK_EQ(irdma_qpc_ird_code(want[i].ird), want[i].code);
}

static const struct test tests[] = {
	{ "no stream yet", idle_words },
	{ "privileged QP", privileged },
	{ "failed receive", failed_receive },
	{ "IPv4 stream", stream_ipv4 },
	{ "IPv6 stream", stream_ipv6 },
	{ "markers", markers },
	{ "congestion bits", congestion_bits },
	{ "IRD codes", ird_codes },
};

int main(void)
{
	return run_tests(tests, ARRAY_SIZE(tests));
}
