/* Calls as C++ makes them for virtual functions: object, table, function. */
#include "bench.h"

#define OBJECTS 256

struct shape;

struct methods {
    uint32_t (*area)(const struct shape *);
    void (*grow)(struct shape *, uint32_t);
};

struct shape {
    const struct methods *methods;
    uint32_t width, height;
};

static uint32_t rectangle_area(const struct shape *s) {
    return s->width * s->height;
}

static uint32_t triangle_area(const struct shape *s) {
    return s->width * s->height / 2;
}

static uint32_t square_area(const struct shape *s) {
    return s->width * s->width;
}

static uint32_t ring_area(const struct shape *s) {
    return 3 * (s->width * s->width - s->height * s->height);
}

static void both_grow(struct shape *s, uint32_t by) {
    s->width += by;
    s->height += by;
}

static void width_grow(struct shape *s, uint32_t by) {
    s->width += by;
}

static const struct methods classes[4] = {
    {rectangle_area, both_grow}, {triangle_area, both_grow}, {square_area, width_grow}, {ring_area, width_grow}};

static struct shape shapes[OBJECTS];

static void prepare(void) {
    uint32_t seed = 61;
    for (int i = 0; i < OBJECTS; i++)
        shapes[i] = (struct shape){&classes[bench_random(&seed) >> 7 & 3], bench_random(&seed) & 0xff, bench_random(&seed) & 0xff};
}

static BENCH_CALL uint64_t visit(uint32_t by) {
    uint64_t sum = 0;
    for (int i = 0; i < OBJECTS; i++) {
        struct shape *s = &shapes[i];
        s->methods->grow(s, by);
        sum += s->methods->area(s);
    }
    return sum;
}

BENCH_MAIN(prepare(), visit((uint32_t)i & 3))
