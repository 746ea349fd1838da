/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Used fields of packets and sockets. */
#pragma once
#include "bpf.h"

enum { AF_INET_ = 2, AF_INET6_ = 10 };
enum { IPPROTO_TCP_ = 6 };

struct sk_buff {
	u32 len;
} KERNEL;

struct sock_common {
	u16 skc_num;
	u16 skc_family;
	volatile unsigned char skc_state;
} KERNEL;

typedef struct KERNEL {
	int owned;
} socket_lock_t;

struct list_head {
	struct list_head *next;
} KERNEL;

struct wait_queue_head {
	struct list_head head;
} KERNEL;
typedef struct wait_queue_head wait_queue_head_t;

struct socket_wq {
	wait_queue_head_t wait;
} KERNEL;

struct sock {
	struct sock_common __sk_common;
	socket_lock_t sk_lock;
	struct socket_wq *sk_wq;
	u16 sk_type;
	u16 sk_protocol;
} KERNEL;

struct unix_sock {
	struct unix_address *addr;
} KERNEL;

struct minmax_sample {
	u32 v;
} KERNEL;

struct minmax {
	struct minmax_sample s[3];
} KERNEL;

struct tcp_sock {
	u32 rcv_nxt;
	u32 copied_seq;
	u32 srtt_us; /* times 8 */
	struct minmax rtt_min; /* s[0] is the minimum of the last minutes */
	u64 tcp_wstamp_ns;
} KERNEL;

static struct tcp_sock *(*tcp_sock_of)(void *sk) = (void *)137;

/* Whether a task sleeps on the socket, directly or through epoll. */
INLINE int has_sleeper(struct sock *sk)
{
	struct socket_wq *queue = sk->sk_wq;

	return queue && (u64)queue->wait.head.next !=
				(u64)__builtin_preserve_access_index(&queue->wait.head);
}

INLINE int is_inet(struct sock *sk)
{
	u16 family = sk->__sk_common.skc_family;

	return family == AF_INET_ || family == AF_INET6_;
}
