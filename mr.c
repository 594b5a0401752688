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
 * struct irdma_mem - what the verbs know as a region: a region of the hardware, or queue memory
 * @ibmr: the verbs object; must be first
 * @umem: pinned memory of user space or of a dma-buf
 * @queue: enum irdma_ureg_type of a struct irdma_ureg, 0 for a struct irdma_mr
 */
struct irdma_mem {
	struct ib_mr ibmr;
	struct ib_umem *umem;
	u8 queue;
};

/**
 * struct irdma_mr - a memory region
 * @mem: the verbs object and its memory; must be first
 * @pbl: list of its pages
 * @cmd: command that describes the region to the hardware
 * @in_hw: the hardware knows the region
 * @access: enum ib_access_flags
 * @max_pages: size of the list of a fast register
 * @num_pages: pages that the last ib_map_mr_sg() has put there
 * @page0: the first of them
 */
struct irdma_mr {
	struct irdma_mem mem;
	struct irdma_pbl pbl;
	struct irdma_stag_cmd cmd;
	bool in_hw;
	int access;
	u32 max_pages;
	u32 num_pages;
	dma_addr_t page0;
};

/**
 * struct irdma_ureg - queue memory that user space registered (spec 02, 7.3)
 * @mem: the verbs object and its memory; must be first
 * @pages: 4 KiB pages of the SQ or of the CQ's ring
 * @rq_pages: 4 KiB pages of the RQ, 0 for a CQ
 * @link: in the list of the context while no queue uses the memory, otherwise empty
 * @uctx: the context
 * @pbl: list of the queues' pages, if one of them is not physically consecutive
 *
 * Each QP and CQ of user space has one or two.  So where the queues lie is not kept but found
 * when a queue claims them, once in most lives.
 */
struct irdma_ureg {
	struct irdma_mem mem;
	u32 pages;
	u32 rq_pages;
	struct list_head link;
	struct irdma_ucontext *uctx;
	struct irdma_pbl pbl;
};

/* Caches of their own: kmalloc() has no such sizes. */
static struct kmem_cache *mr_cache;
static struct kmem_cache *ureg_cache;

static struct irdma_mem *to_irdma_mem(struct ib_mr *ibmr)
{
	return container_of(ibmr, struct irdma_mem, ibmr);
}

static struct irdma_mr *to_irdma_mr(struct ib_mr *ibmr)
{
	return container_of(ibmr, struct irdma_mr, mem.ibmr);
}

static struct irdma_ureg *to_irdma_ureg(struct ib_mr *ibmr)
{
	return container_of(ibmr, struct irdma_ureg, mem.ibmr);
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
	mr_cache = KMEM_CACHE_USERCOPY(irdma_mr, 0, mem.ibmr);
	if (!mr_cache)
		return -ENOMEM;
	ureg_cache = KMEM_CACHE_USERCOPY(irdma_ureg, 0, mem.ibmr);
	if (!ureg_cache) {
		kmem_cache_destroy(mr_cache);
		return -ENOMEM;
	}
	return 0;
}

/**
 * irdma_mr_exit - undo irdma_mr_init()
 *
 * Context: process.
 */
void irdma_mr_exit(void)
{
	kmem_cache_destroy(ureg_cache);
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

/* The adapter knows the region. */
static struct ib_mr *mr_ready(struct irdma_mr *mr)
{
	mr->in_hw = true;
	mr->mem.ibmr.lkey = mr->cmd.stag;
	mr->mem.ibmr.rkey = mr->cmd.stag;
	return &mr->mem.ibmr;
}

/* A region of @umem, which stays the caller's on failure. */
static struct ib_mr *register_umem(struct ib_umem *umem, struct ib_pd *ibpd, u64 len, u64 virt,
				   int access)
{
	struct irdma_device *dev = to_irdma_dev(ibpd->device);
	struct irdma_mr *mr;
	int ret;

	mr = kmem_cache_zalloc(mr_cache, GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->access = access;
	set_access(&mr->cmd, access);
	mr->cmd.pd = to_irdma_pd(ibpd)->id;
	ret = irdma_stag_alloc(dev, &mr->cmd.stag);
	if (ret)
		goto free_mr;
	ret = map_umem(dev, umem, len, virt, &mr->cmd, &mr->pbl);
	if (ret)
		goto free_stag;
	ret = irdma_exec_reg_mr(dev, &mr->cmd);
	if (ret)
		goto free_pbl;
	mr->mem.umem = umem;
	mr->mem.ibmr.iova = virt;
	mr->mem.ibmr.length = len;
	return mr_ready(mr);

free_pbl:
	irdma_pbl_free(dev, &mr->pbl);
free_stag:
	irdma_stag_free(dev, mr->cmd.stag);
free_mr:
	kmem_cache_free(mr_cache, mr);
	return ERR_PTR(ret);
}

static int deregister_region(struct irdma_device *dev, struct irdma_mr *mr)
{
	int ret = 0;

	if (mr->in_hw)
		ret = irdma_exec_dealloc_stag(dev, &mr->cmd);
	if (ret)
		return ret;
	irdma_stag_free(dev, mr->cmd.stag);
	irdma_pbl_free(dev, &mr->pbl);
	ib_umem_release(mr->mem.umem);
	kmem_cache_free(mr_cache, mr);
	return 0;
}

/*
 * Queue memory.
 */

/* The page behind the queues is the shadow area, unless that is registered on its own. */
static bool queue_pages_ok(struct irdma_device *dev, const struct irdma_ureg *ureg)
{
	u64 there = ib_umem_num_dma_blocks(ureg->mem.umem, SZ_4K);
	u64 pages = (u64)ureg->pages + ureg->rq_pages;

	if (ureg->mem.queue == IRDMA_UREG_QP)
		return ureg->pages && ureg->rq_pages && pages + 1 <= there;
	if (dev->gen->feature_flags & IRDMA_FEATURE_CQ_RESIZE)
		return pages && pages <= there;
	return pages && pages + 1 <= there;
}

/*
 * Find the bus addresses of the one or two queues and of the page behind them. False: a queue is
 * not physically consecutive.
 */
static bool locate_queues(const struct irdma_ureg *ureg, struct irdma_queue_mem *mem)
{
	u32 second = ureg->pages, behind = second + ureg->rq_pages;
	struct ib_block_iter iter;
	bool contiguous = true;
	dma_addr_t next = 0;
	u32 i = 0;

	memset(mem, 0, sizeof(*mem));
	rdma_umem_for_each_dma_block(ureg->mem.umem, &iter, SZ_4K) {
		dma_addr_t addr = rdma_block_iter_dma_address(&iter);

		if (i == 0) {
			mem->first_addr = addr;
			mem->addr = addr;
		}
		if (i == second)
			mem->rq_addr = addr;
		if (i == behind)
			mem->shadow = addr;
		if (i && i != second && i < behind && addr != next)
			contiguous = false;
		next = addr + SZ_4K;
		if (i++ == behind)
			break;
	}
	return contiguous;
}

static int list_queues(struct irdma_device *dev, struct irdma_ureg *ureg)
{
	u32 i = 0, count = ureg->pages + ureg->rq_pages;
	struct ib_block_iter iter;
	int ret;

	ret = irdma_pbl_alloc(dev, count, true, &ureg->pbl);
	if (ret)
		return ret;
	rdma_umem_for_each_dma_block(ureg->mem.umem, &iter, SZ_4K) {
		irdma_pbl_set(&ureg->pbl, i, rdma_block_iter_dma_address(&iter));
		if (++i == count)
			break;
	}
	return 0;
}

/**
 * irdma_ureg_release - the hardware does not use queue memory any more
 * @ureg: from irdma_ureg_claim(); may be gone when this returns
 */
void irdma_ureg_release(struct irdma_ureg *ureg)
{
	struct irdma_ucontext *uctx = ureg->uctx;

	spin_lock(&uctx->ureg_lock);
	list_add_tail(&ureg->link, ureg->mem.queue == IRDMA_UREG_QP ? &uctx->qp_uregs :
								      &uctx->cq_uregs);
	spin_unlock(&uctx->ureg_lock);
}

/* @umem stays the caller's on failure. */
static struct ib_mr *register_queue(struct irdma_device *dev, struct ib_umem *umem,
				    const struct irdma_abi_reg_req *req, struct ib_udata *udata)
{
	bool qp = req->type == IRDMA_ABI_REG_QP;
	struct irdma_queue_mem mem;
	struct irdma_ureg *ureg;
	int ret = 0;

	ureg = kmem_cache_zalloc(ureg_cache, GFP_KERNEL);
	if (!ureg)
		return ERR_PTR(-ENOMEM);
	ureg->mem.umem = umem;
	ureg->mem.queue = qp ? IRDMA_UREG_QP : IRDMA_UREG_CQ;
	ureg->pages = qp ? req->sq_pages : req->cq_pages;
	ureg->rq_pages = qp ? req->rq_pages : 0;
	ureg->uctx = rdma_udata_to_drv_context(udata, struct irdma_ucontext, ibucontext);
	if (!PAGE_ALIGNED(umem->address) || !queue_pages_ok(dev, ureg))
		ret = -EINVAL;
	else if (!locate_queues(ureg, &mem))
		ret = list_queues(dev, ureg);
	if (ret) {
		kmem_cache_free(ureg_cache, ureg);
		return ERR_PTR(ret);
	}
	irdma_ureg_release(ureg);
	return &ureg->mem.ibmr;
}

static int deregister_queue(struct irdma_device *dev, struct irdma_ureg *ureg)
{
	struct irdma_ucontext *uctx = ureg->uctx;

	spin_lock(&uctx->ureg_lock);
	if (list_empty(&ureg->link)) {
		spin_unlock(&uctx->ureg_lock);
		return -EBUSY;
	}
	list_del(&ureg->link);
	spin_unlock(&uctx->ureg_lock);
	irdma_pbl_free(dev, &ureg->pbl);
	ib_umem_release(ureg->mem.umem);
	kmem_cache_free(ureg_cache, ureg);
	return 0;
}

static struct irdma_ureg *take_free(struct irdma_ucontext *uctx, enum irdma_ureg_type type, u64 va)
{
	struct list_head *uregs = type == IRDMA_UREG_QP ? &uctx->qp_uregs : &uctx->cq_uregs;
	struct irdma_ureg *ureg;

	spin_lock(&uctx->ureg_lock);
	list_for_each_entry(ureg, uregs, link) {
		if (ureg->mem.umem->address == va) {
			list_del_init(&ureg->link);
			spin_unlock(&uctx->ureg_lock);
			return ureg;
		}
	}
	spin_unlock(&uctx->ureg_lock);
	return NULL;
}

/**
 * irdma_ureg_claim - take queue memory for a queue
 * @uctx: context that registered it
 * @type: what it was registered for
 * @va: its first address
 * @mem: where it lies
 *
 * The registration cannot be taken again nor deregistered until irdma_ureg_release().
 * Context: process.
 * Return: the registration, or ERR_PTR(-ENODATA) if there is no free one
 * (spec 02, 7.3; a CQ's caller answers -EPROTO then).
 */
struct irdma_ureg *irdma_ureg_claim(struct irdma_ucontext *uctx, enum irdma_ureg_type type, u64 va,
				    struct irdma_queue_mem *mem)
{
	struct irdma_ureg *ureg = take_free(uctx, type, va);

	if (!ureg)
		return ERR_PTR(-ENODATA);
	locate_queues(ureg, mem);
	mem->pages = ureg->pages;
	mem->rq_pages = ureg->rq_pages;
	mem->virt = ureg->pbl.level != IRDMA_PBL_NONE;
	if (mem->virt) {
		mem->addr = ureg->pbl.first;
		mem->rq_addr = ureg->pbl.first + ureg->pages;
	}
	return ureg;
}

/**
 * irdma_ureg_first_page - where the SQ begins
 * @ureg: from irdma_ureg_claim(), of a QP
 *
 * Return: the page.
 */
struct page *irdma_ureg_first_page(const struct irdma_ureg *ureg)
{
	return sg_page(ureg->mem.umem->sgt_append.sgt.sgl);
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
	struct ib_mr *ibmr;
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

	umem = ib_umem_get_va(ibpd->device, start, len, access);
	if (IS_ERR(umem))
		return ERR_CAST(umem);
	if (req.type == IRDMA_ABI_REG_MEM)
		ibmr = register_umem(umem, ibpd, len, virt, access);
	else
		ibmr = register_queue(dev, umem, &req, udata);
	if (IS_ERR(ibmr))
		ib_umem_release(umem);
	return ibmr;
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
	struct ib_mr *ibmr;

	if (IRDMA_REG_USER_MR_DMABUF_DMAH)
		return ERR_PTR(-EOPNOTSUPP);
	if (!range_ok(dev, len, virt))
		return ERR_PTR(-EINVAL);
	dmabuf = ib_umem_dmabuf_get_pinned(ibpd->device, offset, len, fd, access);
	if (IS_ERR(dmabuf))
		return ERR_CAST(dmabuf);
	ibmr = register_umem(&dmabuf->umem, ibpd, len, virt, access);
	if (IS_ERR(ibmr))
		ib_umem_release(&dmabuf->umem);
	return ibmr;
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

	if (to_irdma_mem(ibmr)->queue)
		return deregister_queue(dev, to_irdma_ureg(ibmr));
	return deregister_region(dev, to_irdma_mr(ibmr));
}

/*
 * The memory of a region that is about to change: pinned anew if it moves, or if it becomes
 * writable and was pinned for reading only; the old memory otherwise.
 */
static struct ib_umem *rereg_umem(struct irdma_mr *mr, int flags, u64 start, u64 len, int access)
{
	struct ib_umem *umem = mr->mem.umem;

	if (flags & IB_MR_REREG_TRANS)
		return ib_umem_get_va(mr->mem.ibmr.device, start, len, access);
	if (!(flags & IB_MR_REREG_ACCESS) || umem->writable || !ib_access_writable(access))
		return umem;
	if (umem->is_dmabuf)
		return ERR_PTR(-EOPNOTSUPP);
	return ib_umem_get_va(mr->mem.ibmr.device, umem->address, umem->length, access);
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
	struct ib_umem *umem, *old_umem = to_irdma_mem(ibmr)->umem;
	struct irdma_stag_cmd cmd;
	struct irdma_pbl pbl = {};
	bool remap;
	int ret;

	if (flags & ~IB_MR_REREG_SUPPORTED)
		return ERR_PTR(-EOPNOTSUPP);
	if (to_irdma_mem(ibmr)->queue || !old_umem)
		return ERR_PTR(-EINVAL);
	if (!(flags & IB_MR_REREG_ACCESS))
		access = mr->access;
	if (!(flags & IB_MR_REREG_TRANS)) {
		len = ibmr->length;
		virt = ibmr->iova;
	} else if (!range_ok(dev, len, virt) || old_umem->is_dmabuf) {
		return ERR_PTR(-EINVAL);
	}

	umem = rereg_umem(mr, flags, start, len, access);
	if (IS_ERR(umem))
		return ERR_CAST(umem);
	cmd = mr->cmd;
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
	mr->mem.umem = umem;
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
