/* Numbers without an end, in memory that the host looks at. */
#include <mullion/ext.h>
#include <stdint.h>
#include <stdlib.h>

static uint64_t *numbers;

MULLION_EXPORT(uint64_t *, place, (uint64_t count))
{
	free(numbers);
	return numbers = calloc(count, sizeof *numbers);
}

static int compare(const void *one, const void *other)
{
	uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
	return (a > b) - (a < b);
}

MULLION_EXPORT(void, run, (uint64_t count, uint64_t state))
{
	for (;;) {
		for (uint64_t turn = 0; turn < count; turn++) {
			state ^= state << 13;
			state ^= state >> 7;
			state ^= state << 17;
			numbers[state % count] += state;
			if (state % 97 == 0)
				qsort(numbers, state % count, sizeof *numbers, compare);
		}
	}
}

MULLION_EXPORT(uint64_t, count_down, (uint64_t turns))
{
	volatile uint64_t sum = 0;
	while (turns--)
		sum += turns;
	return sum;
}
