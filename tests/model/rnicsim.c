// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * rnicsim.c - entry point: "rnicsim nic" is one adapter port, "rnicsim wire" the
 * switch between them.
 */
#include <stdio.h>
#include <string.h>
#include "nic.h"
#include "switch.h"

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "nic"))
		return nic_main(argc - 1, argv + 1);
	if (argc > 1 && !strcmp(argv[1], "wire"))
		return wire_main(argc - 1, argv + 1);
	fprintf(stderr, "usage: rnicsim nic|wire OPTION...   (an unknown option lists them)\n");
	return 2;
}
