/* hotlist: which page to evict, from a linked list of page descriptors.
 *
 * MiSFIT 6.1 says: it chooses which page to evict from a linked list of page
 * descriptors; the kernel scans the list again and again, with many reads and
 * very few writes. Our reading: 512 resident pages in order of their last use,
 * and a list of 64 pages that the application calls hot. The victim is the first
 * resident page that is not hot; its descriptor is taken for the page that comes
 * in and goes to the end of the list. */
#include "bench.h"

#define RESIDENT 512
#define HOT 64
#define PAGES 2048

struct descriptor {
    struct descriptor *next;
    uint32_t page;
    uint32_t dirty;
};

static struct descriptor resident[RESIDENT], hot[HOT];
static struct descriptor *oldest, *newest, *hottest;
static uint32_t arriving = 12345;

static void prepare(void) {
    uint32_t seed = 1;
    for (int i = 0; i < HOT; i++) {
        hot[i] = (struct descriptor){i + 1 < HOT ? &hot[i + 1] : NULL, (bench_random(&seed) % (PAGES / 8)) * 8, 0};
    }
    hottest = hot;
    /* Descriptors were handed out in some order of their own: step 181 is coprime to 512. */
    for (int i = 0; i < RESIDENT; i++) {
        struct descriptor *d = &resident[i * 181 % RESIDENT];
        *d = (struct descriptor){&resident[(i + 1) * 181 % RESIDENT], hot[i % HOT].page, 0};
        if (i % 5 == 4)
            d->page = bench_random(&seed) % PAGES;
        if (i + 1 == RESIDENT) {
            d->next = NULL;
            newest = d;
        }
    }
    oldest = resident;
}

static int is_hot(uint32_t page) {
    for (const struct descriptor *d = hottest; d; d = d->next)
        if (d->page == page)
            return 1;
    return 0;
}

static BENCH_CALL uint64_t evict(void) {
    struct descriptor *before = NULL, *victim = oldest;
    while (victim->next && is_hot(victim->page)) {
        before = victim;
        victim = victim->next;
    }
    uint32_t page = victim->page;
    if (victim != newest) {
        *(before ? &before->next : &oldest) = victim->next;
        victim->next = NULL;
        newest->next = victim;
        newest = victim;
    }
    /* Nine of ten arrivals are hot, so that scans stay long. */
    uint32_t draw = bench_random(&arriving);
    victim->page = draw % 10 ? hot[draw / 10 % HOT].page : draw % PAGES;
    return page;
}

BENCH_MAIN(prepare(), evict())
