/* Loads on a pair of network devices: a server of the host's in a name space of networks of its own, and who asks it from here. */

#define _GNU_SOURCE
#include "parts.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WEB 80
#define SINK 9
/* At most ten seconds for a connection, an answer, or an end. */
#define TIMES 500

static int server;
static char device[32];

static uint64_t now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000ull + time.tv_nsec / 1000;
}

/* Takes whatever comes, and answers with how much it was. */
static void sink(void)
{
    static uint8_t bytes[65536];
    struct sockaddr_in own = { .sin_family = AF_INET, .sin_port = htons(SINK) };
    int listens = socket(AF_INET, SOCK_STREAM, 0), talks;

    if (bind(listens, (struct sockaddr *)&own, sizeof own) != 0 || listen(listens, 8) != 0)
        _exit(1);
    while ((talks = accept(listens, NULL, NULL)) >= 0) {
        uint64_t all = 0;
        ssize_t some;

        while ((some = read(talks, bytes, sizeof bytes)) > 0)
            all += some;
        if (write(talks, &all, sizeof all) != sizeof all)
            _exit(1);
        close(talks);
    }
}

/* A pair, whose other end lies in a name space of its own; there a line of the host's shell runs, or what takes bytes. */
void serve(const char *name, const char *line)
{
    int ready[2], go[2];
    unsigned wrong = 0;
    char one = '!';

    if (pipe(ready) != 0 || pipe(go) != 0 || (server = fork()) < 0)
        return;
    if (server == 0) {
        setpgid(0, 0);
        /* The device is there when the second word comes. */
        if (unshare(CLONE_NEWNET) != 0 || write(ready[1], &one, 1) != 1 || read(go[0], &one, 1) != 1 ||
            comes_up("lo", 0x7f000001) != 0 || comes_up(OTHER, THERE) != 0)
            _exit(1);
        if (!*line)
            sink();
        setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin", 1);
        if (chroot("/host") == 0 && chdir("/mnt") == 0)
            execl("/bin/sh", "sh", "-c", line, (char *)NULL);
        _exit(126);
    }
    snprintf(device, sizeof device, "%s", name);
    if (read(ready[0], &one, 1) != 1 || make(name, server) != 0 || comes_up(name, HERE) != 0 || write(go[1], &one, 1) != 1)
        printf("init: serve %s: %s\n", name, strerror(errno));
    else
        meets(name, &wrong);
    for (int at = 0; at < 2; at++) {
        close(ready[at]);
        close(go[at]);
    }
}

/* A connection. A server may not be there at once. */
static int reach(int port)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(THERE), .sin_port = htons(port) };

    for (unsigned times = 0; times < TIMES; times++) {
        int out = socket(AF_INET, SOCK_STREAM, 0);

        if (connect(out, (struct sockaddr *)&to, sizeof to) == 0)
            return out;
        close(out);
        usleep(20000);
    }
    return -1;
}

/* So many requests for a path, eight at a time. Each answer has to be a good one, and all have to be equally long. */
void get(const char *path, unsigned count)
{
    enum { AT_ONCE = 8 };
    static char answer[AT_ONCE][65536];
    struct pollfd all[AT_ONCE];
    size_t bytes[AT_ONCE], length = 0;
    unsigned good = 0, failed = 0, asked = 0, open = 0;
    uint64_t begun = now(), total = 0;
    char request[256];
    int size = snprintf(request, sizeof request, "GET %s HTTP/1.0\r\nHost: there\r\n\r\n", path);

    for (int at = 0; at < AT_ONCE; at++)
        all[at].fd = -1;
    while (failed < 3 && (asked < count || open)) {
        for (int at = 0; at < AT_ONCE && asked < count && failed < 3; at++) {
            if (all[at].fd >= 0)
                continue;
            asked++;
            all[at].fd = reach(WEB);
            all[at].events = POLLIN;
            bytes[at] = 0;
            if (all[at].fd < 0 || write(all[at].fd, request, size) != size)
                failed++;
            open += all[at].fd >= 0;
        }
        if (poll(all, AT_ONCE, TIMES * 20) <= 0)
            failed = 3;
        for (int at = 0; at < AT_ONCE; at++) {
            ssize_t some;

            if (all[at].fd < 0 || !all[at].revents)
                continue;
            /* The first bytes say how it went. The last ones are written over each other, if there are too many. */
            if (bytes[at] > sizeof answer[at] / 2) {
                some = read(all[at].fd, answer[at] + sizeof answer[at] / 2, sizeof answer[at] / 2);
            } else {
                some = read(all[at].fd, answer[at] + bytes[at], sizeof answer[at] - bytes[at]);
            }
            if (some > 0) {
                bytes[at] += some;
                continue;
            }
            close(all[at].fd);
            all[at].fd = -1;
            open--;
            length = length ? length : bytes[at];
            total += bytes[at];
            if (some == 0 && bytes[at] == length && !strncmp(answer[at], "HTTP/1.1 200 ", 13))
                good++;
            else
                failed++;
        }
    }
    for (int at = 0; at < AT_ONCE; at++)
        if (all[at].fd >= 0)
            close(all[at].fd);
    printf("init: get %s: %u good, %u failed, %llu bytes, %llu us\n", path, good, failed, (unsigned long long)total,
           (unsigned long long)(now() - begun));
}

/* Megabytes to the other end, in one connection. */
void bulk(unsigned megabytes)
{
    static uint8_t bytes[1 << 16];
    uint64_t begun = now(), got = 0, want = (uint64_t)megabytes << 20, sent = 0;
    int out = reach(SINK);
    ssize_t some = 0;

    pattern(bytes, sizeof bytes, 1);
    while (out >= 0 && sent < want && (some = write(out, bytes, sizeof bytes)) > 0)
        sent += some;
    if (out < 0 || shutdown(out, SHUT_WR) != 0 || read(out, &got, sizeof got) != sizeof got)
        got = 0;
    close(out);
    printf("init: bulk: %llu MiB, %s, %llu us\n", (unsigned long long)sent >> 20, got == sent && sent == want ? "all" : "not all",
           (unsigned long long)(now() - begun));
}

/* The server and all that it has started end, and the pair goes. */
void unserve(void)
{
    int status = 0;

    if (server <= 0)
        return;
    kill(-server, SIGTERM);
    for (unsigned times = 0; times < TIMES && waitpid(server, &status, WNOHANG) == 0; times++)
        usleep(20000);
    kill(-server, SIGKILL);
    take_away(device);
    server = 0;
    printf("init: unserve: done\n");
}
