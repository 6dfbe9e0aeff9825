/* One function for each thing that an extension can use up. */
#include <mullion/ext.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

MULLION_IMPORT(int, again, (int depth));

MULLION_EXPORT(void, use_time, (void))
{
	for (volatile int go = 1; go;) {
	}
}

MULLION_EXPORT(uint64_t, use_memory, (void))
{
	uint64_t total = 0;
	for (char *block; (block = malloc(1 << 20)); total += 1 << 20)
		memset(block, 1, 1 << 20);
	return total >> 20;
}

MULLION_EXPORT(int, use_stack, (int depth))
{
	volatile char frame[4096];
	frame[0] = depth;
	return depth < 0 ? 0 : use_stack(depth + 1) + frame[0];
}

MULLION_EXPORT(void, use_output, (void))
{
	for (;;) {
		puts("a line that nobody needs");
		fflush(stdout);
	}
}

MULLION_EXPORT(int, nest, (int depth))
{
	return again(depth + 1);
}
