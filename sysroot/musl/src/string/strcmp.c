#include <string.h>
#include "mullion_vector.h"

/* Whether 16 bytes from `p` stay on its page. */
static inline int fits(const char *p)
{
	return ((uintptr_t)p & 4095) <= 4096 - 16;
}

int strcmp(const char *l, const char *r)
{
	const vector zero = splat(0);
	for (;;) {
		if (fits(l) && fits(r)) {
			vector a = LOAD(l);
			/* A byte where the strings end or differ. */
			unsigned bits = mask((a == zero) | (a != LOAD(r)));
			if (bits) {
				int i = __builtin_ctz(bits);
				return (unsigned char)l[i] - (unsigned char)r[i];
			}
			l += 16;
			r += 16;
		} else {
			for (int i = 0; i < 16; i++, l++, r++)
				if (*l != *r || !*l)
					return (unsigned char)*l - (unsigned char)*r;
		}
	}
}
