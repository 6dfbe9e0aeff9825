/* libxml2 behind a wall. */
#ifndef WALLED_LIBXML2_H
#define WALLED_LIBXML2_H

#include <mullion/bind.h>
#include <stdint.h>

/* Takes a document for the calls below, instead of the one before. Returns 0, or the line of the first error. */
MULLION_EXTENSION int32_t take(const uint8_t *document MULLION_IN(length), uint64_t length);

/* Asks the document by XPath. The answer is a text: each node's text on a line of its own, or the number,
 * the string, the truth. Returns the bytes written, -1 if the question is wrong, or -2 if `room` is too small. */
MULLION_EXTENSION int64_t ask(const char *path MULLION_STRING, char *room MULLION_OUT(size), uint64_t size);

/* The document in its canonical form (C14N 1.0). Returns the bytes written, -1 without a document, or -2 if
 * `room` is too small. */
MULLION_EXTENSION int64_t canonical(char *room MULLION_OUT(size), uint64_t size);

/* What the last call did not like, as a text that ends in 0. Returns its length. */
MULLION_EXTENSION uint64_t explain(char *room MULLION_OUT(size), uint64_t size);

#endif
