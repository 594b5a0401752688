/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * wire.h - protocol between a port (NIC process or scripted peer) and the wire.
 *
 * UNIX SOCK_SEQPACKET, one packet a message.  A port's first packet is
 * WIRE_HELLO followed by its name; afterwards a packet of WIRE_MIN_FRAME bytes
 * or more is an Ethernet frame without FCS, a shorter one a control word:
 *   wire to port: "ok" (hello accepted), "refused" (bad or duplicate name; the
 *                 wire then closes), "up" and "down" (link state; "up" follows
 *                 "ok" unless the link was taken down before).
 * A port sends no control words.
 */
#ifndef WIRE_H
#define WIRE_H

#include "util.h"

#define WIRE_HELLO	"rnicwire1 "
#define WIRE_MIN_FRAME	14
#define WIRE_MAX_NAME	31
#define WIRE_BATCH	32		/* frames moved by one system call */
#define WIRE_SOCK_BUF	(8 << 20)	/* bytes, socket buffer of either end */

#endif
