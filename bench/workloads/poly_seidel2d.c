/* The Gauss-Seidel stencil of nine points, each value used as soon as it is new, in the manner of PolyBench (own code). */
#include "bench.h"

#define N 120
#define STEPS 4

static double a[N][N];

static void prepare(void) {
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            a[i][j] = ((double)i * (j + 2) + 2) / N;
}

static BENCH_CALL void sweep(void) {
    for (int i = 1; i < N - 1; i++)
        for (int j = 1; j < N - 1; j++)
            a[i][j] = (a[i - 1][j - 1] + a[i - 1][j] + a[i - 1][j + 1] + a[i][j - 1] + a[i][j] + a[i][j + 1] +
                       a[i + 1][j - 1] + a[i + 1][j] + a[i + 1][j + 1]) / 9;
}

static uint64_t steps(uint64_t i) {
    for (int t = 0; t < STEPS; t++)
        sweep();
    a[N / 2][i % N] += 1;
    return bench_mix_double(i, a[i % N][i / N % N]);
}

BENCH_MAIN(prepare(), steps(i))
