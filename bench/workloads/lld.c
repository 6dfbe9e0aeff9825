/* lld: a logical disk layer.
 *
 * MiSFIT 6.1 says: it simulates the operation of a logical disk layer (after de
 * Jonge, Kaashoek, Hsieh), and is less read-intensive than hotlist. Our reading:
 * a disk of 256 Ki logical blocks over segments of 16 blocks that are written as
 * a log. A write takes the next physical block of the open segment, frees the
 * block's old place and keeps the segments' counts; a full segment is closed and
 * the next one with least live blocks nearby is opened, its live blocks moved.
 * Four of five operations go to a fifth of the blocks; one in four is a read. */
#include "bench.h"

#define LOGICAL 262144u
#define SEGMENT 16u
#define SEGMENTS (LOGICAL / SEGMENT * 5 / 4)
#define NONE UINT32_MAX
#define OPERATIONS 4096

static uint32_t place[LOGICAL];              /* logical block -> physical block */
static uint32_t holder[SEGMENTS * SEGMENT];  /* physical block -> logical block */
static uint8_t live[SEGMENTS];               /* live blocks of a segment */
static uint32_t open_segment, filled, seed = 7;

/* The emptiest of the next 32 segments: every window of them has a free block. */
static uint32_t choose_segment(void) {
    uint32_t best = NONE, fewest = SEGMENT;
    for (uint32_t i = 1; i <= 32 || best == NONE; i++) {
        uint32_t s = (open_segment + i) % SEGMENTS;
        if (live[s] < fewest) {
            fewest = live[s];
            best = s;
        }
    }
    return best;
}

/* Opens a segment: what lives in it moves to its front. */
static void open_next(void) {
    open_segment = choose_segment();
    filled = 0;
    uint32_t *blocks = &holder[open_segment * SEGMENT];
    for (uint32_t i = 0; i < SEGMENT; i++) {
        uint32_t logical = blocks[i];
        blocks[i] = NONE;
        if (logical != NONE) {
            blocks[filled] = logical;
            place[logical] = open_segment * SEGMENT + filled++;
        }
    }
}

static void write_block(uint32_t logical) {
    if (filled == SEGMENT)
        open_next();
    uint32_t old = place[logical], new = open_segment * SEGMENT + filled++;
    if (old != NONE) {
        holder[old] = NONE;
        live[old / SEGMENT]--;
    }
    holder[new] = logical;
    place[logical] = new;
    live[open_segment]++;
}

static void prepare(void) {
    memset(place, 0xff, sizeof place);
    memset(holder, 0xff, sizeof holder);
    for (uint32_t i = 0; i < LOGICAL; i++)
        write_block(i);
}

static BENCH_CALL uint64_t operate(void) {
    uint64_t sum = 0;
    for (int i = 0; i < OPERATIONS; i++) {
        uint32_t draw = bench_random(&seed);
        uint32_t range = draw % 5 ? LOGICAL / 5 : LOGICAL;
        uint32_t logical = (uint32_t)((uint64_t)bench_random(&seed) * range >> 32);
        if ((draw >> 16) % 4)
            write_block(logical);
        else
            sum += place[logical];
    }
    return sum;
}

BENCH_MAIN(prepare(), operate())
