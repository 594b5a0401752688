// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Completion queues of user space and of the kernel (spec 02, section 6, 7.4).
 *
 * Verbs that sleep are serialised by the core for one CQ.  Polling and arming run in any
 * context under the CQ's lock, and only for kernel CQs: user space reads its ring and rings
 * its doorbell by itself.  Events arrive through struct irdma_cq_handler, from the CEQ in
 * interrupt context and from the AEQ in process context.
 */
#include <linux/dma-mapping.h>
#include <linux/slab.h>
#include <rdma/uverbs_ioctl.h>

#include "abi.h"
#include "verbs.h"

#define CQ_SLOT_SIZE		32	/* bytes */
#define CQ_SHADOW_SIZE		64	/* bytes */
#define CQ_MIN_USER_SLOTS	4
#define CQ_MAX_THRESHOLD	0x3ffff	/* slots */
#define CQ_REQ_MIN		8	/* bytes; legacy libraries have no shadow address */

/* What event of a kernel CQ the hardware owes us; each includes the one before. */
enum cq_arm {
	CQ_NOT_ARMED,
	CQ_ARMED_SOLICITED,
	CQ_ARMED_NEXT,
};

static void cq_event(struct irdma_cq_handler *handler)
{
	struct irdma_cq *cq = container_of(handler, struct irdma_cq, handler);
	unsigned long flags;
	bool wanted;

	/* User space arms behind our back. */
	wanted = !cq->kernel;
	spin_lock_irqsave(&cq->lock, flags);
	wanted |= cq->armed;
	cq->armed = false;
	cq->hw_armed = CQ_NOT_ARMED;
	spin_unlock_irqrestore(&cq->lock, flags);
	if (wanted && cq->ibcq.comp_handler)
		cq->ibcq.comp_handler(&cq->ibcq, cq->ibcq.cq_context);
}

static void cq_error(struct irdma_cq_handler *handler, u16 ae_code)
{
	struct irdma_cq *cq = container_of(handler, struct irdma_cq, handler);
	struct ib_event event = {
		.device = cq->ibcq.device,
		.element.cq = &cq->ibcq,
		.event = IB_EVENT_CQ_ERR,
	};

	ibdev_err(cq->ibcq.device, "CQ %u of %u slots failed, event 0x%04x\n",
		  handler->cqn, cq->queue->cmd.size, ae_code);
	if (cq->ibcq.event_handler)
		cq->ibcq.event_handler(&event, cq->ibcq.cq_context);
}

static const struct irdma_cq_handler_ops cq_handler_ops = {
	.comp = cq_event,
	.error = cq_error,
};

/**
 * irdma_cq_kick - tell the consumer of a kernel CQ about completions made in software
 * @cq: CQ
 *
 * Does nothing unless the CQ is armed, as the hardware would.
 * Context: any, no locks held.
 */
void irdma_cq_kick(struct irdma_cq *cq)
{
	unsigned long flags;
	bool wanted;

	spin_lock_irqsave(&cq->lock, flags);
	wanted = cq->armed;
	cq->armed = false;
	spin_unlock_irqrestore(&cq->lock, flags);
	if (wanted && cq->ibcq.comp_handler)
		cq->ibcq.comp_handler(&cq->ibcq, cq->ibcq.cq_context);
}

/*
 * Arm the hardware unless it is armed already, for at least what is wanted.  The arm sequence
 * has two bits only: a hardware that reads it after four more arms sees no change, so arming
 * must not be repeated before the event has come.
 */
static void arm_hw(struct irdma_device *dev, struct irdma_cq *cq, bool solicited_only)
{
	enum cq_arm want = solicited_only ? CQ_ARMED_SOLICITED : CQ_ARMED_NEXT;

	if (cq->hw_armed >= want)
		return;
	cq->hw_armed = want;
	irdma_cq_shadow_arm(to_irdma_kcq(cq)->shadow, solicited_only);
	irdma_arm_cq(dev, cq->handler.cqn);
}

static void cq_kick_work(struct work_struct *work)
{
	irdma_cq_kick(container_of(work, struct irdma_kcq, kick_work)->cq);
}

static int alloc_ring(struct irdma_device *dev, struct irdma_kcq *kcq, u32 slots)
{
	size_t ring_size = ALIGN((size_t)slots * CQ_SLOT_SIZE, CQ_SHADOW_SIZE);

	kcq->mem_size = ring_size + CQ_SHADOW_SIZE;
	kcq->mem = dma_alloc_coherent(dma_dev(dev), kcq->mem_size, &kcq->mem_dma, GFP_KERNEL);
	if (!kcq->mem)
		return -ENOMEM;
	kcq->shadow = kcq->mem + ring_size;
	kcq->ring.slots = kcq->mem;
	kcq->ring.size = slots;
	kcq->ring.head = 0;
	kcq->ring.polarity = true;
	kcq->queue.cmd.ring = kcq->mem_dma;
	kcq->queue.cmd.shadow = kcq->mem_dma + ring_size;
	return 0;
}

/* Slots of a kernel CQ: as the reference driver sizes its own (spec 02, 6.3). */
static u32 kernel_slots(struct irdma_device *dev, u32 entries)
{
	u32 slots = ALIGN((entries + 2) * dev->gen->cqe_slots, 2);

	if (slots * CQ_SLOT_SIZE == SZ_4K)
		slots += 2;
	return slots;
}

static int init_kernel_cq(struct irdma_device *dev, struct irdma_cq *cq, unsigned int entries)
{
	struct irdma_kcq *kcq = to_irdma_kcq(cq);

	if (!entries || entries > dev->gen->max_cqe - 1)
		return -EINVAL;
	kcq->cq = cq;
	INIT_LIST_HEAD(&kcq->flushing);
	INIT_WORK(&kcq->kick_work, cq_kick_work);
	kcq->queue.cmd.size = kernel_slots(dev, entries);
	cq->ibcq.cqe = entries;
	return alloc_ring(dev, kcq, kcq->queue.cmd.size);
}

/* Slots that user space asks for, one completion may take several of them; 0: too many. */
static u32 user_slots(struct irdma_device *dev, unsigned int slots)
{
	if (slots > dev->gen->max_cqe * dev->gen->cqe_slots)
		return 0;
	return max_t(u32, slots, CQ_MIN_USER_SLOTS);
}

static struct irdma_ureg *claim_ring(struct irdma_ucontext *uctx, u64 va, u32 slots,
				     struct irdma_queue_mem *mem)
{
	struct irdma_ureg *ureg = irdma_ureg_claim(uctx, IRDMA_UREG_CQ, va, mem);

	if (IS_ERR(ureg))
		return ureg;
	if ((u64)mem->pages * SZ_4K < (u64)slots * CQ_SLOT_SIZE) {
		irdma_ureg_release(ureg);
		return ERR_PTR(-EINVAL);
	}
	return ureg;
}

static void set_user_ring(struct irdma_cq_cmd *cmd, const struct irdma_queue_mem *mem)
{
	cmd->pbl_level = mem->virt ? IRDMA_PBL_ONE_LEVEL : IRDMA_PBL_NONE;
	cmd->first_pble = mem->virt ? mem->addr : 0;
	cmd->ring = mem->virt ? 0 : mem->addr;
}

static void release_user_memory(struct irdma_cq_queue *queue)
{
	if (queue->shadow_ureg)
		irdma_ureg_release(queue->shadow_ureg);
	if (queue->ring_ureg)
		irdma_ureg_release(queue->ring_ureg);
}

static int claim_user_memory(struct irdma_device *dev, struct irdma_cq_queue *queue,
			     struct irdma_ucontext *uctx,
			     const struct irdma_abi_create_cq_req *req)
{
	bool separate = dev->gen->feature_flags & IRDMA_FEATURE_CQ_RESIZE && !uctx->legacy;
	struct irdma_ureg *ring, *shadow = NULL;
	struct irdma_queue_mem ring_mem, shadow_mem;

	ring = claim_ring(uctx, req->ring_va, queue->cmd.size, &ring_mem);
	if (IS_ERR(ring))
		return PTR_ERR(ring) == -ENODATA ? -EPROTO : PTR_ERR(ring);
	if (separate) {
		shadow = irdma_ureg_claim(uctx, IRDMA_UREG_CQ, req->shadow_va, &shadow_mem);
		if (IS_ERR(shadow)) {
			irdma_ureg_release(ring);
			return -EPROTO;
		}
	}
	queue->ring_ureg = ring;
	queue->shadow_ureg = shadow;
	set_user_ring(&queue->cmd, &ring_mem);
	queue->cmd.shadow = shadow ? shadow_mem.first_addr : ring_mem.shadow;
	return 0;
}

static int init_user_cq(struct irdma_device *dev, struct irdma_cq *cq, unsigned int slots,
			struct ib_udata *udata)
{
	struct irdma_ucontext *uctx = rdma_udata_to_drv_context(udata, struct irdma_ucontext,
								ibucontext);
	struct irdma_abi_create_cq_resp resp = {};
	struct irdma_cq_queue *queue = cq->queue;
	struct irdma_abi_create_cq_req req;
	int ret;

	ret = irdma_udata_in(udata, &req, sizeof(req), CQ_REQ_MIN);
	if (ret)
		return ret;
	queue->cmd.size = user_slots(dev, slots);
	if (!slots || !queue->cmd.size || udata->outlen < sizeof(resp))
		return -EINVAL;
	ret = claim_user_memory(dev, queue, uctx, &req);
	if (ret)
		return ret;
	cq->ibcq.cqe = queue->cmd.size;
	resp.cqn = queue->cmd.cqn;
	resp.slots = queue->cmd.size;
	ret = irdma_udata_out(udata, &resp, sizeof(resp));
	if (ret)
		release_user_memory(queue);
	return ret;
}

static void free_memory(struct irdma_device *dev, struct irdma_cq *cq)
{
	struct irdma_kcq *kcq = to_irdma_kcq(cq);

	if (cq->kernel)
		dma_free_coherent(dma_dev(dev), kcq->mem_size, kcq->mem, kcq->mem_dma);
	else
		release_user_memory(cq->queue);
}

static int exec_create(struct irdma_device *dev, const struct irdma_cq_cmd *cmd)
{
	struct irdma_cqp_req req;

	irdma_cqp_prep_create_cq(dev, &req, cmd);
	return irdma_cqp_exec(dev, &req);
}

static int exec_resize(struct irdma_device *dev, const struct irdma_cq_cmd *cmd)
{
	struct irdma_cqp_req req;

	irdma_cqp_prep_resize_cq(dev, &req, cmd);
	return irdma_cqp_exec(dev, &req);
}

/* A dead device gets no command before a reset has made it forget, so its objects can be freed. */
static int exec_destroy(struct irdma_device *dev, const struct irdma_cq_cmd *cmd)
{
	struct irdma_cqp_req req;
	int ret;

	irdma_cqp_prep_destroy_cq(dev, &req, cmd);
	ret = irdma_cqp_exec(dev, &req);
	return irdma_is_dead(dev) ? 0 : ret;
}

static u32 threshold(u32 slots)
{
	return min_t(u32, slots / 2, CQ_MAX_THRESHOLD);
}

/**
 * irdma_create_cq - create a completion queue
 * @IRDMA_CREATE_CQ_ARGS: arguments of the verb
 *
 * User space passes the number of ring slots in place
 * of completions and its memory in the tail of the request.
 * Context: process.
 * Return: 0; -EOPNOTSUPP (flags, unknown tail), -EINVAL (size, vector, tail too short, memory
 * too small, no CQ number free), -EPROTO (memory not registered), -ENOMEM, or a command's error.
 */
int irdma_create_cq(IRDMA_CREATE_CQ_ARGS)
{
	struct irdma_device *dev = to_irdma_dev(ibcq->device);
	struct ib_udata *user = IRDMA_CREATE_CQ_UDATA;
	struct irdma_cq *cq = to_irdma_cq(ibcq);
	struct irdma_cq_cmd *cmd;
	int id, ret = -ENOMEM;

	if (attr->flags)
		return -EOPNOTSUPP;
	if (attr->comp_vector >= dev->num_comp_vectors)
		return -EINVAL;
	id = irdma_id_alloc(&dev->cq_ids, IRDMA_RESERVED_IDS, dev->limits.cqs);
	if (id < 0)
		return id;

	cq->queue = kzalloc(user ? sizeof(*cq->queue) : sizeof(struct irdma_kcq), GFP_KERNEL);
	if (!cq->queue)
		goto free_id;
	cq->kernel = !user;
	spin_lock_init(&cq->lock);
	cmd = &cq->queue->cmd;
	cmd->cqn = id;
	cmd->ceqn = attr->comp_vector;
	cmd->check_overflow = true;
	cmd->ceqe_mask = true;
	if (user)
		ret = init_user_cq(dev, cq, attr->cqe, user);
	else
		ret = init_kernel_cq(dev, cq, attr->cqe);
	if (ret)
		goto free_queue;

	cmd->threshold = threshold(cmd->size);
	cq->handler.cqn = id;
	cq->handler.ops = &cq_handler_ops;
	ret = irdma_cq_handler_add(dev, &cq->handler);
	if (ret)
		goto free_memory;
	ret = exec_create(dev, cmd);
	if (ret)
		goto del_handler;
	return 0;

del_handler:
	irdma_cq_handler_del(dev, &cq->handler, cmd->ceqn);
free_memory:
	free_memory(dev, cq);
free_queue:
	kfree(cq->queue);
free_id:
	ida_free(&dev->cq_ids, id);
	return ret;
}

/**
 * irdma_resize_cq - give a user CQ another ring
 * @IRDMA_RESIZE_CQ_ARGS: arguments of the verb
 *
 * @entries are ring slots.  Completions in the old ring
 * stay there, user space reads it to the end before it goes on in the new one.  Kernel CQs
 * are not resized: the kernel has no consumer that does.
 * Context: process.
 * Return: 0; -EOPNOTSUPP (the hardware cannot, kernel CQ, unknown tail), -EINVAL (size, tail
 * too short, memory too small), -ENOMEM (memory not registered), or a command's error.
 */
int irdma_resize_cq(IRDMA_RESIZE_CQ_ARGS)
{
	struct irdma_device *dev = to_irdma_dev(ibcq->device);
	struct irdma_cq_queue *queue = to_irdma_cq(ibcq)->queue;
	struct irdma_cq_cmd cmd = queue->cmd;
	struct irdma_abi_resize_cq_req req;
	struct irdma_queue_mem mem;
	struct irdma_ucontext *uctx;
	struct irdma_ureg *ureg;
	int ret;

	if (!(dev->gen->feature_flags & IRDMA_FEATURE_CQ_RESIZE) || !udata || !queue->shadow_ureg)
		return -EOPNOTSUPP;
	ret = irdma_udata_in(udata, &req, sizeof(req), sizeof(req));
	if (ret)
		return ret;
	cmd.size = user_slots(dev, entries);
	if (!entries || !cmd.size)
		return -EINVAL;
	uctx = rdma_udata_to_drv_context(udata, struct irdma_ucontext, ibucontext);
	ureg = claim_ring(uctx, req.ring_va, cmd.size, &mem);
	if (IS_ERR(ureg))
		return PTR_ERR(ureg) == -ENODATA ? -ENOMEM : PTR_ERR(ureg);
	set_user_ring(&cmd, &mem);
	cmd.threshold = threshold(cmd.size);
	ret = exec_resize(dev, &cmd);
	if (ret) {
		irdma_ureg_release(ureg);
		return ret;
	}
	irdma_ureg_release(queue->ring_ureg);
	queue->ring_ureg = ureg;
	queue->cmd = cmd;
	ibcq->cqe = cmd.size;
	return 0;
}

/**
 * irdma_destroy_cq - destroy a completion queue
 * @ibcq: CQ, used by no QP
 * @udata: not used
 *
 * Context: process.
 * Return: 0, or a command's error, the CQ stays then.  No other try would help a CQ of which the
 * adapter did not give up a QP: it is lost with that.
 */
int irdma_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	struct irdma_device *dev = to_irdma_dev(ibcq->device);
	struct irdma_cq *cq = to_irdma_cq(ibcq);
	int ret;

	ret = exec_destroy(dev, &cq->queue->cmd);
	if (ret && !cq->lost)
		return ret;
	irdma_cq_handler_del(dev, &cq->handler, cq->queue->cmd.ceqn);
	if (cq->kernel)
		cancel_work_sync(&to_irdma_kcq(cq)->kick_work);
	free_memory(dev, cq);
	kfree(cq->queue);
	if (ret)
		irdma_id_keep(dev, "CQ", cq->handler.cqn);
	else
		ida_free(&dev->cq_ids, cq->handler.cqn);
	return 0;
}

/**
 * irdma_poll_cq - take completions from a kernel CQ
 * @ibcq: CQ
 * @num: room in @wc
 * @wc: receives the completions
 *
 * What the hardware completed comes first; only when the ring is empty are the work requests
 * of flushed queues completed, so that the order within a queue is kept.
 * Context: any.
 * Return: completions, or -EOPNOTSUPP for a user CQ.
 */
int irdma_poll_cq(struct ib_cq *ibcq, int num, struct ib_wc *wc)
{
	struct irdma_device *dev = to_irdma_dev(ibcq->device);
	struct irdma_cq *cq = to_irdma_cq(ibcq);
	bool empty = false, advanced = false;
	struct irdma_kcq *kcq = to_irdma_kcq(cq);
	struct irdma_cqe cqe;
	unsigned long flags;
	int done = 0;

	if (!cq->kernel)
		return -EOPNOTSUPP;
	spin_lock_irqsave(&cq->lock, flags);
	while (done < num) {
		if (!irdma_cq_ring_next(&kcq->ring, &cqe)) {
			empty = true;
			break;
		}
		advanced = true;
		if (irdma_qp_complete(dev, &cqe, &wc[done]))
			done++;
	}
	if (advanced)
		irdma_cq_shadow_set_head(kcq->shadow, kcq->ring.head);
	if (empty)
		done += irdma_qp_complete_flushed(cq, num - done, &wc[done]);
	spin_unlock_irqrestore(&cq->lock, flags);
	return done;
}

/**
 * irdma_req_notify_cq - ask for an event on the next completion of a kernel CQ
 * @ibcq: CQ
 * @flags: which completions; IB_CQ_REPORT_MISSED_EVENTS to be told of those already there
 *
 * Context: any.
 * Return: 0, 1 if completions are there and the caller wants to know,
 * -EOPNOTSUPP for a user CQ.
 */
int irdma_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags)
{
	struct irdma_device *dev = to_irdma_dev(ibcq->device);
	struct irdma_cq *cq = to_irdma_cq(ibcq);
	struct irdma_kcq *kcq = to_irdma_kcq(cq);
	bool ready, flushed;
	unsigned long irq_flags;

	if (!cq->kernel)
		return -EOPNOTSUPP;
	spin_lock_irqsave(&cq->lock, irq_flags);
	cq->armed = true;
	arm_hw(dev, cq, (flags & IB_CQ_SOLICITED_MASK) == IB_CQ_SOLICITED);
	ready = irdma_cq_ring_ready(&kcq->ring);
	flushed = irdma_qp_flushed_left(cq);
	spin_unlock_irqrestore(&cq->lock, irq_flags);

	if (flags & IB_CQ_REPORT_MISSED_EVENTS)
		return ready || flushed;
	/* The hardware knows nothing of software completions. */
	if (flushed)
		queue_work(dev->wq, &kcq->kick_work);
	return 0;
}
