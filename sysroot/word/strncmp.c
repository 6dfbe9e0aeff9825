#include "words.h"

int strncmp(const char *left, const char *right, size_t n)
{
	const unsigned char *l = (const void *)left, *r = (const void *)right;
	if (!n)
		return 0;
	while (--n && *l && *l == *r)
		l++, r++;
	return *l - *r;
}
