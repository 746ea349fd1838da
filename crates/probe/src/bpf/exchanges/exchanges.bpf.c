/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Times of each request at a server: readable, read, first byte of the response. State is kept in
 * socket storage, sums and distributions by port and program. No event leaves the kernel, and no
 * byte of a message is read. */
#include "state.h"

LICENSE;

INLINE struct cpu_state *this_cpu(void)
{
	u32 zero = 0;

	return map_lookup(&cpus, &zero);
}

INLINE struct wakeup *wakeup_of(u32 tid)
{
	u32 slot = tid & (SLOTS - 1);

	return map_lookup(&wakeups, &slot);
}

/* Whether the port was requested, or belongs to a requested process. */
INLINE int marked(u16 port)
{
	u32 at = port / 64;
	struct ports *ports = map_lookup(&ports_asked, &at);

	return ports && ports->marks[port % 64];
}

/* Returns the state of a socket on which an observed process may serve. The serving end of a Unix
 * socket has a name, the other end usually does not. */
INLINE struct known *candidate(struct sock *sk, struct asked *asked)
{
	u16 family = sk->__sk_common.skc_family;

	if (family == AF_INET_ || family == AF_INET6_) {
		if (sk->sk_protocol != IPPROTO_TCP_ || sk->__sk_common.skc_state == LISTENS ||
		    !marked(sk->__sk_common.skc_num))
			return 0;
	} else if (family != UNIX_ || !asked->any_port || sk->sk_type != STREAM_ ||
		   sk->__sk_common.skc_state == LISTENS || !READ((struct unix_sock *)sk, addr)) {
		return 0;
	}
	return sk_storage_get(&sockets, sk, 0, CREATE);
}

SEC("tp_btf/sk_data_ready")
int sk_data_ready(u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	struct cpu_state *s = this_cpu();
	u32 zero = 0;
	struct asked *asked = map_lookup(&asked_for, &zero);
	struct known *k;

	if (!s || !asked)
		return 0;
	s->runs[READY] += 1;
	s->sk = 0;
	k = candidate(sk, asked);
	if (!k)
		return 0;
	/* A socket in use gets its packets when its user releases it: a call in progress may read
	 * without this data. */
	k->in_call = is_inet(sk) && sk->sk_lock.owned;
	k->ready_ns = ktime_ns();
	if (!has_sleeper(sk))
		return 0;
	s->ready_ns = k->ready_ns;
	s->ready_tid = (u32)pid_tgid();
	s->sk = (u64)sk;
	return 0;
}

SEC("tp_btf/sched_waking")
int sched_waking(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	struct cpu_state *s = this_cpu();
	u32 tid = (u32)pid_tgid();
	struct wakeup *w;
	u64 now;

	if (!s)
		return 0;
	s->runs[WAKING] += 1;
	if (!s->sk)
		return 0;
	now = ktime_ns();
	if (now - s->ready_ns > WINDOW_NS || tid != s->ready_tid) {
		s->sk = 0;
		return 0;
	}
	w = wakeup_of(task->pid);
	/* The task was about to sleep, but did not. */
	if (!w || task->pid == tid)
		return 0;
	w->progress = NOTHING;
	w->tid = task->pid;
	w->sk = s->sk;
	w->waking_ns = now;
	w->progress = WOKEN;
	return 0;
}

SEC("tp_btf/sched_switch")
int sched_switch(u64 *ctx)
{
	struct task_struct *next = (void *)ctx[2];
	struct cpu_state *s = this_cpu();
	u32 to = next->pid;
	struct wakeup *w;

	if (s)
		s->runs[SWITCH] += 1;
	w = to ? wakeup_of(to) : 0;
	if (w && w->tid == to && w->progress == WOKEN) {
		w->running_ns = ktime_ns();
		w->progress = RUNS;
	}
	return 0;
}

/* Whether the calling process is a requested process or a descendant of one. */
INLINE int serves(struct asked *asked)
{
	struct task_struct *task = (void *)current_task();
	u32 pid;

	if (!asked->processes)
		return 1;
#pragma unroll
	for (int i = 0; i < GENERATIONS; i++) {
		pid = READ(task, tgid);
		if (map_lookup(&processes_asked, &pid))
			return 1;
		if (pid <= 1)
			return 0;
		task = READ(task, real_parent);
	}
	return 0;
}

/* Records the serving process of this socket; called when the process changes. */
INLINE void meet(struct known *k, struct sock *sk, u32 pid, struct asked *asked,
		 struct cpu_state *s)
{
	struct task_struct *task = (void *)current_task();
	struct server server = { .pid = pid };
	u32 one = 1;

	k->pid = pid;
	k->read_ns = 0;
	k->wanted = serves(asked);
	if (!k->wanted)
		return;
	k->class.kind = is_inet(sk) ? TCP : UNIX;
	k->class.port = is_inet(sk) ? sk->__sk_common.skc_num : 0;
	task = READ(task, group_leader);
	probe_read(k->class.name, sizeof(k->class.name),
		   __builtin_preserve_access_index(&task->comm));
	server.class = k->class;
	server.class.shard = 0;
	if (map_update(&servers, &server, &one, ANY))
		s->unnamed += 1;
}

/* A socket starts to listen; used where no ports were requested. */
SEC("tp_btf/inet_sock_set_state")
int inet_sock_set_state(u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	struct cpu_state *s = this_cpu();
	u32 zero = 0, at;
	struct asked *asked = map_lookup(&asked_for, &zero);
	struct ports *ports;
	u16 port;

	if (!s || !asked)
		return 0;
	s->runs[STATE] += 1;
	if ((int)ctx[2] != LISTENS || !asked->any_port || !serves(asked))
		return 0;
	port = sk->__sk_common.skc_num;
	at = port / 64;
	ports = map_lookup(&ports_asked, &at);
	if (ports)
		ports->marks[port % 64] = 1;
	return 0;
}

INLINE struct sums *sums_of(struct known *k, struct cpu_state *s)
{
	struct class class = k->class;
	struct sums *sums, *fresh;
	u32 zero = 0;

	class.shard = cpu_id() % SHARDS;
	sums = map_lookup(&classes, &class);
	if (sums)
		return sums;
	fresh = map_lookup(&no_sums, &zero);
	if (fresh)
		map_update(&classes, &class, fresh, NOEXIST);
	sums = map_lookup(&classes, &class);
	if (!sums)
		s->lost += 1;
	return sums;
}

/* Time from the reader's wake-up for this socket until it ran; NOT_KNOWN where it was awake. */
INLINE u64 woken_for(u64 sk, u64 since)
{
	u32 tid = (u32)pid_tgid();
	struct wakeup *w = wakeup_of(tid);

	if (!w || w->tid != tid || w->progress != RUNS || w->sk != sk || w->waking_ns < since)
		return NOT_KNOWN;
	w->progress = NOTHING;
	return w->running_ns - w->waking_ns;
}

/* Whether there is more data to read by now. */
INLINE int has_more(struct sock *sk)
{
	struct tcp_sock *tcp = is_inet(sk) ? tcp_sock_of(sk) : 0;

	return tcp && tcp->rcv_nxt != tcp->copied_seq;
}

/* The socket's state with its serving process; none where that process was not requested. */
INLINE struct known *served(struct sock *sk, struct asked *asked, struct cpu_state *s)
{
	struct known *k = candidate(sk, asked);
	u32 pid = pid_tgid() >> 32;

	if (k && k->pid != pid)
		meet(k, sk, pid, asked, s);
	return k && k->wanted ? k : 0;
}

SEC("tp_btf/sock_recv_length")
int sock_recv_length(u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	int bytes = ctx[1], flags = ctx[2];
	struct cpu_state *s = this_cpu();
	u32 zero = 0;
	struct asked *asked = map_lookup(&asked_for, &zero);
	u64 now, ready;
	struct known *k;
	int arrived;

	if (!s || !asked)
		return 0;
	s->runs[RECV] += 1;
	if (bytes <= 0 || flags & LOOKED_ONLY)
		return 0;
	k = served(sk, asked, s);
	if (!k)
		return 0;
	now = ktime_ns();
	ready = k->ready_ns;
	/* Ignore state from before the programs were attached again: the time between is unknown. */
	arrived = ready != k->taken_ns && ready >= asked->since_ns;
	if (arrived && k->in_call && has_more(sk)) {
		k->in_call = 0;
		arrived = 0;
	} else {
		k->taken_ns = ready;
	}
	if (k->answers || k->read_ns < asked->since_ns) {
		k->answers = 0;
		k->read_ns = now;
		k->queued_ns = NOT_KNOWN;
		k->woken_ns = NOT_KNOWN;
		k->request_bytes = 0;
	}
	k->request_bytes += bytes;
	if (arrived) {
		k->read_ns = now;
		k->queued_ns = now - ready;
		k->woken_ns = woken_for((u64)sk, ready);
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
	return 1 + STEPS * (exponent - FIRST_EXPONENT) +
	       ((ns >> (exponent - STEP_BITS)) & (STEPS - 1));
}

INLINE void count(struct sums *sums, u32 part, u64 ns)
{
	u64 bucket = bucket_of(ns);

	AS_IT_IS(bucket);
	if (bucket >= BUCKETS)
		return;
	ADD(sums->buckets[part][bucket], 1);
	ADD(sums->sum_ns[part], ns);
}

/* Time at which TCP passed the first bytes of the response down, from its pacing timestamp. At the
 * end of the call, the peer may already have been woken up on loopback. */
INLINE u64 left_at(struct tcp_sock *tcp, u64 read, u64 now)
{
	u64 at;

	if (!FIELD_EXISTS(struct tcp_sock, tcp_wstamp_ns))
		return 0;
	at = tcp->tcp_wstamp_ns;
	return at >= read && at <= now ? at : 0;
}

INLINE void path_of(struct sums *sums, struct tcp_sock *tcp)
{
	u32 smoothed = tcp->srtt_us >> 3;
	u32 least = tcp->rtt_min.s[0].v;

	/* No own data was acknowledged yet. */
	if (!smoothed || least == ~0U)
		return;
	count(sums, PATH, (u64)smoothed * 1000);
	count(sums, LEAST, (u64)least * 1000);
}

/* The first bytes of a response. */
INLINE void answer(struct known *k, struct sums *sums, struct sock *sk)
{
	struct tcp_sock *tcp = is_inet(sk) ? tcp_sock_of(sk) : 0;
	u64 now = ktime_ns();
	u64 left = tcp ? left_at(tcp, k->read_ns, now) : 0;

	ADD(sums->exchanges, 1);
	ADD(sums->request_bytes, k->request_bytes);
	if (!left)
		ADD(sums->by_call, 1);
	count(sums, SERVICE, (left ? left : now) - k->read_ns);
	if (k->queued_ns != NOT_KNOWN)
		count(sums, QUEUEING, k->queued_ns);
	if (k->woken_ns != NOT_KNOWN)
		count(sums, WAKEUP, k->woken_ns);
	if (tcp)
		path_of(sums, tcp);
}

SEC("tp_btf/sock_send_length")
int sock_send_length(u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	int bytes = ctx[1];
	struct cpu_state *s = this_cpu();
	u32 zero = 0;
	struct asked *asked = map_lookup(&asked_for, &zero);
	struct sums *sums;
	struct known *k;

	if (!s || !asked)
		return 0;
	s->runs[SEND] += 1;
	if (bytes <= 0)
		return 0;
	k = served(sk, asked, s);
	if (!k)
		return 0;
	/* The call in progress has ended. */
	k->in_call = 0;
	/* Not a response to a request, or the request came before the programs were attached. */
	if (!k->read_ns || k->read_ns < asked->since_ns)
		return 0;
	sums = sums_of(k, s);
	if (!sums)
		return 0;
	if (!k->answers)
		answer(k, sums, sk);
	k->answers = 1;
	ADD(sums->sends, 1);
	ADD(sums->response_bytes, bytes);
	return 0;
}
