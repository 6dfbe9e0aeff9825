/* The wall that every system has: another process. The same work, VINO's trivial
 * encryption of a request, is done by a function call, by a process behind two
 * pipes, and by a process behind shared memory and a futex.
 *
 *     process call|pipe|shared BYTES COUNT
 *
 * prints "<checksum> <nanoseconds>" for COUNT requests of BYTES each. */
#define _GNU_SOURCE
#include "bench.h"
#include <linux/futex.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

struct shared {
    uint32_t turn; /* even: the client's, odd: the server's */
    uint32_t key;
    uint32_t data[];
};

static size_t bytes;

static void stop(const char *why) {
    perror(why);
    exit(2);
}

static BENCH_CALL uint32_t encrypt(uint32_t *data, size_t words, uint32_t key) {
    for (size_t i = 0; i < words; i++) {
        data[i] ^= key;
        key = key << 1 | key >> 31;
    }
    return key;
}

static void transfer(int fd, void *data, size_t length, int writing) {
    for (size_t done = 0; done < length;) {
        ssize_t n = writing ? write(fd, (char *)data + done, length - done) : read(fd, (char *)data + done, length - done);
        if (n <= 0)
            stop("pipe");
        done += (size_t)n;
    }
}

static void wait_for(uint32_t *turn, uint32_t other) {
    uint32_t now;
    while ((now = __atomic_load_n(turn, __ATOMIC_ACQUIRE)) == other)
        syscall(SYS_futex, turn, FUTEX_WAIT, other, NULL, NULL, 0);
}

static void pass(uint32_t *turn) {
    __atomic_add_fetch(turn, 1, __ATOMIC_RELEASE);
    syscall(SYS_futex, turn, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* Forks; the child dies with its parent. */
static int is_server(void) {
    pid_t child = fork();
    if (child < 0)
        stop("fork");
    if (child == 0)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    return child == 0;
}

static int to_server[2], from_server[2];

static void start_pipe(uint32_t *data) {
    if (pipe(to_server) || pipe(from_server))
        stop("pipe");
    if (!is_server())
        return;
    for (;;) {
        uint32_t key;
        transfer(to_server[0], &key, sizeof key, 0);
        transfer(to_server[0], data, bytes, 0);
        key = encrypt(data, bytes / 4, key);
        transfer(from_server[1], &key, sizeof key, 1);
        transfer(from_server[1], data, bytes, 1);
    }
}

static uint32_t by_pipe(uint32_t *data, uint32_t key) {
    transfer(to_server[1], &key, sizeof key, 1);
    transfer(to_server[1], data, bytes, 1);
    transfer(from_server[0], &key, sizeof key, 0);
    transfer(from_server[0], data, bytes, 0);
    return key;
}

static void start_shared(struct shared *shared) {
    if (!is_server())
        return;
    for (uint32_t turn = 0;; turn += 2) {
        wait_for(&shared->turn, turn);
        shared->key = encrypt(shared->data, bytes / 4, shared->key);
        pass(&shared->turn);
    }
}

static uint32_t by_shared(struct shared *shared, uint32_t *data, uint32_t key, uint32_t turn) {
    memcpy(shared->data, data, bytes);
    shared->key = key;
    pass(&shared->turn);
    wait_for(&shared->turn, turn + 1);
    memcpy(data, shared->data, bytes);
    return shared->key;
}

int main(int argc, char **argv) {
    if (argc != 4 || (bytes = strtoul(argv[2], NULL, 10) & ~(size_t)3) == 0) {
        fputs("usage: process call|pipe|shared BYTES COUNT\n", stderr);
        return 2;
    }
    uint64_t count = strtoull(argv[3], NULL, 10);
    uint32_t *data = calloc(1, bytes), key = 0xdecafbad;
    struct shared *shared = mmap(NULL, sizeof *shared + bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int by = argv[1][0];
    if (!data || shared == MAP_FAILED)
        stop("memory");
    if (by == 'p')
        start_pipe(data);
    else if (by == 's')
        start_shared(shared);
    uint64_t start = bench_now();
    for (uint64_t i = 0; i < count; i++) {
        key += (uint32_t)i;
        key = by == 'p' ? by_pipe(data, key) : by == 's' ? by_shared(shared, data, key, (uint32_t)i * 2) : encrypt(data, bytes / 4, key);
        bench_barrier();
    }
    uint64_t end = bench_now();
    return bench_report((uint64_t)key << 32 | data[bytes / 8], end - start);
}
