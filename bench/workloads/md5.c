/* md5: the MD5 sum (RFC 1321) of 1 MB of data, as in MiSFIT 6.1. */
#include "bench.h"

#define LENGTH (1u << 20)

static uint8_t data[LENGTH + 64];

static const uint32_t sines[64] = {
    0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
    0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
    0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
    0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a,
    0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
    0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
    0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
    0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391,
};

static inline uint32_t rotate(uint32_t x, unsigned bits) {
    return x << bits | x >> (32 - bits);
}

#define F(x, y, z) (z ^ (x & (y ^ z)))
#define G(x, y, z) (y ^ (z & (x ^ y)))
#define H(x, y, z) (x ^ y ^ z)
#define I(x, y, z) (y ^ (x | ~z))
#define STEP(f, a, b, c, d, word, step, bits) a = b + rotate(a + f(b, c, d) + word + sines[step], bits)
#define FOUR(f, step, k, k1, k2, k3, s, s1, s2, s3)                                                \
    STEP(f, a, b, c, d, words[k], step, s);                                                        \
    STEP(f, d, a, b, c, words[k1], step + 1, s1);                                                  \
    STEP(f, c, d, a, b, words[k2], step + 2, s2);                                                  \
    STEP(f, b, c, d, a, words[k3], step + 3, s3)

static BENCH_CALL void transform(uint32_t state[4], const uint8_t *block) {
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3], words[16];
    memcpy(words, block, sizeof words);
    FOUR(F, 0, 0, 1, 2, 3, 7, 12, 17, 22);
    FOUR(F, 4, 4, 5, 6, 7, 7, 12, 17, 22);
    FOUR(F, 8, 8, 9, 10, 11, 7, 12, 17, 22);
    FOUR(F, 12, 12, 13, 14, 15, 7, 12, 17, 22);
    FOUR(G, 16, 1, 6, 11, 0, 5, 9, 14, 20);
    FOUR(G, 20, 5, 10, 15, 4, 5, 9, 14, 20);
    FOUR(G, 24, 9, 14, 3, 8, 5, 9, 14, 20);
    FOUR(G, 28, 13, 2, 7, 12, 5, 9, 14, 20);
    FOUR(H, 32, 5, 8, 11, 14, 4, 11, 16, 23);
    FOUR(H, 36, 1, 4, 7, 10, 4, 11, 16, 23);
    FOUR(H, 40, 13, 0, 3, 6, 4, 11, 16, 23);
    FOUR(H, 44, 9, 12, 15, 2, 4, 11, 16, 23);
    FOUR(I, 48, 0, 7, 14, 5, 6, 10, 15, 21);
    FOUR(I, 52, 12, 3, 10, 1, 6, 10, 15, 21);
    FOUR(I, 56, 8, 15, 6, 13, 6, 10, 15, 21);
    FOUR(I, 60, 4, 11, 2, 9, 6, 10, 15, 21);
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
}

static BENCH_CALL uint64_t digest(void) {
    uint32_t state[4] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
    for (uint32_t at = 0; at <= LENGTH; at += 64)
        transform(state, data + at);
    data[0]++;
    return ((uint64_t)state[0] << 32 | state[1]) ^ ((uint64_t)state[2] << 32 | state[3]);
}

/* The padding of a message whose length is a multiple of 64 never changes. */
static void prepare(void) {
    uint32_t seed = 3;
    uint64_t bits = (uint64_t)LENGTH * 8;
    for (uint32_t i = 0; i < LENGTH; i++)
        data[i] = (uint8_t)bench_random(&seed);
    data[LENGTH] = 0x80;
    memcpy(data + LENGTH + 56, &bits, 8);
}

BENCH_MAIN(prepare(), digest())
