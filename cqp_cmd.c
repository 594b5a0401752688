// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The commands of the control queue pair: one function each, which fills the 64-byte entry
 * of a request from named operands (layouts: spec 01, 4.8; spec 02, 3.4, 4.5 and 6.3).
 * They only write to the request, so they need no locks and may be called in any context.
 *
 * Every function zeroes the request first.  Words are in host order; cqp.c converts them and
 * adds the valid bit when it copies the entry to the ring.
 */
#include <linux/bitfield.h>
#include <linux/etherdevice.h>

#include "irdma.h"

enum cqp_op {
	OP_CREATE_QP		= 0x00,
	OP_MODIFY_QP		= 0x01,
	OP_DESTROY_QP		= 0x02,
	OP_CREATE_CQ		= 0x03,
	OP_MODIFY_CQ		= 0x04,
	OP_DESTROY_CQ		= 0x05,
	OP_ALLOC_STAG		= 0x09,
	OP_REG_MR		= 0x0A,
	OP_DEALLOC_STAG		= 0x0D,
	OP_MANAGE_ARP		= 0x0F,
	OP_QUERY_FEATURES	= 0x12,
	OP_CREATE_CEQ		= 0x16,
	OP_DESTROY_CEQ		= 0x18,
	OP_CREATE_AEQ		= 0x19,
	OP_DESTROY_AEQ		= 0x1B,
	OP_CREATE_AH		= 0x1C,
	OP_DESTROY_AH		= 0x1E,
	OP_UPDATE_SDS		= 0x1F,
	OP_QUERY_FPM		= 0x20,
	OP_COMMIT_FPM		= 0x21,
	OP_FLUSH		= 0x22,
	OP_MANAGE_APBVT		= 0x23,
	OP_MANAGE_QHASH		= 0x25,
	OP_SUSPEND_QP		= 0x29,
	OP_RESUME_QP		= 0x2A,
	OP_PAGES_ALLOCATED	= 0x2B,
	OP_WS_NODE		= 0x2C,
	OP_GATHER_STATS		= 0x2E,
};

static const char * const op_names[] = {
	[OP_CREATE_QP]		= "create QP",
	[OP_MODIFY_QP]		= "modify QP",
	[OP_DESTROY_QP]		= "destroy QP",
	[OP_CREATE_CQ]		= "create CQ",
	[OP_MODIFY_CQ]		= "resize CQ",
	[OP_DESTROY_CQ]		= "destroy CQ",
	[OP_ALLOC_STAG]		= "allocate STag",
	[OP_REG_MR]		= "register MR",
	[OP_DEALLOC_STAG]	= "deallocate STag",
	[OP_MANAGE_ARP]		= "manage ARP entry",
	[OP_QUERY_FEATURES]	= "query features",
	[OP_CREATE_CEQ]		= "create CEQ",
	[OP_DESTROY_CEQ]	= "destroy CEQ",
	[OP_CREATE_AEQ]		= "create AEQ",
	[OP_DESTROY_AEQ]	= "destroy AEQ",
	[OP_CREATE_AH]		= "create AH",
	[OP_DESTROY_AH]		= "destroy AH",
	[OP_UPDATE_SDS]		= "update segment descriptors",
	[OP_QUERY_FPM]		= "query HMC",
	[OP_COMMIT_FPM]		= "commit HMC",
	[OP_FLUSH]		= "flush QP",
	[OP_MANAGE_APBVT]	= "manage local port",
	[OP_MANAGE_QHASH]	= "manage quad hash",
	[OP_SUSPEND_QP]		= "suspend QP",
	[OP_RESUME_QP]		= "resume QP",
	[OP_PAGES_ALLOCATED]	= "HMC pages allocated",
	[OP_WS_NODE]		= "scheduler node",
	[OP_GATHER_STATS]	= "gather statistics",
};

#define QW3_OPCODE		GENMASK_ULL(37, 32)

/* QP commands */
#define QP_QW1_NEW_MSS		GENMASK_ULL(45, 32)
#define QP_QW1_TERM_LEN		GENMASK_ULL(51, 48)
#define QP_QW3_QPN		GENMASK_ULL(23, 0)
#define QP_QW3_ORD_VALID	BIT_ULL(42)
#define QP_QW3_TCP_VALID	BIT_ULL(43)
#define QP_QW3_VIRT_QUEUES	BIT_ULL(45)
#define QP_QW3_CQNUM_VALID	BIT_ULL(47)
#define QP_QW3_TYPE		GENMASK_ULL(50, 48)
#define QP_QW3_MAC_VALID	BIT_ULL(51)
#define QP_QW3_MSS_CHANGE	BIT_ULL(52)
#define QP_QW3_REMOVE_HASH	BIT_ULL(55)
#define QP_QW3_TERM_ACT		GENMASK_ULL(57, 56)
#define QP_QW3_RESET_CON	BIT_ULL(58)
#define QP_QW3_ARP_VALID	BIT_ULL(59)
#define QP_QW3_NEXT_STATE	GENMASK_ULL(62, 60)

#define RESUME_QW2_QS_HANDLE	GENMASK_ULL(31, 0)

/* CQ commands; the fields that differ between the generations are masks in irdma_hw_gen */
#define CQ_QW0_SIZE		GENMASK_ULL(20, 0)
#define CQ_QW2_THRESHOLD	GENMASK_ULL(17, 0)
#define CQ_QW3_RESIZE		BIT_ULL(43)
#define CQ_QW3_PBL_LEVEL	GENMASK_ULL(45, 44)
#define CQ_QW3_CHECK_OVERFLOW	BIT_ULL(46)
#define CQ_QW3_VIRTUAL		BIT_ULL(47)
#define CQ_QW3_CEQE_MASK	BIT_ULL(48)
#define CQ_QW3_CEQN_VALID	BIT_ULL(49)
#define QW6_FIRST_PBLE		GENMASK_ULL(27, 0)
#define QW7_VSI			GENMASK_ULL(17, 8)

/* event queue commands */
#define EQ_QW3_CEQN		GENMASK_ULL(9, 0)
#define EQ_QW3_PBL_LEVEL	GENMASK_ULL(45, 44)
#define EQ_QW3_VIRTUAL		BIT_ULL(47)

/* STag commands */
#define STAG_QW1_LEN		GENMASK_ULL(45, 0)
#define STAG_QW2_KEY		GENMASK_ULL(7, 0)
#define STAG_QW2_INDEX		GENMASK_ULL(31, 8)
#define STAG_QW3_MW_TYPE1	BIT_ULL(42)
#define STAG_QW3_MR		BIT_ULL(43)
#define STAG_QW3_PBL_LEVEL	GENMASK_ULL(45, 44)
#define STAG_QW3_PAGE_SIZE	GENMASK_ULL(47, 46)
#define STAG_QW3_RIGHTS		GENMASK_ULL(52, 48)
#define STAG_QW3_REMOTE		BIT_ULL(53)
#define STAG_QW3_VA_BASED	BIT_ULL(59)

/* flush and generate AE */
#define FLUSH_QW1_AE_CODE	GENMASK_ULL(15, 0)
#define FLUSH_QW1_AE_SOURCE	GENMASK_ULL(19, 16)
#define FLUSH_QW2_RQ_MINOR	GENMASK_ULL(15, 0)
#define FLUSH_QW2_RQ_MAJOR	GENMASK_ULL(31, 16)
#define FLUSH_QW2_SQ_MINOR	GENMASK_ULL(47, 32)
#define FLUSH_QW2_SQ_MAJOR	GENMASK_ULL(63, 48)
#define FLUSH_QW3_GENERATE_AE	BIT_ULL(59)
#define FLUSH_QW3_USER_CODE	BIT_ULL(60)
#define FLUSH_QW3_SQ		BIT_ULL(61)
#define FLUSH_QW3_RQ		BIT_ULL(62)
#define FLUSH_MAJOR		1

/* addresses */
#define ARP_QW3_INDEX		GENMASK_ULL(11, 0)
#define ARP_QW3_VALID		BIT_ULL(42)
#define ARP_QW3_PERMANENT	BIT_ULL(43)
#define APBVT_QW2_PORT		GENMASK_ULL(15, 0)
#define APBVT_QW3_ADD		BIT_ULL(62)
#define QHASH_QW1_LOCAL_PORT	GENMASK_ULL(15, 0)
#define QHASH_QW1_REMOTE_PORT	GENMASK_ULL(31, 16)
#define QHASH_QW1_QPN		GENMASK_ULL(49, 32)
#define QHASH_QW2_QS_HANDLE	GENMASK_ULL(9, 0)
#define QHASH_QW2_VLAN		GENMASK_ULL(43, 32)
#define QHASH_QW3_TYPE		GENMASK_ULL(44, 42)
#define QHASH_QW3_VLAN_VALID	BIT_ULL(59)
#define QHASH_QW3_IPV4		BIT_ULL(60)
#define QHASH_QW3_MANAGE	GENMASK_ULL(62, 61)
#define QHASH_NO_VLAN		0xFFFF
#define AH_QW0_SRC_MAC		GENMASK_ULL(63, 16)
#define AH_QW1_VLAN_TAG		GENMASK_ULL(15, 0)
#define AH_QW1_TOS		GENMASK_ULL(39, 32)
#define AH_QW1_PD_LOW		GENMASK_ULL(63, 48)
#define AH_QW2_FLOW_LABEL	GENMASK_ULL(19, 0)
#define AH_QW2_PD_HIGH		GENMASK_ULL(27, 20)
#define AH_QW2_TTL		GENMASK_ULL(39, 32)
#define AH_QW2_ARP_INDEX	GENMASK_ULL(63, 48)
#define AH_QW3_AH		GENMASK_ULL(23, 0)
#define AH_QW3_IPV4		BIT_ULL(59)
#define AH_QW3_INSERT_VLAN	BIT_ULL(60)
#define AH_QW3_LOOPBACK		BIT_ULL(62)
#define HIGH_WORD		GENMASK_ULL(63, 32)
#define LOW_WORD		GENMASK_ULL(31, 0)

/* HMC and features */
#define SDS_QW2_OVERFLOW	GENMASK_ULL(63, 7)
#define SDS_QW3_OVERFLOW_COUNT	GENMASK_ULL(3, 0)
#define SDS_ENTRY_VALID		BIT_ULL(63)
#define SDS_IN_WQE		3
#define QW2_HMC_FUNCTION	GENMASK_ULL(5, 0)
#define QW3_BUFFER_SIZE		GENMASK_ULL(31, 0)

static u64 op_word(enum cqp_op op)
{
	return FIELD_PREP(QW3_OPCODE, op);
}

/* FIELD_PREP() for a mask that the generation chooses. */
static u64 gen_field(u64 mask, u64 val)
{
	return (val << __ffs64(mask)) & mask;
}

static void begin(struct irdma_cqp_req *req, enum cqp_op op)
{
	memset(req, 0, sizeof(*req));
	req->wqe[3] = op_word(op);
}

/**
 * irdma_cqp_op() - opcode of a prepared request
 * @req: the request
 *
 * Context: any.
 * Return: one of the opcodes of spec 01, 4.7.
 */
u8 irdma_cqp_op(const struct irdma_cqp_req *req)
{
	return FIELD_GET(QW3_OPCODE, req->wqe[3]);
}

/**
 * irdma_cqp_op_name() - what a prepared request does, for messages
 * @req: the request
 *
 * Context: any.
 * Return: a constant string.
 */
const char *irdma_cqp_op_name(const struct irdma_cqp_req *req)
{
	u8 op = irdma_cqp_op(req);

	return op < ARRAY_SIZE(op_names) && op_names[op] ? op_names[op] : "unknown command";
}

/**
 * irdma_cqp_is_qp_op() - does a prepared request change a queue pair's state?
 * @req: the request
 *
 * Context: any.
 * Return: true for every command that names a QP.
 */
bool irdma_cqp_is_qp_op(const struct irdma_cqp_req *req)
{
	switch (irdma_cqp_op(req)) {
	case OP_CREATE_QP:
	case OP_MODIFY_QP:
	case OP_DESTROY_QP:
	case OP_FLUSH:
	case OP_SUSPEND_QP:
	case OP_RESUME_QP:
		return true;
	default:
		return false;
	}
}

static void put_cq(struct irdma_device *dev, struct irdma_cqp_req *req,
		   const struct irdma_cq_cmd *cq)
{
	bool virt = cq->pbl_level != 0;

	req->wqe[0] = FIELD_PREP(CQ_QW0_SIZE, cq->size);
	req->wqe[1] = cq->cqn;
	req->wqe[5] = cq->shadow;
	req->wqe[6] = virt ? FIELD_PREP(QW6_FIRST_PBLE, cq->first_pble) : 0;
	req->wqe[3] |= gen_field(dev->gen->cqn_mask, cq->cqn) |
		       FIELD_PREP(CQ_QW3_PBL_LEVEL, cq->pbl_level) |
		       (virt ? CQ_QW3_VIRTUAL : 0) |
		       (cq->ceqe_mask ? CQ_QW3_CEQE_MASK : 0);
}

static void put_cq_ring(struct irdma_device *dev, struct irdma_cqp_req *req,
			const struct irdma_cq_cmd *cq)
{
	req->wqe[2] = FIELD_PREP(CQ_QW2_THRESHOLD, cq->threshold);
	req->wqe[4] = cq->pbl_level ? 0 : cq->ring;
	req->wqe[7] = FIELD_PREP(QW7_VSI, dev->lan->vsi);
	req->wqe[3] |= cq->check_overflow ? CQ_QW3_CHECK_OVERFLOW : 0;
}

static void put_ceqn(struct irdma_device *dev, struct irdma_cqp_req *req,
		     const struct irdma_cq_cmd *cq)
{
	req->wqe[3] |= gen_field(dev->gen->ceqn_mask, cq->ceqn) | CQ_QW3_CEQN_VALID;
}

/**
 * irdma_cqp_prep_create_cq() - create a completion queue (op 0x03)
 * @dev: the device
 * @req: request to fill
 * @cq: the CQ
 */
void irdma_cqp_prep_create_cq(struct irdma_device *dev, struct irdma_cqp_req *req,
			      const struct irdma_cq_cmd *cq)
{
	begin(req, OP_CREATE_CQ);
	put_cq(dev, req, cq);
	put_cq_ring(dev, req, cq);
	put_ceqn(dev, req, cq);
}

/**
 * irdma_cqp_prep_resize_cq() - continue a CQ in another ring (op 0x04)
 * @dev: the device
 * @req: request to fill
 * @cq: the CQ with its new ring; the CEQ stays as it is
 */
void irdma_cqp_prep_resize_cq(struct irdma_device *dev, struct irdma_cqp_req *req,
			      const struct irdma_cq_cmd *cq)
{
	begin(req, OP_MODIFY_CQ);
	put_cq(dev, req, cq);
	put_cq_ring(dev, req, cq);
	req->wqe[3] |= CQ_QW3_RESIZE;
}

/**
 * irdma_cqp_prep_destroy_cq() - destroy a completion queue (op 0x05)
 * @dev: the device
 * @req: request to fill
 * @cq: the CQ with the fields that it was created (or last resized) with
 */
void irdma_cqp_prep_destroy_cq(struct irdma_device *dev, struct irdma_cqp_req *req,
			       const struct irdma_cq_cmd *cq)
{
	begin(req, OP_DESTROY_CQ);
	put_cq(dev, req, cq);
	put_ceqn(dev, req, cq);
}

static void put_qp(struct irdma_cqp_req *req, const struct irdma_qp_cmd *qp)
{
	req->context = qp->context;
	req->wqe[5] = qp->shadow;
	req->wqe[3] |= FIELD_PREP(QP_QW3_QPN, qp->qpn) | FIELD_PREP(QP_QW3_TYPE, qp->type);
}

static void put_qp_state(struct irdma_cqp_req *req, const struct irdma_qp_cmd *qp)
{
	req->wqe[3] |= FIELD_PREP(QP_QW3_NEXT_STATE, qp->next_state) |
		       (qp->ord_valid ? QP_QW3_ORD_VALID : 0) |
		       (qp->tcp_valid ? QP_QW3_TCP_VALID : 0) |
		       (qp->virt_queues ? QP_QW3_VIRT_QUEUES : 0) |
		       (qp->cqnum_valid ? QP_QW3_CQNUM_VALID : 0) |
		       (qp->mac_valid ? QP_QW3_MAC_VALID : 0) |
		       (qp->arp_valid ? QP_QW3_ARP_VALID : 0);
}

/**
 * irdma_cqp_prep_create_qp() - create a queue pair (op 0x00)
 * @dev: the device
 * @req: request to fill
 * @qp: the QP; @term_act, @term_len, @new_mss, @remove_hash and @reset_con do not apply
 */
void irdma_cqp_prep_create_qp(struct irdma_device *dev, struct irdma_cqp_req *req,
			      const struct irdma_qp_cmd *qp)
{
	begin(req, OP_CREATE_QP);
	put_qp(req, qp);
	put_qp_state(req, qp);
}

/**
 * irdma_cqp_prep_modify_qp() - change the state of a queue pair (op 0x01)
 * @dev: the device
 * @req: request to fill
 * @qp: the QP and what to change
 */
void irdma_cqp_prep_modify_qp(struct irdma_device *dev, struct irdma_cqp_req *req,
			      const struct irdma_qp_cmd *qp)
{
	begin(req, OP_MODIFY_QP);
	put_qp(req, qp);
	put_qp_state(req, qp);
	req->wqe[3] |= (qp->remove_hash ? QP_QW3_REMOVE_HASH : 0) |
		       (qp->reset_con ? QP_QW3_RESET_CON : 0);
	if (qp->new_mss) {
		req->wqe[1] |= FIELD_PREP(QP_QW1_NEW_MSS, qp->new_mss);
		req->wqe[3] |= QP_QW3_MSS_CHANGE;
	}
	if (qp->next_state == IRDMA_IW_TERMINATE) {
		req->wqe[3] |= FIELD_PREP(QP_QW3_TERM_ACT, qp->term_act);
		/* The field holds the low bits of a byte count (spec 01, appendix C 1). */
		if (qp->term_act == IRDMA_TERM_AND_FIN || qp->term_act == IRDMA_TERM_ONLY)
			req->wqe[1] |= FIELD_PREP(QP_QW1_TERM_LEN, qp->term_len & 0xf);
	}
}

/**
 * irdma_cqp_prep_destroy_qp() - destroy a queue pair (op 0x02)
 * @dev: the device
 * @req: request to fill
 * @qp: the QP: @qpn, @type, @context, @shadow and @remove_hash apply
 */
void irdma_cqp_prep_destroy_qp(struct irdma_device *dev, struct irdma_cqp_req *req,
			       const struct irdma_qp_cmd *qp)
{
	begin(req, OP_DESTROY_QP);
	put_qp(req, qp);
	req->wqe[3] |= qp->remove_hash ? QP_QW3_REMOVE_HASH : 0;
}

/**
 * irdma_cqp_prep_suspend_qp() - stop a QP from transmitting (op 0x29)
 * @dev: the device
 * @req: request to fill
 * @qpn: QP number; AE 0x0900 tells when it has stopped
 */
void irdma_cqp_prep_suspend_qp(struct irdma_device *dev, struct irdma_cqp_req *req, u32 qpn)
{
	begin(req, OP_SUSPEND_QP);
	req->wqe[3] |= FIELD_PREP(QP_QW3_QPN, qpn);
}

/**
 * irdma_cqp_prep_resume_qp() - let a suspended QP transmit again (op 0x2A)
 * @dev: the device
 * @req: request to fill
 * @qpn: QP number
 * @qs_handle: queue set that it transmits on from now on
 */
void irdma_cqp_prep_resume_qp(struct irdma_device *dev, struct irdma_cqp_req *req, u32 qpn,
			      u16 qs_handle)
{
	begin(req, OP_RESUME_QP);
	req->wqe[2] = FIELD_PREP(RESUME_QW2_QS_HANDLE, qs_handle);
	req->wqe[3] |= FIELD_PREP(QP_QW3_QPN, qpn);
}

/**
 * irdma_cqp_prep_flush() - flush work queues of a QP in error (op 0x22)
 * @dev: the device
 * @req: request to fill
 * @f: queues and codes; @req->minor tells afterwards what was flushed (spec 01, 4.5)
 */
void irdma_cqp_prep_flush(struct irdma_device *dev, struct irdma_cqp_req *req,
			  const struct irdma_flush_cmd *f)
{
	begin(req, OP_FLUSH);
	req->wqe[3] |= FIELD_PREP(QP_QW3_QPN, f->qpn) | FLUSH_QW3_USER_CODE;
	if (f->sq) {
		req->wqe[2] |= FIELD_PREP(FLUSH_QW2_SQ_MINOR, f->sq_minor) |
			       FIELD_PREP(FLUSH_QW2_SQ_MAJOR, FLUSH_MAJOR);
		req->wqe[3] |= FLUSH_QW3_SQ;
	}
	if (f->rq) {
		req->wqe[2] |= FIELD_PREP(FLUSH_QW2_RQ_MINOR, f->rq_minor) |
			       FIELD_PREP(FLUSH_QW2_RQ_MAJOR, FLUSH_MAJOR);
		req->wqe[3] |= FLUSH_QW3_RQ;
	}
}

/**
 * irdma_cqp_prep_gen_ae() - have hardware raise an asynchronous event of a QP (op 0x22)
 * @dev: the device
 * @req: request to fill
 * @qpn: QP number
 * @ae_code: event code (spec 01, 5.5)
 * @source: event source (spec 01, 5.2)
 */
void irdma_cqp_prep_gen_ae(struct irdma_device *dev, struct irdma_cqp_req *req, u32 qpn,
			   u16 ae_code, u8 source)
{
	begin(req, OP_FLUSH);
	req->wqe[1] = FIELD_PREP(FLUSH_QW1_AE_CODE, ae_code) |
		      FIELD_PREP(FLUSH_QW1_AE_SOURCE, source);
	req->wqe[3] |= FIELD_PREP(QP_QW3_QPN, qpn) | FLUSH_QW3_GENERATE_AE;
}

static void put_stag(struct irdma_device *dev, struct irdma_cqp_req *req,
		     const struct irdma_stag_cmd *s)
{
	req->wqe[1] = gen_field(dev->gen->stag_pd_mask, s->pd);
	req->wqe[2] = s->stag & STAG_QW2_INDEX;
	req->wqe[3] |= s->window ? 0 : STAG_QW3_MR;
}

/**
 * irdma_cqp_prep_alloc_stag() - allocate an STag in invalid state (op 0x09)
 * @dev: the device
 * @req: request to fill
 * @s: a region for fast registration of up to @len bytes, or a memory window
 */
void irdma_cqp_prep_alloc_stag(struct irdma_device *dev, struct irdma_cqp_req *req,
			       const struct irdma_stag_cmd *s)
{
	begin(req, OP_ALLOC_STAG);
	put_stag(dev, req, s);
	if (s->window) {
		req->wqe[3] |= s->mw_type1 ? STAG_QW3_MW_TYPE1 : 0;
		return;
	}
	req->wqe[1] |= FIELD_PREP(STAG_QW1_LEN, s->len);
	req->wqe[3] |= FIELD_PREP(STAG_QW3_PAGE_SIZE, s->page_size_code) | STAG_QW3_REMOTE;
}

/**
 * irdma_cqp_prep_reg_mr() - register memory; the STag is valid afterwards (op 0x0A)
 * @dev: the device
 * @req: request to fill
 * @s: the region; length 0 means all memory and is for kernel DMA regions only
 */
void irdma_cqp_prep_reg_mr(struct irdma_device *dev, struct irdma_cqp_req *req,
			   const struct irdma_stag_cmd *s)
{
	begin(req, OP_REG_MR);
	put_stag(dev, req, s);
	req->wqe[0] = s->va;
	req->wqe[1] |= FIELD_PREP(STAG_QW1_LEN, s->len);
	req->wqe[2] |= s->stag & STAG_QW2_KEY;
	if (s->pbl_level == IRDMA_PBL_NONE)
		req->wqe[4] = s->addr;
	else
		req->wqe[6] = FIELD_PREP(QW6_FIRST_PBLE, s->first_pble);
	req->wqe[3] |= FIELD_PREP(STAG_QW3_PBL_LEVEL, s->pbl_level) |
		       FIELD_PREP(STAG_QW3_PAGE_SIZE, s->page_size_code) |
		       FIELD_PREP(STAG_QW3_RIGHTS, s->rights) |
		       (s->remote ? STAG_QW3_REMOTE : 0) |
		       (s->va_based ? STAG_QW3_VA_BASED : 0);
}

/**
 * irdma_cqp_prep_dealloc_stag() - take an STag out of use (op 0x0D)
 * @dev: the device
 * @req: request to fill
 * @s: the region or window: @stag, @pd and @window apply
 */
void irdma_cqp_prep_dealloc_stag(struct irdma_device *dev, struct irdma_cqp_req *req,
				 const struct irdma_stag_cmd *s)
{
	begin(req, OP_DEALLOC_STAG);
	put_stag(dev, req, s);
}

/**
 * irdma_cqp_prep_arp() - set or clear an entry of the neighbour table (op 0x0F)
 * @dev: the device
 * @req: request to fill
 * @idx: entry, 1..limits.arps - 1
 * @mac: link address of the neighbour, used if @add
 * @add: set, else clear
 */
void irdma_cqp_prep_arp(struct irdma_device *dev, struct irdma_cqp_req *req, u16 idx,
			const u8 *mac, bool add)
{
	begin(req, OP_MANAGE_ARP);
	req->wqe[3] |= FIELD_PREP(ARP_QW3_INDEX, idx);
	if (add) {
		req->wqe[2] = ether_addr_to_u64(mac);
		req->wqe[3] |= ARP_QW3_VALID | ARP_QW3_PERMANENT;
	}
}

/**
 * irdma_cqp_prep_apbvt() - add or remove a local TCP port of the protocol engine (op 0x23)
 * @dev: the device
 * @req: request to fill
 * @port: port, host order
 * @add: add, else remove
 */
void irdma_cqp_prep_apbvt(struct irdma_device *dev, struct irdma_cqp_req *req, u16 port, bool add)
{
	begin(req, OP_MANAGE_APBVT);
	req->wqe[2] = FIELD_PREP(APBVT_QW2_PORT, port);
	req->wqe[3] |= add ? APBVT_QW3_ADD : 0;
}

/* IP address @ip into two words; hardware's first word is the last of an IPv6 address. */
static void put_ip(u64 *wqe, unsigned int low, const u32 *ip, bool ipv4)
{
	if (ipv4) {
		wqe[low] = FIELD_PREP(LOW_WORD, ip[0]);
		return;
	}
	wqe[low] = FIELD_PREP(HIGH_WORD, ip[2]) | FIELD_PREP(LOW_WORD, ip[3]);
	wqe[low + 1] = FIELD_PREP(HIGH_WORD, ip[0]) | FIELD_PREP(LOW_WORD, ip[1]);
}

/**
 * irdma_cqp_prep_qhash() - add or delete a quad-hash entry (op 0x25)
 * @dev: the device
 * @req: request to fill
 * @q: the entry; to delete it, all fields as it was added with
 * @add: add, else delete
 */
void irdma_cqp_prep_qhash(struct irdma_device *dev, struct irdma_cqp_req *req,
			  const struct irdma_qhash_cmd *q, bool add)
{
	begin(req, OP_MANAGE_QHASH);
	req->wqe[0] = ether_addr_to_u64(q->mac);
	req->wqe[1] = FIELD_PREP(QHASH_QW1_LOCAL_PORT, q->local_port) |
		      FIELD_PREP(QHASH_QW1_QPN, q->qpn);
	req->wqe[2] = FIELD_PREP(QHASH_QW2_QS_HANDLE, q->qs_handle);
	put_ip(req->wqe, 6, q->local_ip, q->ipv4);
	if (q->type == IRDMA_QHASH_TCP_ESTABLISHED) {
		req->wqe[1] |= FIELD_PREP(QHASH_QW1_REMOTE_PORT, q->remote_port);
		put_ip(req->wqe, 4, q->remote_ip, q->ipv4);
	}
	req->wqe[3] |= FIELD_PREP(QHASH_QW3_TYPE, q->type) |
		       FIELD_PREP(QHASH_QW3_MANAGE, add ? 1 : 0) |
		       (q->ipv4 ? QHASH_QW3_IPV4 : 0);
	if (q->vlan != QHASH_NO_VLAN) {
		req->wqe[2] |= FIELD_PREP(QHASH_QW2_VLAN, q->vlan & 0xfff);
		req->wqe[3] |= QHASH_QW3_VLAN_VALID;
	}
}

static void put_ah(struct irdma_cqp_req *req, const struct irdma_ah_cmd *ah)
{
	req->wqe[0] = FIELD_PREP(AH_QW0_SRC_MAC, ether_addr_to_u64(ah->src_mac));
	req->wqe[1] = FIELD_PREP(AH_QW1_VLAN_TAG, ah->vlan_tag) |
		      FIELD_PREP(AH_QW1_TOS, ah->tos) |
		      FIELD_PREP(AH_QW1_PD_LOW, ah->pd & 0xffff);
	req->wqe[2] = FIELD_PREP(AH_QW2_FLOW_LABEL, ah->flow_label) |
		      FIELD_PREP(AH_QW2_PD_HIGH, ah->pd >> 16) |
		      FIELD_PREP(AH_QW2_TTL, ah->ttl) |
		      FIELD_PREP(AH_QW2_ARP_INDEX, ah->arp_idx);
	put_ip(req->wqe, 4, ah->dst_ip, ah->ipv4);
	put_ip(req->wqe, 6, ah->src_ip, ah->ipv4);
	req->wqe[3] |= FIELD_PREP(AH_QW3_AH, ah->ah) |
		       (ah->ipv4 ? AH_QW3_IPV4 : 0) |
		       (ah->insert_vlan ? AH_QW3_INSERT_VLAN : 0) |
		       (ah->loopback ? AH_QW3_LOOPBACK : 0);
}

/**
 * irdma_cqp_prep_create_ah() - create an address handle (op 0x1C, E810)
 * @dev: the device
 * @req: request to fill; @req->retval other than 0 tells that it was not created
 * @ah: the address handle
 */
void irdma_cqp_prep_create_ah(struct irdma_device *dev, struct irdma_cqp_req *req,
			      const struct irdma_ah_cmd *ah)
{
	begin(req, OP_CREATE_AH);
	put_ah(req, ah);
}

/**
 * irdma_cqp_prep_destroy_ah() - destroy an address handle (op 0x1E, E810)
 * @dev: the device
 * @req: request to fill
 * @ah: the address handle as it was created
 */
void irdma_cqp_prep_destroy_ah(struct irdma_device *dev, struct irdma_cqp_req *req,
			       const struct irdma_ah_cmd *ah)
{
	begin(req, OP_DESTROY_AH);
	put_ah(req, ah);
}

/**
 * irdma_cqp_prep_gather_stats() - write the function's counters to memory (op 0x2E, E810)
 * @dev: the device
 * @req: request to fill
 * @buf: bus address of 1024 bytes, laid out as spec 01, 7.5
 */
void irdma_cqp_prep_gather_stats(struct irdma_device *dev, struct irdma_cqp_req *req,
				 dma_addr_t buf)
{
	begin(req, OP_GATHER_STATS);
	req->wqe[4] = buf;
}

static void put_eq(struct irdma_cqp_req *req, const struct irdma_eq_cmd *eq)
{
	req->wqe[2] = eq->entries;
	if (eq->virt) {
		req->wqe[6] = FIELD_PREP(QW6_FIRST_PBLE, eq->first_pble);
		req->wqe[3] |= FIELD_PREP(EQ_QW3_PBL_LEVEL, IRDMA_PBL_ONE_LEVEL) | EQ_QW3_VIRTUAL;
	}
}

/**
 * irdma_cqp_prep_create_ceq() - create a completion event queue (op 0x16)
 * @dev: the device
 * @req: request to fill
 * @eq: the queue
 */
void irdma_cqp_prep_create_ceq(struct irdma_device *dev, struct irdma_cqp_req *req,
			       const struct irdma_eq_cmd *eq)
{
	begin(req, OP_CREATE_CEQ);
	put_eq(req, eq);
	req->wqe[3] |= FIELD_PREP(EQ_QW3_CEQN, eq->id);
	req->wqe[4] = eq->virt ? 0 : eq->ring;
	req->wqe[7] = FIELD_PREP(QW7_VSI, dev->lan->vsi);
}

/**
 * irdma_cqp_prep_destroy_ceq() - destroy a completion event queue (op 0x18)
 * @dev: the device
 * @req: request to fill
 * @eq: the queue as it was created
 */
void irdma_cqp_prep_destroy_ceq(struct irdma_device *dev, struct irdma_cqp_req *req,
				const struct irdma_eq_cmd *eq)
{
	begin(req, OP_DESTROY_CEQ);
	put_eq(req, eq);
	req->wqe[3] |= FIELD_PREP(EQ_QW3_CEQN, eq->id);
}

/**
 * irdma_cqp_prep_create_aeq() - create the asynchronous event queue (op 0x19)
 * @dev: the device
 * @req: request to fill
 * @eq: the queue
 */
void irdma_cqp_prep_create_aeq(struct irdma_device *dev, struct irdma_cqp_req *req,
			       const struct irdma_eq_cmd *eq)
{
	begin(req, OP_CREATE_AEQ);
	put_eq(req, eq);
	req->wqe[4] = eq->virt ? 0 : eq->ring;
}

/**
 * irdma_cqp_prep_destroy_aeq() - destroy the asynchronous event queue (op 0x1B)
 * @dev: the device
 * @req: request to fill
 * @eq: the queue as it was created
 */
void irdma_cqp_prep_destroy_aeq(struct irdma_device *dev, struct irdma_cqp_req *req,
				const struct irdma_eq_cmd *eq)
{
	begin(req, OP_DESTROY_AEQ);
	put_eq(req, eq);
}

/**
 * irdma_cqp_prep_update_sds() - write segment descriptors (op 0x1F)
 * @dev: the device
 * @req: request to fill
 * @sds: descriptors
 * @count: 1..IRDMA_SDS_PER_CMD
 * @overflow: IRDMA_SD_OVERFLOW_SIZE bytes for those that the entry has no room for; must stay
 *	untouched until the command has completed
 * @overflow_addr: its bus address, aligned to its size
 */
void irdma_cqp_prep_update_sds(struct irdma_device *dev, struct irdma_cqp_req *req,
			       const struct irdma_sd_entry *sds, unsigned int count,
			       __le64 *overflow, dma_addr_t overflow_addr)
{
	static const u8 word[SDS_IN_WQE] = { 0, 4, 6 };
	unsigned int i;

	begin(req, OP_UPDATE_SDS);
	req->wqe[2] = FIELD_PREP(QW2_HMC_FUNCTION, dev->lan->pf_id);
	for (i = 0; i < count && i < SDS_IN_WQE; i++) {
		/* The first entry has no valid bit: there is always one. */
		req->wqe[word[i]] = sds[i].cmd | (i ? SDS_ENTRY_VALID : 0);
		req->wqe[word[i] + 1] = sds[i].data;
	}
	if (count <= SDS_IN_WQE)
		return;
	for (i = 0; i < count - SDS_IN_WQE; i++) {
		overflow[2 * i] = cpu_to_le64(sds[SDS_IN_WQE + i].cmd);
		overflow[2 * i + 1] = cpu_to_le64(sds[SDS_IN_WQE + i].data);
	}
	req->wqe[2] |= overflow_addr & SDS_QW2_OVERFLOW;
	req->wqe[3] |= FIELD_PREP(SDS_QW3_OVERFLOW_COUNT, count - SDS_IN_WQE);
}

/**
 * irdma_cqp_prep_query_fpm() - ask for the limits of the host memory cache (op 0x20)
 * @dev: the device
 * @req: request to fill
 * @buf: bus address of the answer, laid out as spec 02, 1.2
 */
void irdma_cqp_prep_query_fpm(struct irdma_device *dev, struct irdma_cqp_req *req, dma_addr_t buf)
{
	begin(req, OP_QUERY_FPM);
	req->wqe[2] = FIELD_PREP(QW2_HMC_FUNCTION, dev->lan->pf_id);
	req->wqe[4] = buf;
}

/**
 * irdma_cqp_prep_commit_fpm() - settle the object counts of the host memory cache (op 0x21)
 * @dev: the device
 * @req: request to fill
 * @buf: bus address of the counts, laid out as spec 02, 1.3; hardware adds the bases
 * @size: bytes at @buf
 */
void irdma_cqp_prep_commit_fpm(struct irdma_device *dev, struct irdma_cqp_req *req,
			       dma_addr_t buf, u32 size)
{
	begin(req, OP_COMMIT_FPM);
	req->wqe[2] = FIELD_PREP(QW2_HMC_FUNCTION, dev->lan->pf_id);
	req->wqe[4] = buf;
	req->wqe[3] |= FIELD_PREP(QW3_BUFFER_SIZE, size);
}

/**
 * irdma_cqp_prep_pages_allocated() - let hardware use the host memory cache (op 0x2B)
 * @dev: the device
 * @req: request to fill
 */
void irdma_cqp_prep_pages_allocated(struct irdma_device *dev, struct irdma_cqp_req *req)
{
	begin(req, OP_PAGES_ALLOCATED);
	req->wqe[2] = FIELD_PREP(QW2_HMC_FUNCTION, dev->lan->pf_id);
}

/**
 * irdma_cqp_prep_query_features() - ask for firmware version and features (op 0x12, E810)
 * @dev: the device
 * @req: request to fill
 * @buf: bus address of the answer, records of 8 bytes (spec 01, 3.6)
 * @size: bytes at @buf
 */
void irdma_cqp_prep_query_features(struct irdma_device *dev, struct irdma_cqp_req *req,
				   dma_addr_t buf, u32 size)
{
	begin(req, OP_QUERY_FEATURES);
	req->wqe[4] = buf;
	req->wqe[3] |= FIELD_PREP(QW3_BUFFER_SIZE, size);
}
