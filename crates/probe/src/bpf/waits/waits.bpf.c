/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Where a packet waits between its entry into the stack and its reader's having it: one record
 * per waiting thread, distributions per process. No event leaves the kernel.
 *
 * Entry, readable and wake-up happen one within the other on one CPU, so a stamp per CPU leads
 * from each to the next; from the wake-up on the thread's own record does. */
#include "inet.h"
#include "task.h"

LICENSE;

/* Number of wait records; a thread uses the record tid modulo this. Two waiting threads that share
 * a record lose one wait, and the read is counted as excluded. */
#define SLOTS 16384
/* Capacity for processes; each uses one entry per CPU that it reads on. */
#define PLACES 2048

/* Bucket 0 ends at 64 ns; then four buckets per power of two, up to 2^34 ns (17 s). */
#define FIRST_EXPONENT 6
#define EXPONENTS 28
#define BUCKETS (1 + 4 * EXPONENTS)

/* A wake-up belongs to a socket that became readable within this time before, in the same
 * context. */
#define WINDOW_NS 50000

/* Packets that enter within this time of each other may belong to one list. */
#define LIST_NS 5000

/* Sum of the minimum IPv4 and TCP headers. */
#define HEADERS 40

#define MSG_PEEK 2

enum stage { STACK, WAKEUP, RUNQUEUE, IDLE_EXIT, COPY, STAGES };

enum program { ENTRY, READY, WAKING, SWITCH, RECV, COPIED, PROGRAMS };

enum progress { NOTHING, WOKEN, RUNNING };

struct cpu_state {
	u64 runs[PROGRAMS];
	/* The packet that entered last. */
	u64 entry_ns;
	/* The socket that became readable last. */
	u64 sk;
	u64 ready_ns;
	u64 ready_entry_ns;
	u32 ready_tid;
	u32 entry_tid;
	u32 entry_len;
	/* Whether none of the packets behind entry_len has made a socket readable yet. */
	u32 entry_open;
	/* Written by user space: sk_data_ready is attached. */
	u32 knows_ready;
	u32 late;
};

struct wait {
	u64 sk;
	u64 entry_ns;
	u64 ready_ns;
	u64 waking_ns;
	u64 running_ns;
	u32 tid;
	u8 progress;
	u8 was_idle;
	u8 late;
	u8 pad;
	u64 fill[2];
};

struct process {
	u64 sum_ns[STAGES];
	/* Reads that found data, or whose reader was not woken by it. */
	u64 found;
	/* Reads that were late because an earlier packet was missing. */
	u64 late;
	char name[16];
	u32 buckets[STAGES][BUCKETS];
	u32 pad;
};

/* A CPU adds only to its own entry, and no program interrupts this one on that CPU: non-atomic
 * additions lose nothing. */
struct process_key {
	u32 tgid;
	u32 cpu;
};

struct {
	UINT(type, MAP_PERCPU_ARRAY);
	UINT(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct cpu_state);
} cpus SEC(".maps");

struct {
	UINT(type, MAP_ARRAY);
	UINT(max_entries, SLOTS);
	TYPE(key, u32);
	TYPE(value, struct wait);
} waiting SEC(".maps");

struct {
	UINT(type, MAP_HASH);
	UINT(max_entries, PLACES);
	TYPE(key, struct process_key);
	TYPE(value, struct process);
} processes SEC(".maps");

/* Written by user space. */
struct {
	UINT(type, MAP_ARRAY);
	UINT(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, u64);
} attached_ns SEC(".maps");

/* Initial value of a process; too large for the stack. */
struct {
	UINT(type, MAP_ARRAY);
	UINT(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct process);
} fresh SEC(".maps");

INLINE struct cpu_state *this_cpu(void)
{
	u32 zero = 0;

	return map_lookup(&cpus, &zero);
}

INLINE struct wait *wait_of(u32 tid)
{
	u32 slot = tid & (SLOTS - 1);

	return map_lookup(&waiting, &slot);
}

SEC("tp_btf/netif_receive_skb")
int netif_receive_skb(u64 *ctx)
{
	struct sk_buff *skb = (void *)ctx[0];
	struct cpu_state *s = this_cpu();
	u64 now = ktime_ns();
	u32 len;

	if (!s)
		return 0;
	s->runs[ENTRY] += 1;
	/* Packets may come in lists, all of them before the socket of the first: the longest packet
	 * is the upper bound of the data that any of them brought. */
	len = skb->len;
	if (!s->entry_open || now - s->entry_ns > LIST_NS || len > s->entry_len)
		s->entry_len = len;
	s->entry_open = 1;
	s->entry_ns = now;
	if (!s->knows_ready)
		s->entry_tid = (u32)pid_tgid();
	return 0;
}

/* Whether more data is unread than the packet can have brought: earlier data waited for this
 * packet. */
INLINE int brought_more(struct sock *sk, u32 packet)
{
	struct tcp_sock *tcp = sk->sk_protocol == IPPROTO_TCP_ ? tcp_sock_of(sk) : 0;

	return tcp && tcp->rcv_nxt - tcp->copied_seq + HEADERS > packet;
}

SEC("tp_btf/sk_data_ready")
int sk_data_ready(u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	struct cpu_state *s = this_cpu();

	if (!s)
		return 0;
	s->runs[READY] += 1;
	s->sk = 0;
	if (!is_inet(sk))
		return 0;
	s->entry_open = 0;
	if (!has_sleeper(sk))
		return 0;
	s->sk = (u64)sk;
	/* A socket in use by a task gets its packets when the task releases it, on the task's CPU:
	 * the packet that entered last on this CPU is a different one. */
	s->ready_entry_ns = sk->sk_lock.owned ? 0 : s->entry_ns;
	s->late = s->ready_entry_ns && brought_more(sk, s->entry_len);
	s->ready_tid = (u32)pid_tgid();
	s->ready_ns = ktime_ns();
	return 0;
}

SEC("tp_btf/sched_waking")
int sched_waking(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	struct cpu_state *s = this_cpu();
	u32 tid = (u32)pid_tgid();
	u64 since, sk, now;
	struct wait *w;

	if (!s)
		return 0;
	s->runs[WAKING] += 1;
	sk = s->sk;
	since = s->knows_ready ? (sk ? s->ready_ns : 0) : s->entry_ns;
	if (!since)
		return 0;
	now = ktime_ns();
	if (now - since > WINDOW_NS || tid != (s->knows_ready ? s->ready_tid : s->entry_tid)) {
		s->sk = 0;
		if (!s->knows_ready)
			s->entry_ns = 0;
		return 0;
	}
	/* The task was about to sleep, but did not. */
	if (task->pid == tid)
		return 0;
	w = wait_of(task->pid);
	if (!w)
		return 0;
	w->progress = NOTHING;
	w->tid = task->pid;
	w->sk = sk;
	w->entry_ns = sk ? s->ready_entry_ns : 0;
	w->ready_ns = sk ? s->ready_ns : 0;
	w->waking_ns = now;
	w->late = sk && s->late;
	w->progress = WOKEN;
	return 0;
}

SEC("tp_btf/sched_switch")
int sched_switch(u64 *ctx)
{
	int preempted = (int)ctx[0];
	struct task_struct *prev = (void *)ctx[1];
	struct task_struct *next = (void *)ctx[2];
	u32 from = prev->pid, to = next->pid;
	struct cpu_state *s = this_cpu();
	struct wait *w;

	if (s)
		s->runs[SWITCH] += 1;
	if (to) {
		w = wait_of(to);
		if (w && w->tid == to && w->progress == WOKEN) {
			w->running_ns = ktime_ns();
			w->was_idle = from == 0;
			w->progress = RUNNING;
		}
	}
	/* The task sleeps again without a read: a later read does not belong to this wake-up. */
	if (from && !preempted) {
		w = wait_of(from);
		if (w && w->tid == from && w->progress == RUNNING && sleeps(prev))
			w->progress = NOTHING;
	}
	return 0;
}

INLINE u32 bucket_of(u64 ns)
{
	u32 exponent = 0;
	u64 left = ns;

	if (ns < 1 << FIRST_EXPONENT)
		return 0;
#define HALVE(bits)                          \
	if (left >> bits) {                  \
		left >>= bits;               \
		exponent += bits;            \
	}
	HALVE(32)
	HALVE(16)
	HALVE(8)
	HALVE(4)
	HALVE(2)
	HALVE(1)
	if (exponent >= FIRST_EXPONENT + EXPONENTS)
		return BUCKETS - 1;
	return 1 + 4 * (exponent - FIRST_EXPONENT) + ((ns >> (exponent - 2)) & 3);
}

INLINE void count(struct process *p, u32 stage, u64 from, u64 to)
{
	u64 ns = to > from ? to - from : 0;
	u64 bucket = bucket_of(ns);

	AS_IT_IS(bucket);
	if (bucket >= BUCKETS)
		return;
	p->buckets[stage][bucket] += 1;
	p->sum_ns[stage] += ns;
}

/* Returns the entry of the reader's process. When the map is full, returns the shared entry of all
 * other processes, which user space created. */
INLINE struct process *process_of(u32 tgid)
{
	struct process_key key = { .tgid = tgid, .cpu = cpu_id() };
	struct process *p = map_lookup(&processes, &key);
	u32 zero = 0;

	if (p)
		return p;
	p = map_lookup(&fresh, &zero);
	if (!p)
		return 0;
	map_update(&processes, &key, p, NOEXIST);
	p = map_lookup(&processes, &key);
	if (p) {
		comm(p->name, sizeof(p->name));
		return p;
	}
	key.tgid = 0;
	key.cpu = 0;
	return map_lookup(&processes, &key);
}

/* Called when the reader has its data. */
INLINE int has_read(u64 sk)
{
	u64 id = pid_tgid();
	u32 tid = (u32)id;
	struct wait *w = wait_of(tid);
	struct process *p = process_of(id >> 32);
	u32 zero = 0;
	u64 *attached = map_lookup(&attached_ns, &zero);
	u64 now;

	if (!p || !w || !attached)
		return 0;
	/* Ignore state from before the programs were attached again: the time between is unknown. */
	if (w->tid != tid || w->progress != RUNNING || w->waking_ns < *attached ||
	    (sk && w->sk && w->sk != sk)) {
		p->found += 1;
		return 0;
	}
	w->progress = NOTHING;
	if (w->late) {
		p->late += 1;
		return 0;
	}
	now = ktime_ns();
	if (w->entry_ns >= *attached && w->entry_ns)
		count(p, STACK, w->entry_ns, w->ready_ns);
	if (w->ready_ns)
		count(p, WAKEUP, w->ready_ns, w->waking_ns);
	count(p, RUNQUEUE, w->waking_ns, w->running_ns);
	if (w->was_idle)
		count(p, IDLE_EXIT, w->waking_ns, w->running_ns);
	count(p, COPY, w->running_ns, now);
	return 0;
}

SEC("tp_btf/sock_recv_length")
int sock_recv_length(u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	int got = (int)ctx[1], flags = (int)ctx[2];
	struct cpu_state *s = this_cpu();

	if (s)
		s->runs[RECV] += 1;
	if (got <= 0 || flags & MSG_PEEK || !is_inet(sk))
		return 0;
	return has_read((u64)sk);
}

/* Attached where sock_recv_length does not exist. */
SEC("tp_btf/skb_copy_datagram_iovec")
int skb_copy_datagram_iovec(u64 *ctx)
{
	struct cpu_state *s = this_cpu();

	if (s)
		s->runs[COPIED] += 1;
	return has_read(0);
}
