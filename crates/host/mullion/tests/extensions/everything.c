/* What the tests of the host's interface call. */
#include <mullion/ext.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct point { int32_t x, y; double weight; const char *name; };

MULLION_IMPORT(void, host_log, (uint32_t level, const char *message));
MULLION_IMPORT(double, host_mix, (double a, uint32_t b, float c, int8_t d));
MULLION_IMPORT(int, host_again, (int depth));
MULLION_IMPORT(int, host_apply, (int (*function)(int), int value));
MULLION_IMPORT(uint64_t, host_lock, (void));
MULLION_IMPORT(int, host_unlock, (uint64_t number));

static int counter = 41;
__attribute__((constructor)) static void begin(void) { counter++; }

MULLION_EXPORT(int, count, (void)) { return counter++; }
MULLION_EXPORT(int8_t, narrow, (int8_t a, uint16_t b)) { return (int8_t)(a + b); }
MULLION_EXPORT(_Bool, is_less, (int64_t a, int64_t b)) { return a < b; }
MULLION_EXPORT(double, mixed, (int a, double b, float c, int64_t d, double e, uint8_t f, double g, int h))
{
	return a + 2 * b + 3 * c + 4 * (double)d + 5 * e + 6 * f + 7 * g + 8 * h;
}
MULLION_EXPORT(int64_t, eight, (int a, int64_t b, int c, int d, int e, int f, int8_t g, uint64_t h))
{
	return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * (int64_t)h;
}
MULLION_EXPORT(float, halve, (float a)) { return a / 2; }
MULLION_EXPORT(void, nothing, (void)) {}
MULLION_EXPORT(uint64_t, sum, (const uint32_t *list, uint64_t count))
{
	uint64_t total = 0;
	for (uint64_t i = 0; i < count; i++)
		total += list[i];
	return total;
}
MULLION_EXPORT(uint64_t, length, (const char *text)) { return strlen(text); }
MULLION_EXPORT(const char *, greeting, (void)) { return "good day"; }
MULLION_EXPORT(const void *, wild, (uint64_t address)) { return (const void *)address; }
MULLION_EXPORT(struct point *, middle, (struct point *a, const struct point *b))
{
	a->x = (a->x + b->x) / 2;
	a->y = (a->y + b->y) / 2;
	a->weight += b->weight;
	a->name = b->name;
	return a;
}
static int twice(int value) { return 2 * value; }
typedef int operation(int);
MULLION_EXPORT(operation *, get_twice, (void)) { return twice; }
MULLION_EXPORT(int, apply_here, (int value)) { return host_apply(twice, value); }
MULLION_EXPORT(int, apply_wrong, (int value)) { return host_apply((operation *)&counter, value); }

MULLION_EXPORT(void, log_it, (uint32_t level)) { host_log(level, "from inside"); }
MULLION_EXPORT(double, mix, (void)) { return host_mix(1.5, 2, 3.25f, -4); }
MULLION_EXPORT(int, down, (int depth)) { return depth == 0 ? 0 : 1 + host_again(depth - 1); }
MULLION_EXPORT(int, lock_and, (int fault))
{
	uint64_t held = host_lock();
	host_lock();
	if (fault)
		*(volatile int *)8 = 1;
	return host_unlock(held);
}
MULLION_EXPORT(int, unlock, (uint64_t number)) { return host_unlock(number); }

__attribute__((noinline)) static void scribble(int *place) { *place = 1; }
MULLION_EXPORT(void, fault, (void)) { scribble((int *)0x18); }
MULLION_EXPORT(int, divide, (int a, int b)) { return a / b; }
MULLION_EXPORT(void, give_up, (void)) { abort(); }
MULLION_EXPORT(void, leave, (int status)) { exit(status); }
MULLION_EXPORT(void, loop_forever, (void)) { for (volatile int go = 1; go;) {} }
__attribute__((noinline)) static int dig(int depth)
{
	volatile char pad[4096];
	pad[0] = (char)depth;
	return depth ? dig(depth + 1) + pad[0] : 0;
}
/* Holds something of the host's, and then ends in a way of the caller's choice. */
MULLION_EXPORT(int, lock_then, (int how))
{
	volatile int zero = 0;
	operation *volatile data = (operation *)&counter;
	host_lock();
	switch (how) {
	case 1: *(volatile int *)0x18 = 1; break;
	case 2: return how / zero;
	case 3: return data(1);
	case 4: __builtin_trap();
	case 5: return dig(1);
	case 6: for (;;) zero = 0;
	case 7: abort();
	case 8: exit(3);
	case 9: case 10: return host_again(-how);
	case 11: for (;;) puts("more and more");
	case 12: for (;;) host_lock();
	}
	return 7;
}
MULLION_EXPORT(int, speak, (const char *text))
{
	fputs("to stderr\n", stderr);
	printf("%s\nno end", text);
	return fflush(stdout);
}
