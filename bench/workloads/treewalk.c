/* A binary search tree: recursive walk in order, and searches from the root. */
#include "bench.h"

#define NODES 4095

struct node {
    struct node *left, *right;
    uint32_t key;
};

static struct node nodes[NODES];
static struct node *root;
static uint32_t used;

static void insert(uint32_t key) {
    struct node **at = &root;
    while (*at)
        at = key < (*at)->key ? &(*at)->left : &(*at)->right;
    nodes[used] = (struct node){NULL, NULL, key};
    *at = &nodes[used++];
}

static BENCH_CALL uint64_t walk(const struct node *node) {
    if (!node)
        return 0;
    return walk(node->left) * 3 + node->key + walk(node->right);
}

static BENCH_CALL uint32_t above(uint32_t key) {
    uint32_t best = 0;
    for (const struct node *n = root; n;) {
        if (n->key < key) {
            n = n->right;
        } else {
            best = n->key;
            n = n->left;
        }
    }
    return best;
}

static void prepare(void) {
    uint32_t seed = 43;
    for (int i = 0; i < NODES; i++)
        insert(bench_random(&seed));
}

static uint64_t visit(uint64_t i) {
    uint64_t sum = walk(root);
    uint32_t seed = 43 + (uint32_t)i;
    for (int k = 0; k < 256; k++)
        sum += above(bench_random(&seed));
    return sum;
}

BENCH_MAIN(prepare(), visit(i))
