typedef float _Complex quad_complex __attribute__((mode(TC)));
#define REAL __float128
#define COMPLEX quad_complex
#define ABS __builtin_fabsf128
#define SIGN __builtin_copysignf128
#define LARGEST __FLT128_MAX__
#define SMALLEST __FLT128_MIN__
#define STEP __FLT128_EPSILON__
#include "complex_division.h"

COMPLEX __divtc3(REAL a, REAL b, REAL c, REAL d)
{
	return quotient(a, b, c, d);
}
