/* An extension for the loader: does what it is told, good and bad. */
#include <mullion/ext.h>
#include <stdlib.h>

MULLION_IMPORT(long, host_log, (const char *text, unsigned long length));

static volatile long zero, count;
static void *volatile last;

MULLION_EXPORT(long, add, (long a, long b)) { return a + b; }
MULLION_EXPORT(long, next, (void)) { return ++count; }
MULLION_EXPORT(long, spin, (void)) { for (;;) zero = 0; }
MULLION_EXPORT(long, wild, (void)) { *(volatile long *)8 = 1; return 0; }

MULLION_EXPORT(long, upper, (long key, char *text, unsigned long length))
{
    for (unsigned long i = 0; i < length; i++)
        if (text[i] >= 'a' && text[i] <= 'z') text[i] -= 32;
    host_log(text, length);
    return key + (long)length;
}

MULLION_EXPORT(long, heap, (void))
{
    long n = 0;
    while (n < 64 && (last = malloc(1 << 20))) n++;
    return n;
}

__attribute__((noinline)) static long deeper(long n)
{
    volatile char block[4096];
    block[0] = (char)n;
    return n ? deeper(n - 1) + block[0] * 0 : 0;
}

MULLION_EXPORT(long, stack, (long n)) { return deeper(n); }

MULLION_EXPORT(long, calls, (long n))
{
    for (long i = 0; i < n; i++) host_log("", 0);
    return n;
}
