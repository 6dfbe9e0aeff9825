/* An interpreter of a small register machine whose operations are dispatched by
 * computed goto: every operation ends in an indirect jump of its own. */
#include "bench.h"

enum { LOAD, ADD, SUB, MUL, XOR, SHR, ADDI, STORE, FETCH, LESS, BRANCH, JUMP, HALT };

struct operation {
    uint8_t code, to, a, b;
    int32_t value;
};

/* The lengths of the Collatz walks from r1 = 1 .. 599, each stored; r0 keeps the longest. */
static const struct operation program[] = {
    {LOAD, 0, 0, 0, 0},
    {LOAD, 1, 0, 0, 1},
    {LOAD, 7, 0, 0, 600},
    {LOAD, 8, 0, 0, 1},
    {LOAD, 9, 0, 0, 3},
    /* 5: the next start */
    {ADDI, 2, 1, 0, 0},
    {LOAD, 3, 0, 0, 0},
    /* 7: the next step of a walk */
    {LESS, 4, 8, 2, 0},
    {BRANCH, 0, 4, 0, 2},
    {JUMP, 0, 0, 0, 11},
    {ADDI, 3, 3, 0, 1},
    {SHR, 5, 2, 8, 0},
    {ADD, 6, 5, 5, 0},
    {XOR, 6, 6, 2, 0},
    {BRANCH, 0, 6, 0, 3},
    {ADDI, 2, 5, 0, 0},
    {JUMP, 0, 0, 0, -9},
    /* 17: an odd number */
    {MUL, 2, 2, 9, 0},
    {ADDI, 2, 2, 0, 1},
    {JUMP, 0, 0, 0, -12},
    /* 20: the walk has reached 1 */
    {STORE, 3, 1, 0, 0},
    {FETCH, 5, 1, 0, 0},
    {LESS, 4, 0, 5, 0},
    {BRANCH, 0, 4, 0, 2},
    {JUMP, 0, 0, 0, 2},
    {ADDI, 0, 5, 0, 0},
    {ADDI, 1, 1, 0, 1},
    {SUB, 4, 7, 1, 0},
    {BRANCH, 0, 4, 0, -23},
    {HALT, 0, 0, 0, 0},
};

static uint64_t memory[1024];

static BENCH_CALL uint64_t interpret(const struct operation *at) {
    static const void *const labels[] = {&&load,  &&add,   &&sub,  &&mul,    &&xor_, &&shr, &&addi,
                                         &&store, &&fetch, &&less, &&branch, &&jump, &&halt};
    uint64_t r[16] = {0};
#define NEXT goto *labels[(++at)->code]
#define AGAIN goto *labels[at->code]
    AGAIN;
load:
    r[at->to] = (uint64_t)at->value;
    NEXT;
add:
    r[at->to] = r[at->a] + r[at->b];
    NEXT;
sub:
    r[at->to] = r[at->a] - r[at->b];
    NEXT;
mul:
    r[at->to] = r[at->a] * r[at->b];
    NEXT;
xor_:
    r[at->to] = r[at->a] ^ r[at->b];
    NEXT;
shr:
    r[at->to] = r[at->a] >> (r[at->b] & 63);
    NEXT;
addi:
    r[at->to] = r[at->a] + (uint64_t)(int64_t)at->value;
    NEXT;
store:
    memory[r[at->a] & 1023] = r[at->to];
    NEXT;
fetch:
    r[at->to] = memory[r[at->a] & 1023];
    NEXT;
less:
    r[at->to] = r[at->a] < r[at->b];
    NEXT;
branch:
    at += r[at->a] ? at->value : 1;
    AGAIN;
jump:
    at += at->value;
    AGAIN;
halt:
    return r[0];
}

BENCH_MAIN((void)0, interpret(program) + memory[i & 511])
