// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The tracepoints of trace.h, as functions that the connection engine calls through its
 * operations (any context).
 */
#include "cm.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

/**
 * irdma_trace_state - a connection changes its state
 * @node: connection
 * @from: enum irdma_cm_state
 * @to: enum irdma_cm_state
 *
 * Context: any.
 */
void irdma_trace_state(const struct irdma_cm_node *node, u8 from, u8 to)
{
	trace_irdma_cm_state(node, from, to);
}

/**
 * irdma_trace_frame - a segment of a connection comes in or goes out
 * @node: connection
 * @sent: it goes out
 * @tcp: TCP header, complete
 * @len: bytes from there to the end
 *
 * Context: any.
 */
void irdma_trace_frame(const struct irdma_cm_node *node, bool sent, const u8 *tcp, u32 len)
{
	trace_irdma_cm_frame(node, sent, tcp, len);
}

/**
 * irdma_trace_upcall - iw_cm was told of an event
 * @node: connection
 * @cm_id: whose handler was called
 * @event: the event
 * @result: what the handler answered
 *
 * Context: any.
 */
void irdma_trace_upcall(const struct irdma_cm_node *node, const struct iw_cm_id *cm_id,
			const struct iw_cm_event *event, int result)
{
	trace_irdma_cm_upcall(node, cm_id, event, result);
}

/**
 * irdma_trace_drop - a frame is dropped
 * @core: engine
 * @rx: the frame
 * @reason: why
 *
 * Context: any.
 */
void irdma_trace_drop(const struct irdma_cm_core *core, const struct irdma_cm_rx *rx,
		      enum irdma_cm_drop reason)
{
	trace_irdma_cm_drop(rx, reason);
}

/**
 * irdma_trace_ip - the 16 bytes of an address
 * @bytes: where to; an IPv4 address is mapped into IPv6 (RFC 4291, 2.5.5.2)
 * @ipv4: family
 * @ip: host-order words
 *
 * Context: any.
 */
void irdma_trace_ip(u8 *bytes, bool ipv4, const u32 *ip)
{
	__be32 wire[4] = { 0, 0, cpu_to_be32(0xffff), cpu_to_be32(ip[0]) };
	int i;

	for (i = 0; i < 4 && !ipv4; i++)
		wire[i] = cpu_to_be32(ip[i]);
	memcpy(bytes, wire, sizeof(wire));
}
