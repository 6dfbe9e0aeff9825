/* Calls random bodies (src/random_tests.rs), each with a few random states, and
 * sums up what they leave. `which` is 0 for all of them, or the number of one, from 1. */
#include <stdint.h>

enum { SIZE = 65536, ROUNDS = 3 };
/* The state: 16 general registers, flags, 8 vector registers; then memory. */
uint64_t buffer[SIZE / 8] __attribute__((aligned(SIZE)));
extern void (*const bodies[])(uint64_t *);
extern const uint64_t body_count;

static uint64_t seed;
static uint64_t next(void) {
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    return seed * 0x2545f4914f6cdd1du;
}

uint64_t entry(uint64_t which) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < body_count; i++)
        for (int round = 0; round < ROUNDS && (!which || which == i + 1); round++) {
            seed = (i * ROUNDS + round + 1) * 0x9e3779b97f4a7c15u;
            for (int n = 0; n < SIZE / 8; n++)
                buffer[n] = next();
            for (int n = 0; n < 16; n++)
                switch (next() % 6) {
                case 0: buffer[n] = 0; break;
                case 1: buffer[n] %= 256; break;
                case 2: buffer[n] = (int64_t)(int32_t)buffer[n]; break;
                case 3: buffer[n] &= ~0xffffffffull; break;
                }
            bodies[i](buffer);
            for (int n = 0; n < SIZE / 8; n++)
                sum = (sum ^ buffer[n]) * 0x9e3779b97f4a7c15u, sum ^= sum >> 29;
        }
    return sum;
}

/* Changes every register that a function may change. */
uint64_t helper(uint64_t a, uint64_t b) {
    uint64_t sum = a * 3 + (b ^ 0x5555);
    __asm__ volatile("movl $1, %%ecx\nmovl $2, %%edx\nmovl $3, %%esi\nmovl $4, %%edi\nmovl $5, %%r8d\nmovl $6, %%r9d\n"
                     "movl $7, %%r10d\nxorps %%xmm0, %%xmm0"
                     :
                     :
                     : "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "xmm0", "cc");
    return sum;
}
