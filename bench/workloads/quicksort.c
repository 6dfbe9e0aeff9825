/* A quicksort of integers whose order is a function behind a pointer. */
#include "bench.h"

#define N 4096

typedef int (*order)(const int32_t *, const int32_t *);

static int32_t first[N], data[N];

static int ascending(const int32_t *a, const int32_t *b) {
    return (*a > *b) - (*a < *b);
}

static int descending(const int32_t *a, const int32_t *b) {
    return (*a < *b) - (*a > *b);
}

static order volatile orders[2] = {ascending, descending};

static void swap(int32_t *a, int32_t *b) {
    int32_t kept = *a;
    *a = *b;
    *b = kept;
}

static BENCH_CALL void sort(int32_t *low, int32_t *high, order compare) {
    while (low < high) {
        swap(low + (high - low) / 2, high);
        int32_t *border = low;
        for (int32_t *p = low; p < high; p++)
            if (compare(p, high) < 0)
                swap(p, border++);
        swap(border, high);
        if (border - low < high - border) {
            sort(low, border - 1, compare);
            low = border + 1;
        } else {
            sort(border + 1, high, compare);
            high = border - 1;
        }
    }
}

static void prepare(void) {
    uint32_t seed = 37;
    for (int i = 0; i < N; i++)
        first[i] = (int32_t)bench_random(&seed);
}

static uint64_t sorted(uint64_t i) {
    memcpy(data, first, sizeof data);
    data[i % N] ^= (int32_t)i;
    sort(data, data + N - 1, orders[i % 2]);
    return (uint64_t)(uint32_t)data[i % N] << 32 | (uint32_t)data[N / 2];
}

BENCH_MAIN(prepare(), sorted(i))
