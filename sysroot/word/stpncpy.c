#include "words.h"

char *__stpncpy(char *restrict to, const char *restrict from, size_t n)
{
	for (; n && (*to = *from); n--)
		to++, from++;
	memset(to, 0, n);
	return to;
}

char *stpncpy(char *restrict, const char *restrict, size_t) __attribute__((__weak__, __alias__("__stpncpy")));
