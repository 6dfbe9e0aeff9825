/* Accesses that the module has no right to: stores and loads of all widths, borders of grains, sums that wrap, and the
 * wall's own memory. */
#include "attack.h"

typedef int vector __attribute__((vector_size(16), aligned(1)));
typedef struct { char bytes[64]; } block;
static long own[8];

ATTACK(fine) { AT(int, a) = (int)b; own[0] = b; return AT(int, a) + own[0]; }
ATTACK(store_byte) { AT(char, a) = 1; return 0; }
ATTACK(store_half) { AT(short, a) = 1; return 0; }
ATTACK(store_word) { AT(int, a) = 1; return 0; }
ATTACK(store_long) { AT(long, a) = 1; return 0; }
ATTACK(store_float) { AT(float, a) = 1.5f; return 0; }
ATTACK(store_double) { AT(double, a) = b; return 0; }
ATTACK(store_x87) { AT(long double, a) = (long double)b; return 0; }
ATTACK(store_vector) { *(vector *)a = (vector){ b, b, b, b }; return 0; }
ATTACK(store_block) { *(block *)a = *(block *)own; return 0; }
ATTACK(load_byte) { return AT(unsigned char, a); }
ATTACK(load_word) { return AT(unsigned, a); }
ATTACK(load_long) { return AT(long, a); }
ATTACK(load_vector) { vector v = *(vector *)a; return (unsigned)v[0]; }
ATTACK(load_x87) { return (long)AT(long double, a) | 1; }
ATTACK(add) { AT(int, a) += 3; return 0; }
ATTACK(locked_add) { return __atomic_fetch_add((int *)a, 1, 5); }
ATTACK(exchange) { return __atomic_exchange_n((int *)a, 1, 5); }
ATTACK(compare_exchange) { unsigned old = (unsigned)b; return __atomic_compare_exchange_n((unsigned *)a, &old, 1, 0, 5, 5); }
ATTACK(exchange16) {
    long low = 0, high = 0;
    __asm__ volatile("lock cmpxchg16b %0" : "+m"(*(block *)a), "+a"(low), "+d"(high) : "b"(1L), "c"(1L) : "memory");
    return low & 0xffffffff;
}
ATTACK(set_bit) { __asm__ volatile("btsl $1, %0" : "+m"(*(int *)a)); return 0; }
ATTACK(string) { __asm__ volatile("rep stosb" : "+D"(a), "+c"(b) : "a"(1) : "memory"); return 0; }
ATTACK(string_copy) { void *to = own; __asm__ volatile("rep movsb" : "+D"(to), "+S"(a), "+c"(b) : : "memory"); return (unsigned)own[0]; }
ATTACK(masked_store) {
    __asm__ volatile("vmaskmovps %%xmm0, %%xmm0, %0" : "=m"(*(block *)a) : : "xmm0");
    return 0;
}
ATTACK(stores_environment) { __asm__ volatile("fnstenv %0" : "=m"(*(block *)a)); return 0; }
ATTACK(stores_control) { __asm__ volatile("stmxcsr %0" : "=m"(*(int *)a)); return 0; }
ATTACK(sets_byte) { __asm__ volatile("cmp %%eax, %%eax; sete %0" : "=m"(*(char *)a)); return 0; }
ATTACK(extracts) { __asm__ volatile("pcmpeqd %%xmm0, %%xmm0; pextrb $3, %%xmm0, %0" : "=m"(*(char *)a) : : "xmm0"); return 0; }
ATTACK(lays_past) { __asm__ volatile("movnti %1, %0" : "=m"(*(int *)a) : "r"(1)); return 0; }
ATTACK(copies) { memcpy((void *)a, (void *)b, c); return 0; }
ATTACK(clears) { memset((void *)a, 0, b); return 0; }
ATTACK(moves) { memmove((void *)a, (void *)b, c); return 0; }
ATTACK(length) { return strlen((char *)a); }
ATTACK(compares) { return memcmp((void *)a, (void *)b, c); }
/* a: the array, b: the index. */
ATTACK(indexed) { ((volatile int *)a)[b] = 1; return 0; }
ATTACK(indexed_long) { ((volatile long *)a)[b] = 1; return 0; }
ATTACK(indexed_load) { return ((volatile unsigned *)a)[b]; }
ATTACK(indexed_short_index) { ((volatile int *)a)[(int)b] = 1; return 0; }
ATTACK(overflows) { for (long i = 0; i < b; i++) ((volatile int *)a)[i] = 1; return 0; }
ATTACK(underflows) { for (long i = 0; i > b; i--) ((volatile int *)a)[i] = 1; return 0; }
/* Reads what it may, then what lies behind, in one straight line. */
ATTACK(two_in_a_line) { int first = AT(int, a); AT(int, a + b) = first; return 0; }
