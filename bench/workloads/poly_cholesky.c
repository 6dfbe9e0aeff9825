/* The Cholesky decomposition of a positive definite matrix, in the manner of PolyBench (own code). */
#include "bench.h"

#include <math.h>

#define N 120

static double first[N][N], a[N][N];

/* Diagonally dominant, so positive definite. */
static void prepare(void) {
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            first[i][j] = i == j ? N : 1 / (1 + (double)((i + j) % 17));
}

static BENCH_CALL void cholesky(void) {
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < i; j++) {
            for (int k = 0; k < j; k++)
                a[i][j] -= a[i][k] * a[j][k];
            a[i][j] /= a[j][j];
        }
        for (int k = 0; k < i; k++)
            a[i][i] -= a[i][k] * a[i][k];
        a[i][i] = sqrt(a[i][i]);
    }
}

static uint64_t decompose(uint64_t i) {
    memcpy(a, first, sizeof a);
    a[i % N][i % N] += 1;
    cholesky();
    return bench_mix_double(i, a[N - 1][i % N]);
}

BENCH_MAIN(prepare(), decompose(i))
