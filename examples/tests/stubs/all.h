/* What the test of stubs calls: as many arguments as there can be, and structures
 * by reference, both ways. */
#ifndef ALL_H
#define ALL_H

#include <mullion/bind.h>
#include <stdint.h>

struct size {
	uint32_t width, height;
};

/* Asks the host's weigh() with what it was given, and adds 1. */
MULLION_EXTENSION int64_t pass_on(int32_t a, int32_t b, int32_t c, int32_t d, int32_t e, int32_t f, int8_t g, int64_t h);
MULLION_HOST int64_t weigh(int32_t a, int32_t b, int32_t c, int32_t d, int32_t e, int32_t f, int8_t g, int64_t h);

/* Makes `size` larger, and says what it was. */
MULLION_EXTENSION void grow(struct size *size MULLION_INOUT(1), const struct size *by MULLION_IN(1),
                            struct size *old MULLION_OUT(1));
MULLION_HOST void host_grow(struct size *size MULLION_INOUT(1), const struct size *by MULLION_IN(1),
                            struct size *old MULLION_OUT(1));

/* Has the host grow a size by 1 and 2, and returns its area, less what it was. */
MULLION_EXTENSION int32_t gain(uint32_t width, uint32_t height);

#endif
