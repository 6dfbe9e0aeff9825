/* Accesses that the domain has no right to: the argument says which. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern void *mmap(void *, size_t, int, int, int, long);
static char room[64];

int main(int count, char **arguments) {
    /* Memory of the host's, which was granted to nobody. */
    char *others = mmap(0, 4096, 3, 0x22, -1, 0);
    char *own = malloc(64);
    int which = count > 1 ? atoi(arguments[1]) : 0;
    volatile long sink = 0;
    switch (which) {
    case 0: own[63] = 1; room[63] = 1; break;
    case 1: others[0] = 1; break;
    case 2: *(long *)(others + 1000) = 1; break;
    case 3: *(volatile long *)(others - 4) = 1; break;
    case 4: __asm__ volatile("movups %%xmm0, %0" : "=m"(*(char(*)[16])(others + 3))); break;
    case 5: {
        long bytes = 8;
        __asm__ volatile("rep stosb" : "+D"(others), "+c"(bytes) : "a"(0) : "memory");
        break;
    }
    case 6: sink = *(volatile long *)others; break;
    }
    return (int)sink;
}
