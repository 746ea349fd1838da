/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* NAPI instances and their polls. */
#pragma once
#include "state.h"

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
	char name[NAME];
	int ifindex;
	possible_net_t nd_net;
} KERNEL;

struct napi_struct {
	struct net_device *dev;
	u32 napi_id;
} KERNEL;

struct napi_key {
	u64 napi;
	u32 id;
	u32 cpu;
};

struct {
	UINT(type, MAP_LRU_HASH);
	UINT(max_entries, 16384);
	TYPE(key, struct napi_key);
	TYPE(value, struct napi);
} napis SEC(".maps");

/* Number of polls that are timed individually after a softirq that polled several instances. */
#define SEVERAL 64

/* Moves the sums of a slot to the shared map. The key contains the CPU, so no other CPU adds to the
 * entry. */
INLINE void put_napi(const struct napi *from)
{
	struct napi fresh = *from;
	struct napi_key key = { .napi = from->napi, .id = from->id, .cpu = cpu_id() };
	struct napi *to = map_lookup(&napis, &key);

	if (!to) {
		fresh.napi = ktime_ns();
		map_update(&napis, &key, &fresh, NOEXIST);
		return;
	}
	to->polls += fresh.polls;
	to->packets += fresh.packets;
	to->full += fresh.full;
	to->outside += fresh.outside;
	to->ns += fresh.ns;
	to->poller = fresh.poller;
	to->irq = fresh.irq;
}

INLINE void claim_napi(struct napi *n, struct napi_struct *napi, u64 at, u32 id)
{
	struct net_device *dev = napi->dev;

	if (n->napi)
		put_napi(n);
	__builtin_memset(n, 0, sizeof(*n));
	n->napi = at;
	n->id = id;
	if (!dev)
		return;
	n->ifindex = dev->ifindex;
	n->netns = dev->nd_net.net->ns.inum;
	probe_read(n->nic, NAME, dev->name);
}

/* Returns the slot of an instance: one of two candidates, claimed if it holds neither. */
INLINE u32 place_of_napi(struct cpu_state *s, struct napi_struct *napi, u32 id)
{
	u64 at;
	u32 i;

	/* The verifier forbids arithmetic on kernel pointers; a value read back from memory is a
	 * scalar. */
	*(volatile u64 *)&s->at = (u64)napi;
	at = *(volatile u64 *)&s->at;
	i = (u32)((at >> 7) ^ (at >> 12)) & (NAPIS - 1);

	if (s->napis[i].napi == at && s->napis[i].id == id)
		return i;
	i ^= 1;
	if (s->napis[i].napi == at && s->napis[i].id == id)
		return i;
	if (s->napis[i].napi)
		i ^= 1;
	claim_napi(&s->napis[i], napi, at, id);
	return i;
}
