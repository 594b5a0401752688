// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * switch.c - the wire process ("rnicsim wire"): a learning Ethernet switch for any
 * number of NIC processes and scripted peers, with a capture of every port and
 * faults on command (fault.c).  Protocol: wire.h.
 *
 * Frames move in batches: one system call reads up to WIRE_BATCH frames of a
 * port; what leaves through one port is sent with one call as well, straight
 * from the receive buffers.  A port that does not read loses frames beyond
 * MAX_QUEUE (tail drop, counted).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "ctl.h"
#include "fault.h"
#include "net.h"
#include "switch.h"
#include "wire.h"

#define MAX_PORTS	64
#define MAX_QUEUE	4096		/* frames waiting for a port's socket */
#define MAC_SLOTS	1024		/* power of two */

#define REORDER_NS	5000000ull	/* a held frame goes out after this at the latest */
#define PCAP_FLUSH_NS	300000000ull

struct frame {
	struct frame *next;
	u64 due;		/* delayed frames: when to send, ns */
	int port;		/* delayed frames: where to */
	bool overtaken;		/* delayed frames: leave right behind the port's next frame */
	u32 len;
	u8 data[];
};

struct port {
	int fd;			/* -1: slot is free */
	bool ready;		/* hello accepted */
	bool down;		/* link taken down */
	char name[WIRE_MAX_NAME + 1];
	FILE *pcap;
	struct frame *head, **tail;	/* waits for room in the socket */
	u32 queued;
	/* frames to send after this round; they point into the switch's receive buffers */
	u32 batch;
	struct iovec iov[WIRE_BATCH];
	u64 in, out, lost;	/* frames */
};

struct mac_entry {
	u8 mac[6];
	int port;		/* -1: free */
};

struct wire {
	struct port port[MAX_PORTS];
	struct mac_entry mac[MAC_SLOTS];
	struct frame *delayed;	/* sorted by due time */
	const char *pcap_dir;
	bool pcap_on, pcap_dirty;
	u64 pcap_flushed;
	struct timespec now;	/* of the current batch, for the captures */
	struct fault_set *faults;
	u8 rx[WIRE_BATCH][MAX_FRAME + 8];
};

/* captures */

static void pcap_open(struct wire *w, struct port *p)
{
	/* nanosecond pcap, version 2.4, snap length, Ethernet */
	const u32 head[6] = { 0xa1b23c4d, 2 | 4u << 16, 0, 0, 65535, 1 };
	char path[4096];

	if (!w->pcap_dir)
		return;
	snprintf(path, sizeof(path), "%s/%s.pcap", w->pcap_dir, p->name);
	p->pcap = fopen(path, "we");
	if (!p->pcap || fwrite(head, sizeof(head), 1, p->pcap) != 1) {
		logmsg("capture %s: %s", path, strerror(errno));
		return;
	}
	setvbuf(p->pcap, NULL, _IOFBF, 1 << 16);
}

static void pcap_write(struct wire *w, struct port *p, const u8 *f, u32 len)
{
	const u32 head[4] = { w->now.tv_sec, w->now.tv_nsec, len, len };

	if (!p->pcap || !w->pcap_on)
		return;
	if (fwrite(head, sizeof(head), 1, p->pcap) != 1 || fwrite(f, len, 1, p->pcap) != 1) {
		logmsg("capture of port %s stopped: %s", p->name, strerror(errno));
		fclose(p->pcap);
		p->pcap = NULL;
	}
	w->pcap_dirty = true;
}

static void pcap_flush(struct wire *w)
{
	for (struct port *p = w->port; p < w->port + MAX_PORTS; p++)
		if (p->pcap)
			fflush(p->pcap);
	w->pcap_dirty = false;
	w->pcap_flushed = mono_ns();
}

/* sending */

static struct frame *frame_copy(const u8 *data, u32 len)
{
	struct frame *f = zalloc(sizeof(*f) + len);

	f->len = len;
	memcpy(f->data, data, len);
	return f;
}

static void port_queue(struct port *p, const u8 *data, u32 len)
{
	if (p->queued == MAX_QUEUE) {
		p->lost++;
		return;
	}
	*p->tail = frame_copy(data, len);
	p->tail = &(*p->tail)->next;
	p->queued++;
}

/* Hand the batch to the socket; what it does not take is queued. */
static void port_flush(struct port *p)
{
	struct mmsghdr m[WIRE_BATCH] = { 0 };
	u32 sent = 0;
	int n;

	for (u32 i = 0; i < p->batch; i++) {
		m[i].msg_hdr.msg_iov = &p->iov[i];
		m[i].msg_hdr.msg_iovlen = 1;
	}
	while (!p->head && sent < p->batch) {
		n = sendmmsg(p->fd, m + sent, p->batch - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n <= 0)
			break;
		sent += n;
	}
	for (; sent < p->batch; sent++)
		port_queue(p, p->iov[sent].iov_base, p->iov[sent].iov_len);
	p->batch = 0;
}

static bool port_up(const struct port *p) { return p->fd >= 0 && p->ready && !p->down; }

/* "stable": data stays in place until the end of this round. */
static void port_emit(struct wire *w, struct port *p, u8 *data, u32 len, bool stable)
{
	if (!port_up(p))
		return;
	pcap_write(w, p, data, len);
	p->out++;
	if (p->batch == WIRE_BATCH)
		port_flush(p);
	p->iov[p->batch++] = (struct iovec){ data, len };
	if (!stable)
		port_flush(p);
}

static void delay(struct wire *w, struct frame *f, int port, u64 due, bool overtaken)
{
	struct frame **at = &w->delayed;

	f->port = port;
	f->due = due;
	f->overtaken = overtaken;
	while (*at && (*at)->due <= due)
		at = &(*at)->next;
	f->next = *at;
	*at = f;
}

static void release_overtaken(struct wire *w, int port)
{
	for (struct frame **at = &w->delayed, *f; (f = *at);) {
		if (f->port != port || !f->overtaken) {
			at = &f->next;
			continue;
		}
		*at = f->next;
		port_emit(w, &w->port[port], f->data, f->len, false);
		free(f);
	}
}

static void release_due(struct wire *w)
{
	u64 now = w->delayed ? mono_ns() : 0;
	struct frame *f;

	if (w->delayed)
		clock_gettime(CLOCK_REALTIME, &w->now);
	while ((f = w->delayed) && f->due <= now) {
		w->delayed = f->next;
		port_emit(w, &w->port[f->port], f->data, f->len, false);
		free(f);
	}
}

#define TCP_FIN 0x01
#define TCP_PSH 0x08

/* Where the headers of a TCP segment lie. */
struct segment {
	u32 ip, th, end;
	bool v4;
};

static bool find_segment(const u8 *f, u32 len, struct segment *s)
{
	s->ip = rb16(f + 12) == 0x8100 ? 18 : 14;
	if (len < s->ip + 40)
		return false;
	s->v4 = f[s->ip] >> 4 == 4;
	s->th = s->ip + (s->v4 ? (f[s->ip] & 15) * 4 : 40);
	s->end = s->v4 ? s->ip + rb16(f + s->ip + 2) : s->ip + 40 + rb16(f + s->ip + 4);
	return s->th + 20 <= s->end && s->end <= len;
}

static void put_tcp_checksum(u8 *f, const struct segment *s)
{
	be16(f + s->th + 16, 0);
	be16(f + s->th + 16, tcp_checksum(f + s->ip, s->v4, f + s->th, s->end - s->th));
}

static void corrupt(u8 *f, u32 len, const struct fault_verdict *v)
{
	struct segment s;

	f[v->offset] ^= 1 << v->bit;
	if (v->fix_checksum && find_segment(f, len, &s))
		put_tcp_checksum(f, &s);
}

/* The segment ends at s->end from now on. */
static void put_segment_end(u8 *f, const struct segment *s)
{
	if (s->v4) {
		be16(f + s->ip + 2, s->end - s->ip);
		be16(f + s->ip + 10, 0);
		be16(f + s->ip + 10, fold(sum16(f + s->ip, s->th - s->ip, 0)));
	} else {
		be16(f + s->ip + 4, s->end - s->th);
	}
	put_tcp_checksum(f, s);
}

/* Take what lies behind the first "cut" bytes of payload out of a segment, as one of its own. */
static struct frame *split(struct frame *f, u32 cut)
{
	struct frame *rest;
	struct segment s;
	u32 data, at;

	if (!find_segment(f->data, f->len, &s))
		return NULL;
	data = s.th + (f->data[s.th + 12] >> 4) * 4;
	at = data + cut;
	if (at >= s.end)
		return NULL;
	rest = frame_copy(f->data, s.end);
	memmove(rest->data + data, f->data + at, s.end - at);
	be32(rest->data + s.th + 4, rb32(f->data + s.th + 4) + cut);
	s.end -= cut;
	put_segment_end(rest->data, &s);
	rest->len = s.end;
	f->data[s.th + 13] &= ~(TCP_FIN | TCP_PSH);
	s.end = at;
	put_segment_end(f->data, &s);
	f->len = at;
	return rest;
}

/* A damaged frame goes on: now, or when its time has come. */
static void pass_on(struct wire *w, int to, struct frame *f, const struct fault_verdict *v)
{
	u64 wait = v->delay_ns ? v->delay_ns : REORDER_NS;

	if (!v->delay_ns && !v->reorder) {
		port_emit(w, &w->port[to], f->data, f->len, false);
		if (v->dup)
			port_emit(w, &w->port[to], f->data, f->len, false);
		free(f);
		return;
	}
	if (v->dup)
		delay(w, frame_copy(f->data, f->len), to, mono_ns() + wait, v->reorder);
	delay(w, f, to, mono_ns() + wait, v->reorder);
}

/* One frame leaves through one port, damaged as the rules say. */
static void deliver(struct wire *w, int from, int to, u8 *data, u32 len)
{
	struct fault_verdict v;
	struct frame *f, *rest;

	if (!port_up(&w->port[to]))
		return;
	if (!fault_judge(w->faults, w->port[from].name, w->port[to].name, data, len, &v)) {
		port_emit(w, &w->port[to], data, len, true);
		if (w->delayed)
			release_overtaken(w, to);
		return;
	}
	if (v.drop)
		return;
	f = frame_copy(data, len);
	if (v.corrupt)
		corrupt(f->data, len, &v);
	do {
		rest = v.split ? split(f, v.cut) : NULL;
		pass_on(w, to, f, &v);
		f = rest;
		v.split = v.cut_on;
	} while (f);
	if (!v.delay_ns && !v.reorder)
		release_overtaken(w, to);
}

/* switching */

/* Slot of the address, or the free one where it belongs; NULL: neighbourhood is full. */
static struct mac_entry *mac_slot(struct wire *w, const u8 *mac)
{
	u32 h = (ld32(mac + 2) ^ ld16(mac)) * 2654435761u >> 22;
	struct mac_entry *free_slot = NULL;

	for (u32 i = 0; i < 8; i++) {
		struct mac_entry *m = &w->mac[(h + i) & (MAC_SLOTS - 1)];

		if (m->port >= 0 && !memcmp(m->mac, mac, 6))
			return m;
		if (m->port < 0 && !free_slot)
			free_slot = m;
	}
	return free_slot;
}

static void forget_macs(struct wire *w, int port)
{
	for (u32 i = 0; i < MAC_SLOTS; i++)
		if (w->mac[i].port == port)
			w->mac[i].port = -1;
}

static void forward(struct wire *w, int from, u8 *data, u32 len)
{
	struct port *p = &w->port[from];
	struct mac_entry *m;

	if (!port_up(p))
		return;
	p->in++;
	pcap_write(w, p, data, len);
	if (!(data[6] & 1)) {
		m = mac_slot(w, data + 6);
		if (m) {
			memcpy(m->mac, data + 6, 6);
			m->port = from;
		}
	}
	m = data[0] & 1 ? NULL : mac_slot(w, data);
	if (m && m->port >= 0) {
		if (m->port != from)
			deliver(w, from, m->port, data, len);
		return;
	}
	for (int i = 0; i < MAX_PORTS; i++)
		if (i != from)
			deliver(w, from, i, data, len);
}

/* ports */

static void port_control(struct port *p, const char *word)
{
	if (send(p->fd, word, strlen(word), MSG_NOSIGNAL) < 0)
		logmsg("port %s: control word '%s' lost: %s", p->name, word, strerror(errno));
}

static void port_close(struct wire *w, int n)
{
	struct port *p = &w->port[n];
	struct frame *f;

	if (p->ready)
		logmsg("port %s gone: %llu frames in, %llu out, %llu lost", p->name,
		       (unsigned long long)p->in, (unsigned long long)p->out,
		       (unsigned long long)p->lost);
	close(p->fd);
	if (p->pcap)
		fclose(p->pcap);
	while ((f = p->head)) {
		p->head = f->next;
		free(f);
	}
	for (struct frame **at = &w->delayed; (f = *at);) {
		if (f->port == n) {
			*at = f->next;
			free(f);
		} else {
			at = &f->next;
		}
	}
	forget_macs(w, n);
	*p = (struct port){ .fd = -1, .tail = &p->head };
}

static struct port *port_by_name(struct wire *w, const char *name)
{
	for (struct port *p = w->port; p < w->port + MAX_PORTS; p++)
		if (p->fd >= 0 && p->ready && !strcmp(p->name, name))
			return p;
	return NULL;
}

static bool valid_name(const char *s)
{
	if (!*s || strlen(s) > WIRE_MAX_NAME || *s == '.')
		return false;
	for (; *s; s++)
		if (*s <= ' ' || *s == '/' || *s == '=' || *s > '~')
			return false;
	return true;
}

static void hello(struct wire *w, struct port *p, const char *text, u32 len)
{
	const u32 n = strlen(WIRE_HELLO);
	char name[MAX_FRAME + 9] = "";

	if (len > n && !memcmp(text, WIRE_HELLO, n))
		snprintf(name, sizeof(name), "%.*s", (int)(len - n), text + n);
	if (!valid_name(name) || port_by_name(w, name)) {
		logmsg("port refused: %s '%.40s'", *name && valid_name(name) ? "duplicate name" :
		       "bad hello or name", name);
		port_control(p, "refused");
		port_close(w, p - w->port);
		return;
	}
	memcpy(p->name, name, strlen(name) + 1);
	p->ready = true;
	logmsg("port %s connected", p->name);
	pcap_open(w, p);
	port_control(p, "ok");
	port_control(p, "up");
}

static void port_accept(struct wire *w, int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	int big = WIRE_SOCK_BUF;

	if (fd < 0)
		return;
	for (struct port *p = w->port; p < w->port + MAX_PORTS; p++)
		if (p->fd < 0) {
			setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &big, sizeof(big));
			p->fd = fd;
			p->tail = &p->head;
			return;
		}
	logmsg("port refused: all %d are in use", MAX_PORTS);
	close(fd);
}

static void port_receive(struct wire *w, int n)
{
	struct mmsghdr m[WIRE_BATCH] = { 0 };
	struct iovec iov[WIRE_BATCH];
	struct port *p = &w->port[n];
	int got;

	for (int i = 0; i < WIRE_BATCH; i++) {
		iov[i] = (struct iovec){ w->rx[i], sizeof(w->rx[i]) };
		m[i].msg_hdr.msg_iov = &iov[i];
		m[i].msg_hdr.msg_iovlen = 1;
	}
	got = recvmmsg(p->fd, m, WIRE_BATCH, MSG_DONTWAIT, NULL);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	clock_gettime(CLOCK_REALTIME, &w->now);
	for (int i = 0; i < got; i++) {
		u32 len = m[i].msg_len;

		if (!len) {
			got = 0;
			break;
		}
		if (!p->ready) {
			hello(w, p, (char *)w->rx[i], len);
			if (p->fd < 0)
				return;
		} else if (len >= WIRE_MIN_FRAME && len <= MAX_FRAME) {
			forward(w, n, w->rx[i], len);
		}
	}
	for (struct port *o = w->port; o < w->port + MAX_PORTS; o++)
		if (o->batch)
			port_flush(o);
	if (got <= 0)
		port_close(w, n);
}

static void port_drain(struct port *p)
{
	struct frame *f;

	while ((f = p->head) && send(p->fd, f->data, f->len, MSG_NOSIGNAL) >= 0) {
		p->head = f->next;
		if (!p->head)
			p->tail = &p->head;
		p->queued--;
		free(f);
	}
}

/* commands */

static int cmd_ports(void *ctx, int argc, char **argv, FILE *out)
{
	struct wire *w = ctx;

	(void)argc;
	(void)argv;
	for (struct port *p = w->port; p < w->port + MAX_PORTS; p++)
		if (p->fd >= 0 && p->ready)
			fprintf(out, "%s link %s in %llu out %llu lost %llu queued %u\n", p->name,
				p->down ? "down" : "up", (unsigned long long)p->in,
				(unsigned long long)p->out, (unsigned long long)p->lost, p->queued);
	return 0;
}

static int cmd_link(void *ctx, int argc, char **argv, FILE *out)
{
	struct wire *w = ctx;
	struct port *p;

	if (argc != 3 || (strcmp(argv[1], "up") && strcmp(argv[1], "down")))
		return ctl_fail(out, "usage: link up|down PORT");
	p = port_by_name(w, argv[2]);
	if (!p)
		return ctl_fail(out, "no port '%s'; 'ports' lists them", argv[2]);
	p->down = !strcmp(argv[1], "down");
	if (p->down)
		forget_macs(w, p - w->port);
	port_control(p, argv[1]);
	return 0;
}

static int cmd_fault(void *ctx, int argc, char **argv, FILE *out)
{
	return fault_command(((struct wire *)ctx)->faults, argc, argv, out);
}

static int cmd_pcap(void *ctx, int argc, char **argv, FILE *out)
{
	struct wire *w = ctx;

	if (argc != 2 || (strcmp(argv[1], "on") && strcmp(argv[1], "off") && strcmp(argv[1], "flush")))
		return ctl_fail(out, "usage: pcap on|off|flush");
	if (!w->pcap_dir)
		return ctl_fail(out, "the wire runs without --pcap-dir");
	if (strcmp(argv[1], "flush"))
		w->pcap_on = !strcmp(argv[1], "on");
	pcap_flush(w);
	return 0;
}

static const struct ctl_cmd commands[] = {
	{ "ports", "- one line a port: name, link, frame counters", cmd_ports },
	{ "link", "up|down PORT - take a port's link down, or up again", cmd_link },
	{ "fault", fault_help, cmd_fault },
	{ "pcap", "on|off|flush - captures; flush makes the files complete", cmd_pcap },
	{ NULL, NULL, NULL }
};

/* main */

static int usage(const char *why, const char *value)
{
	if (why)
		fprintf(stderr, "rnicsim wire: %s%s%s\n", why, value ? ": " : "", value ? value : "");
	fprintf(stderr,
		"usage: rnicsim wire --listen PATH [OPTION...]\n"
		"  --listen PATH        socket that ports connect to\n"
		"  --control PATH       socket for rnicctl\n"
		"  --pcap-dir DIR       capture every port to DIR/NAME.pcap\n"
		"  --seed N             seed of the fault rules (default 1)\n"
		"  --log FILE           messages (default: standard error)\n");
	return 2;
}

static int next_timeout(struct wire *w)
{
	u64 at = w->delayed ? w->delayed->due : UINT64_MAX, now;

	if (w->pcap_dirty && w->pcap_flushed + PCAP_FLUSH_NS < at)
		at = w->pcap_flushed + PCAP_FLUSH_NS;
	if (at == UINT64_MAX)
		return -1;
	now = mono_ns();
	return at <= now ? 0 : (int)((at - now + 999999) / 1000000);
}

static int event_loop(struct wire *w, int stop, int listener, int control)
{
	struct pollfd pf[MAX_PORTS + 3];

	for (;;) {
		for (int i = 0; i < MAX_PORTS; i++)
			pf[i] = (struct pollfd){ w->port[i].fd,
				POLLIN | (w->port[i].head ? POLLOUT : 0), 0 };
		pf[MAX_PORTS] = (struct pollfd){ stop, POLLIN, 0 };
		pf[MAX_PORTS + 1] = (struct pollfd){ listener, POLLIN, 0 };
		pf[MAX_PORTS + 2] = (struct pollfd){ control, POLLIN, 0 };
		if (poll(pf, MAX_PORTS + 3, next_timeout(w)) < 0 && errno != EINTR)
			return 1;
		if (pf[MAX_PORTS].revents)
			return 0;
		for (int i = 0; i < MAX_PORTS; i++) {
			if (pf[i].revents & POLLOUT)
				port_drain(&w->port[i]);
			if (pf[i].revents & (POLLIN | POLLHUP | POLLERR) && w->port[i].fd >= 0)
				port_receive(w, i);
		}
		release_due(w);
		if (pf[MAX_PORTS + 1].revents)
			port_accept(w, listener);
		if (pf[MAX_PORTS + 2].revents)
			ctl_serve(control, commands, w);
		if (w->pcap_dirty && mono_ns() - w->pcap_flushed >= PCAP_FLUSH_NS)
			pcap_flush(w);
	}
}

enum { OPT_LISTEN = 256, OPT_CONTROL, OPT_PCAP_DIR, OPT_SEED, OPT_LOG };

static const struct option long_options[] = {
	{ "listen", 1, NULL, OPT_LISTEN },	{ "control", 1, NULL, OPT_CONTROL },
	{ "pcap-dir", 1, NULL, OPT_PCAP_DIR },	{ "seed", 1, NULL, OPT_SEED },
	{ "log", 1, NULL, OPT_LOG },		{ NULL, 0, NULL, 0 }
};

int wire_main(int argc, char **argv)
{
	const char *listen_path = NULL, *control_path = NULL, *log = NULL;
	static struct wire wire;
	struct wire *w = &wire;
	int c, stop, listener, control = -1, rc;
	struct stat st;
	u64 seed = 1;

	while ((c = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		switch (c) {
		case OPT_LISTEN: listen_path = optarg; break;
		case OPT_CONTROL: control_path = optarg; break;
		case OPT_PCAP_DIR: w->pcap_dir = optarg; break;
		case OPT_LOG: log = optarg; break;
		case OPT_SEED:
			if (!parse_num(optarg, 0, UINT64_MAX, &seed))
				return usage("seed is a number, not", optarg);
			break;
		default:
			return usage(NULL, NULL);
		}
	}
	if (optind < argc)
		return usage("unexpected argument", argv[optind]);
	if (!listen_path)
		return usage("--listen is needed", NULL);
	if (w->pcap_dir && (stat(w->pcap_dir, &st) || !S_ISDIR(st.st_mode)))
		return usage("not a directory", w->pcap_dir);
	if (log_open("wire", log))
		return 1;
	w->pcap_on = true;
	w->faults = fault_new(seed);
	for (int i = 0; i < MAX_PORTS; i++)
		w->port[i].fd = -1;
	for (int i = 0; i < MAC_SLOTS; i++)
		w->mac[i].port = -1;
	stop = stop_fd();
	listener = unix_listen(listen_path, SOCK_SEQPACKET);
	if (listener < 0)
		return 1;
	if (control_path) {
		control = unix_listen(control_path, SOCK_STREAM);
		if (control < 0) {
			unlink(listen_path);
			return 1;
		}
	}
	logmsg("listening on %s", listen_path);
	rc = event_loop(w, stop, listener, control);
	for (int i = 0; i < MAX_PORTS; i++)
		if (w->port[i].fd >= 0)
			port_close(w, i);
	unlink(listen_path);
	if (control_path)
		unlink(control_path);
	fault_free(w->faults);
	return rc;
}
