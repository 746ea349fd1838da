/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What is held for each CPU. One lookup finds all of it; user space reads it whole. */
#pragma once
#include "bpf.h"

/* Softirq vectors: HI, TIMER, NET_TX, NET_RX, BLOCK, IRQ_POLL, TASKLET, SCHED, HRTIMER, RCU. */
#define VECTORS 10
#define NET_RX 3

/* On whose time a softirq ran. */
enum context {
	SYSCALL, /* a task's own work, as it left a section with softirqs disabled */
	IRQ_ON_TASK, /* an interrupt that came upon some task */
	IDLE, /* an interrupt upon the idle task, or the idle task's own */
	KSOFTIRQD, /* the kernel's thread for what was too much */
	CONTEXTS,
};

/* Programs that count their runs here; softirq_entry and _exit run as often as `sums` says. */
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

/* Threads and NAPI instances whose sums are held here; powers of two. One that needs the place
 * of another moves the other's sums to a map for all. */
#define INTERRUPTED_TASKS 64
#define NAPIS 16

struct sum {
	u64 ns;
	u64 count;
};

/* What packets cost a thread. In the map for all `thread` is when the element was made. */
struct interrupted_task {
	u64 thread; /* as pid_tgid() gives it; 0: nobody's place */
	u64 preempted_ns;
	u64 preempted_by_irq_ns;
	u64 own_ns;
	u64 softirqs;
	char name[NAME];
};

/* Polls of a NAPI instance. In the map for all `napi` is when the element was made. */
struct napi {
	u64 napi; /* where it lies; 0: nobody's place */
	u32 id;
	u32 poller; /* the thread that polled last outside a softirq */
	u64 polls;
	u64 packets;
	u64 full;
	u64 outside;
	u64 ns;
	u32 ifindex; /* 0: it belongs to no device: the CPU's backlog */
	u32 netns;
	u32 irq; /* 1 + the interrupt after which it was polled last; 0: none */
	u32 pad;
	char nic[NAME];
};

struct cpu_state {
	struct sum sums[CONTEXTS][VECTORS];
	u64 runs[PROGRAMS];
	/* Softirqs whose beginning was seen, not their end, or the reverse. */
	u64 torn;
	u64 polls; /* of all NAPI instances */
	/* Scratch. */
	u64 begun_ns; /* of the softirq that runs; 0: none */
	u64 softirq_end_ns;
	u64 irq_begun_ns;
	u64 irq_end_ns;
	u64 delay_ns; /* from an interrupt's end to its softirq, as learned upon the idle task */
	u64 at; /* the NAPI instance that is polled */
	u64 stack; /* where on the kernel's stack we were called for the softirq that runs */
	u64 polled_until_ns; /* what of the softirq's time has been given to a NAPI instance */
	u64 first_stack; /* the same of the first one after the last interrupt, if it came soon */
	u64 own_stack; /* the usual one of those that no interrupt brought, */
	u64 own_votes; /* how usual it is, */
	u64 others; /* and how often softirqs of interrupts were seen to have another */
	u32 context;
	u32 vector;
	u32 interrupted_task; /* the place of the thread that the softirq runs upon */
	u32 polled; /* 1 + the place of the NAPI instance polled last in this softirq; 0: none */
	u32 several; /* so many polls are to be timed one by one */
	u32 claiming;
	/* Written by user space; 0: it does not know, and the thread's name tells. */
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
