/* _Float16, which gcc passes in %xmm0 (compiler-rt's sources take it for an integer unless told of another compiler), and
 * computes with in float. */
#ifdef __FLT16_MANT_DIG__
typedef unsigned __int128 u128;

static _Float16 half_of(unsigned bits)
{
	union {
		unsigned short bits;
		_Float16 value;
	} half = { .bits = (unsigned short)bits };
	return half.value;
}

/* Rounds to nearest, ties to even. `exponent` is that of the leading bit, bit 63 of `significand`, whose bit 0 also stands
 * for all that was cut off below it. */
static _Float16 rounded(unsigned sign, int exponent, unsigned long significand)
{
	if (exponent < -25 || significand == 0)
		return half_of(sign << 15);
	if (exponent > 15)
		return half_of(sign << 15 | 0x7c00);
	/* Eleven bits stay, of which a subnormal number has fewer. */
	int cut = exponent < -14 ? 53 + (-14 - exponent) : 53;
	unsigned long kept = cut < 64 ? significand >> cut : 0;
	unsigned long tie = 1ul << (cut - 1), rest = significand & (tie - 1);
	if (significand & tie && (rest || kept & 1))
		kept++;
	/* The leading bit, where there is one, adds one to the exponent; so does a carry. */
	unsigned biased = exponent < -14 ? 0 : (unsigned)(exponent + 14);
	return half_of(sign << 15 | (biased << 10) + (unsigned)kept);
}

/* From the parts of a wider format with `width` bits of fraction, aligned at the top of `fraction`. */
static _Float16 narrow(unsigned sign, unsigned exponent, unsigned limit, unsigned long fraction)
{
	if (exponent == limit)
		return half_of(sign << 15 | 0x7c00 | (fraction ? 0x200 | (unsigned)(fraction >> 54) : 0));
	/* What is subnormal in a wider format is 0 here. */
	if (exponent == 0)
		return half_of(sign << 15);
	return rounded(sign, (int)exponent - (int)(limit / 2), 1ul << 63 | fraction >> 1 | (fraction & 1));
}

_Float16 __truncsfhf2(float from)
{
	union {
		float value;
		unsigned bits;
	} x = { from };
	return narrow(x.bits >> 31, x.bits >> 23 & 0xff, 0xff, (unsigned long)x.bits << 41);
}

_Float16 __truncdfhf2(double from)
{
	union {
		double value;
		unsigned long bits;
	} x = { from };
	return narrow((unsigned)(x.bits >> 63), x.bits >> 52 & 0x7ff, 0x7ff, x.bits << 12);
}

_Float16 __truncxfhf2(long double from)
{
	union {
		long double value;
		struct {
			unsigned long significand;
			unsigned short sign_exponent;
		} part;
	} x = { .value = from };
	return narrow(x.part.sign_exponent >> 15, x.part.sign_exponent & 0x7fff, 0x7fff, x.part.significand << 1);
}

_Float16 __trunctfhf2(__float128 from)
{
	union {
		__float128 value;
		u128 bits;
	} x = { from };
	unsigned long fraction = (unsigned long)(x.bits >> 48), below = (unsigned long)(x.bits << 16);
	return narrow((unsigned)(x.bits >> 127), (unsigned)(x.bits >> 112) & 0x7fff, 0x7fff, fraction | !!below);
}

float __extendhfsf2(_Float16 from)
{
	union {
		_Float16 value;
		unsigned short bits;
	} x = { from };
	union {
		unsigned bits;
		float value;
	} y;
	unsigned sign = (unsigned)x.bits >> 15, exponent = x.bits >> 10 & 0x1f, fraction = x.bits & 0x3ff;
	if (exponent == 0) {
		/* A whole number of 2^-24. */
		y.value = (float)(int)fraction * 0x1p-24f;
		y.bits |= sign << 31;
	} else {
		exponent = exponent == 0x1f ? 0xff : exponent + 112;
		y.bits = sign << 31 | exponent << 23 | fraction << 13;
		/* A NaN becomes quiet. */
		if (exponent == 0xff && fraction)
			y.bits |= 1u << 22;
	}
	return y.value;
}

double __extendhfdf2(_Float16 from)
{
	return __extendhfsf2(from);
}

long double __extendhfxf2(_Float16 from)
{
	return __extendhfsf2(from);
}

__float128 __extendhftf2(_Float16 from)
{
	return __extendhfsf2(from);
}

int __eqhf2(_Float16 a, _Float16 b)
{
	return __extendhfsf2(a) != __extendhfsf2(b);
}

int __nehf2(_Float16 a, _Float16 b)
{
	return __eqhf2(a, b);
}

__int128 __fixhfti(_Float16 from)
{
	return (long)__extendhfsf2(from);
}

unsigned __int128 __fixunshfti(_Float16 from)
{
	return (unsigned __int128)(__int128)(long)__extendhfsf2(from);
}

/* From 65520 on everything is infinite, and what is below is exact in float. */
_Float16 __floattihf(__int128 from)
{
	int near = from > 0x10000 ? 0x10000 : from < -0x10000 ? -0x10000 : (int)from;
	return __truncsfhf2((float)near);
}

_Float16 __floatuntihf(unsigned __int128 from)
{
	return __truncsfhf2(from > 0x10000 ? 0x1p16f : (float)(int)from);
}

float _Complex __mulsc3(float, float, float, float);
float _Complex __divsc3(float, float, float, float);

static _Float16 _Complex narrow_complex(float _Complex from)
{
	_Float16 _Complex result;
	__real__ result = __truncsfhf2(__real__ from);
	__imag__ result = __truncsfhf2(__imag__ from);
	return result;
}

_Float16 _Complex __mulhc3(_Float16 a, _Float16 b, _Float16 c, _Float16 d)
{
	return narrow_complex(__mulsc3(__extendhfsf2(a), __extendhfsf2(b), __extendhfsf2(c), __extendhfsf2(d)));
}

_Float16 _Complex __divhc3(_Float16 a, _Float16 b, _Float16 c, _Float16 d)
{
	return narrow_complex(__divsc3(__extendhfsf2(a), __extendhfsf2(b), __extendhfsf2(c), __extendhfsf2(d)));
}
#endif
