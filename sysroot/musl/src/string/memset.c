#include <string.h>
#include "mullion_vector.h"

/* Blocks of at least this many bytes go to `rep stosb`. */
#ifndef BLOCK_SET
#define BLOCK_SET 2048
#endif

void *memset(void *destination, int value, size_t n)
{
	unsigned char *d = destination;
	uint64_t word = 0x0101010101010101u * (unsigned char)value;
	if (n < 16) {
		if (n >= 8) {
			STORE64(d, word);
			STORE64(d + n - 8, word);
		} else if (n >= 4) {
			STORE32(d, (uint32_t)word);
			STORE32(d + n - 4, (uint32_t)word);
		} else if (n >= 2) {
			STORE16(d, (uint16_t)word);
			STORE16(d + n - 2, (uint16_t)word);
		} else if (n) {
			*d = (unsigned char)word;
		}
		return destination;
	}
	vector v = splat(value);
	STORE(d, v);
	STORE(d + n - 16, v);
	if (n <= 32)
		return destination;
	STORE(d + 16, v);
	STORE(d + n - 32, v);
	if (n <= 64)
		return destination;
	if (n >= BLOCK_SET) {
		__asm__ __volatile__ ("rep stosb" : "+D"(d), "+c"(n) : "a"(value) : "memory");
		return destination;
	}
	unsigned char *to = (unsigned char *)(((uintptr_t)d + 32) & ~(uintptr_t)31), *end = d + n - 32;
	for (; to < end; to += 32) {
		STORE(to, v);
		STORE(to + 16, v);
	}
	return destination;
}
