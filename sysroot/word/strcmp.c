#include "words.h"

int strcmp(const char *left, const char *right)
{
	const unsigned char *l = (const void *)left, *r = (const void *)right;
	while (*l && *l == *r)
		l++, r++;
	return *l - *r;
}
