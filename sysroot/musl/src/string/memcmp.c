#include <string.h>
#include "mullion_vector.h"

static inline int order(uint64_t a, uint64_t b)
{
	a = __builtin_bswap64(a);
	b = __builtin_bswap64(b);
	return a < b ? -1 : a > b;
}

static inline int difference(const unsigned char *l, const unsigned char *r, unsigned bits)
{
	int i = __builtin_ctz(bits);
	return l[i] - r[i];
}

int memcmp(const void *left, const void *right, size_t n)
{
	const unsigned char *l = left, *r = right;
	unsigned bits;
	if (n < 16) {
		if (n >= 8) {
			uint64_t a = LOAD64(l), b = LOAD64(r);
			return a != b ? order(a, b) : order(LOAD64(l + n - 8), LOAD64(r + n - 8));
		}
		if (n >= 4) {
			/* The later bytes below the first four: they decide only if those are equal. */
			uint64_t a = (uint64_t)__builtin_bswap32(LOAD32(l)) << 32 | __builtin_bswap32(LOAD32(l + n - 4));
			uint64_t b = (uint64_t)__builtin_bswap32(LOAD32(r)) << 32 | __builtin_bswap32(LOAD32(r + n - 4));
			return a < b ? -1 : a > b;
		}
		for (; n; n--, l++, r++)
			if (*l != *r)
				return *l - *r;
		return 0;
	}
	size_t i = 0;
	for (; i + 64 <= n; i += 64) {
		vector same = (LOAD(l + i) == LOAD(r + i)) & (LOAD(l + i + 16) == LOAD(r + i + 16))
			& (LOAD(l + i + 32) == LOAD(r + i + 32)) & (LOAD(l + i + 48) == LOAD(r + i + 48));
		if (mask(same) != 0xffff)
			break;
	}
	for (; i + 16 <= n; i += 16) {
		bits = mask(LOAD(l + i) == LOAD(r + i)) ^ 0xffff;
		if (bits)
			return difference(l + i, r + i, bits);
	}
	bits = mask(LOAD(l + n - 16) == LOAD(r + n - 16)) ^ 0xffff;
	return bits ? difference(l + n - 16, r + n - 16, bits) : 0;
}
