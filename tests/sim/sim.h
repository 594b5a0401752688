/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The world of the simulation: virtual time (kernel.c), a wire that loses, repeats, delays and
 * reorders, hosts with an engine and a model of its hardware (host.c), and iw_cm with ULPs on
 * top (ulp.c).  Everything follows from one seed.
 */
#ifndef SIM_H
#define SIM_H

#include "sim_kernel.h"
#include "../../cm_priv.h"

#define MS	1000000ULL
#define SEC	1000000000ULL

/* kernel.c */
extern u64 sim_seed;
extern unsigned int sim_alloc_failures;
void sim_srandom(u64 seed);
void sim_event_at(struct sim_event *e, u64 when);
bool sim_event_cancel(struct sim_event *e);
void sim_run_for(u64 ns);
void sim_run_until(bool (*done)(void *arg), void *arg, u64 limit_ns);
void sim_fiber(void (*fn)(void *arg), void *arg);
bool sim_in_fiber(void);
void sim_might_sleep(void);
void sim_free_fibers(void);

static inline bool sim_one_in(unsigned int n)
{
	return n && sim_random() % n == 0;
}

/* host.c */
#define SIM_MAX_PACKET	1600

struct sim_packet {		/* an IP datagram on its way */
	struct sim_event event;
	u16 vlan;
	bool ipv4;
	u16 len;
	u8 data[];
};

struct sim_wire {
	unsigned int loss;	/* one in so many, 0: none */
	unsigned int dup;
	unsigned int reorder;
	u64 delay_ns;
};
extern struct sim_wire sim_wire;

struct sim_host;

/* Where packets go that no host of ours owns: a scripted peer, or NULL. */
extern void (*sim_sniffer)(const struct sim_packet *p);
/* Sees each frame when it is sent; @mac_len is 0 if hardware would add the Ethernet header. */
extern void (*sim_tap)(const u8 *mac, u32 mac_len, const u8 *ip, u32 len, bool ipv4, u16 vlan);

struct sim_qp {
	struct ib_qp ibqp;
	struct irdma_qp_cm cm;
	struct sim_host *host;
	struct rhash_head hash_entry;
	u32 qpn;
	int refs;
	enum ib_qp_state ib_state;
	u8 tcp_state;
	u16 last_ae;
	bool destroying, busy, stream, running, flushed;
	struct irdma_tcp_ctx tcp;
	/* stream that hardware owns */
	u32 snd_una, snd_nxt, rcv_nxt;
	u8 out[600];
	u32 out_len;
	bool fin_queued, fin_acked, peer_fin;
	unsigned int tries;
	struct sim_event retrans;
	u64 rx_bytes;
};

struct sim_host {
	u32 ip;
	struct ib_device ibdev;
	struct irdma_cm_core *core;
	struct irdma_cm_ops ops;
	struct rhashtable quads, syns, qps;
	u32 ports[65536];
	u32 next_qpn;
	int ahs, routes, frames;	/* what the engine holds */
	unsigned int cmd_failures;	/* one in so many commands fails */
	unsigned int tx_failures;
	unsigned int start_failures;
	u64 cmd_delay_ns;
	bool dead;
	u16 vlan;
	u64 rx_packets;
	struct sim_host *next;
};

struct sim_host *sim_host_new(u32 ip, bool raw_frames);
void sim_host_free(struct sim_host *h);
void sim_mac(u8 *mac, u32 ip);
void sim_send(const u8 *ip, u32 len, bool ipv4, u16 vlan);
struct sim_qp *sim_qp_new(struct sim_host *h);
void sim_qp_destroy(struct sim_qp *qp);
void sim_qp_disconnect(struct sim_qp *qp);
void sim_qp_error(struct sim_qp *qp);
void sim_qp_say(struct sim_qp *qp);
void sim_settle(struct sim_host *h);
u64 sim_drops(struct sim_host *h, enum irdma_cm_drop reason);
u64 sim_counter(struct sim_host *h, enum irdma_cm_counter counter);

/* ulp.c */
enum sim_id_state { ID_IDLE, ID_LISTEN, ID_CONN_SENT, ID_CONN_RECV, ID_ESTABLISHED, ID_CLOSING,
		    ID_DESTROYING };

struct sim_id {
	struct iw_cm_id id;
	struct sim_host *host;
	enum sim_id_state state;
	int refs;
	int free_work;		/* events that may be queued */
	bool connect_wait, drop_events;
	bool ipv6;		/* set before listen or connect: addresses are fd00::<ip> */
	struct sim_qp *qp;
	struct sim_id *listener;
	void (*handler)(struct sim_id *id, struct iw_cm_event *ev);
	void *arg;
	unsigned int got[IW_CM_EVENT_CLOSE + 1];
	int status;		/* of the last CONNECT_REPLY */
	u8 pdata[256];
	u8 pdata_len, ird, ord;
};

struct sim_id *sim_id_new(struct sim_host *h,
			  void (*handler)(struct sim_id *, struct iw_cm_event *), void *arg);
void sim_id_destroy(struct sim_id *id);
int sim_listen(struct sim_id *id, u32 ip, u16 port, int backlog);
int sim_connect(struct sim_id *id, struct sim_qp *qp, u32 remote_ip, u16 local_port, u16 port,
		struct iw_cm_conn_param *param);
int sim_accept(struct sim_id *id, struct sim_qp *qp, struct iw_cm_conn_param *param);
int sim_reject(struct sim_id *id, const void *pdata, u8 len);
extern int sim_ids;

#endif
