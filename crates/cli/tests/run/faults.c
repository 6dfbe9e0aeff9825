/* What a program may do wrong, one kind for each word. */
#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CASE(name) if (!strcmp(which, name))
#define APART __attribute__((noinline))

static volatile int zero, one = 1;
static int data[4];

APART int null_write(void) { int *volatile p = (int *)8; *p = 1; return 0; }
APART int wild_read(void) { int *volatile p = (int *)0x7000dead0000ull; return *(volatile int *)p; }
APART void write_constant(void) { volatile char *volatile p = (volatile char *)"constant"; *p = 'C'; }
APART int divide(void) { return one / zero; }
APART void call(void *address) { void (*volatile f)(void) = (void (*)(void))address; f(); }
APART void stack_hog(int n) { volatile char block[65536]; memset((void *)block, n, sizeof block); if (one) stack_hog(n + 1); zero += block[0]; }
/* No frame: only return addresses pile up. */
APART int recurse(int n) { int k = one ? recurse(n) : 0; __asm__ volatile("" ::: "memory"); return k; }
APART void spin(void) { for (;;) zero = 0; }

int main(int count, char **words)
{
    const char *which = count > 1 ? words[1] : "";
    CASE("null-write") null_write();
    CASE("wild-read") return wild_read();
    CASE("write-constant") write_constant();
    CASE("call-nowhere") call((void *)0x1234);
    CASE("call-data") call(data);
    CASE("call-middle") call((char *)divide + 1);
    CASE("trap") __builtin_trap();
    CASE("divide") return divide();
    CASE("data-stack") stack_hog(1);
    CASE("control-stack") return recurse(1);
    CASE("abort") abort();
    CASE("terminate") raise(SIGTERM);
    CASE("ignored") { signal(SIGTERM, SIG_IGN); raise(SIGTERM); raise(SIGCHLD); return 7; }
    CASE("assert") assert(zero == 1);
    CASE("breakpoint") __asm__ volatile("int3");
    CASE("spin") spin();
    return 0;
}
