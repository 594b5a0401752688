// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Exception queue.  Hardware places only FPDUs that are complete in one segment.  From the
 * first segment that is not like that ("partial FPDU") it hands the stream of that QP to us
 * and notes the sequence number in the QP's Q2 buffer.  We cut the stream into FPDUs and send
 * each of them back, as a segment of its own, through an address handle that loops (spec 03,
 * 7.7 and 7.8).
 *
 * Differences from the reference: one FPDU a segment; a segment behind a gap is dropped
 * without an ACK, the peer repeats it; markers are never negotiated, so there are none.
 *
 * cm_hw.c starts and stops it; frames come one at a time from the queue's tasklet.  The
 * queue's lock guards the streams; it is taken per exception frame, not on the data path.
 */
#include <linux/crc32.h>
#include <linux/etherdevice.h>
#include <linux/slab.h>
#include <net/tcp.h>

#include "ieq.h"
#include "ilq.h"
#include "irdma.h"
#include "qp.h"
#include "utils.h"

#define IEQ_SQ_ENTRIES		64
#define IEQ_RQ_ENTRIES		128
#define IEQ_SPARE_BUFS		128	/* may be kept by streams in all */
#define IEQ_STREAM_BUFS		64	/* may be kept by one stream */
/* 40 bytes of L3 area and 20 of TCP header in front of what remains of the MTU without them. */
#define IEQ_OVERHEAD		20
#define IEQ_TCP_LEN		20	/* of the segments that we make: no options */

#define Q2_FIRST_PARTIAL	64	/* byte offset: sequence number that began this episode */
#define AE_MPA_CRC		0x0505
#define AE_SOURCE_RQ		1

/**
 * struct ieq_stream - a QP whose stream we cut
 * @ieq: exception queue
 * @qpn: QP number
 * @first_partial: tells one episode from the next
 * @fpdus: bytes not cut yet
 * @num_bufs: buffers kept
 * @broken: length or CRC was wrong; what follows is dropped
 * @ah: loops our segments into the QP
 * @ah_status: -EINPROGRESS until hardware has @ah
 * @ah_waiter: for that
 * @arp_idx: ARP entry of @ah
 * @quad: addresses
 * @tcp: header of the latest segment, pattern of ours
 * @refs: one of the table, one of @ah_waiter; under the queue's lock
 * @gone: not in the table any more
 */
struct ieq_stream {
	struct irdma_ieq *ieq;
	u32 qpn;
	u32 first_partial;
	struct irdma_fpdu_stream fpdus;
	unsigned int num_bufs;
	bool broken;
	struct irdma_ah *ah;
	int ah_status;
	struct irdma_waiter ah_waiter;
	u16 arp_idx;
	struct irdma_cm_quad quad;
	struct tcphdr tcp;
	unsigned int refs;
	bool gone;
};

/**
 * struct irdma_ieq - exception queue of a device
 * @dev: device
 * @ilq: raw queue
 * @lock: streams
 * @streams: QP number -> stream
 * @max_fpdu: bytes, what fits into a segment
 * @counters: enum irdma_ieq_counter, written by the tasklet or under @lock
 * @rcu: frees it, for irdma_ieq_forget()
 */
struct irdma_ieq {
	struct irdma_device *dev;
	struct irdma_ilq *ilq;
	spinlock_t lock;
	struct xarray streams;
	u32 max_fpdu;
	u64 counters[IRDMA_IEQ_COUNTER_COUNT];
	struct rcu_head rcu;
};

/**
 * struct ieq_frame - an exception frame, checked
 * @quad: from our point of view
 * @tcp: TCP header
 * @tos: type of service
 * @seq: sequence number
 * @data: payload
 * @len: bytes of it
 */
struct ieq_frame {
	struct irdma_cm_quad quad;
	const struct tcphdr *tcp;
	u8 tos;
	u32 seq;
	const u8 *data;
	u32 len;
};

static u32 ieq_crc32c(u32 crc, const u8 *data, u32 len)
{
	return crc32c(crc, data, len);
}

/* --- frames --- */

static u32 ieq_parse_ipv4(const struct irdma_cm_rx *rx, struct ieq_frame *frame)
{
	const struct iphdr *ip = (const struct iphdr *)rx->ip;

	if (rx->len < sizeof(*ip) || ip->version != 4 || ip->ihl != 5 ||
	    ip->protocol != IPPROTO_TCP || ntohs(ip->tot_len) > rx->len)
		return 0;
	frame->quad.ipv4 = 1;
	frame->quad.local_ip[0] = ntohl(ip->daddr);
	frame->quad.remote_ip[0] = ntohl(ip->saddr);
	frame->tos = ip->tos;
	frame->len = ntohs(ip->tot_len);
	return sizeof(*ip);
}

static u32 ieq_parse_ipv6(const struct irdma_cm_rx *rx, struct ieq_frame *frame)
{
	const struct ipv6hdr *ip = (const struct ipv6hdr *)rx->ip;
	int i;

	if (rx->len < sizeof(*ip) || ip->version != 6 || ip->nexthdr != IPPROTO_TCP ||
	    sizeof(*ip) + ntohs(ip->payload_len) > rx->len)
		return 0;
	for (i = 0; i < 4; i++) {
		frame->quad.local_ip[i] = ntohl(ip->daddr.s6_addr32[i]);
		frame->quad.remote_ip[i] = ntohl(ip->saddr.s6_addr32[i]);
	}
	frame->tos = ip->priority << 4 | ip->flow_lbl[0] >> 4;
	frame->len = sizeof(*ip) + ntohs(ip->payload_len);
	return sizeof(*ip);
}

/* The one place where lengths are checked; false for what is no TCP segment with data. */
static bool ieq_parse(const struct irdma_cm_rx *rx, struct ieq_frame *frame)
{
	u32 ip_len, headers;

	memset(frame, 0, sizeof(*frame));
	frame->quad.vlan = rx->vlan;
	ip_len = rx->ipv4 ? ieq_parse_ipv4(rx, frame) : ieq_parse_ipv6(rx, frame);
	if (!ip_len || frame->len < ip_len + sizeof(*frame->tcp))
		return false;
	frame->tcp = (const struct tcphdr *)(rx->ip + ip_len);
	headers = ip_len + frame->tcp->doff * 4;
	if (frame->tcp->doff < 5 || frame->len <= headers)
		return false;
	frame->quad.local_port = ntohs(frame->tcp->dest);
	frame->quad.remote_port = ntohs(frame->tcp->source);
	frame->seq = ntohl(frame->tcp->seq);
	frame->data = rx->ip + headers;
	frame->len -= headers;
	return true;
}

/* --- streams --- */

static void stream_put(struct ieq_stream *stream)
{
	struct irdma_device *dev = stream->ieq->dev;

	if (--stream->refs)
		return;
	if (stream->ah)
		irdma_ah_put(stream->ah);
	if (stream->arp_idx)
		irdma_arp_put(dev, stream->arp_idx);
	kfree(stream);
}

static void stream_free_bufs(struct ieq_stream *stream, struct list_head *list)
{
	struct irdma_fpdu_seg *seg, *next;

	list_for_each_entry_safe(seg, next, list, entry) {
		list_del(&seg->entry);
		stream->num_bufs--;
		irdma_ilq_rx_free(stream->ieq->ilq, container_of(seg, struct irdma_ilq_buf, seg));
	}
}

static void stream_del(struct ieq_stream *stream)
{
	xa_erase(&stream->ieq->streams, stream->qpn);
	stream->gone = true;
	stream_free_bufs(stream, &stream->fpdus.segs);
	stream_put(stream);
}

static void stream_ae_done(struct irdma_device *dev, struct irdma_cqp_req *req)
{
	kfree(req);
}

/* The stream cannot be cut: the QP shall terminate as if hardware had found it. */
static void stream_break(struct ieq_stream *stream, int err)
{
	struct irdma_device *dev = stream->ieq->dev;
	struct irdma_cqp_req *req = kzalloc(sizeof(*req), GFP_ATOMIC);

	stream->broken = true;
	stream_free_bufs(stream, &stream->fpdus.segs);
	irdma_err_ratelimited(dev, "QP %u: FPDU at sequence number %u: %pe\n", stream->qpn,
			      stream->fpdus.seq, ERR_PTR(err));
	if (!req)
		return;
	irdma_cqp_prep_gen_ae(dev, req, stream->qpn, AE_MPA_CRC, AE_SOURCE_RQ);
	irdma_cqp_submit(dev, req, stream_ae_done);
}

static void stream_tx_done(struct irdma_ilq_tx *tx, bool sent)
{
	irdma_ah_put(tx->owner);
}

/* Send an FPDU, which lies behind the room for its header, back to hardware. */
static void stream_send(struct ieq_stream *stream, struct irdma_ilq_tx *tx, u32 seq, u32 len)
{
	struct tcphdr *tcp = (struct tcphdr *)tx->frame.data;

	*tcp = stream->tcp;
	tcp->seq = htonl(seq);
	tcp->doff = IEQ_TCP_LEN / 4;
	tcp->check = 0;
	/* Its place is behind the peer's last byte: the peer sends it again until it is acknowledged. */
	tcp->fin = 0;
	tx->frame.len = IEQ_TCP_LEN + len;
	tx->frame.tcp_len = IEQ_TCP_LEN;
	irdma_ah_hold(stream->ah);
	tx->ah = irdma_ah_index(stream->ah);
	tx->owner = stream->ah;
	tx->done = stream_tx_done;
	irdma_ilq_tx_send(stream->ieq->ilq, tx);
}

/* Cut as much as there is; without a transmit buffer the next frame goes on. */
static void stream_run(struct ieq_stream *stream)
{
	struct irdma_ilq *ilq = stream->ieq->ilq;
	struct irdma_ilq_tx *tx;
	u32 seq;
	int len;

	if (stream->ah_status || stream->broken)
		return;
	for (;;) {
		tx = irdma_ilq_tx_alloc(ilq);
		if (!tx)
			break;
		seq = stream->fpdus.seq;
		len = irdma_fpdu_next(&stream->fpdus, tx->frame.data + IEQ_TCP_LEN,
				      tx->frame.size - IEQ_TCP_LEN);
		if (len <= 0) {
			irdma_ilq_tx_free(ilq, tx);
			if (len)
				stream_break(stream, len);
			break;
		}
		stream_send(stream, tx, seq, len);
		stream->ieq->counters[IRDMA_IEQ_FPDUS]++;
	}
	stream_free_bufs(stream, &stream->fpdus.used);
}

static void stream_ah_answer(struct irdma_waiter *waiter, int err)
{
	struct ieq_stream *stream = container_of(waiter, struct ieq_stream, ah_waiter);
	struct irdma_ieq *ieq = stream->ieq;

	spin_lock_bh(&ieq->lock);
	stream->ah_status = err;
	if (err && !stream->gone)
		stream_del(stream);
	else if (!stream->gone)
		stream_run(stream);
	stream_put(stream);
	spin_unlock_bh(&ieq->lock);
}

/* An address handle with which hardware hears our segments as if the peer had sent them. */
static int stream_get_ah(struct ieq_stream *stream, const struct irdma_ilq_buf *buf, u8 tos)
{
	struct irdma_device *dev = stream->ieq->dev;
	const struct irdma_cm_quad *quad = &stream->quad;
	struct irdma_arp_key hop = { .ipv4 = quad->ipv4, .ifindex = dev->lan->netdev->ifindex };
	struct irdma_ah_key key = {
		.vlan = quad->vlan,
		.tos = tos,
		.ipv4 = quad->ipv4,
		.loopback = true,
	};
	struct irdma_ah *ah;
	int idx;

	memcpy(hop.ip, quad->local_ip, sizeof(hop.ip));
	idx = irdma_arp_get(dev, &hop, dev->lan->netdev->dev_addr);
	if (idx < 0)
		return idx;
	stream->arp_idx = idx;
	key.arp_idx = idx;
	memcpy(key.src_ip, quad->remote_ip, sizeof(key.src_ip));
	memcpy(key.dst_ip, quad->local_ip, sizeof(key.dst_ip));
	ether_addr_copy(key.src_mac, buf->has_mac ? buf->src_mac : dev->lan->netdev->dev_addr);
	stream->ah_waiter.done = stream_ah_answer;
	ah = irdma_ah_get(dev, &key, &stream->ah_waiter, &stream->ah, &stream->ah_status);
	if (IS_ERR(ah))
		return PTR_ERR(ah);
	if (stream->ah_status)
		stream->refs++;
	return 0;
}

static struct ieq_stream *stream_add(struct irdma_ieq *ieq, u32 qpn, u32 first_partial,
				     const struct ieq_frame *frame,
				     const struct irdma_ilq_buf *buf)
{
	struct ieq_stream *stream = kzalloc(sizeof(*stream), GFP_ATOMIC);

	if (!stream)
		return NULL;
	stream->ieq = ieq;
	stream->qpn = qpn;
	stream->first_partial = first_partial;
	stream->quad = frame->quad;
	stream->refs = 1;
	irdma_fpdu_init(&stream->fpdus, first_partial, ieq->max_fpdu, ieq_crc32c);
	if (xa_err(xa_store(&ieq->streams, qpn, stream, GFP_ATOMIC))) {
		kfree(stream);
		return NULL;
	}
	if (stream_get_ah(stream, buf, frame->tos)) {
		stream_del(stream);
		return NULL;
	}
	return stream;
}

/* The stream of a QP in its present episode. */
static struct ieq_stream *stream_find(struct irdma_ieq *ieq, struct irdma_qp *qp,
				      const struct ieq_frame *frame,
				      const struct irdma_ilq_buf *buf)
{
	u32 first_partial = le32_to_cpup((const __le32 *)(qp->q2 + Q2_FIRST_PARTIAL));
	struct ieq_stream *stream = xa_load(&ieq->streams, qp->qpn);

	if (stream && (stream->first_partial != first_partial ||
		       memcmp(&stream->quad, &frame->quad, sizeof(stream->quad)))) {
		stream_del(stream);
		stream = NULL;
	}
	return stream ?: stream_add(ieq, qp->qpn, first_partial, frame, buf);
}

/* The QP that a frame belongs to, referenced. */
static struct irdma_qp *ieq_find_qp(struct irdma_ieq *ieq, const struct irdma_cm_quad *quad)
{
	struct irdma_cm_node *node = irdma_find_node(ieq->dev->cm, quad);
	struct ib_qp *ibqp;

	if (!node)
		return NULL;
	spin_lock_bh(&node->lock);
	ibqp = node->ibqp;
	if (ibqp)
		irdma_qp_add_ref(ibqp);
	spin_unlock_bh(&node->lock);
	irdma_cm_node_put(node);
	return ibqp ? to_irdma_qp(ibqp) : NULL;
}

/* What becomes of a frame; of those IRDMA_IEQ_KEPT the buffer is the stream's. */
static enum irdma_ieq_counter ieq_take(struct irdma_ieq *ieq, struct irdma_qp *qp,
				       const struct ieq_frame *frame, struct irdma_ilq_buf *buf)
{
	struct ieq_stream *stream = stream_find(ieq, qp, frame, buf);
	enum irdma_fpdu_added added;

	if (!stream)
		return IRDMA_IEQ_NO_STREAM;
	if (stream->num_bufs >= IEQ_STREAM_BUFS)
		stream_run(stream);	/* there may have been no transmit buffer before */
	if (stream->broken)
		return IRDMA_IEQ_BROKEN;
	if (stream->num_bufs >= IEQ_STREAM_BUFS)
		return IRDMA_IEQ_FULL;
	buf->seg.data = frame->data;
	buf->seg.len = frame->len;
	added = irdma_fpdu_add(&stream->fpdus, &buf->seg, frame->seq);
	if (added == IRDMA_FPDU_KEPT)
		stream->num_bufs++;
	if (added != IRDMA_FPDU_REFUSED)
		stream->tcp = *frame->tcp;
	stream_run(stream);
	return added == IRDMA_FPDU_KEPT ? IRDMA_IEQ_KEPT :
	       added == IRDMA_FPDU_COPIED ? IRDMA_IEQ_COPIED : IRDMA_IEQ_REFUSED;
}

static enum irdma_ieq_counter ieq_handle(struct irdma_ieq *ieq, struct irdma_ilq_buf *buf)
{
	enum irdma_ieq_counter fate;
	struct ieq_frame frame;
	struct irdma_qp *qp;

	if (!ieq_parse(&buf->rx, &frame))
		return IRDMA_IEQ_MALFORMED;
	qp = ieq_find_qp(ieq, &frame.quad);
	if (!qp)
		return IRDMA_IEQ_NO_QP;
	spin_lock_bh(&ieq->lock);
	fate = ieq_take(ieq, qp, &frame, buf);
	spin_unlock_bh(&ieq->lock);
	irdma_qp_rem_ref(&qp->ibqp);
	return fate;
}

static bool ieq_receive(void *arg, struct irdma_ilq_buf *buf)
{
	struct irdma_ieq *ieq = arg;
	enum irdma_ieq_counter fate = ieq_handle(ieq, buf);

	ieq->counters[fate]++;
	return fate == IRDMA_IEQ_KEPT;
}

/* --- life --- */

/**
 * irdma_ieq_start - set up the exception queue for the present MTU
 * @dev: device; its connection engine is there
 *
 * Context: process, sleeps.
 * Return: 0 or a negative errno.
 */
int irdma_ieq_start(struct irdma_device *dev)
{
	struct irdma_ieq *ieq = kzalloc(sizeof(*ieq), GFP_KERNEL);
	const struct irdma_ilq_config config = {
		.name = "IEQ",
		.cqn = IRDMA_CQN_IEQ,
		.qpn = IRDMA_QPN_IEQ,
		.sq_size = IEQ_SQ_ENTRIES,
		.rq_size = IEQ_RQ_ENTRIES,
		.rx_bufs = IEQ_RQ_ENTRIES + IEQ_SPARE_BUFS,
		.rx_size = ALIGN(dev->mtu + IEQ_OVERHEAD, 64),
		.tx_size = ALIGN(dev->mtu + IEQ_OVERHEAD, 64),
		.receive = ieq_receive,
		.arg = ieq,
	};
	int err;

	if (!ieq)
		return -ENOMEM;
	ieq->dev = dev;
	ieq->max_fpdu = dev->mtu - sizeof(struct iphdr) - IEQ_TCP_LEN;
	spin_lock_init(&ieq->lock);
	xa_init(&ieq->streams);
	ieq->ilq = irdma_ilq_create(dev, &config);
	if (IS_ERR(ieq->ilq)) {
		err = PTR_ERR(ieq->ilq);
		kfree(ieq);
		return err;
	}
	dev->ieq = ieq;
	return 0;
}

/**
 * irdma_ieq_forget - a QP is being destroyed
 * @dev: device
 * @qpn: its number
 *
 * Context: process.
 */
void irdma_ieq_forget(struct irdma_device *dev, u32 qpn)
{
	struct ieq_stream *stream;
	struct irdma_ieq *ieq;

	/* A change of the MTU may replace the queue meanwhile. */
	rcu_read_lock();
	ieq = READ_ONCE(dev->ieq);
	if (ieq) {
		spin_lock_bh(&ieq->lock);
		stream = xa_load(&ieq->streams, qpn);
		if (stream)
			stream_del(stream);
		spin_unlock_bh(&ieq->lock);
	}
	rcu_read_unlock();
}

/**
 * irdma_ieq_read_stats - copy the counters of the exception queue
 * @dev: device, which has the queue
 * @stats: where to
 *
 * Context: any.
 */
void irdma_ieq_read_stats(const struct irdma_device *dev, struct irdma_ieq_stats *stats)
{
	irdma_ilq_read_stats(dev->ieq->ilq, &stats->queue);
	memcpy(stats->counters, dev->ieq->counters, sizeof(stats->counters));
}

/**
 * irdma_ieq_stop - undo irdma_ieq_start()
 * @dev: device; nothing happens if the queue is not there
 *
 * Context: process, sleeps.
 */
void irdma_ieq_stop(struct irdma_device *dev)
{
	struct irdma_ieq *ieq = dev->ieq;
	struct ieq_stream *stream;
	unsigned long qpn;

	if (!ieq)
		return;
	irdma_ilq_stop_receive(ieq->ilq);
	spin_lock_bh(&ieq->lock);
	xa_for_each(&ieq->streams, qpn, stream)
		stream_del(stream);
	spin_unlock_bh(&ieq->lock);
	/* Answers about address handles refer to the streams and to us. */
	irdma_cqp_flush_submitted(dev);
	flush_work(&dev->addrs->answer_work);
	WRITE_ONCE(dev->ieq, NULL);
	irdma_ilq_destroy(ieq->ilq);
	kfree_rcu(ieq, rcu);
}
