/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Just enough of the kernel for the connection engine to run in user space, single-threaded and
 * in virtual time.  Sleeping functions switch to another fiber (fiber.c); locks only check
 * that they are used properly; memory comes from malloc() so that ASan sees it.
 */
#ifndef SIM_KERNEL_H
#define SIM_KERNEL_H

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int32_t s32;
typedef int64_t s64;
typedef u32 __be32;
typedef unsigned int gfp_t;

#define GFP_KERNEL	0x1u	/* may sleep */
#define GFP_ATOMIC	0x2u
#define U16_MAX		0xffff
#define __percpu
#define __aligned(n)	__attribute__((aligned(n)))
#define fallthrough	__attribute__((fallthrough))
#define BIT(n)		(1UL << (n))
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define READ_ONCE(x)	(x)
#define WRITE_ONCE(x, v) ((x) = (v))
#define container_of(ptr, type, member) ((type *)((char *)(ptr) - offsetof(type, member)))
#define min(a, b)	((a) < (b) ? (a) : (b))
#define max(a, b)	((a) > (b) ? (a) : (b))
#define min_t(t, a, b)	min((t)(a), (t)(b))
#define max_t(t, a, b)	max((t)(a), (t)(b))
#define clamp_t(t, v, lo, hi) min_t(t, max_t(t, v, lo), hi)
#define ETH_ALEN	6
#define ETH_P_IP	0x0800
#define ETH_P_IPV6	0x86dd
#define ETH_P_8021Q	0x8100
#define s6_addr32	__in6_u.__u6_addr32

/* A failed check of the simulation: tells where and the seed, and ends the program. */
void sim_fail(const char *file, int line, const char *fmt, ...)
	__attribute__((format(printf, 3, 4), noreturn));
#define SIM_CHECK(cond, ...) do { if (!(cond)) sim_fail(__FILE__, __LINE__, __VA_ARGS__); } while (0)

#define WARN(cond, ...) ({ bool __c = (cond); if (__c) sim_fail(__FILE__, __LINE__, __VA_ARGS__); __c; })
#define WARN_ONCE	WARN
#define WARN_ON_ONCE(c)	WARN(c, "WARN_ON(%s)", #c)
#define pr_warn_ratelimited(...) ((void)0)

static inline void *ERR_PTR(long e) { return (void *)e; }
static inline long PTR_ERR(const void *p) { return (long)p; }
static inline bool IS_ERR(const void *p) { return (uintptr_t)p >= (uintptr_t)-4095; }

/* memory; fails at the rate that the test asks for */
void *sim_alloc(size_t size, gfp_t gfp);
#define kmalloc(size, gfp)	sim_alloc(size, gfp)
#define kzalloc(size, gfp)	sim_zalloc(size, gfp)
#define kfree(p)		free((void *)(p))
#define kfree_rcu(p, member)	free(p)
static inline void *sim_zalloc(size_t size, gfp_t gfp)
{
	void *p = sim_alloc(size, gfp);

	return p ? memset(p, 0, size) : NULL;
}
static inline void *kmemdup(const void *src, size_t len, gfp_t gfp)
{
	void *p = sim_alloc(len, gfp);

	return p ? memcpy(p, src, len) : NULL;
}
static inline const void *memchr_inv(const void *p, int c, size_t n)
{
	const u8 *b = p;

	for (; n; b++, n--)
		if (*b != (u8)c)
			return b;
	return NULL;
}

struct rcu_head { int unused; };
static inline void rcu_read_lock(void) { }
static inline void rcu_read_unlock(void) { }
static inline void synchronize_rcu(void) { }

/* atomics and references */
typedef struct { int v; } atomic_t;
typedef struct { s64 v; } atomic64_t;
typedef struct { int v; } refcount_t;
static inline int atomic_read(const atomic_t *a) { return a->v; }
static inline void atomic_inc(atomic_t *a) { a->v++; }
static inline void atomic_dec(atomic_t *a) { a->v--; }
static inline bool atomic_dec_and_test(atomic_t *a) { return !--a->v; }
static inline s64 atomic64_read(const atomic64_t *a) { return a->v; }
static inline s64 atomic64_inc_return(atomic64_t *a) { return ++a->v; }
static inline s64 atomic64_cmpxchg(atomic64_t *a, s64 old, s64 val)
{
	s64 was = a->v;

	if (was == old)
		a->v = val;
	return was;
}
static inline void refcount_set(refcount_t *r, int v) { r->v = v; }
static inline void refcount_inc(refcount_t *r)
{
	SIM_CHECK(r->v > 0, "reference taken on a dead object");
	r->v++;
}
static inline bool refcount_inc_not_zero(refcount_t *r) { return r->v ? r->v++, true : false; }
static inline bool refcount_dec_and_test(refcount_t *r)
{
	SIM_CHECK(r->v > 0, "reference dropped twice");
	return !--r->v;
}

/* locks */
extern int sim_locks_held;
typedef struct { bool held; } spinlock_t;
static inline void spin_lock_init(spinlock_t *l) { l->held = false; }
static inline void spin_lock_bh(spinlock_t *l)
{
	SIM_CHECK(!l->held, "deadlock on a spinlock");
	l->held = true;
	sim_locks_held++;
}
static inline void spin_unlock_bh(spinlock_t *l)
{
	SIM_CHECK(l->held, "lock is not held");
	l->held = false;
	sim_locks_held--;
}
struct mutex { bool held; };
void mutex_lock(struct mutex *m);
void mutex_unlock(struct mutex *m);
static inline void mutex_init(struct mutex *m) { m->held = false; }

/* lists */
struct list_head { struct list_head *next, *prev; };
static inline void INIT_LIST_HEAD(struct list_head *h) { h->next = h->prev = h; }
static inline void list_add_tail(struct list_head *e, struct list_head *h)
{
	e->prev = h->prev;
	e->next = h;
	h->prev->next = e;
	h->prev = e;
}
static inline void list_del(struct list_head *e)
{
	e->prev->next = e->next;
	e->next->prev = e->prev;
}
static inline void list_del_init(struct list_head *e)
{
	list_del(e);
	INIT_LIST_HEAD(e);
}
static inline void list_move_tail(struct list_head *e, struct list_head *h)
{
	list_del(e);
	list_add_tail(e, h);
}
static inline bool list_empty(const struct list_head *h) { return h->next == h; }
#define list_entry(p, type, m)	container_of(p, type, m)
#define list_first_entry(h, type, m) list_entry((h)->next, type, m)
#define list_first_entry_or_null(h, type, m) \
	(list_empty(h) ? NULL : list_first_entry(h, type, m))
#define list_for_each_entry(p, h, m) \
	for (p = list_entry((h)->next, __typeof__(*p), m); &p->m != (h); \
	     p = list_entry(p->m.next, __typeof__(*p), m))
#define list_for_each_entry_safe(p, n, h, m) \
	for (p = list_entry((h)->next, __typeof__(*p), m), \
	     n = list_entry(p->m.next, __typeof__(*p), m); &p->m != (h); \
	     p = n, n = list_entry(n->m.next, __typeof__(*n), m))

/* time; one jiffy is a millisecond */
#define HZ		1000
extern u64 sim_now_ns;
#define jiffies		((unsigned long)(sim_now_ns / 1000000 + 0xfffff000UL))
#define msecs_to_jiffies(ms) ((unsigned long)(ms))
#define time_after_eq(a, b)	((long)((a) - (b)) >= 0)
#define time_before(a, b)	((long)((a) - (b)) < 0)
static inline u64 ktime_get_ns(void) { return sim_now_ns; }

struct sim_event {		/* something that happens at a time; see loop.c */
	u64 when;
	u64 order;
	size_t slot;		/* place in the heap, 0: not pending */
	void (*fn)(struct sim_event *e);
};
struct timer_list {
	struct sim_event event;
	void (*function)(struct timer_list *t);
};
void timer_setup(struct timer_list *t, void (*fn)(struct timer_list *), unsigned int flags);
int mod_timer(struct timer_list *t, unsigned long expires);
int timer_delete(struct timer_list *t);

struct work_struct {
	struct sim_event event;
	void (*fn)(struct work_struct *w);
};
struct workqueue_struct { int unused; };
#define WQ_UNBOUND	0
#define WQ_MEM_RECLAIM	0
struct workqueue_struct *sim_alloc_wq(void);
#define alloc_workqueue(name, flags, n) sim_alloc_wq()
void destroy_workqueue(struct workqueue_struct *wq);
void sim_init_work(struct work_struct *w, void (*fn)(struct work_struct *));
#define INIT_WORK(w, f)	sim_init_work(w, f)
bool queue_work(struct workqueue_struct *wq, struct work_struct *w);

typedef struct { int unused; } wait_queue_head_t;
static inline void init_waitqueue_head(wait_queue_head_t *q) { (void)q; }
static inline void wake_up_all(wait_queue_head_t *q) { (void)q; }
/* Sleeps in steps of virtual time; good enough for what runs in a fiber. */
void sim_sleep_ns(u64 ns);
#define wait_event_timeout(q, cond, timeout) ({ \
	unsigned long __end = jiffies + (timeout); \
	(void)(q); \
	while (!(cond) && time_before(jiffies, __end)) \
		sim_sleep_ns(1000000); \
	(cond); })

/* per-CPU data of one CPU */
#define alloc_percpu(type)	((type *)calloc(1, sizeof(type)))
#define free_percpu(p)		free(p)
#define per_cpu_ptr(p, cpu)	((void)(cpu), (p))
#define for_each_possible_cpu(cpu) for ((cpu) = 0; (cpu) < 1; (cpu)++)
#define this_cpu_inc(x)		((x)++)

/* random, keyed hash */
u64 sim_random(void);
void get_random_bytes(void *p, int n);
typedef struct { u64 key[2]; } siphash_key_t;
u64 siphash(const void *p, size_t n, const siphash_key_t *key);

/* hash table that grows and shrinks; counts the entries it looks at */
struct rhash_head { struct rhash_head *next; };
struct rhashtable_params {
	u16 key_len, key_offset, head_offset;
	bool automatic_shrinking;
};
struct rhashtable {
	struct rhash_head **buckets;
	size_t size, count;
	struct rhashtable_params p;
};
struct rhashtable_iter { struct rhashtable *ht; size_t bucket; struct rhash_head *next; };
extern u64 sim_hash_probes;
int rhashtable_init(struct rhashtable *ht, const struct rhashtable_params *p);
void rhashtable_destroy(struct rhashtable *ht);
void *sim_ht_lookup(struct rhashtable *ht, const void *key);
int sim_ht_insert(struct rhashtable *ht, struct rhash_head *head);
int sim_ht_remove(struct rhashtable *ht, struct rhash_head *head);
#define rhashtable_lookup_fast(ht, key, p)	((void)(p), sim_ht_lookup(ht, key))
#define rhashtable_insert_fast(ht, head, p)	((void)(p), sim_ht_insert(ht, head))
#define rhashtable_remove_fast(ht, head, p)	((void)(p), sim_ht_remove(ht, head))
void rhashtable_walk_enter(struct rhashtable *ht, struct rhashtable_iter *it);
void *rhashtable_walk_next(struct rhashtable_iter *it);
static inline void rhashtable_walk_start(struct rhashtable_iter *it) { (void)it; }
static inline void rhashtable_walk_stop(struct rhashtable_iter *it) { (void)it; }
static inline void rhashtable_walk_exit(struct rhashtable_iter *it) { (void)it; }

/* verbs and iw_cm */
enum ib_qp_state { IB_QPS_RESET, IB_QPS_INIT, IB_QPS_RTR, IB_QPS_RTS, IB_QPS_SQD, IB_QPS_SQE, IB_QPS_ERR };
struct ib_device { void *priv; };
struct ib_qp { struct ib_device *device; u32 qp_num; };

enum iw_cm_event_type {
	IW_CM_EVENT_CONNECT_REQUEST = 1,
	IW_CM_EVENT_CONNECT_REPLY,
	IW_CM_EVENT_ESTABLISHED,
	IW_CM_EVENT_DISCONNECT,
	IW_CM_EVENT_CLOSE
};
struct iw_cm_event {
	enum iw_cm_event_type event;
	int status;
	struct sockaddr_storage local_addr;
	struct sockaddr_storage remote_addr;
	void *private_data;
	void *provider_data;
	u8 private_data_len;
	u8 ord;
	u8 ird;
};
struct iw_cm_id {
	void *context;
	struct ib_device *device;
	struct sockaddr_storage m_local_addr;
	struct sockaddr_storage m_remote_addr;
	void *provider_data;
	int (*event_handler)(struct iw_cm_id *id, struct iw_cm_event *event);
	void (*add_ref)(struct iw_cm_id *id);
	void (*rem_ref)(struct iw_cm_id *id);
	u8 tos;
	bool tos_set:1;
	bool afonly:1;
};
struct iw_cm_conn_param {
	const void *private_data;
	u16 private_data_len;
	u32 ord;
	u32 ird;
	u32 qpn;
};

#endif
