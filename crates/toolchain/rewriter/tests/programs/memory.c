/* Stacks, frames and accesses of every shape. */
#include "program.h"

struct small { int a, b; };
struct large { uint64_t words[20]; };
struct __attribute__((packed)) odd { char c; int i; short s; };
struct bits { unsigned a : 3, b : 11, c : 18; int d : 7; };

static APART struct large make(uint64_t seed) {
    struct large l;
    for (int i = 0; i < 20; i++)
        l.words[i] = seed = mix(seed, i);
    return l;
}

static APART uint64_t take(struct large l, struct small s, char c, struct odd o) {
    uint64_t sum = s.a * 3 + s.b + c + o.c + o.i + o.s;
    for (int i = 0; i < 20; i++)
        sum = mix(sum, l.words[i]);
    return sum;
}

static APART uint64_t on_stack(unsigned n) {
    char *p = __builtin_alloca(n);
    for (unsigned i = 0; i < n; i++)
        p[i] = (char)(i * 7);
    uint64_t words[n / 4 + 1];
    for (unsigned i = 0; i <= n / 4; i++)
        words[i] = i * i;
    uint64_t sum = 0;
    for (unsigned round = 0; round < 3; round++) {
        int inner[round * 5 + 1];
        for (unsigned i = 0; i <= round * 5; i++)
            inner[i] = p[i % n] + (int)i;
        sum = mix(sum, inner[round * 5] + words[n / 4]);
    }
    return sum;
}

static APART uint64_t aligned(unsigned n) {
    _Alignas(64) unsigned char block[256];
    uint64_t misaligned = (uintptr_t)block % 64;
    memset(block, (int)n, sizeof block);
    char *p = __builtin_alloca(n + 1);
    p[n] = 5;
    HIDE(p);
    return mix(misaligned, block[n]) + p[n];
}

static APART uint64_t deep(unsigned n) {
    volatile unsigned char frame[70000];
    frame[0] = (unsigned char)n;
    frame[69999] = (unsigned char)(n + 1);
    frame[n * 100] = 3;
    return n == 0 ? frame[69999] : deep(n - 1) + frame[0] + frame[n * 100];
}

static APART void copy(struct large *to, const struct large *from) { *to = *from; }

static APART uint64_t table[8][16];
static APART uint64_t walk(int i, int j, unsigned char *bytes) {
    table[i][j] += bytes[i * 2 + j];
    table[j & 7][i] ^= table[i][j] << 3;
    bytes[i] = (unsigned char)table[i][j];
    return table[i][j] + *(uint32_t *)(bytes + i + 1) + *(uint16_t *)&table[j & 7][i];
}

struct node { struct node *left, *right; int key, count; };
static APART struct node *insert(struct node *tree, int key) {
    if (!tree) {
        struct node *n = malloc(sizeof *n);
        *n = (struct node){0, 0, key, 1};
        return n;
    }
    if (key < tree->key)
        tree->left = insert(tree->left, key);
    else if (key > tree->key)
        tree->right = insert(tree->right, key);
    else
        tree->count++;
    return tree;
}
static APART uint64_t depth_sum(const struct node *t, int depth) {
    return t ? depth_sum(t->left, depth + 1) * 3 + depth_sum(t->right, depth + 1) + (uint64_t)(t->key * depth + t->count) : 0;
}

static __thread int counter = 5;
static __thread struct large block;
static __thread uint64_t many_words[6] = {1, 2, 3, 4, 5, 6};
static APART uint64_t thread_locals(int i) {
    counter += i;
    block.words[i] += counter;
    many_words[i % 6] ^= block.words[i] + (counter < 40 ? 1 : 2);
    int *p = &counter;
    HIDE(p);
    return many_words[i % 6] + *p;
}

static uint64_t counted;
static APART uint64_t atomics(void) {
    uint64_t old = __sync_fetch_and_add(&counted, 5);
    __sync_bool_compare_and_swap(&counted, old + 5, old + 9);
    old += __atomic_exchange_n(&counted, 77, __ATOMIC_SEQ_CST);
    __atomic_or_fetch(&counted, 0x100, __ATOMIC_SEQ_CST);
    return mix(old, counted);
}

uint64_t entry(void) {
    struct large l = make(1), m;
    struct odd o = {1, -2, 3};
    uint64_t sum = take(l, (struct small){4, 5}, 6, o);
    copy(&m, &l);
    sum = mix(sum, take(m, (struct small){-4, 5}, 7, o));
    for (unsigned n = 20; n < 60; n += 13)
        sum = mix(sum, on_stack(n) + aligned(n));
    sum = mix(sum, deep(3));
    unsigned char bytes[64];
    for (int i = 0; i < 64; i++)
        bytes[i] = (unsigned char)(i * 11);
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 16; j++)
            sum = mix(sum, walk(i, j, bytes));
    struct node *tree = 0;
    for (int i = 0; i < 200; i++)
        tree = insert(tree, (i * 37) % 101);
    sum = mix(sum, depth_sum(tree, 1));
    for (int i = 0; i < 20; i++)
        sum = mix(sum, thread_locals(i));
    struct bits b = {5, 1000, 77777, -3};
    HIDE(sum);
    b.b += (unsigned)sum;
    sum = mix(sum, b.a + b.b * 3 + b.c + (unsigned)b.d);
    return mix(sum, atomics());
}
