/* What random runs call: every function says by its result what the model must say too. */
#include <mullion/ext.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { CELLS = 2048, BLOCKS = 8 };
static uint64_t cells[CELLS];
static uint64_t counter = 1000;
static _Thread_local uint64_t turns;
static uint8_t *blocks[BLOCKS];
static uint64_t sizes[BLOCKS];
__attribute__((constructor)) static void begin(void) { counter += 5; }

MULLION_IMPORT(uint64_t, host_gate, (uint64_t how, uint64_t value));
MULLION_IMPORT(uint64_t, other, (uint64_t value));

MULLION_EXPORT(uint64_t *, where, (void)) { return cells; }
MULLION_EXPORT(uint64_t, pure, (uint64_t value)) { return value * 7 + 3; }
MULLION_EXPORT(uint64_t, store, (uint64_t place, uint64_t value))
{
	uint64_t old = cells[place % CELLS];
	cells[place % CELLS] = value;
	return old;
}
MULLION_EXPORT(uint64_t, bump, (uint64_t by)) { return counter += by; }
MULLION_EXPORT(uint64_t, turn, (void)) { return ++turns; }
/* Takes the place of what was there; what that summed up to. */
MULLION_EXPORT(uint64_t, block, (uint64_t place, uint64_t size, uint64_t byte))
{
	uint64_t sum = 0;
	place %= BLOCKS;
	for (uint64_t i = 0; i < sizes[place]; i++)
		sum += blocks[place][i];
	free(blocks[place]);
	blocks[place] = size ? malloc(size) : NULL;
	sizes[place] = blocks[place] ? size : 0;
	if (sizes[place])
		memset(blocks[place], (int)byte, size);
	return sum;
}
MULLION_EXPORT(uint64_t, gate, (uint64_t how, uint64_t value))
{
	uint64_t result;
	counter++;
	result = host_gate(how, value);
	counter += result;
	return result ^ counter;
}
MULLION_EXPORT(uint64_t, gates, (uint64_t count))
{
	uint64_t sum = 0;
	for (uint64_t i = 0; i < count; i++)
		sum += host_gate(0, i);
	return sum;
}
MULLION_EXPORT(uint64_t, over, (uint64_t value))
{
	counter++;
	return other(value) + 1;
}
MULLION_EXPORT(uint64_t, linked, (uint64_t value))
{
	counter += value;
	if (value % 11 == 0)
		__builtin_trap();
	return counter * 3;
}
MULLION_EXPORT(uint64_t, get, (const volatile uint64_t *place)) { return *place; }
MULLION_EXPORT(void, put, (volatile uint64_t *place, uint64_t value)) { *place = value; }
__attribute__((noinline)) static int dig(int depth)
{
	volatile char pad[4096];
	pad[0] = (char)depth;
	return depth ? dig(depth + 1) + pad[0] : 0;
}
/* Leaves a mark, and ends. */
MULLION_EXPORT(uint64_t, wrong, (uint64_t how))
{
	volatile int zero = 0;
	int (*volatile data)(void) = (int (*)(void))cells;
	cells[how % CELLS] += 1;
	switch (how) {
	case 0: *(volatile int *)0x18 = 1; break;
	case 1: return 5 / zero;
	case 2: __builtin_trap();
	case 3: return data();
	case 4: abort();
	case 5: exit(3);
	case 6: return dig(1);
	}
	return 0;
}
MULLION_EXPORT(void, forever, (void)) { for (volatile int go = 1; go;) {} }
