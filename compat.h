/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Differences between the kernels that this driver is built for (6.1 to 7.3).  The
 * IRDMA_HAVE_* macros are answers of scripts/kapi about the target kernel's headers; they
 * are used here and nowhere else, with the exception of ice_if.c.  The rest of the driver
 * is written for the newest form.
 */
#ifndef IRDMA_COMPAT_H
#define IRDMA_COMPAT_H

#include <linux/timer.h>
#include <rdma/ib_verbs.h>

#include "kapi.h"

#ifndef IRDMA_HAVE_CRC32_CRC32C
#define crc32c(crc, data, len)	__crc32c_le(crc, data, len)
#endif

#ifndef IRDMA_HAVE_TIMER_DELETE
#define timer_delete(t)		del_timer(t)
#define timer_delete_sync(t)	del_timer_sync(t)
#endif

#ifndef IRDMA_HAVE_TIMER_CONTAINER_OF
#define timer_container_of(var, timer, field)	from_timer(var, timer, field)
#endif

#ifndef IRDMA_HAVE_UMEM_GET_VA
#define ib_umem_get_va(device, addr, size, access)	ib_umem_get(device, addr, size, access)
#endif

/*
 * Verbs whose arguments differ.  A verb is defined as
 *	int irdma_create_cq(IRDMA_CREATE_CQ_ARGS)
 * and finds its user data in the variable that the macro for it names.
 */
#if defined(IRDMA_HAVE_CREATE_CQ_ATTRS)
#define IRDMA_CREATE_CQ_ARGS	struct ib_cq *ibcq, const struct ib_cq_init_attr *attr, \
				struct uverbs_attr_bundle *attrs
#define IRDMA_CREATE_CQ_UDATA	(attrs ? &attrs->driver_udata : NULL)
#else
#define IRDMA_CREATE_CQ_ARGS	struct ib_cq *ibcq, const struct ib_cq_init_attr *attr, \
				struct ib_udata *udata
#define IRDMA_CREATE_CQ_UDATA	udata
#endif

#if defined(IRDMA_HAVE_CREATE_USER_CQ)
#define IRDMA_CREATE_USER_CQ_OP	.create_user_cq = irdma_create_cq,
#else
#define IRDMA_CREATE_USER_CQ_OP
#endif

#if defined(IRDMA_HAVE_RESIZE_USER_CQ)
#define IRDMA_RESIZE_CQ_ARGS	struct ib_cq *ibcq, unsigned int entries, struct ib_udata *udata
#define IRDMA_RESIZE_CQ_OP	resize_user_cq
#else
#define IRDMA_RESIZE_CQ_ARGS	struct ib_cq *ibcq, int entries, struct ib_udata *udata
#define IRDMA_RESIZE_CQ_OP	resize_cq
#endif

#if defined(IRDMA_HAVE_REG_USER_MR_DMAH)
#define IRDMA_REG_USER_MR_ARGS	struct ib_pd *ibpd, u64 start, u64 len, u64 virt, int access, \
				struct ib_dmah *dmah, struct ib_udata *udata
#define IRDMA_REG_USER_MR_DMAH	dmah
#else
#define IRDMA_REG_USER_MR_ARGS	struct ib_pd *ibpd, u64 start, u64 len, u64 virt, int access, \
				struct ib_udata *udata
#define IRDMA_REG_USER_MR_DMAH	NULL
#endif

#if defined(IRDMA_HAVE_REG_USER_MR_DMAH)
#define IRDMA_REG_USER_MR_DMABUF_ARGS	struct ib_pd *ibpd, u64 offset, u64 len, u64 virt, int fd, \
					int access, struct ib_dmah *dmah, \
					struct uverbs_attr_bundle *attrs
#define IRDMA_REG_USER_MR_DMABUF_DMAH	dmah
#elif defined(IRDMA_HAVE_DMABUF_MR_ATTRS)
#define IRDMA_REG_USER_MR_DMABUF_ARGS	struct ib_pd *ibpd, u64 offset, u64 len, u64 virt, int fd, \
					int access, struct uverbs_attr_bundle *attrs
#define IRDMA_REG_USER_MR_DMABUF_DMAH	NULL
#else
#define IRDMA_REG_USER_MR_DMABUF_ARGS	struct ib_pd *ibpd, u64 offset, u64 len, u64 virt, int fd, \
					int access, struct ib_udata *udata
#define IRDMA_REG_USER_MR_DMABUF_DMAH	NULL
#endif

/*
 * The kernel's own driver used to name some counters with a prefix, until the release that
 * also gave it shared receive queues; what reads its counters shall find them here.
 */
#ifdef IRDMA_HAVE_IRDMA_SRQ_ABI
#define IRDMA_TCP_COUNTER(name)		name
#define IRDMA_IW_COUNTER(name)		name
#else
#define IRDMA_TCP_COUNTER(name)		"tcp" name
#define IRDMA_IW_COUNTER(name)		"iw" name
#endif

/* Newer cores watch the net device and raise the port events themselves. */
#if defined(IRDMA_HAVE_PORT_STATE_EVENT)
#define IRDMA_CORE_SENDS_PORT_EVENTS	true
#else
#define IRDMA_CORE_SENDS_PORT_EVENTS	false
#endif

#endif
