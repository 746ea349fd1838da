/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Interrupted tasks: threads and the time that packets cost them. */
#pragma once
#include "state.h"

struct {
	UINT(type, MAP_LRU_HASH);
	UINT(max_entries, 16384);
	TYPE(key, u64);
	TYPE(value, struct interrupted_task);
} lost_time SEC(".maps");

/* Moves the sums of a slot to the shared map, where other CPUs may add to the same entry. */
INLINE void put_interrupted_task(const struct interrupted_task *from)
{
	struct interrupted_task fresh = *from;
	u64 thread = from->thread;
	struct interrupted_task *to = map_lookup(&lost_time, &thread);

	if (!to) {
		fresh.thread = ktime_ns();
		if (!map_update(&lost_time, &thread, &fresh, NOEXIST))
			return;
		to = map_lookup(&lost_time, &thread);
		if (!to)
			return;
	}
	__sync_fetch_and_add(&to->preempted_ns, fresh.preempted_ns);
	__sync_fetch_and_add(&to->preempted_by_irq_ns, fresh.preempted_by_irq_ns);
	__sync_fetch_and_add(&to->own_ns, fresh.own_ns);
	__sync_fetch_and_add(&to->softirqs, fresh.softirqs);
	__builtin_memcpy(to->name, fresh.name, NAME);
}

/* Whether the name is that of a ksoftirqd thread. */
INLINE int is_ksoftirqd(const char *name)
{
	return *(const u64 *)name == *(const u64 *)"ksoftirq" && name[8] == 'd' && name[9] == '/';
}

/* Claims the slot for the running thread. */
INLINE void claim_place(struct cpu_state *s, struct interrupted_task *p, u64 thread)
{
	u32 tid = (u32)thread;

	/* An interrupt during the claim does not touch the slot. */
	s->claiming = 1;
	if (p->thread)
		put_interrupted_task(p);
	p->preempted_ns = 0;
	p->preempted_by_irq_ns = 0;
	p->own_ns = 0;
	p->softirqs = 0;
	comm(p->name, NAME);
	p->thread = thread;
	s->claiming = 0;
	/* A kernel thread is its own thread group leader. */
	if (!s->ksoftirqd && tid == (u32)(thread >> 32) && is_ksoftirqd(p->name))
		s->ksoftirqd = tid;
}

INLINE u32 place_of_task(u64 thread)
{
	return (u32)thread & (INTERRUPTED_TASKS - 1);
}
