/* expat behind a wall. */
#ifndef WALLED_EXPAT_H
#define WALLED_EXPAT_H

#include <mullion/bind.h>
#include <stdint.h>

struct place {
	uint64_t line, column; /* the line is counted from 1, the column from 0 */
};

/* Parses a whole document, and calls the host's functions below on the way. Returns 0, or
 * expat's error; `found` is where. Entities that grow without bound are an error of expat's. */
MULLION_EXTENSION int32_t parse(const uint8_t *document MULLION_IN(length), uint64_t length,
                                struct place *found MULLION_OUT(1));

/* What an error means, as a text that ends in 0. Returns its length. */
MULLION_EXTENSION uint64_t explain(int32_t error, char *room MULLION_OUT(size), uint64_t size);

/* An element begins. Its attributes come first, one by one. */
MULLION_HOST void attribute(const char *name MULLION_STRING, const char *value MULLION_STRING);
MULLION_HOST void element_begins(const char *name MULLION_STRING);
MULLION_HOST void element_ends(const char *name MULLION_STRING);
/* Text between them, maybe in pieces. */
MULLION_HOST void text(const char *letters MULLION_IN(length), uint32_t length);

#endif
