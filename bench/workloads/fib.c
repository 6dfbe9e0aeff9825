/* The recursive Fibonacci numbers: calls and returns, nothing else. */
#include "bench.h"

static BENCH_CALL uint64_t fib(uint32_t n) {
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

static volatile uint32_t n = 24;

BENCH_MAIN((void)0, fib(n))
