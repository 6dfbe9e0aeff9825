/* D := alpha A B C + beta D: two matrix products, the inner loop over columns, in the manner of PolyBench (own code). */
#include "bench.h"

#define N 96

static double a[N][N], b[N][N], c[N][N], d[N][N], between[N][N];

static void prepare(void) {
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            a[i][j] = (double)((i * j + 1) % N) / N;
            b[i][j] = (double)(i * (j + 1) % N) / N;
            c[i][j] = (double)((i * (j + 3) + 1) % N) / N;
            d[i][j] = (double)(i * (j + 2) % N) / N;
        }
}

static BENCH_CALL void two_products(double alpha, double beta) {
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            between[i][j] = 0;
            for (int k = 0; k < N; k++)
                between[i][j] += alpha * a[i][k] * b[k][j];
        }
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            d[i][j] *= beta;
            for (int k = 0; k < N; k++)
                d[i][j] += between[i][k] * c[k][j];
        }
}

static uint64_t product(uint64_t i) {
    two_products(1.5, 0.25);
    return bench_mix_double(i, d[i % N][i / N % N]);
}

BENCH_MAIN(prepare(), product(i))
