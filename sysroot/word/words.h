/* Behind the word wall a read must not go beyond what it was given, not even to the end of a
 * block: the next word may be another's. A word of four bytes belongs to one holder as a whole,
 * so whoever may read one byte of it may read the aligned word. */
#include <stdint.h>
#include <string.h>

typedef uint32_t __attribute__((__may_alias__)) word;
#define ONES 0x01010101u
#define HAS_ZERO(x) (((x) - ONES) & ~(x) & (ONES << 7))
#define ALIGNED(p) (((uintptr_t)(p) & 3) == 0)
