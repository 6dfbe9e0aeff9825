/* What every workload shares. A workload is one C file; `main` takes the number
 * of iterations, times its kernel alone and prints "<checksum> <nanoseconds>".
 *
 * The checksum depends on the number of iterations and on every result, so that
 * two builds that print the same one did the same work. */
#ifndef BENCH_H
#define BENCH_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A function that is measured as a function: not inlined into its caller. */
#define BENCH_CALL __attribute__((noinline))

/* The compiler may not carry results of one iteration over to the next. */
#define bench_barrier() __asm__ volatile("" ::: "memory")

static inline uint64_t bench_count(int argc, char **argv) {
    return argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
}

/* Nanoseconds of a clock that only goes forward. */
static inline uint64_t bench_now(void) {
    struct timespec now;
    if (clock_gettime(CLOCK_MONOTONIC, &now) != 0) {
        fputs("bench: no monotonic clock\n", stderr);
        exit(2);
    }
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Folds one result into a checksum; the order of results matters. */
static inline uint64_t bench_mix(uint64_t sum, uint64_t value) {
    sum = (sum ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return sum ^ (sum >> 29);
}

static inline uint64_t bench_mix_double(uint64_t sum, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bench_mix(sum, bits);
}

/* Marsaglia's xorshift: the same numbers everywhere. `state` is never 0. */
static inline uint32_t bench_random(uint32_t *state) {
    uint32_t x = *state;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return *state = x;
}

static inline int bench_report(uint64_t checksum, uint64_t nanoseconds) {
    printf("%016" PRIx64 " %" PRIu64 "\n", checksum, nanoseconds);
    return 0;
}

/* All of standard input, with a zero byte behind it. */
static inline uint8_t *bench_input(size_t *length) {
    size_t room = 1 << 16, used = 0, got;
    uint8_t *data = malloc(room + 1);
    while (data && (got = fread(data + used, 1, room - used, stdin)) > 0) {
        used += got;
        if (used == room)
            data = realloc(data, (room *= 2) + 1);
    }
    if (!data || used == 0) {
        fputs("bench: no input on standard input\n", stderr);
        exit(2);
    }
    data[used] = 0;
    *length = used;
    return data;
}

/* The whole of an ordinary `main`: `kernel` is called `count` times. */
#define BENCH_MAIN(prepare, kernel)                                                                \
    int main(int argc, char **argv) {                                                              \
        uint64_t count = bench_count(argc, argv), sum = 0;                                         \
        prepare;                                                                                   \
        uint64_t start = bench_now();                                                              \
        for (uint64_t i = 0; i < count; i++) {                                                     \
            sum = bench_mix(sum, kernel);                                                          \
            bench_barrier();                                                                       \
        }                                                                                          \
        return bench_report(sum, bench_now() - start);                                             \
    }

#endif
