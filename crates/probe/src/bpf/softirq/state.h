/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Per-CPU state. One lookup returns all of it; user space reads it as a whole. */
#pragma once
#include "bpf.h"

/* Softirq vectors: HI, TIMER, NET_TX, NET_RX, BLOCK, IRQ_POLL, TASKLET, SCHED, HRTIMER, RCU. */
#define VECTORS 10
#define NET_RX 3

/* Context in which a softirq ran. */
enum context {
	SYSCALL, /* a task's own work, when it left a section with softirqs disabled */
	IRQ_ON_TASK, /* an interrupt in the time of some task */
	IDLE, /* an interrupt of the idle task, or the idle task's own */
	KSOFTIRQD, /* the kernel's thread for excess softirq work */
	CONTEXTS,
};

/* Programs that count their runs here; `sums` has the runs of softirq_entry and softirq_exit. */
enum program {
	IRQ_HANDLER_ENTRY,
	IRQ_HANDLER_EXIT,
	LOCAL_TIMER_EXIT,
	RESCHEDULE_EXIT,
	CALL_FUNCTION_EXIT,
	CALL_FUNCTION_SINGLE_EXIT,
	IRQ_WORK_EXIT,
	IPI_EXIT,
	PROGRAMS,
};

#define NAME 16

/* Slots for threads and NAPI instances; powers of two. When a slot is claimed for another one, the
 * sums of the previous one move to a shared map. */
#define INTERRUPTED_TASKS 64
#define NAPIS 16

struct sum {
	u64 ns;
	u64 count;
};

/* Softirq and interrupt time of a thread. In the shared map `thread` is the creation time of the
 * element. */
struct interrupted_task {
	u64 thread; /* as pid_tgid() gives it; 0: nobody's place */
	u64 preempted_ns;
	u64 preempted_by_irq_ns;
	u64 own_ns;
	u64 softirqs;
	char name[NAME];
};

/* Polls of a NAPI instance. In the shared map `napi` is the creation time of the element. */
struct napi {
	u64 napi; /* its address; 0: free slot */
	u32 id;
	u32 poller; /* the thread that polled last outside a softirq */
	u64 polls;
	u64 packets;
	u64 full;
	u64 outside;
	u64 ns;
	u32 ifindex; /* 0: no device; the CPU's backlog */
	u32 netns;
	u32 irq; /* 1 + the interrupt after which it was polled last; 0: none */
	u32 pad;
	char nic[NAME];
};

struct cpu_state {
	struct sum sums[CONTEXTS][VECTORS];
	u64 runs[PROGRAMS];
	/* Softirqs of which only the entry or only the exit was observed. */
	u64 torn;
	u64 polls; /* of all NAPI instances */
	/* Scratch. */
	u64 begun_ns; /* of the running softirq; 0: none */
	u64 softirq_end_ns;
	u64 irq_begun_ns;
	u64 irq_end_ns;
	u64 delay_ns; /* from an interrupt's end to its softirq, learned in the idle task */
	u64 at; /* the NAPI instance that is polled */
	u64 stack; /* position on the kernel stack at the entry of the running softirq */
	u64 polled_until_ns; /* end of the softirq's time that is assigned to a NAPI instance */
	u64 first_stack; /* the same, of the first softirq soon after the last interrupt */
	u64 own_stack; /* usual position for softirqs without an interrupt */
	u64 own_votes; /* votes for own_stack */
	u64 others; /* softirqs of interrupts observed at another position */
	u32 context;
	u32 vector;
	u32 interrupted_task; /* the place of the thread that the softirq runs upon */
	u32 polled; /* 1 + the place of the NAPI instance polled last in this softirq; 0: none */
	u32 several; /* so many polls are to be timed one by one */
	u32 claiming;
	/* Written by user space; 0: not known, and the thread's name decides. */
	u32 ksoftirqd;
	u32 irq; /* 1 + the interrupt handled since the last softirq; 0: none */
	struct interrupted_task interrupted_tasks[INTERRUPTED_TASKS];
	struct napi napis[NAPIS];
};

struct {
	UINT(type, MAP_PERCPU_ARRAY);
	UINT(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct cpu_state);
} cpus SEC(".maps");

INLINE struct cpu_state *this_cpu(void)
{
	u32 zero = 0;

	return map_lookup(&cpus, &zero);
}
