/*
 * Lower bound of the cost of a round trip: plain send and recv, one connection, without the
 * checks that a tool needs. The cost of netwright is compared with it.
 *
 *   pingpong serve  tcp|udp PORT BYTES block|spin
 *   pingpong client tcp|udp PORT BYTES block|spin WARMUP_MS WINDOW_MS record|count
 *
 * `record` reads the clock once per round trip and keeps all of them, so the median is exact;
 * `count` reads no clock within the window, which a timer ends. The client prints
 *
 *   median_ns mean_ns min_ns round_trips window_ns      (median and min are 0 with `count`)
 *
 * The server ends with its connection (TCP) or when it is killed (UDP).
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { MOST_BYTES = 1 << 20, MOST_SAMPLES_PER_MS = 2000 };

static char buffer[MOST_BYTES];
static volatile sig_atomic_t over;

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void on_alarm(int signal_number)
{
    (void)signal_number;
    over = 1;
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Receives one complete message; 0 when the peer closed or the timer ended the window. */
static inline int receive(int fd, size_t bytes, int flags)
{
    size_t got = 0;
    while (got < bytes) {
        ssize_t n = recv(fd, buffer, bytes - got, flags);
        if (n > 0)
            got += (size_t)n;
        else if (n == 0 || (errno != EAGAIN && errno != EINTR) || over)
            return 0;
    }
    return 1;
}

static inline int transmit(int fd, size_t bytes)
{
    return send(fd, buffer, bytes, MSG_NOSIGNAL) == (ssize_t)bytes;
}

static struct sockaddr_in loopback(int port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return a;
}

static void no_delay(int fd)
{
    int on = 1;
    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on))
        die("TCP_NODELAY");
}

static void serve(int udp, int port, size_t bytes, int flags)
{
    struct sockaddr_in a = loopback(port), from;
    socklen_t length = sizeof from;
    int on = 1, fd = socket(AF_INET, udp ? SOCK_DGRAM : SOCK_STREAM, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on))
        die("socket");
    if (bind(fd, (struct sockaddr *)&a, sizeof a))
        die("bind");
    if (udp) {
        /* The first datagram names the client; connected, later ones need no address. */
        if (recvfrom(fd, buffer, bytes, MSG_PEEK, (struct sockaddr *)&from, &length) < 0)
            die("recvfrom");
        if (connect(fd, (struct sockaddr *)&from, length))
            die("connect");
    } else {
        int listener = fd;
        if (listen(listener, 1) || (fd = accept(listener, NULL, NULL)) < 0)
            die("accept");
        no_delay(fd);
    }
    while (receive(fd, bytes, flags) && transmit(fd, bytes))
        ;
}

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void report(uint32_t *samples, uint64_t count, uint64_t window)
{
    uint64_t median = 0, least = 0;
    if (samples && count) {
        qsort(samples, count, sizeof *samples, compare);
        median = samples[count / 2];
        least = samples[0];
    }
    printf("%llu %.1f %llu %llu %llu\n", (unsigned long long)median,
           count ? (double)window / (double)count : 0.0, (unsigned long long)least,
           (unsigned long long)count, (unsigned long long)window);
}

static void record(int fd, size_t bytes, int flags, int warmup_ms, int window_ms)
{
    uint64_t room = (uint64_t)window_ms * MOST_SAMPLES_PER_MS, count = 0;
    uint32_t *samples = mmap(NULL, room * sizeof *samples, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (samples == MAP_FAILED)
        die("mmap");
    uint64_t start = now_ns() + (uint64_t)warmup_ms * 1000000, last = now_ns();
    while (last < start && transmit(fd, bytes) && receive(fd, bytes, flags))
        last = now_ns();
    start = last;
    uint64_t end = start + (uint64_t)window_ms * 1000000;
    while (last < end && count < room) {
        if (!transmit(fd, bytes) || !receive(fd, bytes, flags))
            die("ended early");
        uint64_t now = now_ns();
        samples[count++] = (uint32_t)(now - last);
        last = now;
    }
    report(samples, count, last - start);
}

static void timer(int ms)
{
    struct itimerval once = {.it_value = {ms / 1000, ms % 1000 * 1000}};
    struct sigaction action = {.sa_handler = on_alarm};
    over = 0;
    if (sigaction(SIGALRM, &action, NULL) || setitimer(ITIMER_REAL, &once, NULL))
        die("setitimer");
}

static void count_only(int fd, size_t bytes, int flags, int warmup_ms, int window_ms)
{
    uint64_t count = 0, start;
    for (start = now_ns(); now_ns() - start < (uint64_t)warmup_ms * 1000000;)
        if (!transmit(fd, bytes) || !receive(fd, bytes, flags))
            die("ended early");
    timer(window_ms);
    start = now_ns();
    while (!over && transmit(fd, bytes) && receive(fd, bytes, flags))
        count++;
    report(NULL, count, now_ns() - start);
}

static void client(int udp, int port, size_t bytes, int flags, char **rest)
{
    struct sockaddr_in a = loopback(port);
    int fd = socket(AF_INET, udp ? SOCK_DGRAM : SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof a))
        die("connect");
    if (!udp)
        no_delay(fd);
    int warmup_ms = atoi(rest[0]), window_ms = atoi(rest[1]);
    if (strcmp(rest[2], "record") == 0)
        record(fd, bytes, flags, warmup_ms, window_ms);
    else
        count_only(fd, bytes, flags, warmup_ms, window_ms);
}

int main(int argc, char **argv)
{
    int serving = argc == 6 && strcmp(argv[1], "serve") == 0;
    if (!serving && !(argc == 9 && strcmp(argv[1], "client") == 0)) {
        fputs("pingpong serve|client tcp|udp PORT BYTES block|spin "
              "[WARMUP_MS WINDOW_MS record|count]\n", stderr);
        return 2;
    }
    int udp = strcmp(argv[2], "udp") == 0, port = atoi(argv[3]);
    long bytes = atol(argv[4]);
    int flags = strcmp(argv[5], "spin") == 0 ? MSG_DONTWAIT : 0;
    if (bytes < 1 || bytes > MOST_BYTES)
        return 2;
    if (serving)
        serve(udp, port, (size_t)bytes, flags);
    else
        client(udp, port, (size_t)bytes, flags, argv + 6);
    return 0;
}
