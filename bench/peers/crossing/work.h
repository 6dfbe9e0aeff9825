/* What a call with a buffer does with it, on either side of every wall: adds 1 to each word. */
#ifndef CROSSING_WORK_H
#define CROSSING_WORK_H

#include <stdint.h>

static inline void add_one(uint64_t *words, uint64_t bytes) {
    for (uint64_t i = 0; i < bytes / 8; i++)
        words[i]++;
}

#endif
