/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#include_next <linux/types.h>
#include "shim.h"
