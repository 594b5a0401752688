// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The control queue pair: posts requests to its ring, finds their completions and ends those
 * that get none (spec 01 section 4).
 *
 * One spin lock guards ring, CCQ and the lists of requests; it is taken in any context.
 * Requests belong to their callers: what does not fit into the ring waits in a list of the
 * requests themselves, in the order of submission.  The CCQ is drained in the interrupt of
 * CEQ 0, which wakes irdma_cqp_exec() directly; callbacks of irdma_cqp_submit() run in a
 * tasklet.  A work item looks for commands without an answer: 5 s without progress, and the
 * device is dead.
 *
 * During bring-up and teardown there is no interrupt and one caller: irdma_cqp_exec() polls.
 */
#include <linux/bitfield.h>
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/interrupt.h>
#include <linux/slab.h>
#include <linux/wait.h>
#include <linux/wait_bit.h>
#include <linux/workqueue.h>

#include "irdma.h"
#include "qpc.h"

#define CQP_ENTRIES		256	/* 4..2048, power of two */
#define CQP_WQE_WORDS		8
#define CQP_RING_BYTES		(CQP_ENTRIES * CQP_WQE_WORDS * sizeof(__le64))
#define QPC_BYTES		(IRDMA_QPC_WORDS * sizeof(__le64))
#define CCQ_ENTRIES		(CQP_ENTRIES + 2)
#define CCQ_CQE_WORDS		4
#define CCQ_THRESHOLD		16

/* Longest time without progress (spec 01, 4.6), and pause between two looks when polling. */
#define CQP_TIMEOUT_MS		5000
#define CQP_CHECK_MS		250	/* how often to look whether the control queue is there */
#define CQP_CREATE_TIMEOUT_MS	1000
#define CQP_POLL_US		10
#define CQP_SPIN_US		20	/* before sleeping until an interrupt comes */
/* PFPE_CQPTAIL shows an error without an advance: how long to wait for the advance. */
#define CQP_ERROR_GRACE_MS	10

/* One coherent page holds the CQP context and the CCQ's shadow area. */
#define CTRL_SHADOW_OFFSET	128

#define CTX_QW0_PROTOCOL	GENMASK_ULL(4, 3)
#define CTX_QW0_SQ_SIZE		GENMASK_ULL(11, 8)
#define CTX_QW2_PROFILE		GENMASK_ULL(2, 0)
#define CTX_QW4_MAJOR_VERSION	GENMASK_ULL(31, 16)

#define WQE_QW3_VALID		BIT_ULL(63)
#define CQE_QW2_RETVAL		GENMASK_ULL(31, 0)
#define CQE_QW3_MINOR		GENMASK_ULL(15, 0)
#define CQE_QW3_MAJOR		GENMASK_ULL(31, 16)
#define CQE_QW3_WQE_IDX		GENMASK_ULL(46, 32)
#define CQE_QW3_ERROR		BIT_ULL(55)
#define CQE_QW3_VALID		BIT_ULL(63)

#define SHADOW_HEAD		0	/* word index */
#define SHADOW_ARM		4	/* word index */
#define SHADOW_ARM_NEXT		BIT_ULL(14)
#define SHADOW_ARM_SEQ		GENMASK_ULL(17, 16)

#define TAIL_INDEX		GENMASK(10, 0)
#define TAIL_ERROR		BIT(31)
#define ERRCODES_MINOR		GENMASK(15, 0)
#define ERRCODES_MAJOR		GENMASK(31, 16)
#define STATUS_DONE		BIT(0)
#define STATUS_ERROR		BIT(31)

/* Error codes with a meaning (spec 01, 4.5). */
#define MAJOR_OPERATION		0xFFFF
#define MINOR_INVALID_STATE	0x8002
#define MINOR_NOTHING_TO_FLUSH	0x8006
#define MINOR_BAD_CLOSE		0x8007
#define MINOR_LLP_CLOSED	0x8009
#define MINOR_RESET_NOT_SENT	0x800A
#define MINOR_FIRMWARE_FAILURE	0x8029

/**
 * struct irdma_cqp - control queue pair and its completion queue
 * @dev: the device
 * @lock: guards everything below that changes
 * @mode: how completions are found
 * @ctrl: CQP context and CCQ shadow area
 * @ctrl_addr: bus address of @ctrl
 * @sq: ring of commands
 * @sq_addr: bus address of @sq
 * @contexts: for each index of @sq the context of the queue pair that the command there is for:
 *	the device reads it then and not later (spec 02, 4.1), so no queue pair keeps one
 * @contexts_addr: bus address of @contexts
 * @head: index of the next command to post
 * @tail: index of the oldest command without completion
 * @wqe_valid: valid bit of the current pass over @sq
 * @slots: what was posted at each index; NULL when it has completed
 * @waiting: submitted, not in the ring yet, oldest first
 * @posted: in the ring, oldest first
 * @finished: completed, callback still to run, oldest first
 * @progress: jiffies of the latest completion, or of the post into an empty ring
 * @submitted: count of irdma_cqp_submit() calls
 * @called_back: count of callbacks that have returned
 * @flush_wait: for @called_back
 * @callbacks: runs those of @finished
 * @watchdog: finds commands without an answer
 * @ccq: ring of completions
 * @ccq_addr: bus address of @ccq
 * @ccq_head: index of the next completion
 * @cqe_valid: valid bit of the current pass over @ccq
 * @armed: an event was asked for, and @ccq_handler has not had it yet
 * @ccq_handler: receiver of CEQ entries of the CCQ
 */
struct irdma_cqp {
	struct irdma_device *dev;
	spinlock_t lock;
	enum irdma_cqp_mode mode;
	__le64 *ctrl;
	dma_addr_t ctrl_addr;

	__le64 *sq;
	dma_addr_t sq_addr;
	__le64 *contexts;
	dma_addr_t contexts_addr;
	u32 head;
	u32 tail;
	u64 wqe_valid;
	struct irdma_cqp_req *slots[CQP_ENTRIES];

	struct list_head waiting;
	struct list_head posted;
	struct list_head finished;
	unsigned long progress;
	unsigned long submitted;
	unsigned long called_back;
	wait_queue_head_t flush_wait;
	struct tasklet_struct callbacks;
	struct delayed_work watchdog;

	__le64 *ccq;
	dma_addr_t ccq_addr;
	u32 ccq_head;
	u64 cqe_valid;
	bool armed;
	struct irdma_cq_handler ccq_handler;
};

/* A completion as found in the CCQ or in the registers. */
struct cqp_result {
	u32 wqe_idx;
	u32 retval;
	u16 major;
	u16 minor;
	bool error;
};

static __le64 *shadow(struct irdma_cqp *cqp)
{
	return cqp->ctrl + CTRL_SHADOW_OFFSET / sizeof(__le64);
}

/* @lock held: the request has its result; hand it back to its owner. */
static void finish(struct irdma_cqp *cqp, struct irdma_cqp_req *req, int status)
{
	req->status = status;
	req->finished = true;
	if (req->done) {
		list_move_tail(&req->entry, &cqp->finished);
		tasklet_schedule(&cqp->callbacks);
	} else {
		list_del(&req->entry);
		wake_up_var(req);
	}
}

static int result_status(const struct cqp_result *res)
{
	if (!res->error)
		return 0;
	if (res->major == MAJOR_OPERATION && res->minor == MINOR_INVALID_STATE)
		return -EBUSY;
	return -EIO;
}

/* Races of a QP's owner with its peer end like this; they are no fault of anybody. */
static bool is_ordinary(const struct irdma_cqp_req *req)
{
	if (req->major != MAJOR_OPERATION || !irdma_cqp_is_qp_op(req))
		return false;
	switch (req->minor) {
	case MINOR_INVALID_STATE:
	case MINOR_NOTHING_TO_FLUSH:
	case MINOR_BAD_CLOSE:
	case MINOR_LLP_CLOSED:
	case MINOR_RESET_NOT_SENT:
		return true;
	default:
		return false;
	}
}

/* Outside of @lock: say what went wrong, once, and react to a firmware failure. */
static void report(struct irdma_device *dev, const struct irdma_cqp_req *req)
{
	if ((req->status != -EIO && req->status != -EBUSY) || is_ordinary(req))
		return;
	irdma_err_ratelimited(dev,
			      "%s (CQP op 0x%02x) failed: major 0x%04x minor 0x%04x, header %#llx words %#llx %#llx\n",
			      irdma_cqp_op_name(req), irdma_cqp_op(req), req->major, req->minor,
			      req->wqe[3], req->wqe[1], req->wqe[2]);
	if (req->major == MAJOR_OPERATION && req->minor == MINOR_FIRMWARE_FAILURE)
		irdma_mark_dead(dev, "firmware failure");
}

static void run_callbacks(struct tasklet_struct *tasklet)
{
	struct irdma_cqp *cqp = container_of(tasklet, struct irdma_cqp, callbacks);
	struct irdma_device *dev = cqp->dev;
	struct irdma_cqp_req *req;

	for (;;) {
		spin_lock_irq(&cqp->lock);
		req = list_first_entry_or_null(&cqp->finished, struct irdma_cqp_req, entry);
		if (req)
			list_del(&req->entry);
		spin_unlock_irq(&cqp->lock);
		if (!req)
			return;
		report(dev, req);
		req->done(dev, req);
		WRITE_ONCE(cqp->called_back, cqp->called_back + 1);
		wake_up_all(&cqp->flush_wait);
	}
}

static bool ring_full(const struct irdma_cqp *cqp)
{
	return (cqp->head + 1) % CQP_ENTRIES == cqp->tail;
}

/* The command at @idx finds the context that @req brings in QW2. */
static u64 put_context(struct irdma_cqp *cqp, u32 idx, const struct irdma_cqp_req *req)
{
	memcpy(cqp->contexts + idx * IRDMA_QPC_WORDS, req->context, QPC_BYTES);
	return cqp->contexts_addr + idx * QPC_BYTES;
}

/* @lock held, ring not full. */
static void post(struct irdma_cqp *cqp, struct irdma_cqp_req *req)
{
	u32 idx = cqp->head;
	__le64 *wqe = cqp->sq + idx * CQP_WQE_WORDS;
	unsigned int i;

	if (idx == 0)
		cqp->wqe_valid ^= WQE_QW3_VALID;
	if (req->context)
		req->wqe[2] = put_context(cqp, idx, req);
	for (i = 0; i < CQP_WQE_WORDS; i++)
		if (i != 3)
			wqe[i] = cpu_to_le64(req->wqe[i]);
	/* Hardware takes the entry when it sees the valid bit. */
	dma_wmb();
	WRITE_ONCE(wqe[3], cpu_to_le64(req->wqe[3] | cqp->wqe_valid));

	if (list_empty(&cqp->posted))
		cqp->progress = jiffies;
	list_move_tail(&req->entry, &cqp->posted);
	cqp->slots[idx] = req;
	cqp->head = (idx + 1) % CQP_ENTRIES;
}

/* @lock held: have an event raised by the next completion, if it is not already (spec 01, 6.3). */
static void arm(struct irdma_cqp *cqp)
{
	__le64 *word = shadow(cqp) + SHADOW_ARM;
	u64 val = le64_to_cpu(*word);
	u64 seq = FIELD_GET(SHADOW_ARM_SEQ, val) + 1;

	if (cqp->armed)
		return;
	cqp->armed = true;
	val &= ~SHADOW_ARM_SEQ;
	val |= FIELD_PREP(SHADOW_ARM_SEQ, seq & 3) | SHADOW_ARM_NEXT;
	WRITE_ONCE(*word, cpu_to_le64(val));
	irdma_arm_cq(cqp->dev, IRDMA_CQN_CCQ);
}

/* @lock held: move what waits to the ring, with one doorbell for all of it. */
static void pump(struct irdma_cqp *cqp)
{
	struct irdma_cqp_req *req, *next;
	u32 old_head = cqp->head;

	list_for_each_entry_safe(req, next, &cqp->waiting, entry) {
		if (ring_full(cqp))
			break;
		post(cqp, req);
	}
	if (cqp->head == old_head)
		return;
	irdma_wr32(cqp->dev, IRDMA_REG_CQPDB, cqp->head);
	if (cqp->mode == IRDMA_CQP_INTERRUPT)
		queue_delayed_work(cqp->dev->hw_wq, &cqp->watchdog,
				   msecs_to_jiffies(CQP_CHECK_MS));
}

static void enqueue(struct irdma_cqp *cqp, struct irdma_cqp_req *req)
{
	unsigned long flags;

	req->finished = false;
	spin_lock_irqsave(&cqp->lock, flags);
	if (req->done)
		cqp->submitted++;
	list_add_tail(&req->entry, &cqp->waiting);
	if (irdma_is_dead(cqp->dev)) {
		finish(cqp, req, -ENODEV);
	} else {
		if (req->done)
			arm(cqp);
		pump(cqp);
	}
	spin_unlock_irqrestore(&cqp->lock, flags);
}

/* @lock held: hand a result to the request that it belongs to. */
static void take_result(struct irdma_cqp *cqp, const struct cqp_result *res)
{
	struct irdma_cqp_req *req;

	/* A dead device has had all its commands ended already. */
	if (irdma_is_dead(cqp->dev))
		return;
	if (res->wqe_idx >= CQP_ENTRIES || !cqp->slots[res->wqe_idx]) {
		irdma_err_ratelimited(cqp->dev, "completion of a command that is not posted: index %u\n",
				      res->wqe_idx);
		return;
	}
	req = cqp->slots[res->wqe_idx];
	cqp->slots[res->wqe_idx] = NULL;
	cqp->tail = (res->wqe_idx + 1) % CQP_ENTRIES;
	cqp->progress = jiffies;
	req->retval = res->retval;
	req->major = res->major;
	req->minor = res->minor;
	finish(cqp, req, result_status(res));
}

/* @lock held: the next completion in the CCQ, if there is one. */
static bool next_cqe(struct irdma_cqp *cqp, struct cqp_result *res)
{
	const __le64 *cqe = cqp->ccq + cqp->ccq_head * CCQ_CQE_WORDS;
	u64 word = le64_to_cpu(READ_ONCE(cqe[3]));

	if ((word & CQE_QW3_VALID) != cqp->cqe_valid)
		return false;
	/* The rest of the entry was written before its valid bit. */
	dma_rmb();
	res->retval = FIELD_GET(CQE_QW2_RETVAL, le64_to_cpu(cqe[2]));
	res->wqe_idx = FIELD_GET(CQE_QW3_WQE_IDX, word);
	res->major = FIELD_GET(CQE_QW3_MAJOR, word);
	res->minor = FIELD_GET(CQE_QW3_MINOR, word);
	res->error = word & CQE_QW3_ERROR;
	if (++cqp->ccq_head == CCQ_ENTRIES) {
		cqp->ccq_head = 0;
		cqp->cqe_valid ^= CQE_QW3_VALID;
	}
	return true;
}

/* @lock held: take all completions, refill the ring. Returns whether there were any. */
static bool drain(struct irdma_cqp *cqp)
{
	struct cqp_result res;
	bool any = false;

	while (next_cqe(cqp, &res)) {
		take_result(cqp, &res);
		any = true;
	}
	if (any) {
		WRITE_ONCE(shadow(cqp)[SHADOW_HEAD], cpu_to_le64(cqp->ccq_head));
		pump(cqp);
	}
	return any;
}

/* @lock held: somebody sleeps until the posted commands complete. */
static void arm_and_drain(struct irdma_cqp *cqp)
{
	arm(cqp);
	/* Whether arming raises an event for a completion already there is not known. */
	drain(cqp);
}

static void ccq_event(struct irdma_cq_handler *h)
{
	struct irdma_cqp *cqp = container_of(h, struct irdma_cqp, ccq_handler);
	unsigned long flags;

	spin_lock_irqsave(&cqp->lock, flags);
	cqp->armed = false;
	drain(cqp);
	if (!list_empty(&cqp->posted))
		arm_and_drain(cqp);
	spin_unlock_irqrestore(&cqp->lock, flags);
}

static void ccq_error(struct irdma_cq_handler *h, u16 ae_code)
{
	struct irdma_cqp *cqp = container_of(h, struct irdma_cqp, ccq_handler);

	irdma_err(cqp->dev, "event 0x%04x on the control completion queue\n", ae_code);
	irdma_mark_dead(cqp->dev, "control completion queue lost");
}

static const struct irdma_cq_handler_ops ccq_handler_ops = {
	.comp = ccq_event,
	.error = ccq_error,
};

/* The oldest command gets -ETIMEDOUT, everything behind it -ENODEV. */
static void stuck(struct irdma_cqp *cqp)
{
	struct irdma_cqp_req *req;

	spin_lock_irq(&cqp->lock);
	req = list_first_entry_or_null(&cqp->posted, struct irdma_cqp_req, entry);
	if (req) {
		irdma_err(cqp->dev, "%s (CQP op 0x%02x, header %#llx) not answered for %u ms\n",
			  irdma_cqp_op_name(req), irdma_cqp_op(req), req->wqe[3], CQP_TIMEOUT_MS);
		memset(cqp->slots, 0, sizeof(cqp->slots));
		finish(cqp, req, -ETIMEDOUT);
	}
	spin_unlock_irq(&cqp->lock);
	irdma_mark_dead(cqp->dev, "the control queue does not answer");
}

/**
 * irdma_cqp_check() - notice a reset of the function that nobody has told of
 * @dev: the device
 *
 * A reset takes the control queue away; to wait for its answers then is in vain.
 *
 * Context: any, without the locks of the control queue.
 */
void irdma_cqp_check(struct irdma_device *dev)
{
	if (irdma_is_dead(dev) || irdma_rd32(dev, IRDMA_REG_CCQPSTATUS) & STATUS_DONE)
		return;
	irdma_warn(dev, "the function was reset\n");
	irdma_mark_reset(dev);
}

static void watchdog(struct work_struct *work)
{
	struct irdma_cqp *cqp = container_of(to_delayed_work(work), struct irdma_cqp, watchdog);
	bool expired = false, lost_event = false, waiting;

	spin_lock_irq(&cqp->lock);
	waiting = !list_empty(&cqp->posted);
	if (waiting)
		expired = time_after_eq(jiffies, cqp->progress + msecs_to_jiffies(CQP_TIMEOUT_MS));
	if (expired && drain(cqp)) {
		/* Polled from now on, slowly, which keeps the device usable. */
		cqp->armed = false;
		arm(cqp);
		lost_event = true;
		expired = false;
		waiting = !list_empty(&cqp->posted);
	}
	if (waiting && !expired)
		queue_delayed_work(cqp->dev->hw_wq, &cqp->watchdog,
				   msecs_to_jiffies(CQP_CHECK_MS));
	spin_unlock_irq(&cqp->lock);

	if (lost_event)
		irdma_err_ratelimited(cqp->dev, "a control queue completion came without interrupt\n");
	if (waiting)
		irdma_cqp_check(cqp->dev);
	if (expired && !irdma_is_dead(cqp->dev))
		stuck(cqp);
}

/**
 * irdma_cqp_fail_all() - end every command that has not completed, with -ENODEV
 * @dev: the device, marked dead already, so that no command follows
 *
 * Context: any.
 */
void irdma_cqp_fail_all(struct irdma_device *dev)
{
	struct irdma_cqp *cqp = dev->cqp;
	struct irdma_cqp_req *req, *next;
	unsigned long flags;

	if (!cqp)
		return;
	spin_lock_irqsave(&cqp->lock, flags);
	memset(cqp->slots, 0, sizeof(cqp->slots));
	list_for_each_entry_safe(req, next, &cqp->posted, entry)
		finish(cqp, req, -ENODEV);
	list_for_each_entry_safe(req, next, &cqp->waiting, entry)
		finish(cqp, req, -ENODEV);
	spin_unlock_irqrestore(&cqp->lock, flags);
}

/*
 * Look at PFPE_CQPTAIL for the only posted command.  The error bit counts when the tail has
 * moved; without that it may be a left-over, and is believed after a grace period only.
 */
static void poll_tail(struct irdma_cqp *cqp, unsigned long start)
{
	struct irdma_device *dev = cqp->dev;
	u32 tail = irdma_rd32(dev, IRDMA_REG_CQPTAIL);
	struct cqp_result res = { .wqe_idx = cqp->tail, .error = tail & TAIL_ERROR };
	u32 codes;

	if (irdma_is_dead(dev))
		return;
	if (FIELD_GET(TAIL_INDEX, tail) == cqp->tail &&
	    (!res.error || time_before(jiffies, start + msecs_to_jiffies(CQP_ERROR_GRACE_MS))))
		return;
	if (res.error) {
		codes = irdma_rd32(dev, IRDMA_REG_CQPERRCODES);
		res.major = FIELD_GET(ERRCODES_MAJOR, codes);
		res.minor = FIELD_GET(ERRCODES_MINOR, codes);
	}
	spin_lock_irq(&cqp->lock);
	if (cqp->slots[res.wqe_idx])
		take_result(cqp, &res);
	spin_unlock_irq(&cqp->lock);
}

static bool is_finished(struct irdma_cqp *cqp, const struct irdma_cqp_req *req)
{
	bool finished;

	spin_lock_irq(&cqp->lock);
	finished = req->finished;
	spin_unlock_irq(&cqp->lock);
	return finished;
}

static void poll_until_finished(struct irdma_cqp *cqp, const struct irdma_cqp_req *req)
{
	unsigned long start = jiffies;

	for (;;) {
		if (cqp->mode == IRDMA_CQP_POLL_TAIL) {
			poll_tail(cqp, start);
		} else {
			spin_lock_irq(&cqp->lock);
			drain(cqp);
			spin_unlock_irq(&cqp->lock);
		}
		if (is_finished(cqp, req))
			return;
		if (time_after(jiffies, start + msecs_to_jiffies(CQP_TIMEOUT_MS)))
			stuck(cqp);
		else
			usleep_range(CQP_POLL_US, 2 * CQP_POLL_US);
	}
}

/*
 * Most commands take microseconds, less than an interrupt and two task switches, so the caller
 * looks itself for a moment, before it asks for an interrupt.
 */
static bool poll_briefly(struct irdma_cqp *cqp, struct irdma_cqp_req *req)
{
	ktime_t end = ktime_add_us(ktime_get(), CQP_SPIN_US);
	bool finished;

	do {
		spin_lock_irq(&cqp->lock);
		drain(cqp);
		finished = req->finished;
		spin_unlock_irq(&cqp->lock);
		if (finished)
			return true;
		cpu_relax();
	} while (ktime_before(ktime_get(), end));
	return false;
}

/**
 * irdma_cqp_exec() - execute a command and wait for its completion
 * @dev: the device
 * @req: prepared request; results are in it afterwards
 *
 * Context: process, may sleep; not from an irdma_cqp_submit() callback.
 * Return: 0, -EBUSY (the object is in a state that does not allow it), -EIO (refused, reported),
 *	-ETIMEDOUT (no answer, the device is dead now), -ENODEV (the device is dead).
 */
int irdma_cqp_exec(struct irdma_device *dev, struct irdma_cqp_req *req)
{
	struct irdma_cqp *cqp = dev->cqp;

	might_sleep();
	req->done = NULL;
	enqueue(cqp, req);
	if (READ_ONCE(cqp->mode) == IRDMA_CQP_INTERRUPT) {
		if (!poll_briefly(cqp, req)) {
			spin_lock_irq(&cqp->lock);
			arm_and_drain(cqp);
			spin_unlock_irq(&cqp->lock);
			/* The watchdog ends this wait if hardware does not. */
			wait_var_event(req, is_finished(cqp, req));
		}
	} else {
		poll_until_finished(cqp, req);
	}
	report(dev, req);
	return req->status;
}

/**
 * irdma_cqp_submit() - execute a command without waiting
 * @dev: the device
 * @req: prepared request; belongs to the control queue until @done is called
 * @done: called once from a tasklet, in the order of submission
 *
 * Context: any, while CQP interrupts run (between irdma_hw_start() and irdma_hw_stop()).
 */
void irdma_cqp_submit(struct irdma_device *dev, struct irdma_cqp_req *req, irdma_cqp_done_fn done)
{
	req->done = done;
	enqueue(dev->cqp, req);
}

/**
 * irdma_cqp_flush_submitted() - wait for all earlier irdma_cqp_submit() callbacks
 * @dev: the device
 *
 * Context: process, sleeps; not from such a callback.
 */
void irdma_cqp_flush_submitted(struct irdma_device *dev)
{
	struct irdma_cqp *cqp = dev->cqp;
	unsigned long target;

	spin_lock_irq(&cqp->lock);
	target = cqp->submitted;
	spin_unlock_irq(&cqp->lock);
	wait_event(cqp->flush_wait, (long)(READ_ONCE(cqp->called_back) - target) >= 0);
}

static int cqp_alloc(struct irdma_device *dev)
{
	struct irdma_cqp *cqp;

	cqp = kvzalloc(sizeof(*cqp), GFP_KERNEL);
	if (!cqp)
		return -ENOMEM;
	cqp->dev = dev;
	spin_lock_init(&cqp->lock);
	INIT_LIST_HEAD(&cqp->waiting);
	INIT_LIST_HEAD(&cqp->posted);
	INIT_LIST_HEAD(&cqp->finished);
	init_waitqueue_head(&cqp->flush_wait);
	tasklet_setup(&cqp->callbacks, run_callbacks);
	INIT_DELAYED_WORK(&cqp->watchdog, watchdog);

	cqp->ctrl = dma_alloc_coherent(dma_dev(dev), PAGE_SIZE, &cqp->ctrl_addr, GFP_KERNEL);
	if (!cqp->ctrl)
		goto free_cqp;
	cqp->sq = dma_alloc_coherent(dma_dev(dev), CQP_RING_BYTES, &cqp->sq_addr, GFP_KERNEL);
	if (!cqp->sq)
		goto free_ctrl;
	cqp->contexts = dma_alloc_coherent(dma_dev(dev), CQP_ENTRIES * QPC_BYTES,
					   &cqp->contexts_addr, GFP_KERNEL);
	if (!cqp->contexts)
		goto free_sq;
	dev->cqp = cqp;
	return 0;

free_sq:
	dma_free_coherent(dma_dev(dev), CQP_RING_BYTES, cqp->sq, cqp->sq_addr);
free_ctrl:
	dma_free_coherent(dma_dev(dev), PAGE_SIZE, cqp->ctrl, cqp->ctrl_addr);
free_cqp:
	kvfree(cqp);
	return -ENOMEM;
}

static void cqp_free(struct irdma_device *dev)
{
	struct irdma_cqp *cqp = dev->cqp;

	cancel_delayed_work_sync(&cqp->watchdog);
	tasklet_kill(&cqp->callbacks);
	dev->cqp = NULL;
	dma_free_coherent(dma_dev(dev), CQP_ENTRIES * QPC_BYTES, cqp->contexts,
			  cqp->contexts_addr);
	dma_free_coherent(dma_dev(dev), CQP_RING_BYTES, cqp->sq, cqp->sq_addr);
	dma_free_coherent(dma_dev(dev), PAGE_SIZE, cqp->ctrl, cqp->ctrl_addr);
	kvfree(cqp);
}

static void fill_context(struct irdma_cqp *cqp)
{
	const struct irdma_hw_gen *gen = cqp->dev->gen;
	__le64 *ctx = cqp->ctrl;

	/* The size code is log2(entries) - 1. */
	ctx[0] = cpu_to_le64(FIELD_PREP(CTX_QW0_SQ_SIZE, ilog2(CQP_ENTRIES) - 1) |
			     FIELD_PREP(CTX_QW0_PROTOCOL, gen->protocol));
	ctx[1] = cpu_to_le64(cqp->sq_addr);
	ctx[2] = cpu_to_le64(FIELD_PREP(CTX_QW2_PROFILE, irdma_resource_profile));
	ctx[4] = cpu_to_le64(FIELD_PREP(CTX_QW4_MAJOR_VERSION, gen->hw_major));
}

/* Wait until PFPE_CCQPSTATUS has any of @bits set (@set) or none; returns what it was last. */
static u32 wait_status(struct irdma_device *dev, u32 bits, bool set)
{
	unsigned long deadline = jiffies + msecs_to_jiffies(CQP_CREATE_TIMEOUT_MS);
	u32 status;

	for (;;) {
		status = irdma_rd32(dev, IRDMA_REG_CCQPSTATUS);
		if (!!(status & bits) == set || irdma_is_dead(dev) || time_after(jiffies, deadline))
			return status;
		usleep_range(CQP_POLL_US, 2 * CQP_POLL_US);
	}
}

static int cqp_create(struct irdma_device *dev)
{
	struct irdma_cqp *cqp = dev->cqp;
	u32 status, codes;

	irdma_wr32(dev, IRDMA_REG_CQPTAIL, 0);
	irdma_wr32(dev, IRDMA_REG_CQPDB, 0);
	irdma_wr32(dev, IRDMA_REG_CCQPSTATUS, 0);
	irdma_wr32(dev, IRDMA_REG_CCQPHIGH, upper_32_bits(cqp->ctrl_addr));
	irdma_wr32(dev, IRDMA_REG_CCQPLOW, lower_32_bits(cqp->ctrl_addr));
	status = wait_status(dev, ~0U, true);
	if (irdma_is_dead(dev))
		return -ENODEV;
	if (status && !(status & STATUS_ERROR))
		return 0;

	codes = irdma_rd32(dev, IRDMA_REG_CQPERRCODES);
	irdma_err(dev, "control queue not created: status 0x%08x major 0x%04lx minor 0x%04lx\n",
		  status, FIELD_GET(ERRCODES_MAJOR, codes), FIELD_GET(ERRCODES_MINOR, codes));
	return status ? -EOPNOTSUPP : -ETIMEDOUT;
}

static void cqp_destroy(struct irdma_device *dev)
{
	irdma_wr32(dev, IRDMA_REG_CCQPHIGH, 0);
	irdma_wr32(dev, IRDMA_REG_CCQPLOW, 0);
	if (wait_status(dev, STATUS_DONE, false) & STATUS_DONE && !irdma_is_dead(dev))
		irdma_err(dev, "control queue does not stop\n");
}

/**
 * irdma_cqp_start() - create the control queue; commands are polled for
 * @dev: the device
 *
 * Context: process, sleeps.
 * Return: 0, -ENOMEM, -ENODEV (device gone), -EOPNOTSUPP (refused), -ETIMEDOUT.
 */
int irdma_cqp_start(struct irdma_device *dev)
{
	int err;

	err = cqp_alloc(dev);
	if (err)
		return err;
	fill_context(dev->cqp);
	err = cqp_create(dev);
	if (err) {
		/* Hardware may have taken the context after all. */
		cqp_destroy(dev);
		cqp_free(dev);
	}
	return err;
}

/**
 * irdma_cqp_stop() - destroy the control queue
 * @dev: the device
 *
 * Context: process, sleeps; no command is in flight.
 */
void irdma_cqp_stop(struct irdma_device *dev)
{
	cqp_destroy(dev);
	cqp_free(dev);
}

static size_t ccq_bytes(void)
{
	return ALIGN(CCQ_ENTRIES * CCQ_CQE_WORDS * sizeof(__le64), 256);
}

static struct irdma_cq_cmd ccq_cmd(struct irdma_cqp *cqp)
{
	return (struct irdma_cq_cmd){
		.cqn = IRDMA_CQN_CCQ,
		.size = CCQ_ENTRIES,
		.threshold = CCQ_THRESHOLD,
		.ring = cqp->ccq_addr,
		.shadow = cqp->ctrl_addr + CTRL_SHADOW_OFFSET,
		.check_overflow = true,
	};
}

/* The creation of the CCQ, known from the tail register, also completes in the new CCQ. */
static int take_first_cqe(struct irdma_cqp *cqp)
{
	unsigned long deadline = jiffies + msecs_to_jiffies(CQP_CREATE_TIMEOUT_MS);
	struct cqp_result res;
	bool found;

	for (;;) {
		spin_lock_irq(&cqp->lock);
		found = next_cqe(cqp, &res);
		spin_unlock_irq(&cqp->lock);
		if (found)
			return 0;
		if (irdma_is_dead(cqp->dev))
			return -ENODEV;
		if (time_after(jiffies, deadline)) {
			irdma_err(cqp->dev, "no completion in the new control completion queue\n");
			return -ETIMEDOUT;
		}
		usleep_range(CQP_POLL_US, 2 * CQP_POLL_US);
	}
}

static void ccq_destroy(struct irdma_device *dev)
{
	struct irdma_cq_cmd cmd = ccq_cmd(dev->cqp);
	struct irdma_cqp_req req;

	dev->cqp->mode = IRDMA_CQP_POLL_TAIL;
	irdma_cqp_prep_destroy_cq(dev, &req, &cmd);
	irdma_cqp_exec(dev, &req);
}

static void ccq_free(struct irdma_device *dev)
{
	struct irdma_cqp *cqp = dev->cqp;

	dma_free_coherent(dma_dev(dev), ccq_bytes(), cqp->ccq, cqp->ccq_addr);
	cqp->ccq = NULL;
}

/**
 * irdma_ccq_start() - create the control queue's completion queue; it is polled
 * @dev: the device
 *
 * Context: process, sleeps.
 * Return: 0, -ENOMEM, or an error of irdma_cqp_exec().
 */
int irdma_ccq_start(struct irdma_device *dev)
{
	struct irdma_cqp *cqp = dev->cqp;
	struct irdma_cqp_req req;
	struct irdma_cq_cmd cmd;
	int err;

	cqp->ccq = dma_alloc_coherent(dma_dev(dev), ccq_bytes(), &cqp->ccq_addr, GFP_KERNEL);
	if (!cqp->ccq)
		return -ENOMEM;
	cqp->ccq_head = 0;
	cqp->cqe_valid = CQE_QW3_VALID;
	memset(shadow(cqp), 0, 64);
	cmd = ccq_cmd(cqp);
	irdma_cqp_prep_create_cq(dev, &req, &cmd);
	err = irdma_cqp_exec(dev, &req);
	if (err)
		goto free_ccq;
	err = take_first_cqe(cqp);
	if (err)
		goto destroy_ccq;
	cqp->mode = IRDMA_CQP_POLL_CCQ;
	return 0;

destroy_ccq:
	ccq_destroy(dev);
free_ccq:
	ccq_free(dev);
	return err;
}

/**
 * irdma_ccq_stop() - destroy the control queue's completion queue
 * @dev: the device
 *
 * Context: process, sleeps.  Later commands are found done in the tail register.
 */
void irdma_ccq_stop(struct irdma_device *dev)
{
	ccq_destroy(dev);
	ccq_free(dev);
}

/**
 * irdma_ccq_interrupts_start() - from here on completions are found by interrupt
 * @dev: the device; CEQ 0 runs
 *
 * Context: process, sleeps.
 * Return: 0 or -ENOMEM.
 */
int irdma_ccq_interrupts_start(struct irdma_device *dev)
{
	struct irdma_cqp *cqp = dev->cqp;
	int err;

	cqp->ccq_handler.cqn = IRDMA_CQN_CCQ;
	cqp->ccq_handler.ops = &ccq_handler_ops;
	err = irdma_cq_handler_add(dev, &cqp->ccq_handler);
	if (err)
		return err;
	spin_lock_irq(&cqp->lock);
	cqp->mode = IRDMA_CQP_INTERRUPT;
	drain(cqp);
	spin_unlock_irq(&cqp->lock);
	return 0;
}

/**
 * irdma_ccq_interrupts_stop() - from here on completions are polled for
 * @dev: the device; no command is in flight and none is submitted any more
 *
 * Context: process, sleeps.
 */
void irdma_ccq_interrupts_stop(struct irdma_device *dev)
{
	struct irdma_cqp *cqp = dev->cqp;

	irdma_cqp_flush_submitted(dev);
	spin_lock_irq(&cqp->lock);
	cqp->mode = IRDMA_CQP_POLL_CCQ;
	spin_unlock_irq(&cqp->lock);
	cancel_delayed_work_sync(&cqp->watchdog);
	irdma_cq_handler_del(dev, &cqp->ccq_handler, 0);
}
