// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A host: the engine's operations over a model of the hardware.  Commands take time and may
 * fail; frames that no hardware entry claims are answered by the host's own stack with RST; a
 * QP that was handed a stream sends the reply or the ready-to-receive message, closes and
 * resets by itself.
 */
#include "sim.h"

enum { AE_RESET = 0x0502, AE_CLOSE_COMPLETE = 0x0501, AE_FIN = 0x0503 };
enum { TCP_CLOSED = 1, TCP_ESTABLISHED = 5, TCP_CLOSE_WAIT = 6 };
enum { FPDU_LEN = 24, FPDU_BYTE = 'F', HW_TRIES = 10 };

struct quad_entry {
	struct irdma_cm_quad quad;
	struct rhash_head hash_entry;
	struct sim_qp *qp;		/* NULL: the raw queue */
	struct irdma_cm_node *node;	/* that added it */
};

struct syn_entry {
	struct irdma_cm_key key;
	struct rhash_head hash_entry;
};

static const struct rhashtable_params quad_params = {
	.key_len = sizeof(struct irdma_cm_quad),
	.key_offset = offsetof(struct quad_entry, quad),
	.head_offset = offsetof(struct quad_entry, hash_entry),
};
static const struct rhashtable_params syn_params = {
	.key_len = sizeof(struct irdma_cm_key),
	.key_offset = offsetof(struct syn_entry, key),
	.head_offset = offsetof(struct syn_entry, hash_entry),
};
static const struct rhashtable_params qp_params = {
	.key_len = sizeof(u32),
	.key_offset = offsetof(struct sim_qp, qpn),
	.head_offset = offsetof(struct sim_qp, hash_entry),
};

struct sim_wire sim_wire = { .delay_ns = 20000 };
void (*sim_sniffer)(const struct sim_packet *p);
void (*sim_tap)(const u8 *mac, u32 mac_len, const u8 *ip, u32 len, bool ipv4, u16 vlan);
static struct sim_host *hosts;

struct irdma_cm_core *irdma_cm_core_of(struct ib_device *ibdev)
{
	return ((struct sim_host *)ibdev->priv)->core;
}

static struct sim_host *host_of(struct irdma_cm_core *core)
{
	return core->priv;
}

/* --- wire --- */

static void packet_arrives(struct sim_event *e);

static u32 packet_dst(const struct sim_packet *p)
{
	return p->ipv4 ? irdma_cm_get32(p->data + 16) : irdma_cm_get32(p->data + 36);
}

static void launch(const u8 *ip, u32 len, bool ipv4, u16 vlan)
{
	struct sim_packet *p = malloc(sizeof(*p) + len);
	u64 delay = sim_wire.delay_ns + sim_random() % (sim_wire.delay_ns / 4 + 1);

	memset(p, 0, sizeof(*p));
	memcpy(p->data, ip, len);
	p->len = len;
	p->ipv4 = ipv4;
	p->vlan = vlan;
	p->event.fn = packet_arrives;
	if (sim_one_in(sim_wire.reorder))
		delay += sim_random() % (20 * sim_wire.delay_ns);
	sim_event_at(&p->event, sim_now_ns + delay);
}

static void send_frame(const u8 *mac, u32 mac_len, const u8 *ip, u32 len, bool ipv4, u16 vlan)
{
	if (sim_tap)
		sim_tap(mac, mac_len, ip, len, ipv4, vlan);
	if (!sim_one_in(sim_wire.loss))
		launch(ip, len, ipv4, vlan);
	if (sim_one_in(sim_wire.dup))
		launch(ip, len, ipv4, vlan);
}

void sim_send(const u8 *ip, u32 len, bool ipv4, u16 vlan)
{
	send_frame(NULL, 0, ip, len, ipv4, vlan);
}

/* The datagram around a TCP segment. */
static void send_tcp(struct sim_host *h, const struct irdma_cm_quad *q, u8 tos, const u8 *tcp,
		     u32 len)
{
	u8 p[SIM_MAX_PACKET] = { 0 };
	u32 hdr = q->ipv4 ? 20 : 40;
	int i;

	(void)h;
	if (q->ipv4) {
		p[0] = 0x45;
		p[1] = tos;
		irdma_cm_put16(p + 2, hdr + len);
		p[8] = 64;
		p[9] = IPPROTO_TCP;
		irdma_cm_put32(p + 12, q->local_ip[0]);
		irdma_cm_put32(p + 16, q->remote_ip[0]);
	} else {
		irdma_cm_put32(p, 6U << 28 | (u32)tos << 20);
		irdma_cm_put16(p + 4, len);
		p[6] = IPPROTO_TCP;
		p[7] = 64;
		for (i = 0; i < 4; i++) {
			irdma_cm_put32(p + 8 + 4 * i, q->local_ip[i]);
			irdma_cm_put32(p + 24 + 4 * i, q->remote_ip[i]);
		}
	}
	memcpy(p + hdr, tcp, len);
	sim_send(p, hdr + len, q->ipv4, q->vlan);
}

static void send_seg(struct sim_host *h, const struct irdma_cm_quad *q, u32 seq, u32 ack, u8 flags,
		     const u8 *data, u32 len)
{
	u8 tcp[20 + 600] = { 0 };

	irdma_cm_put16(tcp, q->local_port);
	irdma_cm_put16(tcp + 2, q->remote_port);
	irdma_cm_put32(tcp + 4, seq);
	irdma_cm_put32(tcp + 8, flags & IRDMA_TCP_ACK ? ack : 0);
	tcp[12] = 5 << 4;
	tcp[13] = flags;
	irdma_cm_put16(tcp + 14, 0xffff);
	if (len)
		memcpy(tcp + 20, data, len);
	send_tcp(h, q, 0, tcp, 20 + len);
}

/* --- the QP's stream in hardware --- */

static void qp_ref(struct sim_qp *qp)
{
	SIM_CHECK(qp->refs > 0, "QP %u referenced after its end", qp->qpn);
	qp->refs++;
}

static void qp_unref(struct sim_qp *qp)
{
	SIM_CHECK(qp->refs > 0, "QP %u dropped twice", qp->qpn);
	qp->refs--;
}

static void hw_quad(const struct sim_qp *qp, struct irdma_cm_quad *q)
{
	memset(q, 0, sizeof(*q));
	memcpy(q->local_ip, qp->tcp.local_ip, sizeof(q->local_ip));
	memcpy(q->remote_ip, qp->tcp.remote_ip, sizeof(q->remote_ip));
	q->local_port = qp->tcp.local_port;
	q->remote_port = qp->tcp.remote_port;
	q->vlan = qp->tcp.insert_vlan ? qp->tcp.vlan_tag & 0xfff : IRDMA_CM_NO_VLAN;
	q->ipv4 = qp->tcp.ipv4;
}

static void hw_send(struct sim_qp *qp, u32 seq, u8 flags, const u8 *data, u32 len)
{
	struct irdma_cm_quad q;

	if (qp->host->dead)
		return;
	hw_quad(qp, &q);
	send_seg(qp->host, &q, seq, qp->rcv_nxt, flags | IRDMA_TCP_ACK, data, len);
}

static void hw_drop_entry(struct sim_qp *qp)
{
	struct irdma_cm_quad q;
	struct quad_entry *e;

	hw_quad(qp, &q);
	e = sim_ht_lookup(&qp->host->quads, &q);
	if (e && e->qp == qp) {
		sim_ht_remove(&qp->host->quads, &e->hash_entry);
		free(e);
	}
}

static void hw_end(struct sim_qp *qp, u16 ae)
{
	sim_event_cancel(&qp->retrans);
	qp->running = false;
	qp->tcp_state = TCP_CLOSED;
	qp->last_ae = ae;
	irdma_cm_disconn(&qp->ibqp);
}

static void hw_push(struct sim_qp *qp)
{
	u32 seq = qp->snd_una;

	if (qp->out_len)
		hw_send(qp, seq, 0, qp->out, qp->out_len);
	if (qp->fin_queued && !qp->fin_acked)
		hw_send(qp, seq + qp->out_len, IRDMA_TCP_FIN, NULL, 0);
	if (qp->out_len || (qp->fin_queued && !qp->fin_acked))
		sim_event_at(&qp->retrans, sim_now_ns + (300 * MS << min(qp->tries, 5U)));
}

static void hw_retrans(struct sim_event *e)
{
	struct sim_qp *qp = container_of(e, struct sim_qp, retrans);

	if (++qp->tries > HW_TRIES)
		hw_end(qp, AE_RESET);
	else
		hw_push(qp);
}

static void hw_fin(struct sim_qp *qp)
{
	if (!qp->running || qp->fin_queued)
		return;
	qp->fin_queued = true;
	qp->snd_nxt++;
	qp->tries = 0;
	hw_push(qp);
}

static void hw_closed_both(struct sim_qp *qp)
{
	if (qp->fin_acked && qp->peer_fin && qp->running)
		hw_end(qp, AE_CLOSE_COMPLETE);
}

static void hw_acked(struct sim_qp *qp, u32 ack)
{
	u32 n = ack - qp->snd_una;

	if (irdma_seq_le(ack, qp->snd_una) || irdma_seq_lt(qp->snd_nxt, ack))
		return;
	qp->tries = 0;
	if (n > qp->out_len) {
		SIM_CHECK(qp->fin_queued, "QP %u: ACK of more than was sent", qp->qpn);
		qp->fin_acked = true;
		n = qp->out_len;
	}
	memmove(qp->out, qp->out + n, qp->out_len - n);
	qp->out_len -= n;
	qp->snd_una = ack;
	if (!qp->out_len && (!qp->fin_queued || qp->fin_acked))
		sim_event_cancel(&qp->retrans);
}

static void hw_rx(struct sim_qp *qp, const struct irdma_cm_seg *seg)
{
	u32 i;

	if (!qp->running) {
		if (qp->fin_acked && qp->peer_fin)	/* TIME_WAIT in hardware */
			hw_send(qp, qp->snd_nxt, 0, NULL, 0);
		return;
	}
	if (seg->flags & IRDMA_TCP_RST) {
		if (seg->seq == qp->rcv_nxt)
			hw_end(qp, AE_RESET);
		return;
	}
	if (seg->flags & IRDMA_TCP_ACK)
		hw_acked(qp, seg->ack);
	if (seg->seq != qp->rcv_nxt) {
		if (seg->len || seg->flags & IRDMA_TCP_FIN)
			hw_send(qp, qp->snd_nxt, 0, NULL, 0);
		return;
	}
	for (i = 0; i < seg->len; i++)
		SIM_CHECK(seg->data[i] == FPDU_BYTE, "QP %u: stream is corrupt", qp->qpn);
	qp->rcv_nxt += seg->len;
	qp->rx_bytes += seg->len;
	if (seg->flags & IRDMA_TCP_FIN && !qp->peer_fin) {
		qp->rcv_nxt++;
		qp->peer_fin = true;
		qp->last_ae = AE_FIN;
		qp->tcp_state = TCP_CLOSE_WAIT;
		irdma_cm_disconn(&qp->ibqp);
		hw_fin(qp);
	}
	if (seg->len || seg->flags & IRDMA_TCP_FIN)
		hw_send(qp, qp->snd_nxt, 0, NULL, 0);
	hw_closed_both(qp);
}

/* --- QPs --- */

struct sim_qp *sim_qp_new(struct sim_host *h)
{
	struct sim_qp *qp = calloc(1, sizeof(*qp));

	qp->host = h;
	qp->ibqp.device = &h->ibdev;
	qp->qpn = ++h->next_qpn;
	qp->ibqp.qp_num = qp->qpn;
	qp->refs = 1;
	qp->ib_state = IB_QPS_INIT;
	qp->retrans.fn = hw_retrans;
	irdma_cm_qp_init(&qp->cm, &qp->ibqp);
	sim_ht_insert(&h->qps, &qp->hash_entry);
	return qp;
}

static void enter_error(struct sim_qp *qp)
{
	if (qp->ib_state == IB_QPS_ERR)
		return;
	qp->ib_state = IB_QPS_ERR;
	if (qp->running) {
		hw_send(qp, qp->snd_nxt, IRDMA_TCP_RST, NULL, 0);
		sim_event_cancel(&qp->retrans);
		qp->running = false;
		qp->tcp_state = TCP_CLOSED;
	}
	if (qp->stream)
		hw_drop_entry(qp);
}

void sim_qp_error(struct sim_qp *qp)
{
	irdma_cm_qp_going(&qp->ibqp);
	sim_sleep_ns(qp->host->cmd_delay_ns);
	enter_error(qp);
	irdma_cm_disconn(&qp->ibqp);
}

void sim_qp_disconnect(struct sim_qp *qp)
{
	if (qp->ib_state != IB_QPS_RTS)
		return;
	irdma_cm_qp_going(&qp->ibqp);
	sim_sleep_ns(qp->host->cmd_delay_ns);
	hw_fin(qp);
	irdma_cm_disconn(&qp->ibqp);
}

void sim_qp_destroy(struct sim_qp *qp)
{
	u64 limit = sim_now_ns + 90 * SEC;

	qp->destroying = true;
	sim_qp_error(qp);
	while (qp->refs > 1) {
		SIM_CHECK(sim_now_ns < limit, "destroy of QP %u hangs, %d references, node %s",
			  qp->qpn, qp->refs, qp->cm.cm_node ?
			  irdma_cm_state_name(qp->cm.cm_node->state) : "none");
		sim_sleep_ns(MS);
	}
	while (qp->busy)
		sim_sleep_ns(MS);
	SIM_CHECK(!qp->cm.cm_node, "QP %u is destroyed with a connection", qp->qpn);
	sim_event_cancel(&qp->retrans);
	sim_ht_remove(&qp->host->qps, &qp->hash_entry);
	free(qp);
}

void sim_qp_say(struct sim_qp *qp)
{
	if (!qp->running || qp->fin_queued || qp->out_len)
		return;
	memset(qp->out, FPDU_BYTE, FPDU_LEN);
	qp->out_len = FPDU_LEN;
	qp->snd_nxt += FPDU_LEN;
	hw_push(qp);
}

static struct ib_qp *op_qp_get(struct irdma_cm_core *core, u32 qpn)
{
	struct sim_qp *qp = sim_ht_lookup(&host_of(core)->qps, &qpn);

	if (!qp || qp->destroying)
		return NULL;
	qp_ref(qp);
	return &qp->ibqp;
}

static struct sim_qp *to_qp(struct ib_qp *ibqp)
{
	return container_of(ibqp, struct sim_qp, ibqp);
}

static void op_qp_hold(struct ib_qp *ibqp)
{
	qp_ref(to_qp(ibqp));
}

static void op_qp_put(struct ib_qp *ibqp)
{
	qp_unref(to_qp(ibqp));
}

static struct irdma_qp_cm *op_qp_cm(struct ib_qp *ibqp)
{
	return &to_qp(ibqp)->cm;
}

static void hw_start(struct sim_qp *qp, const struct irdma_start *start)
{
	qp->snd_una = qp->tcp.snd_nxt;
	qp->snd_nxt = qp->tcp.snd_nxt;
	qp->rcv_nxt = qp->tcp.rcv_nxt;
	qp->ib_state = IB_QPS_RTS;
	qp->tcp_state = TCP_ESTABLISHED;
	qp->running = true;
	if (start->kind == IRDMA_START_LSMM) {
		SIM_CHECK(start->lsmm_len <= sizeof(qp->out), "LSMM of %u bytes", start->lsmm_len);
		memcpy(qp->out, start->lsmm, start->lsmm_len);
		qp->out_len = start->lsmm_len;
	} else if (start->kind != IRDMA_START_NO_RTR) {
		memset(qp->out, FPDU_BYTE, FPDU_LEN);
		qp->out_len = FPDU_LEN;
	}
	qp->snd_nxt += qp->out_len;
	hw_push(qp);
}

static int op_qp_start(struct irdma_cm_core *core, struct ib_qp *ibqp,
		       const struct irdma_tcp_ctx *tcp, const struct irdma_start *start)
{
	struct sim_qp *qp = to_qp(ibqp);
	struct irdma_cm_quad q;
	struct quad_entry *e;
	u64 limit;

	sim_might_sleep();
	SIM_CHECK(!qp->stream, "QP %u is started twice", qp->qpn);
	qp->tcp = *tcp;
	hw_quad(qp, &q);
	e = sim_ht_lookup(&qp->host->quads, &q);
	SIM_CHECK(e && !e->qp, "QP %u starts without a quad hash entry", qp->qpn);
	sim_sleep_ns(host_of(core)->cmd_delay_ns);
	e = sim_ht_lookup(&qp->host->quads, &q);
	SIM_CHECK(e && !e->qp, "QP %u lost its quad hash entry", qp->qpn);
	e->qp = qp;
	qp->stream = true;
	if (qp->destroying || qp->ib_state == IB_QPS_ERR || sim_one_in(qp->host->start_failures)) {
		qp->ib_state = IB_QPS_RTS;
		qp->running = true;	/* so far that hardware resets the peer */
		qp->snd_nxt = tcp->snd_nxt;
		qp->rcv_nxt = tcp->rcv_nxt;
		enter_error(qp);
		return -ECONNRESET;
	}
	hw_start(qp, start);
	limit = sim_now_ns + 12 * SEC;
	for (;;) {
		if (start->kind == IRDMA_START_LSMM ? qp->rx_bytes > 0 : !qp->out_len)
			return 0;
		if (!qp->running || qp->peer_fin || qp->destroying || qp->host->dead ||
		    sim_now_ns >= limit)
			break;
		sim_sleep_ns(50000);
	}
	enter_error(qp);
	return sim_now_ns >= limit ? -ETIMEDOUT : -ECONNRESET;
}

static void op_qp_abort(struct ib_qp *ibqp)
{
	sim_might_sleep();
	sim_sleep_ns(to_qp(ibqp)->host->cmd_delay_ns);
	enter_error(to_qp(ibqp));
}

static void op_qp_flush(struct ib_qp *ibqp)
{
	sim_sleep_ns(to_qp(ibqp)->host->cmd_delay_ns);
	enter_error(to_qp(ibqp));
	to_qp(ibqp)->flushed = true;
}

static void op_qp_terminate_event(struct ib_qp *ibqp)
{
	(void)ibqp;
	sim_might_sleep();
}

static void op_qp_conn_state(struct ib_qp *ibqp, struct irdma_qp_conn_state *st)
{
	struct sim_qp *qp = to_qp(ibqp);

	memset(st, 0, sizeof(*st));
	st->tcp_state = qp->tcp_state;
	st->last_ae = qp->last_ae;
	st->destroying = qp->destroying;
	st->ib_state = qp->ib_state;
}

/* --- commands --- */

struct node_priv {
	unsigned int unanswered;
	bool handed_over;
};

struct command {
	struct sim_event event;
	struct irdma_cm_node *node;
	struct sim_host *host;
	struct irdma_cm_quad quad;
	enum { CMD_AH, CMD_AH_DEL, CMD_QHASH, CMD_QHASH_DEL, CMD_PORT } kind;
};

static struct node_priv *priv_of(struct irdma_cm_node *node)
{
	return irdma_cm_node_priv(node);
}

static int add_quad(struct sim_host *h, const struct irdma_cm_quad *quad,
		    struct irdma_cm_node *node)
{
	struct quad_entry *e = calloc(1, sizeof(*e));
	int ret;

	e->quad = *quad;
	e->node = node;
	ret = sim_ht_insert(&h->quads, &e->hash_entry);
	SIM_CHECK(!ret, "quad hash entry added twice");
	return ret;
}

static void del_quad(struct sim_host *h, const struct irdma_cm_quad *quad)
{
	struct quad_entry *e = sim_ht_lookup(&h->quads, quad);

	SIM_CHECK(e && !e->qp, "quad hash entry that is not there is deleted");
	sim_ht_remove(&h->quads, &e->hash_entry);
	free(e);
}

static void command_done(struct sim_event *ev)
{
	struct command *c = container_of(ev, struct command, event);
	struct sim_host *h = c->host;
	int status = 0;

	if (h->dead)
		status = -ENODEV;
	else if (sim_one_in(h->cmd_failures))
		status = -EIO;
	switch (c->kind) {
	case CMD_AH:
		h->ahs += !status;
		irdma_cm_ah_done(c->node, status);
		break;
	case CMD_AH_DEL:
		h->ahs--;
		break;
	case CMD_QHASH:
		if (!status)
			add_quad(h, &c->quad, c->node);
		irdma_cm_qhash_done(c->node, status);
		break;
	case CMD_QHASH_DEL:
		del_quad(h, &c->quad);
		break;
	case CMD_PORT:
		if (status)
			h->ports[c->quad.local_port]--;
		irdma_cm_port_done(c->node, status);
		break;
	}
	priv_of(c->node)->unanswered -= c->kind != CMD_AH_DEL;
	irdma_cm_node_put(c->node);
	free(c);
}

/* Commands complete in the order in which they were given, like those of one ring. */
static void command(struct irdma_cm_node *node, int kind)
{
	struct command *c = calloc(1, sizeof(*c));

	SIM_CHECK(!priv_of(node)->handed_over, "command %d for a connection that its QP has", kind);
	priv_of(node)->unanswered += kind != CMD_AH_DEL;	/* that is not answered */
	c->node = node;
	c->host = host_of(node->core);
	c->kind = kind;
	irdma_get_addr_info(node, &c->quad);
	c->event.fn = command_done;
	irdma_cm_node_get(node);
	sim_event_at(&c->event, sim_now_ns + c->host->cmd_delay_ns);
}

static void op_handed_over(struct irdma_cm_node *node)
{
	struct node_priv *priv = priv_of(node);

	SIM_CHECK(!priv->handed_over, "connection handed over twice");
	SIM_CHECK(!priv->unanswered, "connection handed over with %u commands unanswered",
		  priv->unanswered);
	priv->handed_over = true;
}

static int op_ah_create(struct irdma_cm_node *node)
{
	command(node, CMD_AH);
	return 0;
}

static void op_ah_destroy(struct irdma_cm_node *node)
{
	command(node, CMD_AH_DEL);
}

static int op_qhash_add(struct irdma_cm_node *node)
{
	command(node, CMD_QHASH);
	return 0;
}

static void op_qhash_del(struct irdma_cm_node *node)
{
	command(node, CMD_QHASH_DEL);
}

static int op_port_get(struct irdma_cm_core *core, u16 port, struct irdma_cm_node *node)
{
	struct sim_host *h = host_of(core);

	if (h->ports[port]++)
		return 0;
	if (node) {
		command(node, CMD_PORT);
		return -EINPROGRESS;
	}
	sim_sleep_ns(h->cmd_delay_ns);
	return 0;
}

static void op_port_put(struct irdma_cm_core *core, u16 port)
{
	SIM_CHECK(host_of(core)->ports[port], "port %u is let go twice", port);
	host_of(core)->ports[port]--;
}

static void syn_key(const struct irdma_cm_laddr *a, u16 port, struct irdma_cm_key *key)
{
	memset(key, 0, sizeof(*key));
	memcpy(key->ip, a->ip, sizeof(key->ip));
	key->port = port;
	key->vlan = a->vlan;
	key->ipv4 = a->ipv4;
}

static int op_syn_add(struct irdma_cm_core *core, const struct irdma_cm_laddr *a, u16 port)
{
	struct sim_host *h = host_of(core);
	struct syn_entry *e;

	sim_sleep_ns(h->cmd_delay_ns);
	if (sim_one_in(h->cmd_failures))
		return -EIO;
	e = calloc(1, sizeof(*e));
	syn_key(a, port, &e->key);
	SIM_CHECK(!sim_ht_insert(&h->syns, &e->hash_entry), "SYN entry added twice");
	return 0;
}

static void op_syn_del(struct irdma_cm_core *core, const struct irdma_cm_laddr *a, u16 port)
{
	struct sim_host *h = host_of(core);
	struct irdma_cm_key key;
	struct syn_entry *e;

	sim_sleep_ns(h->cmd_delay_ns);
	syn_key(a, port, &key);
	e = sim_ht_lookup(&h->syns, &key);
	SIM_CHECK(e, "SYN entry that is not there is deleted");
	sim_ht_remove(&h->syns, &e->hash_entry);
	free(e);
}

/* --- nodes and frames --- */

static struct irdma_cm_node *op_node_alloc(void)
{
	return kzalloc(sizeof(struct irdma_cm_node) + sizeof(struct node_priv), GFP_ATOMIC);
}

static void op_node_free(struct irdma_cm_node *node)
{
	kfree(node);
}

static struct irdma_cm_frame *op_frame_alloc(struct irdma_cm_core *core, u32 size)
{
	struct sim_host *h = host_of(core);
	struct irdma_cm_frame *f;

	if (sim_one_in(h->tx_failures))
		return NULL;
	f = calloc(1, sizeof(*f));
	f->data = malloc(size);
	f->size = size;
	h->frames++;
	return f;
}

static void op_frame_free(struct irdma_cm_core *core, struct irdma_cm_frame *f)
{
	host_of(core)->frames--;
	free(f->data);
	free(f);
}

static int op_frame_send(struct irdma_cm_core *core, struct irdma_cm_node *node,
			 struct irdma_cm_frame *f)
{
	struct sim_host *h = host_of(core);

	SIM_CHECK(f->len <= f->size, "frame of %u bytes in %u", f->len, f->size);
	if (f->mac_len)
		send_frame(f->data, f->mac_len, f->data + f->mac_len, f->len - f->mac_len, f->ipv4,
			   node->quad.vlan);
	else
		send_tcp(h, &node->quad, node->tos, f->data, f->len);
	op_frame_free(core, f);
	return 0;
}

static bool host_wants(struct sim_host *h, const struct irdma_cm_seg *seg)
{
	struct irdma_cm_key key = {
		.port = seg->quad.local_port, .vlan = seg->quad.vlan, .ipv4 = seg->quad.ipv4,
	};

	memcpy(key.ip, seg->quad.local_ip, sizeof(key.ip));
	return (seg->flags & (IRDMA_TCP_SYN | IRDMA_TCP_ACK)) == IRDMA_TCP_SYN &&
	       h->ports[key.port] && sim_ht_lookup(&h->syns, &key);
}

/* RFC 9293 3.10.7.1: nobody listens. */
static void host_stack(struct sim_host *h, const struct irdma_cm_seg *seg)
{
	u32 len = seg->len + !!(seg->flags & IRDMA_TCP_SYN) + !!(seg->flags & IRDMA_TCP_FIN);
	struct irdma_cm_quad q = seg->quad;

	if (seg->flags & IRDMA_TCP_RST)
		return;
	if (seg->flags & IRDMA_TCP_ACK) {
		send_seg(h, &q, seg->ack, 0, IRDMA_TCP_RST, NULL, 0);
		return;
	}
	send_seg(h, &q, 0, seg->seq + len, IRDMA_TCP_RST | IRDMA_TCP_ACK, NULL, 0);
}

static void host_rx(struct sim_host *h, const struct sim_packet *p)
{
	struct irdma_cm_rx rx = {
		.ip = p->data, .len = p->len, .vlan = p->vlan, .ipv4 = p->ipv4,
	};
	struct quad_entry *e;
	enum irdma_cm_drop why;
	struct irdma_cm_seg seg;

	h->rx_packets++;
	if (h->dead)
		return;
	if (!irdma_cm_parse_frame(&rx, &seg, &why)) {
		irdma_receive_ilq(h->core, &rx);	/* it is the engine that must cope */
		return;
	}
	e = sim_ht_lookup(&h->quads, &seg.quad);
	if (e && e->qp)
		hw_rx(e->qp, &seg);
	else if (e || host_wants(h, &seg))
		irdma_receive_ilq(h->core, &rx);
	else
		host_stack(h, &seg);
}

static void packet_arrives(struct sim_event *ev)
{
	struct sim_packet *p = container_of(ev, struct sim_packet, event);
	u32 dst = packet_dst(p);
	struct sim_host *h;

	for (h = hosts; h && h->ip != dst; h = h->next)
		;
	if (h)
		host_rx(h, p);
	else if (sim_sniffer)
		sim_sniffer(p);
	free(p);
}

/* --- addresses --- */

void sim_mac(u8 *mac, u32 ip)
{
	irdma_cm_put16(mac, 0x0200);
	irdma_cm_put32(mac + 2, ip);
}

static int op_resolve(struct irdma_cm_core *core, const struct irdma_cm_quad *quad, u8 tos,
		      struct irdma_cm_route *route)
{
	struct sim_host *h = host_of(core);

	route->mtu = 1500;
	route->prio = tos >> 5;
	sim_mac(route->local_mac, h->ip);
	sim_mac(route->remote_mac, quad->remote_ip[quad->ipv4 ? 0 : 3]);
	route->vlan = quad->vlan != IRDMA_CM_NO_VLAN ? quad->vlan : h->vlan;
	route->arp_idx = 1;
	route->loopback = quad->ipv4 && irdma_ipv4_is_lpb(quad->local_ip[0], quad->remote_ip[0]);
	h->routes++;
	return 0;
}

static void op_route_put(struct irdma_cm_core *core, struct irdma_cm_route *route)
{
	(void)route;
	host_of(core)->routes--;
}

static void host_addr(struct sim_host *h, bool ipv4, struct irdma_cm_laddr *a)
{
	memset(a, 0, sizeof(*a));
	a->ipv4 = ipv4;
	a->vlan = h->vlan;
	if (!ipv4)
		a->ip[0] = 0xfd000000;
	a->ip[ipv4 ? 0 : 3] = h->ip;
}

static int op_local_addr(struct irdma_cm_core *core, bool ipv4, const u32 *ip,
			 struct irdma_cm_laddr *a)
{
	host_addr(host_of(core), ipv4, a);
	return memcmp(a->ip, ip, sizeof(a->ip)) ? -EADDRNOTAVAIL : 0;
}

static int op_for_each_addr(struct irdma_cm_core *core, bool ipv4,
			    int (*fn)(const struct irdma_cm_laddr *addr, void *arg), void *arg)
{
	struct irdma_cm_laddr a;

	host_addr(host_of(core), ipv4, &a);
	return fn(&a, arg);
}

static const struct irdma_cm_ops sim_ops = {
	.node_alloc = op_node_alloc,
	.node_free = op_node_free,
	.frame_alloc = op_frame_alloc,
	.frame_send = op_frame_send,
	.frame_free = op_frame_free,
	.ah_create = op_ah_create,
	.ah_destroy = op_ah_destroy,
	.qhash_add = op_qhash_add,
	.qhash_del = op_qhash_del,
	.handed_over = op_handed_over,
	.port_get = op_port_get,
	.port_put = op_port_put,
	.syn_add = op_syn_add,
	.syn_del = op_syn_del,
	.resolve = op_resolve,
	.route_put = op_route_put,
	.local_addr = op_local_addr,
	.for_each_addr = op_for_each_addr,
	.qp_get = op_qp_get,
	.qp_hold = op_qp_hold,
	.qp_put = op_qp_put,
	.qp_cm = op_qp_cm,
	.qp_start = op_qp_start,
	.qp_abort = op_qp_abort,
	.qp_flush = op_qp_flush,
	.qp_terminate_event = op_qp_terminate_event,
	.qp_conn_state = op_qp_conn_state,
};

struct sim_host *sim_host_new(u32 ip, bool raw_frames)
{
	struct irdma_cm_config config = { .max_ird = 64, .max_ord = 64 };
	struct sim_host *h = calloc(1, sizeof(*h));

	h->ip = ip;
	h->vlan = IRDMA_CM_NO_VLAN;
	h->cmd_delay_ns = 30000;
	h->ibdev.priv = h;
	h->ops = sim_ops;
	if (raw_frames) {
		h->ops.raw_frames = true;
		h->ops.ah_create = NULL;
		h->ops.ah_destroy = NULL;
	}
	rhashtable_init(&h->quads, &quad_params);
	rhashtable_init(&h->syns, &syn_params);
	rhashtable_init(&h->qps, &qp_params);
	h->core = irdma_setup_cm_core(&h->ops, h, &config);
	SIM_CHECK(!IS_ERR(h->core), "no engine");
	h->next = hosts;
	hosts = h;
	return h;
}

static bool host_quiet(void *arg)
{
	struct sim_host *h = arg;

	return !atomic_read(&h->core->num_nodes);
}

/* Wait until the engine has forgotten all connections, at most as long as its deadlines. */
void sim_settle(struct sim_host *h)
{
	sim_run_until(host_quiet, h, 400 * SEC);
	SIM_CHECK(host_quiet(h), "%d connections are left", atomic_read(&h->core->num_nodes));
	sim_run_for(SEC);
}

static void host_cleanup(void *arg)
{
	struct sim_host *h = arg;

	irdma_cleanup_cm_core(h->core);
	h->core = NULL;
}

static bool host_cleaned(void *arg)
{
	return !((struct sim_host *)arg)->core;
}

void sim_host_free(struct sim_host *h)
{
	struct sim_host **p;
	int i;

	sim_fiber(host_cleanup, h);
	sim_run_until(host_cleaned, h, 100 * SEC);
	SIM_CHECK(!h->core, "cleanup hangs");
	sim_run_for(SEC);
	SIM_CHECK(!h->ahs && !h->routes && !h->frames, "left: %d AHs, %d routes, %d frames",
		  h->ahs, h->routes, h->frames);
	for (i = 0; i < 65536; i++)
		SIM_CHECK(!h->ports[i], "port %d has %u users left", i, h->ports[i]);
	rhashtable_destroy(&h->quads);
	rhashtable_destroy(&h->syns);
	rhashtable_destroy(&h->qps);
	for (p = &hosts; *p != h; p = &(*p)->next)
		;
	*p = h->next;
	free(h);
}

u64 sim_drops(struct sim_host *h, enum irdma_cm_drop reason)
{
	struct irdma_cm_stats s;

	irdma_cm_read_stats(h->core, &s);
	return s.drops[reason];
}

u64 sim_counter(struct sim_host *h, enum irdma_cm_counter counter)
{
	struct irdma_cm_stats s;

	irdma_cm_read_stats(h->core, &s);
	return s.counters[counter];
}
