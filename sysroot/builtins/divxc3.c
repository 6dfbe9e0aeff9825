#define REAL long double
#define COMPLEX long double _Complex
#define ABS __builtin_fabsl
#define SIGN __builtin_copysignl
#define LARGEST __LDBL_MAX__
#define SMALLEST __LDBL_MIN__
#define STEP __LDBL_EPSILON__
#include "complex_division.h"

COMPLEX __divxc3(REAL a, REAL b, REAL c, REAL d)
{
	return quotient(a, b, c, d);
}
