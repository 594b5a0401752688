/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The control queue pair (spec 01 section 4).  A command is prepared in a request that
 * its caller owns by one irdma_cqp_prep_*() function a command, then either executed
 * (irdma_cqp_exec(), sleeps) or submitted (irdma_cqp_submit(), any context, never fails:
 * the ring's overflow is a list of the requests themselves, so no path allocates).
 */
#ifndef IRDMA_CQP_H
#define IRDMA_CQP_H

#include <linux/list.h>
#include <linux/types.h>

struct irdma_device;
struct irdma_cqp_req;

typedef void (*irdma_cqp_done_fn)(struct irdma_device *dev, struct irdma_cqp_req *req);

/**
 * struct irdma_cqp_req - one command; owned by the caller until @done ran or exec returned
 * @wqe: the 64-byte entry without its valid bit, host order, QW3 holds the opcode
 * @context: context of a queue pair, IRDMA_QPC_WORDS long, which is copied to the ring; NULL if
 *	the command has none
 * @done: called once from a tasklet, also with @status -ENODEV when the device is dead; may
 *	free @req
 * @status: 0 or a negative errno: -EBUSY invalid state, -EIO error, -ETIMEDOUT, -ENODEV device dead
 * @retval: operation return value
 * @major: major error code
 * @minor: minor code, valid without error too (flush)
 */
struct irdma_cqp_req {
	u64 wqe[8];
	const __le64 *context;
	irdma_cqp_done_fn done;
	int status;
	u32 retval;
	u16 major;
	u16 minor;
	/* private: to cqp.c */
	bool finished;
	struct list_head entry;
};

int irdma_cqp_exec(struct irdma_device *dev, struct irdma_cqp_req *req);
void irdma_cqp_submit(struct irdma_device *dev, struct irdma_cqp_req *req, irdma_cqp_done_fn done);
/* Returns when every command submitted before the call has completed. Sleeps. */
void irdma_cqp_flush_submitted(struct irdma_device *dev);

/**
 * struct irdma_cq_cmd - CQ as create, modify (resize) and destroy need it (spec 02, 6.3)
 * @cqn: number, also used as CQ context
 * @size: slots of 32 bytes
 * @ceqn: CEQ number
 * @threshold: shadow read threshold, slots
 * @ring: bus address, used if @pbl_level is 0
 * @shadow: bus address of the 64-byte shadow area
 * @first_pble: index of the list, used if @pbl_level is 1
 * @pbl_level: 0 contiguous, 1 one-level list
 * @check_overflow: raise AE 0x0203 on overflow
 * @ceqe_mask: one unacknowledged event at a time
 */
struct irdma_cq_cmd {
	u32 cqn;
	u32 size;
	u32 ceqn;
	u32 threshold;
	dma_addr_t ring;
	dma_addr_t shadow;
	u32 first_pble;
	u8 pbl_level;
	bool check_overflow;
	bool ceqe_mask;
};

void irdma_cqp_prep_create_cq(struct irdma_device *dev, struct irdma_cqp_req *req,
			      const struct irdma_cq_cmd *cq);
void irdma_cqp_prep_resize_cq(struct irdma_device *dev, struct irdma_cqp_req *req,
			      const struct irdma_cq_cmd *cq);
void irdma_cqp_prep_destroy_cq(struct irdma_device *dev, struct irdma_cqp_req *req,
			       const struct irdma_cq_cmd *cq);

/* Hardware (iWARP) states of a QP, field NEXTIWSTATE (spec 02, 4.6). */
enum irdma_iw_state {
	IRDMA_IW_INVALID	= 0,
	IRDMA_IW_IDLE		= 1,
	IRDMA_IW_RTS		= 2,
	IRDMA_IW_CLOSING	= 3,
	IRDMA_IW_TERMINATE	= 5,
	IRDMA_IW_ERROR		= 6,
};

enum irdma_qp_type {
	IRDMA_QP_IWARP	= 1,
	IRDMA_QP_UDA	= 2,
};

enum irdma_term_act {
	IRDMA_TERM_AND_FIN	= 0,
	IRDMA_TERM_ONLY		= 1,
	IRDMA_TERM_FIN_ONLY	= 2,
	IRDMA_TERM_NOTHING	= 3,
};

/* operands of create, modify and destroy QP (spec 02, 4.5) */
struct irdma_qp_cmd {
	u32 qpn;
	enum irdma_qp_type type;
	const __le64 *context;	/* valid as long as the request */
	dma_addr_t shadow;
	enum irdma_iw_state next_state;
	enum irdma_term_act term_act;
	u8 term_len;
	u16 new_mss;		/* non-zero: change the MSS */
	bool ord_valid;
	bool tcp_valid;
	bool virt_queues;	/* SQ and RQ addresses are PBLE indexes */
	bool cqnum_valid;
	bool mac_valid;
	bool remove_hash;
	bool reset_con;
	bool arp_valid;
};

void irdma_cqp_prep_create_qp(struct irdma_device *dev, struct irdma_cqp_req *req,
			      const struct irdma_qp_cmd *qp);
void irdma_cqp_prep_modify_qp(struct irdma_device *dev, struct irdma_cqp_req *req,
			      const struct irdma_qp_cmd *qp);
void irdma_cqp_prep_destroy_qp(struct irdma_device *dev, struct irdma_cqp_req *req,
			       const struct irdma_qp_cmd *qp);
void irdma_cqp_prep_suspend_qp(struct irdma_device *dev, struct irdma_cqp_req *req, u32 qpn);
void irdma_cqp_prep_resume_qp(struct irdma_device *dev, struct irdma_cqp_req *req, u32 qpn,
			      u16 qs_handle);

/* which queues of a QP to flush, with which codes (spec 01, 4.8 op 0x22) */
struct irdma_flush_cmd {
	u32 qpn;
	bool sq;
	bool rq;
	u16 sq_minor;
	u16 rq_minor;
};

void irdma_cqp_prep_flush(struct irdma_device *dev, struct irdma_cqp_req *req,
			  const struct irdma_flush_cmd *f);
void irdma_cqp_prep_gen_ae(struct irdma_device *dev, struct irdma_cqp_req *req, u32 qpn,
			   u16 ae_code, u8 source);

/* memory region or window (spec 02, 3.4) */
struct irdma_stag_cmd {
	u32 stag;		/* index << 8 | key */
	u32 pd;
	u64 len;		/* bytes */
	u64 va;			/* VA-based: first address; zero-based: offset in the first page */
	dma_addr_t addr;	/* used if @pbl_level is 0 */
	u8 pbl_level;		/* LPBLSIZE: 0, 1 or 3 */
	u32 first_pble;
	u8 page_size_code;	/* HPAGESIZE: 0 4 KiB, 1 2 MiB, 2 1 GiB */
	u8 rights;		/* IRDMA_STAG_* */
	bool remote;		/* remote access enabled */
	bool va_based;
	bool window;		/* a memory window, not a region */
	bool mw_type1;
};

void irdma_cqp_prep_alloc_stag(struct irdma_device *dev, struct irdma_cqp_req *req,
			       const struct irdma_stag_cmd *s);
void irdma_cqp_prep_reg_mr(struct irdma_device *dev, struct irdma_cqp_req *req,
			   const struct irdma_stag_cmd *s);
void irdma_cqp_prep_dealloc_stag(struct irdma_device *dev, struct irdma_cqp_req *req,
				 const struct irdma_stag_cmd *s);

/* MAC addresses are six bytes in wire order; IP addresses four host-order words, IPv4 in ip[0]. */
void irdma_cqp_prep_arp(struct irdma_device *dev, struct irdma_cqp_req *req, u16 idx,
			const u8 *mac, bool add);
void irdma_cqp_prep_apbvt(struct irdma_device *dev, struct irdma_cqp_req *req, u16 port, bool add);

enum irdma_qhash_type {
	IRDMA_QHASH_TCP_ESTABLISHED	= 1,
	IRDMA_QHASH_TCP_SYN		= 2,
};

/* a quad-hash entry (spec 01, 4.8 op 0x25) */
struct irdma_qhash_cmd {
	enum irdma_qhash_type type;
	u32 qpn;		/* receiver */
	u16 qs_handle;
	u16 vlan;		/* 0xFFFF: none */
	bool ipv4;
	u8 mac[6];
	u32 local_ip[4];
	u32 remote_ip[4];	/* established entries only */
	u16 local_port;
	u16 remote_port;	/* established entries only */
};

void irdma_cqp_prep_qhash(struct irdma_device *dev, struct irdma_cqp_req *req,
			  const struct irdma_qhash_cmd *q, bool add);

/* address handle (spec 02, 5.10) */
struct irdma_ah_cmd {
	u32 ah;
	u32 pd;
	u16 arp_idx;
	u16 vlan_tag;
	bool insert_vlan;
	bool ipv4;
	bool loopback;
	u8 tos;
	u8 ttl;
	u32 flow_label;
	u8 src_mac[6];
	u32 src_ip[4];
	u32 dst_ip[4];
};

void irdma_cqp_prep_create_ah(struct irdma_device *dev, struct irdma_cqp_req *req,
			      const struct irdma_ah_cmd *ah);
void irdma_cqp_prep_destroy_ah(struct irdma_device *dev, struct irdma_cqp_req *req,
			       const struct irdma_ah_cmd *ah);
void irdma_cqp_prep_gather_stats(struct irdma_device *dev, struct irdma_cqp_req *req,
				 dma_addr_t buf);

/*
 * For bring-up and teardown (hw.c, events.c, hmc.c).
 */

/* How completions are found; only irdma_hw_start() and irdma_hw_stop() change it. */
enum irdma_cqp_mode {
	IRDMA_CQP_POLL_TAIL,	/* no CCQ yet: watch PFPE_CQPTAIL */
	IRDMA_CQP_POLL_CCQ,	/* CCQ without interrupt */
	IRDMA_CQP_INTERRUPT,
};

int irdma_cqp_start(struct irdma_device *dev);
void irdma_cqp_stop(struct irdma_device *dev);
int irdma_ccq_start(struct irdma_device *dev);
void irdma_ccq_stop(struct irdma_device *dev);
int irdma_ccq_interrupts_start(struct irdma_device *dev);
void irdma_ccq_interrupts_stop(struct irdma_device *dev);
void irdma_cqp_check(struct irdma_device *dev);
void irdma_cqp_fail_all(struct irdma_device *dev);
bool irdma_cqp_is_qp_op(const struct irdma_cqp_req *req);
u8 irdma_cqp_op(const struct irdma_cqp_req *req);
const char *irdma_cqp_op_name(const struct irdma_cqp_req *req);

/**
 * struct irdma_eq_cmd - CEQ or AEQ (spec 01, 4.8 ops 0x16 to 0x1B)
 * @id: CEQ number; 0 for the AEQ
 * @entries: size of the ring
 * @ring: bus address, used if @virt is not set
 * @virt: the ring is a one-level list of pages
 * @first_pble: index of that list
 */
struct irdma_eq_cmd {
	u32 id;
	u32 entries;
	dma_addr_t ring;
	bool virt;
	u32 first_pble;
};

void irdma_cqp_prep_create_ceq(struct irdma_device *dev, struct irdma_cqp_req *req,
			       const struct irdma_eq_cmd *eq);
void irdma_cqp_prep_destroy_ceq(struct irdma_device *dev, struct irdma_cqp_req *req,
				const struct irdma_eq_cmd *eq);
void irdma_cqp_prep_create_aeq(struct irdma_device *dev, struct irdma_cqp_req *req,
			       const struct irdma_eq_cmd *eq);
void irdma_cqp_prep_destroy_aeq(struct irdma_device *dev, struct irdma_cqp_req *req,
				const struct irdma_eq_cmd *eq);

/* a segment descriptor as UPDATE_PE_SDS takes it (spec 02, 1.5) */
struct irdma_sd_entry {
	u64 cmd;
	u64 data;
};

#define IRDMA_SDS_PER_CMD	11
#define IRDMA_SD_OVERFLOW_SIZE	128	/* bytes, also the alignment */

void irdma_cqp_prep_update_sds(struct irdma_device *dev, struct irdma_cqp_req *req,
			       const struct irdma_sd_entry *sds, unsigned int count,
			       __le64 *overflow, dma_addr_t overflow_addr);
void irdma_cqp_prep_query_fpm(struct irdma_device *dev, struct irdma_cqp_req *req, dma_addr_t buf);
void irdma_cqp_prep_commit_fpm(struct irdma_device *dev, struct irdma_cqp_req *req,
			       dma_addr_t buf, u32 size);
void irdma_cqp_prep_pages_allocated(struct irdma_device *dev, struct irdma_cqp_req *req);
void irdma_cqp_prep_query_features(struct irdma_device *dev, struct irdma_cqp_req *req,
				   dma_addr_t buf, u32 size);

#endif
