/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The host context of a queue pair: 32 words that the device reads when a QP is created or
 * modified (spec 02, 4.2).  Pure, also compiled in user space (tests/unit).
 */
#ifndef IRDMA_QPC_H
#define IRDMA_QPC_H

#include <linux/types.h>

#include "stream.h"

#define IRDMA_QPC_WORDS		32
#define IRDMA_QPC_NO_RQ_IDX	(-1)

/**
 * struct irdma_qpc - what the context of an iWARP QP is built from
 * @context: completion context
 * @sq_addr: bus address or PBLE index of the SQ
 * @rq_addr: bus address or PBLE index of the RQ
 * @q2_addr: bus address of the Q2 buffer, 256-byte aligned
 * @pd: PD number
 * @send_cqn: CQ of the SQ
 * @recv_cqn: CQ of the RQ
 * @qs_handle: transmit queue set
 * @exception_qpn: QP that gets frames the hardware cannot place
 * @src_mac: source MAC, wire order; NULL: the hardware has a table of them (X722)
 * @sq_size_code: log2(quanta) - 2
 * @rq_size_code: log2(quanta) - 2
 * @rq_shift: log2 of the quanta of an RQ entry
 * @ib_reads: reads carry lists of buffers (E810)
 * @privileged: may use STag 0 and fast register
 * @write_ok: accept remote writes and read responses
 * @read_ok: accept remote reads
 * @err_rq_idx: RQ entry that failed, or IRDMA_QPC_NO_RQ_IDX
 * @tcp: the stream, NULL if there is none yet
 * @lsmm_len: bytes of the last streaming-mode message that the device will send
 */
struct irdma_qpc {
	u64 context;
	u64 sq_addr;
	u64 rq_addr;
	u64 q2_addr;
	u32 pd;
	u32 send_cqn;
	u32 recv_cqn;
	u16 qs_handle;
	u16 exception_qpn;
	const u8 *src_mac;
	u8 sq_size_code;
	u8 rq_size_code;
	u8 rq_shift;
	bool ib_reads;
	bool privileged;
	bool write_ok;
	bool read_ok;
	int err_rq_idx;
	const struct irdma_tcp_ctx *tcp;
	u32 lsmm_len;
};

u8 irdma_qpc_ird_code(u32 ird);
void irdma_qpc_build(__le64 *ctx, const struct irdma_qpc *qpc);

#endif
