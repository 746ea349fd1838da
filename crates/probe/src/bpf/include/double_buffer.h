/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Double-buffered tables: programs add to the open table, user space reads and empties the other
 * one. No count is lost between reading and deletion. */
#pragma once
#include "bpf.h"

/* The open table: 1 or 2. Initially 0: nothing is counted until user space is ready. */
struct {
	UINT(type, MAP_ARRAY);
	UINT(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, u32);
} turn SEC(".maps");

#define TABLE(name, key_type, value_type, entries)  \
	struct {                                    \
		UINT(type, MAP_HASH);               \
		UINT(max_entries, entries);         \
		TYPE(key, key_type);                \
		TYPE(value, value_type);            \
	} name SEC(".maps")

/* Statistics of an object's programs about themselves, per CPU. */
struct own {
	u64 runs[4]; /* by program, in the order of the names in user space */
	u64 lost; /* events that did not fit into a table */
};

struct {
	UINT(type, MAP_PERCPU_ARRAY);
	UINT(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct own);
} own SEC(".maps");

INLINE struct own *own_cpu(void)
{
	u32 zero = 0;

	return map_lookup(&own, &zero);
}

/* 0, 1 or 2. */
INLINE u32 open_table(void)
{
	u32 zero = 0;
	u32 *now = map_lookup(&turn, &zero);

	return now ? *now : 0;
}

/* Accesses the open table. Each helper call must name exactly one map. */
#define FIND(which, name, key) \
	((which) == 1 ? map_lookup(&name##1, key) : map_lookup(&name##2, key))
#define MAKE(which, name, key, value)                                \
	((which) == 1 ? map_update(&name##1, key, value, NOEXIST) \
		      : map_update(&name##2, key, value, NOEXIST))

#define ADD(field, n) __sync_fetch_and_add(&(field), n)
