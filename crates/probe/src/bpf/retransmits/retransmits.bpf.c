/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Retransmitted segments by connection. */
#include "double_buffer.h"

LICENSE;

#define AF_INET 2
#define AF_INET6 10

struct in6_addr {
	u8 bytes[16];
};

struct sock_common {
	u32 skc_daddr;
	u32 skc_rcv_saddr;
	u16 skc_dport; /* big-endian */
	u16 skc_num;
	u16 skc_family;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
} KERNEL;

struct sk_buff {
	char cb[48];
} KERNEL;

/* TCP's data in `cb`. */
struct tcp_skb_cb {
	u16 tcp_gso_segs;
} KERNEL;

struct connection {
	u8 local[16];
	u8 remote[16];
	u16 local_port;
	u16 remote_port; /* big-endian */
	u16 family;
	u16 pad;
};

#define CONNECTIONS 4096
TABLE(segments1, struct connection, u64, CONNECTIONS);
TABLE(segments2, struct connection, u64, CONNECTIONS);

INLINE void identify(struct connection *c, struct sock_common *sk)
{
	c->local_port = READ(sk, skc_num);
	c->remote_port = READ(sk, skc_dport);
	c->family = READ(sk, skc_family);
	if (c->family == AF_INET) {
		*(u32 *)c->local = READ(sk, skc_rcv_saddr);
		*(u32 *)c->remote = READ(sk, skc_daddr);
	} else if (FIELD_EXISTS(struct sock_common, skc_v6_daddr)) {
		probe_read(c->local, 16, __builtin_preserve_access_index(&sk->skc_v6_rcv_saddr));
		probe_read(c->remote, 16, __builtin_preserve_access_index(&sk->skc_v6_daddr));
	}
}

INLINE void add(u32 which, struct connection *c, u64 segments, struct own *own)
{
	u64 *known = FIND(which, segments, c);

	if (!known) {
		if (!MAKE(which, segments, c, &segments))
			return;
		known = FIND(which, segments, c);
	}
	if (known)
		ADD(*known, segments);
	else
		own->lost += segments;
}

/* Since Linux 6.17 the tracepoint also reports failed retransmissions. The kernel counted some of
 * them before they failed, and the error does not show which. */
struct trace_event_raw_tcp_retransmit_skb {
	int err;
} KERNEL;

struct tcp_sock {
	u32 total_retrans;
} KERNEL;

/* Last known total of retransmitted segments of each connection. */
struct {
	UINT(type, MAP_LRU_HASH);
	UINT(max_entries, CONNECTIONS);
	TYPE(key, struct connection);
	TYPE(value, u32);
} totals SEC(".maps");

/* Returns how many segments this event adds to RetransSegs. `segments` is the number of segments of
 * the buffer. */
INLINE u32 added(struct connection *c, struct tcp_sock *tcp, u32 segments, int failed)
{
	u32 total = READ(tcp, total_retrans);
	u32 *last = map_lookup(&totals, c);

	/* A new connection with the same addresses starts from zero. */
	if (last && total >= *last)
		segments = total - *last;
	else if (failed)
		segments = 0;
	map_update(&totals, c, &total, ANY);
	return segments;
}

/* `struct sock` and `struct request_sock` both begin with `struct sock_common`. */
SEC("raw_tp/tcp_retransmit_skb")
int tcp_retransmit_skb(struct raw_args *ctx)
{
	struct sock_common *sk = (void *)ctx->args[0];
	struct sk_buff *skb = (void *)ctx->args[1];
	struct tcp_skb_cb *tcp = (void *)__builtin_preserve_access_index(&skb->cb);
	struct connection c = {};
	u32 which = open_table();
	struct own *own = own_cpu();
	u32 segments;
	int failed = 0;

	if (!which || !own)
		return 0;
	own->runs[0] += 1;
	/* Older kernels pass two arguments and reject a program that reads a third. */
	if (FIELD_EXISTS(struct trace_event_raw_tcp_retransmit_skb, err))
		failed = (int)ctx->args[2] < 0;
	identify(&c, sk);
	segments = added(&c, (void *)sk, READ(tcp, tcp_gso_segs), failed);
	if (segments)
		add(which, &c, segments, own);
	return 0;
}

SEC("raw_tp/tcp_retransmit_synack")
int tcp_retransmit_synack(struct raw_args *ctx)
{
	struct connection c = {};
	u32 which = open_table();
	struct own *own = own_cpu();

	if (!which || !own)
		return 0;
	own->runs[1] += 1;
	identify(&c, (void *)ctx->args[1]);
	add(which, &c, 1, own);
	return 0;
}
