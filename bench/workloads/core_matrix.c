/* Matrices of small integers in the manner of CoreMark's second kernel (own
 * code): add a constant, multiply by a constant, by a vector, by a matrix, and by
 * a matrix with a range of bits taken out of each product. */
#include "bench.h"

#define N 40

static int16_t a[N][N], b[N][N], v[N];
static int32_t c[N][N];

static BENCH_CALL void add_constant(int16_t x) {
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            a[i][j] = (int16_t)(a[i][j] + x);
}

static BENCH_CALL void by_constant(int16_t x) {
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            c[i][j] = a[i][j] * x;
}

static BENCH_CALL void by_vector(void) {
    for (int i = 0; i < N; i++) {
        c[i][0] = 0;
        for (int j = 0; j < N; j++)
            c[i][0] += a[i][j] * v[j];
    }
}

static BENCH_CALL void by_matrix(void) {
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            uint32_t sum = 0;
            for (int k = 0; k < N; k++)
                sum += (uint32_t)(a[i][k] * b[k][j]);
            c[i][j] = (int32_t)sum;
        }
}

static BENCH_CALL void by_matrix_bits(void) {
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            int32_t sum = 0;
            for (int k = 0; k < N; k++) {
                int32_t product = a[i][k] * b[k][j];
                sum += ((product >> 2) & 0xf) * ((product >> 5) & 0x7f);
            }
            c[i][j] = sum;
        }
}

/* A digest of the product in which a value above the running clip resets it. */
static BENCH_CALL uint64_t digest(int32_t clip) {
    uint64_t sum = 0;
    int64_t running = 0;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            running += c[i][j];
            if (running > clip) {
                sum += 10;
                running = 0;
            } else {
                sum += j && c[i][j] > c[i][j - 1];
            }
        }
    return sum;
}

static void prepare(void) {
    uint32_t seed = 23;
    for (int i = 0; i < N; i++) {
        v[i] = (int16_t)(bench_random(&seed) & 0xff);
        for (int j = 0; j < N; j++) {
            a[i][j] = (int16_t)(bench_random(&seed) & 0x1ff);
            b[i][j] = (int16_t)(bench_random(&seed) & 0xff);
        }
    }
}

static BENCH_CALL uint64_t round_of(uint64_t i) {
    int16_t x = (int16_t)(i & 0x3f);
    uint64_t sum = 0;
    add_constant(x);
    by_constant(x);
    sum = sum * 31 + digest(1 << 16);
    by_vector();
    sum = sum * 31 + digest(1 << 16);
    by_matrix();
    sum = sum * 31 + digest(1 << 20);
    by_matrix_bits();
    sum = sum * 31 + digest(1 << 12);
    add_constant((int16_t)-x);
    return sum;
}

BENCH_MAIN(prepare(), round_of(i))
