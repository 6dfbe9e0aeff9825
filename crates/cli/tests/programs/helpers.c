/* The compiler's helper functions: complex division at the ends of the range, _Float16, counts of sign bits, atomics. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static unsigned long state = 88172645463325252ul;

static unsigned long number(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	return state ^= state << 17;
}

/* Any bits; often a special value. */
static double any(void)
{
	static const unsigned long special[] = { 0, 1ul << 63, 0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000, 1,
		0x7fefffffffffffff, 0x3ff0000000000000, 0x3ff0040000000000, 0x3e80000000000000, 0x40efffdfffffffff, 0x40effe0000000000 };
	unsigned long bits = number();
	if (bits % 8 == 0)
		bits = special[number() % (sizeof special / sizeof *special)];
	double value;
	memcpy(&value, &bits, sizeof value);
	return value;
}

/* A NaN's sign and payload are nobody's promise. */
static unsigned long sum;
#define COUNT(value) do { \
	__typeof__(value) counted = (value); \
	unsigned char bytes[sizeof counted] = { 0 }; \
	if (counted == counted) \
		memcpy(bytes, &counted, sizeof(long double) == sizeof counted ? 10 : sizeof counted); \
	for (unsigned i = 0; i < sizeof bytes; i++) \
		sum = sum * 31 + bytes[i]; \
} while (0)
#define COUNT_QUAD(value) do { \
	__float128 counted = (value); \
	unsigned long words[2] = { 0 }; \
	if (counted == counted) \
		memcpy(words, &counted, sizeof words); \
	sum = (sum * 31 + words[0]) * 31 + words[1]; \
} while (0)

static void division(void)
{
	for (int i = 0; i < 20000; i++) {
		double a = any(), b = any(), c = any(), d = any();
		double _Complex x = __builtin_complex(a, b) / __builtin_complex(c, d);
		float _Complex y = __builtin_complex((float)a, (float)b) / __builtin_complex((float)c, (float)d);
		long double _Complex z = __builtin_complex((long double)a, (long double)b) / __builtin_complex((long double)c, (long double)d);
		/* The sign of a zero depends on the order of the sums. */
		COUNT(__real__ x + 0);
		COUNT(__imag__ x + 0);
		COUNT(__real__ y + 0);
		COUNT(__imag__ y + 0);
		COUNT(__real__ z + 0);
		COUNT(__imag__ z + 0);
	}
	printf("division %lx\n", sum);
}

static void half(void)
{
#ifdef __FLT16_MANT_DIG__
	for (unsigned bits = 0; bits < 65536; bits++) {
		volatile _Float16 h;
		unsigned short narrow = (unsigned short)bits;
		memcpy((void *)&h, &narrow, sizeof narrow);
		COUNT((float)h);
		COUNT((double)h);
		COUNT((long double)h);
		COUNT_QUAD((__float128)h);
		/* Ties and their neighbours. */
		for (int ulps = -1; ulps <= 1; ulps++) {
			volatile double d = (double)h * (1 + 0x1p-11) * (1 + ulps * 0x1p-52);
			volatile float f = (float)d;
			COUNT((_Float16)f);
			COUNT((_Float16)d);
			COUNT((_Float16)((long double)d + (long double)d * ulps * 0x1p-63L));
			COUNT((_Float16)((__float128)d + (__float128)d * ulps * 0x1p-110Q));
		}
	}
	for (int i = 0; i < 20000; i++) {
		volatile double d = any();
		volatile float f = (float)d;
		COUNT((_Float16)f);
		COUNT((_Float16)d);
		volatile __int128 w = (__int128)number() - (__int128)number() >> number() % 100;
		volatile unsigned __int128 u = (unsigned __int128)w;
		volatile _Float16 h = (_Float16)w;
		COUNT(h);
		COUNT((_Float16)u);
		if (w > -65000 && w < 65000)
			COUNT((__int128)h);
	}
	volatile _Float16 a = 3, b = 4;
	printf("half %lx %d\n", sum, a == b || a != 3);
#endif
}

static void bits(void)
{
	for (int i = 0; i < 1000; i++) {
		volatile long value = (long)number() >> number() % 64;
		COUNT(__builtin_clrsbl(value));
		COUNT(__builtin_clrsbl(~value));
	}
	printf("bits %lx %d %d\n", sum, __builtin_clrsbl(0), __builtin_clrsbl(-1));
}

struct odd {
	char bytes[13];
};

static void atomics(void)
{
	static _Atomic struct odd object;
	struct odd other = { "twelve bytes" }, seen = { "" };
	printf("%d ", atomic_compare_exchange_strong(&object, &seen, other));
	printf("%d ", atomic_compare_exchange_strong(&object, &seen, (struct odd){ "another" }));
	printf("%s %s\n", atomic_exchange(&object, (struct odd){ "last" }).bytes, seen.bytes);
	static _Atomic unsigned __int128 wide = 40;
	wide += 2;
	printf("%lu ", (unsigned long)atomic_fetch_xor(&wide, 1));
	printf("%lu\n", (unsigned long)wide);
	static _Atomic double real = 1.5;
	real += 2;
	printf("%g\n", real);
	printf("%d\n", !!__builtin_cpu_supports("sse2"));
}

int main(void)
{
	division();
	half();
	bits();
	atomics();
	return 0;
}
