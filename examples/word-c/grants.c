/* A grant and its revocation from C: how long they take, and that they allocate nothing.
 *
 *     mullion cc --wall=word -g -O1 module.c -o module.so
 *     cc -O2 grants.c -o grants $(pkg-config --cflags --libs mullion_word)
 *     ./grants module.so 100000
 *
 * Prints nanoseconds for the pair, the best of 20 rounds.
 */
#define _GNU_SOURCE
#include <mullion_word.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Allocations of a thread, those of the library too. */
extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *block, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);

static __thread unsigned long allocations;

void *malloc(size_t bytes)
{
    allocations++;
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    allocations++;
    return __libc_calloc(count, bytes);
}

void *realloc(void *block, size_t bytes)
{
    allocations++;
    return __libc_realloc(block, bytes);
}

int posix_memalign(void **block, size_t alignment, size_t bytes)
{
    allocations++;
    *block = __libc_memalign(alignment, bytes);
    return *block == NULL ? 12 : 0;
}

/* The module may call it. */
long say(const char *text)
{
    return text != NULL;
}

#define DO(call)                                                                                   \
    do {                                                                                           \
        mullion_word_status status_ = (call);                                                      \
        if (status_) {                                                                             \
            fprintf(stderr, "%s: %d, %s\n", #call, (int)status_, mullion_word_error_message());    \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return 1e9 * (double)time.tv_sec + (double)time.tv_nsec;
}

static void pairs(mullion_word_prepared prepared, long rounds)
{
    while (rounds--) {
        DO(mullion_word_prepared_grant(prepared));
        DO(mullion_word_prepared_revoke(prepared));
    }
}

static char memory[4096] __attribute__((aligned(4096)));

int main(int count, char **arguments)
{
    static const size_t sizes[] = {64, 256, 1024, 4096};
    long rounds = count > 2 ? atol(arguments[2]) : 100000;
    mullion_word_module module;
    mullion_word_policy policy;
    mullion_word_domain domain;
    if (count < 2) {
        fprintf(stderr, "usage: grants MODULE [ROUNDS]\n");
        return 2;
    }
    DO(mullion_word_module_open(arguments[1], &module));
    DO(mullion_word_policy_new(&policy));
    DO(mullion_word_load(module, policy, &domain));
    for (size_t at = 0; at < sizeof sizes / sizeof *sizes; at++) {
        mullion_word_prepared prepared;
        double best = 1e30;
        DO(mullion_word_prepare(domain, memory, sizes[at], 1, &prepared));
        pairs(prepared, 2);
        unsigned long before = allocations;
        for (int round = 0; round < 20; round++) {
            double start = now();
            pairs(prepared, rounds);
            double each = (now() - start) / (double)rounds;
            best = each < best ? each : best;
        }
        unsigned long made = allocations - before;
        printf("%5zu bytes: %6.1f ns, %lu allocations\n", sizes[at], best, made);
        if (made != 0)
            return 1;
        DO(mullion_word_prepared_grant(prepared));
        DO(mullion_word_prepared_free(prepared));
        if (mullion_word_prepared_grant(prepared) != MULLION_WORD_BAD_HANDLE
            || mullion_word_prepared_revoke(prepared) != MULLION_WORD_BAD_HANDLE) {
            fprintf(stderr, "a grant that was freed is used\n");
            return 1;
        }
    }
    printf("content\n");
    return 0;
}
