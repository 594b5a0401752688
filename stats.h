/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Hardware counters (spec 01, 7.5; spec 02, 8.4).
 */
#ifndef IRDMA_STATS_H
#define IRDMA_STATS_H

#include <linux/types.h>

struct irdma_device;

/**
 * struct irdma_counter - a counter and where hardware writes it
 * @name: as shown to user space
 * @word: 64-bit word of the gather buffer
 * @shift: lowest bit in that word
 * @width: bits; counting goes on at 0 behind the highest value
 */
struct irdma_counter {
	const char *name;
	u16 word;
	u8 shift;
	u8 width;
};

/* irdma_hw_gen.counters of E810; the order is that of user space. */
#define IRDMA_E810_COUNTERS	46
extern const struct irdma_counter irdma_e810_counters[IRDMA_E810_COUNTERS];

int irdma_stats_create(struct irdma_device *dev);
void irdma_stats_destroy(struct irdma_device *dev);
void irdma_stats_start(struct irdma_device *dev);
void irdma_stats_stop(struct irdma_device *dev);

#endif
