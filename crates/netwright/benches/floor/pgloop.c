/*
 * Lower bound of the client's cost of pgbench's select-only with prepared statements: one thread
 * sends the bytes that `measure pg` sends and discards the answers. It reads no clock, keeps no
 * data and evaluates no script. The costs of netwright and pgbench are compared with it.
 *
 *   pgloop epoll|uring PORT CLIENTS EACH ROWS
 *
 * `epoll` registers each connection once and makes a send and a recv for each transaction;
 * `uring` submits both to the kernel, with one call for all that are ready. It prints `tps = N`.
 * The server, at 127.0.0.1, must accept `postgres` without a password.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/io_uring.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MOST_CLIENTS = 256, MOST_BYTES = 256, ROOM = 1024, BOTH = PROT_READ | PROT_WRITE };

static int sockets[MOST_CLIENTS], left[MOST_CLIENTS], clients;
static unsigned rows;
static char out[MOST_CLIENTS][MOST_BYTES], in[MOST_CLIENTS][ROOM];

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static size_t put(char *at, char kind, const char *body, uint32_t bytes)
{
    uint32_t length = htonl(bytes + 4);
    *at = kind;
    memcpy(at + 1, &length, 4);
    memcpy(at + 5, body, bytes);
    return bytes + 5;
}

/* Whether the received data ends with ReadyForQuery. */
static int whole(const char *at, ssize_t bytes)
{
    return bytes >= 6 && at[bytes - 6] == 'Z';
}

static void say(int fd, const char *bytes, size_t count)
{
    if (send(fd, bytes, count, MSG_NOSIGNAL) != (ssize_t)count)
        die("send");
}

static void ready(int fd)
{
    static char room[1 << 16];
    ssize_t got;
    do {
        got = recv(fd, room, sizeof room, 0);
        if (got <= 0)
            die("the server's answer");
    } while (!whole(room, got));
}

/* Opens a session with the prepared statement. */
static int begin(int port)
{
    static const char who[] = "\0\3\0\0user\0postgres\0database\0postgres\0";
    static const char text[] = "P0_1\0SELECT abalance FROM pgbench_accounts WHERE aid = $1;\0\0";
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    uint32_t length = htonl(sizeof who + 4);
    char room[MOST_BYTES];
    int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to))
        die("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    memcpy(room, &length, 4);
    memcpy(room + 4, who, sizeof who);
    say(fd, room, sizeof who + 4);
    ready(fd);
    size_t bytes = put(room, 'P', text, sizeof text);
    bytes += put(room + bytes, 'S', "", 0);
    say(fd, room, bytes);
    ready(fd);
    return fd;
}

/* Bind with a random account, Execute, Sync. */
static size_t ask(char *at)
{
    static uint64_t seed = 88172645463325252u;
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    char body[64] = "\0P0_1\0\0\1\0\0\0\1", aid[16];
    int digits = snprintf(aid, sizeof aid, "%u", (unsigned)(seed % rows) + 1);
    uint32_t length = htonl((uint32_t)digits);
    memcpy(body + 12, &length, 4);
    memcpy(body + 16, aid, (size_t)digits);
    memcpy(body + 16 + digits, "\0\1\0\0", 4);
    size_t bytes = put(at, 'B', body, 20 + (uint32_t)digits);
    bytes += put(at + bytes, 'E', "\0\0\0\0\0", 5);
    return bytes + put(at + bytes, 'S', "", 0);
}

static void by_epoll(void)
{
    int all = epoll_create1(0), open = clients;
    for (int c = 0; c < clients; c++) {
        struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.u32 = (uint32_t)c};
        if (epoll_ctl(all, EPOLL_CTL_ADD, sockets[c], &event))
            die("epoll_ctl");
        say(sockets[c], out[c], ask(out[c]));
    }
    while (open > 0) {
        struct epoll_event events[MOST_CLIENTS];
        int n = epoll_wait(all, events, MOST_CLIENTS, -1);
        for (int i = 0; i < n; i++) {
            uint32_t c = events[i].data.u32;
            ssize_t got = recv(sockets[c], in[c], ROOM, MSG_DONTWAIT);
            if (got == 0 || (got < 0 && errno != EAGAIN))
                die("recv");
            if (!whole(in[c], got))
                continue;
            if (--left[c] == 0)
                open--;
            else
                say(sockets[c], out[c], ask(out[c]));
        }
    }
}

static struct io_uring_sqe *entries;
static unsigned *tail, *array, mask, queued;

static struct io_uring_sqe *entry(uint8_t what, int c, char *at, size_t bytes)
{
    unsigned last = *tail, slot = last & mask;
    struct io_uring_sqe *one = &entries[slot];
    array[slot] = slot;
    memset(one, 0, sizeof *one);
    one->opcode = what;
    one->fd = c;
    one->flags = IOSQE_FIXED_FILE;
    one->addr = (uintptr_t)at;
    one->len = (uint32_t)bytes;
    one->user_data = (uint64_t)c;
    __atomic_store_n(tail, last + 1, __ATOMIC_RELEASE);
    queued++;
    return one;
}

/* A send that completes visibly only on failure, and the recv of its answer. */
static void ask_and_await(int c)
{
    struct io_uring_sqe *one = entry(IORING_OP_SEND, c, out[c], ask(out[c]));
    one->flags |= IOSQE_CQE_SKIP_SUCCESS;
    one->msg_flags = MSG_NOSIGNAL;
    entry(IORING_OP_RECV, c, in[c], ROOM)->ioprio = IORING_RECVSEND_POLL_FIRST;
}

static void by_uring(void)
{
    struct io_uring_params p = {
        .flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
    };
    int ring = (int)syscall(SYS_io_uring_setup, 4 * MOST_CLIENTS, &p), open = clients;
    if (ring < 0)
        die("io_uring_setup");
    size_t asked = p.sq_off.array + p.sq_entries * sizeof(unsigned);
    size_t done = p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe);
    char *both = mmap(0, asked > done ? asked : done, BOTH, MAP_SHARED, ring, IORING_OFF_SQ_RING);
    entries = mmap(0, p.sq_entries * sizeof *entries, BOTH, MAP_SHARED, ring, IORING_OFF_SQES);
    if (both == MAP_FAILED || entries == MAP_FAILED)
        die("mmap");
    tail = (unsigned *)(both + p.sq_off.tail);
    array = (unsigned *)(both + p.sq_off.array);
    mask = *(unsigned *)(both + p.sq_off.ring_mask);
    unsigned *head = (unsigned *)(both + p.cq_off.head);
    unsigned *until = (unsigned *)(both + p.cq_off.tail);
    unsigned of = *(unsigned *)(both + p.cq_off.ring_mask);
    struct io_uring_cqe *answers = (struct io_uring_cqe *)(both + p.cq_off.cqes);
    if (syscall(SYS_io_uring_register, ring, IORING_REGISTER_FILES, sockets, clients))
        die("io_uring_register");
    for (int c = 0; c < clients; c++)
        ask_and_await(c);
    while (open > 0) {
        long n = syscall(SYS_io_uring_enter, ring, queued, 1, IORING_ENTER_GETEVENTS, 0, 0);
        if (n < 0)
            die("io_uring_enter");
        queued -= (unsigned)n;
        unsigned at = *head, end = __atomic_load_n(until, __ATOMIC_ACQUIRE);
        for (; at != end; at++) {
            struct io_uring_cqe *answer = &answers[at & of];
            int c = (int)answer->user_data;
            errno = answer->res < 0 ? -answer->res : EPROTO;
            if (answer->res <= 0 || !whole(in[c], answer->res))
                die("a transaction");
            if (--left[c] == 0)
                open--;
            else
                ask_and_await(c);
        }
        __atomic_store_n(head, at, __ATOMIC_RELEASE);
    }
}

int main(int argc, char **argv)
{
    if (argc != 6 || atoi(argv[3]) > MOST_CLIENTS || atoi(argv[3]) < 1) {
        fputs("pgloop epoll|uring PORT CLIENTS EACH ROWS\n", stderr);
        return 2;
    }
    struct timespec from, to;
    int each = atoi(argv[4]);
    clients = atoi(argv[3]);
    rows = (unsigned)atoi(argv[5]);
    for (int c = 0; c < clients; c++) {
        sockets[c] = begin(atoi(argv[2]));
        left[c] = each;
    }
    clock_gettime(CLOCK_MONOTONIC, &from);
    if (argv[1][0] == 'u')
        by_uring();
    else
        by_epoll();
    clock_gettime(CLOCK_MONOTONIC, &to);
    double s = (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
    printf("tps = %f\n", (double)clients * each / s);
    return 0;
}
