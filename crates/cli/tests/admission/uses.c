/* Uses what it is told to use, and says how much it got. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile int zero, one = 1;

__attribute__((noinline)) static void stack(int n)
{
    volatile char block[4096];
    memset((void *)block, n, sizeof block);
    printf("%d\n", n);
    fflush(stdout);
    if (n < 64) stack(n + 1);
    zero += block[0];
}

int main(int count, char **words)
{
    const char *which = count > 1 ? words[1] : "";
    if (!strcmp(which, "heap")) {
        int n = 0;
        while (n < 64 && malloc(1 << 20)) n++;
        printf("%d", n);
        return 0;
    }
    if (!strcmp(which, "stack")) stack(1);
    if (!strcmp(which, "spin")) for (;;) zero = 0;
    if (!strcmp(which, "calls")) for (int n = 0; n < atoi(words[2]); n++) write(1, ".", 1);
    if (!strcmp(which, "hello")) puts("hello");
    return 0;
}
