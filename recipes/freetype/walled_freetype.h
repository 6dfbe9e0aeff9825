/* FreeType behind a wall. One thread at a time: a domain has one font. */
#ifndef WALLED_FREETYPE_H
#define WALLED_FREETYPE_H

#include <mullion/bind.h>
#include <stdint.h>

struct glyph {
	uint32_t width, height; /* of the picture, in pixels */
	int32_t left, top;      /* from the pen to its upper left corner, in pixels; `top` counts upwards */
	int32_t advance;        /* of the pen, in 64ths of a pixel */
	uint32_t known;         /* whether the font has the letter; if not, it is the font's own sign for that */
};

/* Takes a font file for the calls below, instead of the one before. Returns 0, or FreeType's error. */
MULLION_EXTENSION int32_t take(const uint8_t *file MULLION_IN(length), uint64_t length);

/* The font's family and style, as a text that ends in 0. Returns its length, or 0 without a font. */
MULLION_EXTENSION uint64_t name(char *room MULLION_OUT(size), uint64_t size);

/* Renders a letter, given by its number in Unicode, so many pixels high. Each byte of `grey` is one pixel, row by
 * row. Returns 0, FreeType's error, or -1 if `grey` is too small: then `found` says what it needs. */
MULLION_EXTENSION int32_t render(uint32_t letter, uint32_t pixels, struct glyph *found MULLION_OUT(1),
                                 uint8_t *grey MULLION_OUT(size), uint64_t size);

#endif
