/* The same programs, natively. */
#include <stdint.h>
#include <stdio.h>

uint64_t entry(void);

int main(void) {
    printf("%llx\n", (unsigned long long)entry());
    return 0;
}
