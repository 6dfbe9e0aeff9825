/* What a module of checked code must do as the plain program does: accesses of each width, calls
 * by name and by address, tables of cases, computed gotos, thread-locals, constructors, the data
 * stack, strings, and what it brings along of the C library. */
#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct mixed {
    int a;
    double d;
    char text[30];
    long double wide;
};
static __thread int local = 5;
static __thread long zeroed[4];
int made = 3;
static int (*volatile compared)(const void *, const void *);

static int compare(const void *a, const void *b) {
    return *(const int *)a - *(const int *)b;
}
__attribute__((constructor)) static void construct(void) {
    made = 9;
    compared = compare;
}
static int many(int a, int b, int c, int d, int e, int f, int g, int h, struct mixed m) {
    return a + b + c + d + e + f + g * 10 + h * 100 + m.a + (int)m.wide;
}
int (*volatile by_address)(int, int, int, int, int, int, int, int, struct mixed) = many;

static int variadic(int count, ...) {
    va_list list;
    int sum = 0;
    va_start(list, count);
    while (count-- > 0)
        sum = sum * 7 + va_arg(list, int);
    va_end(list);
    return sum;
}
int cases(int x) {
    switch (x) {
    case 0: return 7; case 1: return 3; case 2: return 4; case 3: return 99; case 4: return 1;
    case 5: return 8; case 6: return 2; case 7: return 11; case 8: return 5; case 9: return 55;
    case 10: return 12; case 11: return 5; case 12: return 31; case 13: return 77; case 14: return 2;
    case 15: return 19; case 16: return 4; case 17: return 6; case 18: return 8; case 19: return 34;
    case 20: return 9; case 21: return 2; case 22: return compare(&x, &made);
    }
    return 0;
}
int computed(int x, int y) {
    static void *const table[] = {&&a, &&b, &&c};
    goto *table[x];
a:
    y += 2;
    goto *table[(x + 1) % 3];
b:
    y *= 3;
    if (y > 100)
        return y;
    goto *table[y % 3];
c:
    return y;
}
static int tail(int (*f)(int), int x) {
    return f(x);
}
static int variable(int length) {
    char buffer[length];
    memset(buffer, 'x', (size_t)length);
    buffer[length - 1] = 0;
    return (int)strlen(buffer);
}
static int large(void) {
    volatile char frame[100000];
    for (unsigned i = 0; i < sizeof frame; i += 97)
        frame[i] = (char)i;
    return frame[97 * 5];
}
static uint64_t atomics(void) {
    static uint64_t word = 1;
    static __int128 pair;
    __atomic_fetch_add(&word, 5, __ATOMIC_SEQ_CST);
    __atomic_fetch_xor(&word, 3, __ATOMIC_SEQ_CST);
    uint64_t expected = 5;
    __atomic_compare_exchange_n(&word, &expected, 9, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    pair += 77;
    return word + (uint64_t)(pair / 7);
}
static int strings(char *to, const char *from, size_t count) {
    char *d = to;
    const char *s = from;
    size_t c = count;
    unsigned char differ;
    __asm__ volatile("rep movsb" : "+D"(d), "+S"(s), "+c"(c) : : "memory");
    d = to, s = from, c = count;
    to[count / 2]++;
    __asm__ volatile("repe cmpsb\n\tseta %0" : "=q"(differ), "+D"(d), "+S"(s), "+c"(c) : : "cc", "memory");
    return differ * 1000 + (int)c;
}
static int flags(int *p, int *q, int a, int b) {
    unsigned char less;
    int read;
    __asm__("cmpl %4, %3\n\tmovl (%2), %1\n\tmovq (%5), %%rax\n\tmovl (%%rax), %%eax\n\taddl $0, %1\n\tcmpl %4, %3\n\t"
            "movl (%2), %1\n\tsetl %0"
            : "=&q"(less), "=&r"(read)
            : "r"(p), "r"(a), "r"(b), "r"(&q)
            : "cc", "rax", "memory");
    return less * 100 + read;
}

int main(int count, char **arguments) {
    struct mixed m = {1, 2.5, "hello", 3.25L};
    int numbers[100], total = 0, sum = 0;
    for (int i = 0; i < 100; i++)
        numbers[i] = (i * 37) % 101;
    qsort(numbers, 100, sizeof *numbers, compared);
    for (int i = 0; i < 100; i++)
        total = total * 31 + numbers[i];
    for (int i = 0; i < 25; i++)
        sum += cases(i) * i;
    local += (int)++zeroed[2];
    printf("%d %d %f %s %d %d %d %d\n", total, made, m.d, m.text, local, by_address(1, 2, 3, 4, 5, 6, 7, 8, m), sum,
           computed(count - 1, 5));
    printf("%d %d %d %d %d\n", variadic(9, 1, 2, 3, 4, 5, 6, 7, 8, 9), tail(cases, 3), variable(count + 300), large(),
           (int)atomics());
    char *block = malloc(100), copy[100];
    for (int i = 0; i < 100; i++)
        block[i] = (char)(i * 3);
    memcpy(copy, block, 100);
    printf("%d %d %d %d\n", memcmp(copy, block, 100), strings(copy, block, 99), flags(&made, numbers, 3, 5),
           isalpha('x') != 0);
    printf("%.9f %.9f %Lf\n", sin(1.0 + count), pow(2.5, count + 1), m.wide * 2);
    free(block);
    return strcmp(arguments[1], "word") == 0 ? 3 : 4;
}
