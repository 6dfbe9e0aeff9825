/* Capitalises words. Its buffer for one word is too small for some languages,
 * and it checks nothing. */
#include <mullion/ext.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

MULLION_IMPORT(void, emit, (const char *word));

MULLION_EXPORT(void, line, (const char *text))
{
	char *word = malloc(24), *end = word;
	for (;; text++) {
		if (isalpha((unsigned char)*text)) {
			*end = end == word ? toupper((unsigned char)*text) : *text;
			end++;
			continue;
		}
		if (end != word) {
			*end = 0;
			if (end - word > 24) {
				fprintf(stderr, "overran the buffer by %ld bytes\n", (long)(end - word - 24));
				abort();
			}
			emit(word);
			end = word;
		}
		if (!*text)
			break;
	}
	free(word);
}
