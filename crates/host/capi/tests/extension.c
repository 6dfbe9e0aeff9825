/* What the tests of the C and C++ interfaces call. */
#include <mullion/ext.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

MULLION_IMPORT(int, host_report, (const char *text, int number, double real, float single));
MULLION_IMPORT(int, host_nested, (int (*function)(int), int value));

static int state = 5;
static int answer_at_start;
__attribute__((constructor)) static void begin(void)
{
	answer_at_start = host_report("begin", state, 0.5, 0.25f);
}

MULLION_EXPORT(int, add, (int a, int b)) { return a + b; }
MULLION_EXPORT(double, scale, (double a, float b, int c)) { return a * b * c; }
MULLION_EXPORT(float, third, (float a)) { return a / 3; }
MULLION_EXPORT(int, next, (void)) { return ++state; }
MULLION_EXPORT(int, at_start, (void)) { return answer_at_start; }
MULLION_EXPORT(const char *, name, (void)) { return "everything"; }
MULLION_EXPORT(int64_t, total, (const int64_t *list, uint64_t count))
{
	int64_t sum = 0;
	while (count--)
		sum += *list++;
	return sum;
}
MULLION_EXPORT(void, upper, (char *text))
{
	for (; *text; text++)
		if (*text >= 'a' && *text <= 'z')
			*text -= 32;
}
MULLION_EXPORT(int, report, (int number)) { return host_report("report", number, 1.5, 2.5f); }
MULLION_EXPORT(void, hold_and_write, (int *place)) { *place = host_report("hold", 1, 1.5, 2.5f); }
MULLION_EXPORT(int, report_minus, (int number)) { return host_report("report", -1, number, 2.5f); }
static int twice(int value) { return 2 * value; }
typedef int operation(int);
MULLION_EXPORT(operation *, get_twice, (void)) { return twice; }
struct box { int32_t width; uint8_t kind[4]; double weight; };
MULLION_EXPORT(struct box *, get_box, (void))
{
	static struct box box = { 2147483647, { 1, 2, 3, 4 }, 2.5 };
	return &box;
}
MULLION_EXPORT(int, nest, (int value)) { return host_nested(twice, value) + 1; }
MULLION_EXPORT(int, say, (const char *text)) { puts(text); return fflush(stdout); }
MULLION_EXPORT(void, crash, (int *place)) { *place = 1; }
MULLION_EXPORT(void, spin, (void)) { for (volatile int go = 1; go;) {} }
