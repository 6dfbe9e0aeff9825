/* Decimal floating point, by the bits of its values: operations, comparisons, conversions from and to everything. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static void bits(const char *what, const void *value, size_t size)
{
	printf("%s", what);
	for (size_t at = size; at; at--)
		printf("%02x", ((const unsigned char *)value)[at - 1]);
	putchar('\n');
}
#define SAY(what, type, value)                        \
	do {                                          \
		type said = (value);                  \
		bits(what " ", &said, sizeof said);   \
	} while (0)

#define ALL(name, type, suffix)                                                                                       \
	static void name(volatile type *list, int count)                                                              \
	{                                                                                                             \
		for (int one = 0; one < count; one++)                                                                 \
			for (int other = 0; other < count; other++) {                                                 \
				type a = list[one], b = list[other];                                                  \
				SAY(#name " sum", type, a + b);                                                       \
				SAY(#name " difference", type, a - b);                                                \
				SAY(#name " product", type, a *b);                                                    \
				SAY(#name " quotient", type, a / b);                                                  \
				printf("%d%d%d%d%d%d %d\n", a == b, a != b, a < b, a <= b, a > b, a >= b,             \
				       __builtin_isunordered(a, b));                                                  \
			}                                                                                             \
		for (int one = 0; one < count; one++) {                                                               \
			type a = list[one];                                                                           \
			SAY("d32", _Decimal32, (_Decimal32)a);                                                        \
			SAY("d64", _Decimal64, (_Decimal64)a);                                                        \
			SAY("d128", _Decimal128, (_Decimal128)a);                                                     \
			SAY("float", float, (float)a);                                                                \
			SAY("double", double, (double)a);                                                             \
			printf("long %.21Lg\n", (long double)a);                                                      \
			SAY("quad", __float128, (__float128)a);                                                       \
			if (a > -100000 && a < 100000)                                                                \
				printf("%d %lld\n", (int)a, (long long)a);                                            \
			if (a > 0 && a < 100000)                                                                      \
				printf("%u %llu\n", (unsigned)a, (unsigned long long)a);                              \
		}                                                                                                     \
	}
ALL(small, _Decimal32, df)
ALL(middle, _Decimal64, dd)
ALL(large, _Decimal128, dl)

int main(void)
{
	volatile _Decimal32 s[] = {0.1df, -3.75df, 1234567.df, 9.999999e96df, 1e-95df, 0.df, -0.0df, 7.00df, __builtin_infd32()};
	volatile _Decimal64 m[] = {0.1dd, -3.75dd, 1234567890123456.dd, 9.99e384dd, 1e-383dd, 0.dd, 2.50dd, 7.00dd, __builtin_infd64()};
	volatile _Decimal128 l[] = {0.1dl, -3.75dl, 1234567890123456789012345678901234.dl, 9.99e6144dl, 1e-6143dl, 0.dl, 2.50dl, 7.00dl};
	small(s, sizeof s / sizeof *s);
	middle(m, sizeof m / sizeof *m);
	large(l, sizeof l / sizeof *l);

	volatile int whole = -12345;
	volatile unsigned long long wide = 18446744073709551615u;
	volatile float single = 0.1f;
	volatile double twice = 1e-300;
	volatile long double thrice = 3.14159265358979323846L;
	volatile __float128 quad = 2 / (__float128)3;
	SAY("from", _Decimal32, whole);
	SAY("from", _Decimal64, whole);
	SAY("from", _Decimal128, whole);
	SAY("from", _Decimal32, wide);
	SAY("from", _Decimal64, wide);
	SAY("from", _Decimal128, wide);
	SAY("from", _Decimal32, single);
	SAY("from", _Decimal64, single);
	SAY("from", _Decimal128, single);
	SAY("from", _Decimal32, twice);
	SAY("from", _Decimal64, twice);
	SAY("from", _Decimal128, twice);
	SAY("from", _Decimal32, thrice);
	SAY("from", _Decimal64, thrice);
	SAY("from", _Decimal128, thrice);
	SAY("from", _Decimal32, quad);
	SAY("from", _Decimal64, quad);
	SAY("from", _Decimal128, quad);
	return 0;
}
