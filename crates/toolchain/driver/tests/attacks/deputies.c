/* What the host is asked to do for a module: with memory that is not the module's, blocks that are not its blocks,
 * functions that are not its functions. */
#include "attack.h"

HOST(long, fill, void *, long);
HOST(long, sum, const void *, long);
HOST(long, length_of, const char *);
HOST(long, copy, void *, const void *, long);
HOST(long, fill_table, void *, long, long);
HOST(long, keep, void *, long);
HOST(long, call_back, void *, long);
HOST(void *, pool_get, long);
HOST(long, pool_drop, void *);
HOST(long, never_offered, long);
static char own[64];

ATTACK(fills) { return fill((void *)a, b); }
ATTACK(fills_own) { return fill(own, a); }
ATTACK(fills_stack) { char room[64]; long got = fill(room + a, b); __asm__ volatile("" : : "r"(room) : "memory"); return got; }
ATTACK(sums) { return sum((void *)a, b); }
ATTACK(measures) { return length_of((char *)a); }
ATTACK(copies_by_host) { return copy((void *)a, (void *)b, c); }
ATTACK(fills_table) { return fill_table((void *)a, b, c); }
ATTACK(calls_back) { return call_back((void *)a, b); }
ATTACK(not_offered) { return never_offered(a); }
ATTACK(frees) { free((void *)a); return 1; }
ATTACK(frees_middle) { free((char *)malloc(64) + a); return 1; }
ATTACK(frees_twice) { void *volatile p = malloc(64); free(p); free(p); return 1; }
ATTACK(frees_own) { free(own); return 1; }
ATTACK(frees_stack) { volatile char room[64]; free((void *)room); return 1; }
ATTACK(frees_foreign) { free(pool_get(64)); return 1; }
ATTACK(drops_foreign) { pool_drop(malloc(64)); return 1; }
ATTACK(drops_twice) { void *p = pool_get(64); pool_drop(p); pool_drop(p); return 1; }
ATTACK(resizes_foreign) { return realloc((void *)a, 128) != 0; }
ATTACK(resizes_twice) { void *p = malloc(64); void *volatile q = realloc(p, 100000); free(p); return q != 0; }
ATTACK(writes_freed) { volatile long *p = malloc(64); free((void *)p); p[1] = 1; return 1; }
ATTACK(reads_freed) { volatile long *p = malloc(64); p[3] = 5; free((void *)p); return p[3] | 1; }
ATTACK(writes_moved) { volatile long *p = malloc(64); void *volatile q = realloc((void *)p, 100000); p[1] = 1; return q != 0; }
ATTACK(writes_beyond_a_block) { volatile char *p = malloc(60); p[a] = 1; return 1; }
ATTACK(writes_below_a_block) { volatile long *p = malloc(60); p[-1] = 1; return 1; }
ATTACK(wants_too_many) { return calloc((size_t)1 << 33, (size_t)1 << 33) != 0; }
ATTACK(wants_too_much) { return malloc(a) != 0; }
ATTACK(hands_over) { return keep((void *)a, b); }
ATTACK(hands_over_own) { return keep(own, 16); }
ATTACK(hands_over_a_part) { return keep((char *)malloc(64) + 16, 16); }
ATTACK(hands_over_too_much) { return keep(malloc(64), 80); }
ATTACK(writes_handed_over) { volatile long *p = malloc(64); keep((void *)p, 64); p[7] = 1; return 1; }
ATTACK(frees_handed_over) { void *p = malloc(64); keep(p, 64); free(p); return 1; }
ATTACK(own_gate) { return (long)own_gate; }
