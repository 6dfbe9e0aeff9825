/* Where control goes: pointers that are no functions, middles of functions, returns, stacks, time. */
#include "attack.h"

typedef long (*function)(long, long, long);
static long spare[16];
static int count;

ATTACK(calls) { long answer = ((volatile function)a)(b, c, 0); return answer + 1; }
ATTACK(jumps) { return ((function)a)(b, c, 0); }
static long *volatile data = spare;
ATTACK(calls_data) {
    static const unsigned char code[] = { 0x48, 0x8b, 0x07, 0xc3 };
    memcpy(spare, code, sizeof code);
    return ((function)data)(b, c, 0);
}
ATTACK(forges_a_gate) {
    /* endbr64; lea 0(%rip), %r11; jmp *0(%rip) */
    static const unsigned char code[] = { 0xf3, 0x0f, 0x1e, 0xfa, 0x4c, 0x8d, 0x1d, 0, 0, 0, 0, 0xff, 0x25, 0, 0, 0, 0 };
    char *gate = (char *)(((long)spare + 15) & -16);
    memcpy(gate, code, sizeof code);
    return ((volatile function)gate)(b, c, 0);
}
ATTACK(calls_own_middle) { return ((volatile function)((char *)jumps + a))(b, c, 0); }
ATTACK(goes_to) {
    void *labels[4] = { &&here, &&there, &&here, (void *)a };
    void *volatile *chosen = labels;
    goto *chosen[b];
here:
    count += 3;
    return 1;
there:
    count += 5;
    return 2;
}
/* The frame's return address would be the word that this writes. */
static __attribute__((noinline)) long smash(long by, long value) {
    volatile long room[2];
    for (long i = 0; i < by; i++)
        ((volatile long *)room)[i] = value;
    return room[0];
}
ATTACK(smashes) { long got = smash(a, b); count++; return got == b ? count : -1; }
ATTACK(recurses) { volatile long kept = a; return calls_own_middle == 0 ? 0 : recurses(a + 1, b, c) + kept; }
ATTACK(recurses_in_circles) { volatile long kept = a; return ((volatile function)recurses_in_circles)(a + 1, b, c) + kept; }
ATTACK(takes_room) { volatile char *room = __builtin_alloca(a); room[0] = 1; return room[0]; }
ATTACK(loops) { for (;;) count++; return count; }
ATTACK(divides) { return a / b; }
ATTACK(aborts) { __builtin_trap(); }
ATTACK(traps) { __asm__ volatile("int3"); return 0; }
ATTACK(address_of_data) { return (long)spare; }
ATTACK(address_of_stack) { volatile long here = (long)&here; return here; }
ATTACK(target) { return 4711; }
