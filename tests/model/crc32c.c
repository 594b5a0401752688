// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * crc32c.c - CRC32C (Castagnoli, RFC 3720 B.4), the check of every FPDU.  Every
 * byte of RDMA traffic passes here twice, so it uses the processor's instruction
 * where there is one and eight tables otherwise.
 */
#include "engine_int.h"

#define POLY 0x82f63b78		/* reflected */

static u32 table[8][256];

static void __attribute__((constructor)) fill_tables(void)
{
	for (u32 i = 0; i < 256; i++) {
		u32 c = i;

		for (int k = 0; k < 8; k++)
			c = c >> 1 ^ (c & 1 ? POLY : 0);
		table[0][i] = c;
	}
	for (u32 i = 0; i < 256; i++)
		for (int t = 1; t < 8; t++)
			table[t][i] = table[t - 1][i] >> 8 ^ table[0][table[t - 1][i] & 0xff];
}

u32 crc32c_table(u32 crc, const u8 *p, u32 len)
{
	crc = ~crc;
	for (; len >= 8; len -= 8, p += 8) {
		u64 w = ld64(p) ^ crc;

		crc = table[7][w & 0xff] ^ table[6][w >> 8 & 0xff] ^ table[5][w >> 16 & 0xff] ^
		      table[4][w >> 24 & 0xff] ^ table[3][w >> 32 & 0xff] ^ table[2][w >> 40 & 0xff] ^
		      table[1][w >> 48 & 0xff] ^ table[0][w >> 56];
	}
	while (len--)
		crc = crc >> 8 ^ table[0][(crc ^ *p++) & 0xff];
	return ~crc;
}

#ifdef __x86_64__
static u32 __attribute__((target("sse4.2"))) crc32c_sse42(u32 crc, const u8 *p, u32 len)
{
	u64 c = ~crc;

	for (; len >= 8; len -= 8, p += 8)
		c = __builtin_ia32_crc32di(c, ld64(p));
	while (len--)
		c = __builtin_ia32_crc32qi(c, *p++);
	return ~(u32)c;
}
#endif

u32 crc32c(u32 crc, const void *p, u32 len)
{
#ifdef __x86_64__
	if (__builtin_cpu_supports("sse4.2"))
		return crc32c_sse42(crc, p, len);
#endif
	return crc32c_table(crc, p, len);
}
