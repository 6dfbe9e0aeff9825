/* C := alpha A B + beta C on matrices of doubles, in the manner of PolyBench (own code). */
#include "bench.h"

#define N 128

static double a[N][N], b[N][N], c[N][N];

static void prepare(void) {
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            a[i][j] = (double)((i * j + 1) % N) / N;
            b[i][j] = (double)(i * (j + 1) % N) / N;
            c[i][j] = (double)(i * (j + 2) % N) / N;
        }
}

static BENCH_CALL void gemm(double alpha, double beta) {
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++)
            c[i][j] *= beta;
        for (int k = 0; k < N; k++)
            for (int j = 0; j < N; j++)
                c[i][j] += alpha * a[i][k] * b[k][j];
    }
}

static uint64_t product(uint64_t i) {
    gemm(1.5, 0.25);
    return bench_mix_double(i, c[i % N][i / N % N]);
}

BENCH_MAIN(prepare(), product(i))
