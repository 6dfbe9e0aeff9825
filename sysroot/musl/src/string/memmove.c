/* memcpy and memmove are one function: up to 128 bytes everything is loaded
 * before anything is stored; beyond, the direction of the loop is chosen. The
 * loops store to aligned blocks, 64 bytes a turn. */
#include <string.h>
#include "mullion_vector.h"

/* Copies of at least this many bytes that do not overlap go to `rep movsb`,
 * which then beats 16-byte stores (measured, see ARCHITECTURE.md). */
#ifndef BLOCK_COPY
#define BLOCK_COPY 1024
#endif

static inline void small(unsigned char *d, const unsigned char *s, size_t n)
{
	if (n >= 8) {
		uint64_t a = LOAD64(s), b = LOAD64(s + n - 8);
		STORE64(d, a);
		STORE64(d + n - 8, b);
	} else if (n >= 4) {
		uint32_t a = LOAD32(s), b = LOAD32(s + n - 4);
		STORE32(d, a);
		STORE32(d + n - 4, b);
	} else if (n >= 2) {
		uint16_t a = LOAD16(s), b = LOAD16(s + n - 2);
		STORE16(d, a);
		STORE16(d + n - 2, b);
	} else if (n) {
		*d = *s;
	}
}

static inline void medium(unsigned char *d, const unsigned char *s, size_t n)
{
	vector a = LOAD(s), b = LOAD(s + 16), y = LOAD(s + n - 32), z = LOAD(s + n - 16);
	if (n > 64) {
		vector e = LOAD(s + 32), f = LOAD(s + 48), u = LOAD(s + n - 64), v = LOAD(s + n - 48);
		STORE(d + 32, e);
		STORE(d + 48, f);
		STORE(d + n - 64, u);
		STORE(d + n - 48, v);
	}
	STORE(d, a);
	STORE(d + 16, b);
	STORE(d + n - 32, y);
	STORE(d + n - 16, z);
}

/* Upwards: right when `d` is below `s`, or they do not overlap. */
static void forwards(unsigned char *d, const unsigned char *s, size_t n)
{
	vector head = LOAD(s), a, b, c, e;
	vector t0 = LOAD(s + n - 64), t1 = LOAD(s + n - 48), t2 = LOAD(s + n - 32), t3 = LOAD(s + n - 16);
	unsigned char *end = d + n - 64, *to = (unsigned char *)(((uintptr_t)d + 16) & ~(uintptr_t)15);
	const unsigned char *at = s + (to - d);
	do {
		a = LOAD(at);
		b = LOAD(at + 16);
		c = LOAD(at + 32);
		e = LOAD(at + 48);
		STORE(to, a);
		STORE(to + 16, b);
		STORE(to + 32, c);
		STORE(to + 48, e);
		at += 64;
		to += 64;
	} while (to < end);
	STORE(d, head);
	STORE(end, t0);
	STORE(end + 16, t1);
	STORE(end + 32, t2);
	STORE(end + 48, t3);
}

/* Downwards: right when `d` is above `s`. */
static void backwards(unsigned char *d, const unsigned char *s, size_t n)
{
	vector tail = LOAD(s + n - 16), a, b, c, e;
	vector h0 = LOAD(s), h1 = LOAD(s + 16), h2 = LOAD(s + 32), h3 = LOAD(s + 48);
	unsigned char *to = (unsigned char *)((uintptr_t)(d + n - 1) & ~(uintptr_t)15);
	const unsigned char *at = s + (to - d);
	do {
		at -= 64;
		to -= 64;
		a = LOAD(at + 48);
		b = LOAD(at + 32);
		c = LOAD(at + 16);
		e = LOAD(at);
		STORE(to + 48, a);
		STORE(to + 32, b);
		STORE(to + 16, c);
		STORE(to, e);
	} while (to > d + 64);
	STORE(d + n - 16, tail);
	STORE(d, h0);
	STORE(d + 16, h1);
	STORE(d + 32, h2);
	STORE(d + 48, h3);
}

void *memmove(void *destination, const void *source, size_t n)
{
	unsigned char *d = destination;
	const unsigned char *s = source;
	if (n < 16) {
		small(d, s, n);
	} else if (n <= 32) {
		vector a = LOAD(s), b = LOAD(s + n - 16);
		STORE(d, a);
		STORE(d + n - 16, b);
	} else if (n <= 128) {
		medium(d, s, n);
	} else if ((size_t)(d - s) >= n) {
		if (n >= BLOCK_COPY && (size_t)(s - d) >= n) {
			__asm__ __volatile__ ("rep movsb" : "+D"(d), "+S"(s), "+c"(n) : : "memory");
		} else {
			forwards(d, s, n);
		}
	} else {
		backwards(d, s, n);
	}
	return destination;
}

void *memcpy(void *restrict, const void *restrict, size_t) __attribute__((alias("memmove")));
