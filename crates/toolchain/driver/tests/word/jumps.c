/* What setjmp and longjmp of a module must do, and what they must not. */
#include <setjmp.h>

int call_back(int (*function)(void));

static int deep(int depth, jmp_buf *to, int value) {
    volatile int kept = depth;
    if (depth == 0)
        longjmp(*to, value);
    return deep(depth - 1, to, value) + kept;
}
__attribute__((noipa)) static int sum(int a, int b, int c, int d, int e) { return a + b + c + d + e; }

/* Registers that callees save hold the arguments across the jump. */
int up(int depth, int a, int b, int c) {
    jmp_buf here;
    volatile int turns = 0;
    int value = setjmp(here);
    if (turns++ < 2)
        deep(depth, &here, value ? 0 : depth);
    return sum(value, a * 10, b * 100, c * 1000, turns * 10000);
}
int masked(void) {
    sigjmp_buf here;
    int value = sigsetjmp(here, 1);
    if (value == 0)
        siglongjmp(here, 5);
    return value;
}

static jmp_buf there;
__attribute__((noipa)) static int mark(void) { return setjmp(there); }
__attribute__((noipa)) static int mark_deeper(void) { return mark() + 1; }
/* The call has returned. */
int gone(void) {
    if (mark_deeper() != 1)
        return 77;
    longjmp(there, 1);
}
static int jump_there(void) { longjmp(there, 1); }
/* Over a function of the host. */
int over(void) {
    if (setjmp(there) == 0)
        return call_back(jump_there);
    return 78;
}
/* From one call into the module to another one. */
int again(void) { longjmp(there, 1); }
int marked(void) { return setjmp(there); }

int forged(int word, long value) {
    if (setjmp(there) == 0) {
        ((long *)there)[word] = value;
        longjmp(there, 1);
    }
    return 79;
}
int moved(int word, long by) { return setjmp(there) == 0 ? ((long *)there)[word] += by, longjmp(there, 1), 0 : 79; }
