/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Sends and receives of processes by socket calls, by process and service port. */
#include "double_buffer.h"

LICENSE;

#define AF_UNIX 1
#define AF_INET 2
#define AF_INET6 10
#define DATAGRAM 2 /* SOCK_DGRAM */
#define UDP 17 /* IPPROTO_UDP */
#define LISTEN 10 /* TCP_LISTEN */
#define LOOKED_ONLY (0x2 | 0x2000) /* MSG_PEEK, MSG_ERRQUEUE: the data is still to be received */

struct sock_common {
	u16 skc_dport; /* big-endian */
	u16 skc_num;
	u16 skc_family;
	int skc_incoming_cpu;
} KERNEL;

struct sock {
	struct sock_common __sk_common;
	u16 sk_type;
	u16 sk_protocol;
} KERNEL;

enum kind { STREAM, DATAGRAMS, UNIX };

struct service {
	u32 pid;
	u16 port; /* 0: not known */
	u8 kind;
	/* Shards, so that the CPUs of a large machine do not all write to one cache line. */
	u8 shard;
};

struct messages {
	u64 sends;
	u64 sent_bytes;
	u64 receives;
	u64 received_bytes;
	u64 exchanges;
	u64 elsewhere;
	u64 unplaced; /* receives on a socket that does not record the CPU of the packets */
	char name[16];
};

#define SERVICES 8192
TABLE(calls1, struct service, struct messages, SERVICES);
TABLE(calls2, struct service, struct messages, SERVICES);

/* Ports with a TCP listener: 1 at [port / 64][port % 64]. */
struct ports {
	u8 listening[64];
};

struct {
	UINT(type, MAP_ARRAY);
	UINT(max_entries, 1024);
	TYPE(key, u32);
	TYPE(value, struct ports);
} listening SEC(".maps");

/* The first port of the kernel's ephemeral range; written by user space. */
struct {
	UINT(type, MAP_ARRAY);
	UINT(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, u32);
} first_chosen SEC(".maps");

/* State of a socket, in its socket storage. */
struct known {
	u16 local;
	u16 remote;
	u16 port;
	u8 kind;
	u8 received; /* the last call was a receive */
	u8 first; /* FIRST_SENT, FIRST_RECEIVED: the first observed call */
	u8 pad;
};

enum { FIRST_SENT = 1, FIRST_RECEIVED };

struct {
	UINT(type, MAP_SK_STORAGE);
	UINT(map_flags, NO_PREALLOC);
	TYPE(key, int);
	TYPE(value, struct known);
} sockets SEC(".maps");

INLINE u8 *mark_of(u16 port)
{
	u32 at = port / 64;
	struct ports *ports = map_lookup(&listening, &at);

	return ports ? &ports->listening[port % 64] : 0;
}

INLINE int listened(u16 port)
{
	u8 *mark = mark_of(port);

	return mark && *mark;
}

/* Chooses the port that identifies the service: the listening one; otherwise the one outside the
 * ephemeral range; otherwise, for datagrams, the local port if this side received first; otherwise
 * the remote port. */
INLINE u16 service_port(u16 local, u16 remote, int udp, int answers)
{
	u32 zero = 0;
	u32 *first = map_lookup(&first_chosen, &zero);
	u32 chosen = first ? *first : 32768;

	if (!remote)
		return local < chosen || answers ? local : 0;
	if (!udp && listened(local))
		return local;
	if (!udp && listened(remote))
		return remote;
	if (remote < chosen)
		return remote;
	return local < chosen || answers ? local : remote;
}

INLINE void learn(struct known *k, struct sock *sk, u16 local, u16 remote)
{
	int udp = sk->sk_protocol == UDP;

	k->local = local;
	k->remote = remote;
	k->kind = udp ? DATAGRAMS : STREAM;
	k->port = service_port(local, __builtin_bswap16(remote), udp,
			       udp && k->first == FIRST_RECEIVED);
}

/* Returns the state of this socket; none for families other than IPv4, IPv6 and Unix. */
INLINE struct known *know(struct sock *sk, u8 call)
{
	u16 family = sk->__sk_common.skc_family;
	u16 local, remote;
	struct known *k;

	if (family != AF_INET && family != AF_INET6 && family != AF_UNIX)
		return 0;
	k = sk_storage_get(&sockets, sk, 0, CREATE);
	if (!k)
		return 0;
	if (!k->first)
		k->first = call;
	if (family == AF_UNIX) {
		k->kind = UNIX;
		return k;
	}
	local = sk->__sk_common.skc_num;
	remote = sk->__sk_common.skc_dport;
	if (k->local != local || k->remote != remote)
		learn(k, sk, local, remote);
	return k;
}

INLINE struct messages *sums_of(u32 which, struct known *k, struct own *own)
{
	struct service of = {
		.pid = pid_tgid() >> 32,
		.port = k->port,
		.kind = k->kind,
		.shard = cpu_id() & 7,
	};
	struct messages *sums = FIND(which, calls, &of);
	struct messages fresh = {};

	if (sums)
		return sums;
	comm(fresh.name, sizeof(fresh.name));
	MAKE(which, calls, &of, &fresh);
	sums = FIND(which, calls, &of);
	if (!sums)
		own->lost += 1;
	return sums;
}

/* An error is no message; an empty message exists only as a datagram. */
INLINE int is_message(struct sock *sk, int bytes)
{
	return bytes > 0 || (bytes == 0 && sk->sk_type == DATAGRAM);
}

SEC("tp_btf/sock_send_length")
int sock_send_length(u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	int bytes = ctx[1];
	u32 which = open_table();
	struct own *own = own_cpu();
	struct messages *sums;
	struct known *k;

	if (!which || !own)
		return 0;
	own->runs[0] += 1;
	if (!is_message(sk, bytes))
		return 0;
	k = know(sk, FIRST_SENT);
	if (!k)
		return 0;
	sums = sums_of(which, k, own);
	if (!sums)
		return 0;
	ADD(sums->sends, 1);
	ADD(sums->sent_bytes, bytes);
	if (k->received)
		ADD(sums->exchanges, 1);
	k->received = 0;
	return 0;
}

SEC("tp_btf/sock_recv_length")
int sock_recv_length(u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	int bytes = ctx[1];
	int flags = ctx[2];
	u32 which = open_table();
	struct own *own = own_cpu();
	struct messages *sums;
	struct known *k;
	int incoming;

	if (!which || !own)
		return 0;
	own->runs[1] += 1;
	if (flags & LOOKED_ONLY || !is_message(sk, bytes))
		return 0;
	k = know(sk, FIRST_RECEIVED);
	if (!k)
		return 0;
	sums = sums_of(which, k, own);
	if (!sums)
		return 0;
	ADD(sums->receives, 1);
	ADD(sums->received_bytes, bytes);
	k->received = 1;
	incoming = k->kind == UNIX ? -1 : sk->__sk_common.skc_incoming_cpu;
	if (incoming < 0)
		ADD(sums->unplaced, 1);
	else if (incoming != cpu_id())
		ADD(sums->elsewhere, 1);
	return 0;
}

/* A socket starts to listen, in any namespace. */
SEC("tp_btf/inet_sock_set_state")
int inet_sock_set_state(u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	struct own *own = own_cpu();
	u8 *mark;

	if (own)
		own->runs[2] += 1;
	if ((int)ctx[2] != LISTEN)
		return 0;
	mark = mark_of(sk->__sk_common.skc_num);
	if (mark)
		*mark = 1;
	return 0;
}
