/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Tracepoints of connections (trace system "irdma"): every change of state, every TCP
 * segment in and out, every event for iw_cm, every dropped frame with its reason.
 *
 *	trace-cmd record -e irdma ...
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM irdma

#if !defined(IRDMA_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define IRDMA_TRACE_H

#include <linux/tracepoint.h>

#include "cm.h"

#ifndef IRDMA_TRACE_FUNCS
#define IRDMA_TRACE_FUNCS
void irdma_trace_state(const struct irdma_cm_node *node, u8 from, u8 to);
void irdma_trace_frame(const struct irdma_cm_node *node, bool sent, const u8 *tcp, u32 len);
void irdma_trace_upcall(const struct irdma_cm_node *node, const struct iw_cm_id *cm_id,
			const struct iw_cm_event *event, int result);
void irdma_trace_drop(const struct irdma_cm_core *core, const struct irdma_cm_rx *rx,
		      enum irdma_cm_drop reason);
void irdma_trace_ip(u8 *bytes, bool ipv4, const u32 *ip);
#endif

/*
 * User space formats the events by itself, so what TP_printk() says uses nothing but what
 * trace-cmd knows.  An IPv4 address stands in its mapped form, ::ffff:a.b.c.d.
 */
#define irdma_cm_states(EM, EMe) \
	EM(IRDMA_CM_STATE_CLOSED, "CLOSED") \
	EM(IRDMA_CM_STATE_SETUP, "SETUP") \
	EM(IRDMA_CM_STATE_SYN_SENT, "SYN_SENT") \
	EM(IRDMA_CM_STATE_SYN_RCVD, "SYN_RCVD") \
	EM(IRDMA_CM_STATE_ESTABLISHED, "ESTABLISHED") \
	EM(IRDMA_CM_STATE_MPAREQ_SENT, "MPAREQ_SENT") \
	EM(IRDMA_CM_STATE_MPAREQ_RCVD, "MPAREQ_RCVD") \
	EM(IRDMA_CM_STATE_HANDOVER, "HANDOVER") \
	EM(IRDMA_CM_STATE_OFFLOADED, "OFFLOADED") \
	EM(IRDMA_CM_STATE_MPAREJ_RCVD, "MPAREJ_RCVD") \
	EM(IRDMA_CM_STATE_FIN_WAIT1, "FIN_WAIT1") \
	EM(IRDMA_CM_STATE_FIN_WAIT2, "FIN_WAIT2") \
	EM(IRDMA_CM_STATE_CLOSING, "CLOSING") \
	EM(IRDMA_CM_STATE_LAST_ACK, "LAST_ACK") \
	EMe(IRDMA_CM_STATE_TIME_WAIT, "TIME_WAIT")

#define irdma_cm_drops(EM, EMe) \
	EM(IRDMA_CM_DROP_SHORT, "SHORT") \
	EM(IRDMA_CM_DROP_IP, "IP") \
	EM(IRDMA_CM_DROP_TCP_OFF, "TCP_OFF") \
	EM(IRDMA_CM_DROP_TCP_OPT, "TCP_OPT") \
	EM(IRDMA_CM_DROP_NO_NODE, "NO_NODE") \
	EM(IRDMA_CM_DROP_NO_LISTENER, "NO_LISTENER") \
	EM(IRDMA_CM_DROP_BACKLOG, "BACKLOG") \
	EM(IRDMA_CM_DROP_HALF_OPEN, "HALF_OPEN") \
	EM(IRDMA_CM_DROP_RATE, "RATE") \
	EM(IRDMA_CM_DROP_NO_MEM, "NO_MEM") \
	EM(IRDMA_CM_DROP_NO_ROUTE, "NO_ROUTE") \
	EM(IRDMA_CM_DROP_SETUP, "SETUP") \
	EM(IRDMA_CM_DROP_OFFLOADED, "OFFLOADED") \
	EM(IRDMA_CM_DROP_SEQ, "SEQ") \
	EM(IRDMA_CM_DROP_RST, "RST") \
	EM(IRDMA_CM_DROP_SYN, "SYN") \
	EM(IRDMA_CM_DROP_ACK, "ACK") \
	EMe(IRDMA_CM_DROP_STATE, "STATE")

#undef EM
#undef EMe
#define EM(value, name)		TRACE_DEFINE_ENUM(value);
#define EMe(value, name)	TRACE_DEFINE_ENUM(value);
irdma_cm_states(EM, EMe)
irdma_cm_drops(EM, EMe)
#undef EM
#undef EMe
#define EM(value, name)		{ value, name },
#define EMe(value, name)	{ value, name }

#define show_irdma_cm_state(value)	__print_symbolic(value, irdma_cm_states(EM, EMe))
#define show_irdma_cm_drop(value)	__print_symbolic(value, irdma_cm_drops(EM, EMe))
#define show_irdma_tcp_flags(value)	__print_flags(value, "|",	\
	{ 0x01, "FIN" }, { 0x02, "SYN" }, { 0x04, "RST" },		\
	{ 0x08, "PSH" }, { 0x10, "ACK" }, { 0x20, "URG" })
#define show_irdma_iw_event(value)	__print_symbolic(value,	\
	{ 1, "CONNECT_REQUEST" }, { 2, "CONNECT_REPLY" },	\
	{ 3, "ESTABLISHED" }, { 4, "DISCONNECT" }, { 5, "CLOSE" })

TRACE_EVENT(irdma_cm_state,
	TP_PROTO(const struct irdma_cm_node *node, u8 from, u8 to),
	TP_ARGS(node, from, to),
	TP_STRUCT__entry(
		__field(const void *, node)
		__array(u8, local_ip, 16)
		__array(u8, remote_ip, 16)
		__field(u16, local_port)
		__field(u16, remote_port)
		__field(u16, vlan)
		__field(u8, from)
		__field(u8, to)
	),
	TP_fast_assign(
		__entry->node = node;
		irdma_trace_ip(__entry->local_ip, node->quad.ipv4, node->quad.local_ip);
		irdma_trace_ip(__entry->remote_ip, node->quad.ipv4, node->quad.remote_ip);
		__entry->local_port = node->quad.local_port;
		__entry->remote_port = node->quad.remote_port;
		__entry->vlan = node->quad.vlan;
		__entry->from = from;
		__entry->to = to;
	),
	TP_printk("node=%p local=[%pI6c]:%u remote=[%pI6c]:%u vlan=%u %s -> %s", __entry->node,
		  __entry->local_ip, __entry->local_port,
		  __entry->remote_ip, __entry->remote_port,
		  __entry->vlan, show_irdma_cm_state(__entry->from),
		  show_irdma_cm_state(__entry->to))
);

TRACE_EVENT(irdma_cm_frame,
	TP_PROTO(const struct irdma_cm_node *node, bool sent, const u8 *tcp, u32 len),
	TP_ARGS(node, sent, tcp, len),
	TP_STRUCT__entry(
		__field(const void *, node)
		__field(bool, sent)
		__array(u8, local_ip, 16)
		__array(u8, remote_ip, 16)
		__field(u16, local_port)
		__field(u16, remote_port)
		__field(u32, seq)
		__field(u32, ack)
		__field(u16, window)
		__field(u8, flags)
		__field(u32, data_len)
	),
	TP_fast_assign(
		__entry->node = node;
		__entry->sent = sent;
		irdma_trace_ip(__entry->local_ip, node->quad.ipv4, node->quad.local_ip);
		irdma_trace_ip(__entry->remote_ip, node->quad.ipv4, node->quad.remote_ip);
		__entry->local_port = node->quad.local_port;
		__entry->remote_port = node->quad.remote_port;
		__entry->seq = be32_to_cpup((const __be32 *)(tcp + 4));
		__entry->ack = be32_to_cpup((const __be32 *)(tcp + 8));
		__entry->window = be16_to_cpup((const __be16 *)(tcp + 14));
		__entry->flags = tcp[13];
		__entry->data_len = len - (tcp[12] >> 4) * 4;
	),
	TP_printk("node=%p %s local=[%pI6c]:%u remote=[%pI6c]:%u flags=%s seq=%u ack=%u win=%u len=%u",
		  __entry->node, __entry->sent ? "out" : "in",
		  __entry->local_ip, __entry->local_port,
		  __entry->remote_ip, __entry->remote_port,
		  show_irdma_tcp_flags(__entry->flags), __entry->seq, __entry->ack,
		  __entry->window, __entry->data_len)
);

TRACE_EVENT(irdma_cm_upcall,
	TP_PROTO(const struct irdma_cm_node *node, const struct iw_cm_id *cm_id,
		 const struct iw_cm_event *event, int result),
	TP_ARGS(node, cm_id, event, result),
	TP_STRUCT__entry(
		__field(const void *, node)
		__field(const void *, cm_id)
		__field(u32, event)
		__field(int, status)
		__field(u8, ird)
		__field(u8, ord)
		__field(u8, private_data_len)
		__field(int, result)
	),
	TP_fast_assign(
		__entry->node = node;
		__entry->cm_id = cm_id;
		__entry->event = event->event;
		__entry->status = event->status;
		__entry->ird = event->ird;
		__entry->ord = event->ord;
		__entry->private_data_len = event->private_data_len;
		__entry->result = result;
	),
	TP_printk("node=%p cm_id=%p %s status=%d ird=%u ord=%u pdata=%u result=%d", __entry->node,
		  __entry->cm_id, show_irdma_iw_event(__entry->event), __entry->status,
		  __entry->ird, __entry->ord, __entry->private_data_len, __entry->result)
);

TRACE_EVENT(irdma_cm_drop,
	TP_PROTO(const struct irdma_cm_rx *rx, enum irdma_cm_drop reason),
	TP_ARGS(rx, reason),
	TP_STRUCT__entry(
		__field(u32, len)
		__field(u16, vlan)
		__field(bool, ipv4)
		__field(u32, reason)
		__array(u8, head, 60)
	),
	TP_fast_assign(
		__entry->len = rx->len;
		__entry->vlan = rx->vlan;
		__entry->ipv4 = rx->ipv4;
		__entry->reason = reason;
		memset(__entry->head, 0, sizeof(__entry->head));
		memcpy(__entry->head, rx->ip, min_t(u32, rx->len, sizeof(__entry->head)));
	),
	TP_printk("%s len=%u vlan=%u ipv%u %s", show_irdma_cm_drop(__entry->reason), __entry->len,
		  __entry->vlan, __entry->ipv4 ? 4 : 6,
		  __print_hex(__entry->head, sizeof(__entry->head)))
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
