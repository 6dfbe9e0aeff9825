#include "words.h"

size_t strlen(const char *s)
{
	const char *at = s;
	for (; !ALIGNED(at); at++)
		if (!*at)
			return at - s;
	while (!HAS_ZERO(*(const word *)at))
		at += sizeof(word);
	while (*at)
		at++;
	return at - s;
}
