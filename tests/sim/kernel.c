// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What the kernel does for the engine, in virtual time: events and timers, work items and
 * sleeping on fibers, a growing hash table, random numbers from one seed.
 */
#include <stdarg.h>
#include <ucontext.h>

#include "sim.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#define SWITCH_START(save, stack, size) __sanitizer_start_switch_fiber(save, stack, size)
#define SWITCH_DONE(save, stack, size)	__sanitizer_finish_switch_fiber(save, stack, size)
#else
#define SWITCH_START(save, stack, size) ((void)(save), (void)(stack), (void)(size))
#define SWITCH_DONE(save, stack, size)	((void)(save), (void)(stack), (void)(size))
#endif

u64 sim_now_ns;
u64 sim_hash_probes;
int sim_locks_held;
u64 sim_seed;
unsigned int sim_alloc_failures;	/* one in so many allocations fails, 0: none */

static u64 rng_state;

/* --- failure, memory, random numbers --- */

void sim_fail(const char *file, int line, const char *fmt, ...)
{
	va_list ap;

	fflush(stdout);
	fprintf(stderr, "%s:%d: seed %llu, %.6f s: ", file, line, (unsigned long long)sim_seed,
		sim_now_ns / 1e9);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "\n");
	abort();
}

void sim_srandom(u64 seed)
{
	sim_seed = seed;
	rng_state = seed * 0x9e3779b97f4a7c15ULL + 1;
}

u64 sim_random(void)	/* splitmix64 */
{
	u64 z = rng_state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

void get_random_bytes(void *p, int n)
{
	u8 *b = p;

	while (n--)
		*b++ = sim_random();
}

/* FNV-1a with a final mix: not siphash, but keyed and good enough to spread. */
u64 siphash(const void *p, size_t n, const siphash_key_t *key)
{
	const u8 *b = p;
	u64 h = 0xcbf29ce484222325ULL ^ key->key[0];

	while (n--)
		h = (h ^ *b++) * 0x100000001b3ULL;
	h ^= key->key[1];
	h = (h ^ (h >> 33)) * 0xff51afd7ed558ccdULL;
	return h ^ (h >> 33);
}

void *sim_alloc(size_t size, gfp_t gfp)
{
	if (gfp == GFP_KERNEL)
		sim_might_sleep();
	if (sim_alloc_failures && sim_random() % sim_alloc_failures == 0)
		return NULL;
	return malloc(size);
}

/* --- events: a binary heap by time, then by order of their making --- */

static struct sim_event **heap;		/* [1..heap_len] */
static size_t heap_len, heap_cap;
static u64 event_order;

static bool sooner(const struct sim_event *a, const struct sim_event *b)
{
	return a->when != b->when ? a->when < b->when : a->order < b->order;
}

static void heap_put(size_t i, struct sim_event *e)
{
	heap[i] = e;
	e->slot = i;
}

static void heap_settle(size_t i, struct sim_event *e)
{
	for (; i > 1 && sooner(e, heap[i / 2]); i /= 2)
		heap_put(i, heap[i / 2]);
	for (;;) {
		size_t c = 2 * i;

		if (c > heap_len)
			break;
		if (c < heap_len && sooner(heap[c + 1], heap[c]))
			c++;
		if (!sooner(heap[c], e))
			break;
		heap_put(i, heap[c]);
		i = c;
	}
	heap_put(i, e);
}

void sim_event_at(struct sim_event *e, u64 when)
{
	sim_event_cancel(e);
	if (heap_len + 2 > heap_cap) {
		heap_cap = heap_cap ? 2 * heap_cap : 1024;
		heap = realloc(heap, heap_cap * sizeof(*heap));
	}
	e->when = max(when, sim_now_ns);
	e->order = ++event_order;
	heap_len++;
	heap_settle(heap_len, e);
}

bool sim_event_cancel(struct sim_event *e)
{
	size_t i = e->slot;
	struct sim_event *last;

	if (!i)
		return false;
	e->slot = 0;
	last = heap[heap_len--];
	if (last != e)
		heap_settle(i, last);
	return true;
}

static bool run_one(u64 until)
{
	struct sim_event *e = heap_len ? heap[1] : NULL;

	if (!e || e->when > until)
		return false;
	sim_event_cancel(e);
	sim_now_ns = e->when;
	e->fn(e);
	SIM_CHECK(!sim_locks_held, "a lock is still held after an event");
	return true;
}

void sim_run_for(u64 ns)
{
	u64 until = sim_now_ns + ns;

	SIM_CHECK(!sim_in_fiber(), "the loop must not run in a fiber");
	while (run_one(until))
		;
	sim_now_ns = until;
}

void sim_run_until(bool (*done)(void *arg), void *arg, u64 limit_ns)
{
	u64 until = sim_now_ns + limit_ns;

	while (!done(arg) && run_one(until))
		;
}

/* --- timers and work --- */

static void timer_fires(struct sim_event *e)
{
	struct timer_list *t = container_of(e, struct timer_list, event);

	t->function(t);
}

void timer_setup(struct timer_list *t, void (*fn)(struct timer_list *), unsigned int flags)
{
	(void)flags;
	memset(t, 0, sizeof(*t));
	t->function = fn;
	t->event.fn = timer_fires;
}

int mod_timer(struct timer_list *t, unsigned long expires)
{
	bool pending = t->event.slot;
	long delta = (long)(expires - jiffies);

	sim_event_at(&t->event, sim_now_ns + (delta > 0 ? (u64)delta * 1000000 : 0));
	return pending;
}

int timer_delete(struct timer_list *t)
{
	return sim_event_cancel(&t->event);
}

static void run_work(void *arg)
{
	struct work_struct *w = arg;

	w->fn(w);
}

static void work_starts(struct sim_event *e)
{
	sim_fiber(run_work, container_of(e, struct work_struct, event));
}

void sim_init_work(struct work_struct *w, void (*fn)(struct work_struct *))
{
	memset(w, 0, sizeof(*w));
	w->fn = fn;
	w->event.fn = work_starts;
}

bool queue_work(struct workqueue_struct *wq, struct work_struct *w)
{
	(void)wq;
	if (w->event.slot)
		return false;
	sim_event_at(&w->event, sim_now_ns + 1000 + sim_random() % 20000);
	return true;
}

struct workqueue_struct *sim_alloc_wq(void)
{
	return calloc(1, sizeof(struct workqueue_struct));
}

void destroy_workqueue(struct workqueue_struct *wq)
{
	free(wq);
}

/* --- fibers: what may sleep --- */

#define STACK_SIZE	(128 * 1024)

struct fiber {
	ucontext_t ctx;
	void *stack;
	void *fake;
	struct fiber *next_free;
	struct sim_event wake;
	void (*fn)(void *arg);
	void *arg;
	bool done;
};

static ucontext_t loop_ctx;
static const void *loop_stack;
static size_t loop_stack_size;
static struct fiber *current, *free_fibers;

bool sim_in_fiber(void)
{
	return current;
}

void sim_might_sleep(void)
{
	SIM_CHECK(!sim_locks_held, "sleeping with a spinlock held");
}

static void fiber_leave(struct fiber *f)
{
	current = NULL;
	SWITCH_START(&f->fake, loop_stack, loop_stack_size);
	swapcontext(&f->ctx, &loop_ctx);
	SWITCH_DONE(f->fake, &loop_stack, &loop_stack_size);
	current = f;
}

static void fiber_main(void)
{
	SWITCH_DONE(NULL, &loop_stack, &loop_stack_size);
	for (;;) {
		struct fiber *f = current;

		f->fn(f->arg);
		SIM_CHECK(!sim_locks_held, "a lock is still held at the end of a fiber");
		f->done = true;
		fiber_leave(f);
	}
}

static void fiber_enter(struct fiber *f)
{
	struct fiber *outer = current;
	void *fake = NULL;

	SIM_CHECK(!outer, "a fiber inside a fiber");
	current = f;
	SWITCH_START(&fake, f->stack, STACK_SIZE);
	swapcontext(&loop_ctx, &f->ctx);
	SWITCH_DONE(fake, NULL, NULL);
	if (f->done) {
		f->next_free = free_fibers;
		free_fibers = f;
	}
}

static void fiber_wakes(struct sim_event *e)
{
	fiber_enter(container_of(e, struct fiber, wake));
}

static struct fiber *fiber_new(void)
{
	struct fiber *f = calloc(1, sizeof(*f));

	f->stack = malloc(STACK_SIZE);
	f->wake.fn = fiber_wakes;
	getcontext(&f->ctx);
	f->ctx.uc_stack.ss_sp = f->stack;
	f->ctx.uc_stack.ss_size = STACK_SIZE;
	makecontext(&f->ctx, fiber_main, 0);
	return f;
}

void sim_fiber(void (*fn)(void *arg), void *arg)
{
	struct fiber *f;

	if (current) {	/* already where sleeping is allowed */
		fn(arg);
		return;
	}
	f = free_fibers;
	if (f)
		free_fibers = f->next_free;
	else
		f = fiber_new();
	f->fn = fn;
	f->arg = arg;
	f->done = false;
	fiber_enter(f);
}

void sim_sleep_ns(u64 ns)
{
	struct fiber *f = current;

	sim_might_sleep();
	SIM_CHECK(f, "sleeping in an atomic context");
	sim_event_at(&f->wake, sim_now_ns + ns);
	fiber_leave(f);
}

void sim_free_fibers(void)
{
	while (free_fibers) {
		struct fiber *f = free_fibers;

		free_fibers = f->next_free;
		free(f->stack);
		free(f);
	}
	free(heap);
	heap = NULL;
	heap_cap = 0;
}

void mutex_lock(struct mutex *m)
{
	sim_might_sleep();
	while (m->held)
		sim_sleep_ns(1000);
	m->held = true;
}

void mutex_unlock(struct mutex *m)
{
	SIM_CHECK(m->held, "mutex is not held");
	m->held = false;
}

/* --- hash table --- */

static const siphash_key_t ht_key = { { 0x1234567890abcdefULL, 0xfedcba0987654321ULL } };

static const void *ht_key_of(const struct rhashtable *ht, const struct rhash_head *head)
{
	return (const char *)head - ht->p.head_offset + ht->p.key_offset;
}

static struct rhash_head **ht_bucket(struct rhashtable *ht, const void *key)
{
	return &ht->buckets[siphash(key, ht->p.key_len, &ht_key) & (ht->size - 1)];
}

int rhashtable_init(struct rhashtable *ht, const struct rhashtable_params *p)
{
	ht->p = *p;
	ht->size = 64;
	ht->count = 0;
	ht->buckets = calloc(ht->size, sizeof(*ht->buckets));
	return 0;
}

void rhashtable_destroy(struct rhashtable *ht)
{
	SIM_CHECK(!ht->count, "%zu entries left in a table", ht->count);
	free(ht->buckets);
}

static void ht_grow(struct rhashtable *ht)
{
	struct rhash_head **old = ht->buckets;
	size_t size = ht->size, i;

	ht->size *= 2;
	ht->buckets = calloc(ht->size, sizeof(*ht->buckets));
	for (i = 0; i < size; i++)
		while (old[i]) {
			struct rhash_head *h = old[i], **b = ht_bucket(ht, ht_key_of(ht, h));

			old[i] = h->next;
			h->next = *b;
			*b = h;
		}
	free(old);
}

void *sim_ht_lookup(struct rhashtable *ht, const void *key)
{
	struct rhash_head *h;

	for (h = *ht_bucket(ht, key); h; h = h->next) {
		sim_hash_probes++;
		if (!memcmp(ht_key_of(ht, h), key, ht->p.key_len))
			return (char *)h - ht->p.head_offset;
	}
	return NULL;
}

int sim_ht_insert(struct rhashtable *ht, struct rhash_head *head)
{
	const void *key = ht_key_of(ht, head);
	struct rhash_head **b;

	if (sim_ht_lookup(ht, key))
		return -EEXIST;
	if (++ht->count > ht->size)
		ht_grow(ht);
	b = ht_bucket(ht, key);
	head->next = *b;
	*b = head;
	return 0;
}

int sim_ht_remove(struct rhashtable *ht, struct rhash_head *head)
{
	struct rhash_head **p;

	for (p = ht_bucket(ht, ht_key_of(ht, head)); *p; p = &(*p)->next) {
		sim_hash_probes++;
		if (*p == head) {
			*p = head->next;
			ht->count--;
			return 0;
		}
	}
	return -ENOENT;
}

void rhashtable_walk_enter(struct rhashtable *ht, struct rhashtable_iter *it)
{
	it->ht = ht;
	it->bucket = 0;
	it->next = ht->buckets[0];
}

void *rhashtable_walk_next(struct rhashtable_iter *it)
{
	struct rhash_head *h;

	while (!it->next) {
		if (++it->bucket >= it->ht->size)
			return NULL;
		it->next = it->ht->buckets[it->bucket];
	}
	h = it->next;
	it->next = h->next;
	return (char *)h - it->ht->p.head_offset;
}
