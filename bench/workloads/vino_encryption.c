/* The encryption extension of VINO.
 *
 * MiSFIT 6.3 says: it copies 8 KB from an input buffer to an output buffer and
 * applies a trivial encryption in the manner of xor; written as a worst case,
 * with little computation between load and store. Our reading: one 32-bit word
 * at a time, with a key that is rolled for each word, so that a compiler cannot
 * turn it into whole vectors, which the gcc of 1997 could not either. */
#include "bench.h"

#define LENGTH 8192

static uint32_t input[LENGTH / 4], output[LENGTH / 4];

static BENCH_CALL uint32_t encrypt(uint32_t *out, const uint32_t *in, uint32_t length, uint32_t key) {
    for (uint32_t i = 0; i < length / 4; i++) {
        out[i] = in[i] ^ key;
        key = key << 1 | key >> 31;
    }
    return key;
}

static uint32_t (*volatile extension)(uint32_t *, const uint32_t *, uint32_t, uint32_t) = encrypt;

static void prepare(void) {
    uint32_t seed = 17;
    for (int i = 0; i < LENGTH / 4; i++)
        input[i] = bench_random(&seed);
}

static uint64_t block(uint64_t i) {
    uint32_t key = extension(output, input, LENGTH, 0xdecafbadu + (uint32_t)i);
    return (uint64_t)output[i % (LENGTH / 4)] << 32 | key;
}

BENCH_MAIN(prepare(), block(i))
