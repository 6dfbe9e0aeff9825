#define REAL double
#define COMPLEX double _Complex
#define ABS __builtin_fabs
#define SIGN __builtin_copysign
#define LARGEST __DBL_MAX__
#define SMALLEST __DBL_MIN__
#define STEP __DBL_EPSILON__
#include "complex_division.h"

COMPLEX __divdc3(REAL a, REAL b, REAL c, REAL d)
{
	return quotient(a, b, c, d);
}
