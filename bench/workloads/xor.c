/* The exclusive or of two buffers of 16 KB into the first. */
#include "bench.h"

#define LENGTH 16384

static uint8_t a[LENGTH], b[LENGTH];

static BENCH_CALL void xor_into(uint8_t *to, const uint8_t *from, size_t length) {
    for (size_t i = 0; i < length; i++)
        to[i] ^= from[i];
}

static void prepare(void) {
    uint32_t seed = 47;
    for (int i = 0; i < LENGTH; i++) {
        a[i] = (uint8_t)bench_random(&seed);
        b[i] = (uint8_t)bench_random(&seed);
    }
}

static uint64_t once(uint64_t i) {
    xor_into(a, b, LENGTH);
    b[i % LENGTH]++;
    return (uint64_t)a[i % LENGTH] << 8 | a[LENGTH - 1];
}

BENCH_MAIN(prepare(), once(i))
