// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Fuzzes what a peer's bytes reach: the frame and option parser, and a listener and a connecting
 * QP behind it, with the connection's sequence numbers filled in so that the input gets deep.
 *
 * Input: records of a length byte and that many bytes.  The first byte of a record has bits:
 * 0 IPv6, 1 whole frame as it is, 2 for the connecting QP, 3 right sequence numbers, 4 let
 * 100 ms pass.  Built for libFuzzer, or with MAIN to run files (the corpus) once.
 */
#include "sim.h"

enum { US = 0x0a000001, PEER = 0x0a000063, PORT = 7000 };

static struct sim_host *host;
static struct sim_id *listener, *active;
static struct sim_qp *qp;
static u32 their_next[2], our_next[2];	/* as the last frame to the peer tells */

static void sniff(const struct sim_packet *p)
{
	const u8 *tcp = p->data + (p->ipv4 ? 20 : 40);
	int who = irdma_cm_get16(tcp) != PORT;

	our_next[who] = irdma_cm_get32(tcp + 4) + p->len - (p->ipv4 ? 20 : 40) - (tcp[12] >> 4) * 4 +
			!!(tcp[13] & 3);
	if (tcp[13] & IRDMA_TCP_ACK)
		their_next[who] = irdma_cm_get32(tcp + 8);
}

static void handler(struct sim_id *id, struct iw_cm_event *ev)
{
	if (ev->event != IW_CM_EVENT_CONNECT_REQUEST)
		return;
	sim_reject(id, ev->private_data, ev->private_data_len);
	sim_id_destroy(id);
}

static void start(void *unused)
{
	struct iw_cm_conn_param param = { .ird = 4, .ord = 4 };

	(void)unused;
	listener = sim_id_new(host, handler, NULL);
	sim_listen(listener, 0, PORT, 64);
	qp = sim_qp_new(host);
	active = sim_id_new(host, handler, NULL);
	sim_connect(active, qp, PEER, 30000, 40000, &param);
}

static void stop(void *unused)
{
	(void)unused;
	sim_qp_destroy(qp);
	sim_id_destroy(active);
	sim_id_destroy(listener);
	listener = NULL;
}

static bool stopped(void *unused)
{
	(void)unused;
	return !listener;
}

static void put_ip(u8 *p, bool v6, u32 tcp_len)
{
	if (v6) {
		p[0] = 0x60;
		irdma_cm_put16(p + 4, tcp_len);
		p[6] = IPPROTO_TCP;
		irdma_cm_put32(p + 8, 0xfd000000);
		irdma_cm_put32(p + 20, PEER);
		irdma_cm_put32(p + 24, 0xfd000000);
		irdma_cm_put32(p + 36, US);
	} else {
		p[0] = 0x45;
		irdma_cm_put16(p + 2, 20 + tcp_len);
		p[9] = IPPROTO_TCP;
		irdma_cm_put32(p + 12, PEER);
		irdma_cm_put32(p + 16, US);
	}
}

/* A record after its mode byte: data offset and flags, then the rest of the TCP segment. */
static void one(u8 mode, const u8 *in, u32 n)
{
	bool v6 = mode & 1;
	int who = !!(mode & 4);
	u32 hdr = v6 ? 40 : 20;
	u8 *p = calloc(1, hdr + 20 + n), *t = p + hdr;	/* exact, so that ASan sees overreads */
	struct irdma_cm_rx rx = { .vlan = IRDMA_CM_NO_VLAN, .ipv4 = !v6 };

	if (mode & 2) {
		memcpy(p, in, n);
		rx.len = n;
		p = realloc(p, n ? n : 1);
	} else {
		put_ip(p, v6, 20 + n - min(n, 2U));
		irdma_cm_put16(t, 40000);
		irdma_cm_put16(t + 2, who ? 30000 : PORT);
		irdma_cm_put32(t + 4, mode & 8 ? their_next[who] : 77);
		irdma_cm_put32(t + 8, our_next[who]);
		t[12] = n > 0 ? in[0] : 0x50;
		t[13] = n > 1 ? in[1] : IRDMA_TCP_ACK;
		if (n > 2)
			memcpy(t + 20, in + 2, n - 2);
		rx.len = hdr + 20 + n - min(n, 2U);
	}
	rx.ip = p;
	irdma_receive_ilq(host->core, &rx);
	free(p);
	sim_run_for(mode & 16 ? 100 * MS : MS);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);
int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	sim_srandom(1);
	sim_wire = (struct sim_wire){ .delay_ns = 1000 };
	sim_sniffer = sniff;
	memset(their_next, 0, sizeof(their_next));
	memset(our_next, 0, sizeof(our_next));
	host = sim_host_new(US, false);
	sim_fiber(start, NULL);
	sim_run_for(10 * MS);
	while (size > 2) {
		size_t n = min((size_t)data[0], size - 2);

		one(data[1], data + 2, n);
		data += 2 + n;
		size -= 2 + n;
	}
	sim_fiber(stop, NULL);
	sim_run_until(stopped, NULL, 200 * SEC);
	sim_settle(host);
	SIM_CHECK(!sim_ids, "%d ids are left", sim_ids);
	sim_host_free(host);
	return 0;
}

#ifdef MAIN
int main(int argc, char **argv)
{
	static u8 buf[65536];
	int i;

	for (i = 1; i < argc; i++) {
		FILE *f = fopen(argv[i], "rb");
		size_t n;

		if (!f) {
			perror(argv[i]);
			return 1;
		}
		n = fread(buf, 1, sizeof(buf), f);
		fclose(f);
		LLVMFuzzerTestOneInput(buf, n);
	}
	sim_free_fibers();
	printf("%d passed, 0 failed\n", argc - 1);
	return 0;
}
#endif
