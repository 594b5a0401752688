/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * As much of the kernel's headers as the pure files of the driver need in user space.  All
 * headers under include/ lead here.
 */
#ifndef SHIM_H
#define SHIM_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;

#define U32_MAX			UINT32_MAX
#define BIT(n)			(1UL << (n))
#define BIT_ULL(n)		(1ULL << (n))
#define GENMASK_ULL(h, l)	((~0ULL >> (63 - (h))) & (~0ULL << (l)))
#define FIELD_SHIFT(mask)	__builtin_ctzll(mask)
#define FIELD_PREP(mask, val)	(((u64)(val) << FIELD_SHIFT(mask)) & (mask))
#define FIELD_GET(mask, reg)	(((reg) & (mask)) >> FIELD_SHIFT(mask))
#define FIELD_MAX(mask)		((mask) >> FIELD_SHIFT(mask))

#define min(a, b)		({ __typeof__(a) a_ = (a); __typeof__(b) b_ = (b); a_ < b_ ? a_ : b_; })
#define max_t(t, a, b)		({ t a_ = (a); t b_ = (b); a_ > b_ ? a_ : b_; })
#define ALIGN(x, a)		(((x) + (a) - 1) & ~((__typeof__(x))(a) - 1))
#define ARRAY_SIZE(a)		(sizeof(a) / sizeof((a)[0]))

static inline u64 roundup_pow_of_two(u64 n)
{
	return n <= 1 ? 1 : 1ULL << (64 - __builtin_clzll(n - 1));
}

#define cpu_to_le64(v)		htole64(v)
#define le64_to_cpu(v)		le64toh(v)
#include <endian.h>

#define READ_ONCE(x)		(*(const volatile __typeof__(x) *)&(x))
#define WRITE_ONCE(x, v)	(*(volatile __typeof__(x) *)&(x) = (v))
#define smp_load_acquire(p)	__atomic_load_n(p, __ATOMIC_ACQUIRE)
#define smp_store_release(p, v)	__atomic_store_n(p, v, __ATOMIC_RELEASE)

/* A test may look at memory at the moment of a barrier. */
extern void (*on_dma_wmb)(void);
#define dma_wmb()		do { if (on_dma_wmb) on_dma_wmb(); } while (0)
#define dma_rmb()		__atomic_thread_fence(__ATOMIC_ACQUIRE)

typedef struct { int unused; } spinlock_t;
struct work_struct { int unused; };

struct ib_sge {
	u64 addr;
	u32 length;
	u32 lkey;
};

enum ib_qp_state { IB_QPS_RESET };

enum ib_wc_opcode {
	IB_WC_SEND,
	IB_WC_RDMA_WRITE,
	IB_WC_RDMA_READ,
	IB_WC_COMP_SWAP,
	IB_WC_FETCH_ADD,
	IB_WC_BIND_MW,
	IB_WC_LOCAL_INV,
	IB_WC_LSO,
	IB_WC_REG_MR,
};

#endif
