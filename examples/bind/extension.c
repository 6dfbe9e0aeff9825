/* The spelling checker. What it is called with has been copied in; what it calls
 * the host with will be copied out. */
#include "spell.h"
#include <ctype.h>
#include <stdio.h>

uint32_t check(const char *text, struct mistake *found, uint32_t most)
{
	uint32_t count = 0, start = 0;
	char line[40];
	for (uint32_t at = 0;; at++) {
		if (isalpha((unsigned char)text[at]))
			continue;
		if (at > start && !is_word(text + start, at - start)) {
			if (count < most)
				found[count] = (struct mistake){ start, at - start, 1 + (at - start > 5), 0 };
			count++;
		}
		if (!text[at])
			break;
		start = at + 1;
	}
	snprintf(line, sizeof line, "%u mistakes", count);
	note(line);
	return count;
}

void count_letters(const uint8_t *text, uint64_t length, uint32_t *counts)
{
	for (uint64_t i = 0; i < length; i++)
		if (isalpha(text[i]))
			counts[tolower(text[i]) - 'a']++;
}
