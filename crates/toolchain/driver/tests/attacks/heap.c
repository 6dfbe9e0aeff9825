/* The module's own heap (`--heap=own`), which it may write as it likes. */
#include "attack.h"

HOST(long, keep, void *, long);
HOST(long, pool_drop, void *);

/* gcc knows of malloc and free what no longer holds when their heap is forged. */
static void *get(size_t size)
{
    void *block = malloc(size);
    __asm__ volatile("" : "+r"(block));
    return block;
}
static void give(void *block)
{
    __asm__ volatile("" : "+r"(block));
    free(block);
}

/* The block that is given back last is the next one, and its first word says which is behind it. */
static long takes_what(long address)
{
    long *first = get(64), *second = get(64);
    give(first);
    give(second);
    *second = address;
    first = get(64);
    second = get(64);
    second[1] = 1;
    return 1;
}

ATTACK(forges_a_block) { return takes_what(a); }
ATTACK(forges_code) { return takes_what((long)forges_code & -16); }
/* The first words of a span: its free blocks, and where those are that never were in use. A chunk's header has the spans. */
ATTACK(forges_a_span)
{
    char *block = get(64);
    long *header = (long *)((long)block & -65536);
    for (int at = 0; at < 150; at++)
        if (header[at] >= (long)header && header[at] <= (long)header + 65536)
            header[at] = a, a += 4096;
    volatile long *forged = get(64);
    for (int at = 0; at < 3; at++)
        forged[1] = 1, forged = get(64);
    return 1;
}
ATTACK(frees) { free((void *)a); return 1; }
ATTACK(resizes) { return realloc((void *)a, 128) != 0; }
ATTACK(hands_over) { return keep(malloc(64), 64); }
ATTACK(drops) { pool_drop(malloc(64)); return 1; }
/* Whether it gets something, and no more than `a` bytes. */
ATTACK(hoards)
{
    long got = 0;
    while (got <= a && malloc(1000))
        got += 1000;
    return got > a / 2 && got <= a;
}
