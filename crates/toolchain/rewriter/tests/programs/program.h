/* What the test programs share. Each defines `uint64_t entry(void)`, whose
 * result depends on everything that it did. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
uint64_t entry(void);
void *memcpy(void *, const void *, size_t);
void *memset(void *, int, size_t);
void *malloc(size_t);
void free(void *);
void abort(void);
#ifdef __cplusplus
}
#endif

#define APART __attribute__((noinline, noclone))

/* Kept from the optimiser. */
#define HIDE(x) __asm__ volatile("" : "+r"(x))

static inline uint64_t mix(uint64_t sum, uint64_t value) {
    sum = (sum ^ value) * 0x9e3779b97f4a7c15u;
    return sum ^ (sum >> 29);
}
