// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Prints where members of C structures lie, from BTF (the kernel's type format), as
 * #define lines.  Built and run on the build host by scripts/ice-layout.
 *
 * usage: btf-fields VMLINUX MODULE STRUCT.MEMBER:SIZE...
 *
 * VMLINUX and MODULE are ELF files with a .BTF section or raw BTF (/sys/kernel/btf/...).
 * A module's BTF continues the type numbers and string offsets of the kernel's.  SIZE is
 * what the reader of the member expects, in bytes, 0 for any; another size is an error.
 * Format: Documentation/bpf/btf.rst of the kernel.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/btf.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define POINTER_SIZE	8
#define MAX_DEPTH	32	/* of nested types; a loop in a damaged file ends here */

/* One file's BTF: types numbered from first_type, strings at offsets from first_str. */
struct btf {
	const char *path;
	const struct btf *base;
	const struct btf_type **types;
	const char *strings;
	uint32_t first_type;
	uint32_t num_types;
	uint32_t first_str;
	uint32_t str_len;
};

static void die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fputs("btf-fields: ", stderr);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
	exit(1);
}

static void *read_file(const char *path, size_t *len)
{
	size_t room = 1 << 20;
	char *buf = malloc(room);
	int fd = open(path, O_RDONLY);
	ssize_t n;

	if (fd < 0)
		die("%s: %s", path, strerror(errno));
	*len = 0;
	/* Files in sysfs do not tell their size. */
	while (buf && (n = read(fd, buf + *len, room - *len)) > 0) {
		*len += n;
		if (*len == room)
			buf = realloc(buf, room *= 2);
	}
	if (!buf || n < 0)
		die("%s: %s", path, strerror(errno));
	close(fd);
	return buf;
}

/* The .BTF section of an ELF file, or the whole of a raw file. */
static const void *find_btf(const char *path, const char *data, size_t *len)
{
	const Elf64_Ehdr *eh = (const void *)data;
	const Elf64_Shdr *sh, *names;
	unsigned int i;

	if (*len < sizeof(*eh) || memcmp(eh->e_ident, ELFMAG, SELFMAG))
		return data;
	if (eh->e_ident[EI_CLASS] != ELFCLASS64 || eh->e_shentsize != sizeof(*sh) ||
	    eh->e_shoff > *len || (*len - eh->e_shoff) / sizeof(*sh) < eh->e_shnum ||
	    eh->e_shstrndx >= eh->e_shnum)
		die("%s: not a 64-bit ELF file with sections", path);
	sh = (const void *)(data + eh->e_shoff);
	names = &sh[eh->e_shstrndx];
	if (names->sh_offset > *len || names->sh_size > *len - names->sh_offset ||
	    !names->sh_size || data[names->sh_offset + names->sh_size - 1])
		die("%s: damaged section names", path);
	for (i = 0; i < eh->e_shnum; i++) {
		if (sh[i].sh_name >= names->sh_size ||
		    strcmp(data + names->sh_offset + sh[i].sh_name, ".BTF"))
			continue;
		if (sh[i].sh_offset > *len || sh[i].sh_size > *len - sh[i].sh_offset)
			die("%s: damaged .BTF section", path);
		*len = sh[i].sh_size;
		return data + sh[i].sh_offset;
	}
	die("%s: no .BTF section", path);
	return NULL;
}

static size_t type_size(const struct btf_type *t)
{
	size_t vlen = BTF_INFO_VLEN(t->info);

	switch (BTF_INFO_KIND(t->info)) {
	case BTF_KIND_INT:
	case BTF_KIND_VAR:
	case BTF_KIND_DECL_TAG:
		return sizeof(*t) + sizeof(uint32_t);
	case BTF_KIND_ARRAY:
		return sizeof(*t) + sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return sizeof(*t) + vlen * sizeof(struct btf_member);
	case BTF_KIND_ENUM:
		return sizeof(*t) + vlen * sizeof(struct btf_enum);
	case BTF_KIND_FUNC_PROTO:
		return sizeof(*t) + vlen * sizeof(struct btf_param);
	case BTF_KIND_DATASEC:
	case 19:	/* ENUM64, newer than some hosts' headers */
		return sizeof(*t) + vlen * 12;
	default:
		return sizeof(*t);
	}
}

static struct btf *load(const char *path, const struct btf *base)
{
	struct btf *btf = calloc(1, sizeof(*btf));
	const struct btf_header *hdr;
	const char *pos, *end;
	uint32_t room = 0;
	size_t len;

	if (!btf)
		die("out of memory");
	btf->path = path;
	btf->base = base;
	pos = read_file(path, &len);
	hdr = find_btf(path, pos, &len);
	if (len < sizeof(*hdr) || hdr->magic != BTF_MAGIC || hdr->hdr_len > len ||
	    hdr->type_off > len - hdr->hdr_len ||
	    hdr->type_len > len - hdr->hdr_len - hdr->type_off ||
	    hdr->str_off > len - hdr->hdr_len ||
	    hdr->str_len > len - hdr->hdr_len - hdr->str_off || !hdr->str_len)
		die("%s: damaged BTF", path);
	btf->strings = (const char *)hdr + hdr->hdr_len + hdr->str_off;
	btf->str_len = hdr->str_len;
	if (btf->strings[btf->str_len - 1])
		die("%s: damaged BTF strings", path);
	btf->first_type = base ? base->first_type + base->num_types : 1;
	btf->first_str = base ? base->first_str + base->str_len : 0;

	pos = (const char *)hdr + hdr->hdr_len + hdr->type_off;
	for (end = pos + hdr->type_len; pos < end; btf->num_types++) {
		if ((size_t)(end - pos) < sizeof(struct btf_type) ||
		    (size_t)(end - pos) < type_size((const void *)pos))
			die("%s: damaged BTF types", path);
		if (btf->num_types == room) {
			room = room ? 2 * room : 4096;
			btf->types = realloc(btf->types, room * sizeof(*btf->types));
			if (!btf->types)
				die("out of memory");
		}
		btf->types[btf->num_types] = (const void *)pos;
		pos += type_size((const void *)pos);
	}
	return btf;
}

static const struct btf_type *type_of(const struct btf *btf, uint32_t id)
{
	for (; btf; btf = btf->base)
		if (id >= btf->first_type && id - btf->first_type < btf->num_types)
			return btf->types[id - btf->first_type];
	return NULL;
}

static const char *string_of(const struct btf *btf, uint32_t off)
{
	for (; btf; btf = btf->base)
		if (off >= btf->first_str && off - btf->first_str < btf->str_len)
			return btf->strings + off - btf->first_str;
	return "";
}

/* Size of a value of the type in bytes; 0: has none or is not understood. */
static uint64_t value_size(const struct btf *btf, uint32_t id, int depth)
{
	const struct btf_type *t = type_of(btf, id);
	const struct btf_array *array;

	if (!t || depth > MAX_DEPTH)
		return 0;
	switch (BTF_INFO_KIND(t->info)) {
	case BTF_KIND_PTR:
		return POINTER_SIZE;
	case BTF_KIND_ARRAY:
		array = (const void *)(t + 1);
		return array->nelems * value_size(btf, array->type, depth + 1);
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_CONST:
	case BTF_KIND_RESTRICT:
	case 18:	/* TYPE_TAG */
		return value_size(btf, t->type, depth + 1);
	case BTF_KIND_INT:
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
	case BTF_KIND_ENUM:
	case 19:
		return t->size;
	default:
		return 0;
	}
}

/* Looks for a member, in nested structures without a name as well. */
static bool find_member(const struct btf *btf, const struct btf_type *t, const char *name,
			int depth, uint64_t *bit, uint32_t *type)
{
	const struct btf_member *m = (const void *)(t + 1);
	unsigned int i, n = BTF_INFO_VLEN(t->info);
	const struct btf_type *inner;
	uint64_t at;

	for (i = 0; i < n; i++, m++) {
		at = BTF_INFO_KFLAG(t->info) ? BTF_MEMBER_BIT_OFFSET(m->offset) : m->offset;
		if (!strcmp(string_of(btf, m->name_off), name)) {
			if (BTF_INFO_KFLAG(t->info) && BTF_MEMBER_BITFIELD_SIZE(m->offset))
				return false;
			*bit = at;
			*type = m->type;
			return true;
		}
		inner = type_of(btf, m->type);
		if (m->name_off || !inner || depth > MAX_DEPTH ||
		    (BTF_INFO_KIND(inner->info) != BTF_KIND_STRUCT &&
		     BTF_INFO_KIND(inner->info) != BTF_KIND_UNION))
			continue;
		if (find_member(btf, inner, name, depth + 1, bit, type)) {
			*bit += at;
			return true;
		}
	}
	return false;
}

static void print_field(const struct btf *btf, char *field)
{
	const struct btf_type *t = NULL;
	uint64_t bit, size, wanted;
	char *member, *colon, *c;
	uint32_t i, type;

	member = strchr(field, '.');
	colon = member ? strchr(member, ':') : NULL;
	if (!colon)
		die("%s: expected STRUCT.MEMBER:SIZE", field);
	*member++ = '\0';
	*colon++ = '\0';
	wanted = strtoull(colon, NULL, 10);

	for (i = 0; i < btf->num_types; i++)
		if (BTF_INFO_KIND(btf->types[i]->info) == BTF_KIND_STRUCT &&
		    !strcmp(string_of(btf, btf->types[i]->name_off), field))
			t = btf->types[i];
	if (!t)
		die("%s: no struct %s", btf->path, field);
	if (!find_member(btf, t, member, 0, &bit, &type) || bit % 8)
		die("%s: struct %s has no member %s", btf->path, field, member);
	size = value_size(btf, type, 0);
	if (wanted && size != wanted)
		die("%s: %s.%s has %llu bytes, expected %llu", btf->path, field, member,
		    (unsigned long long)size, (unsigned long long)wanted);

	printf("#define ");
	for (c = field; *c; c++)
		putchar(*c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c);
	putchar('_');
	for (c = member; *c; c++)
		putchar(*c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c);
	printf("\t%llu\n", (unsigned long long)bit / 8);
}

int main(int argc, char **argv)
{
	struct btf *btf;
	int i;

	if (argc < 4)
		die("usage: btf-fields VMLINUX MODULE STRUCT.MEMBER:SIZE...");
	btf = load(argv[2], load(argv[1], NULL));
	for (i = 3; i < argc; i++)
		print_field(btf, argv[i]);
	if (fflush(stdout) || ferror(stdout))
		die("cannot write: %s", strerror(errno));
	return 0;
}
