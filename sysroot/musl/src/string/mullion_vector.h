/* Sixteen bytes at a time, for the string functions of a domain. An aligned
 * load of 16 bytes never crosses a page, so it may reach past what was asked
 * for: to the start and the end of the block that holds a wanted byte. */
#ifndef MULLION_VECTOR_H
#define MULLION_VECTOR_H

#include <stddef.h>
#include <stdint.h>

typedef signed char vector __attribute__((vector_size(16), may_alias));
typedef signed char unaligned_vector __attribute__((vector_size(16), may_alias, aligned(1)));
typedef uint64_t unaligned_u64 __attribute__((may_alias, aligned(1)));
typedef uint32_t unaligned_u32 __attribute__((may_alias, aligned(1)));
typedef uint16_t unaligned_u16 __attribute__((may_alias, aligned(1)));

#define LOAD(p) (*(const unaligned_vector *)(p))
#define STORE(p, v) (*(unaligned_vector *)(p) = (v))
#define LOAD64(p) (*(const unaligned_u64 *)(p))
#define STORE64(p, v) (*(unaligned_u64 *)(p) = (v))
#define LOAD32(p) (*(const unaligned_u32 *)(p))
#define STORE32(p, v) (*(unaligned_u32 *)(p) = (v))
#define LOAD16(p) (*(const unaligned_u16 *)(p))
#define STORE16(p, v) (*(unaligned_u16 *)(p) = (v))

/* Byte `c` in each place. */
static inline vector splat(int c)
{
	signed char b = (signed char)c;
	return (vector){ b, b, b, b, b, b, b, b, b, b, b, b, b, b, b, b };
}

/* One bit for each byte that is not zero in `v`, a result of a comparison. */
static inline unsigned mask(vector v)
{
	typedef char plain __attribute__((vector_size(16)));
	return (unsigned)__builtin_ia32_pmovmskb128((plain)v);
}

/* The aligned block that holds `p`. */
static inline const vector *block(const void *p)
{
	return (const vector *)((uintptr_t)p & ~(uintptr_t)15);
}

/* Whether `p` is at the start of four blocks that share a cache line. */
static inline int starts_line(const vector *p)
{
	return ((uintptr_t)p & 63) == 0;
}

/* Bits of a block's mask below the byte at `p` cleared. */
static inline unsigned from(unsigned bits, const void *p)
{
	return bits & (0xffffu << ((uintptr_t)p & 15));
}

#endif
