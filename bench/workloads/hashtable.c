/* A hash table with open addressing: insertions, hits, misses and removals. */
#include "bench.h"

#define SLOTS 16384u
#define KEYS 8192u

struct slot {
    uint64_t key, value;
};

static struct slot slots[SLOTS];

static uint32_t home(uint64_t key) {
    return (uint32_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 50) % SLOTS;
}

/* The key's slot, or the free one where it belongs. Key 0 is not a key. */
static BENCH_CALL struct slot *find(uint64_t key) {
    uint32_t at = home(key);
    while (slots[at].key && slots[at].key != key)
        at = (at + 1) % SLOTS;
    return &slots[at];
}

/* Fills the hole that a removal leaves with what would no longer be found. */
static BENCH_CALL int take_out(uint64_t key) {
    struct slot *slot = find(key);
    if (!slot->key)
        return 0;
    uint32_t hole = (uint32_t)(slot - slots);
    for (uint32_t at = (hole + 1) % SLOTS; slots[at].key; at = (at + 1) % SLOTS) {
        uint32_t distance = (at - home(slots[at].key)) % SLOTS;
        if (distance >= (at - hole) % SLOTS) {
            slots[hole] = slots[at];
            hole = at;
        }
    }
    slots[hole].key = 0;
    return 1;
}

static BENCH_CALL uint64_t round_of(uint64_t i) {
    uint32_t seed = 41 + (uint32_t)i, again = seed;
    uint64_t sum = 0;
    for (uint32_t k = 0; k < KEYS; k++) {
        struct slot *slot = find(bench_random(&seed));
        slot->key = again ? bench_random(&again) : 1;
        slot->value += k;
    }
    for (uint32_t k = 0; k < KEYS; k++)
        sum += find(bench_random(&seed) >> 1 | 1)->value;
    again = 41 + (uint32_t)i;
    for (uint32_t k = 0; k < KEYS; k++)
        sum = sum * 3 + find(bench_random(&again))->value;
    again = 41 + (uint32_t)i;
    for (uint32_t k = 0; k < KEYS; k++) {
        uint64_t key = bench_random(&again);
        find(key)->value = 0;
        sum += (uint64_t)take_out(key);
    }
    return sum;
}

BENCH_MAIN((void)0, round_of(i))
