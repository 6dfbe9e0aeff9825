#include <string.h>
#include "mullion_vector.h"

static inline int fits(const char *p)
{
	return ((uintptr_t)p & 4095) <= 4096 - 16;
}

int strncmp(const char *l, const char *r, size_t n)
{
	const vector zero = splat(0);
	while (n) {
		if (fits(l) && fits(r)) {
			vector a = LOAD(l);
			unsigned bits = mask((a == zero) | (a != LOAD(r)));
			if (bits) {
				size_t i = (size_t)__builtin_ctz(bits);
				return i < n ? (unsigned char)l[i] - (unsigned char)r[i] : 0;
			}
			if (n <= 16)
				return 0;
			l += 16;
			r += 16;
			n -= 16;
		} else {
			for (int i = 0; i < 16 && n; i++, l++, r++, n--)
				if (*l != *r || !*l)
					return (unsigned char)*l - (unsigned char)*r;
		}
	}
	return 0;
}
