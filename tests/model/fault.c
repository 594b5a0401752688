// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * fault.c - fault rules of the wire: parsing, matching, random numbers.
 *
 * A rule is an action, a choice (so many per mille of the matching frames, or the
 * n-th matching one and the count-1 after it) and a filter.  Each rule has its own
 * random sequence, a function of the wire's seed and the rule's id, so adding a
 * rule does not change what another one does.  Used by switch.c only.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include "ctl.h"
#include "fault.h"
#include "net.h"
#include "wire.h"

enum { ACT_DROP, ACT_DUP, ACT_REORDER, ACT_DELAY, ACT_CORRUPT, ACT_SPLIT, ACT_NUM };
static const char *const act_name[ACT_NUM] = { "drop", "dup", "reorder", "delay", "corrupt",
					       "split" };

const char fault_help[] =
	"add ACTION rate=PERMILLE|nth=N [count=M] [from=PORT] [to=PORT] [sport=N] [dport=N] [port=N] "
	"[tcp=syn,-ack,...] [ether=N|ip4|ip6|arp] [proto=N] [len=MIN-MAX] [payload=MIN] [ms=N] "
	"[offset=N] [every=N] [checksum=fix] | list | del ID | clear   (ACTION: drop dup reorder delay corrupt split)";

enum { ANY = 0x10000 };			/* outside the range of the 16-bit fields */

struct rule {
	struct rule *next;
	u32 id;
	u8 act;
	u32 rate;			/* per mille; 0: use nth */
	u64 nth, count;
	char from[WIRE_MAX_NAME + 1], to[WIRE_MAX_NAME + 1];	/* empty: any */
	u32 sport, dport, port, ether, proto;	/* ANY or value */
	u8 tcp_set, tcp_clear;		/* flags that must be set / clear */
	u32 len_min, len_max, payload_min;
	u32 offset;			/* UINT32_MAX: random */
	bool cut_on;			/* and so on every @offset bytes */
	bool fix_checksum;
	u64 delay_ns;
	u64 random;
	u64 seen, hit;
	char *text;
};

struct fault_set {
	u64 seed;
	u32 next_id;
	struct rule *rules;
};

/* What the filters look at. */
struct headers {
	u16 ether;
	u8 proto, flags;
	bool ip, ports, tcp;
	u16 sport, dport;
	u32 ip_off, l4_off, end, payload;
};

static u64 next_random(u64 *s)		/* xorshift64* */
{
	*s ^= *s >> 12;
	*s ^= *s << 25;
	*s ^= *s >> 27;
	return *s * 0x2545f4914f6cdd1dull;
}

static void parse_headers(const u8 *f, u32 len, struct headers *h)
{
	u32 o = 14;

	memset(h, 0, sizeof(*h));
	h->ether = rb16(f + 12);
	if (h->ether == 0x8100 && len >= 18) {
		h->ether = rb16(f + 16);
		o = 18;
	}
	h->ip_off = o;
	if (h->ether == 0x0800 && len >= o + 20) {
		h->proto = f[o + 9];
		h->l4_off = o + (f[o] & 15) * 4;
		h->end = o + rb16(f + o + 2);
	} else if (h->ether == 0x86dd && len >= o + 40) {
		h->proto = f[o + 6];
		h->l4_off = o + 40;
		h->end = o + 40 + rb16(f + o + 4);
	} else {
		return;
	}
	h->ip = true;
	if (h->end > len)
		h->end = len;
	if ((h->proto != 6 && h->proto != 17) || h->l4_off + 8 > h->end)
		return;
	h->ports = true;
	h->sport = rb16(f + h->l4_off);
	h->dport = rb16(f + h->l4_off + 2);
	if (h->proto != 6 || h->l4_off + 20 > h->end)
		return;
	h->tcp = true;
	h->flags = f[h->l4_off + 13];
	h->payload = h->l4_off + (f[h->l4_off + 12] >> 4) * 4;
	h->payload = h->payload < h->end ? h->end - h->payload : 0;
}

static bool matches(const struct rule *r, const char *from, const char *to,
		    const struct headers *h, u32 len)
{
	bool tcp = r->tcp_set || r->tcp_clear || r->payload_min;
	bool ports = r->sport != ANY || r->dport != ANY || r->port != ANY;

	if ((*r->from && strcmp(r->from, from)) || (*r->to && strcmp(r->to, to)))
		return false;
	if (len < r->len_min || len > r->len_max || (r->ether != ANY && r->ether != h->ether))
		return false;
	if (r->proto != ANY && (!h->ip || r->proto != h->proto))
		return false;
	if (ports && (!h->ports || (r->sport != ANY && r->sport != h->sport) ||
		      (r->dport != ANY && r->dport != h->dport) ||
		      (r->port != ANY && r->port != h->sport && r->port != h->dport)))
		return false;
	return !tcp || (h->tcp && (h->flags & r->tcp_set) == r->tcp_set &&
			!(h->flags & r->tcp_clear) && h->payload >= r->payload_min);
}

static bool chosen(struct rule *r)
{
	r->seen++;
	if (r->rate)
		return next_random(&r->random) % 1000 < r->rate;
	return r->seen >= r->nth && r->seen - r->nth < r->count;
}

/* A bit of the frame behind the Ethernet header, or of the byte asked for. */
static void choose_bit(struct rule *r, u32 len, struct fault_verdict *v)
{
	u64 n = next_random(&r->random);

	v->corrupt = true;
	v->bit = n & 7;
	v->offset = r->offset != UINT32_MAX ? r->offset
		: WIRE_MIN_FRAME + (u32)((n >> 8) % (len > WIRE_MIN_FRAME ? len - WIRE_MIN_FRAME : 1));
	if (v->offset >= len)
		v->offset = len - 1;
	v->fix_checksum = r->fix_checksum;
}

/* Where the payload is cut; what has less than two bytes stays whole. */
static void choose_cut(struct rule *r, u32 payload, struct fault_verdict *v)
{
	u64 n = next_random(&r->random);

	if (payload < 2)
		return;
	v->split = true;
	v->cut_on = r->cut_on;
	v->cut = r->offset != UINT32_MAX ? r->offset : 1 + (u32)(n % (payload - 1));
	if (v->cut >= payload && !v->cut_on)
		v->cut = payload - 1;
}

bool fault_judge(struct fault_set *s, const char *from, const char *to, const u8 *frame, u32 len,
		 struct fault_verdict *v)
{
	struct headers h;
	bool any = false;

	memset(v, 0, sizeof(*v));
	if (!s->rules)
		return false;
	parse_headers(frame, len, &h);
	for (struct rule *r = s->rules; r; r = r->next) {
		if (!matches(r, from, to, &h, len) || !chosen(r))
			continue;
		r->hit++;
		any = true;
		switch (r->act) {
		case ACT_DROP: v->drop = true; break;
		case ACT_DUP: v->dup = true; break;
		case ACT_REORDER: v->reorder = true; break;
		case ACT_DELAY: v->delay_ns += r->delay_ns; break;
		case ACT_CORRUPT: choose_bit(r, len, v); break;
		case ACT_SPLIT: choose_cut(r, h.payload, v); break;
		}
	}
	return any;
}

/* commands */

static bool parse_flags(const char *s, struct rule *r)
{
	static const char *const name[] = { "fin", "syn", "rst", "psh", "ack", "urg" };
	char buf[64], *save;

	if (strlen(s) >= sizeof(buf))
		return false;
	strcpy(buf, s);
	for (char *w = strtok_r(buf, ",", &save); w; w = strtok_r(NULL, ",", &save)) {
		bool clear = *w == '-';
		size_t i;

		for (i = 0; i < ARRAY_SIZE(name) && strcmp(name[i], w + clear); i++)
			;
		if (i == ARRAY_SIZE(name))
			return false;
		*(clear ? &r->tcp_clear : &r->tcp_set) |= 1 << i;
	}
	return r->tcp_set || r->tcp_clear;
}

static bool parse_ether(const char *s, struct rule *r)
{
	u64 v = !strcmp(s, "ip4") ? 0x0800 : !strcmp(s, "ip6") ? 0x86dd :
		!strcmp(s, "arp") ? 0x0806 : 0;

	if (!v && !parse_num(s, 0, 0xffff, &v))
		return false;
	r->ether = v;
	return true;
}

static bool parse_range(const char *s, struct rule *r)
{
	u32 a, b;
	int n = 0;

	if (sscanf(s, "%u-%u%n", &a, &b, &n) != 2 || s[n] || a > b)
		return false;
	r->len_min = a;
	r->len_max = b;
	return true;
}

static bool parse_port_name(const char *s, char *out)
{
	if (!*s || strlen(s) > WIRE_MAX_NAME)
		return false;
	strcpy(out, s);
	return true;
}

static bool parse_u32(const char *s, u64 min, u64 max, u32 *out)
{
	u64 v;

	if (!parse_num(s, min, max, &v))
		return false;
	*out = v;
	return true;
}

static bool parse_word(struct rule *r, const char *key, const char *val)
{
	u64 v;

	if (!strcmp(key, "rate"))
		return parse_u32(val, 1, 1000, &r->rate);
	if (!strcmp(key, "nth"))
		return parse_num(val, 1, UINT64_MAX, &r->nth);
	if (!strcmp(key, "count"))
		return parse_num(val, 1, UINT64_MAX, &r->count);
	if (!strcmp(key, "from"))
		return parse_port_name(val, r->from);
	if (!strcmp(key, "to"))
		return parse_port_name(val, r->to);
	if (!strcmp(key, "sport"))
		return parse_u32(val, 0, 0xffff, &r->sport);
	if (!strcmp(key, "dport"))
		return parse_u32(val, 0, 0xffff, &r->dport);
	if (!strcmp(key, "port"))
		return parse_u32(val, 0, 0xffff, &r->port);
	if (!strcmp(key, "proto"))
		return parse_u32(val, 0, 255, &r->proto);
	if (!strcmp(key, "payload"))
		return parse_u32(val, 1, MAX_FRAME, &r->payload_min);
	if (!strcmp(key, "offset"))
		return parse_u32(val, 0, MAX_FRAME, &r->offset);
	if (!strcmp(key, "every"))
		return r->cut_on = parse_u32(val, 1, MAX_FRAME, &r->offset);
	if (!strcmp(key, "tcp"))
		return parse_flags(val, r);
	if (!strcmp(key, "ether"))
		return parse_ether(val, r);
	if (!strcmp(key, "len"))
		return parse_range(val, r);
	if (!strcmp(key, "checksum"))
		return r->fix_checksum = !strcmp(val, "fix");
	if (!strcmp(key, "ms") && parse_num(val, 1, 60000, &v)) {
		r->delay_ns = v * 1000000;
		return true;
	}
	return false;
}

static void rule_free(struct rule *r)
{
	free(r->text);
	free(r);
}

static char *join(int argc, char **argv)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	for (int i = 0; f && i < argc; i++)
		fprintf(f, "%s%s", i ? " " : "", argv[i]);
	if (f)
		fclose(f);
	return text;
}

static int add_rule(struct fault_set *s, int argc, char **argv, FILE *out)
{
	struct rule *r = zalloc(sizeof(*r)), **at;

	r->sport = r->dport = r->port = r->ether = r->proto = ANY;
	r->len_max = r->offset = UINT32_MAX;
	r->count = 1;
	while (r->act < ACT_NUM && strcmp(act_name[r->act], argv[0]))
		r->act++;
	if (r->act == ACT_NUM) {
		rule_free(r);
		return ctl_fail(out, "unknown action '%s' (drop, dup, reorder, delay, corrupt, split)", argv[0]);
	}
	r->text = join(argc, argv);
	for (int i = 1; i < argc; i++) {
		char *eq = strchr(argv[i], '=');

		if (eq)
			*eq = 0;
		if (!eq || !parse_word(r, argv[i], eq + 1)) {
			rule_free(r);
			return ctl_fail(out, "bad word '%s%s%s'; see 'help'", argv[i], eq ? "=" : "",
					eq ? eq + 1 : "");
		}
	}
	if (!r->rate == !r->nth || (r->act == ACT_DELAY) != !!r->delay_ns) {
		rule_free(r);
		return ctl_fail(out, "needs either rate= or nth=, and ms= exactly with delay");
	}
	r->id = s->next_id++;
	r->random = (s->seed + r->id) * 0x9e3779b97f4a7c15ull | 1;
	for (at = &s->rules; *at; at = &(*at)->next)
		;
	*at = r;
	fprintf(out, "%u\n", r->id);
	return 0;
}

static int delete_rule(struct fault_set *s, const char *arg, FILE *out)
{
	u64 id;

	if (!parse_num(arg, 0, UINT32_MAX, &id))
		return ctl_fail(out, "'%s' is not a rule id", arg);
	for (struct rule **at = &s->rules, *r; (r = *at); at = &r->next)
		if (r->id == id) {
			*at = r->next;
			rule_free(r);
			return 0;
		}
	return ctl_fail(out, "no rule %s", arg);
}

static void clear_rules(struct fault_set *s)
{
	struct rule *r;

	while ((r = s->rules)) {
		s->rules = r->next;
		rule_free(r);
	}
}

int fault_command(struct fault_set *s, int argc, char **argv, FILE *out)
{
	if (argc >= 3 && !strcmp(argv[1], "add"))
		return add_rule(s, argc - 2, argv + 2, out);
	if (argc == 3 && !strcmp(argv[1], "del"))
		return delete_rule(s, argv[2], out);
	if (argc == 2 && !strcmp(argv[1], "clear")) {
		clear_rules(s);
		return 0;
	}
	if (argc == 2 && !strcmp(argv[1], "list")) {
		for (struct rule *r = s->rules; r; r = r->next)
			fprintf(out, "%u seen %llu hit %llu %s\n", r->id, (unsigned long long)r->seen,
				(unsigned long long)r->hit, r->text ? r->text : "");
		return 0;
	}
	return ctl_fail(out, "usage: fault %s", fault_help);
}

struct fault_set *fault_new(u64 seed)
{
	struct fault_set *s = zalloc(sizeof(*s));

	s->seed = seed;
	s->next_id = 1;
	return s;
}

void fault_free(struct fault_set *s)
{
	clear_rules(s);
	free(s);
}
