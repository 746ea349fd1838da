/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* BPF definitions for the programs: types, maps, helpers by their stable numbers
 * (uapi/linux/bpf.h). Kernel structures are declared with only the used fields; the loader
 * relocates them for the running kernel (CO-RE). */
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int s32;
typedef long long s64;

#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))
#define KERNEL __attribute__((preserve_access_index))
#define LICENSE char license_[] SEC("license") = "Dual BSD/GPL"

#define UINT(name, value) int (*name)[value]
#define TYPE(name, value) typeof(value) *name

enum {
	MAP_HASH = 1,
	MAP_ARRAY = 2,
	MAP_PERCPU_HASH = 5,
	MAP_PERCPU_ARRAY = 6,
	MAP_LRU_HASH = 9,
	MAP_LRU_PERCPU_HASH = 10,
	MAP_SK_STORAGE = 24,
};

enum { ANY = 0, NOEXIST = 1 };

/* Map flag: allocate elements on demand. */
enum { NO_PREALLOC = 1 };

/* Flag of sk_storage_get: create the storage if it does not exist. */
enum { CREATE = 1 };

static void *(*map_lookup)(const void *map, const void *key) = (void *)1;
static long (*map_update)(const void *map, const void *key, const void *value, u64 flags) =
	(void *)2;
static long (*map_delete)(const void *map, const void *key) = (void *)3;
static long (*probe_read)(void *to, u32 size, const void *from) = (void *)4;
static u64 (*ktime_ns)(void) = (void *)5;
static u32 (*cpu_id)(void) = (void *)8;
/* The process (what user space calls pid) in the upper half, the thread in the lower. */
static u64 (*pid_tgid)(void) = (void *)14;
static long (*comm)(void *to, u32 size) = (void *)16;
static u64 (*current_task)(void) = (void *)35;
static void *(*sk_storage_get)(const void *map, void *sk, const void *value, u64 flags) =
	(void *)107;

/* Reads one field of a kernel structure, relocated for this kernel: READ(napi, napi_id). */
#define READ(from, field)                                                        \
	({                                                                       \
		typeof((from)->field) value_;                                    \
		probe_read(&value_, sizeof(value_),                              \
			   __builtin_preserve_access_index(&(from)->field));     \
		value_;                                                          \
	})

/* Whether this kernel's structure has the field: FIELD_EXISTS(struct task_struct, cpu). */
#define FIELD_EXISTS(type, field) \
	__builtin_preserve_field_info(((type *)0)->field, 2)

/* Context of a raw tracepoint: its arguments in order. */
struct raw_args {
	u64 args[0];
};

/* Hides the known range of an index from the compiler, so that the comparison that follows uses the
 * indexing register itself. The verifier of Linux 6.1 does not propagate the bound of a widened
 * copy to the register that it was copied from. */
#define AS_IT_IS(index) asm volatile("" : "+r"(index))
