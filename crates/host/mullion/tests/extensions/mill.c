/* An extension that spends its time in a function of its own. */
#include <mullion/ext.h>
#include <stdint.h>

static __attribute__((noinline)) uint64_t grind(uint64_t grains)
{
	uint64_t flour = 1;
	while (grains--)
		flour = flour * 6364136223846793005u + (flour >> 33);
	return flour;
}

MULLION_EXPORT(uint64_t, mill, (uint64_t grains)) { return grind(grains); }
