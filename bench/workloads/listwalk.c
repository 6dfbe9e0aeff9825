/* A walk along a linked list of 1024 nodes in shuffled order: each load waits for
 * the one before it, the worst case of every wall around loads. */
#include "bench.h"

#define NODES 1024

struct node {
    struct node *next;
    uint64_t value;
};

static struct node nodes[NODES];

static void prepare(void) {
    uint32_t seed = 53;
    uint16_t at[NODES];
    for (int i = 0; i < NODES; i++)
        at[i] = (uint16_t)i;
    for (int i = NODES - 1; i > 0; i--) {
        int j = (int)(bench_random(&seed) % (uint32_t)(i + 1));
        uint16_t kept = at[i];
        at[i] = at[j];
        at[j] = kept;
    }
    for (int i = 0; i < NODES; i++)
        nodes[at[i]] = (struct node){i + 1 < NODES ? &nodes[at[i + 1]] : NULL, bench_random(&seed)};
    /* The walk starts at node 0: rotate the list so that it comes first. */
    for (int i = 0; i < NODES; i++)
        if (!nodes[i].next)
            nodes[i].next = &nodes[at[0]];
    for (int i = 0; i < NODES; i++)
        if (nodes[i].next == &nodes[0])
            nodes[i].next = NULL;
}

static BENCH_CALL uint64_t walk(const struct node *node) {
    uint64_t sum = 0;
    for (; node; node = node->next)
        sum += node->value;
    return sum;
}

static uint64_t once(uint64_t i) {
    nodes[i % NODES].value++;
    return walk(nodes);
}

BENCH_MAIN(prepare(), once(i))
