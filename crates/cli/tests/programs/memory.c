/* malloc and its kin under load; string functions against plain loops, at every
 * small length and alignment. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state = 88172645463325252u;
static uint64_t next(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static unsigned failures;
static void check(int ok, const char *what, size_t n, size_t a, size_t b)
{
	if (!ok && failures++ < 10)
		printf("%s is wrong: %zu %zu %zu\n", what, n, a, b);
}

static unsigned char left[9000], right[9000], wanted[9000];

static int sign(int v) { return (v > 0) - (v < 0); }

static void strings(size_t n, size_t a, size_t b)
{
	for (size_t i = 0; i < n + 64; i++) {
		left[a + i] = (unsigned char)(next() % 5 + 1);
		right[b + i] = (unsigned char)next();
	}
	memcpy(wanted, right, sizeof wanted);
	for (size_t i = 0; i < n; i++)
		wanted[b + i] = left[a + i];
	check(memcpy(right + b, left + a, n) == right + b && !memcmp(right, wanted, sizeof right), "memcpy", n, a, b);

	memcpy(wanted, right, sizeof wanted);
	for (size_t i = 0; i < n; i++)
		wanted[a + i] = right[b + i];
	memmove(right + a, right + b, n);
	check(!memcmp(right, wanted, sizeof right), "memmove", n, a, b);

	for (size_t i = 0; i < n; i++)
		wanted[b + i] = 0xa5;
	memset(right + b, 0xa5, n);
	check(!memcmp(right, wanted, sizeof right), "memset", n, a, b);

	left[a + n] = 0;
	check(strlen((char *)left + a) == n, "strlen", n, a, b);
	memcpy(right + b, left + a, n + 1);
	check(strcmp((char *)left + a, (char *)right + b) == 0, "strcmp equal", n, a, b);
	check(memcmp(left + a, right + b, n) == 0, "memcmp equal", n, a, b);
	if (n) {
		size_t at = next() % n;
		unsigned char old = right[b + at];
		right[b + at] = 200;
		check(sign(strcmp((char *)left + a, (char *)right + b)) == -1, "strcmp", n, at, b);
		check(sign(memcmp(left + a, right + b, n)) == -1, "memcmp", n, at, b);
		check(sign(memcmp(right + b, left + a, n)) == 1, "memcmp back", n, at, b);
		check(strncmp((char *)left + a, (char *)right + b, at) == 0, "strncmp short", n, at, b);
		check(sign(strncmp((char *)left + a, (char *)right + b, at + 1)) == -1, "strncmp", n, at, b);
		check(memchr(right + b, 200, n) == right + b + at, "memchr", n, at, b);
		check(memchr(right + b, 200, at) == 0, "memchr short", n, at, b);
		check(strchr((char *)right + b, 200) == (char *)right + b + at, "strchr", n, at, b);
		check(strchr((char *)left + a, 201) == 0, "strchr absent", n, at, b);
		right[b + at] = old;
	}
}

struct block { unsigned char *bytes; size_t size; unsigned char mark; };

static int intact(const struct block *b)
{
	for (size_t i = 0; i < b->size; i++)
		if (b->bytes[i] != b->mark)
			return 0;
	return 1;
}

static void heap(void)
{
	static struct block blocks[500];
	for (int round = 0; round < 20000; round++) {
		struct block *b = &blocks[next() % 500];
		check(intact(b), "heap", (size_t)round, b->size, 0);
		size_t size = next() % 50 == 0 ? next() % (next() % 20 == 0 ? 6000000 : 100000) : next() % 300;
		switch (next() % 3) {
		case 0:
			free(b->bytes);
			b->bytes = malloc(size);
			break;
		case 1:
			free(b->bytes);
			b->bytes = calloc(1, size + 1);
			for (size_t i = 0; i < size; i++)
				check(b->bytes[i] == 0, "calloc", size, i, 0);
			break;
		default:
			b->bytes = realloc(b->bytes, size + 1);
			for (size_t i = 0; i < size && i < b->size; i++)
				check(b->bytes[i] == b->mark, "realloc", size, i, b->size);
		}
		check(((uintptr_t)b->bytes & 15) == 0, "alignment", size, 0, 0);
		b->size = size;
		b->mark = (unsigned char)next();
		if (size)
			memset(b->bytes, b->mark, size);
	}
	for (int i = 0; i < 500; i++)
		free(blocks[i].bytes);
	for (size_t alignment = 16; alignment <= 1 << 20; alignment *= 2)
		for (size_t size = 1; size < 5000000; size = size * 3 + 1) {
			unsigned char *aligned = aligned_alloc(alignment, size), *grown;
			check(((uintptr_t)aligned & (alignment - 1)) == 0, "aligned_alloc", alignment, size, 0);
			aligned[0] = 77;
			aligned[size - 1] = 78;
			grown = realloc(aligned, size * 2);
			check(grown[0] == (size > 1 ? 77 : 78) && grown[size - 1] == 78, "realloc aligned", alignment, size, 0);
			grown[size * 2 - 1] = 1;
			free(grown);
		}
}

int main(void)
{
	for (size_t n = 0; n < 300; n++)
		for (size_t a = 0; a < 18; a += 1 + n / 40)
			for (size_t b = 0; b < 18; b += 1 + n / 30)
				strings(n, a, b);
	for (size_t n = 1000; n < 8000; n += 511)
		for (size_t a = 0; a < 40; a += 7)
			strings(n, a, 40 - a);
	heap();
	printf("%u failures, %llu\n", failures, (unsigned long long)state);
	return failures != 0;
}
