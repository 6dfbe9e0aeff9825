#include <string.h>
#include "mullion_vector.h"

size_t strlen(const char *s)
{
	typedef char plain __attribute__((vector_size(16)));
	const vector *at = block(s), zero = splat(0);
	unsigned bits = from(mask(*at == zero), s);
	while (!bits) {
		if (starts_line(++at)) {
			/* The least of four bytes is zero if one of them is. */
			vector least;
			for (;; at += 4) {
				least = (vector)__builtin_ia32_pminub128(
					__builtin_ia32_pminub128((plain)at[0], (plain)at[1]),
					__builtin_ia32_pminub128((plain)at[2], (plain)at[3]));
				if (mask(least == zero))
					break;
			}
			while (!(bits = mask(*at == zero)))
				at++;
			break;
		}
		bits = mask(*at == zero);
	}
	return (size_t)((const char *)at - s) + (size_t)__builtin_ctz(bits);
}
