/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * util.h - types, memory access, log and small helpers shared by every part of
 * the model.
 *
 * Device structures are little endian; a little-endian host (x86-64) is assumed,
 * so plain loads and stores are used for them.  Network byte order has its own
 * helpers in net.h.
 */
#ifndef UTIL_H
#define UTIL_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define MAX_FRAME	9728		/* Ethernet frame without FCS, bytes */

static inline u16 ld16(const void *p) { u16 v; memcpy(&v, p, 2); return v; }
static inline u32 ld32(const void *p) { u32 v; memcpy(&v, p, 4); return v; }
static inline u64 ld64(const void *p) { u64 v; memcpy(&v, p, 8); return v; }
static inline void st16(void *p, u16 v) { memcpy(p, &v, 2); }
static inline void st32(void *p, u32 v) { memcpy(p, &v, 4); }
static inline void st64(void *p, u64 v) { memcpy(p, &v, 8); }

/* Log lines carry seconds since log_open() and the tag (the port's name). */
int  log_open(const char *tag, const char *file);
void logmsg(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
u64  mono_ns(void);
void *zalloc(size_t n);			/* zeroed; ends the process when memory is out */

/* UNIX sockets; on failure a message was printed and -1 is returned. */
int unix_listen(const char *path, int type);
int unix_connect(const char *path, int type);	/* silent, errno is set */

/* Descriptor that becomes readable on SIGTERM or SIGINT. */
int stop_fd(void);

/*
 * Numbers and addresses of the command line and of control commands; false
 * unless the whole string is valid and in range.
 */
bool parse_num(const char *s, u64 min, u64 max, u64 *out);
bool parse_mac(const char *s, u8 mac[6]);

#endif
