/* y := A^T (A x), in the manner of PolyBench (own code). */
#include "bench.h"

#define ROWS 200
#define COLUMNS 230

static double a[ROWS][COLUMNS], x[COLUMNS], y[COLUMNS];

static void prepare(void) {
    for (int j = 0; j < COLUMNS; j++)
        x[j] = 1 + (double)j / COLUMNS;
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++)
            a[i][j] = (double)((i + j) % COLUMNS) / (5 * ROWS);
}

static BENCH_CALL void atax(void) {
    for (int j = 0; j < COLUMNS; j++)
        y[j] = 0;
    for (int i = 0; i < ROWS; i++) {
        double sum = 0;
        for (int j = 0; j < COLUMNS; j++)
            sum += a[i][j] * x[j];
        for (int j = 0; j < COLUMNS; j++)
            y[j] += a[i][j] * sum;
    }
}

static uint64_t apply(uint64_t i) {
    x[i % COLUMNS] += 0.5;
    atax();
    return bench_mix_double(i, y[i % COLUMNS]);
}

BENCH_MAIN(prepare(), apply(i))
