#include <string.h>
#include "mullion_vector.h"

void *memchr(const void *source, int c, size_t n)
{
	const char *s = source, *found;
	const vector *at = block(s), wanted = splat(c);
	if (!n)
		return 0;
	/* The end as a distance from the first block: `s + n` may overflow. */
	size_t reach = n + ((uintptr_t)s & 15), seen = 16;
	if (reach < n)
		reach = (size_t)-1;
	unsigned bits = from(mask(*at == wanted), s);
	while (!bits) {
		if (seen >= reach)
			return 0;
		at++;
		if (starts_line(at)) {
			for (; reach - seen > 64; at += 4, seen += 64)
				if (mask((at[0] == wanted) | (at[1] == wanted) | (at[2] == wanted) | (at[3] == wanted)))
					break;
		}
		bits = mask(*at == wanted);
		seen += 16;
	}
	found = (const char *)at + __builtin_ctz(bits);
	return (size_t)(found - s) < n ? (void *)found : 0;
}
