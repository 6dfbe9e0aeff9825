/* The best pairing of a sequence of bases by Nussinov: dynamic programming over a triangle, in the manner of PolyBench (own code). */
#include "bench.h"

#define N 120

static uint8_t base[N];
static int32_t table[N][N];

static void prepare(void) {
    for (int i = 0; i < N; i++)
        base[i] = (uint8_t)((i + 1) % 4);
}

static int32_t larger(int32_t a, int32_t b) {
    return a > b ? a : b;
}

static BENCH_CALL void pairings(void) {
    memset(table, 0, sizeof table);
    for (int i = N - 1; i >= 0; i--)
        for (int j = i + 1; j < N; j++) {
            table[i][j] = larger(table[i][j - 1], i + 1 < N ? table[i + 1][j] : 0);
            if (i + 1 < N)
                table[i][j] = larger(table[i][j], table[i + 1][j - 1] + (i < j - 1 && base[i] + base[j] == 3));
            for (int k = i + 1; k < j; k++)
                table[i][j] = larger(table[i][j], table[i][k] + table[k + 1][j]);
        }
}

static uint64_t best(uint64_t i) {
    base[i % N] = (uint8_t)(i / N % 4);
    pairings();
    return (uint64_t)table[0][N - 1] << 32 | (uint64_t)table[i % N][N - 1];
}

BENCH_MAIN(prepare(), best(i))
