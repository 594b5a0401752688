// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory regions and windows: user memory, dma-bufs, the all-memory region of kernel users,
 * lists for fast registers, and the queue memory that user space registers before it
 * creates a QP or a CQ (spec 02, sections 2, 3 and 7.3).
 *
 * Verbs calls sleep; the core serialises calls on one object.  The lists of free queue
 * memory have the lock of their context.  A region keeps the command that registered it,
 * so that it can be deregistered and registered anew.
 */
#include <linux/log2.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <rdma/ib_umem.h>
#include <rdma/iter.h>
#include <rdma/uverbs_ioctl.h>

#include "abi.h"
#include "verbs.h"
#include "wq.h"

#define IRDMA_MIN_STAG_BITS	14		/* least width of an STag index (3.1) */
#define IRDMA_MAX_FR_LEN	BIT_ULL(41)	/* length field of a fast register (5.4) */

/**
 * struct irdma_mr - a memory region
 * @ibmr: the verbs object; must be first
 * @umem: pinned memory of user space or of a dma-buf
 * @is_queue: queue memory, which the hardware does not know as a region: @ureg is valid, and
 *	nothing of what follows
 * @ureg: queue memory
 * @pbl: list of its pages
 * @cmd: command that describes the region to the hardware
 * @in_hw: the hardware knows the region
 * @access: enum ib_access_flags
 * @max_pages: size of the list of a fast register
 * @num_pages: pages that the last ib_map_mr_sg() has put there
 * @page0: the first of them
 */
struct irdma_mr {
	struct ib_mr ibmr;
	struct ib_umem *umem;
	bool is_queue;
	union {
		struct irdma_ureg ureg;
		struct {
			struct irdma_pbl pbl;
			struct irdma_stag_cmd cmd;
			bool in_hw;
			int access;
			u32 max_pages;
			u32 num_pages;
			dma_addr_t page0;
		};
	};
};

/* A cache of their own: each QP and CQ of user space has one or two, for which kmalloc() has no size. */
static struct kmem_cache *mr_cache;

static struct irdma_mr *to_irdma_mr(struct ib_mr *ibmr)
{
	return container_of(ibmr, struct irdma_mr, ibmr);
}

/**
 * irdma_mr_init - once a module, before the first region
 *
 * Context: process.
 * Return: 0 or -ENOMEM.
 */
int irdma_mr_init(void)
{
	/* uverbs copies keys to the user from where they lie */
	mr_cache = KMEM_CACHE_USERCOPY(irdma_mr, 0, ibmr);
	return mr_cache ? 0 : -ENOMEM;
}

/**
 * irdma_mr_exit - undo irdma_mr_init()
 *
 * Context: process.
 */
void irdma_mr_exit(void)
{
	kmem_cache_destroy(mr_cache);
}

static unsigned int stag_index_bits(struct irdma_device *dev)
{
	return max_t(unsigned int, order_base_2(dev->limits.mrs), IRDMA_MIN_STAG_BITS);
}

/**
 * irdma_stag_alloc - reserve an STag index and choose its keys
 * @dev: device
 * @stag: receives index << 8 | consumer key, with random driver key bits above the index
 *
 * The random bits keep a peer from guessing STags and from using one that has been freed
 * and given to another region (spec 02, 3.1).
 * Context: process.
 * Return: 0, -EINVAL if all are in use, -ENOMEM.
 */
int irdma_stag_alloc(struct irdma_device *dev, u32 *stag)
{
	unsigned int key_shift = stag_index_bits(dev) + 8;
	u32 keys = get_random_u32();
	int idx;

	idx = irdma_id_alloc(&dev->mr_ids, 1, dev->limits.mrs);
	if (idx < 0)
		return idx;
	keys &= ~GENMASK(key_shift - 1, 8);
	*stag = keys | (u32)idx << 8;
	return 0;
}

/**
 * irdma_stag_free - give the index of an STag back
 * @dev: device
 * @stag: from irdma_stag_alloc(); the hardware must not know it any more
 */
void irdma_stag_free(struct irdma_device *dev, u32 stag)
{
	ida_free(&dev->mr_ids, (stag >> 8) & GENMASK(stag_index_bits(dev) - 1, 0));
}

/**
 * irdma_stag_rights - access rights as the hardware writes them (spec 02, 3.2)
 * @access: enum ib_access_flags
 *
 * Return: IRDMA_STAG_*
 */
u8 irdma_stag_rights(int access)
{
	u8 rights = IRDMA_STAG_LOCAL_READ;

	if (access & IB_ACCESS_LOCAL_WRITE)
		rights |= IRDMA_STAG_LOCAL_WRITE;
	if (access & IB_ACCESS_REMOTE_WRITE)
		rights |= IRDMA_STAG_REMOTE_WRITE | IRDMA_STAG_LOCAL_WRITE;
	if (access & IB_ACCESS_REMOTE_READ)
		rights |= IRDMA_STAG_REMOTE_READ;
	if (access & IB_ACCESS_MW_BIND)
		rights |= IRDMA_STAG_BIND;
	return rights;
}

static void set_access(struct irdma_stag_cmd *cmd, int access)
{
	cmd->rights = irdma_stag_rights(access);
	cmd->remote = cmd->rights & (IRDMA_STAG_REMOTE_READ | IRDMA_STAG_REMOTE_WRITE);
	cmd->va_based = !(access & IB_ZERO_BASED);
}

/* Zero would switch the bounds check off; an address that wraps cannot be used. */
static bool range_ok(struct irdma_device *dev, u64 len, u64 virt)
{
	return len && len <= dev->gen->max_mr_size && virt + (len - 1) >= virt;
}

static int page_size_code(struct irdma_device *dev, u64 page_size)
{
	if (!(page_size & dev->gen->page_size_cap))
		return -EINVAL;
	switch (page_size) {
	case SZ_4K:
		return 0;
	case SZ_2M:
		return 1;
	case SZ_1G:
		return 2;
	default:
		return -EINVAL;
	}
}

/**
 * irdma_exec_reg_mr - have the adapter know a region
 * @dev: device
 * @cmd: the region
 *
 * Context: process.
 * Return: 0 or the failure of the command.
 */
int irdma_exec_reg_mr(struct irdma_device *dev, const struct irdma_stag_cmd *cmd)
{
	struct irdma_cqp_req req;

	irdma_cqp_prep_reg_mr(dev, &req, cmd);
	return irdma_cqp_exec(dev, &req);
}

static int exec_alloc_stag(struct irdma_device *dev, const struct irdma_stag_cmd *cmd)
{
	struct irdma_cqp_req req;

	irdma_cqp_prep_alloc_stag(dev, &req, cmd);
	return irdma_cqp_exec(dev, &req);
}

/**
 * irdma_exec_dealloc_stag - have the adapter forget a region or window
 * @dev: device
 * @cmd: STag and PD
 *
 * A dead device gets no command before a reset has made it forget, so its objects can be freed.
 * Context: process.
 * Return: 0 or the failure of the command: the adapter still knows the STag.
 */
int irdma_exec_dealloc_stag(struct irdma_device *dev, const struct irdma_stag_cmd *cmd)
{
	struct irdma_cqp_req req;
	int ret;

	irdma_cqp_prep_dealloc_stag(dev, &req, cmd);
	ret = irdma_cqp_exec(dev, &req);
	return irdma_is_dead(dev) ? 0 : ret;
}

/* Are all blocks of @umem physically consecutive? @first receives the address of the first. */
static bool umem_contiguous(struct ib_umem *umem, unsigned long page_size, dma_addr_t *first)
{
	struct ib_block_iter iter;
	bool start = true;
	dma_addr_t next = 0;

	rdma_umem_for_each_dma_block(umem, &iter, page_size) {
		dma_addr_t addr = rdma_block_iter_dma_address(&iter);

		if (start)
			*first = addr;
		else if (addr != next)
			return false;
		next = addr + page_size;
		start = false;
	}
	return true;
}

static void fill_pbl(struct irdma_pbl *pbl, struct ib_umem *umem, unsigned long page_size)
{
	struct ib_block_iter iter;
	u32 i = 0;

	rdma_umem_for_each_dma_block(umem, &iter, page_size)
		irdma_pbl_set(pbl, i++, rdma_block_iter_dma_address(&iter));
}

/*
 * Describe @umem in @cmd: the largest pages that fit, as one run of memory or as a list,
 * which @pbl then holds.
 */
static int map_umem(struct irdma_device *dev, struct ib_umem *umem, u64 len, u64 virt,
		    struct irdma_stag_cmd *cmd, struct irdma_pbl *pbl)
{
	unsigned long page_size;
	size_t pages;
	int ret;

	page_size = ib_umem_find_best_pgsz(umem, dev->gen->page_size_cap, virt);
	ret = page_size_code(dev, page_size);
	if (ret < 0)
		return ret;
	cmd->page_size_code = ret;
	cmd->len = len;
	cmd->va = cmd->va_based ? virt : virt & (page_size - 1);
	cmd->addr = 0;
	cmd->pbl_level = IRDMA_PBL_NONE;
	cmd->first_pble = 0;
	if (umem_contiguous(umem, page_size, &cmd->addr))
		return 0;

	cmd->addr = 0;
	pages = ib_umem_num_dma_blocks(umem, page_size);
	if (pages > U32_MAX)
		return -ENOMEM;
	ret = irdma_pbl_alloc(dev, pages, false, pbl);
	if (ret)
		return ret;
	fill_pbl(pbl, umem, page_size);
	cmd->pbl_level = pbl->level;
	cmd->first_pble = pbl->first;
	return 0;
}

/* Take over @umem as the memory of @mr and register it. On failure @umem stays the caller's. */
static int register_umem(struct irdma_device *dev, struct irdma_mr *mr, struct ib_umem *umem,
			 struct ib_pd *ibpd, u64 len, u64 virt, int access)
{
	int ret;

	mr->access = access;
	set_access(&mr->cmd, access);
	mr->cmd.pd = to_irdma_pd(ibpd)->id;
	ret = irdma_stag_alloc(dev, &mr->cmd.stag);
	if (ret)
		return ret;
	ret = map_umem(dev, umem, len, virt, &mr->cmd, &mr->pbl);
	if (ret)
		goto free_stag;
	ret = irdma_exec_reg_mr(dev, &mr->cmd);
	if (ret)
		goto free_pbl;
	mr->umem = umem;
	mr->in_hw = true;
	mr->ibmr.lkey = mr->cmd.stag;
	mr->ibmr.rkey = mr->cmd.stag;
	mr->ibmr.iova = virt;
	mr->ibmr.length = len;
	return 0;

free_pbl:
	irdma_pbl_free(dev, &mr->pbl);
free_stag:
	irdma_stag_free(dev, mr->cmd.stag);
	return ret;
}

/*
 * Queue memory.
 */

static bool queue_pages_ok(struct irdma_device *dev, const struct irdma_ureg *ureg, u64 pages)
{
	if (ureg->type == IRDMA_UREG_QP)
		return ureg->sq_pages && ureg->rq_pages &&
		       (u64)ureg->sq_pages + ureg->rq_pages + 1 <= pages;
	if (dev->gen->feature_flags & IRDMA_FEATURE_CQ_RESIZE)
		return ureg->cq_pages && ureg->cq_pages <= pages;
	return ureg->cq_pages && (u64)ureg->cq_pages + 1 <= pages;
}

/*
 * Find the addresses of the one or two queues in @umem and of the page behind them. False: a
 * queue is not physically consecutive.
 */
static bool locate_queues(struct irdma_ureg *ureg, struct ib_umem *umem, u32 second, u32 behind)
{
	struct ib_block_iter iter;
	bool contiguous = true;
	dma_addr_t next = 0;
	u32 i = 0;

	rdma_umem_for_each_dma_block(umem, &iter, SZ_4K) {
		dma_addr_t addr = rdma_block_iter_dma_address(&iter);

		if (i == 0) {
			ureg->first_addr = addr;
			ureg->sq_addr = addr;
		}
		if (i == second)
			ureg->rq_addr = addr;
		if (i == behind)
			ureg->shadow = addr;
		if (i && i != second && i < behind && addr != next)
			contiguous = false;
		next = addr + SZ_4K;
		if (i++ == behind)
			break;
	}
	return contiguous;
}

static int list_queues(struct irdma_device *dev, struct irdma_ureg *ureg, struct ib_umem *umem,
		       u32 second, u32 count)
{
	struct ib_block_iter iter;
	u32 i = 0;
	int ret;

	ret = irdma_pbl_alloc(dev, count, true, &ureg->pbl);
	if (ret)
		return ret;
	rdma_umem_for_each_dma_block(umem, &iter, SZ_4K) {
		irdma_pbl_set(&ureg->pbl, i, rdma_block_iter_dma_address(&iter));
		if (++i == count)
			break;
	}
	ureg->virt = true;
	ureg->sq_addr = ureg->pbl.first;
	ureg->rq_addr = ureg->pbl.first + second;
	return 0;
}

static int map_queues(struct irdma_device *dev, struct irdma_ureg *ureg, struct ib_umem *umem)
{
	u32 second, count;
	int ret;

	if (ureg->type == IRDMA_UREG_QP) {
		second = ureg->sq_pages;
		count = ureg->sq_pages + ureg->rq_pages;
	} else {
		second = ureg->cq_pages;
		count = ureg->cq_pages;
	}
	if (!locate_queues(ureg, umem, second, count)) {
		ret = list_queues(dev, ureg, umem, second, count);
		if (ret)
			return ret;
	}
	if (ureg->type == IRDMA_UREG_CQ)
		ureg->cq_addr = ureg->sq_addr;
	ureg->first_page = sg_page(umem->sgt_append.sgt.sgl);
	return 0;
}

static int register_queue(struct irdma_device *dev, struct irdma_mr *mr, struct ib_umem *umem,
			  u64 start, const struct irdma_abi_reg_req *req, struct ib_udata *udata)
{
	struct irdma_ucontext *uctx = rdma_udata_to_drv_context(udata, struct irdma_ucontext,
								ibucontext);
	struct irdma_ureg *ureg = &mr->ureg;
	bool qp = req->type == IRDMA_ABI_REG_QP;
	int ret;

	ureg->type = qp ? IRDMA_UREG_QP : IRDMA_UREG_CQ;
	if (qp) {
		ureg->sq_pages = req->sq_pages;
		ureg->rq_pages = req->rq_pages;
	} else {
		ureg->cq_pages = req->cq_pages;
	}
	if (!PAGE_ALIGNED(start) ||
	    !queue_pages_ok(dev, ureg, ib_umem_num_dma_blocks(umem, SZ_4K)))
		return -EINVAL;
	ret = map_queues(dev, ureg, umem);
	if (ret)
		return ret;
	mr->umem = umem;
	mr->is_queue = true;
	ureg->va = start;
	ureg->uctx = uctx;
	spin_lock(&uctx->ureg_lock);
	list_add_tail(&ureg->link, qp ? &uctx->qp_uregs : &uctx->cq_uregs);
	spin_unlock(&uctx->ureg_lock);
	return 0;
}

static int deregister_queue(struct irdma_device *dev, struct irdma_mr *mr)
{
	struct irdma_ureg *ureg = &mr->ureg;
	struct irdma_ucontext *uctx = ureg->uctx;

	spin_lock(&uctx->ureg_lock);
	if (ureg->claimed) {
		spin_unlock(&uctx->ureg_lock);
		return -EBUSY;
	}
	list_del(&ureg->link);
	spin_unlock(&uctx->ureg_lock);
	irdma_pbl_free(dev, &ureg->pbl);
	return 0;
}

/**
 * irdma_ureg_claim - take queue memory for a queue
 * @uctx: context that registered it
 * @type: what it was registered for
 * @va: its first address
 *
 * The registration cannot be taken again nor deregistered until irdma_ureg_release().
 * Context: process.
 * Return: the registration, or ERR_PTR(-ENODATA) if there is no free one
 * (spec 02, 7.3; a CQ's caller answers -EPROTO then).
 */
struct irdma_ureg *irdma_ureg_claim(struct irdma_ucontext *uctx, enum irdma_ureg_type type, u64 va)
{
	struct list_head *uregs = type == IRDMA_UREG_QP ? &uctx->qp_uregs : &uctx->cq_uregs;
	struct irdma_ureg *ureg;

	spin_lock(&uctx->ureg_lock);
	list_for_each_entry(ureg, uregs, link) {
		if (ureg->va == va) {
			list_del_init(&ureg->link);
			ureg->claimed = true;
			spin_unlock(&uctx->ureg_lock);
			return ureg;
		}
	}
	spin_unlock(&uctx->ureg_lock);
	return ERR_PTR(-ENODATA);
}

/**
 * irdma_ureg_release - the hardware does not use queue memory any more
 * @ureg: from irdma_ureg_claim(); may be gone when this returns
 */
void irdma_ureg_release(struct irdma_ureg *ureg)
{
	struct irdma_ucontext *uctx = ureg->uctx;

	spin_lock(&uctx->ureg_lock);
	ureg->claimed = false;
	list_add_tail(&ureg->link,
		      ureg->type == IRDMA_UREG_QP ? &uctx->qp_uregs : &uctx->cq_uregs);
	spin_unlock(&uctx->ureg_lock);
}

/*
 * Verbs.
 */

/**
 * irdma_reg_user_mr - register memory of a process, as a region or for queues
 * @IRDMA_REG_USER_MR_ARGS: arguments of the verb
 *
 * The tail of the request tells what for.
 * Context: process.
 * Return: the region, or an ERR_PTR: -EINVAL (no tail, unknown type, length 0 or above the
 * limit, page counts that do not fit the memory, no STag free), -EOPNOTSUPP (tail of an unknown
 * format, steering tags), -ENOMEM, or what pinning says.
 */
struct ib_mr *irdma_reg_user_mr(IRDMA_REG_USER_MR_ARGS)
{
	struct irdma_device *dev = to_irdma_dev(ibpd->device);
	struct irdma_abi_reg_req req;
	struct ib_umem *umem;
	struct irdma_mr *mr;
	int ret;

	if (IRDMA_REG_USER_MR_DMAH)
		return ERR_PTR(-EOPNOTSUPP);
	ret = irdma_udata_in(udata, &req, sizeof(req), sizeof(req));
	if (ret)
		return ERR_PTR(ret);
	if (req.type > IRDMA_ABI_REG_CQ || !range_ok(dev, len, virt))
		return ERR_PTR(-EINVAL);
	if (req.type != IRDMA_ABI_REG_MEM)
		access |= IB_ACCESS_LOCAL_WRITE;	/* the hardware writes there */

	mr = kmem_cache_zalloc(mr_cache, GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	umem = ib_umem_get_va(ibpd->device, start, len, access);
	if (IS_ERR(umem)) {
		ret = PTR_ERR(umem);
		goto free_mr;
	}
	if (req.type == IRDMA_ABI_REG_MEM)
		ret = register_umem(dev, mr, umem, ibpd, len, virt, access);
	else
		ret = register_queue(dev, mr, umem, start, &req, udata);
	if (ret)
		goto release_umem;
	return &mr->ibmr;

release_umem:
	ib_umem_release(umem);
free_mr:
	kmem_cache_free(mr_cache, mr);
	return ERR_PTR(ret);
}

/**
 * irdma_reg_user_mr_dmabuf - register a part of a dma-buf as a region
 * @IRDMA_REG_USER_MR_DMABUF_ARGS: arguments of the verb
 *
 * The buffer stays pinned as long as the region lives,
 * because the hardware cannot fault.
 * Context: process.
 * Return: the region or an ERR_PTR as irdma_reg_user_mr().
 */
struct ib_mr *irdma_reg_user_mr_dmabuf(IRDMA_REG_USER_MR_DMABUF_ARGS)
{
	struct irdma_device *dev = to_irdma_dev(ibpd->device);
	struct ib_umem_dmabuf *dmabuf;
	struct irdma_mr *mr;
	int ret;

	if (IRDMA_REG_USER_MR_DMABUF_DMAH)
		return ERR_PTR(-EOPNOTSUPP);
	if (!range_ok(dev, len, virt))
		return ERR_PTR(-EINVAL);
	mr = kmem_cache_zalloc(mr_cache, GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	dmabuf = ib_umem_dmabuf_get_pinned(ibpd->device, offset, len, fd, access);
	if (IS_ERR(dmabuf)) {
		ret = PTR_ERR(dmabuf);
		goto free_mr;
	}
	ret = register_umem(dev, mr, &dmabuf->umem, ibpd, len, virt, access);
	if (ret)
		goto release_umem;
	return &mr->ibmr;

release_umem:
	ib_umem_release(&dmabuf->umem);
free_mr:
	kmem_cache_free(mr_cache, mr);
	return ERR_PTR(ret);
}

/* The adapter knows the region. */
static struct ib_mr *mr_ready(struct irdma_mr *mr)
{
	mr->in_hw = true;
	mr->ibmr.lkey = mr->cmd.stag;
	mr->ibmr.rkey = mr->cmd.stag;
	return &mr->ibmr;
}

/**
 * irdma_get_dma_mr - the region of all memory, addressed by bus addresses
 * @ibpd: protection domain of a kernel user
 * @access: enum ib_access_flags
 *
 * The only region of length 0, which switches the hardware's bounds check off.
 * Context: process.
 * Return: the region, or an ERR_PTR: -EINVAL (no STag free), -ENOMEM or a command's error.
 */
struct ib_mr *irdma_get_dma_mr(struct ib_pd *ibpd, int access)
{
	struct irdma_device *dev = to_irdma_dev(ibpd->device);
	struct irdma_mr *mr;
	int ret;

	mr = kmem_cache_zalloc(mr_cache, GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	set_access(&mr->cmd, access & ~IB_ZERO_BASED);
	mr->cmd.pd = to_irdma_pd(ibpd)->id;
	ret = irdma_stag_alloc(dev, &mr->cmd.stag);
	if (ret)
		goto free_mr;
	ret = irdma_exec_reg_mr(dev, &mr->cmd);
	if (ret)
		goto free_stag;
	return mr_ready(mr);

free_stag:
	irdma_stag_free(dev, mr->cmd.stag);
free_mr:
	kmem_cache_free(mr_cache, mr);
	return ERR_PTR(ret);
}

/**
 * irdma_alloc_mr - a region for fast registers
 * @ibpd: protection domain of a kernel user
 * @type: only IB_MR_TYPE_MEM_REG
 * @max_num_sg: pages that a fast register may name
 *
 * A list of one page needs no entry in HMC memory: its address goes into the work request.
 * Context: process.
 * Return: the region, or an ERR_PTR: -EOPNOTSUPP, -EINVAL (too many pages, no STag free),
 * -ENOMEM or a command's error.
 */
struct ib_mr *irdma_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type, u32 max_num_sg)
{
	struct irdma_device *dev = to_irdma_dev(ibpd->device);
	struct irdma_mr *mr;
	int ret;

	if (type != IB_MR_TYPE_MEM_REG)
		return ERR_PTR(-EOPNOTSUPP);
	if (!max_num_sg || max_num_sg > IRDMA_MAX_FR_PAGES)
		return ERR_PTR(-EINVAL);
	mr = kmem_cache_zalloc(mr_cache, GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->max_pages = max_num_sg;
	if (max_num_sg > 1) {
		ret = irdma_pbl_alloc(dev, max_num_sg, true, &mr->pbl);
		if (ret)
			goto free_mr;
	}
	ret = irdma_stag_alloc(dev, &mr->cmd.stag);
	if (ret)
		goto free_pbl;
	mr->cmd.pd = to_irdma_pd(ibpd)->id;
	mr->cmd.len = (u64)max_num_sg << PAGE_SHIFT;
	mr->cmd.remote = true;
	ret = exec_alloc_stag(dev, &mr->cmd);
	if (ret)
		goto free_stag;
	return mr_ready(mr);

free_stag:
	irdma_stag_free(dev, mr->cmd.stag);
free_pbl:
	irdma_pbl_free(dev, &mr->pbl);
free_mr:
	kmem_cache_free(mr_cache, mr);
	return ERR_PTR(ret);
}

static int add_fr_page(struct ib_mr *ibmr, u64 addr)
{
	struct irdma_mr *mr = to_irdma_mr(ibmr);

	if (mr->num_pages == mr->max_pages)
		return -ENOMEM;
	if (!mr->num_pages)
		mr->page0 = addr;
	if (mr->pbl.level != IRDMA_PBL_NONE)
		irdma_pbl_set(&mr->pbl, mr->num_pages, addr);
	mr->num_pages++;
	return 0;
}

/**
 * irdma_map_mr_sg - put pages into the list of a fast register
 * @ibmr: from irdma_alloc_mr(); its STag must be invalid
 * @sg: DMA-mapped memory
 * @sg_nents: elements of @sg
 * @sg_offset: offset into the first of them, bytes; may be NULL
 *
 * Context: any.
 * Return: elements of @sg that fit, or -EINVAL for a page size that the hardware
 * does not have.
 */
int irdma_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int sg_nents,
		    unsigned int *sg_offset)
{
	struct irdma_mr *mr = to_irdma_mr(ibmr);

	if (page_size_code(to_irdma_dev(ibmr->device), ibmr->page_size) < 0)
		return -EINVAL;
	mr->num_pages = 0;
	return ib_sg_to_pages(ibmr, sg, sg_nents, sg_offset, add_fr_page);
}

/**
 * irdma_mr_fast_reg - operands of a fast register
 * @ibmr: from irdma_alloc_mr(), pages given by irdma_map_mr_sg()
 * @key: STag of the region with a new low byte
 * @access: enum ib_access_flags
 * @reg: receives va, len, page0, first_pble, use_pbl, stag, page_size_code and rights
 *
 * A length of 0 would switch the bounds check off, so it is refused.
 * Context: any.
 * Return: 0, or -EINVAL: not such a region, no pages, length 0 or too long, or
 * the key of another region.
 */
int irdma_mr_fast_reg(struct ib_mr *ibmr, u32 key, int access, struct irdma_sq_reg *reg)
{
	struct irdma_mr *mr = to_irdma_mr(ibmr);
	int code = page_size_code(to_irdma_dev(ibmr->device), ibmr->page_size);

	if (code < 0 || !mr->num_pages || !ibmr->length || ibmr->length >= IRDMA_MAX_FR_LEN ||
	    (key ^ mr->cmd.stag) >> 8)
		return -EINVAL;
	reg->va = ibmr->iova;
	reg->len = ibmr->length;
	reg->page0 = mr->page0;
	reg->use_pbl = mr->num_pages > 1;
	reg->first_pble = reg->use_pbl ? mr->pbl.first : 0;
	reg->stag = key;
	reg->page_size_code = code;
	reg->rights = irdma_stag_rights(access);
	return 0;
}

/**
 * irdma_dereg_mr - end a region
 * @ibmr: region
 * @udata: not used
 *
 * Context: process.
 * Return: 0; -EBUSY: a queue uses the memory, or a command's error, the region
 * stays as it was then.
 */
int irdma_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct irdma_device *dev = to_irdma_dev(ibmr->device);
	struct irdma_mr *mr = to_irdma_mr(ibmr);
	int ret = 0;

	if (mr->is_queue)
		ret = deregister_queue(dev, mr);
	else if (mr->in_hw)
		ret = irdma_exec_dealloc_stag(dev, &mr->cmd);
	if (ret)
		return ret;
	if (!mr->is_queue) {
		irdma_stag_free(dev, mr->cmd.stag);
		irdma_pbl_free(dev, &mr->pbl);
	}
	ib_umem_release(mr->umem);
	kmem_cache_free(mr_cache, mr);
	return 0;
}

/*
 * The memory of a region that is about to change: pinned anew if it moves, or if it becomes
 * writable and was pinned for reading only; the old memory otherwise.
 */
static struct ib_umem *rereg_umem(struct irdma_mr *mr, int flags, u64 start, u64 len, int access)
{
	struct ib_umem *umem = mr->umem;

	if (flags & IB_MR_REREG_TRANS)
		return ib_umem_get_va(mr->ibmr.device, start, len, access);
	if (!(flags & IB_MR_REREG_ACCESS) || umem->writable || !ib_access_writable(access))
		return umem;
	if (umem->is_dmabuf)
		return ERR_PTR(-EOPNOTSUPP);
	return ib_umem_get_va(mr->ibmr.device, umem->address, umem->length, access);
}

/*
 * Replace @mr's registration by that in @cmd. If the hardware refuses the new one, the old one
 * is restored; if it refuses that too, the region exists in name only.
 */
static int exchange_registration(struct irdma_device *dev, struct irdma_mr *mr,
				 const struct irdma_stag_cmd *cmd)
{
	int ret;

	if (mr->in_hw) {
		ret = irdma_exec_dealloc_stag(dev, &mr->cmd);
		if (ret)
			return ret;
		mr->in_hw = false;
	}
	ret = irdma_exec_reg_mr(dev, cmd);
	if (!ret) {
		mr->cmd = *cmd;
		mr->in_hw = true;
	} else if (!irdma_exec_reg_mr(dev, &mr->cmd)) {
		mr->in_hw = true;
	}
	return ret;
}

/**
 * irdma_rereg_user_mr - change memory, rights or protection domain of a region
 * @ibmr: region of irdma_reg_user_mr() or irdma_reg_user_mr_dmabuf()
 * @flags: what changes, IB_MR_REREG_*
 * @start: new first address in the process, with IB_MR_REREG_TRANS
 * @len: new length, bytes, with IB_MR_REREG_TRANS
 * @virt: new address for work requests, with IB_MR_REREG_TRANS
 * @access: new enum ib_access_flags, with IB_MR_REREG_ACCESS
 * @ibpd: new protection domain, with IB_MR_REREG_PD
 * @udata: not used
 *
 * The STag stays.  A failure leaves the region as it was, except that the hardware may have
 * lost it when a command failed; it can be deregistered in any case.
 * Context: process.
 * Return: NULL, or an ERR_PTR: -EINVAL, -EOPNOTSUPP, -ENOMEM, a command's error.
 */
struct ib_mr *irdma_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start, u64 len, u64 virt,
				  int access, struct ib_pd *ibpd, struct ib_udata *udata)
{
	struct irdma_device *dev = to_irdma_dev(ibmr->device);
	struct irdma_mr *mr = to_irdma_mr(ibmr);
	struct ib_umem *umem, *old_umem = mr->umem;
	struct irdma_stag_cmd cmd = mr->cmd;
	struct irdma_pbl pbl = {};
	bool remap;
	int ret;

	if (flags & ~IB_MR_REREG_SUPPORTED)
		return ERR_PTR(-EOPNOTSUPP);
	if (mr->is_queue || !mr->umem)
		return ERR_PTR(-EINVAL);
	if (!(flags & IB_MR_REREG_ACCESS))
		access = mr->access;
	if (!(flags & IB_MR_REREG_TRANS)) {
		len = ibmr->length;
		virt = ibmr->iova;
	} else if (!range_ok(dev, len, virt) || mr->umem->is_dmabuf) {
		return ERR_PTR(-EINVAL);
	}

	umem = rereg_umem(mr, flags, start, len, access);
	if (IS_ERR(umem))
		return ERR_CAST(umem);
	set_access(&cmd, access);
	if (flags & IB_MR_REREG_PD)
		cmd.pd = to_irdma_pd(ibpd)->id;
	remap = umem != old_umem || cmd.va_based != mr->cmd.va_based;
	if (remap) {
		ret = map_umem(dev, umem, len, virt, &cmd, &pbl);
		if (ret)
			goto release_umem;
	}
	ret = exchange_registration(dev, mr, &cmd);
	if (ret)
		goto free_pbl;

	if (remap) {
		irdma_pbl_free(dev, &mr->pbl);
		mr->pbl = pbl;
	}
	if (umem != old_umem)
		ib_umem_release(old_umem);
	mr->umem = umem;
	mr->access = access;
	ibmr->iova = virt;
	ibmr->length = len;
	return NULL;

free_pbl:
	irdma_pbl_free(dev, &pbl);
release_umem:
	if (umem != old_umem)
		ib_umem_release(umem);
	return ERR_PTR(ret);
}

static void fill_mw_cmd(const struct irdma_mw *mw, struct irdma_stag_cmd *cmd)
{
	memset(cmd, 0, sizeof(*cmd));
	cmd->stag = mw->stag;
	cmd->pd = to_irdma_pd(mw->ibmw.pd)->id;
	cmd->window = true;
	cmd->mw_type1 = mw->ibmw.type == IB_MW_TYPE_1;
}

/**
 * irdma_alloc_mw - a memory window
 * @ibmw: window, its type and protection domain are set
 * @udata: its tail must be empty
 *
 * Context: process.
 * Return: 0, -EOPNOTSUPP, -EINVAL (no STag free), -ENOMEM or a command's error.
 */
int irdma_alloc_mw(struct ib_mw *ibmw, struct ib_udata *udata)
{
	struct irdma_device *dev = to_irdma_dev(ibmw->device);
	struct irdma_mw *mw = container_of(ibmw, struct irdma_mw, ibmw);
	struct irdma_stag_cmd cmd;
	int ret;

	ret = irdma_udata_none(udata);
	if (ret)
		return ret;
	ret = irdma_stag_alloc(dev, &mw->stag);
	if (ret)
		return ret;
	fill_mw_cmd(mw, &cmd);
	ret = exec_alloc_stag(dev, &cmd);
	if (ret)
		irdma_stag_free(dev, mw->stag);
	else
		ibmw->rkey = mw->stag;
	return ret;
}

/**
 * irdma_dealloc_mw - end a memory window
 * @ibmw: window
 *
 * Context: process.
 * Return: 0 or a command's error, the window stays then.
 */
int irdma_dealloc_mw(struct ib_mw *ibmw)
{
	struct irdma_device *dev = to_irdma_dev(ibmw->device);
	struct irdma_mw *mw = container_of(ibmw, struct irdma_mw, ibmw);
	struct irdma_stag_cmd cmd;
	int ret;

	fill_mw_cmd(mw, &cmd);
	ret = irdma_exec_dealloc_stag(dev, &cmd);
	if (!ret)
		irdma_stag_free(dev, mw->stag);
	return ret;
}
