/* The peers that every system has: calls without a wall, the kernel, another process.
 *
 *     native LIBRARY.so BUDGET_NANOSECONDS CPU OTHER_CPU
 *
 * OTHER_CPU is -1 if there is no second processor. */
#define _GNU_SOURCE
#include "answer.h"
#include <dlfcn.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern void nothing(void);
extern uint64_t eight(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
extern void work(uint64_t *words, uint64_t bytes);

static void (*library_nothing)(void);
static uint64_t buffer[512];
static int own_cpu, other_cpu;

static void plain(uint64_t count) {
    while (count--)
        nothing();
}

static void plain_eight(uint64_t count) {
    while (count--)
        eight(count, 2, 3, 4, 5, 6, 7, 8);
}

static void plain_64(uint64_t count) {
    while (count--)
        work(buffer, 64);
}

static void plain_4096(uint64_t count) {
    while (count--)
        work(buffer, 4096);
}

static void library(uint64_t count) {
    void (*volatile *pointer)(void) = &library_nothing;
    while (count--)
        (*pointer)();
}

/* By the call itself: the C library's getppid does the same, without a cache. */
static void system_call(uint64_t count) {
    while (count--)
        syscall(SYS_getppid);
}

/* A program that does nothing, from start to end. */
static void process(uint64_t count) {
    char *arguments[] = {"true", NULL};
    while (count--) {
        pid_t child;
        if (posix_spawnp(&child, "true", NULL, NULL, arguments, environ))
            stop("the program `true` cannot be started");
        waitpid(child, NULL, 0);
    }
}

/* Whose turn it is: even the client's, odd the server's, and one line of the cache for it. */
struct shared {
    _Alignas(64) uint32_t turn;
    _Alignas(64) uint32_t stopped;
};

static struct shared *shared;

enum way { FUTEX, SPIN, YIELD };

/* Until the turn is `wanted` or it is all over. */
static void wait_for(enum way way, uint32_t wanted) {
    uint32_t turn;
    while ((turn = __atomic_load_n(&shared->turn, __ATOMIC_ACQUIRE)) != wanted) {
        if (__atomic_load_n(&shared->stopped, __ATOMIC_RELAXED))
            return;
        if (way == FUTEX)
            syscall(SYS_futex, &shared->turn, FUTEX_WAIT, turn, NULL, NULL, 0);
        else if (way == YIELD)
            sched_yield();
        else
            __builtin_ia32_pause();
    }
}

static void pass(enum way way) {
    __atomic_add_fetch(&shared->turn, 1, __ATOMIC_RELEASE);
    if (way == FUTEX)
        syscall(SYS_futex, &shared->turn, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void stay_on(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set))
        stop("this process may not run on the processor that was named");
}

/* One server for each measurement: one that spins must not disturb the others. */
static pid_t server;

static const char *serve(enum way way, int cpu) {
    if (cpu < 0)
        return "this process may run on one processor only";
    shared->turn = shared->stopped = 0;
    server = fork();
    if (server < 0)
        return "fork failed";
    if (server)
        return NULL;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    stay_on(cpu);
    for (uint32_t turn = 1;; turn += 2) {
        wait_for(way, turn);
        if (__atomic_load_n(&shared->stopped, __ATOMIC_RELAXED))
            _exit(0);
        pass(way);
    }
}

static void dismiss(void) {
    __atomic_store_n(&shared->stopped, 1, __ATOMIC_RELEASE);
    pass(FUTEX);
    waitpid(server, NULL, 0);
}

static void ask(enum way way, uint64_t count) {
    uint32_t turn = __atomic_load_n(&shared->turn, __ATOMIC_RELAXED);
    while (count--) {
        pass(way);
        wait_for(way, turn += 2);
    }
}

static void ask_futex(uint64_t count) { ask(FUTEX, count); }
static void ask_spin(uint64_t count) { ask(SPIN, count); }
static void ask_yield(uint64_t count) { ask(YIELD, count); }
static const char *futex_here(void) { return serve(FUTEX, own_cpu); }
static const char *futex_there(void) { return serve(FUTEX, other_cpu); }
static const char *spin_there(void) { return serve(SPIN, other_cpu); }
static const char *yield_here(void) { return serve(YIELD, own_cpu); }
static const char *has_library(void) { return library_nothing ? NULL : "the shared library cannot be opened"; }

static struct row rows[] = {
    {.name = "plain", .run = plain},
    {.name = "plain-eight", .run = plain_eight},
    {.name = "plain-64", .run = plain_64},
    {.name = "plain-4096", .run = plain_4096},
    {.name = "library", .run = library, .begin = has_library},
    {.name = "system-call", .run = system_call},
    {.name = "process", .run = process},
    {.name = "futex-one-core", .run = ask_futex, .begin = futex_here, .end = dismiss},
    {.name = "futex-two-cores", .run = ask_futex, .begin = futex_there, .end = dismiss},
    {.name = "spin-two-cores", .run = ask_spin, .begin = spin_there, .end = dismiss},
    {.name = "yield-one-core", .run = ask_yield, .begin = yield_here, .end = dismiss},
};

int main(int argc, char **argv) {
    if (argc != 5)
        stop("usage: native LIBRARY.so BUDGET CPU OTHER_CPU");
    own_cpu = atoi(argv[3]);
    other_cpu = atoi(argv[4]);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        stop("no memory");
    void *opened = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (opened)
        *(void **)&library_nothing = dlsym(opened, "nothing");
    return answer(rows, sizeof rows / sizeof *rows, strtoull(argv[2], NULL, 10));
}
