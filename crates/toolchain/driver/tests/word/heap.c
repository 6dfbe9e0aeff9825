/* What word_heap.rs calls: a module's own heap, put to the test. */
#include <stdlib.h>
#include <string.h>

static unsigned long next(unsigned long *state)
{
    *state = *state * 6364136223846793005ul + 1442695040888963407ul;
    return *state >> 33;
}

static int is_filled(const unsigned char *p, size_t size, int with)
{
    for (size_t at = 0; at < size; at++)
        if (p[at] != (unsigned char)with)
            return 0;
    return 1;
}

static size_t some_size(unsigned long *state)
{
    switch (next(state) % 16) {
    case 0: return next(state) % 100000;
    case 1: case 2: return next(state) % 9000;
    default: return next(state) % 300;
    }
}

/* Blocks come and go, each filled with a byte of its own: how many were not as they were left. */
long churn(unsigned long seed, long steps)
{
    enum { PLACES = 200 };
    struct { unsigned char *p; size_t size; int with; } all[PLACES];
    unsigned long state = seed * 2 + 1;
    long wrong = 0;
    memset(all, 0, sizeof all);
    for (long step = 0; step < steps; step++) {
        unsigned long at = next(&state) % PLACES;
        unsigned char *p = all[at].p;
        size_t size = some_size(&state), alignment = 16;
        wrong += p && !is_filled(p, all[at].size, all[at].with);
        switch (next(&state) % 6) {
        case 0:
            free(p);
            p = calloc(size / 8 + 1, 8);
            size = (size / 8 + 1) * 8;
            wrong += p && !is_filled(p, size, 0);
            break;
        case 1:
            free(p);
            alignment = 16ul << next(&state) % 10;
            p = aligned_alloc(alignment, (size + alignment - 1) & -alignment);
            break;
        case 2: {
            size_t had = all[at].size < size ? all[at].size : size;
            unsigned char *moved = realloc(p, size + 1);
            wrong += moved && p && !is_filled(moved, had, all[at].with);
            p = moved;
            break;
        }
        case 3:
            free(p);
            p = 0;
            break;
        default:
            free(p);
            p = malloc(size);
        }
        wrong += ((unsigned long)p & (alignment - 1)) != 0;
        all[at].p = p;
        all[at].size = p ? size : 0;
        all[at].with = (int)next(&state);
        if (p)
            memset(p, all[at].with, size);
    }
    for (int at = 0; at < PLACES; at++)
        free(all[at].p);
    return wrong;
}

/* As many blocks as there are, and all given back. */
long fill_up(size_t size)
{
    void **last = 0;
    long bytes = 0;
    for (void **p; (p = malloc(size)); last = p, bytes += size)
        *p = last;
    while (last) {
        void **before = *last;
        free(last);
        last = before;
    }
    return bytes;
}

/* Small blocks, some of them at a time. */
long pairs(long count)
{
    char *volatile some[8] = {0};
    for (long at = 0; at < count; at++) {
        free(some[at % 8]);
        some[at % 8] = malloc(40 + at % 200);
    }
    for (int at = 0; at < 8; at++)
        free(some[at]);
    return 0;
}

/* Blocks of the host come back to it, and are resized by it: how many bytes were wrong. */
long foreign(void)
{
    long wrong = 0;
    for (int at = 0; at < 100; at++) {
        char *copy = strdup("a block of the host's"), *own = malloc(20);
        copy = realloc(copy, 40);
        own = realloc(own, 70000);
        wrong += strcmp(copy, "a block of the host's") != 0;
        free(own);
        free(copy);
    }
    return wrong;
}

static void *given[64];

/* What the host calls while the heap waits for it. */
void meanwhile(void)
{
    for (int at = 0; at < 64; at++)
        if (given[at])
            free(given[at]), given[at] = 0;
        else if ((given[at] = malloc(50)))
            memset(given[at], at, 50);
}
