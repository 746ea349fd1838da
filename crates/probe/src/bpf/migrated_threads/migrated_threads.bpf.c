/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Thread migrations by thread, source CPU and destination CPU. */
#include "double_buffer.h"

LICENSE;

struct thread_info {
	u32 cpu;
} KERNEL;

struct task_struct {
	struct thread_info thread_info;
	int pid;
	int tgid;
	char comm[16];
} KERNEL;

/* Before Linux 5.16. */
struct task_struct___old {
	u32 cpu;
} KERNEL;

struct way {
	u32 tid;
	u16 from;
	u16 to;
};

struct moves {
	u64 count;
	u32 pid;
	u32 pad;
	char name[16];
};

#define WAYS 16384
TABLE(moves1, struct way, struct moves, WAYS);
TABLE(moves2, struct way, struct moves, WAYS);

INLINE u32 cpu_of(struct task_struct *task)
{
	struct task_struct___old *old = (void *)task;

	if (FIELD_EXISTS(struct task_struct___old, cpu))
		return READ(old, cpu);
	return READ(task, thread_info.cpu);
}

SEC("raw_tp/sched_migrate_task")
int sched_migrate_task(struct raw_args *ctx)
{
	struct task_struct *task = (void *)ctx->args[0];
	struct moves fresh = { .count = 1 };
	u32 which = open_table();
	struct own *own = own_cpu();
	struct moves *known;
	struct way way;

	if (!which || !own)
		return 0;
	own->runs[0] += 1;
	way.tid = READ(task, pid);
	way.from = cpu_of(task);
	way.to = ctx->args[1];
	/* As for the kernel's nr_migrations: the same CPU is no migration. */
	if (way.from == way.to)
		return 0;
	known = FIND(which, moves, &way);
	if (known) {
		ADD(known->count, 1);
		/* The thread may have executed another program since. */
		probe_read(known->name, sizeof(known->name),
			   __builtin_preserve_access_index(&task->comm));
		return 0;
	}
	fresh.pid = READ(task, tgid);
	probe_read(fresh.name, sizeof(fresh.name), __builtin_preserve_access_index(&task->comm));
	if (MAKE(which, moves, &way, &fresh)) {
		/* Another CPU was first, or the table is full. */
		known = FIND(which, moves, &way);
		if (known)
			ADD(known->count, 1);
		else
			own->lost += 1;
	}
	return 0;
}
