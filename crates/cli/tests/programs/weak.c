/* Weak symbols: what nobody defines is null, and is not called; what is defined is. */
#include <stdio.h>

extern void absent(void) __attribute__((weak));
extern int absent_sum(int, ...) __attribute__((weak));
extern int absent_data __attribute__((weak));
extern int present(int) __attribute__((weak));

__attribute__((weak)) int present(int x) { return x + 1; }
__attribute__((weak, noinline)) int tail(int x) { return absent_sum ? absent_sum(x, 2.0, 3) : -x; }
__attribute__((noinline)) static int last(int x) { return present(x); }

int main(void) {
    void (*volatile pointer)(void) = absent;
    if (absent)
        absent();
    else
        puts("absent");
    if (pointer)
        pointer();
    if (&absent_data)
        printf("%d\n", absent_data);
    printf("%d %d\n", tail(4), last(5));
    return 0;
}
