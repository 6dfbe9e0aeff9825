#include <string.h>
#include "mullion_vector.h"

char *__strchrnul(const char *s, int c)
{
	const vector *at = block(s), zero = splat(0), wanted = splat(c);
	unsigned bits = from(mask((*at == zero) | (*at == wanted)), s);
	while (!bits) {
		vector v = *++at;
		bits = mask((v == zero) | (v == wanted));
	}
	return (char *)at + __builtin_ctz(bits);
}

weak_alias(__strchrnul, strchrnul);
