/* Switch tables, computed goto, function pointers, variable arguments,
 * structures by value, recursion, setjmp and longjmp, alloca, variable-length
 * arrays. */
#include <alloca.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int dense(int v)
{
	switch (v) {
	case 0: return 7;
	case 1: return v * 3;
	case 2: return 99;
	case 3: puts("three"); return 1;
	case 4: return -4;
	case 5: return 55;
	case 6: return dense(2) + 1;
	case 7: return 0;
	case 9: return 1000;
	default: return -1;
	}
}

static long interpret(const unsigned char *code)
{
	static const void *const labels[] = { &&stop, &&increment, &&twice, &&negate, &&jump_back };
	long value = 0;
	int rounds = 3;
	goto *labels[*code];
increment:
	value++;
	goto *labels[*++code];
twice:
	value *= 2;
	goto *labels[*++code];
negate:
	value = -value;
	goto *labels[*++code];
jump_back:
	if (rounds-- > 0)
		code -= 3;
	goto *labels[*++code];
stop:
	return value;
}

static double sum(int count, const char *kinds, ...)
{
	va_list list, copy;
	double total = 0;
	va_start(list, kinds);
	va_copy(copy, list);
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < count; i++)
			switch (kinds[i]) {
			case 'i': total += va_arg(list, int); break;
			case 'l': total += va_arg(list, long); break;
			case 'd': total += va_arg(list, double); break;
			case 'L': total += va_arg(list, long double); break;
			case 's': total += strlen(va_arg(list, char *)); break;
			}
		if (round == 0) {
			va_end(list);
			va_copy(list, copy);
		}
	}
	va_end(list);
	va_end(copy);
	return total;
}

struct small { int a; float b; };
struct pair { long a; double b; };
struct large { long values[9]; char tail; };

static struct small twist(struct small s) { return (struct small){ (int)s.b, (float)s.a }; }
static struct pair swap(struct pair p) { return (struct pair){ (long)p.b, (double)p.a }; }
static struct large fill(struct large l, long by, struct pair p)
{
	for (int i = 0; i < 9; i++)
		l.values[i] += by * i + p.a;
	l.tail++;
	return l;
}

static long many(long a, long b, long c, long d, long e, long f, long g, double h, long i, char j)
{
	return a + b * 2 + c * 3 + d * 4 + e * 5 + f * 6 + g * 7 + (long)h * 8 + i * 9 + j * 10;
}

static jmp_buf place;
static volatile int depth;

static void dive(int n)
{
	char pad[100];
	memset(pad, n, sizeof pad);
	depth++;
	if (n == 0)
		longjmp(place, 42);
	dive(n - 1);
	depth += pad[5];
}

static int compare(const void *l, const void *r)
{
	int a = *(const int *)l, b = *(const int *)r;
	return (a > b) - (a < b);
}

static unsigned ackermann(unsigned m, unsigned n)
{
	return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}

static long vla(int n)
{
	long values[n], total = 0;
	char *text = alloca(n * 3 + 1);
	for (int i = 0; i < n; i++) {
		values[i] = i * i;
		memcpy(text + i * 3, "abc", 3);
	}
	text[n * 3] = 0;
	for (int i = 0; i < n; i++)
		total += values[i];
	return total + (long)strlen(text);
}

__thread int thread_counter = 5;
static __thread long thread_array[4];

int main(void)
{
	for (int i = -1; i < 12; i++)
		printf("%d ", dense(i));
	const unsigned char program[] = { 1, 2, 1, 3, 2, 1, 1, 4, 2, 0 };
	printf("\n%ld\n", interpret(program));
	printf("%g\n", sum(8, "iidlLsdi", 1, 2, 3.5, 4L, 5.25L, "sixsix", 7.0, 8));
	struct small s = twist((struct small){ 3, 4.5f });
	struct pair p = swap((struct pair){ 10, 20.9 });
	struct large l = fill((struct large){ { 1, 2, 3 }, 'a' }, 100, p);
	printf("%d %g %ld %g %ld %ld %c\n", s.a, s.b, p.a, p.b, l.values[2], l.values[8], l.tail);
	long (*volatile pointer)(long, long, long, long, long, long, long, double, long, char) = many;
	printf("%ld\n", pointer(1, 2, 3, 4, 5, 6, 7, 8.5, 9, 10));
	int code = setjmp(place);
	if (code == 0)
		dive(20);
	printf("%d %d\n", code, depth);
	if (setjmp(place) < 3) {
		static int value;
		longjmp(place, ++value);
	}
	int values[1000];
	for (int i = 0; i < 1000; i++)
		values[i] = i * 7919 % 1009;
	qsort(values, 1000, sizeof values[0], compare);
	int key = values[500];
	printf("%d %d %ld\n", values[0], values[999], (int *)bsearch(&key, values, 1000, sizeof key, compare) - values);
	printf("%u\n", ackermann(2, 9));
	printf("%ld\n", vla(50));
	thread_array[2] = thread_counter++;
	printf("%d %ld\n", thread_counter, thread_array[2]);
	int (*volatile writer)(const char *) = puts;
	return writer("end") < 0;
}
