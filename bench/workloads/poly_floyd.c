/* The shortest paths between all pairs, by Floyd and Warshall, in the manner of PolyBench (own code). */
#include "bench.h"

#define N 128

static int32_t first[N][N], path[N][N];

static void prepare(void) {
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            first[i][j] = (i + j) % 13 == 0 || (i + j) % 7 == 0 || (i + j) % 11 == 0 ? 999 : i * j % 7 + 1;
}

static BENCH_CALL void shortest(void) {
    for (int k = 0; k < N; k++)
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++)
                path[i][j] = path[i][j] < path[i][k] + path[k][j] ? path[i][j] : path[i][k] + path[k][j];
}

static uint64_t paths(uint64_t i) {
    memcpy(path, first, sizeof path);
    path[i % N][i / N % N] = 0;
    shortest();
    uint64_t sum = 0;
    for (int k = 0; k < N; k++)
        sum = sum * 31 + (uint64_t)path[k][(k * 7 + i) % N];
    return sum;
}

BENCH_MAIN(prepare(), paths(i))
