/* The same programs, natively. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

uint64_t entry(uint64_t argument);

int main(int argc, char **argv) {
    printf("%llx\n", (unsigned long long)entry(argc > 1 ? strtoull(argv[1], NULL, 0) : 0));
    return 0;
}
