/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Softirq time by CPU, vector and context, its cost to each thread, and the polled NAPI instances.
 * The sums are kept in the kernel; no event leaves it. */
#include "napi.h"
#include "interrupted_task.h"

LICENSE;

/* A softirq that begins within this time after an interrupt, or after another softirq that did,
 * belongs to the interrupt. At 1,000 ns 99.9% of those are recognised with 1.9% false positives, at
 * 500 ns 98.1% with 0.07% (against sampled stacks). */
#define GAP_NS 1000
/* A slow (emulated) machine takes longer: the limit is twice the usual delay in the idle task,
 * where every softirq belongs to an interrupt, but at most this. */
#define LONGEST_GAP_NS 50000

INLINE u64 gap_ns(struct cpu_state *s)
{
	u64 gap = 2 * s->delay_ns;

	if (gap < GAP_NS)
		return GAP_NS;
	return gap > LONGEST_GAP_NS ? LONGEST_GAP_NS : gap;
}

/* In the idle task: learns the delay from an interrupt to its first softirq. It is an estimate of
 * the median, moved by 1/32 per sample, so that steal time of a virtual CPU does not distort it. */
INLINE void learn_delay(struct cpu_state *s, u64 now)
{
	u64 delay = now - s->irq_end_ns;
	u64 median = s->delay_ns ? s->delay_ns : GAP_NS / 2;

	if (s->irq_end_ns <= s->softirq_end_ns || delay > LONGEST_GAP_NS)
		return;
	s->delay_ns = delay > median ? median + (median >> 5) + 1 : median - (median >> 5);
}

/* A position counts as known after KNOWN observations. Counts are capped at MOST, so that a change
 * is learned soon. */
#define KNOWN 8
#define MOST 16

/* Position on the stack at the call. With a separate interrupt stack (x86), the depth at the end of
 * a task's own section with softirqs disabled differs from the depth at the end of an interrupt. */
INLINE u64 stack_here(struct cpu_state *s, void *ctx)
{
	/* The verifier forbids pointer arithmetic; a value read back from memory is a scalar. */
	*(volatile u64 *)&s->stack = (u64)ctx;
	return *(volatile u64 *)&s->stack;
}

/* Whether the depth of a task's own softirqs is known and no other softirq has it. */
INLINE int own_stack_known(const struct cpu_state *s)
{
	return s->own_votes >= KNOWN && s->others >= KNOWN;
}

/* Majority vote: R. S. Boyer and J S. Moore, "MJRTY - A Fast Majority Vote Algorithm" (1981). */
INLINE void vote_own(struct cpu_state *s, u64 stack)
{
	if (stack == s->own_stack) {
		if (s->own_votes < MOST)
			s->own_votes += 1;
	} else if (s->own_votes) {
		s->own_votes -= 1;
	} else {
		s->own_stack = stack;
		s->own_votes = 1;
		s->others = 0;
	}
}

/* Learns the depth of a task's own softirqs. Softirqs of an interrupt are the first one soon after
 * it and the chain that follows at the same depth; all others are a task's own. */
INLINE void learn_stack(struct cpu_state *s, u64 stack, u64 since_irq)
{
	if (s->softirq_end_ns > s->irq_end_ns) {
		if (stack != s->first_stack)
			vote_own(s, stack);
	} else if (since_irq > LONGEST_GAP_NS) {
		s->first_stack = 0;
		vote_own(s, stack);
	} else {
		s->first_stack = stack;
		if (since_irq < gap_ns(s) && stack != s->own_stack && s->others < MOST)
			s->others += 1;
	}
}

/* Context of the softirq that begins now in this thread, which is neither ksoftirqd nor idle. */
INLINE u32 context_upon(struct cpu_state *s, void *ctx, u32 place, u32 vector, u64 now)
{
	u64 gap = gap_ns(s);
	u64 before = s->stack;
	u64 stack = stack_here(s, ctx);
	u64 since_irq = now - s->irq_end_ns;
	u32 known = own_stack_known(s);

	learn_stack(s, stack, since_irq);
	if (known) {
		/* Even soon after an interrupt: an interrupt with softirqs disabled runs none. */
		if (stack == s->own_stack)
			return SYSCALL;
		/* It belongs to an interrupt, even if it comes late; or another tool has attached,
		 * and all depths are larger until they are learned. */
		gap = LONGEST_GAP_NS;
	}
	if (since_irq < gap)
		return IRQ_ON_TASK;
	/* A softirq in a chain has the context of the one before. A chain has ascending vectors and
	 * restarts with vectors raised meanwhile; in that case the stack position shows that it is
	 * a chain, where it is known. */
	if (now - s->softirq_end_ns < gap && s->context == IRQ_ON_TASK && s->interrupted_task == place &&
	    ((known && stack == before) || vector > s->vector))
		return IRQ_ON_TASK;
	return SYSCALL;
}

SEC("raw_tp/softirq_entry")
int softirq_entry(struct raw_args *ctx)
{
	struct cpu_state *s = this_cpu();
	u64 thread = pid_tgid();
	u32 tid = (u32)thread;
	u64 now = ktime_ns();
	u32 place;

	if (!s)
		return 0;
	if (tid == 0) {
		s->context = IDLE;
		learn_delay(s, now);
		if (now - s->irq_end_ns < gap_ns(s))
			learn_stack(s, stack_here(s, ctx), now - s->irq_end_ns);
	} else if (tid == s->ksoftirqd) {
		s->context = KSOFTIRQD;
	} else {
		place = place_of_task(thread);
		if (s->interrupted_tasks[place].thread != thread)
			claim_place(s, &s->interrupted_tasks[place], thread);
		s->context = tid == s->ksoftirqd ? KSOFTIRQD :
						   context_upon(s, ctx, place, ctx->args[0], now);
		s->interrupted_task = place;
	}
	s->vector = ctx->args[0];
	s->polled = 0;
	s->polled_until_ns = now;
	s->begun_ns = now;
	return 0;
}

/* Charges the time of a softirq to the thread. */
INLINE void account(struct cpu_state *s, u32 context, u64 ns)
{
	u32 place = s->interrupted_task & (INTERRUPTED_TASKS - 1);
	struct interrupted_task *p = &s->interrupted_tasks[place];

	if (context == SYSCALL)
		p->own_ns += ns;
	else
		p->preempted_ns += ns;
	p->softirqs += 1;
	/* The thread may have executed another program since. */
	if (p->softirqs < 16 || !(p->softirqs & 15))
		comm(p->name, NAME);
}

SEC("raw_tp/softirq_exit")
int softirq_exit(struct raw_args *ctx)
{
	struct cpu_state *s = this_cpu();
	u64 now = ktime_ns();
	u32 vector = ctx->args[0];
	u32 context;
	u64 ns;

	if (!s)
		return 0;
	context = s->context;
	if (!s->begun_ns || vector != s->vector || vector >= VECTORS || context >= CONTEXTS) {
		s->torn += 1;
		return 0;
	}
	ns = now - s->begun_ns;
	s->sums[context][vector].ns += ns;
	s->sums[context][vector].count += 1;
	if (context <= IRQ_ON_TASK)
		account(s, context, ns);
	/* Time that was not measured per poll belongs to the only instance, or to the last one. */
	if (s->polled)
		s->napis[(s->polled - 1) & (NAPIS - 1)].ns += now - s->polled_until_ns;
	s->irq = 0;
	s->begun_ns = 0;
	s->softirq_end_ns = now;
	return 0;
}

SEC("tp_btf/napi_poll")
int napi_poll(struct raw_args *ctx)
{
	struct napi_struct *napi = (void *)ctx->args[0];
	s32 work = (s32)ctx->args[1];
	s32 budget = (s32)ctx->args[2];
	struct cpu_state *s = this_cpu();
	struct napi *n;
	u32 place;
	u64 now;

	if (!s || !napi)
		return 0;
	s->polls += 1;
	place = place_of_napi(s, napi, napi->napi_id) & (NAPIS - 1);
	n = &s->napis[place];
	n->polls += 1;
	if (work > 0) {
		n->packets += work;
		if (work >= budget)
			n->full += 1;
	}
	if (!s->begun_ns) {
		n->outside += 1;
		n->poller = (u32)pid_tgid();
		return 0;
	}
	place += 1;
	if (!s->polled && s->irq)
		n->irq = s->irq;
	if (s->polled && s->polled != place)
		s->several = SEVERAL;
	s->polled = place;
	if (s->several) {
		s->several -= 1;
		now = ktime_ns();
		n->ns += now - s->polled_until_ns;
		s->polled_until_ns = now;
	}
	return 0;
}

SEC("raw_tp/irq_handler_entry")
int irq_handler_entry(struct raw_args *ctx)
{
	struct cpu_state *s = this_cpu();

	if (!s)
		return 0;
	s->runs[IRQ_HANDLER_ENTRY] += 1;
	s->irq = (u32)ctx->args[0] + 1;
	s->irq_begun_ns = ktime_ns();
	return 0;
}

/* Charges a handler's time to the interrupted thread. During a softirq it is part of the softirq's
 * time already. */
INLINE void handled(struct cpu_state *s, u64 now)
{
	u64 thread = pid_tgid();
	u32 place = place_of_task(thread);
	u64 begun = s->irq_begun_ns;

	s->irq_begun_ns = 0;
	if (!begun || s->begun_ns || s->claiming || !(u32)thread)
		return;
	if (s->interrupted_tasks[place].thread != thread)
		claim_place(s, &s->interrupted_tasks[place], thread);
	s->interrupted_tasks[place].preempted_by_irq_ns += now - begun;
}

INLINE int irq_ended(enum program program)
{
	struct cpu_state *s = this_cpu();
	u64 now;

	if (!s)
		return 0;
	s->runs[program] += 1;
	now = ktime_ns();
	if (program == IRQ_HANDLER_EXIT)
		handled(s, now);
	/* Not for an interrupt during a softirq: the next vector of the chain is not due to it. */
	if (!s->begun_ns)
		s->irq_end_ns = now;
	return 0;
}

SEC("raw_tp/irq_handler_exit")
int irq_handler_exit(void *ctx)
{
	return irq_ended(IRQ_HANDLER_EXIT);
}

/* x86 vectors outside the IRQ table. */
SEC("raw_tp/local_timer_exit")
int local_timer_exit(void *ctx)
{
	return irq_ended(LOCAL_TIMER_EXIT);
}

/* Its handler ends without irq_exit (since 5.8) and so runs no softirq. A softirq soon after it is
 * the task's own, during which a wake-up came from another CPU. */
SEC("raw_tp/reschedule_exit")
int reschedule_exit(void *ctx)
{
	struct cpu_state *s = this_cpu();

	if (s)
		s->runs[RESCHEDULE_EXIT] += 1;
	return 0;
}

SEC("raw_tp/call_function_exit")
int call_function_exit(void *ctx)
{
	return irq_ended(CALL_FUNCTION_EXIT);
}

SEC("raw_tp/call_function_single_exit")
int call_function_single_exit(void *ctx)
{
	return irq_ended(CALL_FUNCTION_SINGLE_EXIT);
}

SEC("raw_tp/irq_work_exit")
int irq_work_exit(void *ctx)
{
	return irq_ended(IRQ_WORK_EXIT);
}

/* Inter-processor interrupts of aarch64 and other architectures. */
SEC("raw_tp/ipi_exit")
int ipi_exit(void *ctx)
{
	return irq_ended(IPI_EXIT);
}
