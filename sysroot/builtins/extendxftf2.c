/* Between the x87 format (64 bits of significand, the leading one written out)
 * and the 128-bit one (112, the leading one implied). The exponents are alike. */
typedef unsigned __int128 u128;
typedef union {
	long double value;
	struct {
		unsigned long significand;
		unsigned short sign_exponent;
	} part;
} extended;
typedef union {
	__float128 value;
	u128 bits;
} quad;

#define LEADING (1ul << 63)

__float128 __extendxftf2(long double from)
{
	extended x = { .value = from };
	unsigned long significand = x.part.significand;
	unsigned exponent = x.part.sign_exponent & 0x7fff, sign = x.part.sign_exponent >> 15;
	if (exponent == 0 && significand & LEADING)
		exponent = 1;
	quad q = { .bits = (u128)sign << 127 | (u128)exponent << 112 | (u128)(significand & ~LEADING) << 49 };
	/* A NaN stays one, and becomes quiet. */
	if (exponent == 0x7fff && significand & ~LEADING)
		q.bits |= (u128)1 << 111;
	return q.value;
}

long double __trunctfxf2(__float128 from)
{
	quad q = { .value = from };
	unsigned sign = (unsigned)(q.bits >> 127), exponent = (unsigned)(q.bits >> 112) & 0x7fff;
	u128 fraction = q.bits & (((u128)1 << 112) - 1);
	unsigned long significand = (unsigned long)(fraction >> 49) | (exponent ? LEADING : 0);
	unsigned long rest = (unsigned long)fraction & ((1ul << 49) - 1), half = 1ul << 48;
	if (exponent == 0x7fff) {
		if (fraction)
			significand |= LEADING >> 1;
	} else if (rest > half || (rest == half && significand & 1)) {
		if (++significand == 0) {
			significand = LEADING;
			exponent++;
		} else if (exponent == 0 && significand & LEADING) {
			exponent = 1;
		}
	}
	extended x = { .part = { significand, (unsigned short)(sign << 15 | exponent) } };
	return x.value;
}
