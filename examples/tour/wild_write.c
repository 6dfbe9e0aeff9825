/* Writes to an address that is not the program's: somewhere in its host. */
#include <stdint.h>
#include <stdio.h>

static void scribble(uintptr_t somewhere)
{
    *(volatile uint64_t *)somewhere = 0x6d616c6963650000;
}

int main(void)
{
    puts("wild_write: writing over the host's memory");
    fflush(stdout);
    scribble(0x7fff00000000);
    puts("wild_write: still here");
    return 0;
}
