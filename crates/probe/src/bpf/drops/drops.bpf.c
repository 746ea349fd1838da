/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Dropped packets by reason, location, protocol and interface. */
#include "double_buffer.h"

LICENSE;

struct ns_common {
	u32 inum;
} KERNEL;

struct net {
	struct ns_common ns;
} KERNEL;

typedef struct {
	struct net *net;
} KERNEL possible_net_t;

struct net_device {
	char name[16];
	possible_net_t nd_net;
} KERNEL;

struct sock_common {
	possible_net_t skc_net;
} KERNEL;

struct sock {
	struct sock_common __sk_common;
} KERNEL;

struct sk_buff {
	struct net_device *dev;
	struct sock *sk;
	u16 protocol; /* big-endian */
} KERNEL;

enum skb_drop_reason { SKB_DROP_REASON_NOT_SPECIFIED = 2 };

/* Has the reason since Linux 5.17, and the receiving socket since 6.11. */
struct trace_event_raw_kfree_skb {
	enum skb_drop_reason reason;
	void *rx_sk;
} KERNEL;

#define NO_REASON 0xffffffff

struct drop {
	u64 location;
	u32 reason;
	u16 protocol; /* big-endian */
	u16 pad;
	u32 netns; /* inode; 0: not known */
	u32 pad2;
	char nic[16];
};

#define DROPS 4096
TABLE(drops1, struct drop, u64, DROPS);
TABLE(drops2, struct drop, u64, DROPS);

INLINE u32 netns_of_socket(struct sock *sk)
{
	struct net *net = sk ? READ(sk, __sk_common.skc_net.net) : 0;

	return net ? READ(net, ns.inum) : 0;
}

SEC("raw_tp/kfree_skb")
int kfree_skb(struct raw_args *ctx)
{
	struct sk_buff *skb = (void *)ctx->args[0];
	struct drop d = {};
	u32 which = open_table();
	struct own *own = own_cpu();
	struct net_device *dev;
	struct net *net;
	u64 one = 1, *known;

	if (!which || !own)
		return 0;
	own->runs[0] += 1;
	d.location = ctx->args[1];
	d.reason = NO_REASON;
	/* Older kernels pass two arguments and reject a program that reads a third. */
	if (FIELD_EXISTS(struct trace_event_raw_kfree_skb, reason))
		d.reason = (u32)ctx->args[2];
	d.protocol = READ(skb, protocol);
	/* UDP reuses this field for a packet at a socket; there is no interface then. */
	dev = READ(skb, dev);
	if (dev) {
		probe_read(d.nic, sizeof(d.nic), __builtin_preserve_access_index(&dev->name));
		net = READ(dev, nd_net.net);
		if (net)
			d.netns = READ(net, ns.inum);
	}
	if (!d.netns)
		d.netns = netns_of_socket(READ(skb, sk));
	if (!d.netns && FIELD_EXISTS(struct trace_event_raw_kfree_skb, rx_sk))
		d.netns = netns_of_socket((void *)ctx->args[3]);
	known = FIND(which, drops, &d);
	if (!known) {
		if (MAKE(which, drops, &d, &one) == 0)
			return 0;
		/* Another CPU was first, or the table is full. */
		known = FIND(which, drops, &d);
	}
	if (known)
		ADD(*known, 1);
	else
		own->lost += 1;
	return 0;
}
