/* The Jacobi stencil of five points on a square, in the manner of PolyBench (own code). */
#include "bench.h"

#define N 130
#define STEPS 10

static double a[N][N], b[N][N];

static void prepare(void) {
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            a[i][j] = ((double)i * (j + 2) + 2) / N;
            b[i][j] = ((double)i * (j + 3) + 3) / N;
        }
}

static BENCH_CALL void sweep(double to[N][N], double from[N][N]) {
    for (int i = 1; i < N - 1; i++)
        for (int j = 1; j < N - 1; j++)
            to[i][j] = 0.2 * (from[i][j] + from[i][j - 1] + from[i][j + 1] + from[i + 1][j] + from[i - 1][j]);
}

static uint64_t steps(uint64_t i) {
    for (int t = 0; t < STEPS; t++) {
        sweep(b, a);
        sweep(a, b);
    }
    a[N / 2][i % N] += 1;
    return bench_mix_double(i, a[i % N][i / N % N]);
}

BENCH_MAIN(prepare(), steps(i))
