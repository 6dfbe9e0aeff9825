/* Loops of every kind that would not end, and a program that does. */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static volatile unsigned long sink;

__attribute__((noinline)) static void work(void) { sink += 1; }

static void endless_calls(void)
{
	for (;;)
		work();
}

static void (*volatile pointer)(void) = work;

static void pointers(void)
{
	for (;;)
		pointer();
}

static void labels(void)
{
	static void *const places[] = { &&one, &&two, &&three };
	unsigned long next = sink;
	goto *places[next % 3];
one:
	sink += 1;
	goto *places[(next += 7) % 3];
two:
	sink += 2;
	goto *places[(next += 5) % 3];
three:
	sink += 3;
	goto *places[(next += 2) % 3];
}

static void switches(unsigned long state)
{
	for (;;)
		switch (state * 2862933555777941757ul >> 59) {
#define CASE(n) case n: state += sink + 3 * n; break;
#define FOUR(n) CASE(n) CASE(n + 1) CASE(n + 2) CASE(n + 3)
		FOUR(0) FOUR(4) FOUR(8) FOUR(12) FOUR(16) FOUR(20) FOUR(24) FOUR(28)
		}
}

/* As deep as the stacks are, and again. */
__attribute__((noinline)) static unsigned long recursion(unsigned long depth)
{
	sink += depth;
	return depth ? recursion(depth - 1) + sink : sink;
}

static void jumps(void)
{
	static jmp_buf place;
	setjmp(place);
	sink += 1;
	longjmp(place, 1);
}

static int compare(const void *one, const void *other)
{
	return (int)*(const unsigned char *)one - *(const unsigned char *)other;
}

/* Time goes by in the C library alone. */
static void library(void)
{
	static char text[256];
	for (size_t length = 0;; length = (length + 1) % 200) {
		memset(text, 'a' + (int)(length % 26), sizeof text - 1);
		qsort(text, length, 1, compare);
		sink += strlen(text);
	}
}

/* Branches depend on a state, so that where it ends tells how far it came. */
static void numbers(void)
{
	unsigned long state = 88172645463325252ul;
	for (unsigned long turn = 0;; turn++) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		if (state & 1)
			work();
		if (state % 3 == 0)
			for (unsigned long more = state % 11; more; more--)
				sink ^= state << more;
		if (turn % 1000 == 0) {
			printf("%lx %lx\n", state, sink);
			fflush(stdout);
		}
	}
}

int main(int count, char **words)
{
	const char *word = count > 1 ? words[1] : "";
	if (!strcmp(word, "loop"))
		for (;;)
			sink += 1;
	if (!strcmp(word, "goto"))
		labels();
	if (!strcmp(word, "calls"))
		endless_calls();
	if (!strcmp(word, "pointers"))
		pointers();
	if (!strcmp(word, "switch"))
		switches(sink);
	if (!strcmp(word, "recursion"))
		for (;;)
			recursion(100);
	if (!strcmp(word, "setjmp"))
		jumps();
	if (!strcmp(word, "library"))
		library();
	if (!strcmp(word, "random"))
		numbers();
	for (unsigned turn = 0; turn < 1000; turn++)
		sink += turn;
	return 7;
}
