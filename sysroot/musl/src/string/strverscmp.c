/* In musl's place: 1.2.3 takes a letter for a digit string of no length, so "UNKNOWN" came in front of "4.19". */
#define _GNU_SOURCE
#include <ctype.h>
#include <string.h>

int strverscmp(const char *left, const char *right)
{
	const unsigned char *l = (const void *)left, *r = (const void *)right;
	size_t i, digits = 0, j;
	int zeros = 1;

	/* The longest common beginning, and the digits at its end. */
	for (i = 0; l[i] == r[i]; i++) {
		if (!l[i])
			return 0;
		if (!isdigit(l[i])) {
			digits = i + 1;
			zeros = 1;
		} else if (l[i] != '0') {
			zeros = 0;
		}
	}
	if (l[digits] - '1' < 9U && r[digits] - '1' < 9U) {
		/* Numbers: the longer one is the greater one. */
		for (j = i; isdigit(l[j]); j++)
			if (!isdigit(r[j]))
				return 1;
		if (isdigit(r[j]))
			return -1;
	} else if (zeros && digits < i && (isdigit(l[i]) || isdigit(r[i]))) {
		/* Fractions: digits come in front of others. */
		return (unsigned char)(l[i] - '0') - (unsigned char)(r[i] - '0');
	}
	return l[i] - r[i];
}
