/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#ifndef SWITCH_H
#define SWITCH_H

/* "rnicsim wire": runs until SIGTERM; returns the exit status. */
int wire_main(int argc, char **argv);

#endif
