/* Arithmetic in every register file. */
#include "program.h"

typedef int vector __attribute__((vector_size(16)));
typedef double pair __attribute__((vector_size(16)));
typedef __int128 wide;

static APART uint64_t bits_of(double d) {
    uint64_t b;
    memcpy(&b, &d, sizeof b);
    return b;
}

static APART double polynomial(const double *c, int n, double x) {
    double sum = 0;
    for (int i = n - 1; i >= 0; i--)
        sum = sum * x + c[i];
    return sum;
}

static APART long double extended(long double x, int n) {
    long double sum = 1, term = 1;
    for (int i = 1; i < n; i++) {
        term *= x / i;
        sum += term;
    }
    return sum > 3 ? sum : -sum;
}

static APART void product(double *c, const double *a, const double *b, int n) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            double sum = 0;
            for (int k = 0; k < n; k++)
                sum += a[i * n + k] * b[k * n + j];
            c[i * n + j] = sum;
        }
}

static APART wide multiply(wide a, wide b) { return a * b + (a >> 3) - (b << 7); }

static APART uint64_t shifts(uint64_t x, unsigned n) {
    uint64_t r = (x << (n & 63)) | (x >> (64 - (n & 63)) % 64);
    r += __builtin_popcountll(x) + __builtin_clzll(x | 1) + __builtin_ctzll(x | 8) + __builtin_ffsll((int64_t)x);
    r ^= __builtin_bswap64(x) + __builtin_bswap32((uint32_t)x);
    int32_t product;
    if (__builtin_mul_overflow((int32_t)x, (int32_t)n, &product))
        product = -1;
    return r + (uint32_t)product + (uint8_t)(x >> 8) * 3u + (int8_t)x / 3;
}

static APART vector lanes(vector a, vector b) { return (a * b + (a ^ b)) & ~(a > b); }

uint64_t entry(void) {
    static double a[144], b[144], c[144];
    for (int i = 0; i < 144; i++) {
        a[i] = i * 0.5 + 1;
        b[i] = 100.0 / (i + 3);
    }
    product(c, a, b, 12);
    uint64_t sum = 0;
    for (int i = 0; i < 144; i++)
        sum = mix(sum, bits_of(c[i]));
    sum = mix(sum, bits_of(polynomial(a, 9, 1.25)));
    for (int i = -3; i < 4; i++) {
        sum = mix(sum, bits_of((double)extended(i * 0.75L, 20)));
        sum = mix(sum, (uint64_t)(int64_t)(i * 3.7f) + (unsigned)(float)(i + 5));
    }
    wide w = multiply((wide)sum << 30, -(wide)12345678901234567);
    sum = mix(sum, (uint64_t)w ^ (uint64_t)(w >> 64));
    for (unsigned n = 0; n < 70; n += 7)
        sum = mix(sum, shifts(sum, n) + sum / (n + 3) + (uint64_t)((int64_t)sum % (int64_t)(n + 5)));
    vector v = {1, -2, 3, 4}, u = {5, 6, -7, 8};
    for (int i = 0; i < 5; i++)
        v = lanes(v, u) + i;
    sum = mix(sum, (unsigned)v[0] + (uint64_t)(unsigned)v[3] * 3 + (unsigned)v[1] + (unsigned)v[2]);
    /* A constant with the bytes of the label. */
    uint32_t label = (uint32_t)sum;
    HIDE(label);
    sum = mix(sum, label == 0x4e6c754d ? 1 : label ^ 0x4e6c754d);
    return mix(sum, sum ^ 0x4e6c754d00u);
}
