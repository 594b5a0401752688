/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What an error event means to the peer (terminate message), to the work request that caused
 * it (flush code) and to the consumer (asynchronous event): spec 01, 5.5 and 5.6; spec 02,
 * 4.7.  Pure, also compiled in user space (tests/unit).
 */
#ifndef IRDMA_QP_TERM_H
#define IRDMA_QP_TERM_H

#include <linux/types.h>

#define IRDMA_Q2_FRAME		72	/* offset of the offending frame in the Q2 buffer */
#define IRDMA_TERM_MAX		72	/* bytes of a terminate message in the Q2 buffer */

/**
 * struct irdma_term_info - what an error event amounts to
 * @layer_type: first byte of the terminate message
 * @code: second byte
 * @flush_code: enum irdma_flush_code of the work request that caused it
 * @access_event: the consumer's event is an access error, otherwise a fatal one
 */
struct irdma_term_info {
	u8 layer_type;
	u8 code;
	u8 flush_code;
	bool access_event;
};

/* What the QP does about an event (spec 01, 5.4). */
enum irdma_ae_reaction {
	IRDMA_AE_NOTHING,
	IRDMA_AE_ESTABLISHED,
	IRDMA_AE_FIN,
	IRDMA_AE_CLOSED,
	IRDMA_AE_ERROR_CLOSE,
	IRDMA_AE_RESET,
	IRDMA_AE_TERM_SENT,
	IRDMA_AE_TERM_RECEIVED,
	IRDMA_AE_ABNORMAL,
};

enum irdma_ae_reaction irdma_ae_reaction(u16 ae_code);
void irdma_term_info(u16 ae_code, const u8 *q2, u32 q2_size, bool q2_data,
		     struct irdma_term_info *info);
u32 irdma_term_build(u8 *q2, u32 q2_size, bool q2_data, const struct irdma_term_info *info);
u16 irdma_term_check(const u8 *q2, u32 q2_size, bool *finished);

#endif
