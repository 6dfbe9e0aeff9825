/* libjpeg-turbo behind a wall: JPEG files from and to pixels of four bytes: red, green, blue, opacity. */
#ifndef WALLED_LIBJPEG_TURBO_H
#define WALLED_LIBJPEG_TURBO_H

#include <mullion/bind.h>
#include <stdint.h>

struct measures {
	uint32_t width, height; /* in pixels, at most 16,384 each */
};

/* How large the picture in a file is. Returns 0, or -1: it is no JPEG file, or too large. */
MULLION_EXTENSION int32_t measure(const uint8_t *file MULLION_IN(length), uint64_t length,
                                  struct measures *found MULLION_OUT(1));

/* Decodes into `pixels`, row by row. Returns 0, or -1: the file is damaged, or `size` is not four times width times height. */
MULLION_EXTENSION int32_t decode(const uint8_t *file MULLION_IN(length), uint64_t length,
                                 uint8_t *pixels MULLION_OUT(size), uint64_t size);

/* Encodes at quality 1 to 100 into `room`. Returns the bytes written, or -1: the picture is too large, or `room` too small. */
MULLION_EXTENSION int64_t encode(const uint8_t *pixels MULLION_IN(size), uint64_t size, uint32_t width, uint32_t height, int32_t quality,
                                 uint8_t *room MULLION_OUT(bytes), uint64_t bytes);

#endif
