/* Built twice: into the program, and as a shared library that is opened with dlopen. */
#include "work.h"

void nothing(void) {}

uint64_t eight(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f, uint64_t g, uint64_t h) {
    return a + b + c + d + e + f + g + h;
}

void work(uint64_t *words, uint64_t bytes) { add_one(words, bytes); }
