/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* State of the programs. */
#pragma once
#include "inet.h"
#include "task.h"

#define UNIX_ 1 /* AF_UNIX */
#define STREAM_ 1 /* SOCK_STREAM */
#define LISTENS 10 /* TCP_LISTEN */
#define LOOKED_ONLY (0x2 | 0x2000) /* MSG_PEEK, MSG_ERRQUEUE: the data is still to be received */

#define ADD(field, n) __sync_fetch_and_add(&(field), n)

/* Number of wake-up records; a thread uses the record tid modulo this. Two threads that share a
 * record lose a wake-up. */
#define SLOTS 8192
/* Capacity for classes; each uses one entry per shard in use. */
#define PLACES 512
#define SHARDS 16
/* Number of ancestors that are searched for a requested process. */
#define GENERATIONS 4

/* Bucket 0 ends at 64 ns; then 16 buckets per power of two, up to 2^34 ns (17 s). */
#define FIRST_EXPONENT 6
#define EXPONENTS 28
#define STEP_BITS 4
#define STEPS (1 << STEP_BITS)
#define BUCKETS (1 + STEPS * EXPONENTS)

/* A wake-up belongs to a socket that became readable within this time before, in the same
 * context. */
#define WINDOW_NS 50000

#define NOT_KNOWN (~0ULL)

enum program { READY, WAKING, SWITCH, RECV, SEND, STATE, PROGRAMS };

enum part { SERVICE, QUEUEING, WAKEUP, PATH, LEAST, PARTS };

enum kind { TCP, UNIX };

enum progress { NOTHING, WOKEN, RUNS };

struct cpu_state {
	u64 runs[PROGRAMS];
	/* Exchanges that did not fit into `classes`, processes that did not fit into `servers`. */
	u64 lost;
	u64 unnamed;
	/* The socket that became readable last, if a task may sleep on it. */
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

/* A class has shards, so that the CPUs of a large machine do not all write to one cache line. */
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
	/* Exchanges whose response was timed at the end of the call that sent it. */
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

/* Initial value of a class; too large for the stack. */
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

/* State of a socket, in its socket storage. */
struct known {
	/* Time of the last data; written only by sk_data_ready. */
	u64 ready_ns;
	/* The value of ready_ns that was read last. */
	u64 taken_ns;
	/* Time of reading the request: the first read after its last data had come. */
	u64 read_ns;
	/* Time that the request waited to be read; and the part in which the woken reader waited to
	 * run. */
	u64 queued_ns;
	u64 woken_ns;
	u64 request_bytes;
	struct class class;
	u32 pid;
	u8 wanted;
	/* Whether it was answered: the next read belongs to the next request. */
	u8 answers;
	/* Whether data came while a call was in progress. */
	u8 in_call;
	u8 pad[5];
};

struct {
	UINT(type, MAP_SK_STORAGE);
	UINT(map_flags, NO_PREALLOC);
	TYPE(key, int);
	TYPE(value, struct known);
} sockets SEC(".maps");

/* The maps from here on are written by user space. Ports: 1 at [port / 64][port % 64]. */
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
	/* Time at which the programs were attached. */
	u64 since_ns;
	/* Whether only the requested processes and their descendants count. */
	u32 processes;
	/* Whether any port that they listen on counts, and Unix sockets, too. */
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
