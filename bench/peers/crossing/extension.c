/* The extension whose crossings are measured. */
#include "work.h"
#include <mullion/ext.h>

MULLION_IMPORT(void, host_nothing, (void));
MULLION_IMPORT(uint64_t, next, (uint64_t more));

static uint64_t buffer[512];

MULLION_EXPORT(void, nothing, (void)) {}

MULLION_EXPORT(uint64_t, eight, (uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f, uint64_t g, uint64_t h)) {
    return a + b + c + d + e + f + g + h;
}

MULLION_EXPORT(uint64_t *, place, (void)) { return buffer; }

MULLION_EXPORT(void, work, (uint64_t *words, uint64_t bytes)) { add_one(words, bytes); }

/* The host's function so many times. */
MULLION_EXPORT(void, call_host, (uint64_t count)) {
    while (count--)
        host_nothing();
}

/* The other domain's function so many times. */
MULLION_EXPORT(void, call_next, (uint64_t count)) {
    while (count--)
        next(0);
}

/* Through so many more domains, each of which calls the next one, and back. */
MULLION_EXPORT(uint64_t, chain, (uint64_t more)) { return more ? 1 + next(more - 1) : 0; }

/* Address 8 is never mapped. */
MULLION_EXPORT(uint64_t, fail, (void)) { return *(volatile uint64_t *)8; }

#ifdef FLOATING
/* With these two the image may change what the caller's floating-point units are set to. */
MULLION_EXPORT(double, through_x87, (double value)) { return (double)((long double)value * value); }
MULLION_EXPORT(void, set_mxcsr, (unsigned value)) { __builtin_ia32_ldmxcsr(value); }
#endif
