/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the programs keep. */
#pragma once
#include "inet.h"
#include "task.h"

#define UNIX_ 1 /* AF_UNIX */
#define STREAM_ 1 /* SOCK_STREAM */
#define LISTENS 10 /* TCP_LISTEN */
#define LOOKED_ONLY (0x2 | 0x2000) /* MSG_PEEK, MSG_ERRQUEUE: the data is still to be received */

#define ADD(field, n) __sync_fetch_and_add(&(field), n)

/* Records of woken threads: the thread's number modulo this. Two that share one lose a wake-up. */
#define SLOTS 8192
/* Places for classes, each times its shards in use. */
#define PLACES 512
#define SHARDS 16
/* How far up a process is looked for among its ancestors. */
#define GENERATIONS 4

/* Bucket 0 ends at 64 ns; then 16 to each power of two, until 2^34 ns (17 s). */
#define FIRST_EXPONENT 6
#define EXPONENTS 28
#define STEP_BITS 4
#define STEPS (1 << STEP_BITS)
#define BUCKETS (1 + STEPS * EXPONENTS)

/* A wake-up belongs to a socket that became readable so long before, in the same context. */
#define WINDOW_NS 50000

#define NOT_KNOWN (~0ULL)

enum program { READY, WAKING, SWITCH, RECV, SEND, STATE, PROGRAMS };

enum part { SERVICE, QUEUEING, WAKEUP, PATH, LEAST, PARTS };

enum kind { TCP, UNIX };

enum progress { NOTHING, WOKEN, RUNS };

struct cpu_state {
	u64 runs[PROGRAMS];
	/* Exchanges that found no place among the classes, processes none among the servers. */
	u64 lost;
	u64 unnamed;
	/* The socket that became readable last, if somebody may sleep for it. */
	u64 sk;
	u64 ready_ns;
	u32 ready_tid;
	u32 pad;
};

struct {
	UINT(type, MAP_PERCPU_ARRAY);
	UINT(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct cpu_state);
} cpus SEC(".maps");

struct wakeup {
	u64 sk;
	u64 waking_ns;
	u64 running_ns;
	u32 tid;
	u32 progress;
};

struct {
	UINT(type, MAP_ARRAY);
	UINT(max_entries, SLOTS);
	TYPE(key, u32);
	TYPE(value, struct wakeup);
} wakeups SEC(".maps");

/* So that the CPUs of a large machine do not all write to one line of memory, a class has
 * shards. */
struct class {
	char name[16];
	u16 port;
	u8 kind;
	u8 shard;
};

struct sums {
	u64 exchanges;
	u64 request_bytes;
	u64 response_bytes;
	u64 sends;
	/* Exchanges whose response was timed by the end of the call that sent it. */
	u64 by_call;
	u64 sum_ns[PARTS];
	u32 buckets[PARTS][BUCKETS];
	u32 pad;
};

struct {
	UINT(type, MAP_HASH);
	UINT(max_entries, PLACES);
	TYPE(key, struct class);
	TYPE(value, struct sums);
} classes SEC(".maps");

/* Where a new class begins; too large for the stack. */
struct {
	UINT(type, MAP_ARRAY);
	UINT(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct sums);
} no_sums SEC(".maps");

struct server {
	struct class class;
	u32 pid;
};

struct {
	UINT(type, MAP_HASH);
	UINT(max_entries, 4096);
	TYPE(key, struct server);
	TYPE(value, u32);
} servers SEC(".maps");

/* Kept with a socket. */
struct known {
	/* When data came last; written by whoever brings it, and by nobody else. */
	u64 ready_ns;
	/* That of it which was read. */
	u64 taken_ns;
	/* When the request was read: the first read after its last data had come. */
	u64 read_ns;
	/* For how long it waited for that; and of it the reader, to run. */
	u64 queued_ns;
	u64 woken_ns;
	u64 request_bytes;
	struct class class;
	u32 pid;
	u8 wanted;
	/* It was answered: what is read next is the next request. */
	u8 answers;
	/* Data came while a call was under way. */
	u8 in_call;
	u8 pad[5];
};

struct {
	UINT(type, MAP_SK_STORAGE);
	UINT(map_flags, NO_PREALLOC);
	TYPE(key, int);
	TYPE(value, struct known);
} sockets SEC(".maps");

/* Written by user space from here on. Ports: 1 at [port / 64][port % 64]. */
struct ports {
	u8 marks[64];
};

struct {
	UINT(type, MAP_ARRAY);
	UINT(max_entries, 1024);
	TYPE(key, u32);
	TYPE(value, struct ports);
} ports_asked SEC(".maps");

struct asked {
	/* Since when the programs are attached. */
	u64 since_ns;
	/* Only these processes, and those that descend from them. */
	u32 processes;
	/* On any port that they listen on, and on Unix sockets. */
	u32 any_port;
};

struct {
	UINT(type, MAP_ARRAY);
	UINT(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct asked);
} asked_for SEC(".maps");

struct {
	UINT(type, MAP_HASH);
	UINT(max_entries, 256);
	TYPE(key, u32);
	TYPE(value, u32);
} processes_asked SEC(".maps");
