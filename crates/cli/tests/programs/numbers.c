/* Integers of every width, 128-bit arithmetic, long double, __float128. */
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef unsigned __int128 u128;
typedef __int128 i128;

static volatile uint64_t seeds[] = { 0, 1, 2, 3, 7, 10, 0x7fffffff, 0x80000000, 0xffffffff, 0x123456789abcdef, UINT64_MAX / 3, INT64_MAX, UINT64_MAX };
#define SEEDS (sizeof seeds / sizeof seeds[0])

static void print(u128 v)
{
	printf("%016llx%016llx ", (unsigned long long)(v >> 64), (unsigned long long)v);
}

static void wide(void)
{
	for (unsigned i = 0; i < SEEDS; i++)
		for (unsigned j = 1; j < SEEDS; j++) {
			u128 a = (u128)seeds[i] * seeds[j] + seeds[(i + j) % SEEDS], b = ((u128)seeds[j] << (j * 5)) | 1;
			print(a / b);
			print(a % b);
			print((u128)((i128)-a / (i128)b));
			print((u128)((i128)-a % (i128)b));
			print(a << (i * 9) | a >> (j * 7));
			print((u128)((i128)a >> (i + j)));
			printf("%d %d %d\n", a < b, (i128)a < (i128)b, __builtin_popcountll((uint64_t)a) + __builtin_clzll((uint64_t)b | 1));
		}
}

static void floats(void)
{
	static volatile double values[] = { 0, -0.0, 1, -1.5, 3.14159265358979, 1e-300, 1e300, 12345678.9, 0.1, 1e15 };
	for (unsigned i = 0; i < sizeof values / sizeof values[0]; i++) {
		double d = values[i];
		long double l = d;
		__float128 q = d;
		l = l * l / 3 + 1e-20L;
		q = q / 7 + (__float128)l;
		printf("%.17g %a %.21Lg %.20Lg ", d, d, l, (long double)q);
		printf("%.17g %.17g %.17g ", sqrt(fabs(d)), fmod(d, 0.7), floor(d) + ceil(d) + trunc(d) + rint(d));
		printf("%d %d %d\n", q > d, q == (__float128)d, isnan(d / d));
		print((u128)(fabs(d) < 1e30 ? fabs(d) : 0));
		printf("%.17g %.17g %g\n", (double)(u128)seeds[i], (double)(i128)-(i128)seeds[i], (double)(float)d);
		printf("%lld %llu %ld\n", (long long)(fabs(d) < 1e18 ? d : 0), (unsigned long long)(fabs(d) < 1e18 ? fabs(d) : 0), lrint(fabs(d) < 1e9 ? d : 0));
	}
	_Complex double z = 3.0 + 4.0i, w = 1.0 - 2.0i;
	z = z * w / (w + 1);
	printf("%.15g %.15g\n", __real__ z, __imag__ z);
}

int main(void)
{
	wide();
	floats();
	printf("%d %u %ld %lu\n", INT_MIN, UINT_MAX, LONG_MIN, ULONG_MAX);
	printf("%s\n", strtod("1e-5x", 0) == 1e-5 ? "strtod" : "no");
	return 0;
}
