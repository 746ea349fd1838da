/*
 * Lower bound of the cost of a stream: one connection, 128 KiB per call, no data is read.
 *
 *   stream serve  PORT
 *   stream client PORT MS
 *
 * Each end prints bytes, wall nanoseconds and its own CPU nanoseconds when the stream is over.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static char buffer[128 << 10];

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static uint64_t ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int main(int argc, char **argv)
{
    int serving = argc == 3 && strcmp(argv[1], "serve") == 0, on = 1;
    if (!serving && !(argc == 4 && strcmp(argv[1], "client") == 0)) {
        fputs("stream serve|client PORT [MS]\n", stderr);
        return 2;
    }
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[2]))};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0)
        die("socket");
    if (serving) {
        int listener = fd;
        if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) ||
            bind(fd, (struct sockaddr *)&a, sizeof a) || listen(fd, 1) ||
            (fd = accept(listener, NULL, NULL)) < 0)
            die("listen");
    } else if (connect(fd, (struct sockaddr *)&a, sizeof a)) {
        die("connect");
    }
    uint64_t bytes = 0, start = ns(CLOCK_MONOTONIC);
    uint64_t end = serving ? UINT64_MAX : start + (uint64_t)atoi(argv[3]) * 1000000;
    while (ns(CLOCK_MONOTONIC) < end) {
        ssize_t n = serving ? recv(fd, buffer, sizeof buffer, 0)
                            : send(fd, buffer, sizeof buffer, MSG_NOSIGNAL);
        if (n <= 0)
            break;
        bytes += (uint64_t)n;
    }
    printf("%llu %llu %llu\n", (unsigned long long)bytes,
           (unsigned long long)(ns(CLOCK_MONOTONIC) - start),
           (unsigned long long)ns(CLOCK_PROCESS_CPUTIME_ID));
    return 0;
}
