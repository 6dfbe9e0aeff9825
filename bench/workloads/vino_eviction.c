/* The page eviction extension of VINO.
 *
 * MiSFIT 6.3 says: like hotlist, but it searches an array instead of a linked
 * list. Our reading: the base system offers a victim; the extension looks it up
 * in an array of 64 pages it wants to keep, and if it is there, offers the next
 * resident page that is not. */
#include "bench.h"

#define RESIDENT 256
#define KEEP 64
#define CALLS 64

static uint32_t resident[RESIDENT], keep[KEEP];
static uint32_t hand, seed = 11;

static int wanted(uint32_t page) {
    for (int i = 0; i < KEEP; i++)
        if (keep[i] == page)
            return 1;
    return 0;
}

static uint32_t evict(uint32_t offered) {
    uint32_t at = offered;
    for (int tries = 0; tries < RESIDENT && wanted(resident[at]); tries++)
        at = (at + 1) % RESIDENT;
    return at;
}

static uint32_t (*volatile extension)(uint32_t) = evict;

static void prepare(void) {
    for (int i = 0; i < KEEP; i++)
        keep[i] = bench_random(&seed) >> 12;
    for (int i = 0; i < RESIDENT; i++)
        resident[i] = keep[bench_random(&seed) % KEEP];
}

static BENCH_CALL uint64_t pressure(void) {
    uint64_t sum = 0;
    for (int i = 0; i < CALLS; i++) {
        uint32_t victim = extension(hand), draw = bench_random(&seed);
        sum += resident[victim];
        resident[victim] = draw % 16 ? keep[draw / 16 % KEEP] : draw >> 12;
        hand = (victim + 1) % RESIDENT;
    }
    return sum;
}

BENCH_MAIN(prepare(), pressure())
