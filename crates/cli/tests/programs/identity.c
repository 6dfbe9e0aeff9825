/* `cpuid` and `xgetbv` touch no memory: rewriter and verifier both let them through. What `xgetbv` says of AVX-512
 * (bits 5 to 7) is hidden in a domain, which has no such instructions. */
#include <cpuid.h>
#include <stdio.h>

int main(void) {
    unsigned a, b, c, d, low, high;
    if (!__get_cpuid(0, &a, &b, &c, &d))
        return 1;
    printf("%.4s%.4s%.4s %u\n", (char *)&b, (char *)&d, (char *)&c, a);
    if (!__get_cpuid(1, &a, &b, &c, &d))
        return 1;
    printf("%x %x\n", a, d & bit_SSE2);
    if (c & bit_OSXSAVE) {
        __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
        printf("%x %x\n", low & ~0xe0u, high);
    }
    return 0;
}
