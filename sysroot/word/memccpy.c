#include "words.h"

void *memccpy(void *restrict to, const void *restrict from, int c, size_t n)
{
	unsigned char *d = to;
	const unsigned char *s = from;
	for (; n; n--)
		if ((*d++ = *s++) == (unsigned char)c)
			return d;
	return 0;
}
