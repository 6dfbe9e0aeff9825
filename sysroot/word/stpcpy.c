#include "words.h"

char *__stpcpy(char *restrict to, const char *restrict from)
{
	while ((*to = *from))
		to++, from++;
	return to;
}

char *stpcpy(char *restrict, const char *restrict) __attribute__((__weak__, __alias__("__stpcpy")));
