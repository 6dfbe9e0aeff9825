/* Zstandard behind a wall. */
#ifndef WALLED_ZSTD_H
#define WALLED_ZSTD_H

#include <mullion/bind.h>
#include <stdint.h>

/* Most bytes that `pack` writes for so many bytes of data. */
MULLION_EXTENSION uint64_t pack_bound(uint64_t length);

/* Compresses into `room`, at level 1 to 22. Returns the bytes written, or zstd's error, negative. */
MULLION_EXTENSION int64_t pack(const uint8_t *data MULLION_IN(length), uint64_t length, int32_t level,
                               uint8_t *room MULLION_OUT(size), uint64_t size);

/* Restores into `room`. Returns the bytes written, or zstd's error, negative. */
MULLION_EXTENSION int64_t unpack(const uint8_t *data MULLION_IN(length), uint64_t length,
                                 uint8_t *room MULLION_OUT(size), uint64_t size);

/* How many bytes the data says that it will be: -1 if it does not say, -2 if it is damaged.
 * It may lie, so bound what you allocate for it. */
MULLION_EXTENSION int64_t unpacked_size(const uint8_t *data MULLION_IN(length), uint64_t length);

#endif
