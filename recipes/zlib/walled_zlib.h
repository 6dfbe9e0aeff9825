/* zlib behind a wall. */
#ifndef WALLED_ZLIB_H
#define WALLED_ZLIB_H

#include <mullion/bind.h>
#include <stdint.h>

/* Most bytes that `pack` writes for so many bytes of data. */
MULLION_EXTENSION uint64_t pack_bound(uint64_t length);

/* Compresses into `room`, at level 0 to 9, or -1 for the usual one. Returns the bytes
 * written, or zlib's error, which is negative: -5 if `room` is too small. */
MULLION_EXTENSION int64_t pack(const uint8_t *data MULLION_IN(length), uint64_t length, int32_t level,
                               uint8_t *room MULLION_OUT(size), uint64_t size);

/* Restores into `room`. Returns the bytes written, or zlib's error, which is negative:
 * -3 if the data is damaged, -5 if `room` is too small or the data ends early. */
MULLION_EXTENSION int64_t unpack(const uint8_t *data MULLION_IN(length), uint64_t length,
                                 uint8_t *room MULLION_OUT(size), uint64_t size);

/* The checksum of gzip and PNG; `start` is 0, or that of what came before. */
MULLION_EXTENSION uint32_t checksum(uint32_t start, const uint8_t *data MULLION_IN(length), uint64_t length);

#endif
