/* Calls and jumps of every kind that a compiler makes. */
#include "program.h"

static APART uint64_t fib(unsigned n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

static APART int table(int x) {
    switch (x) {
    case 0: return 17;
    case 1: return x * 3 + 1;
    case 2: return (int)fib(7);
    case 3: return -4;
    case 4: return table(1) + 5;
    case 5: return 99;
    case 6: return x << 4;
    case 9: return 1;
    default: return 1000 + x;
    }
}

/* A switch before the frame exists, and one inside it. */
static APART int two_tables(int x, int y) {
    int values[8] = {0};
    if (x < 0)
        return y;
    switch (x) {
    case 0: return 3;
    case 1: return y;
    case 2: return 11;
    case 3: return y * y;
    case 4: values[0] = table(y); break;
    case 5: values[1] = 2; break;
    default: values[x & 7] = 9;
    }
    switch (y) {
    case 0: values[2] += table(x); break;
    case 1: values[3] += 7; break;
    case 2: values[4] -= x; break;
    case 3: values[5] ^= 1; break;
    case 4: return table(values[y]);
    }
    int sum = 0;
    for (int i = 0; i < 8; i++)
        sum = sum * 31 + values[i];
    return sum;
}

static APART uint64_t interpret(const unsigned char *code) {
    static void *const labels[] = {&&push, &&add, &&multiply, &&jump, &&halt};
    uint64_t stack[16], *top = stack, steps = 0;
    goto *labels[*code];
push:
    *top++ = code[1];
    code += 2;
    goto *labels[*code];
add:
    top--;
    top[-1] += *top;
    code++;
    goto *labels[*code];
multiply:
    top--;
    top[-1] *= *top;
    code++;
    goto *labels[*code];
jump:
    code = ++steps < 5 ? code - code[1] : code + 2;
    goto *labels[*code];
halt:
    return top[-1] + steps;
}

typedef uint64_t operation(uint64_t, uint64_t);
static uint64_t plus(uint64_t a, uint64_t b) { return a + b; }
static uint64_t times(uint64_t a, uint64_t b) { return a * b; }
static uint64_t minus(uint64_t a, uint64_t b) { return a - b; }
static operation *const operations[] = {plus, times, minus};

static APART uint64_t fold(operation *f, const uint64_t *values, int n) {
    uint64_t sum = 1;
    for (int i = 0; i < n; i++)
        sum = f(sum, values[i]);
    return sum;
}

static APART uint64_t tail(unsigned n, uint64_t sum, operation *f) {
    if (n == 0)
        return f(sum, 3);
    return tail(n - 1, f(sum, n), operations[n % 3]);
}

static APART uint64_t many(int n, ...) {
    va_list list, copy;
    va_start(list, n);
    va_copy(copy, list);
    uint64_t sum = 0;
    for (int i = 0; i < n; i++)
        sum = mix(sum, i % 3 == 2 ? (uint64_t)va_arg(list, double) : va_arg(list, uint64_t));
    sum = mix(sum, va_arg(copy, uint64_t));
    va_end(list);
    va_end(copy);
    return sum;
}

static APART uint64_t ten(uint64_t a, int b, char c, short d, uint64_t e, int f, int g, uint64_t h, char i, double j) {
    return mix(mix(mix(a + b, c * d), e - f), mix(g ^ h, i) + (uint64_t)j);
}

static APART int even(unsigned n);
static APART int odd(unsigned n) { return n ? even(n - 1) : 0; }
static APART int even(unsigned n) { return n ? odd(n - 1) : 1; }

static APART uint64_t rarely(uint64_t x) {
    if (__builtin_expect(x == 12345, 0))
        abort();
    if (__builtin_expect(x % 97 == 0, 0))
        return rarely(x + 1) + many(1, x);
    return x;
}

uint64_t entry(void) {
    uint64_t sum = fib(15);
    for (int i = -1; i < 12; i++)
        for (int j = -1; j < 6; j++)
            sum = mix(sum, table(i) + two_tables(i, j));
    static const unsigned char code[] = {0, 3, 0, 4, 2, 0, 5, 1, 3, 3, 4};
    sum = mix(sum, interpret(code));
    uint64_t values[] = {3, 5, 7, 11};
    for (int i = 0; i < 3; i++) {
        operation *f = operations[i];
        HIDE(f);
        sum = mix(sum, fold(f, values, 4));
        sum = mix(sum, tail(20, sum, f));
    }
    sum = mix(sum, many(9, (uint64_t)1, (uint64_t)2, 3.5, (uint64_t)4, (uint64_t)5, 6.5, (uint64_t)7, (uint64_t)8, 9.5));
    sum = mix(sum, ten(1, -2, 3, -4, 5, 6, 7, 8, 9, 10.5));
    sum = mix(sum, even(10) * 2 + odd(7));
    for (uint64_t i = 90; i < 100; i++)
        sum = mix(sum, rarely(i));
    return sum;
}
