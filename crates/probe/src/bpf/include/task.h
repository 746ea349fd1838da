/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Used fields of the scheduler's structures. */
#pragma once
#include "bpf.h"

struct task_struct {
	int pid;
	int tgid;
	u32 __state;
	struct task_struct *group_leader;
	struct task_struct *real_parent;
	char comm[16];
} KERNEL;

/* Before Linux 5.14. */
struct task_struct___old {
	volatile long state;
} KERNEL;

/* Whether a task that leaves the CPU goes to sleep. It can also have been preempted on the way to
 * sleep; the tracepoint distinguishes that case. */
INLINE int sleeps(struct task_struct *task)
{
	if (FIELD_EXISTS(struct task_struct, __state))
		return task->__state != 0;
	return ((struct task_struct___old *)task)->state != 0;
}
