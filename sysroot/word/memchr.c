#include "words.h"

void *memchr(const void *source, int c, size_t n)
{
	const unsigned char *s = source;
	word wanted = ONES * (unsigned char)c;
	for (; n && !ALIGNED(s); s++, n--)
		if (*s == (unsigned char)c)
			return (void *)s;
	for (; n >= sizeof(word) && !HAS_ZERO(*(const word *)s ^ wanted); n -= sizeof(word))
		s += sizeof(word);
	for (; n; s++, n--)
		if (*s == (unsigned char)c)
			return (void *)s;
	return 0;
}
