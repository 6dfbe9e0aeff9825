/* Linked lists in the manner of CoreMark's first kernel (own code): search by
 * value and by place, reversal, and a merge sort by two different orders. */
#include "bench.h"

#define NODES 512

struct node {
    struct node *next;
    int16_t value, place;
};

typedef int (*order)(const struct node *, const struct node *);

static struct node nodes[NODES];
static struct node *head;

static int by_value(const struct node *a, const struct node *b) {
    return a->value - b->value;
}

static int by_place(const struct node *a, const struct node *b) {
    return a->place - b->place;
}

static struct node *find_value(struct node *list, int16_t value) {
    while (list && list->value != value)
        list = list->next;
    return list;
}

static struct node *find_place(struct node *list, int16_t place) {
    while (list && list->place != place)
        list = list->next;
    return list;
}

static struct node *reverse(struct node *list) {
    struct node *done = NULL;
    while (list) {
        struct node *next = list->next;
        list->next = done;
        done = list;
        list = next;
    }
    return done;
}

static struct node *merge(struct node *a, struct node *b, order compare) {
    struct node *first = NULL, **end = &first;
    while (a && b) {
        struct node **from = compare(a, b) <= 0 ? &a : &b;
        *end = *from;
        end = &(*from)->next;
        *from = *end;
    }
    *end = a ? a : b;
    return first;
}

/* Bottom-up: `runs[i]` is empty or a sorted list of 2^i nodes. */
static struct node *sort(struct node *list, order compare) {
    struct node *runs[16] = {NULL};
    while (list) {
        struct node *run = list;
        list = list->next;
        run->next = NULL;
        int i = 0;
        for (; runs[i]; i++) {
            run = merge(runs[i], run, compare);
            runs[i] = NULL;
        }
        runs[i] = run;
    }
    struct node *sorted = NULL;
    for (int i = 0; i < 16; i++)
        sorted = merge(runs[i], sorted, compare);
    return sorted;
}

static void prepare(void) {
    uint32_t seed = 19;
    for (int i = 0; i < NODES; i++)
        nodes[i] = (struct node){i + 1 < NODES ? &nodes[i + 1] : NULL, (int16_t)(bench_random(&seed) & 0x7ff), (int16_t)i};
    head = nodes;
}

static BENCH_CALL uint64_t round_of(uint64_t i) {
    uint64_t sum = 0;
    for (int16_t k = 0; k < 16; k++) {
        const struct node *at = k % 2 ? find_value(head, (int16_t)(i * 31 + k) & 0x7ff) : find_place(head, (int16_t)(i + k * 37) & 0x1ff);
        head = reverse(head);
        sum = sum * 31 + (at ? (uint64_t)at->value + 1 : 0);
    }
    head = sort(head, by_value);
    sum = sum * 31 + (uint64_t)head->place;
    head->value ^= (int16_t)(i & 0xff);
    head = sort(head, by_place);
    return sum;
}

BENCH_MAIN(prepare(), round_of(i))
