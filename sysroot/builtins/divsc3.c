/* In double nothing overflows or underflows on the way. */
#define PLAIN
#define REAL double
#define COMPLEX double _Complex
#define SIGN __builtin_copysign
#include "complex_division.h"

float _Complex __divsc3(float a, float b, float c, float d)
{
	double _Complex wide = quotient(a, b, c, d);
	float _Complex result;
	__real__ result = (float)__real__ wide;
	__imag__ result = (float)__imag__ wide;
	return result;
}
