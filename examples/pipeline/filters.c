/* Filters for rows of grey pixels, written in a hurry. `sharpen` has a bug. */
#include <mullion/ext.h>
#include <stdint.h>

MULLION_EXPORT(void, invert, (uint8_t *row, uint32_t width))
{
	for (uint32_t x = 0; x < width; x++)
		row[x] = 255 - row[x];
}

MULLION_EXPORT(void, blur, (uint8_t *row, uint32_t width))
{
	uint8_t before = row[0];
	for (uint32_t x = 1; x + 1 < width; x++) {
		uint8_t here = row[x];
		row[x] = (before + 2 * here + row[x + 1]) / 4;
		before = here;
	}
}

/* How far the edges are pushed apart, by the row's mean brightness. */
static const int8_t *strength_for(unsigned mean)
{
	static const int8_t strengths[8] = { 1, 1, 2, 2, 3, 3, 2, 1 };
	/* 16 steps, a table of 8: the author had dark pictures only. */
	return mean / 16 < 8 ? &strengths[mean / 16] : 0;
}

MULLION_EXPORT(void, sharpen, (uint8_t *row, uint32_t width))
{
	unsigned total = 0;
	for (uint32_t x = 0; x < width; x++)
		total += row[x];
	int strength = *strength_for(total / width);
	uint8_t before = row[0];
	for (uint32_t x = 1; x + 1 < width; x++) {
		int here = row[x];
		int value = here + strength * (2 * here - before - row[x + 1]) / 4;
		before = here;
		row[x] = value < 0 ? 0 : value > 255 ? 255 : value;
	}
}
