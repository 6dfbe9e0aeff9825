/* A spelling checker: what host and extension are to each other. */
#ifndef SPELL_H
#define SPELL_H

#include <mullion/bind.h>
#include <stdint.h>

struct mistake {
	uint32_t start, length; /* in the text, in bytes */
	int32_t severity;
	uint32_t reserved;
};

/* Finds at most `most` mistakes; returns how many there are. */
MULLION_EXTENSION uint32_t check(const char *text MULLION_STRING,
                                 struct mistake *found MULLION_OUT(most), uint32_t most);

/* Counts letters: `counts` has 26 numbers, which grow. */
MULLION_EXTENSION void count_letters(const uint8_t *text MULLION_IN(length), uint64_t length,
                                     uint32_t *counts MULLION_INOUT(26));

/* Whether a word is in the host's dictionary. */
MULLION_HOST _Bool is_word(const char *letters MULLION_IN(length), uint32_t length);

/* Something for the host's log. */
MULLION_HOST void note(const char *text MULLION_STRING);

#endif
