/* Never ends. */
#include <stdio.h>

int main(void)
{
    puts("endless_loop: spinning");
    fflush(stdout);
    for (volatile unsigned long turns = 0;; turns++)
        ;
}
