/* What an extension in C may rely on when several threads of the host call it. */
#include <errno.h>
#include <mullion/ext.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHARED 64
#define HELD 32

static __thread long calls = 1000;
static __thread char name[40];
static void *exchange[SHARED];
static long total;

MULLION_EXPORT(long, calls_of_thread, (void)) { return ++calls; }

/* Allocates, frees, and hands blocks to whoever comes; 0, or what went wrong. */
MULLION_EXPORT(int, churn, (unsigned tag, int rounds))
{
	unsigned *held[HELD] = { 0 }, state = tag * 2654435761u + 1;
	for (int round = 0; round < rounds; round++) {
		state = state * 1664525 + 1013904223;
		size_t words = 3 + (state >> 8) % (round % 100 ? 300 : 30000);
		unsigned **place = &held[(state >> 4) % HELD];
		if (*place) {
			unsigned *block = *place;
			if (block[1] != tag || block[block[0] - 1] != ~tag)
				return 1;
			if (state & 64)
				block = __atomic_exchange_n(&exchange[(state >> 12) % SHARED], block, __ATOMIC_ACQ_REL);
			free(block);
		}
		unsigned *block = state & 32 ? malloc(words * sizeof *block) : calloc(words, sizeof *block);
		if (!block)
			return 2;
		block[0] = (unsigned)words;
		block[words - 1] = ~tag;
		block[1] = tag;
		*place = block;
		errno = (int)tag;
		snprintf(name, sizeof name, "%u/%d", tag, round);
		char expected[40];
		snprintf(expected, sizeof expected, "%u/%d", tag, round);
		if (errno != (int)tag)
			return 3;
		if (strcmp(name, expected))
			return 4;
		__atomic_add_fetch(&total, 1, __ATOMIC_RELAXED);
	}
	for (int i = 0; i < HELD; i++)
		free(held[i]);
	return 0;
}

/* All the memory that there is, to the last piece; and back. */
static void **taken;

MULLION_EXPORT(long, take_all, (void))
{
	long blocks = 0;
	for (size_t size = 1 << 20; size >= 16; size /= 2)
		for (void **block; (block = malloc(size)); blocks++) {
			*block = taken;
			taken = block;
		}
	return blocks;
}

MULLION_EXPORT(void, free_all, (void))
{
	for (void **block; (block = taken);) {
		taken = *block;
		free(block);
	}
}

MULLION_EXPORT(long, rounds_of_all, (void)) { return total; }

/* One stream, written to by everyone: each line whole. */
static char text[1 << 16];
static FILE *stream;

MULLION_EXPORT(int, open_stream, (void))
{
	stream = fmemopen(text, sizeof text, "w");
	return stream != 0;
}
MULLION_EXPORT(int, write_lines, (int tag, int count))
{
	for (int i = 0; i < count; i++)
		if (fprintf(stream, "<%d:%d>", tag, i) < 0)
			return 1;
	return 0;
}
MULLION_EXPORT(char *, close_stream, (void))
{
	fclose(stream);
	return text;
}

MULLION_EXPORT(void, fail, (void)) { *(volatile int *)0 = 1; }

/* One takes the lock of a stream, and ends when the other waits for it. */
static volatile int locked, waiting;
MULLION_EXPORT(int, is_locked, (void)) { return locked; }
MULLION_EXPORT(void, lock_and_end, (void))
{
	flockfile(stdout);
	locked = 1;
	while (!waiting) {}
	for (volatile int i = 0; i < 10000000; i++) {}
	__builtin_trap();
}
MULLION_EXPORT(void, wait_for_lock, (void))
{
	waiting = 1;
	flockfile(stdout);
	funlockfile(stdout);
}
