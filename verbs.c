// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The device and its port as the verbs core and user space see them: attributes, contexts of
 * user processes with the negotiation of the ABI, the doorbell page, protection domains, and
 * the table of verbs (spec 02, sections 7 and 8).
 *
 * The core calls all of this in process context and serialises calls on one object.
 */
#include <linux/etherdevice.h>
#include <linux/slab.h>
#include <net/addrconf.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/uverbs_ioctl.h>

#include "abi.h"
#include "qp.h"
#include "lsmm.h"
#include "verbs.h"

#define PORT_GIDS	1

/*
 * Tails of requests and responses.
 */

/**
 * irdma_udata_in - read the driver's tail of a request
 * @udata: tail, may be NULL
 * @req: receives it; what the caller left out reads as 0
 * @size: bytes that this driver knows
 * @min: bytes that the oldest library sends
 *
 * Return: 0; -EINVAL: there is no tail or it is too short; -EOPNOTSUPP: bytes that this driver
 * does not know are not 0; -EFAULT.
 */
int irdma_udata_in(struct ib_udata *udata, void *req, size_t size, size_t min)
{
	if (!udata || udata->inlen < min)
		return -EINVAL;
	if (udata->inlen > size && !ib_is_udata_cleared(udata, size, udata->inlen - size))
		return -EOPNOTSUPP;
	memset(req, 0, size);
	return ib_copy_from_udata(req, udata, min(size, udata->inlen));
}

/**
 * irdma_udata_out - write the driver's tail of a response
 * @udata: tail
 * @resp: what to write; an older library gets the part that it has room for
 * @size: bytes of @resp; what a newer library has room for beyond is zeroed
 *
 * Return: 0 or -EFAULT.
 */
int irdma_udata_out(struct ib_udata *udata, const void *resp, size_t size)
{
	if (copy_to_user(udata->outbuf, resp, min(size, udata->outlen)))
		return -EFAULT;
	if (udata->outlen > size && clear_user(udata->outbuf + size, udata->outlen - size))
		return -EFAULT;
	return 0;
}

/**
 * irdma_udata_none - check the tail of a request that has none
 * @udata: tail, may be NULL
 *
 * Return: 0, or -EOPNOTSUPP if there are bytes other than 0.
 */
int irdma_udata_none(struct ib_udata *udata)
{
	if (udata && udata->inlen && !ib_is_udata_cleared(udata, 0, udata->inlen))
		return -EOPNOTSUPP;
	return 0;
}

/**
 * irdma_id_alloc - reserve the number of a verbs object
 * @ids: numbers of its kind
 * @first: least one
 * @end: one more than the greatest
 *
 * Context: process.
 * Return: the number, -EINVAL if all that irdma_query_device() tells of are in use, or -ENOMEM.
 */
int irdma_id_alloc(struct ida *ids, u32 first, u32 end)
{
	int id = ida_alloc_range(ids, first, end - 1, GFP_KERNEL);

	return id == -ENOSPC ? -EINVAL : id;
}

/**
 * irdma_id_keep - count and tell of an object that the adapter did not give up
 * @dev: device, not dead
 * @kind: of the object, for the message
 * @id: its number
 *
 * As long as the adapter knows an object no other may get its number: the adapter would refuse
 * the new one, or take what belongs to one for the other's.  So the number is not freed until a
 * reset has made the adapter forget everything, when the device and its numbers end.  Memory is
 * given back all the same where the adapter has no reason to touch it, such as the queues of a
 * QP in ERROR.
 * Context: process.
 */
void irdma_id_keep(struct irdma_device *dev, const char *kind, u32 id)
{
	int lost = atomic_inc_return(&dev->lost_objects);

	irdma_err_ratelimited(dev, "%s %u (0x%x) stays taken until the next reset, %d objects are lost\n",
			      kind, id, id, lost);
}

/*
 * Device and port.
 */

static int irdma_query_device(struct ib_device *ibdev, struct ib_device_attr *attr,
			      struct ib_udata *udata)
{
	struct irdma_device *dev = to_irdma_dev(ibdev);
	const struct irdma_hw_gen *gen = dev->gen;
	struct pci_dev *pdev = dev->lan->pdev;

	if (udata && (udata->inlen || udata->outlen))
		return -EINVAL;
	memset(attr, 0, sizeof(*attr));
	addrconf_addr_eui48((u8 *)&attr->sys_image_guid, dev->lan->netdev->dev_addr);
	attr->fw_ver = dev->fw_ver;
	attr->vendor_id = pdev->vendor;
	attr->vendor_part_id = pdev->device;
	attr->hw_ver = pdev->revision;
	attr->device_cap_flags = IB_DEVICE_MEM_WINDOW | IB_DEVICE_MEM_MGT_EXTENSIONS;
	attr->kernel_cap_flags = IBK_LOCAL_DMA_LKEY;
	attr->page_size_cap = gen->page_size_cap;
	attr->max_mr_size = gen->max_mr_size;
	attr->max_qp = dev->limits.qps - IRDMA_RESERVED_IDS;
	attr->max_qp_wr = (gen->max_sq_quanta - IRDMA_SQ_RESERVE) / gen->max_quanta_per_wr;
	attr->max_send_sge = gen->max_wq_frags;
	attr->max_recv_sge = gen->max_wq_frags;
	attr->max_sge_rd = gen->max_read_sges;
	attr->max_cq = dev->limits.cqs - IRDMA_RESERVED_IDS;
	attr->max_cqe = gen->max_cqe - 1;
	attr->max_mr = dev->limits.mrs - 1;
	attr->max_mw = attr->max_mr;
	attr->max_pd = dev->limits.pds - IRDMA_RESERVED_IDS;
	attr->max_qp_rd_atom = gen->max_ird;
	attr->max_qp_init_rd_atom = gen->max_ord;
	attr->max_fast_reg_page_list_len = IRDMA_MAX_FR_PAGES;
	attr->atomic_cap = IB_ATOMIC_NONE;
	return 0;
}

static void irdma_get_dev_fw_str(struct ib_device *ibdev, char *str)
{
	u64 ver = to_irdma_dev(ibdev)->fw_ver;

	snprintf(str, IB_FW_VERSION_NAME_MAX, "%u.%u", upper_32_bits(ver), lower_32_bits(ver));
}

static int irdma_query_port(struct ib_device *ibdev, u32 port, struct ib_port_attr *attr)
{
	struct irdma_device *dev = to_irdma_dev(ibdev);
	struct net_device *netdev = dev->lan->netdev;

	if (netif_running(netdev) && netif_carrier_ok(netdev)) {
		attr->state = IB_PORT_ACTIVE;
		attr->phys_state = IB_PORT_PHYS_STATE_LINK_UP;
	} else {
		attr->state = IB_PORT_DOWN;
		attr->phys_state = IB_PORT_PHYS_STATE_DISABLED;
	}
	attr->max_mtu = IB_MTU_4096;
	attr->active_mtu = ib_mtu_int_to_enum(netdev->mtu);
	attr->gid_tbl_len = PORT_GIDS;
	attr->port_cap_flags = IB_PORT_CM_SUP | IB_PORT_REINIT_SUP;
	attr->max_msg_sz = IRDMA_MAX_MSG_SIZE;
	attr->lid = 1;
	irdma_port_speed(dev, &attr->active_speed, &attr->active_width);
	return 0;
}

static int irdma_get_port_immutable(struct ib_device *ibdev, u32 port,
				    struct ib_port_immutable *immutable)
{
	immutable->gid_tbl_len = PORT_GIDS;
	immutable->core_cap_flags = RDMA_CORE_PORT_IWARP;
	return 0;
}

/* The GID of an iWARP port is the MAC address (spec 02, 8.2). */
static int irdma_query_gid(struct ib_device *ibdev, u32 port, int index, union ib_gid *gid)
{
	struct irdma_device *dev = to_irdma_dev(ibdev);

	memset(gid, 0, sizeof(*gid));
	ether_addr_copy(gid->raw, dev->lan->netdev->dev_addr);
	return 0;
}

/*
 * Contexts of user processes.
 */

/* A page of BAR 0 that a process may map. */
struct irdma_mmap_entry {
	struct rdma_user_mmap_entry rdma_entry;
	phys_addr_t addr;
};

static int insert_db_entry(struct irdma_device *dev, struct irdma_ucontext *uctx)
{
	struct irdma_mmap_entry *entry;
	int ret;

	entry = kzalloc(sizeof(*entry), GFP_KERNEL);
	if (!entry)
		return -ENOMEM;
	entry->addr = pci_resource_start(dev->lan->pdev, 0) + dev->gen->db_page_offset;
	ret = rdma_user_mmap_entry_insert(&uctx->ibucontext, &entry->rdma_entry, PAGE_SIZE);
	if (ret) {
		kfree(entry);
		return ret;
	}
	uctx->db_entry = &entry->rdma_entry;
	return 0;
}

static void irdma_mmap_free(struct rdma_user_mmap_entry *rdma_entry)
{
	kfree(container_of(rdma_entry, struct irdma_mmap_entry, rdma_entry));
}

static int irdma_mmap(struct ib_ucontext *ibucontext, struct vm_area_struct *vma)
{
	struct rdma_user_mmap_entry *rdma_entry;
	struct irdma_mmap_entry *entry;
	int ret;

	rdma_entry = rdma_user_mmap_entry_get(ibucontext, vma);
	if (!rdma_entry)
		return -EINVAL;
	entry = container_of(rdma_entry, struct irdma_mmap_entry, rdma_entry);
	ret = rdma_user_mmap_io(ibucontext, vma, PHYS_PFN(entry->addr), PAGE_SIZE,
				pgprot_noncached(vma->vm_page_prot), rdma_entry);
	rdma_user_mmap_entry_put(rdma_entry);
	return ret;
}

static void fill_legacy_resp(struct irdma_device *dev, const struct irdma_ucontext *uctx,
			     struct irdma_abi_uctx_resp *resp)
{
	const struct irdma_hw_gen *gen = dev->gen;

	resp->max_pds = dev->limits.pds;
	resp->max_qps = dev->limits.qps;
	resp->wq_size = (gen->max_sq_quanta - IRDMA_SQ_RESERVE) / gen->max_quanta_per_wr * 2;
	resp->version = uctx->abi_ver;
}

static void fill_resp(struct irdma_device *dev, const struct irdma_ucontext *uctx,
		      struct irdma_abi_uctx_resp *resp)
{
	const struct irdma_hw_gen *gen = dev->gen;

	resp->version = IRDMA_ABI_VER;
	resp->feature_flags = gen->feature_flags;
	resp->db_mmap_key = rdma_user_mmap_get_offset(uctx->db_entry);
	resp->max_frags = gen->max_wq_frags;
	resp->max_read_frags = gen->max_read_sges;
	resp->max_inline = gen->max_inline;
	resp->max_rq_quanta = gen->max_rq_quanta;
	resp->max_sq_quanta = gen->max_sq_quanta;
	resp->min_cq_slots = 1;
	resp->max_cq_slots = gen->max_cqe;
	resp->sq_chunk = gen->max_sq_chunk;
	resp->hw_rev = gen->hw_rev;
	resp->comp_mask = IRDMA_COMP_RAW_ATTR | IRDMA_COMP_MIN_WQ_SIZE | IRDMA_COMP_MAX_SRQ;
	resp->min_wq_size = gen->min_wq_size;
}

/*
 * The library that sends a 16-byte response buffer is older than this device's ABI; it knows
 * X722 only (spec 02, 7.10).
 */
static int irdma_alloc_ucontext(struct ib_ucontext *ibucontext, struct ib_udata *udata)
{
	struct irdma_device *dev = to_irdma_dev(ibucontext->device);
	struct irdma_ucontext *uctx = to_irdma_ucontext(ibucontext);
	struct irdma_abi_uctx_resp resp = {};
	struct irdma_abi_uctx_req req;
	int ret;

	ret = irdma_udata_in(udata, &req, sizeof(req), IRDMA_UCTX_REQ_MIN);
	if (ret)
		return ret;
	if (udata->outlen < IRDMA_UCTX_RESP_LEGACY ||
	    req.version < IRDMA_ABI_VER_MIN || req.version > IRDMA_ABI_VER)
		return -EINVAL;
	if (req.comp_mask & ~(IRDMA_COMP_RAW_ATTR | IRDMA_COMP_WQE_V2))
		return -EOPNOTSUPP;
	uctx->legacy = udata->outlen == IRDMA_UCTX_RESP_LEGACY;
	if (uctx->legacy && !dev->gen->legacy_abi)
		return -EOPNOTSUPP;

	uctx->abi_ver = req.version;
	uctx->raw_attrs = req.comp_mask & IRDMA_COMP_RAW_ATTR;
	spin_lock_init(&uctx->ureg_lock);
	INIT_LIST_HEAD(&uctx->qp_uregs);
	INIT_LIST_HEAD(&uctx->cq_uregs);
	ret = insert_db_entry(dev, uctx);
	if (ret)
		return ret;
	if (uctx->legacy)
		fill_legacy_resp(dev, uctx, &resp);
	else
		fill_resp(dev, uctx, &resp);
	ret = irdma_udata_out(udata, &resp, sizeof(resp));
	if (ret)
		rdma_user_mmap_entry_remove(uctx->db_entry);
	return ret;
}

static void irdma_dealloc_ucontext(struct ib_ucontext *ibucontext)
{
	rdma_user_mmap_entry_remove(to_irdma_ucontext(ibucontext)->db_entry);
}

/* The core takes the mappings away; the driver keeps nothing else of a process. */
static void irdma_disassociate_ucontext(struct ib_ucontext *ibucontext)
{
}

/*
 * Protection domains: numbers, of which the hardware is told with the objects of the domain.
 */

static int irdma_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	struct irdma_device *dev = to_irdma_dev(ibpd->device);
	struct irdma_abi_pd_resp resp = {};
	int id, ret;

	ret = irdma_udata_none(udata);
	if (ret)
		return ret;
	if (udata && udata->outlen < sizeof(resp))
		return -EINVAL;
	id = irdma_id_alloc(&dev->pd_ids, IRDMA_RESERVED_IDS, dev->limits.pds);
	if (id < 0)
		return id;
	to_irdma_pd(ibpd)->id = id;
	irdma_lsmm_init(to_irdma_pd(ibpd));
	if (!udata)
		return 0;
	resp.pd_id = id;
	ret = irdma_udata_out(udata, &resp, sizeof(resp));
	if (ret)
		ida_free(&dev->pd_ids, id);
	return ret;
}

static int irdma_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	struct irdma_device *dev = to_irdma_dev(ibpd->device);
	struct irdma_pd *pd = to_irdma_pd(ibpd);

	irdma_lsmm_exit(pd);
	if (pd->lost && !irdma_is_dead(dev))
		irdma_id_keep(dev, "PD", pd->id);
	else
		ida_free(&dev->pd_ids, pd->id);
	return 0;
}

const struct ib_device_ops irdma_verbs_ops = {
	.owner = THIS_MODULE,
	.driver_id = RDMA_DRIVER_IRDMA,
	.uverbs_abi_ver = IRDMA_ABI_VER,

	.query_device = irdma_query_device,
	.get_dev_fw_str = irdma_get_dev_fw_str,
	.query_port = irdma_query_port,
	.get_port_immutable = irdma_get_port_immutable,
	.query_gid = irdma_query_gid,

	.alloc_ucontext = irdma_alloc_ucontext,
	.dealloc_ucontext = irdma_dealloc_ucontext,
	.disassociate_ucontext = irdma_disassociate_ucontext,
	.mmap = irdma_mmap,
	.mmap_free = irdma_mmap_free,
	.alloc_pd = irdma_alloc_pd,
	.dealloc_pd = irdma_dealloc_pd,

	.reg_user_mr = irdma_reg_user_mr,
	.reg_user_mr_dmabuf = irdma_reg_user_mr_dmabuf,
	.rereg_user_mr = irdma_rereg_user_mr,
	.get_dma_mr = irdma_get_dma_mr,
	.alloc_mr = irdma_alloc_mr,
	.map_mr_sg = irdma_map_mr_sg,
	.dereg_mr = irdma_dereg_mr,
	.alloc_mw = irdma_alloc_mw,
	.dealloc_mw = irdma_dealloc_mw,

	.create_cq = irdma_create_cq,
	IRDMA_CREATE_USER_CQ_OP
	.IRDMA_RESIZE_CQ_OP = irdma_resize_cq,
	.destroy_cq = irdma_destroy_cq,
	.poll_cq = irdma_poll_cq,
	.req_notify_cq = irdma_req_notify_cq,

	.create_qp = irdma_create_qp,
	.modify_qp = irdma_modify_qp,
	.query_qp = irdma_query_qp,
	.destroy_qp = irdma_destroy_qp,
	.post_send = irdma_post_send,
	.post_recv = irdma_post_recv,

	INIT_RDMA_OBJ_SIZE(ib_cq, irdma_cq, ibcq),
	INIT_RDMA_OBJ_SIZE(ib_mw, irdma_mw, ibmw),
	INIT_RDMA_OBJ_SIZE(ib_pd, irdma_pd, ibpd),
	INIT_RDMA_OBJ_SIZE(ib_qp, irdma_qp, ibqp),
	INIT_RDMA_OBJ_SIZE(ib_ucontext, irdma_ucontext, ibucontext),
};
