#include <string.h>
#include "mullion_vector.h"

size_t strlen(const char *s)
{
	const vector *at = block(s), zero = splat(0);
	unsigned bits = from(mask(*at == zero), s);
	while (!bits)
		bits = mask(*++at == zero);
	return (size_t)((const char *)at - s) + (size_t)__builtin_ctz(bits);
}
