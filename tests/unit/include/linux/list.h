/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The part of the kernel's doubly linked list that fpdu.c uses. */
#ifndef SHIM_LIST_H
#define SHIM_LIST_H

#include "shim.h"

struct list_head {
	struct list_head *next, *prev;
};

static inline void INIT_LIST_HEAD(struct list_head *head)
{
	head->next = head;
	head->prev = head;
}

static inline bool list_empty(const struct list_head *head)
{
	return head->next == head;
}

static inline void list_add_tail(struct list_head *entry, struct list_head *head)
{
	entry->prev = head->prev;
	entry->next = head;
	head->prev->next = entry;
	head->prev = entry;
}

static inline void list_move_tail(struct list_head *entry, struct list_head *head)
{
	entry->prev->next = entry->next;
	entry->next->prev = entry->prev;
	list_add_tail(entry, head);
}

#define list_entry(ptr, type, member)	((type *)((char *)(ptr) - offsetof(type, member)))
#define list_last_entry(head, type, member)	list_entry((head)->prev, type, member)

#define list_for_each_entry(pos, head, member) \
	for (pos = list_entry((head)->next, __typeof__(*pos), member); &pos->member != (head); \
	     pos = list_entry(pos->member.next, __typeof__(*pos), member))

#define list_for_each_entry_safe(pos, n, head, member) \
	for (pos = list_entry((head)->next, __typeof__(*pos), member), \
	     n = list_entry(pos->member.next, __typeof__(*pos), member); &pos->member != (head); \
	     pos = n, n = list_entry(n->member.next, __typeof__(*n), member))

#endif
