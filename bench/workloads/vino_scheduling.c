/* The scheduling extension of VINO.
 *
 * MiSFIT 6.3 says: each call searches a list of 64 process identifiers; the code
 * that traverses the list is trusted code of the base system. Our reading: the
 * base system hands over a way to step through its list; the extension looks for
 * the process it wants to run in its client's stead, and falls back on the one
 * that was chosen. Here base system and extension lie in the same domain, so the
 * steps are walled as well: what this row shows is an upper bound. */
#include "bench.h"

#define PROCESSES 64
#define CALLS 256

struct process {
    struct process *next;
    uint32_t id, ready;
};

static struct process processes[PROCESSES];
static struct process *ready_list;
static uint32_t seed = 13;

static BENCH_CALL const struct process *next_process(const struct process *at) {
    const struct process *next = at ? at->next : ready_list;
    while (next && !next->ready)
        next = next->next;
    return next;
}

static uint32_t schedule(uint32_t chosen, uint32_t server) {
    for (const struct process *p = next_process(NULL); p; p = next_process(p))
        if (p->id == server)
            return server;
    return chosen;
}

static uint32_t (*volatile extension)(uint32_t, uint32_t) = schedule;

static void prepare(void) {
    for (int i = 0; i < PROCESSES; i++) {
        struct process *p = &processes[i * 27 % PROCESSES];
        *p = (struct process){ready_list, (uint32_t)i + 100, i % 8 != 3};
        ready_list = p;
    }
}

static BENCH_CALL uint64_t ticks(void) {
    uint64_t sum = 0;
    for (int i = 0; i < CALLS; i++) {
        uint32_t draw = bench_random(&seed);
        sum += extension(1, 100 + draw % (PROCESSES + PROCESSES / 4));
    }
    return sum;
}

BENCH_MAIN(prepare(), ticks())
