#include "words.h"

char *__strchrnul(const char *s, int c)
{
	word wanted = ONES * (unsigned char)c;
	for (; !ALIGNED(s); s++)
		if (!*s || *s == (char)c)
			return (char *)s;
	while (!HAS_ZERO(*(const word *)s) && !HAS_ZERO(*(const word *)s ^ wanted))
		s += sizeof(word);
	while (*s && *s != (char)c)
		s++;
	return (char *)s;
}

char *strchrnul(const char *, int) __attribute__((__weak__, __alias__("__strchrnul")));
