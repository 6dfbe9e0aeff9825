/* For a debugger: functions of one line, seen outside and not, and one of several lines. */
#include <stdio.h>

int add(int a, int b) { return a + b; }
static double scale(double x, float y, const char *s) { return x * y + s[0]; }
static int *chosen(int *from, short at) { int *found = from + at; return found; }
long sum(long a, long b,
         long c)
{
	long result = a + b;
	return result + c;
}

int main(void)
{
	int values[] = {1, 20, 300};
	printf("%d %.0f\n", add(3, 4), scale(2.0, 3.0f, "a"));
	printf("%d %ld\n", *chosen(values, 2), sum(5, 6, 7));
	return 0;
}
