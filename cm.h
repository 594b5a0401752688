/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The connection engine: TCP handshake, MPA start-up, hand-over of the stream to a QP, and
 * the events that iw_cm is told.  It reaches hardware and the network stack only through
 * struct irdma_cm_ops (cm_hw.c in the driver, tests/sim in user space).
 *
 * IP addresses are four host-order words, IPv4 in word 0 and the others 0; ports are in host
 * order.  VLAN IRDMA_CM_NO_VLAN means untagged.
 */
#ifndef IRDMA_CM_H
#define IRDMA_CM_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/refcount.h>
#include <linux/rhashtable.h>
#include <linux/siphash.h>
#include <linux/spinlock.h>
#include <linux/timer.h>
#include <linux/types.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>
#include <rdma/iw_cm.h>

#include "stream.h"

#define IRDMA_CM_NO_VLAN	0xffff

struct irdma_cm_core;
struct irdma_cm_node;
struct irdma_cm_listener;

/**
 * struct irdma_cm_quad - what identifies a connection
 * @local_ip: our address
 * @remote_ip: the peer's address
 * @local_port: our TCP port
 * @remote_port: the peer's TCP port
 * @vlan: VLAN id or IRDMA_CM_NO_VLAN
 * @ipv4: 1 for IPv4, 0 for IPv6
 *
 * Hash key: no padding, all of it set.
 */
struct irdma_cm_quad {
	u32 local_ip[4];
	u32 remote_ip[4];
	u16 local_port;
	u16 remote_port;
	u16 vlan;
	u16 ipv4;
};

/**
 * struct irdma_cm_laddr - a local address, as found on the net device or a VLAN on it
 * @ip: the address
 * @vlan: VLAN id of the owning device or IRDMA_CM_NO_VLAN
 * @ipv4: 1 for IPv4, 0 for IPv6
 * @mac: MAC address of the owning device
 */
struct irdma_cm_laddr {
	u32 ip[4];
	u16 vlan;
	u16 ipv4;
	u8 mac[ETH_ALEN];
};

/**
 * struct irdma_cm_route - how to reach the peer; pinned from resolve() to route_put()
 * @mtu: bytes of IP datagram that fit, the smaller of device and route
 * @arp_idx: entry of the hardware ARP table, referenced
 * @vlan: VLAN id of the device that owns the local address, or IRDMA_CM_NO_VLAN
 * @prio: 802.1p user priority for the TOS asked for
 * @loopback: the peer is this device
 * @local_mac: source MAC
 * @remote_mac: MAC of the next hop
 */
struct irdma_cm_route {
	u32 mtu;
	u16 arp_idx;
	u16 vlan;
	u8 prio;
	bool loopback;
	u8 local_mac[ETH_ALEN];
	u8 remote_mac[ETH_ALEN];
};

/**
 * struct irdma_cm_frame - a frame to send; the owner of the pool embeds it in its buffer
 * @data: where the engine writes
 * @size: bytes available at @data
 * @len: bytes written
 * @mac_len: bytes of Ethernet (and VLAN) header, 0 if &irdma_cm_ops.raw_frames is not set
 * @ip_len: bytes of IP header, 0 if &irdma_cm_ops.raw_frames is not set
 * @tcp_len: bytes of TCP header with options
 * @ipv4: family
 * @loopback: feed it back into the receive path (X722)
 */
struct irdma_cm_frame {
	u8 *data;
	u16 size;
	u16 len;
	u8 mac_len;
	u8 ip_len;
	u8 tcp_len;
	bool ipv4;
	bool loopback;
};

/* Largest frame: Ethernet + VLAN 18, IPv6 40, TCP 20 + options 8, MPA 24 + 512. */
#define IRDMA_CM_FRAME_MAX	640

/**
 * struct irdma_cm_rx - a received frame, not looked into yet
 * @ip: first byte of the IP header; IP and TCP header are contiguous
 * @len: bytes from @ip to the end of what was received
 * @vlan: VLAN id without priority, or IRDMA_CM_NO_VLAN
 * @ipv4: what the completion said
 */
struct irdma_cm_rx {
	const u8 *ip;
	u32 len;
	u16 vlan;
	bool ipv4;
};

enum irdma_cm_drop {
	IRDMA_CM_DROP_SHORT,		/* frame shorter than its headers say */
	IRDMA_CM_DROP_IP,		/* IHL, version, fragment, extension header, protocol */
	IRDMA_CM_DROP_TCP_OFF,		/* TCP data offset below 5 or beyond the frame */
	IRDMA_CM_DROP_TCP_OPT,		/* option of length 0 or 1, or beyond the header */
	IRDMA_CM_DROP_NO_NODE,		/* belongs to no connection and is no SYN */
	IRDMA_CM_DROP_NO_LISTENER,	/* SYN that no listener wants */
	IRDMA_CM_DROP_BACKLOG,		/* listener's queue of undecided requests is full */
	IRDMA_CM_DROP_HALF_OPEN,	/* cap of half-open connections reached */
	IRDMA_CM_DROP_RATE,		/* token bucket of SYNs is empty */
	IRDMA_CM_DROP_NO_MEM,		/* no memory for a node or a buffer */
	IRDMA_CM_DROP_NO_ROUTE,		/* peer of a SYN has no valid neighbour entry */
	IRDMA_CM_DROP_SETUP,		/* hardware entries are not in place yet */
	IRDMA_CM_DROP_OFFLOADED,	/* connection belongs to hardware already */
	IRDMA_CM_DROP_SEQ,		/* outside the window */
	IRDMA_CM_DROP_RST,		/* RST that is not acceptable */
	IRDMA_CM_DROP_SYN,		/* SYN in a synchronised state */
	IRDMA_CM_DROP_ACK,		/* ACK of what was never sent, or ACK missing */
	IRDMA_CM_DROP_STATE,		/* nothing this state wants */
	IRDMA_CM_DROP_COUNT
};

enum irdma_cm_counter {
	IRDMA_CM_NODES_CREATED,
	IRDMA_CM_NODES_DESTROYED,
	IRDMA_CM_LISTENERS_CREATED,
	IRDMA_CM_LISTENERS_DESTROYED,
	IRDMA_CM_RX_FRAMES,
	IRDMA_CM_TX_FRAMES,
	IRDMA_CM_TX_FAILED,		/* no buffer or no address handle */
	IRDMA_CM_RETRANSMITS,
	IRDMA_CM_RSTS_SENT,
	IRDMA_CM_CHALLENGE_ACKS,
	IRDMA_CM_ACCEPTS,
	IRDMA_CM_REJECTS,
	IRDMA_CM_CONNECT_ERRORS,	/* CONNECT_REPLY with a non-zero status */
	IRDMA_CM_PASSIVE_ERRORS,	/* passive connections that died before accept */
	IRDMA_CM_TIMEOUTS,		/* deadline of a state passed */
	IRDMA_CM_LOOPBACKS,
	IRDMA_CM_MPA_FALLBACKS,		/* attempts repeated with MPA v1 */
	IRDMA_CM_COUNTER_COUNT
};

struct irdma_cm_stats {
	u64 counters[IRDMA_CM_COUNTER_COUNT];
	u64 drops[IRDMA_CM_DROP_COUNT];
};

/**
 * struct irdma_cm_ops - what the engine needs from the driver
 *
 * "Any context" means process or softirq, with a node's lock held.  Asynchronous operations
 * that return 0 (or -EINPROGRESS where said) answer later by the irdma_cm_*_done() function
 * named, exactly once and never from within the call; if they fail at once they return
 * another errno and do not answer.  Whoever keeps @node beyond a call, as every command in
 * flight must, holds it with irdma_cm_node_get() and lets go with irdma_cm_node_put().
 *
 * @raw_frames: frames start with the Ethernet header (X722), not with the TCP header (E810)
 *
 * @node_alloc: a zeroed node with room for the requests of its connection
 *	(irdma_cm_node_priv()), or NULL. Any context
 * @node_free: free a node when an RCU grace period is over. Any context
 * @frame_alloc: a frame of at least @size bytes, or NULL. Any context
 * @frame_send: transmit; consumes the frame, success or not. Any context. The address handle
 *	is that of @node
 * @frame_free: give back a frame that was not sent. Any context
 *
 * @ah_create: make the address handle of the node from its quad, route and TOS; answers
 *	irdma_cm_ah_done(), or returns 1 if the handle is there already. Any context. NULL: frames
 *	need none (X722)
 * @ah_destroy: destroy it, not waiting, but not before the frames that use it have left.
 *	Any context
 * @qhash_add: enter the node's quad with the ILQ as receiver; answers irdma_cm_qhash_done().
 *	Any context
 * @qhash_del: remove it, not waiting, in order with adds. Any context
 * @port_get: take a reference on the local TCP port (APBVT). With @node: any context, 0 if the
 *	port is there already, -EINPROGRESS if irdma_cm_port_done() will tell. Without: sleeps
 *	until the port is there
 * @handed_over: the stream is the QP's, and the quad with it: of these calls only @port_put is
 *	still to come, and what is answered has been. Any context
 * @port_put: drop a reference. Any context
 * @syn_add: SYN quad-hash entry of an address and port, ILQ as receiver. Sleeps
 * @syn_del: remove it. Sleeps
 *
 * @resolve: find and pin the way from @quad's local to its remote address; @quad->vlan is
 *	IRDMA_CM_NO_VLAN for an active open, and the frame's for a passive one. -EHOSTUNREACH no
 *	route, -EAGAIN the neighbour is being resolved. Any context
 * @route_put: unpin. Any context
 * @local_addr: look up one of our addresses; -EADDRNOTAVAIL. Any context
 * @for_each_addr: call @fn for each of our addresses of the family until it returns non-zero;
 *	@fn may sleep
 *
 * @qp_get: the RC QP of that number, referenced, or NULL. Any context
 * @qp_hold: another reference, for a QP that is referenced or not destroyed yet. Any context
 * @qp_put: drop a reference. Any context
 * @qp_cm: the QP's link to the engine
 * @qp_start: irdma_qp_start_stream(). Sleeps
 * @qp_abort: irdma_qp_abort(). Sleeps
 * @qp_flush: irdma_qp_flush(). Sleeps
 * @qp_terminate_event: irdma_qp_terminate_event(). Sleeps
 * @qp_conn_state: irdma_qp_conn_state(). Any context
 *
 * @trace_state: a node changes its state (may be NULL). Any context
 * @trace_frame: a TCP segment of the node comes in or goes out (may be NULL). Any context
 * @trace_upcall: an event goes to iw_cm, with what it answered (may be NULL)
 * @trace_drop: a frame is dropped (may be NULL). Any context
 */
struct irdma_cm_ops {
	bool raw_frames;

	struct irdma_cm_node *(*node_alloc)(void);
	void (*node_free)(struct irdma_cm_node *node);
	struct irdma_cm_frame *(*frame_alloc)(struct irdma_cm_core *core, u32 size);
	int (*frame_send)(struct irdma_cm_core *core, struct irdma_cm_node *node,
			  struct irdma_cm_frame *frame);
	void (*frame_free)(struct irdma_cm_core *core, struct irdma_cm_frame *frame);

	int (*ah_create)(struct irdma_cm_node *node);
	void (*ah_destroy)(struct irdma_cm_node *node);
	int (*qhash_add)(struct irdma_cm_node *node);
	void (*qhash_del)(struct irdma_cm_node *node);
	int (*port_get)(struct irdma_cm_core *core, u16 port, struct irdma_cm_node *node);
	void (*handed_over)(struct irdma_cm_node *node);
	void (*port_put)(struct irdma_cm_core *core, u16 port);
	int (*syn_add)(struct irdma_cm_core *core, const struct irdma_cm_laddr *addr, u16 port);
	void (*syn_del)(struct irdma_cm_core *core, const struct irdma_cm_laddr *addr, u16 port);

	int (*resolve)(struct irdma_cm_core *core, const struct irdma_cm_quad *quad, u8 tos,
		       struct irdma_cm_route *route);
	void (*route_put)(struct irdma_cm_core *core, struct irdma_cm_route *route);
	int (*local_addr)(struct irdma_cm_core *core, bool ipv4, const u32 *ip,
			  struct irdma_cm_laddr *addr);
	int (*for_each_addr)(struct irdma_cm_core *core, bool ipv4,
			     int (*fn)(const struct irdma_cm_laddr *addr, void *arg), void *arg);

	struct ib_qp *(*qp_get)(struct irdma_cm_core *core, u32 qpn);
	void (*qp_hold)(struct ib_qp *ibqp);
	void (*qp_put)(struct ib_qp *ibqp);
	struct irdma_qp_cm *(*qp_cm)(struct ib_qp *ibqp);
	int (*qp_start)(struct irdma_cm_core *core, struct ib_qp *ibqp,
			const struct irdma_tcp_ctx *tcp, const struct irdma_start *start);
	void (*qp_abort)(struct ib_qp *ibqp);
	void (*qp_flush)(struct ib_qp *ibqp);
	void (*qp_terminate_event)(struct ib_qp *ibqp);
	void (*qp_conn_state)(struct ib_qp *ibqp, struct irdma_qp_conn_state *st);

	void (*trace_state)(const struct irdma_cm_node *node, u8 from, u8 to);
	void (*trace_frame)(const struct irdma_cm_node *node, bool sent, const u8 *tcp, u32 len);
	void (*trace_upcall)(const struct irdma_cm_node *node, const struct iw_cm_id *cm_id,
			     const struct iw_cm_event *event, int result);
	void (*trace_drop)(const struct irdma_cm_core *core, const struct irdma_cm_rx *rx,
			   enum irdma_cm_drop reason);
};

/**
 * struct irdma_cm_config - limits, from the device and from what an administrator asks for
 * @max_ird: largest inbound read depth of a QP
 * @max_ord: largest outbound read depth of a QP
 * @max_half_open: cap of passive connections whose handshake is not complete, 0 for the default
 * @syn_rate: SYNs a second that may cost CQP commands, 0 for the default
 * @syn_burst: SYNs that may come at once, 0 for the default
 */
struct irdma_cm_config {
	u16 max_ird;
	u16 max_ord;
	u32 max_half_open;
	u32 syn_rate;
	u32 syn_burst;
};

/**
 * struct irdma_cm_core - the engine of one device
 * @priv: for the implementer of @ops
 * @ops: services of the driver
 * @config: limits
 * @wq: unbound work queue for what must sleep
 * @dead: hardware is gone: nothing is waited for and no command is given any more
 * @stopping: no new connections or listeners
 * @nodes: quad -> node, RCU
 * @listeners: family, address, port, VLAN -> listener, RCU
 * @requests: handle -> node that waits for accept or reject
 * @syn_entries: SYN quad-hash entries, counted, under @listen_lock
 * @listen_lock: orders listen, its end and address events; sleeps
 * @listener_list: all listeners, under @listen_lock
 * @isn_key: secret of initial sequence numbers (RFC 6528)
 * @next_handle: last handle given out
 * @half_open: passive connections whose handshake is not complete
 * @time_wait: connections in TIME_WAIT
 * @syn_next_ns: token bucket of SYNs, as time at which it is full again
 * @num_nodes: nodes that exist
 * @num_listeners: listeners that exist
 * @idle: woken when @num_nodes or @num_listeners reaches 0
 * @stats: per-CPU counters
 */
struct irdma_cm_core {
	void *priv;
	const struct irdma_cm_ops *ops;
	struct irdma_cm_config config;
	struct workqueue_struct *wq;
	bool dead;
	bool stopping;
	struct rhashtable nodes;
	struct rhashtable listeners;
	struct rhashtable requests;
	struct rhashtable syn_entries;
	struct mutex listen_lock;
	struct list_head listener_list;
	siphash_key_t isn_key;
	atomic64_t next_handle;
	atomic_t half_open;
	atomic_t time_wait;
	atomic64_t syn_next_ns;
	atomic_t num_nodes;
	atomic_t num_listeners;
	wait_queue_head_t idle;
	struct irdma_cm_stats __percpu *stats;
};

/* Order matters nowhere: what follows what stands in one table of cm.c. */
enum irdma_cm_state {
	IRDMA_CM_STATE_CLOSED,		/* over; hardware entries are being removed */
	IRDMA_CM_STATE_SETUP,		/* hardware entries are being made, nothing was sent */
	IRDMA_CM_STATE_SYN_SENT,
	IRDMA_CM_STATE_SYN_RCVD,
	IRDMA_CM_STATE_ESTABLISHED,	/* passive: MPA request awaited */
	IRDMA_CM_STATE_MPAREQ_SENT,	/* active: MPA reply awaited */
	IRDMA_CM_STATE_MPAREQ_RCVD,	/* passive: ULP decides */
	IRDMA_CM_STATE_HANDOVER,	/* QP is being started on the stream */
	IRDMA_CM_STATE_OFFLOADED,	/* QP owns the stream, establishing event was raised */
	IRDMA_CM_STATE_MPAREJ_RCVD,	/* active: peer refused, connection is being closed */
	IRDMA_CM_STATE_FIN_WAIT1,
	IRDMA_CM_STATE_FIN_WAIT2,
	IRDMA_CM_STATE_CLOSING,
	IRDMA_CM_STATE_LAST_ACK,
	IRDMA_CM_STATE_TIME_WAIT,
	IRDMA_CM_STATE_COUNT
};

/* RTR kinds, as bits */
#define IRDMA_CM_RTR_SEND	BIT(0)
#define IRDMA_CM_RTR_WRITE	BIT(1)
#define IRDMA_CM_RTR_READ	BIT(2)

/*
 * struct irdma_cm_node - one connection
 *
 * @lock protects what is below it.  A reference is owned by: the connection being alive
 * (dropped on the way to CLOSED), the armed timer, queued event work, the QP's link, and
 * each command in flight.  Freed after a grace period.  An established connection keeps it, so
 * fields are no larger than what they hold.
 */
struct irdma_cm_node {
	/* constant after creation; cm_hw.c reads these */
	struct irdma_cm_core *core;
	struct irdma_cm_quad quad;
	struct irdma_cm_route route;
	u8 tos;
	bool active;			/* we called connect */

	refcount_t refs;
	struct rhash_head hash_entry;
	struct rhash_head request_entry;
	u64 handle;
	struct timer_list timer;
	struct work_struct event_work;

	spinlock_t lock;
	u32 flags;			/* IRDMA_CM_F_* bits, under @lock */
	int status;			/* why it failed */
	u8 state;			/* enum irdma_cm_state */
	u8 events;			/* IRDMA_CM_EV_* bits for the event work */

	/* TCP (RFC 9293 names) */
	u16 mss;
	unsigned long retrans_at;	/* jiffies, valid if @out */
	unsigned long deadline;		/* jiffies, valid if IRDMA_CM_F_DEADLINE */
	u32 ack_time;			/* low half of jiffies: rate limit of challenge ACKs */
	u32 iss;
	u32 snd_una;
	u32 snd_nxt;
	u32 snd_wnd;			/* bytes */
	u32 max_snd_wnd;
	u32 rcv_nxt;
	u16 ip_id;
	u8 snd_scale;
	u8 rcv_scale;
	u8 out;				/* enum irdma_cm_out: what waits for its ACK */
	u8 retries;
	u8 ack_credit;
	u8 setup_pending;		/* hardware answers awaited */

	/* MPA */
	u8 mpa_rev;
	u8 rtr;				/* IRDMA_CM_RTR_* offered, later the one chosen */
	u16 ird;
	u16 ord;
	u16 peer_ird;
	u16 peer_ord;
	u16 rx_len;			/* bytes in @rx_buf */
	u16 rx_size;			/* bytes that @rx_buf can hold */
	u16 rx_data;			/* private data in @rx_buf: offset */
	u16 rx_data_len;
	u16 tx_len;			/* bytes in @tx_data */
	u8 *rx_buf;			/* start-up frame of the peer; freed at hand-over */
	u8 *tx_data;			/* private data for the peer; freed at hand-over */

	struct irdma_cm_listener *listener;	/* counted; passive, until accepted or dead */
	union {
		struct list_head listener_entry;	/* under the listener's lock */
		struct rcu_head rcu;			/* when no reference is left */
	};
	unsigned long stage_since;	/* jiffies, under the listener's lock */
	struct iw_cm_id *cm_id;		/* counted */
	struct ib_qp *ibqp;		/* counted */

	u8 priv[] __aligned(8);
};

/*
 * struct irdma_cm_key - how listeners are found
 */
struct irdma_cm_key {
	u32 ip[4];			/* 0: wildcard */
	u16 port;
	u16 vlan;			/* 0 for a wildcard */
	u32 ipv4;
};

/* How far a connection of a listener has come. */
enum irdma_cm_stage {
	IRDMA_CM_HALF_OPEN,		/* handshake not complete */
	IRDMA_CM_SILENT,		/* request not complete */
	IRDMA_CM_REQUESTED,		/* the ULP decides */
	IRDMA_CM_STAGE_COUNT
};

/*
 * struct irdma_cm_listener - a listening iw_cm_id
 *
 * References: the listen being alive, and each connection in @nodes.
 */
struct irdma_cm_listener {
	struct irdma_cm_core *core;
	struct irdma_cm_key key;
	struct rhash_head hash_entry;
	struct list_head list_entry;	/* in core->listener_list */
	struct rcu_head rcu;
	refcount_t refs;
	bool wildcard;
	bool dual_stack;		/* IPv6 wildcard that serves IPv4 as well */
	bool tos_set;
	u8 tos;
	unsigned int backlog;
	struct list_head children;	/* struct irdma_cm_child, under core->listen_lock */

	spinlock_t lock;		/* inside of a node's lock */
	bool dead;
	struct iw_cm_id *cm_id;		/* counted, NULL when dead */
	unsigned int half_open;		/* nodes before their handshake is complete */
	unsigned int undecided;		/* nodes from there on to accept or reject */
	struct list_head nodes[IRDMA_CM_STAGE_COUNT];	/* oldest first */
};

/* --- for cm_hw.c --- */

struct irdma_cm_core *irdma_setup_cm_core(const struct irdma_cm_ops *ops, void *priv,
					  const struct irdma_cm_config *config);
void irdma_cleanup_cm_core(struct irdma_cm_core *core);
void irdma_cm_teardown_connections(struct irdma_cm_core *core, const struct irdma_cm_laddr *addr);
void irdma_cm_set_dead(struct irdma_cm_core *core);

void irdma_receive_ilq(struct irdma_cm_core *core, const struct irdma_cm_rx *rx);
void irdma_if_notify(struct irdma_cm_core *core, const struct irdma_cm_laddr *addr, bool up);

void irdma_cm_ah_done(struct irdma_cm_node *node, int status);
void irdma_cm_qhash_done(struct irdma_cm_node *node, int status);
void irdma_cm_port_done(struct irdma_cm_node *node, int status);

static inline void *irdma_cm_node_priv(struct irdma_cm_node *node)
{
	return node->priv;
}

void irdma_cm_node_get(struct irdma_cm_node *node);
void irdma_cm_node_put(struct irdma_cm_node *node);
/* The node of a received frame's quad, referenced, or NULL (exception queue). */
struct irdma_cm_node *irdma_find_node(struct irdma_cm_core *core,
				      const struct irdma_cm_quad *quad);

void irdma_cm_read_stats(const struct irdma_cm_core *core, struct irdma_cm_stats *sum);
const char *irdma_cm_state_name(enum irdma_cm_state state);
const char *irdma_cm_drop_name(enum irdma_cm_drop reason);
const char *irdma_cm_counter_name(enum irdma_cm_counter counter);

/* Implemented by cm_hw.c (and tests/sim): the engine of a verbs device. */
struct irdma_cm_core *irdma_cm_core_of(struct ib_device *ibdev);

/*
 * Also implemented by cm_hw.c, over the kernel's routing: irdma_get_vlan_ipv4(),
 * irdma_get_vlan_mac_ipv6(), irdma_get_dst_ipv6(), irdma_addr_resolve_neigh() and
 * irdma_addr_resolve_neigh_ipv6(); they make up local_addr() and resolve() above.
 */

/* --- iw_cm device operations --- */

int irdma_connect(struct iw_cm_id *cm_id, struct iw_cm_conn_param *param);
int irdma_accept(struct iw_cm_id *cm_id, struct iw_cm_conn_param *param);
int irdma_reject(struct iw_cm_id *cm_id, const void *pdata, u8 pdata_len);
int irdma_create_listen(struct iw_cm_id *cm_id, int backlog);
int irdma_destroy_listen(struct iw_cm_id *cm_id);

#endif
