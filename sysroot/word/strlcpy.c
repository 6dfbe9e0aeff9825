#define _BSD_SOURCE
#include "words.h"

size_t strlcpy(char *to, const char *from, size_t n)
{
	size_t length = strlen(from);
	if (n) {
		size_t copied = length < n ? length : n - 1;
		memcpy(to, from, copied);
		to[copied] = 0;
	}
	return length;
}
