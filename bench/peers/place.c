/* Linked in front of a workload, it moves the workload's code by PLACE times 16 bytes: the
 * functions of one instruction are aligned to 16, as gcc -O2 aligns all. */
#define FILL(name) static __attribute__((used, noinline)) void name(void) {}

#if PLACE > 0
FILL(fill_1)
#endif
#if PLACE > 1
FILL(fill_2)
#endif
#if PLACE > 2
FILL(fill_3)
#endif
